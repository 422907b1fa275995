//! The dynamic loader's list of what it loaded. System V ABI, `<link.h>`: `r_debug` and `link_map`.

use super::auxv::{AT_ENTRY, AT_PHDR, AT_PHENT, AT_PHNUM, AuxVector};
use super::header::{PT_DYNAMIC, PT_LOAD, Segment, segment};
use super::memory_elf::{bias_of, program_headers};
use crate::bytes::{text, u16_at, word_at};
use crate::{Limits, Memory};
use backtrail_core::{AddrRange, Avma, Bias, ReadMemory as _, Svma};

/// Pages of the smallest size that a loader maps by.
const PAGE: u64 = 4096;

/// One entry of the list. The first is the program, whose name is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loaded {
    pub(super) bias: Bias,
    pub(super) name: String,
    /// Where its dynamic section lies; always inside of the image.
    pub(super) dynamic: Avma,
}

/// The program as the auxiliary vector tells it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) bias: Bias,
    pub(super) dynamic: Option<Avma>,
}

pub(super) fn program(memory: &Memory<'_>, vector: &AuxVector, is_64: bool) -> Option<Program> {
    let table = Avma::new(vector.get(AT_PHDR)?);
    let entry = usize::try_from(vector.get(AT_PHENT)?).ok()?;
    let count = usize::try_from(vector.get(AT_PHNUM)?).ok()?;
    let segments = program_headers(memory, table, entry, count, is_64)?;
    let bias = bias_of(&segments, table, is_64)?;
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC);
    Some(Program { bias, dynamic: dynamic.and_then(|segment| bias.to_avma(Svma::new(segment.start.get()))) })
}

/// The program as its file tells it, and where it lies: for cores that keep no headers of it. A file whose entry point
/// is not where the kernel started the process is another program's.
pub(super) fn program_of_file(
    file: &[u8],
    vector: &AuxVector,
    is_64: bool,
) -> Option<(Program, AddrRange<Avma>)> {
    if !file.starts_with(b"\x7fELF") || (file.get(4) == Some(&2)) != is_64 {
        return None;
    }
    let (entry_at, table_at, size_at, count_at) = if is_64 { (24, 32, 54, 56) } else { (24, 28, 42, 44) };
    let table = usize::try_from(word_at(file, table_at, is_64)?).ok()?;
    let (size, count) = (usize::from(u16_at(file, size_at)?), usize::from(u16_at(file, count_at)?));
    let at = |index: usize| table.checked_add(index.checked_mul(size)?);
    let segments: Vec<_> = (0..count).map_while(|index| segment(file, at(index)?, is_64)).collect();
    let bias = bias_of(&segments, Avma::new(vector.get(AT_PHDR)?), is_64)?;
    if bias.to_avma(Svma::new(word_at(file, entry_at, is_64)?)) != vector.get(AT_ENTRY).map(Avma::new) {
        return None;
    }
    let place = |segment: &Segment| bias.to_avma(Svma::new(segment.start.get()));
    let loads = || segments.iter().filter(|segment| segment.kind == PT_LOAD);
    let start = loads().filter_map(place).min()?;
    let end = loads().filter_map(|segment| place(segment)?.checked_add(segment.memory_size)).max()?;
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC).and_then(place);
    Some((Program { bias, dynamic }, AddrRange::new(Avma::new(start.get() & !(PAGE - 1)), end)))
}

/// Walks the list; ends where memory is missing. A list that is a ring ends after [`Limits::images`] entries.
pub(super) fn loaded(memory: &Memory<'_>, program: &Program, size: u8, limits: &Limits) -> Vec<Loaded> {
    let list = program.dynamic.and_then(|dynamic| list_start(memory, dynamic, size));
    let mut all = Vec::new();
    let mut next = list;
    while let Some(at) = next.filter(|at| at.get() != 0 && all.len() < limits.images) {
        let word = |index: u64| memory.read_pointer(at.checked_add(index * u64::from(size))?, size).ok();
        let (Some(bias), Some(name), Some(dynamic)) = (word(0), word(1), word(2)) else { break };
        let name = memory
            .bytes_from(Avma::new(name))
            .map(|bytes| text(bytes, limits.name_bytes))
            .unwrap_or_default();
        all.push(Loaded {
            bias: Bias::between(Avma::new(bias), Svma::new(0)),
            name,
            dynamic: Avma::new(dynamic),
        });
        next = word(3).map(Avma::new).filter(|next| *next != at);
    }
    all
}

/// `r_debug.r_map`, by way of the program's `DT_DEBUG`.
fn list_start(memory: &Memory<'_>, dynamic: Avma, size: u8) -> Option<Avma> {
    const DT_DEBUG: u64 = 21;
    const MAX_ENTRIES: u64 = 512;
    let width = u64::from(size);
    for index in 0..MAX_ENTRIES {
        let at = dynamic.checked_add(index * 2 * width)?;
        let value = memory.read_pointer(at.checked_add(width)?, size).ok()?;
        match memory.read_pointer(at, size).ok()? {
            0 => return None,
            // The version number that comes first is padded to a pointer.
            DT_DEBUG => {
                return memory.read_pointer(Avma::new(value).checked_add(width)?, size).ok().map(Avma::new);
            }
            _ => {}
        }
    }
    None
}
