//! `.symtab` and `.dynsym`; the latter also where the section headers were stripped off.

use backtrail_core::{Family, Svma};
use object::elf::{
    EM_PPC64, SHN_ABS, SHN_COMMON, SHN_UNDEF, SHN_XINDEX, SHT_DYNSYM, SHT_SYMTAB, SHT_SYMTAB_SHNDX,
    STB_LOCAL, STB_WEAK, STT_COMMON, STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_OBJECT, STT_SECTION, STT_TLS,
    Sym32, Sym64,
};
use object::read::elf::Sym;
use object::{Endianness, U32, U64};

use super::dynamic;
use super::tables::{RawSection, Tables};
use crate::error::{Error, ErrorKind, Result};
use crate::object::Object;
use crate::symbol::{Binding, Names, Symbol, SymbolTable, add_unknown, text};
use crate::view::pod_at;

/// Every defined symbol: those of `.symtab`, and what `.dynsym` has besides. A table that is broken is left out.
pub(crate) fn read<'d>(object: &Object<'d>, tables: &Tables) -> (Vec<Symbol<'d>>, Vec<Error>) {
    if tables.header.is_64 {
        read_as::<Sym64<Endianness>>(object, tables)
    } else {
        read_as::<Sym32<Endianness>>(object, tables)
    }
}

fn read_as<'d, S: Sym<Endian = Endianness>>(
    object: &Object<'d>,
    tables: &Tables,
) -> (Vec<Symbol<'d>>, Vec<Error>) {
    let (mut symbols, mut problems) = (Vec::new(), Vec::new());
    let mut has_dynsym = false;
    for (index, raw) in tables.raw_sections.iter().enumerate() {
        let kind = match raw.kind {
            SHT_SYMTAB => SymbolTable::Symtab,
            SHT_DYNSYM => SymbolTable::Dynsym,
            _ => continue,
        };
        has_dynsym |= kind == SymbolTable::Dynsym;
        match of_section::<S>(object, tables, index, kind).and_then(|table| table.symbols()) {
            Ok(more) => add_unknown(&mut symbols, more),
            Err(error) => problems.push(error),
        }
    }
    if !has_dynsym {
        match dynamic_table::<S>(object, tables) {
            Ok(Some(table)) => match table.symbols() {
                Ok(more) => add_unknown(&mut symbols, more),
                Err(error) => problems.push(error),
            },
            Ok(None) => {}
            Err(error) => problems.push(error),
        }
    }
    (symbols, problems)
}

struct Table<'o, 'd, S> {
    object: &'o Object<'d>,
    endian: Endianness,
    kind: SymbolTable,
    entries: &'d [S],
    strings: &'d [u8],
    /// `SHT_SYMTAB_SHNDX`: section numbers of symbols where they do not fit 16 bits.
    wide_indices: &'d [U32<Endianness>],
    offset: u64,
    descriptors: Option<Descriptors<'d>>,
}

/// `.opd`: on 64-bit PowerPC before ELFv2 a function's symbol names a descriptor, whose first word is the address of the
/// code. 64-bit PowerPC ELF ABI Supplement, "Function Descriptors".
#[derive(Clone, Copy)]
struct Descriptors<'d> {
    start: Svma,
    bytes: &'d [u8],
    endian: Endianness,
}

impl<'d> Descriptors<'d> {
    fn of(object: &Object<'d>, tables: &Tables) -> Option<Self> {
        let is_powerpc = tables.header.machine == EM_PPC64;
        let section = object.headers.sections.iter().find(|section| is_powerpc && section.name == ".opd")?;
        let bytes = object.raw_section_data(section).ok()?;
        Some(Self { start: section.address.start(), bytes, endian: tables.header.endian })
    }

    /// The code that the descriptor at `address` stands for; `None` for any other address.
    fn code(&self, address: Svma) -> Option<Svma> {
        let at = usize::try_from(address.offset_from(self.start)?).ok()?;
        pod_at::<U64<Endianness>>(self.bytes, at).map(|word| Svma::new(word.get(self.endian)))
    }
}

