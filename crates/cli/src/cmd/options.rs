//! Options and values that several commands have.

use crate::io::console::Console;
use crate::io::file::refuse_pipe;
use crate::io::progress::Meter;
use crate::io::text::{Escaping, Style};
use crate::outcome::Failure;
use backtrail::{Arch, FileData, RemoteFiles, Rules, Symbols};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
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
    /// The servers to ask: those among what `-s` names, and debuginfod's. That there are none, or that some cannot be asked, is said: the
    /// work goes on without them.
    pub(crate) fn remote(&self, symbols: &[PathBuf], console: &Console) -> Option<Arc<dyn RemoteFiles>> {
        let own: Vec<_> = symbols.iter().filter_map(|path| server(path)).map(with_token).collect();
        if self.debuginfod || !own.is_empty() { debuginfod(self.debuginfod, own, console) } else { None }
    }
}

/// The address of a server of symbols, where a path is one.
fn server(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)))
}

/// What of `-s` is on this machine.
pub(crate) fn local(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter(|path| server(path).is_none()).cloned().collect()
}

/// An address with the token of BACKTRAIL_TOKEN, as `upload` takes it, where it has none: others see the command line.
fn with_token(address: &str) -> String {
    let token = std::env::var("BACKTRAIL_TOKEN").ok();
    let token =
        token.filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    match token.filter(|_| !rest.split('/').next().unwrap_or_default().contains('@')) {
        Some(token) => format!("{scheme}://{token}@{rest}"),
        None => address.to_owned(),
    }
}

#[cfg(feature = "debuginfod")]
fn debuginfod(asks_others: bool, own: Vec<String>, console: &Console) -> Option<Arc<dyn RemoteFiles>> {
    let mut options = backtrail::DebuginfodOptions::from_environment();
    if !asks_others {
        options.urls.clear();
    } else if options.urls.is_empty() && !own.is_empty() {
        console.warn(format_args!("--debuginfod: {}", backtrail::DebuginfodError::NoServer));
    }
    options.symbol_servers = own;
    match backtrail::Debuginfod::new(options) {
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
fn debuginfod(_: bool, _: Vec<String>, console: &Console) -> Option<Arc<dyn RemoteFiles>> {
    console.warn("servers of symbols: this program was built without the client for them");
    None
}

/// What tells libraries inside of apps apart.
#[derive(Args, Debug, Default)]
pub(crate) struct Libraries {
    /// Fingerprints of static libraries (.btsdk, see `sdk learn`), or a directory of them: tells whose the frames inside of the
    /// app's binary are. The binary itself is looked for below -s, by its id. Repeatable.
    #[arg(long, value_name = "PATH")]
    sdk: Vec<PathBuf>,
    /// The linker's map of the very build that crashed: then its word is taken. Repeatable.
    #[arg(long, value_name = "F")]
    link_map: Vec<PathBuf>,
}

impl Libraries {
    /// Their files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.sdk.iter().chain(&self.link_map).map(PathBuf::as_path)
    }

    /// Makes `symbols` tell them apart.
    pub(crate) fn add_to(&self, symbols: Symbols) -> Result<Symbols, Failure> {
        self.paths().try_for_each(refuse_pipe).map_err(Failure::Input)?;
        let sources = backtrail::sdk::owner_sources(&self.sdk, &self.link_map);
        Ok(symbols.with_owners(sources.map_err(|error| Failure::Input(error.to_string()))?))
    }
}

/// The user's own rules.
#[derive(Args, Debug, Default)]
pub(crate) struct RulesFile {
    /// Rules of your own, as TOML: whose code is whose, by symbol, module, path or team. See docs/rules.md.
    #[arg(long = "rules", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl RulesFile {
    /// Its path.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What it says.
    pub(crate) fn read(&self) -> Result<Rules, Failure> {
        let Some(path) = &self.file else { return Ok(Rules::default()) };
        refuse_pipe(path).map_err(Failure::Input)?;
        let data = FileData::map(path).map_err(|error| Failure::Input(error.to_string()))?;
        Rules::parse(&data, &path.display().to_string()).map_err(|error| Failure::Input(error.to_string()))
    }
}

/// What names the frames of reports, and tells whose they are.
#[derive(Args, Debug)]
pub(crate) struct NamesAndOwners {
    /// Where to look for symbols: a file, a directory searched recursively, or a server of `backtrail serve`
    /// (https://HOST/symbols/PROJECT, with the token of BACKTRAIL_TOKEN). Repeatable.
    #[arg(short, long, value_name = "PATH")]
    symbols: Vec<PathBuf>,
    #[command(flatten)]
    servers: Servers,
    #[command(flatten)]
    cache: Cache,
    #[command(flatten)]
    libraries: Libraries,
    #[command(flatten)]
    rules: RulesFile,
}

impl NamesAndOwners {
    /// What the user named, which no output may be written over.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let symbols = self.symbols.iter().map(PathBuf::as_path);
        symbols.chain(self.libraries.paths()).chain(self.rules.path())
    }

    /// What the file of rules says.
    pub(crate) fn rules(&self) -> Result<Rules, Failure> {
        self.rules.read()
    }

    /// Looks for symbols, and says what of them cannot be read.
    pub(crate) fn symbols(&self, console: &Console) -> Result<Symbols, Failure> {
        self.libraries.add_to(symbols(&self.symbols, Some(&self.cache), &self.servers, console)?)
    }
}

/// Looks for symbols below `paths`, and says what of them cannot be read.
pub(crate) fn symbols(
    paths: &[PathBuf],
    cache: Option<&Cache>,
    servers: &Servers,
    console: &Console,
) -> Result<Symbols, Failure> {
    let remote = servers.remote(paths, console);
    let paths = local(paths);
    paths.iter().try_for_each(|path| refuse_pipe(path)).map_err(Failure::Input)?;
    let mut symbols = Symbols::scan(&paths, &Meter::new(console));
    if let Some(tables) = cache.and_then(Cache::tables) {
        symbols = symbols.with_cache(tables);
    }
    if let Some(remote) = remote {
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
