//! Crash logs of Swift's runtime (5.9 and newer), which `swift-backtrace` writes on Linux and macOS: as text, or as JSON.

mod json;
mod text;

use crate::{Error, Limits};
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{Frame, Report};

/// Reads the crash log that begins at `start`.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    if input.get(start) == Some(&b'{') {
        json::read(input, start, limits)
    } else {
        Ok(text::read(input, start, limits))
    }
}

/// How an address is to be read, by the words that the log has for it.
fn address(value: u64, is_return: bool) -> FrameAddress {
    let avma = Avma::new(value);
    if is_return { FrameAddress::Return(avma) } else { FrameAddress::Exact(avma) }
}

/// Rows of inlined functions come before their machine frame and share its address; they share its number, too.
fn number(frames: &mut [Frame]) {
    let mut index = 0;
    for frame in frames {
        frame.index = index;
        index += u32::from(!frame.inlined);
    }
}

/// `Bad pointer dereference at 0x0000000000000010`: the address.
fn fault_address(message: &str) -> Option<Avma> {
    let (_, rest) = message.split_once(" at 0x")?;
    let digits = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    u64::from_str_radix(rest.get(..digits)?, 16).ok().map(Avma::new)
}
