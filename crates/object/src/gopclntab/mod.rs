//! Go's own table of functions, files, lines and frame sizes (`.gopclntab`): its runtime needs it, so that stripped programs
//! have it, too.
//!
//! Described by Go's sources: `src/debug/gosym/pclntab.go`, `src/runtime/symtab.go`. A header tells the version and, since
//! 1.16, where the parts begin; the table of functions has an address and an offset for each, sorted, and one address more
//! for the end. What lies at the offset ([`function`]) names the function and points to tables from addresses to values
//! ([`values`]): how far the stack pointer has moved, files, lines, and since 1.11 which inlined call an address belongs to. What was inlined is told by a tree
//! outside of the table, which only the runtime's `moduledata` leads to ([`module`]).
//!
//! | magic | Go | entries | files |
//! | --- | --- | --- | --- |
//! | `0xfffffffb` | 1.2 to 1.15 | addresses | one list |
//! | `0xfffffffa` | 1.16, 1.17 | addresses | a list for each unit |
//! | `0xfffffff0` | 1.18, 1.19 | offsets from the text's start | likewise |
//! | `0xfffffff1` | 1.20 on | likewise | likewise |

mod bytes;
mod function;
mod layout;
mod module;
mod values;

use crate::error::{Error, Result};
use crate::{Endian, Object};
use backtrail_core::{AddrRange, Svma};
use bytes::Bytes;
pub use function::{GoFrame, GoFunction, GoPiece};
use layout::Layout;
use std::borrow::Cow;

/// The table's section, in programs at a fixed address, in others, and in Mach-O.
const SECTIONS: [&str; 3] = [".gopclntab", ".data.rel.ro.gopclntab", "__gopclntab"];

/// What is wrong with a table, and where in it.
#[derive(Debug)]
struct Broken {
    offset: u64,
    expected: &'static str,
}

/// Go's table of one image.
#[derive(Debug)]
pub struct GoTable<'d> {
    bytes: Cow<'d, [u8]>,
    layout: Layout,
    /// What entries count from; 0 where they are addresses.
    text: u64,
    /// Functions' further data, with the trees of inlined calls, where that is known.
    function_data: Option<&'d [u8]>,
}

impl<'d> GoTable<'d> {
    /// The table of a file; `None` where it has none.
    ///
    /// # Errors
    /// Where the table breaks its format, or states functions that do not lie in the image's code.
    pub fn read(object: &Object<'d>) -> Result<Option<Self>> {
        let mut sections = object.sections().iter().filter(|section| section.is_loaded);
        let Some(section) = sections.find(|section| SECTIONS.contains(&&*section.name)) else {
            return Ok(None);
        };
        let bytes = object.section_data(section)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let start = section.file.map_or(0, |file| file.start().get());
        Self::of_bytes(object, section.address.start(), bytes).map(Some).map_err(|broken| {
            let Broken { offset, expected } = broken;
            Error::malformed(start.saturating_add(offset), format!("expected {expected}"))
        })
    }

    fn of_bytes(object: &Object<'d>, at: Svma, bytes: Cow<'d, [u8]>) -> Result<Self, Broken> {
        let layout = Layout::read(&bytes, object.endian() == Endian::Big)?;
        let mut table = Self { bytes, layout, text: 0, function_data: None };
        let module = module::find(&table, object, at);
        let starts = module.as_ref().map(|module| module.text).into_iter();
        let starts = starts.chain(module::other_starts(&table, object));
        let code = code(object);
        for start in if table.layout.has_offsets() { starts.collect() } else { vec![0] } {
            table.text = start;
            if table.lies_in(&code) && (module.is_some() || table.starts_as(object, start)) {
                table.check_order()?;
                table.function_data = module.and_then(|module| module.function_data(object));
                return Ok(table);
            }
        }
        Err(Broken { offset: 0, expected: "functions in the image's code" })
    }

    /// Whether all functions lie in one piece of code.
    fn lies_in(&self, code: &[AddrRange<Svma>]) -> bool {
        let (Some(first), Some(end)) = (self.entry(0), self.entry(self.layout.functions)) else {
            return false;
        };
        let around = code.iter().find(|code| code.contains(Svma::new(first)));
        first < end && around.is_some_and(|around| around.end().get() >= end)
    }

    /// Whether the text is known to start here: the header says so, or the entry point is the function that it is in every
    /// program that Go's own linker made.
    fn starts_as(&self, object: &Object<'_>, start: u64) -> bool {
        if !self.layout.has_offsets() || self.layout.stated_text == start {
            return true;
        }
        let entry = object.entry();
        let function = entry.and_then(|entry| self.function_at(entry));
        let name = function.filter(|function| Some(function.addresses().start()) == entry);
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

    /// All functions that have a name, by address.
    pub fn functions(&self) -> impl Iterator<Item = GoFunction<'_>> {
        let functions = (0..self.layout.functions).filter_map(|index| self.numbered(index));
        functions.filter(|function| function.name().is_some())
    }

    /// The function at an address.
    pub fn function_at(&self, address: Svma) -> Option<GoFunction<'_>> {
        let (mut low, mut high) = (0, self.layout.functions);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)? <= address.get() { low = middle + 1 } else { high = middle }
        }
        let function = self.numbered(low.checked_sub(1)?)?;
        function.addresses().contains(address).then_some(function)
    }

    fn numbered(&self, index: u64) -> Option<GoFunction<'_>> {
        let (start, end) = (self.entry(index)?, self.entry(index.checked_add(1)?)?);
        let size = self.layout.entry_size;
        let offset = self.number(self.layout.entry_offset(index) + u64::from(size), size)?;
        GoFunction::new(self, self.layout.data.checked_add(offset)?, start..end)
    }

    /// Where a function starts; the one behind the last is the end.
    fn entry(&self, index: u64) -> Option<u64> {
        self.number(self.layout.entry_offset(index), self.layout.entry_size)?.checked_add(self.text)
    }

    fn parts(&self) -> Bytes<'_> {
        Bytes { data: &self.bytes, is_big: self.layout.big_endian }
    }

    fn number(&self, offset: u64, size: u8) -> Option<u64> {
        self.parts().number(offset, size)
    }

    /// A name by its offset; names are not empty, and UTF-8 as all of Go.
    fn text(&self, part: u64, offset: u64) -> Option<&[u8]> {
        let text = self.parts().text(part.checked_add(offset)?)?;
        (!text.is_empty() && std::str::from_utf8(text).is_ok()).then_some(text)
    }

    /// The path of a file by the number that a function uses.
    fn file(&self, unit: u64, number: i32) -> Option<&[u8]> {
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
        self.text(names, offset)
    }
}

/// The image's code, joined where sections touch; segments where there are no sections.
fn code(object: &Object<'_>) -> Vec<AddrRange<Svma>> {
    let sections = object.sections().iter().filter(|section| section.is_code && section.is_loaded);
    let mut code: Vec<_> =
        sections.map(|section| section.address).filter(|range| !range.is_empty()).collect();
    if code.is_empty() {
        let segments = object.segments().iter().filter(|segment| segment.executable);
        code = segments.map(|segment| segment.address).collect();
    }
    code.sort_by_key(|range| range.start());
    let mut joined: Vec<AddrRange<Svma>> = Vec::new();
    for range in code {
        match joined.last_mut() {
            Some(last) if range.start() <= last.end() => {
                *last = AddrRange::new(last.start(), last.end().max(range.end()));
            }
            _ => joined.push(range),
        }
    }
    joined
}
