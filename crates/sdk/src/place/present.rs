//! What must be there: where a linker left out nothing, all functions of an object file that is in the app are in it, the
//! smallest ones too. Then a body that fits no more places than it has functions says whose they are, in any order.

use super::How;
use super::spread::{ANCHOR, has_method};
use super::work::Work;
use crate::fingerprint::{Reach, Target, index};
use crate::hash::{Map, Set};

/// So many functions that nothing in the library needs, and that cannot be overlooked, must be there, every one: who strips dead code
/// keeps of these what the app happens to call.
const LEAST_UNUSED: usize = 20;
/// Bodies that the library has twice, and that lie in the app twice: where equal code is folded there are none.
const LEAST_TWINS: usize = 3;
/// New places tell more: each round takes a look at all functions.
const ROUNDS: usize = 4;

/// Functions with one body.
type Key = (u64, u64);

pub(super) fn fill(work: &mut Work<'_, '_>) {
    let bodies = bodies(work);
    for _ in 0..ROUNDS {
        let members = members(work);
        let places = places(work, &bodies);
        if !is_whole(work, &members, &bodies, &places) || !claim(work, &members, &bodies, &places) {
            return;
        }
        super::spread::calls(work);
    }
}

fn key(work: &Work<'_, '_>, function: u32) -> Option<Key> {
    work.function(function).map(|function| (function.body.0, function.outline.0))
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
    let placed = work.placed().filter(|(_, _, how)| *how != How::Changed);
    let strong = placed.filter(|(function, ..)| !work.is_weak(*function) && work.weight(*function) >= ANCHOR);
    strong.filter_map(|(function, ..)| Some(work.function(function)?.member)).collect()
}

/// The places that have a body of the library, and where nothing speaks against it, claimed or not.
fn places(work: &mut Work<'_, '_>, bodies: &Map<Key, Vec<u32>>) -> Map<Key, Vec<u32>> {
    let mut places: Map<Key, Vec<u32>> = Map::default();
    for place in 0..u32::try_from(work.app.functions.len()).unwrap_or(u32::MAX) {
        let mut keys: Vec<Key> =
            work.alike(place).iter().filter_map(|function| key(work, *function)).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
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

/// Claims the places of bodies that have as many functions as places. Tells whether there were any.
fn claim(
    work: &mut Work<'_, '_>,
    members: &Set<u32>,
    bodies: &Map<Key, Vec<u32>>,
    places: &Map<Key, Vec<u32>>,
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
        let open: Vec<u32> = fitting.iter().copied().filter(|place| work.at(*place).is_none()).collect();
        let missing: Vec<u32> =
            functions.iter().copied().filter(|function| work.place_of(*function).is_none()).collect();
        // A weak one may be another's, and one of an object file that nothing else is known of may be missing.
        let is_certain = functions.iter().all(|function| is_there(function) && !work.is_weak(*function))
            && open.iter().all(|place| !work.is_foreign(*place) && !has_method(work, *place));
        let is_all = if is_folded {
            functions.len() == 1 && open.len() == 1 && missing.len() == 1
        } else {
            !open.is_empty() && open.len() == missing.len()
        };
        if !is_certain || !is_all {
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
