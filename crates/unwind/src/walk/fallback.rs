//! What leads on where no table does: signal frames by their code, the link register, frame pointers, scanning.

use super::{End, Failure, Here, Next, Site, Walk};
use crate::arch;
use crate::code::Code;
use crate::execute;
use crate::image::PlacedModule;
use crate::row::{Cfa, Row};
use backtrail_core::{AddrRange, Avma, Family, FrameAddress, ReadMemory, Registers, Trust};

type Stepped = Result<Result<Next, End>, Failure>;

/// How far above the stack pointer a frame pointer may lie where the stack's bounds are not known: no function has a
/// larger frame on a stack of the usual eight megabytes.
const MAX_FRAME: u64 = 8 << 20;

/// How many bytes in front of a return address a call instruction is looked for in.
pub(super) const CALL_BYTES: usize = 16;

/// What lies before a return address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    Call,
    /// Code that is no call.
    Other,
    /// Bytes that someone has cleared.
    Emptied,
    /// Nothing that could be read.
    Missing,
}

/// Nothing is mapped below (`vm.mmap_min_addr`).
const LOWEST: u64 = 1 << 12;

impl<'a, M: ReadMemory + ?Sized> Walk<'a, M> {
    /// Everything after the tables. `failure` is why they did not lead on; only where they had nothing to say, or
    /// nothing that makes sense, is anything else tried: a frame too many is as bad as one too few.
    pub(super) fn without_tables(&self, here: &Here, site: &Site<'a>, failure: Failure) -> Stepped {
        if matches!(
            failure,
            Failure::Unreadable(_) | Failure::NotAdvancing(_) | Failure::NotCode(_) | Failure::NotCalled(_)
        ) {
            return Err(failure);
        }
        // What follows the entry point may be the next function, as `deregister_tm_clones` does `_start`. Nothing has
        // called the first function: a return address on top of the stack tells that this is another one.
        let next =
            self.by_return_path(here, site).or_else(|| self.by_return_path_of_generated_code(here, site));
        if let Some(next) = next {
            return Ok(Ok(next));
        }
        // The table knows how to go on, but for a register that was lost on the way here.
        if matches!(failure, Failure::MissingRegister(..)) {
            return Err(failure);
        }
        let called = if site.is_exact && self.registers.family().lr().is_none() {
            self.by_top_of_stack(here)
        } else {
            None
        };
        if let Some(next) = called {
            return Ok(Ok(next));
        }
        if let Some(end) = self.known_start(site) {
            return Ok(Err(end));
        }
        let next = self.by_what_the_call_left(here, site).or_else(|| self.by_frame_pointer(here));
        if let Some(next) = next {
            return Ok(Ok(next));
        }
        if self.is_end_of_chain(here) {
            return Ok(Err(End::ZeroFramePointer));
        }
        self.by_scan(here, site)?.map_or(Err(failure), |next| Ok(Ok(next)))
    }

    /// Whether a chain of frame pointers ends here. On x86 and ARM, code that was compiled without frame pointers leaves
    /// the zero that `_start` set in the register: it counts only if a frame pointer led here.
    fn is_end_of_chain(&self, here: &Here) -> bool {
        let is_chained = self.registers.family() == Family::Aarch64 || self.chained == Some(here.address);
        is_chained && self.registers.fp().is_some_and(|fp| fp.get() == 0)
    }

    fn known_start(&self, site: &Site<'a>) -> Option<End> {
        let (module, svma) = (site.image?.module?, site.svma?);
        if module.is_thread_start(svma) {
            return Some(End::ThreadStart);
        }
        module.is_entry(svma).then_some(End::EntryPoint)
    }

    /// The kernel's frame around a handler. Known by the code at the return address itself: one byte before may be
    /// another function, whose rules would be wrong.
    pub(super) fn by_signal_frame(&self, here: &Here, image: Option<&PlacedModule<'a>>) -> Option<Next> {
        let places = arch::signal_places(self.registers.family());
        let count = if matches!(here.address, FrameAddress::Exact(_)) { places.len() } else { 1 };
        let row = places.iter().take(count).find_map(|place| self.interrupted_return(here, image, *place))?;
        let caller = execute::apply(&row, &self.registers, self.memory, <_>::default(), |_| None).ok()?;
        Some(Next {
            address: FrameAddress::Exact(self.strip(caller.return_address?)),
            registers: caller.registers,
            trust: Trust::Analysis,
            is_after_signal: true,
            bytecode: None,
            is_odd: true,
        })
    }

