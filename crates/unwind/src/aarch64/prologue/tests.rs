use super::*;
use crate::row::{Cfa, Rule};
use crate::sections::Section;
use alloc::vec::Vec;
use backtrail_core::Register;

const TEXT: u64 = 0x4000;
const PACIBSP: u32 = 0xd503_237f;
const STP_X20_X19_PRE_32: u32 = 0xa9be_4ff4;
const STP_FP_LR_16: u32 = 0xa901_7bfd;
const ADD_FP_SP_16: u32 = 0x9100_43fd;
const SUB_SP_32: u32 = 0xd100_83ff;
const ADD_SP_32: u32 = 0x9100_83ff;
const LDP_FP_LR_16: u32 = 0xa941_7bfd;
const LDP_X20_X19_POST_32: u32 = 0xa8c2_4ff4;
const MOV_X0_X1: u32 = 0xaa01_03e0;
const BL: u32 = 0x9400_0010;
const RET: u32 = 0xd65f_03c0;
const RETAB: u32 = 0xd65f_0fff;
const BRK: u32 = 0xd420_0020;

/// A function as clang makes it: two pairs, 32 bytes of locals.
const FUNCTION: [u32; 12] = [
    PACIBSP,
    STP_X20_X19_PRE_32,
    STP_FP_LR_16,
    ADD_FP_SP_16,
    SUB_SP_32,
    BL,
    MOV_X0_X1,
    BL,
    ADD_SP_32,
    LDP_FP_LR_16,
    LDP_X20_X19_POST_32,
    RETAB,
];

fn analyse_at(words: &[u32], index: u64, function: Option<u64>) -> Option<Row> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    analyse(&Code {
        text: Section::new(Svma::new(TEXT), &bytes),
        at: Svma::new(TEXT + 4 * index),
        function: function.map(|index| Svma::new(TEXT + 4 * index)),
        thumb: false,
        is_described: false,
    })
}

/// `(CFA's register, offset, return address)`.
fn at(words: &[u32], index: u64, function: Option<u64>) -> Option<(u8, i32, Rule)> {
    let row = analyse_at(words, index, function)?;
    let Cfa::RegisterOffset(register, offset) = row.cfa else { panic!("{row:?}") };
    Some((register.0, offset, row.return_address))
}

const LINK: Rule = Rule::Register(Register(30));
const SAVED: Rule = Rule::Offset(-8);

#[test]
fn every_instruction_of_a_function_has_its_caller() {
    let in_prologue = [(31, 0, LINK), (31, 0, LINK), (31, 32, LINK), (31, 32, SAVED)];
    for (index, expected) in (0..).zip(in_prologue) {
        assert_eq!(at(&FUNCTION, index, Some(0)), Some(expected), "{index}");
        // The start is found without being told: a frame is made there.
        assert_eq!(at(&FUNCTION, index, None), Some(expected), "{index}");
    }
    for body in 4..8 {
        assert_eq!(at(&FUNCTION, body, Some(0)), None, "{body}: the table knows");
    }
    let in_epilogue = [(31, 64, SAVED), (31, 32, SAVED), (31, 32, LINK), (31, 0, LINK)];
    for (index, expected) in (8..).zip(in_epilogue) {
        assert_eq!(at(&FUNCTION, index, Some(0)), Some(expected), "{index}");
    }
}

#[test]
fn callee_saved_registers_are_known_on_the_way() {
    let row = analyse_at(&FUNCTION, 3, Some(0)).unwrap();
    let saved: Vec<_> = row.rules().map(|(register, rule)| (register.0, rule)).collect();
    let expected = [(19, -24), (20, -32), (29, -16), (30, -8)];
    assert_eq!(saved, expected.map(|(register, offset)| (register, Rule::Offset(offset))));
    let row = analyse_at(&FUNCTION, 10, Some(0)).unwrap();
    assert_eq!(row.rule(Register(20)), Rule::Offset(-32));
    assert_eq!(row.rule(Register(29)), Rule::Same, "loaded already");
}

