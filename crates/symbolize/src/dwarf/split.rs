//! Split DWARF: skeleton units in the linked file, all else in a `.dwo` each or one `.dwp` for all
//! (DWARF 5 section 7.3, and GNU's extension to DWARF 4 before it).

use super::file::DwarfFile;
use super::header::{Header, Step};
use super::sections::SectionId;
use super::unit::{Body, Root, Unit};
use super::view::{View, as_offset};
use crate::problem::ProblemKind;
use crate::request::FileRequest;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The `.dwp` of a file: not asked for yet, here, or known not to be had.
#[derive(Default)]
pub(crate) struct Package<'d> {
    file: OnceLock<Option<Box<DwarfFile<'d>>>>,
}

/// The split unit of a skeleton.
pub(crate) struct SplitUnit<'d> {
    /// The `.dwo` file; `None` where the unit stands in the linked file's package.
    file: Option<DwarfFile<'d>>,
    unit: Unit<'d>,
    body: Body,
}

impl<'d> SplitUnit<'d> {
    /// The split unit with the addresses of its skeleton.
    fn view<'a>(&'a self, main: &'a DwarfFile<'d>) -> Option<View<'a, 'd>> {
        let file = match &self.file {
            Some(file) => file,
            None => main.package.file.get()?.as_deref()?,
        };
        Some(View { file, main, unit: &self.unit, body: &self.body })
    }
}

/// Where a unit's parts of a package's sections start.
#[derive(Clone, Copy, Default)]
struct Contributions {
    info: u64,
    abbrev: u64,
    line: u64,
    str_offsets: u64,
    rnglists: u64,
}

impl<'d> DwarfFile<'d> {
    /// The unit with the functions of a skeleton unit; `Ok(None)` for whole units and where the split one is not to be
    /// had.
    pub(crate) fn split<'a>(&'a self, skeleton: View<'a, 'd>) -> Result<Option<View<'a, 'd>>, FileRequest> {
        let Some((path, id)) = dwo_of(skeleton) else { return Ok(None) };
        let slot = &skeleton.unit.split;
        if slot.get().is_none() {
            let package = self.package.file.get().ok_or(FileRequest::Dwp)?;
            match package.as_deref().and_then(|package| package.split_unit_of_package(id, skeleton.root())) {
                Some(unit) => slot.get_or_init(|| Some(Box::new(unit))),
                None => return Err(FileRequest::Dwo { path, dwo_id: id }),
            };
        }
        Ok(slot.get().and_then(|unit| unit.as_ref()?.view(self)))
    }

    /// Takes the package, or the answer that there is none.
    pub(crate) fn set_package(&self, file: Option<DwarfFile<'d>>) {
        self.package.file.get_or_init(|| file.map(Box::new));
    }

    /// Takes a `.dwo` file, or the answer that it is not to be had, for all skeletons that name it. `open` is called
    /// for each of them: an object file made by LTO has several.
    pub(crate) fn set_dwo(&self, path: &str, id: u64, open: impl Fn() -> Option<DwarfFile<'d>>) {
        for unit in self.opened_units() {
            if unit.split.get().is_some() {
                continue;
            }
            let Some(skeleton) = self.view(unit) else { continue };
            if dwo_of(skeleton).is_some_and(|(own_path, own_id)| own_id == id && own_path == path) {
                unit.split.get_or_init(|| {
                    Some(Box::new(self.split_unit_of_dwo(open()?, path, id, skeleton.root())?))
                });
            }
        }
    }

    fn split_unit_of_dwo(
        &self,
        file: DwarfFile<'d>,
        path: &str,
        id: u64,
        skeleton: &Root,
    ) -> Option<SplitUnit<'d>> {
        for unit in file.all_units() {
            let header = unit.header;
            let Ok(Some(mut body)) = file.read_body(&header) else { continue };
            if header.may_hold_code() && header.id.or(body.root.dwo_id) == Some(id) {
                adopt(&mut body.root, skeleton);
                return Some(SplitUnit { unit: Unit::new(header), body, file: Some(file) });
            }
        }
        self.problems.add(ProblemKind::File, format!("{path}: expected a split unit with id {id:#x}"));
        None
    }

    /// Finds a unit by its id in the index of this package.
    fn split_unit_of_package(&self, id: u64, skeleton: &Root) -> Option<SplitUnit<'d>> {
        let parts = self.contributions(id)?;
        let Step::Unit(mut header) = self.headers(parts.info).step() else { return None };
        header.abbrev_offset = header.abbrev_offset.checked_add(parts.abbrev)?;
        match self.read_body(&header) {
            Ok(body) => {
                let mut body = body?;
                shift(&mut body.root, &header, parts);
                adopt(&mut body.root, skeleton);
                Some(SplitUnit { unit: Unit::new(header), body, file: None })
            }
            Err(error) => {
                self.problems.unit(header.offset, error);
                None
            }
        }
    }

    fn contributions(&self, id: u64) -> Option<Contributions> {
        let index = gimli::DebugCuIndex::from(self.slice(SectionId::CuIndex)).index().ok()?;
        let mut parts = Contributions::default();
        for section in index.sections(index.find(id)?).ok()? {
            let part = match section.section {
                gimli::IndexSectionId::DebugInfo => &mut parts.info,
                gimli::IndexSectionId::DebugAbbrev => &mut parts.abbrev,
                gimli::IndexSectionId::DebugLine => &mut parts.line,
                gimli::IndexSectionId::DebugStrOffsets => &mut parts.str_offsets,
                gimli::IndexSectionId::DebugRngLists => &mut parts.rnglists,
                _ => continue,
            };
            *part = u64::from(section.offset);
        }
        (as_offset(parts.info) < self.sections.get(SectionId::Info).len()).then_some(parts)
    }
}

