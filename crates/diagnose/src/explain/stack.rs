//! Stacks that ran out, and frames that repeat.

use super::draft::Draft;
use super::facts::{Class, Facts, Said};
use super::fault::{Fault, FaultAddress};
use super::region::{self, Region};
use super::registers::current_instruction;
use super::tables::access::Failure;
use crate::names::{describe, missing_thread};
use backtrail_core::Avma;
use backtrail_model::{EndKind, Frame, Recursion, Report, Source};

/// Frames that repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Repeat {
    /// Position of the first frame that belongs to it.
    pub(crate) start: usize,
    /// How many frames make up one round.
    pub(crate) period: usize,
    /// How many frames repeat, all rounds together.
    pub(crate) frames: usize,
}

/// A loop of calls has at most this many frames to be found.
const MAX_PERIOD: usize = 24;
/// The innermost frames may be where the recursion ran out, not part of it.
const MAX_START: usize = 64;
/// No deeper frames are compared.
const MAX_FRAMES: usize = 4096;
/// Frames that repeat this often look like a recursion.
const MIN_FRAMES: usize = 40;

/// Where a frame is: an address, or an offset into an image of which the text has no place.
type Key<'r> = (Option<&'r str>, u64);

fn key(frame: &Frame) -> Option<Key<'_>> {
    let address = frame.address.map(|address| (None, address.raw().get()));
    address.or_else(|| Some((Some(frame.image_name.as_deref()?), frame.image_offset?)))
}

/// Finds the recursion on a stack.
pub(crate) fn repeat(frames: &[Frame]) -> Option<Repeat> {
    repeat_of(frames.iter())
}

/// The same for frames that lie anywhere.
pub(crate) fn repeat_of<'r>(frames: impl Iterator<Item = &'r Frame>) -> Option<Repeat> {
    let keys: Vec<Option<Key<'_>>> = frames.take(MAX_FRAMES).map(key).collect();
    for start in 0..keys.len().min(MAX_START) {
        for period in 1..=MAX_PERIOD {
            let frames = run_length(&keys, start, period);
            if frames >= MIN_FRAMES && frames >= period * 3 {
                return Some(Repeat { start, period, frames });
            }
        }
    }
    None
}

/// Ten frames and more of a short round.
fn shorter_repeat(frames: &[Frame]) -> Option<Repeat> {
    const FRAMES: usize = 10;
    const PERIOD: usize = 2;
    let keys: Vec<Option<Key<'_>>> = frames.iter().take(MAX_START).map(key).collect();
    let rounds = (0..keys.len()).flat_map(|start| (1..=PERIOD).map(move |period| (start, period)));
    rounds
        .map(|(start, period)| Repeat { start, period, frames: run_length(&keys, start, period) })
        .find(|it| it.frames >= FRAMES)
}

