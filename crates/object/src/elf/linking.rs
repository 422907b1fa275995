//! What linkers read and write: relocations of code in `.o` files, and the slots that a dynamic linker fills. The
//! processors' ELF supplements.

use backtrail_core::{Family, Svma};
use object::elf::*;
use object::read::elf::{FileHeader, Rel, Rela, Sym};
use object::{Endianness, U32};

use super::tables::Tables;
use crate::error::Result;
use crate::object::Object;
use crate::relocation::{Import, Relocation, RelocationKind, RelocationTarget};
use crate::section::FileRange;
use crate::symbol::{Binding, Names, text};

/// The relocations of each section, in step with the sections; each sorted by place.
pub(crate) fn relocations<'d>(object: &Object<'d>, tables: &Tables) -> Result<Vec<Vec<Relocation<'d>>>> {
    if tables.header.is_64 {
        relocations_as::<FileHeader64<Endianness>>(object, tables)
    } else {
        relocations_as::<FileHeader32<Endianness>>(object, tables)
    }
}

fn relocations_as<'d, E: FileHeader<Endian = Endianness>>(
    object: &Object<'d>,
    tables: &Tables,
) -> Result<Vec<Vec<Relocation<'d>>>> {
    let mut all = vec![Vec::new(); object.headers.sections.len()];
    let mut budget = object.view.len();
    for (raw, section) in tables.raw_sections.iter().zip(&object.headers.sections) {
        let (true, Some(file)) = (matches!(raw.kind, SHT_REL | SHT_RELA), section.file) else { continue };
        let Some(found) = usize::try_from(raw.info).ok().and_then(|info| all.get_mut(info)) else { continue };
        let Some(left) = budget.checked_sub(file.size()) else {
            return Err(object
                .view
                .malformed(file.start().get(), "relocations that come to more than the file"));
        };
        budget = left;
        let mut symbols = Symbols::<E>::of(object, tables, raw.link)?;
        for (offset, raw_kind, symbol, addend) in read::<E>(object, tables, raw.kind, file)? {
            let (kind, size) = kind_of(object.arch().family(), raw_kind);
            // Where the addend stands at the place, that of a call makes up for the field's size.
            let is_call = kind == RelocationKind::Branch && object.arch().family() == Family::X86;
            let addend = if is_call && raw.kind == SHT_REL { -4 } else { addend };
            let target = symbols.target(symbol);
            let (before, size) = rewritten(object.arch().family(), raw_kind).unwrap_or((0, size));
            let offset = offset.saturating_sub(before);
            found.push(Relocation { offset, size, kind, target, addend });
        }
        found.sort_by_key(|relocation| relocation.offset);
    }
    Ok(all)
}

type Raw = (u64, RelocationType, u32, i64);

fn read<'d, E: FileHeader<Endian = Endianness>>(
    object: &Object<'d>,
    tables: &Tables,
    kind: SectionType,
    file: FileRange,
) -> Result<Vec<Raw>> {
    let endian = tables.header.endian;
    let offset = file.start().get();
    if kind == SHT_RELA {
        let count = file.size() / size_of::<E::Rela>() as u64;
        let table = object.view.table::<E::Rela>(offset, count, "relocations")?;
        let one = |raw: &E::Rela| {
            let addend: i64 = raw.r_addend(endian).into();
            (raw.r_offset(endian).into(), raw.r_type(endian, false), raw.r_sym(endian, false), addend)
        };
        return Ok(table.iter().map(one).collect());
    }
    let count = file.size() / size_of::<E::Rel>() as u64;
    let table = object.view.table::<E::Rel>(offset, count, "relocations")?;
    // The addend stands at the place; branches, the only ones that are followed here, have none.
    let one = |raw: &E::Rel| (raw.r_offset(endian).into(), raw.r_type(endian), raw.r_sym(endian), 0);
    Ok(table.iter().map(one).collect())
}

