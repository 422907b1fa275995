//! AArch64, after the Arm Architecture Reference Manual, C4.

use backtrail_core::Svma;

use super::{Form, Resolved, displaced, word};

const NOP: u32 = 0xd503_201f;

fn is_branch(word: u32) -> bool {
    word & 0x7c00_0000 == 0x1400_0000
}

fn is_adrp(word: u32) -> bool {
    word & 0x9f00_0000 == 0x9000_0000
}

fn is_adr(word: u32) -> bool {
    word & 0x9f00_0000 == 0x1000_0000
}

fn is_add_immediate(word: u32) -> bool {
    word & 0x7f00_0000 == 0x1100_0000
}

/// Loads and stores with an unsigned offset.
fn is_load_store(word: u32) -> bool {
    word & 0x3b00_0000 == 0x3900_0000
}

fn is_literal_load(word: u32) -> bool {
    word & 0x3b00_0000 == 0x1800_0000
}

/// Whether linkers fill this instruction in, or put it in the place of one that they do.
fn may_change(word: u32) -> bool {
    word == NOP
        || is_branch(word)
        || is_adrp(word)
        || is_adr(word)
        || is_add_immediate(word)
        || is_load_store(word)
        || is_literal_load(word)
}

pub(super) fn canonical(code: &[u8], out: &mut Vec<u8>) -> usize {
    let (words, _) = code.as_chunks::<4>();
    let mut len = 0;
    for (index, bytes) in words.iter().enumerate() {
        let word = u32::from_le_bytes(*bytes);
        if word != 0 && word != NOP {
            len = (index + 1) * 4;
        }
        out.extend(if may_change(word) || reads_thread(words, index) { [0; 4] } else { *bytes });
    }
    len
}

/// How far apart compilers put two instructions that belong together.
const NEAR: usize = 8;

/// Whether it is of an access to a thread's variable, as compilers or as linkers write it: what is four instructions with a call, or two with
/// a load, becomes the number itself. Compilers build numbers from the low half on, linkers from the high one.
/// ABI for the Arm 64-bit Architecture (ELF), "Relocations for thread-local storage".
fn reads_thread(words: &[[u8; 4]], index: usize) -> bool {
    let word = |index: usize| words.get(index).map(|bytes| u32::from_le_bytes(*bytes));
    let high = |word: u32| (word & 0xffe0_0000 == 0xd2a0_0000).then_some(word & 31);
    let low = |word: u32| (word & 0xffe0_0000 == 0xf280_0000).then_some(word & 31);
    let Some(here) = word(index) else { return false };
    if let Some(to) = high(here) {
        return (1..NEAR).filter_map(|by| word(index + by)).any(|word| low(word) == Some(to));
    }
    if let Some(to) = low(here) {
        return (1..NEAR).filter_map(|by| word(index.checked_sub(by)?)).any(|word| high(word) == Some(to));
    }
    // `adrp x0; ldr x1, [x0, …]; add x0, x0, …; blr x1`, of descriptors.
    let before = |by: usize| word(index.checked_sub(by)?);
    here == 0xd63f_0020
        && before(1).is_some_and(|word| word & 0xffc0_03ff == 0x9100_0000)
        && before(2).is_some_and(|word| word & 0xffc0_03ff == 0xf940_0001)
        && before(3).is_some_and(|word| is_adrp(word) && word & 31 == 0)
}

fn signed(value: u32, bits: u32) -> i64 {
    let unused = 32 - bits;
    i64::from((value << unused).cast_signed() >> unused)
}

/// Where `b` and `bl` go.
fn branch_target(at: Svma, word: u32) -> Svma {
    displaced(at, signed(word & 0x3ff_ffff, 26) * 4)
}

fn adr_offset(word: u32) -> i64 {
    signed((word >> 5 & 0x7_ffff) << 2 | (word >> 29 & 3), 21)
}

fn page(at: Svma, word: u32) -> Svma {
    displaced(Svma::new(at.get() & !0xfff), adr_offset(word) * 0x1000)
}

