//! 32-bit ARM. Which of the two instruction sets a function is in, the bytes do not say: what both would change is left
//! out, which costs some that could be told apart.

use backtrail_core::Svma;

use super::{Form, Resolved, displaced, word};

/// Thumb's `bl`, `blx`, `b.w`, `movw`, `movt`: two halves.
fn is_wide(first: u16, second: u16) -> bool {
    let is_branch = first & 0xf800 == 0xf000 && second & 0x8000 != 0;
    let is_move = matches!(first & 0xfbf0, 0xf240 | 0xf2c0) && second & 0x8000 == 0;
    is_branch || is_move
}

fn halves(code: &[u8], at: usize) -> Option<(u16, u16)> {
    let [a, b, c, d] = *code.get(at..)?.first_chunk()?;
    Some((u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])))
}

pub(super) fn canonical(code: &[u8], out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(code);
    let mut literals = Vec::new();
    let mut at = 0;
    while let Some((first, second)) = halves(code, at) {
        // ldr rX, [pc, #n], in both encodings: what it loads lies in the code, and may be an address.
        if first & 0xf800 == 0x4800 {
            literals.push((at & !3) + 4 + usize::from(first & 0xff) * 4);
        } else if matches!(first, 0xf8df | 0xf85f) && first & 0x80 != 0 {
            literals.push((at & !3) + 4 + usize::from(second & 0xfff));
        }
        let is_arm = at.is_multiple_of(4)
            && word(code, at).is_some_and(|word| {
                word & 0x0e00_0000 == 0x0a00_0000 || matches!(word & 0x0ff0_0000, 0x0300_0000 | 0x0340_0000)
            });
        if let Some(word) = word(code, at).filter(|word| at % 4 == 0 && word & 0x0fff_0000 == 0x059f_0000) {
            literals.push(at + 8 + usize::try_from(word & 0xfff).unwrap_or(0));
        }
        if is_wide(first, second) || is_arm {
            if let Some(field) = out.get_mut(at..at + 4) {
                field.fill(0);
            }
            at += if is_wide(first, second) { 4 } else { 2 };
        } else {
            at += 2;
        }
    }
    for at in literals {
        if let Some(field) = out.get_mut(at..at + 4) {
            field.fill(0);
        }
    }
    let is_padding = |pair: &[u8; 2]| matches!(u16::from_le_bytes(*pair), 0 | 0xbf00 | 0x46c0);
    let (pairs, _) = code.as_chunks::<2>();
    pairs.iter().rposition(|pair| !is_padding(pair)).map_or(0, |last| (last + 1) * 2)
}

/// Whether most of its words are ARM instructions that are always carried out, which few pairs of Thumb's look like.
fn is_arm_code(code: &[u8]) -> bool {
    let (words, _) = code.as_chunks::<4>();
    let always = words.iter().filter(|[.., last]| last >> 4 == 0xe).count();
    always * 4 > words.len() * 3
}

/// Return addresses have no Thumb bit here.
pub(super) fn calls((start, code): (Svma, &[u8]), found: &mut dyn FnMut(usize, Option<Svma>)) {
    let called = |at: usize| match resolve(Form::Branch, (start, code), at) {
        Some(Resolved::Address(address)) => Some(address),
        _ => None,
    };
    if is_arm_code(code) {
        let (words, _) = code.as_chunks::<4>();
        for (index, bytes) in words.iter().enumerate() {
            let word = u32::from_le_bytes(*bytes);
            // bl with a condition, blx to Thumb.
            if word & 0x0f00_0000 == 0x0b00_0000 || word & 0xfe00_0000 == 0xfa00_0000 {
                found(index * 4 + 4, called(index * 4));
            } else if word & 0x0fff_fff0 == 0x012f_ff30 {
                found(index * 4 + 4, None);
            }
        }
        return;
    }
    let mut at = 0;
    while let Some((first, second)) = halves(code, at).or_else(|| Some((half(code, at)?, 0))) {
        let is_long = first >> 11 >= 0x1d;
        if first & 0xf800 == 0xf000 && second & 0xc000 == 0xc000 {
            found(at + 4, called(at));
        } else if first & 0xff87 == 0x4780 {
            found(at + 2, None);
        }
        at += if is_long { 4 } else { 2 };
    }
}

fn half(code: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*code.get(at..)?.first_chunk()?))
}

/// Where `bl` goes, in either instruction set.
pub(super) fn resolve(form: Form, (start, code): (Svma, &[u8]), at: usize) -> Option<Resolved> {
    if form != Form::Branch {
        return None;
    }
    let place = displaced(start, at as i64);
    let (first, second) = halves(code, at)?;
    if first & 0xf800 == 0xf000 && second & 0x9000 != 0 {
        let bit = |half: u16, shift: u32| u32::from(half >> shift & 1);
        let sign = bit(first, 10);
        let (i1, i2) = (1 ^ bit(second, 13) ^ sign, 1 ^ bit(second, 11) ^ sign);
        let high = u32::from(first & 0x3ff);
        let low = u32::from(second & 0x7ff);
        let raw = sign << 24 | i1 << 23 | i2 << 22 | high << 12 | low << 1;
        let offset = i64::from((raw << 7).cast_signed() >> 7);
        // blx to the other instruction set counts from a whole word.
        let base = if second & 0x1000 == 0 { place.get() & !3 } else { place.get() };
        return Some(Resolved::Address(displaced(Svma::new(base), offset + 4)));
    }
    let word = word(code, at)?;
    if word & 0x0e00_0000 != 0x0a00_0000 {
        return None;
    }
    let offset = i64::from((word << 8).cast_signed() >> 6);
    Some(Resolved::Address(displaced(place, offset + 8)))
}
