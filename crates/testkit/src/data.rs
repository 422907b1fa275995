//! Where the data is.

use std::path::{Path, PathBuf};

/// The workspace's folder, whichever crate's tests run and from wherever.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The repository's own test data, `fixtures/`.
pub fn fixtures() -> PathBuf {
    workspace_root().join("fixtures")
}

/// The folder of real-world data, which is no part of the repository: `$BACKTRAIL_CORPUS`, else `../shared/corpus`
/// beside the workspace.
///
/// `None` where there is none; then one line on stderr says so, and the test that asked passes without it.
pub fn corpus() -> Option<PathBuf> {
    let folder = corpus_folder(std::env::var_os("BACKTRAIL_CORPUS").map(PathBuf::from));
    if folder.is_dir() {
        return Some(folder);
    }
    say_absent(&folder);
    None
}

/// One file or folder of the [`corpus`], by its path in there; `None`, with the same line on stderr, where it is
/// absent.
pub fn corpus_file(relative: impl AsRef<Path>) -> Option<PathBuf> {
    let path = corpus()?.join(relative);
    if path.exists() {
        return Some(path);
    }
    say_absent(&path);
    None
}

fn corpus_folder(from_environment: Option<PathBuf>) -> PathBuf {
    from_environment.unwrap_or_else(|| workspace_root().join("../shared/corpus"))
}

#[expect(clippy::print_stderr, reason = "a test that checks nothing has to say so")]
fn say_absent(path: &Path) {
    eprintln!("corpus absent: {} (set BACKTRAIL_CORPUS to its folder)", path.display());
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
        assert_eq!(corpus_folder(Some("/elsewhere".into())), Path::new("/elsewhere"));
        assert!(corpus_folder(None).ends_with("shared/corpus"));
    }
}
