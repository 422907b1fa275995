//! What linkers read and write: relocations of `.o` files (`<mach-o/reloc.h>` and its like for each processor), the
//! instructions that they may rewrite, pointers and imports of linked images (`<mach-o/fixup-chains.h>`).

use std::borrow::Cow;
use std::collections::HashMap;

use backtrail_core::{AddrRange, Family, Svma};
use object::macho::{
    ARM_RELOC_BR24, ARM_RELOC_PAIR, ARM_THUMB_RELOC_BR22, ARM64_RELOC_ADDEND, ARM64_RELOC_BRANCH26,
    ARM64_RELOC_GOT_LOAD_PAGE21, ARM64_RELOC_GOT_LOAD_PAGEOFF12, ARM64_RELOC_PAGE21, ARM64_RELOC_PAGEOFF12,
    ARM64_RELOC_SUBTRACTOR, ARM64_RELOC_UNSIGNED, DyldChainedFixupsHeader, DysymtabCommand,
    LC_DYLD_CHAINED_FIXUPS, LC_DYSYMTAB, LC_LINKER_OPTIMIZATION_HINT, LC_SEGMENT, LC_SEGMENT_64,
    LinkeditDataCommand, N_SECT, N_WEAK_DEF, Nlist32, Nlist64, Relocation as RawRelocation, RelocationInfo,
    RelocationType, SegmentCommand32, SegmentCommand64, X86_64_RELOC_BRANCH, X86_64_RELOC_GOT,
    X86_64_RELOC_GOT_LOAD, X86_64_RELOC_SIGNED, X86_64_RELOC_SIGNED_1, X86_64_RELOC_SIGNED_2,
    X86_64_RELOC_SIGNED_4, X86_64_RELOC_SUBTRACTOR, X86_64_RELOC_UNSIGNED,
};
use object::pod::slice_from_bytes;
use object::read::macho::{Nlist, Section as RawSection, Segment as RawSegment};
use object::{Endianness, U16, U32};

use super::header::Command;
use super::parser::{Tables, code_address, too_many};
use super::symbols::entries;
use crate::error::Result;
use crate::object::Object;
use crate::relocation::{Import, Relocation, RelocationKind, RelocationTarget};
use crate::section::{Section, SectionMap};
use crate::symbol::{Binding, Names, text};
use crate::view::{pod_at, uleb128};

/// What section headers say to linkers. In step with the sections.
#[derive(Clone, Copy, Debug)]
struct Linking {
    reloff: u64,
    nreloc: u64,
    kind: u32,
    reserved1: u64,
    reserved2: u64,
}

fn linking(tables: &Tables<'_>) -> Vec<Linking> {
    let mut all = Vec::new();
    for command in tables.commands.clone().flatten() {
        match command.kind {
            LC_SEGMENT => of_segment::<SegmentCommand32<Endianness>>(&command, &mut all),
            LC_SEGMENT_64 => of_segment::<SegmentCommand64<Endianness>>(&command, &mut all),
            _ => {}
        }
    }
    all
}

fn of_segment<S: RawSegment<Endian = Endianness>>(command: &Command<'_>, all: &mut Vec<Linking>) {
    let endian = command.endian;
    let Ok(segment) = command.pod::<S>("a segment command") else { return };
    let count = usize::try_from(segment.nsects(endian)).unwrap_or(usize::MAX);
    let table = command.bytes.get(size_of::<S>()..).unwrap_or_default();
    // A segment with too many is left out by the parser as well.
    let Ok((sections, _)) = slice_from_bytes::<S::Section>(table, count) else { return };
    all.extend(sections.iter().map(|raw| Linking {
        reloff: raw.reloff(endian).into(),
        nreloc: raw.nreloc(endian).into(),
        kind: raw.flags(endian).0 & 0xff,
        reserved1: raw.reserved1(endian).into(),
        reserved2: raw.reserved2(endian).into(),
    }));
}

/// A symbol as relocations and imports name it.
#[derive(Clone)]
struct Named<'d> {
    name: Cow<'d, str>,
    place: Option<(usize, Svma)>,
    binding: Binding,
}

