//! One file's DWARF: its sections, units and the index that leads from an address to its units.

use super::abbrev::AbbrevTable;
use super::budget::Budget;
use super::functions::{Depth, FunctionTable};
use super::header::Header;
use super::lines::LineTable;
use super::reader::{Encoding, Reader, Slice};
use super::sections::{SectionId, Sections};
use super::split::Package;
use super::supplementary::Supplementary;
use super::unit::{Body, Root, Unit};
use super::units::Units;
use super::view::View;
use crate::code::CodeMap;
use crate::malformed::Malformed;
use crate::problem::Problems;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The DWARF of one file.
pub(crate) struct DwarfFile<'d> {
    pub(crate) sections: Sections<'d>,
    pub(crate) code: Arc<CodeMap>,
    pub(crate) problems: Arc<Problems>,
    pub(crate) supplementary: Option<Supplementary<'d>>,
    /// The `.dwp` that may hold the split units of this file.
    pub(crate) package: Package<'d>,
    pub(crate) units: Units<'d>,
    abbrevs: Mutex<AbbrevCache>,
    abbrev_budget: OnceLock<Budget>,
}

/// The abbreviations that were read last, with the file and offset that they are from.
#[derive(Default)]
pub(crate) struct Abbrevs(Option<((usize, u64, Encoding), Arc<AbbrevTable>)>);

type AbbrevCache = HashMap<(u64, Encoding), Result<Arc<AbbrevTable>, Malformed>>;

impl<'d> DwarfFile<'d> {
    pub(crate) fn new(sections: Sections<'d>, code: Arc<CodeMap>, problems: Arc<Problems>) -> Self {
        Self {
            sections,
            code,
            problems,
            supplementary: None,
            package: Package::default(),
            units: Units::default(),
            abbrevs: Mutex::default(),
            abbrev_budget: OnceLock::new(),
        }
    }