fn of_section<'o, 'd, S: Sym<Endian = Endianness>>(
    object: &'o Object<'d>,
    tables: &Tables,
    index: usize,
    kind: SymbolTable,
) -> Result<Table<'o, 'd, S>> {
    let sections = &object.headers.sections;
    let file = sections.get(index).and_then(|section| section.file);
    let Some(file) = file else { return Ok(Table::empty(object, tables, kind)) };
    let (offset, count) = (file.start().get(), file.size() / size_of::<S>() as u64);
    let link = tables.raw_sections.get(index).and_then(|raw| usize::try_from(raw.link).ok());
    let strings = link.and_then(|link| sections.get(link)).and_then(|section| section.file);
    let strings = match strings {
        Some(range) => object.view.bytes_up_to(range.start().get(), range.size(), "the symbols' names")?,
        None => return Err(object.view.malformed(offset, "expected the section of the symbols' names")),
    };
    let wide_indices = wide_indices(object, tables, index)?;
    let entries = object.view.table(offset, count, "a symbol table")?;
    Ok(Table { entries, strings, wide_indices, offset, ..Table::empty(object, tables, kind) })
}

/// `SHT_SYMTAB_SHNDX`: the section numbers of a table's symbols where they do not fit 16 bits.
pub(super) fn wide_indices<'d>(
    object: &Object<'d>,
    tables: &Tables,
    index: usize,
) -> Result<&'d [U32<Endianness>]> {
    let is_wide = |raw: &RawSection| {
        raw.kind == SHT_SYMTAB_SHNDX && usize::try_from(raw.link).is_ok_and(|link| link == index)
    };
    let wide = tables.raw_sections.iter().position(is_wide);
    let wide = wide.and_then(|at| object.headers.sections.get(at)?.file);
    wide.map_or(Ok(&[][..]), |range| {
        object.view.table(range.start().get(), range.size() / 4, "the symbols' section numbers")
    })
}

/// `.dynsym` as the dynamic linker finds it: it knows no end of the table but the hash table's.
fn dynamic_table<'o, 'd, S: Sym<Endian = Endianness>>(
    object: &'o Object<'d>,
    tables: &Tables,
) -> Result<Option<Table<'o, 'd, S>>> {
    let Some(found) = dynamic::symbols(object, tables)? else { return Ok(None) };
    let entries = object.view.table(found.offset, found.count, "the dynamic symbol table")?;
    let strings = object.view.bytes_up_to(found.strings, found.strings_size, "the dynamic symbols' names")?;
    let empty = Table::empty(object, tables, SymbolTable::Dynsym);
    Ok(Some(Table { entries, strings, offset: found.offset, ..empty }))
}

impl<'o, 'd, S: Sym<Endian = Endianness>> Table<'o, 'd, S> {
    fn empty(object: &'o Object<'d>, tables: &Tables, kind: SymbolTable) -> Self {
        let endian = tables.header.endian;
        let descriptors = Descriptors::of(object, tables);
        Self { object, endian, kind, entries: &[], strings: &[], wide_indices: &[], offset: 0, descriptors }
    }

