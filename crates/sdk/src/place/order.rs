//! What lies between known functions, where the app keeps the order of the library's object files.

use super::How;
use super::ground::Ground;
use super::work::Work;

/// Places between two functions that follow each other in the library, that still count as one behind the other.
const NEAR: u32 = 3;
/// In hundredths: how many functions must be followed by their successor.
const KEPT: u32 = 40;
/// How many functions of the library may be missing in a row.
const SKIPPED: u32 = 6;
/// Functions between two known ones that are compared.
const LONGEST: u32 = 400;
/// Places between two object files.
const ACROSS: u32 = 48;
/// The weight of a function that may end a run: many of fewer words are alike.
pub(super) const END: u32 = 4;

/// A known function: its place, its number, its member.
type Known = (u32, u32, u32);

pub(super) fn fill(work: &mut Work<'_, '_>) {
    let known = known(work);
    if !is_kept(&known) {
        return;
    }
    let ground = Ground::read(work);
    let members = kept_members(&known);
    for pair in known.windows(2) {
        if let [(p, i, m), (q, j, n)] = *pair
            && m == n
            && i < j
            && members.contains(&m)
        {
            between(work, &ground, (p, i), (q, j));
        }
    }
    for (place, function, member) in known.iter().copied() {
        if members.contains(&member) {
            extend(work, &ground, (place, function, member), true);
            extend(work, &ground, (place, function, member), false);
        }
    }
    across(work);
}

/// Claims what lies between two object files of the library, where all of it has bodies of the library: small object files
/// of which nothing stands out.
fn across(work: &mut Work<'_, '_>) {
    let known = known(work);
    for pair in known.windows(2) {
        let [(p, ..), (q, ..)] = *pair else { continue };
        let between = p + 1..q;
        if between.is_empty() || q - p > ACROSS || !between.clone().all(|place| is_open(work, place)) {
            continue;
        }
        let mut run = Vec::new();
        for place in between {
            let alike = work.alike(place).to_vec();
            // One that goes on where the last one was, if there is one.
            let last: Option<u32> = run.last().map(|(function, _): &(u32, u32)| *function);
            let mut fits: Vec<u32> = Vec::new();
            for function in alike {
                if work.place_of(function).is_none()
                    && work.matches(function, place)
                    && work.agreement(function, place).is_some()
                {
                    fits.push(function);
                }
            }
            let next = fits
                .iter()
                .copied()
                .find(|function| last.is_some_and(|last| *function > last && function - last <= SKIPPED));
            match next.or(fits.first().copied()) {
                Some(function) => run.push((function, place)),
                None => break,
            }
        }
        if run.len() as u64 == u64::from(q - p - 1) {
            for (function, place) in run {
                work.claim(function, place, How::Order);
            }
        }
    }
}

/// In the app's order.
pub(super) fn known(work: &Work<'_, '_>) -> Vec<Known> {
    let placed = work.placed().filter(|(_, _, how)| how.is_equal());
    placed
        .filter_map(|(function, place, _)| Some((place, function, work.function(function)?.member)))
        .collect()
}

fn is_successor(pair: &[Known]) -> bool {
    matches!(*pair, [(p, i, m), (q, j, n)] if m == n && i < j && j - i <= NEAR + 1 && q - p <= NEAR + 1)
}

/// Whether the app has the library's functions in its order, by and large.
pub(super) fn is_kept(known: &[Known]) -> bool {
    let successors = known.windows(2).filter(|pair| is_successor(pair)).count();
    let members: std::collections::BTreeSet<u32> = known.iter().map(|(.., member)| *member).collect();
    let pairs = known.len().saturating_sub(members.len());
    pairs > 0 && successors * 100 > pairs * usize::try_from(KEPT).unwrap_or(0)
}

/// The members of which this holds, each for itself.
fn kept_members(known: &[Known]) -> std::collections::BTreeSet<u32> {
    let mut counts: std::collections::BTreeMap<u32, (u32, u32)> = std::collections::BTreeMap::new();
    for (.., member) in known {
        counts.entry(*member).or_default().0 += 1;
    }
    for pair in known.windows(2).filter(|pair| is_successor(pair)) {
        if let [(.., member), _] = pair {
            counts.entry(*member).or_default().1 += 1;
        }
    }
    let is_kept = |(functions, successors): (u32, u32)| successors * 100 >= (functions - 1) * KEPT;
    counts.into_iter().filter(|(_, counts)| is_kept(*counts)).map(|(member, _)| member).collect()
}

