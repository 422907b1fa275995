//! What another version has that the known one has nothing of: classes, and what lies inside of an object file.
//!
//! No body speaks for it. What does is that it belongs together: an app's own code may use the library, and the library
//! may use somebody else's, but only the library's own code does both. And what lies inside of an object file is part of
//! it, where the linker kept that in one piece.

use super::How;
use super::classes;
use super::ground::Ground;
use super::order;
use super::spread::users;
use super::work::Work;
use crate::app::Referent;
use crate::fingerprint::{Target, index};
use crate::hash::{Digest, Map, Set};
use crate::objc::Method;
use backtrail_core::Svma;

/// What is found by one round may lead to more.
const ROUNDS: usize = 32;
/// Functions to the next code of the library.
const NEAR: u32 = 60;
/// Functions between two methods of one class.
const INSIDE: u32 = 40;
/// So many classes must have names that begin alike.
const LEAST_ALIKE: usize = 3;
/// Places from one method of a class to the next.
const STEP: u32 = 8;
/// Places from a function to one that it alone uses.
const BESIDE: u32 = 16;
/// Functions that are new in one place of an object file.
const LONGEST: u32 = 120;
/// So many hundredths of a category's methods must be known by name.
const KNOWN: usize = 50;
/// So many hundredths of the library's methods must lie by their classes.
const TOGETHER: usize = 60;

pub(super) fn fill(work: &mut Work<'_, '_>) {
    if !order::is_kept(&order::known(work)) && !is_by_class(work) {
        return;
    }
    let mut groups = Groups::read(work);
    let others = others(work);
    let ground = Ground::read(work);
    for _ in 0..ROUNDS {
        let before = work.placed().count();
        midst(work, &ground, &groups, &others);
        groups.claim(work, &ground);
        inside(work, &ground, &others);
        called(work, &ground, &others);
        if work.placed().count() == before {
            return;
        }
    }
}

/// Whether the methods of each class lie together, as they do in an object file, where no function is known by its body.
fn is_by_class(work: &Work<'_, '_>) -> bool {
    let mut classes: Set<u64> = Set::default();
    let mut last: Option<(u32, u64)> = None;
    let (mut methods, mut together) = (0usize, 0usize);
    for (_, place, _) in work.placed() {
        let function = work.app_function(place).and_then(|there| work.app.methods.get(&there.start.get()));
        let Some(owner) = function.and_then(|methods| methods.first()).map(|method| method.owner.0) else {
            continue;
        };
        methods += 1;
        classes.insert(owner);
        together += usize::from(last.is_some_and(|(before, class)| class == owner && place - before <= STEP));
        last = Some((place, owner));
    }
    let pairs = methods.saturating_sub(classes.len());
    pairs > 0 && together * 100 >= pairs * TOGETHER
}

/// The functions of the app that the library takes from elsewhere: no part of it.
fn others(work: &Work<'_, '_>) -> Set<u32> {
    let mut others: Set<u32> = Set::default();
    for (function, place, _) in work.placed().filter(|(_, _, how)| how.is_equal()) {
        let (Some(known), Some(there)) = (work.function(function), work.app_function(place)) else {
            continue;
        };
        for reference in &known.references {
            if matches!(work.slice.targets.get(index(reference.target)), Some(Target::Import(_)))
                && let Some(Referent::Place(address)) = work.app.resolve(there, reference)
            {
                others.extend(place_at(work, address));
            }
        }
    }
    others
}

fn place_at(work: &Work<'_, '_>, address: Svma) -> Option<u32> {
    work.app.function_at(address).and_then(|place| u32::try_from(place).ok())
}

/// Methods of one class, or of one category.
struct Group {
    owner: Digest,
    /// Where the class's object lies; a category has none.
    object: Option<Svma>,
    /// Ascending.
    places: Vec<u32>,
    /// The other groups whose classes it names.
    named: Vec<usize>,
    /// Whether it names a class or function of the library.
    uses_us: bool,
    /// Whether the library names it.
    is_used: bool,
    is_taken: bool,
}

