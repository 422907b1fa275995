//! Reads names, one a line, and writes what each is made into; a name that is not mangled is written as it is.
//!
//! With `--rate`, writes how many names a second one thread makes readable instead.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use backtrail_demangle::{Demangler, Options};
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

fn main() -> std::io::Result<()> {
    let mut input = Vec::new();
    std::io::stdin().lock().read_to_end(&mut input)?;
    let input = String::from_utf8_lossy(&input);
    let mut demangler = Demangler::new();
    let options = Options::default();
    if std::env::args().any(|arg| arg == "--rate") {
        let names: Vec<&str> = input.lines().collect();
        rate(&names, &mut demangler, &options);
        return Ok(());
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for name in input.lines() {
        let text = demangler.demangle(name, &options).unwrap_or(name);
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

fn rate(names: &[&str], demangler: &mut Demangler, options: &Options) {
    let bytes: usize = names.iter().map(|name| name.len()).sum();
    let mut best = Duration::MAX;
    let (mut failed, mut written) = (0, 0);
    for _ in 0..5 {
        (failed, written) = (0, 0);
        let start = Instant::now();
        for name in names {
            match demangler.demangle(name, options) {
                Ok(text) => written += text.len(),
                Err(_) => failed += 1,
            }
        }
        best = best.min(start.elapsed());
    }
    let count = names.len().max(1);
    println!(
        "{count} names of {} bytes: {:.0} names/s, {} bytes written each, {failed} failed",
        bytes / count,
        count as f64 / best.as_secs_f64(),
        written / count,
    );
}
