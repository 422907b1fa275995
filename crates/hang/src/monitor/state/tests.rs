use super::super::{Activity, Pulse};
use super::*;
use backtrail_core::{Avma, FrameAddress, Trust};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Time that only passes when a test says so. Begins at different numbers, so that mixing them up shows.
#[derive(Clone)]
struct Time(Rc<Cell<Moment>>);

impl Time {
    fn new() -> Self {
        Self(Rc::new(Cell::new(Moment { running: ms(5_000), elapsed: ms(900_000) })))
    }

    fn pass(&self, time: Duration) {
        let now = self.0.get();
        self.0.set(Moment { running: now.running + time, elapsed: now.elapsed + time });
    }

    fn suspend(&self, time: Duration) {
        let now = self.0.get();
        self.0.set(Moment { elapsed: now.elapsed + time, ..now });
    }

    fn set_back(&self, time: Duration) {
        let now = self.0.get();
        self.0.set(Moment { running: now.running - time, ..now });
    }
}

impl Clock for Time {
    fn now(&self) -> Moment {
        self.0.get()
    }
}

/// A thread as a test wants it.
struct Thread {
    time: Time,
    pulse: Pulse,
    /// Share of the time that it computes.
    busy: f64,
    began: Duration,
    stopped: bool,
    gone: bool,
    capture_takes: Duration,
    /// What a capture has it wait for a processor: before it answers, and then to go on.
    capture_queues: [Duration; 2],
    queued: Duration,
    stacks: RefCell<VecDeque<Result<Vec<u64>, Missed>>>,
    captures: u64,
}

impl Watched for Thread {
    fn beat(&self) -> Beat {
        self.pulse.last()
    }

    fn usage(&mut self) -> Option<Usage> {
        let cpu = self.time.now().running.saturating_sub(self.began).mul_f64(self.busy);
        Some(Usage { cpu, queued: Some(self.queued) })
    }

    fn is_waiting(&mut self) -> bool {
        self.queued += self.capture_queues[1];
        self.busy < 0.1
    }

    fn is_stopped(&mut self) -> bool {
        self.stopped
    }

    fn capture(&mut self, sample: &mut Sample) -> Result<(), Missed> {
        assert!(sample.frames.is_empty(), "the last stack is still there");
        self.captures += 1;
        self.time.pass(self.capture_takes);
        self.queued += self.capture_queues[0];
        if self.gone {
            return Err(Missed::Gone);
        }
        let stack = self.stacks.borrow_mut().pop_front().unwrap_or_else(|| Ok(vec![2, 1]))?;
        sample.frames.extend(stack.iter().map(|at| (FrameAddress::Return(Avma::new(*at)), Trust::Cfi)));
        sample.is_complete = true;
        Ok(())
    }
}

/// A monitor, its thread, and all that was told.
struct Rig {
    time: Time,
    thread: Thread,
    monitor: Monitor,
    told: Vec<(&'static str, Duration)>,
    ended: Vec<Hang>,
}

impl Rig {
    fn new(settings: Settings) -> Self {
        let time = Time::new();
        let thread = Thread {
            time: time.clone(),
            pulse: Pulse::new(),
            busy: 1.0,
            began: time.now().running,
            stopped: false,
            gone: false,
            capture_takes: Duration::ZERO,
            capture_queues: [Duration::ZERO; 2],
            queued: Duration::ZERO,
            stacks: RefCell::default(),
            captures: 0,
        };
        let monitor = Monitor::new(settings, &time);
        Self { time, thread, monitor, told: Vec::new(), ended: Vec::new() }
    }

    fn watched() -> Self {
        Self::new(Settings::default())
    }

    fn now(&self) -> Duration {
        self.time.now().running
    }

    fn tick(&self) {
        self.thread.pulse.work(self.now());
    }

    fn rest(&self) {
        self.thread.pulse.rest(self.now());
    }

