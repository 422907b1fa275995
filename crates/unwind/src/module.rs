//! All methods of one image that need no memory of the target: an address in, a row out.

use crate::arch;
use crate::cfi::{Flavour, Frames};
use crate::code::Code;
use crate::compact::{Compact, CompactFound};
use crate::exidx::Exidx;
use crate::row::{Cfa, CoveredRow, Expression, Miss, Row, Rule};
use crate::runtime::RuntimeFrame;
use crate::sections::{Section, Sections};
use alloc::vec::Vec;
use backtrail_core::{AddrRange, Family, Svma, Trust};

/// One image's tables, opened: headers, and an index where the file has no search table; entries are read when an
/// address asks for them.
#[derive(Debug)]
pub struct Module<'d> {
    family: Family,
    tables: Vec<Tables<'d>>,
}

/// The tables of one file; an image can have several (its own, its debug companion's, `.gnu_debugdata`'s).
#[derive(Debug)]
pub(crate) struct Tables<'d> {
    pub(crate) sections: Sections<'d>,
    pub(crate) eh_frame: Option<Frames<'d>>,
    pub(crate) debug_frame: Option<Frames<'d>>,
    pub(crate) exidx: Option<Exidx<'d>>,
    pub(crate) compact: Option<Compact<'d>>,
}

/// A row, with what else its table knows.
struct Described {
    found: CoveredRow,
    /// Where the function starts, if nothing of it ran before that: what prologue analysis may count from.
    function: Option<Svma>,
}

impl<'d> Module<'d> {
    /// The module of an image with these sections.
    pub fn new(sections: Sections<'d>) -> Self {
        let family = sections.arch.map_or(Family::Other, backtrail_core::Arch::family);
        let mut module = Self { family, tables: Vec::new() };
        module.add(sections);
        module
    }

    /// Adds another file's sections for the same addresses, asked when those before have no answer.
    pub fn add(&mut self, sections: Sections<'d>) {
        let number = u8::try_from(self.tables.len() * 2).unwrap_or(u8::MAX - 1);
        let eh_frame = Frames::numbered(&sections, Flavour::EhFrame, number);
        let debug_frame = Frames::numbered(&sections, Flavour::DebugFrame, number + 1);
        let exidx = Exidx::new(&sections);
        let compact = Compact::new(&sections);
        self.tables.push(Tables { sections, eh_frame, debug_frame, exidx, compact });
    }

    /// The architecture family.
    pub fn family(&self) -> Family {
        self.family
    }

    pub(crate) fn tables(&self) -> &[Tables<'d>] {
        &self.tables
    }

    /// The rules at `at` (a lookup address: return addresses less one, no Thumb bit), as the tables state them.
    pub fn find(&self, at: Svma) -> Result<CoveredRow, Miss> {
        self.describe(at).map(|described| described.found)
    }

