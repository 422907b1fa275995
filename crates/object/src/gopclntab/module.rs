//! The runtime's `moduledata`: where the text starts, and where the trees of inlined calls are.
//!
//! Nothing points to it, but it begins with the address of the table, followed by those of the table's parts.

use super::GoTable;
use super::bytes::Bytes;
use super::layout::Version;
use crate::{Endian, Object, Section};
use backtrail_core::Svma;

/// Where it can be: in data with or without pointers, in a section of its own since 1.25.
const SECTIONS: [&str; 6] = [".noptrdata", ".data", ".go.module", "__noptrdata", "__data", "__go_module"];

// Its words.
const MIN_PC: usize = 20;
const TEXT: usize = 22;
const RODATA: usize = 37;
/// Words that counters of coverage took from 1.20 on.
const COVERAGE: usize = 2;
/// Words that sizes of types and interface tables take from 1.27 on, whose table is marked as that of 1.20.
const SIZES: usize = 3;
/// With the words that are needed of any version.
const WORDS: usize = RODATA + COVERAGE + SIZES + 2;

/// What is known of a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Module {
    pub(super) text: u64,
    /// Where functions' further data begins (`gofunc`), in the read-only data that begins second.
    data: u64,
    rodata: u64,
}

impl Module {
    /// The bytes of functions' further data, in which the trees of inlined calls are.
    pub(super) fn function_data<'d>(self, object: &Object<'d>) -> Option<&'d [u8]> {
        let data = object.bytes_at(Svma::new(self.data), u64::MAX)?;
        (self.rodata <= self.data && !data.is_empty()).then_some(data)
    }
}

/// The module of a table that lies at an address. There is none where the loader only fills its words in.
pub(super) fn find(table: &GoTable<'_>, object: &Object<'_>, at: Svma) -> Option<Module> {
    // Before, its words were others.
    if table.layout.version < Version::Go118 {
        return None;
    }
    let sections = object.sections().iter().filter(|section| SECTIONS.contains(&&*section.name));
    sections.into_iter().find_map(|section| in_section(table, object, section, at))
}

fn in_section(table: &GoTable<'_>, object: &Object<'_>, section: &Section<'_>, at: Svma) -> Option<Module> {
    let data = object.section_data(section).ok()?;
    let size = table.layout.pointer_size;
    let bytes = Bytes { data: &data, is_big: object.endian() == Endian::Big };
    let names = at.checked_add(table.layout.names)?.get();
    let step = u64::from(size);
    (0..data.len() as u64).step_by(size.into()).find_map(|offset| {
        if bytes.number(offset, size)? != at.get() || bytes.number(offset + step, size) != Some(names) {
            return None;
        }
        let words: Vec<u64> =
            (0..WORDS as u64).map_while(|word| bytes.number(offset + word * step, size)).collect();
        of_words(table, object, &words)
    })
}

fn of_words(table: &GoTable<'_>, object: &Object<'_>, words: &[u64]) -> Option<Module> {
    let word = |index: usize| words.get(index).copied();
    let text = word(TEXT)?;
    // The first function starts at the first address. `entry` counts from 0 as yet.
    if text.checked_add(table.entry(0)?)? != word(MIN_PC)? {
        return None;
    }
    let coverage = if table.layout.version >= Version::Go120 { COVERAGE } else { 0 };
    let module = |at: usize| Some(Module { text, rodata: word(at)?, data: word(at + 1)? });
    let earlier = module(RODATA + coverage)?;
    // Sizes are no addresses, or low ones.
    let is_mapped = |module: &Module| {
        let is_there = |at: u64| object.bytes_at(Svma::new(at), 1).is_some();
        module.rodata <= module.data && is_there(module.rodata) && is_there(module.data)
    };
    if coverage == 0 || is_mapped(&earlier) {
        return Some(earlier);
    }
    Some(module(RODATA + coverage + SIZES).filter(is_mapped).unwrap_or(earlier))
}

/// Where the text may start, if there is no module to tell: what the header says, and the code section's start.
pub(super) fn other_starts<'a>(
    table: &GoTable<'_>,
    object: &'a Object<'_>,
) -> impl Iterator<Item = u64> + use<'a> {
    let stated = Some(table.layout.stated_text).filter(|stated| *stated != 0);
    let text = object.sections().iter().find(|section| matches!(&*section.name, ".text" | "__text"));
    stated.into_iter().chain(text.map(|section| section.address.start().get()))
}
