//! Names, packed.
//!
//! Linkage names repeat each other's parts. A table has one dictionary of common parts; a packed name is a row of bytes
//! that stand for themselves and of copies from the dictionary.

/// Bytes below this stand for themselves.
pub(crate) const COPY: u8 = 0x80;
/// The byte that follows stands for itself.
pub(crate) const LITERAL: u8 = 0xff;
/// The lowest five bits of a copy: its length minus [`MIN_COPY`], or this for a length that is told behind.
pub(crate) const LONG: u8 = 30;
const LENGTH: u8 = 31;
/// The bits above: the upper bits of the place in the dictionary.
const PLACE: u8 = 3;
pub(crate) const MIN_COPY: usize = 4;
pub(crate) const MIN_LONG: usize = MIN_COPY + LONG as usize;

/// The largest dictionary that places can be told in.
pub(crate) const MAX_DICTIONARY: usize = 4 << 16;
/// No name is longer than this, so that a small file cannot fill the memory.
pub(crate) const MAX_TEXT: usize = 1 << 20;

/// Bytes that short copies are made of.
const BLOCK: usize = 16;
/// Room for the longest short copy, in whole blocks.
const ROOM: usize = 3 * BLOCK;

/// Appends a name, unpacked. `None` where it is broken; what stands before the break is there then.
pub(crate) fn unpack(packed: &[u8], dictionary: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    let mut end = start;
    let mut at = 0;
    let done = loop {
        // Room first, so that short copies are whole blocks.
        if out.len() - end < ROOM {
            out.resize(end + packed.len() * 8 + ROOM, 0);
        }
        let Some(&code) = packed.get(at) else { break Some(()) };
        at += 1;
        let size = if code < COPY {
            put(out, end, code)
        } else if code == LITERAL {
            at += 1;
            packed.get(at - 1).and_then(|byte| put(out, end, *byte))
        } else {
            copy(packed, &mut at, code, dictionary, out, end)
        };
        let Some(size) = size.filter(|size| end - start + size <= MAX_TEXT) else { break None };
        end += size;
    };
    out.truncate(end);
    done
}

#[inline]
fn put(out: &mut [u8], end: usize, byte: u8) -> Option<usize> {
    *out.get_mut(end)? = byte;
    Some(1)
}

/// Makes the copy whose code was read, and gives its length.
#[inline]
fn copy(
    packed: &[u8],
    at: &mut usize,
    code: u8,
    dictionary: &[u8],
    out: &mut Vec<u8>,
    end: usize,
) -> Option<usize> {
    let short = usize::from(code & LENGTH);
    let place = usize::from(code >> 5 & PLACE) << 16;
    if short < usize::from(LONG) {
        let from = place | usize::from(number(packed, at)?);
        let size = short + MIN_COPY;
        if let (Some(from), Some(to)) = (dictionary.get(from..from + ROOM), out.get_mut(end..end + ROOM)) {
            copy_blocks(from, to, size);
        } else {
            out.get_mut(end..end + size)?.copy_from_slice(dictionary.get(from..from + size)?);
        }
        return Some(size);
    }
    let size = usize::from(number(packed, at)?) + MIN_LONG;
    let from = place | usize::from(number(packed, at)?);
    let part = dictionary.get(from..from + size)?;
    out.truncate(end);
    out.extend_from_slice(part);
    Some(size)
}

/// Copies at least `size` bytes, of at most three blocks.
#[inline]
fn copy_blocks(from: &[u8], to: &mut [u8], size: usize) {
    let (from, to) = (from.as_chunks::<BLOCK>().0, to.as_chunks_mut::<BLOCK>().0);
    let ([a, b, c], [to_a, to_b, to_c]) = (from, to) else { return };
    *to_a = *a;
    if size > BLOCK {
        *to_b = *b;
        *to_c = *c;
    }
}

#[inline]
fn number(packed: &[u8], at: &mut usize) -> Option<u16> {
    let bytes = packed.get(*at..)?.first_chunk()?;
    *at += 2;
    Some(u16::from_le_bytes(*bytes))
}