fn literal_target(at: Svma, word: u32) -> Svma {
    displaced(at, signed(word >> 5 & 0x7_ffff, 19) * 4)
}

/// What the second instruction of a pair adds to the page.
fn page_offset(word: u32) -> Option<i64> {
    let immediate = i64::from(word >> 10 & 0xfff);
    if is_add_immediate(word) {
        return (word >> 22 & 1 == 0).then_some(immediate);
    }
    if !is_load_store(word) {
        return None;
    }
    let is_vector = word >> 26 & 1 == 1;
    let scale = match word >> 30 {
        // 128 bits.
        0 if is_vector && word >> 23 & 1 == 1 => 4,
        scale => scale,
    };
    Some(immediate << scale)
}

fn at(start: Svma, offset: usize) -> Svma {
    displaced(start, offset as i64)
}

pub(super) fn resolve(
    form: Form,
    (start, code): (Svma, &[u8]),
    offset: usize,
    page_at: usize,
    bias: i64,
) -> Option<Resolved> {
    let second = word(code, offset)?;
    let place = at(start, offset);
    if form == Form::Branch {
        return is_branch(second).then(|| Resolved::Address(displaced(branch_target(place, second), -bias)));
    }
    let first = word(code, page_at)?;
    let address = if is_adr(second) {
        displaced(adr_target(place, second), -bias)
    } else if is_literal_load(second) {
        displaced(literal_target(place, second), -bias)
    } else if second == NOP && is_adr(first) {
        // LLD leaves the address to the first of the two.
        displaced(adr_target(at(start, page_at), first), -bias)
    } else if is_adrp(first) {
        displaced(page(at(start, page_at), first), page_offset(second)?.wrapping_sub(bias))
    } else {
        return None;
    };
    let is_load = is_load_store(second) || is_literal_load(second);
    match form {
        Form::SlotPair if is_load => Some(Resolved::Slot(address)),
        Form::Pair | Form::SlotPair => Some(Resolved::Address(address)),
        _ => None,
    }
}

fn adr_target(place: Svma, word: u32) -> Svma {
    displaced(place, adr_offset(word))
}

/// Where a branch inside of a function goes: `b`, `b.cond`, `cbz`, `tbz` and their likes.
fn jump_target(place: Svma, word: u32) -> Option<Svma> {
    let by = if word & 0xfc00_0000 == 0x1400_0000 {
        signed(word & 0x3ff_ffff, 26)
    } else if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 {
        signed(word >> 5 & 0x7_ffff, 19)
    } else if word & 0x7e00_0000 == 0x3600_0000 {
        signed(word >> 5 & 0x3fff, 14)
    } else {
        return None;
    };
    Some(displaced(place, by * 4))
}

/// `br`, `blr` and `ret`, with and without authentication: 0, 1, 2.
fn register_branch(word: u32) -> Option<u32> {
    (word & 0xfe1f_f000 == 0xd61f_0000).then_some(word >> 21 & 7)
}

/// Whether the next instruction is reached by a jump only: `b`, `br`, `ret`.
fn is_end_of_flow(word: u32) -> bool {
    word & 0xfc00_0000 == 0x1400_0000 || matches!(register_branch(word), Some(0 | 2))
}

/// Whether the register in the lowest bits is written: loads, and arithmetic.
fn is_written(word: u32) -> bool {
    let is_prefetch = word >> 22 == 0x3e6;
    let is_load = is_load_store(word) && word >> 22 & 3 != 0 && word >> 26 & 1 == 0 && !is_prefetch;
    // Conditional comparisons and those that only set flags have other things there.
    let is_flags = word >> 21 & 0xff == 0xd2 || word >> 21 & 0xff == 0xd0 && word >> 10 & 0x1f != 0;
    is_load || word >> 26 & 7 == 4 || word >> 25 & 7 == 5 && !is_flags
}

