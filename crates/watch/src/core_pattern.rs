//! A core that the kernel pipes in: a report in its place.

use crate::error::WatchError;
use crate::file;
use crate::watcher::options_of_stacks;
use backtrail_capture::{Limits, elf_core};
use backtrail_stacks::dumping;
use backtrail_store::Index;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of a core's headers and notes: those of a thousand threads have some megabytes.
const MAX_HEAD: u64 = 64 << 20;
/// What the headers of most cores fit into.
const FIRST: u64 = 64 << 10;

/// Keeps a report of the process whose core comes in at `core`; core(5), "Piping core dumps to a program". Only headers and notes
/// are read: the memory is still in the process, which the kernel keeps as long as the core has not been taken. Of a core of
/// gigabytes nothing else is written or read.
///
/// # Errors
/// Where no core comes in, the process is gone, or the file cannot be written.
pub fn keep_core(
    core: &mut dyn Read,
    pid: u32,
    directory: &Path,
    index: &Index,
) -> Result<PathBuf, WatchError> {
    std::fs::create_dir_all(directory)
        .map_err(|source| WatchError::Directory { path: directory.to_owned(), source })?;
    let head = head(core).map_err(WatchError::Core)?;
    let captured = dumping(pid, &head, index, &options_of_stacks()).map_err(WatchError::Stacks)?;
    file::keep(directory, pid, &captured.file)
        .map_err(|(path, source)| WatchError::Directory { path, source })
}

/// The headers and notes of a core.
fn head(core: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut wanted = FIRST;
    loop {
        let more = wanted.saturating_sub(head.len() as u64);
        if (&mut *core).take(more).read_to_end(&mut head)? == 0 {
            return Ok(head);
        }
        // As long as there are too few bytes for the program headers, twice as many are asked for.
        let size = elf_core::head_size(&head, &Limits::default()).unwrap_or(wanted.saturating_mul(2));
        if size <= head.len() as u64 {
            return Ok(head);
        }
        wanted = size.min(MAX_HEAD);
        if head.len() as u64 >= MAX_HEAD {
            return Ok(head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_headers_and_notes() {
        struct Counting(u64);
        impl Read for Counting {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                to.fill(0);
                self.0 += to.len() as u64;
                Ok(to.len())
            }
        }
        // What is no core is read up to the limit, no further.
        let mut endless = Counting(0);
        assert_eq!(head(&mut endless).unwrap().len() as u64, MAX_HEAD);
        assert!(endless.0 < 2 * MAX_HEAD);
        assert!(head(&mut io::empty()).unwrap().is_empty());
    }
}