    /// The row of a signal's frame, where its return code began some bytes before and has popped some since.
    fn interrupted_return(
        &self,
        here: &Here,
        image: Option<&PlacedModule<'a>>,
        (back, popped): (u64, u8),
    ) -> Option<Row> {
        let sp = self.registers.sp()?.checked_sub(popped.into())?;
        let mut row = self.signal_row(here.address.raw().checked_sub(back)?, image, sp)?;
        if let Cfa::RegisterOffset(_, offset) = &mut row.cfa {
            *offset = offset.checked_sub(popped.into())?;
        }
        Some(row)
    }

    fn signal_row(&self, at: Avma, image: Option<&PlacedModule<'a>>, sp: Avma) -> Option<Row> {
        let mut copy = [0; CALL_BYTES];
        let ahead = self.code_from(at, image, &mut copy)?;
        let word = |at| self.memory.read_u32(at).ok();
        arch::signal_frame(self.registers.family(), ahead, sp, &word)
    }

    /// Whether `address`, found below `above`, is where a signal's handler returns to. No call leads there, so that what
    /// lies before it tells nothing.
    pub(super) fn is_signal_return(&self, address: Avma, above: Avma) -> bool {
        let image = self.images.at(self.without_thumb_bit(address));
        image.is_some() && self.signal_row(address, image, above).is_some()
    }