pub(super) fn references((start, code): (Svma, &[u8]), found: &mut dyn FnMut(Svma)) {
    let (words, _) = code.as_chunks::<4>();
    let words = || words.iter().map(|bytes| u32::from_le_bytes(*bytes)).enumerate();
    let mut labels: Vec<Svma> =
        words().filter_map(|(index, word)| jump_target(at(start, index * 4), word)).collect();
    labels.sort_unstable();
    // Where a table of addresses leads is not read: then no register counts as written.
    let has_table = words().any(|(_, word)| register_branch(word) == Some(0));
    // Pages by register, and whether it was written since: another way to a label may still have the page.
    let mut pages: [Option<(Svma, bool)>; 32] = [None; 32];
    let mut is_label = true;
    for (index, word) in words() {
        let place = at(start, index * 4);
        if is_label || labels.binary_search(&place).is_ok() {
            pages.iter_mut().flatten().for_each(|(_, is_gone)| *is_gone = false);
        }
        is_label = is_end_of_flow(word);
        let register = |shift: u32| usize::try_from(word >> shift & 31).unwrap_or(0);
        if is_branch(word) {
            found(branch_target(place, word));
        } else if is_adr(word) {
            found(adr_target(place, word));
        } else if is_literal_load(word) {
            found(literal_target(place, word));
        } else if (is_add_immediate(word) || is_load_store(word))
            && let Some(Some((page, false))) = pages.get(register(5))
            && let Some(offset) = page_offset(word)
        {
            found(displaced(*page, offset));
        }
        let Some(slot) = pages.get_mut(register(0)) else { continue };
        if is_adrp(word) {
            *slot = Some((page(place, word), false));
        } else if !has_table
            && is_written(word)
            && let Some((_, is_gone)) = slot
        {
            *is_gone = true;
        }
    }
}

fn is_call(word: u32) -> bool {
    word & 0xfc00_0000 == 0x9400_0000
}

/// `blr`, and its forms that authenticate the address.
fn is_register_call(word: u32) -> bool {
    word & 0xffff_fc1f == 0xd63f_0000 || word & 0xfeff_f800 == 0xd63f_0800
}

pub(super) fn calls((start, code): (Svma, &[u8]), found: &mut dyn FnMut(usize, Option<Svma>)) {
    let (words, _) = code.as_chunks::<4>();
    for (index, bytes) in words.iter().enumerate() {
        let word = u32::from_le_bytes(*bytes);
        if is_call(word) {
            found(index * 4 + 4, Some(branch_target(at(start, index * 4), word)));
        } else if is_register_call(word) {
            found(index * 4 + 4, None);
        }
    }
}

