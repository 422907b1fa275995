//! The clock, as the database keeps it.

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
    let (year, month, date) = date(day(millis));
    let minutes = millis.rem_euclid(DAY) / 60_000;
    format!("{year:04}-{month:02}-{date:02} {:02}:{:02}", minutes / 60, minutes % 60)
}

/// `2026-05-01T12:00:00Z`, for programs.
pub(crate) fn rfc3339(millis: i64) -> String {
    let (year, month, date) = date(day(millis));
    let seconds = millis.rem_euclid(DAY) / 1000;
    format!(
        "{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Year, month and day of the Gregorian calendar. Years are counted from March, so that leap days are their last.
fn date(day: i64) -> (i64, i64, i64) {
    let days = day + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = (shifted + 2) % 12 + 1;
    (year_of_era + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
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
