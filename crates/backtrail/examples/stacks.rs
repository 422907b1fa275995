//! The stacks of another process: of one that runs (Linux), or of an ELF core.
//!
//! ```sh
//! cargo run -p backtrail --example stacks -- fixtures/stacks/orders.core fixtures/stacks
//! ```
//! With a process id in place of the core, each of its threads is stopped for a moment.
#![allow(clippy::print_stdout, reason = "an example that prints")]

use backtrail::{NoProgress, StackOptions, Stacks, StacksError, Symbols};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().ok_or("usage: stacks PID|CORE [SYMBOLS…]")?;
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let symbols = Symbols::scan(&paths, &NoProgress);
    let stacks = stacks(&what, &symbols, &StackOptions::default())?;

    let process = &stacks.report.process;
    println!("{} [{}]", process.name.as_deref().unwrap_or("?"), process.pid.unwrap_or(0));
    for thread in &process.threads {
        println!("thread {} {}", thread.number, thread.name.as_deref().unwrap_or_default());
        for frame in &thread.frames {
            // The trust says how the frame was found: what is not certain never looks as if it were.
            let names: Vec<_> = frame.names().collect();
            println!("{:3} {} ({})", frame.index, names.join(", inlined into "), frame.trust.as_str());
        }
        if let Some(ended) = &thread.ended {
            println!("    {}: {}", ended.kind.as_str(), ended.why);
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn stacks(what: &str, symbols: &Symbols, options: &StackOptions) -> Result<Stacks, StacksError> {
    match what.parse() {
        Ok(pid) => Stacks::process(pid, symbols, options),
        Err(_) => Stacks::core(what, None, symbols, options),
    }
}

#[cfg(not(target_os = "linux"))]
fn stacks(what: &str, symbols: &Symbols, options: &StackOptions) -> Result<Stacks, StacksError> {
    Stacks::core(what, None, symbols, options)
}
