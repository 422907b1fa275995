//! Code that was generated at run time: it lies in executable memory that belongs to no image, and has no tables.

use super::fallback::CALL_BYTES;
use super::{Here, Next, Site, Walk};
use crate::arch;
use crate::code::Code;
use crate::execute;
use crate::row::{Cfa, Row};
use crate::sections::Section;
use backtrail_core::{AddrRange, Avma, Bias, Family, ReadMemory, Registers, Svma};

/// How many frames of generated code are followed to where they were entered from an image.
const MAX_CHAIN: u32 = 1 << 16;

impl<'a, M: ReadMemory + ?Sized> Walk<'a, M> {
    /// The caller of code that was generated at run time, by following the code to the return, which is read from the target's memory. What enters it need not be
    /// a call, but lies in executable memory.
    // A function of its own for the bytes that it takes of the stack: where walks run in signal handlers, generated code is
    // in no image.
    #[inline(never)]
    pub(super) fn by_return_path_of_generated_code(&self, here: &Here, site: &Site<'a>) -> Option<Next> {
        const BEHIND: u64 = 6 << 10;
        const AHEAD: u64 = 10 << 10;
        const PAGE: u64 = 4 << 10;
        let image = site.image.filter(|image| image.module.is_none() && image.rules.is_none())?;
        let at = if site.is_exact { site.lookup } else { site.lookup.checked_add(1)? };
        let mut bytes = [0; (BEHIND + AHEAD) as usize];
        let mut read = |behind: u64, ahead: u64| {
            let start = Avma::new(at.get().saturating_sub(behind)).max(image.range.start());
            let end = Avma::new(at.get().saturating_add(ahead)).min(image.range.end());
            let size = usize::try_from(end.offset_from(start)?).ok()?;
            self.memory.read(start, bytes.get_mut(..size)?).ok()?;
            Some((start, size))
        };
        let within = at.get() % PAGE;
        let (start, size) = read(BEHIND, AHEAD).or_else(|| read(within, PAGE - within))?;
        let svma = |avma: Avma| Svma::new(avma.get());
        let text = Section::new(svma(start), bytes.get(..size)?);
        let code = Code { text, at: svma(at), function: None, thumb: false, is_described: false };
        let row = arch::by_return_path(self.registers.family(), &code, true);
        let row = row.or_else(|| arch::frame_of_generated(self.registers.family(), &code))?;
        // A part of the code that calls another part of it is no function that calls another.
        let is_called = |address| {
            !self.is_call_over_jump(address)
                && (self.is_generated(address) || self.is_return_address(address))
        };
        let apply = |here: &Here, registers: &Registers| {
            self.by_return_path_row(here, registers, site, &row, Bias::default(), is_called)
        };
        apply(here, &self.registers).or_else(|| {
            let stack_pointer = self.before_adapter(here)?;
            let mut registers = self.registers;
            registers.set(self.registers.family().sp(), stack_pointer.get());
            apply(&Here { stack_pointer, ..*here }, &registers)
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

    /// Whether `address`, which no call precedes, lies in code that was generated at run time, and the chain of frame
    /// pointers from the caller on leads outwards, through executable memory only, back to a call in an image.
    /// Interpreters enter what they run by jumps through tables and push return addresses of their own: so does HotSpot's.
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
        if self.known_chain.get().contains(Avma::new(fp)) {
            return true;
        }
        let Cfa::RegisterOffset(register, _) = row.cfa else { return false };
        let word = u64::from(self.registers.family().word_size());
        let (mut last, mut registers) = (fp, self.forget_all_but_pointers(caller));
        for _ in 0..MAX_CHAIN {
            let next = registers.get(register).filter(|next| *next > last && *next % word == 0);
            let Some(next) = next.filter(|next| self.stack_above(Avma::new(fp)).contains(Avma::new(*next)))
            else {
                return false;
            };
            let outer = execute::apply(row, &registers, self.memory, <_>::default(), |_| None).ok();
            let Some((outer, found)) = outer.and_then(|outer| Some((outer, outer.return_address?))) else {
                return false;
            };
            let found = self.strip(found);
            if !self.is_generated(found) {
                // Each frame on the way has been looked at, and need not be once more.
                let whole = AddrRange::new(Avma::new(fp), Avma::new(next));
                let is_known = self.is_return_address(found);
                self.known_chain.set(if is_known { whole } else { self.known_chain.get() });
                return is_known;
            }
            (last, registers) = (next, self.forget_all_but_pointers(&outer.registers));
        }
        false
    }

    /// Whether executable memory lies there that belongs to no image.
    pub(super) fn is_generated(&self, address: Avma) -> bool {
        let before = Avma::new(address.get().saturating_sub(1));
        self.images.at(before).is_some_and(|image| image.module.is_none() && image.rules.is_none())
    }
}