    /// Code of the image, or else of the target's memory; the Thumb bit is no part of the address.
    pub(super) fn code_from<'c>(
        &self,
        at: Avma,
        image: Option<&PlacedModule<'a>>,
        copy: &'c mut [u8; CALL_BYTES],
    ) -> Option<&'c [u8]>
    where
        'a: 'c,
    {
        let at = self.without_thumb_bit(at);
        let svma = image.and_then(|image| image.bias.to_svma(at));
        let module = image.and_then(|image| image.module);
        let text = module.zip(svma).and_then(|(module, svma)| module.text_at(svma)?.from(svma));
        if text.is_some() {
            return text;
        }
        self.memory.read(at, copy).ok()?;
        Some(copy)
    }

    fn without_thumb_bit(&self, at: Avma) -> Avma {
        let is_arm = self.registers.family() == Family::Arm;
        if is_arm { Avma::new(at.get() & !1) } else { at }
    }

    /// Whether code lies at a return address, as far as images tell; `None` without any image.
    pub(super) fn is_code(&self, address: Avma) -> Option<bool> {
        if self.images.all().is_empty() {
            return None;
        }
        let before = Avma::new(self.without_thumb_bit(address).get().saturating_sub(1));
        let Some(image) = self.image_at(before) else { return Some(false) };
        let module = image.module.zip(image.bias.to_svma(before));
        Some(module.is_none_or(|(module, svma)| module.has_code_at(svma)))
    }

    /// Whether an address that a table has led to cannot be a caller's: nothing executable lies there. `cfa` is where the
    /// caller's frame begins. Return code of signals, known by its bytes, may begin a mapping, so that nothing lies before
    /// it, and be of no image (qemu-user's page, in a core that lists no files).
    pub(super) fn is_no_code(&self, address: Avma, cfa: Avma) -> bool {
        // An image's range is what is executable of it. What it knows of its sections may be less: of a core, the headers.
        let is_outside = || {
            let before = Avma::new(self.without_thumb_bit(address).get().saturating_sub(1));
            !self.images.all().is_empty() && self.image_at(before).is_none()
        };
        let is_signal_return = || {
            let image = self.images.at(self.without_thumb_bit(address));
            self.signal_row(address, image, cfa).is_some()
        };
        address.get() < LOWEST || self.options.knows_all_code && is_outside() && !is_signal_return()
    }

    /// What the bytes before a return address are.
    pub(super) fn before(&self, address: Avma) -> Before {
        let family = self.registers.family();
        let at = self.without_thumb_bit(address);
        let image = self.images.at(Avma::new(at.get().saturating_sub(1)));
        let module = image.and_then(|image| image.module.zip(image.bias.to_svma(at)));
        let text = module.and_then(|(module, svma)| {
            let last = svma.checked_sub(1)?;
            module.text_at(last)?.up_to(svma)
        });
        let mut copy = [0; CALL_BYTES];
        let before = match text {
            Some(before) => before.get(before.len().saturating_sub(CALL_BYTES)..).unwrap_or_default(),
            None => {
                let start = at.checked_sub(CALL_BYTES as u64);
                if start.and_then(|start| self.memory.read(start, &mut copy).ok()).is_none() {
                    return Before::Missing;
                }
                &copy
            }
        };
        // Libraries whose code was emptied, to be passed around for their tables, tell nothing: zeros, and ff where bytes differed.
        if before.iter().all(|byte| matches!(byte, 0 | 0xff)) {
            Before::Emptied
        } else if arch::follows_call(family, before, address) && !self.is_behind_thunk(before, image, at) {
            Before::Call
        } else {
            Before::Other
        }
    }

    /// Whether the call goes to `__x86.get_pc_thunk` of a register: `mov (%esp), register; ret`. Position-independent code
    /// for i386 begins with it, so that its return address stays behind below the frame; but it calls nothing, and is
    /// the caller of the thunk alone.
    fn is_behind_thunk(&self, before: &[u8], image: Option<&PlacedModule<'a>>, at: Avma) -> bool {
        const THUNK_SIZE: u64 = 4;
        let Some([0xe8, distance @ ..]) = before.last_chunk::<5>() else { return false };
        if self.registers.family() != Family::X86 {
            return false;
        }
        let target = at.get().wrapping_add_signed(i32::from_le_bytes(*distance).into()) & 0xffff_ffff;
        let mut copy = [0; CALL_BYTES];
        let code = self.code_from(Avma::new(target), image, &mut copy);
        let is_thunk = matches!(code, Some([0x8b, operand, 0x24, 0xc3, ..]) if operand & 0xc7 == 0x04);
        let thunk = AddrRange::from_size(Avma::new(target), THUNK_SIZE);
        is_thunk && !self.at.is_some_and(|here| thunk.contains(here.raw()))
    }

    /// How a caller's address is to be looked up. Where a function starts there and no call lies before it, nothing has been
    /// called: what made the frame put the function's own address there (`makecontext`, Go's stack switches).
    pub(super) fn caller_address(&self, address: Avma) -> FrameAddress {
        let image = self.image_at(address);
        let module = image.and_then(|image| image.module.zip(image.bias.to_svma(address)));
        let is_start = module.is_some_and(|(module, svma)| {
            self.before(address) == Before::Other && module.starts_function(svma)
        });
        if !is_start {
            return FrameAddress::Return(address);
        }
        self.uncalled.set(Some(address));
        FrameAddress::Exact(address)
    }

    /// The same where only compiled rules are at hand, which is looked at when the walk is there: a row begins at the return
    /// address, no call lies before it, and what is a caller by that row was not called either.
    pub(super) fn is_compiled_and_uncalled(&self, here: &Here, site: &Site<'a>) -> bool {
        let is_uncalled = || {
            let FrameAddress::Return(address) = here.address else { return None };
            let image = site.image.filter(|image| image.module.is_none())?;
            let (rules, at) = (image.rules?, image.bias.to_svma(address)?);
            let found = rules.find(at).filter(|found| found.covered.start() == at)?;
            if self.before(address) != Before::Other {
                return None;
            }
            let bytes_of = |expression| rules.expression(expression);
            let caller = execute::apply(&found.row, &self.registers, self.memory, image.bias, bytes_of).ok();
            let address = caller.and_then(|caller| caller.return_address).map(|address| self.strip(address));
            Some(address.is_none_or(|address| !self.is_return_address(address)))
        };
        is_uncalled().unwrap_or(false)
    }

    /// Whether code lies there, and a call before it.
    pub(super) fn is_return_address(&self, address: Avma) -> bool {
        self.is_code(address) == Some(true) && self.before(address) == Before::Call
    }

    /// Where a call leaves the return address: in the link register or on top of the stack. There it still is in a
    /// function that has just been called, in a leaf, and where the call went to no code at all.
    fn by_what_the_call_left(&self, here: &Here, site: &Site<'a>) -> Option<Next> {
        let family = self.registers.family();
        let Some(lr) = family.lr() else {
            return if site.is_exact { self.by_top_of_stack(here) } else { None };
        };
        if !site.is_exact && site.image.is_some() {
            return None;
        }
        let address = self.strip(Avma::new(self.registers.get(lr)?));
        let moves = address != here.address.raw();
        if !moves || !self.may_be_return_address(address) || self.has_stale_link(here, site) {
            return None;
        }
        Some(self.next_frame(self.registers, address, Trust::LinkRegister))
    }

    /// Whether the code at hand does without the link register: a call that has returned has left something in it, which
    /// looks like a caller. So in glibc's `_dl_fini` for 32-bit ARM, which has no table. Code that is not there, or was
    /// emptied, tells nothing.
    fn has_stale_link(&self, here: &Here, site: &Site<'a>) -> bool {
        let Some((image, at)) = site.image.zip(site.svma) else { return false };
        let Some(text) = image.module.and_then(|module| module.text_at(at)) else { return false };
        let is_thumb = self.registers.family() == Family::Arm && here.address.raw().get() & 1 != 0;
        let code = Code { text: *text, at, function: None, thumb: is_thumb, is_described: false };
        let is_emptied = code.ahead().iter().take(CALL_BYTES).all(|byte| matches!(byte, 0 | 0xff));
        !is_emptied && !arch::needs_link(self.registers.family(), &code)
    }

    /// The word that a call has just pushed.
    fn by_top_of_stack(&self, here: &Here) -> Option<Next> {
        let family = self.registers.family();
        let word = self.memory.read_pointer(here.stack_pointer, family.word_size()).ok()?;
        let address = self.strip(Avma::new(word));
        if !self.may_be_return_address(address) {
            return None;
        }
        let mut registers = self.registers;
        registers.set(family.sp(), here.stack_pointer.checked_add(family.word_size().into())?.get());
        // Where no code can be, nothing has run since the call that pushed the word.
        let is_certain = here.address.raw().get() < LOWEST && self.before(address) == Before::Call;
        let trust = if is_certain { Trust::Analysis } else { Trust::Scan };
        Some(self.next_frame(registers, address, trust))
    }

    /// Whether code lies there, and a call before it where that can be told: for a word that is in the right place.
    fn may_be_return_address(&self, address: Avma) -> bool {
        self.is_code(address) == Some(true) && self.before(address) != Before::Other
    }

    pub(super) fn next_frame(&self, registers: Registers, address: Avma, trust: Trust) -> Next {
        let address = FrameAddress::Return(address);
        Next { registers, address, trust, is_after_signal: false, bytecode: None, is_odd: false }
    }

    fn by_frame_pointer(&self, here: &Here) -> Option<Next> {
        let family = self.registers.family();
        arch::frame_pointer_rows(family).iter().find_map(|row| self.by_frame_pointer_row(here, row))
    }

    /// A frame pointer is believed if it is aligned, lies in the stack and no lower than the stack pointer, and leads
    /// to a return address behind a call. The caller's frame pointer either lies further up or is no frame pointer.
    fn by_frame_pointer_row(&self, here: &Here, row: &Row) -> Option<Next> {
        let family = self.registers.family();
        let Cfa::RegisterOffset(register, _) = row.cfa else { return None };
        let fp = self.registers.get(register)?;
        let sp = here.stack_pointer;
        let aligned = fp % u64::from(family.word_size()) == 0;
        if !aligned || !self.stack_above(sp).contains(Avma::new(fp)) {
            return None;
        }
        let caller = execute::apply(row, &self.registers, self.memory, <_>::default(), |_| None).ok()?;
        let address = self.strip(caller.return_address?);
        let above = caller.registers.sp()?;
        let is_called = self.is_code(address)? && self.before(address) != Before::Other;
        let is_caller = is_called
            || self.is_signal_return(address, above)
            || self.is_chain_in_generated_code(row, fp, address, &caller.registers);
        if above <= sp || !is_caller {
            return None;
        }
        let mut registers = self.forget_all_but_pointers(&caller.registers);
        match caller.registers.get(register) {
            Some(outer) if outer > fp || outer == 0 => registers.set(register, outer),
            _ => registers.clear(register),
        }
        Some(self.next_frame(registers, address, Trust::FramePointer))
    }

    /// Where the rest of the stack may be.
    pub(super) fn stack_above(&self, sp: Avma) -> AddrRange<Avma> {
        match self.options.stack.filter(|stack| stack.contains(sp)) {
            Some(stack) => AddrRange::new(sp, stack.end()),
            None => AddrRange::from_size(sp, MAX_FRAME),
        }
    }

    /// Methods that do not know the callee's frame do not know what it saved.
    pub(super) fn forget_all_but_pointers(&self, registers: &Registers) -> Registers {
        let family = registers.family();
        let mut kept = Registers::new(family);
        for register in [Some(family.sp()), Some(family.fp()), family.lr()].into_iter().flatten() {
            if let Some(value) = registers.get(register) {
                kept.set(register, value);
            }
        }
        kept
    }
}
