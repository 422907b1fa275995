//! Which crashes are kept.

use crate::number::number;
use backtrail_capture::local::{Status, images};
use backtrail_core::{Avma, FrameAddress, Trust};
use backtrail_stacks::own::RawStack;
use backtrail_sys::os::crash::Crashed;
use std::ops::Range;

/// A crash, as [`Options::filter`](crate::Options::filter) sees it.
#[derive(Debug)]
pub struct Seen<'a> {
    crashed: &'a Crashed<'a>,
    frames: &'a RawStack,
}

impl Seen<'_> {
    /// The signal's number, by Linux's count.
    pub fn signal(&self) -> i32 {
        self.crashed.signal()
    }

    /// `si_code`: what the signal was for.
    pub fn code(&self) -> i32 {
        self.crashed.code()
    }

    /// The address that the access was to, where the kernel tells.
    pub fn address(&self) -> Option<u64> {
        self.crashed.address()
    }

    /// The kernel's id of the thread that crashed.
    pub fn thread(&self) -> u32 {
        let thread = self.crashed.thread();
        number(thread, || Status::of(thread))
    }

    /// The frames of that thread, innermost first: the first is the instruction that failed, the others are return addresses as a
    /// rule. Guesses, which come from scanning the stack, are none of them.
    pub fn frames(&self) -> impl Iterator<Item = u64> {
        self.addresses().map(|address| address.raw().get())
    }

    /// Whether one of the frames lies in this code.
    pub fn touches(&self, code: &Range<u64>) -> bool {
        // Where a call is the last instruction of a function, what it returns to is the next function's.
        let within = |address: FrameAddress| match address {
            FrameAddress::Return(address) => address.get().wrapping_sub(1),
            address => address.raw().get(),
        };
        self.addresses().any(|address| code.contains(&within(address)))
    }

    fn addresses(&self) -> impl Iterator<Item = FrameAddress> {
        self.frames.frames().iter().take_while(|frame| frame.trust != Trust::Scan).map(|frame| frame.address)
    }
}

/// Whether a crash is one that is to be kept. The filter is the program's own function, and may crash.
pub(crate) fn is_wanted(
    own_code: &[Range<u64>],
    filter: Option<fn(&Seen<'_>) -> bool>,
    crashed: &Crashed<'_>,
    frames: &RawStack,
) -> bool {
    let seen = Seen { crashed, frames };
    (own_code.is_empty() || own_code.iter().any(|code| seen.touches(code)))
        && filter.is_none_or(|filter| filter(&seen))
}

/// The addresses of the image (a library, or the program) that a function or any other address lies in: for
/// [`Options::own_code`](crate::Options::own_code) of an SDK that is a library of its own. Takes the loader's lock: not for signal handlers.
pub fn image_of(address: *const ()) -> Option<Range<u64>> {
    let address = Avma::new(address.addr() as u64);
    let (all, _) = images();
    let image = all.into_iter().find(|image| image.range.contains(address))?;
    Some(image.range.start().get()..image.range.end().get())
}
