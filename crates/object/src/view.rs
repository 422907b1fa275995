//! Bounds-checked access to the bytes of one slice, with errors that say where and what.
//!
//! The same code reads mapped bytes and files of which only the headers are fetched: `R` is a byte slice there and a
//! read cache here.

use std::ffi::CStr;

use object::ReadRef;
use object::pod::{Pod, from_bytes, slice_from_bytes};

use crate::error::{Error, ErrorKind, Result};

#[derive(Clone, Copy, Debug)]
pub(crate) struct View<R> {
    data: R,
    /// Where the slice starts in `data`.
    start: u64,
    len: u64,
    /// Where the slice starts in the outermost file; only errors use it.
    base: u64,
    /// The most that one read may ask for: a read cache allocates what it reads.
    max_read: u64,
}

impl<'d> View<&'d [u8]> {
    pub(crate) fn of_slice(data: &'d [u8], base: u64) -> Self {
        Self { data, start: 0, len: data.len() as u64, base, max_read: u64::MAX }
    }
}

impl<'d, R: ReadRef<'d>> View<R> {
    pub(crate) fn new(data: R, base: u64, max_read: u64) -> Self {
        Self { data, start: 0, len: data.len().unwrap_or(0), base, max_read }
    }

    /// What there is of `size` bytes at `offset`, as a slice of its own.
    pub(crate) fn part(&self, offset: u64, size: u64) -> Self {
        let len = self.len.saturating_sub(offset).min(size);
        let (start, base) = (self.start.saturating_add(offset), self.base.saturating_add(offset));
        Self { start, len, base, ..*self }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// `offset` within this slice as an offset in the outermost file.
    pub(crate) fn absolute(&self, offset: u64) -> u64 {
        self.base.saturating_add(offset)
    }

    pub(crate) fn malformed(&self, offset: u64, detail: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::malformed(self.absolute(offset), detail)
    }

    pub(crate) fn truncated(&self, offset: u64, size: u64, what: &str) -> Error {
        let detail =
            format!("expected {what} ({size} bytes), the data ends at {:#x}", self.absolute(self.len));
        Error::new(ErrorKind::Truncated, self.absolute(offset), detail)
    }

    /// `size` bytes at `offset`.
    pub(crate) fn bytes(&self, offset: u64, size: u64, what: &str) -> Result<&'d [u8]> {
        if offset.checked_add(size).is_none_or(|end| end > self.len) {
            return Err(self.truncated(offset, size, what));
        }
        if size > self.max_read {
            let detail = format!("{what} of {size} bytes, {} are allowed", self.max_read);
            return Err(Error::new(ErrorKind::LimitExceeded, self.absolute(offset), detail));
        }
        self.data.read_bytes_at(self.start.saturating_add(offset), size).map_err(|()| {
            Error::new(ErrorKind::Io, self.absolute(offset), format!("{what} ({size} bytes) did not come"))
        })
    }

    /// What there is of `size` bytes at `offset`: fewer where the data ends before, or where one read may not ask
    /// for so many.
    pub(crate) fn bytes_up_to(&self, offset: u64, size: u64, what: &str) -> Result<&'d [u8]> {
        let there = self.len.saturating_sub(offset).min(size).min(self.max_read);
        self.bytes(offset, there, what)
    }

    pub(crate) fn pod<T: Pod>(&self, offset: u64, what: &str) -> Result<&'d T> {
        let size = size_of::<T>() as u64;
        let bytes = self.bytes(offset, size, what)?;
        from_bytes(bytes).map(|(value, _)| value).map_err(|()| self.truncated(offset, size, what))
    }

    pub(crate) fn table<T: Pod>(&self, offset: u64, count: u64, what: &str) -> Result<&'d [T]> {
        let size = count.saturating_mul(size_of::<T>() as u64);
        let bytes = self.bytes(offset, size, what)?;
        let wrong = || self.truncated(offset, size, what);
        let count = usize::try_from(count).map_err(|_| wrong())?;
        slice_from_bytes(bytes, count).map(|(table, _)| table).map_err(|()| wrong())
    }
}

/// Fixed layout at `offset` of bytes that are there already.
pub(crate) fn pod_at<T: Pod>(bytes: &[u8], offset: usize) -> Option<&T> {
    from_bytes(bytes.get(offset..)?).ok().map(|(value, _)| value)
}

/// The string that starts at `offset`: up to its NUL, or up to the end of the table where a writer forgot the last one.
pub(crate) fn string_at(table: &[u8], offset: u64) -> Option<&[u8]> {
    let tail = table.get(usize::try_from(offset).ok()?..)?;
    Some(until_nul(tail))
}

/// The bytes before the first NUL; all of them where there is none.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)
}

/// One unsigned LEB128 number, moving `bytes` past it. `None` where it ends early or does not fit 64 bits.
pub(crate) fn uleb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    let mut shift = 0;
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let low = u64::from(byte & 0x7f);
        if shift >= u64::BITS || (low << shift) >> shift != low {
            return None;
        }
        value |= low << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stay_inside_and_say_where_they_wanted_to_go() {
        let view = View::of_slice(&[1, 2, 3, 4], 0x100);
        assert_eq!(view.bytes(1, 2, "x").unwrap(), &[2, 3]);
        for (offset, size) in [(3, 2), (5, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let error = view.bytes(offset, size, "a thing").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Truncated);
            assert!(error.to_string().contains("expected a thing"), "{error}");
        }
        let error = view.bytes(3, 2, "a thing").unwrap_err();
        assert_eq!(error.offset().unwrap().get(), 0x103);
        assert_eq!(view.bytes_up_to(3, 100, "x").unwrap(), &[4]);
        assert!(view.table::<[u8; 2]>(0, u64::MAX, "x").is_err());
    }

    #[test]
    fn leb_numbers_end_and_fit() {
        let mut bytes: &[u8] = &[0xe5, 0x8e, 0x26, 7];
        assert_eq!(uleb128(&mut bytes), Some(624_485));
        assert_eq!(bytes, &[7]);
        assert_eq!(uleb128(&mut &[0x80, 0x80][..]), None);
        let mut max: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(uleb128(&mut max), Some(u64::MAX));
        assert_eq!(uleb128(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]), None);
        assert_eq!(uleb128(&mut &[0x80; 40][..]), None);
    }
}