/// What a relocation does, and how many bytes it may change.
fn kind_of(family: Family, kind: RelocationType) -> (RelocationKind, u8) {
    use RelocationKind::*;
    match (family, kind) {
        (Family::X86_64, R_X86_64_64) => (Absolute, 8),
        (Family::X86_64, R_X86_64_32 | R_X86_64_32S) => (Absolute, 4),
        (Family::X86_64, R_X86_64_PC32) => (Relative, 4),
        (Family::X86_64, R_X86_64_PLT32) => (Branch, 4),
        (Family::X86_64, R_X86_64_GOTPCREL | R_X86_64_GOTPCRELX | R_X86_64_REX_GOTPCRELX) => {
            (RelativeToSlot, 4)
        }
        (Family::X86_64, R_X86_64_PC64 | R_X86_64_GOTOFF64 | R_X86_64_DTPOFF64 | R_X86_64_TPOFF64) => {
            (Other, 8)
        }
        (Family::X86, R_386_PC32 | R_386_PLT32) => (Branch, 4),
        (Family::Aarch64, R_AARCH64_ABS64) => (Absolute, 8),
        (Family::Aarch64, R_AARCH64_CALL26 | R_AARCH64_JUMP26) => (Branch, 4),
        (Family::Aarch64, R_AARCH64_ADR_PREL_PG_HI21 | R_AARCH64_ADR_PREL_PG_HI21_NC) => (Page, 4),
        (
            Family::Aarch64,
            R_AARCH64_ADD_ABS_LO12_NC
            | R_AARCH64_LDST8_ABS_LO12_NC
            | R_AARCH64_LDST16_ABS_LO12_NC
            | R_AARCH64_LDST32_ABS_LO12_NC
            | R_AARCH64_LDST64_ABS_LO12_NC
            | R_AARCH64_LDST128_ABS_LO12_NC,
        ) => (PageOffset, 4),
        (Family::Aarch64, R_AARCH64_ADR_GOT_PAGE) => (SlotPage, 4),
        (Family::Aarch64, R_AARCH64_LD64_GOT_LO12_NC) => (SlotPageOffset, 4),
        (Family::Arm, R_ARM_CALL | R_ARM_JUMP24 | R_ARM_THM_PC22 | R_ARM_THM_JUMP24) => (Branch, 4),
        _ => (Other, 4),
    }
}

/// Where a linker may put other instructions: bytes before the field, and bytes in all. An access to a thread's variable becomes a shorter
/// one in programs: Drepper, "ELF Handling For Thread-Local Storage", section 5; System V ABI for `x86_64`, section 11.
fn rewritten(family: Family, kind: RelocationType) -> Option<(u64, u8)> {
    match (family, kind) {
        // A load from a slot may become the address itself: another operation, two bytes before.
        (Family::X86, R_386_GOT32X | R_386_GOT32) => Some((2, 6)),
        // `lea` and the call of `__tls_get_addr`, padded by prefixes.
        (Family::X86_64, R_X86_64_TLSGD) => Some((4, 16)),
        (Family::X86_64, R_X86_64_TLSLD) => Some((3, 12)),
        // A load, an addition or, with descriptors, a `lea`.
        (Family::X86_64, R_X86_64_GOTTPOFF | R_X86_64_GOTPC32_TLSDESC) => Some((3, 7)),
        (Family::X86_64, R_X86_64_TLSDESC_CALL) => Some((0, 2)),
        _ => None,
    }
}

/// The symbols that relocations name by their numbers.
struct Symbols<'o, 'd, E: FileHeader> {
    object: &'o Object<'d>,
    endian: Endianness,
    entries: &'d [E::Sym],
    wide_indices: &'d [U32<Endianness>],
    names: Names<'d>,
}

impl<'o, 'd, E: FileHeader<Endian = Endianness>> Symbols<'o, 'd, E> {
    fn of(object: &'o Object<'d>, tables: &Tables, link: u32) -> Result<Self> {
        let index = usize::try_from(link).unwrap_or(usize::MAX);
        let file_of = |index: usize| object.headers.sections.get(index).and_then(|section| section.file);
        let (offset, size) = file_of(index).map_or((0, 0), |file| (file.start().get(), file.size()));
        let entries = object.view.table(offset, size / size_of::<E::Sym>() as u64, "a symbol table")?;
        let wide_indices = super::symbols::wide_indices(object, tables, index)?;
        let strings = tables.raw_sections.get(index).and_then(|raw| usize::try_from(raw.link).ok());
        let strings = strings.and_then(file_of);
        let strings = strings.map_or(Ok(&[][..]), |range| {
            object.view.bytes_up_to(range.start().get(), range.size(), "the symbols' names")
        })?;
        // Many relocations name one symbol.
        let names = Names::new(strings, entries.len().saturating_mul(64));
        Ok(Self { object, endian: tables.header.endian, entries, wide_indices, names })
    }

    fn target(&mut self, number: u32) -> RelocationTarget<'d> {
        let Some(index) = usize::try_from(number).ok().filter(|number| *number != 0) else {
            return RelocationTarget::Unknown;
        };
        let Some(entry) = self.entries.get(index) else { return RelocationTarget::Unknown };
        let section = match entry.st_shndx(self.endian) {
            SHN_ABS | SHN_COMMON => return RelocationTarget::Unknown,
            SHN_XINDEX => self.wide_indices.get(index).map_or(0, |wide| wide.get(self.endian)),
            section => u32::from(section.0),
        };
        let name = self.names.get(entry.st_name(self.endian).into());
        if section == 0 {
            return name.map_or(RelocationTarget::Unknown, |name| RelocationTarget::Undefined(text(name)));
        }
        let Some(section) =
            usize::try_from(section).ok().filter(|at| *at < self.object.headers.sections.len())
        else {
            return RelocationTarget::Unknown;
        };
        let value: u64 = entry.st_value(self.endian).into();
        let is_thumb = entry.st_type() == STT_FUNC && self.object.arch().family() == Family::Arm;
        let binding = match entry.st_bind() {
            STB_LOCAL => Binding::Local,
            STB_WEAK => Binding::Weak,
            _ => Binding::Global,
        };
        RelocationTarget::Defined {
            name: name.filter(|_| entry.st_type() != STT_SECTION).map(text),
            section,
            address: Svma::new(if is_thumb { value & !1 } else { value }),
            binding,
        }
    }
}

