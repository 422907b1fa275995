//! What a row of a stack means: which instruction its address states.

use backtrail_core::{Avma, FrameAddress};
use backtrail_model::Frame;

/// Where a stack comes from, which decides what its first address is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The kernel stopped a thread: its first address is the program counter.
    Thread,
    /// The process walked its own stack while it ran (`callStackReturnAddresses` of an exception): every address is
    /// one that somebody returns to, the first one included. Seen in real reports: `__exceptionPreprocess + 242`,
    /// which lies behind the call there, and frames of functions that end with a call and show as `next + 0`.
    Backtrace,
}

/// States for every frame how its address is to be read, and lets inline rows share their machine frame's number and
/// address.
///
/// Rows of one machine frame are those marked as inlined together with the next unmarked one, and neighbours that
/// have the same number and address.
pub(crate) fn settle(frames: &mut [Frame], origin: Origin) {
    mark_same_rows_as_inlined(frames);
    let mut exact = origin == Origin::Thread;
    for row in frames.iter_mut() {
        let raw = row.address.map(FrameAddress::raw);
        row.address =
            raw.map(|avma| if exact { FrameAddress::Exact(avma) } else { FrameAddress::Return(avma) });
        if !row.inlined {
            exact = row.reported.as_ref().is_some_and(|symbol| symbol.name == SIGNAL_TRAMPOLINE);
        }
    }
}

/// The function that the kernel makes a signal's handler return to. Its caller was interrupted, not called.
const SIGNAL_TRAMPOLINE: &str = "_sigtramp";

fn mark_same_rows_as_inlined(frames: &mut [Frame]) {
    for at in 1..frames.len() {
        let Some([row, next]) = frames.get_mut(at - 1..=at) else { return };
        let same = row.address.is_some() && row.address == next.address;
        if same && row.index == next.index {
            row.inlined = true;
        }
    }
}

/// An address whose meaning is not settled yet.
pub(crate) fn unsettled(avma: Avma) -> FrameAddress {
    FrameAddress::Return(avma)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_model::ReportedSymbol;

    fn frame(index: u32, address: u64, name: &str) -> Frame {
        let reported = ReportedSymbol { name: name.to_owned(), ..ReportedSymbol::default() };
        Frame { address: Some(unsettled(Avma::new(address))), reported: Some(reported), ..Frame::new(index) }
    }

    fn is_exact(frames: &[Frame]) -> Vec<bool> {
        frames.iter().map(|frame| matches!(frame.address, Some(FrameAddress::Exact(_)))).collect()
    }

    #[test]
    fn first_frames_and_callers_of_the_signal_trampoline_are_exact() {
        let mut frames = [frame(0, 1, "a"), frame(1, 2, "_sigtramp"), frame(2, 3, "b"), frame(3, 4, "c")];
        settle(&mut frames, Origin::Thread);
        assert_eq!(is_exact(&frames), [true, false, true, false]);
        settle(&mut frames, Origin::Backtrace);
        assert_eq!(is_exact(&frames), [false, false, true, false]);
    }

    #[test]
    fn inline_rows_are_as_exact_as_their_machine_frame() {
        // Apple's own translation numbers inline rows on; other writers repeat the number.
        let mut frames = [frame(0, 9, "in"), frame(1, 9, "out"), frame(2, 5, "in2"), frame(2, 5, "out2")];
        frames[0].inlined = true;
        settle(&mut frames, Origin::Thread);
        assert_eq!(is_exact(&frames), [true, true, false, false]);
        assert_eq!(frames.each_ref().map(|f| f.inlined), [true, false, true, false]);
    }

    #[test]
    fn recursion_is_not_inlining() {
        let mut frames = [frame(0, 9, "f"), frame(1, 9, "f"), frame(2, 9, "f")];
        settle(&mut frames, Origin::Thread);
        assert!(frames.iter().all(|frame| !frame.inlined));
        assert_eq!(is_exact(&frames), [true, false, false]);
    }
}
