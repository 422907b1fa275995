//! From names and bodies along calls and pointers.

use backtrail_core::Svma;

use super::How;
use super::embedded;
use super::ground::Ground;
use super::order;
use super::work::Work;
use crate::app::Referent;
use crate::fingerprint::{Reach, Target, index};
use crate::hash::{Map, Set};

/// Of a class, so many hundredths must have the library's bodies before the rest are taken by name.
const CLASS_SHARE: usize = 30;
/// What a body and what it refers to must weigh to be placed alone.
pub(super) const ANCHOR: u32 = 12;

/// So many bytes a function of another version must have.
const LEAST_CHANGED: usize = 8;

/// Another version is there by its classes' names alone, whatever became of their bodies, where the app has so many hundredths of them
/// and so many at least: what others take over from a library, or it from them, is less of it.
const NAMED_CLASSES: usize = 75;
const LEAST_CLASSES: usize = 8;
/// Of very many classes fewer hundredths do, if they lie together as the library's would.
const MANY_CLASSES: usize = 24;
const NAMED_OF_MANY: usize = 50;
/// So many hundredths of the library's methods of a class the app's class of that name must have.
const NAMED_METHODS: usize = 50;

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Methods of the library's classes and categories, by name.
pub(super) fn names(work: &mut Work<'_, '_>) {
    let app = work.app;
    let mut by_owner: Map<u64, Vec<(Option<u32>, u32)>> = Map::default();
    for (place, function) in app.functions.iter().enumerate() {
        let place = number(place);
        let Some(methods) = app.methods.get(&function.start.get()) else { continue };
        if work.is_foreign(place) {
            continue;
        }
        for method in methods {
            let known = work.method(method.owner, method.selector);
            if known.is_some() || work.has_class(method.owner) {
                by_owner.entry(method.owner.0).or_default().push((known, place));
            }
        }
    }
    let mut owners: Vec<_> = by_owner.into_iter().collect();
    owners.sort_unstable_by_key(|(owner, _)| *owner);
    for (owner, methods) in owners {
        let equal: Vec<bool> = methods
            .iter()
            .map(|(known, place)| known.is_some_and(|known| work.matches(known, *place)))
            .collect();
        let count = equal.iter().filter(|equal| **equal).count();
        if count * 100 < methods.len() * CLASS_SHARE {
            continue;
        }
        let is_class = work.has_class(crate::hash::Digest(owner));
        // A class is there once. A category's name may be taken by a copy of it, then neither is told by name.
        let mut seen: Map<u32, u32> = Map::default();
        for (known, place) in &methods {
            if let Some(known) = known {
                let first = seen.entry(*known).or_insert(*place);
                if *first != *place {
                    *first = u32::MAX;
                }
            }
        }
        for ((known, place), equal) in methods.iter().zip(equal) {
            match known {
                Some(known) if !is_class && seen.get(known) == Some(&u32::MAX) => {}
                Some(known) if equal => {
                    work.put(*known, *place, How::Name);
                    // Two methods of the library may have been folded.
                    work.claim(*known, *place, How::Name);
                }
                Some(known) if is_class => work.claim(*known, *place, How::Changed),
                // A method that this version of the library has not.
                None if is_class && !work.may_be_joined(*place) => work.claim(u32::MAX, *place, How::Added),
                _ => {}
            }
        }
    }
}

