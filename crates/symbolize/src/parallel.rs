//! Work on all cores for what is read once, behind a lock.
//!
//! Not rayon's: a thread of its pool that waits for a part of its work takes up other work meanwhile, which may be a
//! lookup that waits for the very lock that this thread holds. Threads of our own wait for nothing else.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// `of(index, item)` for every item, in the order of the items. Threads take `block` items at a time.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], block: usize, of: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let block = block.max(1);
    let threads = items.len().div_ceil(block).min(threads());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let first = next.fetch_add(block, Ordering::Relaxed);
            let Some(rest) = items.get(first..).filter(|rest| !rest.is_empty()) else { return done };
            let results = (first..).zip(rest).take(block).map(|(index, item)| of(index, item));
            done.push((first, results.collect::<Vec<R>>()));
        }
    };
    let mut blocks = thread::scope(|scope| {
        // Where no further thread is to be had, this one does all the work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).map_while(spawn).collect();
        let mut blocks = work();
        for other in others {
            match other.join() {
                Ok(more) => blocks.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        blocks
    });
    blocks.sort_by_key(|(first, _)| *first);
    blocks.into_iter().flat_map(|(_, results)| results).collect()
}

/// As many as there are cores; within a pool of rayon's as many as that has, since somebody chose the number.
fn threads() -> usize {
    match rayon::current_thread_index() {
        Some(_) => rayon::current_num_threads(),
        None => thread::available_parallelism().map_or(1, NonZero::get),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        for (count, block) in [(0, 4), (1, 4), (1000, 1), (1000, 7), (1000, 5000), (5, 0)] {
            let items: Vec<usize> = (0..count).collect();
            let squares: Vec<_> = items.iter().map(|item| item * item).collect();
            assert_eq!(map(&items, block, |index, item| index * item), squares);
        }
    }
}
