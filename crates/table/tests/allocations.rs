//! A lookup allocates nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod model;

use backtrail_table::{Lookup, Table};
use backtrail_testkit::Guarded;
use model::{Model, Random, svma};

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

#[test]
fn lookups_with_names_and_paths_allocate_nothing() {
    let model = Model::random(&mut Random(8), 40, 3000);
    let (bytes, _) = model.build(|number| number);
    let table = Table::open(&bytes).unwrap();
    let mut text = Vec::with_capacity(1 << 12);
    let (before, mut frames) = (Guarded::count(), 0);
    let many = table.lookup_many((0..3100).map(svma)).map(|(_, answer)| answer);
    for answer in (0..3100).map(|at| table.lookup(svma(at))).chain(many) {
        match answer {
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
    assert_eq!(Guarded::count() - before, 0);
    assert!(frames > 2000, "{frames} frames");
}
