//! Debug info of `.o` files: the numbers in it that only a linker would fill in. The processors' ELF supplements.
//!
//! Nothing but what compilers write into debug sections: whole words that name an address or an offset, and RISC-V's
//! differences of labels.

use backtrail_core::Svma;
use object::elf::{
    EM_386, EM_AARCH64, EM_ARM, EM_PPC, EM_PPC64, EM_RISCV, EM_X86_64, ET_REL, FileHeader32, FileHeader64,
    Machine, R_386_32, R_386_NONE, R_386_TLS_LDO_32, R_AARCH64_ABS32, R_AARCH64_ABS64, R_AARCH64_NONE,
    R_ARM_ABS32, R_ARM_NONE, R_ARM_TLS_LDO32, R_PPC_ADDR32, R_PPC_NONE, R_PPC64_ADDR32, R_PPC64_ADDR64,
    R_PPC64_DTPREL64, R_PPC64_NONE, R_RISCV_32, R_RISCV_64, R_RISCV_ADD8, R_RISCV_ADD16, R_RISCV_ADD32,
    R_RISCV_ADD64, R_RISCV_NONE, R_RISCV_SUB8, R_RISCV_SUB16, R_RISCV_SUB32, R_RISCV_SUB64, R_X86_64_32,
    R_X86_64_32S, R_X86_64_64, R_X86_64_DTPOFF32, R_X86_64_DTPOFF64, R_X86_64_NONE, RelocationType,
    SHN_LORESERVE, SHN_XINDEX, SHT_REL, SHT_RELA,
};
use object::read::elf::{FileHeader, Rel, Rela, Sym};
use object::{Endianness, U32};

use super::parser::Tables;
use crate::error::{Error, ErrorKind, Result};
use crate::object::Object;
use crate::section::Section;

/// What a relocation does to the bytes at its place; the number says how many bytes those are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Set(usize),
    Add(usize),
    Subtract(usize),
    /// Offsets of thread-local variables, which are no addresses.
    Nothing,
}

#[rustfmt::skip]
const ACTIONS: [(Machine, RelocationType, Action); 32] = [
    (EM_X86_64, R_X86_64_NONE, Action::Nothing),
    (EM_X86_64, R_X86_64_64, Action::Set(8)),
    (EM_X86_64, R_X86_64_32, Action::Set(4)),
    (EM_X86_64, R_X86_64_32S, Action::Set(4)),
    (EM_X86_64, R_X86_64_DTPOFF64, Action::Nothing),
    (EM_X86_64, R_X86_64_DTPOFF32, Action::Nothing),
    (EM_386, R_386_NONE, Action::Nothing),
    (EM_386, R_386_32, Action::Set(4)),
    (EM_386, R_386_TLS_LDO_32, Action::Nothing),
    (EM_AARCH64, R_AARCH64_NONE, Action::Nothing),
    (EM_AARCH64, R_AARCH64_ABS64, Action::Set(8)),
    (EM_AARCH64, R_AARCH64_ABS32, Action::Set(4)),
    (EM_ARM, R_ARM_NONE, Action::Nothing),
    (EM_ARM, R_ARM_ABS32, Action::Set(4)),
    (EM_ARM, R_ARM_TLS_LDO32, Action::Nothing),
    (EM_PPC, R_PPC_NONE, Action::Nothing),
    (EM_PPC, R_PPC_ADDR32, Action::Set(4)),
    (EM_PPC64, R_PPC64_NONE, Action::Nothing),
    (EM_PPC64, R_PPC64_ADDR64, Action::Set(8)),
    (EM_PPC64, R_PPC64_ADDR32, Action::Set(4)),
    (EM_PPC64, R_PPC64_DTPREL64, Action::Nothing),
    (EM_RISCV, R_RISCV_NONE, Action::Nothing),
    (EM_RISCV, R_RISCV_64, Action::Set(8)),
    (EM_RISCV, R_RISCV_32, Action::Set(4)),
    (EM_RISCV, R_RISCV_ADD8, Action::Add(1)),
    (EM_RISCV, R_RISCV_ADD16, Action::Add(2)),
    (EM_RISCV, R_RISCV_ADD32, Action::Add(4)),
    (EM_RISCV, R_RISCV_ADD64, Action::Add(8)),
    (EM_RISCV, R_RISCV_SUB8, Action::Subtract(1)),
    (EM_RISCV, R_RISCV_SUB16, Action::Subtract(2)),
    (EM_RISCV, R_RISCV_SUB32, Action::Subtract(4)),
    (EM_RISCV, R_RISCV_SUB64, Action::Subtract(8)),
];

