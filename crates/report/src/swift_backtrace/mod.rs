//! Crash logs of Swift's runtime (5.9 and newer), which `swift-backtrace` writes on Linux and macOS: as text, or as JSON.

mod json;
mod text;

use crate::{Error, Limits};
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{Frame, Report};

/// Reads the crash log that begins at `start`.
pub(crate) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let mut report = if input.get(start) == Some(&b'{') {
        json::read(input, start, limits)?
    } else {
        text::read(input, start, limits)
    };
    add_signal(&mut report);
    Ok(report)
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

/// The signal that a log's first words stand for, where no line states its number: `signalDescription` of Swift's
/// `stdlib/public/libexec/swift-backtrace/Target*.swift`.
fn signal_of(message: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 7] = [
        ("Terminated", "SIGQUIT"),
        ("Aborted", "SIGABRT"),
        ("Bus error", "SIGBUS"),
        ("Floating point exception", "SIGFPE"),
        ("Illegal instruction", "SIGILL"),
        ("Bad pointer dereference", "SIGSEGV"),
        ("System trap", "SIGTRAP"),
    ];
    let message = message.split(" at 0x").next().unwrap_or(message).trim();
    WORDS.iter().find(|(words, _)| *words == message).map(|(_, signal)| *signal)
}

/// States the signal where only the message tells it.
fn add_signal(report: &mut Report) {
    if let Some(exception) = &mut report.exception
        && exception.signal.is_none()
    {
        exception.signal = exception.message.as_deref().and_then(signal_of).map(str::to_owned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn the_message_tells_the_signal() {
        let signal = |text: &str| {
            let report = parse(text.as_bytes(), &Limits::default()).unwrap();
            report.exception.unwrap().signal
        };
        let text = "*** Program crashed: Bad pointer dereference at 0x0000000000000010 ***\n\nThread 0 crashed:\n\n0 0x10 f in a\n";
        assert_eq!(signal(text).as_deref(), Some("SIGSEGV"));
        // The number counts where it is stated.
        let text = format!("*** Signal 10: Backtracing... done ***\n\n{text}Platform: arm64 macOS 13.0\n");
        assert_eq!(signal(&text).as_deref(), Some("SIGBUS"));
        assert_eq!(
            signal(&text.replace("Signal 10", "Sign").replace("Bad pointer dereference", "Signal 99")),
            None
        );
    }
}
