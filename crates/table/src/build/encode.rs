//! The bytes of bodies.

use super::batch::{Function, Inline};
use super::collect::{Input, Numbers};
use super::opcodes::{self, Picker, Wanted};
use super::place::Item;
use super::steps::{Location, OWN, Step, Steps};
use crate::body;
use crate::bytes::{put_signed, put_uleb};
use crate::format::Counts;
use crate::ops::{Kind, Op, TOLD_ADVANCE, TOLD_COLUMN, TOLD_LINE};

/// Steps in a chunk: as many as a lookup may have to run through. With twice as many the bodies are a tenth smaller.
const CHUNK: usize = 12;

/// Where a chunk starts: in the image, and in the bodies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkEntry {
    pub(crate) start: u64,
    pub(crate) position: u64,
}

/// Writes bodies one after the other.
pub(crate) struct Encoder<'a> {
    input: &'a Input<'a>,
    numbers: &'a Numbers,
    picker: &'a Picker,
    /// Given while opcodes are still to be chosen.
    pub(crate) wanted: Option<opcodes::Counts>,
    pub(crate) out: Vec<u8>,
    pub(crate) chunks: Vec<ChunkEntry>,
    pub(crate) counts: Counts,
    function: Function,
    /// Where each call of the function was told.
    told: Vec<usize>,
    /// The calls that are open, outermost first.
    open: Vec<u32>,
    target: Vec<u32>,
    state: State,
}

/// What the reader knows at a place in a chunk.
#[derive(Clone, Copy, Default)]
struct State {
    address: u64,
    at: Location,
}

const UNTOLD: usize = usize::MAX;

impl<'a> Encoder<'a> {
    pub(crate) fn new(input: &'a Input<'a>, numbers: &'a Numbers, picker: &'a Picker) -> Self {
        Self {
            input,
            numbers,
            picker,
            wanted: None,
            out: Vec::new(),
            chunks: Vec::new(),
            counts: Counts::default(),
            function: Function::default(),
            told: Vec::new(),
            open: Vec::new(),
            target: Vec::new(),
            state: State::default(),
        }
    }

    /// Appends the body of an item.
    pub(crate) fn item(&mut self, item: &Item) {
        let pieces = self.input.pieces(item);
        if self.input.symbol(item).is_some() {
            pieces.iter().for_each(|piece| self.symbol(item, *piece));
            return;
        }
        let mut function = std::mem::take(&mut self.function);
        if self.input.read(item, &mut function).is_some() {
            self.told.clear();
            self.told.resize(function.inlines.len(), UNTOLD);
            self.function(&function, &function.steps, pieces);
        }
        self.function = function;
    }

    fn symbol(&mut self, item: &Item, (start, end): (u64, u64)) {
        let Some(symbol) = self.input.symbol(item) else { return };
        self.start_chunk(start);
        self.out.push(body::SYMBOL);
        put_uleb(&mut self.out, end - start);
        put_uleb(&mut self.out, u64::from(self.numbers.name(self.input.symbol_name(item))));
        put_uleb(&mut self.out, start.saturating_sub(symbol.start.get()));
        self.counts.symbols += 1;
    }

    fn start_chunk(&mut self, start: u64) {
        self.chunks.push(ChunkEntry { start, position: self.out.len() as u64 });
    }

    fn function(&mut self, function: &Function, steps: &Steps, pieces: &[(u64, u64)]) {
        self.counts.functions += u64::from(function.is_function);
        self.counts.ranges += pieces.len() as u64;
        self.counts.rows += steps.rows;
        let mut first = 0;
        for (number, (piece, end)) in pieces.iter().zip(&steps.piece_ends).enumerate() {
            let all = steps.steps.get(first..*end).unwrap_or_default();
            first = *end;
            let mut chunks = all.chunks(CHUNK).peekable();
            let mut is_first = true;
            while let Some(chunk) = chunks.next() {
                let start = chunk.first().map_or(piece.0, |step| step.address);
                let behind = chunks.peek().and_then(|next| next.first()).map_or(piece.1, |step| step.address);
                let others = if number == 0 && is_first { pieces.get(1..).unwrap_or_default() } else { &[] };
                let head =
                    ChunkHead { start, end: behind, piece_start: piece.0, is_part: number > 0, others };
                self.chunk(function, steps, chunk, &head);
                is_first = false;
            }
        }
        self.counts.inlines += self.told.iter().filter(|position| **position != UNTOLD).count() as u64;
    }

