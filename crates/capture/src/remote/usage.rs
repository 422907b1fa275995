//! How much of a processor each thread uses, by its CPU time at two moments.
//!
//! Most threads of most processes sleep all the while, and asking each of thousands twice takes longer than all the rest. So
//! only those are asked that were seen to run. What all the others used together is told by the clock of the process; where that
//! is nothing, none of them is asked. Where none was seen to run that clock alone counts, and what it told while threads were listed
//! does as well: only their stops, which cost them processor time, are left out.

use super::target::Target;
use super::thread_info::ThreadInfo;
use crate::ThreadState;
use crate::procfs::{Stat, parse_schedstat};
use backtrail_sys::linux::process_time;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// CPU times as they were when all threads had been captured.
#[derive(Clone, Debug)]
pub struct Usage {
    begun: Times,
    process: Watch,
    /// What the process used before threads were stopped.
    before: Used,
}

/// CPU time that a process used, and in what time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    time: Duration,
    passed: Duration,
}

impl Used {
    /// The share of one processor in both times.
    fn share_with(self, other: Self) -> f64 {
        let passed = (self.passed + other.passed).as_secs_f64();
        (self.time + other.time).as_secs_f64() / passed.max(1e-9)
    }
}

/// Watches what a process uses.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    at: Instant,
    /// What it had used; unknown for a process that is gone.
    time: Option<Duration>,
}

impl Watch {
    pub(super) fn begin(target: &Target) -> Self {
        Self { time: process_time(target.id()).ok(), at: Instant::now() }
    }

    pub(super) fn used(&self, target: &Target) -> Option<Used> {
        let now = Self::begin(target);
        Some(Used { time: now.time?.saturating_sub(self.time?), passed: now.at - self.at })
    }
}

/// CPU times of some threads.
#[derive(Clone, Debug)]
struct Times {
    at: Instant,
    of: HashMap<u32, CpuTime>,
}

#[derive(Clone, Copy, Debug)]
enum CpuTime {
    /// By the scheduler's account.
    Exact(Duration),
    /// In whole ticks of ten milliseconds.
    Ticks(Duration),
}

/// The share of one processor below which threads together are said to use none.
const NOTHING: f64 = 0.01;

impl Usage {
    pub(super) fn begin(target: &Target, threads: &[ThreadInfo], before: Option<Used>) -> Self {
        let running = threads.iter().filter(|thread| thread.state == ThreadState::Running);
        let begun = Times::read(target, running);
        let before = before.filter(|_| begun.of.is_empty()).unwrap_or_default();
        Self { begun, process: Watch::begin(target), before }
    }

    /// Reads the times again, once `window` has passed since the threads were captured (it waits for what is left of that),
    /// and fills in each thread's usage. A longer window is more exact: work that comes in bursts needs one.
    pub fn finish(&self, target: &Target, window: Duration, threads: &mut [ThreadInfo]) {
        std::thread::sleep(window.saturating_sub(self.before.passed + self.begun.at.elapsed()));
        let used = self.process.used(target);
        let now = Times::read(target, threads.iter().filter(|thread| self.begun.of.contains_key(&thread.id)));
        let known = now.since(&self.begun);
        let others = used.map(|used| self.before.share_with(used) - known.values().sum::<f64>());
        if others.is_some_and(|share| share < NOTHING) {
            for thread in threads {
                let is_there = !thread.state.is_gone();
                thread.cpu_usage = known.get(&thread.id).copied().or(Some(0.0)).filter(|_| is_there);
            }
            return;
        }
        let begun = Times::read(target, threads.iter());
        std::thread::sleep(window);
        let known = Times::read(target, threads.iter()).since(&begun);
        for thread in threads {
            thread.cpu_usage = known.get(&thread.id).copied();
        }
    }
}

impl Times {
    fn read<'t>(target: &Target, threads: impl Iterator<Item = &'t ThreadInfo>) -> Self {
        let at = Instant::now();
        let of = threads.filter_map(|thread| Some((thread.id, CpuTime::read(target, thread.id)?))).collect();
        Self { at, of }
    }

    /// The share of one processor that each used since.
    fn since(&self, before: &Self) -> HashMap<u32, f64> {
        let passed = (self.at - before.at).as_secs_f64().max(1e-9);
        let share = |(id, now): (&u32, &CpuTime)| {
            let used = now.since(*before.of.get(id)?)?.as_secs_f64();
            // Rounding, and the time between the two clocks, can come to a little more than all.
            Some((*id, (used / passed).min(1.0)))
        };
        self.of.iter().filter_map(share).collect()
    }
}

impl CpuTime {
    fn read(target: &Target, id: u32) -> Option<Self> {
        let exact = target.of_thread(id, "schedstat", parse_schedstat).map(Duration::from_nanos);
        exact.map(Self::Exact).or_else(|| {
            let stat = target.of_thread(id, "stat", Stat::parse)?;
            Some(Self::Ticks(stat.user_time() + stat.system_time()))
        })
    }

    fn since(self, before: Self) -> Option<Duration> {
        match (self, before) {
            (Self::Exact(now), Self::Exact(before)) | (Self::Ticks(now), Self::Ticks(before)) => {
                Some(now.saturating_sub(before))
            }
            _ => None,
        }
    }
}
