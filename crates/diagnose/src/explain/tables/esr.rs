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
