//! Man pages and completions, from the same definitions as `--help`.

use super::Arguments;
use crate::outcome::{Failure, Outcome};
use clap::{Args, CommandFactory as _, ValueEnum};
use std::path::PathBuf;

/// Writes the man pages or a shell's completions.
#[derive(Args, Debug)]
pub(crate) struct Generate {
    /// What to write.
    #[arg(value_enum)]
    pub(crate) what: Generated,
    /// Into which directory.
    pub(crate) directory: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Generated {
    /// One page for each command.
    Man,
    /// Completions for every shell.
    Completions,
}

pub(crate) fn run(args: &Generate) -> Result<Outcome, Failure> {
    let failed = |error| Failure::File(args.directory.clone(), error);
    std::fs::create_dir_all(&args.directory).map_err(failed)?;
    let command = Arguments::command();
    match args.what {
        Generated::Man => clap_mangen::generate_to(command, &args.directory).map_err(failed)?,
        Generated::Completions => {
            let mut command = command;
            for shell in clap_complete::Shell::value_variants() {
                clap_complete::generate_to(*shell, &mut command, "backtrail", &args.directory)
                    .map_err(failed)?;
            }
        }
    }
    Ok(Outcome::Done)
}
