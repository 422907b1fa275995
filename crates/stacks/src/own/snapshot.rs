//! The images of this process with their rules or tables, as one list that does not change.

use super::Method;
use super::open::{self, Opened};
use backtrail_capture::local::{Counters, LoadedImage, Shared, images};
use backtrail_unwind::{ModuleList, ModuleMap, PlacedModule};
use self_cell::self_cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

type Joined = Vec<(Arc<LoadedImage>, Arc<Opened>)>;

self_cell!(
    /// The images' code ranges as walks want them.
    struct Ranges {
        owner: Joined,
        #[covariant]
        dependent: ModuleList,
    }
);

/// The images of one moment.
pub(super) struct Snapshot {
    generation: u64,
    counters: Counters,
    ranges: Ranges,
}

impl Snapshot {
    fn new(generation: u64, counters: Counters, images: Joined) -> Self {
        let ranges = Ranges::new(images, |images| {
            let ranges = images.iter().flat_map(|(image, opened)| {
                image.code.iter().map(|range| match &**opened {
                    Opened::Compiled(rules) => PlacedModule::compiled(*range, image.bias, rules),
                    Opened::Tables(tables) => PlacedModule::new(*range, image.bias, tables.module()),
                    Opened::Nothing => PlacedModule::unknown(*range),
                })
            });
            ModuleList::new(ranges.collect())
        });
        Self { generation, counters, ranges }
    }

    /// A number that no other list of this process has.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// To be walked over. Safe in a signal handler.
    #[inline]
    pub(super) fn images(&self) -> ModuleMap<'_> {
        self.ranges.borrow_dependent().images()
    }

    fn joined(&self) -> &Joined {
        self.ranges.borrow_owner()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} images, list {}", self.joined().len(), self.generation)
    }
}

/// Lists that are kept for stacks that are named later. Each costs a few bytes an image: images are shared.
const REMEMBERED: usize = 64;
/// Images that were unmapped whose rules are kept, since programs map the same plugin again and again.
const KEPT_RULES: usize = 64;

/// The present list, and those before it.
#[derive(Debug)]
pub(super) struct Snapshots {
    now: Shared<Arc<Snapshot>>,
    /// Every list that somebody may still use. They are freed here and nowhere else, so that no capture frees memory.
    held: Mutex<Vec<Arc<Snapshot>>>,
    lists: Mutex<VecDeque<(u64, Vec<Arc<LoadedImage>>)>>,
    opener: Mutex<Opener>,
}

impl Snapshots {
    /// Lists the images and opens them.
    pub(super) fn new(method: Method) -> Self {
        let mut opener = Opener { method, closed: VecDeque::new() };
        let first = Arc::new(opener.list(&[]));
        let kept = Self {
            now: Shared::new(Arc::clone(&first)),
            held: Mutex::default(),
            lists: Mutex::default(),
            opener: Mutex::new(opener),
        };
        kept.remember(first);
        kept
    }

    /// The present list. Neither allocates nor locks; what is given back is freed by [`Snapshots::follow`] alone.
    pub(super) fn now(&self) -> Arc<Snapshot> {
        self.now.read(Arc::clone)
    }

    /// Does something with the present list. Safe in a signal handler.
    #[inline]
    pub(super) fn with_now<R>(&self, act: impl FnOnce(&Snapshot) -> R) -> R {
        self.now.read(|snapshot| act(snapshot))
    }

    /// Makes a new list where the loader's counters have moved. Takes the loader's lock.
    pub(super) fn follow(&self) {
        let counters = backtrail_capture::local::counters();
        let last = self.now();
        if counters == Some(last.counters) {
            return;
        }
        let mut opener = self.opener.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Arc::new(opener.list(last.joined()));
        drop(opener);
        self.now.replace(Arc::clone(&new));
        drop(last);
        self.remember(new);
    }

    fn remember(&self, snapshot: Arc<Snapshot>) {
        let images = snapshot.joined().iter().map(|(image, _)| Arc::clone(image)).collect();
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.push_back((snapshot.generation, images));
        if lists.len() > REMEMBERED {
            lists.pop_front();
        }
        drop(lists);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push(snapshot);
        held.retain(|snapshot| Arc::strong_count(snapshot) > 1);
    }

    /// The images of a list; of the oldest that is still known where it is forgotten.
    pub(super) fn images(&self, generation: u64) -> Vec<Arc<LoadedImage>> {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let list = lists.iter().find(|(known, _)| *known >= generation);
        list.map(|(_, images)| images.clone()).unwrap_or_default()
    }
}

/// The number of the next list. All capturers count together: they share the slots, whose caches are of one list.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Opens images, and remembers those that were closed lately.
#[derive(Debug)]
struct Opener {
    method: Method,
    closed: VecDeque<(open::Key, Arc<Opened>)>,
}

impl Opener {
    fn list(&mut self, last: &[(Arc<LoadedImage>, Arc<Opened>)]) -> Snapshot {
        let (loaded, counters) = images();
        let mut joined = Joined::new();
        for image in loaded {
            let known = last.iter().find(|(known, _)| **known == image);
            joined.push(match known {
                // The same build at the same place; without an identity it may be another file by now.
                Some((image, opened)) if image.id.is_some() || image.path.as_os_str().is_empty() => {
                    (Arc::clone(image), Arc::clone(opened))
                }
                _ => {
                    let opened = self.open(&image, last);
                    (Arc::new(image), opened)
                }
            });
        }
        for (image, opened) in last {
            if !joined.iter().any(|(_, used)| Arc::ptr_eq(used, opened)) {
                self.closed.push_back((open::key(image), Arc::clone(opened)));
            }
        }
        while self.closed.len() > KEPT_RULES {
            self.closed.pop_front();
        }
        Snapshot::new(NEXT.fetch_add(1, Relaxed), counters, joined)
    }

    fn open(&mut self, image: &LoadedImage, last: &[(Arc<LoadedImage>, Arc<Opened>)]) -> Arc<Opened> {
        let key = open::key(image);
        if let Some(place) = self.closed.iter().position(|(closed, _)| *closed == key)
            && let Some((_, opened)) = self.closed.remove(place)
        {
            return opened;
        }
        // The same file at another place (`dlmopen`).
        let twin = last.iter().find(|(other, _)| open::key(other) == key);
        match twin {
            Some((_, opened)) => Arc::clone(opened),
            None => Arc::new(Opened::open(image, self.method)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_lists_have_one_number() {
        let (one, other) = (Snapshots::new(Method::Rules), Snapshots::new(Method::Rules));
        assert_ne!(one.now().generation(), other.now().generation());
        assert!(!other.images(other.now().generation()).is_empty());
    }
}
