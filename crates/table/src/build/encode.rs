//! The bytes of bodies.

use super::batch::Function;
use super::collect::{Input, Numbers};
use super::place::Item;
use super::steps::{Inline, Location, OWN, Step, Steps};
use crate::body::{self, FAR, Width};
use crate::bytes::{put_fixed, put_uleb, zigzag};
use crate::format::Counts;

/// Steps in a chunk, at most.
const CHUNK: usize = 16;

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
    pub(crate) out: Vec<u8>,
    pub(crate) chunks: Vec<ChunkEntry>,
    pub(crate) counts: Counts,
    function: Function,
    parts: Parts,
    /// Counts the chunks that were begun.
    round: usize,
    /// Where each call of the function was last told: in which round, and by which reference.
    told: Vec<(usize, u32)>,
    chain: Vec<u32>,
}

/// The round in which calls are told that were not told yet.
const UNTOLD: usize = 0;

impl<'a> Encoder<'a> {
    pub(crate) fn new(input: &'a Input<'a>, numbers: &'a Numbers) -> Self {
        Self {
            input,
            numbers,
            out: Vec::new(),
            chunks: Vec::new(),
            counts: Counts::default(),
            function: Function::default(),
            parts: Parts::default(),
            round: UNTOLD,
            told: Vec::new(),
            chain: Vec::new(),
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
            self.told.resize(function.inlines.len(), (UNTOLD, 0));
            self.function(&function, &function.steps, pieces);
        }
        self.function = function;
    }

    fn symbol(&mut self, item: &Item, (start, end): (u64, u64)) {
        let Some(symbol) = self.input.symbol(item) else { return };
        let name = self.numbers.name(self.input.symbol_name(item));
        self.head(body::SYMBOL, (start, end), name, start.saturating_sub(symbol.start.get()), 0);
        self.counts.symbols += 1;
    }

    /// Writes what all chunks start with.
    fn head(&mut self, flags: u8, (start, end): (u64, u64), name: u32, distance: u64, step_width: u8) {
        self.chunks.push(ChunkEntry { start, position: self.out.len() as u64 });
        let (size, name) = (end - start, u64::from(name));
        let widths = (Width::Doubling.bits(size), Width::Counted.bits(name), Width::Long.bits(distance));
        self.out.extend([flags, widths.0 | widths.1 << 2 | widths.2 << 4 | step_width << 6]);
        put_fixed(&mut self.out, size, Width::Doubling.bytes(widths.0));
        put_fixed(&mut self.out, name, Width::Counted.bytes(widths.1));
        put_fixed(&mut self.out, distance, Width::Long.bytes(widths.2));
    }

    fn function(&mut self, function: &Function, steps: &Steps, pieces: &[(u64, u64)]) {
        self.counts.functions += u64::from(function.is_function);
        self.counts.ranges += pieces.len() as u64;
        self.counts.rows += steps.rows;
        let mut first = 0;
        for (number, (piece, end)) in pieces.iter().zip(&steps.piece_ends).enumerate() {
            let all = steps.steps.get(first..*end).unwrap_or_default();
            first = *end;
            // All of about the same length.
            let count = all.len().div_ceil(CHUNK).max(1);
            let mut chunks = all.chunks(all.len().div_ceil(count).max(1)).peekable();
            let mut is_first = true;
            while let Some(chunk) = chunks.next() {
                let start = chunk.first().map_or(piece.0, |step| step.address);
                let behind = chunks.peek().and_then(|next| next.first()).map_or(piece.1, |step| step.address);
                let others = if number == 0 && is_first { pieces.get(1..).unwrap_or_default() } else { &[] };
                let head = ChunkHead {
                    start,
                    end: behind,
                    piece_start: function.symbol.unwrap_or(piece.0),
                    continues: !is_first,
                    is_part: number > 0,
                    others,
                };
                self.chunk(function, steps, chunk, &head);
                is_first = false;
            }
        }
        self.counts.inlines += self.told.iter().filter(|told| told.0 != UNTOLD).count() as u64;
    }

    fn chunk(&mut self, function: &Function, steps: &Steps, chunk: &[Step], head: &ChunkHead<'_>) {
        self.parts.reference_width = 1;
        while !self.fill_parts(function, steps, chunk) {
            self.parts.reference_width += 1;
        }
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let distance = head.start.saturating_sub(head.piece_start);
        let flags = flag(!function.is_function, body::LINES)
            | flag(head.continues, body::CONTINUES)
            | flag(head.is_part, body::PART)
            | flag(!head.others.is_empty(), body::HAS_PARTS)
            | (self.parts.reference_width as u8 - 1) << body::REFERENCE_SHIFT;
        let last = chunk.last().map_or(0, |step| step.address - head.start);
        let step_width = Width::Doubling.bits(last);
        self.head(flags, (head.start, head.end), self.name_of(function, OWN), distance, step_width);
        let far_widths = self.parts.far_widths();
        self.out.extend([self.parts.steps.len() as u8, self.parts.far.len() as u8, far_widths]);
        if !head.others.is_empty() {
            let mut others = Vec::new();
            head.others.iter().for_each(|other| put_uleb(&mut others, other.0 - head.start));
            put_uleb(&mut self.out, others.len() as u64);
            self.out.extend(others);
        }
        for step in chunk.iter().skip(1) {
            put_fixed(&mut self.out, step.address - head.start, Width::Doubling.bytes(step_width));
        }
        self.parts.put(far_widths, &mut self.out);
        self.counts.call_bytes += self.parts.call_bytes();
    }

