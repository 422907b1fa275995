//! The frame that Linux makes to run a signal handler on aarch64.

use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

/// `mov x8, #139; svc #0`: `rt_sigreturn`.
const RESTORER: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// Where `x0` is kept: behind the `siginfo` (128 bytes), 176 bytes of `ucontext` up to its `uc_mcontext`, and the
/// fault address there (`arch/arm64/include/uapi/asm/sigcontext.h`). `x1` to `x30`, `sp` and `pc` follow.
const X0: i32 = 128 + 176 + 8;

/// See [`crate::arch::signal_frame`].
pub(crate) fn frame(ahead: &[u8]) -> Option<Row> {
    if !ahead.starts_with(&RESTORER) {
        return None;
    }
    let mut row = Row::new(Cfa::RegisterOffset(Register(31), 0), Rule::Offset(X0 + 32 * 8));
    row.is_signal_frame = true;
    for (register, place) in (0..32).zip((X0..).step_by(8)) {
        row.set(Register(register), Rule::Offset(place));
    }
    Some(row)
}
