//! The times that reports print, in one form that sorts.

use backtrail_core::Utc;

/// `2026-05-01 12:00:00.123 +0200`, `2026-05-01T10:00:00Z` and the like as `2026-05-01T10:00:00Z`. `None` for any other form: a
/// wrong time is worse than none. A time without a zone is taken as UTC.
pub(super) fn in_utc(text: &str) -> Option<String> {
    let text = text.trim();
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-');
    let (year, month, day) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    if parts.next().is_some()
        || !(1970..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    let rest = rest.strip_prefix(['T', ' '])?.trim_start();
    let (clock, rest) = rest.split_at_checked(8)?;
    let mut parts = clock.split(':');
    let (hour, minute, second) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Digits of a fraction.
    let rest = rest
        .strip_prefix('.')
        .map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        .trim();
    let seconds =
        Utc::days_to(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(rest)?;
    Some(Utc::from_unix(seconds).to_string())
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Seconds east of Greenwich: `+0200`, `-03:30`, `Z`.
fn offset(text: &str) -> Option<i64> {
    if matches!(text, "" | "Z" | "UTC" | "GMT") {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits: String = text.strip_prefix(['+', '-'])?.chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = digits.split_at_checked(2)?;
    let (hours, minutes) = (number(hours)?, number(minutes).filter(|_| minutes.len() == 2)?);
    (hours <= 14 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_sort() {
        for (text, expected) in [
            ("2019-04-25 11:43:52.7270 +0200", Some("2019-04-25T09:43:52Z")),
            ("2024-02-29 23:30:00.00 -0330", Some("2024-03-01T03:00:00Z")),
            ("2026-05-01T12:00:00Z", Some("2026-05-01T12:00:00Z")),
            ("2000-01-01 00:00:00 +0100", Some("1999-12-31T23:00:00Z")),
            ("2026-05-01", None),
            ("yesterday", None),
            ("2026-13-01 00:00:00", None),
            ("", None),
        ] {
            assert_eq!(in_utc(text).as_deref(), expected, "{text}");
        }
    }
}
