//! The state machine.

use super::settings::SHORTEST;
use super::{
    Beat, Clock, End, Excused, Hang, Missed, Moment, NodeId, Sample, SampleCounts, Settings, Tree, Usage,
    Watched,
};
use std::time::Duration;

/// Watches one thread, as far as deciding goes.
#[derive(Debug)]
pub struct Monitor {
    settings: Settings,
    /// When the time was last looked at, and how much later it may be the next time.
    last: Moment,
    allowance: Duration,
    /// What passed since the beat was last looked at.
    unseen: Step,
    looked: Moment,
    beat: Beat,
    /// How long the thread has not beaten.
    late: Duration,
    /// Time since the last capture.
    since_sample: Duration,
    /// What the thread had used when it was this late: since then it has not been looked at.
    baseline: Option<(Usage, Duration)>,
    /// Whether the thread was stopped when it was last asked.
    was_stopped: bool,
    hang: Option<Hang>,
    hangs: u64,
    sample: Sample,
}

/// Time between two looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Step {
    /// What counts.
    counted: Duration,
    /// What does not.
    excused: Excused,
}

/// What came of a poll.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'m> {
    /// Nothing to tell.
    Nothing,
    /// A hang has begun, and its first stack was captured or could not be.
    Began(&'m Hang, Taken),
    /// The hang goes on, and the stack was captured again or could not be.
    Sampled(&'m Hang, Taken),
    /// The hang is over.
    Ended(Box<Hang>),
    /// The watched thread has ended; there is nothing left to watch.
    Gone,
}

/// What came of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Taken {
    /// A stack, which is in the hang's tree now.
    Stack {
        /// Its innermost frame; `None` where the stack or the tree has no room for any.
        node: Option<NodeId>,
        /// The time that it stands for.
        time: Duration,
        /// Whether the outermost frame is where the thread began.
        is_complete: bool,
    },
    /// No stack.
    Missed(Missed),
    /// Not tried, since the hang has as many as it may have.
    Skipped,
}

impl Monitor {
    /// A monitor that begins to watch now.
    pub fn new(settings: Settings, clock: &impl Clock) -> Self {
        let now = clock.now();
        Self {
            settings,
            last: now,
            allowance: settings.capture_allowance,
            unseen: Step::default(),
            looked: now,
            beat: Beat::None,
            late: Duration::ZERO,
            since_sample: Duration::ZERO,
            baseline: None,
            was_stopped: false,
            hang: None,
            hangs: 0,
            sample: Sample::default(),
        }
    }

    /// The hang that lasts.
    pub fn hang(&self) -> Option<&Hang> {
        self.hang.as_ref()
    }

