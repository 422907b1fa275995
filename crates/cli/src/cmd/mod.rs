//! The command line. Stable: scripts depend on it; `--help` is under snapshot test. One file a command: its arguments and
//! what it does.

pub(crate) mod addr2line;
pub(crate) mod atos;
mod cfi;
mod convert;
mod demangle;
mod explain;
mod generate;
mod group;
mod images;
mod lookup;
pub(crate) mod ndk_stack;
mod options;
mod rates;
mod reports;
mod sdk;
#[cfg(feature = "server")]
mod serve;
mod stacks;
mod symbolicate;
#[cfg(feature = "debuginfod")]
mod upload;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod watch;

use crate::io::console::Console;
use crate::outcome::{Failure, Outcome};
use clap::{CommandFactory as _, Parser, Subcommand};
use options::Colour;

/// Turns addresses into answers: symbolicates, explains, attributes and groups crash reports, without any Apple tool.
#[derive(Parser, Debug)]
#[command(name = "backtrail", version, max_term_width = 110, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// When to colour the output.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    color: Colour,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 done, but something was not found (missing symbols are listed by id) or one \
of several inputs could not be read; 2 bad input or usage, or nothing could be read.\nResults go to standard output, \
diagnostics to standard error.";

#[derive(Subcommand, Debug)]
enum Command {
    Symbolicate(symbolicate::Symbolicate),
    Explain(explain::Explain),
    Group(group::Group),
    Lookup(lookup::Lookup),
    Stacks(stacks::Stacks),
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    Watch(watch::Watch),
    Convert(convert::Convert),
    Images(images::Images),
    Cfi(cfi::Cfi),
    Sdk(sdk::Sdk),
    #[cfg(feature = "server")]
    Serve(serve::Serve),
    #[cfg(feature = "debuginfod")]
    Upload(upload::Upload),
    Demangle(demangle::Demangle),
    Addr2line(addr2line::Addr2line),
    Atos(atos::Atos),
    NdkStack(ndk_stack::NdkStack),
    #[command(hide = true)]
    Generate(generate::Generate),
}

/// Does what was asked for.
pub(crate) fn run(arguments: &Arguments, console: &Console) -> Result<Outcome, Failure> {
    let colour = arguments.color;
    match &arguments.command {
        Command::Symbolicate(args) => symbolicate::run(args, colour, console),
        Command::Explain(args) => explain::run(args, colour, console),
        Command::Group(args) => match &args.sessions {
            Some(sessions) => rates::run(args, sessions, colour, console),
            None => group::run(args, colour, console),
        },
        Command::Lookup(args) => lookup::run(args, console),
        Command::Stacks(args) => stacks::run(args, colour, console),
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        Command::Watch(args) => watch::run(args, colour, console),
        Command::Convert(args) => convert::run(args, console),
        Command::Images(args) => images::run(args, console),
        Command::Cfi(args) => cfi::run(args, console),
        Command::Sdk(args) => sdk::run(args, console),
        #[cfg(feature = "server")]
        Command::Serve(args) => serve::run(args, console),
        #[cfg(feature = "debuginfod")]
        Command::Upload(args) => upload::run(args, console),
        Command::Demangle(args) => demangle::run(args, console),
        Command::Addr2line(args) => addr2line::run(args, console),
        Command::Atos(args) => atos::run(args, console),
        Command::NdkStack(args) => ndk_stack::run(args, console),
        Command::Generate(args) => generate::run(args, Arguments::command()),
    }
}
