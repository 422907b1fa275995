use super::*;
use crate::row::{Cfa, Rule};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use backtrail_core::{Arch, Avma, MemorySlice, Register, Registers};

const INDEX: u64 = 0x9000;
const TABLE: u64 = 0x8000;

fn word_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The word at `place` that means `target`.
fn to(place: u64, target: u64) -> u32 {
    u32::try_from(target.wrapping_sub(place) & 0x7fff_ffff).unwrap()
}

fn ops(bytes: &[u8]) -> Vec<String> {
    let mut padded = bytes.to_vec();
    while !padded.len().is_multiple_of(4) {
        padded.push(0xb0);
    }
    let words: Vec<u8> = padded.chunks(4).flat_map(|word| word.iter().rev().copied()).collect();
    // The three bytes of the first word add nothing to the stack.
    let code = Code::new(0x00b5_b5b5, 3, &words);
    code.skip(3).map(|op| op.to_string()).take_while(|op| op != "finish").collect()
}

#[test]
fn every_instruction_reads_as_the_abi_says() {
    for (bytes, text) in [
        (&[0x00][..], "vsp = vsp + 4"),
        (&[0x3f], "vsp = vsp + 256"),
        (&[0x40], "vsp = vsp - 4"),
        (&[0x7f], "vsp = vsp - 256"),
        (&[0x80, 0x00], "refuse to unwind"),
        (&[0x80, 0x01], "pop {r4}"),
        (&[0x84, 0x0d], "pop {r4, r6, r7, lr}"),
        (&[0x8f, 0xff], "pop {r4, r5, r6, r7, r8, r9, r10, r11, r12, sp, lr, pc}"),
        (&[0x97], "vsp = r7"),
        (&[0x9d], "spare (0x9d)"),
        (&[0x9f], "spare (0x9f)"),
        (&[0xa0], "pop {r4}"),
        (&[0xa7], "pop {r4, r5, r6, r7, r8, r9, r10, r11}"),
        (&[0xa8], "pop {r4, lr}"),
        (&[0xaf], "pop {r4, r5, r6, r7, r8, r9, r10, r11, lr}"),
        (&[0xb1, 0x00], "spare (0xb1)"),
        (&[0xb1, 0x0f], "pop {r0, r1, r2, r3}"),
        (&[0xb1, 0x10], "spare (0xb1)"),
        (&[0xb2, 0x04], "vsp = vsp + 532"),
        (&[0xb2, 0x81, 0x01], "vsp = vsp + 1032"),
        (&[0xb2, 0xff, 0xff, 0xff, 0xff, 0x7f], "spare (0xb2)"),
        (&[0xb3, 0x83], "pop {d8, d9, d10, d11} fstmfdx"),
        (&[0xb4], "pop {ra_auth_code}"),
        (&[0xb5], "use vsp as modifier of the return address"),
        (&[0xb6], "spare (0xb6)"),
        (&[0xb9], "pop {d8, d9} fstmfdx"),
        (&[0xc1], "pop {wR10, wR11}"),
        (&[0xc6, 0x01], "pop {wR0, wR1}"),
        (&[0xc7, 0x05], "pop {wCGR0, wCGR2}"),
        (&[0xc7, 0x10], "spare (0xc7)"),
        (&[0xc8, 0x01], "pop {d16, d17}"),
        (&[0xc8, 0xf1], "spare (0xf1)"),
        (&[0xc9, 0x80], "pop {d8}"),
        (&[0xca], "spare (0xca)"),
        (&[0xd7], "pop {d8, d9, d10, d11, d12, d13, d14, d15}"),
        (&[0xd8], "spare (0xd8)"),
        (&[0xff], "spare (0xff)"),
    ] {
        assert_eq!(ops(bytes).first().map(String::as_str), Some(text), "{bytes:02x?}");
    }
    assert_eq!(Code::new(0x84, 1, &[]).next(), Some(Op::Truncated));
    assert_eq!(Code::new(0xb2, 1, &[]).next(), Some(Op::Truncated));
}

/// An index of five functions, one in each form.
fn sections<'d>(index: &'d [u8], table: &'d [u8]) -> Sections<'d> {
    Sections {
        arch: Some(Arch::Armv7),
        exidx: Some(Section::new(Svma::new(INDEX), index)),
        extab: Some(Section::new(Svma::new(TABLE), table)),
        text: alloc::vec![Section::new(Svma::new(0x1000), &[0; 0x100])],
        ..Sections::default()
    }
}

