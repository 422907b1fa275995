//! Weak functions: virtual ones, templates, inline functions. A linker keeps one definition of a name, which may be the
//! app's. Had the app one of its own, its code or data would mention it.

use backtrail_core::Svma;

use super::How;
use super::spread::references;
use super::work::Work;
use crate::fingerprint::{Target, index};
use crate::hash::{Digest, Map};

/// What is found by one round may lead to more.
const ROUNDS: usize = 16;

/// Claims what nobody but the library mentions.
pub(super) fn fill(work: &mut Work<'_, '_>) {
    let copies = copies(work);
    for _ in 0..ROUNDS {
        let mut found = WeakCandidates::default();
        found.collect(work, &copies);
        found.drop_others(work);
        let mut claimed: Vec<(u32, u32)> = found.functions.into_iter().map(|(p, f)| (f, p)).collect();
        claimed.sort_unstable();
        if claimed.is_empty() {
            return;
        }
        for (function, place) in &claimed {
            work.claim(*function, *place, How::Call);
        }
        // What these call is known by name.
        super::spread::follow_all(work, claimed);
    }
}

/// Claims functions that must be the library's if they are nobody else's, and what they lead to, if only the library and they themselves mention
/// them. Tells whether there were any. A function that is none in particular has no number.
pub(super) fn claim_islands(
    work: &mut Work<'_, '_>,
    seeds: &[(u32, u32)],
    copies: &Map<u64, Vec<u32>>,
) -> bool {
    let mut found = WeakCandidates::default();
    for (function, place) in seeds {
        found.functions.insert(*place, *function);
    }
    found.collect(work, copies);
    found.drop_others(work);
    let mut claimed: Vec<(u32, u32)> =
        found.functions.into_iter().map(|(place, function)| (function, place)).collect();
    claimed.sort_unstable();
    for (function, place) in &claimed {
        work.claim(*function, *place, How::Present);
    }
    !claimed.is_empty()
}

/// The library's weak functions by name: each object file may have a copy, compiled its own way.
pub(super) fn copies(work: &Work<'_, '_>) -> Map<u64, Vec<u32>> {
    let mut copies: Map<u64, Vec<u32>> = Map::default();
    for (number, function) in (0u32..).zip(&work.slice.functions) {
        if work.is_weak(number) && function.len > 0 {
            copies.entry(function.name.0).or_default().push(number);
        }
    }
    copies
}

/// What the library leads to, and what may be the library's of it.
#[derive(Default)]
struct WeakCandidates {
    /// Weak functions by place.
    functions: Map<u32, u32>,
    /// Weak data by its target: the address, or nothing where it is told differently.
    weak_data: Map<u32, Option<Svma>>,
    /// By the place of a pointer: the data that has it.
    slots: Map<u64, u32>,
}

impl WeakCandidates {
    /// All that the library's code and data name, as far as it has the library's bodies.
    fn collect(&mut self, work: &mut Work<'_, '_>, copies: &Map<u64, Vec<u32>>) {
        let placed = work.placed().filter(|(_, _, how)| how.is_equal());
        let mut open: Vec<(u32, u32)> = placed.map(|(function, place, _)| (function, place)).collect();
        open.extend(self.functions.iter().map(|(place, function)| (*function, *place)));
        let mut known: Vec<(u32, Svma)> = work
            .data_at
            .iter()
            .filter_map(|(target, address)| Some((*target, Svma::new((*address)?))))
            .collect();
        known.sort_unstable();
        let mut named: Vec<(u32, Svma)> = Vec::new();
        // What the app has by the library's name needs nothing that leads to it.
        let mut by_name: Vec<(u32, Svma)> = Vec::new();
        for (name, functions) in copies {
            if let (Some(address), Some(function)) =
                (work.app.address_named(Digest(*name)), functions.first())
            {
                by_name.push((*function, address));
            }
        }
        by_name.sort_unstable();
        for (function, address) in by_name {
            self.function(work, copies, function, address, &mut open);
        }
        for (target, address) in known {
            self.data(work, target, address, &mut named);
        }
        loop {
            if let Some((target, address)) = named.pop() {
                match work.slice.targets.get(index(target)).copied() {
                    Some(Target::Function(function)) => {
                        self.function(work, copies, function, address, &mut open);
                    }
                    Some(Target::WeakData(_)) => self.data(work, target, address, &mut named),
                    _ => {}
                }
            } else if let Some((function, place)) = open.pop() {
                named.extend(references(work, function, place));
            } else {
                return;
            }
        }
    }

