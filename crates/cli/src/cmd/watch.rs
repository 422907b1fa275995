//! `backtrail watch`: a report of whatever ends a process, or holds it up.

use super::options::{Colour, Servers, symbols};
use crate::io::console::Console;
use crate::io::text::Text;
use crate::outcome::{Failure, Outcome};
use crate::render::report;
use backtrail::{Analysis, Limits, Symbols};
use backtrail_store::{Index, NoProgress, ScanOptions};
use backtrail_watch::{
    Cause, Exit, KeptReport, Options, Watched, keep_core, serve_handler, start_again, watch,
};
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Watches a process, or a program that it starts, with all its children: keeps a report of each crash, and of hangs if asked to
/// (Linux).
///
/// The process needs nothing built in, and runs as fast as ever. It ends as it would have; the exit code is its own, 128 plus the
/// number of the signal that ended it.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("watched").required(true).args(["process", "program", "core_pattern", "for_handler"])))]
pub(crate) struct Watch {
    /// A process that runs, by its id.
    #[arg(value_name = "PID")]
    process: Option<u32>,
    /// A program to start, with its arguments.
    #[arg(last = true, value_name = "CMD")]
    program: Vec<OsString>,
    /// Read a core from standard input, as the kernel's `core_pattern` gives it to a program, and keep a report in its place: of the
    /// process with this id (`%P`). See docs/watch.md.
    #[arg(long, value_name = "PID", conflicts_with_all = ["process", "program", "hang", "on_exit"])]
    core_pattern: Option<u32>,
    /// Stand by for the crash handler at the other end of standard input, a socket, which starts this by itself: see docs/crash.md.
    #[arg(long, conflicts_with_all = ["process", "program", "hang", "on_exit"])]
    for_handler: bool,
    /// The process that stays.
    #[arg(long, hide = true, requires = "for_handler")]
    stays: bool,
    /// The directory for crash files, which `symbolicate`, `explain` and `stacks` read.
    #[arg(short, long = "out", value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Report a hang as well: the first thread of the process neither ran nor began another wait for so many milliseconds.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..))]
    hang: Option<u64>,
    /// Report a process as well that ends with an exit code other than 0, with its last stacks.
    #[arg(long)]
    on_exit: bool,
    /// The most reports that are kept.
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_reports: usize,
    /// Send each report to this address, by POST: `http://KEY@HOST/api/PROJECT/reports/` of `backtrail serve`. Its file stays.
    #[cfg(feature = "debuginfod")]
    #[arg(long, value_name = "URL")]
    upload: Option<String>,
    /// Say where each report is, and do not print it.
    #[arg(short, long)]
    quiet: bool,
    /// Where to look for binaries and symbols: a file, a directory searched recursively, or a server of `backtrail serve`
    /// (https://HOST/symbols/PROJECT, with the token of BACKTRAIL_TOKEN). Repeatable.
    #[arg(short, long, value_name = "PATH")]
    symbols: Vec<PathBuf>,
    #[command(flatten)]
    servers: Servers,
}

pub(crate) fn run(args: &Watch, colour: Colour, console: &Console) -> Result<Outcome, Failure> {
    if let Some(pid) = args.core_pattern {
        return keep(args, pid, console);
    }
    if args.for_handler {
        return for_handler(args);
    }
    let mut options = Options::new(&args.out);
    options.hang = args.hang.map(Duration::from_millis);
    options.on_exit = args.on_exit;
    options.max_reports = args.max_reports;
    let watched = match (args.process, args.program.split_first()) {
        (Some(pid), _) => Watched::Process(pid),
        (None, Some((program, arguments))) => {
            let mut command = Command::new(program);
            command.args(arguments);
            Watched::Program(command)
        }
        (None, None) => return Err(Failure::Input("expected a process or a program".to_owned())),
    };
    let named = symbols(&args.symbols, None, &args.servers, console)?;
    let index = Index::scan(&args.symbols, &ScanOptions::default(), &NoProgress);
    let mut tell = |kept: KeptReport| show(&kept, args, &named, colour, console);
    let exit = watch(watched, &options, &index, &mut tell);
    let exit = exit.map_err(|error| Failure::Input(error.to_string()))?;
    if let Exit::Signal(signal) = exit {
        console.warn(format_args!("the process was ended by signal {signal}"));
    }
    Ok(Outcome::OfProgram(match exit {
        Exit::Code(code) => u8::try_from(code).unwrap_or(u8::MAX),
        Exit::Signal(signal) => u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX),
    }))
}