    /// The rules where the instruction at `at` is the next to run. Tables that only know function bodies, or that
    /// leave out prologues or epilogues, are held against the instructions there.
    ///
    /// `thumb` tells 32-bit ARM's two instruction sets apart.
    pub fn find_exact(&self, at: Svma, thumb: bool) -> Result<CoveredRow, Miss> {
        let described = self.describe(at);
        // Go's table is exact at each instruction.
        if let Ok(described) = &described
            && described.found.trust == Trust::RuntimeTable
        {
            return Ok(described.found);
        }
        let by_table = described.as_ref().ok().and_then(|described| described.function);
        let text = self.text_at(at);
        let known = self.function_start(at).filter(|start| text.is_some_and(|text| text.start <= *start));
        let function = by_table.max(known);
        let is_described = described.as_ref().is_ok_and(|described| described.found.trust == Trust::Cfi);
        // Libraries whose code was emptied, to be passed around for their tables, have nothing to analyse.
        let is_emptied = |text: &&Section<'_>| {
            text.from(at).is_some_and(|code| code.iter().take(16).all(|byte| matches!(byte, 0 | 0xff)))
        };
        let body = described.as_ref().ok().map(|described| &described.found.row).filter(|_| !is_described);
        let analysed = text.filter(|text| !is_emptied(text)).and_then(|text| {
            arch::analyse(self.family, &Code { text: *text, at, function, thumb, is_described }, body)
        });
        let Some(row) = analysed else { return described.map(|described| described.found) };
        match described {
            Ok(described) if !self.overrules(&row, &described.found) => Ok(described.found),
            _ => Ok(CoveredRow { row, trust: Trust::Analysis, covered: AddrRange::from_size(at, 1) }),
        }
    }

    /// The row at `at`, the next instruction to run, by the pushes and pops between the function's start and it: for
    /// where the table cannot be right.
    pub(crate) fn find_by_stack_depth(&self, at: Svma) -> Option<Row> {
        let text = *self.text_at(at)?;
        // What a cold part of a function begins with is not known.
        let start = |frames: &Frames<'_>| {
            let fde = frames.find_fde(at).ok()?;
            describe_fde(frames, &fde, fde.range.start(), self.family).ok()?.function
        };
        let all = self.tables.iter().flat_map(|tables| [&tables.debug_frame, &tables.eh_frame]).flatten();
        let function = Some(all.filter_map(start).next()?);
        let code = Code { text, at, function, thumb: false, is_described: true };
        arch::by_stack_depth(self.family, &code)
    }

    /// The last known function start at or before `at`.
    fn function_start(&self, at: Svma) -> Option<Svma> {
        let last = |starts: &Vec<Svma>| {
            let after = starts.partition_point(|start| *start <= at);
            starts.get(after.checked_sub(1)?).copied()
        };
        self.tables.iter().filter_map(|tables| last(&tables.sections.function_starts)).max()
    }

    /// Whether instructions are to be believed rather than a table. Compact unwind and exidx describe bodies only.
    /// DWARF should be exact, so only where the two cannot both be right: both count from the stack pointer and
    /// differ, or the table counts from a frame pointer that already holds the caller's value. Seen with clang for
    /// aarch64, which describes no epilogues, and with hand-written assembly.
    fn overrules(&self, analysed: &Row, found: &CoveredRow) -> bool {
        if found.trust != Trust::Cfi {
            return true;
        }
        let (sp, fp) = (self.family.sp(), self.family.fp());
        match (analysed.cfa, found.row.cfa) {
            (Cfa::RegisterOffset(by, here), Cfa::RegisterOffset(from, there)) if by == sp => {
                (from == sp && here != there) || (from == fp && analysed.rule(fp) == Rule::Same)
            }
            _ => false,
        }
    }

    fn describe(&self, at: Svma) -> Result<Described, Miss> {
        let mut miss = Miss::NotCovered;
        for tables in &self.tables {
            match tables.describe(at, self.family) {
                Ok(described) => return Ok(described),
                Err(why) if miss == Miss::NotCovered => miss = why,
                Err(_) => {}
            }
        }
        Err(miss)
    }

    /// What a language runtime's table says of an address.
    pub(crate) fn runtime_frame(&self, at: Svma) -> Option<RuntimeFrame> {
        self.tables.iter().find_map(|tables| tables.sections.runtime?.frame_at(at))
    }

    /// Whether a function is known to start at an address, and none to reach from before to there.
    pub(crate) fn starts_function(&self, at: Svma) -> bool {
        if let Some(frame) = self.runtime_frame(at) {
            return frame.function == at;
        }
        let start = |frames: &Frames<'_>| frames.find_fde(at).ok().map(|fde| fde.range.start());
        let all = self.tables.iter().flat_map(|tables| [&tables.debug_frame, &tables.eh_frame]).flatten();
        all.into_iter().find_map(start) == Some(at)
    }

    /// The instructions of exidx for the function at `at`.
    pub(crate) fn exidx_code(&self, at: Svma) -> Option<crate::exidx::Code<'d>> {
        let entry = self.tables.iter().find_map(|tables| tables.exidx.as_ref()?.entry_at(at))?;
        match entry.content().ok()? {
            crate::exidx::Content::Unwind { code, .. } => Some(code),
            crate::exidx::Content::CannotUnwind => None,
        }
    }

    /// The executable section at the address.
    pub(crate) fn text_at(&self, at: Svma) -> Option<&Section<'d>> {
        self.tables.iter().find_map(|tables| tables.sections.text_at(at))
    }

    /// The code from an address on.
    pub fn code_at(&self, at: Svma) -> Option<&'d [u8]> {
        self.text_at(at)?.from(at)
    }

    /// Whether code lies at the address. A module that knows no executable section believes it of any.
    pub(crate) fn has_code_at(&self, at: Svma) -> bool {
        let known = self.tables.iter().any(|tables| !tables.sections.text.is_empty());
        !known || self.text_at(at).is_some()
    }

    /// The function at the file's entry point.
    pub(crate) fn is_entry(&self, at: Svma) -> bool {
        /// Entry points are short (glibc's 38 bytes, musl's 22 and the C function behind it).
        const ENTRY_SIZE: u64 = 64;
        let entries = self.tables.iter().filter_map(|tables| tables.sections.entry);
        entries.into_iter().any(|entry| AddrRange::from_size(entry, ENTRY_SIZE).contains(at))
    }

    /// Whether the address lies in a function that is known to be a thread's first.
    pub(crate) fn is_thread_start(&self, at: Svma) -> bool {
        let mut starts = self.tables.iter().flat_map(|tables| &tables.sections.thread_starts);
        starts.any(|range| range.contains(at))
    }

    /// The bytes of an expression in a row of this module.
    pub fn expression(&self, expression: Expression) -> Option<&'d [u8]> {
        let tables = self.tables.get(usize::from(expression.table / 2))?;
        let frames = if expression.table.is_multiple_of(2) { &tables.eh_frame } else { &tables.debug_frame };
        frames.as_ref()?.expression(expression)
    }
}

