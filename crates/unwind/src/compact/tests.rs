use super::*;
use crate::row::{Cfa, Rule};
use alloc::string::ToString;
use backtrail_core::{Arch, Register};

const BASE: u64 = 0x1_0000_0000;
const INFO: u64 = 0x1_0000_9000;

/// A section of two pages, a compressed one and a regular one, over functions at 0x1000 to 0x3000.
fn info(encodings: [u32; 5]) -> Vec<u8> {
    let [common, own, third, fourth, fifth] = encodings;
    let header = [1, 28, 1, 32, 1, 36, 3];
    let common = [common];
    let personality = [0x8000];
    let index = [[0x1000, 88, 72], [0x2000, 120, 80], [0x3000, 0, 88]];
    let lsdas = [[0x1010, 0x7000], [0x2010, 0x7040]];
    let mut words: Vec<u32> = header.into_iter().chain(common).chain(personality).collect();
    words.extend(index.into_iter().flatten());
    words.extend(lsdas.into_iter().flatten());
    assert_eq!(words.len() * 4, 88);
    // Compressed: entries at 12, three of them; encodings at 24, two.
    words.extend([3, 3 << 16 | 12, 2 << 16 | 24, 0, 0x0100_0010, 0x0200_0800, own, third]);
    assert_eq!(words.len() * 4, 120);
    // Regular: entries at 8, two of them.
    words.extend([2, 2 << 16 | 8, 0x2000, fourth, 0x2010, fifth]);
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn sections<'d>(arch: Arch, info: &'d [u8], text: &'d [u8]) -> Sections<'d> {
    Sections {
        arch: Some(arch),
        is_mach_o: true,
        image_base: Svma::new(BASE),
        unwind_info: Some(Section::new(Svma::new(INFO), info)),
        text: alloc::vec![Section::new(Svma::new(BASE + 0x1000), text)],
        ..Sections::default()
    }
}

fn svma(offset: u64) -> Svma {
    Svma::new(BASE + offset)
}

const PLAIN: [u32; 5] = [0x0400_0000, 0x5400_0001, 0x0200_2000, 0x0300_0123, 0x4400_0000];

#[test]
fn each_address_has_the_entry_that_starts_before_it() {
    let info = info(PLAIN);
    let compact = Compact::new(&sections(Arch::Arm64, &info, &[])).unwrap();
    let starts: Vec<_> = compact.starts().map(|start| start.get() - BASE).collect();
    assert_eq!(starts, [0x1000, 0x1010, 0x1800, 0x2000, 0x2010]);
    let raw = |offset| compact.entry_at(svma(offset)).unwrap().map(|entry| entry.encoding.raw());
    for (offset, expected) in [
        (0xfff, None),
        (0x1000, Some(PLAIN[0])),
        (0x100f, Some(PLAIN[0])),
        (0x1010, Some(PLAIN[1])),
        (0x17ff, Some(PLAIN[1])),
        (0x1fff, Some(PLAIN[2])),
        (0x2000, Some(PLAIN[3])),
        (0x2fff, Some(PLAIN[4])),
        (0x3000, None),
    ] {
        assert_eq!(raw(offset), expected, "{offset:#x}");
    }
    assert_eq!(compact.entry_at(Svma::new(0)), Ok(None));
    assert_eq!(compact.entry_at(Svma::new(u64::MAX)), Ok(None));
    assert_eq!(compact.find(svma(0x2004)), Ok(CompactFound::EhFrame(0x123)));
}

#[test]
fn languages_keep_their_data() {
    let info = info(PLAIN);
    let compact = Compact::new(&sections(Arch::Arm64, &info, &[])).unwrap();
    let data: Vec<_> = compact.entries().map(|entry| (entry.personality, entry.lsda)).collect();
    assert_eq!(data[0], (None, None));
    assert_eq!(data[1], (Some(svma(0x8000)), Some(svma(0x7000))));
    assert_eq!(data[4], (None, Some(svma(0x7040))));
}

/// CFA, return address, saved registers with their offsets.
type Rules = (Cfa, Rule, Vec<(u8, i32)>);

/// The rules of an encoding.
fn rules(arch: Arch, raw: u32, text: &[u8]) -> Result<Rules, Miss> {
    let info = info([raw, 0, 0, 0, 0]);
    let compact = Compact::new(&sections(arch, &info, text)).unwrap();
    match compact.find(svma(0x1000))? {
        CompactFound::Row(found) => {
            let saved = found.row.rules().map(|(register, rule)| match rule {
                Rule::Offset(offset) => (register.0, offset),
                other => panic!("{other:?}"),
            });
            Ok((found.row.cfa, found.row.return_address, saved.collect()))
        }
        CompactFound::EhFrame(offset) => panic!("{offset}"),
    }
}

fn by(register: u8, offset: i32) -> Cfa {
    Cfa::RegisterOffset(Register(register), offset)
}

#[test]
fn arm64_frames() {
    let frame = rules(Arch::Arm64, 0x0400_0105, &[]).unwrap();
    let saved = [(19, -24), (20, -32), (23, -40), (24, -48), (29, -16), (30, -8)];
    assert_eq!(frame, (by(29, 16), Rule::Offset(-8), saved.to_vec()));
    let leaf = rules(Arch::Arm64, 0x0200_2003, &[]).unwrap();
    let link = Rule::Register(Register(30));
    assert_eq!(leaf, (by(31, 32), link, [(19, -8), (20, -16), (21, -24), (22, -32)].to_vec()));
}

#[test]
fn x86_64_frames() {
    // rbx in the first place, 16 bytes below rbp, then r14.
    let frame = rules(Arch::X86_64, 0x0102_0021, &[]).unwrap();
    assert_eq!(frame, (by(6, 16), Rule::Offset(-8), [(3, -32), (6, -16), (14, -24)].to_vec()));
    // 72 bytes; r15, r14, rbx pushed: memory has rbx, r14, r15 upwards.
    let stack = rules(Arch::X86_64, 0x0209_0c00 | permutation(&[1, 4, 5]), &[]).unwrap();
    assert_eq!(stack, (by(7, 72), Rule::Offset(-8), [(3, -32), (14, -24), (15, -16)].to_vec()));
    // The immediate of a `sub rsp` 3 bytes into the function, and one word more.
    let text = [0x48, 0x81, 0xec, 0x00, 0x01, 0x00, 0x00];
    let indirect = rules(Arch::X86_64, 0x0303_2000, &text).unwrap();
    assert_eq!(indirect.0, by(7, 0x108));
    assert!(matches!(rules(Arch::X86_64, 0x0309_2000, &text), Err(Miss::Malformed(_))), "no such code");
    assert!(
        matches!(rules(Arch::X86_64, 0x0201_0400, &[]), Err(Miss::Malformed(_))),
        "no room for a register"
    );
}

#[test]
fn i386_frames() {
    let frame = rules(Arch::X86, 0x0101_0004, &[]).unwrap();
    assert_eq!(frame, (by(5, 8), Rule::Offset(-4), [(5, -8), (7, -12)].to_vec()));
    let stack = rules(Arch::X86, 0x0203_0400 | permutation(&[5]), &[]).unwrap();
    assert_eq!(stack, (by(4, 12), Rule::Offset(-4), [(6, -8)].to_vec()));
}

#[test]
fn watches_frames() {
    // r4, r5, r7, lr pushed, then r8; four bytes of arguments above.
    let frame = rules(Arch::Armv7k, 0x0140_000b, &[]).unwrap();
    let saved = [(4, -20), (5, -16), (7, -12), (8, -24), (14, -8)];
    assert_eq!(frame, (by(7, 12), Rule::Offset(-8), saved.to_vec()));
}

/// The number of a permutation as a compiler computes it (Lehmer code among six registers).
fn permutation(registers: &[u32]) -> u32 {
    let count = u32::try_from(registers.len()).unwrap();
    let digits = count.min(5);
    let mut number = 0;
    for (position, register) in (0..digits).zip(registers) {
        let smaller = registers.iter().take(position as usize).filter(|before| *before < register).count();
        let digit = register - 1 - u32::try_from(smaller).unwrap();
        let radix: u32 = (position + 1..digits).map(|later| 6 - later).product();
        number += digit * radix;
    }
    number
}

#[test]
fn every_permutation_reads_back() {
    fn all(prefix: &mut Vec<u32>, count: usize, visit: &mut dyn FnMut(&[u32])) {
        if prefix.len() == count {
            return visit(prefix);
        }
        for register in 1..=6 {
            if !prefix.contains(&register) {
                prefix.push(register);
                all(prefix, count, visit);
                prefix.pop();
            }
        }
    }
    const NUMBERS: [u8; 6] = [3, 12, 13, 14, 15, 6];
    for count in 0..=6_u32 {
        all(&mut Vec::new(), count as usize, &mut |registers| {
            let raw = 0x0220_0000 | count << 10 | permutation(registers);
            let Mode::Stack { saved, .. } = Encoding::new(raw, Family::X86_64).mode() else { panic!() };
            let read: Vec<_> = saved.into_iter().flatten().map(|register| register.0).collect();
            let expected: Vec<_> = registers.iter().map(|register| NUMBERS[*register as usize - 1]).collect();
            assert_eq!(read, expected, "{raw:#x}");
        });
    }
}

#[test]
fn encodings_read_as_words() {
    for (arch, raw, text) in [
        (Arch::Arm64, 0x0400_0105, "frame pointer x29; saved x19 x20, x23 x24, d8 d9"),
        (Arch::Arm64, 0x0200_2000, "frameless, 32 bytes, return address in x30"),
        (Arch::Arm64, 0x0300_0040, "DWARF at 0x40 of __eh_frame"),
        (Arch::X86_64, 0x0400_0000, "DWARF, to be searched for in __eh_frame"),
        (Arch::X86_64, 0x0102_0021, "frame pointer rbp; saved rbx, r14"),
        (Arch::X86_64, 0x0209_0400, "stack of 72 bytes; saved rbx"),
        (Arch::X86_64, 0x0303_2000, "stack of 8 bytes and those that the instruction at +0x3 subtracts"),
        (Arch::Armv7k, 0x0140_0009, "frame pointer r7, 4 bytes above; saved r4, r8"),
        (Arch::X86, 0, "no unwind information"),
        (Arch::X86_64, 0x0900_0000, "unknown"),
        (Arch::X86_64, 0x0100_0007, "unknown"),
    ] {
        assert_eq!(Encoding::new(raw, arch.family()).to_string(), text);
    }
}

#[test]
fn broken_sections_are_errors_or_nothing() {
    let whole = info(PLAIN);
    for length in 0..whole.len() {
        let Some(compact) = Compact::new(&sections(Arch::Arm64, &whole[..length], &[])) else { continue };
        for offset in (0..0x4000).step_by(8) {
            let _ = compact.find(svma(offset));
        }
        assert!(compact.entries().count() <= 5);
    }
    let mut other = info(PLAIN);
    other[0] = 2;
    assert!(Compact::new(&sections(Arch::Arm64, &other, &[])).is_none(), "version 2");
    let mut page = info(PLAIN);
    page[88] = 9;
    let compact = Compact::new(&sections(Arch::Arm64, &page, &[])).unwrap();
    let Err(Miss::Malformed(malformed)) = compact.find(svma(0x1000)) else { panic!() };
    assert_eq!(malformed.at, Svma::new(INFO + 88));
    assert_eq!(compact.entries().count(), 2, "the other page is read");
}
