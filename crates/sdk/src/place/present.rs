//! What must be there: where a linker left out nothing, all functions of an object file that is in the app are in it, the
//! smallest ones too. Then a body that fits no more places than it has functions says whose they are, in any order.

use super::How;
use super::spread::ANCHOR;
use super::work::Work;
use crate::fingerprint::{Reach, Target, index};
use crate::hash::{Map, Set};

/// So many functions that nothing in the library needs, and that cannot be overlooked, must be there, every one: who strips dead code
/// keeps of these what the app happens to call.
const LEAST_UNUSED: usize = 20;
/// So many object files that no other one of the library needs, and that cannot be overlooked, must be there, every one: then the
/// linker took all of them, also those of which nothing stands out.
const LEAST_UNNEEDED: usize = 8;
/// Bodies that the library has twice, and that lie in the app twice: where equal code is folded there are none.
const LEAST_TWINS: usize = 3;
/// New places tell more: each round takes a look at all functions.
const ROUNDS: usize = 4;

/// Functions with one body.
type Key = (u64, u64);

pub(super) fn fill(work: &mut Work<'_, '_>) {
    let bodies = bodies(work);
    let copies = super::weak::copies(work);
    for _ in 0..ROUNDS {
        let places = places(work, &bodies);
        let mut members = members(work);
        if is_complete(work, &members, &bodies) {
            members.extend(0..u32::try_from(work.slice.members.len()).unwrap_or(u32::MAX));
        }
        if !is_whole(work, &members, &bodies, &places) {
            return;
        }
        let mut islands = Vec::new();
        if !claim(work, &members, &copies, &bodies, &places, &mut islands)
            && !super::weak::claim_islands(work, &islands, &copies)
        {
            return;
        }
        super::spread::calls(work);
    }
}

fn bodies(work: &Work<'_, '_>) -> Map<Key, Vec<u32>> {
    let mut bodies: Map<Key, Vec<u32>> = Map::default();
    for (number, function) in (0u32..).zip(&work.slice.functions) {
        if function.len > 0 {
            bodies.entry((function.body.0, function.outline.0)).or_default().push(number);
        }
    }
    bodies
}

/// The members of which something was found that is not weak.
fn members(work: &Work<'_, '_>) -> Set<u32> {
    let placed = work.placed().filter(|(_, _, how)| how.is_equal());
    let strong = placed.filter(|(function, ..)| !work.is_weak(*function) && work.weight(*function) >= ANCHOR);
    strong.filter_map(|(function, ..)| Some(work.function(function)?.member)).collect()
}

/// Whether all object files that cannot be overlooked are there, and many of them are none that others need.
fn is_complete(work: &Work<'_, '_>, members: &Set<u32>, bodies: &Map<Key, Vec<u32>>) -> bool {
    let mut is_needed: Set<u32> = Set::default();
    let mut telling: Set<u32> = Set::default();
    for (number, function) in (0u32..).zip(&work.slice.functions) {
        let key = (function.body.0, function.outline.0);
        if function.reach != Reach::Weak
            && work.weight(number) >= ANCHOR
            && bodies.get(&key).is_some_and(|functions| functions.len() == 1)
        {
            telling.insert(function.member);
        }
        for reference in &function.references {
            if let Some(Target::Function(callee)) = work.slice.targets.get(index(reference.target))
                && let Some(callee) = work.function(*callee)
                && callee.member != function.member
            {
                is_needed.insert(callee.member);
            }
        }
    }
    telling.iter().all(|member| members.contains(member))
        && telling.iter().filter(|member| !is_needed.contains(*member)).count() >= LEAST_UNNEEDED
}

/// The places that have a body of the library, and where nothing speaks against it, claimed or not.
fn places(work: &mut Work<'_, '_>, bodies: &Map<Key, Vec<u32>>) -> Map<Key, Vec<u32>> {
    let mut by_outline: Map<u64, Vec<Key>> = Map::default();
    for key in bodies.keys() {
        by_outline.entry(key.1).or_default().push(*key);
    }
    let mut places: Map<Key, Vec<u32>> = Map::default();
    for place in 0..u32::try_from(work.app.functions.len()).unwrap_or(u32::MAX) {
        let outline = work.app_function(place).map_or(0, |function| function.outline.digest.0);
        for key in by_outline.get(&outline).into_iter().flatten().copied() {
            let functions = bodies.get(&key).map(Vec::as_slice).unwrap_or_default();
            let matches = functions.first().is_some_and(|function| work.matches(*function, place));
            if matches && functions.iter().any(|function| work.agreement(*function, place).is_some()) {
                places.entry(key).or_default().push(place);
            }
        }
    }
    places
}

/// Whether nothing was left out of the object files that were taken.
fn is_whole(
    work: &Work<'_, '_>,
    members: &Set<u32>,
    bodies: &Map<Key, Vec<u32>>,
    places: &Map<Key, Vec<u32>>,
) -> bool {
    let mut is_used = vec![false; work.slice.functions.len()];
    let mut use_target = |target: u32| {
        if let Some(Target::Function(function)) = work.slice.targets.get(index(target))
            && let Some(is_used) = is_used.get_mut(index(*function))
        {
            *is_used = true;
        }
    };
    for function in &work.slice.functions {
        function.references.iter().for_each(|reference| use_target(reference.target));
    }
    work.slice.pointers.iter().for_each(|pointer| use_target(pointer.target));
    // Methods are kept with their class.
    for method in &work.slice.methods {
        if let Some(is_used) = is_used.get_mut(index(method.function)) {
            *is_used = true;
        }
    }
    let mut unused = 0;
    for (number, function) in (0u32..).zip(&work.slice.functions) {
        let is_used = is_used.get(index(number)).copied().unwrap_or(true);
        let key = (function.body.0, function.outline.0);
        let is_telling = function.reach == Reach::Global
            && members.contains(&function.member)
            && work.weight(number) >= ANCHOR
            && bodies.get(&key).is_some_and(|functions| functions.len() == 1);
        if is_used || !is_telling {
            continue;
        }
        if work.place_of(number).is_none() && !places.contains_key(&key) {
            return false;
        }
        unused += 1;
    }
    unused >= LEAST_UNUSED
}