    fn poll(&mut self) {
        let told = match self.monitor.poll(&self.time, &mut self.thread) {
            Event::Nothing => return,
            Event::Began(hang, _) => ("began", hang.lasted),
            Event::Sampled(hang, _) => ("sampled", hang.lasted),
            Event::Gone => ("gone", Duration::ZERO),
            Event::Ended(hang) => {
                let lasted = hang.lasted;
                self.ended.push(*hang);
                ("ended", lasted)
            }
        };
        self.told.push(told);
    }

    /// Polls and sleeps on time, until `time` has passed. The last sleep may end later.
    fn run(&mut self, time: Duration) {
        let end = self.now() + time;
        while self.now() < end {
            self.poll();
            let sleep = self.monitor.sleep(&self.time);
            self.time.pass(sleep);
        }
    }

    fn count(&self, what: &str) -> usize {
        self.told.iter().filter(|(told, _)| *told == what).count()
    }
}

#[test]
fn who_never_beats_or_rests_does_not_hang() {
    let mut rig = Rig::watched();
    rig.run(ms(60_000));
    rig.rest();
    rig.run(ms(60_000));
    assert_eq!((rig.told, rig.thread.captures), (vec![], 0));
}

#[test]
fn who_beats_in_time_does_not_hang() {
    let mut rig = Rig::watched();
    for _ in 0..1_000 {
        rig.tick();
        rig.poll();
        let _ = rig.monitor.sleep(&rig.time);
        rig.time.pass(ms(249));
    }
    assert_eq!(rig.told, []);
}

#[test]
fn a_hang_begins_at_the_threshold_and_not_before() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.poll();
    assert_eq!(rig.monitor.sleep(&rig.time), ms(250));
    rig.time.pass(ms(250) - Duration::from_nanos(1));
    rig.poll();
    assert_eq!(rig.told, []);
    // No monitor sleeps for a nanosecond.
    assert_eq!(rig.monitor.sleep(&rig.time), SHORTEST);
    rig.time.pass(Duration::from_nanos(1));
    rig.poll();
    assert_eq!(rig.told, [("began", ms(250))]);
    let hang = rig.monitor.hang().unwrap();
    assert_eq!((hang.number, hang.noticed.running), (1, rig.now()));
}

#[test]
fn the_monitor_sleeps_up_to_the_earliest_moment() {
    let mut rig = Rig::watched();
    rig.poll();
    assert_eq!(rig.monitor.sleep(&rig.time), ms(250));
    rig.time.pass(ms(100));
    rig.tick();
    rig.time.pass(ms(150));
    rig.poll();
    assert_eq!(rig.monitor.sleep(&rig.time), ms(100));
}

#[test]
fn the_stack_is_captured_until_the_next_beat() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.run(ms(250 + 100));
    rig.time.pass(ms(3));
    rig.tick();
    rig.time.pass(ms(4));
    rig.poll();
    let hang = &rig.ended[0];
    assert_eq!((rig.count("began"), rig.count("sampled")), (1, 9));
    // The last poll was at 340 ms, the run ended at 350, the beat came 3 ms later.
    assert_eq!((hang.lasted, hang.end), (ms(353), Some(End::Recovered)));
    assert_eq!((hang.samples.taken, hang.tree.nodes()[0].samples), (10, 10));
    assert_eq!(hang.tree.nodes()[0].time, ms(100));
    assert_eq!(hang.activity(), Activity::Busy);
    // 4 ms have passed since the beat.
    rig.poll();
    assert_eq!(rig.monitor.sleep(&rig.time), ms(246));
}

#[test]
fn resting_ends_a_hang_too() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.run(ms(300));
    rig.rest();
    rig.run(ms(5_000));
    assert_eq!((rig.count("began"), rig.ended[0].lasted), (1, ms(300)));
}

#[test]
fn the_next_hang_is_another_one() {
    let mut rig = Rig::watched();
    for _ in 0..3 {
        rig.tick();
        rig.run(ms(400));
    }
    rig.rest();
    rig.run(ms(1));
    let lasted: Vec<_> = rig.ended.iter().map(|hang| (hang.number, hang.lasted)).collect();
    assert_eq!(lasted, [(1, ms(400)), (2, ms(400)), (3, ms(400))]);
    assert!(rig.ended.iter().all(|hang| hang.tree.nodes()[0].samples == hang.samples.taken));
}

