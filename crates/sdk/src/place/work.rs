//! What is known so far while a library is placed.

use crate::app::{App, AppFunction, Referent};
use crate::fingerprint::{Function, Reach, Slice, Target, index};
use crate::hash::{Digest, Map, Set};
use crate::learn::body;

use super::How;

/// Functions of a library with one outline: more say nothing.
const CROWD: usize = 256;

/// Shorter code (in words) may equal somebody else's by chance, so that the linker folds both into one.
const FOLDED: u32 = 3;

/// What a text or an import that agrees is worth, in words of code.
const AGREEMENT: u32 = 4;

pub(super) struct Work<'a, 'd> {
    pub(super) app: &'a App<'d>,
    pub(super) slice: &'a Slice,
    weights: Vec<u32>,
    /// Whether enough was found by strict rules.
    pub(super) is_there: bool,
    /// Names of the library's functions.
    names: Set<u64>,
    /// Whether several of the library's functions are at one place: then the linker folded equal code.
    is_folded: bool,
    by_outline: Map<u64, Vec<u32>>,
    /// The library's functions that are methods.
    is_method: Set<u32>,
    /// The library's functions by method.
    methods: Map<(u64, u64), u32>,
    classes: Set<u64>,
    /// By the library's functions: where they are.
    app_of: Vec<Option<u32>>,
    /// By the app's functions: what they are.
    lib_of: Vec<Option<(u32, How)>>,
    /// Where data of the library is; `None` where functions disagree.
    pub(super) data_at: Map<u32, Option<u64>>,
    /// Hashes of the app's functions without what a shape leaves out.
    bodies: Map<(u32, u32), Digest>,
}

impl<'a, 'd> Work<'a, 'd> {
    pub(super) fn new(app: &'a App<'d>, slice: &'a Slice) -> Self {
        let mut by_outline: Map<u64, Vec<u32>> = Map::default();
        for (number, function) in (0u32..).zip(&slice.functions) {
            if function.len > 0 {
                by_outline.entry(function.outline.0).or_default().push(number);
            }
        }
        let methods = slice.methods.iter();
        let names: Set<u64> = slice.functions.iter().map(|function| function.name.0).collect();
        let is_known = |name: &&Digest| names.contains(&name.0);
        let is_folded = app.names().any(|names| names.iter().filter(is_known).count() > 1);
        Self {
            app,
            slice,
            weights: slice.functions.iter().map(|function| function.weight(&slice.shapes)).collect(),
            is_there: false,
            names,
            is_folded,
            by_outline,
            is_method: slice.methods.iter().map(|method| method.function).collect(),
            methods: methods.map(|method| ((method.owner.0, method.selector.0), method.function)).collect(),
            classes: slice.classes.iter().map(|class| class.0).collect(),
            app_of: vec![None; slice.functions.len()],
            lib_of: vec![None; app.functions.len()],
            data_at: Map::default(),
            bodies: Map::default(),
        }
    }

