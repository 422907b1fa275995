//! `backtrail images`: what files hold, and what a process has mapped.

use super::options::{PlainFormat, Servers, symbols};
use crate::io::console::Console;
use crate::io::file::refuse_pipe;
use crate::io::json::document;
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::render::images::{write_file, write_process};
use crate::tally::Tally;
use backtrail::{Stacks, inspect};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Shows the images of a running process, or what binaries hold.
///
/// Of a process (Linux): each image's addresses, bias, identity, and where its symbols are or were looked for. Of files:
/// slices, identities, segments, load commands, debug info.
#[derive(Args, Debug)]
pub(crate) struct Images {
    /// Mach-O or ELF files, archives, dSYM bundles; or a process id. A file with such a name is given as ./NAME.
    #[arg(required = true, value_name = "PID|FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Where to look for the symbols of a process: a file, a directory searched recursively, or a server, as for `symbolicate`.
    /// Repeatable.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) symbols: Vec<PathBuf>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

pub(crate) fn run(args: &Images, console: &Console) -> Result<Outcome, Failure> {
    let mut out = console.stdout();
    let mut tally = Tally::default();
    for path in &args.files {
        let shown = match process(path) {
            Some(pid) => show_process(&mut out, pid, args, console)?,
            None => show_file(&mut out, path, args.format)?,
        };
        match shown {
            Ok(()) => tally.read(Outcome::Done),
            Err(problem) => {
                console.warn(problem);
                tally.failed(path.display().to_string());
            }
        }
    }
    out.flush()?;
    Ok(tally.finish("inputs", console))
}

/// A process id: nothing but digits.
fn process(path: &Path) -> Option<u32> {
    path.to_str()?.parse().ok()
}

/// Shows the slices of a file, or says what is wrong with it.
fn show_file(out: &mut dyn Write, path: &Path, format: PlainFormat) -> Result<Result<(), String>, Failure> {
    let inspected = refuse_pipe(path).and_then(|()| inspect(path).map_err(|error| error.to_string()));
    let slices = match inspected {
        Ok(slices) => slices,
        Err(problem) => return Ok(Err(problem)),
    };
    for slice in &slices {
        match format {
            PlainFormat::Text => write_file(&mut Text::new(out, Style::PLAIN), slice)?,
            PlainFormat::Json => document(&mut *out, |json| backtrail::json::write_line(json, slice))?,
        }
    }
    Ok(Ok(()))
}

/// Shows the images of a process, or says why they cannot be read.
fn show_process(
    out: &mut dyn Write,
    pid: u32,
    args: &Images,
    console: &Console,
) -> Result<Result<(), String>, Failure> {
    let symbols = symbols(&args.symbols, None, &Servers::default(), console)?;
    let stacks = match images_of(pid, &symbols) {
        Ok(stacks) => stacks,
        Err(problem) => return Ok(Err(problem)),
    };
    match args.format {
        PlainFormat::Text => write_process(&mut Text::new(out, Style::PLAIN), &stacks)?,
        PlainFormat::Json => document(&mut *out, |json| backtrail::json::write_images(json, &stacks))?,
    }
    Ok(Ok(()))
}

#[cfg(target_os = "linux")]
fn images_of(pid: u32, symbols: &backtrail::Symbols) -> Result<Stacks, String> {
    Stacks::images_of(pid, symbols).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
fn images_of(_: u32, _: &backtrail::Symbols) -> Result<Stacks, String> {
    Err("the images of running processes are read on Linux only".to_owned())
}
