//! One file a command.

pub(crate) mod addr2line;
pub(crate) mod atos;
pub(crate) mod convert;
mod demangle;
mod explain;
mod generate;
mod images;
mod lookup;
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
        Command::Convert(args) => convert::run(args),
        Command::Images(args) => images::run(args),
        Command::Demangle(args) => demangle::run(args),
        Command::Addr2line(args) => addr2line::run(args),
        Command::Atos(args) => atos::run(args),
        Command::Generate(args) => generate::run(args),
    }
}