/// One relocation, whatever its form.
struct Relocation {
    offset: u64,
    kind: RelocationType,
    symbol: u32,
    /// Where it is missing (`SHT_REL`), it stands at the place.
    addend: Option<i64>,
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

/// Fills in what a linker would have: addresses as the sections of the `.o` are laid out.
pub(crate) fn apply(
    object: &Object<'_>,
    tables: &Tables,
    section: &Section<'_>,
    data: &mut [u8],
) -> Result<()> {
    for index in tables_of(tables, section) {
        if tables.header.is_64 {
            apply_table::<FileHeader64<Endianness>>(object, tables, index, data)?;
        } else {
            apply_table::<FileHeader32<Endianness>>(object, tables, index, data)?;
        }
    }
    Ok(())
}

fn apply_table<E>(object: &Object<'_>, tables: &Tables, index: usize, data: &mut [u8]) -> Result<()>
where
    E: FileHeader<Endian = Endianness>,
{
    let endian = tables.header.endian;
    let Some(raw) = tables.raw_sections.get(index) else { return Ok(()) };
    let symbols = Symbols::<E>::of(object, tables, raw.link)?;
    let place = Place { object, tables, symbols, table: index };
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

struct Place<'o, 'd, E: FileHeader> {
    object: &'o Object<'d>,
    tables: &'o Tables,
    symbols: Symbols<'o, 'd, E>,
    /// The section of the relocations.
    table: usize,
}

impl<'d, E: FileHeader<Endian = Endianness>> Place<'_, 'd, E> {
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
        let known = ACTIONS.iter().find(|(of, kind, _)| *of == machine && *kind == relocation.kind);
        let Some((_, _, action)) = known else {
            let detail = format!("relocation {} of machine {} in debug info", relocation.kind.0, machine.0);
            return Err(self.error(ErrorKind::Unsupported, detail));
        };
        let size = match *action {
            Action::Nothing => return Ok(()),
            Action::Set(size) | Action::Add(size) | Action::Subtract(size) => size,
        };
        let start = usize::try_from(relocation.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(size);
        let place = data.get_mut(start..end).ok_or_else(|| {
            self.error(
                ErrorKind::Malformed,
                format!("a relocation changes bytes {start:#x}..{end:#x} of a shorter section"),
            )
        })?;
        let old = number(place, self.tables.header.endian);
        let symbol = self.symbols.address(relocation.symbol).ok_or_else(|| {
            self.error(
                ErrorKind::Malformed,
                format!("a relocation names symbol {}, there are fewer", relocation.symbol),
            )
        })?;
        let addend = relocation.addend.map_or(old, i64::cast_unsigned);
        let value = symbol.wrapping_add(addend);
        let new = match action {
            Action::Add(_) => old.wrapping_add(value),
            Action::Subtract(_) => old.wrapping_sub(value),
            _ => value,
        };
        put(place, new, self.tables.header.endian);
        Ok(())
    }
}

/// The symbols that relocations name, and where their sections are laid out.
struct Symbols<'o, 'd, E: FileHeader> {
    object: &'o Object<'d>,
    endian: Endianness,
    entries: &'d [E::Sym],
    wide_indices: &'d [U32<Endianness>],
}

impl<'o, 'd, E: FileHeader<Endian = Endianness>> Symbols<'o, 'd, E> {
    fn of(object: &'o Object<'d>, tables: &Tables, link: u32) -> Result<Self> {
        let index = usize::try_from(link).unwrap_or(usize::MAX);
        let file = object.headers.sections.get(index).and_then(|section| section.file);
        let (offset, size) = file.map_or((0, 0), |file| (file.start().get(), file.size()));
        let entries = object.view.table(offset, size / size_of::<E::Sym>() as u64, "a symbol table")?;
        let wide_indices = super::symbols::wide_indices(object, tables, index)?;
        Ok(Self { object, endian: tables.header.endian, entries, wide_indices })
    }

    /// `None` where there is no such symbol; zero for undefined ones.
    fn address(&self, number: u32) -> Option<u64> {
        let index = usize::try_from(number).ok()?;
        let entry = self.entries.get(index)?;
        let section = match entry.st_shndx(self.endian) {
            SHN_XINDEX => self.wide_indices.get(index)?.get(self.endian),
            section if section.0 >= SHN_LORESERVE => 0,
            section => section.0.into(),
        };
        let section =
            usize::try_from(section).ok().and_then(|section| self.object.headers.sections.get(section));
        let base = section.map_or(Svma::new(0), |section| section.address.start());
        Some(base.get().wrapping_add(entry.st_value(self.endian).into()))
    }
}

/// 1, 2, 4 or 8 bytes as a number.
fn number(bytes: &[u8], endian: Endianness) -> u64 {
    let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    match endian {
        Endianness::Little => bytes.iter().rev().fold(0, fold),
        Endianness::Big => bytes.iter().fold(0, fold),
    }
}

/// The lowest bytes of a number, as many as there is room for.
fn put(bytes: &mut [u8], value: u64, endian: Endianness) {
    let little = value.to_le_bytes();
    match endian {
        Endianness::Little => bytes.iter_mut().zip(little).for_each(|(to, from)| *to = from),
        Endianness::Big => bytes.iter_mut().rev().zip(little).for_each(|(to, from)| *to = from),
    }
}

#[cfg(test)]
mod tests;