    fn function(
        &mut self,
        work: &mut Work<'_, '_>,
        copies: &Map<u64, Vec<u32>>,
        function: u32,
        address: Svma,
        open: &mut Vec<(u32, u32)>,
    ) {
        if !work.is_weak(function) {
            return;
        }
        let place = work.app.function_at(address).and_then(|place| u32::try_from(place).ok());
        let Some(place) = place else { return };
        if work.at(place).is_some()
            || self.functions.contains_key(&place)
            || work.is_foreign(place)
            || work.has_method(place)
        {
            return;
        }
        let name = work.function(function).map_or(0, |function| function.name.0);
        let alike = copies.get(&name).map(Vec::as_slice).unwrap_or_default();
        let fits = |work: &mut Work<'_, '_>, function: u32| {
            work.matches(function, place) && work.agreement(function, place).is_some()
        };
        if let Some(function) = alike.iter().copied().find(|function| fits(work, *function)) {
            self.functions.insert(place, function);
            open.push((function, place));
        }
    }

    fn data(&mut self, work: &Work<'_, '_>, target: u32, address: Svma, named: &mut Vec<(u32, Svma)>) {
        if matches!(work.slice.targets.get(index(target)), Some(Target::WeakData(_))) {
            match self.weak_data.get_mut(&target) {
                None => {
                    self.weak_data.insert(target, Some(address));
                }
                Some(known) => {
                    if *known != Some(address) {
                        *known = None;
                    }
                    return;
                }
            }
        }
        for pointer in work.slice.pointers_of(target) {
            let Some(at) = address.checked_add(pointer.offset.into()) else { continue };
            self.slots.insert(at.get(), target);
            if let Some(there) = work.app.pointer(at) {
                named.push((pointer.target, there));
            }
        }
    }

    /// Drops what somebody else mentions, and what only that leads to.
    fn drop_others(&mut self, work: &Work<'_, '_>) {
        loop {
            let before = (self.functions.len(), self.weak_data.len());
            let data: Vec<(u32, Option<Svma>)> =
                self.weak_data.iter().map(|(target, address)| (*target, *address)).collect();
            for (target, address) in data {
                if !address.is_some_and(|address| self.is_ours_alone(work, target, address)) {
                    self.weak_data.remove(&target);
                }
            }
            let functions: Vec<u32> = self.functions.keys().copied().collect();
            for place in functions {
                let callers = work.app.callers(index(place));
                let is_called_by_us = callers.iter().all(|caller| self.is_ours(work, *caller));
                if !is_called_by_us || !self.is_pointed_to_by_us(work, place) {
                    self.functions.remove(&place);
                }
            }
            if before == (self.functions.len(), self.weak_data.len()) {
                return;
            }
        }
    }

    fn is_ours(&self, work: &Work<'_, '_>, place: u32) -> bool {
        work.at(place).is_some() || self.functions.contains_key(&place)
    }

    /// Whether a pointer in data is one of data that is the library's.
    fn is_our_slot(&self, work: &Work<'_, '_>, slot: Svma) -> bool {
        self.slots.get(&slot.get()).is_some_and(|target| {
            !matches!(work.slice.targets.get(index(*target)), Some(Target::WeakData(_)))
                || self.weak_data.contains_key(target)
        })
    }

    fn is_pointed_to_by_us(&self, work: &Work<'_, '_>, place: u32) -> bool {
        let Some(start) = work.app_function(place).map(|function| function.start) else { return false };
        let Some(end) = start.checked_add(1) else { return false };
        let from = work.app.pointed_from(start..end);
        from.is_some_and(|from| from.iter().all(|(_, slot)| self.is_our_slot(work, *slot)))
    }

    /// Whether nobody but the library mentions this data.
    fn is_ours_alone(&self, work: &Work<'_, '_>, target: u32, address: Svma) -> bool {
        const WORD: u64 = 8;
        let last = work.slice.pointers_of(target).last().map_or(0, |pointer| pointer.offset);
        let Some(end) = address.checked_add(u64::from(last) + WORD) else { return false };
        if !work.app.mentioned_by(address..end).all(|place| self.is_ours(work, place)) {
            return false;
        }
        let Some(from) = work.app.pointed_from(address..end) else { return false };
        from.iter().all(|(_, slot)| (*slot >= address && *slot < end) || self.is_our_slot(work, *slot))
    }
}
