//! Relocations of debug sections in relocatable files: `.o` files and kernel modules, whose debug info holds nothing but
//! zeros (or addends) where addresses and offsets into other sections belong. The processors' ELF supplements.
//!
//! Only what compilers write into debug sections: whole words that name an address or an offset, and RISC-V's
//! differences of labels.

use std::collections::HashSet;

use backtrail_core::{AddrRange, Svma};
use object::elf::*;
use object::read::elf::{FileHeader, Rel, Rela, Sym};
use object::{Endianness, U32};

use super::tables::Tables;
use crate::error::{Error, ErrorKind, Result};
use crate::object::Object;
use crate::section::Section;

/// What a relocation does with `symbol + addend` at its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Set,
    Add,
    Subtract,
    /// Offsets of thread-local variables, which are no addresses.
    Ignore,
}

/// What stands at the place: a word of so many bytes, or a LEB128 number, whose length stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Bytes(usize),
    Leb,
}

#[rustfmt::skip]
const KNOWN: [(Machine, RelocationType, Action, Field); 57] = {
    use Action::{Add, Ignore, Set, Subtract};
    use Field::{Bytes, Leb};
    [
        (EM_X86_64, R_X86_64_NONE, Ignore, Bytes(0)),
        (EM_X86_64, R_X86_64_64, Set, Bytes(8)),
        (EM_X86_64, R_X86_64_32, Set, Bytes(4)),
        (EM_X86_64, R_X86_64_32S, Set, Bytes(4)),
        (EM_X86_64, R_X86_64_DTPOFF64, Ignore, Bytes(8)),
        (EM_X86_64, R_X86_64_DTPOFF32, Ignore, Bytes(4)),
        (EM_386, R_386_NONE, Ignore, Bytes(0)),
        (EM_386, R_386_32, Set, Bytes(4)),
        (EM_386, R_386_TLS_LDO_32, Ignore, Bytes(4)),
        (EM_AARCH64, R_AARCH64_NONE, Ignore, Bytes(0)),
        (EM_AARCH64, R_AARCH64_ABS64, Set, Bytes(8)),
        (EM_AARCH64, R_AARCH64_ABS32, Set, Bytes(4)),
        (EM_ARM, R_ARM_NONE, Ignore, Bytes(0)),
        (EM_ARM, R_ARM_ABS32, Set, Bytes(4)),
        (EM_ARM, R_ARM_TLS_LDO32, Ignore, Bytes(4)),
        (EM_PPC, R_PPC_NONE, Ignore, Bytes(0)),
        (EM_PPC, R_PPC_ADDR32, Set, Bytes(4)),
        (EM_PPC, R_PPC_DTPREL32, Ignore, Bytes(4)),
        (EM_PPC64, R_PPC64_NONE, Ignore, Bytes(0)),
        (EM_PPC64, R_PPC64_ADDR64, Set, Bytes(8)),
        (EM_PPC64, R_PPC64_ADDR32, Set, Bytes(4)),
        (EM_PPC64, R_PPC64_DTPREL64, Ignore, Bytes(8)),
        (EM_S390, R_390_NONE, Ignore, Bytes(0)),
        (EM_S390, R_390_64, Set, Bytes(8)),
        (EM_S390, R_390_32, Set, Bytes(4)),
        (EM_S390, R_390_TLS_LDO64, Ignore, Bytes(8)),
        (EM_MIPS, R_MIPS_NONE, Ignore, Bytes(0)),
        (EM_MIPS, R_MIPS_32, Set, Bytes(4)),
        (EM_MIPS, R_MIPS_64, Set, Bytes(8)),
        (EM_MIPS, R_MIPS_TLS_DTPREL32, Ignore, Bytes(4)),
        (EM_MIPS, R_MIPS_TLS_DTPREL64, Ignore, Bytes(8)),
        (EM_RISCV, R_RISCV_NONE, Ignore, Bytes(0)),
        (EM_RISCV, R_RISCV_64, Set, Bytes(8)),
        (EM_RISCV, R_RISCV_32, Set, Bytes(4)),
        (EM_RISCV, R_RISCV_TLS_DTPREL64, Ignore, Bytes(8)),
        (EM_RISCV, R_RISCV_ADD8, Add, Bytes(1)),
        (EM_RISCV, R_RISCV_ADD16, Add, Bytes(2)),
        (EM_RISCV, R_RISCV_ADD32, Add, Bytes(4)),
        (EM_RISCV, R_RISCV_ADD64, Add, Bytes(8)),
        (EM_RISCV, R_RISCV_SUB8, Subtract, Bytes(1)),
        (EM_RISCV, R_RISCV_SUB16, Subtract, Bytes(2)),
        (EM_RISCV, R_RISCV_SUB32, Subtract, Bytes(4)),
        (EM_RISCV, R_RISCV_SUB64, Subtract, Bytes(8)),
        (EM_RISCV, R_RISCV_SET8, Set, Bytes(1)),
        (EM_RISCV, R_RISCV_SET16, Set, Bytes(2)),
        (EM_RISCV, R_RISCV_SET32, Set, Bytes(4)),
        (EM_RISCV, R_RISCV_SET_ULEB128, Set, Leb),
        (EM_RISCV, R_RISCV_SUB_ULEB128, Subtract, Leb),
        (EM_LOONGARCH, R_LARCH_NONE, Ignore, Bytes(0)),
        (EM_LOONGARCH, R_LARCH_64, Set, Bytes(8)),
        (EM_LOONGARCH, R_LARCH_32, Set, Bytes(4)),
        (EM_LOONGARCH, R_LARCH_ADD32, Add, Bytes(4)),
        (EM_LOONGARCH, R_LARCH_ADD64, Add, Bytes(8)),
        (EM_LOONGARCH, R_LARCH_SUB32, Subtract, Bytes(4)),
        (EM_LOONGARCH, R_LARCH_SUB64, Subtract, Bytes(8)),
        (EM_LOONGARCH, R_LARCH_ADD_ULEB128, Add, Leb),
        (EM_LOONGARCH, R_LARCH_SUB_ULEB128, Subtract, Leb),
    ]
};

