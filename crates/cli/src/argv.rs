//! The command line as a whole: which tool the program is called as, and how a run ends.

use crate::cmd::{self, Arguments, addr2line, atos, ndk_stack};
use crate::io::console::Console;
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use backtrail_render::escape::{escaped, escaped_bytes, is_unsafe};
use clap::Parser as _;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};

/// The exit code for bad input and wrong usage, and for results that could not be written.
const FAILED: u8 = 2;

/// Runs a command line, the program's name in front, and returns its exit code.
pub fn run(argv: Vec<OsString>, console: &Console) -> u8 {
    match Alias::of(&argv) {
        Some((alias, call)) => run_as_alias(alias, &alias.argv(call, argv), console),
        None => run_command(&argv, FAILED, console),
    }
}

/// Runs as the tool that scripts expect: with its name in messages, and 1 as the exit code of every failure.
fn run_as_alias(alias: Alias, argv: &[OsString], console: &Console) -> u8 {
    console.run_as(alias.name());
    run_command(argv, 1, console)
}

fn run_command(argv: &[OsString], failed: u8, console: &Console) -> u8 {
    let result = match Arguments::try_parse_from(argv) {
        Ok(arguments) => cmd::run(&arguments, console),
        // Help and version come as errors, too.
        Err(error) if !error.use_stderr() => show_help(&error, console).map_err(Failure::Output),
        Err(error) => {
            show_usage_error(&error, argv, console);
            return failed;
        }
    };
    // What a file had behind its new end was read as zeros: nothing that was said can be relied on.
    let truncated = backtrail::truncated_files();
    for file in &truncated {
        console.warn(format_args!("{}: shrank while it was read", file.display()));
    }
    match result {
        Ok(_) if !truncated.is_empty() => failed,
        Ok(outcome) => outcome.code(),
        // The reader went away, as `head` does: what it wanted it has. SIGPIPE is ignored, as every Rust program has it,
        // so that a pipe that is closed elsewhere never ends the program.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(failure) => {
            if let Failure::OfTool { usage, .. } = &failure {
                show_tools_failure(&failure, usage, console);
            } else {
                console.warn(&failure);
            }
            failed
        }
    }
}

fn show_help(error: &clap::Error, console: &Console) -> io::Result<Outcome> {
    let mut out = console.stdout();
    let help = error.render();
    match console.colours_stdout() {
        true => write!(out, "{}", help.ansi())?,
        false => write!(out, "{help}")?,
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Shows what is wrong with the command line. The message quotes it, so what is unsafe in it is escaped before it is parsed.
fn show_usage_error(error: &clap::Error, argv: &[OsString], console: &Console) {
    let is_safe = argv.iter().all(|word| word.to_str().is_some_and(|word| !word.contains(is_unsafe)));
    let again = match is_safe {
        true => None,
        false => Arguments::try_parse_from(argv.iter().map(|word| escaped_word(word))).err(),
    };
    let message = match (&again, is_safe) {
        (Some(error), _) => error.render(),
        (None, true) => error.render(),
        (None, false) => {
            let mut lines = Vec::new();
            let _ = Text::new(&mut lines, Style::PLAIN).put_lines(error.render().to_string().as_bytes());
            return console.write_to_stderr(&lines);
        }
    };
    let message = if console.colours_stderr() { message.ansi().to_string() } else { message.to_string() };
    console.write_to_stderr(message.as_bytes());
}

fn escaped_word(word: &OsStr) -> OsString {
    match word.to_str() {
        Some(word) => escaped(word).into_owned().into(),
        None => escaped_bytes(word.as_encoded_bytes()).into(),
    }
}

/// In the form of another tool: without a name in front, and with its usage behind.
fn show_tools_failure(failure: &Failure, usage: &str, console: &Console) {
    let mut lines = Vec::new();
    let mut text = Text::new(&mut lines, Style::PLAIN);
    let _ = text.line(failure).and_then(|()| text.put_lines(usage.as_bytes()));
    console.write_to_stderr(&lines);
}

/// A tool that the program runs as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Alias {
    /// GNU's.
    Addr2line,
    /// Apple's.
    Atos,
    /// The Android NDK's.
    NdkStack,
}

/// How an alias was called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    ByName,
    ByCommand,
}

impl Alias {
    const ALL: [Self; 3] = [Self::Addr2line, Self::Atos, Self::NdkStack];

    /// The tool's name.
    fn name(self) -> &'static str {
        match self {
            Self::Addr2line => "addr2line",
            Self::Atos => "atos",
            Self::NdkStack => "ndk-stack",
        }
    }

    /// The tool that the program was called as: through a link of that name, also with a cross compiler's prefix
    /// (`aarch64-linux-gnu-addr2line`), or by the command of that name.
    fn of(argv: &[OsString]) -> Option<(Self, Call)> {
        let name =
            std::path::Path::new(argv.first()?).file_stem().and_then(OsStr::to_str).unwrap_or_default();
        let is_called = |tool: &Self| {
            name.strip_suffix(tool.name()).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('-'))
        };
        if let Some(tool) = Self::ALL.into_iter().find(is_called) {
            return Some((tool, Call::ByName));
        }
        let command = argv.get(1)?;
        Self::ALL.into_iter().find(|tool| command == tool.name()).map(|tool| (tool, Call::ByCommand))
    }

    /// The tool's own arguments as the command line of its command.
    fn argv(self, call: Call, argv: Vec<OsString>) -> Vec<OsString> {
        let own = match call {
            Call::ByName => 1,
            Call::ByCommand => 2,
        };
        let rest = argv.into_iter().skip(own).collect();
        let rest = match self {
            Self::Addr2line => addr2line::expand(rest),
            Self::Atos => atos::with_two_dashes(rest),
            Self::NdkStack => ndk_stack::with_two_dashes(rest),
        };
        ["backtrail".into(), self.name().into()].into_iter().chain(rest).collect()
    }
}
