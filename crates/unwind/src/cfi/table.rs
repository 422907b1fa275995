//! One section of call frame information: its entries, and the search for one by address.

use super::cursor::{Cursor, Result};
use super::entry::{self, Cie, Fde, Flavour, Head, Kind};
use super::header::Header;
use super::pointer::Bases;
use super::program::{Program, Setting};
use crate::row::{CoveredRow, Expression, Malformed, Miss, Row};
use crate::sections::{Section, Sections};
use alloc::vec::Vec;
use backtrail_core::{AddrRange, Family, Svma, Trust};

/// One `.eh_frame` or `.debug_frame`.
#[derive(Debug)]
pub struct Frames<'d> {
    section: Section<'d>,
    sections: Sections<'d>,
    flavour: Flavour,
    /// The table's number in expressions.
    number: u8,
    search: Search<'d>,
}

#[derive(Debug)]
enum Search<'d> {
    /// The file's own table.
    Header(Header<'d>),
    /// Ours, where the file has none or one that lies: sorted by the first address.
    Index(Vec<FdeEntry>),
}

#[derive(Clone, Copy, Debug)]
struct FdeEntry {
    start: u64,
    /// The highest end of this and all earlier FDEs, so that a search knows when to stop looking further back.
    reach: u64,
    offset: u32,
}

/// How many pairs of the header are held against the section before it is believed.
const SAMPLES: usize = 32;
/// How many FDEs that overlap are looked at.
const MAX_OVERLAP: usize = 64;

impl<'d> Frames<'d> {
    /// The section, ready for searching; `None` where the file has none.
    pub fn new(sections: &Sections<'d>, flavour: Flavour) -> Option<Self> {
        Self::numbered(sections, flavour, 0)
    }

    pub(crate) fn numbered(sections: &Sections<'d>, flavour: Flavour, number: u8) -> Option<Self> {
        let section = match flavour {
            Flavour::EhFrame => sections.eh_frame,
            Flavour::DebugFrame => sections.debug_frame,
        };
        let section = section.filter(|section| !section.data.is_empty())?;
        let mut frames =
            Self { section, sections: sections.clone(), flavour, number, search: Search::Index(Vec::new()) };
        let header = sections.eh_frame_hdr.filter(|_| flavour == Flavour::EhFrame);
        let header = header.and_then(|header| Header::new(&header, sections).ok());
        frames.search = match header.filter(|header| frames.believes(header)) {
            Some(header) => Search::Header(header),
            None => Search::Index(frames.index()),
        };
        Some(frames)
    }

    /// Whether a sample of the header's pairs ascends and points to FDEs that start where it says. Headers that lie
    /// were seen on Android: written by a tool that moved the section and not its header.
    fn believes(&self, header: &Header<'d>) -> bool {
        let count = header.count();
        if count == 0 {
            return false;
        }
        let mut last = None;
        (0..count).step_by((count / SAMPLES).max(1)).chain([count - 1]).all(|index| {
            let Some((start, place)) = header.pair(index) else { return false };
            let ascends = last.is_none_or(|last| start >= last);
            last = Some(start);
            ascends && self.fde_at(place).is_ok_and(|fde| fde.range.start() == start)
        })
    }

    fn bases(&self) -> Bases<'_, 'd> {
        Bases::new(&self.sections)
    }