    fn chunk(&mut self, function: &Function, steps: &Steps, chunk: &[Step], head: &ChunkHead<'_>) {
        let Some(first) = chunk.first() else { return };
        self.start_chunk(head.start);
        let start = self.out.len();
        find_chain(steps, first.call, &mut self.open);
        let told = self.open.iter().take_while(|call| self.is_told(**call)).count();
        self.open.truncate(told);
        let continues = head.start != head.piece_start;
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        self.out.push(
            flag(!function.is_function, body::LINES)
                | flag(continues, body::CONTINUES)
                | flag(head.is_part, body::PART)
                | flag(!head.others.is_empty(), body::HAS_PARTS)
                | flag(told > 0, body::HAS_STACK),
        );
        put_uleb(&mut self.out, head.end - head.start);
        let name = if function.is_function { self.numbers.name(function.name) } else { 0 };
        if function.is_function {
            put_uleb(&mut self.out, u64::from(name));
        }
        if continues {
            put_uleb(&mut self.out, head.start - head.piece_start);
        }
        if !head.others.is_empty() {
            let mut others = Vec::new();
            head.others.iter().for_each(|other| put_uleb(&mut others, other.0 - head.start));
            put_uleb(&mut self.out, others.len() as u64);
            self.out.extend(others);
        }
        if told > 0 {
            put_uleb(&mut self.out, told as u64);
            for call in &self.open {
                let position = self.told.get(*call as usize).copied().unwrap_or(start);
                put_uleb(&mut self.out, (start - position) as u64);
            }
        }
        self.state = State { address: head.start, at: self.numbers.home(self.owner_name(function)) };
        for step in chunk {
            self.step(function, steps, step);
        }
        self.out.push(0);
    }

    fn is_told(&self, call: u32) -> bool {
        self.told.get(call as usize).is_some_and(|position| *position != UNTOLD)
    }

    /// The name of the innermost open call, or of the function.
    fn owner_name(&self, function: &Function) -> u32 {
        match self.open.last().and_then(|call| function.inlines.get(*call as usize)) {
            Some(inline) => self.numbers.name(inline.name),
            None if function.is_function => self.numbers.name(function.name),
            None => 0,
        }
    }

    fn step(&mut self, function: &Function, steps: &Steps, step: &Step) {
        let before = self.out.len();
        self.go_to(function, steps, step);
        self.counts.call_bytes += (self.out.len() - before) as u64;
        let at = self.numbers.location(step.at);
        if self.state.at == at {
            return;
        }
        if at == Location::default() {
            self.op(Wanted::new(Kind::Nowhere, step.address - self.state.address), step.address);
        } else {
            if self.state.at.file != at.file {
                self.op(Wanted::new(Kind::File, step.address - self.state.address), step.address);
                put_uleb(&mut self.out, u64::from(at.file));
            }
            if (self.state.at.line, self.state.at.column) != (at.line, at.column) {
                let line = i64::from(at.line) - i64::from(self.state.at.line);
                let column = Some(at.column).filter(|column| *column != self.state.at.column);
                let advance = step.address - self.state.address;
                self.op(Wanted { kind: Kind::Row, advance, line, column }, step.address);
            }
        }
        self.state.at = at;
    }

