//! What the tests of every crate share: where the data is, temporary directories, snapshots, writers of small object files, a
//! server, an allocator that forbids allocating.
//!
//! Only test code depends on this crate, so unlike the libraries it may panic: a helper that cannot do its work
//! fails the test that called it. It has no dependencies but for the feature `schema`, so that no
//! crate's tests pull in more than the crate.
#![deny(unsafe_code)]

mod allocator;
mod archive;
mod assemble;
mod bucket;
mod built;
mod data;
mod diff;
mod elf;
mod http;
mod macho;
mod postgres;
#[cfg(feature = "schema")]
mod schema;
mod snapshot;
mod temp;
mod workers;

pub use allocator::Guarded;
pub use archive::{ArchiveStyle, archive};
pub use assemble::{Assembler, StringTable};
pub use bucket::{BucketFault, BucketServer};
pub use built::cargo_build;
pub use data::{corpus, corpus_file, fixtures, not_installed, workspace_root};
pub use diff::diff_lines;
pub use elf::{Elf, ElfProgram, ElfSection, ElfSymbol};
pub use http::{HttpAnswer, HttpServer};
pub use macho::{MachO, MachSection, MachSegment, Nlist, fat};
pub use postgres::{NetworkPostgres, postgres, postgres_by_network, psql};
#[cfg(feature = "schema")]
pub use schema::Schema;
pub use snapshot::assert_snapshot;
pub use temp::TempDir;
pub use workers::start_workers;

/// Calls itself until the stack is at its end.
#[inline(never)]
pub fn overflow(depth: u64) -> u64 {
    let room = std::hint::black_box([depth; 64]);
    if depth == u64::MAX {
        return 0;
    }
    overflow(depth + 1) + room.iter().sum::<u64>()
}
