//! One name a line in, one readable name a line out: what the comparisons with other demanglers run.
//!
//! `cargo run --release --example names -- [--simplified] [--no-params] [--types] < LIST`
#![allow(clippy::print_stdout, reason = "a program")]

use backtrail_demangle::{Demangler, Options, SwiftStyle};
use std::io::{self, BufRead as _, Write as _};

fn main() -> io::Result<()> {
    let mut options = Options::default();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--simplified" => options.swift = SwiftStyle::Simplified,
            "--no-params" => (options.parameters, options.return_types) = (false, false),
            "--types" => options.types = true,
            other => return Err(io::Error::other(format!("no option of that name: {other}"))),
        }
    }
    let mut demangler = Demangler::new();
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        writeln!(out, "{}", demangler.demangle(&line, &options).unwrap_or(&line))?;
    }
    out.flush()
}
