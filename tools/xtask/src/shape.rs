//! `shape`: files and functions that grew too long to read in one go, files that use each other in a circle, and files
//! that are too large to keep in the repository, such as a core that a test left.
//!
//! House rule: a file aims at 400 lines, a function at 40. What is longer gets listed; what is far longer, and every
//! circle, needs a line with the reason in `tools/xtask/shape.allow`.

mod circles;
mod modules;
mod read;

use crate::source::{SourceFile, is_test_only};
use crate::{Result, sh, source};
use std::collections::BTreeMap;
use std::process::Command;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// What is longer than its limit, with the reason.
const ALLOWED: &str = "tools/xtask/shape.allow";

const FILE_AIM: usize = 400;
const FILE_LIMIT: usize = 600;
const FUNCTION_AIM: usize = 40;
const FUNCTION_LIMIT: usize = 100;
/// Bytes of a file that the repository keeps: fixtures are small, and a core is not.
const KEPT_LIMIT: u64 = 256 << 10;

/// Something with a length: a file (`crates/a/src/b.rs`) or a function (`crates/a/src/b.rs::name`).
struct Piece {
    name: String,
    lines: usize,
    limit: usize,
}

pub(crate) fn run(_: &[String]) -> Result<()> {
    let mut allowed = allowed()?;
    let files = source::all()?;
    let mut pieces: Vec<Piece> = files.iter().flat_map(long_pieces).collect();
    pieces.sort_by(|a, b| b.lines.cmp(&a.lines).then_with(|| a.name.cmp(&b.name)));
    let mut faults = Vec::new();
    for Piece { name, lines, limit } in pieces {
        match allowed.remove(&name) {
            Some(reason) => println!("{lines:5}  {name}  ({reason})"),
            None if lines > limit => faults.push(format!("{name}: {lines} lines, the limit is {limit}")),
            None => println!("{lines:5}  {name}"),
        }
    }
    for circle in circles::all(&files) {
        match allowed.remove(&circle.name) {
            Some(reason) => println!("circle {}  ({reason})", circle.name),
            None => faults.push(format!("a circle: {}\n    {}", circle.name, circle.uses.join("\n    "))),
        }
    }
    faults.extend(large_files()?);
    let unused = |name| format!("{ALLOWED}: {name} is not that long, no circle, or gone");
    faults.extend(allowed.into_keys().map(unused));
    sh::faults(&faults)
}

/// What the repository keeps and is too large. Nothing is known where git is not: an unpacked archive.
fn large_files() -> Result<Vec<String>> {
    if !sh::root().join(".git").exists() {
        return Ok(Vec::new());
    }
    let kept = sh::output(Command::new("git").args(["ls-files", "-z"]).current_dir(sh::root()))?;
    let size = |name: &str| Some(std::fs::metadata(sh::root().join(name)).ok()?.len());
    let sized = kept.split_terminator('\0').filter_map(|name| Some((name, size(name)?)));
    let large = sized.filter(|&(_, size)| size > KEPT_LIMIT);
    Ok(large.map(|(name, size)| format!("{name}: {size} bytes, the limit is {KEPT_LIMIT}")).collect())
}

/// `name: reason`, one a line; `#` starts a comment.
fn allowed() -> Result<BTreeMap<String, String>> {
    let text = sh::read(&sh::root().join(ALLOWED))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.rsplit_once(": ") {
            Some((name, reason)) => Ok((name.trim().to_owned(), reason.trim().to_owned())),
            None => Err(format!("{ALLOWED}: no reason in {line:?}")),
        })
        .collect()
}

fn long_pieces(file: &SourceFile) -> Vec<Piece> {
    let name = sh::shown_path(&file.path);
    let tests: usize = file.tree.items.iter().filter_map(test_module_lines).sum();
    let lines = file.text.lines().count().saturating_sub(tests);
    let mut functions = Functions { file: &name, pieces: Vec::new() };
    functions.visit_file(&file.tree);
    let mut pieces = functions.pieces;
    if lines > FILE_AIM {
        pieces.push(Piece { name, lines, limit: FILE_LIMIT });
    }
    pieces
}

/// Lines of a `#[cfg(test)] mod`, which do not count.
fn test_module_lines(item: &syn::Item) -> Option<usize> {
    match item {
        syn::Item::Mod(module) if is_test_only(&module.attrs) => Some(lines(module)),
        _ => None,
    }
}

fn lines(node: &impl Spanned) -> usize {
    let span = node.span();
    span.end().line - span.start().line + 1
}

struct Functions<'f> {
    file: &'f str,
    pieces: Vec<Piece>,
}

impl Functions<'_> {
    fn check(&mut self, name: &syn::Ident, block: &syn::Block) {
        let lines = lines(block);
        if lines > FUNCTION_AIM {
            self.pieces.push(Piece { name: format!("{}::{name}", self.file), lines, limit: FUNCTION_LIMIT });
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_test_only(&function.attrs) {
            self.check(&function.sig.ident, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.check(&function.sig.ident, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.check(&function.sig.ident, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
