//! Chooses a table's opcodes and finds the one to write.

use super::collect::FastMap;
use crate::ops::{KINDS, Kind, OP_SIZE, Op, SAME_COLUMN, TOLD_ADVANCE, TOLD_COLUMN, TOLD_LINE};

/// What is to be written: an opcode with all that belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Wanted {
    pub(crate) kind: Kind,
    pub(crate) advance: u64,
    pub(crate) line: i64,
    /// `None` for the same as before.
    pub(crate) column: Option<u32>,
}

impl Wanted {
    pub(crate) fn new(kind: Kind, advance: u64) -> Self {
        Self { kind, advance, line: 0, column: None }
    }
}

/// How often each is wanted.
pub(crate) type Counts = FastMap<(u8, u8, i8, u8), u64>;

/// The most specific opcode that says it.
pub(crate) fn exact(wanted: &Wanted) -> Op {
    let advance = u8::try_from(wanted.advance).unwrap_or(TOLD_ADVANCE);
    if wanted.kind != Kind::Row {
        return Op::new(wanted.kind, advance);
    }
    let line = i8::try_from(wanted.line).unwrap_or(TOLD_LINE);
    let column = wanted.column.map_or(SAME_COLUMN, |column| {
        u8::try_from(column).ok().filter(|column| *column < SAME_COLUMN).unwrap_or(TOLD_COLUMN)
    });
    Op::row(advance, line, column)
}

/// Those that have to be there so that everything can be said.
fn needed() -> Vec<Op> {
    let mut ops = vec![Op::new(Kind::End, 0)];
    let others = KINDS.into_iter().filter(|kind| !matches!(kind, Kind::End | Kind::Row));
    ops.extend(others.map(|kind| Op::new(kind, TOLD_ADVANCE)));
    ops.extend([TOLD_COLUMN, SAME_COLUMN].map(|column| Op::row(TOLD_ADVANCE, TOLD_LINE, column)));
    ops
}

/// Chooses the opcodes that save the most bytes.
pub(crate) fn choose(counts: &Counts) -> Vec<Op> {
    let mut ops = needed();
    let mut savings: FastMap<[u8; OP_SIZE], u64> = FastMap::default();
    for (&(kind, advance, line, column), &count) in counts {
        let bytes = [kind, advance, line.cast_unsigned(), column];
        let mut save = |op: Op, bytes: u64| *savings.entry(op.to_bytes()).or_default() += count * bytes;
        let Some(op) = Op::read(bytes) else { continue };
        if op.kind != Kind::Row {
            save(op, 1);
            continue;
        }
        let pair = if column == SAME_COLUMN { SAME_COLUMN } else { TOLD_COLUMN };
        let has_line = u64::from(line != TOLD_LINE);
        let has_advance = u64::from(advance != TOLD_ADVANCE);
        save(Op::row(advance, line, pair), has_line + has_advance);
        if pair != column {
            save(op, 1);
        }
        // For lines that are too far away to have an opcode of their own.
        if line.unsigned_abs() > 8 {
            save(Op::row(advance, TOLD_LINE, pair), has_advance);
        }
        if advance > 24 {
            save(Op::row(TOLD_ADVANCE, line, pair), has_line);
        }
    }
    let mut savings: Vec<(u64, [u8; OP_SIZE])> = savings.into_iter().map(|(op, bytes)| (bytes, op)).collect();
    savings.sort_unstable_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
    for op in savings.into_iter().filter_map(|(_, bytes)| Op::read(bytes)) {
        if ops.len() < 256 && !ops.contains(&op) {
            ops.push(op);
        }
    }
    ops
}

/// Finds opcodes.
pub(crate) struct Picker {
    pub(crate) definitions: Vec<u8>,
    /// Of rows that say all, by their definitions.
    codes: FastMap<u32, u8>,
    /// By kind and advance.
    plain: Vec<u8>,
    /// Rows by advance and line: with the same column, with a told one.
    rows: [Vec<u8>; 2],
}

impl Picker {
    pub(crate) fn new(ops: &[Op]) -> Self {
        let mut picker = Self {
            definitions: ops.iter().flat_map(|op| op.to_bytes()).collect(),
            codes: FastMap::default(),
            plain: vec![0; 16 << 8],
            rows: [vec![0; 1 << 16], vec![0; 1 << 16]],
        };
        for (op, code) in ops.iter().zip(0..=u8::MAX) {
            picker.codes.insert(u32::from_le_bytes(op.to_bytes()), code);
            let [same, told] = &mut picker.rows;
            let (slots, index) = match (op.kind, op.column) {
                (Kind::Row, SAME_COLUMN) => (same, pair(op.advance, op.line)),
                (Kind::Row, TOLD_COLUMN) => (told, pair(op.advance, op.line)),
                (Kind::Row, _) => continue,
                (kind, _) => (&mut picker.plain, usize::from(kind as u8) << 8 | usize::from(op.advance)),
            };
            if let Some(slot) = slots.get_mut(index) {
                *slot = code;
            }
        }
        picker
    }

    /// The opcode to write and what it stands for.
    pub(crate) fn pick(&self, wanted: &Wanted) -> (u8, Op) {
        let op = exact(wanted);
        if op.kind != Kind::Row {
            return self.pick_plain(op);
        }
        let is_same = op.column == SAME_COLUMN;
        if !is_same && let Some(code) = self.codes.get(&u32::from_le_bytes(op.to_bytes())) {
            return (*code, op);
        }
        let column = if is_same { SAME_COLUMN } else { TOLD_COLUMN };
        let slots = self.rows.get(usize::from(!is_same)).map(Vec::as_slice).unwrap_or_default();
        let forms = [
            (op.advance, op.line),
            (op.advance, TOLD_LINE),
            (TOLD_ADVANCE, op.line),
            (TOLD_ADVANCE, TOLD_LINE),
        ];
        for (advance, line) in forms {
            if let Some(code) = slots.get(pair(advance, line)).filter(|code| **code != 0) {
                return (*code, Op::row(advance, line, column));
            }
        }
        (0, Op::default())
    }

    fn pick_plain(&self, op: Op) -> (u8, Op) {
        let code = |advance: u8| {
            let code = self.plain.get(usize::from(op.kind as u8) << 8 | usize::from(advance));
            code.copied().unwrap_or(0)
        };
        match code(op.advance) {
            0 => (code(TOLD_ADVANCE), Op::new(op.kind, TOLD_ADVANCE)),
            found => (found, op),
        }
    }
}

fn pair(advance: u8, line: i8) -> usize {
    usize::from(advance) << 8 | usize::from(line.cast_unsigned())
}
