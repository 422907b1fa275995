//! The stacks of this process: in one call, of another thread, of all.
//!
//! ```sh
//! cargo run -p backtrail --example capture
//! ```
#![allow(clippy::print_stdout, reason = "an example that prints")]

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use backtrail::Symbols;
    use backtrail::capture::{self, Capturer, Options, RawStack, ThreadId};

    println!("This thread, in one call:");
    capture::print(std::io::stdout())?;

    // Ahead of time: a capturer reads the images' unwind tables once.
    let capturer = Capturer::new(Options::default())?;
    let (ready, is_ready) = std::sync::mpsc::channel();
    let worker = std::thread::Builder::new().name("worker".to_owned()).spawn(move || wait(&ready))?;
    is_ready.recv()?;

    // Captured without names, which costs microseconds and allocates nothing; named afterwards.
    let mut stack = RawStack::new();
    capturer.thread(ThreadId::of(&worker).ok_or("the thread has ended")?, &mut stack)?;
    let symbols = Symbols::new();
    println!("The worker:");
    for frame in capture::symbolize(&capturer, &stack, &symbols) {
        println!("{}", capture::line(&frame));
    }
    println!("{} threads in all", capturer.all().len());
    worker.thread().unpark();
    worker.join().map_err(|_| "the worker panicked")?;
    Ok(())
}

/// What the worker does: says that it began, and waits.
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
#[inline(never)]
fn wait(ready: &std::sync::mpsc::Sender<()>) {
    let _ = ready.send(());
    std::thread::park();
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "ios")))]
fn main() {}