/// The symbols by their numbers; names are read when asked for, within one budget.
fn named<'d>(object: &Object<'d>, tables: &Tables<'d>) -> Result<Vec<Named<'d>>> {
    let Some(symtab) = tables.symtab else { return Ok(Vec::new()) };
    if usize::try_from(symtab.nsyms).is_ok_and(|count| count > object.limits.symbols) {
        return Err(too_many(object.view.absolute(symtab.symoff), "symbols", object.limits.symbols));
    }
    fn of<'d, N: Nlist<Endian = Endianness>>(
        object: &Object<'d>,
        tables: &Tables<'d>,
        symtab: super::parser::Symtab,
    ) -> Result<Vec<Named<'d>>> {
        let endian = tables.header.endian;
        let (entries, strings) = entries::<N, _>(object.view, symtab)?;
        let mut names = Names::new(strings, entries.len());
        let one = |entry: &N| {
            let kind = entry.n_type();
            let is_stab = kind.is_stab();
            let index = usize::from(entry.n_sect()).checked_sub(1);
            let section = index.filter(|_| !is_stab && kind.typ() == N_SECT);
            let section = section.and_then(|index| Some((index, object.headers.sections.get(index)?)));
            let place = section.map(|(index, section)| {
                (index, code_address(object, entry.n_value(endian).into(), section.is_code))
            });
            let binding = match () {
                () if !kind.is_ext() => Binding::Local,
                () if entry.n_desc(endian).contains(N_WEAK_DEF) => Binding::Weak,
                () => Binding::Global,
            };
            let name = if is_stab { None } else { names.get(entry.n_strx(endian).into()) };
            Named { name: text(name.unwrap_or_default()), place, binding }
        };
        Ok(entries.iter().map(one).collect())
    }
    if tables.header.is_64 {
        of::<Nlist64<Endianness>>(object, tables, symtab)
    } else {
        of::<Nlist32<Endianness>>(object, tables, symtab)
    }
}

/// The relocations of each section of a `.o` file, in step with the sections; each sorted by place.
pub(crate) fn relocations<'d>(object: &Object<'d>, tables: &Tables<'d>) -> Result<Vec<Vec<Relocation<'d>>>> {
    let reader = Reader {
        object,
        endian: tables.header.endian,
        named: named(object, tables)?,
        map: SectionMap::new(&object.headers.sections),
    };
    let mut budget = object.view.len() / 8;
    let linking = linking(tables);
    let mut all = Vec::new();
    for (section, linking) in object.headers.sections.iter().zip(&linking) {
        // Headers that share one table would have it read many times.
        let Some(left) = budget.checked_sub(linking.nreloc) else {
            return Err(object.view.malformed(linking.reloff, "relocations that come to more than the file"));
        };
        budget = left;
        let mut found = reader.section(section, *linking)?;
        found.sort_by_key(|relocation| relocation.offset);
        all.push(found);
    }
    Ok(all)
}

struct Reader<'o, 'd> {
    object: &'o Object<'d>,
    endian: Endianness,
    named: Vec<Named<'d>>,
    map: SectionMap,
}