    /// Looks whether the thread got on, and captures its stack if it hangs.
    pub fn poll(&mut self, clock: &impl Clock, watched: &mut impl Watched) -> Event<'_> {
        self.advance(clock.now());
        let step = std::mem::take(&mut self.unseen);
        let beat = watched.beat();
        let is_new = beat != self.beat;
        let before = std::mem::replace(&mut self.looked, self.last);
        if is_new && self.hang.is_some() {
            // The new beat is looked at in the next poll, which is due at once.
            self.unseen = step;
            self.looked = before;
            return self.end(End::Recovered, time_of(beat), watched);
        }
        self.beat = beat;
        if is_new {
            self.late = if step.excused.gaps > 0 { Duration::ZERO } else { self.age(beat, step) };
            self.baseline = None;
        } else {
            self.late = self.late.saturating_add(step.counted);
        }
        self.since_sample = self.since_sample.saturating_add(step.counted);
        match beat {
            Beat::Working(_) => self.judge(step, clock, watched),
            Beat::None | Beat::Resting(_) => Event::Nothing,
        }
    }

    /// How long to sleep before the next poll. To be asked right before sleeping.
    pub fn sleep(&mut self, clock: &impl Clock) -> Duration {
        self.advance(clock.now());
        let threshold = self.settings.threshold;
        let sleep = match (&self.hang, self.beat) {
            (Some(hang), _) => self.settings.interval_after(hang.samples.taken + hang.samples.missed),
            (None, Beat::Working(_)) => {
                threshold.saturating_sub(self.late.saturating_add(self.unseen.counted))
            }
            (None, _) => threshold,
        };
        let sleep = sleep.max(SHORTEST);
        self.allowance = sleep.saturating_add(self.settings.tolerance);
        sleep
    }

    /// Ends the hang that lasts, since the thread is not watched any further.
    pub fn stop(&mut self, clock: &impl Clock, watched: &mut impl Watched) -> Option<Hang> {
        self.advance(clock.now());
        match self.end(End::Unwatched, None, watched) {
            Event::Ended(hang) => Some(*hang),
            _ => None,
        }
    }

    /// Takes note of the time that passed, and sorts it.
    fn advance(&mut self, now: Moment) {
        let last = std::mem::replace(&mut self.last, now);
        let allowance = std::mem::replace(&mut self.allowance, self.settings.capture_allowance);
        let step = now.running.checked_sub(last.running);
        let ran = step.unwrap_or_default();
        let suspended = now.elapsed.saturating_sub(last.elapsed).saturating_sub(ran);
        let is_suspension = suspended > self.settings.tolerance;
        if step.is_some_and(|step| step <= allowance) && !is_suspension {
            self.unseen.counted = self.unseen.counted.saturating_add(ran);
            return;
        }
        let excused = &mut self.unseen.excused;
        excused.gaps += 1;
        if is_suspension {
            excused.suspended = excused.suspended.saturating_add(suspended);
        } else {
            excused.stopped = excused.stopped.saturating_add(ran);
        }
    }

    /// How long ago the new beat was.
    fn age(&self, beat: Beat, step: Step) -> Duration {
        let age = time_of(beat).map(|at| self.last.running.saturating_sub(at));
        age.unwrap_or_default().min(step.counted)
    }

    /// What a thread that works and did not get on comes to.
    fn judge(&mut self, step: Step, clock: &impl Clock, watched: &mut impl Watched) -> Event<'_> {
        if self.baseline.is_none() {
            self.baseline = watched.usage().map(|usage| (usage, self.late));
        }
        if self.hang.is_none() && self.late < self.settings.threshold {
            return Event::Nothing;
        }
        // Where it is no longer stopped nobody knows since when.
        let is_stopped = watched.is_stopped();
        if std::mem::replace(&mut self.was_stopped, is_stopped) || is_stopped {
            self.excuse(step);
            return Event::Nothing;
        }
        if self.hang.is_some() { self.go_on(step, clock, watched) } else { self.begin(clock, watched) }
    }

    /// The thread could not get on in this step, or in a part of it: what hangs, hangs for less, what does not begins anew.
    fn excuse(&mut self, step: Step) {
        match &mut self.hang {
            Some(hang) => {
                self.late = self.late.saturating_sub(step.counted);
                hang.excused.add(step.excused);
                hang.excused.gaps += 1;
                hang.excused.stopped = hang.excused.stopped.saturating_add(step.counted);
            }
            None => (self.late, self.baseline) = (Duration::ZERO, None),
        }
    }

    fn begin(&mut self, clock: &impl Clock, watched: &mut impl Watched) -> Event<'_> {
        let used = watched.usage();
        let captured = capture(&mut self.sample, watched);
        if captured == Err(Missed::Gone) {
            self.late = Duration::ZERO;
            return Event::Gone;
        }
        self.hangs += 1;
        let mut hang = Hang {
            number: self.hangs,
            noticed: self.looked,
            lasted: self.late,
            excused: Excused::default(),
            usage: None,
            measured: Duration::ZERO,
            samples: SampleCounts::default(),
            tree: Tree::new(self.settings.max_nodes),
            end: None,
        };
        self.since_sample = Duration::ZERO;
        let taken = hang.take(captured, &self.sample, self.settings.interval);
        hang.measure(&mut self.baseline, self.late, used, true);
        self.leave_out_the_capture(clock, watched);
        Event::Began(self.hang.insert(hang), taken)
    }

    fn go_on(&mut self, step: Step, clock: &impl Clock, watched: &mut impl Watched) -> Event<'_> {
        let taken = self.look_again(step, watched);
        if taken != Taken::Skipped {
            self.leave_out_the_capture(clock, watched);
        }
        if taken == Taken::Missed(Missed::Gone) {
            return self.end(End::ThreadEnded, None, watched);
        }
        self.hang.as_ref().map_or(Event::Nothing, |hang| Event::Sampled(hang, taken))
    }

    fn look_again(&mut self, step: Step, watched: &mut impl Watched) -> Taken {
        let Some(hang) = &mut self.hang else { return Taken::Skipped };
        hang.lasted = self.late;
        hang.excused.add(step.excused);
        // One that sleeps now wanted a processor for nothing but to answer the last capture.
        let wants = !watched.is_waiting();
        hang.measure(&mut self.baseline, self.late, watched.usage(), wants);
        if hang.samples.taken + hang.samples.missed >= self.settings.max_samples {
            hang.samples.skipped += 1;
            return Taken::Skipped;
        }
        let captured = capture(&mut self.sample, watched);
        if captured == Err(Missed::Gone) {
            return Taken::Missed(Missed::Gone);
        }
        hang.take(captured, &self.sample, std::mem::take(&mut self.since_sample))
    }

    /// Has the thread's usage count from now on: what it used to answer a capture, and the wait for a processor for that, are
    /// none of its own.
    fn leave_out_the_capture(&mut self, clock: &impl Clock, watched: &mut impl Watched) {
        let took = clock.now().running.saturating_sub(self.last.running);
        self.baseline = watched.usage().map(|usage| (usage, self.late.saturating_add(took)));
    }

    /// Ends the hang, at the time of the beat that ended it.
    fn end(&mut self, end: End, at: Option<Duration>, watched: &mut impl Watched) -> Event<'_> {
        let Some(mut hang) = self.hang.take() else {
            return if end == End::ThreadEnded { Event::Gone } else { Event::Nothing };
        };
        if let Some(at) = at.filter(|_| self.unseen.excused.gaps == 0) {
            self.late += at.saturating_sub(self.looked.running).min(self.unseen.counted);
        }
        hang.lasted = hang.lasted.max(self.late);
        hang.excused.add(self.unseen.excused);
        // What it used since it recovered is no part of the hang.
        if at.is_none() {
            hang.measure(&mut self.baseline, self.late, watched.usage(), !watched.is_waiting());
        }
        hang.end = Some(end);
        self.late = Duration::ZERO;
        Event::Ended(Box::new(hang))
    }
}

