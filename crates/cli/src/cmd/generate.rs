//! Man pages and completions, from the same definitions as `--help`.

use crate::args::{Arguments, Generate, Generated};
use crate::output::{Failure, Outcome};
use clap::{CommandFactory as _, ValueEnum as _};

pub(crate) fn run(args: &Generate) -> Result<Outcome, Failure> {
    let failed = |error| Failure::File(args.folder.clone(), error);
    std::fs::create_dir_all(&args.folder).map_err(failed)?;
    let command = Arguments::command();
    match args.what {
        Generated::Man => clap_mangen::generate_to(command, &args.folder).map_err(failed)?,
        Generated::Completions => {
            let mut command = command;
            for shell in clap_complete::Shell::value_variants() {
                clap_complete::generate_to(*shell, &mut command, "backtrail", &args.folder)
                    .map_err(failed)?;
            }
        }
    }
    Ok(Outcome::Done)
}