impl Tables<'_> {
    /// The order of methods. `.debug_frame` goes before `.eh_frame`: where an image has both, the latter is often
    /// only the C runtime's start code. Compact unwind leads to `__eh_frame` where it has no word for a function.
    /// exidx comes after DWARF, which has a row for every instruction.
    fn describe(&self, at: Svma, family: Family) -> Result<Described, Miss> {
        let mut miss = Miss::NotCovered;
        let runtime = self.sections.runtime.and_then(|runtime| runtime.frame_at(at));
        if let Some((found, frame)) = runtime.and_then(|frame| Some((frame.found(family)?, frame))) {
            return Ok(Described { found, function: Some(frame.function) });
        }
        if let Some(compact) = &self.compact {
            match compact.find(at) {
                Ok(CompactFound::Row(found)) => {
                    return Ok(Described { found, function: Some(found.covered.start()) });
                }
                Ok(CompactFound::EhFrame(offset)) => return self.by_offset(offset as usize, at, family),
                Err(why) => miss = why,
            }
        }
        for frames in [&self.debug_frame, &self.eh_frame].into_iter().flatten() {
            match by_cfi(frames, at, family) {
                Ok(described) => return Ok(described),
                Err(why @ Miss::Malformed(_)) => miss = why,
                Err(_) => {}
            }
        }
        if let Some(exidx) = &self.exidx {
            match exidx.find(at) {
                Ok(found) => return Ok(Described { found, function: Some(found.covered.start()) }),
                Err(why) => miss = why,
            }
        }
        Err(miss)
    }

    fn by_offset(&self, offset: usize, at: Svma, family: Family) -> Result<Described, Miss> {
        let frames = self.eh_frame.as_ref().ok_or(Miss::NotCovered)?;
        match frames.fde(offset) {
            Ok(fde) if fde.range.contains(at) => describe_fde(frames, &fde, at, family),
            _ => by_cfi(frames, at, family),
        }
    }
}

fn by_cfi(frames: &Frames<'_>, at: Svma, family: Family) -> Result<Described, Miss> {
    describe_fde(frames, &frames.find_fde(at)?, at, family)
}

/// The FDE's row, and its function's start if the row is the first and that of a function just called: later rows
/// show that the table follows the prologue, and another first row that this is a function's cold part.
fn describe_fde(
    frames: &Frames<'_>,
    fde: &crate::cfi::Fde,
    at: Svma,
    family: Family,
) -> Result<Described, Miss> {
    let found = frames.row_in(fde, at)?;
    let just_called = found.row.cfa == Cfa::RegisterOffset(family.sp(), arch::call_size(family));
    let first = found.covered.start() == fde.range.start() && just_called && !found.row.is_signal_frame;
    Ok(Described { found, function: first.then_some(fde.range.start()) })
}