/// Claims the methods of another version's classes, of which no bodies are known. Tells whether the library is there by names.
pub(super) fn renewed(work: &mut Work<'_, '_>) -> bool {
    let mut known: Map<u64, usize> = Map::default();
    for method in work.slice.methods.iter().filter(|method| work.has_class(method.owner)) {
        *known.entry(method.owner.0).or_default() += 1;
    }
    let mut there: Map<u64, (usize, Vec<(u32, How)>)> = Map::default();
    for (place, function) in (0u32..).zip(&work.app.functions) {
        for method in work.app.methods.get(&function.start.get()).into_iter().flatten() {
            if known.contains_key(&method.owner.0) && !work.is_foreign(place) {
                let (count, places) = there.entry(method.owner.0).or_default();
                let is_known = work.method(method.owner, method.selector).is_some();
                *count += usize::from(is_known);
                places.push((place, if is_known { How::Changed } else { How::Added }));
            }
        }
    }
    there.retain(|class, (count, _)| known.get(class).is_some_and(|all| *count * 100 >= all * NAMED_METHODS));
    let has = |least: usize, share: usize| there.len() >= least && there.len() * 100 >= known.len() * share;
    let is_nearly_all = has(LEAST_CLASSES, NAMED_CLASSES);
    let is_many = has(MANY_CLASSES, NAMED_OF_MANY);
    let classes: Set<u64> = there.keys().copied().collect();
    let mut places: Vec<(u32, How)> = there.into_values().flat_map(|(_, places)| places).collect();
    places.sort_unstable();
    let is_there = is_nearly_all || is_many && is_dense(work, &places);
    if !is_there || !work.is_there && embedded::may_be(work, &classes) {
        return false;
    }
    for (place, how) in places {
        if !work.may_be_joined(place) {
            work.claim(u32::MAX, place, how);
        }
    }
    true
}

/// Whether most methods from the first of these to the last are among them.
fn is_dense(work: &Work<'_, '_>, methods: &[(u32, How)]) -> bool {
    let (Some((first, _)), Some((last, _))) = (methods.first(), methods.last()) else { return false };
    let places: Set<u32> = methods.iter().map(|(place, _)| *place).collect();
    places.len() * 2 > (*first..=*last).filter(|place| work.has_method(*place)).count()
}

/// Functions that the app has by name, and with their body.
pub(super) fn symbols(work: &mut Work<'_, '_>) {
    let slice = work.slice;
    let mut count: Map<u64, usize> = Map::default();
    for known in &slice.functions {
        *count.entry(known.name.0).or_default() += 1;
    }
    for (function, known) in (0u32..).zip(&slice.functions) {
        // Of functions that only their own object files can name, several may have one name.
        let is_one = match known.reach {
            Reach::Global => true,
            Reach::Local => count.get(&known.name.0) == Some(&1),
            Reach::Weak => false,
        };
        let place = work.app.function_named(known.name).map(number);
        if let Some(place) = place.filter(|place| is_one && !work.is_foreign(*place))
            && work.matches(function, place)
            && work.agreement(function, place).is_some()
        {
            work.put(function, place, How::Name);
        }
    }
}

/// Bodies that occur once in the library and once in the app.
pub(super) fn bodies(work: &mut Work<'_, '_>) {
    let mut by_function: Map<u32, (u32, usize)> = Map::default();
    let mut unique: Vec<(u32, u32)> = Vec::new();
    for place in 0..number(work.app.functions.len()) {
        let alike = work.alike(place).to_vec();
        let mut fitting = Vec::new();
        for function in alike {
            if work.matches(function, place) && work.agreement(function, place).is_some() {
                fitting.push(function);
            }
        }
        for function in &fitting {
            by_function.entry(*function).or_insert((place, 0)).1 += 1;
        }
        if let [function] = *fitting {
            unique.push((function, place));
        }
    }
    for (function, place) in unique {
        let is_once = by_function.get(&function).is_some_and(|(_, count)| *count == 1);
        let is_free = work.at(place).is_none() && work.place_of(function).is_none();
        if is_once
            && is_free
            && !work.is_weak(function)
            && !work.has_method(place)
            && !is_used_by_others(work, function, place)
            && work.agreement(function, place).is_some_and(|agreement| agreement >= ANCHOR)
        {
            work.put(function, place, How::Body);
        }
    }
}