/// Claims the places of bodies that have as many functions as places. Tells whether there were any. `islands` gets the weak ones of which it has
/// to be seen who mentions them.
fn claim(
    work: &mut Work<'_, '_>,
    members: &Set<u32>,
    copies: &Map<u64, Vec<u32>>,
    bodies: &Map<Key, Vec<u32>>,
    places: &Map<Key, Vec<u32>>,
    islands: &mut Vec<(u32, u32)>,
) -> bool {
    let is_folded = is_folded(work, bodies, places);
    let mut keys: Vec<Key> = places.keys().copied().collect();
    keys.sort_unstable();
    let mut is_changed = false;
    for key in keys {
        let functions = bodies.get(&key).map(Vec::as_slice).unwrap_or_default();
        let is_there =
            |function: &u32| work.function(*function).is_some_and(|known| members.contains(&known.member));
        let fitting = places.get(&key).map(Vec::as_slice).unwrap_or_default();
        // A method of somebody else's is not the library's, unless both were folded.
        let is_open = |place: &u32| {
            work.at(*place).is_none() && (is_folded || !work.is_foreign(*place) && !work.has_method(*place))
        };
        let open: Vec<u32> = fitting.iter().copied().filter(is_open).collect();
        let Some((missing, has_weak)) = missing(work, copies, functions) else { continue };
        // One of an object file that nothing else is known of may be missing, a weak one may be the app's, which then mentions it.
        let is_certain = functions.iter().all(is_there)
            && open.iter().all(|place| !work.is_foreign(*place) && !work.has_method(*place))
            && !(has_weak && is_folded);
        let is_all = if is_folded {
            functions.len() == 1 && open.len() == 1 && missing.len() == 1
        } else {
            !open.is_empty() && open.len() == missing.len()
        };
        if !is_certain || !is_all {
            continue;
        }
        if has_weak && !open.iter().all(|place| is_unmentioned(work, *place)) {
            let number = |function: u32| if functions.len() == 1 { function } else { u32::MAX };
            islands.extend(missing.iter().zip(&open).map(|(function, place)| (number(*function), *place)));
            continue;
        }
        is_changed = true;
        // Which of them lies where is not known where there are several, and need not be.
        for (function, place) in missing.iter().zip(&open) {
            if functions.len() == 1 {
                work.put(*function, *place, How::Present);
            } else {
                work.claim(u32::MAX, *place, How::Present);
            }
        }
    }
    is_changed
}

/// Those of some functions that were not placed, one of each name, and whether there are weak ones among them. Nothing where a weak
/// one may have another body.
fn missing(work: &Work<'_, '_>, copies: &Map<u64, Vec<u32>>, functions: &[u32]) -> Option<(Vec<u32>, bool)> {
    let mut names: Set<u64> = Set::default();
    let mut missing = Vec::new();
    let mut has_weak = false;
    for number in functions.iter().copied().filter(|function| work.place_of(*function).is_none()) {
        let Some(function) = work.function(number) else { continue };
        if function.reach == Reach::Weak {
            let copies = copies.get(&function.name.0).map(Vec::as_slice).unwrap_or_default();
            if copies.iter().any(|copy| work.place_of(*copy).is_some()) || !names.insert(function.name.0) {
                continue;
            }
            let is_alike = |copy: &u32| work.function(*copy).is_some_and(|copy| copy.body == function.body);
            if !copies.iter().all(is_alike) {
                return None;
            }
            has_weak = true;
        }
        missing.push(number);
    }
    Some((missing, has_weak))
}

/// Whether nobody but the library calls a function, and no data has its address.
fn is_unmentioned(work: &Work<'_, '_>, place: u32) -> bool {
    let start = work.app_function(place).map(|function| function.start);
    let Some((start, end)) = start.and_then(|start| Some((start, start.checked_add(1)?))) else {
        return false;
    };
    work.app.callers(index(place)).iter().all(|caller| work.at(*caller).is_some())
        && work.app.pointed_from(start..end).is_some_and(<[_]>::is_empty)
}

/// Whether functions with equal code may share a place.
fn is_folded(work: &Work<'_, '_>, bodies: &Map<Key, Vec<u32>>, places: &Map<Key, Vec<u32>>) -> bool {
    let mut seen: Set<u32> = Set::default();
    let shared = (0u32..)
        .take(work.slice.functions.len())
        .filter_map(|function| work.place_of(function))
        .any(|place| !seen.insert(place));
    let twins = places.iter().filter(|(key, places)| {
        let functions = bodies.get(*key).map(Vec::as_slice).unwrap_or_default();
        let is_plain = functions
            .first()
            .and_then(|function| work.function(*function))
            .is_some_and(|function| function.references.is_empty());
        functions.len() > 1 && is_plain && places.len() >= functions.len()
    });
    shared || twins.count() < LEAST_TWINS
}
