//! The walk from frame to frame: which method is tried when, and what ends it.

mod cache;
mod cfi_repair;
mod chain;
mod fallback;
mod fast_path;
mod fold;
mod generated;
mod return_path;
mod runtime;
mod scan;
mod tables;
#[cfg(test)]
mod tests;
mod types;

pub use cache::Cache;
pub use chain::FramePointers;
pub use fold::{Folded, Repeat, fold};
pub use types::{End, Frame, Options, Recover, Step, WalkEnd};

use crate::failure::Failure;
use crate::image::{ModuleMap, PlacedModule};
use crate::rules::{CallerState, Packed, frame_pointer_slot, packed_registers};
use backtrail_core::{AddrRange, Arch, Avma, Family, FrameAddress, ReadMemory, Registers, Svma, Trust};
use cache::Trail;
use core::cell::Cell;

/// A walk over one thread's stack, innermost frame first. Iterating gives frames; [`Walk::ended`] then says how it
/// ended.
///
/// # Signal safety
///
/// A walk allocates nothing, takes no lock and calls nothing but `memory`. Over images with tables
/// ([`PlacedModule::new`]) it reads their bytes, too, and needs more of its thread's stack than over compiled ones.
#[derive(Debug)]
pub struct Walk<'a, M: ?Sized> {
    registers: Registers,
    memory: &'a M,
    images: ModuleMap<'a>,
    options: Options,
    cache: Option<&'a mut Cache>,
    trail: Trail,
    /// Where the frame given last is.
    at: Option<FrameAddress>,
    /// The address of the last frame that a frame pointer led to.
    chained: Option<FrameAddress>,
    /// Frame pointers in this range were followed and lead back to an image.
    known_chain: Cell<AddrRange<Avma>>,
    /// Whether another walk wants to know where its frames lead to.
    is_trial: bool,
    last_image: Cell<Option<&'a PlacedModule<'a>>>,
    /// Where a function starts that nothing has called, though a frame returns there.
    uncalled: Cell<Option<Avma>>,
    /// How many frames were found by scanning, and how many of them since the last that was found otherwise.
    scanned: u8,
    scanned_in_a_row: u8,
    /// How many frames may still be given.
    remaining: u64,
    switches: u8,
    odd: u16,
    /// The callee-saved registers to recover, as slots of packed rules.
    wanted: u16,
    ended: Option<WalkEnd>,
}

/// The frame that is stepped from.
#[derive(Clone, Copy)]
struct Here {
    address: FrameAddress,
    stack_pointer: Avma,
}

/// What is known of the place that a frame is at.
#[derive(Clone, Copy)]
struct Site<'a> {
    image: Option<&'a PlacedModule<'a>>,
    /// The frame's lookup address.
    lookup: Avma,
    /// The same, as the image's file has it.
    svma: Option<Svma>,
    is_exact: bool,
}

/// A candidate for the next frame.
#[derive(Clone, Copy)]
struct Next {
    registers: Registers,
    address: FrameAddress,
    trust: Trust,
    is_after_signal: bool,
    bytecode: Option<Avma>,
    /// Whether the return address was elsewhere than usual: see `MAX_ODD`.
    is_odd: bool,
}

impl<'a, M: ReadMemory + ?Sized> Walk<'a, M> {
    /// A walk that starts with a thread's registers as captured. On 32-bit ARM the lowest bit of the program counter
    /// tells Thumb code, if the thread's status register is at hand.
    #[inline]
    pub fn new(registers: Registers, memory: &'a M, images: ModuleMap<'a>, options: Options) -> Self {
        let mut walk = Self {
            registers,
            memory,
            images,
            options,
            cache: None,
            trail: Trail::START,
            at: None,
            chained: None,
            known_chain: Cell::new(AddrRange::from_size(Avma::new(0), 0)),
            is_trial: false,
            remaining: options.max_frames,
            last_image: Cell::new(None),
            uncalled: Cell::new(None),
            scanned: 0,
            scanned_in_a_row: 0,
            switches: 0,
            odd: 0,
            wanted: u16::MAX,
            ended: None,
        };
        if options.recover == Recover::Needed {
            walk.forget_what_is_not_needed();
        }
        walk
    }

