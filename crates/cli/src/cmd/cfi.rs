//! `backtrail cfi`: unwind tables in readable form.

use super::named_arch;
use crate::args::{Cfi, PlainFormat};
use crate::output::{Failure, Outcome};
use crate::render::cfi::write_text;
use backtrail::Svma;
use backtrail::cfi::{ListError, Selection, list};
use std::io::{self, Write as _};

pub(crate) fn run(args: &Cfi) -> Result<Outcome, Failure> {
    let arch = args.arch.as_deref().map(named_arch).transpose()?;
    let selection = match (args.address, &args.function) {
        (Some(address), _) => Selection::Address(Svma::new(address)),
        (None, Some(name)) => Selection::Function(name.clone()),
        (None, None) => Selection::All,
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let listed = list(&args.file, arch, &selection, &mut |item| match args.format {
        PlainFormat::Text => write_text(&mut out, &item),
        PlainFormat::Json => backtrail::json::write_line(&mut out, &item),
    });
    let is_found = listed.map_err(|error| match error {
        ListError::Input(message) => Failure::Input(message),
        ListError::Output(error) => Failure::Output(error),
    })?;
    out.flush()?;
    if is_found {
        return Ok(Outcome::Done);
    }
    match (args.address, &args.function) {
        (_, Some(name)) => eprintln!("backtrail: no table has a function {name:?}"),
        (Some(address), _) => eprintln!("backtrail: no table covers {address:#x}"),
        _ => {}
    }
    Ok(Outcome::Incomplete)
}
