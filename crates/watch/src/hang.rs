//! When a process hangs: its first thread has not run for a while.

use backtrail_capture::procfs::parse_schedstat;
use std::time::{Duration, Instant};

/// Looks whether the first thread of a process runs.
#[derive(Debug)]
pub(crate) struct HangWatch {
    pid: u32,
    limit: Duration,
    /// The processor time that it had used, and when that was first seen.
    since: Option<(u64, Instant)>,
    /// Whether this hang was told of.
    is_told: bool,
}

impl HangWatch {
    pub(crate) fn new(pid: u32, limit: Duration) -> Self {
        Self { pid, limit, since: None, is_told: false }
    }

    /// How often to look. Each look costs some microseconds.
    pub(crate) fn pause(&self) -> Duration {
        (self.limit / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }

    /// Whether it hangs now, and has not been told to since it last ran: for how long it has not run.
    pub(crate) fn look(&mut self) -> Option<Duration> {
        let ran = std::fs::read(format!("/proc/{0}/task/{0}/schedstat", self.pid)).ok()?;
        self.saw(parse_schedstat(&ran)?, Instant::now())
    }

    fn saw(&mut self, ran: u64, now: Instant) -> Option<Duration> {
        let since = match self.since {
            Some((before, since)) if before == ran => since,
            _ => {
                self.since = Some((ran, now));
                self.is_told = false;
                return None;
            }
        };
        let stood = now.duration_since(since);
        if self.is_told || stood < self.limit {
            return None;
        }
        self.is_told = true;
        Some(stood)
    }

    /// It was stopped for a report, and ran for that: this is the same hang.
    pub(crate) fn was_stopped(&mut self) {
        let ran = std::fs::read(format!("/proc/{0}/task/{0}/schedstat", self.pid));
        if let (Some((before, _)), Some(ran)) = (&mut self.since, ran.ok().and_then(|ran| parse_schedstat(&ran))) {
            *before = ran;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hang_is_told_once_until_the_thread_has_run_again() {
        let mut watch = HangWatch::new(1, Duration::from_millis(100));
        let begun = Instant::now();
        let at = |milliseconds| begun + Duration::from_millis(milliseconds);
        assert_eq!(watch.saw(5, at(0)), None);
        assert_eq!(watch.saw(5, at(90)), None);
        assert_eq!(watch.saw(6, at(110)), None, "it ran");
        assert_eq!(watch.saw(6, at(200)), None);
        assert_eq!(watch.saw(6, at(220)), Some(Duration::from_millis(110)));
        assert_eq!(watch.saw(6, at(900)), None, "told already");
        assert_eq!(watch.saw(7, at(950)), None);
        assert_eq!(watch.saw(7, at(1060)), Some(Duration::from_millis(110)));
    }
}
