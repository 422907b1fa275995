//! What unwinding needs of an object file, joined: object reads the sections, unwind takes bytes and addresses.

use crate::go_frames::GoFrames;
use backtrail_core::{Family, Svma};
use backtrail_object::{Format, GoTable, Kind, Object};
use backtrail_unwind::{RuntimeTable, Section, Sections};
use std::borrow::Cow;

/// An object's unwind tables and code, with the bytes that had to be decompressed.
#[derive(Debug)]
pub struct UnwindTables<'d> {
    head: Sections<'d>,
    named: Vec<(UnwindSection, Svma, Cow<'d, [u8]>)>,
    go: Option<GoFrames<'d>>,
    problems: Vec<String>,
}

/// The sections that unwinding reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UnwindSection {
    /// `.eh_frame_hdr`.
    EhFrameHdr,
    /// `.eh_frame`.
    EhFrame,
    /// `.debug_frame`.
    DebugFrame,
    /// `.ARM.exidx`.
    Exidx,
    /// `.ARM.extab`.
    Extab,
    /// `__unwind_info`.
    UnwindInfo,
    /// Code that was copied; an object's own is borrowed.
    Text,
}

impl UnwindSection {
    /// The table with this section name, in ELF or Mach-O.
    pub fn by_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(table, _)| *table)
    }
}

const NAMES: [(UnwindSection, &str); 10] = [
    (UnwindSection::EhFrameHdr, ".eh_frame_hdr"),
    (UnwindSection::EhFrame, ".eh_frame"),
    (UnwindSection::EhFrame, "__eh_frame"),
    (UnwindSection::DebugFrame, ".debug_frame"),
    (UnwindSection::DebugFrame, ".zdebug_frame"),
    (UnwindSection::DebugFrame, "__debug_frame"),
    (UnwindSection::DebugFrame, "__zdebug_frame"),
    (UnwindSection::Exidx, ".ARM.exidx"),
    (UnwindSection::Extab, ".ARM.extab"),
    (UnwindSection::UnwindInfo, "__unwind_info"),
];

impl UnwindTables<'static> {
    /// Tables that were copied out of memory, each with where it starts, and what could not be read.
    pub fn of_copies(
        head: Sections<'static>,
        tables: Vec<(UnwindSection, Svma, Vec<u8>)>,
        problems: Vec<String>,
    ) -> Self {
        let named = tables.into_iter().map(|(table, start, bytes)| (table, start, Cow::Owned(bytes)));
        Self { head, named: named.collect(), go: None, problems }
    }
}

impl<'d> UnwindTables<'d> {
    /// Reads the tables of `object`; those that cannot be read are left out and told as problems.
    pub fn read(object: &Object<'d>) -> Self {
        let mut tables = Self { head: head(object), named: Vec::new(), go: None, problems: Vec::new() };
        match GoTable::read(object) {
            Ok(table) => tables.go = table.map(|table| GoFrames::new(table, object.arch().family())),
            Err(error) => tables.problems.push(format!(".gopclntab: {error}")),
        }
        for section in object.sections() {
            let known = UnwindSection::by_name(&section.name);
            let Some(table) = known.filter(|_| section.file.is_some()) else { continue };
            if tables.named.iter().any(|(named, ..)| *named == table) {
                continue;
            }
            match object.relocated_section_data(section) {
                Ok(data) if data.is_empty() => {}
                Ok(data) => tables.named.push((table, section.address.start(), data)),
                Err(error) => tables.problems.push(error.to_string()),
            }
        }
        tables.find_behind_pointers(object);
        tables
    }

    /// What is known without section headers: the index of exidx lies in a segment that holds its entries too, and
    /// `.eh_frame` in the one that `.eh_frame_hdr` points into.
    fn find_behind_pointers(&mut self, object: &Object<'d>) {
        let segment_at = |at: Svma| {
            let segment = object.segments().iter().find(|segment| segment.address.contains(at))?;
            let start = segment.address.start();
            object.bytes_at(start, u64::MAX).map(|data| (start, Cow::Borrowed(data)))
        };
        let start = |wanted: UnwindSection| {
            self.named.iter().find(|(table, ..)| *table == wanted).map(|(_, start, _)| *start)
        };
        let mut found = Vec::new();
        if let (Some(exidx), None) = (start(UnwindSection::Exidx), start(UnwindSection::Extab))
            && let Some((start, data)) = segment_at(exidx)
        {
            found.push((UnwindSection::Extab, start, data));
        }
        if let (Some(header), None) = (start(UnwindSection::EhFrameHdr), start(UnwindSection::EhFrame))
            && let Some((start, data)) = self.behind_header(object, header)
        {
            found.push((UnwindSection::EhFrame, start, data));
        }
        self.named.extend(found);
    }

