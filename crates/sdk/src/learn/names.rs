//! Joins the members of a library: names that one uses and another defines.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use backtrail_core::Arch;

use super::member::{Member, Raw, SectionAddress};
use crate::fingerprint::{DataPointer, Function, Method, Reference, Shape, Slice, Target};
use crate::hash::{Digest, Domain};

/// One slice from all of its members.
pub(super) fn join(arch: Arch, is_mach_o: bool, members: &[Member]) -> Slice {
    let mut joiner = Joiner::new(members);
    let mut is_mentioned: BTreeSet<u32> = BTreeSet::new();
    let mut shapes: BTreeMap<Shape, u32> = BTreeMap::new();
    let mut functions = Vec::new();
    let mut methods = Vec::new();
    let mut pointers = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let first = joiner.first.get(number).copied().unwrap_or(0);
        for function in &member.functions {
            let next = u32::try_from(shapes.len()).unwrap_or(u32::MAX);
            let shape = *shapes.entry(function.shape.clone()).or_insert(next);
            let references = function.references.iter().map(|raw| Reference {
                at: raw.at,
                page_at: raw.page_at,
                form: raw.form,
                bias: raw.bias,
                target: joiner.target(number, &raw.target),
            });
            let references: Vec<Reference> = references.collect();
            is_mentioned.extend(references.iter().map(|reference| reference.target));
            functions.push(Function {
                member: u32::try_from(number).unwrap_or(u32::MAX),
                name: Digest::of(Domain::Name, function.name.as_bytes()),
                len: function.len,
                outline: function.outline,
                body: function.body,
                shape,
                reach: function.reach,
                references,
                span: function.span,
                returns: function.returns.clone(),
            });
        }
        methods.extend(member.methods.iter().map(|(owner, selector, function)| Method {
            owner: *owner,
            selector: *selector,
            function: first.saturating_add(*function),
        }));
        for (place, offset, raw) in &member.pointers {
            let data = joiner.target(number, &Raw::Data(*place));
            let target = joiner.target(number, raw);
            let leads_on = |target: &Target| {
                matches!(target, Target::Function(_) | Target::Data(_) | Target::WeakData(_))
            };
            if joiner.targets.get(crate::fingerprint::index(target)).is_some_and(leads_on) {
                pointers.push(DataPointer { data, offset: *offset, target });
            }
        }
    }
    pointers.sort_unstable();
    pointers.dedup();
    // Data that nothing leads to is not found: of several definitions of one name all but the first.
    is_mentioned.extend(pointers.iter().map(|pointer| pointer.target));
    pointers.retain(|pointer| is_mentioned.contains(&pointer.data));
    methods.sort_unstable();
    methods.dedup();
    let mut classes: Vec<Digest> = members.iter().flat_map(|member| member.classes.iter().copied()).collect();
    classes.sort_unstable();
    classes.dedup();
    let mut numbered: Vec<(u32, Shape)> = shapes.into_iter().map(|(shape, number)| (number, shape)).collect();
    numbered.sort_unstable();
    Slice {
        arch,
        is_mach_o,
        members: members.iter().map(|member| member.name).collect(),
        functions,
        shapes: numbered.into_iter().map(|(_, shape)| shape).collect(),
        targets: joiner.targets,
        methods,
        classes,
        pointers,
    }
}

/// Gives numbers to what references name.
struct Joiner<'a> {
    members: &'a [Member],
    /// The number of each member's first function.
    first: Vec<u32>,
    /// What names mean: a member's number, and what it is there.
    exports: HashMap<String, (usize, Raw)>,
    known: BTreeMap<Target, u32>,
    data: BTreeMap<(usize, SectionAddress), u32>,
    targets: Vec<Target>,
}

impl<'a> Joiner<'a> {
    fn new(members: &'a [Member]) -> Self {
        let mut first = Vec::with_capacity(members.len());
        let mut next = 0u32;
        let mut exports = HashMap::new();
        for (number, member) in members.iter().enumerate() {
            first.push(next);
            next = next.saturating_add(u32::try_from(member.functions.len()).unwrap_or(u32::MAX));
            for (name, raw) in &member.exports {
                // The first that defines it, as a linker takes it.
                exports.entry(name.clone()).or_insert_with(|| (number, raw.clone()));
            }
        }
        Self { members, first, exports, known: BTreeMap::new(), data: BTreeMap::new(), targets: Vec::new() }
    }

    /// The number of what a member refers to.
    fn target(&mut self, member: usize, raw: &Raw) -> u32 {
        match raw {
            Raw::Known(target) => self.number(*target),
            Raw::Function(function) => {
                let first = self.first.get(member).copied().unwrap_or(0);
                self.number(Target::Function(first.saturating_add(*function)))
            }
            Raw::Data(place) => {
                let next = u32::try_from(self.data.len()).unwrap_or(u32::MAX);
                let data = *self.data.entry((member, *place)).or_insert(next);
                let is_weak = self.members.get(member).is_some_and(|member| member.weak_data.contains(place));
                self.number(if is_weak { Target::WeakData(data) } else { Target::Data(data) })
            }
            Raw::Undefined(name) => match self.exports.get(name).cloned() {
                Some((member, raw)) => self.target(member, &raw),
                None => self.number(Target::Import(Digest::of(Domain::Name, name.as_bytes()))),
            },
        }
    }

    fn number(&mut self, target: Target) -> u32 {
        let next = u32::try_from(self.targets.len()).unwrap_or(u32::MAX);
        let number = *self.known.entry(target).or_insert(next);
        if number == next {
            self.targets.push(target);
        }
        number
    }
}