    /// Leaves and enters calls.
    fn go_to(&mut self, function: &Function, steps: &Steps, step: &Step) {
        if self.open.last().copied().unwrap_or(OWN) == step.call {
            return;
        }
        let mut target = std::mem::take(&mut self.target);
        find_chain(steps, step.call, &mut target);
        let common = self.open.iter().zip(&target).take_while(|(a, b)| a == b).count();
        let enters = target.get(common..).unwrap_or_default();
        let mut leaves = self.open.len() - common;
        // The last way out and the first way in are one opcode.
        let is_next = leaves > 0 && !enters.is_empty();
        leaves -= usize::from(is_next);
        if leaves > 0 {
            let last = self.open.get(self.open.len() - leaves).copied().unwrap_or(OWN);
            let kind = if leaves > 1 { Kind::LeaveMany } else { Kind::Leave };
            self.op(Wanted::new(kind, step.address - self.state.address), step.address);
            if leaves > 1 {
                put_uleb(&mut self.out, leaves as u64);
            }
            self.open.truncate(self.open.len() - leaves);
            self.state.at =
                function.inlines.get(last as usize).map_or(Location::default(), |call| self.site(call));
        }
        for (number, call) in enters.iter().enumerate() {
            let is_next = is_next && number == 0;
            if is_next {
                self.open.pop();
            }
            self.enter(function, *call, is_next, step.address);
        }
        self.target = target;
    }

    fn enter(&mut self, function: &Function, call: u32, is_next: bool, address: u64) {
        let Some(inline) = function.inlines.get(call as usize) else { return };
        let told = self.told.get(call as usize).copied().unwrap_or(UNTOLD);
        let caller = self.numbers.home(self.owner_name(function));
        let site = self.site(inline);
        let name = self.numbers.name(inline.name);
        let position = self.out.len();
        let advance = address - self.state.address;
        if told != UNTOLD {
            let kind = if is_next { Kind::NextAgain } else { Kind::Again };
            self.op(Wanted::new(kind, advance), address);
            put_uleb(&mut self.out, (position - told) as u64);
        } else {
            let kind = match (is_next, site.file == caller.file) {
                (false, true) => Kind::Enter,
                (false, false) => Kind::EnterFile,
                (true, true) => Kind::NextEnter,
                (true, false) => Kind::NextEnterFile,
            };
            self.op(Wanted::new(kind, advance), address);
            put_uleb(&mut self.out, u64::from(name));
            put_signed(&mut self.out, i64::from(site.line) - i64::from(caller.line));
            put_uleb(&mut self.out, u64::from(site.column));
            if site.file != caller.file {
                put_uleb(&mut self.out, u64::from(site.file));
            }
            if let Some(slot) = self.told.get_mut(call as usize) {
                *slot = position;
            }
        }
        self.open.push(call);
        self.state.at = self.numbers.home(name);
    }

    /// Where a call stands in its caller's source.
    fn site(&self, call: &Inline) -> Location {
        let file = call.call.file.map_or(0, |file| self.numbers.file(file.0.saturating_add(1)));
        Location { file, line: call.call.line, column: call.call.column }
    }

    /// Writes an opcode with its numbers.
    fn op(&mut self, wanted: Wanted, address: u64) {
        if let Some(counts) = &mut self.wanted {
            let Op { kind, advance, line, column } = opcodes::exact(&wanted);
            *counts.entry((kind as u8, advance, line, column)).or_default() += 1;
        }
        let (code, op) = self.picker.pick(&wanted);
        self.out.push(code);
        if op.advance == TOLD_ADVANCE {
            put_uleb(&mut self.out, wanted.advance);
        }
        if op.kind == Kind::Row {
            if op.line == TOLD_LINE {
                put_signed(&mut self.out, wanted.line);
            }
            if op.column == TOLD_COLUMN {
                put_uleb(&mut self.out, u64::from(wanted.column.unwrap_or(0)));
            }
        }
        self.state.address = address;
    }
}

/// What stands at the start of a chunk.
struct ChunkHead<'a> {
    start: u64,
    end: u64,
    piece_start: u64,
    is_part: bool,
    /// The function's other pieces, told in its first chunk.
    others: &'a [(u64, u64)],
}

/// A call and those around it, outermost first.
fn find_chain(steps: &Steps, call: u32, chain: &mut Vec<u32>) {
    chain.clear();
    let mut call = call;
    while call != OWN && chain.len() < body::MAX_DEPTH {
        chain.push(call);
        call = steps.parents.get(call as usize).copied().unwrap_or(OWN);
    }
    chain.reverse();
}
