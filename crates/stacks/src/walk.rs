//! From registers to frames.

use crate::loaded_image::LoadedImage;
use crate::process_memory::{ProcessMemory, StackFirst};
use crate::unwind_image::UnwindImage;
use backtrail_capture::{Mapping, Thread};
use backtrail_core::{AddrRange, Arch, Avma, Bias, Family, FrameAddress, ReadMemory as _, Reason, Svma};
use backtrail_model::{EndKind, Ended, Frame};
use backtrail_unwind as unwind;
use backtrail_unwind::{Cache, ModuleMap, Options, Walk};
use std::sync::atomic::{AtomicBool, Ordering};

/// Everything that walking a thread needs.
pub(crate) struct Walker<'w> {
    pub(crate) arch: Arch,
    pub(crate) memory: &'w ProcessMemory<'w, 'w>,
    pub(crate) images: ModuleMap<'w>,
    /// Ascending.
    pub(crate) mappings: &'w [Mapping],
    /// Whether the images and the mappings have all executable memory.
    pub(crate) knows_all_code: bool,
    /// The image of each code range, ascending by the range's start.
    pub(crate) places: &'w [(AddrRange<Avma>, usize)],
    pub(crate) placed: &'w [LoadedImage],
    /// Whether a walk was led to what is no code.
    pub(crate) met_no_code: AtomicBool,
}

/// The code ranges of all images as the walker wants them.
pub(crate) fn unwind_images(placed: &[LoadedImage]) -> Vec<unwind::PlacedModule<'_>> {
    let all = placed.iter().flat_map(|placed| {
        let module = placed.unwind.as_ref().map(UnwindImage::module);
        placed.code.iter().map(move |range| match module {
            Some(module) => unwind::PlacedModule::new(*range, placed.bias, module),
            None => unwind::PlacedModule::unknown(*range),
        })
    });
    all.collect()
}

/// Which image each code range is of.
pub(crate) fn places(placed: &[LoadedImage]) -> Vec<(AddrRange<Avma>, usize)> {
    let each = |(index, placed): (usize, &LoadedImage)| {
        placed.code.iter().map(|range| (*range, index)).collect::<Vec<_>>()
    };
    let mut places: Vec<_> = placed.iter().enumerate().flat_map(each).collect();
    places.sort_by_key(|(range, _)| range.start());
    places
}

impl<'w> Walker<'w> {
    /// The frames of one thread, innermost first, and how the walk ended. `None` for a thread without registers.
    /// Threads of one process mostly stand in the same code: `cache` is for all of them.
    pub(crate) fn walk(
        &self,
        thread: &Thread,
        max_frames: u64,
        cache: &mut Cache,
    ) -> Option<(Vec<Frame>, Ended)> {
        thread.registers.pc()?;
        let stack = thread.registers.sp().and_then(|sp| self.mapping_at(sp)).map(|mapping| mapping.range);
        let options =
            Options { max_frames, stack, knows_all_code: self.knows_all_code, ..Options::default() };
        let memory = StackFirst::new(thread.registers.sp(), self.memory);
        let mut walk = Walk::new(thread.registers, &memory, self.images, options).with_cache(cache);
        let walked: Vec<_> = walk.by_ref().collect();
        let mut frames = Vec::with_capacity(walked.len());
        if let Some(unwind::WalkEnd::Failed(unwind::Failure::NotCode(_))) = walk.ended() {
            self.met_no_code.store(true, Ordering::Relaxed);
        }
        let mut ended = ended(walk.ended());
        for found in walked {
            let lookup = found.address.lookup(self.arch);
            // Return code of signals may begin a mapping: what lies before it is another one.
            let is_code = |at| self.mapping_at(at).map(|mapping| mapping.executable);
            let is_data = || is_code(lookup) == Some(false) && is_code(found.address.raw()) != Some(true);
            if !frames.is_empty() && self.placed_at(lookup).is_none() && is_data() {
                let why = unwind::Failure::NotCode(found.address.raw()).to_string();
                self.met_no_code.store(true, Ordering::Relaxed);
                ended = Ended { kind: EndKind::Failed, why };
                break;
            }
            if found.is_after_signal
                && let Some(last) = frames.last_mut()
            {
                self.make_exact(last);
            }
            // What an interpreter runs is a frame of its own, called by the interpreter's own frame in a way.
            if let Some(bytecode) = found.bytecode {
                frames.push(self.frame(FrameAddress::Exact(bytecode), found.trust));
            }
            frames.push(self.frame(found.address, found.trust));
        }
        for (frame, index) in frames.iter_mut().zip(0..) {
            frame.index = index;
        }
        Some((frames, ended))
    }

