//! Go's own table of functions, files and lines (`.gopclntab`): its runtime needs it, so that stripped programs have it, too.
//!
//! Described by Go's sources: `src/debug/gosym/pclntab.go`, `src/runtime/symtab.go`. A header tells the version and, since
//! 1.16, where the parts begin; the table of functions has an address and an offset for each, sorted, and one address more
//! for the end. What lies at the offset ([`function`]) names the function and points to tables from addresses to values
//! ([`values`]): files, lines, and since 1.11 which inlined call an address belongs to. What was inlined is told by a tree
//! outside of the table, which only the runtime's `moduledata` leads to ([`module`]).
//!
//! | magic | Go | entries | files |
//! | --- | --- | --- | --- |
//! | `0xfffffffb` | 1.2 to 1.15 | addresses | one list |
//! | `0xfffffffa` | 1.16, 1.17 | addresses | a list for each unit |
//! | `0xfffffff0` | 1.18, 1.19 | offsets from the text's start | likewise |
//! | `0xfffffff1` | 1.20 on | likewise | likewise |

mod function;
mod layout;
mod module;
mod values;

use crate::code::CodeMap;
use crate::dwarf::{FilePath, Found, Reader};
use crate::problem::{ProblemKind, Problems};
use backtrail_core::Svma;
use backtrail_object::{Endian, Object};
pub(crate) use function::{Function, Piece};
use layout::Layout;
use module::Trees;
use std::borrow::Cow;
use std::sync::Arc;

/// The table's section, in programs at a fixed address, in others, and in Mach-O.
const SECTIONS: [&str; 3] = [".gopclntab", ".data.rel.ro.gopclntab", "__gopclntab"];

/// What is wrong with a table, and where in it.
#[derive(Debug)]
pub(crate) struct Broken {
    offset: u64,
    expected: &'static str,
}

/// The table of one image, asked for addresses.
#[derive(Debug)]
pub(crate) struct GoTable<'d> {
    bytes: Cow<'d, [u8]>,
    layout: Layout,
    /// What entries count from; 0 where they are addresses.
    text: u64,
    /// Where the trees of inlined calls are, where that is known.
    trees: Option<Trees<'d>>,
}

impl<'d> GoTable<'d> {
    /// The table of the first file that has one.
    pub(crate) fn read(objects: &[Arc<Object<'d>>], code: &CodeMap, problems: &Problems) -> Option<Self> {
        objects.iter().find_map(|object| match Self::of_object(object, code) {
            Ok(table) => table,
            Err(broken) => {
                let Broken { offset, expected } = broken;
                let message = format!(".gopclntab at {offset:#x}: expected {expected}");
                problems.add(ProblemKind::Symbols, message);
                None
            }
        })
    }

    fn of_object(object: &Arc<Object<'d>>, code: &CodeMap) -> Result<Option<Self>, Broken> {
        let mut sections = object.sections().iter().filter(|section| section.is_loaded);
        let Some(section) = sections.find(|section| SECTIONS.contains(&&*section.name)) else {
            return Ok(None);
        };
        let broken = |expected| Broken { offset: 0, expected };
        let bytes = object.section_data(section).map_err(|_| broken("the section's bytes in the file"))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let layout = Layout::read(&bytes, object.endian() == Endian::Big)?;
        let mut table = Self { bytes, layout, text: 0, trees: None };
        let module = module::find(&table, object, section.address.start());
        let starts = module.as_ref().map(|module| module.text).into_iter();
        let starts = starts.chain(module::other_starts(&table, object));
        for start in if table.layout.has_offsets() { starts.collect() } else { vec![0] } {
            table.text = start;
            if table.lies_in(code) && (module.is_some() || table.starts_as(object, start)) {
                table.check_order()?;
                table.trees = module.and_then(|module| module.trees(object));
                return Ok(Some(table));
            }
        }
        Err(broken("functions in the image's code"))
    }

    /// Whether all functions lie in one piece of code.
    fn lies_in(&self, code: &CodeMap) -> bool {
        let (Some(first), Some(end)) = (self.entry(0), self.entry(self.layout.functions)) else {
            return false;
        };
        let around = code.code_around(first);
        first < end && around.is_some_and(|around| around.end().get() >= end)
    }

    /// Whether the text is known to start here: the header says so, or the entry point is the function that it is in every
    /// program that Go's own linker made.
    fn starts_as(&self, object: &Object<'_>, start: u64) -> bool {
        if !self.layout.has_offsets() || self.layout.stated_text == start {
            return true;
        }
        let entry = object.entry().map(Svma::get);
        let function = entry.and_then(|entry| self.function(Svma::new(entry)));
        let name = function.filter(|function| Some(function.start()) == entry);
        name.and_then(|function| function.name()).is_some_and(|name| name.starts_with(b"_rt0_"))
    }

    /// Functions in order do not overlap, so that all of them have no more addresses than the image's code.
    fn check_order(&self) -> Result<(), Broken> {
        let mut last = 0;
        for index in 0..=self.layout.functions {
            let entry = self.entry(index).unwrap_or(0);
            if entry < last {
                let offset = self.layout.entry_offset(index);
                return Err(Broken { offset, expected: "functions sorted by address" });
            }
            last = entry;
        }
        Ok(())
    }

    /// What the table says of an address; `None` where it knows no function there.
    pub(crate) fn lookup(&self, address: Svma) -> Option<Found<'_>> {
        let function = self.function(address)?;
        let frames = function.frames(address.get() - function.start());
        frames.last().filter(|frame| frame.names.plain.is_some())?;
        Some(Found { frames, function_start: Some(function.start()), has_mangled_names: false })
    }