    #[inline]
    fn forget_what_is_not_needed(&mut self) {
        // With the family a constant, so that its tables are too.
        match self.registers.family() {
            Family::X86_64 => self.forget_but(Family::X86_64),
            Family::Aarch64 => self.forget_but(Family::Aarch64),
            other => self.forget_but(other),
        }
    }

    #[inline(always)]
    fn forget_but(&mut self, family: Family) {
        self.wanted = self.images.bases() | frame_pointer_slot(family);
        self.registers.clear_all(packed_registers(family, !self.wanted));
    }

    /// The same with a cache, for walking the same code often.
    #[must_use]
    #[inline(always)]
    pub fn with_cache(mut self, cache: &'a mut Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// One step. The first gives the frame of the captured registers.
    pub fn step(&mut self) -> Step {
        self.step_cached().map_or_else(|| self.step_otherwise(), Step::Caller)
    }

    /// The registers of the frame given last, as far as they are known.
    pub fn registers(&self) -> &Registers {
        &self.registers
    }

    /// How the walk ended; `None` while it has not.
    pub fn ended(&self) -> Option<WalkEnd> {
        self.ended.or((self.remaining == 0).then_some(WalkEnd::Limit))
    }

    /// The address of the frame given last, where nothing has called it: a function starts there (`makecontext` has the function of
    /// a coroutine return to such a one). Over compiled images alone that shows only when the walk has ended there.
    pub fn uncalled(&self) -> Option<Avma> {
        self.uncalled.get().filter(|address| self.at.is_some_and(|at| at.raw() == *address))
    }

    /// Whether this is where a function starts that nothing has called.
    fn was_not_called(&self, address: FrameAddress) -> bool {
        matches!(address, FrameAddress::Exact(at) if self.uncalled.get() == Some(at))
    }

    #[inline(never)]
    fn step_otherwise(&mut self) -> Step {
        let Some(address) = self.at else { return self.first() };
        let here = Here { address, stack_pointer: self.registers.sp().unwrap_or_default() };
        let cached = self.cache.as_mut().and_then(|cache| cache.find(&mut self.trail, address));
        let known = cached.or_else(|| self.noted(&here));
        let step = known.and_then(|rule| self.apply_packed(&here, &rule));
        step.unwrap_or_else(|| self.step_slowly(&here))
    }

    /// The rule that a walk before this one has found.
    #[inline]
    fn noted(&mut self, here: &Here) -> Option<Packed> {
        let family = self.registers.family();
        let rule = *self.images.noted(here.address.lookup(arch_of(family)))?;
        if let Some(cache) = &mut self.cache {
            cache.put(&mut self.trail, here.address, rule, family);
        }
        Some(rule)
    }

    #[inline]
    fn first(&mut self) -> Step {
        let family = self.registers.family();
        let Some(pc) = self.registers.pc() else {
            return Step::Failed(Failure::MissingRegister(family.pc(), family));
        };
        let address = FrameAddress::Exact(self.strip(pc));
        self.at = Some(address);
        Step::Caller(Frame {
            address,
            stack_pointer: self.registers.sp().unwrap_or_default(),
            trust: Trust::Context,
            is_after_signal: false,
            bytecode: None,
        })
    }

    /// The way of most steps: a return address whose rule is in the cache.
    #[inline]
    fn step_cached(&mut self) -> Option<Frame> {
        let Some(FrameAddress::Return(address)) = self.at else { return None };
        let cache = self.cache.as_deref_mut()?;
        let mut trail = self.trail;
        let rule = *cache.follow(&mut trail, address)?;
        // Whether code lies at an address that no walk has come to is looked at by the long way.
        let is_known = |address| cache.knows(trail, address);
        let (address, stack_pointer) = rule.step(&mut self.registers, self.memory, self.wanted, is_known)?;
        self.trail = trail;
        let address = FrameAddress::Return(address);
        self.at = Some(address);
        Some(Frame { address, stack_pointer, trust: rule.trust(), is_after_signal: false, bytecode: None })
    }

    /// Applies a packed rule; `None` where only the long way can tell what to do.
    fn apply_packed(&mut self, here: &Here, rule: &Packed) -> Option<Step> {
        let place = rule.locate(&self.registers, self.memory, self.registers.family())?;
        let Some(raw) = place.return_address else { return Some(Step::EndOfStack(End::Undefined)) };
        let address = self.strip(Avma::new(raw));
        if place.cfa <= here.stack_pointer.get() || address.get() == 0 {
            return None;
        }
        if self.is_no_code(address, Avma::new(place.cfa)) {
            return Some(Step::Failed(Failure::NotCode(address)));
        }
        let caller = self.caller_address(address);
        if self.scanned > 0 && self.was_not_called(caller) {
            return Some(Step::Failed(Failure::NotCalled(address)));
        }
        let place = CallerState { return_address: Some(address.get()), ..place };
        let family = self.registers.family();
        rule.commit(&mut self.registers, self.memory, &place, self.wanted, family);
        self.registers.set(family.pc(), address.get());
        let address = caller;
        self.at = Some(address);
        let stack_pointer = Avma::new(place.cfa);
        let trust = rule.trust();
        Some(Step::Caller(Frame { address, stack_pointer, trust, is_after_signal: false, bytecode: None }))
    }

    /// The image at an address: most often that of the frame before.
    #[inline]
    fn image_at(&self, address: Avma) -> Option<&'a PlacedModule<'a>> {
        let last = self.last_image.get().filter(|image| image.range.contains(address));
        let image = last.or_else(|| self.images.at(address));
        self.last_image.set(image);
        image
    }

    fn site(&self, here: &Here) -> Site<'a> {
        let lookup = here.address.lookup(arch_of(self.registers.family()));
        let image = self.image_at(lookup);
        let svma = image.and_then(|image| image.bias.to_svma(lookup));
        Site { image, lookup, svma, is_exact: matches!(here.address, FrameAddress::Exact(_)) }
    }

