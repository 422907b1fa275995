//! Made-up debug info, and what a table has to answer for it, found in the plainest way.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "not every test needs all of it; outside of tests the seeds of the fuzz target are made with it"
)]

use backtrail_core::{AddrRange, Arch, ImageId, Reason, Svma};
use backtrail_table::*;
use std::io::Cursor;

/// Numbers that look random and are always the same.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn range(&mut self, bound: u64, size: u64) -> (u64, u64) {
        let start = self.below(bound);
        (start, start + self.below(size))
    }
}

/// A name, readable and linkage, and a language.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Head {
    pub name: Option<String>,
    pub linkage: Option<String>,
    pub language: u16,
}

/// A path, a line and a column.
pub type Place = (Option<String>, u32, u32);

#[derive(Clone, Debug)]
pub struct Function {
    pub is_function: bool,
    pub head: Head,
    pub ranges: Vec<(u64, u64)>,
    pub calls: Vec<Call>,
    pub rows: Vec<(u64, Place)>,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub depth: u32,
    pub head: Head,
    pub site: Place,
    pub ranges: Vec<(u64, u64)>,
}

/// Everything that is known of an image.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub units: Vec<Vec<Function>>,
    pub symbols: Vec<(u64, u64, u64, Option<String>)>,
    pub sections: Vec<(u64, u64, bool)>,
}

pub const BASE: u64 = 0x1_0000_4000;

impl Model {
    /// Units whose code lies within `space` bytes.
    pub fn random(random: &mut Random, units: u64, space: u64) -> Self {
        let mut model = Self::default();
        for _ in 0..units {
            let count = random.below(5);
            model.units.push((0..count).map(|_| function(random, space)).collect());
        }
        for _ in 0..random.below(8) {
            let (start, end) = random.range(space, 30);
            let name = if random.below(4) == 0 { None } else { Some(format!("_sym{}", random.below(9))) };
            model.symbols.push((start, end, start.saturating_sub(random.below(5)), name));
        }
        if random.below(3) > 0 {
            model.sections = vec![(0, space / 2, true), (space / 2, space / 2 + 20, false)];
        }
        model
    }

    pub fn build(&self, order: impl Fn(usize) -> usize) -> (Vec<u8>, Summary) {
        let mut header = Header::new(Arch::Arm64, SourceKind::MachODwarf);
        header.id = ImageId::parse_uuid("3baca52bdb6c3f4faf87b0bbe60a97c2").ok();
        header.image_base = Svma::new(BASE);
        header.name = "libmodel.dylib".into();
        let builder = Builder::new(header);
        for number in 0..self.units.len() {
            let number = order(number);
            let mut batch = builder.batch();
            self.units[number].iter().for_each(|function| add(&builder, &mut batch, function));
            builder.add(number as u64, batch);
        }
        for (start, end, symbol, name) in &self.symbols {
            let name = name.as_ref().map(|name| builder.string(name.as_bytes()));
            builder.symbol(SymbolPiece { range: range((*start, *end)), start: svma(*symbol), name });
        }
        for (start, end, is_code) in &self.sections {
            builder.section(range((*start, *end)), *is_code);
        }
        builder.dropped(DropReason::DeadFunction, 3);
        let mut out = Cursor::new(Vec::new());
        let summary = builder.finish(&mut out).unwrap();
        (out.into_inner(), summary)
    }

