//! The fields of 64-bit ARM's exception syndrome register, and of x86's page fault error code.
//!
//! Sources: ARM Architecture Reference Manual, ESR_EL1 and its ISS encodings; Intel SDM volume 3, "Page-fault
//! exception"; clang's `SanitizerHandler` and `__builtin_debugtrap` for the meanings of BRK.

/// Exception classes (bits 31 to 26).
pub(crate) static CLASSES: [(u8, &str); 22] = [
    (0x00, "unknown reason"),
    (0x01, "WFI or WFE instruction"),
    (0x07, "use of the floating-point unit"),
    (0x0d, "branch target exception (BTI)"),
    (0x0e, "illegal execution state"),
    (0x11, "system call (32-bit)"),
    (0x15, "system call"),
    (0x18, "system register instruction"),
    (0x1c, "failed pointer authentication (FPAC)"),
    (0x20, "instruction abort"),
    (0x21, "instruction abort in the kernel"),
    (0x22, "misaligned program counter"),
    (0x24, "data abort"),
    (0x25, "data abort in the kernel"),
    (0x26, "misaligned stack pointer"),
    (0x28, "floating-point exception (32-bit)"),
    (0x2c, "floating-point exception"),
    (0x30, "breakpoint register"),
    (0x32, "single step"),
    (0x34, "watchpoint"),
    (0x38, "BKPT instruction (32-bit)"),
    (0x3c, "BRK instruction"),
];

/// Fault status codes of aborts (bits 5 to 0), each with a range.
pub(crate) static FAULTS: [(u8, u8, &str); 10] = [
    (0x00, 0x03, "address size fault"),
    (0x04, 0x07, "translation fault: nothing is mapped"),
    (0x08, 0x0b, "access flag fault"),
    (0x0c, 0x0f, "permission fault: mapped, but not allowed"),
    (0x10, 0x10, "external abort"),
    (0x11, 0x11, "tag check fault: memory tagging caught a stale or stray pointer"),
    (0x18, 0x18, "parity or ECC error"),
    (0x21, 0x21, "alignment fault"),
    (0x30, 0x30, "TLB conflict"),
    (0x35, 0x35, "unsupported exclusive access"),
];

/// Immediate values of BRK by which compilers and runtimes say why they stopped, each with a range.
pub(crate) static BREAKS: [(u16, u16, &str); 5] = [
    (0x0001, 0x0001, "a trap by the compiler: Swift's runtime checks and `__builtin_trap` use it"),
    (0x5500, 0x55ff, "a trap by Undefined Behavior Sanitizer or a bounds check of clang"),
    (0xc470, 0xc473, "a failed pointer authentication"),
    (0xf000, 0xf000, "`__builtin_debugtrap`: a breakpoint in the code"),
    (0x0000, 0x0000, "a breakpoint"),
];

/// Bits of x86's page fault error code, each with its meaning when set and when clear.
pub(crate) static PAGE_FAULT_BITS: [(u32, &str, &str); 3] =
    [(0, "the page is mapped", "the page is not mapped"), (1, "write", "read"), (4, "instruction fetch", "")];

/// What failed, by the lowest byte of BRK 0x5500 to 0x55ff: clang's `SanitizerHandler`, in its order (each of these numbers
/// but those of `-fsanitize=cfi`, types and Objective-C casts was seen in what clang 19 makes of `-fsanitize-trap=all`).
pub(crate) static SANITIZER_CHECKS: [&str; 25] = [
    "an addition that overflows",
    "code that was promised never to run (`__builtin_unreachable`)",
    "control flow integrity: a call of a function of another type",
    "an integer division that overflows, or a division by zero",
    "an object of another dynamic type than it is used as",
    "a floating-point number that its integer type cannot hold",
    "a call of a function by a pointer of another type",
    "an implicit conversion that changes the value",
    "an argument that a built-in function does not take (zero for `__builtin_ctz`)",
    "an object of another class than it is cast to",
    "a value that its type does not have (a `bool` that is neither 0 nor 1, an enumeration)",
    "the end of a function that returns a value, without `return`",
    "a multiplication that overflows",
    "a negation that overflows",
    "nil for an argument that is declared nonnull",
    "nil from a function that is declared to return nonnull",
    "a null pointer for an argument that is declared nonnull",
    "a null pointer from a function that is declared to return nonnull",
    "an index beyond the bounds of an array",
    "pointer arithmetic that overflows",
    "a shift by more bits than there are, or by a negative number",
    "a subtraction that overflows",
    "an access by a pointer that is null, misaligned, or to an object too small",
    "a pointer that is not aligned as was promised",
    "an array of variable length with a length that is not positive",
];