/// `adrp`, then a load or an addition with a load; then a jump, with or without authentication.
pub(super) fn stub_slot((start, code): (Svma, &[u8])) -> Option<Svma> {
    let is_adrp_at = |index: &usize| word(code, index * 4).is_some_and(is_adrp);
    let first = (0..3usize).find(is_adrp_at)?;
    let page = page(at(start, first * 4), word(code, first * 4)?);
    let second = word(code, first * 4 + 4)?;
    Some(displaced(page, page_offset(second)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// As gcc writes them, and LLD.
    #[test]
    fn accesses_to_a_threads_variables_compare_as_compilers_write_them() {
        let outline = |words: &[u32]| {
            let mut out = Vec::new();
            let len = canonical(&bytes(words), &mut out);
            (len, out)
        };
        // mrs x2, tpidr_el0 stands between, where compilers like it there.
        let thread = 0xd53b_d042;
        let end = 0xd65f_03c0;
        // adrp x0; ldr x1, [x0]; add x0, x0; blr x1 and movz x0, #1, lsl #16; movk x0, #8; nop; nop.
        let described = [0x9000_0000, 0xf940_0001, 0x9100_0000, 0xd63f_0020, thread, end];
        let numbered = [0xd2a0_0020, 0xf280_0100, NOP, NOP, thread, end];
        assert_eq!(outline(&described), outline(&numbered));
        // adrp x3; mrs; ldr x3, [x3].
        let loaded = [0x9000_0003, thread, 0xf940_0063, end];
        assert_eq!(outline(&loaded), outline(&[0xd2a0_0023, thread, 0xf280_0103, end]));
        // Numbers of the code's own: mov x0, #8; movk x0, #1, lsl #16; a call by another register.
        let own = |low: u32| [0xd280_0000 | low << 5, 0xf2a0_0020, end];
        assert_ne!(outline(&own(8)), outline(&own(9)));
        assert_ne!(outline(&[0xd63f_0020, end]), outline(&[0xd63f_0040, end]));
    }

    #[test]
    fn a_pair_resolves_before_and_after_relaxation() {
        let start = Svma::new(0x1_0000_4000);
        // adrp x0, +1 page; add x0, x0, #0x123.
        let pair = bytes(&[0xb000_0000, 0x9104_8c00]);
        let expected = Some(Resolved::Address(Svma::new(0x1_0000_5123)));
        assert_eq!(resolve(Form::Pair, (start, &pair), 4, 0, 0), expected);
        // nop; adr x0, +0x111f.
        let relaxed = bytes(&[NOP, 0x7000_88e0]);
        assert_eq!(
            resolve(Form::Pair, (start, &relaxed), 4, 0, 0),
            Some(Resolved::Address(Svma::new(0x1_0000_4004 + 0x111f)))
        );
        // adr x0, +0x111f; nop.
        let relaxed = bytes(&[0x7000_88e0, NOP]);
        assert_eq!(
            resolve(Form::Pair, (start, &relaxed), 4, 0, 0),
            Some(Resolved::Address(Svma::new(0x1_0000_4000 + 0x111f)))
        );
        // adrp x0, +1 page; ldr x0, [x0, #0x18]: the slot.
        let slot = bytes(&[0xb000_0000, 0xf940_0c00]);
        assert_eq!(
            resolve(Form::SlotPair, (start, &slot), 4, 0, 0),
            Some(Resolved::Slot(Svma::new(0x1_0000_5018)))
        );
    }

    #[test]
    fn a_page_is_gone_once_its_register_is_written_but_not_on_other_ways() {
        let start = Svma::new(0x1_0000_4000);
        let mentioned = |words: &[u32]| {
            let mut found = Vec::new();
            references((start, &bytes(words)), &mut |address| found.push(address.get()));
            found
        };
        // adrp x8, +1 page; ldr x8, [x8, #0x10]; ldr x9, [x8, #0x20]: the second load is from what the first one loaded.
        let (adrp, load, other) = (0xb000_0008, 0xf940_0908, 0xf940_1109);
        assert_eq!(mentioned(&[adrp, load, other]), [0x1_0000_5010]);
        // adrp; cbz x1, to the last; ldr; ret; ldr: on one way the register still has the page.
        assert_eq!(mentioned(&[adrp, 0xb400_0061, load, 0xd65f_03c0, other]), [0x1_0000_5010, 0x1_0000_5020]);
        // ccmp x1, x2, #8, eq, and a prefetch: neither writes register 8. A jump by a table may lead anywhere.
        assert_eq!(mentioned(&[adrp, 0xfa42_0028, other]), [0x1_0000_5020]);
        assert_eq!(mentioned(&[adrp, 0xf980_0028, other]), [0x1_0000_5020]);
        assert_eq!(mentioned(&[adrp, load, other, 0xd61f_0140]), [0x1_0000_5010, 0x1_0000_5020]);
        // What is stored changes no register.
        assert_eq!(mentioned(&[adrp, 0xf900_0908, other]), [0x1_0000_5010, 0x1_0000_5020]);
    }

    #[test]
    fn branches_go_both_ways_and_padding_does_not_count() {
        let start = Svma::new(0x4000);
        let code = bytes(&[0x9400_0002, 0x97ff_ffff, 0xd65f_03c0, NOP, 0]);
        let mut found = Vec::new();
        references((start, &code), &mut |address| found.push(address.get()));
        assert_eq!(found, [0x4008, 0x4000]);
        assert_eq!(canonical(&code, &mut Vec::new()), 12);
    }
}
