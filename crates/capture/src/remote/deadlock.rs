//! Threads that wait for each other: cycles of locks and their holders.

use super::lock_wait::LockHolder;
use super::maps::Maps;
use super::thread_info::{StackCopyMethod, ThreadInfo};
use crate::Thread;
use backtrail_model::{LockKind, LockSource};
use std::collections::HashMap;

/// Threads that wait for each other in a circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The threads' ids: each waits for what the next one holds, the last for what the first one does. The lowest is first.
    pub threads: Vec<u32>,
    /// Whether none of them can go on: their locks are of one moment, and no wait has a time limit. Otherwise they may have held
    /// these locks one after the other.
    pub is_certain: bool,
    /// How many further threads wait for one of them, directly or by others.
    pub waiting_behind: usize,
}

/// Takes back joins that are none. A thread's id can be in any word that somebody waits for; glibc's is in the descriptor at the top
/// of that thread's stack.
pub(super) fn check_joins(facts: &mut [ThreadInfo], threads: &[Thread], maps: &Maps) {
    let stack_of = |id: u32| {
        let thread = threads.iter().find(|thread| thread.id == Some(id.into()))?;
        maps.at(thread.registers.sp()?)
    };
    for waits in facts.iter_mut().filter_map(|thread| thread.waits_for.as_mut()) {
        let (LockKind::ThreadEnd, LockHolder::Thread(id)) = (waits.kind, waits.holder) else { continue };
        let is_on_stack = stack_of(id).is_some_and(|mapping| mapping.range.contains(waits.address));
        if waits.told_by == LockSource::Glibc && !is_on_stack {
            waits.kind = LockKind::Unknown;
            waits.holder = LockHolder::Unknown;
            waits.told_by = LockSource::Address;
        }
    }
}

/// The cycles among threads. `stopped_together`: whether what is known of them is of one moment.
pub(super) fn find(threads: &[ThreadInfo], stopped_together: bool) -> Vec<Deadlock> {
    let by_id: HashMap<u32, &ThreadInfo> = threads.iter().map(|thread| (thread.id, thread)).collect();
    let next = |id: u32| {
        let waits = by_id.get(&id)?.waits_for?;
        match waits.holder {
            LockHolder::Thread(holder) if waits.kind != LockKind::Unknown => Some(holder),
            _ => None,
        }
    };
    // Each thread waits for one lock at most, so a chain of them ends, or leads into one cycle.
    let mut ends: HashMap<u32, Option<usize>> = HashMap::new();
    let mut cycles: Vec<Deadlock> = Vec::new();
    for thread in threads {
        let mut chain = Vec::new();
        let mut positions = HashMap::new();
        let mut at = Some(thread.id);
        let end = loop {
            let Some(id) = at else { break None };
            if let Some(known) = ends.get(&id) {
                break *known;
            }
            if let Some(start) = positions.insert(id, chain.len()) {
                let cycle = chain.split_off(start);
                ends.extend(cycle.iter().map(|id| (*id, Some(cycles.len()))));
                cycles.push(deadlock(cycle, &by_id, stopped_together));
                break Some(cycles.len() - 1);
            }
            chain.push(id);
            at = next(id);
        };
        if let Some(cycle) = end.and_then(|end| cycles.get_mut(end)) {
            cycle.waiting_behind += chain.len();
        }
        ends.extend(chain.into_iter().map(|id| (id, end)));
    }
    cycles.sort_by(|one, other| one.threads.cmp(&other.threads));
    cycles
}

fn deadlock(mut cycle: Vec<u32>, by_id: &HashMap<u32, &ThreadInfo>, stopped_together: bool) -> Deadlock {
    let lowest = cycle.iter().enumerate().min_by_key(|(_, id)| **id).map_or(0, |(position, _)| position);
    cycle.rotate_left(lowest);
    let is_stuck = |id: &u32| {
        by_id.get(id).is_some_and(|thread| {
            matches!(thread.stack_copy, StackCopyMethod::Stopped(_))
                && thread.waits_for.is_some_and(|waits| !waits.has_time_limit)
        })
    };
    // What one thread holds and waits for itself is of one moment anyway.
    let is_of_one_moment = stopped_together || cycle.len() == 1;
    let is_certain = is_of_one_moment && cycle.iter().all(is_stuck);
    Deadlock { threads: cycle, is_certain, waiting_behind: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadState;
    use crate::remote::lock_wait::LockWait;
    use backtrail_core::Avma;
    use std::time::Duration;

    fn thread((id, holder): (u32, u32)) -> ThreadInfo {
        let waits = LockWait {
            address: Avma::new(u64::from(holder) << 4),
            kind: LockKind::Mutex,
            holder: LockHolder::Thread(holder),
            has_time_limit: false,
            told_by: LockSource::Glibc,
        };
        ThreadInfo {
            id,
            inner_id: None,
            name: String::new(),
            state: ThreadState::Sleeping,
            waiting_in: None,
            waiting_on: None,
            waits_for: Some(waits).filter(|_| holder != 0),
            kernel_stack: Vec::new(),
            wait_channel: None,
            cpu_usage: None,
            start: Duration::ZERO,
            user_time: Duration::ZERO,
            system_time: Duration::ZERO,
            priority: 20,
            nice: 0,
            stack_copy: StackCopyMethod::Stopped(Duration::ZERO),
            is_cut: false,
        }
    }

    fn threads(waits: &[(u32, u32)]) -> Vec<ThreadInfo> {
        waits.iter().copied().map(thread).collect()
    }

    #[test]
    fn cycles_are_found_once_with_those_that_wait_for_them() {
        // 1 and 2; 5, 4, 3 in that order; two wait for the first, one by the other; one ends nowhere.
        let all =
            threads(&[(9, 8), (8, 2), (1, 2), (2, 1), (5, 4), (4, 3), (3, 5), (7, 6), (6, 0), (10, 99)]);
        let found = find(&all, true);
        let expected = [(vec![1, 2], 2), (vec![3, 5, 4], 0)];
        assert_eq!(found.len(), 2);
        for (deadlock, (threads, behind)) in found.iter().zip(expected) {
            assert_eq!((&deadlock.threads, deadlock.waiting_behind), (&threads, behind));
            assert!(deadlock.is_certain);
        }
        assert_eq!(find(&threads(&[(1, 0), (2, 1), (3, 1)]), true), []);
    }

    #[test]
    fn a_cycle_is_certain_where_it_is_of_one_moment_and_without_end() {
        let pair = threads(&[(1, 2), (2, 1)]);
        assert!(!find(&pair, false)[0].is_certain);
        assert!(find(&threads(&[(1, 1)]), false)[0].is_certain, "with itself");
        let mut timed = pair.clone();
        timed[1].waits_for.as_mut().unwrap().has_time_limit = true;
        assert!(!find(&timed, true)[0].is_certain);
        let mut unstopped = pair;
        unstopped[0].stack_copy = StackCopyMethod::Unstopped(String::new());
        assert!(!find(&unstopped, true)[0].is_certain);
    }

    #[test]
    fn a_cycle_can_have_all_threads() {
        let cycle: Vec<_> = (1..=50_000).map(|id| (id, id % 50_000 + 1)).collect();
        let found = find(&threads(&cycle), true);
        assert!(found.len() == 1 && found[0].threads.len() == 50_000 && found[0].waiting_behind == 0);
    }
}
