//! `backtrail stacks`: what every thread of a process is or was doing.

use super::options::{Cache, Colour, Servers, symbols};
use crate::io::console::Console;
use crate::io::file::{read_at_most, refuse_pipe};
use crate::io::json::document;
use crate::io::text::{Escaping, Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::render::captured;
use crate::tally::Tally;
use backtrail::{EarlierStacks, StackDiff, StackOptions, Stacks as Captured, Symbols, ThreadFilter};
use clap::{Args, ValueEnum};
use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shows what every thread of a process is doing, or was doing when it was captured: of running ones, from a core, a minidump
/// or a saved stack.
///
/// The threads of a running process are stopped one after the other, each for the microseconds that copying its registers
/// and its stack takes, and then continue.
///
/// Binaries and debug files are found by build id below every PATH and in the system's debug directories, or where the process
/// had them. Threads with the same stack are shown once. Threads that wait for locks of each other come first.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("source").required(true).args(["processes", "core", "minidump", "offline"])))]
pub(crate) struct Stacks {
    /// Running processes (Linux), each by its id, by that of one of its threads, or by a name: what the kernel calls it, or the file
    /// name of its program. All processes of a name are captured.
    #[arg(value_name = "PID|NAME")]
    pub(crate) processes: Vec<String>,
    /// The core dump of a Linux process: x86, x86_64, ARM or ARM64.
    #[arg(long, value_name = "CORE")]
    pub(crate) core: Option<PathBuf>,
    /// The program that the core is of, if it cannot be found by its path or build id.
    // `requires` alone says nothing where another member of the group is given.
    #[arg(short = 'e', long = "exe", value_name = "EXE", requires = "core", conflicts_with_all = ["processes", "minidump", "offline"])]
    pub(crate) executable: Option<PathBuf>,
    /// A minidump of Breakpad, Crashpad or Windows.
    #[arg(long, value_name = "F")]
    pub(crate) minidump: Option<PathBuf>,
    /// A saved stack in the layout of libunwindstack's offline cases: regs.txt, maps.txt, *.data, binaries.
    #[arg(long, value_name = "DIR")]
    pub(crate) offline: Option<PathBuf>,
    /// Where to look for binaries and symbols: a file, a directory searched recursively, or a server, as for `symbolicate`. Repeatable.
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
    /// Only the threads with this id. Repeatable; with --thread, those that either takes.
    #[arg(long, value_name = "TID")]
    pub(crate) tid: Vec<u64>,
    /// Only the threads with a name that this regular expression matches somewhere.
    #[arg(long, value_name = "REGEX")]
    pub(crate) thread: Option<String>,
    /// Only the threads that use the processor, the busiest first, by what they use in 200 ms.
    #[arg(long, requires = "processes", conflicts_with_all = ["core", "minidump", "offline", "diff"])]
    pub(crate) busy: bool,
    /// Say which threads moved, are new or are gone since the stacks that --format json wrote into this file.
    #[arg(long, value_name = "OLD.json")]
    pub(crate) diff: Option<PathBuf>,
    /// Show where in the kernel sleeping threads wait: its functions, which root may read, or else the innermost of them. Those of
    /// threads in uninterruptible sleep are always shown.
    #[arg(long, requires = "processes", conflicts_with_all = ["core", "minidump", "offline"])]
    pub(crate) kernel: bool,
    /// Stop all threads of a process together, so that their stacks are of one moment; says how long that took.
    // A flag cannot be required by a positional argument's absence alone: the group's other members are named.
    #[arg(long, requires = "processes", conflicts_with_all = ["core", "minidump", "offline"])]
    pub(crate) consistent: bool,
    /// Where no processor is free, let the thread that stops others run before all that is not real-time itself (SCHED_FIFO): threads
    /// are stopped for a shorter time, and other programs wait. Takes CAP_SYS_NICE; without it nothing changes.
    #[arg(long, requires = "processes", conflicts_with_all = ["core", "minidump", "offline"])]
    pub(crate) real_time: bool,
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

/// How long threads are watched for `--busy`.
const BUSY_WINDOW: Duration = Duration::from_millis(200);
/// Bytes of the file that `--diff` names.
const MAX_EARLIER: u64 = 1 << 30;

pub(crate) fn run(args: &Stacks, colour: Colour, console: &Console) -> Result<Outcome, Failure> {
    let files = [&args.core, &args.minidump, &args.executable, &args.diff];
    files.into_iter().flatten().try_for_each(|path| refuse_pipe(path)).map_err(Failure::Input)?;
    if args.diff.is_some() && args.format == StackFormat::Collapsed {
        return Err(Failure::Input(
            "--diff has no collapsed form: expected --format text or json".to_owned(),
        ));
    }
    let options = options(args).map_err(Failure::Input)?;
    let earlier = args.diff.as_deref().map(read_earlier).transpose().map_err(Failure::Input)?;
    let symbols = symbols(&args.symbols, Some(&args.cache), &args.servers, console)?;
    let mut tally = Tally::default();
    let sources = sources(args, &mut tally, console)?;
    let is_only = sources.len() == 1 && args.processes.len() <= 1;
    let mut show = Show { args, options: &options, earlier, colour, console, seen: Seen::default() };
    for source in &sources {
        match read(args, *source, &symbols, &options) {
            Ok(stacks) => {
                tally.read(show.one(&stacks, sources.len() > 1)?);
                // The program ends soon, which is quicker than to give back the frames of a thousand threads one by one.
                if console.is_of_process() {
                    std::mem::forget(stacks);
                }
            }
            Err(problem) if is_only => return Err(Failure::Input(problem)),
            Err(problem) => {
                console.warn(problem);
                tally.failed(source.map(|pid| pid.to_string()).unwrap_or_default());
            }
        }
    }
    for problem in symbols.server_problems() {
        console.warn(problem);
    }
    let is_complete = show.seen.finish(args, &options, console)?;
    let outcome = tally.finish("processes", console);
    Ok(if is_complete { outcome } else { outcome.max(Outcome::Incomplete) })
}

fn options(args: &Stacks) -> Result<StackOptions, String> {
    let mut options = StackOptions::default();
    options.max_frames = args.max_frames.unwrap_or(options.max_frames);
    options.consistent = args.consistent;
    options.real_time = args.real_time;
    options.kernel_stacks = args.kernel;
    options.detail = match args.detail {
        Detail::Addresses => backtrail::Detail::Addresses,
        Detail::Names => backtrail::Detail::Names,
        Detail::Lines => backtrail::Detail::Lines,
    };
    options.threads = ThreadFilter::default().with_ids(args.tid.iter().copied());
    if let Some(pattern) = &args.thread {
        options.threads = options.threads.with_name(pattern).map_err(|error| error.to_string())?;
    }
    if args.busy {
        options.busy_only = true;
        options.cpu_window = BUSY_WINDOW;
    }
    Ok(options)
}

/// The processes that are asked for, each once; `None` stands for a file.
fn sources(args: &Stacks, tally: &mut Tally, console: &Console) -> Result<Vec<Option<u32>>, Failure> {
    if args.processes.is_empty() {
        return Ok(vec![None]);
    }
    let mut sources = Vec::new();
    for process in &args.processes {
        let found = match process.parse() {
            Ok(pid) => vec![pid],
            Err(_) => named(process).map_err(Failure::Input)?,
        };
        if found.is_empty() {
            let problem = format!("no process is called {process}");
            if args.processes.len() == 1 {
                return Err(Failure::Input(problem));
            }
            console.warn(problem);
            tally.failed(process.clone());
        }
        for pid in found.into_iter().map(Some) {
            if !sources.contains(&pid) {
                sources.push(pid);
            }
        }
    }
    Ok(sources)
}

fn read_earlier(path: &Path) -> Result<EarlierStacks, String> {
    let of = |error: &dyn Display| format!("{}: {error}", path.display());
    let bytes = read_at_most(path, MAX_EARLIER).map_err(|problem| of(&problem))?;
    EarlierStacks::parse(&bytes).map_err(|error| of(&error))
}

/// What was shown of all processes.
#[derive(Default)]
struct Seen {
    processes: HashSet<u64>,
    threads: HashSet<u64>,
    /// Whether a process was shown.
    is_shown: bool,
    /// Whether a process had none of the threads that were asked for.
    lacks_threads: bool,
    /// Whether `--diff` knew nothing of a process.
    lacks_earlier: bool,
}

impl Seen {
    /// Whether all was there that was asked for; what was not is said.
    fn finish(self, args: &Stacks, options: &StackOptions, console: &Console) -> Result<bool, Failure> {
        if !self.is_shown && self.lacks_threads {
            return Err(Failure::Input(match (&args.thread, &args.tid[..]) {
                (Some(pattern), []) => format!("no thread has a name that `{pattern}` matches"),
                (None, [id]) => format!("no thread has the id {id}"),
                _ => "no thread has such an id or name".to_owned(),
            }));
        }
        // Of those that are not busy nothing is known here.
        let is_missing = |id: &&u64| !options.busy_only && !self.threads.contains(id);
        let missing: Vec<_> = args.tid.iter().filter(is_missing).collect();
        for id in &missing {
            console.warn(format_args!("no thread has the id {id}"));
        }
        Ok(missing.is_empty() && !self.lacks_earlier)
    }
}

/// Shows what is captured.
struct Show<'a> {
    args: &'a Stacks,
    options: &'a StackOptions,
    earlier: Option<EarlierStacks>,
    colour: Colour,
    console: &'a Console,
    seen: Seen,
}

impl Show<'_> {
    fn one(&mut self, stacks: &Captured, is_one_of_many: bool) -> Result<Outcome, Failure> {
        let process = &stacks.report.process;
        // By the id of one of its threads, it may have been shown before.
        if process.pid.is_some_and(|pid| !self.seen.processes.insert(pid)) {
            return Ok(Outcome::Done);
        }
        if process.threads.is_empty() && !self.options.threads.takes_all() && !self.options.busy_only {
            self.seen.lacks_threads = true;
            return Ok(Outcome::Done);
        }
        self.seen.threads.extend(process.threads.iter().filter_map(|thread| thread.id));
        let label = format!("{} [{}]", process.name.as_deref().unwrap_or_default(), process.pid.unwrap_or(0));
        let label = is_one_of_many.then_some(label.as_str());
        let earlier = self.earlier.as_ref();
        let diff = earlier.and_then(|earlier| earlier.diff(stacks, &self.options.threads));
        if earlier.is_some() && diff.is_none() {
            self.seen.lacks_earlier = true;
            let pid = process.pid.unwrap_or(0);
            self.console.warn(format_args!("process {pid} is not in the file that --diff names"));
        }
        let is_first = !std::mem::replace(&mut self.seen.is_shown, true);
        self.write(stacks, diff.as_ref(), label, is_first)?;
        if self.args.format != StackFormat::Text {
            for note in &stacks.report.notes {
                match label {
                    Some(label) => self.console.warn(format_args!("{label}: {note}")),
                    None => self.console.warn(note),
                }
            }
        }
        Ok(if stacks.is_incomplete() { Outcome::Incomplete } else { Outcome::Done })
    }

    fn write(
        &self,
        stacks: &Captured,
        diff: Option<&StackDiff>,
        label: Option<&str>,
        is_first: bool,
    ) -> Result<(), Failure> {
        let mut out = self.console.stdout();
        match self.args.format {
            StackFormat::Text => {
                let mut text = Text::new(&mut out, self.colour.style(self.console, true));
                if !is_first {
                    text.end()?;
                }
                let earlier = self.args.diff.as_deref().map(|path| path.display().to_string());
                let since = diff.zip(earlier).map(|(diff, earlier)| captured::Since { earlier, diff });
                captured::write(&mut text, stacks, !self.args.no_fold, since.as_ref())?;
            }
            StackFormat::Json => {
                document(&mut out, |json| backtrail::json::write_stacks(json, stacks, diff))?;
            }
            StackFormat::Collapsed => {
                // Programs read these lines: nothing of them is cut.
                let style = Style { coloured: false, escaping: Escaping::Whole };
                captured::write_collapsed(&mut Text::new(&mut out, style), stacks, label)?;
            }
        }
        Ok(out.flush()?)
    }
}