    fn cursor(&self) -> Cursor<'d> {
        Cursor::new(self.section.start, self.section.data)
    }

    /// Every entry in the order of the section. After an entry that is broken the next is read, if the broken one's
    /// length allows.
    pub fn entries(&self) -> Entries<'_, 'd> {
        Entries { frames: self, cursor: self.cursor(), cie: None }
    }

    /// The FDE at an offset in the section.
    pub fn fde(&self, offset: usize) -> core::result::Result<Fde, Malformed> {
        let mut cursor = self.cursor();
        cursor.seek(offset)?;
        let head = entry::head(&mut cursor, self.flavour)?;
        let Kind::Fde(cie) = head.kind else { return Err(cursor.fault("an FDE")) };
        self.complete(&head, self.cie(cie)?)
    }

    fn cie(&self, offset: usize) -> Result<Cie> {
        let mut cursor = self.cursor();
        cursor.seek(offset)?;
        entry::cie(&mut cursor, self.flavour, &self.bases())
    }

    fn complete(&self, head: &Head, cie: Cie) -> Result<Fde> {
        entry::fde(&self.cursor(), head, cie, &self.bases())
    }

    fn fde_at(&self, place: Svma) -> Result<Fde> {
        let offset = place.offset_from(self.section.start).and_then(|offset| usize::try_from(offset).ok());
        self.fde(offset.unwrap_or(usize::MAX))
    }

    /// The FDE that covers `at`.
    pub fn find_fde(&self, at: Svma) -> core::result::Result<Fde, Miss> {
        match &self.search {
            Search::Index(places) => self.find_in(places, at),
            Search::Header(header) => self.find_by_header(header, at),
        }
    }

    /// The FDE that starts last before `at`. Where that one is empty (compilers make functions of no bytes out of code
    /// that cannot be reached) the next function starts at the same address, and of the two LLD lists only one.
    fn find_by_header(&self, header: &Header<'d>, at: Svma) -> core::result::Result<Fde, Miss> {
        for (start, place) in header.before(at).take(MAX_OVERLAP) {
            match self.fde_at(place) {
                Ok(fde) if fde.range.start() != start => return self.find_by_reading_all(at),
                Ok(fde) if fde.range.contains(at) => return Ok(fde),
                Ok(fde) if fde.range.is_empty() => {
                    if let Some(twin) = self.find_behind(&fde, at) {
                        return Ok(twin);
                    }
                }
                // Honest: `at` lies behind the function.
                Ok(_) => return Err(Miss::NotCovered),
                // The sample was right and this pair lies.
                Err(_) => return self.find_by_reading_all(at),
            }
        }
        Err(Miss::NotCovered)
    }

    /// Looks among the next few entries of the section.
    fn find_behind(&self, fde: &Fde, at: Svma) -> Option<Fde> {
        let mut cursor = self.cursor();
        cursor.seek(fde.offset).ok()?;
        let entries = Entries { frames: self, cursor, cie: Some(fde.cie) };
        let fdes = entries.take(MAX_OVERLAP).filter_map(|entry| match entry {
            Entry::Fde(fde) => Some(fde),
            _ => None,
        });
        fdes.into_iter().find(|fde| fde.range.contains(at))
    }

    fn find_by_reading_all(&self, at: Svma) -> core::result::Result<Fde, Miss> {
        let fdes = self.entries().filter_map(|entry| match entry {
            Entry::Fde(fde) => Some(fde),
            _ => None,
        });
        fdes.into_iter().find(|fde| fde.range.contains(at)).ok_or(Miss::NotCovered)
    }

    fn find_in(&self, places: &[FdeEntry], at: Svma) -> core::result::Result<Fde, Miss> {
        let before = places.partition_point(|place| place.start <= at.get());
        let candidates = places.get(..before).unwrap_or_default().iter().rev();
        let reaching = candidates.take_while(|place| place.reach > at.get()).take(MAX_OVERLAP);
        let found = reaching.filter_map(|place| self.fde(place.offset as usize).ok());
        found.into_iter().find(|fde| fde.range.contains(at)).ok_or(Miss::NotCovered)
    }

    /// Sorts the FDEs by their first address. FDEs of code that the linker dropped start at zero or at all ones
    /// (and `.debug_frame`'s at one): they cover nothing.
    fn index(&self) -> Vec<FdeEntry> {
        let mut places = Vec::new();
        let highest = self.bases().wrap(u64::MAX - 1);
        for entry in self.entries() {
            let Entry::Fde(fde) = entry else { continue };
            let (start, end) = (fde.range.start().get(), fde.range.end().get());
            let dropped =
                start == 0 && !self.sections.text.iter().any(|text| text.range().contains(Svma::new(0)));
            if let (false, false, Ok(offset)) =
                (dropped || start >= highest, fde.range.is_empty(), u32::try_from(fde.offset))
            {
                places.push(FdeEntry { start, reach: end, offset });
            }
        }
        places.sort_by_key(|place| place.start);
        let mut reach = 0;
        for place in &mut places {
            reach = reach.max(place.reach);
            place.reach = reach;
        }
        places
    }

    /// Every FDE that covers code, by address; of one that overlaps an earlier one, as it is.
    pub(crate) fn sorted_fdes(&self) -> Vec<Fde> {
        let mut fdes: Vec<Fde> = self
            .entries()
            .filter_map(|entry| match entry {
                Entry::Fde(fde) if !fde.range.is_empty() => Some(fde),
                _ => None,
            })
            .collect();
        fdes.sort_by_key(|fde| fde.range.start());
        fdes
    }

    fn setting(&self) -> Setting<'_, 'd> {
        let family = self.sections.arch.map_or(Family::Other, backtrail_core::Arch::family);
        let is_i386 = family == Family::X86;
        Setting {
            registers: u8::try_from(family.register_names().len()).unwrap_or(0),
            bases: self.bases(),
            section: self.cursor(),
            table: self.number,
            swaps_4_and_5: is_i386 && self.sections.is_mach_o && self.flavour == Flavour::EhFrame,
        }
    }

    fn program(&self, fde: &Fde) -> Result<Program<'_, 'd>> {
        let mut setting = self.setting();
        setting.bases.function = Some(fde.range.start());
        Program::new(setting, *fde)
    }

    /// The FDE's rows, by address.
    pub fn rows(&self, fde: &Fde) -> Rows<'_, 'd> {
        match self.program(fde) {
            Ok(program) => Rows { program: Some(program), fault: None },
            Err(fault) => Rows { program: None, fault: Some(fault) },
        }
    }

    /// Shows the FDE's rows to `see`, by address, without copying them. A program that breaks its format ends there.
    pub(crate) fn each_row(&self, fde: &Fde, mut see: impl FnMut(AddrRange<Svma>, &Row)) -> Result<()> {
        let mut program = self.program(fde)?;
        while let Some(range) = program.next()? {
            see(range, program.row());
        }
        Ok(())
    }

    /// The row at `at`.
    pub fn find(&self, at: Svma) -> core::result::Result<CoveredRow, Miss> {
        self.row_in(&self.find_fde(at)?, at)
    }

    /// The FDE's row at `at`.
    pub(crate) fn row_in(&self, fde: &Fde, at: Svma) -> core::result::Result<CoveredRow, Miss> {
        let mut program = self.program(fde)?;
        while let Some(covered) = program.next()? {
            if covered.contains(at) {
                return Ok(CoveredRow { row: *program.row(), trust: Trust::Cfi, covered });
            }
        }
        Err(Miss::NotCovered)
    }

    /// The bytes of an expression in one of this section's rows.
    pub fn expression(&self, expression: Expression) -> Option<&'d [u8]> {
        let start = expression.start as usize;
        self.section.data.get(start..)?.get(..usize::from(expression.length))
    }
}

