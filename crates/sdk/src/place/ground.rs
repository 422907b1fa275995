//! Where the library's code lies as a linker takes it from an archive: each object file in one piece, and one file behind the other.
//!
//! What lies in the midst of that is part of it. Only an order file could bring something else there, and that shows: it takes functions
//! out of the pieces of their object files, or puts others between most of them.

use std::cell::OnceCell;
use std::ops::Range;

use super::work::Work;
use crate::fingerprint::Reach;
use crate::hash::{Map, Set};

/// So many known functions must follow each other on both sides.
const RUN: usize = 6;
/// Object files on both sides of what lies between two of them.
const FILES: usize = 3;
/// Places between two known functions.
const APART: u32 = 120;
/// Places from one known function to the next.
const STEP: u32 = 8;

/// A known function: its place, its number, its member.
type Known = (u32, u32, u32);

/// Known functions of which there is one each, in the app's order.
pub(super) struct Ground {
    known: Vec<Known>,
    /// Object files that are not in one piece.
    split: Set<u32>,
    /// By the gap behind each known function: whether that is in the midst.
    inside: Vec<OnceCell<bool>>,
}

impl Ground {
    pub(super) fn read(work: &Work<'_, '_>) -> Self {
        let mut bodies: Map<u64, usize> = Map::default();
        for function in &work.slice.functions {
            *bodies.entry(function.body.0).or_default() += 1;
        }
        let placed = work.placed().filter(|(number, place, how)| {
            let Some(function) = work.function(*number) else { return false };
            let is_one = bodies.get(&function.body.0) == Some(&1);
            !work.is_weak(*number) && (how.is_equal() && is_one || work.has_method(*place))
        });
        let mut by_place: Map<u32, u32> = placed.map(|(number, place, _)| (place, number)).collect();
        by_place.extend(by_names(work));
        let member = |number: u32| work.function(number).map(|function| function.member);
        let known = by_place.into_iter();
        let mut known: Vec<Known> =
            known.filter_map(|(place, number)| Some((place, number, member(number)?))).collect();
        known.sort_unstable();
        let mut seen: Set<u32> = Set::default();
        let mut split: Set<u32> = Set::default();
        let mut last = None;
        for (.., member) in &known {
            if last != Some(*member) && !seen.insert(*member) {
                split.insert(*member);
            }
            last = Some(*member);
        }
        let inside = vec![OnceCell::new(); known.len()];
        Self { known, split, inside }
    }

    /// Whether an object file is in several pieces.
    pub(super) fn is_split(&self, member: u32) -> bool {
        self.split.contains(&member)
    }

    /// The object files of the next known functions before and behind these places, if they lie in the midst of the library's code.
    pub(super) fn around(&self, first: u32, last: u32) -> Option<(u32, u32)> {
        let behind = self.known.partition_point(|(place, ..)| *place < first);
        let before = behind.checked_sub(1)?;
        let ((.., m), (q, _, n)) = (self.known.get(before)?, self.known.get(behind)?);
        (*q > last && self.is_inside(before)).then_some((*m, *n))
    }

    /// Whether a place belongs to this object file: it lies between known functions of it, or beside one, in the midst of the library's code.
    pub(super) fn is_of(&self, place: u32, member: u32) -> bool {
        if let Some((m, n)) = self.around(place, place) {
            return member == m || member == n;
        }
        let behind = self.known.partition_point(|(other, ..)| *other < place);
        let sides = [behind.checked_sub(1).and_then(|before| self.known.get(before)), self.known.get(behind)];
        !self.split.contains(&member)
            && sides.iter().all(|side| side.is_some_and(|(.., other)| *other == member))
    }

    /// The gaps between known functions in the midst of the library's code.
    pub(super) fn gaps(&self) -> impl Iterator<Item = Range<u32>> {
        let pairs = self.known.windows(2).enumerate();
        pairs.filter_map(|(before, pair)| match *pair {
            [(p, ..), (q, ..)] if q - p > 1 && self.is_inside(before) => Some(p + 1..q),
            _ => None,
        })
    }

    /// The gaps between object files that follow each other as in the archive, however little is known of each.
    pub(super) fn seams(&self) -> impl Iterator<Item = Range<u32>> {
        let pairs = self.known.windows(2).enumerate();
        pairs.filter_map(|(before, pair)| match *pair {
            [(p, _, m), (q, _, n)]
                if q - p > 1 && q - p <= APART && m < n && self.is_run(before, FILES, FILES) =>
            {
                Some(p + 1..q)
            }
            _ => None,
        })
    }

    fn is_inside(&self, before: usize) -> bool {
        let told = self.inside.get(before).map(|inside| {
            *inside.get_or_init(|| {
                let Some(&[(_, i, m), (_, j, n)]) = self.known.get(before..before + 2) else { return false };
                i < j && if m == n { self.is_run(before, 1, RUN) } else { self.is_run(before, FILES, RUN) }
            })
        });
        told.unwrap_or(false)
    }

    /// Whether so many known functions of so many object files follow each other on both sides of a gap.
    fn is_run(&self, before: usize, files: usize, count: usize) -> bool {
        self.follow((0..=before).rev(), files, count)
            && self.follow(before + 1..self.known.len(), files, count)
    }

    /// Whether known functions follow each other from here on, as in the archive, in so many object files that are in one piece.
    fn follow(&self, numbers: impl Iterator<Item = usize>, files: usize, least: usize) -> bool {
        let mut members: Set<u32> = Set::default();
        let (mut count, mut places, mut functions) = (0, 0u32, 0u32);
        let mut last: Option<Known> = None;
        for known in numbers.filter_map(|number| self.known.get(number)) {
            let (place, number, member) = *known;
            if self.split.contains(&member) {
                return false;
            }
            if let Some((other, from, of)) = last {
                let is_up = (place > other) == (number > from);
                if !is_up || of == member && place.abs_diff(other) > STEP {
                    return false;
                }
                if of == member {
                    places += place.abs_diff(other);
                    functions += number.abs_diff(from);
                }
            }
            last = Some(*known);
            count += 1;
            members.insert(member);
            if count >= least && members.len() >= files {
                break;
            }
        }
        // Who puts something between them puts one beside each.
        count >= least && members.len() >= files && places * 2 <= functions * 3 + 2
    }
}

/// Names tell where object files lie, too, whatever became of their code: not where folded functions share places.
fn by_names(work: &Work<'_, '_>) -> Map<u32, u32> {
    let mut by_place: Map<u32, u32> = Map::default();
    for (number, function) in (0u32..).zip(&work.slice.functions) {
        if function.reach == Reach::Global
            && let Some(place) = work.app.function_named(function.name)
            && let Ok(place) = u32::try_from(place)
            && !work.is_foreign(place)
            && by_place.insert(place, number).is_some()
        {
            return Map::default();
        }
    }
    by_place.retain(|place, _| work.at(*place).is_none());
    by_place
}