/// One relocation, whatever its form.
struct Relocation {
    offset: u64,
    kind: RelocationType,
    symbol: u32,
    /// Where it is missing (`SHT_REL`), it stands at the place.
    addend: Option<i64>,
}

/// The numbers of all sections that [`apply`] changes.
pub(crate) fn targets(tables: &Tables) -> HashSet<usize> {
    if tables.header.file_type != ET_REL {
        return HashSet::new();
    }
    let raw = tables.raw_sections.iter().filter(|raw| matches!(raw.kind, SHT_REL | SHT_RELA));
    raw.filter_map(|raw| usize::try_from(raw.info).ok()).collect()
}

/// Whether a linker would change the bytes of this section, and [`apply`] stands in for it.
pub(crate) fn concern(tables: &Tables, section: &Section<'_>) -> bool {
    tables.header.file_type == ET_REL && !section.is_loaded && tables_of(tables, section).next().is_some()
}

fn tables_of<'t>(tables: &'t Tables, section: &Section<'_>) -> impl Iterator<Item = usize> + use<'t> {
    let wanted = u32::try_from(section.index).ok();
    let raw = tables.raw_sections.iter().enumerate();
    raw.filter(move |(_, raw)| matches!(raw.kind, SHT_REL | SHT_RELA) && Some(raw.info) == wanted)
        .map(|(index, _)| index)
}

/// Fills in what a linker would have, every section lying where its header says; see
/// [`Object::relocated_section_data`].
pub(crate) fn apply(
    object: &Object<'_>,
    tables: &Tables,
    section: &Section<'_>,
    data: &mut [u8],
) -> Result<()> {
    let sizes = tables_of(tables, section).filter_map(|index| object.headers.sections.get(index)?.file);
    let all = sizes.map(AddrRange::size).fold(0, u64::saturating_add);
    if all > object.view.len() {
        // Many headers of one and the same table would have it applied many times.
        let offset = section.file.map_or(0, |file| file.start().get());
        let detail =
            format!("the relocations of section {} come to {all} bytes, more than the file", section.name);
        return Err(object.view.malformed(offset, detail));
    }
    let shadow_ends = object.shadow_ends();
    for index in tables_of(tables, section) {
        if tables.header.is_64 {
            apply_table::<FileHeader64<Endianness>>(object, tables, index, &shadow_ends, data)?;
        } else {
            apply_table::<FileHeader32<Endianness>>(object, tables, index, &shadow_ends, data)?;
        }
    }
    Ok(())
}

fn apply_table<E>(
    object: &Object<'_>,
    tables: &Tables,
    index: usize,
    shadow_ends: &[Svma],
    data: &mut [u8],
) -> Result<()>
where
    E: FileHeader<Endian = Endianness>,
{
    let endian = tables.header.endian;
    let Some(raw) = tables.raw_sections.get(index) else { return Ok(()) };
    let symbols = Symbols::<E>::of(object, tables, raw.link)?;
    let place = RelocationContext { object, tables, symbols, shadow_ends, table: index };
    if raw.kind == SHT_RELA {
        for raw in place.table::<E::Rela>()? {
            let (offset, addend) = (raw.r_offset(endian).into(), Some(raw.r_addend(endian).into()));
            let (kind, symbol) = (raw.r_type(endian, false), raw.r_sym(endian, false));
            place.apply(&Relocation { offset, kind, symbol, addend }, data)?;
        }
    } else {
        for raw in place.table::<E::Rel>()? {
            let (offset, kind, symbol) = (raw.r_offset(endian).into(), raw.r_type(endian), raw.r_sym(endian));
            place.apply(&Relocation { offset, kind, symbol, addend: None }, data)?;
        }
    }
    Ok(())
}

struct RelocationContext<'o, 'd, E: FileHeader> {
    object: &'o Object<'d>,
    tables: &'o Tables,
    symbols: Symbols<'d, E>,
    shadow_ends: &'o [Svma],
    /// The section of the relocations.
    table: usize,
}

