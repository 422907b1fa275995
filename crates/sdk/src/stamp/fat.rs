//! Fat files, whose slices may grow. `<mach-o/fat.h>`.

use crate::error::{Error, ErrorKind, Result};

const MAGIC: [u8; 4] = 0xcafe_babe_u32.to_be_bytes();
const MAGIC_64: [u8; 4] = 0xcafe_babf_u32.to_be_bytes();
/// More architectures than there are.
const MOST: usize = 64;

/// One entry of the header: where its offset stands, and what it states.
struct Entry {
    at: usize,
    offset: usize,
    size: usize,
    align: u32,
}

/// Changes each slice of a fat file, or the whole of any other; `None` leaves a slice as it is.
pub(super) fn each(
    bytes: &[u8],
    mut change: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>>,
) -> Result<Vec<u8>> {
    let is_wide = bytes.starts_with(&MAGIC_64);
    if !is_wide && !bytes.starts_with(&MAGIC) {
        return Ok(change(bytes)?.unwrap_or_else(|| bytes.to_vec()));
    }
    let entries = entries(bytes, is_wide)?;
    let first = entries.iter().map(|entry| entry.offset).min().unwrap_or(bytes.len());
    let mut out = bytes.get(..first).unwrap_or_default().to_vec();
    for entry in entries {
        let old = entry.offset.checked_add(entry.size).and_then(|end| bytes.get(entry.offset..end));
        let old = old.ok_or_else(|| malformed(entry.at, "a slice that fits the file"))?;
        let new = change(old)?;
        let new = new.as_deref().unwrap_or(old);
        out.resize(out.len().next_multiple_of(1 << entry.align), 0);
        let width = if is_wide { 8 } else { 4 };
        for (at, number) in [(entry.at, out.len()), (entry.at + width, new.len())] {
            let number = (number as u64).to_be_bytes();
            let (high, low) = number.split_at(8 - width);
            let place = out.get_mut(at..at + width).filter(|_| high.iter().all(|byte| *byte == 0));
            place.ok_or_else(|| malformed(at, "slices below 4 GB"))?.copy_from_slice(low);
        }
        out.extend_from_slice(new);
    }
    Ok(out)
}

fn entries(bytes: &[u8], is_wide: bool) -> Result<Vec<Entry>> {
    let (size, width) = if is_wide { (32, 8) } else { (20, 4) };
    let count = number(bytes, 4, 4)?;
    if count > MOST {
        return Err(malformed(4, "at most 64 architectures"));
    }
    let mut entries = Vec::with_capacity(count);
    for index in 0..count {
        let at = 8 + index * size + 8;
        let align = u32::try_from(number(bytes, at + 2 * width, 4)?).unwrap_or(u32::MAX);
        if align > 20 {
            return Err(malformed(at + 2 * width, "an alignment of at most 2^20"));
        }
        entries.push(Entry {
            at,
            offset: number(bytes, at, width)?,
            size: number(bytes, at + width, width)?,
            align,
        });
    }
    entries.sort_by_key(|entry| entry.offset);
    Ok(entries)
}

fn number(bytes: &[u8], at: usize, width: usize) -> Result<usize> {
    let field = bytes.get(at..at + width).ok_or_else(|| malformed(at, "the header of a fat file"))?;
    Ok(field.iter().fold(0, |value, byte| value << 8 | usize::from(*byte)))
}

fn malformed(at: usize, expected: &str) -> Error {
    Error::at(ErrorKind::Malformed, at as u64, format!("expected {expected}"))
}
