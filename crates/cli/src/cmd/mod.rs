//! One file a command.

pub(crate) mod addr2line;
pub(crate) mod atos;
mod cfi;
pub(crate) mod convert;
mod demangle;
mod explain;
mod generate;
mod images;
mod lookup;
mod stacks;
mod symbolicate;

use crate::args::{Arguments, Command};
use crate::output::{Failure, Outcome};
use backtrail::Arch;

/// Does what was asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let colour = arguments.color;
    match &arguments.command {
        Command::Symbolicate(args) => symbolicate::run(args, colour),
        Command::Explain(args) => explain::run(args, colour),
        Command::Lookup(args) => lookup::run(args),
        Command::Stacks(args) => stacks::run(args, colour),
        Command::Convert(args) => convert::run(args),
        Command::Images(args) => images::run(args),
        Command::Cfi(args) => cfi::run(args),
        Command::Demangle(args) => demangle::run(args),
        Command::Addr2line(args) => addr2line::run(args),
        Command::Atos(args) => atos::run(args),
        Command::Generate(args) => generate::run(args),
    }
}

/// The architecture that `--arch` names.
fn named_arch(name: &str) -> Result<Arch, Failure> {
    Arch::from_name(name).ok_or_else(|| Failure::Input(format!("--arch: no architecture is called {name:?}")))
}