    /// Signal frames, tables, then everything else. What the tables' failure was is what the walk ends with if
    /// nothing else leads on.
    fn step_slowly(&mut self, here: &Here) -> Step {
        let site = self.site(here);
        if let Some(rule) = self.compiled_rule(&site) {
            if let Some(cache) = self.cache.as_mut().filter(|_| !rule.is_in_link_register()) {
                cache.put(&mut self.trail, here.address, rule, self.registers.family());
            }
            if let Some(step) = self.apply_packed(here, &rule) {
                return step;
            }
        }
        // Return code of signals may begin its image: one byte before it lies nothing.
        let image = site.image.or_else(|| self.image_at(here.address.raw()));
        if let Some(next) = self.by_signal_frame(here, image) {
            return self.go(next);
        }
        if self.is_compiled_and_uncalled(here, &site) {
            if self.scanned > 0 {
                return Step::Failed(Failure::NotCalled(here.address.raw()));
            }
            self.uncalled.set(Some(here.address.raw()));
            return Step::EndOfStack(End::ThreadStart);
        }
        let stepped = match self.by_runtime(here, &site) {
            Some(stepped) => stepped,
            None => {
                let stepped = self.by_tables(here, &site);
                stepped.or_else(|failure| self.without_tables(here, &site, failure))
            }
        };
        // The first function of a coroutine (`makecontext`): its table speaks of a caller, as that of any function.
        let is_uncalled = self.uncalled.get() == Some(here.address.raw());
        match stepped {
            Ok(Ok(next)) if is_uncalled && self.is_code(next.address.raw()) == Some(false) => {
                Step::EndOfStack(End::ThreadStart)
            }
            // What a guess led to and nothing has called shows that the guess was wrong: a pointer to a function, not a caller.
            Ok(Ok(next)) if self.scanned > 0 && self.was_not_called(next.address) => {
                Step::Failed(Failure::NotCalled(next.address.raw()))
            }
            Ok(Ok(next)) => self.go(next),
            Ok(Err(end)) => Step::EndOfStack(end),
            Err(Failure::NotCode(_)) if is_uncalled => Step::EndOfStack(End::ThreadStart),
            Err(failure) => Step::Failed(failure),
        }
    }

