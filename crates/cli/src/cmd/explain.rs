//! `backtrail explain`: the explanation alone.

use super::options::{Colour, PlainFormat, RulesFile};
use super::reports::{self, Reports, Shown};
use crate::io::console::Console;
use crate::io::file::InputFiles;
use crate::io::input::Input;
use crate::io::json::document;
use crate::io::output::Target;
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::render::report;
use backtrail::Symbols;
use clap::Args;
use std::io;
use std::path::PathBuf;

/// Explains crash reports; needs no symbols.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// Reports of any kind that is read, minidumps and ELF cores among them. They may be packed (gzip, zstd, xz, zip), quoted in a
    /// text, or several in a file. A directory means every report in it, `-` is standard input.
    #[arg(required = true, value_name = "REPORT")]
    pub(crate) reports: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) rules: RulesFile,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

pub(crate) fn run(args: &Explain, colour: Colour, console: &Console) -> Result<Outcome, Failure> {
    let inputs = reports::inputs(&args.reports, console)?;
    let style = colour.style(console, true);
    let work = Reports {
        symbols: &Symbols::none(),
        rules: &args.rules.read()?,
        target: &Target::Stdout,
        extension: "txt",
        wants_symbols: false,
        stands_alone: false,
        write: &|shown, many| rendered(shown, args.format, many, style).map_err(|error| error.to_string()),
        index: None,
        console,
    };
    work.run(&inputs, InputFiles::new(inputs.iter().filter_map(Input::path).chain(args.rules.path())))
}

fn rendered(shown: &Shown<'_>, format: PlainFormat, many: bool, style: Style) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    match format {
        PlainFormat::Text => {
            let mut text = Text::new(&mut out, style);
            if many {
                report::banner(&mut text, &shown.name())?;
            }
            report::write_explanation(&mut text, shown.analysis)?;
        }
        PlainFormat::Json => {
            document(&mut out, |json| {
                backtrail::json::write_explanation(json, shown.analysis, shown.origin)
            })?;
        }
    }
    Ok(out)
}
