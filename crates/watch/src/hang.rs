//! When a process hangs: its first thread has not run for a while.

use backtrail_capture::ThreadState;
use backtrail_capture::procfs::{Stat, parse_schedstat};
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
    was_stopped: bool,
}

impl HangWatch {
    pub(crate) fn new(pid: u32, limit: Duration) -> Self {
        Self { pid, limit, since: None, is_told: false, was_stopped: false }
    }

    /// How often to look. Each look costs some microseconds.
    pub(crate) fn pause(&self) -> Duration {
        (self.limit / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }

    /// Whether it hangs now, and has not been told to since it last ran: for how long it has not run.
    pub(crate) fn look(&mut self) -> Option<Duration> {
        let read = |name: &str| std::fs::read(format!("/proc/{0}/task/{0}/{name}", self.pid)).ok();
        // One that waits for a processor does not hang, and neither does one that somebody stopped (`SIGSTOP`).
        let waits = |stat: Stat| matches!(stat.state, ThreadState::Sleeping | ThreadState::Uninterruptible);
        if !read("stat").and_then(|stat| Stat::parse(&stat)).is_some_and(waits) {
            // Unless it is on its way back to what it waited in before it was stopped for a report.
            if !self.was_stopped {
                self.since = None;
            }
            return None;
        }
        let ran = read("schedstat")?;
        self.saw(parse_schedstat(&ran)?, Instant::now())
    }

    fn saw(&mut self, ran: u64, now: Instant) -> Option<Duration> {
        if std::mem::take(&mut self.was_stopped)
            && let Some((before, _)) = &mut self.since
        {
            *before = ran;
        }
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

    /// It was stopped for a report: it runs some microseconds to wait again for the same, which is the same hang.
    pub(crate) fn was_stopped(&mut self) {
        self.was_stopped = true;
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
        watch.was_stopped();
        assert_eq!(watch.saw(7, at(400)), None, "it ran to wait for the same");
        assert_eq!(watch.saw(7, at(900)), None, "told already");
        assert_eq!(watch.saw(8, at(950)), None);
        assert_eq!(watch.saw(8, at(1060)), Some(Duration::from_millis(110)));
    }
}
