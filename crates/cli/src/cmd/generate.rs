//! Man pages and completions, from the same definitions as `--help`.

use crate::io::output::write_file;
use crate::outcome::{Failure, Outcome};
use clap::{Args, Command, ValueEnum};
use clap_complete::Generator as _;
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

/// `command` is the whole command line.
pub(crate) fn run(args: &Generate, command: Command) -> Result<Outcome, Failure> {
    let failed = |error| Failure::File(args.directory.clone(), error);
    std::fs::create_dir_all(&args.directory).map_err(failed)?;
    match args.what {
        Generated::Man => clap_mangen::generate_to(command, &args.directory).map_err(failed)?,
        Generated::Completions => {
            let mut command = command;
            for shell in clap_complete::Shell::value_variants() {
                // Written to memory: to a full disk it would panic.
                let mut script = Vec::new();
                clap_complete::generate(*shell, &mut command, "backtrail", &mut script);
                let place = args.directory.join(shell.file_name("backtrail"));
                write_file(&place, &script).map_err(|error| Failure::File(place, error))?;
            }
        }
    }
    Ok(Outcome::Done)
}
