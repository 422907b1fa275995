//! Frames of aarch64 that keep `x29`: it points to a frame record, the caller's `x29` and return address
//! (AAPCS64, section 6.4.6). Where the record lies in its frame is up to the compiler, so that the caller's stack
//! pointer is only known to be no lower than the record's end.

use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

const FP: Register = Register(29);

/// See [`crate::arch::frame_pointer_rows`].
pub(crate) const ROWS: &[Row] = &[standard()];

const fn standard() -> Row {
    let mut row = Row::new(Cfa::RegisterOffset(FP, 16), Rule::Offset(-8));
    row.set(FP, Rule::Offset(-16));
    row
}
