//! A lookup allocates nothing.
#![allow(unsafe_code, reason = "an allocator that counts")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod model;

use backtrail_table::{Lookup, Table};
use model::{Model, Random, svma};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as our caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn lookups_with_names_and_paths_allocate_nothing() {
    let model = Model::random(&mut Random(8), 40, 3000);
    let (bytes, _) = model.build(|number| number);
    let table = Table::open(&bytes).unwrap();
    let mut text = Vec::with_capacity(1 << 12);
    let (before, mut frames) = (COUNT.get(), 0);
    for at in 0..3100 {
        match table.lookup(svma(at)) {
            Lookup::Found(found) => {
                for frame in found.frames() {
                    text.clear();
                    [frame.name, frame.linkage_name]
                        .into_iter()
                        .flatten()
                        .for_each(|name| name.append_to(&mut text));
                    frame.file.inspect(|file| file.append_to(&mut text));
                    frames += 1;
                }
            }
            Lookup::Symbol(symbol) => {
                text.clear();
                symbol.name.inspect(|name| name.append_to(&mut text));
            }
            Lookup::None(_) => {}
        }
    }
    assert_eq!(COUNT.get() - before, 0);
    assert!(frames > 1000, "{frames} frames");
}
