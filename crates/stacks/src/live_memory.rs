//! The memory of a process that runs, each page read once.

use backtrail_core::{Avma, ReadMemory, Unreadable};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

const PAGE: usize = 4096;
/// Pages that are kept: 64 MB.
const MAX_PAGES: usize = 16384;

/// Pages of a process as they were when they were first asked for, so that what is read twice is the same twice.
pub(crate) struct CachedMemory {
    source: Box<dyn ReadMemory + Send + Sync>,
    pages: Mutex<HashMap<u64, Option<Box<[u8; PAGE]>>>>,
}

impl CachedMemory {
    pub(crate) fn new(source: impl ReadMemory + Send + Sync + 'static) -> Self {
        Self { source: Box::new(source), pages: Mutex::default() }
    }

    /// Copies the part of `buf` that lies in one page; the answer is its size.
    fn read_part(&self, address: Avma, buf: &mut [u8]) -> Option<usize> {
        let (start, into) = (address.get() & !(PAGE as u64 - 1), address.get() as usize & (PAGE - 1));
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.len() >= MAX_PAGES {
            pages.clear();
        }
        let page = pages.entry(start).or_insert_with(|| {
            let mut page = Box::new([0; PAGE]);
            self.source.read(Avma::new(start), &mut *page).ok().map(|()| page)
        });
        let part = page.as_ref()?.get(into..)?;
        let size = part.len().min(buf.len());
        buf.get_mut(..size)?.copy_from_slice(part.get(..size)?);
        Some(size)
    }
}

impl ReadMemory for CachedMemory {
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = address.checked_add(done as u64);
            let size = at.and_then(|at| self.read_part(at, rest));
            done += size.ok_or(Unreadable { address })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Two pages from 0x10000 on; each byte is the number of reads before.
    struct Counting(AtomicUsize);

    impl ReadMemory for Counting {
        fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
            if !(0x10000..0x12000).contains(&address.get()) {
                return Err(Unreadable { address });
            }
            buf.fill(self.0.fetch_add(1, Ordering::Relaxed) as u8);
            Ok(())
        }
    }

    #[test]
    fn a_page_is_asked_for_once_and_reads_may_cross_pages() {
        let memory = CachedMemory::new(Counting(AtomicUsize::new(1)));
        let mut buf = [0; 4];
        memory.read(Avma::new(0x10ffe), &mut buf).unwrap();
        assert_eq!(buf, [1, 1, 2, 2]);
        memory.read(Avma::new(0x10ffd), &mut buf).unwrap();
        assert_eq!(buf, [1, 1, 1, 2]);
        let address = Avma::new(0x11ffe);
        assert_eq!(memory.read(address, &mut buf), Err(Unreadable { address }));
        assert!(memory.read(Avma::new(u64::MAX), &mut buf).is_err());
    }
}
