//! Prologues, epilogues and stubs of x86: those of `x86_64` with other numbers.

use crate::code::Code;
use crate::row::Row;
use crate::x86_64::prologue::Machine;
use backtrail_core::Register;

const MACHINE: Machine = Machine {
    is_64: false,
    word: 4,
    sp: Register(4),
    fp: Register(5),
    numbers: &[0, 1, 2, 3, 4, 5, 6, 7],
    callee_saved: &[3, 5, 6, 7],
};

/// See [`crate::arch::analyse`].
pub(crate) fn analyse(code: &Code<'_>) -> Option<Row> {
    MACHINE.analyse(code)
}

/// See [`crate::arch::behind_system_call`].
pub(crate) fn behind_system_call(code: &Code<'_>) -> Option<Row> {
    MACHINE.behind_system_call(code)
}

/// See [`crate::arch::by_stack_depth`].
pub(crate) fn by_stack_depth(code: &Code<'_>) -> Option<Row> {
    MACHINE.by_stack_depth(code)
}
