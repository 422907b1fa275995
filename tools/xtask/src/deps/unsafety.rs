//! Unsafe code outside the seams that own it.

use crate::sh;
use crate::source::SourceFile;
use syn::visit::{self, Visit};

/// Where unsafe code may be: the operating system's calls, the one file that maps files, the border to C, and the tests'
/// allocator.
const SEAMS: [&str; 5] = [
    "crates/sys/src/",
    "crates/store/src/map.rs",
    "crates/ffi/src/",
    "crates/altstack/",
    "crates/testkit/src/allocator.rs",
];
/// Crates that hold a seam, so that their root denies unsafe code (and the seam allows it) instead of forbidding it.
const SEAM_ROOTS: [&str; 5] = [
    "crates/sys/src/lib.rs",
    "crates/store/src/lib.rs",
    "crates/altstack/src/lib.rs",
    "crates/ffi/src/lib.rs",
    "crates/testkit/src/lib.rs",
];

/// One line for each unsafe block, function, impl or `allow(unsafe_code)` outside the seams, and for each crate
/// root that does not forbid them.
pub(super) fn faults(files: &[SourceFile]) -> Vec<String> {
    files.iter().flat_map(file_faults).collect()
}

fn file_faults(file: &SourceFile) -> Vec<String> {
    let name = sh::shown_path(&file.path);
    let mut faults = Vec::new();
    if is_crate_root(&name) && !SEAM_ROOTS.contains(&name.as_str()) && !forbids(&file.tree) {
        faults.push(format!("{name}:1: the crate does not say #![forbid(unsafe_code)]"));
    }
    if !SEAMS.iter().any(|seam| name.starts_with(seam)) {
        let mut finder = Finder { file, faults: Vec::new(), is_root: SEAM_ROOTS.contains(&name.as_str()) };
        finder.visit_file(&file.tree);
        faults.append(&mut finder.faults);
    }
    faults
}

fn is_crate_root(name: &str) -> bool {
    name.ends_with("/src/lib.rs") || name.ends_with("/src/main.rs")
}

fn forbids(tree: &syn::File) -> bool {
    tree.attrs
        .iter()
        .any(|attribute| attribute.path().is_ident("forbid") && tokens(attribute).contains("unsafe_code"))
}

fn tokens(attribute: &syn::Attribute) -> String {
    match &attribute.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    }
}

struct Finder<'f> {
    file: &'f SourceFile,
    faults: Vec<String>,
    is_root: bool,
}

impl Finder<'_> {
    fn fault(&mut self, span: proc_macro2::Span) {
        self.faults.push(format!("{}: unsafe outside the seams {SEAMS:?}", self.file.place(span)));
    }

    fn check(&mut self, keyword: Option<&syn::token::Unsafe>) {
        if let Some(keyword) = keyword {
            self.fault(keyword.span);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.check(Some(&block.unsafe_token));
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if let syn::Safety::Unsafe(keyword) = &signature.safety {
            self.check(Some(keyword));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.check(item.unsafety.as_ref());
        visit::visit_item_impl(self, item);
    }

    fn visit_item_foreign_mod(&mut self, item: &'ast syn::ItemForeignMod) {
        self.fault(item.abi.extern_token.span);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let allows = attribute.path().is_ident("allow") || attribute.path().is_ident("expect");
        // A seam's root may carry the allowance on the `mod` line instead of in the file.
        if allows && !self.is_root && tokens(attribute).contains("unsafe_code") {
            self.fault(attribute.pound_token.span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        let tree = syn::parse_file(text).unwrap();
        file_faults(&SourceFile { path: sh::root().join(path), text: text.to_owned(), tree }).len()
    }

    #[test]
    fn only_the_seams_may() {
        let text = "fn f() { unsafe { g() } }";
        assert_eq!(count("crates/object/src/elf.rs", text), 1);
        assert_eq!(count("crates/store/src/map.rs", text), 0);
        assert_eq!(count("crates/object/src/elf.rs", "unsafe impl Send for X {}"), 1);
        assert_eq!(count("crates/object/src/elf.rs", "#[allow(unsafe_code)] mod m {}"), 1);
    }

    #[test]
    fn roots_forbid() {
        assert_eq!(count("crates/object/src/lib.rs", "//! Text."), 1);
        assert_eq!(count("crates/object/src/lib.rs", "#![forbid(unsafe_code)]"), 0);
        assert_eq!(count("crates/store/src/lib.rs", "#[allow(unsafe_code)] mod map;"), 0);
    }
}
