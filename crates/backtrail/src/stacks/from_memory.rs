//! An image's file put together from the process's memory: the vdso, libraries whose file is gone.

use backtrail_capture::Memory;
use backtrail_core::{Arch, Avma, FileOffset};
use backtrail_object::{Limits, Object};

/// Program headers come soon after the ELF header.
const HEADER_BYTES: usize = 4096;

/// The file of the image whose ELF header lies at `start`, as far as memory has it: loaded segments at their offsets,
/// the rest zero or missing. `None` where no image of this architecture begins there.
pub(super) fn image_bytes(memory: &Memory<'_>, start: Avma, arch: Arch) -> Option<Vec<u8>> {
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
    // No more than was saved, whatever the headers state.
    let most = usize::try_from(memory.size()).ok()?.saturating_mul(2);
    let mut file = header.to_vec();
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
