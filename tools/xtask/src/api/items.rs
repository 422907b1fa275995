//! The items that can be reached from a crate's root, across the crates that they are defined in.

use super::types::{Names, bounds, definition, generics, path, signature, type_, where_clause};
use crate::Result;
use rustdoc_types::{
    Attribute, Crate, Enum, GenericParamDef, GenericParamDefKind, Id, Impl, Item, ItemEnum, Struct,
    StructKind, Trait, Use, VariantKind, Visibility,
};
use std::collections::{BTreeMap, BTreeSet};

/// How deep modules and re-exports of modules may nest; two that re-export each other would nest for ever.
const MAX_DEPTH: usize = 16;

/// Our crates by name, with their items by the path of their definition.
#[derive(Default)]
pub(super) struct Crates {
    all: BTreeMap<String, Known>,
}

struct Known {
    documented: Crate,
    definitions: BTreeMap<String, Id>,
}

/// An item where users find it.
#[derive(Clone)]
struct Place<'c> {
    /// As they write it.
    public: String,
    documented: &'c Crate,
    item: &'c Item,
}

impl Crates {
    pub(super) fn add(&mut self, name: String, documented: Crate) {
        let own = documented.paths.iter().filter(|(_, summary)| summary.crate_id == 0);
        let definitions = own.map(|(id, summary)| (summary.path.join("::"), *id)).collect();
        self.all.insert(name, Known { documented, definitions });
    }

    /// An item by its id in one of the crates, in the crate that defines it. `None` for other people's.
    fn defined<'c>(&'c self, within: &'c Crate, id: Id) -> Option<(&'c Crate, &'c Item)> {
        if let Some(item) = within.index.get(&id) {
            return Some((within, item));
        }
        let summary = within.paths.get(&id)?;
        let known = self.all.get(summary.path.first()?)?;
        let item = known.documented.index.get(known.definitions.get(&summary.path.join("::"))?)?;
        Some((&known.documented, item))
    }
}

/// Traits that no program names: the compiler's own.
const UNSTABLE: [&str; 3] = ["Freeze", "StructuralPartialEq", "UnsafeUnpin"];

/// Items in the order of their names, each followed by what belongs to it; then what signatures name and users cannot.
pub(super) fn text(crates: &Crates, facade: &str) -> Result<String> {
    let root = crates.all.get(facade).ok_or_else(|| format!("no documentation of {facade}"))?;
    let mut reach = Reach { crates, places: Vec::new(), others: BTreeSet::new() };
    reach.module(&root.documented, root.documented.root, facade, 0);
    let mut names = Names::default();
    names.ours.extend(crates.all.keys().cloned());
    for place in &reach.places {
        names.add(definition(place.documented, place.item.id), &place.public);
    }
    // A module and a function may have one name.
    let places =
        reach.places.iter().map(|place| ((&place.public, place.item.inner.item_kind() as u8), place));
    let places: BTreeMap<_, _> = places.collect();
    let mut lines: Vec<_> = reach.others.into_iter().collect();
    for place in places.values() {
        let mut lister = Lister { place, names: &names, lines: Vec::new() };
        lister.item(&place.public, place.item);
        // What the item is comes first.
        lister.lines.get_mut(1..).unwrap_or_default().sort_unstable();
        lines.append(&mut lister.lines);
    }
    let mut text = lines.join("\n");
    text.push('\n');
    let unreachable = names.unreachable();
    if !unreachable.is_empty() {
        text.push_str("\nIn signatures, but not re-exported:\n");
        unreachable.iter().for_each(|name| text.push_str(&format!("{name}\n")));
    }
    Ok(text)
}

struct Reach<'c> {
    crates: &'c Crates,
    places: Vec<Place<'c>>,
    /// Lines for what other people's crates define.
    others: BTreeSet<String>,
}

