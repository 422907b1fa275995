//! Times as dates of the Gregorian calendar.

use core::fmt;

/// A second in UTC. Shown by RFC 3339: `2026-05-01T12:00:00Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Utc {
    /// The year.
    pub year: i64,
    /// The month, from 1 on.
    pub month: i64,
    /// The day of the month, from 1 on.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59: Unix time has no leap seconds.
    pub second: i64,
}

impl Utc {
    /// Days from 1970-01-01 to a date; for months of 1 to 12 and days of 1 to 31. One that the month does not have is counted on
    /// into the next.
    pub fn days_to(year: i64, month: i64, day: i64) -> i64 {
        let year = if month <= 2 { year - 1 } else { year };
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    /// From seconds since 1970-01-01.
    pub fn from_unix(seconds: i64) -> Self {
        let (days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // Days since 0000-03-01, so that a leap day ends a year (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms").
        let days = days + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let month = (shifted + 2) % 12 + 1;
        Self {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: of_year - (153 * shifted + 2) / 5 + 1,
            hour: clock / 3600,
            minute: clock / 60 % 60,
            second: clock % 60,
        }
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn leap_days_end_a_year_that_begins_in_march() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Utc::from_unix(seconds).to_string(), expected);
        }
        assert_eq!(Utc::days_to(2024, 2, 29), 1_709_251_199 / 86_400);
        assert_eq!(Utc::days_to(2023, 2, 29), Utc::days_to(2023, 3, 1));
        // Whatever a file says.
        let _ = (Utc::from_unix(i64::MAX).to_string(), Utc::from_unix(i64::MIN).to_string());
    }
}
