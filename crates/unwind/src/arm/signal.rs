//! The frames that Linux makes to run a signal handler on 32-bit ARM.

use crate::row::{Cfa, Row, Rule};
use backtrail_core::{Avma, Register};

/// `mov r7, #119; svc 0` in ARM code with the new and the old ABI's call, and in Thumb code: `sigreturn`.
const PLAIN: [[u8; 4]; 4] = [
    [0x77, 0x70, 0xa0, 0xe3],
    [0x77, 0x00, 0x90, 0xef],
    [0x77, 0x27, 0x00, 0xdf],
    // The long form, as glibc's assembly has it.
    [0x4f, 0xf0, 0x77, 0x07],
];
/// The same with 173: `rt_sigreturn`.
const REAL_TIME: [[u8; 4]; 4] =
    [[0xad, 0x70, 0xa0, 0xe3], [0xad, 0x00, 0x90, 0xef], [0xad, 0x27, 0x00, 0xdf], [0x4f, 0xf0, 0xad, 0x07]];

/// From a `ucontext` to `uc_mcontext`, from there to `r0` (`arch/arm/include/uapi/asm/sigcontext.h`).
const UCONTEXT: i32 = 20;
const R0: i32 = 12;
const SIGINFO: i32 = 128;
/// What kernels since 2.6.18 write at the start of the plain frame, whose `uc_flags` it is.
const MAGIC: u32 = 0x5ac3_c35a;

/// See [`crate::arch::signal_frame`].
pub(crate) fn frame(ahead: &[u8], sp: Avma, word: &dyn Fn(Avma) -> Option<u32>) -> Option<Row> {
    let first = ahead.first_chunk()?;
    let registers = if PLAIN.contains(first) {
        // qemu leaves it at zero.
        if matches!(word(sp)?, MAGIC | 0) { UCONTEXT + R0 } else { R0 }
    } else if REAL_TIME.contains(first) {
        // Old kernels put two pointers in front, the first to the `siginfo` right behind them.
        let old = u64::from(word(sp)?) == sp.get().wrapping_add(8);
        if old { 8 + SIGINFO + UCONTEXT + R0 } else { SIGINFO + UCONTEXT + R0 }
    } else {
        return None;
    };
    let mut row = Row::new(Cfa::RegisterOffset(Register(13), 0), Rule::Offset(registers + 15 * 4));
    row.is_signal_frame = true;
    for (register, place) in (0..15).zip((registers..).step_by(4)) {
        row.set(Register(register), Rule::Offset(place));
    }
    Some(row)
}
