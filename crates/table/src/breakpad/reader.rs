//! Reading a symbol file.

use super::module::Module;
use super::nest;
use super::parse::{Record, Words, record};
use crate::error::{Error, ErrorKind, Result};
use crate::exchange::{self, Call, PlainAnswer, PlainFrame, PlainFunction, PlainPath, PlainRow};
use backtrail_core::{AddrRange, Svma};
use std::collections::{BTreeMap, HashMap};

/// A symbol file in memory. Opening reads all of it, for text has no index; what is kept takes at most eight times the
/// bytes of the file, about as many in honest ones.
#[derive(Clone, Debug, Default)]
pub struct Breakpad<'d> {
    module: Module,
    files: HashMap<u32, &'d [u8]>,
    origins: HashMap<u32, &'d [u8]>,
    /// Sorted by address.
    functions: Vec<Function<'d>>,
    lines: Vec<Line>,
    inlines: Vec<Inline>,
    inline_ranges: Vec<AddrRange<Svma>>,
    /// Sorted by address, one an address.
    publics: Vec<(Svma, &'d [u8])>,
    stack: Vec<&'d [u8]>,
    broken: u64,
}

#[derive(Clone, Copy, Debug)]
struct Function<'d> {
    range: AddrRange<Svma>,
    name: &'d [u8],
    /// Indices of its first and behind its last line.
    lines: (u32, u32),
    inlines: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
struct Line {
    address: Svma,
    size: u32,
    line: u32,
    file: u32,
}

#[derive(Clone, Copy, Debug)]
struct Inline {
    depth: u32,
    call_line: u32,
    call_file: u32,
    origin: u32,
    ranges: (u32, u32),
}

