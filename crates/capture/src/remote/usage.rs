//! How much of a processor each thread uses, by its CPU time at two moments.

use super::facts::ThreadFacts;
use super::target::Target;
use crate::procfs::{Stat, parse_schedstat};
use std::time::{Duration, Instant};

/// CPU times as they were when the capture began.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    begun: Vec<Begun>,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    id: u32,
    time: CpuTime,
    at: Instant,
}

#[derive(Clone, Copy, Debug)]
enum CpuTime {
    /// By the scheduler's account.
    Exact(Duration),
    /// In whole ticks of ten milliseconds.
    Ticks(Duration),
}

impl Usage {
    pub(super) fn begin(&mut self, target: &Target, id: u32, stat: &Stat) {
        let exact = scheduled(target, id).map(CpuTime::Exact);
        let time = exact.unwrap_or(CpuTime::Ticks(stat.user_time() + stat.system_time()));
        self.begun.push(Begun { id, time, at: Instant::now() });
    }

    pub(super) fn join(&mut self, other: Self) {
        self.begun.extend(other.begun);
    }

    /// Reads the times again, once `window` has passed since the capture began (it waits for what is left of that), and
    /// fills in each thread's usage. A longer window is more exact: work that comes in bursts needs one.
    pub fn finish(&self, target: &Target, window: Duration, threads: &mut [ThreadFacts]) {
        if let Some(last) = self.begun.iter().map(|begun| begun.at).max() {
            std::thread::sleep(window.saturating_sub(last.elapsed()));
        }
        let mut sorted = self.begun.clone();
        sorted.sort_by_key(|begun| begun.id);
        for thread in threads {
            let Ok(place) = sorted.binary_search_by_key(&thread.id, |begun| begun.id) else { continue };
            thread.cpu_usage = sorted.get(place).and_then(|begun| begun.usage(target));
        }
    }
}

impl Begun {
    fn usage(&self, target: &Target) -> Option<f64> {
        let (before, now) = match self.time {
            CpuTime::Exact(before) => (before, scheduled(target, self.id)?),
            CpuTime::Ticks(before) => {
                let stat = target.of_thread(self.id, "stat", Stat::parse)?;
                (before, stat.user_time() + stat.system_time())
            }
        };
        let passed = self.at.elapsed().as_secs_f64();
        // Rounding, and the time between the two clocks, can come to a little more than all.
        let used = now.saturating_sub(before).as_secs_f64();
        (passed > 0.0).then(|| (used / passed).min(1.0))
    }
}

fn scheduled(target: &Target, id: u32) -> Option<Duration> {
    target.of_thread(id, "schedstat", parse_schedstat).map(Duration::from_nanos)
}
