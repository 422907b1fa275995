//! `LC_SYMTAB`, and the merge with the exports trie.

use backtrail_core::Svma;
use object::macho::{N_ABS, N_ARM_THUMB_DEF, N_SECT, N_WEAK_DEF, Nlist32, Nlist64};
use object::read::macho::Nlist;
use object::{Endianness, ReadRef};

use super::exports;
use super::local_symbols::local_symbols;
use super::parser::{Symtab, Tables, code_address, too_many};
use crate::error::{Error, Result};
use crate::object::Object;
use crate::symbol::{Binding, Names, Symbol, SymbolTable, add_unknown, text};
use crate::view::View;

/// Every defined symbol: those of `LC_SYMTAB`, exports that it does not list, and the locals that a shared cache keeps
/// apart. A table that is broken is left out.
pub(crate) fn read<'d>(object: &Object<'d>, tables: &Tables<'d>) -> (Vec<Symbol<'d>>, Vec<Error>) {
    let (mut symbols, mut problems) = (Vec::new(), Vec::new());
    let locals = local_symbols(object, tables).unwrap_or_else(|error| {
        problems.push(error);
        None
    });
    for (symtab, kind) in [(tables.symtab, SymbolTable::Nlist), (locals, SymbolTable::CacheLocals)] {
        let Some(symtab) = symtab else { continue };
        let table = Table { object, endian: tables.header.endian, symtab, kind };
        problems.extend(table.read(tables.header.is_64, &mut symbols).err());
    }
    match exports::read(object, tables) {
        // Unstripped images list their exports in both tables.
        Ok(exported) => add_unknown(&mut symbols, exported),
        Err(error) => problems.push(error),
    }
    (symbols, problems)
}

struct Table<'o, 'd> {
    object: &'o Object<'d>,
    endian: Endianness,
    symtab: Symtab,
    kind: SymbolTable,
}

impl<'d> Table<'_, 'd> {
    fn read(&self, is_64: bool, symbols: &mut Vec<Symbol<'d>>) -> Result<()> {
        if is_64 {
            self.read_as::<Nlist64<Endianness>>(symbols)
        } else {
            self.read_as::<Nlist32<Endianness>>(symbols)
        }
    }

    fn read_as<N: Nlist<Endian = Endianness>>(&self, symbols: &mut Vec<Symbol<'d>>) -> Result<()> {
        let (entries, strings) = entries::<N, _>(self.object.view, self.symtab)?;
        let mut names = Names::new(strings, entries.len());
        if entries.len().saturating_add(symbols.len()) > self.object.limits.symbols {
            let offset = self.object.view.absolute(self.symtab.symoff);
            return Err(too_many(offset, "symbols", self.object.limits.symbols));
        }
        symbols.extend(entries.iter().filter_map(|entry| self.symbol(entry, &mut names)));
        Ok(())
    }

    fn symbol<N: Nlist<Endian = Endianness>>(&self, entry: &N, names: &mut Names<'d>) -> Option<Symbol<'d>> {
        let kind = entry.n_type();
        if kind.is_stab() || kind.typ() != N_SECT || kind.typ() == N_ABS {
            return None;
        }
        let desc = entry.n_desc(self.endian);
        let name = names.get(entry.n_strx(self.endian).into())?;
        if name.starts_with(b"radr://") {
            // Marks of Apple's linker about itself, e.g. radr://5614542 in images that `strip` went over.
            return None;
        }
        let value = entry.n_value(self.endian).into();
        let (section, is_code) = section_of(self.object, Svma::new(value), entry.n_sect());
        let is_thumb = desc.contains(N_ARM_THUMB_DEF);
        let binding = match () {
            () if !kind.is_ext() => Binding::Local,
            () if desc.contains(N_WEAK_DEF) => Binding::Weak,
            () => Binding::Global,
        };
        Some(Symbol {
            name: text(name),
            address: code_address(self.object, value, is_code || is_thumb),
            size: None,
            is_code,
            binding,
            section,
            table: self.kind,
            source: None,
        })
    }
}

/// The entries of a symbol table and their strings.
pub(super) fn entries<'d, N: Nlist<Endian = Endianness>, R: ReadRef<'d>>(
    view: View<R>,
    symtab: Symtab,
) -> Result<(&'d [N], &'d [u8])> {
    let entries = view.table::<N>(symtab.symoff, symtab.nsyms, "the symbol table")?;
    // A file that was cut off in its strings still has the names before.
    let strings = view.bytes_up_to(symtab.stroff, symtab.strsize, "the symbols' names").unwrap_or_default();
    Ok((entries, strings))
}

/// The section that a symbol says it belongs to (`number` is one more than the index) and whether it is code there. One
/// that lies elsewhere (`__mh_execute_header`) belongs to none; one at the very end of its section names none of its
/// bytes.
fn section_of(object: &Object<'_>, address: Svma, number: u8) -> (Option<usize>, bool) {
    let index = usize::from(number).checked_sub(1);
    let Some(section) = index.and_then(|index| object.headers.sections.get(index)) else {
        return (None, false);
    };
    let is_inside = section.address.contains(address);
    (index.filter(|_| is_inside || section.address.end() == address), is_inside && section.is_code)
}

#[cfg(test)]
mod tests;
