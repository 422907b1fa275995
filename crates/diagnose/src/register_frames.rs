//! Frames that a report lacks and its registers tell.
//!
//! Writers of reports drop a program counter that is in no image, begin with the link register, or give up without a
//! frame. The registers say more: the program counter is the innermost frame, and on ARM the link register is the
//! return address of a function that has called nothing yet. It is not more than that: once a function has called
//! another, its own link register points into itself. So the program counter is taken at its word, the link register
//! only where it cannot be in the function that runs. Frames further out are on the stack, whose memory no report
//! carries.
//!
//! A frame from here has no [`Frame::span`], and [`Frame::trust`] says which register it is from.

#[cfg(test)]
mod tests;

use crate::explain::registers::Registers;
use backtrail_core::{Arch, Avma, Family, FrameAddress, Trust};
use backtrail_model::ImageIndex;
use backtrail_model::{Frame, Image, Report, Source, Thread};

/// Adds the frames that the threads' registers tell and the report lacks; [`Report::notes`] says which and why.
///
/// Numbers of the report's frames behind an added one are one higher than printed. To be called before symbolizing,
/// [`settle_register_frames`] after it.
///
/// Of Apple's own reports only: other reporters walk from the registers themselves, and what stands in the place of a missing
/// register there (0, seen in SentryCrash's JSON) is no caller.
pub fn add_register_frames(report: &mut Report) {
    let is_apple = matches!(report.source, Source::AppleText | Source::AppleIps);
    if !is_apple || !report.process.threads.iter().any(|thread| !thread.registers.is_empty()) {
        return;
    }
    let mut threads = std::mem::take(&mut report.process.threads);
    let mut notes = Vec::new();
    let index = ImageIndex::new(&report.process.images);
    for thread in &mut threads {
        let Some(state) = State::read(report, &index, thread) else { continue };
        notes.extend(state.put_pc(thread));
        notes.extend(state.put_lr(thread));
    }
    report.process.threads = threads;
    report.notes.append(&mut notes);
}

/// Takes back the callers of [`add_register_frames`] that may lie in the function that was running, now that names may
/// be known; gives those that it took back. [`Report::notes`] says of each caller what became of it.
pub fn settle_register_frames(report: &mut Report) -> Vec<Frame> {
    let mut taken = Vec::new();
    let arch = arch_of(report, Registers::of(report, report.crashed()).family());
    for thread in &mut report.process.threads {
        let is_added = |frame: &Frame| frame.trust == Trust::LinkRegister && frame.span.is_none();
        let Some(at) = thread.frames.iter().position(is_added) else { continue };
        let (before, from_lr) = thread.frames.split_at(at);
        let (Some(pc), Some(caller)) = (before.last(), from_lr.first()) else { continue };
        let shown = caller.address.map(FrameAddress::raw).unwrap_or_default();
        let shown = place_of(shown, caller.image, &report.process.images);
        let number = thread.number;
        let note = match is_same_function(pc, caller, arch) {
            Some(false) => format!(
                "Thread {number}, frame {} is not in the report: it is the return address in the link register, {shown}",
                caller.index
            ),
            Some(true) => format!(
                "Thread {number}: the link register, {shown}, points into the function that was running, which had made a call since; it does not tell the caller"
            ),
            None => format!(
                "Thread {number}: the link register, {shown}, may point into the function that was running; without symbols it is not known whether that is the caller"
            ),
        };
        report.notes.push(note);
        if is_same_function(pc, caller, arch) != Some(false) {
            taken.push(thread.frames.remove(at));
        }
    }
    taken
}

/// An address out of a register.
#[derive(Clone, Copy, Debug)]
struct RegisterAddress {
    /// Without pointer authentication, with the Thumb bit.
    address: Avma,
    /// Without either.
    code: Avma,
    image: Option<usize>,
}

/// What one thread's registers say.
struct State<'i> {
    images: &'i [Image],
    family: Family,
    arch: Arch,
    pc: RegisterAddress,
    lr: Option<RegisterAddress>,
    sp: Option<Avma>,
    fp: Option<Avma>,
}

/// Reporters may state the instruction behind the one that trapped.
const NEAR: u64 = 16;
/// Callers that the link register is compared with: walkers lose one at most, and may repeat one.
const CALLERS: usize = 4;
/// More than any thread's stack has by default; the main thread's 8 MB is the largest.
const MAX_STACK: u64 = 8 << 20;
/// Below this no image lies, and what is there is no pattern that memory was filled with.
const NULL_PAGE: u64 = 0x4000;

