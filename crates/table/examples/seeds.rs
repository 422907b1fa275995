//! Writes the seeds of the fuzz target `table`: `cargo run -p backtrail-table --example seeds -- fuzz/corpus/table`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used, reason = "a chore")]

#[path = "../tests/model/mod.rs"]
mod model;

use model::{Model, Random};
use std::path::Path;

fn main() {
    let directory = std::env::args().nth(1).expect("usage: seeds DIRECTORY");
    for (name, seed, units) in [("empty", 1, 0), ("functions", 4, 3), ("overlaps", 9, 8), ("symbols", 30, 1)]
    {
        let (bytes, _) = Model::random(&mut Random(seed), units, 200).build(|number| number);
        std::fs::write(Path::new(&directory).join(name), bytes).unwrap();
    }
}
