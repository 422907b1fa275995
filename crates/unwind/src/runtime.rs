//! What a language runtime's own table says of frames: Go's. The table's bytes are read elsewhere; here are the rules that
//! follow from it.
//!
//! Go's table tells for each instruction by how much the stack pointer has moved, and which functions are special: Go's own
//! tracebacks (`src/runtime/traceback.go`) treat them so, and walks do likewise.

use crate::row::{Cfa, CoveredRow, Row, Rule};
use backtrail_core::{AddrRange, Family, Register, Svma, Trust};
use core::fmt;

/// A runtime's table of one image.
pub trait RuntimeTable: fmt::Debug + Sync {
    /// What holds at an address.
    fn frame_at(&self, at: Svma) -> Option<RuntimeFrame>;

    /// What holds at all addresses, in order.
    fn each(&self, give: &mut dyn FnMut(RuntimeFrame));
}

/// The frame of a function at some of its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuntimeFrame {
    /// The addresses for which this holds.
    pub covered: AddrRange<Svma>,
    /// Where the function starts.
    pub function: Svma,
    /// By how many bytes the stack pointer has moved down since the function was entered.
    pub depth: i32,
    /// What is special about the function.
    pub kind: RuntimeFunction,
}

/// How the caller of a function is found, and what its address is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RuntimeFunction {
    /// The depth tells where the return address is.
    Plain,
    /// The first function of a goroutine: nothing has called it (`runtime.goexit`).
    Outermost,
    /// The first function of a thread or a signal handler. Code that is none of the runtime's may have called it: C's
    /// threads, the kernel.
    Top,
    /// The caller was interrupted and made to look as if it had called this function: its address is exact
    /// (`runtime.sigpanic`, `runtime.asyncPreempt`).
    Injected,
    /// It runs what it calls on the thread's own stack, and returns to the goroutine's (`runtime.systemstack`,
    /// `runtime.asmcgocall`).
    Switch,
    /// It leaves the goroutine's stack for good: what it calls does not return to it (`runtime.mcall`,
    /// `runtime.morestack`, `runtime.gogo`).
    Leave,
    /// It moves the stack pointer to another stack and keeps the old one in a register that its callees save: calls of
    /// the kernel's library (`time.now`, `runtime.nanotime1`).
    Saved(Register),
    /// It changes the stack pointer in some way that the table does not tell.
    Unknown,
}

impl RuntimeFrame {
    /// The rules, as far as they depend on the depth alone; `None` for processors that Go's table is not read for.
    pub(crate) fn found(&self, family: Family) -> Option<CoveredRow> {
        let row = row(self.depth, family)?;
        Some(CoveredRow { row, trust: Trust::RuntimeTable, covered: self.covered })
    }
}

/// A call pushes the return address on x86. Elsewhere functions that make a frame save the link register at its lower end
/// (`cmd/internal/obj/arm64/obj7.go`). Frame pointers are kept on two processors only: right below the return address on
/// `x86_64`, right below the frame on arm64.
fn row(depth: i32, family: Family) -> Option<Row> {
    let word = i32::from(family.word_size());
    let cfa = |offset| Cfa::RegisterOffset(family.sp(), offset);
    if depth < 0 {
        return None;
    }
    let Some(lr) = family.lr() else {
        let row = Row::new(cfa(depth.checked_add(word)?), Rule::Offset(-word));
        let keeps = family == Family::X86_64 && depth >= word;
        return Some(if keeps { row.with(family.fp(), Rule::Offset(-2 * word)) } else { row });
    };
    if depth == 0 {
        return Some(Row::new(cfa(0), Rule::Register(lr)));
    }
    let row = Row::new(cfa(depth), Rule::Offset(-depth)).with(lr, Rule::Offset(-depth));
    let keeps = family == Family::Aarch64;
    Some(if keeps { row.with(family.fp(), Rule::Offset(-depth - word)) } else { row })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_tells_where_the_return_address_is() {
        let x86_64 = row(24, Family::X86_64).unwrap();
        assert_eq!(x86_64.cfa, Cfa::RegisterOffset(Register(7), 32));
        assert_eq!(x86_64.return_address, Rule::Offset(-8));
        assert_eq!(x86_64.rule(Register(6)), Rule::Offset(-16));
        assert_eq!(row(0, Family::X86_64).unwrap().rule(Register(6)), Rule::Same);
        let x86 = row(8, Family::X86).unwrap();
        assert_eq!((x86.cfa, x86.return_address), (Cfa::RegisterOffset(Register(4), 12), Rule::Offset(-4)));
        let arm64 = row(32, Family::Aarch64).unwrap();
        assert_eq!(arm64.cfa, Cfa::RegisterOffset(Register(31), 32));
        assert_eq!(arm64.return_address, Rule::Offset(-32));
        assert_eq!(arm64.rule(Register(29)), Rule::Offset(-40));
        assert_eq!(row(0, Family::Aarch64).unwrap().return_address, Rule::Register(Register(30)));
        assert_eq!(row(-8, Family::X86_64), None);
    }
}
