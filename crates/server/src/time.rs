//! The clock, as the database keeps it.

use backtrail_core::Utc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds of a day.
pub(crate) const DAY: i64 = 86_400_000;

/// Milliseconds since 1970 in UTC.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The day as a number: days since 1970-01-01.
pub(crate) fn day(millis: i64) -> i64 {
    millis.div_euclid(DAY)
}

/// `2026-05-01 12:00`, for people.
pub(crate) fn shown(millis: i64) -> String {
    let Utc { year, month, day, hour, minute, .. } = utc(millis);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// `2026-05-01T12:00:00Z`, for programs.
pub(crate) fn rfc3339(millis: i64) -> String {
    utc(millis).to_string()
}

fn utc(millis: i64) -> Utc {
    Utc::from_unix(millis.div_euclid(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown() {
        assert_eq!(shown(0), "1970-01-01 00:00");
        assert_eq!(rfc3339(1_709_251_199_000), "2024-02-29T23:59:59Z");
        assert_eq!(rfc3339(1_709_251_200_000), "2024-03-01T00:00:00Z");
    }
}
