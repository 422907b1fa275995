//! The threads that are followed: stopping all of a process, and letting them go on.

use backtrail_sys::linux::ptrace::RawRegisters;
use backtrail_sys::linux::tracer::{Event, Tracer, threads_of};
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

/// How long threads are waited for that were asked to stop. One in uninterruptible sleep does not come.
const PATIENCE: Duration = Duration::from_millis(500);
/// Between looks at them: each takes some microseconds to stop.
const PAUSE: Duration = Duration::from_micros(100);
/// Rounds of threads that began meanwhile.
const MAX_ROUNDS: usize = 8;

/// What happened to threads while others were being stopped: it is their turn later. They stand until then.
#[derive(Debug, Default)]
pub(crate) struct Later(VecDeque<(u32, Event)>);

impl Later {
    pub(crate) fn next(&mut self) -> Option<(u32, Event)> {
        self.0.pop_front()
    }

    fn has(&self, id: u32) -> bool {
        self.0.iter().any(|(known, _)| *known == id)
    }
}

/// A process whose threads stand.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// The registers of each thread that stands.
    pub(crate) registers: HashMap<u32, RawRegisters>,
    /// Those that were stopped here, and by what.
    held: Vec<(u32, Event)>,
}

/// Stops the threads of a process. `standing` stands already, and its event is its caller's.
pub(crate) fn stop(tracer: &Tracer, process: u32, standing: Option<u32>, later: &mut Later) -> Stopped {
    let mut stopped = Stopped { registers: HashMap::new(), held: Vec::new() };
    let mut asked = HashSet::new();
    let until = Instant::now() + PATIENCE;
    for _ in 0..MAX_ROUNDS {
        let threads = threads_of(process);
        let new: Vec<u32> = threads.into_iter().filter(|id| asked.insert(*id)).collect();
        if new.is_empty() {
            break;
        }
        let (ready, mut waiting): (Vec<u32>, Vec<u32>) =
            new.into_iter().partition(|id| Some(*id) == standing || later.has(*id));
        ready.into_iter().for_each(|id| stopped.read(tracer, id));
        waiting.retain(|id| tracer.interrupt(*id));
        while !waiting.is_empty() && Instant::now() < until {
            waiting.retain(|id| match tracer.poll(*id) {
                None => true,
                Some(event) => {
                    stopped.take(tracer, *id, event, later);
                    false
                }
            });
            if !waiting.is_empty() {
                std::thread::sleep(PAUSE);
            }
        }
    }
    stopped
}

impl Stopped {
    fn read(&mut self, tracer: &Tracer, id: u32) {
        self.registers.extend(tracer.registers(id).ok().map(|registers| (id, registers)));
    }

    fn take(&mut self, tracer: &Tracer, id: u32, event: Event, later: &mut Later) {
        match event {
            Event::Interrupted | Event::Stopped(_) => self.held.push((id, event)),
            _ => later.0.push_back((id, event)),
        }
        if !matches!(event, Event::Ended(_)) {
            self.read(tracer, id);
        }
    }

    /// Lets those go on that were stopped here.
    pub(crate) fn go_on(self, tracer: &Tracer) {
        for (id, event) in self.held {
            match event {
                Event::Stopped(_) => tracer.leave_stopped(id),
                _ => tracer.go_on(id, 0),
            }
        }
    }
}