struct Groups {
    all: Vec<Group>,
    /// The classes that are the library's.
    ours: Set<u64>,
    /// The owners of methods that the known version has: classes and categories.
    known: Set<u64>,
    /// Classes that the known version takes from elsewhere.
    imported: Set<u64>,
    /// What the names of the library's classes begin with.
    prefixes: Set<u64>,
}

impl Groups {
    fn read(work: &Work<'_, '_>) -> Self {
        // What the known version takes from elsewhere is another library's.
        let imported: Set<u64> = work
            .slice
            .targets
            .iter()
            .filter_map(|target| match target {
                Target::Class(class) if !work.has_class(*class) => Some(class.0),
                _ => None,
            })
            .collect();
        let objects: Map<u64, Svma> = work.app.classes().map(|(object, class)| (class.0, object)).collect();
        let known: Set<u64> = work.slice.methods.iter().map(|method| method.owner.0).collect();
        let mut places: Map<u64, Vec<u32>> = Map::default();
        for (place, function) in (0u32..).zip(&work.app.functions) {
            let methods = work.app.methods.get(&function.start.get()).into_iter().flatten();
            let (classes, of_categories): (Set<u64>, Set<u64>) = {
                let owners: Set<u64> = methods.map(|method| method.owner.0).collect();
                owners.into_iter().partition(|owner| objects.contains_key(owner))
            };
            // One that several have was folded, and a category that is not known may be anybody's.
            if classes.len() > 1
                || of_categories.len() > 1
                || !of_categories.iter().all(|category| known.contains(category))
            {
                continue;
            }
            if let Some(owner) = of_categories.into_iter().chain(classes).next() {
                places.entry(owner).or_default().push(place);
            }
        }
        let mut owners: Vec<(u64, Vec<u32>)> = places.into_iter().collect();
        owners.sort_unstable();
        let all = owners.into_iter().filter(|(owner, _)| !imported.contains(owner));
        let all = all.map(|(owner, places)| Group {
            owner: Digest(owner),
            object: objects.get(&owner).copied(),
            places,
            named: Vec::new(),
            uses_us: false,
            is_used: false,
            is_taken: false,
        });
        let prefixes = prefixes(work);
        let mut groups = Self {
            all: all.collect(),
            ours: work.slice.classes.iter().map(|class| class.0).collect(),
            known,
            imported,
            prefixes,
        };
        groups.read_named(work);
        groups
    }

    /// Which classes name which.
    fn read_named(&mut self, work: &Work<'_, '_>) {
        let by_object: Map<u64, usize> = self
            .all
            .iter()
            .enumerate()
            .filter_map(|(number, group)| Some((group.object?.get(), number)))
            .collect();
        for group in &mut self.all {
            let mut named: Vec<usize> = Vec::new();
            for place in span(work, &group.places) {
                let Some(function) = work.app_function(place) else { continue };
                let objects =
                    work.app.mentions(function).into_iter().filter_map(|slot| work.app.pointer(slot));
                named.extend(objects.filter_map(|object| by_object.get(&object.get()).copied()));
            }
            let superclass = work.app.superclass_of(group.owner);
            named.extend(superclass.and_then(|object| by_object.get(&object.get()).copied()));
            named.sort_unstable();
            named.dedup();
            group.named = named;
        }
    }

    /// Claims groups until there are no more.
    fn claim(&mut self, work: &mut Work<'_, '_>, ground: &Ground) {
        loop {
            self.follow(work);
            let found: Vec<usize> =
                (0..self.all.len()).filter(|number| self.is_ours(work, ground, *number)).collect();
            if found.is_empty() {
                return;
            }
            for number in found {
                self.take(work, number);
            }
        }
    }

