//! The standard streams, and what is known of the terminals behind them.

use super::text::{Escaping, Style, Text};
use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal as _, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes that are written at a time.
const BUFFER: usize = 1 << 16;

/// The streams that a command line reads and writes.
#[allow(missing_debug_implementations, reason = "streams have nothing to show")]
pub struct Streams {
    /// Standard input.
    pub stdin: Box<dyn Read + Send>,
    /// Standard output.
    pub stdout: Box<dyn Write + Send>,
    /// Standard error.
    pub stderr: Box<dyn Write + Send>,
}

/// What decides how output looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Environment {
    /// Whether standard output is a terminal.
    pub stdout_is_terminal: bool,
    /// Whether standard error is a terminal.
    pub stderr_is_terminal: bool,
    /// `NO_COLOR` is set and not empty: no colours (<https://no-color.org>).
    pub no_color: bool,
    /// `CLICOLOR_FORCE` is set and neither empty nor 0: colours, wherever the output goes (<https://bixense.com/clicolors>).
    pub clicolor_force: bool,
    /// `CLICOLOR` is 0: no colours.
    pub clicolor_off: bool,
    /// `TERM` is `dumb` or not set: the terminal knows no escape sequences.
    pub terminal_is_dumb: bool,
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        let is = |name: &str, test: fn(&str) -> bool| {
            std::env::var_os(name).is_some_and(|value| test(&value.to_string_lossy()))
        };
        Self {
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            no_color: is("NO_COLOR", |value| !value.is_empty()),
            clicolor_force: is("CLICOLOR_FORCE", |value| !matches!(value, "" | "0")),
            clicolor_off: is("CLICOLOR", |value| value == "0"),
            terminal_is_dumb: !is("TERM", |value| !matches!(value, "" | "dumb")),
        }
    }

    fn colours(&self, is_terminal: bool) -> bool {
        if self.no_color {
            return false;
        }
        self.clicolor_force || (is_terminal && !self.clicolor_off && !self.terminal_is_dumb)
    }
}

/// Where a command line reads, writes and complains.
pub struct Console {
    stdin: Mutex<Box<dyn Read + Send>>,
    stdout: Mutex<Box<dyn Write + Send>>,
    stderr: Stderr,
    environment: Environment,
    name: OnceLock<&'static str>,
    is_of_process: bool,
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("environment", &self.environment).finish_non_exhaustive()
    }
}

impl Console {
    /// Of any streams.
    pub fn new(streams: Streams, environment: Environment) -> Self {
        Self {
            stdin: Mutex::new(streams.stdin),
            stdout: Mutex::new(streams.stdout),
            stderr: Stderr(Arc::new(Mutex::new(streams.stderr))),
            environment,
            name: OnceLock::new(),
            is_of_process: false,
        }
    }

    /// Of this process.
    pub fn of_process() -> Self {
        let streams = Streams {
            stdin: Box::new(io::stdin()),
            stdout: Box::new(io::stdout()),
            stderr: Box::new(io::stderr()),
        };
        Self { is_of_process: true, ..Self::new(streams, Environment::of_process()) }
    }

    /// Whether the process ends with the command line.
    pub(crate) fn is_of_process(&self) -> bool {
        self.is_of_process
    }

    /// The name that messages begin with, if it is not the program's own.
    pub(crate) fn run_as(&self, name: &'static str) {
        let _ = self.name.set(name);
    }

    pub(crate) fn stdin(&self) -> Locked<'_, dyn Read + Send> {
        Locked(lock(&self.stdin))
    }

    /// Standard output, buffered. Who writes flushes it: what is lost on the way is an error.
    pub(crate) fn stdout(&self) -> BufWriter<Locked<'_, dyn Write + Send>> {
        BufWriter::with_capacity(BUFFER, Locked(lock(&self.stdout)))
    }

    /// Says what is wrong, on a line of standard error. Where that is closed or full, nobody can be told, and the work goes
    /// on.
    pub(crate) fn warn(&self, message: impl Display) {
        let mut line = Vec::new();
        let mut text = Text::new(&mut line, Style::PLAIN);
        let _ = text.put(format_args!("{}: ", self.name.get().unwrap_or(&"backtrail")));
        let _ = text.line(message);
        self.write_to_stderr(&line);
    }

    /// Writes to standard error what was escaped before.
    pub(crate) fn write_to_stderr(&self, bytes: &[u8]) {
        self.stderr.write(bytes);
    }

    /// Where a line can be shown that changes, if it can.
    pub(crate) fn progress_line(&self) -> Option<Stderr> {
        let can = self.environment.stderr_is_terminal && !self.environment.terminal_is_dumb;
        can.then(|| self.stderr.clone())
    }

    pub(crate) fn stdout_is_terminal(&self) -> bool {
        self.environment.stdout_is_terminal
    }

    /// Whether what goes to standard output is coloured, where the command line leaves it open.
    pub(crate) fn colours_stdout(&self) -> bool {
        self.environment.colours(self.environment.stdout_is_terminal)
    }

    pub(crate) fn colours_stderr(&self) -> bool {
        self.environment.colours(self.environment.stderr_is_terminal)
    }

    /// For the output of other tools, on standard output: their bytes for programs, escaped on a terminal.
    pub(crate) fn style_of_tools(&self) -> Style {
        let escaping = if self.stdout_is_terminal() { Escaping::Whole } else { Escaping::None };
        Style { coloured: false, escaping }
    }
}

/// Standard error, which several may write to.
#[derive(Clone)]
pub(crate) struct Stderr(Arc<Mutex<Box<dyn Write + Send>>>);

impl Stderr {
    /// Writes what was escaped before.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let mut stderr = lock(&self.0);
        let _ = stderr.write_all(bytes).and_then(|()| stderr.flush());
    }
}

/// A panic while a stream was locked leaves it as it is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stream in use.
pub(crate) struct Locked<'a, T: ?Sized>(MutexGuard<'a, Box<T>>);

impl<T: Read + ?Sized> Read for Locked<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<T: Write + ?Sized> Write for Locked<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_by_the_variables() {
        let terminal = Environment { stdout_is_terminal: true, ..Environment::default() };
        let colours = |environment: Environment| environment.colours(environment.stdout_is_terminal);
        assert!(colours(terminal));
        assert!(!colours(Environment { terminal_is_dumb: true, ..terminal }));
        assert!(!colours(Environment { clicolor_off: true, ..terminal }));
        assert!(!colours(Environment { no_color: true, clicolor_force: true, ..terminal }));
        assert!(!colours(Environment::default()));
        assert!(colours(Environment { clicolor_force: true, ..Environment::default() }));
    }
}