fn read(
    args: &Stacks,
    pid: Option<u32>,
    symbols: &Symbols,
    options: &StackOptions,
) -> Result<Captured, String> {
    if let Some(pid) = pid {
        return process(pid, symbols, options);
    }
    if let Some(directory) = &args.offline {
        return Captured::offline(directory, symbols, options).map_err(|error| error.to_string());
    }
    if let Some(file) = &args.minidump {
        return Captured::minidump(file, symbols, options).map_err(|error| error.to_string());
    }
    let core = args.core.as_ref().ok_or("expected a process, --core, --minidump or --offline")?;
    Captured::core(core, args.executable.as_deref(), symbols, options).map_err(|error| error.to_string())
}

#[cfg(target_os = "linux")]
fn named(name: &str) -> Result<Vec<u32>, String> {
    backtrail::processes_named(name).map_err(|error| format!("/proc: {error}"))
}

#[cfg(not(target_os = "linux"))]
fn named(_: &str) -> Result<Vec<u32>, String> {
    Err("running processes are captured on Linux only".to_owned())
}

#[cfg(target_os = "linux")]
fn process(pid: u32, symbols: &Symbols, options: &StackOptions) -> Result<Captured, String> {
    Captured::process(pid, symbols, options).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
fn process(_: u32, _: &Symbols, _: &StackOptions) -> Result<Captured, String> {
    Err("running processes are captured on Linux only".to_owned())
}
