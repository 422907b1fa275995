//! Relocations of debug sections in relocatable files: `.o` files and kernel modules, whose debug info holds nothing but
//! zeros (or addends) where addresses and offsets into other sections belong.

use backtrail_core::Svma;
use object::elf::{
    EM_386, EM_AARCH64, EM_ARM, EM_LOONGARCH, EM_MIPS, EM_PPC, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64,
    ET_REL, FileHeader32, FileHeader64, Machine, RelocationType, SHN_XINDEX, SHT_REL, SHT_RELA, SHT_SYMTAB,
};
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader, Sym};
use object::{Endianness, U32};

use super::header::table;
use super::parser::Tables;
use crate::error::Result;
use crate::object::Object;
use crate::view::View;

/// What a relocation does with `symbol + addend` at its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Set(usize),
    Add(usize),
    Subtract(usize),
}

/// The relocations that compilers put into debug sections, by processor and type; each from its ELF supplement. RISC-V
/// subtracts where it relaxes code; its `ULEB128` pairs are left alone, for nothing that is read here has them.
const ACTIONS: [(Machine, u32, Action); 27] = [
    (EM_X86_64, 1, Action::Set(8)),
    (EM_X86_64, 10, Action::Set(4)),
    (EM_X86_64, 11, Action::Set(4)),
    (EM_AARCH64, 257, Action::Set(8)),
    (EM_AARCH64, 258, Action::Set(4)),
    (EM_386, 1, Action::Set(4)),
    (EM_ARM, 2, Action::Set(4)),
    (EM_PPC64, 38, Action::Set(8)),
    (EM_PPC64, 1, Action::Set(4)),
    (EM_PPC, 1, Action::Set(4)),
    (EM_S390, 22, Action::Set(8)),
    (EM_S390, 4, Action::Set(4)),
    (EM_MIPS, 2, Action::Set(4)),
    (EM_MIPS, 18, Action::Set(8)),
    (EM_LOONGARCH, 1, Action::Set(4)),
    (EM_LOONGARCH, 2, Action::Set(8)),
    (EM_RISCV, 1, Action::Set(4)),
    (EM_RISCV, 2, Action::Set(8)),
    (EM_RISCV, 33, Action::Add(1)),
    (EM_RISCV, 34, Action::Add(2)),
    (EM_RISCV, 35, Action::Add(4)),
    (EM_RISCV, 36, Action::Add(8)),
    (EM_RISCV, 37, Action::Subtract(1)),
    (EM_RISCV, 38, Action::Subtract(2)),
    (EM_RISCV, 39, Action::Subtract(4)),
    (EM_RISCV, 40, Action::Subtract(8)),
    (EM_RISCV, 54, Action::Set(1)),
];

/// One entry of `SHT_REL` or `SHT_RELA`.
struct Relocation {
    offset: u64,
    kind: RelocationType,
    symbol: usize,
    /// `None` where it stands at the place itself.
    addend: Option<u64>,
}

/// Applies the relocations for section `target` to its bytes. Whether there was any.
pub(crate) fn apply(object: &Object<'_>, tables: &Tables, target: usize, bytes: &mut [u8]) -> Result<bool> {
    if tables.header.file_type != ET_REL {
        return Ok(false);
    }
    if tables.header.is_64 {
        apply_as::<FileHeader64<Endianness>>(object, tables, target, bytes)
    } else {
        apply_as::<FileHeader32<Endianness>>(object, tables, target, bytes)
    }
}

/// Whether there are any for section `target`.
pub(crate) fn exist(object: &Object<'_>, tables: &Tables, target: usize) -> Result<bool> {
    if tables.header.file_type != ET_REL {
        return Ok(false);
    }
    if tables.header.is_64 {
        Ok(!sections_for::<FileHeader64<Endianness>>(object, tables, target)?.is_empty())
    } else {
        Ok(!sections_for::<FileHeader32<Endianness>>(object, tables, target)?.is_empty())
    }
}

type Sections<'d, E> = Vec<&'d <E as FileHeader>::SectionHeader>;

/// The headers of the relocation sections for a section.
fn sections_for<'d, E>(object: &Object<'d>, tables: &Tables, target: usize) -> Result<Sections<'d, E>>
where
    E: FileHeader<Endian = Endianness>,
{
    let (header, endian) = (&tables.header, tables.header.endian);
    let limit = object.limits.sections;
    let all =
        table::<E::SectionHeader, _>(object.view, header.shoff, header.shnum, limit, "section headers")?;
    let is_for = |section: &&E::SectionHeader| {
        matches!(section.sh_type(endian), SHT_REL | SHT_RELA)
            && usize::try_from(section.sh_info(endian)).is_ok_and(|info| info == target)
    };
    Ok(all.iter().filter(is_for).collect())
}

