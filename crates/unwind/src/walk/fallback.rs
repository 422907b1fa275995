//! What leads on where no table does: signal frames by their code, the link register, frame pointers, scanning.

use super::{End, Failure, Here, Next, Site, Walk};
use crate::arch;
use crate::execute;
use crate::image::Image;
use crate::row::{Cfa, Row};
use backtrail_core::{AddrRange, Avma, Family, FrameAddress, ReadMemory, Registers, Trust};

type Found = Result<Result<Next, End>, Failure>;

/// How far above the stack pointer a frame pointer may lie where the stack's bounds are not known: no function has a
/// larger frame on a stack of the usual eight megabytes.
const MAX_FRAME: u64 = 8 << 20;

/// How many bytes in front of a return address a call instruction is looked for in.
const CALL_BYTES: usize = 16;

/// What lies before a return address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Call,
    /// Code that is no call.
    Other,
    /// Bytes that someone has cleared.
    Emptied,
    /// Nothing that could be read.
    Missing,
}

impl<'a, M: ReadMemory + ?Sized> Walk<'a, M> {
    /// Everything after the tables. `failure` is why they did not lead on; only where they had nothing to say, or
    /// nothing that makes sense, is anything else tried: a frame too many is as bad as one too few.
    pub(super) fn without_tables(&self, here: &Here, site: &Site<'a>, failure: Failure) -> Found {
        if matches!(failure, Failure::Unreadable(_) | Failure::NotAdvancing(_)) {
            return Err(failure);
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
        self.by_scan(here, self.options.scan_words)?.map_or(Err(failure), |next| Ok(Ok(next)))
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
    pub(super) fn by_signal_frame(&self, here: &Here, image: Option<&Image<'a>>) -> Option<Next> {
        let family = self.registers.family();
        let mut copy = [0; CALL_BYTES];
        let ahead = self.code_from(here.address.raw(), image, &mut copy)?;
        let word = |at| self.memory.read_u32(at).ok();
        let row = arch::signal_frame(family, ahead, self.registers.sp()?, &word)?;
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

    /// Code of the image, or else of the target's memory; the Thumb bit is no part of the address.
    fn code_from<'c>(
        &self,
        at: Avma,
        image: Option<&Image<'a>>,
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
        let Some(image) = self.images.at(before) else { return Some(false) };
        let module = image.module.zip(image.bias.to_svma(before));
        Some(module.is_none_or(|(module, svma)| module.has_code_at(svma)))
    }

    /// What the bytes before a return address are.
    fn before(&self, address: Avma) -> Before {
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
        } else if arch::follows_call(family, before, address) {
            Before::Call
        } else {
            Before::Other
        }
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
        if !moves || !self.may_be_return_address(address) {
            return None;
        }
        Some(self.next(self.registers, address, Trust::LinkRegister))
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
        Some(self.next(registers, address, Trust::Scan))
    }

    /// Whether code lies there, and a call before it where that can be told: for a word that is in the right place.
    fn may_be_return_address(&self, address: Avma) -> bool {
        self.is_code(address) == Some(true) && self.before(address) != Before::Other
    }

    fn next(&self, registers: Registers, address: Avma, trust: Trust) -> Next {
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
        let believed = self.is_code(address)? && self.before(address) != Before::Other;
        if !believed || caller.registers.sp()? <= sp {
            return None;
        }
        let mut registers = self.forget_all_but_pointers(&caller.registers);
        match caller.registers.get(register) {
            Some(outer) if outer > fp || outer == 0 => registers.set(register, outer),
            _ => registers.clear(register),
        }
        Some(self.next(registers, address, Trust::FramePointer))
    }

    /// Where the rest of the stack may be.
    fn stack_above(&self, sp: Avma) -> AddrRange<Avma> {
        match self.options.stack.filter(|stack| stack.contains(sp)) {
            Some(stack) => AddrRange::new(sp, stack.end()),
            None => AddrRange::from_size(sp, MAX_FRAME),
        }
    }

    /// Methods that do not know the callee's frame do not know what it saved.
    fn forget_all_but_pointers(&self, registers: &Registers) -> Registers {
        let family = registers.family();
        let mut kept = Registers::new(family);
        for register in [Some(family.sp()), Some(family.fp()), family.lr()].into_iter().flatten() {
            if let Some(value) = registers.get(register) {
                kept.set(register, value);
            }
        }
        kept
    }

    /// The first of `words` on the stack that is the address behind a call. A word that points to code which is missing
    /// may be one too, and nothing tells: what lies behind it would leave out its frames, so the walk fails there.
    fn by_scan(&self, here: &Here, words: u32) -> Result<Option<Next>, Failure> {
        let family = self.registers.family();
        let size = family.word_size();
        let sp = here.stack_pointer;
        let range = self.stack_above(sp);
        let places = (0..words).map_while(|index| sp.checked_add(u64::from(index) * u64::from(size)));
        for place in places.take_while(|place| range.contains(*place)) {
            let Ok(word) = self.memory.read_pointer(place, size) else { break };
            let address = self.strip(Avma::new(word));
            if self.is_code(address) != Some(true) {
                continue;
            }
            match self.before(address) {
                Before::Call => return Ok(self.found_at(place, address)),
                Before::Missing => return Err(Failure::MissingCode(address)),
                Before::Other | Before::Emptied => {}
            }
        }
        Ok(None)
    }

    /// The caller whose return address was found at `place`.
    fn found_at(&self, place: Avma, address: Avma) -> Option<Next> {
        let family = self.registers.family();
        let mut registers = self.forget_all_but_pointers(&self.registers);
        let above = place.checked_add(family.word_size().into())?;
        registers.set(family.sp(), above.get());
        if registers.fp().is_some_and(|fp| fp < above) {
            registers.clear(family.fp());
        }
        Some(self.next(registers, address, Trust::Scan))
    }
}
