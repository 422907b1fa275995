//! A line of text without allocating.

/// What is too long is cut off.
pub(crate) struct Line {
    bytes: [u8; 160],
    used: usize,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; 160], used: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }
}

impl std::fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.get_mut(self.used..).unwrap_or_default();
        let size = room.len().min(text.len());
        room.iter_mut().zip(text.as_bytes()).for_each(|(to, from)| *to = *from);
        self.used += size;
        Ok(())
    }
}