/// One entry of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// What FDEs share.
    Cie(Cie),
    /// A function's unwind program.
    Fde(Fde),
    /// A length of zero, at this offset.
    Terminator(usize),
    /// Bytes that are no entry.
    Malformed(Malformed),
}

/// The entries of a section, in its order.
#[derive(Debug)]
pub struct Entries<'s, 'd> {
    frames: &'s Frames<'d>,
    cursor: Cursor<'d>,
    /// The CIE read last: FDEs that share one lie together.
    cie: Option<Cie>,
}

impl Entries<'_, '_> {
    fn read(&mut self) -> Result<Entry> {
        let start = self.cursor;
        let head = entry::head(&mut self.cursor, self.frames.flavour).inspect_err(|_| {
            // Without a length there is no way to the next entry.
            self.cursor.seek_end();
        })?;
        match head.kind {
            Kind::Terminator => Ok(Entry::Terminator(head.offset)),
            Kind::Cie => {
                let mut at = start;
                entry::cie(&mut at, self.frames.flavour, &self.frames.bases()).map(Entry::Cie)
            }
            Kind::Fde(offset) => {
                let cie = match self.cie.filter(|cie| cie.offset == offset) {
                    Some(cie) => cie,
                    None => self.frames.cie(offset)?,
                };
                self.cie = Some(cie);
                self.frames.complete(&head, cie).map(Entry::Fde)
            }
        }
    }
}

impl Iterator for Entries<'_, '_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if self.cursor.is_empty() {
            return None;
        }
        Some(self.read().unwrap_or_else(Entry::Malformed))
    }
}

/// The rows of one FDE, by address.
pub struct Rows<'s, 'd> {
    program: Option<Program<'s, 'd>>,
    fault: Option<Malformed>,
}

impl core::fmt::Debug for Rows<'_, '_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Rows").field("fault", &self.fault).finish_non_exhaustive()
    }
}

impl Iterator for Rows<'_, '_> {
    type Item = core::result::Result<(AddrRange<Svma>, Row), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(fault) = self.fault.take() {
            self.program = None;
            return Some(Err(fault));
        }
        let program = self.program.as_mut()?;
        match program.next() {
            Ok(range) => range.map(|range| Ok((range, *program.row()))),
            Err(fault) => {
                self.program = None;
                Some(Err(fault))
            }
        }
    }
}