/// The slots of a linked image that the dynamic linker fills by name: with the address of a function or variable of another
/// image, or of this one where another may take its place.
pub(crate) fn imports<'d>(object: &Object<'d>, tables: &Tables) -> Result<Vec<Import<'d>>> {
    if tables.header.is_64 {
        imports_as::<FileHeader64<Endianness>>(object, tables)
    } else {
        imports_as::<FileHeader32<Endianness>>(object, tables)
    }
}

fn imports_as<'d, E: FileHeader<Endian = Endianness>>(
    object: &Object<'d>,
    tables: &Tables,
) -> Result<Vec<Import<'d>>> {
    let mut found = Vec::new();
    let mut budget = object.view.len();
    for (raw, section) in tables.raw_sections.iter().zip(&object.headers.sections) {
        let is_dynamic = matches!(raw.kind, SHT_REL | SHT_RELA) && section.is_loaded;
        let (true, Some(file)) = (is_dynamic, section.file) else { continue };
        let Some(left) = budget.checked_sub(file.size()) else { break };
        budget = left;
        let mut symbols = Symbols::<E>::of(object, tables, raw.link)?;
        for (offset, kind, symbol, _) in read::<E>(object, tables, raw.kind, file)? {
            let is_slot = matches!(
                (object.arch().family(), kind),
                (Family::X86_64, R_X86_64_JUMP_SLOT | R_X86_64_GLOB_DAT)
                    | (Family::X86, R_386_JMP_SLOT | R_386_GLOB_DAT)
                    | (Family::Aarch64, R_AARCH64_JUMP_SLOT | R_AARCH64_GLOB_DAT)
                    | (Family::Arm, R_ARM_JUMP_SLOT | R_ARM_GLOB_DAT)
            );
            let target = if is_slot { symbols.target(symbol) } else { RelocationTarget::Unknown };
            if let RelocationTarget::Undefined(name) | RelocationTarget::Defined { name: Some(name), .. } =
                target
            {
                found.push(Import { address: Svma::new(offset), name });
            }
        }
    }
    found.sort_by_key(|import| import.address);
    Ok(found)
}

/// The pointers of a linked image that the dynamic linker only moves, and those to what the image defines itself: where
/// they are, and what they hold. Packed tables (`SHT_RELR`, Android's) are not read.
pub(crate) fn moved_pointers(object: &Object<'_>, tables: &Tables) -> Result<Vec<(Svma, Svma)>> {
    if tables.header.is_64 {
        moved_pointers_as::<FileHeader64<Endianness>>(object, tables)
    } else {
        moved_pointers_as::<FileHeader32<Endianness>>(object, tables)
    }
}

fn moved_pointers_as<E: FileHeader<Endian = Endianness>>(
    object: &Object<'_>,
    tables: &Tables,
) -> Result<Vec<(Svma, Svma)>> {
    let mut found = Vec::new();
    let mut budget = object.view.len();
    for (raw, section) in tables.raw_sections.iter().zip(&object.headers.sections) {
        // Where the addend stands at the place, the place's own bytes are the answer.
        let (true, Some(file)) = (raw.kind == SHT_RELA && section.is_loaded, section.file) else { continue };
        let Some(left) = budget.checked_sub(file.size()) else { break };
        budget = left;
        let mut symbols = Symbols::<E>::of(object, tables, raw.link)?;
        for (offset, kind, symbol, addend) in read::<E>(object, tables, raw.kind, file)? {
            let base = match (object.arch().family(), kind) {
                (Family::X86_64, R_X86_64_RELATIVE) | (Family::Aarch64, R_AARCH64_RELATIVE) => Some(0),
                (Family::X86_64, R_X86_64_64) | (Family::Aarch64, R_AARCH64_ABS64) => {
                    match symbols.target(symbol) {
                        RelocationTarget::Defined { address, .. } => Some(address.get()),
                        _ => None,
                    }
                }
                _ => None,
            };
            if let Some(base) = base {
                found.push((Svma::new(offset), Svma::new(base.wrapping_add_signed(addend))));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
