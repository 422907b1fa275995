//! Prints the stacks of all threads whenever the process gets SIGUSR1, as a JVM does on SIGQUIT:
//!
//! ```sh
//! cargo run -p backtrail --example dump_on_signal &
//! kill -USR1 $!
//! ```
//!
//! A handler could capture, but neither name frames nor print: the signal is blocked everywhere and waited for by a thread
//! of its own. With `--once` the program sends itself the signal and ends after the first answer.
#![allow(clippy::print_stdout, unsafe_code, reason = "an example that prints and waits for a signal")]

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use backtrail::Symbols;
    use backtrail::capture::{Capturer, Options};

    // Before any other thread begins: they inherit it.
    let signals = block_usr1();
    let capturer = Capturer::new(Options::default())?;
    let symbols = Symbols::new();
    for number in 0..3 {
        std::thread::Builder::new().name(format!("worker {number}")).spawn(move || work(number))?;
    }
    let is_once = std::env::args().any(|argument| argument == "--once");
    println!("process {} waits for SIGUSR1", std::process::id());
    if is_once {
        // SAFETY: a signal to this process, which waits for it below.
        unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) };
    }
    loop {
        let mut signal = 0;
        // SAFETY: both pointers are valid.
        unsafe { libc::sigwait(&raw const signals, &raw mut signal) };
        for thread in capturer.all() {
            let state = thread.state.map(|state| state.to_string()).unwrap_or_default();
            println!("\n{} \"{}\" {state}", thread.id, thread.name);
            match &thread.stack {
                Ok(stack) => {
                    for frame in backtrail::capture::symbolize(&capturer, stack, &symbols) {
                        println!("{}", backtrail::capture::line(&frame));
                    }
                }
                Err(why) => println!("  {why}"),
            }
        }
        if is_once {
            return Ok(());
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
fn block_usr1() -> libc::sigset_t {
    // SAFETY: the set is filled in before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    }
}

/// Something to see: one thread computes, the others wait.
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
fn work(number: u64) {
    let mut sum = number;
    loop {
        if number == 0 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        } else {
            std::thread::park();
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "ios")))]
fn main() {}
