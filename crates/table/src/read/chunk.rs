//! One chunk of a body: what it says, and which calls are open at an address.

use crate::body::{self, MAX_DEPTH, MAX_OPS};
use crate::bytes::Cursor;
use crate::ops::{Kind, Op, OpTable, SAME_COLUMN, TOLD_ADVANCE, TOLD_COLUMN, TOLD_LINE};
use crate::read::index::ChunkEntry;

/// What stands at the start of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'d> {
    bodies: &'d [u8],
    /// Where it starts in the bodies.
    position: usize,
    pub(crate) flags: u8,
    /// The first address.
    pub(crate) start: u64,
    /// Bytes of code.
    pub(crate) size: u64,
    /// The number of the name plus one; 0 for none.
    pub(crate) name: u32,
    /// Where the piece or the symbol around it starts.
    pub(crate) piece_start: u64,
    /// Where the starts of the function's other pieces are told, and in how many bytes.
    parts: (usize, usize),
    /// Where the open calls are told, and how many.
    stack: (usize, usize),
    /// Where the opcodes start.
    ops: usize,
}

/// Open calls, outermost first: where each was told, counted from the start of the chunk.
pub(crate) type Levels = [i32; MAX_DEPTH];

/// What a location is told relative to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    /// Where functions of the innermost open call's name start.
    Home,
    /// Where the call that was told there stands in the source; the innermost open call is its caller.
    Site(i32),
    /// File, line and column 0.
    Nothing,
}

/// The state at an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) depth: usize,
    pub(crate) base: Base,
    /// The number of the file plus one, where it is not the base's.
    pub(crate) file: Option<u32>,
    /// The line, counted from the base's.
    pub(crate) line: i64,
    /// The column, where it is not the base's.
    pub(crate) column: Option<u32>,
}

/// An inlined call as it is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) name: u32,
    /// The line of the call, counted from its caller's home.
    pub(crate) line: i64,
    pub(crate) column: u32,
    /// The number of the file plus one, where it is not that of the caller's home.
    pub(crate) file: Option<u32>,
}

impl<'d> Chunk<'d> {
    #[inline]
    pub(crate) fn read(bodies: &'d [u8], entry: ChunkEntry) -> Option<Self> {
        let position = usize::try_from(entry.position).ok()?;
        let mut cursor = Cursor::at(bodies, position);
        let flags = cursor.u8()?;
        // Most chunks go into the next cache line: it is fetched together with this one.
        std::hint::black_box(bodies.get(position.saturating_add(64)).copied());
        let size = cursor.uleb()?;
        let start = entry.start;
        start.checked_add(size)?;
        let name = if flags & body::KIND == body::LINES { 0 } else { cursor.uleb32()? };
        let has_distance = flags & body::CONTINUES != 0 || flags & body::KIND == body::SYMBOL;
        let distance = if has_distance { cursor.uleb()? } else { 0 };
        let piece_start = start.checked_sub(distance)?;
        let mut chunk = Self {
            bodies,
            position,
            flags,
            start,
            size,
            name,
            piece_start,
            parts: (0, 0),
            stack: (0, 0),
            ops: 0,
        };
        if flags & body::HAS_PARTS != 0 {
            let size = usize::try_from(cursor.uleb()?).ok()?;
            chunk.parts = (cursor.at, size);
            cursor.take(size)?;
        }
        if flags & body::HAS_STACK != 0 {
            let depth = usize::try_from(cursor.uleb()?).ok().filter(|depth| *depth <= MAX_DEPTH)?;
            chunk.stack = (cursor.at, depth);
            for _ in 0..depth {
                cursor.uleb()?;
            }
        }
        chunk.ops = cursor.at;
        Some(chunk)
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

    /// Runs the opcodes up to `offset` bytes from the chunk's start.
    #[inline]
    pub(crate) fn run(&self, ops: &OpTable, offset: u64, levels: &mut Levels) -> Option<State> {
        let mut run = self.begin(levels)?;
        for _ in 0..MAX_OPS {
            if !run.step(ops, offset, levels)? {
                return Some(run.state);
            }
        }
        None
    }

    /// The state before the first opcode.
    pub(crate) fn begin(&self, levels: &mut Levels) -> Option<Run<'d>> {
        let (at, depth) = self.stack;
        let mut cursor = Cursor::at(self.bodies, at);
        for level in levels.get_mut(..depth)? {
            *level = i32::try_from(cursor.uleb()?).ok()?.checked_neg()?;
        }
        let state = State { depth, base: Base::Home, file: None, line: 0, column: None };
        let cursor = Cursor::at(self.bodies, self.ops);
        Some(Run { position: self.position, cursor, address: 0, state })
    }