impl<'d> Reader<'_, 'd> {
    fn section(&self, section: &Section<'d>, linking: Linking) -> Result<Vec<Relocation<'d>>> {
        let table = self.object.view.table::<RawRelocation<Endianness>>(
            linking.reloff,
            linking.nreloc,
            "relocations",
        )?;
        let bytes = self.object.raw_section_data(section).unwrap_or_default();
        let mut found = Vec::with_capacity(table.len());
        let mut pending: Option<i64> = None;
        for raw in table {
            const SCATTERED: u32 = 0x8000_0000;
            let family = self.object.arch().family();
            let word = raw.r_word0.get(self.endian);
            if word & SCATTERED != 0 && family != Family::X86_64 && family != Family::Aarch64 {
                // 32-bit processors only: a difference, or a symbol with an addend. The place is all that is known.
                if (word >> 24) & 0xf != u32::from(ARM_RELOC_PAIR.0) {
                    found.push(unknown(u64::from(word & 0x00ff_ffff), 4));
                }
                continue;
            }
            let info = raw.info(self.endian);
            if family == Family::Aarch64 && info.r_type == ARM64_RELOC_ADDEND {
                // 24 bits with a sign.
                pending = Some(i64::from((info.r_symbolnum << 8).cast_signed() >> 8));
                continue;
            }
            found.extend(self.one(section, bytes, info, pending.take()));
        }
        Ok(found)
    }

    fn one(
        &self,
        section: &Section<'d>,
        bytes: &[u8],
        info: RelocationInfo,
        addend: Option<i64>,
    ) -> Option<Relocation<'d>> {
        let offset = u64::from(info.r_address);
        let place = section.address.start().get().wrapping_add(offset);
        let in_place = || number(bytes, offset, info.r_length);
        let size = 1u8 << (info.r_length & 3);
        match self.object.arch().family() {
            Family::Aarch64 => {
                let kind = aarch64_kind(info.r_type);
                let (target, addend) = match kind {
                    RelocationKind::Absolute if !info.r_extern => (self.at(in_place()?), 0),
                    RelocationKind::Absolute => (self.symbol(info), in_place()?.cast_signed()),
                    RelocationKind::Other => (RelocationTarget::Unknown, 0),
                    _ => (self.symbol(info), addend.unwrap_or(0)),
                };
                let size = if kind == RelocationKind::Absolute { size } else { size.max(4) };
                Some(Relocation { offset, size, kind, target, addend })
            }
            Family::X86_64 => {
                let kind = x86_64_kind(info.r_type);
                let tail: i64 = match info.r_type {
                    X86_64_RELOC_SIGNED_1 => 1,
                    X86_64_RELOC_SIGNED_2 => 2,
                    X86_64_RELOC_SIGNED_4 => 4,
                    _ => 0,
                };
                let stated = in_place()?;
                let (target, addend) = match kind {
                    RelocationKind::Absolute if !info.r_extern => (self.at(stated), 0),
                    RelocationKind::Absolute => (self.symbol(info), stated.cast_signed()),
                    RelocationKind::Other => (RelocationTarget::Unknown, 0),
                    _ if info.r_extern => (self.symbol(info), sign_extended(stated) - 4),
                    _ => {
                        let end = place.wrapping_add(4).wrapping_add(tail.cast_unsigned());
                        let target = end.wrapping_add(sign_extended(stated).cast_unsigned());
                        (self.at(target), -4 - tail)
                    }
                };
                Some(Relocation { offset, size, kind, target, addend })
            }
            Family::Arm if info.r_type == ARM_RELOC_PAIR => None,
            Family::Arm if matches!(info.r_type, ARM_RELOC_BR24 | ARM_THUMB_RELOC_BR22) => {
                let target = if info.r_extern { self.symbol(info) } else { RelocationTarget::Unknown };
                Some(Relocation { offset, size: 4, kind: RelocationKind::Branch, target, addend: 0 })
            }
            // movw and movt state other things in the length; a plain word has four bytes as well.
            Family::Arm if info.r_type.0 != 0 => Some(unknown(offset, 4)),
            Family::Arm | Family::X86 if info.r_type.0 == 0 && !info.r_pcrel => {
                let target = if info.r_extern { self.symbol(info) } else { self.at(in_place()?) };
                let addend = if info.r_extern { in_place()?.cast_signed() } else { 0 };
                Some(Relocation { offset, size, kind: RelocationKind::Absolute, target, addend })
            }
            _ => Some(unknown(offset, size)),
        }
    }

    fn symbol(&self, info: RelocationInfo) -> RelocationTarget<'d> {
        let named = usize::try_from(info.r_symbolnum).ok().and_then(|index| self.named.get(index));
        let Some(named) = named.filter(|_| info.r_extern) else { return RelocationTarget::Unknown };
        match named.place {
            Some((section, address)) => RelocationTarget::Defined {
                name: Some(named.name.clone()),
                section,
                address,
                binding: named.binding,
            },
            None if named.name.is_empty() => RelocationTarget::Unknown,
            None => RelocationTarget::Undefined(named.name.clone()),
        }
    }

    fn at(&self, address: u64) -> RelocationTarget<'d> {
        let address = Svma::new(address);
        let Some(section) = self.map.find(address) else { return RelocationTarget::Unknown };
        let is_code = self.object.headers.sections.get(section).is_some_and(|section| section.is_code);
        let address = code_address(self.object, address.get(), is_code);
        RelocationTarget::Defined { name: None, section, address, binding: Binding::Local }
    }
}

