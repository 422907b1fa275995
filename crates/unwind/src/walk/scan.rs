//! Scanning: words on the stack that look like return addresses. What comes out is a guess.

use super::fallback::Before;
use super::{Failure, Here, Next, Site, Walk};
use crate::execute;
use backtrail_core::{Avma, ReadMemory, Trust};

/// How many frames may be found by scanning: in all, and without one between them that was found otherwise.
const MAX_SCANNED: u8 = 8;
const MAX_SCANNED_IN_A_ROW: u8 = 3;

impl<'a, M: ReadMemory + ?Sized> Walk<'a, M> {
    /// The first of `words` on the stack that is the address behind a call. A word that points to code which is missing
    /// may be one too, and nothing tells: what lies behind it would leave out its frames, so the walk fails there.
    pub(super) fn by_scan(&self, here: &Here, site: &Site<'a>) -> Result<Option<Next>, Failure> {
        let words = self.options.scan_words;
        if words > 0 && (self.scanned >= MAX_SCANNED || self.scanned_in_a_row >= MAX_SCANNED_IN_A_ROW) {
            return Err(Failure::NothingCertain(site.lookup));
        }
        let family = self.registers.family();
        let size = family.word_size();
        let sp = here.stack_pointer;
        let range = self.stack_above(sp);
        let places = (0..words).map_while(|index| sp.checked_add(u64::from(index) * u64::from(size)));
        for place in places.take_while(|place| range.contains(*place)) {
            let Ok(word) = self.memory.read_pointer(place, size) else { break };
            let address = self.strip(Avma::new(word));
            let above = place.get().saturating_add(size.into());
            if self.is_signal_return(address, Avma::new(above)) {
                return Ok(self.found_at(place, address));
            }
            match self.before(address) {
                _ if self.is_code(address) != Some(true) => {}
                Before::Call if !self.may_be_caller(here, place, address) => {}
                Before::Call => return Ok(self.found_at(place, address)),
                // The frame's own address, left behind by whatever led here: its caller is another one.
                Before::Missing if address == self.strip(here.address.raw()) => {
                    return Err(Failure::NothingCertain(site.lookup));
                }
                Before::Missing => return Err(Failure::MissingCode(address)),
                Before::Other | Before::Emptied => {}
            }
        }
        Ok(None)
    }

    /// Whether a word that looks like a return address can be the caller's: a call of code in another image leads there by
    /// a stub or a register, and where a table covers the call, it must lead on to another one.
    fn may_be_caller(&self, here: &Here, place: Avma, address: Avma) -> bool {
        let target = self.direct_target(address);
        let around = self.image_at(here.address.raw());
        let is_elsewhere = target
            .zip(around)
            .is_some_and(|(target, around)| !around.range.contains(target) && !self.is_stub(target));
        !is_elsewhere && !self.is_contradicted(place, address)
    }

    /// Whether the table at a return address found at `place` leads to what is no caller.
    fn is_contradicted(&self, place: Avma, address: Avma) -> bool {
        let Some(call) = address.checked_sub(1) else { return true };
        let Some(image) = self.image_at(call) else { return false };
        let found = image.bias.to_svma(call).and_then(|svma| match (image.rules, image.module) {
            (Some(rules), _) => rules.find(svma),
            (None, module) => module?.find(svma).ok(),
        });
        let next = found.zip(self.found_at(place, address));
        let Some((found, next)) = next else { return false };
        match execute::apply(&found.row, &next.registers, self.memory, image.bias, |_| None) {
            Ok(caller) => caller.return_address.is_some_and(|address| {
                let address = self.strip(address);
                let above = caller.registers.sp().unwrap_or_default();
                let is_caller = self.is_code(address) == Some(true) && self.before(address) != Before::Other;
                address.get() != 0 && !is_caller && !self.is_signal_return(address, above)
            }),
            Err(Failure::Unreadable(_)) => true,
            Err(_) => false,
        }
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
        Some(self.next_frame(registers, address, Trust::Scan))
    }
}