    /// What the library's code names, directly or by way of what it names; and what names it.
    fn follow(&mut self, work: &Work<'_, '_>) {
        let is_ours = |place: u32| work.at(place).is_some();
        let ours: Vec<bool> = self
            .all
            .iter()
            .map(|group| self.ours.contains(&group.owner.0) && is_claimed(work, group))
            .collect();
        let mut used = ours.clone();
        let mut users = ours;
        for (number, group) in self.all.iter().enumerate() {
            let (Some(used), Some(users)) = (used.get_mut(number), users.get_mut(number)) else { continue };
            *used |= group.object.is_some_and(|object| {
                let end = object.checked_add(1).unwrap_or(object);
                let slots = work.app.pointed_from(object..end).unwrap_or_default();
                slots.iter().any(|(_, slot)| {
                    slot.checked_add(1).is_some_and(|end| work.app.mentioned_by(*slot..end).any(is_ours))
                })
            });
            *users |= span(work, &group.places).any(|place| {
                let function = work.app_function(place);
                let called = function.map(|function| work.app.mentions(function)).unwrap_or_default();
                called.into_iter().filter_map(|address| place_at(work, address)).any(is_ours)
            });
        }
        let spread = |from: &mut Vec<bool>, edges: &dyn Fn(usize, usize) -> (usize, usize)| {
            loop {
                let before = from.iter().filter(|is_reached| **is_reached).count();
                for (number, group) in self.all.iter().enumerate() {
                    for other in &group.named {
                        let (source, target) = edges(number, *other);
                        if from.get(source) == Some(&true)
                            && let Some(is_reached) = from.get_mut(target)
                        {
                            *is_reached = true;
                        }
                    }
                }
                if from.iter().filter(|is_reached| **is_reached).count() == before {
                    return;
                }
            }
        };
        spread(&mut used, &|number, other| (number, other));
        spread(&mut users, &|number, other| (other, number));
        for ((group, used), users) in self.all.iter_mut().zip(used).zip(users) {
            (group.is_used, group.uses_us) = (used, users);
        }
    }

    /// Whether this is a method of a class that is not the library's, as far as is known.
    fn is_somebodys(&self, work: &Work<'_, '_>, place: u32, besides: Digest) -> bool {
        let Some(function) = work.app_function(place) else { return true };
        let methods = work.app.methods.get(&function.start.get()).map(Vec::as_slice).unwrap_or_default();
        let is_ours = |owner: Digest| owner == besides || self.ours.contains(&owner.0);
        // Of a category of the library's class, what is new in it belongs to the category.
        let is_extended = methods.iter().any(|method| is_ours(method.owner));
        let is_others = |method: &Method| {
            let is_known = is_ours(method.owner) || is_extended && self.known.contains(&method.owner.0);
            !is_known && work.method(method.owner, method.selector).is_none()
        };
        work.at(place).is_none() && methods.iter().any(is_others)
    }

    /// Whether the classes that have methods here have all of them here.
    fn are_whole(&self, places: &std::ops::Range<u32>) -> bool {
        let is_here = |place: &u32| places.contains(place);
        let unknown =
            self.all.iter().filter(|group| group.object.is_some() && !self.ours.contains(&group.owner.0));
        unknown.into_iter().all(|group| !group.places.iter().any(is_here) || group.places.iter().all(is_here))
    }

    /// Whether its name begins as those of the library do.
    fn is_named_alike(&self, work: &Work<'_, '_>, class: Digest) -> bool {
        work.app.prefixes_of(class).iter().any(|prefix| self.prefixes.contains(&prefix.0))
    }

    /// Whether this is a method of a class that the known version takes from elsewhere.
    fn is_taken_from(&self, work: &Work<'_, '_>, place: u32) -> bool {
        let methods = work.app_function(place).and_then(|there| work.app.methods.get(&there.start.get()));
        methods.into_iter().flatten().any(|method| self.imported.contains(&method.owner.0))
    }

    fn is_ours(&self, work: &Work<'_, '_>, ground: &Ground, number: usize) -> bool {
        let Some(group) = self.all.get(number) else { return false };
        if group.is_taken || is_claimed(work, group) {
            return false;
        }
        let (before, after) = self.neighbours(work, group);
        if group.object.is_none() {
            return before && after && has_known_methods(work, group);
        }
        let is_known = work.has_class(group.owner);
        let is_midst = match (group.places.first(), group.places.last()) {
            (Some(first), Some(last)) => ground.around(*first, *last).is_some(),
            _ => false,
        };
        (before || after)
            && group.is_used
            && group.uses_us
            && (is_known || self.is_named_alike(work, group.owner))
            || before && after && group.is_used && (is_known || is_midst)
    }

