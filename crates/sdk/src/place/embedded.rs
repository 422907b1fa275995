//! What a library took from elsewhere itself, as open source, an app may have without the library.

use super::work::Work;
use crate::fingerprint::{Slice, Target, index};
use crate::hash::{Map, Set};

/// So many hundredths of the classes have to be missing before it matters which.
const MISSING: usize = 10;

/// Whether these classes, told by their names, may be there without the library: they need few of its other classes, and those need them.
pub(super) fn may_be(work: &Work<'_, '_>, there: &Set<u64>) -> bool {
    let slice = work.slice;
    let mut methods: Map<u64, Vec<u32>> = Map::default();
    for method in slice.methods.iter().filter(|method| work.has_class(method.owner)) {
        methods.entry(method.owner.0).or_default().push(method.function);
    }
    let missing: Set<u64> = methods.keys().copied().filter(|class| !there.contains(class)).collect();
    if missing.len() * 100 < methods.len() * MISSING || missing.is_empty() {
        return false;
    }
    let uses = Uses { slice, methods: &methods };
    let needed = uses.from(there);
    let needed = missing.iter().filter(|class| needed.contains(*class)).count();
    let users = uses.from(&missing);
    needed * 2 < missing.len() && there.iter().any(|class| users.contains(class))
}

struct Uses<'a> {
    slice: &'a Slice,
    /// The functions of each class.
    methods: &'a Map<u64, Vec<u32>>,
}

impl Uses<'_> {
    /// The classes that these classes' code mentions, or what that calls.
    fn from(&self, classes: &Set<u64>) -> Set<u64> {
        let mut found: Set<u64> = Set::default();
        let mut seen: Set<u32> = Set::default();
        let of = |class: &u64| self.methods.get(class).into_iter().flatten().copied();
        let mut open: Vec<u32> = classes.iter().flat_map(of).collect();
        let mut seen_targets: Set<u32> = Set::default();
        while let Some(number) = open.pop() {
            let Some(function) = self.slice.functions.get(index(number)).filter(|_| seen.insert(number))
            else {
                continue;
            };
            let mut targets: Vec<u32> =
                function.references.iter().map(|reference| reference.target).collect();
            while let Some(number) = targets.pop() {
                if !seen_targets.insert(number) {
                    continue;
                }
                match self.slice.targets.get(index(number)) {
                    Some(Target::Class(class)) if found.insert(class.0) => open.extend(of(&class.0)),
                    Some(Target::Function(callee)) => open.push(*callee),
                    Some(Target::Data(_) | Target::WeakData(_)) => {
                        targets.extend(self.slice.pointers_of(number).iter().map(|pointer| pointer.target));
                    }
                    _ => {}
                }
            }
        }
        found
    }
}