impl<'i> State<'i> {
    fn read(report: &'i Report, index: &ImageIndex<'_>, thread: &Thread) -> Option<Self> {
        let registers = Registers::of(report, Some(thread));
        let family = registers.family();
        let arch = arch_of(report, family);
        let place = |avma: Avma| {
            let code = code_of(avma, arch);
            let address = if family == Family::Arm { avma } else { code };
            RegisterAddress { address, code, image: index.find(code, None, None) }
        };
        Some(Self {
            images: &report.process.images,
            family,
            arch,
            pc: place(registers.pc()?),
            lr: registers.lr().filter(|_| matches!(family, Family::Arm | Family::Aarch64)).map(place),
            sp: registers.sp(),
            fp: registers.fp().map(|register| Avma::new(register.value)),
        })
    }

    /// Puts the program counter's frame first, where the report has it nowhere.
    fn put_pc(&self, thread: &mut Thread) -> Option<String> {
        let shown = place_of(self.pc.address, self.pc.image, self.images);
        let number = thread.number;
        let Some(first) = thread.frames.first() else {
            thread.frames.push(frame(FrameAddress::Exact(self.pc.address), self.pc, Trust::Context, 0));
            let sp = self.sp.map(|sp| format!(" (sp = {sp})")).unwrap_or_default();
            return Some(format!(
                "Thread {number} has no frames in the report: frame 0 is the program counter, {shown}; further callers are on the stack{sp}, whose memory the report does not have"
            ));
        };
        let first_address = first.address?.raw();
        let is_pc = |frame: &Frame| is_near(self.code(frame), self.pc.code, NEAR);
        // Further out it is where a signal interrupted the thread, under the reporter's own frames.
        if thread.frames.iter().any(is_pc) {
            return None;
        }
        let is_lr = self.lr.is_some_and(|lr| is_near(self.code(first), lr.code, self.return_slack()));
        let is_called = is_lr || self.pc.image.is_none();
        if is_called {
            return_addresses(&mut thread.frames);
        }
        insert(thread, 0, frame(FrameAddress::Exact(self.pc.address), self.pc, Trust::Context, 0));
        let doubt = match () {
            () if !is_called => "; the registers and the frames may be of different moments",
            () if is_lr && self.pc.image.is_none() && self.is_stack_lost() => {
                "; what follows is the link register, and may not be the caller: the frame pointer is no stack address, so the return address may have come from an overwritten stack"
            }
            () => "",
        };
        Some(format!(
            "Thread {number}: the report's first frame, {first_address}, is not the program counter, {shown}, which was put before it as frame 0{doubt}"
        ))
    }

    /// Puts the link register's frame behind the program counter's, where the report has none that fits.
    fn put_lr(&self, thread: &mut Thread) -> Option<String> {
        let lr = self.lr.filter(|lr| lr.image.is_some())?;
        let top = thread.frames.iter().position(|frame| !frame.inlined)?;
        let callers = thread.frames.get(top + 1..)?;
        if !thread.frames.get(top).is_some_and(|frame| is_near(self.code(frame), self.pc.code, NEAR)) {
            return None;
        }
        let is_lr = |frame: &Frame| is_near(self.code(frame), lr.code, self.return_slack());
        let is_known = callers.iter().filter(|frame| !frame.inlined).take(CALLERS).any(is_lr);
        let is_wild = self.pc.image.is_none();
        if is_known || !(callers.is_empty() || is_wild) {
            return None;
        }
        let shown = place_of(lr.address, lr.image, self.images);
        if is_wild && self.is_stack_lost() {
            return Some(format!(
                "Thread {}: the link register, {shown}, is not taken for the caller: the frame pointer is no stack address either, so the return address may have come from an overwritten stack",
                thread.number
            ));
        }
        let index = thread.frames.get(top)?.index.saturating_add(1);
        insert(thread, top + 1, frame(FrameAddress::Return(lr.address), lr, Trust::LinkRegister, index));
        None
    }