#[test]
fn a_waiting_thread_is_told_from_a_busy_one() {
    for (busy, activity) in [(1.0, Activity::Busy), (0.01, Activity::Waiting), (0.4, Activity::Mixed)] {
        let mut rig = Rig::watched();
        rig.thread.busy = busy;
        rig.tick();
        rig.run(ms(1_000));
        rig.tick();
        rig.run(ms(1));
        assert_eq!(rig.ended[0].activity(), activity);
        assert_eq!(rig.ended[0].measured, ms(990), "from the first look on to the last");
    }
}

#[test]
fn what_captures_cost_a_thread_is_none_of_its_own() {
    // On a busy machine, a thread that sleeps waits for a processor only to answer.
    for (busy, activity) in [(0.01, Activity::Waiting), (1.0, Activity::Busy)] {
        let mut rig = Rig::watched();
        rig.thread.busy = busy;
        rig.thread.capture_takes = ms(10);
        rig.thread.capture_queues = if busy < 0.1 { [ms(8), ms(4)] } else { [ms(8), ms(0)] };
        rig.tick();
        rig.run(ms(2_000));
        rig.tick();
        rig.run(ms(1));
        let hang = &rig.ended[0];
        assert_eq!(hang.activity(), activity, "{:?} of {:?}", hang.usage, hang.measured);
        assert!(hang.measured < hang.lasted - ms(10) * (hang.samples.taken as u32 - 1));
    }
}

#[test]
fn suspension_is_no_hang() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.run(ms(240));
    let _ = rig.monitor.sleep(&rig.time);
    rig.time.suspend(ms(3_600_000));
    rig.time.pass(ms(5));
    rig.tick();
    rig.run(ms(200));
    assert_eq!(rig.told, []);
}

#[test]
fn suspension_is_none_either_where_the_clock_goes_on_through_it() {
    let mut rig = Rig::watched();
    for stop in [ms(400), ms(10_000), ms(86_400_000)] {
        rig.tick();
        rig.poll();
        let sleep = rig.monitor.sleep(&rig.time);
        rig.time.pass(sleep + stop);
        rig.poll();
        assert_eq!(rig.told, [], "overrun by {stop:?}");
        rig.time.pass(ms(1));
    }
}

#[test]
fn a_wake_that_is_only_a_little_late_counts() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.poll();
    let sleep = rig.monitor.sleep(&rig.time);
    rig.time.pass(sleep + ms(100));
    rig.poll();
    assert_eq!(rig.told, [("began", ms(350))]);
}

#[test]
fn a_hang_goes_on_behind_a_gap_and_leaves_it_out() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.run(ms(300));
    let _ = rig.monitor.sleep(&rig.time);
    rig.time.suspend(ms(60_000));
    rig.poll();
    let _ = rig.monitor.sleep(&rig.time);
    rig.time.pass(ms(30_000));
    rig.run(ms(100));
    rig.tick();
    rig.run(ms(1));
    let hang = &rig.ended[0];
    assert_eq!(rig.ended.len(), 1);
    assert_eq!(hang.lasted, ms(400));
    assert_eq!(hang.excused, Excused { suspended: ms(60_000), stopped: ms(30_000), gaps: 2 });
}

#[test]
fn who_recovers_in_a_gap_gets_none_of_it() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.run(ms(300));
    let _ = rig.monitor.sleep(&rig.time);
    rig.time.pass(ms(5_000));
    rig.tick();
    rig.time.pass(ms(5_000));
    rig.poll();
    assert_eq!(rig.ended[0].lasted, ms(290), "as of the last poll");
    // The new beat is five seconds old, all of them in the gap.
    rig.poll();
    assert_eq!(rig.told.last().unwrap().0, "ended");
    assert_eq!(rig.monitor.sleep(&rig.time), ms(250));
}