fn unknown(offset: u64, size: u8) -> Relocation<'static> {
    let (kind, target) = (RelocationKind::Other, RelocationTarget::Unknown);
    Relocation { offset, size, kind, target, addend: 0 }
}

fn aarch64_kind(kind: RelocationType) -> RelocationKind {
    match kind {
        ARM64_RELOC_UNSIGNED => RelocationKind::Absolute,
        ARM64_RELOC_BRANCH26 => RelocationKind::Branch,
        ARM64_RELOC_PAGE21 => RelocationKind::Page,
        ARM64_RELOC_PAGEOFF12 => RelocationKind::PageOffset,
        ARM64_RELOC_GOT_LOAD_PAGE21 => RelocationKind::SlotPage,
        ARM64_RELOC_GOT_LOAD_PAGEOFF12 => RelocationKind::SlotPageOffset,
        ARM64_RELOC_SUBTRACTOR => RelocationKind::Other,
        _ => RelocationKind::Other,
    }
}

fn x86_64_kind(kind: RelocationType) -> RelocationKind {
    match kind {
        X86_64_RELOC_UNSIGNED => RelocationKind::Absolute,
        X86_64_RELOC_BRANCH => RelocationKind::Branch,
        X86_64_RELOC_SIGNED | X86_64_RELOC_SIGNED_1 | X86_64_RELOC_SIGNED_2 | X86_64_RELOC_SIGNED_4 => {
            RelocationKind::Relative
        }
        X86_64_RELOC_GOT_LOAD | X86_64_RELOC_GOT => RelocationKind::RelativeToSlot,
        X86_64_RELOC_SUBTRACTOR => RelocationKind::Other,
        _ => RelocationKind::Other,
    }
}