    /// Whether it lies in one piece, and the library's code is the next before it and behind it.
    fn neighbours(&self, work: &Work<'_, '_>, group: &Group) -> (bool, bool) {
        let (Some(first), Some(last)) = (group.places.first(), group.places.last()) else {
            return (false, false);
        };
        if (*first..=*last).any(|place| self.is_somebodys(work, place, group.owner)) {
            return (false, false);
        }
        // An app's category that was joined with it lies elsewhere.
        let is_other = |place: u32| work.has_method(place) && !group.places.contains(&place);
        let is_known = work.has_class(group.owner);
        if !work.app.keeps_categories && !is_known && (*first..=*last).any(is_other) {
            return (false, false);
        }
        let reaches = |place: u32| {
            if self.is_somebodys(work, place, group.owner) {
                return Some(false);
            }
            work.at(place).map(|_| true)
        };
        let before = (1..=NEAR).map_while(|by| first.checked_sub(by)).find_map(reaches);
        let after = (1..=NEAR)
            .map(|by| last + by)
            .take_while(|place| work.app_function(*place).is_some())
            .find_map(reaches);
        (before == Some(true), after == Some(true))
    }

    fn take(&mut self, work: &mut Work<'_, '_>, number: usize) {
        let Some(group) = self.all.get_mut(number) else { return };
        group.is_taken = true;
        self.ours.insert(group.owner.0);
        if work.has_class(group.owner) {
            classes::claim(work, &group.places);
            return;
        }
        for place in &group.places {
            work.claim(u32::MAX, *place, How::Added);
        }
    }
}

/// What the names of several of the library's classes begin with.
fn prefixes(work: &Work<'_, '_>) -> Set<u64> {
    let mut counts: Map<u64, usize> = Map::default();
    for (_, class) in work.app.classes().filter(|(_, class)| work.has_class(*class)) {
        for prefix in work.app.prefixes_of(class) {
            *counts.entry(prefix.0).or_default() += 1;
        }
    }
    counts.into_iter().filter(|(_, count)| *count >= LEAST_ALIKE).map(|(prefix, _)| prefix).collect()
}

/// All functions from the first to the last of these, if they lie near each other.
fn span(work: &Work<'_, '_>, places: &[u32]) -> impl Iterator<Item = u32> {
    let mut found: Vec<u32> = places.to_vec();
    for pair in places.windows(2) {
        let [p, q] = *pair else { continue };
        if q - p <= INSIDE {
            found.extend((p + 1..q).filter(|place| !work.has_method(*place)));
        }
    }
    found.into_iter()
}

/// Whether all of it has an owner.
fn is_claimed(work: &Work<'_, '_>, group: &Group) -> bool {
    group.places.iter().all(|place| work.at(*place).is_some())
}

fn has_known_methods(work: &Work<'_, '_>, group: &Group) -> bool {
    let is_known = |place: &&u32| {
        let methods = work.app_function(**place).and_then(|there| work.app.methods.get(&there.start.get()));
        methods.into_iter().flatten().any(|method| work.method(method.owner, method.selector).is_some())
    };
    group.places.iter().filter(is_known).count() * 100 >= group.places.len() * KNOWN
}

/// Claims what lies in the midst of the library's code, unless something there shows that it is somebody else's.
fn midst(work: &mut Work<'_, '_>, ground: &Ground, groups: &Groups, others: &Set<u32>) {
    for gap in ground.gaps() {
        let is_long = gap.end - gap.start > LONGEST;
        let is_others = |place: u32| others.contains(&place) || groups.is_taken_from(work, place);
        if is_long || gap.clone().any(is_others) || !groups.are_whole(&gap) {
            continue;
        }
        for place in gap {
            work.claim(u32::MAX, place, How::Added);
        }
    }
}