impl<'d, E: FileHeader<Endian = Endianness>> RelocationContext<'_, 'd, E> {
    fn table<T: object::pod::Pod>(&self) -> Result<&'d [T]> {
        let file = self.object.headers.sections.get(self.table).and_then(|section| section.file);
        let (offset, size) = file.map_or((0, 0), |file| (file.start().get(), file.size()));
        self.object.view.table(offset, size / size_of::<T>() as u64, "relocations")
    }

    fn error(&self, kind: ErrorKind, detail: String) -> Error {
        let file = self.object.headers.sections.get(self.table).and_then(|section| section.file);
        Error::new(kind, self.object.view.absolute(file.map_or(0, |file| file.start().get())), detail)
    }

    fn apply(&self, relocation: &Relocation, data: &mut [u8]) -> Result<()> {
        let machine = self.tables.header.machine;
        let mut known = KNOWN.iter().filter(|(of, ..)| *of == machine);
        let Some((_, _, action, field)) = known.find(|(_, kind, ..)| *kind == relocation.kind) else {
            let detail = format!("relocation {} of machine {} in debug info", relocation.kind.0, machine.0);
            return Err(self.error(ErrorKind::Unsupported, detail));
        };
        if *action == Action::Ignore {
            return Ok(());
        }
        let place = find_place(data, relocation.offset, *field).ok_or_else(|| {
            let detail = format!("a relocation changes byte {:#x} of a shorter section", relocation.offset);
            self.error(ErrorKind::Malformed, detail)
        })?;
        let (symbol, section) = self.symbols.get(relocation.symbol).ok_or_else(|| {
            let detail = format!("a relocation names symbol {}, there are fewer", relocation.symbol);
            self.error(ErrorKind::Malformed, detail)
        })?;
        let endian = self.tables.header.endian;
        let before = load(place, *field, endian);
        let value = symbol.wrapping_add(relocation.addend.map_or(before, i64::cast_unsigned));
        let after = match action {
            Action::Add => before.wrapping_add(value),
            Action::Subtract => before.wrapping_sub(value),
            // What lld writes for code that it dropped; readers leave it out.
            _ if self.shadow_ends.get(section).is_some_and(|end| Svma::new(value) < *end) => u64::MAX - 1,
            _ => value,
        };
        store(place, after, *field, endian);
        Ok(())
    }
}

/// The symbols that relocations name by their numbers.
struct Symbols<'d, E: FileHeader> {
    endian: Endianness,
    entries: &'d [E::Sym],
    wide_indices: &'d [U32<Endianness>],
}

impl<'d, E: FileHeader<Endian = Endianness>> Symbols<'d, E> {
    fn of(object: &Object<'d>, tables: &Tables, link: u32) -> Result<Self> {
        let index = usize::try_from(link).unwrap_or(usize::MAX);
        let file = object.headers.sections.get(index).and_then(|section| section.file);
        let (offset, size) = file.map_or((0, 0), |file| (file.start().get(), file.size()));
        let entries = object.view.table(offset, size / size_of::<E::Sym>() as u64, "a symbol table")?;
        let wide_indices = super::symbols::wide_indices(object, tables, index)?;
        Ok(Self { endian: tables.header.endian, entries, wide_indices })
    }

    /// A symbol's value and section; `None` where there is no such symbol.
    fn get(&self, number: u32) -> Option<(u64, usize)> {
        let index = usize::try_from(number).ok()?;
        let entry = self.entries.get(index)?;
        let section = match entry.st_shndx(self.endian) {
            SHN_XINDEX => self.wide_indices.get(index)?.get(self.endian),
            section => section.0.into(),
        };
        Some((entry.st_value(self.endian).into(), usize::try_from(section).ok()?))
    }
}

/// The bytes that a relocation changes.
fn find_place(data: &mut [u8], offset: u64, field: Field) -> Option<&mut [u8]> {
    let tail = data.get_mut(usize::try_from(offset).ok()?..)?;
    let size = match field {
        Field::Bytes(size) => size,
        Field::Leb => tail.iter().position(|byte| byte & 0x80 == 0)? + 1,
    };
    tail.get_mut(..size)
}

fn load(place: &[u8], field: Field, endian: Endianness) -> u64 {
    let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    match (field, endian) {
        (Field::Leb, _) => place.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)),
        (_, Endianness::Little) => place.iter().rev().fold(0, fold),
        (_, Endianness::Big) => place.iter().fold(0, fold),
    }
}

/// The lowest bits of a number, as many as there is room for.
fn store(place: &mut [u8], mut value: u64, field: Field, endian: Endianness) {
    let mut next = |bits: u32| {
        let low = value & ((1 << bits) - 1);
        value >>= bits;
        u8::try_from(low).unwrap_or(0)
    };
    match (field, endian) {
        (Field::Leb, _) => place.iter_mut().for_each(|byte| *byte = *byte & 0x80 | next(7)),
        (_, Endianness::Little) => place.iter_mut().for_each(|byte| *byte = next(8)),
        (_, Endianness::Big) => place.iter_mut().rev().for_each(|byte| *byte = next(8)),
    }
}

#[cfg(test)]
mod tests;
