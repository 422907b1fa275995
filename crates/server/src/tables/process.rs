//! A process that reads what strangers sent, as the server sees it: begun, waited for, killed where it takes too long.

use super::child::{Line, MAX_IMAGES, TableLimits};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of its output that are read: more than as many images have to say.
const MAX_OUTPUT: u64 = MAX_IMAGES as u64 * 2000;

/// How often is looked whether it ended.
const LOOK: Duration = Duration::from_millis(10);

/// What came of the process.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It came to its end, and says that of each image.
    Well(Vec<Line>),
    /// It was ended by a limit or by a fault: nobody else should read that file.
    Badly(String),
    /// Somebody else ended it: the kernel where memory ran out, say.
    Killed(String),
    /// The server is about to end.
    Stopped,
}

/// What a process is for: the task of `serve`, and what it is called in what is said of it.
pub(crate) struct Task<'a> {
    pub(crate) name: &'static str,
    pub(crate) doing: &'static str,
    pub(crate) arguments: &'a [&'a Path],
}

/// Has `program` do a task, in that time at most.
pub(crate) fn run(
    program: &Path,
    task: &Task<'_>,
    limits: TableLimits,
    longest: Duration,
    stopped: impl Fn() -> bool,
) -> io::Result<Ended> {
    let mut command = Command::new(program);
    command.args(["serve", task.name]).args(task.arguments);
    command.args([limits.memory, limits.seconds, limits.bytes].map(|limit| limit.to_string()));
    // It needs nothing of what the server was given.
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = Running(command.spawn()?);
    let out = running.0.stdout.take().ok_or_else(|| io::Error::other("the process has no output"))?;
    let reader: JoinHandle<Vec<Line>> =
        std::thread::Builder::new().name("child-out".to_owned()).spawn(move || {
            let lines = BufReader::new(out.take(MAX_OUTPUT)).lines().map_while(Result::ok);
            lines.map_while(|line| serde_json::from_str(&line).ok()).collect()
        })?;
    let until = Instant::now() + longest;
    let status = loop {
        if let Some(status) = running.0.try_wait()? {
            break status;
        }
        if stopped() {
            return Ok(Ended::Stopped);
        }
        if Instant::now() >= until {
            return Ok(Ended::Badly(format!("{} takes longer than {} s", task.doing, longest.as_secs())));
        }
        std::thread::sleep(LOOK);
    };
    let mut lines = reader.join().unwrap_or_default();
    let is_whole = lines.pop().is_some_and(|last| last.end);
    if status.success() && is_whole {
        return Ok(Ended::Well(lines));
    }
    #[cfg(unix)]
    if std::os::unix::process::ExitStatusExt::signal(&status) == Some(9) {
        return Ok(Ended::Killed("the process was killed, maybe since there was no memory".to_owned()));
    }
    Ok(Ended::Badly(why(status, limits, task.doing)))
}

/// Killed and waited for when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn why(status: ExitStatus, limits: TableLimits, doing: &str) -> String {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let TableLimits { memory, seconds, bytes } = limits;
    let memory = memory >> 20;
    match signal {
        // SIGABRT: what Rust's programs do without memory.
        Some(6) => format!("{doing} needs more than {memory} MB of memory"),
        Some(24) => format!("{doing} takes more than {seconds} s of processor time"),
        Some(25) => format!("it is larger than {} MB", bytes >> 20),
        Some(signal) => format!("{doing} ended by signal {signal}"),
        None => format!("{doing} failed ({status})"),
    }
}
