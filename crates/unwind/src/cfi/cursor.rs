//! A position in a section, with reads that cannot leave it.

use crate::row::Malformed;
use backtrail_core::Svma;

/// Reads forward through bytes of which the first is stated at `start`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'d> {
    start: Svma,
    data: &'d [u8],
    position: usize,
}

pub(crate) type Result<T> = core::result::Result<T, Malformed>;

impl<'d> Cursor<'d> {
    pub(crate) fn new(start: Svma, data: &'d [u8]) -> Self {
        Self { start, data, position: 0 }
    }

    /// Bytes from the start.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// The stated address of the next byte.
    pub(crate) fn address(&self) -> Svma {
        Svma::new(self.start.get().wrapping_add(self.position as u64))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.position >= self.data.len()
    }

    pub(crate) fn fault(&self, expected: &'static str) -> Malformed {
        Malformed { at: self.address(), expected }
    }

    /// Moves to an offset from the start.
    pub(crate) fn seek(&mut self, position: usize) -> Result<()> {
        if position > self.data.len() {
            return Err(self.fault("an offset inside of the section"));
        }
        self.position = position;
        Ok(())
    }

    /// Moves behind the last byte.
    pub(crate) fn seek_end(&mut self) {
        self.position = self.data.len();
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'d [u8]> {
        let bytes = self.data.get(self.position..).and_then(|rest| rest.get(..count));
        let bytes = bytes.ok_or_else(|| self.fault("more bytes"))?;
        self.position += count;
        Ok(bytes)
    }

    /// The same place, with an end `count` bytes on.
    pub(crate) fn limited(&self, count: u64) -> Result<Self> {
        let end = usize::try_from(count).ok().and_then(|count| self.position.checked_add(count));
        let data = end
            .and_then(|end| self.data.get(..end))
            .ok_or_else(|| self.fault("a length within the section"))?;
        Ok(Self { data, ..*self })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let chunk = self.data.get(self.position..).and_then(<[u8]>::first_chunk::<N>);
        let chunk = *chunk.ok_or_else(|| self.fault("more bytes"))?;
        self.position += N;
        Ok(chunk)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// An unsigned LEB128 number.
    #[inline]
    pub(crate) fn uleb(&mut self) -> Result<u64> {
        let mut value = 0u64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift >= 64 || (shift == 63 && bits > 1) {
                return Err(self.fault("a LEB128 number of at most 64 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// A signed LEB128 number.
    #[inline]
    pub(crate) fn sleb(&mut self) -> Result<i64> {
        let mut value = 0i64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8()?;
            if shift >= 64 {
                return Err(self.fault("a LEB128 number of at most 64 bits"));
            }
            value |= i64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                let sign = byte & 0x40 != 0 && shift < 64;
                return Ok(if sign { value | (-1i64 << shift) } else { value });
            }
        }
    }

    /// The bytes up to a zero, without it.
    pub(crate) fn c_string(&mut self) -> Result<&'d [u8]> {
        let rest = self.data.get(self.position..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == 0).ok_or_else(|| self.fault("a string's end"))?;
        let text = self.bytes(length)?;
        self.position += 1;
        Ok(text)
    }
}