    fn frame(&self, address: FrameAddress, trust: backtrail_core::Trust) -> Frame {
        let lookup = address.lookup(self.arch);
        let placed = self.placed_at(lookup);
        let mut frame = Frame::new(0);
        frame.address = Some(address);
        frame.trust = trust;
        frame.image = placed.map(|placed| placed.shown);
        if placed.is_none() {
            self.set_mapping(&mut frame, lookup);
        }
        frame.relative_pc =
            placed.and_then(|placed| self.relative_pc(address, placed.relative)).or_else(|| {
                let mapping = self.mapping_at(lookup)?;
                self.relative_pc(address, Bias::between(mapping.range.start(), Svma::new(0)))
            });
        frame
    }

    /// Data that an interpreter runs is named by what was mapped there.
    fn set_mapping(&self, frame: &mut Frame, address: Avma) {
        let mapping = self.mapping_at(address).filter(|mapping| !mapping.name.is_empty());
        frame.image_name =
            mapping.map(|mapping| mapping.name.rsplit('/').next().unwrap_or(&mapping.name).to_owned());
        frame.reason =
            Some(if frame.image_name.is_some() { Reason::MissingSymbols } else { Reason::NoImage });
    }

    /// The code that a signal handler returns to was never called: its address is that of its first instruction.
    fn make_exact(&self, frame: &mut Frame) {
        if let Some(FrameAddress::Return(raw)) = frame.address {
            *frame = self.frame(FrameAddress::Exact(raw), frame.trust);
        }
    }

    pub(crate) fn placed_at(&self, address: Avma) -> Option<&'w LoadedImage> {
        let after = self.places.partition_point(|(range, _)| range.start() <= address);
        let (range, index) = self.places.get(after.checked_sub(1)?)?;
        self.placed.get(*index).filter(|_| range.contains(address))
    }

    pub(crate) fn mapping_at(&self, address: Avma) -> Option<&'w Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.range.start() <= address);
        self.mappings.get(after.checked_sub(1)?).filter(|mapping| mapping.range.contains(address))
    }

    /// The stated address of the instruction: of a return address, that of the call before it. Keeps the Thumb bit, as
    /// Android's tools do.
    fn relative_pc(&self, address: FrameAddress, relative: Bias) -> Option<Svma> {
        let raw = address.raw();
        let plain =
            if self.arch.family() == Family::Arm { raw } else { FrameAddress::Exact(raw).lookup(self.arch) };
        let size = match address {
            FrameAddress::Exact(_) => 0,
            FrameAddress::Return(_) => self.call_size(raw),
        };
        let stated = relative.to_svma(plain)?;
        Some(stated.checked_sub(size).unwrap_or(stated))
    }

    /// Bytes of the call instruction before a return address; on x86, where that varies, the one that makes it the
    /// address within the call.
    fn call_size(&self, raw: Avma) -> u64 {
        match self.arch.family() {
            Family::Arm if raw.get() & 1 == 0 => 4,
            Family::Arm => {
                // The two halves of a Thumb BL or BLX. ARM ARM, A8.8.25.
                let call = raw.checked_sub(5).and_then(|at| self.memory.read_u32(at).ok());
                if call.is_some_and(|call| call & 0xe000_f000 == 0xe000_f000) { 4 } else { 2 }
            }
            Family::Aarch64 => 4,
            _ => 1,
        }
    }
}

/// How the walk ended, in words.
fn ended(ended: Option<unwind::WalkEnd>) -> Ended {
    match ended {
        Some(unwind::WalkEnd::EndOfStack(end)) => {
            Ended { kind: EndKind::EndOfStack, why: end.as_str().to_owned() }
        }
        Some(unwind::WalkEnd::Failed(failure)) => Ended { kind: EndKind::Failed, why: failure.to_string() },
        Some(unwind::WalkEnd::Limit) | None => {
            Ended { kind: EndKind::Truncated, why: "as many frames as were asked for".to_owned() }
        }
    }
}