    /// Collects steps, far places and calls of a chunk; `false` where references need more bytes.
    fn fill_parts(&mut self, function: &Function, steps: &Steps, chunk: &[Step]) -> bool {
        self.round += 1;
        self.parts.clear();
        for step in chunk {
            let call = self.reference(function, steps, step.call);
            if u64::from(call) > body::mask(self.parts.reference_width) {
                return false;
            }
            let home = self.numbers.home(self.name_of(function, step.call));
            let (line, column) = self.parts.place(home, self.numbers.location(step.at));
            self.parts.steps.push((call, line, column));
        }
        true
    }

    /// The reference to a call. It is told with those around it, where that is still to be done.
    fn reference(&mut self, function: &Function, steps: &Steps, call: u32) -> u32 {
        let mut chain = std::mem::take(&mut self.chain);
        let (mut around, mut reference) = (call, 0);
        while around != OWN && chain.len() < body::MAX_DEPTH {
            match self.told.get(around as usize) {
                Some((round, told)) if *round == self.round => {
                    reference = *told;
                    break;
                }
                _ => chain.push(around),
            }
            around = steps.parents.get(around as usize).copied().unwrap_or(OWN);
        }
        for call in chain.drain(..).rev() {
            let caller = steps.parents.get(call as usize).copied().unwrap_or(OWN);
            let Some(inline) = function.inlines.get(call as usize) else { continue };
            let told = self.parts.calls.len() as u32 + 1;
            self.call(inline, reference, self.name_of(function, caller));
            reference = told;
            if let Some(slot) = self.told.get_mut(call as usize) {
                *slot = (self.round, told);
            }
        }
        self.chain = chain;
        reference
    }

    /// Tells a call.
    fn call(&mut self, inline: &Inline, parent: u32, caller: u32) {
        let caller = self.numbers.home(caller);
        let site = self.site(inline);
        let name = u64::from(self.numbers.name(inline.name));
        let line = zigzag(i64::from(site.line.wrapping_sub(caller.line).cast_signed()));
        let (column, file) = (u64::from(site.column), u64::from(site.file));
        let widths = (Width::Counted.bits(name), Width::Counted.bits(line), Width::Short.bits(column));
        // A file without bytes is the caller's.
        let file_width = if site.file == caller.file { 0 } else { Width::Short.bits(file).max(1) };
        let out = &mut self.parts.calls;
        out.push(widths.0 | widths.1 << 2 | widths.2 << 4 | file_width << 6);
        put_fixed(out, u64::from(parent), self.parts.reference_width);
        put_fixed(out, name, Width::Counted.bytes(widths.0));
        put_fixed(out, line, Width::Counted.bytes(widths.1));
        put_fixed(out, column, Width::Short.bytes(widths.2));
        put_fixed(out, file, Width::Short.bytes(file_width));
    }

    /// The name of a call, or of the function; 0 for none.
    fn name_of(&self, function: &Function, call: u32) -> u32 {
        match function.inlines.get(call as usize) {
            Some(inline) => self.numbers.name(inline.name),
            None if function.is_function => self.numbers.name(function.name),
            None => 0,
        }
    }

    /// Where a call stands in its caller's source.
    fn site(&self, call: &Inline) -> Location {
        let file = call.call.file.map_or(0, |file| self.numbers.file(file.0.saturating_add(1)));
        Location { file, line: call.call.line, column: call.call.column }
    }
}

/// What stands at the start of a chunk.
struct ChunkHead<'a> {
    start: u64,
    end: u64,
    /// Or that of the symbol which names the code.
    piece_start: u64,
    /// Whether there is a chunk of the same piece before it.
    continues: bool,
    is_part: bool,
    /// The function's other pieces, told in its first chunk.
    others: &'a [(u64, u64)],
}

/// The rest of a chunk, as long as the size of each part is not known.
#[derive(Default)]
struct Parts {
    /// Bytes of a reference to a call.
    reference_width: usize,
    /// For each step its call, line and column as they are written.
    steps: Vec<(u32, u8, u8)>,
    far: Vec<Location>,
    calls: Vec<u8>,
}

impl Parts {
    fn clear(&mut self) {
        self.steps.clear();
        self.far.clear();
        self.calls.clear();
    }

    /// A step's line and column as they are written.
    fn place(&mut self, home: Location, at: Location) -> (u8, u8) {
        let line = at.line.checked_sub(home.line).and_then(|line| u8::try_from(line).ok());
        let near = line.filter(|line| *line != FAR && at.file == home.file).zip(u8::try_from(at.column).ok());
        near.unwrap_or_else(|| {
            let known = self.far.iter().position(|far| *far == at);
            let number = known.unwrap_or_else(|| {
                self.far.push(at);
                self.far.len() - 1
            });
            (FAR, number as u8)
        })
    }

    fn far_widths(&self) -> u8 {
        let bits = |part: fn(&Location) -> u32| {
            Width::Counted.bits(u64::from(self.far.iter().map(part).max().unwrap_or(0)))
        };
        bits(|far| far.file) | bits(|far| far.line) << 2 | bits(|far| far.column) << 4
    }

    fn put(&self, far_widths: u8, out: &mut Vec<u8>) {
        for (call, line, column) in &self.steps {
            put_fixed(out, u64::from(*call), self.reference_width);
            out.extend([*line, *column]);
        }
        for far in &self.far {
            put_fixed(out, u64::from(far.file), Width::Counted.bytes(far_widths));
            put_fixed(out, u64::from(far.line), Width::Counted.bytes(far_widths >> 2));
            put_fixed(out, u64::from(far.column), Width::Counted.bytes(far_widths >> 4));
        }
        out.extend(&self.calls);
    }

    /// Bytes that calls and references to them take.
    fn call_bytes(&self) -> u64 {
        (self.steps.len() * self.reference_width + self.calls.len()) as u64
    }
}