fn lines(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    data.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// The image that the first line names.
fn module(line: &[u8]) -> Option<Module> {
    let Some(Record::Module { os, arch, id, name }) = record(line) else { return None };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(Module { os: text(os), arch: text(arch), debug_id: text(id), name: text(name), code_id: None })
}

/// Functions that start before an address, and may reach it, where ranges overlap.
const MAX_TRIED: usize = 16;

impl<'d> Breakpad<'d> {
    /// Whether bytes begin as a symbol file does.
    pub fn is_breakpad(data: &[u8]) -> bool {
        data.starts_with(b"MODULE ")
    }

    /// How many bytes of a file's start [`peek`](Self::peek) needs, as a rule.
    pub const START: usize = 4096;

    /// Which image the start of a file says that it is of; `None` where it is none. The records that tell come first.
    pub fn peek(start: &[u8]) -> Option<Module> {
        let mut lines = lines(start);
        let mut file = Self { module: module(lines.next()?)?, ..Self::default() };
        for line in lines {
            let Some(Record::Info(info)) = record(line) else { break };
            file.info(info);
        }
        Some(file.module)
    }

    /// Reads a file. Lines that are no records are passed over and counted.
    ///
    /// # Errors
    /// When the first line does not name a module, or there are more records than 32 bits count.
    pub fn open(data: &'d [u8]) -> Result<Self> {
        let mut file = Self::default();
        let mut lines = lines(data);
        let missing = || Error::new(ErrorKind::NotATable, 0, "expected a MODULE record");
        file.module = lines.next().and_then(module).ok_or_else(missing)?;
        if u32::try_from(data.len() / 2).is_err() {
            return Err(Error::nowhere(
                ErrorKind::LimitExceeded,
                "symbol files of more than 8 GiB are not read",
            ));
        }
        for line in lines.filter(|line| !line.is_empty()) {
            match record(line) {
                Some(Record::Stack) => file.stack.push(line),
                Some(record) => file.add(record),
                None => file.broken += 1,
            }
        }
        file.sort();
        Ok(file)
    }

    fn add(&mut self, record: Record<'d>) {
        match record {
            Record::Info(info) => self.info(info),
            Record::File { number, name } => drop(self.files.insert(number, name)),
            Record::Origin { number, name } => drop(self.origins.insert(number, name)),
            Record::Function { address, size, name } => {
                let (line, inline) = (self.lines.len() as u32, self.inlines.len() as u32);
                let range = AddrRange::from_size(address, size);
                self.functions.push(Function { range, name, lines: (line, line), inlines: (inline, inline) });
            }
            Record::Inline { depth, call_line, call_file, origin, ranges } => {
                let Some(function) = self.functions.last_mut() else { return };
                let first = self.inline_ranges.len() as u32;
                let mut words = Words(ranges);
                while let Some((address, size)) = words.address().zip(words.hex()) {
                    self.inline_ranges.push(AddrRange::from_size(address, size));
                }
                let ranges = (first, self.inline_ranges.len() as u32);
                self.inlines.push(Inline { depth, call_line, call_file, origin, ranges });
                function.inlines.1 = self.inlines.len() as u32;
            }
            Record::Line { address, size, line, file } => {
                let Some(function) = self.functions.last_mut() else { return };
                let size = u32::try_from(size).unwrap_or(u32::MAX);
                self.lines.push(Line { address, size, line, file });
                function.lines.1 = self.lines.len() as u32;
            }
            Record::Public { address, name } => self.publics.push((address, name)),
            Record::Module { .. } | Record::Stack => {}
        }
    }

    fn info(&mut self, info: &[u8]) {
        let mut words = Words(info);
        if words.next() == Some(b"CODE_ID") {
            let id = words.next().map(|id| String::from_utf8_lossy(id).into_owned());
            self.module.code_id = self.module.code_id.take().or(id);
        }
    }

    fn sort(&mut self) {
        for function in &self.functions {
            let lines = self.lines.get_mut(function.lines.0 as usize..function.lines.1 as usize);
            if let Some(lines) = lines.filter(|lines| !lines.is_sorted_by_key(|line| line.address)) {
                lines.sort_by_key(|line| line.address);
            }
        }
        self.functions.sort_by_key(|function| (function.range.start(), function.range.end()));
        self.publics.sort_by_key(|(address, _)| *address);
        self.publics.dedup_by_key(|(address, _)| *address);
    }

    /// Which image the file is of.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The `STACK` records, as they are, without line ends.
    pub fn stack(&self) -> &[&'d [u8]] {
        &self.stack
    }

    /// Lines that are no records.
    pub fn broken_lines(&self) -> u64 {
        self.broken
    }

    /// The path of a file that a row or call names.
    pub fn file(&self, number: u32) -> Option<PlainPath<'d>> {
        self.files.get(&number).map(|name| PlainPath { directory: &[], name })
    }

    /// What is known of an address, counted from the image base. Return addresses have to be looked up at minus one.
    pub fn lookup(&self, address: Svma) -> Option<PlainAnswer<'d>> {
        let Some(function) = self.around(address) else { return self.public(address) };
        let row = self.row(function, address);
        let calls = self.calls(function, address);
        let calls: Vec<_> = calls.iter().collect();
        let start = (function.name, function.range.start());
        Some(exchange::answer(start, row, &calls, |file| self.file(file)))
    }

    fn around(&self, address: Svma) -> Option<&Function<'d>> {
        let behind = self.functions.partition_point(|function| function.range.start() <= address);
        let mut started = self.functions.get(..behind)?.iter().rev().take(MAX_TRIED);
        started.find(|function| function.range.contains(address))
    }

    /// The nearest public symbol below, unless a function starts in between.
    fn public(&self, address: Svma) -> Option<PlainAnswer<'d>> {
        let behind = self.publics.partition_point(|(start, _)| *start <= address);
        let (start, name) = *self.publics.get(behind.checked_sub(1)?)?;
        let functions = self.functions.partition_point(|function| function.range.start() <= address);
        let nearest = functions.checked_sub(1).and_then(|index| self.functions.get(index));
        if nearest.is_some_and(|function| function.range.start() > start) {
            return None;
        }
        Some(PlainAnswer { start, frames: vec![PlainFrame { name, ..PlainFrame::default() }] })
    }

    fn row(&self, function: &Function<'_>, address: Svma) -> Option<PlainRow> {
        let lines = self.lines.get(function.lines.0 as usize..function.lines.1 as usize)?;
        let behind = lines.partition_point(|line| line.address <= address);
        let line = lines.get(behind.checked_sub(1)?)?;
        let is_inside = address.offset_from(line.address).is_some_and(|offset| offset < u64::from(line.size));
        is_inside.then_some(PlainRow { address: line.address, file: Some(line.file), line: line.line })
    }

    /// The calls around an address, outermost first. Only depth and addresses tell which call is within which: dump_syms
    /// joins what is called from the same line at the same depth, whichever its callers.
    fn calls(&self, function: &Function<'_>, address: Svma) -> Vec<Call<'d>> {
        let mut at_depth: BTreeMap<u32, &Inline> = BTreeMap::new();
        for inline in self.inlines_of(function) {
            if self.ranges(inline).iter().any(|range| range.contains(address)) {
                at_depth.entry(inline.depth).or_insert(inline);
            }
        }
        let chain = at_depth.into_iter().zip(0u32..).take_while(|((depth, _), wanted)| depth == wanted);
        chain.map(|((_, inline), _)| self.call(inline)).collect()
    }

    fn call(&self, inline: &Inline) -> Call<'d> {
        Call { name: self.origin(inline), file: Some(inline.call_file), line: inline.call_line }
    }

    fn inlines_of(&self, function: &Function<'_>) -> &[Inline] {
        self.inlines.get(function.inlines.0 as usize..function.inlines.1 as usize).unwrap_or_default()
    }

    fn ranges(&self, inline: &Inline) -> &[AddrRange<Svma>] {
        self.inline_ranges.get(inline.ranges.0 as usize..inline.ranges.1 as usize).unwrap_or_default()
    }

    fn origin(&self, inline: &Inline) -> &'d [u8] {
        self.origins.get(&inline.origin).copied().unwrap_or_default()
    }

    /// Every function, by address.
    pub fn functions(&self) -> impl Iterator<Item = PlainFunction<'d>> + '_ {
        self.functions.iter().map(|function| self.plain(function))
    }

    /// Every public symbol and its name, by address.
    pub fn publics(&self) -> impl Iterator<Item = (Svma, &'d [u8])> + '_ {
        self.publics.iter().copied()
    }

    fn plain(&self, function: &Function<'d>) -> PlainFunction<'d> {
        let lines = self.lines.get(function.lines.0 as usize..function.lines.1 as usize).unwrap_or_default();
        let mut rows = Vec::with_capacity(lines.len());
        for (position, line) in lines.iter().enumerate() {
            rows.push(PlainRow { address: line.address, file: Some(line.file), line: line.line });
            // A gap before the next line, and behind the last one, has no line.
            let end = line.address.checked_add(line.size.into());
            let next = lines.get(position + 1).map_or(function.range.end(), |next| next.address);
            rows.extend(end.filter(|end| *end < next).map(|address| PlainRow {
                address,
                file: None,
                line: 0,
            }));
        }
        let flat = self.inlines_of(function).iter().map(|inline| nest::Flat {
            depth: inline.depth,
            ranges: self.ranges(inline),
            call: self.call(inline),
        });
        let inlines = nest::nested(flat.collect(), function.range);
        PlainFunction { name: function.name.into(), ranges: vec![function.range], rows, inlines }
    }
}
