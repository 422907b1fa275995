//! Source files into modules with the paths that are written in them.

use super::modules::Modules;
use crate::sh;
use crate::source::{SourceFile, is_test_only};
use proc_macro2::{Span, TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// Every source file by its path.
pub(super) type Files<'f> = BTreeMap<&'f Path, &'f SourceFile>;

/// The modules of the crate with this root file, tests left out.
pub(super) fn modules(root: &SourceFile, files: &Files<'_>) -> Modules {
    let mut modules = Modules::default();
    let own = modules.add("crate", None, &sh::shown_path(&root.path), false);
    let directory = root.path.parent().unwrap_or(&root.path).to_path_buf();
    let mut reader = Reader { files, modules, module: own, file: root, directory };
    reader.items(&root.tree.items);
    reader.modules
}

struct Reader<'f> {
    files: &'f Files<'f>,
    modules: Modules,
    /// The module that is being read.
    module: usize,
    file: &'f SourceFile,
    /// Where the files of its children are.
    directory: PathBuf,
}

impl<'f> Reader<'f> {
    fn items(&mut self, items: &'f [Item]) {
        for item in items {
            if let Some(name) = item_name(item) {
                self.modules.add_item(self.module, name);
            }
        }
        items.iter().for_each(|item| self.visit_item(item));
    }

    /// Reads a module, and comes back to the one around it.
    fn child(&mut self, module: &'f syn::ItemMod) {
        let name = module.ident.to_string();
        let inline = module.content.as_ref().map(|(_, items)| items);
        let file = if inline.is_some() { Some(self.file) } else { self.file_of(module) };
        let Some(file) = file else { return };
        let shown = sh::shown_path(&file.path);
        let child = self.modules.add(&name, Some(self.module), &shown, inline.is_some());
        let is_mod_rs = inline.is_none() && file.path.ends_with("mod.rs");
        let directory = match inline {
            None if is_mod_rs => file.path.parent().unwrap_or(&file.path).to_path_buf(),
            None => file.path.with_extension(""),
            Some(_) => self.directory.join(&name),
        };
        let around = (self.module, self.file, std::mem::replace(&mut self.directory, directory));
        (self.module, self.file) = (child, file);
        self.items(inline.unwrap_or(&file.tree.items));
        (self.module, self.file, self.directory) = around;
    }

    fn file_of(&self, module: &syn::ItemMod) -> Option<&'f SourceFile> {
        let name = module.ident.to_string();
        let stated = module.attrs.iter().find_map(stated_path);
        let candidates = match stated {
            Some(path) => vec![self.file.path.parent()?.join(path)],
            None => {
                vec![self.directory.join(format!("{name}.rs")), self.directory.join(&name).join("mod.rs")]
            }
        };
        candidates.iter().find_map(|path| self.files.get(path.as_path()).copied())
    }

    fn import(&mut self, tree: &UseTree, path: &[String], line: usize) {
        let with = |ident: &syn::Ident| [path, &[ident.to_string()]].concat();
        match tree {
            UseTree::Path(inner) => self.import(&inner.tree, &with(&inner.ident), line),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, path, line)),
            UseTree::Glob(_) => self.modules.add_import(self.module, None, path.to_vec()),
            UseTree::Name(name) if name.ident == "self" => {
                self.imported(path.last().cloned().unwrap_or_default(), path.to_vec(), line);
            }
            UseTree::Name(name) => self.imported(name.ident.to_string(), with(&name.ident), line),
            UseTree::Rename(rename) if rename.ident == "self" => {
                self.imported(rename.rename.to_string(), path.to_vec(), line);
            }
            UseTree::Rename(rename) => {
                self.imported(rename.rename.to_string(), with(&rename.ident), line);
            }
        }
    }

    fn imported(&mut self, name: String, path: Vec<String>, line: usize) {
        self.modules.add_reference(self.module, path.clone(), line);
        self.modules.add_import(self.module, Some(name), path);
    }

    fn refer(&mut self, path: Vec<String>, span: Span) {
        self.modules.add_reference(self.module, path, span.start().line);
    }

    /// Paths in what only the macro understands: `a::b`, and names of types. A lone `a` may be a variable.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut colons, mut span) = (0, Span::call_site());
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.token_path(std::mem::take(&mut path), span);
                    }
                    if path.is_empty() {
                        span = ident.span();
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.token_path(std::mem::take(&mut path), span);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.token_path(path, span);
    }

    fn token_path(&mut self, path: Vec<String>, span: Span) {
        if path.len() > 1 || path.first().is_some_and(|name| name.starts_with(char::is_uppercase)) {
            self.refer(path, span);
        }
    }
}

impl<'ast: 'f, 'f> Visit<'ast> for Reader<'f> {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).is_some_and(is_test_only) {
            return;
        }
        match item {
            Item::Mod(module) => self.child(module),
            Item::Use(item) => self.import(&item.tree, &[], item.span().start().line),
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.refer(names, path.span());
        visit::visit_path(self, path);
    }

    /// A lone name that is neither called nor a type is a variable.
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let is_variable = |name: &syn::Ident| !name.to_string().starts_with(char::is_uppercase);
        if !path.path.get_ident().is_some_and(is_variable) {
            visit::visit_expr_path(self, path);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        match &*call.func {
            syn::Expr::Path(path) => self.visit_path(&path.path),
            function => self.visit_expr(function),
        }
        call.args.iter().for_each(|argument| self.visit_expr(argument));
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    /// `#[serde(with = "crate::hex")]` is a path too.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let syn::Meta::List(list) = &attribute.meta else { return };
        for token in list.tokens.clone() {
            let TokenTree::Literal(literal) = token else { continue };
            let text = syn::parse2::<syn::LitStr>(TokenTree::Literal(literal.clone()).into());
            let path = text.ok().and_then(|text| text.parse::<syn::Path>().ok());
            let Some(path) = path.filter(|path| path.segments.len() > 1) else { continue };
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.refer(names, literal.span());
        }
    }

    /// `pub(in crate::a)` uses nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// The path of `#[path = "…"]`.
fn stated_path(attribute: &Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) if pair.path.is_ident("path") => {
            Some(text.value())
        }
        _ => None,
    }
}

fn item_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    (!attributes(item).is_some_and(is_test_only)).then(|| name.to_string())
}

fn attributes(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return None,
    })
}
