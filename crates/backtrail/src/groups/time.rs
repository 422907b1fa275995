//! The times that reports print, in one form that sorts.

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
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(rest)?;
    Some(printed(seconds))
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

/// Days since 1970-01-01, in the Gregorian calendar. Years begin with March, so that leap days are their last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn printed(seconds: i64) -> String {
    let (days, clock) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * shifted + 2) / 5 + 1, (shifted + 2) % 12 + 1);
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", clock / 3600, clock / 60 % 60, clock % 60)
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