    /// All functions that have a name, by address.
    pub(crate) fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        let functions = (0..self.layout.functions).filter_map(|index| self.function_at(index));
        functions.filter(|function| function.name().is_some())
    }

    fn function(&self, address: Svma) -> Option<Function<'_>> {
        let (mut low, mut high) = (0, self.layout.functions);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)? <= address.get() { low = middle + 1 } else { high = middle }
        }
        let function = self.function_at(low.checked_sub(1)?)?;
        (address.get() < function.end()).then_some(function)
    }

    fn function_at(&self, index: u64) -> Option<Function<'_>> {
        let (start, end) = (self.entry(index)?, self.entry(index.checked_add(1)?)?);
        let size = self.layout.entry_size;
        let offset = self.number(self.layout.entry_offset(index) + u64::from(size), size)?;
        Function::new(self, self.layout.data.checked_add(offset)?, start..end)
    }

    /// Where a function starts; the one behind the last is the end.
    fn entry(&self, index: u64) -> Option<u64> {
        self.number(self.layout.entry_offset(index), self.layout.entry_size)?.checked_add(self.text)
    }

    fn reader(&self, offset: u64) -> Reader<'_> {
        Reader::new(&self.bytes, offset, self.layout.big_endian)
    }

    fn number(&self, offset: u64, size: u8) -> Option<u64> {
        self.reader(offset).uint(size)
    }

    /// A name by its offset; names are not empty.
    fn text(&self, part: u64, offset: u64) -> Option<&[u8]> {
        self.reader(part.checked_add(offset)?).cstr().filter(|text| !text.is_empty())
    }

    /// The path of a file by the number that a function uses.
    fn file(&self, unit: u64, number: i32) -> Option<FilePath<'_>> {
        let layout = &self.layout;
        let number = u64::try_from(number).ok()?;
        let offset = if layout.has_units() {
            let index = unit.checked_add(number)?.checked_mul(4)?;
            let offset = self.number(layout.units.checked_add(index)?, 4)?;
            // Files of which no code is left.
            Some(offset).filter(|offset| *offset != u64::from(u32::MAX))?
        } else {
            // Counted from 1; the list's first number is its length.
            let number = Some(number).filter(|number| *number > 0)?;
            self.number(layout.files.checked_add(number.checked_mul(4)?)?, 4)?
        };
        let names = if layout.has_units() { layout.files } else { layout.data };
        self.text(names, offset).map(FilePath::whole)
    }
}
