//! `backtrail cfi`: unwind tables in readable form.

use super::options::{PlainFormat, named_arch, parse_address};
use crate::io::console::Console;
use crate::io::file::refuse_pipe;
use crate::io::json::SafeJson;
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::render::cfi::write_text;
use backtrail::Svma;
use backtrail::cfi::{ListError, Selection, list};
use clap::Args;
use std::io::Write as _;
use std::path::PathBuf;

/// Shows unwind tables: for each function where the caller's frame, return address and registers are, from DWARF CFI
/// (.eh_frame, .debug_frame), Apple's compact unwind information and ARM's exception index; then the code that none
/// of them covers.
///
/// CFA is the stack pointer before the call; [CFA-8] is what lies 8 bytes below it. Registers that keep their value
/// are left out.
#[derive(Args, Debug)]
pub(crate) struct Cfi {
    /// A Mach-O or ELF file, or a dSYM bundle.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only what holds at this address.
    #[arg(long, value_name = "A", value_parser = parse_address, conflicts_with = "function")]
    pub(crate) address: Option<u64>,
    /// Only this function, by its linkage name or its readable name, with or without parameters.
    #[arg(long, value_name = "NAME")]
    pub(crate) function: Option<String>,
    /// Which slice of a fat file; all of them if not given.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

pub(crate) fn run(args: &Cfi, console: &Console) -> Result<Outcome, Failure> {
    let arch = args.arch.as_deref().map(named_arch).transpose()?;
    let selection = match (args.address, &args.function) {
        (Some(address), _) => Selection::Address(Svma::new(address)),
        (None, Some(name)) => Selection::Function(name.clone()),
        (None, None) => Selection::All,
    };
    refuse_pipe(&args.file).map_err(Failure::Input)?;
    let mut out = console.stdout();
    let listed = list(&args.file, arch, &selection, &mut |item| match args.format {
        PlainFormat::Text => write_text(&mut Text::new(&mut out, Style::PLAIN), &item),
        PlainFormat::Json => backtrail::json::write_line(SafeJson::new(&mut out), &item),
    });
    let is_found = listed.map_err(|error| match error {
        ListError::Input(error) => Failure::Input(error.to_string()),
        ListError::Output(error) => Failure::Output(error),
        error => Failure::Input(error.to_string()),
    })?;
    out.flush()?;
    if is_found {
        return Ok(Outcome::Done);
    }
    match (args.address, &args.function) {
        (_, Some(name)) => console.warn(format_args!("no table has a function {name:?}")),
        (Some(address), _) => console.warn(format_args!("no table covers {address:#x}")),
        _ => {}
    }
    Ok(Outcome::Incomplete)
}
