//! Frames of x86 that keep `ebp`: `push ebp; mov ebp, esp` (System V ABI i386, figure 2.1).

use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

const EBP: Register = Register(5);

/// See [`crate::arch::frame_pointer_rows`].
pub(crate) const ROWS: &[Row] = &[standard()];

const fn standard() -> Row {
    let mut row = Row::new(Cfa::RegisterOffset(EBP, 8), Rule::Offset(-4));
    row.set(EBP, Rule::Offset(-8));
    row
}
