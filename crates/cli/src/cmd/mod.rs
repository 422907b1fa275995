//! One file a command.

mod demangle;
mod explain;
mod generate;
mod images;
mod lookup;
mod stacks;
mod symbolicate;

use crate::args::{Arguments, Command};
use crate::output::{Failure, Outcome};

/// Does what was asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let colour = arguments.color;
    match &arguments.command {
        Command::Symbolicate(args) => symbolicate::run(args, colour),
        Command::Explain(args) => explain::run(args, colour),
        Command::Lookup(args) => lookup::run(args),
        Command::Stacks(args) => stacks::run(args, colour),
        Command::Images(args) => images::run(args),
        Command::Demangle(args) => demangle::run(args),
        Command::Generate(args) => generate::run(args),
    }
}
