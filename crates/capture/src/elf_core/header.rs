//! The ELF header and the program headers. System V ABI (gABI), chapters 4 and 5.

use crate::bytes::{u16_at, u32_at, u64_at, word_at};
use crate::{Error, ErrorKind, Limits};
use backtrail_core::{AddrRange, Arch, Avma};

pub(crate) const PT_LOAD: u32 = 1;
pub(super) const PT_DYNAMIC: u32 = 2;
pub(crate) const PT_NOTE: u32 = 4;
pub(super) const PT_PHDR: u32 = 6;
pub(crate) const PF_X: u32 = 1;
pub(super) const PF_W: u32 = 2;
pub(super) const PF_R: u32 = 4;

const ET_CORE: u16 = 4;
/// So many program headers that their number is in section 0 (`sh_info`): cores of processes with many mappings.
const PN_XNUM: u64 = 0xffff;

/// What a core's headers state.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) arch: Arch,
    pub(crate) is_64: bool,
    pub(crate) segments: Vec<Segment>,
    /// Where the loaded ones lie, by address.
    loaded: Vec<AddrRange<Avma>>,
}

/// One program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) start: Avma,
    pub(crate) file_size: u64,
    pub(crate) memory_size: u64,
}

pub(crate) fn is_core(data: &[u8]) -> bool {
    data.starts_with(b"\x7fELF") && u16_at(data, 16) == Some(ET_CORE)
}

impl Header {
    pub(super) fn parse(data: &[u8], limits: &Limits) -> Result<Self, Error> {
        if !data.starts_with(b"\x7fELF") {
            return Err(Error::at(
                ErrorKind::Unrecognized,
                0,
                format!("expected an ELF core, found {}", what_else(data)),
            ));
        }
        if data.get(5) == Some(&2) {
            return Err(Error::at(
                ErrorKind::Unsupported,
                5,
                "a big-endian ELF file; only little-endian cores are read",
            ));
        }
        let cut =
            || Error::at(ErrorKind::Truncated, data.len() as u64, "the file ends inside of its ELF header");
        let is_64 = data.get(4) == Some(&2);
        let kind = u16_at(data, 16).ok_or_else(cut)?;
        if kind != ET_CORE {
            let message = format!("expected an ELF core (type 4), found {} (type {kind})", kind_name(kind));
            return Err(Error::at(ErrorKind::Unrecognized, 16, message));
        }
        let machine = u16_at(data, 18).ok_or_else(cut)?;
        let arch = arch_of(machine, is_64).ok_or_else(|| {
            let bits = if is_64 { 64 } else { 32 };
            let message =
                format!("a core of {bits}-bit machine {machine}; only x86, x86_64, ARM and ARM64 are read");
            Error::at(ErrorKind::Unsupported, 18, message)
        })?;
        let segments = segments(data, is_64, limits).ok_or_else(cut)??;
        Ok(Self::new(arch, is_64, segments))
    }

    pub(crate) fn new(arch: Arch, is_64: bool, segments: Vec<Segment>) -> Self {
        let mut loaded: Vec<_> = segments
            .iter()
            .filter(|segment| segment.kind == PT_LOAD)
            .map(|segment| AddrRange::from_size(segment.start, segment.memory_size))
            .collect();
        loaded.sort_by_key(|range| range.start());
        Self { arch, is_64, segments, loaded }
    }

    pub(super) fn loads(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.kind == PT_LOAD)
    }

    /// Whether a loaded segment has `address`; of segments that overlap, the last that begins before it.
    pub(super) fn has_loaded(&self, address: Avma) -> bool {
        let after = self.loaded.partition_point(|range| range.start() <= address);
        after.checked_sub(1).and_then(|at| self.loaded.get(at)).is_some_and(|range| range.contains(address))
    }

    /// Whether the addresses are a kernel's or a bare machine's: dumps of qemu's system emulation.
    pub(super) fn is_system(&self) -> bool {
        self.loads()
            .any(|segment| segment.start.get() >> 63 == 1 && segment.start.get() < 0xffff_ffff_ff00_0000)
            || self.loads().all(|segment| segment.start.get() == 0)
    }

    pub(super) fn pointer_size(&self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }
}

