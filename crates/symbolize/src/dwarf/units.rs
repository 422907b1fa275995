//! The units of a file: listed ones, opened one by one, and all of them, found by walking their headers.

use super::aranges;
use super::file::DwarfFile;
use super::header::{Headers, Step};
use super::index::AddressIndex;
use super::sections::SectionId;
use super::unit::Unit;
use super::view::{View, as_offset};
use crate::malformed::Malformed;
use crate::problem::ProblemKind;
use std::sync::OnceLock;

/// The units of one file. Walking all headers touches the whole of `.debug_info`, so it is put off as long as
/// `.debug_aranges` answers.
#[derive(Default)]
pub(crate) struct Units<'d> {
    listed: OnceLock<Listed<'d>>,
    all: OnceLock<Vec<Unit<'d>>>,
    index: OnceLock<AddressIndex>,
    scanned: OnceLock<AddressIndex>,
}

/// Units that `.debug_aranges` names.
struct Listed<'d> {
    /// Owners are indices into `units`.
    index: AddressIndex,
    /// By ascending offset of their headers.
    units: Vec<ListedUnit<'d>>,
}

struct ListedUnit<'d> {
    offset: u64,
    /// The inner `None` where there is no unit at that offset.
    unit: OnceLock<Option<Box<Unit<'d>>>>,
}

impl<'d> DwarfFile<'d> {
    /// The units that `.debug_aranges` gives for an address.
    pub(crate) fn listed_units(&self, address: u64) -> impl Iterator<Item = &Unit<'d>> {
        let listed = self.listed();
        let units = listed.index.find(address).iter();
        units.filter_map(|index| self.open(listed.units.get(*index as usize)?))
    }

    /// The units whose root DIE states an address.
    pub(crate) fn stated_units(&self, address: u64) -> impl Iterator<Item = &Unit<'d>> {
        self.numbered(self.stated_index().find(address))
    }

    /// The units that state no addresses themselves and have a function at this one. The first call reads the
    /// functions of all such units.
    pub(crate) fn scanned_units(&self, address: u64) -> impl Iterator<Item = &Unit<'d>> {
        let unranged = self.stated_index().unranged();
        let scanned = || self.units.scanned.get_or_init(|| AddressIndex::of_functions(self, unranged));
        self.numbered(if unranged.is_empty() { &[] } else { scanned().find(address) })
    }

    fn numbered(&self, numbers: &[u32]) -> impl Iterator<Item = &Unit<'d>> {
        numbers.iter().filter_map(|index| {
            let unit = self.all_units().get(*index as usize)?;
            Some(self.listed_at(unit.header.offset).unwrap_or(unit))
        })
    }

    /// The index over what `.debug_aranges` lists, and the offsets of the units that its numbers stand for.
    pub(crate) fn listed_index(&self) -> (&AddressIndex, impl Iterator<Item = u64>) {
        let listed = self.listed();
        (&listed.index, listed.units.iter().map(|unit| unit.offset))
    }

    /// The index over the addresses that root DIEs state.
    pub(crate) fn stated_index(&self) -> &AddressIndex {
        self.units.index.get_or_init(|| AddressIndex::of_units(self))
    }

    /// All units, in the order of their offsets. Those that are listed are kept twice; lookups use the listed ones.
    pub(crate) fn all_units(&self) -> &[Unit<'d>] {
        self.units.all.get_or_init(|| {
            self.sections.decompress();
            let mut units = Vec::new();
            let mut headers = self.headers(0);
            loop {
                match headers.step() {
                    Step::Unit(header) => units.push(Unit::new(header)),
                    Step::Broken(error) => self.problems.unit(error.offset, error),
                    Step::End => break,
                }
            }
            self.tell_section_errors();
            units
        })
    }

    /// The units that somebody has looked at.
    pub(crate) fn opened_units(&self) -> impl Iterator<Item = &Unit<'d>> {
        let listed = self.units.listed.get().map(|listed| &*listed.units).unwrap_or_default();
        let all = self.units.all.get().map(|all| &**all).unwrap_or_default();
        let listed = listed.iter().filter_map(|listed| listed.unit.get()?.as_deref());
        listed.chain(all).filter(|unit| unit.body.get().is_some())
    }

    /// The unit around an offset of `.debug_info`.
    pub(crate) fn view_around(&self, offset: u64) -> Option<View<'_, 'd>> {
        let listed = &self.listed().units;
        let behind = listed.partition_point(|unit| unit.offset <= offset);
        let nearest = behind.checked_sub(1).and_then(|index| self.open(listed.get(index)?));
        if let Some(unit) = nearest.filter(|unit| offset < unit.header.end) {
            return self.view(unit);
        }
        let units = self.all_units();
        let behind = units.partition_point(|unit| unit.header.offset <= offset);
        let unit = units.get(behind.checked_sub(1)?)?;
        if offset < unit.header.end { self.view(unit) } else { None }
    }

    fn listed(&self) -> &Listed<'d> {
        self.units.listed.get_or_init(|| {
            self.sections.decompress();
            let section = self.sections.get(SectionId::Aranges);
            let is_live = |start, max_address| self.code.is_live(start, max_address);
            let tell = |error: Malformed| self.problems.add(ProblemKind::Section, error.to_string());
            let aranges = aranges::read(section, self.sections.big_endian, is_live, tell);
            let units = aranges.units.into_iter().map(|offset| ListedUnit { offset, unit: OnceLock::new() });
            Listed { index: AddressIndex::of_spans(aranges.spans), units: units.collect() }
        })
    }

    fn listed_at(&self, offset: u64) -> Option<&Unit<'d>> {
        let units = &self.listed().units;
        let index = units.binary_search_by_key(&offset, |unit| unit.offset).ok()?;
        self.open(units.get(index)?)
    }

    fn open<'a>(&'a self, listed: &'a ListedUnit<'d>) -> Option<&'a Unit<'d>> {
        let unit = listed.unit.get_or_init(|| match self.headers(listed.offset).step() {
            Step::Unit(header) if header.offset == listed.offset => Some(Box::new(Unit::new(header))),
            Step::Broken(error) => {
                self.problems.unit(listed.offset, error);
                None
            }
            _ => None,
        });
        unit.as_deref()
    }

    /// All bytes of a unit.
    pub(crate) fn unit_bytes(&self, unit: &Unit<'_>) -> &[u8] {
        let (start, end) = (as_offset(unit.header.offset), as_offset(unit.header.end));
        self.sections.get(SectionId::Info).get(start..end).unwrap_or_default()
    }

    /// The unit headers of `.debug_info` from an offset on.
    pub(crate) fn headers(&self, offset: u64) -> Headers<'_> {
        let info = self.sections.get(SectionId::Info);
        Headers::new(info, SectionId::Info.name(), offset, self.sections.big_endian)
    }

    fn tell_section_errors(&self) {
        for error in self.sections.errors() {
            self.problems.add(ProblemKind::Section, error.to_owned());
        }
    }
}
