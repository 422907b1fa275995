//! Names, packed.
//!
//! Linkage names repeat each other's parts. A table has one dictionary of common parts; a packed name is a row of
//! bytes that stand for themselves and of copies from the dictionary or from the name as unpacked so far.

/// Bytes below this stand for themselves.
pub(crate) const COPY: u8 = 0x80;
/// The byte that follows stands for itself.
pub(crate) const LITERAL: u8 = 0xff;
/// Lowest five bits of a copy: its length minus [`MIN_COPY`], or this for a length that is told behind.
pub(crate) const LONG: u8 = 30;
const LENGTH: u8 = 31;
pub(crate) const MIN_COPY: usize = 4;
pub(crate) const MIN_LONG: usize = MIN_COPY + LONG as usize;
/// Bits above: 0 to 2 for a copy from the dictionary, with the place's upper bits; 3 for one from the name itself.
pub(crate) const OWN: u8 = 3;

/// The largest dictionary that places can be told in.
pub(crate) const MAX_DICTIONARY: usize = 3 << 16;
/// Names are not longer than this when unpacked, so that a small file cannot fill the memory.
pub(crate) const MAX_TEXT: usize = 1 << 20;

/// Unpacks a name. What is broken ends it.
pub(crate) fn unpack(packed: &[u8], dictionary: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    let mut at = 0;
    while let Some(&code) = packed.get(at) {
        at += 1;
        if code < COPY {
            out.push(code);
            continue;
        }
        if code == LITERAL {
            out.push(*packed.get(at)?);
            at += 1;
            continue;
        }
        let (mut size, kind) = (usize::from(code & LENGTH) + MIN_COPY, code >> 5 & OWN);
        if code & LENGTH == LONG {
            let [low, high] = *packed.get(at..)?.first_chunk()?;
            size = MIN_LONG + usize::from(u16::from_le_bytes([low, high]));
            at += 2;
        }
        if kind == OWN {
            let back = usize::from(*packed.get(at)?) + 1;
            at += 1;
            let from = (out.len() - start).checked_sub(back)? + start;
            if out.len() - start + size > MAX_TEXT || size > back {
                return None;
            }
            out.extend_from_within(from..from + size);
        } else {
            let [low, high] = *packed.get(at..)?.first_chunk()?;
            at += 2;
            let from = usize::from(kind) << 16 | usize::from(u16::from_le_bytes([low, high]));
            if out.len() - start + size > MAX_TEXT {
                return None;
            }
            out.extend_from_slice(dictionary.get(from..from + size)?);
        }
    }
    Some(())
}
