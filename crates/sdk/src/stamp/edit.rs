//! Changes to an object file that can be undone: what is overwritten is kept behind the new end.

use crate::error::{Error, ErrorKind, Result};

/// Ends a stamped object. Before it: the kept bytes, the old size, the size of what is kept.
const END: &[u8; 8] = b"BTSTAMP1";
const NUMBERS: usize = 2 * 8;

/// An object under change.
pub(super) struct Edit {
    bytes: Vec<u8>,
    before: usize,
    /// Each: where (4 bytes), how many (1 byte), the bytes.
    kept: Vec<u8>,
}

impl Edit {
    pub(super) fn new(object: &[u8]) -> Self {
        Self { bytes: object.to_vec(), before: object.len(), kept: Vec::new() }
    }

    /// Overwrites bytes of the old object.
    pub(super) fn set(&mut self, at: usize, new: &[u8]) -> Result<()> {
        let place = at.checked_add(new.len()).and_then(|end| self.bytes.get_mut(at..end));
        let (Some(place), Ok(where_to), Ok(count)) = (place, u32::try_from(at), u8::try_from(new.len()))
        else {
            return Err(Error::at(ErrorKind::Malformed, at as u64, "expected more bytes of an object file"));
        };
        self.kept.extend_from_slice(&where_to.to_le_bytes());
        self.kept.push(count);
        self.kept.extend_from_slice(place);
        place.copy_from_slice(new);
        Ok(())
    }

    /// Puts bytes behind the end, at a multiple of 8; where that is.
    pub(super) fn append(&mut self, parts: &[&[u8]]) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        at
    }

    /// The size that the object will have: it grows by a multiple of 8, so that what follows in an archive stays aligned.
    pub(super) fn final_size(&self) -> usize {
        let least = self.bytes.len() + self.kept.len() + NUMBERS + END.len();
        self.before + least.saturating_sub(self.before).next_multiple_of(8)
    }

    /// Overwrites a number that was set before, which is not kept again.
    pub(super) fn correct(&mut self, at: usize, new: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at.saturating_add(new.len())) {
            place.copy_from_slice(new);
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let size = self.final_size();
        self.bytes.resize(size.saturating_sub(self.kept.len() + NUMBERS + END.len()), 0);
        let kept = self.kept.len() as u64;
        self.bytes.extend_from_slice(&self.kept);
        self.bytes.extend_from_slice(&(self.before as u64).to_le_bytes());
        self.bytes.extend_from_slice(&kept.to_le_bytes());
        self.bytes.extend_from_slice(END);
        self.bytes
    }
}

/// The object as it was.
pub(super) fn put_back(object: &[u8]) -> Result<Vec<u8>> {
    let rewritten = || {
        let detail =
            "expected the bytes from before the stamp at the end of the object: another tool wrote it since";
        Error::at(ErrorKind::Unsupported, object.len() as u64, detail)
    };
    undone(object).ok_or_else(rewritten)
}

fn undone(object: &[u8]) -> Option<Vec<u8>> {
    let rest = object.strip_suffix(END)?;
    let (rest, kept_size) = rest.split_last_chunk::<8>()?;
    let (rest, before) = rest.split_last_chunk::<8>()?;
    let kept_size = usize::try_from(u64::from_le_bytes(*kept_size)).ok()?;
    let before = usize::try_from(u64::from_le_bytes(*before)).ok()?;
    let start = rest.len().checked_sub(kept_size).filter(|start| before <= *start)?;
    let mut bytes = rest.get(..before)?.to_vec();
    let mut kept = rest.get(start..)?;
    while let Some((at, rest)) = kept.split_first_chunk::<4>() {
        let at = usize::try_from(u32::from_le_bytes(*at)).ok()?;
        let (count, rest) = rest.split_first()?;
        let (old, rest) = rest.split_at_checked(usize::from(*count))?;
        bytes.get_mut(at..at.checked_add(old.len())?)?.copy_from_slice(old);
        kept = rest;
    }
    Some(bytes)
}