fn sample() -> (Vec<u8>, Vec<u8>) {
    let table = word_bytes(&[
        // __aeabi_unwind_cpp_pr1 with one more word: vsp = r7; vsp -= 8; pop {r4-r7, lr}; finish
        0x8101_9741,
        0x8408_b0b0,
        0x0000_0000,
        // a personality routine, at 0x1080 (Thumb), one more word
        to(TABLE + 12, 0x1081),
        0x01a8_b0b0,
        0xb0b0_b0b0,
        0xdead_beef,
    ]);
    let index = word_bytes(&[
        to(INDEX, 0x1000),
        0x80a8_b0b0,
        to(INDEX + 8, 0x1011),
        to(INDEX + 12, TABLE),
        to(INDEX + 16, 0x1020),
        to(INDEX + 20, TABLE + 12),
        to(INDEX + 24, 0x1040),
        1,
        to(INDEX + 32, 0x1060),
        0x80b0_b0b0,
    ]);
    (index, table)
}

#[test]
fn each_function_has_its_form() {
    let (index, table) = sample();
    let exidx = Exidx::new(&sections(&index, &table)).unwrap();
    let models: Vec<_> = exidx
        .entries()
        .map(|entry| match entry.content().unwrap() {
            Content::CannotUnwind => None,
            Content::Unwind { model, data, .. } => Some((model, data.map(Svma::get))),
        })
        .collect();
    let generic = Model::Generic(Svma::new(0x1080));
    assert_eq!(
        models,
        [
            Some((Model::Inline, None)),
            Some((Model::Compact(1), Some(TABLE + 8))),
            Some((generic, Some(TABLE + 24))),
            None,
            Some((Model::Inline, None)),
        ]
    );
    let starts: Vec<_> = exidx.starts().map(Svma::get).collect();
    assert_eq!(starts, [0x1000, 0x1010, 0x1020, 0x1040, 0x1060]);
}

#[test]
fn an_address_means_the_function_that_starts_before_it() {
    let (index, table) = sample();
    let exidx = Exidx::new(&sections(&index, &table)).unwrap();
    let start = |at: u64| exidx.entry_at(Svma::new(at)).map(|entry| entry.range.start().get());
    assert_eq!(start(0xfff), None);
    assert_eq!(start(0x1000), Some(0x1000));
    assert_eq!(start(0x100f), Some(0x1000));
    assert_eq!(start(0x1010), Some(0x1010));
    assert_eq!(start(0x10ff), Some(0x1060));
    assert_eq!(start(0x1100), None, "the code ends");
    assert_eq!(exidx.find(Svma::new(0x1044)), Err(Miss::CannotUnwind));
    assert_eq!(exidx.find(Svma::new(0x1100)), Err(Miss::NotCovered));
}

#[test]
fn rows_say_where_registers_are() {
    let (index, table) = sample();
    let exidx = Exidx::new(&sections(&index, &table)).unwrap();
    let row = exidx.find(Svma::new(0x1004)).unwrap().row;
    assert_eq!(row.cfa, Cfa::RegisterOffset(Register(13), 8));
    assert_eq!(row.return_address, Rule::Offset(-4));
    assert_eq!(row.rule(Register(4)), Rule::Offset(-8));
    let leaf = exidx.find(Svma::new(0x1064)).unwrap().row;
    assert_eq!(
        (leaf.cfa, leaf.return_address),
        (Cfa::RegisterOffset(Register(13), 0), Rule::Register(Register(14)))
    );
    assert_eq!(leaf.rules().count(), 0);
}

fn code(bytes: &[u8; 3]) -> Code<'static> {
    Code::new(u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]), 3, &[])
}

fn frame(sp: u64, r7: u64) -> Registers {
    let mut registers = Registers::new(Family::Arm);
    for (register, value) in [(13, sp), (7, r7), (14, 0x2001), (15, 0x1004), (0, 5), (12, 6)] {
        registers.set(Register(register), value);
    }
    registers
}