/// Claims what lies inside of an object file or a class and is used there alone.
fn inside(work: &mut Work<'_, '_>, ground: &Ground, others: &Set<u32>) {
    let mut inside: Set<u32> =
        gaps(work, ground).into_iter().filter(|place| !others.contains(place)).collect();
    // Whoever calls it, and whatever it calls, has to be the library's.
    loop {
        let is_ours = |place: u32| work.at(place).is_some() || inside.contains(&place);
        let is_open = |place: &u32| !is_closed(work, *place, others, &is_ours);
        let foreign: Vec<u32> = inside.iter().copied().filter(is_open).collect();
        if foreign.is_empty() {
            break;
        }
        for place in foreign {
            inside.remove(&place);
        }
    }
    let mut inside: Vec<u32> = inside.into_iter().collect();
    inside.sort_unstable();
    for place in inside {
        work.claim(u32::MAX, place, How::Added);
    }
}

/// Whether it is used nearby, as compilers put what a function alone uses beside it, and nowhere else; and calls nobody else. An
/// order file may put anybody's function anywhere.
fn is_closed(work: &Work<'_, '_>, place: u32, others: &Set<u32>, is_ours: &dyn Fn(u32) -> bool) -> bool {
    let Some(function) = work.app_function(place) else { return false };
    let Some(users) = users(work, place) else { return false };
    let called = work.app.mentions(function);
    let mut called = called.into_iter().filter_map(|address| place_at(work, address));
    !users.is_empty()
        && users.iter().all(|user| user.abs_diff(place) <= BESIDE && is_ours(*user))
        && called.all(|called| called == place || is_ours(called) || others.contains(&called))
}

/// The places between code of one object file, or of one class, that are nobody's yet, where none of them is a method; and those between object
/// files that follow each other as in the archive.
fn gaps(work: &Work<'_, '_>, ground: &Ground) -> Vec<u32> {
    let (mut files, mut classes) = (Vec::new(), Vec::new());
    for (function, place, _) in work.placed() {
        let known = work.function(function).filter(|_| !work.is_weak(function));
        files.extend(known.map(|known| (place, u64::from(known.member))));
        let methods = work.app_function(place).and_then(|there| work.app.methods.get(&there.start.get()));
        let class = methods.and_then(|methods| methods.first());
        classes.extend(class.map(|method| (place, method.owner.0)));
    }
    let mut gaps = Vec::new();
    // What else is known between two methods of a class does not part them: small functions of many object files are alike.
    for pair in files.windows(2).chain(classes.windows(2)) {
        let [(p, part), (q, other)] = *pair else { continue };
        let open = (p + 1..q).filter(|place| work.at(*place).is_none());
        if part == other && q - p <= LONGEST && !open.clone().any(|place| work.has_method(place)) {
            gaps.extend(open);
        }
    }
    for seam in ground.seams() {
        gaps.extend(seam.filter(|place| work.at(*place).is_none() && !work.has_method(*place)));
    }
    gaps
}

/// Claims functions in the midst of the library's code that only this calls, and that call it.
fn called(work: &mut Work<'_, '_>, ground: &Ground, others: &Set<u32>) {
    let gaps: Set<u32> = gaps(work, ground).into_iter().collect();
    let mut found = Vec::new();
    for place in 0..u32::try_from(work.app.functions.len()).unwrap_or(u32::MAX) {
        let callers = work.app.callers(index(place));
        if work.at(place).is_some()
            || callers.is_empty()
            || others.contains(&place)
            || work.has_method(place)
            || !callers.iter().all(|caller| work.at(*caller).is_some())
            || !gaps.contains(&place) && ground.around(place, place).is_none()
        {
            continue;
        }
        let Some(function) = work.app_function(place) else { continue };
        let Some(end) = function.start.checked_add(1) else { continue };
        let calls_us = work.app.mentions(function).into_iter().any(|address| {
            place_at(work, address).is_some_and(|called| called != place && work.at(called).is_some())
        });
        // What data points to may be known to anybody.
        if calls_us && work.app.pointed_from(function.start..end).is_some_and(<[_]>::is_empty) {
            found.push(place);
        }
    }
    for place in found {
        work.claim(u32::MAX, place, How::Added);
    }
}
