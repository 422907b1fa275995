//! Code that was generated at run time: it lies in executable memory that belongs to no image, and has no tables.

use super::fallback::CALL_BYTES;
use super::{Here, Next, Options, Recover, Site, Walk};
use crate::arch;
use crate::code::Code;
use crate::row::{Cfa, Row};
use crate::sections::Section;
use backtrail_core::{AddrRange, Avma, Bias, Family, FrameAddress, ReadMemory, Registers, Svma};

/// How many frames of generated code are followed to where they were entered from an image.
const MAX_CHAIN: u64 = 1 << 16;

impl<'a, M: ReadMemory + ?Sized> Walk<'a, M> {
    /// The caller of code that was generated at run time, by following the code to the return, which is read from the
    /// target's memory. What enters it need not be a call, but lies in executable memory.
    #[inline(never)]
    pub(super) fn by_return_path_of_generated_code(&self, here: &Here, site: &Site<'a>) -> Option<Next> {
        const SOME: usize = 16 << 10;
        const MUCH: usize = 64 << 10;
        let image = site.image.filter(|image| image.module.is_none() && image.rules.is_none())?;
        let at = if site.is_exact { site.lookup } else { site.lookup.checked_add(1)? };
        let family = self.registers.family();
        let by_path = |code: &Code<'_>| arch::by_return_path(family, code, true);
        let row = self.with_generated_code::<SOME>(at, image.range, by_path).or_else(|| {
            // Of large methods what leads to the return may be far away.
            let by_any = |code: &Code<'_>| by_path(code).or_else(|| arch::frame_of_generated(family, code));
            self.with_generated_code::<MUCH>(at, image.range, by_any)
        })?;
        // A part of the code that calls another part of it is no function that calls another.
        let is_called = |address| {
            !self.is_call_over_jump(address)
                && (self.is_generated(address) || self.may_enter_generated_code(address))
        };
        let apply = |here: &Here, registers: &Registers| {
            self.by_return_path_row(here, registers, site, &row, Bias::default(), is_called)
        };
        // Where an adapter has been, what lies that much further in is left over from earlier calls.
        let behind_adapter = self.before_adapter(here).and_then(|stack_pointer| {
            let mut registers = self.registers;
            registers.set(self.registers.family().sp(), stack_pointer.get());
            apply(&Here { stack_pointer, ..*here }, &registers)
        });
        behind_adapter.or_else(|| apply(here, &self.registers))
    }

