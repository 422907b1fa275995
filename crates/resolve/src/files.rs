//! Where the debug files of a path are by custom.

use std::path::{Path, PathBuf};

/// The file itself, or the debug files of a dSYM bundle.
pub(crate) fn debug_files_in(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let directory = path.join("Contents/Resources/DWARF");
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let hidden =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"._"));
    let mut files: Vec<_> = entries.filter(|path| path.is_file() && !hidden(path)).collect();
    files.sort();
    files
}

/// Where a binary's dSYM and tables are by custom: `Foo.dSYM`, `Foo.btsym`, `Foo.gsym` and `Foo.sym` beside `Foo`,
/// `Foo.app.dSYM` beside `Foo.app/Foo`.
pub(crate) fn neighbours(path: &Path) -> Vec<PathBuf> {
    let named = |path: &Path, ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let bundles = path.ancestors().take(2).map(|part| named(part, ".dSYM")).filter(|path| path.is_dir());
    let tables = [".btsym", ".gsym", ".sym"].map(|ending| named(path, ending));
    bundles.chain(tables.into_iter().filter(|path| path.is_file())).collect()
}
