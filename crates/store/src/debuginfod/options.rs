//! Which servers are asked, and within which bounds.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Which debuginfod servers are asked, where their files are kept, and what that may cost.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DebuginfodOptions {
    /// The servers' addresses, asked in this order; as in `DEBUGINFOD_URLS` they may hold `ima:` settings.
    pub urls: Vec<String>,
    /// Servers with symbols of one's own, such as `https://TOKEN@HOST/symbols/PROJECT` of `backtrail serve`: asked before the
    /// others, and for Apple's files, by their UUIDs, too.
    pub symbol_servers: Vec<String>,
    /// Where files are kept, in elfutils' layout; shared with gdb and all other programs that use libdebuginfod.
    pub cache_directory: PathBuf,
    /// How long a server may take to answer, and to send each 100 KiB of a file.
    pub timeout: Duration,
    /// How long a file may take altogether.
    pub max_time: Duration,
    /// Size of one file.
    pub max_bytes: u64,
    /// Size of all files that are fetched by one [`Debuginfod`](crate::Debuginfod).
    pub max_total_bytes: u64,
    /// Size of the directory. Beyond it, files go that were not used for the longest time.
    pub max_cache_bytes: u64,
    /// Files that are fetched at the same time.
    pub parallel: usize,
}

impl Default for DebuginfodOptions {
    /// No server; the cache and the bounds of a program without settings.
    fn default() -> Self {
        Self::of_variables(&|_| None)
    }
}

impl DebuginfodOptions {
    /// What the environment says: `DEBUGINFOD_URLS`, `DEBUGINFOD_CACHE_PATH`, `DEBUGINFOD_TIMEOUT`, `DEBUGINFOD_MAXTIME`,
    /// `DEBUGINFOD_MAXSIZE`, as libdebuginfod reads them.
    pub fn from_environment() -> Self {
        Self::of_variables(&|name| std::env::var_os(name))
    }

    fn of_variables(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let number = |name: &str| {
            let text = variable(name)?.into_string().ok()?;
            text.trim().parse::<u64>().ok().filter(|number| *number > 0)
        };
        let urls = variable("DEBUGINFOD_URLS").unwrap_or_default();
        let urls = urls.to_string_lossy().split_ascii_whitespace().map(str::to_owned).collect();
        Self {
            urls,
            symbol_servers: Vec::new(),
            cache_directory: cache_directory(variable),
            timeout: Duration::from_secs(number("DEBUGINFOD_TIMEOUT").unwrap_or(90)),
            max_time: Duration::from_secs(number("DEBUGINFOD_MAXTIME").unwrap_or(3600)),
            max_bytes: number("DEBUGINFOD_MAXSIZE").unwrap_or(8 << 30),
            max_total_bytes: 32 << 30,
            max_cache_bytes: 32 << 30,
            parallel: 4,
        }
    }
}

/// As in libdebuginfod: a directory of the time before there was a standard counts if it is there.
fn cache_directory(variable: &dyn Fn(&str) -> Option<OsString>) -> PathBuf {
    let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(path) = variable("DEBUGINFOD_CACHE_PATH").filter(|path| !path.is_empty()) {
        return path.into();
    }
    let home = path("HOME").or_else(std::env::home_dir).unwrap_or_else(|| "/".into());
    let old = home.join(".debuginfod_client_cache");
    if old.is_dir() {
        return old;
    }
    path("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache")).join("debuginfod_client")
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    fn options(variables: &[(&str, &str)]) -> DebuginfodOptions {
        let find =
            |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
        DebuginfodOptions::of_variables(&find)
    }

    #[test]
    fn the_environment_is_read_as_elfutils_reads_it() {
        let all = options(&[
            ("DEBUGINFOD_URLS", " http://a  https://b/x "),
            ("DEBUGINFOD_TIMEOUT", "5"),
            ("DEBUGINFOD_MAXSIZE", "1000"),
            ("DEBUGINFOD_MAXTIME", "no number"),
            ("DEBUGINFOD_CACHE_PATH", "here"),
        ]);
        assert_eq!(all.urls, ["http://a", "https://b/x"]);
        assert_eq!((all.timeout, all.max_bytes), (Duration::from_secs(5), 1000));
        assert_eq!((all.max_time, all.cache_directory), (Duration::from_secs(3600), "here".into()));
    }

    #[test]
    fn the_cache_lies_where_elfutils_has_it() {
        let home = TempDir::new("debuginfod-home");
        let home_text = home.path().to_str().unwrap();
        let lies = |variables: &[(&str, &str)]| options(variables).cache_directory;
        assert_eq!(lies(&[("HOME", home_text)]), home.path().join(".cache/debuginfod_client"));
        assert_eq!(
            lies(&[("HOME", home_text), ("XDG_CACHE_HOME", "/x")]),
            PathBuf::from("/x/debuginfod_client")
        );
        std::fs::create_dir(home.path().join(".debuginfod_client_cache")).unwrap();
        let old = lies(&[("HOME", home_text), ("XDG_CACHE_HOME", "/x")]);
        assert_eq!(old, home.path().join(".debuginfod_client_cache"));
        assert_eq!(lies(&[("HOME", home_text), ("DEBUGINFOD_CACHE_PATH", "/y")]), PathBuf::from("/y"));
    }
}