#[test]
fn leaf_functions_need_no_table() {
    let leaf = [BRK, MOV_X0_X1, MOV_X0_X1, RET];
    assert_eq!(at(&leaf, 1, None), Some((31, 0, LINK)));
    // A red herring: the link register is stored and loaded again.
    let spills = [0xf900_07fe, MOV_X0_X1, 0xf940_07fe, RET];
    assert_eq!(at(&spills, 0, None), Some((31, 0, LINK)));
    let returns_elsewhere = [MOV_X0_X1, 0xd65f_01e0];
    assert_eq!(at(&returns_elsewhere, 0, None), None, "ret x15");
}

#[test]
fn a_jump_after_the_epilogue_leaves_the_function() {
    // ldp x29, x30, [sp], #16; b <far, to a call>
    let tail = [0xa8c1_7bfd, 0x1400_0002, BRK, MOV_X0_X1, BL];
    assert_eq!(at(&tail, 0, None), Some((31, 16, SAVED)));
    assert_eq!(at(&tail, 1, None), None, "nothing tells this jump from one within the function");
    // An epilogue that several functions share: b to `ldp x29, x30, [sp], #16; ret`.
    let shared = [MOV_X0_X1, 0x1400_0002, BRK, 0xa8c1_7bfd, RET];
    assert_eq!(at(&shared, 0, None), Some((31, 16, SAVED)));
}

#[test]
fn stubs_have_not_touched_the_stack() {
    // adrp x16; ldr x16, [x16]; br x16
    let stub = [BRK, 0x9000_0010, 0xf940_0210, 0xd61f_0200];
    for index in 1..4 {
        assert_eq!(at(&stub, index, None), Some((31, 0, LINK)), "{index}");
    }
    // __stub_helper: ldr w16, +8; b header; header: adr x17; nop; stp x16, x17, [sp, #-16]!; nop; ldr x16; br x16
    let helper = [
        0x1800_0050,
        0x1400_0002,
        BRK,
        0x1000_0011,
        0xd503_201f,
        0xa9bf_47f0,
        0xd503_201f,
        0x5800_0010,
        0xd61f_0200,
    ];
    for (index, pushed) in [(0, 0), (1, 0), (3, 0), (5, 0), (6, 16), (7, 16), (8, 16)] {
        assert_eq!(at(&helper, index, None), Some((31, pushed, LINK)), "{index}");
    }
    // A switch: the address is computed by more than a stub has.
    let switch = [MOV_X0_X1, 0x8b10_0210, 0xd61f_0200];
    assert_eq!(at(&switch, 0, None), None);
}

#[test]
fn frame_pointers_of_swifts_asynchronous_functions_are_marked() {
    // orr x29, x29, #1 << 60; sub sp, sp, #32; stp x29, x30, [sp, #16]; …; ldp x29, x30, [sp, #16]; and x29; add; ret
    let function =
        [0xb244_03bd, SUB_SP_32, STP_FP_LR_16, ADD_FP_SP_16, BL, LDP_FP_LR_16, 0x9243_fbbd, ADD_SP_32, RET];
    assert_eq!(at(&function, 1, Some(0)), Some((31, 0, LINK)));
    assert_eq!(at(&function, 3, Some(0)), Some((31, 32, SAVED)));
    assert_eq!(at(&function, 6, Some(0)), Some((31, 32, LINK)));
}

#[test]
fn dynamic_frames_end_by_the_frame_pointer() {
    // sub sp, x29, #16; ldp x29, x30, [sp, #16]; ldp x20, x19, [sp], #32; ret
    let epilogue = [0xd100_43bf, LDP_FP_LR_16, LDP_X20_X19_POST_32, RET];
    assert_eq!(at(&epilogue, 0, None), Some((29, 16, SAVED)));
}

#[test]
fn calls_are_told_from_other_branches() {
    use super::super::call::follows_call;
    for call in [BL, 0xd63f_0100, 0xd63f_091f, 0xd73f_0a11] {
        assert!(follows_call(&call.to_le_bytes()), "{call:#x}");
    }
    for other in [RET, 0x1400_0001, 0xd61f_0200, MOV_X0_X1, 0x5400_0041, BRK, 0] {
        assert!(!follows_call(&other.to_le_bytes()), "{other:#x}");
    }
    assert!(!follows_call(&[0, 0, 0x94]));
}
