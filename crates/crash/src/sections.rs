//! Sections of a crash file, put together in a buffer that was made before.

use backtrail_capture::crash_file::format::{
    EM_AARCH64, EM_X86_64, Kind, MAGIC, MAX_SECTION, SECTION_HEADER_BYTES, VERSION, checksum,
};
use backtrail_sys::os::raw_file::RawFile;

/// The magic, the version and the machine.
pub(crate) fn header() -> [u8; 16] {
    let machine = if cfg!(target_arch = "aarch64") { EM_AARCH64 } else { EM_X86_64 };
    let mut header = [0; 16];
    let fields = MAGIC.into_iter().chain(VERSION.to_le_bytes()).chain(machine.to_le_bytes());
    header.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    header
}

/// One section at a time. What does not fit is left out.
#[derive(Debug)]
pub(crate) struct Section {
    bytes: Box<[u8]>,
    used: usize,
}

impl Section {
    pub(crate) fn new() -> Self {
        let bytes = vec![0; MAX_SECTION + SECTION_HEADER_BYTES].into_boxed_slice();
        Self { bytes, used: SECTION_HEADER_BYTES }
    }

    /// An empty one.
    pub(crate) fn begin(&mut self) -> &mut Self {
        self.used = SECTION_HEADER_BYTES;
        self
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        let room = self.bytes.get_mut(self.used..).unwrap_or_default();
        room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        self.used = self.used.saturating_add(bytes.len()).min(self.bytes.len());
        self
    }

    pub(crate) fn u8(&mut self, number: u8) -> &mut Self {
        self.put(&[number])
    }

    pub(crate) fn u16(&mut self, number: u16) -> &mut Self {
        self.put(&number.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, number: u32) -> &mut Self {
        self.put(&number.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, number: u64) -> &mut Self {
        self.put(&number.to_le_bytes())
    }

    /// A text with its size in a byte before it.
    pub(crate) fn short(&mut self, text: &[u8]) -> &mut Self {
        let text = text.get(..255).unwrap_or(text);
        self.u8(u8::try_from(text.len()).unwrap_or(0)).put(text)
    }

    /// The whole section as it stands in the file.
    pub(crate) fn finish(&mut self, kind: Kind) -> &[u8] {
        let content = self.bytes.get(SECTION_HEADER_BYTES..self.used).unwrap_or_default();
        let (kind, size) = (kind as u32, u32::try_from(content.len()).unwrap_or(0));
        let fields = [kind, size, checksum(kind, size, content)].map(u32::to_le_bytes);
        for (to, from) in self.bytes.iter_mut().zip(fields.as_flattened()) {
            *to = *from;
        }
        self.bytes.get(..self.used).unwrap_or_default()
    }

    /// Writes it. What the disk does not take is lost; what came before stays.
    pub(crate) fn write(&mut self, kind: Kind, file: &RawFile) {
        let _ = file.write(self.finish(kind));
    }
}

/// A small section without any buffer but the stack: for who is in need. What is longer than 160 bytes is cut off.
pub(crate) fn write_small(kind: Kind, content: &[u8], file: &RawFile) {
    let mut section = [0; SECTION_HEADER_BYTES + SMALL];
    let content = content.get(..SMALL).unwrap_or(content);
    let (kind, size) = (kind as u32, u32::try_from(content.len()).unwrap_or(0));
    let fields = [kind, size, checksum(kind, size, content)].map(u32::to_le_bytes);
    let bytes = fields.as_flattened().iter().chain(content);
    section.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    // At once: another thread may be writing.
    let _ = file.write(section.get(..SECTION_HEADER_BYTES + content.len()).unwrap_or_default());
}

const SMALL: usize = 160;
