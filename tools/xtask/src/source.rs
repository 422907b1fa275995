//! The crates' source files, parsed.

use crate::{Result, sh};
use proc_macro2::Span;
use std::path::{Path, PathBuf};

/// One source file.
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) tree: syn::File,
}

/// Every Rust file below `src` of the crates and of the tools that are our own code, but for those that hold tests only.
pub(crate) fn all() -> Result<Vec<SourceFile>> {
    let mut packages = sh::entries(&sh::root().join("crates"));
    packages.extend(["accuracy", "steps", "xtask"].map(|name| sh::tools().join(name)));
    let paths = packages.iter().flat_map(|package| sh::files(&package.join("src"), "rs"));
    paths.filter(|path| !is_test_file(path)).map(|path| parse(&path)).collect()
}

/// `tests.rs` and what lies in a directory `tests/`: by house rule only tests.
fn is_test_file(path: &Path) -> bool {
    let in_source = path.strip_prefix(sh::root()).unwrap_or(path);
    in_source.iter().any(|part| part == "tests" || part == "tests.rs")
}

fn parse(path: &Path) -> Result<SourceFile> {
    let text = sh::read(path)?;
    let tree = syn::parse_file(&text)
        .map_err(|error| format!("{}:{}: {error}", sh::shown_path(path), error.span().start().line))?;
    Ok(SourceFile { path: path.to_path_buf(), text, tree })
}

impl SourceFile {
    /// `path:line`, as editors and terminals understand it.
    pub(crate) fn place(&self, span: Span) -> String {
        format!("{}:{}", sh::shown_path(&self.path), span.start().line)
    }
}

/// Whether an item is compiled for tests only.
pub(crate) fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test_cfg = || match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string() == "test",
            _ => false,
        };
        attribute.path().is_ident("test") || (attribute.path().is_ident("cfg") && is_test_cfg())
    })
}