impl<'c> Reach<'c> {
    fn module(&mut self, documented: &'c Crate, module: Id, public: &str, depth: usize) {
        let items = match documented.index.get(&module).map(|item| &item.inner) {
            Some(ItemEnum::Module(module)) => &module.items,
            // `use Kind::*`.
            Some(ItemEnum::Enum(of_variants)) => &of_variants.variants,
            _ => return,
        };
        if depth > MAX_DEPTH {
            return;
        }
        for item in items.iter().filter_map(|id| documented.index.get(id)) {
            match &item.inner {
                ItemEnum::Use(import) => self.import(documented, import, public, depth),
                _ => {
                    let name = item.name.as_deref().unwrap_or_default();
                    self.item(documented, item, &format!("{public}::{name}"), depth);
                }
            }
        }
    }

    fn import(&mut self, documented: &'c Crate, import: &Use, public: &str, depth: usize) {
        let found = import.id.and_then(|id| self.crates.defined(documented, id));
        let name = format!("{public}::{}", import.name);
        match found {
            Some((owner, item)) if import.is_glob => self.module(owner, item.id, public, depth + 1),
            Some((owner, item)) => match &item.inner {
                ItemEnum::Use(further) => self.import(owner, further, public, depth + 1),
                _ => self.item(owner, item, &name, depth),
            },
            None => drop(self.others.insert(format!("pub use {name} = {}", import.source))),
        }
    }

    fn item(&mut self, documented: &'c Crate, item: &'c Item, public: &str, depth: usize) {
        self.places.push(Place { public: public.to_owned(), documented, item });
        if matches!(item.inner, ItemEnum::Module(_)) {
            self.module(documented, item.id, public, depth + 1);
        }
    }
}

/// Writes the lines of one item.
struct Lister<'a, 'c> {
    place: &'a Place<'c>,
    names: &'a Names,
    lines: Vec<String>,
}

impl Lister<'_, '_> {
    fn line(&mut self, item: &Item, text: &str) {
        let mut line = String::new();
        if item.attrs.contains(&Attribute::NonExhaustive) {
            line.push_str("#[non_exhaustive] ");
        }
        if item.deprecation.is_some() {
            line.push_str("#[deprecated] ");
        }
        line.push_str(text);
        self.lines.push(line);
    }

