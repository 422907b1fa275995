//! What is told of one thread of this process.

use super::{CaptureError, RawStack, ThreadId, ThreadState};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a thread has used of the processor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cpu {
    /// Since it began.
    pub time: Duration,
    /// The share of one processor since threads were captured the last time ([`Capturer::all`](super::Capturer::all)), from 0 to 1; `None` where
    /// that was the first time, or the thread has begun since.
    pub usage: Option<f64>,
}

/// One thread of this process.
#[derive(Clone, Debug)]
pub struct ThreadStack {
    /// The kernel's number.
    pub id: ThreadId,
    /// The name that the program gave it, the kernel's 15 bytes of it.
    pub name: String,
    /// The dispatch queue that it served, on Apple's systems.
    pub queue: Option<String>,
    /// What it was at when it was asked; `None` where it ended meanwhile.
    pub state: Option<ThreadState>,
    /// Whether it is the process's first thread.
    pub is_main: bool,
    /// What it has used of the processor.
    pub cpu: Option<Cpu>,
    /// Its stack, or why there is none.
    pub stack: Result<RawStack, CaptureError>,
}

/// What threads had used when they were looked at last.
#[derive(Debug, Default)]
pub(super) struct Usage(Mutex<Option<(Instant, HashMap<ThreadId, Duration>)>>);

impl Usage {
    pub(super) fn fill_in(&self, threads: &mut [ThreadStack]) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let mut times = HashMap::new();
        for thread in threads {
            let Ok(time) = thread.id.cpu_time() else { continue };
            times.insert(thread.id, time);
            let usage = last.as_ref().and_then(|(then, times)| {
                let used = time.checked_sub(*times.get(&thread.id)?)?;
                Some(used.as_secs_f64() / now.duration_since(*then).as_secs_f64().max(1e-9))
            });
            thread.cpu = Some(Cpu { time, usage: usage.map(|usage| usage.min(1.0)) });
        }
        *last = Some((now, times));
    }
}
