//! One address: its unit, function, inlined calls and lines.

use super::file::DwarfFile;
use super::files::FilePath;
use super::line_program::Location;
use super::names::{self, Names};
use super::unit::Unit;
use super::view::View;
use crate::parallel;
use crate::request::FileRequest;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Frames of one answer. Real programs have less than a hundred inlined calls within each other.
const MAX_FRAMES: usize = 1024;

/// Fewer units that are yet to be read are not worth threads.
const WORTH_THREADS: usize = 4;

/// One function at an address.
#[derive(Clone)]
pub(crate) struct Frame<'a> {
    pub(crate) names: Names<'a>,
    pub(crate) file: Option<FilePath<'a>>,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) inlined: bool,
}

/// What debug info says of an address.
pub(crate) struct DebugInfoAnswer<'a> {
    /// Innermost first. One frame without names where there is a line but no function.
    pub(crate) frames: Vec<Frame<'a>>,
    /// Where the range of the function around the address starts.
    pub(crate) function_start: Option<u64>,
    /// Whether the linker sees other names than those that the source has.
    pub(crate) has_mangled_names: bool,
}

impl<'d> DwarfFile<'d> {
    /// Looks an address up. `Ok(None)` where no unit knows it, `Err` when another file is needed first.
    pub(crate) fn lookup(&self, address: u64) -> Result<Option<DebugInfoAnswer<'_>>, FileRequest> {
        if let Some(found) = self.lookup_in(self.listed_units(address), address)? {
            return Ok(Some(found));
        }
        if let Some(found) = self.lookup_in(self.stated_units(address), address)? {
            return Ok(Some(found));
        }
        self.lookup_in(self.scanned_units(address), address)
    }

    /// Reads the units that addresses fall in, on all cores.
    pub(crate) fn prepare(&self, addresses: impl Iterator<Item = u64>) {
        let mut units = BTreeMap::new();
        for address in addresses {
            let before = units.len();
            units.extend(self.listed_units(address).map(|unit| (unit.header.offset, unit)));
            if units.len() == before {
                units.extend(self.stated_units(address).map(|unit| (unit.header.offset, unit)));
            }
        }
        let is_read = |unit: &Unit<'_>| unit.lines.get().is_some();
        let mut units: Vec<_> = units.into_values().filter(|unit| !is_read(unit)).collect();
        if units.len() < WORTH_THREADS {
            return;
        }
        // What takes longest must not be what is waited for at the end.
        units.sort_by_key(|unit| Reverse(unit.header.end - unit.header.offset));
        parallel::map(&units, 1, |_, unit| {
            let Some(view) = self.view(unit) else { return };
            view.lines();
            if let Ok(split) = self.split(view) {
                split.unwrap_or(view).functions();
            }
        });
    }

    fn lookup_in<'a>(
        &'a self,
        units: impl Iterator<Item = &'a Unit<'d>>,
        address: u64,
    ) -> Result<Option<DebugInfoAnswer<'a>>, FileRequest>
    where
        'd: 'a,
    {
        for view in units.filter_map(|unit| self.view(unit)) {
            if let Some(request) = self.wanted() {
                return Err(request.clone());
            }
            let dies = self.split(view)?.unwrap_or(view);
            // The first unit that says anything is believed, as llvm-symbolizer does it, even where it has a line and no
            // function. Where a linker kept one of several like-named sections, the debug info of the others may point
            // into it as if it were laid out as theirs: thunks of C++ were seen to be taken for their targets.
            let found = lookup_function(view, dies, address).or_else(|| lookup_line(view, address));
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

impl DwarfFile<'_> {
    /// A file that has to be asked for before any name of this one is read.
    pub(crate) fn wanted(&self) -> Option<&FileRequest> {
        self.supplementary.as_ref()?.wanted()
    }
}

/// `view` has the lines, `dies` the functions: two units where debug info is split.
fn lookup_function<'a>(view: View<'a, '_>, dies: View<'a, '_>, address: u64) -> Option<DebugInfoAnswer<'a>> {
    let found = dies.functions().find(address).or_else(|| dies.all_functions().find(address));
    let (function, start) = found?;
    let mut at = view.lines().and_then(|lines| lines.find(view, address));
    let mut frames = Vec::new();
    for call in function.inlines(dies).chain(address).take(MAX_FRAMES) {
        frames.push(frame(view, names::resolve(dies, call.die(dies)), at, true));
        at = Some(Location { file: call.call_file, line: call.call_line, column: call.call_column });
    }
    frames.push(frame(view, names::resolve(dies, function.die(dies)), at, false));
    Some(DebugInfoAnswer {
        frames,
        function_start: Some(start),
        has_mangled_names: dies.root().has_mangled_names(),
    })
}

fn lookup_line<'a>(view: View<'a, '_>, address: u64) -> Option<DebugInfoAnswer<'a>> {
    let at = view.lines()?.find(view, address)?;
    let frames = vec![frame(view, Names::default(), Some(at), false)];
    Some(DebugInfoAnswer { frames, function_start: None, has_mangled_names: true })
}

fn frame<'a>(view: View<'a, '_>, names: Names<'a>, at: Option<Location>, inlined: bool) -> Frame<'a> {
    // Where no row has the address there is no file either; number 0 is one since DWARF 5.
    let file = at.and_then(|at| view.lines()?.files.path(view, at.file));
    let at = at.unwrap_or_default();
    Frame { names, file, line: at.line, column: at.column, inlined }
}
