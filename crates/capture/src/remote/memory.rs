//! The memory of a running process.

use backtrail_core::{AddrRange, Avma, ReadMemory, Unreadable};
use backtrail_sys::linux::memory;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

/// Reads the memory of a process that runs on meanwhile: two reads may see two moments.
#[derive(Debug)]
pub struct LiveMemory {
    process: u32,
    /// `/proc/PID/mem`, for where the system call is missing, and for pages that only the kernel may read.
    file: OnceLock<Option<File>>,
}

impl LiveMemory {
    /// That of the process that a thread belongs to.
    pub fn new(thread: u32) -> Self {
        Self { process: thread, file: OnceLock::new() }
    }

    /// Copies a range as far as it can be read; the answer is how many bytes.
    pub fn copy(&self, start: Avma, to: &mut [u8]) -> usize {
        let range = AddrRange::from_size(start, to.len() as u64);
        match memory::read(self.process, &[range], to) {
            Ok(copied) if copied > 0 || to.is_empty() => copied,
            _ => self.copy_by_file(start, to),
        }
    }

    /// The same by the system call alone: nothing is opened while a thread stands still for it.
    pub(super) fn copy_now(&self, start: Avma, to: &mut [u8]) -> usize {
        memory::read(self.process, &[AddrRange::from_size(start, to.len() as u64)], to).unwrap_or_default()
    }

    /// Copies several ranges one behind the other; the answer is where each of them lies in `to`. Of a range that cannot
    /// be read in full its beginning counts.
    pub(super) fn copy_all(&self, ranges: &[AddrRange<Avma>], to: &mut [u8]) -> Vec<usize> {
        let mut copied = Vec::with_capacity(ranges.len());
        let mut at = 0;
        while let Some(rest) = ranges.get(copied.len()..).filter(|rest| !rest.is_empty()) {
            let place = to.get_mut(at..).unwrap_or_default();
            let mut left = memory::read(self.process, rest, place).unwrap_or_default();
            let mut is_first = true;
            for range in rest {
                let size = usize::try_from(range.size()).unwrap_or(usize::MAX);
                if left < size && !is_first {
                    break;
                }
                let mut done = left.min(size);
                if done == 0 && size > 0 {
                    let place = to.get_mut(at..at.saturating_add(size)).unwrap_or_default();
                    done = self.copy_by_file(range.start(), place);
                }
                copied.push(done);
                at = at.saturating_add(size);
                let is_cut = left < size;
                left -= left.min(size);
                if is_cut {
                    break;
                }
                is_first = false;
            }
        }
        copied
    }

    fn copy_by_file(&self, start: Avma, to: &mut [u8]) -> usize {
        let open = || File::open(format!("/proc/{}/mem", self.process)).ok();
        let Some(file) = self.file.get_or_init(open) else { return 0 };
        let mut copied = 0;
        while let Some(rest) = to.get_mut(copied..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, start.get().saturating_add(copied as u64)) {
                Ok(0) | Err(_) => break,
                Ok(size) => copied += size,
            }
        }
        copied
    }
}

impl ReadMemory for LiveMemory {
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        if self.copy(address, buf) == buf.len() { Ok(()) } else { Err(Unreadable { address }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_cannot_be_read_does_not_cost_the_others() {
        let (one, two) = (*b"abc", *b"defgh");
        let range = |bytes: &[u8]| AddrRange::from_size(Avma::new(bytes.as_ptr() as u64), bytes.len() as u64);
        let nothing = AddrRange::from_size(Avma::new(16), 4);
        let memory = LiveMemory::new(std::process::id());
        let mut to = [b'.'; 16];
        let copied = memory.copy_all(&[nothing, range(&one), nothing, range(&two)], &mut to);
        assert_eq!(copied, [0, 3, 0, 5]);
        assert_eq!(&to, b"....abc....defgh");
        assert_eq!(memory.copy_all(&[], &mut to), Vec::<usize>::new());
        assert!(memory.read(range(&two).start(), &mut [0; 5]).is_ok());
        let address = Avma::new(16);
        assert_eq!(memory.read(address, &mut [0; 5]), Err(Unreadable { address }));
    }

    #[test]
    fn what_the_call_cannot_read_the_file_can() {
        let bytes = *b"abcdef";
        let memory = LiveMemory::new(std::process::id());
        let mut to = [0; 4];
        assert_eq!(memory.copy_by_file(Avma::new(bytes.as_ptr() as u64), &mut to), 4);
        assert_eq!(&to, b"abcd");
        assert_eq!(memory.copy_by_file(Avma::new(16), &mut to), 0);
        assert_eq!(LiveMemory::new(u32::MAX).copy(Avma::new(16), &mut to), 0);
    }
}
