//! The frame that Linux makes to run a signal handler on `x86_64`.

use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

/// Where `rt_sigframe`'s `uc_mcontext` keeps each register, counted from the `ucontext` that the stack pointer
/// points to once the handler returned: `r8` to `r15`, `rdi`, `rsi`, `rbp`, `rbx`, `rdx`, `rax`, `rcx`, `rsp`
/// (`arch/x86/include/uapi/asm/sigcontext.h`).
const PLACES: [(u8, i32); 16] = [
    (8, 40),
    (9, 48),
    (10, 56),
    (11, 64),
    (12, 72),
    (13, 80),
    (14, 88),
    (15, 96),
    (5, 104),
    (4, 112),
    (6, 120),
    (3, 128),
    (1, 136),
    (0, 144),
    (2, 152),
    (7, 160),
];
const RIP: i32 = 168;

/// `mov $15, %rax` (or `%eax`); `syscall`: `rt_sigreturn`.
const RESTORERS: [&[u8]; 2] =
    [&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05], &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05]];

/// See [`crate::arch::signal_frame`].
pub(crate) fn frame(ahead: &[u8]) -> Option<Row> {
    if !RESTORERS.iter().any(|restorer| ahead.starts_with(restorer)) {
        return None;
    }
    let mut row = Row::new(Cfa::RegisterOffset(Register(7), 0), Rule::Offset(RIP));
    row.is_signal_frame = true;
    for (register, place) in PLACES {
        row.set(Register(register), Rule::Offset(place));
    }
    Some(row)
}