    fn scope(&self) -> super::types::Scope<'_> {
        super::types::Scope { documented: self.place.documented, names: self.names }
    }

    fn of_ids(&self, ids: &[Id]) -> Vec<&Item> {
        ids.iter().filter_map(|id| self.place.documented.index.get(id)).collect()
    }

    fn item(&mut self, public: &str, item: &Item) {
        let scope = self.scope();
        let text = match &item.inner {
            ItemEnum::Module(_) => format!("pub mod {public}"),
            ItemEnum::Struct(inner) => return self.structure(public, item, inner),
            ItemEnum::Enum(inner) => return self.enumeration(public, item, inner),
            ItemEnum::Trait(inner) => return self.trait_(public, item, inner),
            ItemEnum::Function(inner) => {
                format!("pub {}", signature(&scope, public, inner))
            }
            ItemEnum::TypeAlias(inner) => {
                let parameters = generics(&scope, &inner.generics);
                format!("pub type {public}{parameters} = {}", type_(&scope, &inner.type_))
            }
            ItemEnum::Constant { type_: of, .. } => format!("pub const {public}: {}", type_(&scope, of)),
            ItemEnum::Static(inner) => format!("pub static {public}: {}", type_(&scope, &inner.type_)),
            ItemEnum::Macro(_) | ItemEnum::ProcMacro(_) => format!("pub macro {public}!"),
            other => format!("pub {:?} {public}", other.item_kind()),
        };
        self.line(item, &text);
    }

    fn structure(&mut self, public: &str, item: &Item, inner: &Struct) {
        let scope = self.scope();
        let head = format!("pub struct {public}{}", generics(&scope, &inner.generics));
        let tail = where_clause(&scope, &inner.generics);
        let (body, fields) = match &inner.kind {
            StructKind::Unit => (String::new(), Vec::new()),
            StructKind::Tuple(fields) => (self.tuple(fields), Vec::new()),
            StructKind::Plain { fields, has_stripped_fields } => {
                (if *has_stripped_fields { " { … }" } else { "" }.to_owned(), fields.clone())
            }
        };
        self.line(item, &format!("{head}{body}{tail}"));
        self.fields(public, &fields);
        self.impls(public, &inner.impls);
    }

    /// A tuple's types; those of private fields are `_`.
    fn tuple(&self, fields: &[Option<Id>]) -> String {
        let scope = self.scope();
        let of_field = |id: &Option<Id>| {
            let item = id.and_then(|id| self.place.documented.index.get(&id));
            match item.map(|item| &item.inner) {
                Some(ItemEnum::StructField(of)) => type_(&scope, of),
                _ => "_".to_owned(),
            }
        };
        format!("({})", fields.iter().map(of_field).collect::<Vec<_>>().join(", "))
    }

    fn fields(&mut self, public: &str, fields: &[Id]) {
        let scope = self.scope();
        let fields: Vec<_> = self.of_ids(fields).into_iter().cloned().collect();
        let lines: Vec<_> = fields
            .iter()
            .filter_map(|field| match &field.inner {
                ItemEnum::StructField(of) => {
                    let name = field.name.as_deref().unwrap_or_default();
                    Some(format!("pub {public}::{name}: {}", type_(&scope, of)))
                }
                _ => None,
            })
            .collect();
        fields.iter().zip(lines).for_each(|(field, line)| self.line(field, &line));
    }

    fn enumeration(&mut self, public: &str, item: &Item, inner: &Enum) {
        let scope = self.scope();
        let head = format!("pub enum {public}{}", generics(&scope, &inner.generics));
        let tail = where_clause(&scope, &inner.generics);
        self.line(item, &format!("{head}{tail}"));
        let variants: Vec<_> = self.of_ids(&inner.variants).into_iter().cloned().collect();
        for variant in variants {
            let ItemEnum::Variant(of) = &variant.inner else { continue };
            let name = format!("{public}::{}", variant.name.as_deref().unwrap_or_default());
            match &of.kind {
                VariantKind::Plain => self.line(&variant, &format!("pub {name}")),
                VariantKind::Tuple(fields) => {
                    let fields = self.tuple(fields);
                    self.line(&variant, &format!("pub {name}{fields}"));
                }
                VariantKind::Struct { fields, .. } => {
                    self.line(&variant, &format!("pub {name} {{}}"));
                    self.fields(&name, fields);
                }
            }
        }
        self.impls(public, &inner.impls);
    }

    fn trait_(&mut self, public: &str, item: &Item, inner: &Trait) {
        let scope = self.scope();
        let bounds = bounds(&scope, &inner.bounds);
        let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
        let (parameters, tail) = (generics(&scope, &inner.generics), where_clause(&scope, &inner.generics));
        let unsafety = if inner.is_unsafe { "unsafe " } else { "" };
        self.line(item, &format!("pub {unsafety}trait {public}{parameters}{bounds}{tail}"));
        let members: Vec<_> = self.of_ids(&inner.items).into_iter().cloned().collect();
        members.iter().for_each(|member| self.member(public, member, false));
    }

    /// A function, constant or type of a trait or an `impl`.
    fn member(&mut self, public: &str, member: &Item, is_public: bool) {
        let scope = self.scope();
        let name = format!("{public}::{}", member.name.as_deref().unwrap_or_default());
        let prefix = if is_public { "pub " } else { "" };
        let text = match &member.inner {
            ItemEnum::Function(inner) => {
                let provided = if !is_public && inner.has_body { " { … }" } else { "" };
                format!("{prefix}{}{provided}", signature(&scope, &name, inner))
            }
            ItemEnum::AssocConst { type_: of, .. } => format!("{prefix}const {name}: {}", type_(&scope, of)),
            ItemEnum::AssocType { type_: of, bounds: all, .. } => {
                let bounds = bounds(&scope, all);
                let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
                let value = of.as_ref().map(|of| format!(" = {}", type_(&scope, of))).unwrap_or_default();
                format!("{prefix}type {name}{bounds}{value}")
            }
            _ => return,
        };
        self.line(member, &text);
    }

    /// Own functions, and the traits that a type has. What the compiler finds out by itself (`Send`) is told where it
    /// is not so.
    fn impls(&mut self, public: &str, impls: &[Id]) {
        let impls: Vec<_> = self.of_ids(impls).into_iter().cloned().collect();
        // The traits of each form of the type.
        let mut traits: BTreeMap<[String; 3], BTreeSet<String>> = BTreeMap::new();
        for item in &impls {
            let ItemEnum::Impl(inner) = &item.inner else { continue };
            let members: Vec<_> = self.of_ids(&inner.items).into_iter().cloned().collect();
            match &inner.trait_ {
                None => {
                    let (first, condition) = (self.lines.len(), self.condition(inner));
                    let public_members =
                        members.iter().filter(|member| matches!(member.visibility, Visibility::Public));
                    public_members.for_each(|member| self.member(public, member, true));
                    let new = self.lines.get_mut(first..).unwrap_or_default();
                    new.iter_mut().for_each(|line| line.push_str(&condition));
                }
                Some(_) if inner.blanket_impl.is_some() || (inner.is_synthetic && !inner.is_negative) => {}
                Some(of) => {
                    let of = path(&self.scope(), of);
                    if !UNSTABLE.contains(&of.as_str()) {
                        let negative = if inner.is_negative { "!" } else { "" };
                        traits
                            .entry(self.form(inner, &members))
                            .or_default()
                            .insert(format!("{negative}{of}"));
                    }
                }
            }
        }
        for ([parameters, form, types], traits) in traits {
            let traits = traits.into_iter().collect::<Vec<_>>().join(", ");
            self.lines.push(format!("impl{parameters} {traits} for {form}{types}"));
        }
    }

    /// For which forms of a generic type its own functions are there; nothing where that is all.
    fn condition(&self, inner: &Impl) -> String {
        let (parameters, form) = (&inner.generics.params, type_(&self.scope(), &inner.for_));
        let is_lifetime =
            |parameter: &GenericParamDef| matches!(parameter.kind, GenericParamDefKind::Lifetime { .. });
        let arguments = form.split_once('<').map(|(_, rest)| rest.trim_end_matches('>'));
        let is_type = |argument: &str| !argument.starts_with('\'');
        let is_concrete = parameters.is_empty() && arguments.is_some_and(|all| all.split(", ").any(is_type));
        if parameters.iter().all(is_lifetime) && inner.generics.where_predicates.is_empty() && !is_concrete {
            return String::new();
        }
        let scope = self.scope();
        let tail = where_clause(&scope, &inner.generics);
        format!(" (impl{} {form}{tail})", generics(&scope, &inner.generics))
    }

    /// Of an `impl` its parameters, the type with conditions, and the types that it states.
    fn form(&self, inner: &Impl, members: &[Item]) -> [String; 3] {
        let scope = self.scope();
        let types: Vec<_> = members
            .iter()
            .filter_map(|member| match &member.inner {
                ItemEnum::AssocType { type_: Some(of), .. } => {
                    Some(format!("{} = {}", member.name.as_deref().unwrap_or_default(), type_(&scope, of)))
                }
                _ => None,
            })
            .collect();
        let types = if types.is_empty() { String::new() } else { format!(" {{ {} }}", types.join(", ")) };
        let form = format!("{}{}", type_(&scope, &inner.for_), where_clause(&scope, &inner.generics));
        [generics(&scope, &inner.generics), form, types]
    }
}
