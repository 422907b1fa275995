//! Messages of Swift's runtime and library.

use super::{GUARD_MALLOC, Hint, THREAD_SANITIZER, hint};

/// Messages of Swift's runtime and library. A message is known by its text behind `Fatal error: ` or in the name of
/// an inlined `Swift runtime failure: …` function.
pub(crate) static SWIFT: [Hint; 32] = [
    hint(
        "while implicitly unwrapping an Optional value",
        "An implicitly unwrapped optional (`T!`) was nil.",
        &[
            "An outlet that is not connected, or a property that is used before it is set.",
            "An Objective-C method that returns nil although its header does not say so.",
        ],
        &["Find the `!`-typed value in the named line and why it is not set yet."],
    ),
    hint(
        "while unwrapping an Optional value",
        "An optional was unwrapped with `!` and was nil.",
        &["A value that is missing: absent data, a failed conversion, an object not loaded yet."],
        &[
            "Replace the `!` in the named line by `if let`, `guard let` or a default; find out why the value is missing.",
        ],
    ),
    hint(
        "orce unwrapped a nil value",
        "An optional was unwrapped with `!` and was nil.",
        &["A value that is missing."],
        &["Replace the `!` in the named line by `if let` or `guard let`."],
    ),
    hint(
        "ndex out of range",
        "An index lay outside of an array or another collection.",
        &["The collection is shorter than expected, or changed on another thread.", "An off-by-one."],
        &["Check the index against the collection's indices in the named line."],
    ),
    hint(
        "ndex is out of bounds",
        "An index lay outside of a collection.",
        &["An index of another or an older collection."],
        &["Check the index against the collection's indices in the named line."],
    ),
    hint(
        "ndex is out of range",
        "An index lay outside of an array or another collection.",
        &["The collection is shorter than expected, or changed on another thread."],
        &["Check the index in the named line."],
    ),
    hint(
        "arithmetic overflow",
        "A calculation left the range of its integer type.",
        &["A subtraction below zero in an unsigned type, or a sum or product too large."],
        &["Use a larger type, &+ and its kin, or the …ReportingOverflow methods."],
    ),
    hint(
        "ivision by zero",
        "An integer was divided by zero.",
        &["A count or size that is zero."],
        &["Check the divisor in the named line."],
    ),
    hint(
        "Not enough bits to represent",
        "A number does not fit the integer type that it was converted to.",
        &["A negative or large number converted to a smaller or unsigned type."],
        &["Use init(exactly:) or init(clamping:)."],
    ),
    hint(
        "egative value is not representable",
        "A negative number was converted to an unsigned type.",
        &["A difference that became negative."],
        &["Check the sign first, or use a signed type."],
    ),
    hint(
        "value cannot be converted to",
        "A floating-point number does not fit the integer type: too large, infinite or not a number.",
        &["A division by zero before the conversion."],
        &["Check isFinite and the range before converting."],
    ),
    hint(
        "Could not cast value of type",
        "A forced cast (`as!`) failed: the value is of another type.",
        &["Data of another type than expected; a class in another module or target."],
        &["Use `as?` and handle nil."],
    ),
    hint(
        "type cast failed",
        "A forced cast (`as!`) failed: the value is of another type.",
        &["Data of another type than expected."],
        &["Use `as?` and handle nil."],
    ),
    hint(
        "unexpectedly raised an error",
        "A `try!` met an error.",
        &["An error that was thought impossible: a missing file, invalid data."],
        &["Use `do`/`catch` or `try?`; the message names the error."],
    ),
    hint(
        "Attempted to read an unowned reference",
        "An `unowned` reference was used after its object had gone.",
        &["A closure or object that lives longer than what it refers to."],
        &["Make the reference `weak`, or end the closure with its owner."],
    ),
    hint(
        "requires exclusive access",
        "The same memory was changed in two places at once.",
        &[
            "An inout argument or mutating call that reaches the same variable again.",
            "Two threads that change the same variable.",
        ],
        &[THREAD_SANITIZER],
    ),
    hint(
        "access conflict",
        "The same memory was changed in two places at once.",
        &["An inout argument or mutating call that reaches the same variable again."],
        &[THREAD_SANITIZER],
    ),
    hint(
        "Incorrect actor executor assumption",
        "Code of an actor ran off its executor.",
        &[
            "A closure isolated to the main actor was called on another thread, usually by an API that is not annotated.",
        ],
        &["Hop with `Task { @MainActor in … }` or annotate the closure @Sendable."],
    ),
    hint(
        "tried to resume its continuation more than once",
        "A continuation was resumed twice.",
        &["A callback that is called more than once."],
        &["Guard the continuation so that it is resumed exactly once."],
    ),
    hint(
        "leaked its continuation",
        "A continuation was never resumed.",
        &["A way through the code that does not call back."],
        &["Resume on every way."],
    ),
    hint(
        "uplicate keys",
        "A dictionary was made from keys of which some are equal.",
        &["Data with equal keys, or a literal that names a key twice."],
        &["Use Dictionary(_:uniquingKeysWith:)."],
    ),
    hint(
        "lowerBound",
        "A range's end lies before its start.",
        &["A count that became negative, or an empty collection."],
        &["Check both ends before making the range."],
    ),
    hint(
        "upperBound",
        "A range's end lies before its start.",
        &["A count that became negative, or an empty collection."],
        &["Check both ends before making the range."],
    ),
    hint(
        "remove last element from an empty",
        "An element was removed from an empty collection.",
        &["An empty collection that was not expected."],
        &["Use popLast() or check isEmpty."],
    ),
    hint(
        "remove first element from an empty",
        "An element was removed from an empty collection.",
        &["An empty collection that was not expected."],
        &["Check isEmpty first."],
    ),
    hint(
        "has not been implemented",
        "Code ran that was left empty on purpose.",
        &[
            "An initializer, usually init(coder:), that the class does not implement.",
            "A branch that was thought unreachable.",
        ],
        &["Implement it, or find out how the code got there."],
    ),
    hint(
        "Use of unimplemented initializer",
        "An initializer was called that the Swift class does not have.",
        &["A subclass that does not inherit the initializer that Objective-C code calls."],
        &["Override the initializer that the message names."],
    ),
    hint(
        "retained too many times",
        "A reference count overflowed: the object is damaged or retained without end.",
        &["Memory damage, or a loop that retains."],
        &[GUARD_MALLOC],
    ),
    hint(
        "deallocated with non-zero retain count",
        "An object was kept while it was being released.",
        &["`self` escapes from deinit: a closure, a notification or a Task made there."],
        &["Look in the deinit of the class that the message names."],
    ),
    hint(
        "Precondition failed",
        "A precondition of the code failed.",
        &["A caller does not keep to what the function requires."],
        &["Read the condition and message in the named line."],
    ),
    hint(
        "precondition failure",
        "A precondition failed.",
        &["A caller does not keep to what the function requires."],
        &["Read the condition in the named line."],
    ),
    hint(
        "Assertion failed",
        "An assertion of the code failed.",
        &["Something that was thought impossible happened."],
        &["Read the condition and message in the named line; release builds do not check it."],
    ),
];
