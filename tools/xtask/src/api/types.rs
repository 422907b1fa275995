//! Types and signatures as text.

use rustdoc_types::{
    Abi, AssocItemConstraintKind, Crate, Function, FunctionHeader, FunctionPointer, FunctionSignature,
    GenericArg, GenericArgs, GenericBound, GenericParamDef, GenericParamDefKind, Generics, Id, Path,
    PreciseCapturingArg, Term, TraitBoundModifier, Type, WherePredicate,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The public names of what can be reached, by the path of its definition.
#[derive(Default)]
pub(super) struct Names {
    /// The crates that are ours.
    pub(super) ours: BTreeSet<String>,
    public: BTreeMap<String, String>,
    missing: RefCell<BTreeSet<String>>,
}

impl Names {
    /// Of several names the shortest counts.
    pub(super) fn add(&mut self, definition: Option<String>, public: &str) {
        let Some(definition) = definition else { return };
        let known = self.public.entry(definition).or_insert_with(|| public.to_owned());
        if (public.len(), public) < (known.len(), known.as_str()) {
            public.clone_into(known);
        }
    }

    /// Our own types that were named, and that users cannot name.
    pub(super) fn unreachable(&self) -> Vec<String> {
        self.missing.borrow().iter().cloned().collect()
    }
}

/// The path of an item's definition, which is the same in every crate's documentation.
pub(super) fn definition(documented: &Crate, id: Id) -> Option<String> {
    documented.paths.get(&id).map(|summary| summary.path.join("::"))
}

/// In whose documentation ids have to be looked up, and what names are public.
pub(super) struct Scope<'a> {
    pub(super) documented: &'a Crate,
    pub(super) names: &'a Names,
}

impl Scope<'_> {
    /// Ours by the public path; other people's by crate and name, the standard library's by name.
    fn name(&self, path: &Path) -> String {
        let Some(definition) = definition(self.documented, path.id) else { return path.path.clone() };
        if let Some(public) = self.names.public.get(&definition) {
            return public.clone();
        }
        let (first, last) = (definition.split("::").next(), definition.rsplit("::").next());
        let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
        match first {
            "std" | "core" | "alloc" => last.to_owned(),
            _ if self.names.ours.contains(first) => {
                self.names.missing.borrow_mut().insert(definition.clone());
                definition
            }
            _ => format!("{first}::{last}"),
        }
    }
}

fn join<T>(all: &[T], separator: &str, text: impl FnMut(&T) -> String) -> String {
    all.iter().map(text).collect::<Vec<_>>().join(separator)
}

pub(super) fn path(scope: &Scope<'_>, path: &Path) -> String {
    let arguments = path.args.as_deref().map(|all| arguments(scope, all)).unwrap_or_default();
    format!("{}{arguments}", scope.name(path))
}

fn arguments(scope: &Scope<'_>, all: &GenericArgs) -> String {
    match all {
        GenericArgs::AngleBracketed { args, constraints } => {
            let args = args.iter().map(|argument| match argument {
                GenericArg::Lifetime(name) => name.clone(),
                GenericArg::Type(of) => type_(scope, of),
                GenericArg::Const(constant) => constant.expr.clone(),
                GenericArg::Infer => "_".to_owned(),
            });
            let constraints = constraints.iter().map(|constraint| {
                let inner = constraint.args.as_deref().map(|all| arguments(scope, all)).unwrap_or_default();
                let name = &constraint.name;
                match &constraint.binding {
                    AssocItemConstraintKind::Equality(to) => format!("{name}{inner} = {}", term(scope, to)),
                    AssocItemConstraintKind::Constraint(to) => {
                        format!("{name}{inner}: {}", bounds(scope, to))
                    }
                }
            });
            let all: Vec<_> = args.chain(constraints).collect();
            if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
        }
        GenericArgs::Parenthesized { inputs, output } => {
            format!("({}){}", join(inputs, ", ", |of| type_(scope, of)), result(scope, output.as_ref()))
        }
        GenericArgs::ReturnTypeNotation => "(..)".to_owned(),
    }
}

