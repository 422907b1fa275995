//! Files of which only the headers are fetched.

use backtrail_core::FileOffset;
use object::read::ReadCacheOps;

use crate::error::{Error, ErrorKind, Result};

/// Bytes that are fetched piece by piece: a file, a member of an archive, something remote.
pub trait ReadAt {
    /// Bytes in all.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` with the bytes from `offset` on, or fails.
    ///
    /// # Errors
    /// [`Error::past_end`] where the bytes leave the file, [`Error::io`] where they cannot be fetched.
    fn read_exact_at(&self, offset: FileOffset, buf: &mut [u8]) -> Result<(), Error>;
}

impl ReadAt for [u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_exact_at(&self, offset: FileOffset, buf: &mut [u8]) -> Result<(), Error> {
        let bytes = usize::try_from(offset.get()).ok().and_then(|at| self.get(at..)?.get(..buf.len()));
        let bytes = bytes.ok_or_else(|| Error::past_end(offset, buf.len() as u64))?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn len(&self) -> u64 {
        T::len(self)
    }

    fn read_exact_at(&self, offset: FileOffset, buf: &mut [u8]) -> Result<(), Error> {
        T::read_exact_at(self, offset, buf)
    }
}

impl ReadAt for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_exact_at(&self, offset: FileOffset, buf: &mut [u8]) -> Result<(), Error> {
        self.as_slice().read_exact_at(offset, buf)
    }
}

/// A part of a [`ReadAt`] as `object`'s read cache wants it: with a position, a bound on what is fetched in all, and one
/// block kept, since headers lie side by side.
pub(crate) struct Fetch<'a> {
    source: &'a dyn ReadAt,
    start: u64,
    len: u64,
    position: u64,
    budget: u64,
    block_size: u64,
    block_start: u64,
    block: Vec<u8>,
    /// The first failure; the cache can only say that there was one.
    pub(crate) failure: Option<Error>,
}

impl<'a> Fetch<'a> {
    pub(crate) fn new(source: &'a dyn ReadAt, start: u64, len: u64, budget: u64, block_size: u64) -> Self {
        let len = len.min(source.len().saturating_sub(start));
        let (block, failure) = (Vec::new(), None);
        Self { source, start, len, position: 0, budget, block_size, block_start: 0, block, failure }
    }

    fn fetch(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let size = buf.len() as u64;
        let file_offset = self.start.saturating_add(offset);
        self.budget = self.budget.checked_sub(size).ok_or_else(|| {
            let detail = "the headers are larger than what identifying a file may read";
            Error::new(ErrorKind::LimitExceeded, file_offset, detail)
        })?;
        self.source.read_exact_at(FileOffset::new(file_offset), buf)
    }

    fn block_part(&self, size: usize) -> Option<&[u8]> {
        let at = usize::try_from(self.position.checked_sub(self.block_start)?).ok()?;
        self.block.get(at..)?.get(..size)
    }

    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        if self.block_part(buf.len()).is_none() {
            let there = self.len.saturating_sub(self.position);
            if buf.len() as u64 >= self.block_size || there < buf.len() as u64 {
                return self.fetch(self.position, buf);
            }
            let mut block = std::mem::take(&mut self.block);
            block.resize(usize::try_from(there.min(self.block_size)).unwrap_or(0), 0);
            self.fetch(self.position, &mut block)?;
            (self.block, self.block_start) = (block, self.position);
        }
        if let Some(part) = self.block_part(buf.len()) {
            buf.copy_from_slice(part);
        }
        Ok(())
    }
}

impl ReadCacheOps for Fetch<'_> {
    fn len(&mut self) -> Result<u64, ()> {
        Ok(self.len)
    }

    fn seek(&mut self, position: u64) -> Result<u64, ()> {
        self.position = position;
        Ok(position)
    }

    fn read(&mut self, buf: &mut [u8]) -> Result<usize, ()> {
        let there = self.len.saturating_sub(self.position);
        let size = usize::try_from(there).unwrap_or(usize::MAX).min(buf.len());
        self.read_exact(buf.get_mut(..size).ok_or(())?)?;
        Ok(size)
    }

    fn read_exact(&mut self, buf: &mut [u8]) -> Result<(), ()> {
        self.fill(buf).map_err(|error| self.failure = self.failure.take().or(Some(error)))?;
        self.position = self.position.saturating_add(buf.len() as u64);
        Ok(())
    }
}
