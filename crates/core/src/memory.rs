//! Reading a target's memory: live, saved or made up for a test.

use crate::{AddrRange, Avma};
use core::fmt;

/// The target's memory cannot be read here: not mapped, not saved, or the target is gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Unreadable {
    /// Where the read that failed began.
    pub address: Avma,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory at {} cannot be read", self.address)
    }
}

impl core::error::Error for Unreadable {}

/// Something that has a target's memory, addressed as in the target.
///
/// A read gives all of the bytes or none. Numbers are little-endian: of the architectures that backtrail unwinds
/// no supported system runs big-endian.
pub trait ReadMemory {
    /// Fills `buf` with the bytes from `address` on.
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable>;

    /// Four bytes as a number.
    #[inline]
    fn read_u32(&self, address: Avma) -> Result<u32, Unreadable> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Eight bytes as a number.
    #[inline]
    fn read_u64(&self, address: Avma) -> Result<u64, Unreadable> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A pointer of `size` bytes: 4, or else 8.
    #[inline]
    fn read_pointer(&self, address: Avma, size: u8) -> Result<u64, Unreadable> {
        if size == 4 { self.read_u32(address).map(u64::from) } else { self.read_u64(address) }
    }
}

impl<M: ReadMemory + ?Sized> ReadMemory for &M {
    #[inline]
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        (**self).read(address, buf)
    }

    #[inline]
    fn read_u32(&self, address: Avma) -> Result<u32, Unreadable> {
        (**self).read_u32(address)
    }

    #[inline]
    fn read_u64(&self, address: Avma) -> Result<u64, Unreadable> {
        (**self).read_u64(address)
    }
}

/// One saved piece of memory, such as a thread's stack.
#[derive(Clone, Copy)]
pub struct MemorySlice<'a> {
    start: Avma,
    bytes: &'a [u8],
}

impl<'a> MemorySlice<'a> {
    /// `bytes` as they lay in the target from `start` on.
    pub const fn new(start: Avma, bytes: &'a [u8]) -> Self {
        Self { start, bytes }
    }

    /// What the piece covers.
    pub fn range(&self) -> AddrRange<Avma> {
        AddrRange::from_size(self.start, self.bytes.len() as u64)
    }

    /// The bytes themselves.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn at(&self, address: Avma) -> Option<&'a [u8]> {
        let offset = address.get().checked_sub(self.start.get())?;
        self.bytes.get(usize::try_from(offset).ok()?..)
    }
}

impl fmt::Debug for MemorySlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {}", self.bytes.len(), self.start)
    }
}

impl ReadMemory for MemorySlice<'_> {
    #[inline]
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        let bytes =
            self.at(address).and_then(|bytes| bytes.get(..buf.len())).ok_or(Unreadable { address })?;
        buf.copy_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn read_u32(&self, address: Avma) -> Result<u32, Unreadable> {
        let bytes = self.at(address).and_then(<[u8]>::first_chunk).ok_or(Unreadable { address })?;
        Ok(u32::from_le_bytes(*bytes))
    }

    #[inline]
    fn read_u64(&self, address: Avma) -> Result<u64, Unreadable> {
        let bytes = self.at(address).and_then(<[u8]>::first_chunk).ok_or(Unreadable { address })?;
        Ok(u64::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_gives_all_or_nothing() {
        let memory = MemorySlice::new(Avma::new(0x1000), &[1, 0, 0, 0, 2, 0, 0, 0, 9]);
        assert_eq!(memory.read_u64(Avma::new(0x1000)), Ok(0x2_0000_0001));
        assert_eq!(memory.read_u32(Avma::new(0x1004)), Ok(2));
        assert_eq!(memory.read_pointer(Avma::new(0x1004), 4), Ok(2));
        for address in [0, 0xfff, 0x1002, 0x1009, u64::MAX].map(Avma::new) {
            assert_eq!(memory.read_u64(address), Err(Unreadable { address }), "{address}");
        }
        let mut last = [0];
        memory.read(Avma::new(0x1008), &mut last).unwrap();
        assert_eq!(last, [9]);
        assert!(memory.read(Avma::new(0x1009), &mut []).is_ok());
    }
}
