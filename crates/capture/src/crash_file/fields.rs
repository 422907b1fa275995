//! Numbers and texts, one behind the other.

/// The rest of a section's content. Every read answers `None` where the content ends before.
#[derive(Clone, Copy)]
pub(super) struct Fields<'d>(pub(super) &'d [u8]);

impl<'d> Fields<'d> {
    pub(super) fn bytes(&mut self, size: usize) -> Option<&'d [u8]> {
        let (bytes, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const SIZE: usize>(&mut self) -> Option<[u8; SIZE]> {
        self.bytes(SIZE)?.first_chunk().copied()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A text with its size in a byte before it.
    pub(super) fn short_text(&mut self) -> Option<String> {
        let size = self.u8()?;
        self.bytes(size.into()).map(text)
    }

    /// What is left, as text.
    pub(super) fn text(self) -> String {
        text(self.0)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
