//! The debug map: stabs that name the object files an image was linked from. `<mach-o/stab.h>`; how `dsymutil` and
//! debuggers read it.

use std::borrow::Cow;
use std::collections::HashMap;

use backtrail_core::Svma;
use object::Endianness;
use object::macho::{N_FUN, N_GSYM, N_LCSYM, N_OSO, N_SECT, N_SO, N_STSYM, Nlist32, Nlist64};
use object::read::macho::Nlist;

use super::parser::{Symtab, Tables, code_address};
use super::symbols::entries;
use crate::object::Object;
use crate::symbol::{Names, text};

/// One object file that the linker took code or data from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DebugMapEntry<'d> {
    /// The object file, or the archive that it is a member of.
    pub path: Cow<'d, str>,
    /// The member of that archive: `libx.a(member.o)` is stated as one name.
    pub member: Option<Cow<'d, str>>,
    /// When the object file (not the archive) was changed, in seconds since 1970; zero where the build is reproducible.
    /// Another time in the file itself means another build.
    pub modified: u64,
    /// Functions, in the file's order.
    pub functions: Vec<DebugMapFunction<'d>>,
    /// Variables, in the file's order.
    pub variables: Vec<DebugMapVariable<'d>>,
}

/// A function of one object file, and where it went.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DebugMapFunction<'d> {
    /// The linker's name, as the object file's symbol table has it too.
    pub name: Cow<'d, str>,
    /// Where it was linked to, the Thumb bit cleared.
    pub address: Svma,
    /// Bytes; zero where the linker did not say.
    pub size: u64,
}

/// A variable of one object file, and where it went.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DebugMapVariable<'d> {
    /// The linker's name, as the object file's symbol table has it too.
    pub name: Cow<'d, str>,
    /// Where it was linked to; `None` for globals that the symbol table does not list any more.
    pub address: Option<Svma>,
}

/// The object files of the debug map, in the order of linking; empty where there are no stabs or they cannot be read.
pub(crate) fn read<'d>(object: &Object<'d>, tables: &Tables<'d>) -> Vec<DebugMapEntry<'d>> {
    let Some(symtab) = tables.symtab else { return Vec::new() };
    let endian = tables.header.endian;
    if tables.header.is_64 {
        read_as::<Nlist64<Endianness>>(object, endian, symtab)
    } else {
        read_as::<Nlist32<Endianness>>(object, endian, symtab)
    }
}

fn read_as<'d, N: Nlist<Endian = Endianness>>(
    object: &Object<'d>,
    endian: Endianness,
    symtab: Symtab,
) -> Vec<DebugMapEntry<'d>> {
    let Ok((entries, strings)) = entries::<N, _>(object.view, symtab) else { return Vec::new() };
    let mut builder = Builder { object, map: Vec::new(), is_open: false, function: None };
    let mut names = Names::new(strings, entries.len());
    for entry in entries.iter().filter(|entry| entry.is_stab()).take(object.limits.symbols) {
        let name = names.get(entry.n_strx(endian).into()).unwrap_or_default();
        builder.stab(entry.n_type().0, name, entry.n_value(endian).into());
    }
    let mut map = builder.map;
    place_globals(object, endian, entries, &mut names, &mut map);
    map
}

struct Builder<'o, 'd> {
    object: &'o Object<'d>,
    map: Vec<DebugMapEntry<'d>>,
    /// Whether the last entry still takes stabs: between its `N_OSO` and the next `N_SO`.
    is_open: bool,
    /// The function that the next unnamed `N_FUN` gives the size of.
    function: Option<(&'d [u8], u64)>,
}

impl<'d> Builder<'_, 'd> {
    fn stab(&mut self, kind: u8, name: &'d [u8], value: u64) {
        if kind == N_OSO.0 {
            let (path, member) = split_member(name);
            let (functions, variables) = (Vec::new(), Vec::new());
            let (path, member) = (text(path), member.map(text));
            self.map.push(DebugMapEntry { path, member, modified: value, functions, variables });
            (self.is_open, self.function) = (true, None);
            return;
        }
        if kind == N_SO.0 {
            (self.is_open, self.function) = (false, None);
            return;
        }
        let Some(entry) = self.map.last_mut().filter(|_| self.is_open) else { return };
        if kind == N_FUN.0 && !name.is_empty() {
            self.function = Some((name, value));
        } else if kind == N_FUN.0 {
            let Some((name, address)) = self.function.take() else { return };
            let address = code_address(self.object, address, true);
            entry.functions.push(DebugMapFunction { name: text(name), address, size: value });
        } else if (kind == N_STSYM.0 || kind == N_LCSYM.0) && !name.is_empty() {
            entry.variables.push(DebugMapVariable { name: text(name), address: Some(Svma::new(value)) });
        } else if kind == N_GSYM.0 && !name.is_empty() {
            entry.variables.push(DebugMapVariable { name: text(name), address: None });
        }
    }
}

/// `N_GSYM` states no address: the symbol itself does.
fn place_globals<'d, N: Nlist<Endian = Endianness>>(
    object: &Object<'d>,
    endian: Endianness,
    entries: &[N],
    names: &mut Names<'d>,
    map: &mut [DebugMapEntry<'d>],
) {
    if !map.iter().any(|entry| entry.variables.iter().any(|variable| variable.address.is_none())) {
        return;
    }
    let mut addresses: HashMap<Cow<'d, str>, Svma> = HashMap::new();
    let is_global =
        |entry: &&N| entry.n_type().typ() == N_SECT && entry.n_type().is_ext() && !entry.is_stab();
    for entry in entries.iter().filter(is_global).take(object.limits.symbols) {
        let Some(name) = names.get(entry.n_strx(endian).into()) else { continue };
        addresses.insert(text(name), Svma::new(entry.n_value(endian).into()));
    }
    for variable in map.iter_mut().flat_map(|entry| &mut entry.variables) {
        variable.address = variable.address.or_else(|| addresses.get(&variable.name).copied());
    }
}

/// `libx.a(member.o)` as archive and member.
fn split_member(name: &[u8]) -> (&[u8], Option<&[u8]>) {
    let whole = (name, None);
    let Some(inner) = name.strip_suffix(b")") else { return whole };
    // A member may have parentheses in its own name, so the archive's suffix decides where there is one.
    let archive = inner.windows(3).position(|window| window == b".a(").map(|at| at + 2);
    let Some(at) = archive.or_else(|| inner.iter().rposition(|byte| *byte == b'(')) else { return whole };
    match (inner.get(..at), inner.get(at + 1..)) {
        (Some(path), Some(member)) if !path.is_empty() && !member.is_empty() => (path, Some(member)),
        _ => whole,
    }
}

#[cfg(test)]
mod tests;
