//! The watched thread, as the monitor asks for it.

use crate::beat::Beat;
use crate::monitor::{Beat as LastBeat, Missed, Sample, Usage, Watched};
use backtrail_stacks::own::{CaptureError, Capturer, RawStack, ThreadId, WalkEnd};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::sync::Arc;
use std::time::Duration;

/// A thread of this process.
pub(crate) struct OwnThread {
    beat: Beat,
    id: ThreadId,
    /// `schedstat` and `stat` of the thread, kept open: they can be read again from their start, and stay those of this
    /// thread when its number is given to another.
    schedule: Option<File>,
    status: Option<File>,
    capturer: Arc<Capturer>,
    stack: RawStack,
}

impl OwnThread {
    pub(crate) fn new(id: ThreadId, beat: Beat, capturer: Arc<Capturer>) -> Self {
        let open = |name| File::open(format!("/proc/self/task/{id}/{name}")).ok();
        let stack = RawStack::with_capacity(capturer.options().max_frames);
        Self { beat, id, schedule: open("schedstat"), status: open("stat"), capturer, stack }
    }

    fn state(&mut self) -> Option<char> {
        let mut room = [0; 512];
        let status = self.status.as_mut().and_then(|file| read_again(file, &mut room));
        status.and_then(state)
    }
}

impl Watched for OwnThread {
    fn beat(&self) -> LastBeat {
        self.beat.shared.pulse.last()
    }

    fn usage(&mut self) -> Option<Usage> {
        let mut room = [0; 128];
        let schedule = self.schedule.as_mut().and_then(|file| read_again(file, &mut room));
        schedule.and_then(parse_schedstat).or_else(|| {
            let cpu = self.id.cpu_time().ok()?;
            Some(Usage { cpu, queued: None })
        })
    }

    fn is_stopped(&mut self) -> bool {
        self.state().is_some_and(|state| matches!(state, 't' | 'T'))
    }

    fn is_waiting(&mut self) -> bool {
        self.state().is_some_and(|state| matches!(state, 'S' | 'D'))
    }

    fn capture(&mut self, sample: &mut Sample) -> Result<(), Missed> {
        self.capturer.thread(self.id, &mut self.stack).map_err(missed)?;
        sample.frames.extend(self.stack.frames().iter().map(|frame| (frame.address, frame.trust)));
        sample.is_complete = matches!(self.stack.ended(), Some(WalkEnd::EndOfStack(_)));
        Ok(())
    }
}

fn missed(error: CaptureError) -> Missed {
    match error {
        CaptureError::Gone => Missed::Gone,
        CaptureError::TimedOut => Missed::TimedOut,
        CaptureError::SignalBlocked => Missed::Failed("the thread blocks the signal that asks for its stack"),
        CaptureError::InKernel => Missed::Failed("the thread waits in the kernel and takes no signals"),
        CaptureError::Stopped => Missed::Failed("the thread is stopped"),
        CaptureError::HandlerReplaced => Missed::Failed("the handler of the signal was replaced"),
        CaptureError::Busy => Missed::Failed("too many captures are under way"),
        _ => Missed::Failed("the thread could not be asked"),
    }
}

fn read_again<'r>(file: &mut File, room: &'r mut [u8]) -> Option<&'r str> {
    file.rewind().ok()?;
    let size = file.read(room).ok()?;
    std::str::from_utf8(room.get(..size)?).ok()
}

/// Nanoseconds on a processor, nanoseconds waiting for one, number of turns. Linux, `Documentation/scheduler/sched-stats`.
fn parse_schedstat(text: &str) -> Option<Usage> {
    let mut numbers =
        text.split_ascii_whitespace().map(|number| number.parse().ok().map(Duration::from_nanos));
    let (cpu, queued) = (numbers.next()??, numbers.next()??);
    // Kernels without accounting print zeros for all; a thread that runs has run.
    (!cpu.is_zero()).then_some(Usage { cpu, queued: Some(queued) })
}

/// The state's letter, behind the name, which may hold anything. proc(5).
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let usage = parse_schedstat("1234567890 42 17\n").unwrap();
        assert_eq!(usage.cpu, Duration::from_nanos(1_234_567_890));
        assert_eq!(usage.queued, Some(Duration::from_nanos(42)));
        assert_eq!(parse_schedstat("0 0 0\n"), None);
        assert_eq!(parse_schedstat("12"), None);
        assert_eq!(state("12 (a) S ) t 1 2"), Some('t'));
        assert_eq!(state("12 (a"), None);
    }

    #[test]
    fn this_thread_runs_and_uses_time() {
        let capturer = Arc::new(Capturer::new(backtrail_stacks::own::Options::default()).unwrap());
        let mut thread = OwnThread::new(ThreadId::current(), Beat::new(), capturer);
        let before = thread.usage().unwrap().cpu;
        let mut work = 1u64;
        while thread.usage().unwrap().cpu < before + Duration::from_millis(20) {
            work = std::hint::black_box(work.wrapping_mul(31));
        }
        assert!(!thread.is_stopped());
    }
}
