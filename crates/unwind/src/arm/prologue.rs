//! Prologues, epilogues and stubs of arm.

use crate::arch::Code;
use crate::row::Row;

/// See [`crate::arch::analyse`].
pub(crate) fn analyse(_: &Code<'_>) -> Option<Row> {
    None
}