    /// The answer for an address, counted from [`BASE`].
    pub fn answer(&self, at: u64) -> Answer {
        let functions = |kind: bool| {
            self.units.iter().find_map(|unit| {
                let mut best: Option<(u64, usize)> = None;
                for (index, function) in unit.iter().enumerate().filter(|(_, one)| one.is_function == kind) {
                    let starts = function.ranges.iter().filter(|range| range.0 <= at && at < range.1);
                    let start = starts.map(|range| range.0).max();
                    best = best.max(start.map(|start| (start, index)));
                }
                best.map(|(_, index)| &unit[index])
            })
        };
        if let Some(function) = functions(true).or_else(|| functions(false)) {
            return Answer::Frames(frames(function, at));
        }
        // Of two symbols with the same place the one with the greater name wins, as good as any.
        let around = self.symbols.iter().filter(|(start, end, ..)| *start <= at && at < *end);
        if let Some((_, _, start, name)) =
            around.max_by_key(|(start, end, symbol, name)| (*start, *end, *symbol, name.clone()))
        {
            return Answer::Symbol(*start, name.clone());
        }
        let inside =
            |is_code: bool| self.sections.iter().any(|one| one.0 <= at && at < one.1 && one.2 == is_code);
        Answer::None(if self.sections.is_empty() || inside(true) {
            Reason::NoSymbol
        } else if inside(false) {
            Reason::NotCode
        } else {
            Reason::OutsideSections
        })
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Name, place and whether it is inlined, innermost first.
    Frames(Vec<(Head, Place, bool)>),
    Symbol(u64, Option<String>),
    None(Reason),
}

fn frames(function: &Function, at: u64) -> Vec<(Head, Place, bool)> {
    let mut best = None;
    for (index, call) in function.calls.iter().enumerate() {
        let starts = call.ranges.iter().filter(|range| range.0 <= at && at < range.1);
        best = best.max(starts.map(|range| range.0).max().map(|start| (start, index)));
    }
    let mut place = row_at(function, at);
    let mut frames = Vec::new();
    let mut call = best.map(|(_, index)| index);
    while let Some(index) = call {
        let this = &function.calls[index];
        frames.push((this.head.clone(), std::mem::replace(&mut place, this.site.clone()), true));
        call = (0..index).rev().find(|before| function.calls[*before].depth < this.depth);
    }
    frames.push((function.head.clone(), place, false));
    frames
}

fn row_at(function: &Function, at: u64) -> Place {
    // Ranges that touch are one.
    let mut start = at;
    while start > 0 && function.ranges.iter().any(|range| range.0 < start && start <= range.1) {
        start -= 1;
    }
    let mut rows: Vec<_> = function.rows.iter().filter(|row| start <= row.0 && row.0 <= at).collect();
    rows.sort_by_key(|row| row.0);
    rows.last().map(|row| row.1.clone()).unwrap_or_default()
}

fn function(random: &mut Random, space: u64) -> Function {
    let is_function = random.below(6) > 0;
    let mut ranges = vec![random.range(space, 60)];
    while random.below(3) == 0 {
        ranges.push(random.range(space, 30));
    }
    let mut calls: Vec<Call> = Vec::new();
    let mut rows = Vec::new();
    for (start, end) in ranges.clone() {
        for _ in 0..random.below(12) {
            let near = random.below(4) > 0;
            let at = if near { start + random.below((end - start).max(1)) } else { random.below(space) };
            rows.push((at, place(random)));
        }
        for _ in 0..random.below(6) {
            if !is_function {
                continue;
            }
            let deepest = calls.last().map_or(1, |call| u64::from(call.depth) + 1);
            let first = start + random.below(8);
            let mut own = vec![(first, (first + random.below(30)).min(end.max(first)))];
            if random.below(3) == 0 {
                own.push(random.range(space, 9));
            }
            let depth = random.below(deepest) as u32 + 1;
            calls.push(Call { depth, head: head(random), site: place(random), ranges: own });
        }
    }
    let head = if is_function { head(random) } else { Head::default() };
    Function { is_function, head, ranges, calls, rows }
}

fn head(random: &mut Random) -> Head {
    let number = random.below(20);
    let has = random.below(4);
    let mangled =
        format!("_ZN5space{}3fooINS_{}barEEEvRKNS_3baz{}E", number % 3, number, "x".repeat(number as usize));
    Head {
        name: Some(format!("foo{number}")).filter(|_| has & 1 == 0),
        linkage: Some(mangled).filter(|_| has < 3),
        language: [0, 0x21, 0x1a, 0x8001][random.below(4) as usize],
    }
}

fn place(random: &mut Random) -> Place {
    let paths = ["/src/a.cc", "/src/b.h", "plain.c", r"C:\win\c.cc", "/usr/include/d.h"];
    let file = paths.get(random.below(6) as usize).map(|path| (*path).to_owned());
    let line = match random.below(5) {
        0 => 0,
        1 => random.below(1 << 31) as u32 * 2 + 1,
        _ => random.below(300) as u32,
    };
    let column = if random.below(8) == 0 { random.below(70_000) as u32 } else { random.below(5) as u32 };
    (file, line, column)
}

fn add(builder: &Builder, batch: &mut Batch, function: &Function) {
    let ranges: Vec<_> = function.ranges.iter().map(|one| range(*one)).collect();
    if function.is_function {
        batch.begin_function(intern(builder, &function.head), &ranges);
    } else {
        batch.begin_lines(&ranges);
    }
    for call in &function.calls {
        let (file, line, column) = &call.site;
        let file = file.as_ref().map(|file| builder.file(file.as_bytes()));
        let ranges: Vec<_> = call.ranges.iter().map(|one| range(*one)).collect();
        let site = CallSite { file, line: *line, column: *column };
        batch.inline(call.depth, intern(builder, &call.head), site, ranges);
    }
    for (at, (file, line, column)) in &function.rows {
        batch.row(svma(*at), file.as_ref().map(|file| builder.file(file.as_bytes())), *line, *column);
    }
    batch.end_function();
}

fn intern(builder: &Builder, head: &Head) -> NameId {
    let string = |text: &Option<String>| text.as_ref().map(|text| builder.string(text.as_bytes()));
    builder.name(FunctionHead {
        name: string(&head.name),
        linkage_name: string(&head.linkage),
        language: Language(head.language),
    })
}

pub fn svma(at: u64) -> Svma {
    Svma::new(BASE + at)
}

fn range((start, end): (u64, u64)) -> AddrRange<Svma> {
    AddrRange::new(svma(start), svma(end))
}

/// What a table answers, in the model's words.
pub fn ask(table: &Table<'_>, at: u64) -> Answer {
    answer_of(&table.lookup(svma(at)))
}

pub fn answer_of(lookup: &Lookup<'_>) -> Answer {
    match *lookup {
        Lookup::Found(found) => Answer::Frames(found.frames().map(|frame| of_frame(&frame)).collect()),
        Lookup::Symbol(symbol) => {
            Answer::Symbol(symbol.start.get() - BASE, symbol.name.map(|name| name.to_text()))
        }
        Lookup::None(reason) => Answer::None(reason),
    }
}

fn of_frame(frame: &Frame<'_>) -> (Head, Place, bool) {
    let text = |text: Option<Text<'_>>| text.map(|text| text.to_text());
    let head = Head { name: text(frame.name), linkage: text(frame.linkage_name), language: frame.language.0 };
    let path = frame.file.map(|file| {
        let mut path = Vec::new();
        file.append_to(&mut path);
        String::from_utf8(path).unwrap()
    });
    (head, (path, frame.line, frame.column), frame.inlined)
}
