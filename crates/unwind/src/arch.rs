//! What the four architecture directories have in common: each answers the same questions.

use crate::code::Code;
use crate::row::Row;
use crate::{aarch64, arm, x86, x86_64};
use backtrail_core::{Avma, Family};

/// How many bytes a call pushes.
pub(crate) fn call_size(family: Family) -> i32 {
    match family {
        Family::X86 => 4,
        Family::X86_64 => 8,
        _ => 0,
    }
}

/// The row at an exact address in a prologue, an epilogue or a stub, by its instructions; `None` in a function's body
/// and wherever the instructions leave a doubt. `body` is what a table that knows only bodies says.
pub(crate) fn analyse(family: Family, code: &Code<'_>, body: Option<&Row>) -> Option<Row> {
    match family {
        Family::X86 => x86::prologue::analyse(code),
        Family::X86_64 => x86_64::prologue::analyse(code),
        Family::Arm => arm::prologue::analyse(code, body),
        Family::Aarch64 => aarch64::prologue::analyse(code),
        _ => None,
    }
}

/// The row at an exact address, wherever in a function, by the pushes and pops on the paths that lead there from the
/// function's start; `None` where no path that can be followed does. For tables that are known to be wrong.
pub(crate) fn by_stack_depth(family: Family, code: &Code<'_>) -> Option<Row> {
    match family {
        Family::X86 => x86::prologue::by_stack_depth(code),
        Family::X86_64 => x86_64::prologue::by_stack_depth(code),
        _ => None,
    }
}

/// The row at an address, wherever in a function without a table, by the paths that lead to its return; `None` where none does
/// that can be followed. Right as long as the call before `code.at` comes back. Code that `is_generated` at run time may be
/// long, so that not all of its paths need be seen, and may leave by a jump out of `code.text` once its frame is undone.
pub(crate) fn by_return_path(family: Family, code: &Code<'_>, is_generated: bool) -> Option<Row> {
    match family {
        Family::X86_64 => x86_64::prologue::by_return_path(code, is_generated),
        _ => None,
    }
}

/// The row behind a system call, in a function that keeps its return address in a register while that lasts, by the code that
/// puts it back.
pub(crate) fn behind_system_call(family: Family, code: &Code<'_>) -> Option<Row> {
    match family {
        Family::X86 => x86::prologue::behind_system_call(code),
        Family::X86_64 => x86_64::prologue::behind_system_call(code),
        _ => None,
    }
}

/// The row at an address in code that was generated at run time, by the prologue before it, where that is of a kind that is
/// known by more than its pushes.
pub(crate) fn frame_of_generated(family: Family, code: &Code<'_>) -> Option<Row> {
    match family {
        Family::X86_64 => x86_64::generated::frame(code),
        _ => None,
    }
}

/// Whether the code from `code.at` on returns by the link register, or saves it, before it writes it: only then does
/// the register hold the return address there. `code.function` is not used.
pub(crate) fn needs_link(family: Family, code: &Code<'_>) -> bool {
    match family {
        Family::Arm => arm::prologue::needs_link(code),
        Family::Aarch64 => aarch64::prologue::needs_link(code),
        _ => false,
    }
}

/// Whether the bytes right before `address` (at most 16 are given) are a call instruction that would return there.
pub(crate) fn follows_call(family: Family, before: &[u8], address: Avma) -> bool {
    match family {
        Family::X86 => x86::call::follows_call(before),
        Family::X86_64 => x86_64::call::follows_call(before),
        Family::Arm => arm::call::follows_call(before, address.get() & 1 != 0),
        Family::Aarch64 => aarch64::call::follows_call(before),
        _ => false,
    }
}

/// The rows to try when a frame keeps a frame pointer, the likeliest first.
pub(crate) fn frame_pointer_rows(family: Family) -> &'static [Row] {
    match family {
        Family::X86 => x86::frame_pointer::ROWS,
        Family::X86_64 => x86_64::frame_pointer::ROWS,
        Family::Arm => arm::frame_pointer::ROWS,
        Family::Aarch64 => aarch64::frame_pointer::ROWS,
        _ => &[],
    }
}

/// Where in a signal's return code the thread may be: bytes behind its start, and how much it has popped by then. The
/// first is where handlers return to.
pub(crate) fn signal_places(family: Family) -> &'static [(u64, u8)] {
    match family {
        Family::X86 => &[(0, 0), (5, 0), (1, 4), (6, 4)],
        Family::X86_64 => &[(0, 0), (5, 0), (7, 0)],
        Family::Arm => &[(0, 0), (4, 0), (2, 0)],
        _ => &[(0, 0), (4, 0)],
    }
}

/// The row of the frame that the kernel made for a signal handler, where `ahead` is the code that the handler returns
/// to and no table says so: C libraries other than glibc, Go, old kernels' vDSO.
pub(crate) fn signal_frame(
    family: Family,
    ahead: &[u8],
    sp: Avma,
    word: &dyn Fn(Avma) -> Option<u32>,
) -> Option<Row> {
    match family {
        Family::X86 => x86::signal::frame(ahead, sp, word),
        Family::X86_64 => x86_64::signal::frame(ahead),
        Family::Arm => arm::signal::frame(ahead, sp, word),
        Family::Aarch64 => aarch64::signal::frame(ahead),
        _ => None,
    }
}