/// The first process starts the one that stays, and ends.
fn for_handler(args: &Watch) -> Result<Outcome, Failure> {
    use std::os::fd::AsFd as _;
    let failed = |error: std::io::Error| Failure::Input(error.to_string());
    if !args.stays {
        start_again().map_err(failed)?;
        return Ok(Outcome::Done);
    }
    let index = Index::scan(&args.symbols, &ScanOptions::default(), &NoProgress);
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    serve_handler(&socket.into(), &args.out, &index).map_err(|error| Failure::Input(error.to_string()))?;
    Ok(Outcome::Done)
}

/// Nobody looks at what this prints: the report is for later.
fn keep(args: &Watch, pid: u32, console: &Console) -> Result<Outcome, Failure> {
    let index = Index::scan(&args.symbols, &ScanOptions::default(), &NoProgress);
    let path = keep_core(&mut console.stdin(), pid, &args.out, &index);
    let path = path.map_err(|error| Failure::Input(error.to_string()))?;
    console.warn(format_args!("process {pid} crashed; the report is {}", path.display()));
    let sent = std::fs::read(&path).map_err(|error| error.to_string()).and_then(|bytes| send(args, &bytes));
    if let Err(problem) = sent {
        console.warn(format_args!("{}: {problem}", path.display()));
        return Ok(Outcome::Incomplete);
    }
    Ok(Outcome::Done)
}

/// Tells of a report: on standard error, since standard output is the program's.
fn show(kept: &KeptReport, args: &Watch, symbols: &Symbols, colour: Colour, console: &Console) {
    let pid = kept.pid;
    let what = match kept.cause {
        Cause::Crash { signal } => format!("process {pid} crashed by signal {signal}"),
        Cause::Hang(stood) => {
            format!("process {pid} hangs: its first thread has not run for {} ms", stood.as_millis())
        }
        Cause::Exit(code) => format!("process {pid} ends with exit code {code}"),
        _ => format!("process {pid}"),
    };
    let path = match &kept.file {
        Ok(path) => path,
        Err(problem) => return console.warn(format_args!("{what}; no report: {problem}")),
    };
    let stood = kept.stood.as_secs_f64() * 1000.0;
    console.warn(format_args!("{what}; it stood for {stood:.1} ms, the report is {}", path.display()));
    if let Err(problem) = read(path, args, symbols, colour, console) {
        console.warn(format_args!("{}: {problem}", path.display()));
    }
}

fn read(
    path: &Path,
    args: &Watch,
    symbols: &Symbols,
    colour: Colour,
    console: &Console,
) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    if !args.quiet {
        let analysis =
            Analysis::new(&bytes, symbols, &Limits::default()).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        let written = report::write(&mut Text::new(&mut out, colour.style(console, false)), &analysis);
        written.map_err(|error| error.to_string())?;
        console.write_to_stderr(&out);
    }
    send(args, &bytes)
}

#[cfg(feature = "debuginfod")]
fn send(args: &Watch, bytes: &[u8]) -> Result<(), String> {
    use backtrail_store::{JsonClient, Method};
    const TIMEOUT: Duration = Duration::from_secs(30);
    let Some(url) = &args.upload else { return Ok(()) };
    let (status, answer) = JsonClient::new(url, None, TIMEOUT)
        .send(Method::Post, "/", bytes)
        .map_err(|problem| format!("not sent: the server {problem}"))?;
    if (200..300).contains(&status) {
        return Ok(());
    }
    let answer = String::from_utf8_lossy(&answer);
    Err(format!("not sent: the server answered {status}: {}", answer.chars().take(200).collect::<String>()))
}

#[cfg(not(feature = "debuginfod"))]
fn send(_: &Watch, _: &[u8]) -> Result<(), String> {
    Ok(())
}
