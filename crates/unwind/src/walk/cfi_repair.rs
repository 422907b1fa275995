//! Tables that are wrong by what they say themselves.

use super::{Site, Walk};
use crate::execute::ABOVE_CFA;
use crate::row::{Cfa, CoveredRow, Row, Rule};
use backtrail_core::{Avma, Family, ReadMemory, Trust};

impl<M: ReadMemory + ?Sized> Walk<'_, M> {
    /// On x86 the return address lies right below the CFA and not below the stack pointer: a CFA nearer to the stack
    /// pointer than one word is wrong. Seen in glibc's assembly for i386 (`sysdeps/i386/i586/strchr.S` and others),
    /// which takes each push away from the CFA instead of adding it: words above the return address become words below.
    ///
    /// The pushes and pops that lead there from the function's start tell how far it really is, where they can be followed.
    /// Else the mirrored distance is taken if it leads to the address behind a call: there the places of saved registers
    /// are right, since they are stated from the stack pointer. Else the row stays, and the walk fails by it: where the
    /// caller is, is not known.
    pub(super) fn repair(&self, found: &mut CoveredRow, site: &Site<'_>) {
        if let Some(row) = self.behind_linkage_table(found, site) {
            found.row = row;
            return;
        }
        let family = self.registers.family();
        let word = i32::from(family.word_size());
        let row = &found.row;
        let Cfa::RegisterOffset(base, offset) = row.cfa else { return };
        let is_wrong = family.lr().is_none() && base == family.sp() && offset < word;
        if !is_wrong || row.is_signal_frame || row.return_address != Rule::Offset(-word) {
            return;
        }
        let module = site.image.and_then(|image| image.module).filter(|_| site.is_exact);
        let by_depth = module.zip(site.svma).and_then(|(module, svma)| module.find_by_stack_depth(svma));
        let mirrored = (2 * word).saturating_sub(offset);
        if let Some(row) = by_depth {
            (found.row, found.trust) = (row, Trust::Analysis);
        } else if self.returns_by(mirrored - word) {
            self.move_cfa(&mut found.row, offset, mirrored);
            found.trust = Trust::Scan;
        }
    }

    /// The row of the next instruction, at the first of `_dl_runtime_resolve` for aarch64: only from there on glibc's table
    /// says that the return address lies above the CFA, where the linkage table has pushed it. It still is in the link
    /// register, too.
    fn behind_linkage_table(&self, found: &CoveredRow, site: &Site<'_>) -> Option<Row> {
        let family = self.registers.family();
        let lr = family.lr().filter(|_| site.is_exact && family == Family::Aarch64)?;
        let is_first = found.covered.start() == site.svma?
            && found.row.cfa == Cfa::RegisterOffset(family.sp(), 0)
            && found.row.return_address == Rule::Register(lr);
        let next = site.image?.module.filter(|_| is_first)?.find(found.covered.end()).ok()?.row;
        let pushed = || {
            let place = self.registers.sp()?.checked_add(8)?;
            self.memory.read_u64(place).ok().filter(|pushed| Some(*pushed) == self.registers.get(lr))
        };
        (next.cfa == found.row.cfa && next.return_address == ABOVE_CFA && pushed().is_some()).then_some(next)
    }

    /// Whether so many bytes above the stack pointer lies the address behind a call.
    fn returns_by(&self, offset: i32) -> bool {
        let Some(sp) = self.registers.sp() else { return false };
        let place = Avma::new(sp.get().wrapping_add_signed(offset.into()));
        let address = self.memory.read_pointer(place, self.registers.family().word_size());
        address.is_ok_and(|address| self.is_return_address(Avma::new(address)))
    }

    fn move_cfa(&self, row: &mut Row, from: i32, to: i32) {
        let distance = to.saturating_sub(from);
        let stated = *row;
        for (register, rule) in stated.rules() {
            if let Rule::Offset(at) = rule {
                row.set(register, Rule::Offset(at.saturating_sub(distance)));
            }
        }
        let family = self.registers.family();
        row.set(family.pc(), row.return_address);
        row.cfa = Cfa::RegisterOffset(family.sp(), to);
    }
}
