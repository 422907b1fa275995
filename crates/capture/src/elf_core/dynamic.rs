//! The dynamic loader's list of what it loaded. System V ABI, `<link.h>`: `r_debug` and `link_map`.

use super::auxv::{AT_PHDR, AT_PHENT, AT_PHNUM, AuxVector};
use super::header::PT_DYNAMIC;
use super::memory_elf::{bias_of, program_headers};
use crate::bytes::text;
use crate::{Limits, Memory};
use backtrail_core::{Avma, Bias, ReadMemory as _, Svma};

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