#[test]
fn a_stopped_thread_does_not_hang_and_gets_all_its_time_again() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.thread.stopped = true;
    rig.run(ms(20_000));
    rig.thread.stopped = false;
    assert_eq!((rig.told.len(), rig.thread.captures), (0, 0));
    rig.run(ms(240));
    assert_eq!(rig.told, [], "it may have been let go right now");
    rig.run(ms(20));
    assert_eq!(rig.count("began"), 1);
}

#[test]
fn a_hanging_thread_that_is_stopped_is_left_alone_meanwhile() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.run(ms(300));
    let captures = rig.thread.captures;
    rig.thread.stopped = true;
    rig.run(ms(1_000));
    assert_eq!(rig.thread.captures, captures);
    rig.thread.stopped = false;
    rig.run(ms(50));
    rig.tick();
    rig.run(ms(1));
    let hang = &rig.ended[0];
    assert_eq!(
        (hang.lasted, hang.excused.stopped),
        (ms(340), ms(1_010)),
        "the step in which it was let go too"
    );
}

#[test]
fn a_clock_that_is_set_back_makes_no_hang_and_hides_none() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.run(ms(200));
    rig.time.set_back(ms(3_000));
    rig.run(ms(240));
    assert_eq!(rig.told, [], "the beat lies in the future now, and the step back counts for nothing");
    rig.run(ms(300));
    assert_eq!(rig.count("began"), 1);
    rig.time.set_back(ms(1_000));
    rig.run(ms(100));
    rig.tick();
    rig.run(ms(1));
    assert!(rig.ended[0].lasted < ms(800), "{:?}", rig.ended[0].lasted);
}

#[test]
fn captures_that_take_long_count_and_do_not_look_like_a_stop() {
    let mut rig = Rig::watched();
    rig.thread.capture_takes = ms(400);
    let missed = || Err(Missed::TimedOut);
    rig.thread.stacks = RefCell::new(VecDeque::from([missed(), missed(), missed()]));
    rig.tick();
    rig.run(ms(250 + 410 * 3));
    rig.tick();
    rig.run(ms(1));
    let hang = &rig.ended[0];
    assert_eq!((hang.samples.taken, hang.samples.missed), (0, 3));
    assert_eq!(hang.samples.last_missed, Some(Missed::TimedOut));
    assert_eq!((hang.lasted, hang.excused.gaps), (ms(250 + 410 * 3), 0));
}

#[test]
fn one_hang_has_so_many_samples_and_still_an_end() {
    let mut rig =
        Rig::new(Settings { max_samples: 20, samples_per_interval: 10, max_nodes: 1, ..Settings::default() });
    rig.tick();
    rig.run(ms(250 + 10 * 9 + 20 * 10 + 40 * 30));
    rig.tick();
    rig.run(ms(1));
    let hang = &rig.ended[0];
    assert_eq!((hang.samples.taken, rig.thread.captures), (20, 20));
    assert_eq!((hang.tree.nodes().len(), hang.tree.cut()), (1, 20));
    assert_eq!(hang.lasted, ms(250 + 90 + 200 + 1_200));
    assert_eq!(hang.samples.skipped, 29);
}

#[test]
fn a_thread_that_ended_is_told_once_it_is_late() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.thread.gone = true;
    rig.run(ms(260));
    assert_eq!(rig.told, [("gone", ms(0))]);
}

#[test]
fn a_thread_that_ends_while_it_hangs_ends_the_hang() {
    let mut rig = Rig::watched();
    rig.tick();
    rig.run(ms(300));
    rig.thread.gone = true;
    rig.run(ms(300));
    assert_eq!(rig.ended[0].end, Some(End::ThreadEnded));
    assert!(rig.count("gone") > 0);
}

#[test]
fn a_monitor_that_stops_hands_its_hang_out() {
    let mut rig = Rig::watched();
    assert!(rig.monitor.stop(&rig.time, &mut rig.thread).is_none());
    rig.tick();
    rig.run(ms(300));
    let hang = rig.monitor.stop(&rig.time, &mut rig.thread).unwrap();
    assert_eq!((hang.end, hang.samples.taken), (Some(End::Unwatched), 5));
    assert!(rig.monitor.stop(&rig.time, &mut rig.thread).is_none());
}