    fn go(&mut self, next: Next) -> Step {
        let frame = Frame {
            address: next.address,
            stack_pointer: next.registers.sp().unwrap_or_default(),
            trust: next.trust,
            is_after_signal: next.is_after_signal,
            bytecode: next.bytecode,
        };
        if self.registers.sp().is_some_and(|last| frame.stack_pointer <= last) {
            self.switches = self.switches.saturating_add(1);
        }
        self.odd = self.odd.saturating_add(next.is_odd.into());
        let is_scanned = next.trust == Trust::Scan;
        self.scanned = self.scanned.saturating_add(is_scanned.into());
        self.scanned_in_a_row = if is_scanned { self.scanned_in_a_row.saturating_add(1) } else { 0 };
        self.registers = next.registers;
        self.registers.set(self.registers.family().pc(), next.address.raw().get());
        self.at = Some(next.address);
        self.chained = (next.trust == Trust::FramePointer).then_some(next.address);
        Step::Caller(frame)
    }

    /// A rule that needs neither code nor a full row. Exact addresses are left to the module, if there is one; so are
    /// return addresses right behind a row, where a signal's return code may start.
    fn compiled_rule(&self, site: &Site<'a>) -> Option<Packed> {
        let image = site.image?;
        if site.is_exact && image.module.is_some() {
            return None;
        }
        let (rule, is_last_byte) = image.rules?.packed(site.svma?)?;
        let is_plain = rule.wide().is_none() && !rule.is_in_link_register();
        if is_plain && !is_last_byte {
            self.images.note(site.lookup, image, rule);
        }
        let fits = if site.is_exact { rule.wide().is_none() } else { is_plain && !is_last_byte };
        fits.then_some(*rule)
    }

    /// Clears what is no address. How many bits a 64-bit ARM address has depends on the system (Linux up to 48,
    /// Apple 47, Android 39); above lie pointer authentication codes. The widest that falls into an image is taken.
    #[inline]
    fn strip(&self, address: Avma) -> Avma {
        if self.registers.family() != Family::Aarch64 || address.get() >> 39 == 0 {
            return address;
        }
        self.strip_authentication(address)
    }

    #[inline(never)]
    fn strip_authentication(&self, address: Avma) -> Avma {
        let is_kernel = address.get() & (1 << 55) != 0;
        let cut = |bits: u32| {
            let high = u64::MAX << bits;
            Avma::new(if is_kernel { address.get() | high } else { address.get() & !high })
        };
        let in_image = |cut: &Avma| self.images.at(Avma::new(cut.get().saturating_sub(1))).is_some();
        [48, 47, 39].map(cut).into_iter().find(in_image).unwrap_or_else(|| cut(48))
    }
}

/// Address rules depend on the family alone, save for the width of Apple's addresses, which [`Walk`] settles.
pub(crate) fn arch_of(family: Family) -> Arch {
    match family {
        Family::X86 => Arch::X86,
        Family::X86_64 => Arch::X86_64,
        Family::Arm => Arch::Arm,
        Family::Aarch64 => Arch::Arm64,
        _ => Arch::Unknown,
    }
}

impl<M: ReadMemory + ?Sized> Iterator for Walk<'_, M> {
    type Item = Frame;

    #[inline]
    fn next(&mut self) -> Option<Frame> {
        // The walk's end leaves nothing remaining.
        self.remaining = self.remaining.checked_sub(1)?;
        match self.step_cached() {
            Some(frame) => Some(frame),
            None => self.next_slowly(),
        }
    }
}

impl<M: ReadMemory + ?Sized> Walk<'_, M> {
    #[inline(never)]
    fn next_slowly(&mut self) -> Option<Frame> {
        let ended = match self.step_otherwise() {
            Step::Caller(frame) => return Some(frame),
            Step::EndOfStack(end) => WalkEnd::EndOfStack(end),
            Step::Failed(failure) => WalkEnd::Failed(failure),
        };
        self.ended = Some(ended);
        self.remaining = 0;
        None
    }
}
