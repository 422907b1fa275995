//! An image's file put together from the process's memory: the vdso, libraries whose file is gone.

use backtrail_capture::Memory;
use backtrail_core::{Arch, Avma, FileOffset};
use backtrail_object::{Limits, Object};
use std::cell::Cell;

/// Program headers come soon after the ELF header.
const HEADER_BYTES: usize = 4096;

/// The images that lie in a process's memory.
pub(crate) struct InMemory<'m, 'd> {
    memory: &'m Memory<'d>,
    /// Bytes that may still be copied.
    left: Cell<usize>,
}

impl<'m, 'd> InMemory<'m, 'd> {
    /// All images together may come to twice the bytes that were saved, whatever their headers state: real ones hardly
    /// overlap.
    pub(crate) fn new(memory: &'m Memory<'d>) -> Self {
        let most = usize::try_from(memory.size()).unwrap_or(usize::MAX).saturating_mul(2);
        Self { memory, left: Cell::new(most) }
    }

    /// The file of the image whose ELF header lies at `start`, as far as memory has it: loaded segments at their
    /// offsets, the rest zero or missing. `None` where no image of this architecture begins there.
    pub(crate) fn image(&self, start: Avma, arch: Arch) -> Option<Vec<u8>> {
        let file = image_bytes(self.memory, start, arch, self.left.get())?;
        self.left.set(self.left.get().saturating_sub(file.len()));
        Some(file)
    }
}

fn image_bytes(memory: &Memory<'_>, start: Avma, arch: Arch, most: usize) -> Option<Vec<u8>> {
    let begin = memory.bytes_from(start)?;
    if !begin.starts_with(b"\x7fELF") {
        return None;
    }
    let header = begin.get(..HEADER_BYTES).unwrap_or(begin);
    let object = Object::parse_with(header, &Limits::default()).ok()?;
    if object.arch().family() != arch.family() {
        return None;
    }
    let base = object.image_base();
    let mut file = Some(header).filter(|header| header.len() <= most)?.to_vec();
    for segment in object.segments() {
        let Some(at) = segment.address.start().offset_from(base).and_then(|offset| start.checked_add(offset))
        else {
            continue;
        };
        copy(memory, at, segment.file.start(), segment.file.size(), most, &mut file);
    }
    // What lies behind the last segment: the vdso has its section headers there.
    let end = file.len() as u64;
    let rest = start.checked_add(end).and_then(|at| memory.bytes_from(at)).map_or(0, <[u8]>::len);
    if object.segments().len() == 1 {
        copy(
            memory,
            start,
            FileOffset::new(0),
            end + (rest as u64).min(HEADER_BYTES as u64 * 4),
            most,
            &mut file,
        );
    }
    Some(file)
}

fn copy(memory: &Memory<'_>, from: Avma, to: FileOffset, size: u64, most: usize, file: &mut Vec<u8>) {
    let Ok(to) = usize::try_from(to.get()) else { return };
    let Ok(size) = usize::try_from(size) else { return };
    let Some(end) = to.checked_add(size).filter(|end| *end <= most) else { return };
    let mut at = to;
    while at < end {
        let Some(bytes) = from.checked_add((at - to) as u64).and_then(|from| memory.bytes_from(from)) else {
            break;
        };
        let size = bytes.len().min(end - at);
        if file.len() < at + size {
            file.resize(at + size, 0);
        }
        if let (Some(into), Some(bytes)) = (file.get_mut(at..at + size), bytes.get(..size)) {
            into.copy_from_slice(bytes);
        }
        at += size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ELF header of a program for x86_64 and one segment: all of 4096 bytes.
    fn program() -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, b"\x7fELF\x02\x01\x01");
        put(16, &3_u16.to_le_bytes());
        put(18, &62_u16.to_le_bytes());
        put(20, &1_u32.to_le_bytes());
        put(32, &64_u64.to_le_bytes());
        put(52, &64_u16.to_le_bytes());
        put(54, &56_u16.to_le_bytes());
        put(56, &1_u16.to_le_bytes());
        put(64, &1_u32.to_le_bytes());
        put(68, &5_u32.to_le_bytes());
        for size_at in [64 + 32, 64 + 40] {
            put(size_at, &(HEADER_BYTES as u64).to_le_bytes());
        }
        bytes
    }

    #[test]
    fn images_that_claim_the_same_memory_are_copied_a_few_times_only() {
        let bytes = program();
        let memory = Memory::new([(Avma::new(0x10000), bytes.into())]);
        let images = InMemory::new(&memory);
        let sizes: Vec<_> =
            (0..4).map(|_| images.image(Avma::new(0x10000), Arch::X86_64).map(|file| file.len())).collect();
        assert_eq!(sizes, [Some(HEADER_BYTES), Some(HEADER_BYTES), None, None]);
    }
}