    /// Reads a call that was told `distance` bytes behind the chunk's start.
    #[inline]
    pub(crate) fn call(&self, distance: i32, ops: &OpTable) -> Option<Call> {
        let position = self.position.checked_add_signed(isize::try_from(distance).ok()?)?;
        let mut cursor = Cursor::at(self.bodies, position);
        let op = ops.get(cursor.u8()?);
        if op.advance == TOLD_ADVANCE {
            cursor.uleb()?;
        }
        let has_file = match op.kind {
            Kind::Enter | Kind::NextEnter => false,
            Kind::EnterFile | Kind::NextEnterFile => true,
            _ => return None,
        };
        let (name, line, column) = (cursor.uleb32()?, cursor.signed()?, cursor.uleb32()?);
        let file = if has_file { Some(cursor.uleb32()?) } else { None };
        Some(Call { name, line, column, file })
    }

    /// Bytes from the chunk's start to behind a place where it ends.
    pub(crate) fn bytes_to(&self, end: usize) -> Option<usize> {
        (end + 1).checked_sub(self.position)
    }

    /// Where a call was told, in the bodies.
    pub(crate) fn call_position(&self, distance: i32) -> Option<usize> {
        self.position.checked_add_signed(isize::try_from(distance).ok()?)
    }
}

/// A chunk's opcodes on the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'d> {
    position: usize,
    pub(crate) cursor: Cursor<'d>,
    /// Bytes from the chunk's start.
    pub(crate) address: u64,
    pub(crate) state: State,
}

impl Run<'_> {
    /// The offset in the chunk that the next opcode holds from; `None` where it ends the chunk.
    pub(crate) fn peek(&self, ops: &OpTable) -> Option<Option<u64>> {
        let mut cursor = self.cursor;
        let op = ops.get(cursor.u8()?);
        let advance = if op.advance == TOLD_ADVANCE { cursor.uleb()? } else { u64::from(op.advance) };
        let next = self.address.checked_add(advance)?;
        Some(Some(next).filter(|_| op.kind != Kind::End))
    }

    /// Runs the next opcode, unless it goes past `offset` or ends the chunk: then it answers `false`.
    #[inline]
    pub(crate) fn step(&mut self, ops: &OpTable, offset: u64, levels: &mut Levels) -> Option<bool> {
        let at = self.cursor.at;
        let op = ops.get(self.cursor.u8()?);
        let advance = if op.advance == TOLD_ADVANCE { self.cursor.uleb()? } else { u64::from(op.advance) };
        let address = self.address.checked_add(advance)?;
        if address > offset || op.kind == Kind::End {
            self.cursor.at = at;
            return Some(false);
        }
        self.address = address;
        if op.kind == Kind::Row {
            self.row(op)?;
        } else {
            self.other(op.kind, at, levels)?;
        }
        Some(true)
    }

    #[inline]
    fn row(&mut self, op: Op) -> Option<()> {
        let line = if op.line == TOLD_LINE { self.cursor.signed()? } else { i64::from(op.line) };
        self.state.line = self.state.line.checked_add(line)?;
        match op.column {
            SAME_COLUMN => {}
            TOLD_COLUMN => self.state.column = Some(self.cursor.uleb32()?),
            column => self.state.column = Some(u32::from(column)),
        }
        Some(())
    }

    #[inline]
    fn other(&mut self, kind: Kind, at: usize, levels: &mut Levels) -> Option<()> {
        match kind {
            Kind::File => {
                self.state.file = Some(self.cursor.uleb32()?);
                return Some(());
            }
            Kind::Nowhere => {
                self.state = self.on(Base::Nothing);
                return Some(());
            }
            Kind::Leave => return self.leave(1, levels),
            Kind::LeaveMany => {
                let count = usize::try_from(self.cursor.uleb()?).ok()?;
                return self.leave(count, levels);
            }
            Kind::NextEnter | Kind::NextEnterFile | Kind::NextAgain => {
                self.state.depth = self.state.depth.checked_sub(1)?;
            }
            _ => {}
        }
        let mut told = at;
        match kind {
            Kind::Again | Kind::NextAgain => {
                told = at.checked_sub(usize::try_from(self.cursor.uleb()?).ok()?)?;
            }
            Kind::EnterFile | Kind::NextEnterFile => {
                self.skip_call()?;
                self.cursor.uleb()?;
            }
            _ => self.skip_call()?,
        }
        let distance = i32::try_from(told as i64 - self.position as i64).ok()?;
        *levels.get_mut(self.state.depth)? = distance;
        self.state.depth += 1;
        self.state = self.on(Base::Home);
        Some(())
    }

    #[inline]
    fn skip_call(&mut self) -> Option<()> {
        self.cursor.uleb()?;
        self.cursor.uleb()?;
        self.cursor.uleb()?;
        Some(())
    }

    fn leave(&mut self, count: usize, levels: &Levels) -> Option<()> {
        self.state.depth = self.state.depth.checked_sub(count)?;
        let left = *levels.get(self.state.depth)?;
        self.state = self.on(Base::Site(left));
        Some(())
    }

    fn on(&self, base: Base) -> State {
        State { depth: self.state.depth, base, file: None, line: 0, column: None }
    }
}
