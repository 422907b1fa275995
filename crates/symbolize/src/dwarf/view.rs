//! One unit ready to be read: resolves what attribute values point at.

use super::file::DwarfFile;
use super::range_list::{self, Base};
use super::reader::{Encoding, Reader};
use super::sections::SectionId;
use super::spans::Span;
use super::unit::{Body, Root, Unit};
use super::value::{Pcs, Value};

/// A unit together with the file that it stands in.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, 'd> {
    /// The file with the unit's DIEs and strings.
    pub(crate) file: &'a DwarfFile<'d>,
    /// The file with its addresses: the linked one, also where the unit stands in a `.dwo`.
    pub(crate) main: &'a DwarfFile<'d>,
    pub(crate) unit: &'a Unit<'d>,
    pub(crate) body: &'a Body,
}

impl<'a, 'd> View<'a, 'd> {
    pub(crate) fn root(&self) -> &'a Root {
        &self.body.root
    }

    /// Whether this is the same unit of the same file.
    pub(crate) fn is_same_unit(&self, other: Self) -> bool {
        std::ptr::eq(self.file, other.file) && self.unit.header.offset == other.unit.header.offset
    }

    /// Where the file's DIEs lie in memory: tells files apart.
    pub(crate) fn section_address(&self) -> usize {
        self.file.sections.get(SectionId::Info).as_ptr().addr()
    }

    /// The unit's DIEs from a section offset on.
    pub(crate) fn reader(&self, offset: u64) -> Reader<'a> {
        let sections = &self.file.sections;
        let header = &self.unit.header;
        // An offset before the root DIE would read the header as DIEs.
        let start = if offset < header.root { header.end } else { offset };
        Reader::between(sections.get(SectionId::Info), start, header.end, sections.big_endian)
    }

    /// An address, looked up in `.debug_addr` where it is stated by its index.
    pub(crate) fn address(&self, value: Value) -> Option<u64> {
        match value {
            Value::Address(address) => Some(address),
            Value::AddressIndex(index) => {
                let size = self.unit.header.encoding.address_size;
                let offset =
                    index.checked_mul(u64::from(size))?.checked_add(self.root().addr_base.unwrap_or(0))?;
                let sections = &self.main.sections;
                Reader::new(sections.get(SectionId::Addr), offset, sections.big_endian).uint(size)
            }
            _ => None,
        }
    }

    /// The bytes of a string.
    pub(crate) fn string(&self, value: Value) -> Option<&'a [u8]> {
        Some(std::ffi::CStr::from_bytes_until_nul(self.string_tail(value)?).ok()?.to_bytes())
    }

    /// The section from the start of a string on, which ends with the first zero in there.
    pub(crate) fn string_tail(&self, value: Value) -> Option<&'a [u8]> {
        let sections = &self.file.sections;
        let tail = |id, offset| sections.get(id).get(as_offset(offset)..);
        match value {
            Value::InlineString(offset) => tail(SectionId::Info, offset),
            Value::Str(offset) => tail(SectionId::Str, offset),
            // Line strings of a split unit stay in the linked file.
            Value::LineStr(offset) => self.main.sections.get(SectionId::LineStr).get(as_offset(offset)..),
            Value::StrIndex(index) => tail(SectionId::Str, self.string_offset(index)?),
            Value::SupStr(offset) => {
                self.file.supplementary()?.sections.get(SectionId::Str).get(as_offset(offset)..)
            }
            _ => None,
        }
    }

    fn string_offset(&self, index: u64) -> Option<u64> {
        let size = self.unit.header.encoding.offset_size;
        let base = self.root().str_offsets_base.unwrap_or(0);
        let offset = index.checked_mul(u64::from(size))?.checked_add(base)?;
        let sections = &self.file.sections;
        Reader::new(sections.get(SectionId::StrOffsets), offset, sections.big_endian).uint(size)
    }

    /// Calls `each` with the start and end of every range that a DIE states, as long as it returns `true`. Empty
    /// ranges are left out; dead ones are not, since that depends on the image's sections.
    #[inline]
    pub(crate) fn ranges(&self, pcs: &Pcs, each: &mut impl FnMut(u64, u64) -> bool) {
        if let Some(list) = pcs.ranges {
            self.range_list(list, each);
            return;
        }
        let Some(low) = pcs.low.and_then(|low| self.address(low)) else { return };
        let high = match pcs.high {
            Some(high @ (Value::Address(_) | Value::AddressIndex(_))) => self.address(high),
            Some(high) => high.unsigned().and_then(|size| low.checked_add(size)),
            None => None,
        };
        if let Some(high) = high.filter(|high| low < *high) {
            each(low, high);
        }
    }

    /// Appends the live ranges of a DIE.
    pub(crate) fn collect_spans(&self, pcs: &Pcs, owner: u32, budget: &mut u64, spans: &mut Vec<Span>) {
        let max_address = self.unit.header.encoding.max_address();
        self.ranges(pcs, &mut |start, end| {
            if self.main.code.is_live(start, max_address) {
                spans.push(Span { start, end, owner });
            }
            *budget = budget.saturating_sub(1);
            *budget > 0
        });
    }

    /// Range lists can be shared, so that a small hostile file could state as many ranges as DIEs times list entries. An
    /// honest file has no more than its sections have room for.
    pub(crate) fn range_budget(&self) -> u64 {
        let header = &self.unit.header;
        (header.end - header.offset) + self.main.range_bytes() + self.file.range_bytes()
    }

    /// What offsets into `.debug_ranges` count from: GNU's split units have them start at their own part.
    fn ranges_base(&self) -> u64 {
        if self.file.sections.split { self.root().gnu_ranges_base.unwrap_or(0) } else { 0 }
    }

    /// Where the unit's line program starts.
    pub(crate) fn line_offset(&self) -> Option<u64> {
        self.root().stmt_list
    }

    fn range_list(&self, list: Value, each: &mut impl FnMut(u64, u64) -> bool) {
        if self.unit.header.encoding.version >= 5
            && let Some(offset) = list.section_offset()
        {
            self.range_list_5(offset.saturating_add(self.ranges_base()), self.ranges_address(), each);
            return;
        }
        let encoding = self.unit.header.encoding.to_gimli();
        // Before DWARF 5 split units keep their range lists in the linked file.
        let file = if encoding.version < 5 { self.main } else { self.file };
        let lists = gimli::RangeLists::new(
            file.slice(SectionId::Ranges).into(),
            file.slice(SectionId::RngLists).into(),
        );
        let root = self.root();
        let rnglists_base = gimli::DebugRngListsBase(as_offset(root.rnglists_base.unwrap_or(0)));
        let offset = match list {
            Value::RangeListIndex(index) => {
                lists.get_offset(encoding, rnglists_base, gimli::DebugRngListsIndex(as_offset(index))).ok()
            }
            value => value
                .section_offset()
                .map(|offset| gimli::RangeListsOffset(as_offset(offset.saturating_add(self.ranges_base())))),
        };
        let Some(offset) = offset else { return };
        let base = self.ranges_address();
        if encoding.version >= 5 {
            self.range_list_5(offset.0 as u64, base, each);
            return;
        }
        let addr = gimli::DebugAddr::from(self.main.slice(SectionId::Addr));
        let addr_base = gimli::DebugAddrBase(as_offset(root.addr_base.unwrap_or(0)));
        let Ok(mut ranges) = lists.ranges(offset, encoding, base, &addr, addr_base) else { return };
        while let Ok(Some(range)) = ranges.next() {
            if !each(range.begin, range.end) {
                return;
            }
        }
    }
}

impl View<'_, '_> {
    /// The address that entries of range lists are relative to, until they say otherwise.
    fn ranges_address(&self) -> u64 {
        self.root().low_pc.and_then(|low| self.address(low)).unwrap_or(0)
    }

    fn range_list_5(&self, offset: u64, address: u64, each: &mut impl FnMut(u64, u64) -> bool) {
        let Encoding { address_size, .. } = self.unit.header.encoding;
        let first_dead = self.unit.header.encoding.max_address() - 1;
        let sections = &self.file.sections;
        let mut reader = Reader::new(sections.get(SectionId::RngLists), offset, sections.big_endian);
        let indexed = |index| self.address(Value::AddressIndex(index));
        range_list::read(&mut reader, Base { address, address_size, first_dead }, indexed, each);
    }
}

/// Offsets beyond the address space of this machine are beyond every section.
pub(crate) fn as_offset(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl From<&Root> for Pcs {
    fn from(root: &Root) -> Self {
        Self { low: root.low_pc, high: root.high_pc, ranges: root.ranges }
    }
}