fn apply_as<E>(object: &Object<'_>, tables: &Tables, target: usize, bytes: &mut [u8]) -> Result<bool>
where
    E: FileHeader<Endian = Endianness>,
{
    let endian = tables.header.endian;
    let sections = sections_for::<E>(object, tables, target)?;
    let shadow_ends = object.shadow_ends();
    for section in &sections {
        let symbols = Symbols::<E>::read(object, tables, section.sh_link(endian))?;
        let entries = relocations::<E>(object.view, *section, endian)?;
        for entry in entries {
            let known = ACTIONS.iter().find(|(machine, kind, _)| {
                (*machine, RelocationType(*kind)) == (tables.header.machine, entry.kind)
            });
            if let Some((.., action)) = known {
                relocate(bytes, &entry, *action, &symbols, &shadow_ends);
            }
        }
    }
    Ok(!sections.is_empty())
}

fn relocations<'d, E>(
    view: View<&'d [u8]>,
    section: &E::SectionHeader,
    endian: Endianness,
) -> Result<Box<dyn Iterator<Item = Relocation> + 'd>>
where
    E: FileHeader<Endian = Endianness>,
    E::Rel: 'd,
    E::Rela: 'd,
{
    let (offset, size) = (section.sh_offset(endian).into(), section.sh_size(endian).into());
    if section.sh_type(endian) == SHT_REL {
        let entries = view.table::<E::Rel>(offset, size / size_of::<E::Rel>() as u64, "relocations")?;
        return Ok(Box::new(entries.iter().map(move |entry| Relocation {
            offset: entry.r_offset(endian).into(),
            kind: entry.r_type(endian),
            symbol: entry.r_sym(endian) as usize,
            addend: None,
        })));
    }
    let entries = view.table::<E::Rela>(offset, size / size_of::<E::Rela>() as u64, "relocations")?;
    Ok(Box::new(entries.iter().map(move |entry| {
        let addend: i64 = entry.r_addend(endian).into();
        Relocation {
            offset: entry.r_offset(endian).into(),
            kind: entry.r_type(endian, false),
            symbol: entry.r_sym(endian, false) as usize,
            addend: Some(addend.cast_unsigned()),
        }
    })))
}

/// The symbols that relocations name by their numbers.
struct Symbols<'d, E: FileHeader<Endian = Endianness>> {
    entries: &'d [E::Sym],
    wide_indices: &'d [U32<Endianness>],
    endian: Endianness,
}

impl<'d, E: FileHeader<Endian = Endianness>> Symbols<'d, E> {
    fn read(object: &Object<'d>, tables: &Tables, index: u32) -> Result<Self> {
        let empty = Self { entries: &[], wide_indices: &[], endian: tables.header.endian };
        let is_symtab = tables.raw_sections.get(index as usize).is_some_and(|raw| raw.kind == SHT_SYMTAB);
        let file = object.headers.sections.get(index as usize).and_then(|section| section.file);
        let Some(file) = file.filter(|_| is_symtab) else { return Ok(empty) };
        let count = file.size() / size_of::<E::Sym>() as u64;
        let entries = object.view.table(file.start().get(), count, "a symbol table")?;
        let wide_indices = super::symbols::wide_indices(object, tables, index as usize)?;
        Ok(Self { entries, wide_indices, ..empty })
    }

    /// A symbol's value and section.
    fn get(&self, index: usize) -> Option<(u64, usize)> {
        let symbol = self.entries.get(index)?;
        let section = match symbol.st_shndx(self.endian) {
            SHN_XINDEX => self.wide_indices.get(index)?.get(self.endian) as usize,
            index => index.0.into(),
        };
        Some((symbol.st_value(self.endian).into(), section))
    }
}

/// Does one relocation; one that lies outside of the section is passed over.
fn relocate<E: FileHeader<Endian = Endianness>>(
    bytes: &mut [u8],
    relocation: &Relocation,
    action: Action,
    symbols: &Symbols<'_, E>,
    shadow_ends: &[Svma],
) {
    let (Action::Set(size) | Action::Add(size) | Action::Subtract(size)) = action;
    let place =
        usize::try_from(relocation.offset).ok().and_then(|start| bytes.get_mut(start..)?.get_mut(..size));
    let Some((place, (symbol, section))) = place.zip(symbols.get(relocation.symbol)) else { return };
    let before = load(place, symbols.endian);
    let mut value = symbol.wrapping_add(relocation.addend.unwrap_or(before));
    if action == Action::Set(size) && shadow_ends.get(section).is_some_and(|end| Svma::new(value) < *end) {
        // What lld writes for code that it dropped; readers leave it out.
        value = u64::MAX - 1;
    }
    let value = match action {
        Action::Set(_) => value,
        Action::Add(_) => before.wrapping_add(value),
        Action::Subtract(_) => before.wrapping_sub(value),
    };
    store(place, value, symbols.endian);
}

fn load(place: &[u8], endian: Endianness) -> u64 {
    let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    match endian {
        Endianness::Little => place.iter().rev().fold(0, fold),
        Endianness::Big => place.iter().fold(0, fold),
    }
}

fn store(place: &mut [u8], value: u64, endian: Endianness) {
    let bytes = value.to_le_bytes();
    match endian {
        Endianness::Little => place.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte),
        Endianness::Big => place.iter_mut().rev().zip(bytes).for_each(|(place, byte)| *place = byte),
    }
}
