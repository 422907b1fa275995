//! What GSYM and Breakpad symbol files have in common: names, ranges, line rows and inlined calls, without columns,
//! languages and whatever else a table knows. Their readers answer in these words, their writers take them.

mod export;
mod pieces;
#[cfg(test)]
pub(crate) mod testing;

pub use export::{Exported, Naming, Sink, export};
pub(crate) use pieces::{intersect, pieces};

use backtrail_core::{AddrRange, Svma};
use std::borrow::Cow;

/// A source path, its directory apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PlainPath<'d> {
    /// The directory, without the separator at its end; empty where there is none.
    pub directory: &'d [u8],
    /// The name in it, or the whole path where directories are not kept apart.
    pub name: &'d [u8],
}

impl PlainPath<'_> {
    /// The whole path; what is not UTF-8 is replaced.
    pub fn to_text(&self) -> String {
        let name = String::from_utf8_lossy(self.name);
        if self.directory.is_empty() {
            return name.into_owned();
        }
        let directory = String::from_utf8_lossy(self.directory);
        let separator = if directory.ends_with(['/', '\\']) { "" } else { "/" };
        format!("{directory}{separator}{name}")
    }
}

/// What lies at an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlainAnswer<'d> {
    /// Where the function starts; for one in several pieces, the piece with the address.
    pub start: Svma,
    /// The functions, innermost first; never empty.
    pub frames: Vec<PlainFrame<'d>>,
}

/// One function at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlainFrame<'d> {
    /// Its name as the file has it: the linkage name in GSYM, the readable one in Breakpad files, as a rule.
    pub name: &'d [u8],
    /// The source file: of the instruction in the innermost function, of the call in the others.
    pub file: Option<PlainPath<'d>>,
    /// The line in that file, counted from 1; 0 where none is stated.
    pub line: u32,
    /// Whether this function was inlined into the next one.
    pub inlined: bool,
}

/// A function with all that is known of it. Files are numbers of the reader's or writer's own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlainFunction<'d> {
    /// Its name.
    pub name: Cow<'d, [u8]>,
    /// Its addresses, sorted, without overlaps.
    pub ranges: Vec<AddrRange<Svma>>,
    /// Its line rows, sorted. A row holds up to the next one or the end of the range that it is in.
    pub rows: Vec<PlainRow>,
    /// The calls that were inlined into it, callers before what they call.
    pub inlines: Vec<PlainInline<'d>>,
}

/// A line row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlainRow {
    /// The first address that it holds for.
    pub address: Svma,
    /// The file; `None` where no location is stated.
    pub file: Option<u32>,
    /// The line, counted from 1; 0 where none is stated.
    pub line: u32,
}

/// An inlined call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlainInline<'d> {
    /// 1 for what was inlined into the function itself, 2 for what was inlined into that, and so on.
    pub depth: u32,
    /// The name of what was inlined.
    pub name: Cow<'d, [u8]>,
    /// The file with the call.
    pub call_file: Option<u32>,
    /// The line of the call, counted from 1; 0 where none is stated.
    pub call_line: u32,
    /// The addresses that belong to the call, with those of the calls in it.
    pub ranges: Vec<AddrRange<Svma>>,
}

/// The answer for an address, from a function whose row for it is known.
///
/// `path` tells the path of a file's number.
pub(crate) fn answer<'d>(
    (name, start): (&'d [u8], Svma),
    row: Option<PlainRow>,
    calls: &[&Call<'d>],
    path: impl Fn(u32) -> Option<PlainPath<'d>>,
) -> PlainAnswer<'d> {
    let mut frames = Vec::with_capacity(calls.len() + 1);
    let (mut file, mut line) = (row.and_then(|row| row.file), row.map_or(0, |row| row.line));
    for call in calls.iter().rev() {
        frames.push(PlainFrame { name: call.name, file: file.and_then(&path), line, inlined: true });
        (file, line) = (call.file, call.line);
    }
    frames.push(PlainFrame { name, file: file.and_then(&path), line, inlined: false });
    PlainAnswer { start, frames }
}

/// A call around an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'d> {
    pub(crate) name: &'d [u8],
    pub(crate) file: Option<u32>,
    pub(crate) line: u32,
}
