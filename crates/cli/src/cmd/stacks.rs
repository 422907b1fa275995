//! `backtrail stacks`: what every thread of a process is or was doing.

use super::options::{Cache, Colour, Servers, symbols};
use crate::io::console::Console;
use crate::io::file::refuse_pipe;
use crate::io::json::document;
use crate::io::text::{Escaping, Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::render::captured;
use backtrail::{StackOptions, Stacks as Captured, Symbols};
use clap::{Args, ValueEnum};
use std::io::Write as _;
use std::path::PathBuf;

/// Shows what every thread of a process is doing, or was doing when it was captured: of a running one, from a core, a minidump
/// or a saved stack.
///
/// The threads of a running process are stopped one after the other, each for the microseconds that copying its registers
/// and its stack takes, and then continue.
///
/// Binaries and debug files are found by build id below every PATH and in the system's debug directories, or where the process
/// had them. Threads with the same stack are shown once.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("source").required(true).args(["pid", "core", "minidump", "offline"])))]
pub(crate) struct Stacks {
    /// A running process (Linux), or a thread of it.
    #[arg(value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// The core dump of a Linux process: x86, x86_64, ARM or ARM64.
    #[arg(long, value_name = "CORE")]
    pub(crate) core: Option<PathBuf>,
    /// The program that the core is of, if it cannot be found by its path or build id.
    // `requires` alone says nothing where another member of the group is given.
    #[arg(short = 'e', long = "exe", value_name = "EXE", requires = "core", conflicts_with_all = ["pid", "minidump", "offline"])]
    pub(crate) executable: Option<PathBuf>,
    /// A minidump of Breakpad, Crashpad or Windows.
    #[arg(long, value_name = "F")]
    pub(crate) minidump: Option<PathBuf>,
    /// A saved stack in the layout of libunwindstack's offline cases: regs.txt, maps.txt, *.data, binaries.
    #[arg(long, value_name = "DIR")]
    pub(crate) offline: Option<PathBuf>,
    /// Where to look for binaries and symbols: a file, or a directory searched recursively. Repeatable.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) servers: Servers,
    #[command(flatten)]
    pub(crate) cache: Cache,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = StackFormat::Text)]
    pub(crate) format: StackFormat,
    /// What to find out of each frame.
    #[arg(long, value_enum, default_value_t = Detail::Lines)]
    pub(crate) detail: Detail,
    /// Stop all threads of the process together, so that their stacks are of one moment; says how long that took.
    // A flag cannot be required by a positional argument's absence alone: the group's other members are named.
    #[arg(long, requires = "pid", conflicts_with_all = ["core", "minidump", "offline"])]
    pub(crate) consistent: bool,
    /// Show each thread, even where several have the same stack.
    #[arg(long)]
    pub(crate) no_fold: bool,
    /// The most frames that are read of one thread.
    #[arg(long, value_name = "N")]
    pub(crate) max_frames: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Detail {
    /// Its address and image.
    Addresses,
    /// The function's name, by symbol tables alone.
    Names,
    /// Inlined functions, files and lines too.
    Lines,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StackFormat {
    /// For people.
    Text,
    /// For programs. The schema is in docs/report.schema.json.
    Json,
    /// A line for each distinct stack: frames, outermost first, joined by semicolons, and how many threads had it.
    Collapsed,
}

pub(crate) fn run(args: &Stacks, colour: Colour, console: &Console) -> Result<Outcome, Failure> {
    let files = [&args.core, &args.minidump, &args.executable];
    files.into_iter().flatten().try_for_each(|path| refuse_pipe(path)).map_err(Failure::Input)?;
    let symbols = symbols(&args.symbols, Some(&args.cache), &args.servers, console)?;
    let mut options = StackOptions::default();
    options.max_frames = args.max_frames.unwrap_or(options.max_frames);
    options.consistent = args.consistent;
    options.detail = match args.detail {
        Detail::Addresses => backtrail::Detail::Addresses,
        Detail::Names => backtrail::Detail::Names,
        Detail::Lines => backtrail::Detail::Lines,
    };
    let stacks = read(args, &symbols, &options).map_err(Failure::Input)?;
    let mut out = console.stdout();
    let style = colour.style(console, true);
    match args.format {
        StackFormat::Text => captured::write(&mut Text::new(&mut out, style), &stacks, !args.no_fold)?,
        StackFormat::Json => document(&mut out, |json| backtrail::json::write_stacks(json, &stacks))?,
        StackFormat::Collapsed => {
            // Programs read these lines: nothing of them is cut.
            let style = Style { coloured: false, escaping: Escaping::Whole };
            captured::write_collapsed(&mut Text::new(&mut out, style), &stacks)?;
        }
    }
    out.flush()?;
    if args.format != StackFormat::Text {
        for note in &stacks.report.notes {
            console.warn(note);
        }
    }
    for problem in symbols.server_problems() {
        console.warn(problem);
    }
    let outcome = if stacks.is_incomplete() { Outcome::Incomplete } else { Outcome::Done };
    // The program ends next, which is quicker than to give back the frames of a thousand threads one by one.
    if console.is_of_process() {
        std::mem::forget(stacks);
    }
    Ok(outcome)
}

fn read(args: &Stacks, symbols: &Symbols, options: &StackOptions) -> Result<Captured, String> {
    if let Some(directory) = &args.offline {
        return Captured::offline(directory, symbols, options).map_err(|error| error.to_string());
    }
    if let Some(file) = &args.minidump {
        return Captured::minidump(file, symbols, options).map_err(|error| error.to_string());
    }
    if let Some(pid) = args.pid {
        return process(pid, symbols, options);
    }
    let core = args.core.as_ref().ok_or("expected a process, --core, --minidump or --offline")?;
    Captured::core(core, args.executable.as_deref(), symbols, options).map_err(|error| error.to_string())
}

#[cfg(target_os = "linux")]
fn process(pid: u32, symbols: &Symbols, options: &StackOptions) -> Result<Captured, String> {
    Captured::process(pid, symbols, options).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
fn process(_: u32, _: &Symbols, _: &StackOptions) -> Result<Captured, String> {
    Err("running processes are captured on Linux only".to_owned())
}