impl View<'_, '_> {
    /// Whether the unit's functions are in another file.
    pub(crate) fn is_skeleton(self) -> bool {
        dwo_of(self).is_some()
    }
}

impl DwarfFile<'_> {
    /// The first file that has to be asked for before all of this one can be read. `from` is the unit to start at, and
    /// then the one that wants the file.
    pub(crate) fn missing_file(&self, from: &AtomicUsize) -> Option<FileRequest> {
        if let Some(request) = self.wanted() {
            return Some(request.clone());
        }
        let mut position = from.load(Ordering::Relaxed);
        while let Some(unit) = self.all_units().get(position) {
            let is_skeleton = self
                .read_root_only(&unit.header)
                .is_ok_and(|body| body.is_some_and(|body| body.root.dwo_name.is_some()));
            if is_skeleton
                && let Some(view) = self.view(unit)
                && let Err(request) = self.split(view)
            {
                from.store(position, Ordering::Relaxed);
                return Some(request);
            }
            position += 1;
        }
        from.store(position, Ordering::Relaxed);
        None
    }
}

/// The path and id of the split unit that a skeleton names.
fn dwo_of(skeleton: View<'_, '_>) -> Option<(String, u64)> {
    if skeleton.file.sections.split {
        return None;
    }
    let root = skeleton.root();
    let id = skeleton.unit.header.id.or(root.dwo_id)?;
    let name = skeleton.string(root.dwo_name?)?;
    let base = root.comp_dir.and_then(|base| skeleton.string(base));
    Some((super::files::join(base, name), id))
}

/// A split unit's addresses are stated by its skeleton.
fn adopt(root: &mut Root, skeleton: &Root) {
    root.addr_base = skeleton.addr_base;
    root.low_pc = skeleton.low_pc;
    root.gnu_ranges_base = skeleton.gnu_ranges_base;
}

/// Offsets of a unit in a package count from its own parts of the sections.
fn shift(root: &mut Root, header: &Header, parts: Contributions) {
    let moved = |base: Option<u64>, part: u64| Some(base.unwrap_or(0).saturating_add(part));
    root.str_offsets_base = moved(root.str_offsets_base, parts.str_offsets);
    root.stmt_list = root.stmt_list.map(|offset| offset.saturating_add(parts.line));
    if header.encoding.version >= 5 {
        root.rnglists_base = moved(root.rnglists_base, parts.rnglists);
    }
}
