//! What is known of tables and of words on the stack that are not what they seem.

use super::*;
use alloc::boxed::Box;

const LOADED_32: u64 = 0xf700_1000;
const STACK_32: u64 = 0xff00_0000;

/// The walk through a file and a stack that lie where 32 bits reach.
fn walk_low(case: &Case<'_>, stack: &[u8]) -> (Vec<Frame>, WalkEnd) {
    let module = Module::new(case.sections.clone());
    let memory = MemorySlice::new(Avma::new(STACK_32), stack);
    let bias = Bias::between(Avma::new(LOADED_32), Svma::new(TEXT));
    let range = AddrRange::from_size(Avma::new(LOADED_32), 0x1000);
    let mut images = [PlacedModule::new(range, bias, &module)];
    let mut walk = Walk::new(case.registers, &memory, ModuleMap::new(&mut images), case.options);
    let frames = walk.by_ref().collect();
    (frames, walk.ended().expect("an end"))
}

/// The walk from `pc` of i386 code, with its frame pointer.
fn walk_i386(code: &[u8], eh_frame: &[u8], pc: u64, fp: u64, stack: &[u32]) -> (Vec<Frame>, WalkEnd) {
    let mut case = Case::new(Arch::X86, code).with_eh_frame(eh_frame).at(pc);
    case.set(Register(4), STACK_32);
    case.set(Register(5), fp);
    let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    walk_low(&case, &bytes)
}