    fn symbols(&self) -> Result<Vec<Symbol<'d>>> {
        let limit = self.object.limits.symbols;
        if self.entries.len() > limit {
            let offset = self.object.view.absolute(self.offset);
            return Err(Error::new(ErrorKind::LimitExceeded, offset, format!("more than {limit} symbols")));
        }
        let mut names = Names::new(self.strings, self.entries.len());
        let mut symbols = Vec::new();
        let mut source = None;
        for (index, entry) in self.entries.iter().enumerate() {
            // Local symbols stand behind the file that they are of; one without a name ends that.
            if entry.st_type() == STT_FILE {
                source =
                    names.get(entry.st_name(self.endian).into()).and_then(|name| str::from_utf8(name).ok());
            } else if let Some(symbol) = self.symbol(index, entry, &mut names) {
                let source = source.filter(|_| symbol.binding == Binding::Local);
                symbols.push(Symbol { source, ..symbol });
            }
        }
        Ok(symbols)
    }

    fn symbol(&self, index: usize, entry: &S, names: &mut Names<'d>) -> Option<Symbol<'d>> {
        let kind = entry.st_type();
        if matches!(kind, STT_SECTION | STT_FILE | STT_TLS | STT_COMMON) {
            return None;
        }
        let number = match entry.st_shndx(self.endian) {
            SHN_UNDEF | SHN_ABS | SHN_COMMON => return None,
            SHN_XINDEX => self.wide_indices.get(index).map(|number| number.get(self.endian))?,
            number => u32::from(number.0),
        };
        let name = names.get(entry.st_name(self.endian).into())?;
        if is_mapping_symbol(name) {
            return None;
        }
        let value: u64 = entry.st_value(self.endian).into();
        let is_function = kind == STT_FUNC || kind == STT_GNU_IFUNC;
        let is_thumb = is_function && self.object.headers.arch.family() == Family::Arm;
        let stated = Svma::new(if is_thumb { value & !1 } else { value });
        let code = self.descriptors.and_then(|descriptors| descriptors.code(stated));
        let (address, (section, is_in_code)) = match code {
            Some(code) => (code, self.section_at(code)),
            None => (stated, self.section(number, stated)),
        };
        let binding = match entry.st_bind() {
            STB_LOCAL => Binding::Local,
            STB_WEAK => Binding::Weak,
            _ => Binding::Global,
        };
        let size = entry.st_size(self.endian).into();
        Some(Symbol {
            name: text(without_version(name)),
            address,
            size: if size == 0 { None } else { Some(size) },
            is_code: is_function || (kind != STT_OBJECT && is_in_code),
            binding,
            section,
            table: self.kind,
            source: None,
        })
    }

    /// The section that holds the code of a descriptor.
    fn section_at(&self, address: Svma) -> (Option<usize>, bool) {
        let sections = &self.object.headers.sections;
        let index = sections.iter().position(|section| section.is_code && section.address.contains(address));
        (index, index.is_some())
    }

    /// The section, unless the symbol only carries its number (`_end`, `__bss_start` lie behind it), and whether the
    /// address is code there.
    fn section(&self, number: u32, address: Svma) -> (Option<usize>, bool) {
        let index = usize::try_from(number).ok();
        let Some(section) = index.and_then(|index| self.object.headers.sections.get(index)) else {
            return (None, false);
        };
        let is_inside = section.address.contains(address);
        (index.filter(|_| is_inside || section.address.end() == address), is_inside && section.is_code)
    }
}

/// Marks of where code and data begin: `$a`, `$t`, `$x`, `$d`, also `$d.1` and RISC-V's `$xrv64i2p1`. ARM's, AArch64's
/// and RISC-V's ELF supplements.
fn is_mapping_symbol(name: &[u8]) -> bool {
    match name {
        // Android's dynamic linker has a prefix before the names of everything that was linked into it.
        [b'_', b'_', b'd', b'l', b'_', rest @ ..] => is_mapping_symbol(rest),
        [b'$', b'a' | b't' | b'd' | b'x'] | [b'$', b'a' | b't' | b'd' | b'x', b'.', ..] => true,
        _ => name.starts_with(b"$xrv"),
    }
}

/// GNU's linker writes the version of a dynamic symbol behind its name: `read@@GLIBC_2.2.5`.
fn without_version(name: &[u8]) -> &[u8] {
    match name.iter().position(|byte| *byte == b'@') {
        Some(at) if at > 0 => name.get(..at).unwrap_or(name),
        _ => name,
    }
}

#[cfg(test)]
mod tests;
