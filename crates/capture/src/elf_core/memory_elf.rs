//! An ELF image as far as it lies in memory: its headers, its build id, its own name.

use super::header::{PF_X, PT_DYNAMIC, PT_LOAD, PT_NOTE, PT_PHDR, Segment, segment};
use crate::Memory;
use crate::bytes::{text, u16_at, u32_at, word_at};
use backtrail_core::{AddrRange, Avma, Bias, ImageId, Svma};

const NT_GNU_BUILD_ID: u32 = 3;
/// Program headers of one image; real ones have a dozen.
const MAX_HEADERS: usize = 128;
const PAGE: u64 = 4096;

/// What an image's headers in memory tell.
#[derive(Clone, Debug)]
pub(crate) struct MemoryElf {
    pub(crate) bias: Bias,
    pub(crate) range: AddrRange<Avma>,
    pub(crate) id: Option<ImageId>,
    pub(crate) soname: Option<String>,
    pub(crate) has_code: bool,
}

/// Reads the image whose ELF header lies at `start`. Only executables and libraries count.
pub(crate) fn read(memory: &Memory<'_>, start: Avma, max_name: usize) -> Option<MemoryElf> {
    let header = memory.read_bytes(start, 64)?;
    if !header.starts_with(b"\x7fELF") || !matches!(u16_at(&header, 16)?, 2 | 3) {
        return None;
    }
    let is_64 = header.get(4) == Some(&2);
    let (entry_at, count_at, table_at) = if is_64 { (54, 56, 32) } else { (42, 44, 28) };
    let entry = usize::from(u16_at(&header, entry_at)?);
    let count = usize::from(u16_at(&header, count_at)?).min(MAX_HEADERS);
    let table = start.checked_add(word_at(&header, table_at, is_64)?)?;
    let segments = program_headers(memory, table, entry, count, is_64)?;
    let first =
        segments.iter().filter(|segment| segment.kind == PT_LOAD).min_by_key(|segment| segment.start)?;
    // Programs state the header's place as that of the segment with offset zero.
    let base = first.start.get().checked_sub(first.offset).unwrap_or(first.start.get()) & !(PAGE - 1);
    let bias = Bias::between(start, Svma::new(base));
    Some(describe(memory, &segments, bias, start, is_64, max_name))
}

/// The program headers at `table`; `None` where none can be read.
pub(super) fn program_headers(
    memory: &Memory<'_>,
    table: Avma,
    entry: usize,
    count: usize,
    is_64: bool,
) -> Option<Vec<Segment>> {
    if entry < if is_64 { 56 } else { 32 } {
        return None;
    }
    let bytes = memory.read_bytes(table, entry.checked_mul(count.min(MAX_HEADERS))?)?;
    let segments: Vec<_> = (0..count).map_while(|index| segment(&bytes, index * entry, is_64)).collect();
    (!segments.is_empty()).then_some(segments)
}

/// The bias that the program headers at `table` tell of themselves.
pub(super) fn bias_of(segments: &[Segment], table: Avma, is_64: bool) -> Option<Bias> {
    let stated = segments.iter().find(|segment| segment.kind == PT_PHDR).map(|segment| segment.start.get());
    // Static programs have no such header; their headers lie behind the ELF header, in the first segment.
    let derived = || {
        let first = segments.iter().find(|segment| segment.kind == PT_LOAD && segment.offset == 0)?;
        first.start.get().checked_add(if is_64 { 64 } else { 52 })
    };
    stated.or_else(derived).map(|svma| Bias::between(table, Svma::new(svma)))
}

fn describe(
    memory: &Memory<'_>,
    segments: &[Segment],
    bias: Bias,
    start: Avma,
    is_64: bool,
    max_name: usize,
) -> MemoryElf {
    let place = |segment: &Segment| bias.to_avma(Svma::new(segment.start.get()));
    let ends = segments.iter().filter(|segment| segment.kind == PT_LOAD);
    let end =
        ends.filter_map(|segment| place(segment)?.checked_add(segment.memory_size)).max().unwrap_or(start);
    let notes = segments.iter().filter(|segment| segment.kind == PT_NOTE);
    let mut ids = notes.filter_map(|note| {
        let size = usize::try_from(note.memory_size.min(PAGE)).ok()?;
        build_id(&memory.read_bytes(place(note)?, size)?)
    });
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC);
    let dynamic_at = dynamic.and_then(place);
    let soname = dynamic.zip(dynamic_at).and_then(|(segment, at)| {
        let bytes = memory.read_bytes(at, usize::try_from(segment.memory_size.min(16 * PAGE)).ok()?)?;
        soname(memory, &bytes, bias, is_64, max_name)
    });
    MemoryElf {
        bias,
        range: AddrRange::new(
            start,
            Avma::new(end.get().checked_next_multiple_of(PAGE).unwrap_or(end.get())),
        ),
        id: ids.next(),
        soname,
        has_code: segments.iter().any(|segment| segment.kind == PT_LOAD && segment.flags & PF_X != 0),
    }
}

/// The GNU build id among notes. gABI, "Note Section": sizes of name and content, type, and both padded to four bytes. Neither
/// allocates nor locks: crash handlers ask, too.
pub(crate) fn build_id(notes: &[u8]) -> Option<ImageId> {
    let mut at = 0_usize;
    loop {
        let size = |at: usize| usize::try_from(u32_at(notes, at)?).ok();
        let (name_size, data_size, kind) =
            (size(at)?, size(at.checked_add(4)?)?, u32_at(notes, at.checked_add(8)?)?);
        let name_at = at.checked_add(12)?;
        let data_at = name_at.checked_add(name_size)?.checked_next_multiple_of(4)?;
        let end = data_at.checked_add(data_size)?;
        if kind == NT_GNU_BUILD_ID && notes.get(name_at..)?.starts_with(b"GNU\0") {
            return ImageId::from_build_id(notes.get(data_at..end)?);
        }
        at = end.checked_next_multiple_of(4)?;
    }
}

/// `DT_SONAME` in `DT_STRTAB`. A loader may have put the table's address in place of what the file states.
fn soname(memory: &Memory<'_>, dynamic: &[u8], bias: Bias, is_64: bool, max_name: usize) -> Option<String> {
    const DT_STRTAB: u64 = 5;
    const DT_SONAME: u64 = 14;
    let width = if is_64 { 8 } else { 4 };
    let entry =
        |at: usize| Some((word_at(dynamic, at, is_64)?, word_at(dynamic, at.checked_add(width)?, is_64)?));
    let entries: Vec<_> =
        (0..dynamic.len()).step_by(2 * width).map_while(entry).take_while(|(key, _)| *key != 0).collect();
    let find = |wanted| entries.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
    let (table, offset) = (find(DT_STRTAB)?, find(DT_SONAME)?);
    let places = [Some(Avma::new(table)), bias.to_avma(Svma::new(table))];
    let name = |place: Avma| Some(text(memory.bytes_from(place.checked_add(offset)?)?, max_name));
    places.into_iter().flatten().find_map(name).filter(|name| !name.is_empty())
}