/// A CIE and FDEs of absolute addresses.
fn frames(cie: &[u8], functions: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut entry = |id: u32, body: &[u8]| {
        let size = (body.len() + 4).next_multiple_of(8);
        bytes.extend(u32::try_from(size).unwrap().to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(body);
        bytes.resize(bytes.len() + size - 4 - body.len(), 0);
        u32::try_from(bytes.len()).unwrap()
    };
    let mut end = entry(0, cie);
    for (range, instructions) in functions {
        end = entry(end + 4, &[*range, instructions].concat());
    }
    bytes
}

/// An FDE for all of the code whose CFA is the stack pointer of i386 plus `offset` words.
fn i386_frame(words: i8) -> Vec<u8> {
    // Offsets count in units of the data alignment, -4.
    let offset = (-words).cast_unsigned() & 0x7f;
    // DW_CFA_def_cfa_sf of esp; the return address is at CFA - 4.
    let cie = [1, 0, 1, 0x7c, 8, 0x12, 4, offset, 0x88, 1];
    let range = [0x1000u32, 0x100].map(u32::to_le_bytes).concat();
    frames(&cie, &[(&range, &[])])
}

/// glibc's assembly for i386: the table says CFA = esp - 4 where two registers are pushed.
#[test]
fn distances_of_the_wrong_sign_are_mirrored() {
    let code = calls(0x100);
    let caller = 0xf700_100a;
    let (frames, _) = walk_i386(&code, &i386_frame(-1), 0xf700_1003, 1, &[1, 2, caller]);
    assert_eq!((frames[1].address.raw().get(), frames[1].trust), (u64::from(caller), Trust::Scan));
    assert_eq!(frames[1].stack_pointer.get(), 0xff00_000c);
}

/// The table says CFA = esp behind the first instruction; the code pushes one word, jumps, and pushes another.
#[test]
fn pushes_that_lead_to_an_instruction_tell_more_than_a_wrong_table() {
    let range = [0x1000u32, 0x100].map(u32::to_le_bytes).concat();
    let eh_frame = frames(&[1, 0, 1, 0x7c, 8, 0x0c, 4, 4, 0x88, 1], &[(&range, &[0x41, 0x0e, 0])]);
    let mut code = calls(0x100);
    code[..3].copy_from_slice(&[0x53, 0x72, 0x0a]); // push ebx; jb 13
    code[13..18].copy_from_slice(&[0x56, 0x90, 0x90, 0xff, 0xe3]); // push esi; nop; nop; jmp ebx
    let caller = 0xf700_1023;
    // What is behind a call, and nearer, was left over.
    let stack = [0xf700_1028, 2, caller];
    let (frames, _) = walk_i386(&code, &eh_frame, LOADED_32 + 14, 1, &stack);
    assert_eq!((frames[1].address.raw().get(), frames[1].trust), (u64::from(caller), Trust::Analysis));
}

/// Whether a call led there is what tells; a return address elsewhere on the stack may be anyone's.
#[test]
fn distances_whose_mirror_image_leads_nowhere_end_the_walk() {
    let code = calls(0x100);
    for words in [0, -2] {
        let (frames, ended) =
            walk_i386(&code, &i386_frame(words), 0xf700_1003, 1, &[1, 2, 0xf700_100a, 3, 4]);
        assert_eq!(frames.len(), 1, "{frames:?}");
        assert!(matches!(ended, WalkEnd::Failed(_)), "{ended:?}");
    }
}

/// `_dl_runtime_resolve` of aarch64: the first entry of the procedure linkage table has pushed the return address.
#[test]
fn callers_stack_lies_above_what_the_linkage_table_pushed() {
    let code = [0xd503_201f_u32; 0x40].map(u32::to_le_bytes).concat();
    let range = |start: u64, size: u64| [start, size].map(u64::to_le_bytes).concat();
    // CFA = x31 + 0. The resolver: x30 at CFA + 8 (DW_CFA_offset_extended_sf). A function: CFA = x31 + 16, x30 at CFA - 8.
    let eh_frame = frames(
        &[1, 0, 1, 0x78, 30, 0x0c, 31, 0],
        &[(&range(TEXT, 0x40), &[0x11, 30, 0x7f]), (&range(TEXT + 0x40, 0xc0), &[0x0e, 16, 0x9e, 1])],
    );
    let mut case = Case::new(Arch::Arm64, &code).with_eh_frame(&eh_frame).at(LOADED + 0x20);
    case.stack = vec![7, LOADED + 0x80, 8, LOADED + 0x90, 9, 0];
    let expected =
        [(LOADED + 0x20, Trust::Context), (LOADED + 0x80, Trust::Cfi), (LOADED + 0x90, Trust::Cfi)];
    assert_eq!(case.walk(), (expected.to_vec(), WalkEnd::EndOfStack(End::ZeroReturnAddress)));

    // The same by compiled rules.
    let module = Module::new(case.sections.clone());
    let rules = Box::new(module.compile());
    let row = rules.find(Svma::new(TEXT + 0x20)).expect("a row").row;
    assert_eq!(row.return_address, crate::Rule::Offset(8));
    let bytes: Vec<u8> = case.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = MemorySlice::new(Avma::new(STACK), &bytes);
    let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
    let range = AddrRange::from_size(Avma::new(LOADED), 0x1000);
    let mut images = [PlacedModule::compiled(range, bias, &rules)];
    let walk = Walk::new(case.registers, &memory, ModuleMap::new(&mut images), case.options);
    let frames: Vec<_> = walk.map(|frame| (frame.address.raw().get(), frame.trust)).collect();
    assert_eq!(frames, expected);
}

/// At the resolver's first instruction its table does not say so yet, and the link register has the address, too.
#[test]
fn callers_stack_lies_above_what_was_pushed_at_the_first_instruction_too() {
    let code = [0xd503_201f_u32; 0x40].map(u32::to_le_bytes).concat();
    let range = |start: u64, size: u64| [start, size].map(u64::to_le_bytes).concat();
    // CFA = x31 + 0; from the second instruction on (DW_CFA_advance_loc 4) x30 at CFA + 8.
    let eh_frame = frames(
        &[1, 0, 1, 0x78, 30, 0x0c, 31, 0],
        &[(&range(TEXT, 0x40), &[0x44, 0x11, 30, 0x7f]), (&range(TEXT + 0x40, 0xc0), &[0x0e, 16, 0x9e, 1])],
    );
    let walk = |pushed: u64| {
        let mut case = Case::new(Arch::Arm64, &code).with_eh_frame(&eh_frame).at(LOADED);
        case.set(Register(30), LOADED + 0x80);
        case.stack = vec![7, pushed, 8, LOADED + 0x90, 9, 0];
        case.walk().0
    };
    let found: Vec<_> = walk(LOADED + 0x80).iter().map(|(address, _)| *address).collect();
    assert_eq!(found, [LOADED, LOADED + 0x80, LOADED + 0x90]);
    // Of a function that has saved nothing, what lies on the stack is its caller's.
    let found: Vec<_> = walk(5).iter().map(|(address, _)| *address).collect();
    assert_eq!(found.get(..2), Some(&[LOADED, LOADED + 0x80][..]));
    assert_ne!(found.get(2), Some(&(LOADED + 0x90)));
}

/// The address that a call of `__x86.get_pc_thunk.bx` left behind on top of the stack is nobody's caller.
#[test]
fn calls_of_thunks_are_no_callers() {
    let mut code = vec![0x90; 0x100];
    code[..4].copy_from_slice(&[0x8b, 0x1c, 0x24, 0xc3]);
    code[0x10..0x15].copy_from_slice(&[0xe8, 0xeb, 0xff, 0xff, 0xff]);
    code[0x20..0x25].copy_from_slice(&[0xe8, 0, 0, 0, 0]);
    let behind = |at: u32| 0xf700_1000 + at;
    let stack = [behind(0x15), 0, behind(0x25), 1];
    let (frames, _) = walk_i386(&code, &[], LOADED_32 + 0x80, STACK_32 + 4, &stack);
    assert_eq!(
        (frames[1].address.raw().get(), frames[1].trust),
        (u64::from(behind(0x25)), Trust::FramePointer)
    );
    // In the thunk itself it is.
    let (frames, _) = walk_i386(&code, &[], LOADED_32, 1, &stack);
    assert_eq!(frames[1].address.raw().get(), u64::from(behind(0x15)));
}

/// Behind a call that has returned, the link register tells of what was called. It counts where it is still needed.
#[test]
fn link_registers_that_are_not_needed_are_stale() {
    // Nothing; a call; a conditional branch to nearby; the push of the link register; a return by it; a pop of what it was
    // into the program counter, or before a return; a trap.
    let arm = [0xe1a0_0000_u32, 0xeb00_0000, 0x1a00_0000, 0xe52d_e004, 0xe12f_ff1e, 0xe49d_f004, 0xe7f0_00f0];
    let arm64 = [0xd503_201f, 0x9400_0000, 0x5400_0041, 0xf81f_0ffe, 0xd65f_03c0, 0xf841_07fe, 0xd420_0000];
    for (arch, [nothing, call, branch, push, back, pop, trap]) in [(Arch::Arm, arm), (Arch::Arm64, arm64)] {
        let next = |code: &[u32]| {
            let mut words = [nothing; 0x40];
            (words[3], words[4]) = (call, trap);
            words[0x10..][..code.len()].copy_from_slice(code);
            let bytes = words.map(u32::to_le_bytes).concat();
            let mut case = Case::new(arch, &bytes).at(LOADED_32 + 4 * 0x10);
            case.set(arch.family().sp(), STACK_32);
            case.set(arch.family().lr().unwrap(), LOADED_32 + 4 * 4);
            let (frames, _) = walk_low(&case, &[]);
            frames.get(1).map(|frame| (frame.address.raw().get() - LOADED_32) / 4)
        };
        assert_eq!(next(&[nothing, branch, nothing, back]), Some(4));
        assert_eq!(next(&[nothing, branch, nothing, push, call]), Some(4));
        assert_eq!(next(&[nothing, branch, call, back]), None);
        assert_eq!(next(&[nothing, branch, pop, back]), None);
        assert_eq!(next(&[nothing, branch, trap]), None);
        // Code that was emptied tells nothing.
        assert_eq!(next(&[0; 4]), Some(4));
    }
}
