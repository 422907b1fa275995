//! Another version of the library: its classes keep their names when all of their code changes.

use super::How;
use super::order;
use super::work::Work;
use crate::hash::Map;

/// Of a class's methods, so many hundredths must be known by name.
const KNOWN: usize = 50;
/// Functions between two classes of one library.
const NEAR: u32 = 60;
/// Functions between a method and those that the known version has, too.
const BESIDE: u32 = 16;

/// Claims classes of the library that lie among its code, whatever their bodies.
pub(super) fn fill(work: &mut Work<'_, '_>) {
    if !order::is_kept(&order::known(work)) {
        return;
    }
    let mut classes = classes(work);
    // Each class that is claimed brings the next one near.
    loop {
        let before = classes.len();
        classes.retain(|(_, places)| {
            let is_near = is_among(work, places);
            if is_near {
                claim(work, places);
            }
            !is_near
        });
        if classes.len() == before {
            break;
        }
    }
}

/// Of each class: its methods' places, and whether the library has a method of that name.
fn classes(work: &Work<'_, '_>) -> Vec<(u64, Vec<u32>)> {
    let mut by_class: Map<u64, Vec<(u32, bool)>> = Map::default();
    for (place, function) in (0u32..).zip(&work.app.functions) {
        for method in work.app.methods.get(&function.start.get()).into_iter().flatten() {
            if work.has_class(method.owner) && !work.is_foreign(place) {
                let is_known = work.method(method.owner, method.selector).is_some();
                by_class.entry(method.owner.0).or_default().push((place, is_known));
            }
        }
    }
    let is_known = |methods: &Vec<(u32, bool)>| {
        methods.iter().filter(|(_, is_known)| *is_known).count() * 100 >= methods.len() * KNOWN
    };
    let mut found: Vec<(u64, Vec<u32>)> = by_class
        .into_iter()
        .filter(|(_, methods)| is_known(methods))
        .map(|(class, methods)| {
            let mut places: Vec<u32> = methods.into_iter().map(|(place, _)| place).collect();
            places.sort_unstable();
            places.dedup();
            (class, places)
        })
        .collect();
    found.sort_unstable();
    found
}

/// Whether one of its neighbours is the library's, with nobody else's class between them.
fn is_among(work: &Work<'_, '_>, places: &[u32]) -> bool {
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return false };
    if places.iter().any(|place| work.at(*place).is_some()) {
        return true;
    }
    let reaches = |place: u32| {
        if work.is_foreign(place) {
            return Some(false);
        }
        work.at(place).map(|_| true)
    };
    let before = (1..=NEAR).map_while(|by| first.checked_sub(by)).find_map(reaches);
    let after = (1..=NEAR)
        .map(|by| last + by)
        .take_while(|place| work.app_function(*place).is_some())
        .find_map(reaches);
    before == Some(true) || after == Some(true)
}

pub(super) fn claim(work: &mut Work<'_, '_>, places: &[u32]) {
    for (number, place) in places.iter().enumerate() {
        // Among the class's own methods there is nobody's.
        let is_own = |other: &u32| place.abs_diff(*other) <= BESIDE && !work.may_be_joined(*other);
        let (before, behind) = places.split_at(number);
        let is_among = before.iter().any(is_own) && behind.iter().any(is_own);
        if is_among || !work.may_be_joined(*place) {
            work.claim(u32::MAX, *place, How::Added);
        }
    }
}
