//! How many of Java's frames the virtual machine itself says that each of its threads has: gdb cannot leave code that HotSpot
//! compiled, and is no judge of it.

use crate::{Result, sh};
use stacks_compared::ours::Thread;
use std::collections::HashMap;
use std::process::Command;

/// Methods stay apart, each with a frame of its own, and those that a trace hides are shown.
pub(super) const FLAGS: [&str; 3] =
    ["-XX:-Inline", "-XX:+UnlockDiagnosticVMOptions", "-XX:+ShowHiddenFrames"];

/// The number of Java's frames by the kernel's id of the thread. Also has the map of what is compiled written to where profilers
/// look for it, from which ours takes names.
pub(super) fn counts(process: u32) -> Result<HashMap<u64, usize>> {
    let asked = |what: &str| sh::output(Command::new("jcmd").arg(process.to_string()).arg(what));
    asked("Compiler.perfmap")?;
    Ok(read(&asked("Thread.print")?))
}

/// A dump has a line for each thread, with its id as `nid=`, in hexadecimal digits up to version 21, and one for each frame.
fn read(dump: &str) -> HashMap<u64, usize> {
    let mut counts = HashMap::new();
    let mut thread = None;
    for line in dump.lines() {
        if line.starts_with('"') {
            let id = line.split(" nid=").nth(1).and_then(|rest| rest.split(' ').next());
            thread = id.and_then(|id| match id.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => id.parse().ok(),
            });
        } else if let Some(thread) = thread.filter(|_| line.trim_start().starts_with("at ")) {
            *counts.entry(thread).or_insert(0) += 1;
        }
    }
    counts
}

/// How ours differs from the virtual machine's count, if it does. Threads that the dump has no frames of are the machine's own.
pub(super) fn difference(thread: &Thread, counts: &HashMap<u64, usize>) -> Option<String> {
    let theirs = *counts.get(&thread.id)?;
    let ours =
        thread.frames.iter().filter(|frame| frame.functions.last().is_some_and(|name| is_java(name))).count();
    (ours != theirs).then(|| format!("{ours} frames of Java, the virtual machine has {theirs}"))
}

/// `Interpreter`, and compiled methods with their parameters; no stubs (`StubRoutines (1)`, `SafepointBlob`).
fn is_java(name: &str) -> bool {
    name == "Interpreter"
        || name.ends_with(')') && name.split('(').next().is_some_and(|name| name.contains('.'))
}
