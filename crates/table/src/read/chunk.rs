//! One chunk of a body: what it says of an address, and which calls are open there.

use crate::body::{self, FAR, MAX_STEPS, Width};
use crate::bytes::{self, Cursor, unzigzag};
use crate::read::index::ChunkEntry;
use crate::read::names::Location;

/// A chunk's head, and where the rest of it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'d> {
    bodies: &'d [u8],
    pub(crate) flags: u8,
    /// The first address.
    pub(crate) start: u64,
    /// Bytes of code.
    pub(crate) size: u64,
    /// The number of the name plus one; 0 for none.
    pub(crate) name: u32,
    /// Where the piece or the symbol around it starts.
    pub(crate) piece_start: u64,
    /// How many steps there are.
    count: usize,
    /// Bytes of a step's address.
    address_width: usize,
    /// How many bytes the file, the line and the column of a far place have.
    far_widths: u8,
    /// Where the starts of the function's other pieces are told, and in how many bytes.
    parts: (usize, usize),
    /// Where the addresses of the steps are told, the first one left out.
    addresses: usize,
    /// Where the far places are told.
    far: usize,
    /// Where the calls are told.
    calls: usize,
}

/// What holds from an address on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// The innermost open call; 0 for none.
    pub(crate) call: u32,
    pub(crate) place: SourcePosition,
}

/// A place in the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SourcePosition {
    /// In the file in which functions of the innermost name start, the line counted from there.
    Near { line: u8, column: u8 },
    /// Anywhere.
    Far(Location),
}

/// An inlined call as it is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// The call around it; 0 for none.
    pub(crate) parent: u32,
    pub(crate) name: u32,
    /// The line of the call, counted from its caller's home.
    pub(crate) line: u32,
    pub(crate) column: u32,
    /// The number of the file plus one, where it is not that of the caller's home.
    pub(crate) file: Option<u32>,
}

impl<'d> Chunk<'d> {
    #[inline]
    pub(crate) fn read(bodies: &'d [u8], entry: ChunkEntry) -> Option<Self> {
        let position = usize::try_from(entry.position).ok()?;
        let mut cursor = Cursor::at(bodies, position);
        let [flags, widths] = cursor.array()?;
        // Most chunks go into the next cache lines: they are fetched together with this one.
        let touched = [64, 128].map(|ahead| bodies.get(position.saturating_add(ahead)).copied());
        std::hint::black_box(touched);
        let size = cursor.fixed(Width::Doubling.bytes(widths))?;
        let name = cursor.fixed(Width::Counted.bytes(widths >> 2))? as u32;
        let distance = cursor.fixed(Width::Long.bytes(widths >> 4))?;
        let start = entry.start;
        start.checked_add(size)?;
        let mut chunk = Self {
            bodies,
            flags,
            start,
            size,
            name,
            piece_start: start.checked_sub(distance)?,
            count: 0,
            address_width: Width::Doubling.bytes(widths >> 6),
            far_widths: 0,
            parts: (0, 0),
            addresses: 0,
            far: 0,
            calls: 0,
        };
        if flags & body::KIND != body::SYMBOL {
            chunk.read_rest(cursor)?;
        }
        Some(chunk)
    }

    /// Finds the pieces behind the head.
    #[inline]
    fn read_rest(&mut self, mut cursor: Cursor<'d>) -> Option<()> {
        let [count, far_count, far_widths] = cursor.array()?;
        self.count = usize::from(count);
        if !(1..=MAX_STEPS).contains(&self.count) {
            return None;
        }
        self.far_widths = far_widths;
        if self.flags & body::HAS_PARTS != 0 {
            let size = usize::try_from(cursor.uleb()?).ok()?;
            self.parts = (cursor.at, size);
            cursor.take(size)?;
        }
        self.addresses = cursor.at;
        self.far = self.steps() + self.count * (self.reference_width() + 2);
        self.calls = self.far + usize::from(far_count) * self.far_width();
        Some(())
    }

