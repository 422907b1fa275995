//! What lookups pass over and a few output forms show: declarations and discriminators.

use super::file::DwarfFile;
use super::files::FilePath;
use super::line_program::number;
use super::stated::follow;
use super::unit::Unit;
use super::value::Value;
use super::view::View;
use gimli::constants as dw;

/// Functions of one answer; as many as lookups give.
const MAX_FUNCTIONS: usize = 1024;
/// Origins and declarations are followed this far, as for names.
const MAX_HOPS: usize = 16;

/// The details of an address.
#[derive(Clone, Default)]
pub(crate) struct FoundDetails<'a> {
    /// Innermost first, like the frames of a lookup.
    pub(crate) functions: Vec<Declared<'a>>,
    /// Of the row at the address.
    pub(crate) discriminator: u32,
}

/// What a function's DIE, or the one that it was made from, states.
#[derive(Clone, Copy, Default)]
pub(crate) struct Declared<'a> {
    pub(crate) low_pc: Option<u64>,
    pub(crate) file: Option<FilePath<'a>>,
    pub(crate) line: u32,
    pub(crate) call_discriminator: u32,
}

impl<'d> DwarfFile<'d> {
    /// The details of an address that a lookup has answered.
    pub(crate) fn details(&self, address: u64) -> Option<FoundDetails<'_>> {
        let listed = self.details_in(self.listed_units(address), address);
        let stated = || self.details_in(self.stated_units(address), address);
        listed.or_else(stated).or_else(|| self.details_in(self.scanned_units(address), address))
    }

    fn details_in<'a>(
        &'a self,
        units: impl Iterator<Item = &'a Unit<'d>>,
        address: u64,
    ) -> Option<FoundDetails<'a>>
    where
        'd: 'a,
    {
        let mut only_line = None;
        for view in units.filter_map(|unit| self.view(unit)) {
            let dies = self.split(view).ok()?.unwrap_or(view);
            let block = view.lines().and_then(|lines| lines.find_block(view, address));
            let discriminator = block.map_or(0, |(_, discriminator)| discriminator);
            if let Some(functions) = functions(view, dies, address) {
                return Some(FoundDetails { functions, discriminator });
            }
            let line = block.map(|_| FoundDetails { functions: vec![Declared::default()], discriminator });
            only_line = only_line.or(line);
        }
        only_line
    }
}

/// `view` has the lines, `dies` the functions: two units where debug info is split.
fn functions<'a, 'd>(view: View<'a, 'd>, dies: View<'a, 'd>, address: u64) -> Option<Vec<Declared<'a>>> {
    let found = dies.functions().find(address).or_else(|| dies.all_functions().find(address));
    let (function, _) = found?;
    let calls = function.inlines(dies).chain(address).take(MAX_FUNCTIONS);
    let mut functions: Vec<_> = calls.map(|call| declared(view, dies, call.die(dies))).collect();
    functions.push(declared(view, dies, function.die(dies)));
    Some(functions)
}

/// Collects what the DIE at a section offset, its origins and its declarations state; the nearest one counts.
fn declared<'a, 'd>(view: View<'a, 'd>, dies: View<'a, 'd>, die: u64) -> Declared<'a> {
    let mut declared = Declared::default();
    let (mut file, mut line) = (None, None);
    let mut at = (dies, die);
    for hop in 0..MAX_HOPS {
        let (unit, die) = at;
        let Some(stated) = read_stated(unit, die) else { break };
        if hop == 0 {
            declared.low_pc = stated.low_pc.and_then(|low| unit.address(low));
            declared.call_discriminator = small(stated.discriminator);
        }
        // A split unit's files are listed with the skeleton's lines; those of another unit are its own.
        let lines_of = if std::ptr::eq(unit.unit, dies.unit) { view } else { unit };
        file = file.or_else(|| lines_of.lines()?.files.path(lines_of, small(Some(stated.file?))));
        line = line.or(stated.line);
        let Some(next) = stated.origin.and_then(|origin| follow(unit, origin)) else { break };
        if file.is_some() && line.is_some() {
            break;
        }
        at = next;
    }
    Declared { file, line: small(line), ..declared }
}

#[derive(Default)]
struct Stated {
    low_pc: Option<Value>,
    file: Option<Value>,
    line: Option<Value>,
    discriminator: Option<Value>,
    origin: Option<Value>,
}

fn read_stated(view: View<'_, '_>, die: u64) -> Option<Stated> {
    let abbrevs = &*view.body.abbrevs;
    let mut reader = view.reader(die);
    let abbrev = abbrevs.next_die(&mut reader).ok()??;
    let mut stated = Stated::default();
    for spec in abbrevs.specs(abbrev) {
        let value = abbrevs.value(*spec, &mut reader)?;
        let field = match gimli::DwAt(spec.name) {
            dw::DW_AT_low_pc => &mut stated.low_pc,
            dw::DW_AT_decl_file => &mut stated.file,
            dw::DW_AT_decl_line => &mut stated.line,
            dw::DW_AT_GNU_discriminator => &mut stated.discriminator,
            dw::DW_AT_abstract_origin | dw::DW_AT_specification => &mut stated.origin,
            _ => continue,
        };
        *field = Some(value);
    }
    Some(stated)
}

fn small(value: Option<Value>) -> u32 {
    value.and_then(Value::unsigned).map_or(0, number)
}