    /// Reads the code around an address, most of it ahead, or else of its page.
    // A function of its own for the bytes that it takes of the stack: where walks run in signal handlers, generated code is
    // in no image.
    #[inline(never)]
    fn with_generated_code<const SIZE: usize>(
        &self,
        at: Avma,
        range: AddrRange<Avma>,
        find: impl Fn(&Code<'_>) -> Option<Row>,
    ) -> Option<Row> {
        const PAGE: u64 = 4 << 10;
        let mut bytes = [0; SIZE];
        let mut read = |behind: u64, ahead: u64| {
            let start = Avma::new(at.get().saturating_sub(behind)).max(range.start());
            let end = Avma::new(at.get().saturating_add(ahead)).min(range.end());
            let size = usize::try_from(end.offset_from(start)?).ok()?;
            self.memory.read(start, bytes.get_mut(..size)?).ok()?;
            Some((start, size))
        };
        let (behind, within) = (SIZE as u64 / 8 * 3, at.get() % PAGE);
        let (start, size) = read(behind, SIZE as u64 - behind).or_else(|| read(within, PAGE - within))?;
        let svma = |avma: Avma| Svma::new(avma.get());
        let text = Section::new(svma(start), bytes.get(..size)?);
        find(&Code { text, at: svma(at), function: None, thumb: false, is_described: false })
    }

    /// Whether a call lies before an address of an image that can lead to generated code: through a register, memory or a
    /// stub, not to what is in an image.
    fn may_enter_generated_code(&self, address: Avma) -> bool {
        self.is_return_address(address)
            && self.direct_target(address).is_none_or(|target| {
                self.is_stub(target) || self.images.at(target).is_none_or(|image| image.module.is_none())
            })
    }

    /// The stack pointer of compiled code that called what is interpreted, where an adapter has put arguments between their
    /// frames: HotSpot's interpreter keeps it below the frame pointer that it has saved.
    fn before_adapter(&self, here: &Here) -> Option<Avma> {
        /// A method has 255 arguments at most.
        const MOST: u64 = 256 * WORD;
        const WORD: u64 = 8;
        if self.registers.family() != Family::X86_64 || self.chained != Some(here.address) {
            return None;
        }
        // Below the stack pointer: the return address, the frame pointer, the caller's stack pointer.
        let kept = here.stack_pointer.checked_sub(3 * WORD)?;
        let kept = Avma::new(self.memory.read_u64(kept).ok()?);
        let distance = kept.offset_from(here.stack_pointer)?;
        ((1..=MOST).contains(&distance) && distance.is_multiple_of(WORD)).then_some(kept)
    }

    /// Whether the call before an address goes behind the jump that lies there: HotSpot's interpreter calls out so.
    fn is_call_over_jump(&self, address: Avma) -> bool {
        let mut copy = [0; CALL_BYTES];
        let code = self.code_from(address, self.images.at(address), &mut copy);
        let jump = match code {
            Some([0xeb, ..]) => 2,
            Some([0xe9, ..]) => 5,
            _ => return false,
        };
        self.direct_target(address).is_some_and(|target| target.offset_from(address) == Some(jump))
    }

    /// Whether `address`, which no call precedes, lies in code that was generated at run time, and the frames from the
    /// caller on lead outwards, through executable memory only, back to a call in an image. Interpreters enter what they
    /// run by jumps through tables and push return addresses of their own: so does HotSpot's. What they run may be
    /// compiled: such frames need not have a frame pointer, and are left by their code.
    pub(super) fn is_chain_in_generated_code(
        &self,
        row: &Row,
        fp: u64,
        address: Avma,
        caller: &Registers,
    ) -> bool {
        if !self.is_generated(address) {
            return false;
        }
        let is_known = self.known_chain.get().contains(Avma::new(fp));
        if self.is_trial || is_known {
            return true;
        }
        let Cfa::RegisterOffset(register, _) = row.cfa else { return false };
        let whole = self.stack_above(Avma::new(fp));
        if !caller.get(register).is_some_and(|next| next > fp && whole.contains(Avma::new(next))) {
            return false;
        }
        let Some(last) = self.leads_back_to_an_image(address, whole, caller) else { return false };
        // Each frame on the way has been looked at, and need not be once more.
        self.known_chain.set(AddrRange::new(Avma::new(fp), last));
        true
    }

    /// The stack pointer of the first frame of an image, where frames of generated code lead from `address` to a call there
    /// without a guess.
    // A function of its own: the walk takes some bytes of the stack.
    #[inline(never)]
    fn leads_back_to_an_image(
        &self,
        address: Avma,
        stack: AddrRange<Avma>,
        caller: &Registers,
    ) -> Option<Avma> {
        let options = Options {
            max_frames: MAX_CHAIN,
            stack: Some(stack),
            scan_words: 0,
            recover: Recover::All,
            ..self.options
        };
        let mut walk = Walk::new(self.forget_all_but_pointers(caller), self.memory, self.images, options);
        let address = FrameAddress::Return(address);
        (walk.at, walk.chained, walk.is_trial) = (Some(address), Some(address), true);
        for frame in walk {
            let address = frame.address.raw();
            if !self.is_generated(address) {
                return self.may_enter_generated_code(address).then_some(frame.stack_pointer);
            }
        }
        None
    }

    /// Whether executable memory lies there that belongs to no image.
    pub(super) fn is_generated(&self, address: Avma) -> bool {
        let before = Avma::new(address.get().saturating_sub(1));
        self.images.at(before).is_some_and(|image| image.module.is_none() && image.rules.is_none())
    }
}
