//! The frames that Linux makes to run a signal handler on x86.

use crate::row::{Cfa, Row, Rule};
use backtrail_core::{Avma, Register};

/// Where `sigcontext` keeps each register: `edi`, `esi`, `ebp`, `esp`, `ebx`, `edx`, `ecx`, `eax`
/// (`arch/x86/include/uapi/asm/sigcontext.h`).
const PLACES: [(u8, i32); 8] = [(7, 16), (6, 20), (5, 24), (4, 28), (3, 32), (2, 36), (1, 40), (0, 44)];
const EIP: i32 = 56;

/// `pop %eax; mov $119, %eax; int $0x80`: `sigreturn`.
const PLAIN: &[u8] = &[0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80];
/// `mov $173, %eax; int $0x80`: `rt_sigreturn`.
const REAL_TIME: &[u8] = &[0xb8, 0xad, 0, 0, 0, 0xcd, 0x80];

/// See [`crate::arch::signal_frame`].
pub(crate) fn frame(ahead: &[u8], sp: Avma, word: &dyn Fn(Avma) -> Option<u32>) -> Option<Row> {
    let context = if ahead.starts_with(PLAIN) {
        // The signal's number, then the context.
        4
    } else if ahead.starts_with(REAL_TIME) {
        // The number, a pointer to the `siginfo`, one to the `ucontext`, which has the context 20 bytes in.
        let ucontext = word(sp.checked_add(8)?)?;
        i32::try_from(u64::from(ucontext).checked_sub(sp.get())?).ok()?.checked_add(20)?
    } else {
        return None;
    };
    let mut row = Row::new(Cfa::RegisterOffset(Register(4), context), Rule::Offset(EIP));
    row.is_signal_frame = true;
    for (register, place) in PLACES {
        row.set(Register(register), Rule::Offset(place));
    }
    Some(row)
}