    /// Without section headers only `PT_GNU_EH_FRAME` is known, and the first pointer in it says where `.eh_frame`
    /// begins. LSB, "The .eh_frame_hdr section".
    fn behind_header(&self, object: &Object<'d>, start: Svma) -> Option<(Svma, Cow<'d, [u8]>)> {
        const RELATIVE_SIGNED_4: u8 = 0x1b;
        let (.., header) = self.named.iter().find(|(table, ..)| *table == UnwindSection::EhFrameHdr)?;
        let [1, RELATIVE_SIGNED_4, _, _, rest @ ..] = &**header else { return None };
        let offset = i64::from(i32::from_le_bytes(*rest.first_chunk()?));
        let at = start.get().checked_add(4)?.checked_add_signed(offset).map(Svma::new)?;
        Some((at, Cow::Borrowed(object.bytes_at(at, u64::MAX)?)))
    }

    /// The sections, borrowed.
    pub fn sections(&self) -> Sections<'_> {
        let section = |wanted: UnwindSection| {
            let named = self.named.iter().find(|(table, ..)| *table == wanted);
            named.map(|(_, start, data)| Section::new(*start, data))
        };
        let sections = Sections {
            eh_frame_hdr: section(UnwindSection::EhFrameHdr),
            eh_frame: section(UnwindSection::EhFrame),
            debug_frame: section(UnwindSection::DebugFrame),
            exidx: section(UnwindSection::Exidx),
            extab: section(UnwindSection::Extab),
            unwind_info: section(UnwindSection::UnwindInfo),
            runtime: self.go.as_ref().map(|go| go as &dyn RuntimeTable),
            ..self.head.clone()
        };
        Sections { text: [sections.text, Vec::from_iter(section(UnwindSection::Text))].concat(), ..sections }
    }

    /// What could not be read.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

fn head<'d>(object: &Object<'d>) -> Sections<'d> {
    let bytes = |start, size| Some(Section::new(start, object.bytes_at(start, size)?));
    let sections = object.sections().iter();
    let code = sections.clone().filter(|section| section.is_code && section.is_loaded);
    let mut text: Vec<_> =
        code.filter_map(|section| bytes(section.address.start(), section.address.size())).collect();
    if text.is_empty() {
        let segments = object.segments().iter().filter(|segment| segment.executable);
        text =
            segments.filter_map(|segment| bytes(segment.address.start(), segment.address.size())).collect();
    }
    let data = object.segments().iter().filter(|segment| !segment.executable);
    let got = sections.clone().find(|section| section.name == ".got").map(|section| section.address.start());
    Sections {
        arch: Some(object.arch()),
        is_mach_o: object.format() == Format::MachO,
        image_base: object.image_base(),
        text,
        got,
        function_starts: function_starts(object),
        data: data.filter_map(|segment| bytes(segment.address.start(), segment.address.size())).collect(),
        entry: entry(object),
        ..Sections::default()
    }
}

/// Where functions are entered: Mach-O says it. Of ELF files only 32-bit ARM's need it, by their symbols; the others
/// have call frame information that follows prologues, but for `_init` and `_fini`, which are put together from pieces
/// without tables and fill a section each.
fn function_starts(object: &Object<'_>) -> Vec<Svma> {
    if object.format() == Format::MachO {
        return object.function_starts().unwrap_or_default();
    }
    if object.arch().family() != Family::Arm {
        let sections = object.sections().iter();
        let whole = sections.filter(|section| matches!(&*section.name, ".init" | ".fini") && section.is_code);
        let mut starts: Vec<_> = whole.map(|section| section.address.start()).collect();
        starts.sort_unstable();
        return starts;
    }
    let symbols = object.symbols().unwrap_or_default().into_iter();
    // The cold part of a function is jumped to, with its frame made.
    let entered = symbols.filter(|symbol| symbol.is_code && !symbol.name.contains(".cold"));
    let mut starts: Vec<_> = entered.map(|symbol| symbol.address).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Where a program starts. Of libraries only dynamic linkers are started (and glibc's libc, to show its version); old
/// linkers state the start of the code for all the others.
fn entry(object: &Object<'_>) -> Option<Svma> {
    let is_start = |entry: Svma| object.sections().iter().any(|section| section.address.start() == entry);
    let is_stated = |entry: &Svma| object.kind() == Kind::Executable || !is_start(*entry);
    object.entry().filter(is_stated)
}