    pub(super) fn function(&self, function: u32) -> Option<&'a Function> {
        self.slice.functions.get(index(function))
    }

    pub(super) fn app_function(&self, place: u32) -> Option<&'a AppFunction> {
        self.app.functions.get(index(place))
    }

    pub(super) fn weight(&self, function: u32) -> u32 {
        self.weights.get(index(function)).copied().unwrap_or(0)
    }

    pub(super) fn is_weak(&self, function: u32) -> bool {
        self.function(function).is_none_or(|function| function.reach == Reach::Weak)
    }

    /// The library's function for a method, if it has one.
    pub(super) fn method(&self, owner: Digest, selector: Digest) -> Option<u32> {
        self.methods.get(&(owner.0, selector.0)).copied()
    }

    pub(super) fn has_class(&self, class: Digest) -> bool {
        self.classes.contains(&class.0)
    }

    /// Whether this is a method of a class that the library does not define: the app's own copy, or folded with it.
    pub(super) fn is_foreign(&self, place: u32) -> bool {
        let Some(function) = self.app_function(place) else { return true };
        let methods = self.app.methods.get(&function.start.get());
        methods.is_some_and(|methods| {
            methods.iter().any(|method| {
                !self.has_class(method.owner) && self.method(method.owner, method.selector).is_none()
            }) && !methods.iter().all(|method| self.has_class(method.owner))
        })
    }

    /// Whether this is a method that somebody's category may have brought into a class, since the known version of the class has none of that name.
    pub(super) fn may_be_joined(&self, place: u32) -> bool {
        let methods = self.app_function(place).and_then(|there| self.app.methods.get(&there.start.get()));
        !self.app.keeps_categories
            && methods.is_some_and(|methods| {
                methods.iter().all(|method| self.method(method.owner, method.selector).is_none())
            })
    }

    /// Whether the place is a method: then its name would have told.
    pub(super) fn has_method(&self, place: u32) -> bool {
        self.app_function(place).is_none_or(|function| self.app.methods.contains_key(&function.start.get()))
    }

    /// Where a function was placed.
    pub(super) fn place_of(&self, function: u32) -> Option<u32> {
        self.app_of.get(index(function)).copied().flatten()
    }

    /// What was placed there.
    pub(super) fn at(&self, place: u32) -> Option<(u32, How)> {
        self.lib_of.get(index(place)).copied().flatten()
    }

    /// Places a function, unless it or the place is taken. Folded functions share a place.
    pub(super) fn put(&mut self, function: u32, place: u32, how: How) -> bool {
        let (Some(app_of), Some(lib_of)) =
            (self.app_of.get_mut(index(function)), self.lib_of.get_mut(index(place)))
        else {
            return false;
        };
        if app_of.is_some() {
            return false;
        }
        *app_of = Some(place);
        if lib_of.is_none() {
            *lib_of = Some((function, how));
        }
        true
    }

    /// Claims a place for a function of the library whichever it is.
    pub(super) fn claim(&mut self, function: u32, place: u32, how: How) {
        if let Some(lib_of @ None) = self.lib_of.get_mut(index(place)) {
            *lib_of = Some((function, how));
            if let Some(app_of @ None) = self.app_of.get_mut(index(function)) {
                *app_of = Some(place);
            }
        }
    }

    pub(super) fn take_back(&mut self, function: u32, place: u32) {
        if let Some(app_of) = self.app_of.get_mut(index(function)) {
            *app_of = None;
        }
        if let Some(lib_of) = self.lib_of.get_mut(index(place))
            && lib_of.is_some_and(|(known, _)| known == function)
        {
            *lib_of = None;
        }
    }

    /// Functions with their places.
    pub(super) fn placed(&self) -> impl Iterator<Item = (u32, u32, How)> {
        (0u32..)
            .zip(&self.lib_of)
            .filter_map(|(place, known)| known.map(|(function, how)| (function, place, how)))
    }

    pub(super) fn claims(&self) -> Vec<(usize, How)> {
        self.placed().map(|(_, place, how)| (index(place), how)).collect()
    }

    /// The library's functions that a function of the app may be, by their outlines.
    pub(super) fn alike(&self, place: u32) -> &[u32] {
        let Some(function) = self.app_function(place) else { return &[] };
        let alike = self.by_outline.get(&function.outline.digest.0).map(Vec::as_slice).unwrap_or_default();
        if alike.len() > CROWD { &[] } else { alike }
    }

    /// Whether a function of the app has the body of one of the library.
    pub(super) fn matches(&mut self, function: u32, place: u32) -> bool {
        let (Some(wanted), Some(there)) = (self.function(function), self.app_function(place)) else {
            return false;
        };
        if wanted.outline != there.outline.digest || index(wanted.len) != there.outline.len || wanted.len == 0
        {
            return false;
        }
        let (app, slice) = (self.app, self.slice);
        let found = *self.bodies.entry((place, wanted.shape)).or_insert_with(|| {
            let code = app.code(there).get(..there.outline.len).unwrap_or_default();
            body(code, slice.shapes.get(index(wanted.shape)).map(Vec::as_slice).unwrap_or_default())
        });
        found == wanted.body
    }

    /// How much speaks for a function at a place where its body is: its own weight and what its references name there.
    /// `None` where one of them names something else, or the app has another name for the place.
    pub(super) fn agreement(&self, function: u32, place: u32) -> Option<u32> {
        let (wanted, there) = (self.function(function)?, self.app_function(place)?);
        if !self.may_be_named(function, wanted, there)
            || self.is_method.contains(&function) && !self.app.methods.contains_key(&there.start.get())
        {
            return None;
        }
        let mut agreement = self.weight(function);
        for reference in &wanted.references {
            let Some(found) = self.app.resolve(there, reference) else { continue };
            let target = self.slice.targets.get(index(reference.target))?;
            match self.compare(reference.target, *target, found) {
                Some(true) => agreement += AGREEMENT,
                Some(false) => return None,
                None => {}
            }
        }
        Some(agreement)
    }

    /// Whether the names of a place allow it to be a function of the library.
    ///
    /// A short function with other names as well may be one that the linker folded with somebody else's. Another version of the library may have
    /// renamed a function with the same body, but not one that is exported or weak. Who copies code renames it, too: names have to agree until
    /// enough of the library was found.
    fn may_be_named(&self, function: u32, wanted: &Function, there: &AppFunction) -> bool {
        let names = self.app.names_at(there.start);
        if names.contains(&wanted.name) {
            return self.weight(function) >= FOLDED || !self.has_other_names(there);
        }
        let is_renamed =
            |name: &Digest| !self.names.contains(&name.0) && !self.app.exports.contains_key(&name.0);
        names.is_empty() || self.is_there && wanted.reach != Reach::Weak && names.iter().all(is_renamed)
    }

    /// Whether the app has names for a place that are none of the library, and may be those of equal code that was folded with it.
    pub(super) fn has_other_names(&self, there: &AppFunction) -> bool {
        self.is_folded && self.app.names_at(there.start).iter().any(|name| !self.names.contains(&name.0))
    }

    /// Whether a reference names what it should; `None` where that cannot be told.
    fn compare(&self, number: u32, target: Target, found: Referent) -> Option<bool> {
        match (target, found) {
            (Target::Import(name), Referent::Import(other)) => Some(name == other),
            // Another part of the app may define it.
            (Target::Import(_), Referent::Place(_)) => None,
            (Target::Literal(_) | Target::Class(_), Referent::Place(address)) => {
                self.app.literal(address, target).map(|found| found == target)
            }
            (Target::Literal(_), Referent::Import(_)) => Some(false),
            (Target::Class(_), Referent::Import(_)) => None,
            (Target::Function(function), Referent::Import(name)) => {
                let wanted = self.function(function)?;
                // An ELF library calls its own functions by way of a slot, and weak ones may be another image's.
                (wanted.reach != Reach::Weak && wanted.name != name).then_some(false)
            }
            (Target::Function(function), Referent::Place(address)) => {
                if self.is_weak(function) {
                    return None;
                }
                let known = self.place_of(function).and_then(|place| self.app_function(place))?;
                Some(known.start == address)
            }
            (Target::Data(_) | Target::WeakData(_), Referent::Place(address)) => {
                let known = (*self.data_at.get(&number)?)?;
                (known == address.get()).then_some(true)
            }
            (Target::Data(_) | Target::WeakData(_), Referent::Import(_)) => None,
        }
    }
}
