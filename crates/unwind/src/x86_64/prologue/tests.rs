use super::*;
use crate::sections::Section;
use backtrail_core::{Family, Svma};

const TEXT: u64 = 0x4000;

/// The CFA's register and offset at an instruction of a function that starts where the code does.
fn row(family: Family, code: &[u8], offset: u64, is_described: bool, starts: bool) -> Option<Row> {
    let code = Code {
        text: Section::new(Svma::new(TEXT), code),
        at: Svma::new(TEXT + offset),
        function: starts.then(|| Svma::new(TEXT)),
        thumb: false,
        is_described,
    };
    crate::arch::analyse(family, &code, None)
}

fn cfa(family: Family, code: &[u8], offset: u64) -> Option<(u8, i32)> {
    let row = row(family, code, offset, false, true)?;
    let Cfa::RegisterOffset(register, offset) = row.cfa else { panic!("{row:?}") };
    let word = i32::from(family.word_size());
    assert_eq!(row.return_address, Rule::Offset(-word));
    Some((register.0, offset))
}

/// Every instruction's offset with the CFA there; `None` in the body.
fn check(family: Family, code: &[u8], expected: &[(u64, Option<(u8, i32)>)]) {
    for (offset, wanted) in expected {
        assert_eq!(cfa(family, code, *offset), *wanted, "{family:?} at {offset}");
    }
}

#[test]
fn frames_with_a_frame_pointer_are_followed_in_both_widths() {
    let narrow = [
        0x55, // push ebp
        0x89, 0xe5, // mov ebp, esp
        0x53, // push ebx
        0x83, 0xec, 0x14, // sub esp, 20
        0xe8, 0, 0, 0, 0, // call
        0x8b, 0x5d, 0xfc, // mov ebx, [ebp - 4]
        0xc9, // leave
        0xc3, // ret
    ];
    let expected = [
        (0, Some((4, 4))),
        (1, Some((4, 8))),
        (3, Some((5, 8))),
        (4, Some((5, 8))),
        (7, Some((5, 8))),
        (12, Some((5, 8))),
        (15, Some((5, 8))),
        (16, Some((4, 4))),
    ];
    check(Family::X86, &narrow, &expected);
    let wide = [
        0xf3, 0x0f, 0x1e, 0xfa, // endbr64
        0x55, // push rbp
        0x48, 0x89, 0xe5, // mov rbp, rsp
        0x41, 0x54, // push r12
        0x48, 0x83, 0xec, 0x18, // sub rsp, 24
        0xe8, 0, 0, 0, 0, // call
        0x48, 0x83, 0xc4, 0x18, // add rsp, 24
        0x41, 0x5c, // pop r12
        0x5d, // pop rbp
        0xc3, // ret
    ];
    let expected = [
        (0, Some((7, 8))),
        (4, Some((7, 8))),
        (5, Some((7, 16))),
        (8, Some((6, 16))),
        (14, Some((6, 16))),
        (19, Some((7, 48))),
        (23, Some((7, 24))),
        (25, Some((7, 16))),
        (26, Some((7, 8))),
    ];
    check(Family::X86_64, &wide, &expected);
}

#[test]
fn pushes_of_i386_are_counted_and_found_again() {
    let code = [
        0x57, // push edi
        0x56, // push esi
        0x53, // push ebx
        0x8b, 0x5c, 0x24, 0x10, // mov ebx, [esp + 16]
        0x6a, 0x01, // push 1
        0x68, 0, 0, 0, 0, // push imm32
        0x83, 0xc4, 0x08, // add esp, 8
        0x5b, // pop ebx
        0x5e, // pop esi
        0x5f, // pop edi
        0xc2, 0x04, 0x00, // ret 4
    ];
    let expected =
        [(0, 4), (1, 8), (2, 12), (3, 16), (7, 16), (9, 20), (14, 24), (17, 16), (18, 12), (19, 8), (20, 4)];
    for (offset, size) in expected {
        assert_eq!(cfa(Family::X86, &code, offset), Some((4, size)), "{offset}");
    }
    let saved = row(Family::X86, &code, 3, false, true).unwrap();
    let places =
        [(7, -8), (6, -12), (3, -16)].map(|(number, at)| (saved.rule(Register(number)), Rule::Offset(at)));
    assert!(places.iter().all(|(found, wanted)| found == wanted), "{saved:?}");
    let popping = row(Family::X86, &code, 18, false, false).unwrap();
    assert_eq!(popping.rule(Register(6)), Rule::Offset(-12));
    assert_eq!(popping.rule(Register(7)), Rule::Offset(-8));
    assert_eq!(popping.rule(Register(3)), Rule::Same, "popped before");
}

#[test]
fn one_byte_increments_are_prefixes_elsewhere() {
    // inc eax; push ebx — in 64-bit code `rex push rbx`.
    let code = [0x40, 0x53, 0x90];
    assert_eq!(cfa(Family::X86, &code, 1), Some((4, 4)));
    assert_eq!(cfa(Family::X86, &code, 2), Some((4, 8)));
    assert_eq!(cfa(Family::X86_64, &code, 2), Some((7, 16)));
}

#[test]
fn bodies_are_left_to_others() {
    // push ebx; call; test eax, eax; je; call; jmp back
    let code = [0x53, 0xe8, 0, 0, 0, 0, 0x85, 0xc0, 0x74, 0x05, 0xe8, 0, 0, 0, 0, 0xeb, 0xf0];
    for offset in [6, 8, 10, 15] {
        assert_eq!(row(Family::X86, &code, offset, false, false), None, "{offset}");
    }
}

#[test]
fn entries_of_linkage_tables_are_known() {
    // jmp *[ebx + 16]; push 8; jmp first
    let code = [0xff, 0xa3, 0x10, 0, 0, 0, 0x68, 8, 0, 0, 0, 0xe9, 0, 0, 0, 0];
    check(Family::X86, &code, &[(0, Some((4, 4)))]);
    let stub = |offset| row(Family::X86, &code, offset, false, false).map(|row| row.cfa);
    assert_eq!(stub(6), Some(Cfa::RegisterOffset(Register(4), 4)));
    assert_eq!(stub(11), Some(Cfa::RegisterOffset(Register(4), 8)));
}

/// As in glibc's `_dl_runtime_resolve` for i386.
#[test]
fn a_return_to_an_address_of_its_own_is_left_to_the_table() {
    let code = [
        0x5a, // pop edx
        0x8b, 0x0c, 0x24, // mov ecx, [esp]
        0x89, 0x04, 0x24, // mov [esp], eax
        0x8b, 0x44, 0x24, 0x04, // mov eax, [esp + 4]
        0xc2, 0x0c, 0x00, // ret 12
    ];
    for offset in [0, 1, 4, 7, 11] {
        assert_eq!(row(Family::X86, &code, offset, true, false), None, "{offset}");
    }
    assert!(row(Family::X86, &code, 7, false, false).is_some());
}