/// The number of `1 << length` bytes at `offset`.
fn number(bytes: &[u8], offset: u64, length: u8) -> Option<u64> {
    let size = 1usize << (length & 3);
    let field = bytes.get(usize::try_from(offset).ok()?..)?.get(..size)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// A displacement of 32 bits.
fn sign_extended(value: u64) -> i64 {
    (value << 32).cast_signed() >> 32
}

/// The instructions that `LC_LINKER_OPTIMIZATION_HINT` lets a linker rewrite, with and without a relocation. Ascending.
pub(crate) fn optimization_hints(object: &Object<'_>, tables: &Tables<'_>) -> Vec<Svma> {
    let mut found = Vec::new();
    for command in tables.commands.clone().flatten() {
        if command.kind != LC_LINKER_OPTIMIZATION_HINT {
            continue;
        }
        let Ok(raw) = command.pod::<LinkeditDataCommand<Endianness>>("linker hints") else { continue };
        let (offset, size) = (raw.dataoff.get(command.endian), raw.datasize.get(command.endian));
        let Ok(mut bytes) = object.view.bytes_up_to(offset.into(), size.into(), "linker hints") else {
            continue;
        };
        // Each: a kind, how many addresses, the addresses. Zeros pad the end.
        while let Some(kind) = uleb128(&mut bytes).filter(|kind| *kind != 0) {
            let _ = kind;
            let Some(count) = uleb128(&mut bytes) else { break };
            for _ in 0..count {
                let Some(address) = uleb128(&mut bytes) else { break };
                found.push(Svma::new(address));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// `MH_SUBSECTIONS_VIA_SYMBOLS`.
pub(crate) fn has_subsections(object: &Object<'_>, tables: &Tables<'_>) -> bool {
    const FLAG: u32 = 0x2000;
    let at = tables.header.commands.saturating_sub(if tables.header.is_64 { 8 } else { 4 });
    let flags = object.view.pod::<U32<Endianness>>(at, "the flags of a Mach-O header");
    flags.is_ok_and(|flags| flags.get(tables.header.endian) & FLAG != 0)
}

/// Slots and stubs with the names that the indirect symbol table gives them.
pub(crate) fn imports<'d>(object: &Object<'d>, tables: &Tables<'d>) -> Result<Vec<Import<'d>>> {
    const LOCAL: u32 = 0x8000_0000;
    const ABSOLUTE: u32 = 0x4000_0000;
    let mut commands = tables.commands.clone().flatten();
    let Some(command) = commands.find(|command| command.kind == LC_DYSYMTAB) else { return Ok(Vec::new()) };
    let endian = command.endian;
    let raw = command.pod::<DysymtabCommand<Endianness>>("LC_DYSYMTAB")?;
    let (offset, count) = (raw.indirectsymoff.get(endian), raw.nindirectsyms.get(endian));
    let indirect =
        object.view.table::<U32<Endianness>>(offset.into(), count.into(), "the indirect symbols")?;
    let named = named(object, tables)?;
    let mut found = Vec::new();
    for (section, linking) in object.headers.sections.iter().zip(linking(tables)) {
        let pointer = if tables.header.is_64 { 8 } else { 4 };
        let size = match linking.kind {
            // Non-lazy, lazy and thread-local pointers.
            6 | 7 | 0x14 => pointer,
            8 if linking.reserved2 > 0 => linking.reserved2,
            _ => continue,
        };
        let first = usize::try_from(linking.reserved1).unwrap_or(usize::MAX);
        let of_section = indirect.get(first..).unwrap_or_default();
        let there = usize::try_from(section.address.size() / size).unwrap_or(usize::MAX);
        for (index, number) in of_section.iter().take(there).enumerate() {
            let number = number.get(endian);
            if number & (LOCAL | ABSOLUTE) != 0 {
                continue;
            }
            let named = usize::try_from(number).ok().and_then(|number| named.get(number));
            let address = section.address.start().checked_add(index as u64 * size);
            if let (Some(named), Some(address)) = (named.filter(|named| !named.name.is_empty()), address)
                && named.place.is_none()
            {
                found.push(Import { address, name: named.name.clone() });
            }
        }
    }
    found.sort_by_key(|import| import.address);
    Ok(found)
}

/// How pointers are written in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Encoding {
    /// As they are: `.o` files without relocations applied, and images with rebase opcodes.
    Plain,
    /// `DYLD_CHAINED_PTR_64` (the target is an address) and `…_64_OFFSET` (it counts from the image base).
    Chained { is_offset: bool },
    /// The formats of arm64e.
    Authenticated { is_offset: bool },
    /// A format of chained fixups that is not read.
    Unknown,
}

/// Reads the pointers of a Mach-O file: what the dynamic linker, or the linker, would fill in.
#[derive(Clone, Debug)]
pub struct Pointers<'d> {
    object: Object<'d>,
    encoding: Encoding,
    /// Of `.o` files: by their places.
    relocated: HashMap<Svma, Option<Svma>>,
    bytes: Vec<(AddrRange<Svma>, &'d [u8])>,
}

impl<'d> Pointers<'d> {
    pub(crate) fn new(object: &Object<'d>, tables: &Tables<'d>) -> Self {
        let is_relocatable = object.kind() == crate::object::Kind::Relocatable;
        let mut relocated = HashMap::new();
        if is_relocatable && let Ok(all) = relocations(object, tables) {
            for (section, relocations) in object.headers.sections.iter().zip(all) {
                for relocation in relocations {
                    let place = section.address.start().checked_add(relocation.offset);
                    let target = match relocation.target {
                        RelocationTarget::Defined { address, .. }
                            if relocation.kind == RelocationKind::Absolute =>
                        {
                            Some(Svma::new(address.get().wrapping_add_signed(relocation.addend)))
                        }
                        _ => None,
                    };
                    if let Some(place) = place {
                        relocated.insert(place, target);
                    }
                }
            }
        }
        let sections = object.headers.sections.iter();
        let bytes = sections.filter(|section| section.is_loaded && section.file.is_some());
        let mut bytes: Vec<_> = bytes
            .filter_map(|section| Some((section.address, object.raw_section_data(section).ok()?)))
            .collect();
        bytes.sort_by_key(|(range, _)| range.start());
        let encoding = if is_relocatable { Encoding::Plain } else { encoding(object, tables) };
        Self { object: object.clone(), encoding, relocated, bytes }
    }

    /// The bytes of the section from `address` on.
    pub fn bytes(&self, address: Svma) -> Option<&'d [u8]> {
        let after = self.bytes.partition_point(|(range, _)| range.start() <= address);
        let (range, bytes) = self.bytes.get(after.checked_sub(1)?)?;
        let at = usize::try_from(address.offset_from(range.start())?).ok()?;
        bytes.get(at..).filter(|rest| !rest.is_empty())
    }

    /// The address that the pointer at `address` will hold; `None` for zero, for what lies in another image, and where
    /// there are no bytes.
    pub fn read(&self, address: Svma) -> Option<Svma> {
        if let Some(target) = self.relocated.get(&address) {
            return *target;
        }
        let bytes = self.bytes(address)?;
        let raw = if self.object.is_64() {
            u64::from_le_bytes(*bytes.first_chunk()?)
        } else {
            u64::from(u32::from_le_bytes(*bytes.first_chunk()?))
        };
        if raw == 0 {
            return None;
        }
        let base = |is_offset: bool| if is_offset { self.object.image_base().get() } else { 0 };
        let target = match self.encoding {
            Encoding::Plain => raw,
            Encoding::Unknown => return None,
            Encoding::Chained { .. } if raw >> 63 != 0 => return None,
            Encoding::Chained { is_offset } => (raw & 0xf_ffff_ffff).wrapping_add(base(is_offset)),
            Encoding::Authenticated { .. } if raw >> 62 & 1 != 0 => return None,
            // With authentication: always 32 bits from the image base.
            Encoding::Authenticated { .. } if raw >> 63 != 0 => (raw & 0xffff_ffff).wrapping_add(base(true)),
            Encoding::Authenticated { is_offset } => (raw & 0x7ff_ffff_ffff).wrapping_add(base(is_offset)),
        };
        Some(Svma::new(target))
    }
}

fn encoding(object: &Object<'_>, tables: &Tables<'_>) -> Encoding {
    let mut commands = tables.commands.clone().flatten();
    let Some(command) = commands.find(|command| command.kind == LC_DYLD_CHAINED_FIXUPS) else {
        return Encoding::Plain;
    };
    match pointer_format(object, &command) {
        Some(2) => Encoding::Chained { is_offset: false },
        Some(6) => Encoding::Chained { is_offset: true },
        Some(1) => Encoding::Authenticated { is_offset: false },
        Some(7 | 9 | 12) => Encoding::Authenticated { is_offset: true },
        // No segment has a pointer.
        None => Encoding::Plain,
        Some(_) => Encoding::Unknown,
    }
}

/// The format of the first segment that has one; linkers write one for all.
fn pointer_format(object: &Object<'_>, command: &Command<'_>) -> Option<u16> {
    let endian = command.endian;
    let raw = command.pod::<LinkeditDataCommand<Endianness>>("chained fixups").ok()?;
    let (offset, size) = (raw.dataoff.get(endian), raw.datasize.get(endian));
    let bytes = object.view.bytes_up_to(offset.into(), size.into(), "chained fixups").ok()?;
    let header = pod_at::<DyldChainedFixupsHeader<Endianness>>(bytes, 0)?;
    let image = bytes.get(usize::try_from(header.starts_offset.get(endian)).ok()?..)?;
    let count = pod_at::<U32<Endianness>>(image, 0)?.get(endian);
    let there = u32::try_from(image.len() / 4).unwrap_or(u32::MAX);
    (0..count.min(there)).find_map(|index| {
        let at = usize::try_from(index).ok()?.checked_mul(4)?.checked_add(4)?;
        let start = pod_at::<U32<Endianness>>(image, at)?.get(endian);
        let start = usize::try_from(start).ok().filter(|start| *start != 0)?;
        pod_at::<U16<Endianness>>(image, start.checked_add(6)?).map(|format| format.get(endian))
    })
}
