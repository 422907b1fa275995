//! Logs a stack with each error: captured where the error is made, which costs less than a microsecond, and named only
//! when somebody reads the log.
//!
//! ```sh
//! cargo run -p backtrail --example log_errors
//! ```
#![allow(clippy::print_stdout, reason = "an example that prints")]

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use backtrail::{Symbols, capture};

    let log = Log::new()?;
    for order in [3, 0, 7] {
        if let Err(message) = settle(&log, order) {
            log.error(message);
        }
    }
    let symbols = Symbols::new();
    for (message, stack) in log.entries() {
        println!("error: {message}");
        for frame in capture::symbolize(&log.capturer, &stack, &symbols).iter().take(6) {
            println!("{}", backtrail::capture::line(frame));
        }
    }
    Ok(())
}

/// A log of errors with the stacks that they were made on.
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
struct Log {
    capturer: backtrail::capture::Capturer,
    entries: std::sync::Mutex<Vec<(String, backtrail::capture::RawStack)>>,
}

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
impl Log {
    fn new() -> Result<Self, backtrail::capture::OsError> {
        let capturer = backtrail::capture::Capturer::new(backtrail::capture::Options::default())?;
        Ok(Self { capturer, entries: std::sync::Mutex::default() })
    }

    /// The stack begins with whoever calls this.
    #[inline(never)]
    fn error(&self, message: String) {
        let mut stack = backtrail::capture::RawStack::with_capacity(32);
        self.capturer.current_skipping(1, &mut stack);
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((message, stack));
    }

    fn entries(&self) -> Vec<(String, backtrail::capture::RawStack)> {
        std::mem::take(&mut *self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
#[inline(never)]
fn settle(log: &Log, order: u32) -> Result<u32, String> {
    let share = divide(log, 100, order)?;
    if share > 20 { Err(format!("a share of {share} is too large")) } else { Ok(share) }
}

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
#[inline(never)]
fn divide(log: &Log, sum: u32, parts: u32) -> Result<u32, String> {
    sum.checked_div(parts).ok_or_else(|| {
        log.error(format!("{sum} cannot be divided into {parts} parts"));
        "nothing is settled".to_owned()
    })
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "ios")))]
fn main() {}
