//! Points in time as text.

use backtrail_core::Utc;
use std::time::{Duration, SystemTime};

/// Date and time in UTC, by RFC 3339, with milliseconds: `2026-11-21T10:04:05.678Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let Utc { year, month, day, hour, minute, second } = Utc::from_unix(seconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// The time that [`rfc3339`] wrote; `None` for anything else, and for times before 1970 or after 9999.
pub(crate) fn parse_rfc3339(text: &str) -> Option<SystemTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (time, millis) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':')?;
    let millis: u64 = millis.parse().ok().filter(|millis| *millis < 1_000)?;
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let midnight = Utc::days_to(year, month, day) * 86_400;
    // Not each month has a 31st.
    if Utc::from_unix(midnight).day != day {
        return None;
    }
    let seconds = u64::try_from(midnight + hour * 3_600 + minute * 60 + second).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(seconds * 1_000 + millis))
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let mut parts = text.split(between).map(|part| part.parse::<u32>().ok().map(i64::from));
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// Whole nanoseconds; 584 years at most.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds, to the microsecond.
pub fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        // By `date -u -d @N`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_795_255_445, "2026-11-21T10:04:05.000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (13_574_563_200, "2400-02-29T00:00:00.000Z"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(rfc3339(time), text);
            assert_eq!(parse_rfc3339(text), Some(time));
        }
        let odd = SystemTime::UNIX_EPOCH + Duration::from_millis(1_234_567_890_123);
        assert_eq!(parse_rfc3339(&rfc3339(odd)), Some(odd));
    }

    #[test]
    fn what_is_no_time() {
        for text in ["", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "20260101"] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
        assert!(parse_rfc3339("99999999999-01-01T00:00:00Z").is_none());
    }
}
