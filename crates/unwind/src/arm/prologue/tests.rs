use super::*;
use crate::row::{Cfa, Rule};
use crate::sections::Section;
use alloc::vec::Vec;
use backtrail_core::Register;

const TEXT: u64 = 0x4000;
const LINK: Rule = Rule::Register(Register(14));

fn analyse_at(bytes: &[u8], offset: u64, function: Option<u64>, thumb: bool) -> Option<(u8, i32, Rule)> {
    let code = Code {
        text: Section::new(Svma::new(TEXT), bytes),
        at: Svma::new(TEXT + offset),
        function: function.map(|offset| Svma::new(TEXT + offset)),
        thumb,
        is_described: false,
    };
    let row = analyse(&code, None)?;
    let Cfa::RegisterOffset(register, offset) = row.cfa else { panic!("{row:?}") };
    Some((register.0, offset, row.return_address))
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn halves(halves: &[u16]) -> Vec<u8> {
    halves.iter().flat_map(|half| half.to_le_bytes()).collect()
}

#[test]
fn arm_functions_have_their_caller_at_every_instruction() {
    let code = words(&[
        0xe92d_4810, // push {r4, r11, lr}
        0xe28d_b008, // add r11, sp, #8
        0xe24d_d014, // sub sp, sp, #20
        0xeb00_0010, // bl
        0xe1a0_0004, // mov r0, r4
        0xeb00_0010, // bl
        0xe24b_d008, // sub sp, r11, #8
        0xe8bd_8810, // pop {r4, r11, pc}
    ]);
    let expected = [
        Some((13, 0, LINK)),
        Some((13, 12, Rule::Offset(-4))),
        Some((13, 12, Rule::Offset(-4))),
        Some((13, 32, Rule::Offset(-4))),
        None,
        None,
        Some((11, 4, Rule::Offset(-4))),
        Some((13, 12, Rule::Offset(-4))),
    ];
    for (index, expected) in (0..).zip(expected) {
        assert_eq!(analyse_at(&code, 4 * index, Some(0), false), expected, "{index}");
    }
}

#[test]
fn old_frames_take_the_stack_pointer_from_the_stack() {
    let code = words(&[
        0xe1a0_c00d, // mov ip, sp
        0xe92d_d800, // push {fp, ip, lr, pc}
        0xe24c_b004, // sub fp, ip, #4
        0xeb00_0010, // bl
        0xe24b_d00c, // sub sp, fp, #12
        0xe89d_a800, // ldm sp, {fp, sp, pc}
    ]);
    assert_eq!(analyse_at(&code, 4, Some(0), false), Some((13, 0, LINK)));
    assert_eq!(analyse_at(&code, 8, Some(0), false), Some((13, 16, Rule::Offset(-8))));
    // With the way back at hand, the stack pointer counts from its copy.
    let short = words(&[0xe1a0_c00d, 0xe92d_d800, 0xe24c_b004, 0xe89d_a800]);
    assert_eq!(analyse_at(&short, 4, Some(0), false), Some((12, 0, LINK)));
    // What `ldm` makes of `sp` is only on the stack: no row says it.
    assert_eq!(analyse_at(&code, 20, Some(0), false), None);
}

#[test]
fn thumb_functions_have_their_caller_at_every_instruction() {
    let code = halves(&[
        0xb5b0, //         push {r4, r5, r7, lr}
        0xaf02, //         add r7, sp, #8
        0xed2d, 0x8b04, // vpush {d8, d9}
        0xb086, //         sub sp, #24
        0xf000, 0xf801, // bl
        0xb006, //         add sp, #24
        0xecbd, 0x8b04, // vpop {d8, d9}
        0xbdb0, //         pop {r4, r5, r7, pc}
        0xbf00, //         nop
    ]);
    let saved = |cfa| Some((13, cfa, Rule::Offset(-4)));
    for (offset, expected) in [
        (0, Some((13, 0, LINK))),
        (2, saved(16)),
        (4, saved(16)),
        (8, saved(32)),
        (10, saved(56)),
        (14, saved(56)),
        (16, saved(32)),
        (20, saved(16)),
    ] {
        assert_eq!(analyse_at(&code, offset, Some(0), true), expected, "{offset}");
    }
}

#[test]
fn conditional_returns_fall_through() {
    // cmp r0, #0; it eq; bxeq lr; push {r4, lr}; bl
    let thumb = halves(&[0x2800, 0xbf08, 0x4770, 0xb510, 0xf000, 0xf801]);
    assert_eq!(analyse_at(&thumb, 0, Some(0), true), Some((13, 0, LINK)));
    assert_eq!(analyse_at(&thumb, 8, Some(0), true), Some((13, 8, Rule::Offset(-4))));
    // cmp r0, #0; bxeq lr; push {r4, lr}; bl
    let arm = words(&[0xe350_0000, 0x012f_ff1e, 0xe92d_4010, 0xeb00_0000, 0xe1a0_0000]);
    assert_eq!(analyse_at(&arm, 4, Some(0), false), Some((13, 0, LINK)));
    assert_eq!(analyse_at(&arm, 12, Some(0), false), Some((13, 8, Rule::Offset(-4))));
}

#[test]
fn plt_entries_have_not_touched_the_stack() {
    let plt = words(&[
        0xe52d_e004, // str lr, [sp, #-4]!
        0xe59f_e004, // ldr lr, [pc, #4]
        0xe08f_e00e, // add lr, pc, lr
        0xe5be_f008, // ldr pc, [lr, #8]!
        0x0001_2345, //
        0xe28f_c600, // add ip, pc, #0
        0xe28c_ca01, // add ip, ip, #4096
        0xe5bc_f010, // ldr pc, [ip, #16]!
    ]);
    for offset in [20, 24, 28] {
        assert_eq!(analyse_at(&plt, offset, None, false), Some((13, 0, LINK)), "{offset}");
    }
    assert_eq!(analyse_at(&plt, 0, None, false), Some((13, 0, LINK)));
    for offset in [4, 8, 12] {
        assert_eq!(analyse_at(&plt, offset, None, false), Some((13, 4, Rule::Offset(-4))), "{offset}");
    }
}

#[test]
fn leaf_functions_need_no_table() {
    assert_eq!(analyse_at(&words(&[0xe280_0001, 0xe12f_ff1e]), 0, None, false), Some((13, 0, LINK)));
    assert_eq!(analyse_at(&halves(&[0x3001, 0x4770]), 0, None, true), Some((13, 0, LINK)));
    assert_eq!(analyse_at(&halves(&[0x4770]), 2, None, true), None, "no code");
}

#[test]
fn calls_of_both_sets_are_told() {
    use super::super::call::follows_call;
    let arm = |word: u32| follows_call(&word.to_le_bytes(), false);
    assert!(arm(0xeb00_0010) && arm(0xfa00_0010) && arm(0xe12f_ff33) && arm(0x1b00_0010));
    assert!(!arm(0xea00_0010) && !arm(0xe12f_ff1e) && !arm(0xe1a0_f00e));
    let thumb = |code: &[u16]| follows_call(&halves(code), true);
    assert!(thumb(&[0xf000, 0xf801]) && thumb(&[0xf000, 0xe802]) && thumb(&[0xbf00, 0x4798]));
    assert!(!thumb(&[0xf000, 0xb801]) && !thumb(&[0xbf00, 0x4718]) && !thumb(&[0xf000]));
}

#[test]
fn emptied_code_says_nothing() {
    for fill in [0, 0xff] {
        let code = [fill; 0x80];
        for (offset, thumb) in [(0x40, false), (0x40, true), (0x42, true)] {
            assert_eq!(analyse_at(&code, offset, Some(0), thumb), None, "{fill} {offset} {thumb}");
        }
    }
}

/// gcc at -O2: a switch's cases each undo the frame, prepare an argument and jump to another function.
#[test]
fn frames_undone_before_a_tail_call_are_told_by_the_bodys_row() {
    let code = halves(&[
        0xb508, // push {r3, lr}
        0xbd08, // pop {r3, pc}
        0xe8bd, 0x4008, // ldmia sp!, {r3, lr}
        0x2001, // movs r0, #1
        0xf7ff, 0xbeb9, // b.w
    ]);
    let mut body = Row::new(Cfa::RegisterOffset(Register(13), 8), Rule::Offset(-4));
    body.set(Register(14), Rule::Offset(-4));
    let row = |offset: u64| row_in_thumb(&code, offset, &body);
    let undone = Some((Cfa::RegisterOffset(Register(13), 0), LINK, Rule::Same));
    assert_eq!(row(8), undone);
    assert_eq!(row(10), undone);
}

/// gcc at -O2: only one case of a switch needs a frame, the others jump to another function.
#[test]
fn cases_of_a_switch_before_the_frame_is_made() {
    let code = words(&[
        0xe350_0001, // cmp r0, #1
        0x908f_f100, // addls pc, pc, r0, lsl #2
        0xea00_0001, // b 20
        0xea00_0004, // b 36
        0xea00_0000, // b 24
        0xe12f_ff1e, // bx lr
        0xe92d_4010, // push {r4, lr}, at 24
        0xebff_ff16, // bl
        0xe8bd_8010, // pop {r4, pc}
        0xe3a0_0001, // mov r0, #1, at 36
        0xea00_0100, // b out of the function
    ]);
    are_before_the_frame(&code, false, &[(8, true), (12, true), (36, true), (40, true), (28, false)]);
    // clang's switch.
    let code = words(&[
        0xe350_0001, // cmp r0, #1
        0x812f_ff1e, // bxhi lr
        0xe28f_1004, // add r1, pc, #4
        0xe791_0100, // ldr r0, [r1, r0, lsl #2]
        0xe081_f000, // add pc, r1, r0
        8,
        16,          // distances from themselves
        0xe3a0_0001, // mov r0, #1, at 28
        0xea00_0100, // b out of the function
        0xe92d_4010, // push {r4, lr}, at 36
        0xebff_ff16, // bl
        0xe8bd_8010, // pop {r4, pc}
    ]);
    are_before_the_frame(&code, false, &[(8, true), (28, true), (32, true), (40, false)]);
    let code = halves(&[
        0x2801, //         cmp r0, #1
        0xbf88, //         it hi
        0x4770, //         bxhi lr
        0xe8df, 0xf000, // tbb [pc, r0]
        0x0401, //         to 12 and 18
        0x2001, //         movs r0, #1, at 12
        0xf7ff, 0xbedd, // b.w out of the function
        0xb510, //         push {r4, lr}, at 18
        0xf7ff, 0xfecd, // bl
        0xbd10, //         pop {r4, pc}
    ]);
    are_before_the_frame(&code, true, &[(6, true), (12, true), (14, true), (20, false)]);
}

fn are_before_the_frame(code: &[u8], thumb: bool, expected: &[(u64, bool)]) {
    let mut body = Row::new(Cfa::RegisterOffset(Register(13), 8), Rule::Offset(-4));
    body.set(Register(14), Rule::Offset(-4));
    for (offset, is_before) in expected {
        let (text, function) = (Section::new(Svma::new(TEXT), code), Some(Svma::new(TEXT)));
        let code = Code { text, at: Svma::new(TEXT + offset), function, thumb, is_described: false };
        let row = analyse(&code, Some(&body));
        let is_link = row.is_some_and(|row| row.return_address == LINK);
        assert_eq!(is_link, *is_before, "{offset}: {row:?}");
        let reader = Reader { code: &code, thumb };
        assert_eq!(frame_setup::before_frame(&reader).is_some(), *is_before, "{offset}");
    }
}

fn row_in_thumb(code: &[u8], offset: u64, body: &Row) -> Option<(Cfa, Rule, Rule)> {
    let code = Code {
        text: Section::new(Svma::new(TEXT), code),
        at: Svma::new(TEXT + offset),
        function: Some(Svma::new(TEXT)),
        thumb: true,
        is_described: false,
    };
    analyse(&code, Some(body)).map(|row| (row.cfa, row.return_address, row.rule(Register(14))))
}

/// Read as an instruction, the last half word of the table would change r7.
#[test]
fn tables_of_switches_are_no_code() {
    let code = halves(&[
        0xb580, //         push {r7, lr}
        0xaf00, //         add r7, sp, #0
        0xe8df, 0xf000, // tbb [pc, r0]
        0x0802, 0x1d17, // to 4, 16, 46 and 58 bytes from here
        0x2001, //         movs r0, #1
        0x46bd, //         mov sp, r7
        0xe8bd, 0x4080, // ldmia sp!, {r7, lr}
        0xf7ff, 0xbeda, // b.w
    ]);
    let mut body = Row::new(Cfa::RegisterOffset(Register(7), 8), Rule::Offset(-4));
    body.set(Register(14), Rule::Offset(-4));
    body.set(Register(7), Rule::Offset(-8));
    let undone = Some((Cfa::RegisterOffset(Register(13), 0), LINK, Rule::Same));
    assert_eq!(row_in_thumb(&code, 20, &body), undone);
}

/// A loop whose every instruction has the same condition, as in glibc's `memset`.
#[test]
fn arm_code_of_one_condition_is_no_thumb_code() {
    let stores = [0x2252_2008, 0x28a3_1002].into_iter().cycle(); // subscs r2, r2, #8; stmiacs r3!, {r1, ip}
    let code: Vec<u32> = stores.take(24).chain([0xe12f_ff1e]).collect();
    let code = words(&code);
    for offset in (0..=96).step_by(4) {
        assert_eq!(analyse_at(&code, offset, None, false), Some((13, 0, LINK)), "{offset}");
    }
}

/// Read as an instruction, the constant would change r7.
#[test]
fn constants_before_a_function_change_no_register() {
    let code = halves(&[
        0x4770, // bx lr
        0xc7f8, // a constant, or stmia r7!, {r3, r4, r5, r6, r7}
        0xb590, // push {r4, r7, lr}
        0xb082, // sub sp, #8
        0x4604, // mov r4, r0
    ]);
    let body = Row::new(Cfa::RegisterOffset(Register(13), 20), Rule::Offset(-4));
    for (offset, r7) in [(4, Rule::Same), (6, Rule::Offset(-8)), (8, Rule::Offset(-8))] {
        let code = Code {
            text: Section::new(Svma::new(TEXT), &code),
            at: Svma::new(TEXT + offset),
            function: Some(Svma::new(TEXT)),
            thumb: true,
            is_described: false,
        };
        assert_eq!(analyse(&code, Some(&body)).map(|row| row.rule(Register(7))), Some(r7), "{offset}");
    }
}