/// How many frames from `start` on equal those one period earlier, the first round included.
fn run_length(keys: &[Option<Key<'_>>], start: usize, period: usize) -> usize {
    let first = keys.get(start..).unwrap_or_default();
    let second = first.get(period..).unwrap_or_default();
    let same = first.iter().zip(second).take_while(|(one, other)| one.is_some() && one == other).count();
    if same == 0 { 0 } else { same + period }
}

/// How far from the stack pointer an access counts as one to the stack. Frames with large arrays reach far below it.
const NEAR_BELOW: u64 = 1 << 20;
const NEAR_ABOVE: u64 = 0x4000;

/// The stack pointer leads nowhere: nothing can be read where it points, and an access there failed. A stack that overflows has its own
/// bytes right above.
pub(super) fn bad_stack_pointer(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    /// What an instruction reaches that pushes, pops, calls or uses the innermost variables.
    const REACH: u64 = 4096;
    // Of minidumps and saved stacks memory may be missing for other reasons.
    if !matches!(facts.report.source, Source::ElfCore | Source::CrashFile | Source::Process) {
        return false;
    }
    let address = facts.fault.as_ref().and_then(Fault::address);
    let (Some(address), Some(sp)) = (address, facts.registers.sp()) else { return false };
    let distance = address.get().wrapping_sub(sp.get());
    let is_at = distance <= REACH || distance.wrapping_neg() <= REACH;
    let ended = facts.thread.and_then(|thread| thread.ended.as_ref());
    let is_unreadable =
        ended.is_some_and(|ended| ended.kind == EndKind::Failed && ended.why.starts_with("memory at "));
    if !is_at || !is_unreadable || facts.frames.len() > 1 || is_fetch(facts, address) {
        return false;
    }
    draft.lead(
        format!("Bad stack pointer: {sp}"),
        format!("The code used its stack at {address}, but the stack pointer is {sp}, where nothing can be read: it is that of no stack."),
    );
    ended.iter().for_each(|ended| {
        draft.evidence(format!("{} ends after one frame: {}", facts.thread_label(), ended.why));
    });
    draft.causes(&[
        "A stack pointer that was loaded from memory that was overwritten: a saved frame pointer, a `jmp_buf`, the context of a coroutine.",
        "A switch to a stack that was freed, or was never there (makecontext, clone, a coroutine that has ended).",
    ]);
    draft.say("The stack is lost with it: the report does not tell who called.");
    draft.nexts(&[
        "Look at what set the stack pointer last: the end of a function that returned, or a switch of stacks.",
        "Run with Address Sanitizer: it stops at the write that overwrites a saved frame.",
    ]);
    true
}

/// Whether the processor was to run what lies at the address: a jump there, and no access of the code that runs.
fn is_fetch(facts: &Facts<'_>, address: Avma) -> bool {
    current_instruction(&facts.registers, facts.thread) == Some(address)
}

/// The stack of the thread was used up.
pub(super) fn overflow(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(proof) = Proof::of(facts) else { return false };
    let sure = if proof.certain { "" } else { ", very probably" };
    draft.lead(format!("Stack overflow{sure}"), proof.what(facts));
    proof.lines.iter().for_each(|line| draft.evidence(line));
    draft.cause(match proof.recursive {
        true => "A recursion without an end: a function, property or observer that leads back to itself.",
        false if facts.report.source.is_apple() => "Very deep recursion, or very large arrays on the stack (secondary threads have 512 KB, main has 1 to 8 MB).",
        false => "Very deep recursion, or very large arrays on the stack.",
    });
    draft.cause(
        "Data that is nested deeper than expected: views, JSON, linked structures that are freed one by one.",
    );
    draft.next("Look at the frames that repeat and at the condition that should end them.");
    true
}

/// What says that a stack ran out.
struct Proof {
    lines: Vec<String>,
    certain: bool,
    recursive: bool,
}

impl Proof {
    fn of(facts: &Facts<'_>) -> Option<Self> {
        let mut proof = Self { lines: Vec::new(), certain: false, recursive: false };
        let said = facts.find_said(|text| {
            text.contains("stack size exceeded")
                || text.contains("excessive recursion")
                || text.contains("stack overflow")
        });
        if let Some(said) = said {
            proof.certain = true;
            proof.lines.push(said.cite());
        }
        let region = region::of(facts.report);
        let is_stack = |region: &Region| region.kind.to_ascii_uppercase().contains("STACK");
        if region.as_ref().is_some_and(|region| !is_stack(region) || guards_another_thread(facts, region)) {
            return None;
        }
        if let Some(region) = region.filter(|region| region.kind.to_ascii_uppercase().contains("STACK GUARD"))
        {
            proof.certain = true;
            proof.lines.push(region.evidence);
        }
        // KSCrash's reporter counts the frames while it walks, more than it keeps.
        let diagnosed = facts.find_said(|text| text.starts_with("Diagnosis: Stack overflow"));
        let near = near_stack_pointer(facts).or_else(|| where_stacks_lie(facts));
        if near.is_some() {
            proof.lines.extend(signal_of_overflow(facts));
        }
        let depth = recursion(facts);
        // Where it is known that the stack ran out, fewer frames tell why: reporters cut deep stacks short.
        proof.recursive = depth.is_some() || shorter_repeat(facts.frames).is_some();
        let likely = near.is_some() || diagnosed.is_some() || (depth.is_some() && may_be_the_stack(facts));
        if !proof.certain && !likely {
            return None;
        }
        proof.certain |= near.is_some() && depth.is_some();
        proof.lines.extend(diagnosed.map(Said::cite));
        proof.lines.extend(near);
        proof.lines.extend(depth);
        Some(proof)
    }

    fn what(&self, facts: &Facts<'_>) -> String {
        let stack = facts.thread_label();
        let stack = if stack.is_empty() { "A thread".to_owned() } else { stack };
        let found = || repeat(facts.frames).or_else(|| shorter_repeat(facts.frames));
        if let Some(repeat) = found().filter(|_| self.recursive) {
            let round =
                facts.frames.get(repeat.start).map(|frame| describe(facts.report, frame)).unwrap_or_default();
            let more = if repeat.period > 1 {
                format!(" (a round of {} frames)", repeat.period)
            } else {
                String::new()
            };
            return format!("{stack} used up its stack: the same calls repeat, among them {round}{more}.");
        }
        format!("{stack} used up its stack.")
    }
}

/// Whether the region is the guard of another thread's stack: then a stray pointer hit it. The crash reporter numbers
/// the thread (`stack guard for thread 5`).
pub(super) fn guards_another_thread(facts: &Facts<'_>, region: &Region) -> bool {
    let number =
        region.detail.rsplit_once("for thread ").and_then(|(_, number)| number.trim().parse::<u64>().ok());
    let blamed = facts.thread.map(|thread| thread.number).or_else(|| missing_thread(facts.report));
    number.is_some_and(|number| blamed.is_some_and(|blamed| blamed != number))
}

/// Whether the address lies where the stack pointer is.
fn near_stack_pointer(facts: &Facts<'_>) -> Option<String> {
    let fault = facts.fault.as_ref()?;
    let (address, sp) = (fault.address()?, facts.registers.sp()?);
    let above = address.offset_from(sp);
    let below = sp.offset_from(address);
    let is_near =
        above.is_some_and(|bytes| bytes <= NEAR_ABOVE) || below.is_some_and(|bytes| bytes <= NEAR_BELOW);
    // Near null both may be, when a stack pointer was zeroed. A jump into the stack needs no stack that ran out.
    let is_stack = is_near && sp.get() > NEAR_BELOW && !is_fetch(facts, address);
    is_stack.then(|| format!("The stack pointer is {sp}, close to the address {address}"))
}

/// A page that may not be written, where Apple's systems put the stack of the main thread and, next to it, those of the others: without
/// registers, nothing else tells that it was the guard below a stack.
///
/// Sources: Apple's `bsd/arm/vmparam.h` (`USRSTACK64` 0x16fe00000) and `bsd/i386/vmparam.h` (0x7ffeefc00000, and 0x7fff5fc00000 before
/// macOS 10.14).
fn where_stacks_lie(facts: &Facts<'_>) -> Option<String> {
    /// 64 MB: stacks have at most 8 MB, and the layout is moved by chance.
    const RANGES: [(u64, u64); 3] = [
        (0x1_6b00_0000, 0x1_7000_0000),
        (0x7ffe_e000_0000, 0x7ffe_f000_0000),
        (0x7fff_5000_0000, 0x7fff_6000_0000),
    ];
    let fault = facts.fault.as_ref()?;
    let address = fault.address()?;
    let is_protection = fault.code.is_some_and(|code| code.name == "KERN_PROTECTION_FAILURE");
    let is_there = RANGES.iter().any(|(begin, end)| (*begin..*end).contains(&address.get()));
    let is_it = is_protection
        && is_there
        && facts.registers.sp().is_none()
        && region::of(facts.report).is_none()
        && !lies_in_image(facts.report, address);
    is_it.then(|| format!("{address} lies where the system puts stacks, and may not be accessed"))
}

/// XNU turns KERN_PROTECTION_FAILURE into SIGSEGV, not SIGBUS, only where the address lies in the main thread's stack.
fn signal_of_overflow(facts: &Facts<'_>) -> Option<String> {
    let code = facts.fault.as_ref()?.code?;
    let told = code.name == "KERN_PROTECTION_FAILURE" && facts.signal() == "SIGSEGV";
    told.then(|| {
        "KERN_PROTECTION_FAILURE with SIGSEGV: the kernel gives that signal for its main stack only"
            .to_owned()
    })
}

/// Whether nothing speaks against the address being on the stack.
fn may_be_the_stack(facts: &Facts<'_>) -> bool {
    let Some(fault) = &facts.fault else { return false };
    if fault.failure() == Some(Failure::Misaligned) {
        return false;
    }
    match fault.address {
        FaultAddress::Untold(_) => true,
        // Without a stack pointer the recursion has to speak for itself.
        FaultAddress::Stated(address) | FaultAddress::Assumed(address, _) => {
            facts.registers.sp().is_none()
                && address.get() > NEAR_BELOW
                && !lies_in_image(facts.report, address)
        }
    }
}

/// Cites a recursion that the report tells of or that its frames show.
pub(super) fn recursion(facts: &Facts<'_>) -> Option<String> {
    let label = facts.thread_label();
    if let Some(Recursion { depth, .. }) = facts.thread.and_then(|thread| thread.recursion.as_ref()) {
        return Some(format!("{label} had {depth} frames; the report left out those that repeat"));
    }
    let Repeat { start, period, frames } = repeat(facts.frames)?;
    let round = if period == 1 { "the same frame".to_owned() } else { format!("the same {period} frames") };
    Some(format!("{label}: {frames} frames from frame {start} on are {round} over and over"))
}

/// Frames that repeat on a stack of which nothing says what happened.
pub(super) fn recursion_alone(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let is_crash =
        facts.class == Class::Unknown && facts.report.exception.is_none() && facts.report.crashed().is_some();
    // Views that lie in each other give the system's own layout and drawing short rounds.
    let is_own = |found: &Repeat| {
        let round = facts.frames.get(found.start..).unwrap_or_default().iter().take(found.period);
        round.into_iter().any(|frame| !crate::suspect::is_system(facts.report, frame))
    };
    let found =
        repeat(facts.frames).or_else(|| shorter_repeat(facts.frames).filter(is_own)).filter(|_| is_crash);
    let Some(Repeat { start, period, frames }) = found else { return false };
    let round = facts.frames.get(start).map(|frame| describe(facts.report, frame)).unwrap_or_default();
    draft.lead(
        "Recursion, probably without an end",
        format!("The report does not tell what happened; {frames} frames from frame {start} on repeat, among them {round}: probably the stack ran out."),
    );
    if repeat(facts.frames).is_none() {
        let these = if period == 1 { "are the same" } else { "are the same two over and over" };
        draft.evidence(format!("{}: {frames} frames from frame {start} on {these}", facts.thread_label()));
    }
    draft.cause("A function, property or observer that leads back to itself.");
    draft.cause(
        "A method that was exchanged (swizzled) twice, and so calls itself where it means the original.",
    );
    draft.next("Look at the frames that repeat and at the condition that should end them.");
    true
}

/// A deep recursion where no other rule told of it.
pub(super) fn mention_recursion(facts: &Facts<'_>, draft: &mut Draft) {
    if let Some(line) = recursion(facts) {
        draft.evidence(line);
    }
}

/// The frame pointer is no address of the stack and the backtrace ends early: the stack was overwritten.
pub(super) fn broken_frame_pointer(facts: &Facts<'_>) -> Option<String> {
    let fp = facts.registers.fp()?;
    let sp = facts.registers.sp()?;
    let value = Avma::new(fp.value);
    let too_far = match value.offset_from(sp) {
        Some(bytes) => bytes > 64 << 20,
        None => sp.offset_from(value).is_some_and(|bytes| bytes > NEAR_BELOW),
    };
    let broken =
        too_far && fp.value > 0x4000 && facts.frames.len() <= 2 && !lies_in_image(facts.report, value);
    broken.then(|| format!("The frame pointer {} = {value} is no address of the stack (sp = {sp})", fp.name))
}

/// Whether an image of the report holds the address.
pub(super) fn lies_in_image(report: &Report, address: Avma) -> bool {
    report
        .process
        .images
        .iter()
        .any(|image| image.load_address <= address && image.end_address.is_some_and(|end| address < end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::FrameAddress;

    fn frames(addresses: impl IntoIterator<Item = u64>) -> Vec<Frame> {
        let frame =
            |address| Frame { address: Some(FrameAddress::Return(Avma::new(address))), ..Frame::new(0) };
        addresses.into_iter().map(frame).collect()
    }

    #[test]
    fn rounds_of_frames_are_found() {
        let one = frames([9, 8].into_iter().chain(std::iter::repeat_n(7, 50)));
        assert_eq!(repeat(&one), Some(Repeat { start: 2, period: 1, frames: 50 }));
        let three = frames((0..90u64).map(|at| at % 3 + 100));
        assert_eq!(repeat(&three), Some(Repeat { start: 0, period: 3, frames: 90 }));
    }

    #[test]
    fn ordinary_stacks_and_short_repeats_are_not_recursions() {
        assert_eq!(repeat(&frames(0..200)), None);
        assert_eq!(repeat(&frames(std::iter::repeat_n(7, 10))), None);
        assert_eq!(repeat(&[]), None);
        let unknown: Vec<Frame> = (0..100).map(Frame::new).collect();
        assert_eq!(repeat(&unknown), None);
    }
}
