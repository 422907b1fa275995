//! Reading here and there in a file without taking it in.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use backtrail_core::FileOffset;
use backtrail_object::ReadAt;

use crate::data::FileData;
use crate::error::{ErrorKind, Fault};

/// Where bytes come from; several threads may read at once.
#[derive(Debug)]
pub(crate) enum Source {
    /// Read with `pread`, each call counted.
    File { file: File, len: u64, bytes_read: AtomicU64 },
    /// Already in memory.
    Bytes(FileData),
}

impl Source {
    pub(crate) fn file(file: File, len: u64) -> Self {
        Self::File { file, len, bytes_read: AtomicU64::new(0) }
    }

    /// The file, if it is one.
    pub(crate) fn into_file(self) -> Option<File> {
        match self {
            Self::File { file, .. } => Some(file),
            Self::Bytes(_) => None,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Bytes(data) => data.len() as u64,
        }
    }

    /// Bytes that were read from the disk.
    pub(crate) fn bytes_read(&self) -> u64 {
        match self {
            Self::File { bytes_read, .. } => bytes_read.load(Ordering::Relaxed),
            Self::Bytes(_) => 0,
        }
    }

    /// Fills `buf` from `offset`.
    pub(crate) fn read_exact(&self, offset: u64, buf: &mut [u8]) -> Result<(), Fault> {
        let end = offset.checked_add(buf.len() as u64).filter(|end| *end <= self.len());
        if end.is_none() {
            let what = format!("expected {} bytes, the file has {} in all", buf.len(), self.len());
            return Err(Fault::new(ErrorKind::Io, what).offset(offset));
        }
        match self {
            Self::File { file, bytes_read, .. } => {
                bytes_read.fetch_add(buf.len() as u64, Ordering::Relaxed);
                file.read_exact_at(buf, offset)
                    .map_err(|error| Fault::io("cannot be read", &error).offset(offset))
            }
            Self::Bytes(data) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let from = data.get(start..).and_then(|rest| rest.get(..buf.len()));
                buf.copy_from_slice(
                    from.ok_or_else(|| Fault::new(ErrorKind::Io, "ends early").offset(offset))?,
                );
                Ok(())
            }
        }
    }

    /// To be asked when all that is wanted was read.
    ///
    /// # Errors
    /// When a mapped file became shorter meanwhile: see [`FileData::check`].
    pub(crate) fn check(&self) -> Result<(), Fault> {
        match self {
            Self::File { .. } => Ok(()),
            Self::Bytes(data) => data.check_whole(),
        }
    }

    /// Up to `max` bytes from `offset`; fewer only at the end.
    pub(crate) fn read_vec(&self, offset: u64, max: usize) -> Result<Vec<u8>, Fault> {
        let len = self.len().saturating_sub(offset).min(max as u64);
        let mut buf = vec![0; usize::try_from(len).unwrap_or(0)];
        self.read_exact(offset, &mut buf)?;
        Ok(buf)
    }
}

/// A part of a [`Source`], read in blocks: headers are read value by value, and each would cost a call otherwise.
pub(crate) struct Window<'s> {
    source: &'s Source,
    base: u64,
    len: u64,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// Position of `block` in the part.
    start: u64,
    block: Vec<u8>,
    fault: Option<Fault>,
}

/// Load commands and section headers of most files fit; one page is what the disk gives anyway.
const BLOCK: usize = 4096;

impl<'s> Window<'s> {
    pub(crate) fn new(source: &'s Source, base: u64, len: u64) -> Self {
        Self { source, base, len, state: RefCell::default() }
    }

    /// Why the first read failed that did: an object parser would lose what kind of fault it was.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.state.borrow_mut().fault.take()
    }

    pub(crate) fn fill(&self, offset: u64, buf: &mut [u8]) -> Result<(), Fault> {
        let within = offset.checked_add(buf.len() as u64).is_some_and(|end| end <= self.len);
        if !within {
            let what = format!("expected {} bytes, the file has {} in all", buf.len(), self.len);
            return Err(Fault::new(ErrorKind::Object, what).offset(offset));
        }
        if buf.len() > BLOCK {
            return self.source.read_exact(self.base.saturating_add(offset), buf);
        }
        let mut state = self.state.borrow_mut();
        if let Some(bytes) = state.get(offset, buf.len()) {
            buf.copy_from_slice(bytes);
            return Ok(());
        }
        let max = usize::try_from(self.len - offset).unwrap_or(usize::MAX).min(BLOCK);
        state.block = self.source.read_vec(self.base.saturating_add(offset), max)?;
        state.start = offset;
        match state.get(offset, buf.len()) {
            Some(bytes) => buf.copy_from_slice(bytes),
            None => return Err(Fault::new(ErrorKind::Io, "ends early").offset(offset)),
        }
        Ok(())
    }
}

impl State {
    fn get(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.block.get(start..)?.get(..len)
    }
}

impl ReadAt for Window<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: FileOffset, buf: &mut [u8]) -> Result<(), backtrail_object::Error> {
        let len = buf.len() as u64;
        if offset.checked_add(len).is_none_or(|end| end.get() > self.len) {
            return Err(backtrail_object::Error::past_end(offset, len));
        }
        self.fill(offset.get(), buf).map_err(|fault| {
            let error = unreadable(&fault);
            self.state.borrow_mut().fault.get_or_insert(fault);
            error
        })
    }
}

/// What the object parser hears of a failed read; the caller of the parser asks the reader for the fault itself.
pub(crate) fn unreadable(fault: &Fault) -> backtrail_object::Error {
    let offset = fault.offset.unwrap_or(FileOffset::new(0));
    backtrail_object::Error::io(offset, &std::io::Error::other(fault.what.as_str()))
}
