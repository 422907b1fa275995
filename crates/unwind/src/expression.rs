//! DWARF expressions, as far as call frame information uses them.

/// Why an expression has no value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ExpressionError {
    /// An operation that call frame information may not use, or that does not exist.
    Operation(u8),
    /// The expression's bytes end within an operation.
    Truncated,
    /// An operation finds too few values.
    StackUnderflow,
    /// More values than there is room for.
    StackOverflow,
    /// A division by zero.
    DivisionByZero,
    /// A branch to outside of the expression.
    Branch,
    /// Too many operations.
    TooLong,
    /// A register that is not known.
    MissingRegister(backtrail_core::Register),
    /// Memory that cannot be read.
    Unreadable(backtrail_core::Unreadable),
}