/// Bodies that several functions of the library share, as the constructors of C++ do, and that the app has no oftener.
pub(super) fn groups(work: &mut Work<'_, '_>) {
    let mut groups: Map<(u64, u64), Vec<u32>> = Map::default();
    for (number, function) in (0u32..).zip(&work.slice.functions) {
        groups.entry((function.body.0, function.outline.0)).or_default().push(number);
    }
    let mut places: Map<(u64, u64), Vec<u32>> = Map::default();
    for place in 0..number(work.app.functions.len()) {
        let alike = work.alike(place).to_vec();
        let mut bodies: Set<(u64, u64)> = Set::default();
        for function in alike {
            let Some(key) = work.function(function).map(|function| (function.body.0, function.outline.0))
            else {
                continue;
            };
            if !bodies.contains(&key)
                && work.matches(function, place)
                && work.agreement(function, place).is_some()
            {
                bodies.insert(key);
                places.entry(key).or_default().push(place);
            }
        }
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_unstable();
    for (key, places) in places {
        let Some(functions) = groups.get(&key).filter(|functions| functions.len() > 1) else { continue };
        if places.len() > functions.len() || functions.iter().any(|function| work.is_weak(*function)) {
            continue;
        }
        for place in places {
            if work.at(place).is_some() || work.has_method(place) {
                continue;
            }
            let fits = |work: &Work<'_, '_>, function: u32| {
                work.place_of(function).is_none()
                    && !is_used_by_others(work, function, place)
                    && work.agreement(function, place).is_some_and(|agreement| agreement >= ANCHOR)
            };
            let free = functions.iter().copied().find(|function| fits(work, *function));
            if let Some(function) = free.filter(|function| calls_agree(work, *function, place)) {
                work.put(function, place, How::Body);
            }
        }
    }
}

/// Whether a function that only its own object file can name is called by a class of somebody else.
fn is_used_by_others(work: &Work<'_, '_>, function: u32, place: u32) -> bool {
    let is_local = work.function(function).is_some_and(|function| function.reach == Reach::Local);
    is_local && work.app.callers(index(place)).iter().any(|caller| work.is_foreign(*caller))
}

/// What known functions call and point to.
pub(super) fn calls(work: &mut Work<'_, '_>) {
    let open = work
        .placed()
        .filter(|(_, _, how)| how.is_equal())
        .map(|(function, place, _)| (function, place))
        .collect();
    follow_all(work, open);
}

/// What these functions, at their places, call and point to, and what that does.
pub(super) fn follow_all(work: &mut Work<'_, '_>, mut open: Vec<(u32, u32)>) {
    let mut seen_data: Set<u32> = Set::default();
    while let Some((function, place)) = open.pop() {
        for (target, address) in references(work, function, place) {
            follow(work, target, address, &mut open, &mut seen_data);
        }
    }
}

/// What a function at its place refers to: the library's targets and where they lie.
pub(super) fn references(work: &Work<'_, '_>, function: u32, place: u32) -> Vec<(u32, Svma)> {
    let (Some(wanted), Some(there)) = (work.function(function), work.app_function(place)) else {
        return Vec::new();
    };
    let resolved =
        wanted.references.iter().filter_map(|reference| match work.app.resolve(there, reference)? {
            Referent::Place(address) => Some((reference.target, address)),
            Referent::Import(_) => None,
        });
    resolved.collect()
}

fn follow(
    work: &mut Work<'_, '_>,
    target: u32,
    address: Svma,
    open: &mut Vec<(u32, u32)>,
    seen: &mut Set<u32>,
) {
    match work.slice.targets.get(index(target)) {
        Some(Target::Function(function)) => {
            let function = *function;
            let Some(place) = work.app.function_at(address).map(number) else { return };
            let is_free = work.place_of(function).is_none();
            if is_free
                && !work.is_weak(function)
                && !work.is_foreign(place)
                && work.matches(function, place)
                && work.agreement(function, place).is_some()
                && work.put(function, place, How::Call)
            {
                open.push((function, place));
            }
        }
        Some(Target::Data(_) | Target::WeakData(_)) => data(work, target, address, open, seen),
        _ => {}
    }
}

/// Data that a known function refers to, and the pointers in it.
fn data(
    work: &mut Work<'_, '_>,
    target: u32,
    address: Svma,
    open: &mut Vec<(u32, u32)>,
    seen: &mut Set<u32>,
) {
    let known = work.data_at.entry(target).or_insert(Some(address.get()));
    if *known != Some(address.get()) {
        *known = None;
        return;
    }
    if !seen.insert(target) {
        return;
    }
    let slice = work.slice;
    for pointer in slice.pointers_of(target) {
        let at = address.checked_add(pointer.offset.into());
        if let Some(there) = at.and_then(|at| work.app.pointer(at)) {
            // Tables lead to tables: each is looked through once.
            follow(work, pointer.target, there, open, seen);
        }
    }
}

/// Takes back what only its body speaks for, where its calls lead elsewhere.
pub(super) fn verify(work: &mut Work<'_, '_>) {
    for _ in 0..3 {
        let placed: Vec<_> = work.placed().filter(|(_, _, how)| *how == How::Body).collect();
        let wrong: Vec<_> =
            placed.into_iter().filter(|(function, place, _)| !calls_agree(work, *function, *place)).collect();
        if wrong.is_empty() {
            break;
        }
        for (function, place, _) in wrong {
            work.take_back(function, place);
        }
    }
}

fn calls_agree(work: &mut Work<'_, '_>, function: u32, place: u32) -> bool {
    let (mut agree, mut differ) = (0, 0);
    for (target, address) in references(work, function, place) {
        let Some(Target::Function(callee)) = work.slice.targets.get(index(target)).copied() else { continue };
        if work.is_weak(callee) || work.app.is_import(address) {
            continue;
        }
        match work.app.function_at(address).map(number) {
            // Nothing starts there that is known to be a function.
            None => {}
            Some(there) if work.place_of(callee) == Some(there) => agree += 1,
            Some(there) if work.matches(callee, there) => {}
            Some(_) => differ += 1,
        }
    }
    differ == 0 || agree > differ
}

/// Functions that only one object file can call, with another body than the known one, in the place of that object file: of another version.
/// Elsewhere it may be somebody else's that took over what they did.
pub(super) fn changed(work: &mut Work<'_, '_>) {
    let ground = Ground::read(work);
    let mut votes: Map<u32, Option<u32>> = Map::default();
    let placed: Vec<_> = work.placed().filter(|(_, _, how)| how.is_equal()).collect();
    for (function, place, _) in placed {
        for (target, address) in references(work, function, place) {
            let Some(Target::Function(callee)) = work.slice.targets.get(index(target)).copied() else {
                continue;
            };
            let is_local = work.function(callee).is_some_and(|callee| callee.reach == Reach::Local);
            if !is_local || work.place_of(callee).is_some() {
                continue;
            }
            let Some(there) = work.app.function_at(address).map(number) else { continue };
            let vote = votes.entry(callee).or_insert(Some(there));
            if *vote != Some(there) {
                *vote = None;
            }
        }
    }
    let mut votes: Vec<_> = votes.into_iter().filter_map(|(callee, place)| Some((callee, place?))).collect();
    votes.sort_unstable();
    for (callee, place) in votes {
        // One instruction that returns may be folded with anybody's.
        let is_code = work.app_function(place).is_some_and(|there| there.outline.len >= LEAST_CHANGED);
        let is_there = work.function(callee).is_some_and(|known| ground.is_of(place, known.member));
        if is_code
            && is_there
            && !work.is_foreign(place)
            && !work.has_method(place)
            && work.at(place).is_none()
        {
            work.claim(callee, place, How::Changed);
        }
    }
}

/// Functions that the app has by the library's names, with other bodies, in the place of their object file: of another version. An object file
/// of which something was found defines its names itself, unless another version has left them to somebody else.
pub(super) fn renamed(work: &mut Work<'_, '_>) {
    let ground = Ground::read(work);
    let placed = work.placed().filter(|(_, _, how)| how.is_equal());
    let members: Set<u32> =
        placed.filter_map(|(function, ..)| Some(work.function(function)?.member)).collect();
    let slice = work.slice;
    for (function, known) in (0u32..).zip(&slice.functions) {
        if known.reach != Reach::Global || !members.contains(&known.member) {
            continue;
        }
        let place = work.app.function_named(known.name).map(number);
        let is_free = |work: &Work<'_, '_>, place: u32| {
            !work.is_foreign(place)
                && work.at(place).is_none()
                && work.app_function(place).is_some_and(|there| !work.has_other_names(there))
        };
        let is_fit = |place: &u32| is_free(work, *place) && ground.is_of(*place, known.member);
        if let Some(place) = place.filter(is_fit) {
            work.claim(function, place, How::Changed);
        }
    }
}

/// Takes back functions that only their own object file can name, small ones, and those that are none in particular, where only others use
/// them: equal code of somebody else's.
pub(super) fn stray(work: &mut Work<'_, '_>) {
    loop {
        let placed = work.placed().filter(|(_, _, how)| how.is_equal() && *how != How::Name);
        let stray: Vec<_> = placed.filter(|(function, place, _)| is_stray(work, *function, *place)).collect();
        if stray.is_empty() {
            return;
        }
        for (function, place, _) in stray {
            work.take_back(function, place);
        }
    }
}

/// Whether somebody uses a function, and nobody of the library's, which alone could.
pub(super) fn is_stray(work: &Work<'_, '_>, function: u32, place: u32) -> bool {
    let known = work.function(function);
    let is_alike =
        known.is_none_or(|known| known.reach == Reach::Local) || work.weight(function) < order::END;
    let users = if is_alike { users(work, place) } else { None };
    users.is_some_and(|users| !users.is_empty() && users.iter().all(|user| work.at(*user).is_none()))
}

/// The functions that use one: callers, and those that mention data with its address, as a block or the descriptor of one. Nothing where
/// not all are known.
pub(super) fn users(work: &Work<'_, '_>, place: u32) -> Option<Vec<u32>> {
    /// Bytes before a pointer in a block's descriptor.
    const DESCRIPTOR: u64 = 24;
    let start = work.app_function(place)?.start;
    let mut users: Vec<u32> = work.app.callers(index(place)).to_vec();
    for (_, slot) in work.app.pointed_from(start..start.checked_add(1)?)? {
        let from = slot.get().saturating_sub(DESCRIPTOR);
        let before = users.len();
        users.extend(work.app.mentioned_by(Svma::new(from)..Svma::new(slot.get().saturating_add(1))));
        if users.len() == before {
            return None;
        }
    }
    Some(users)
}

/// Takes back functions of one instruction, which a linker may have folded with anybody's, where code calls them that is not the library's.
pub(super) fn folded(work: &mut Work<'_, '_>) {
    const WORD: usize = 4;
    let placed: Vec<_> = work.placed().filter(|(_, _, how)| how.is_equal() && *how != How::Name).collect();
    let is_others = |work: &Work<'_, '_>, place: u32| {
        work.app_function(place).is_some_and(|there| there.outline.len <= WORD)
            && work.app.callers(index(place)).iter().any(|caller| work.at(*caller).is_none())
    };
    let shared: Vec<_> = placed.into_iter().filter(|(_, place, _)| is_others(work, *place)).collect();
    for (function, place, _) in shared {
        work.take_back(function, place);
    }
}

/// Whether something shows that another version is there: a known function with another body, also where it was not claimed.
pub(super) fn is_contradicted(work: &mut Work<'_, '_>) -> bool {
    if work.claims().iter().any(|(_, how)| *how == How::Changed) {
        return true;
    }
    let placed: Vec<_> = work.placed().filter(|(_, _, how)| how.is_equal()).collect();
    placed.into_iter().any(|(function, place, _)| {
        references(work, function, place).into_iter().any(|(target, address)| {
            let Some(Target::Function(callee)) = work.slice.targets.get(index(target)).copied() else {
                return false;
            };
            let there = work.app.function_at(address).map(number);
            !work.is_weak(callee)
                && !work.app.is_import(address)
                && there.is_some_and(|there| !work.is_foreign(there) && !work.matches(callee, there))
        })
    })
}