fn term(scope: &Scope<'_>, term: &Term) -> String {
    match term {
        Term::Type(of) => type_(scope, of),
        Term::Constant(constant) => constant.expr.clone(),
    }
}

pub(super) fn type_(scope: &Scope<'_>, of: &Type) -> String {
    match of {
        Type::ResolvedPath(inner) => path(scope, inner),
        Type::DynTrait(inner) => {
            let lifetime = inner.lifetime.iter().cloned();
            let traits = inner
                .traits
                .iter()
                .map(|of| format!("{}{}", higher_ranked(scope, &of.generic_params), path(scope, &of.trait_)));
            format!("dyn {}", traits.chain(lifetime).collect::<Vec<_>>().join(" + "))
        }
        Type::Generic(name) | Type::Primitive(name) => name.clone(),
        Type::FunctionPointer(inner) => pointer(scope, inner),
        Type::Tuple(types) => format!("({})", join(types, ", ", |of| type_(scope, of))),
        Type::Slice(of) => format!("[{}]", type_(scope, of)),
        Type::Array { type_: of, len } => format!("[{}; {len}]", type_(scope, of)),
        Type::Pat { type_: of, .. } => type_(scope, of),
        Type::ImplTrait(all) => format!("impl {}", bounds(scope, all)),
        Type::Infer => "_".to_owned(),
        Type::RawPointer { is_mutable, type_: of } => {
            format!("*{} {}", if *is_mutable { "mut" } else { "const" }, type_(scope, of))
        }
        Type::BorrowedRef { lifetime, is_mutable, type_: of } => {
            let lifetime = lifetime.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
            format!("&{lifetime}{}{}", if *is_mutable { "mut " } else { "" }, type_(scope, of))
        }
        Type::QualifiedPath { name, args, self_type, trait_ } => {
            let arguments = args.as_deref().map(|all| arguments(scope, all)).unwrap_or_default();
            let of = type_(scope, self_type);
            match trait_.as_ref().filter(|of| !of.path.is_empty()) {
                Some(from) => format!("<{of} as {}>::{name}{arguments}", path(scope, from)),
                None => format!("{of}::{name}{arguments}"),
            }
        }
    }
}

fn pointer(scope: &Scope<'_>, inner: &FunctionPointer) -> String {
    let parameters = join(&inner.sig.inputs, ", ", |(_, of)| type_(scope, of));
    let ranked = higher_ranked(scope, &inner.generic_params);
    format!("{ranked}{}fn({parameters}){}", header(&inner.header), result(scope, inner.sig.output.as_ref()))
}

fn higher_ranked(scope: &Scope<'_>, parameters: &[GenericParamDef]) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    format!("for<{}> ", join(parameters, ", ", |parameter| self::parameter(scope, parameter)))
}

pub(super) fn bounds(scope: &Scope<'_>, all: &[GenericBound]) -> String {
    join(all, " + ", |bound| match bound {
        GenericBound::TraitBound { trait_, generic_params, modifier } => {
            let modifier = match modifier {
                TraitBoundModifier::None => "",
                TraitBoundModifier::Maybe => "?",
                TraitBoundModifier::MaybeConst => "[const] ",
            };
            format!("{}{modifier}{}", higher_ranked(scope, generic_params), path(scope, trait_))
        }
        GenericBound::Outlives(lifetime) => lifetime.clone(),
        GenericBound::Use(captured) => {
            let captured = join(captured, ", ", |argument| match argument {
                PreciseCapturingArg::Lifetime(name) | PreciseCapturingArg::Param(name) => name.clone(),
            });
            format!("use<{captured}>")
        }
    })
}

fn with_bounds(name: &str, bounds: &str) -> String {
    if bounds.is_empty() { name.to_owned() } else { format!("{name}: {bounds}") }
}