    /// Whether the thread came to its program counter by returning through an overwritten stack. What wrote there
    /// wrote over the saved frame pointer as well. 32-bit code returns by popping the program counter and leaves the
    /// link register as the last call had set it (`CrashProbe`, "smash the top of the stack": `__memset_chk`).
    fn is_stack_lost(&self) -> bool {
        let Some(fp) = self.fp else { return false };
        let same = is_near(Some(code_of(fp, self.arch)), self.pc.code, 1);
        let is_pattern = same && self.pc.code.get() >= NULL_PAGE;
        let above = self.sp.and_then(|sp| fp.offset_from(sp));
        is_pattern || (self.family == Family::Arm && above.is_none_or(|above| above > MAX_STACK))
    }

    fn code(&self, frame: &Frame) -> Option<Avma> {
        Some(code_of(frame.address?.raw(), self.arch))
    }

    /// Some writers state return addresses less one instruction.
    fn return_slack(&self) -> u64 {
        if self.family == Family::Arm { 2 } else { 4 }
    }
}

fn frame(address: FrameAddress, place: RegisterAddress, trust: Trust, index: u32) -> Frame {
    Frame { address: Some(address), image: place.image, trust, ..Frame::new(index) }
}

/// Makes the innermost machine frame one that was called.
fn return_addresses(frames: &mut [Frame]) {
    for frame in frames {
        frame.address = frame.address.map(|address| FrameAddress::Return(address.raw()));
        if !frame.inlined {
            return;
        }
    }
}

/// Inserts a frame; those behind it count on, unless the report had left its number free.
fn insert(thread: &mut Thread, at: usize, frame: Frame) {
    let behind = thread.frames.get_mut(at..).unwrap_or_default();
    if behind.first().is_some_and(|next| next.index <= frame.index) {
        for next in behind {
            next.index = next.index.saturating_add(1);
        }
        if let Some(recursion) = &mut thread.recursion {
            recursion.depth = recursion.depth.saturating_add(1);
            let elided = [&mut recursion.first_elided, &mut recursion.last_elided];
            elided.into_iter().flatten().for_each(|index| *index = index.saturating_add(1));
        }
    }
    if at <= thread.frames.len() {
        thread.frames.insert(at, frame);
    }
}

/// Whether both addresses lie in one function; `None` where that is not known.
fn is_same_function(pc: &Frame, caller: &Frame, arch: Arch) -> Option<bool> {
    if pc.image != caller.image {
        return Some(false);
    }
    let (at, returns_to) = (code_of(pc.address?.raw(), arch), code_of(caller.address?.raw(), arch));
    let start = function_start(pc, arch)?;
    match function_start(caller, arch) {
        Some(of_caller) => Some(start == of_caller),
        // The report names the function that runs, with its start; where it ends is not known.
        None if returns_to <= start => Some(false),
        None if returns_to <= at => Some(true),
        None => None,
    }
}

fn function_start(frame: &Frame, arch: Arch) -> Option<Avma> {
    let symbol = frame.symbol.as_ref().map(|symbol| symbol.offset);
    let reported = || frame.reported.as_ref().filter(|_| frame.names().next().is_some())?.offset;
    let offset = frame.function_offset.or(symbol).or_else(reported)?;
    code_of(frame.address?.raw(), arch).checked_sub(offset)
}

fn is_near(a: Option<Avma>, b: Avma, slack: u64) -> bool {
    a.is_some_and(|a| a.get().abs_diff(b.get()) <= slack)
}

/// An address without Thumb bit and pointer authentication.
fn code_of(avma: Avma, arch: Arch) -> Avma {
    FrameAddress::Exact(avma).lookup(arch)
}

/// The architecture whose rules for addresses hold: system libraries sign return addresses also in processes that do
/// not, so on Apple's systems the shorter addresses of arm64e.
fn arch_of(report: &Report, family: Family) -> Arch {
    let is_apple = report.source.is_apple();
    match family {
        Family::Aarch64 if is_apple => Arch::Arm64e,
        Family::Aarch64 => Arch::Arm64,
        Family::Arm => Arch::Arm,
        _ => report.process.arch.unwrap_or(Arch::Unknown),
    }
}

/// `0x2a0790 (CrashLibiOS + 34704)`.
fn place_of(address: Avma, image: Option<usize>, images: &[Image]) -> String {
    let image = image.and_then(|position| images.get(position));
    let offset = image.and_then(|image| address.offset_from(image.load_address));
    match image.zip(offset) {
        Some((image, offset)) => format!("{address} ({} + {offset})", image.name),
        None => format!("{address} (in no image)"),
    }
}