    /// A section in gimli's words.
    pub(crate) fn slice(&self, id: SectionId) -> Slice<'_> {
        let endian =
            if self.sections.big_endian { gimli::RunTimeEndian::Big } else { gimli::RunTimeEndian::Little };
        Slice::new(self.sections.get(id), endian)
    }

    /// Bytes of the range lists.
    pub(crate) fn range_bytes(&self) -> u64 {
        (self.sections.get(SectionId::Ranges).len() + self.sections.get(SectionId::RngLists).len()) as u64
    }

    /// A unit of this file with its abbreviations and root DIE read; `None` where they are broken.
    pub(crate) fn view<'a>(&'a self, unit: &'a Unit<'d>) -> Option<View<'a, 'd>> {
        let body = unit.body.get_or_init(|| match self.read_body(&unit.header) {
            Ok(body) => body.map(Box::new),
            Err(error) => {
                self.problems.unit(unit.header.offset, error);
                None
            }
        });
        Some(View { file: self, main: self, unit, body: body.as_deref()? })
    }

    /// Reads a unit's abbreviations and root DIE. `None` for a unit without any DIE.
    pub(crate) fn read_body(&self, header: &Header) -> Result<Option<Body>, Malformed> {
        let abbrevs = self.abbrevs(header.abbrev_offset, header.encoding)?;
        let mut reader = self.root_reader(header);
        let root = Root::read(&mut reader, &abbrevs)?;
        Ok(root.map(|root| Body { abbrevs, root: self.with_default_bases(root, header) }))
    }

    /// The same without keeping the abbreviations for longer than `last` does.
    pub(crate) fn read_body_with(
        &self,
        header: &Header,
        last: &mut Abbrevs,
    ) -> Result<Option<Body>, Malformed> {
        let key =
            (self.sections.get(SectionId::Abbrev).as_ptr().addr(), header.abbrev_offset, header.encoding);
        let abbrevs = match &last.0 {
            Some((known, abbrevs)) if *known == key => Arc::clone(abbrevs),
            _ => {
                let mut reader = self.abbrev_reader(header.abbrev_offset);
                let abbrevs = Arc::new(AbbrevTable::read(&mut reader, header.encoding)?);
                self.spend_on_abbrevs(header.abbrev_offset, &reader)?;
                last.0 = Some((key, Arc::clone(&abbrevs)));
                abbrevs
            }
        };
        let root = Root::read(&mut self.root_reader(header), &abbrevs)?;
        Ok(root.map(|root| Body { abbrevs, root: self.with_default_bases(root, header) }))
    }

    /// The same from as few abbreviations as suffice, for a look at the root DIE alone.
    pub(crate) fn read_root_only(&self, header: &Header) -> Result<Option<Body>, Malformed> {
        /// Where many units have one table, as `dsymutil` and LTO leave it, none looks for long.
        const LOOKED_AT: u64 = 512;
        let mut reader = self.root_reader(header);
        let Some(code) = Reader::clone(&reader).uleb() else { return Ok(None) };
        let mut section = self.abbrev_reader(header.abbrev_offset);
        let limit = LOOKED_AT.max((header.end - header.offset) / 4);
        let table = AbbrevTable::read_only(&mut section, header.encoding, code, limit)?;
        self.spend_on_abbrevs(header.abbrev_offset, &section)?;
        match table {
            Some(abbrevs) => {
                let root = Root::read(&mut reader, &abbrevs)?;
                let root = root.map(|root| self.with_default_bases(root, header));
                Ok(root.map(|root| Body { abbrevs: Arc::new(abbrevs), root }))
            }
            None => self.read_body(header),
        }
    }

    fn root_reader(&self, header: &Header) -> Reader<'_> {
        let info = self.sections.get(SectionId::Info);
        Reader::between(info, header.root, header.end, self.sections.big_endian)
    }

    /// Split units of DWARF 5 leave their bases out: they start behind the header of the section's only part.
    fn with_default_bases(&self, mut root: Root, header: &Header) -> Root {
        if self.sections.split && header.encoding.version >= 5 {
            let wide = header.encoding.offset_size == 8;
            root.str_offsets_base = root.str_offsets_base.or(Some(if wide { 16 } else { 8 }));
            root.rnglists_base = root.rnglists_base.or(Some(if wide { 20 } else { 12 }));
        }
        root
    }

    fn abbrev_reader(&self, offset: u64) -> Reader<'_> {
        Reader::new(self.sections.get(SectionId::Abbrev), offset, self.sections.big_endian)
    }

    /// The abbreviations at an offset; units share them.
    pub(crate) fn abbrevs(&self, offset: u64, encoding: Encoding) -> Result<Arc<AbbrevTable>, Malformed> {
        let key = (offset, encoding);
        let cached = |cache: &AbbrevCache| cache.get(&key).cloned();
        if let Some(found) = cached(&self.abbrevs.lock().unwrap_or_else(PoisonError::into_inner)) {
            return found;
        }
        let mut reader = self.abbrev_reader(offset);
        let table = AbbrevTable::read(&mut reader, encoding).map(Arc::new);
        let table = table.and_then(|table| self.spend_on_abbrevs(offset, &reader).map(|()| table));
        self.abbrevs.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert(table).clone()
    }

    /// Counts what was read from `start` up to the reader's position.
    fn spend_on_abbrevs(&self, start: u64, reader: &Reader<'_>) -> Result<(), Malformed> {
        let budget = self.abbrev_budget.get_or_init(|| {
            let size = |id| self.sections.get(id).len() as u64;
            Budget::new((1 << 20) + 8 * size(SectionId::Abbrev) + size(SectionId::Info))
        });
        if budget.spend(reader.offset().saturating_sub(start)) {
            return Ok(());
        }
        let expected = "abbreviation tables that do not overlap";
        Err(Malformed { section: SectionId::Abbrev.name(), offset: start, expected })
    }

    /// The other file of a file that dwz made smaller.
    pub(crate) fn supplementary(&self) -> Option<&DwarfFile<'d>> {
        self.supplementary.as_ref()?.file()
    }
}

impl<'a> View<'a, '_> {
    /// The functions of the unit; those within functions may be missing.
    pub(crate) fn functions(&self) -> &'a FunctionTable {
        self.unit.functions.get_or_init(|| self.read_functions(Depth::Shallow))
    }

    /// All functions of the unit.
    pub(crate) fn all_functions(&self) -> &'a FunctionTable {
        let functions = self.functions();
        if !functions.has_gaps() {
            return functions;
        }
        self.unit.all_functions.get_or_init(|| self.read_functions(Depth::Full))
    }

    fn read_functions(&self, depth: Depth) -> Box<FunctionTable> {
        let (table, error) = FunctionTable::read(*self, depth);
        if let Some(error) = error {
            self.file.problems.unit(self.unit.header.offset, error);
        }
        Box::new(table)
    }

    /// The line table of the unit; `None` where it has none.
    pub(crate) fn lines(&self) -> Option<&'a LineTable> {
        let lines = self.unit.lines.get_or_init(|| {
            let (table, error) = LineTable::read(*self, self.line_offset()?);
            if let Some(error) = error {
                self.file.problems.lines(error);
            }
            table.map(Box::new)
        });
        lines.as_deref()
    }
}