fn time_of(beat: Beat) -> Option<Duration> {
    match beat {
        Beat::None => None,
        Beat::Working(at) | Beat::Resting(at) => Some(at),
    }
}

fn capture(sample: &mut Sample, watched: &mut impl Watched) -> Result<(), Missed> {
    sample.clear();
    watched.capture(sample)
}

impl Hang {
    /// Adds what was used since `baseline`, of waits for a processor only those that count.
    fn measure(
        &mut self,
        baseline: &mut Option<(Usage, Duration)>,
        late: Duration,
        now: Option<Usage>,
        waits_count: bool,
    ) {
        if let (Some((before, since)), Some(now)) = (*baseline, now) {
            let mut used = now.since(before);
            if !waits_count {
                used.queued = used.queued.map(|_| Duration::ZERO);
            }
            self.usage = Some(self.usage.map_or(used, |usage| usage.plus(used)));
            self.measured = self.measured.saturating_add(late.saturating_sub(since));
            *baseline = Some((now, late));
        }
    }

    fn take(&mut self, captured: Result<(), Missed>, sample: &Sample, time: Duration) -> Taken {
        match captured {
            Ok(()) => {
                self.samples.taken += 1;
                self.samples.incomplete += u64::from(!sample.is_complete);
                let node = self.tree.add(sample, time);
                Taken::Stack { node, time, is_complete: sample.is_complete }
            }
            Err(missed) => {
                self.samples.missed += 1;
                self.samples.last_missed = Some(missed);
                Taken::Missed(missed)
            }
        }
    }
}

impl Excused {
    fn add(&mut self, other: Self) {
        self.suspended = self.suspended.saturating_add(other.suspended);
        self.stopped = self.stopped.saturating_add(other.stopped);
        self.gaps += other.gaps;
    }
}

#[cfg(test)]
mod tests;