#[test]
fn executing_gives_the_caller() {
    let stack = word_bytes(&[0x44, 0x55, 0x66, 0x77, 0x3001, 0x99]);
    let memory = MemorySlice::new(Avma::new(0x7000), &stack);
    // vsp = r7; pop {r4, lr}: r7 points to the pair at 0x700c.
    let done = execute(code(&[0x97, 0xa8, 0xb0]), &frame(0x7000, 0x700c), &memory).unwrap();
    assert_eq!(done.cfa, Avma::new(0x7014));
    assert!(!done.return_address_in_link_register);
    assert_eq!(done.registers.pc(), Some(Avma::new(0x3001)));
    assert_eq!(done.registers.get(Register(4)), Some(0x77));
    assert_eq!(done.registers.sp(), Some(Avma::new(0x7014)));
    assert_eq!(done.registers.get(Register(7)), Some(0x700c), "callee-saved");
    for lost in [0, 12, 14].map(Register) {
        assert_eq!(done.registers.get(lost), None);
    }
    // A leaf.
    let done = execute(code(&[0xb0; 3]), &frame(0x7000, 0), &memory).unwrap();
    assert!(done.return_address_in_link_register);
    assert_eq!((done.cfa, done.registers.pc()), (Avma::new(0x7000), Some(Avma::new(0x2001))));
    // pop {r4, sp, pc} takes the stack pointer from the stack.
    let done = execute(code(&[0x8a, 0x01, 0xb0]), &frame(0x7000, 0), &memory).unwrap();
    assert_eq!((done.cfa, done.registers.pc()), (Avma::new(0x55), Some(Avma::new(0x66))));
    let loaded = row(code(&[0x8a, 0x01, 0xb0])).unwrap();
    assert_eq!((loaded.rule(SP), loaded.return_address), (Rule::Offset(-8), Rule::Offset(-4)));
    assert!(!loaded.is_signal_frame);
    assert_eq!(row(code(&[0x8a, 0x01, 0x00])), Err(Stopped::UnknownRegister(SP)), "it goes on from there");
}

#[test]
fn glibc_restores_a_whole_context_after_a_signal() {
    // vsp += 32; pop {r0-r3}; pop {r4-r12, sp, lr, pc}, as `__default_sa_restorer` has it.
    let words = word_bytes(&[0x0f8f_ffb0]);
    let restorer = row(Code::new(0x07b1, 2, &words)).unwrap();
    assert!(restorer.is_signal_frame);
    assert_eq!(restorer.cfa, Cfa::RegisterOffset(SP, 96));
    assert_eq!(restorer.rule(SP), Rule::Offset(-12));
    assert_eq!(restorer.rule(Register(14)), Rule::Offset(-8));
    assert_eq!(restorer.return_address, Rule::Offset(-4));
    assert_eq!(restorer.rule(Register(0)), Rule::Offset(-64));
}

const SP: Register = Register(13);

#[test]
fn executing_stops_where_the_way_ends() {
    let stack = word_bytes(&[1, 2]);
    let memory = MemorySlice::new(Avma::new(0x7000), &stack);
    let run =
        |bytes: [u8; 3], sp| execute(code(&bytes), &frame(sp, 0x10), &memory).map(|done| done.cfa.get());
    assert_eq!(run([0x80, 0, 0xb0], 0x7000), Err(Stopped::Refused));
    assert_eq!(run([0xff, 0, 0xb0], 0x7000), Err(Stopped::Spare(0xff)));
    assert_eq!(run([0x96, 0, 0xb0], 0x7000), Err(Stopped::UnknownRegister(Register(6))));
    assert_eq!(run([0x40, 0, 0xb0], 0), Err(Stopped::OutOfRange));
    assert_eq!(run([0x00, 0xb0, 0xb0], 0xffff_fffc), Err(Stopped::OutOfRange));
    assert!(matches!(run([0xa8, 0xb0, 0xb0], 0x7004), Err(Stopped::Unreadable(_))));
    assert_eq!(run([0xb3, 0x80, 0xb0], 0x7000), Ok(0x700c), "FSTMFDX leaves a word of format");
    assert_eq!(run([0xd0, 0xb0, 0xb0], 0x7000), Ok(0x7008));
}

#[test]
fn broken_entries_say_what_is_wrong() {
    let (_, table) = sample();
    for (word, at) in [
        (to(INDEX + 4, 0x4000), 0x4000),
        (0x8300_0000, INDEX + 4),
        (0x8101_0000, INDEX + 4),
        (to(INDEX + 4, TABLE + 24), TABLE + 24),
    ] {
        let index = word_bytes(&[to(INDEX, 0x1000), word]);
        let exidx = Exidx::new(&sections(&index, &table)).unwrap();
        let Err(Miss::Malformed(malformed)) = exidx.find(Svma::new(0x1000)) else { panic!("{word:#x}") };
        assert_eq!(malformed.at.get(), at, "{word:#x}");
    }
    let cut = word_bytes(&[0x8105_b0b0, 0]);
    let index = word_bytes(&[to(INDEX, 0x1000), to(INDEX + 4, TABLE)]);
    let exidx = Exidx::new(&sections(&index, &cut)).unwrap();
    assert!(matches!(exidx.find(Svma::new(0x1000)), Err(Miss::Malformed(_))));
}
