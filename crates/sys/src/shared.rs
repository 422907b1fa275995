//! A value that signal handlers read while others replace it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// One value, read without a lock and replaced at any time.
///
/// What was replaced is kept until no reader can have it any more, and freed by a later [`Shared::replace`].
pub struct Shared<T> {
    now: AtomicPtr<T>,
    readers: AtomicUsize,
    /// Not boxes: a box is its owner's alone, and readers may still have these.
    old: Mutex<Vec<AtomicPtr<T>>>,
    owns: PhantomData<Box<T>>,
}

/// Counts a reader for as long as it lives.
struct Reading<'s>(&'s AtomicUsize);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl<T: Send + Sync> Shared<T> {
    /// Holds `value`.
    pub fn new(value: T) -> Self {
        let now = AtomicPtr::new(Box::into_raw(Box::new(value)));
        Self { now, readers: AtomicUsize::new(0), old: Mutex::default(), owns: PhantomData }
    }

    /// Does something with the value.
    ///
    /// # Signal safety
    ///
    /// As safe as `act`: counts one up and down, waits for nothing.
    #[inline]
    pub fn read<R>(&self, act: impl FnOnce(&T) -> R) -> R {
        self.readers.fetch_add(1, SeqCst);
        let _reading = Reading(&self.readers);
        // SAFETY: what is in `now` is freed only after it was replaced and, after that, no reader was counted. This
        // reader was counted before it looked, so it has either the new value or one that waits for it.
        act(unsafe { &*self.now.load(SeqCst) })
    }

    /// Replaces the value. Not for signal handlers: it allocates, locks and frees.
    pub fn replace(&self, value: T) {
        let value = Box::into_raw(Box::new(value));
        let mut old = self.old.lock().unwrap_or_else(PoisonError::into_inner);
        old.push(AtomicPtr::new(self.now.swap(value, SeqCst)));
        let free = if self.readers.load(SeqCst) == 0 { std::mem::take(&mut *old) } else { Vec::new() };
        drop(old);
        // SAFETY: they are out of everybody's reach but of readers that were counted before, and there were none.
        unsafe { free_all(free) };
    }
}

/// # Safety
///
/// They are of boxes, and nobody else has them.
unsafe fn free_all<T>(all: Vec<AtomicPtr<T>>) {
    for one in all {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(one.into_inner()) });
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: it came from a box; nobody has a reference to `self`.
        drop(unsafe { Box::from_raw(*self.now.get_mut()) });
        let old = self.old.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the same.
        unsafe { free_all(std::mem::take(old)) };
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn readers_see_whole_values_and_nothing_is_lost() {
        let counted = Arc::new(());
        let shared = Shared::new((0u64, 0u64, Arc::clone(&counted)));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(SeqCst) {
                        shared.read(|(one, other, _)| assert_eq!(*one, *other));
                    }
                });
            }
            let rounds = if cfg!(miri) { 20 } else { 2000 };
            for number in 0..rounds {
                shared.replace((number, number, Arc::clone(&counted)));
            }
            stop.store(true, SeqCst);
        });
        // With no reader about, replacing frees all that was replaced before.
        shared.replace((1, 1, Arc::clone(&counted)));
        assert_eq!(Arc::strong_count(&counted), 2);
        drop(shared);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
