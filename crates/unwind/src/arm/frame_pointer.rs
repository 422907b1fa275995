//! Frames of 32-bit ARM that keep a frame pointer.

use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

/// See [`crate::arch::frame_pointer_rows`].
pub(crate) const ROWS: &[Row] = &[record(Register(7)), record(Register(11))];

/// A frame record: the caller's frame pointer, then the return address.
const fn record(fp: Register) -> Row {
    let mut row = Row::new(Cfa::RegisterOffset(fp, 8), Rule::Offset(-4));
    row.set(fp, Rule::Offset(-8));
    row
}
