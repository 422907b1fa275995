//! Frames of x86_64 that keep `rbp`: `push rbp; mov rbp, rsp` (System V ABI, section 3.2.2).

use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

const RBP: Register = Register(6);

/// See [`crate::arch::frame_pointer_rows`].
pub(crate) const ROWS: &[Row] = &[standard()];

const fn standard() -> Row {
    let mut row = Row::new(Cfa::RegisterOffset(RBP, 16), Rule::Offset(-8));
    row.set(RBP, Rule::Offset(-16));
    row
}