fn is_open(work: &Work<'_, '_>, place: u32) -> bool {
    work.at(place).is_none() && !work.is_foreign(place)
}

/// Claims what lies between two known functions of one member, if it can be nothing else.
fn between(work: &mut Work<'_, '_>, ground: &Ground, (p, i): (u32, u32), (q, j): (u32, u32)) {
    let (places, functions) = (q - p - 1, j - i - 1);
    if places == 0
        || places > functions
        || functions > LONGEST
        || !(p + 1..q).all(|place| is_open(work, place))
    {
        return;
    }
    let matched = align(work, (p + 1, places), (i + 1, functions));
    for (place, matched) in (p + 1..q).zip(matched) {
        if let Some(function) = matched.filter(|function| is_told(work, ground, *function)) {
            work.claim(function, place, How::Order);
        }
    }
}

/// The longest common run of bodies of so many places and functions, as functions by place.
fn align(
    work: &mut Work<'_, '_>,
    (place, places): (u32, u32),
    (function, functions): (u32, u32),
) -> Vec<Option<u32>> {
    let (rows, columns) = (places as usize, functions as usize);
    let mut equal = vec![false; rows * columns];
    for (at, equal) in equal.iter_mut().enumerate() {
        let row = u32::try_from(at / columns).unwrap_or(0);
        let column = u32::try_from(at % columns).unwrap_or(0);
        *equal = work.matches(function + column, place + row)
            && work.agreement(function + column, place + row).is_some();
    }
    let is_equal = |row: usize, column: usize| equal.get(row * columns + column).copied().unwrap_or(false);
    let mut best = vec![0u32; (rows + 1) * (columns + 1)];
    let at = |row: usize, column: usize| row * (columns + 1) + column;
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let value = |row, column| best.get(at(row, column)).copied().unwrap_or(0);
            let taken = if is_equal(row, column) { value(row + 1, column + 1) + 1 } else { 0 };
            let value = taken.max(value(row + 1, column)).max(value(row, column + 1));
            if let Some(cell) = best.get_mut(at(row, column)) {
                *cell = value;
            }
        }
    }
    let value = |row, column| best.get(at(row, column)).copied().unwrap_or(0);
    let mut found = vec![None; rows];
    let (mut row, mut column) = (0, 0);
    while row < rows && column < columns {
        if is_equal(row, column) && value(row, column) == value(row + 1, column + 1) + 1 {
            if let Some(found) = found.get_mut(row) {
                *found = u32::try_from(column).ok().map(|column| function + column);
            }
            row += 1;
            column += 1;
        } else if value(row + 1, column) >= value(row, column + 1) {
            row += 1;
        } else {
            column += 1;
        }
    }
    found
}

/// Goes on from a known function as long as its member's next bodies follow.
fn extend(work: &mut Work<'_, '_>, ground: &Ground, (place, function, member): Known, is_up: bool) {
    let step = |number: u32, by: u32| if is_up { number.checked_add(by) } else { number.checked_sub(by) };
    let (mut place, mut function) = (place, function);
    let mut run = Vec::new();
    let is_closed = loop {
        let Some(next) = step(place, 1).filter(|next| work.app_function(*next).is_some()) else {
            break false;
        };
        if work.at(next).is_some() {
            break true;
        }
        if !is_open(work, next) {
            break false;
        }
        let follows = |work: &mut Work<'_, '_>, by: u32| {
            let candidate = step(function, by)?;
            let is_fit = work.function(candidate)?.member == member
                && work.place_of(candidate).is_none()
                && work.matches(candidate, next)
                && work.agreement(candidate, next).is_some();
            is_fit.then_some(candidate)
        };
        let Some(found) = (1..=SKIPPED + 1).find_map(|by| follows(work, by)) else { break false };
        run.push((found, next));
        (place, function) = (next, found);
    };
    if !is_closed {
        // What many functions look like ends no run.
        while run.last().is_some_and(|(function, _)| work.weight(*function) < END) {
            run.pop();
        }
    }
    for (function, place) in run {
        if is_told(work, ground, function) {
            work.claim(function, place, How::Order);
        }
    }
}

/// Where an order file tore an object file apart, anybody's small functions may lie between its own.
fn is_told(work: &Work<'_, '_>, ground: &Ground, function: u32) -> bool {
    let member = work.function(function).map(|function| function.member);
    work.weight(function) >= END || !member.is_some_and(|member| ground.is_split(member))
}
