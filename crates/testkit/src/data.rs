//! Where the data is.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// The workspace's directory, whichever crate's tests run and from wherever.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The repository's own test data, `fixtures/`.
pub fn fixtures() -> PathBuf {
    workspace_root().join("fixtures")
}

/// The directory of real-world data, which is no part of the repository: `$BACKTRAIL_CORPUS`, else `../shared/corpus`
/// beside the workspace.
///
/// `None` where there is none: the test that asked passes without it, and one line on stderr says so.
///
/// # Panics
///
/// Where there is none and the environment variable `CI` is set, as services that test every change do: a test that
/// checks nothing must not pass there.
pub fn corpus() -> Option<PathBuf> {
    let directory = corpus_directory(std::env::var_os("BACKTRAIL_CORPUS").map(PathBuf::from));
    if directory.is_dir() {
        return Some(directory);
    }
    not_checked(&absent(&directory));
    None
}

/// One file or directory of the [`corpus`], by its path in there; `None` where it is absent, as there.
///
/// # Panics
///
/// As [`corpus`].
pub fn corpus_file(relative: impl AsRef<Path>) -> Option<PathBuf> {
    let path = corpus()?.join(relative);
    if path.exists() {
        return Some(path);
    }
    not_checked(&absent(&path));
    None
}

fn corpus_directory(from_environment: Option<PathBuf>) -> PathBuf {
    from_environment.unwrap_or_else(|| workspace_root().join("../shared/corpus"))
}

/// Says, once for a test program, that another project's programs are absent, with which a test compares or by which it
/// reads its input. The test then checks nothing, also with `CI` set: no machine has every program.
pub fn not_installed(programs: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let _ = writeln!(std::io::stderr(), "{programs} not installed; tests that need it check nothing");
    });
}

/// Says, once for a test program, why a test of the corpus checks nothing.
///
/// # Panics
///
/// Where `CI` is set.
#[expect(clippy::panic, reason = "fails the test that called")]
fn not_checked(reason: &str) {
    if is_set(std::env::var_os("CI").as_deref()) {
        panic!("{reason}; with CI set, tests of the corpus must run");
    }
    static SAID: Once = Once::new();
    // Written directly: the test harness hides what a passing test prints with `eprintln`.
    SAID.call_once(|| {
        let _ = writeln!(std::io::stderr(), "{reason}; tests of the corpus check nothing");
    });
}

fn absent(path: &Path) -> String {
    format!("corpus absent: {} (set BACKTRAIL_CORPUS to its directory)", path.display())
}

fn is_set(variable: Option<&OsStr>) -> bool {
    variable.is_some_and(|value| !["", "0", "false"].iter().any(|off| value == *off))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_workspace() {
        let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }

    #[test]
    fn the_environment_decides_first() {
        assert_eq!(corpus_directory(Some("/elsewhere".into())), Path::new("/elsewhere"));
        assert!(corpus_directory(None).ends_with("shared/corpus"));
    }

    #[test]
    fn ci_is_set_by_any_value_but_those_that_say_no() {
        for (value, expected) in
            [(Some("true"), true), (Some("1"), true), (Some("0"), false), (Some(""), false)]
        {
            assert_eq!(is_set(value.map(OsStr::new)), expected, "{value:?}");
        }
        assert!(!is_set(None));
    }

    /// The two ways in which an absent corpus ends, in processes with their own environment.
    #[test]
    fn an_absent_corpus_fails_with_ci_and_is_said_once_without() {
        let run = |ci: &str| {
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "data::tests::asks_twice", "--ignored"]);
            command.env("CI", ci).env("BACKTRAIL_CORPUS", "/nowhere").output().unwrap()
        };
        let said = |output: &std::process::Output| {
            let text = [&*output.stdout, &*output.stderr].concat();
            String::from_utf8_lossy(&text).matches("corpus absent: /nowhere").count()
        };
        let (with, without) = (run("true"), run(""));
        assert!(!with.status.success() && said(&with) == 1, "{with:?}");
        assert!(without.status.success() && said(&without) == 1, "{without:?}");
    }

    #[test]
    #[ignore = "run by another test, with an environment of its own"]
    fn asks_twice() {
        assert_eq!(corpus(), None);
        assert_eq!(corpus_file("apple"), None);
    }
}