fn parameter(scope: &Scope<'_>, parameter: &GenericParamDef) -> String {
    let name = &parameter.name;
    match &parameter.kind {
        GenericParamDefKind::Lifetime { outlives } => with_bounds(name, &outlives.join(" + ")),
        GenericParamDefKind::Type { bounds: of, default, .. } => {
            let default = default.as_ref().map(|of| format!(" = {}", type_(scope, of))).unwrap_or_default();
            format!("{}{default}", with_bounds(name, &bounds(scope, of)))
        }
        GenericParamDefKind::Const { type_: of, default } => {
            let default = default.as_ref().map(|value| format!(" = {value}")).unwrap_or_default();
            format!("const {name}: {}{default}", type_(scope, of))
        }
    }
}

/// `<'a, T: Clone>`, or nothing.
pub(super) fn generics(scope: &Scope<'_>, generics: &Generics) -> String {
    // `impl Trait` as an argument stands there already.
    let is_written = |parameter: &&GenericParamDef| {
        !matches!(parameter.kind, GenericParamDefKind::Type { is_synthetic: true, .. })
    };
    let written: Vec<_> = generics.params.iter().filter(is_written).collect();
    if written.is_empty() {
        return String::new();
    }
    format!("<{}>", join(&written, ", ", |parameter| self::parameter(scope, parameter)))
}

/// ` where T: Clone`, or nothing.
pub(super) fn where_clause(scope: &Scope<'_>, generics: &Generics) -> String {
    if generics.where_predicates.is_empty() {
        return String::new();
    }
    let predicates = join(&generics.where_predicates, ", ", |predicate| match predicate {
        WherePredicate::BoundPredicate { type_: of, bounds: all, generic_params } => {
            let ranked = higher_ranked(scope, generic_params);
            format!("{ranked}{}: {}", type_(scope, of), bounds(scope, all))
        }
        WherePredicate::LifetimePredicate { lifetime, outlives } => {
            format!("{lifetime}: {}", outlives.join(" + "))
        }
        WherePredicate::EqPredicate { lhs, rhs } => format!("{} = {}", type_(scope, lhs), term(scope, rhs)),
    });
    format!(" where {predicates}")
}

/// `const unsafe extern "C" `, or what of it there is.
fn header(header: &FunctionHeader) -> String {
    let mut text = String::new();
    let words = [(header.is_const, "const "), (header.is_async, "async "), (header.is_unsafe, "unsafe ")];
    words.iter().filter(|(is_so, _)| *is_so).for_each(|(_, word)| text.push_str(word));
    match &header.abi {
        Abi::Rust => {}
        Abi::C { .. } => text.push_str("extern \"C\" "),
        other => text.push_str(&format!("extern {other:?} ")),
    }
    text
}

/// `fn name<T>(a: T) -> U where T: Clone`.
pub(super) fn signature(scope: &Scope<'_>, name: &str, function: &Function) -> String {
    format!(
        "{}fn {name}{}({}){}{}",
        header(&function.header),
        generics(scope, &function.generics),
        inputs(scope, &function.sig),
        result(scope, function.sig.output.as_ref()),
        where_clause(scope, &function.generics)
    )
}

fn inputs(scope: &Scope<'_>, signature: &FunctionSignature) -> String {
    let is_self = |of: &Type| matches!(of, Type::Generic(name) if name == "Self");
    join(&signature.inputs, ", ", |(name, of)| match of {
        of if name == "self" && is_self(of) => name.clone(),
        Type::BorrowedRef { lifetime, is_mutable, type_: of } if name == "self" && is_self(of) => {
            let lifetime = lifetime.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
            format!("&{lifetime}{}self", if *is_mutable { "mut " } else { "" })
        }
        of => format!("{name}: {}", type_(scope, of)),
    })
}

/// ` -> T`, or nothing.
fn result(scope: &Scope<'_>, output: Option<&Type>) -> String {
    output.map(|of| format!(" -> {}", type_(scope, of))).unwrap_or_default()
}
