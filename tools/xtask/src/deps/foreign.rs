//! Types of other people's parsers in our public signatures, where each of their breaking releases would be ours.

use crate::source::{SourceFile, is_test_only};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{Item, ReturnType, UseTree, Visibility};

/// Whose types stay inside.
const HIDDEN: [&str; 13] = [
    "elsa",
    "flate2",
    "gimli",
    "lzma_rust2",
    "memmap2",
    "object",
    "rayon",
    "rustc_demangle",
    "ruzstd",
    "self_cell",
    "sha2",
    "toml",
    "zip",
];

/// One line for each public signature of the file that names a hidden crate's type.
///
/// `pub` is taken for public: where an item is not reachable from outside, rustc's `unreachable_pub` says so.
pub(super) fn faults(file: &SourceFile) -> Vec<String> {
    let mut imports = Imports::default();
    imports.visit_file(&file.tree);
    let mut check = Check { file, hidden: imports.names, faults: Vec::new() };
    file.tree.items.iter().for_each(|item| check.item(item));
    check.faults
}

/// The local names under which a file knows things of the hidden crates.
#[derive(Default)]
struct Imports {
    names: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if let UseTree::Path(path) = &item.tree
            && HIDDEN.iter().any(|hidden| path.ident == hidden)
        {
            self.add(&path.tree);
        }
    }
}

impl Imports {
    fn add(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.add(&path.tree),
            UseTree::Name(name) => drop(self.names.insert(name.ident.to_string())),
            UseTree::Rename(rename) => drop(self.names.insert(rename.rename.to_string())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(tree)),
            UseTree::Glob(_) => {}
        }
    }
}

struct Check<'f> {
    file: &'f SourceFile,
    hidden: BTreeSet<String>,
    faults: Vec<String>,
}

impl Check<'_> {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Fn(item) if is_public(&item.vis) => self.visit_signature(&item.sig),
            Item::Struct(item) if is_public(&item.vis) => {
                self.visit_generics(&item.generics);
                self.fields(&item.fields);
            }
            Item::Enum(item) if is_public(&item.vis) => self.visit_item_enum(item),
            Item::Type(item) if is_public(&item.vis) => self.visit_item_type(item),
            Item::Trait(item) if is_public(&item.vis) => self.item_trait(item),
            Item::Const(item) if is_public(&item.vis) => self.visit_type(&item.ty),
            Item::Static(item) if is_public(&item.vis) => self.visit_type(&item.ty),
            Item::Use(item) if is_public(&item.vis) => self.reexport(item),
            Item::Impl(item) => self.item_impl(item),
            Item::Mod(item) if !is_test_only(&item.attrs) => {
                item.content.iter().flat_map(|(_, items)| items).for_each(|item| self.item(item));
            }
            _ => {}
        }
    }

    fn fields(&mut self, fields: &syn::Fields) {
        fields.iter().filter(|field| is_public(&field.vis)).for_each(|field| self.visit_type(&field.ty));
    }

    fn item_trait(&mut self, item: &syn::ItemTrait) {
        self.visit_generics(&item.generics);
        for item in &item.items {
            match item {
                syn::TraitItem::Fn(function) => self.visit_signature(&function.sig),
                other => self.visit_trait_item(other),
            }
        }
    }

    /// Public functions; and `impl From<theirs> for ours`, where ours is one of the file's public types.
    fn item_impl(&mut self, item: &syn::ItemImpl) {
        let Some((trait_path, _)) = &item.trait_ else {
            let functions = item.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(function) if is_public(&function.vis) => Some(&function.sig),
                _ => None,
            });
            return functions.for_each(|signature| self.visit_signature(signature));
        };
        if self.is_public_type_of_file(&item.self_ty) {
            self.visit_path(trait_path);
        }
    }

    fn is_public_type_of_file(&self, ty: &syn::Type) -> bool {
        let syn::Type::Path(path) = ty else { return false };
        let name = path.path.segments.last().map(|segment| &segment.ident);
        self.file.tree.items.iter().any(|item| match item {
            Item::Struct(item) => is_public(&item.vis) && Some(&item.ident) == name,
            Item::Enum(item) => is_public(&item.vis) && Some(&item.ident) == name,
            _ => false,
        })
    }

    fn reexport(&mut self, item: &syn::ItemUse) {
        let first = match &item.tree {
            UseTree::Path(path) => &path.ident,
            UseTree::Name(name) => &name.ident,
            UseTree::Rename(rename) => &rename.ident,
            _ => return,
        };
        if HIDDEN.iter().any(|hidden| first == hidden) || self.hidden.contains(&first.to_string()) {
            self.fault(first.span(), &first.to_string());
        }
    }

    fn fault(&mut self, span: proc_macro2::Span, name: &str) {
        let place = self.file.place(span);
        self.faults.push(format!("{place}: {name} in a public signature; it belongs to another project"));
    }
}

impl<'ast> Visit<'ast> for Check<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first() {
            let name = first.ident.to_string();
            // `object::…` without a leading `crate` may be our own module of that name; then it is not imported.
            let is_foreign = path.segments.len() > 1 && HIDDEN.contains(&name.as_str());
            if is_foreign || self.hidden.contains(&name) {
                self.fault(first.ident.span(), &name);
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.visit_generics(&signature.generics);
        signature.inputs.iter().for_each(|input| self.visit_fn_arg(input));
        if let ReturnType::Type(_, ty) = &signature.output {
            self.visit_type(ty);
        }
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        let tree = syn::parse_file(text).unwrap();
        faults(&SourceFile { path: "x.rs".into(), text: text.to_owned(), tree }).len()
    }

    #[test]
    fn finds_them_where_they_show() {
        assert_eq!(count("pub fn f(x: gimli::Dwarf<u8>) {}"), 1);
        assert_eq!(count("use gimli::{read::Unit as U, Reader}; pub struct S { pub u: Vec<U<u8>> }"), 1);
        assert_eq!(count("use gimli::Reader; impl S { pub fn f<R: Reader>(&self) {} }"), 1);
        assert_eq!(count("pub use object::macho;"), 1);
        assert_eq!(count("pub enum E { A } impl From<object::Error> for E {}"), 1);
        assert_eq!(count("pub enum E { A(zip::result::ZipError) }"), 1);
        assert_eq!(count("pub trait T { fn f(&self) -> memmap2::Mmap; }"), 1);
    }

    #[test]
    fn leaves_the_inside_alone() {
        assert_eq!(count("use gimli::Unit; pub struct S { u: Unit<u8> }"), 0);
        assert_eq!(count("pub(crate) fn f(x: gimli::Dwarf<u8>) {} impl From<object::Error> for Inner {}"), 0);
        assert_eq!(count("pub fn f() { let x: gimli::Dwarf<u8>; }"), 0);
        assert_eq!(count("use crate::object::Object; pub fn f(o: Object) {}"), 0);
    }
}