fn segments(data: &[u8], is_64: bool, limits: &Limits) -> Option<Result<Vec<Segment>, Error>> {
    let (table, entry_at, count_at) =
        if is_64 { (u64_at(data, 32)?, 54, 56) } else { (u64::from(u32_at(data, 28)?), 42, 44) };
    let entry = u64::from(u16_at(data, entry_at)?);
    let smallest = if is_64 { 56 } else { 32 };
    let mut count = u64::from(u16_at(data, count_at)?);
    if count == PN_XNUM {
        count = extended_count(data, is_64).unwrap_or(count);
    }
    if entry < smallest {
        let message = format!("expected program headers of {smallest} bytes, found {entry}");
        return Some(Err(Error::at(ErrorKind::Malformed, entry_at as u64, message)));
    }
    let fits = (data.len() as u64).saturating_sub(table) / entry;
    if fits == 0 || count == 0 {
        let message =
            format!("expected {count} program headers at {table:#x}, the file has {} bytes", data.len());
        return Some(Err(Error::at(ErrorKind::Truncated, table, message)));
    }
    let count = count.min(fits).min(limits.mappings as u64);
    let header = |index: u64| segment(data, usize::try_from(table + index * entry).ok()?, is_64);
    Some(Ok((0..count).filter_map(header).collect()))
}

/// `sh_info` of section 0.
fn extended_count(data: &[u8], is_64: bool) -> Option<u64> {
    let table = usize::try_from(word_at(data, if is_64 { 40 } else { 32 }, is_64)?).ok()?;
    u32_at(data, table.checked_add(if is_64 { 44 } else { 28 })?)
        .map(u64::from)
        .filter(|count| *count >= PN_XNUM)
}

/// The program header at a position.
pub(crate) fn segment(data: &[u8], at: usize, is_64: bool) -> Option<Segment> {
    let word = |offset: usize| word_at(data, at.checked_add(offset)?, is_64);
    let half = |offset: usize| u32_at(data, at.checked_add(offset)?);
    let [flags, offset, start, file_size, memory_size] =
        if is_64 { [4, 8, 16, 32, 40] } else { [24, 4, 8, 16, 20] };
    Some(Segment {
        kind: half(0)?,
        flags: half(flags)?,
        offset: word(offset)?,
        start: Avma::new(word(start)?),
        file_size: word(file_size)?,
        memory_size: word(memory_size)?,
    })
}

/// `e_machine`. x32 and ILP32 processes have 64-bit registers in 32-bit files; nothing here reads those.
pub(crate) fn arch_of(machine: u16, is_64: bool) -> Option<Arch> {
    match (machine, is_64) {
        (3 | 6, false) => Some(Arch::X86),
        (62, true) => Some(Arch::X86_64),
        (40, false) => Some(Arch::Arm),
        (183, true) => Some(Arch::Arm64),
        _ => None,
    }
}

fn kind_name(kind: u16) -> &'static str {
    match kind {
        1 => "an object file",
        2 => "an executable",
        3 => "a library or position-independent executable",
        _ => "another kind of ELF file",
    }
}

fn what_else(data: &[u8]) -> &'static str {
    match data {
        [] => "an empty file",
        [b'M', b'D', b'M', b'P', ..] => "a minidump",
        [b'K', b'D', b'U', b'M', b'P', ..] | [b'D', b'I', b'S', b'K', b'D', b'U', b'M', b'P', ..] => {
            "the dump of a kernel"
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "a file compressed by zstd",
        [0x1f, 0x8b, ..] => "a file compressed by gzip",
        [b'B', b'Z', b'h', ..] => "a file compressed by bzip2",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "a file compressed by xz",
        [b'0', b'7', b'0', b'7', ..] => "a cpio archive",
        _ => "something else",
    }
}