    /// Bytes of a reference to a call.
    #[inline(always)]
    fn reference_width(&self) -> usize {
        Width::Counted.bytes(self.flags >> body::REFERENCE_SHIFT)
    }

    #[inline(always)]
    fn far_width(&self) -> usize {
        let width = |shift: u32| Width::Counted.bytes(self.far_widths >> shift);
        width(0) + width(2) + width(4)
    }

    /// Where the steps stand.
    #[inline(always)]
    fn steps(&self) -> usize {
        self.addresses + (self.count - 1) * self.address_width
    }

    /// The first addresses of the function's other pieces.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Option<u64>> + 'd {
        let (at, size) = self.parts;
        let mut cursor = Cursor::new(self.bodies.get(at..at + size).unwrap_or_default());
        let start = self.start;
        std::iter::from_fn(move || if cursor.is_empty() { None } else { Some(cursor.uleb()) })
            .map(move |distance| start.checked_add(distance?))
            // What cannot be read does not move the cursor.
            .scan(false, |is_over, part| {
                if *is_over {
                    None
                } else {
                    *is_over = part.is_none();
                    Some(part)
                }
            })
    }

    /// How many steps there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Where a step starts, counted from the chunk's start.
    pub(crate) fn offset(&self, step: usize) -> Option<u64> {
        let Some(index) = step.checked_sub(1) else { return Some(0) };
        bytes::fixed(self.bodies, self.addresses + index * self.address_width, self.address_width)
    }

    /// What holds `offset` bytes from the chunk's start.
    #[inline]
    pub(crate) fn find(&self, offset: u64) -> Option<Step> {
        let step = if self.address_width == 1 {
            let addresses = self.bodies.get(self.addresses..self.addresses + self.count - 1)?;
            addresses.iter().map(|address| usize::from(u64::from(*address) <= offset)).sum()
        } else {
            let is_later = |step: &usize| self.offset(*step).is_none_or(|start| start > offset);
            (1..self.count).find(is_later).unwrap_or(self.count) - 1
        };
        self.step(step)
    }

    /// A step by its number.
    #[inline]
    pub(crate) fn step(&self, step: usize) -> Option<Step> {
        let width = self.reference_width();
        let at = self.steps() + step * (width + 2);
        let call = bytes::fixed(self.bodies, at, width)? as u32;
        let [line, column] = *self.bodies.get(at + width..)?.first_chunk()?;
        let place = if line == FAR {
            SourcePosition::Far(self.far_place(column)?)
        } else {
            SourcePosition::Near { line, column }
        };
        Some(Step { call, place })
    }

    fn far_place(&self, number: u8) -> Option<Location> {
        let at = self.far + usize::from(number) * self.far_width();
        let mut cursor = Cursor::at(self.bodies, at);
        let mut number = |shift: u32| {
            let number = cursor.fixed(Width::Counted.bytes(self.far_widths >> shift));
            number.map(|number| number as u32)
        };
        Some(Location { file: number(0)?, line: number(2)?, column: number(4)? })
    }

    /// Reads a call; one that is not told behind the call around it is none.
    #[inline]
    pub(crate) fn call(&self, reference: u32) -> Option<Call> {
        let at = self.calls.checked_add((reference as usize).checked_sub(1)?)?;
        let mut cursor = Cursor::at(self.bodies, at);
        let widths = cursor.u8()?;
        let parent = cursor.fixed(self.reference_width())? as u32;
        let name = cursor.fixed(Width::Counted.bytes(widths))? as u32;
        let line = cursor.fixed(Width::Counted.bytes(widths >> 2))?;
        let column = cursor.fixed(Width::Short.bytes(widths >> 4))? as u32;
        let file_width = Width::Short.bytes(widths >> 6);
        let file = cursor.fixed(file_width)? as u32;
        if parent >= reference {
            return None;
        }
        let file = if file_width == 0 { None } else { Some(file) };
        Some(Call { parent, name, line: unzigzag(line) as u32, column, file })
    }

    /// Bytes of the steps.
    pub(crate) fn step_bytes(&self) -> usize {
        self.far - self.addresses
    }
}
