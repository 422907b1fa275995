//! Options and values that several commands have.

use crate::io::console::Console;
use crate::io::file::refuse_pipe;
use crate::io::progress::Meter;
use crate::io::text::{Escaping, Style};
use crate::outcome::Failure;
use backtrail::{Arch, RemoteFiles, Symbols};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless the variable NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// For people; `is_stdout` tells whether the output goes to standard output.
    pub(crate) fn style(self, console: &Console, is_stdout: bool) -> Style {
        let coloured = match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => is_stdout && console.colours_stdout(),
        };
        Style { coloured, escaping: Escaping::Short }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PlainFormat {
    /// For people.
    Text,
    /// For programs; one line each.
    Json,
}

/// Where tables are kept.
#[derive(Args, Debug, Default)]
pub(crate) struct Cache {
    /// Keep a table of each debug file that is asked in DIR, and ask that the next time. The first time takes as long as
    /// `convert`.
    #[arg(long = "cache", value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Cache {
    pub(crate) fn tables(&self) -> Option<backtrail::TableCache> {
        self.directory.as_ref().map(backtrail::TableCache::new)
    }
}

/// Whether servers are asked.
#[derive(Args, Debug, Default)]
pub(crate) struct Servers {
    /// Ask the debuginfod servers of DEBUGINFOD_URLS for debug files and binaries that frames need and this machine does not
    /// have. They get build ids to see, nothing else. Files are kept where gdb and elfutils keep theirs.
    #[arg(long)]
    debuginfod: bool,
}

impl Servers {
    /// The servers to ask. That there are none, or that some cannot be asked, is said: the work goes on without them.
    pub(crate) fn remote(&self, console: &Console) -> Option<Arc<dyn RemoteFiles>> {
        if self.debuginfod { debuginfod(console) } else { None }
    }
}

#[cfg(feature = "debuginfod")]
fn debuginfod(console: &Console) -> Option<Arc<dyn RemoteFiles>> {
    match backtrail::Debuginfod::new(backtrail::DebuginfodOptions::from_environment()) {
        Ok(servers) => {
            let meter = Meter::new(console);
            Some(Arc::new(servers.with_listener(move |counts| meter.fetched(counts))))
        }
        Err(error) => {
            console.warn(format_args!("--debuginfod: {error}"));
            None
        }
    }
}

#[cfg(not(feature = "debuginfod"))]
fn debuginfod(console: &Console) -> Option<Arc<dyn RemoteFiles>> {
    console.warn("--debuginfod: this program was built without the client for it");
    None
}

/// Looks for symbols below `paths`, and says what of them cannot be read.
pub(crate) fn symbols(
    paths: &[PathBuf],
    cache: Option<&Cache>,
    servers: &Servers,
    console: &Console,
) -> Result<Symbols, Failure> {
    paths.iter().try_for_each(|path| refuse_pipe(path)).map_err(Failure::Input)?;
    let mut symbols = Symbols::scan(paths, &Meter::new(console));
    if let Some(tables) = cache.and_then(Cache::tables) {
        symbols = symbols.with_cache(tables);
    }
    if let Some(remote) = servers.remote(console) {
        symbols = symbols.with_remote(remote);
    }
    for problem in symbols.problems() {
        console.warn(problem);
    }
    Ok(symbols)
}

/// The architecture that `--arch` names.
pub(crate) fn named_arch(name: &str) -> Result<Arch, Failure> {
    Arch::from_name(name).ok_or_else(|| Failure::Input(format!("--arch: no architecture is called {name:?}")))
}

/// Reads a hexadecimal number with or without `0x`.
pub(crate) fn parse_address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16)
        .map_err(|_| format!("expected a hexadecimal address of at most 64 bits, got {text:?}"))
}
