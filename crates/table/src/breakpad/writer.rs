//! Writing a symbol file.

use super::module::Module;
use crate::error::{Error, ErrorKind, Result};
use crate::exchange::{PlainFunction, PlainPath, PlainRow, Sink, pieces};
use backtrail_core::{AddrRange, Svma};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;

/// Collects functions and writes them as dump_syms does: module, files, origins of inlined calls, then functions and
/// public symbols by address, then `STACK` records.
#[derive(Debug)]
pub struct BreakpadWriter {
    module: Module,
    /// What addresses count from in the file.
    image_base: Svma,
    files: Numbers,
    origins: Numbers,
    /// Address, whether it is a public symbol, and its text.
    records: Vec<(u64, bool, String)>,
}

/// Texts with their numbers, in the order in which they came.
#[derive(Debug, Default)]
struct Numbers {
    numbers: HashMap<Vec<u8>, u32>,
    texts: Vec<Vec<u8>>,
}

impl Numbers {
    fn of(&mut self, text: Vec<u8>) -> Result<u32> {
        if let Some(number) = self.numbers.get(&text) {
            return Ok(*number);
        }
        let number = u32::try_from(self.texts.len());
        let number =
            number.map_err(|_| Error::nowhere(ErrorKind::LimitExceeded, "expected less than 2^32 names"))?;
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        Ok(number)
    }
}

impl BreakpadWriter {
    /// A writer for an image whose addresses count from `image_base`.
    pub fn new(module: Module, image_base: Svma) -> Self {
        Self {
            module,
            image_base,
            files: Numbers::default(),
            origins: Numbers::default(),
            records: Vec::new(),
        }
    }

    fn offset(&self, address: Svma) -> Option<u64> {
        address.offset_from(self.image_base)
    }

    /// Writes the file; `stack` are its `STACK` records, whole lines.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn finish<'s>(mut self, mut stack: impl Iterator<Item = &'s str>, out: &mut dyn Write) -> Result<()> {
        self.records.sort_by_key(|(address, is_public, _)| (*address, *is_public));
        let written =
            self.write(out).and_then(|()| stack.try_for_each(|text| out.write_all(text.as_bytes())));
        written.map_err(|error| Error::io(&error))
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let Module { os, arch, debug_id, name, code_id } = &self.module;
        writeln!(out, "MODULE {os} {arch} {debug_id} {name}")?;
        if let Some(code_id) = code_id {
            writeln!(out, "INFO CODE_ID {code_id}")?;
        }
        writeln!(out, "INFO GENERATOR backtrail {}", env!("CARGO_PKG_VERSION"))?;
        for (kind, numbers) in [("FILE", &self.files), ("INLINE_ORIGIN", &self.origins)] {
            for (number, text) in numbers.texts.iter().enumerate() {
                write!(out, "{kind} {number} ")?;
                out.write_all(text)?;
                out.write_all(b"\n")?;
            }
        }
        self.records.iter().try_for_each(|(.., text)| out.write_all(text.as_bytes()))
    }
}

impl Sink for BreakpadWriter {
    fn file(&mut self, path: PlainPath<'_>) -> Result<u32> {
        self.files.of(one_line(path.to_text().as_bytes()))
    }

    fn function(&mut self, function: &PlainFunction<'_>) -> Result<()> {
        let name = text(&function.name);
        for piece in pieces(function) {
            let Some(start) = self.offset(piece.range.start()) else { continue };
            let mut record = String::new();
            let _ = writeln!(record, "FUNC {start:x} {:x} 0 {name}", piece.range.size());
            for inline in &piece.inlines {
                let origin = self.origins.of(one_line(&inline.call.name))?;
                let (line, file) = (inline.call.call_line, inline.call.call_file.unwrap_or(0));
                let _ = write!(record, "INLINE {} {line} {file} {origin}", inline.depth);
                for range in &inline.ranges {
                    let start = self.offset(range.start()).unwrap_or(0);
                    let _ = write!(record, " {start:x} {:x}", range.size());
                }
                record.push('\n');
            }
            for (row, end) in runs(piece.rows, piece.range.end()) {
                let (Some(file), Some(start)) = (row.file, self.offset(row.address)) else { continue };
                let size = end.offset_from(row.address).unwrap_or(0);
                let _ = writeln!(record, "{start:x} {size:x} {} {file}", row.line);
            }
            self.records.push((start, false, record));
        }
        Ok(())
    }

    fn symbol(&mut self, range: AddrRange<Svma>, name: &[u8]) -> Result<()> {
        if let Some(start) = self.offset(range.start()) {
            self.records.push((start, true, format!("PUBLIC {start:x} 0 {}\n", text(name))));
        }
        Ok(())
    }
}

/// Rows that follow each other with the same file and line, as one; each with its end.
fn runs(rows: &[PlainRow], end: Svma) -> Vec<(PlainRow, Svma)> {
    let mut runs: Vec<(PlainRow, Svma)> = Vec::new();
    for (position, row) in rows.iter().enumerate() {
        let end = rows.get(position + 1).map_or(end, |next| next.address);
        match runs.last_mut() {
            _ if end <= row.address => {}
            Some((last, last_end)) if (last.file, last.line) == (row.file, row.line) => *last_end = end,
            _ => runs.push((*row, end)),
        }
    }
    runs
}

/// A record is one line, and names are to stay readable.
fn one_line(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&one_line(bytes)).into_owned()
}
