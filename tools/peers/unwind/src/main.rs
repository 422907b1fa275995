//! ns per frame: backtrail's walk against framehop, libunwind, the `backtrace` crate, glibc's `backtrace` and a plain
//! loop over frame pointers, on one stack of this process. Prints tables; `cargo xtask bench-peers unwind` runs it.
//!
//! Warm: the same stack again and again. Cold: every walk with an empty cache. First: every walk with an empty cache and
//! with the processor's caches full of something else.
//!
//! With the argument `capture` it is the library's captures that are measured, registers and list of frames included.

mod capturing;
mod images;
mod ours;
mod theirs;

use backtrail::capture::Method;
use backtrail_unwind::Recover;
use std::arch::asm;
use std::hint::black_box;
use std::time::Instant;

/// A thread's registers, as a signal handler would get them.
#[derive(Clone, Copy, Default)]
pub struct State {
    pub rip: u64,
    pub rsp: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
}

#[inline(always)]
fn capture() -> State {
    let mut state = State::default();
    // SAFETY: reads registers only.
    unsafe {
        asm!("lea {0}, [rip]", "mov {1}, rsp", "mov {2}, rbp", "mov {3}, rbx",
            out(reg) state.rip, out(reg) state.rsp, out(reg) state.rbp, out(reg) state.rbx);
        asm!("mov {0}, r12", "mov {1}, r13", "mov {2}, r14", "mov {3}, r15",
            out(reg) state.r12, out(reg) state.r13, out(reg) state.r14, out(reg) state.r15);
    }
    state
}

/// Something to measure: walks the stack below and says how many frames it saw.
trait Walker {
    fn name(&self) -> &'static str;
    /// `forget`: without what earlier walks left behind.
    fn walk(&mut self, state: &State, forget: bool) -> usize;
    /// Whether forgetting means anything to it.
    fn remembers(&self) -> bool;
}

#[inline(never)]
fn descend(depth: usize, work: &mut dyn FnMut()) -> usize {
    if depth == 0 {
        work();
        return 1;
    }
    // Work after the call, so that it is no loop; some registers in use, so that frames save them.
    let before = black_box(depth * 3);
    let below = match depth % 3 {
        0 => descend_other(depth - 1, work),
        1 => descend_wide(depth - 1, work),
        _ => descend(depth - 1, work),
    };
    black_box(before) + below
}

#[inline(never)]
fn descend_other(depth: usize, work: &mut dyn FnMut()) -> usize {
    let (a, b, c) = (black_box(depth), black_box(depth + 1), black_box(depth + 2));
    let below = descend(depth.saturating_sub(1), work);
    black_box(a + b * c) + below
}

#[inline(never)]
fn descend_wide(depth: usize, work: &mut dyn FnMut()) -> usize {
    let room = black_box([depth as u8; 300]);
    let below = descend(depth.saturating_sub(1), work);
    black_box(room[depth % 300] as usize) + below
}

/// Fills the processor's caches with something else.
fn evict(room: &mut [u64]) {
    for word in room.iter_mut().step_by(8) {
        *word = word.wrapping_add(1);
    }
    black_box(room.first());
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn measure(walker: &mut dyn Walker, mode: Mode, room: &mut [u64]) -> (f64, usize) {
    let state = capture();
    let rounds = if mode == Mode::First { 1 } else { 300 };
    let mut frames = walker.walk(&state, false);
    let mut times = Vec::new();
    for _ in 0..31 {
        if mode == Mode::First {
            evict(room);
        }
        let start = Instant::now();
        for _ in 0..rounds {
            frames = walker.walk(&state, mode != Mode::Warm);
        }
        times.push(start.elapsed().as_nanos() as f64 / f64::from(rounds) / frames as f64);
    }
    (median(times), frames)
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Warm,
    Cold,
    First,
}

/// backtrail's own candidates.
fn ours(images: &[images::Mapped], is_capture: bool) -> Vec<Box<dyn Walker>> {
    if is_capture {
        return vec![
            Box::new(capturing::Own::new("backtrail, current_cached", Method::Rules, true)),
            Box::new(capturing::Own::new("backtrail, current", Method::Rules, false)),
            Box::new(capturing::Own::new(
                "backtrail, current_cached by frame pointers",
                Method::FramePointers,
                true,
            )),
            Box::new(capturing::Own::new(
                "backtrail, current by frame pointers",
                Method::FramePointers,
                false,
            )),
            Box::new(ours::Chain::new()),
        ];
    }
    ours::print_build(images);
    vec![
        Box::new(ours::Ours::new(images, true, Recover::Needed, "backtrail")),
        Box::new(ours::Ours::new(images, true, Recover::All, "backtrail, all registers")),
        Box::new(ours::Ours::new(images, false, Recover::All, "backtrail, tables not compiled")),
    ]
}

fn main() {
    let is_capture = std::env::args().any(|argument| argument == "capture");
    let images = images::all();
    let mut room = vec![0u64; 8 << 20];
    let mut walkers = ours(&images, is_capture);
    walkers.push(Box::new(theirs::Framehop::new(&images)));
    walkers.push(Box::new(theirs::Libunwind::new()));
    walkers.push(Box::new(theirs::Backtrace));
    walkers.push(Box::new(theirs::Glibc));
    walkers.push(Box::new(theirs::FramePointers));
    for (mode, title) in [(Mode::Warm, "warm"), (Mode::Cold, "cold"), (Mode::First, "first")] {
        println!("\n| {title}: ns a frame | depth 10 | depth 30 | depth 100 | frames |");
        println!("| --- | --- | --- | --- | --- |");
        for walker in &mut walkers {
            if mode == Mode::Cold && !walker.remembers() {
                continue;
            }
            print!("| {}", walker.name());
            let mut seen = Vec::new();
            for depth in [10, 30, 100] {
                let mut result = (0.0, 0);
                // The frames of `descend` come in steps of one or two.
                descend(depth * 5 / 8, &mut || result = measure(walker.as_mut(), mode, &mut room));
                print!(" | {:.1}", result.0);
                seen.push(result.1.to_string());
            }
            println!(" | {} |", seen.join(", "));
        }
    }
    if is_capture {
        capturing::print_new();
        capturing::print_others();
    }
}
