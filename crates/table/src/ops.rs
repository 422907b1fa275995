//! The opcodes of bodies, which each table defines for itself.

/// What an opcode does, besides advancing the address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Ends the chunk.
    #[default]
    End = 0,
    /// A line row.
    Row = 1,
    /// Goes into a call that is told here.
    Enter = 2,
    /// The same, where the file of the call is told.
    EnterFile = 3,
    /// Goes back to the caller.
    Leave = 4,
    /// Goes back by several callers.
    LeaveMany = 5,
    /// Goes into a call that was told before.
    Again = 6,
    /// Sets the file of the rows to come.
    File = 7,
    /// From here on there is no location.
    Nowhere = 8,
    /// Back to the caller and into another call.
    NextEnter = 9,
    /// The same, where the file of the call is told.
    NextEnterFile = 10,
    /// Back to the caller and into a call that was told before.
    NextAgain = 11,
}

/// All of them by their numbers.
pub(crate) const KINDS: [Kind; 12] = [
    Kind::End,
    Kind::Row,
    Kind::Enter,
    Kind::EnterFile,
    Kind::Leave,
    Kind::LeaveMany,
    Kind::Again,
    Kind::File,
    Kind::Nowhere,
    Kind::NextEnter,
    Kind::NextEnterFile,
    Kind::NextAgain,
];

/// In [`Op::advance`]: an unsigned LEB128 number behind the opcode tells it.
pub(crate) const TOLD_ADVANCE: u8 = 255;
/// In [`Op::line`]: a signed number behind the opcode tells it.
pub(crate) const TOLD_LINE: i8 = -128;
/// In [`Op::column`]: an unsigned LEB128 number behind the opcode tells it.
pub(crate) const TOLD_COLUMN: u8 = 255;
/// In [`Op::column`]: as before.
pub(crate) const SAME_COLUMN: u8 = 254;

/// The meaning of one opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    /// Bytes that the address goes up by.
    pub(crate) advance: u8,
    /// For rows: what the line goes up by.
    pub(crate) line: i8,
    /// For rows: the new column.
    pub(crate) column: u8,
}

/// Bytes of an opcode's definition.
pub(crate) const OP_SIZE: usize = 4;

impl Op {
    pub(crate) fn new(kind: Kind, advance: u8) -> Self {
        Self { kind, advance, line: 0, column: SAME_COLUMN }
    }

    pub(crate) fn row(advance: u8, line: i8, column: u8) -> Self {
        Self { kind: Kind::Row, advance, line, column }
    }

    pub(crate) fn read(bytes: [u8; OP_SIZE]) -> Option<Self> {
        let [kind, advance, line, column] = bytes;
        let kind = *KINDS.get(usize::from(kind))?;
        Some(Self { kind, advance, line: line.cast_signed(), column })
    }

    pub(crate) fn to_bytes(self) -> [u8; OP_SIZE] {
        [self.kind as u8, self.advance, self.line.cast_unsigned(), self.column]
    }
}

/// All opcodes of a table.
#[derive(Clone, Debug)]
pub(crate) struct OpTable {
    pub(crate) ops: Box<[Op; 256]>,
}

impl OpTable {
    /// Reads the definitions: four bytes each, of up to 256. Bytes that no definition is there for end a chunk.
    pub(crate) fn read(definitions: &[u8]) -> Option<Self> {
        let (definitions, rest) = definitions.as_chunks::<OP_SIZE>();
        let mut table = Self { ops: Box::new([Op::default(); 256]) };
        if !rest.is_empty() || definitions.len() > 256 {
            return None;
        }
        for (op, definition) in table.ops.iter_mut().zip(definitions) {
            *op = Op::read(*definition)?;
        }
        Some(table)
    }

    #[inline]
    pub(crate) fn get(&self, code: u8) -> Op {
        self.ops.get(usize::from(code)).copied().unwrap_or_default()
    }
}
