mod cfi_repair;
mod generated;
mod runtime;

use super::*;
use crate::arch;
use crate::module::Module;
use crate::sections::{Section, Sections};
use alloc::vec;
use alloc::vec::Vec;
use backtrail_core::{AddrRange, Bias, MemorySlice, Register, Svma};

/// Where the file has its code, where the process has it, and where the stack is.
const TEXT: u64 = 0x1000;
const LOADED: u64 = 0x7f00_0000_1000;
const STACK: u64 = 0x7ffe_0000_0000;

/// Code of calls: every fifth byte is the address behind one.
fn calls(length: usize) -> Vec<u8> {
    [0xe8, 0, 0, 0, 0].into_iter().cycle().take(length).collect()
}

struct Case<'d> {
    sections: Sections<'d>,
    registers: Registers,
    stack: Vec<u64>,
    options: Options,
}

impl<'d> Case<'d> {
    fn new(arch: Arch, code: &'d [u8]) -> Self {
        let mut registers = Registers::new(arch.family());
        registers.set(arch.family().sp(), STACK);
        let text = vec![Section::new(Svma::new(TEXT), code)];
        let sections = Sections { arch: Some(arch), image_base: Svma::new(0), text, ..Sections::default() };
        Self { sections, registers, stack: Vec::new(), options: Options::default() }
    }

    fn with_eh_frame(mut self, eh_frame: &'d [u8]) -> Self {
        self.sections.eh_frame = Some(Section::new(Svma::new(0x9000), eh_frame));
        self
    }

    fn at(mut self, pc: u64) -> Self {
        self.set(self.registers.family().pc(), pc);
        self
    }

    fn set(&mut self, register: Register, value: u64) {
        self.registers.set(register, value);
    }

    fn walk(&self) -> (Vec<(u64, Trust)>, WalkEnd) {
        let module = Module::new(self.sections.clone());
        let bytes: Vec<u8> = self.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
        let memory = MemorySlice::new(Avma::new(STACK), &bytes);
        let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
        let range = AddrRange::from_size(Avma::new(LOADED), 0x1000);
        let mut images = [PlacedModule::new(range, bias, &module)];
        let mut walk = Walk::new(self.registers, &memory, ModuleMap::new(&mut images), self.options);
        let frames = walk.by_ref().map(|frame| (frame.address.raw().get(), frame.trust)).collect();
        (frames, walk.ended().unwrap())
    }
}

/// `.eh_frame` for x86_64: per function its start, its size and its instructions.
fn eh_frame(functions: &[(u64, u64, &[u8])], augmentation: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut entry = |parts: &[&[u8]]| {
        let mut body = parts.concat();
        body.resize(body.len().next_multiple_of(4), 0);
        bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        bytes.extend(body);
        bytes.len()
    };
    let rest = [0, 1, 0x78, 16, 0, 0x0c, 7, 8, 0x90, 1];
    let mut end = entry(&[&[0, 0, 0, 0, 1, b'z'], augmentation, &rest]);
    for (start, size, instructions) in functions {
        let back = u32::try_from(end + 4).unwrap().to_le_bytes();
        end = entry(&[&back, &start.to_le_bytes(), &size.to_le_bytes(), &[0], instructions]);
    }
    bytes
}

#[test]
fn frame_pointers_lead_to_zero() {
    let code = calls(0x100);
    let mut case = Case::new(Arch::X86_64, &code).at(LOADED + 0x21);
    case.set(Register(6), STACK + 16);
    case.stack = vec![1, 2, STACK + 40, LOADED + 5, 3, 0, LOADED + 10, 0];
    // The address is not the first of a function, so that what lies on top of the stack counts only behind a call.
    let (frames, ended) = case.walk();
    let expected = [
        (LOADED + 0x21, Trust::Context),
        (LOADED + 5, Trust::FramePointer),
        (LOADED + 10, Trust::FramePointer),
    ];
    assert_eq!(frames, expected);
    assert_eq!(ended, WalkEnd::EndOfStack(End::ZeroFramePointer));
}

#[test]
fn a_zero_that_no_frame_pointer_led_to_is_no_end() {
    // Code without tables that does not use the register: the call before it is still found.
    let code = calls(0x100);
    let mut case = Case::new(Arch::X86_64, &code).at(0);
    case.set(Register(6), 0);
    case.stack = vec![LOADED + 5, 1, 2, 3];
    let (frames, ended) = case.walk();
    assert_eq!(frames[1], (LOADED + 5, Trust::Analysis));
    assert!(matches!(ended, WalkEnd::Failed(_)), "{ended:?}");
}

#[test]
fn dishonest_frame_pointers_are_not_followed() {
    let code = calls(0x100);
    let walk = |fp: u64, saved: u64, address: u64| {
        let mut case = Case::new(Arch::X86_64, &code).at(LOADED + 0x21);
        case.options.scan_words = 0;
        case.set(Register(6), fp);
        case.stack = vec![1, 2, saved, address, 3, 0];
        case.walk().0.len()
    };
    assert_eq!(walk(STACK + 16, STACK + 40, LOADED + 5), 2);
    // Not aligned; below the stack pointer; far above; no call before the address; no code there.
    assert_eq!(walk(STACK + 17, STACK + 40, LOADED + 5), 1);
    assert_eq!(walk(STACK - 16, STACK + 40, LOADED + 5), 1);
    assert_eq!(walk(STACK + (1 << 40), STACK + 40, LOADED + 5), 1);
    assert_eq!(walk(STACK + 16, STACK + 40, LOADED + 6), 1);
    assert_eq!(walk(STACK + 16, STACK + 40, LOADED + 0x2005), 1);
    // A loop: the caller's frame pointer is no frame pointer, and the walk ends there.
    assert_eq!(walk(STACK + 16, STACK + 16, LOADED + 5), 2);
}

#[test]
fn scanning_stops_at_what_may_be_a_caller_in_missing_code() {
    let code = calls(0x100);
    let missing = AddrRange::from_size(Avma::new(0x5_0000), 0x1000);
    let case = Case::new(Arch::X86_64, &code).at(LOADED + 0x21);
    let module = Module::new(case.sections.clone());
    let walk = |stack: [u64; 4]| {
        let bytes = stack.map(u64::to_le_bytes).concat();
        let memory = MemorySlice::new(Avma::new(STACK), &bytes);
        let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
        let range = AddrRange::from_size(Avma::new(LOADED), 0x1000);
        let mut images = [PlacedModule::new(range, bias, &module), PlacedModule::unknown(missing)];
        let mut walk = Walk::new(case.registers, &memory, ModuleMap::new(&mut images), case.options);
        (walk.by_ref().count(), walk.ended().unwrap())
    };
    // What lies nearer is found all the same.
    let caller = missing.start().get() + 0x20;
    let ended = WalkEnd::Failed(Failure::MissingCode(Avma::new(caller)));
    assert_eq!(walk([1, LOADED + 15, caller, LOADED + 20]), (2, ended));
    assert_eq!(walk([1, caller, LOADED + 15, LOADED + 20]), (1, ended));
    assert_eq!(
        alloc::format!("{ended}"),
        "could not go on: the caller may be 0x50020, but that code is missing"
    );
    // Where the frame itself is in missing code, its own address is not its caller's. Seen in a minidump without its modules.
    let mut registers = case.registers;
    registers.set(Family::X86_64.pc(), caller);
    let bytes = [1, caller, caller + 0x40, 2].map(u64::to_le_bytes).concat();
    let memory = MemorySlice::new(Avma::new(STACK), &bytes);
    let mut images = [PlacedModule::unknown(missing)];
    let mut own = Walk::new(registers, &memory, ModuleMap::new(&mut images), case.options);
    assert_eq!(own.by_ref().count(), 1);
    let ended = own.ended().unwrap();
    assert!(matches!(ended, WalkEnd::Failed(Failure::NothingCertain(at)) if at.get() == caller), "{ended}");
    // The end of the range is no code of it: a call at its last bytes would return there, but nothing before lies in it.
    assert_eq!(walk([1, missing.start().get(), LOADED + 15, 2]).0, 2);
}

#[test]
fn frame_pointers_and_scans_lead_to_signal_frames() {
    // mov $15, %rax; syscall: nothing calls it, and no call lies before it.
    let mut code = calls(0x100);
    code[0x40..0x49].copy_from_slice(&[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 5]);
    code[0x30..0x40].fill(0x90);
    let mut case = Case::new(Arch::X86_64, &code).at(LOADED + 0x21);
    // Saved frame pointer and return address, then the kernel's frame: rbp, rsp and rip are its 15th, 20th and 21st word.
    case.stack = vec![7, 0, LOADED + 0x40];
    case.stack.extend([0; 24]);
    let frame = 3;
    case.stack[frame + 15] = 0;
    case.stack[frame + 20] = STACK + 0xd0;
    case.stack[frame + 21] = LOADED + 0x57;
    let expected =
        |trust| [(LOADED + 0x21, Trust::Context), (LOADED + 0x40, trust), (LOADED + 0x57, Trust::Analysis)];
    case.set(Register(6), STACK + 8);
    assert_eq!(case.walk().0, expected(Trust::FramePointer));
    case.set(Register(6), 0);
    assert_eq!(case.walk().0, expected(Trust::Scan));
}

#[test]
fn scanning_takes_what_follows_a_call() {
    let code = calls(0x100);
    let mut case = Case::new(Arch::X86_64, &code).at(LOADED + 0x21);
    case.stack = vec![1, LOADED + 6, LOADED + 0x2005, LOADED + 15, 2, LOADED + 20, 3];
    let expected = [(LOADED + 0x21, Trust::Context), (LOADED + 15, Trust::Scan), (LOADED + 20, Trust::Scan)];
    let (frames, ended) = case.walk();
    assert_eq!(frames, expected);
    assert!(matches!(ended, WalkEnd::Failed(Failure::NoRules(at)) if at.get() == LOADED + 19), "{ended:?}");
    case.options.scan_words = 0;
    assert_eq!(case.walk().0.len(), 1);
}

#[test]
fn a_guess_that_leads_to_what_nothing_has_called_claims_no_end() {
    // A function without a table, found callers with tables, and a pointer to a function: what `qsort` keeps of `compare`.
    let mut code = calls(0x100);
    code[0x80..].fill(0x90);
    let functions: [(u64, u64, &[u8]); 3] = [
        (TEXT + 0x20, 0x20, &[0x0e, 16]),
        (TEXT + 0x40, 0x40, &[0x0e, 16]),
        (TEXT + 0xc0, 0x40, &[0x0e, 16]),
    ];
    let tables = eh_frame(&functions, b"");
    let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&tables).at(LOADED + 0x11);
    case.stack = vec![1, LOADED + 0x2d, 7, LOADED + 0x50, 7, LOADED + 0xc0, 1, 1];
    let guessed =
        [(LOADED + 0x11, Trust::Context), (LOADED + 0x2d, Trust::Scan), (LOADED + 0x50, Trust::Cfi)];
    let not_called = WalkEnd::Failed(Failure::NotCalled(Avma::new(LOADED + 0xc0)));
    assert_eq!(case.walk(), (guessed.to_vec(), not_called));
    // Without a guess before it, it is the first function of a coroutine.
    case = case.at(LOADED + 0x2d);
    case.stack = case.stack.split_off(2);
    let (frames, ended) = case.walk();
    assert_eq!(frames.last(), Some(&(LOADED + 0xc0, Trust::Cfi)));
    assert_eq!(ended, WalkEnd::EndOfStack(End::ThreadStart));
}

#[test]
fn a_wild_jump_finds_its_caller() {
    let code = calls(0x100);
    let mut case = Case::new(Arch::X86_64, &code).at(0);
    case.stack = vec![LOADED + 25, 7, 0];
    let (frames, _) = case.walk();
    assert_eq!(frames, [(0, Trust::Context), (LOADED + 25, Trust::Analysis)]);
}

#[test]
fn tables_end_the_stack_or_fail_with_a_reason() {
    let code = calls(0x100);
    let walk = |instructions: &[u8], stack: Vec<u64>| {
        let tables = eh_frame(&[(TEXT, 0x40, instructions), (TEXT + 0x40, 0x40, &[0x07, 16])], b"");
        let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&tables).at(LOADED + 0x11);
        case.stack = stack;
        let (frames, ended) = case.walk();
        (frames.len(), ended)
    };
    let end = |end| WalkEnd::EndOfStack(end);
    assert_eq!(walk(&[0x0e, 16], vec![1, LOADED + 0x45]), (2, end(End::Undefined)));
    assert_eq!(walk(&[0x0e, 16], vec![1, 0]), (1, end(End::ZeroReturnAddress)));
    let unreadable = Failure::Unreadable(backtrail_core::Unreadable { address: Avma::new(STACK + 8) });
    assert_eq!(walk(&[0x0e, 16], vec![1]), (1, WalkEnd::Failed(unreadable)));
    let stuck = Failure::NotAdvancing(Avma::new(STACK));
    assert_eq!(walk(&[0x0e, 0, 0x11, 16, 0x7f], vec![1, LOADED + 0x45]), (1, WalkEnd::Failed(stuck)));
    assert_eq!(walk(&[0x0f, 1, 0xff], vec![1]).1.to_string_like(), "Failed(Expression(Operation(255)))");
}

#[test]
fn a_return_address_may_be_in_a_register_while_the_function_is_at_work() {
    // glibc's vfork: `pop %rdi`, then the system call. CFA: the stack pointer; DW_CFA_register: rip is in rdi.
    let code = calls(0x100);
    let vfork: &[u8] = &[0x0e, 0, 0x09, 16, 5];
    let tables = eh_frame(
        &[(TEXT, 0x40, vfork), (TEXT + 0x40, 0x20, &[0x0e, 16]), (TEXT + 0x60, 0x40, &[0x07, 16])],
        b"",
    );
    let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&tables).at(LOADED + 0x11);
    case.set(Register(5), LOADED + 0x45);
    case.stack = vec![1, LOADED + 0x64];
    let (frames, ended) = case.walk();
    let expected =
        [(LOADED + 0x11, Trust::Context), (LOADED + 0x45, Trust::Cfi), (LOADED + 0x64, Trust::Cfi)];
    assert_eq!((&frames[..], ended), (&expected[..], WalkEnd::EndOfStack(End::Undefined)));
    // Nobody is called from behind itself, and no further function works.
    case.set(Register(5), LOADED + 0x11);
    assert_eq!(
        case.walk(),
        (vec![(LOADED + 0x11, Trust::Context)], WalkEnd::Failed(Failure::NotAdvancing(Avma::new(STACK))))
    );
    case.set(Register(5), LOADED + 0x45);
    case = case.at(LOADED + 0x51);
    case.stack = vec![1, LOADED + 0x11, 2];
    assert_eq!(case.walk().0.len(), 2, "{:?}", case.walk());
}

#[test]
fn a_return_address_that_is_pushed_again_behind_a_system_call_is_in_that_register() {
    // musl's vfork, which has no table: pop rdx; mov eax, 58; syscall; push rdx; mov rdi, rax; jmp __syscall_ret.
    let vfork = [0x5a, 0xb8, 58, 0, 0, 0, 0x0f, 0x05, 0x52, 0x48, 0x89, 0xc7, 0xe9, 0, 1, 0, 0];
    let walk = |vfork: &[u8], rdx: u64| {
        // The call lies at 0x20, vfork at 0x40.
        let mut code = vec![0xcc; 0x20];
        code.extend([0xe8, 0x1b, 0, 0, 0, 0x85, 0xc0]);
        code.resize(0x40, 0x90);
        code.extend(vfork);
        code.extend(calls(0x100));
        let tables = eh_frame(&[(TEXT + 0x20, 0x10, &[0x0e, 16]), (TEXT + 0x80, 0x40, &[0x07, 16])], b"");
        let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&tables).at(LOADED + 0x48);
        case.options.scan_words = 0;
        case.set(Register(1), rdx);
        // What lies there looks like a caller, and is none.
        case.stack = vec![LOADED + 0x85, LOADED + 0x91, 0, 0];
        case.walk().0
    };
    let at = (LOADED + 0x48, Trust::Context);
    let whole = [at, (LOADED + 0x25, Trust::Analysis), (LOADED + 0x91, Trust::Cfi)];
    assert_eq!(walk(&vfork, LOADED + 0x25), whole);
    // No call before it; no system call before the push; the stack changes on the way to the return.
    let is_whole = |vfork: &[u8], rdx| walk(vfork, rdx).get(1) == whole.get(1);
    assert!(!is_whole(&vfork, LOADED + 0x24));
    let changed = |at: usize, byte: u8| {
        let mut vfork = vfork;
        vfork[at] = byte;
        vfork
    };
    assert!(!is_whole(&changed(7, 0x06), LOADED + 0x25));
    assert!(!is_whole(&changed(8, 0x90), LOADED + 0x25));
    let popped = [&vfork[..9], &[0x59], &vfork[9..]].concat();
    assert!(!is_whole(&popped, LOADED + 0x25));
}

trait Text {
    fn to_string_like(&self) -> alloc::string::String;
}

impl Text for WalkEnd {
    fn to_string_like(&self) -> alloc::string::String {
        alloc::format!("{self:?}")
    }
}

#[test]
fn the_entry_point_and_threads_starts_end_the_stack() {
    let code = [0x90; 0x100];
    let mut case = Case::new(Arch::X86_64, &code).at(LOADED + 0x21);
    case.stack = vec![1, 2];
    case.sections.entry = Some(Svma::new(TEXT + 0x20));
    assert_eq!(case.walk().1, WalkEnd::EndOfStack(End::EntryPoint));
    case.sections.thread_starts = vec![AddrRange::from_size(Svma::new(TEXT + 0x20), 16)];
    assert_eq!(case.walk().1, WalkEnd::EndOfStack(End::ThreadStart));
}

#[test]
fn callers_of_signal_frames_are_exact() {
    // The restorer of the C library, without a table: mov $15, %rax; syscall.
    let mut code = calls(0x100);
    code[0x60..0x69].copy_from_slice(&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05]);
    let tables = eh_frame(&[(TEXT, 0x60, &[0x0e, 16]), (TEXT + 0x80, 0x40, &[0x07, 16])], b"");
    let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&tables).at(LOADED + 0x11);
    // The handler's frame, then the `ucontext`: rsp at 160, rip at 168.
    case.stack = vec![1, LOADED + 0x60];
    case.stack.extend([0; 40]);
    case.stack[2 + 20] = STACK + 200;
    case.stack[2 + 21] = LOADED + 0x80;
    let module = Module::new(case.sections.clone());
    let bytes: Vec<u8> = case.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = MemorySlice::new(Avma::new(STACK), &bytes);
    let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
    let mut images = [PlacedModule::new(AddrRange::from_size(Avma::new(LOADED), 0x1000), bias, &module)];
    let mut walk = Walk::new(case.registers, &memory, ModuleMap::new(&mut images), Options::default());
    let frames: Vec<_> = walk.by_ref().collect();
    assert_eq!(frames.len(), 3);
    assert_eq!(frames[1].address, FrameAddress::Return(Avma::new(LOADED + 0x60)));
    assert_eq!(frames[2].address, FrameAddress::Exact(Avma::new(LOADED + 0x80)));
    assert!(frames[2].is_after_signal && !frames[1].is_after_signal);
    assert_eq!(frames[2].stack_pointer, Avma::new(STACK + 200));
    assert_eq!(walk.ended(), Some(WalkEnd::EndOfStack(End::Undefined)));
}

#[test]
fn a_signals_return_code_may_begin_its_mapping() {
    // The page that qemu-user makes: mov $15, %rax; syscall, and nothing before it.
    const PAGE: u64 = LOADED + 0x10_0000;
    let tables = eh_frame(&[(TEXT, 0x60, &[0x0e, 16]), (TEXT + 0x80, 0x40, &[0x07, 16])], b"");
    let code = calls(0x100);
    let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&tables).at(LOADED + 0x11);
    case.stack = vec![1, PAGE];
    case.stack.extend([0; 40]);
    case.stack[2 + 20] = STACK + 200;
    case.stack[2 + 21] = LOADED + 0x80;
    let module = Module::new(case.sections.clone());
    let returning = Case::new(Arch::X86_64, &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05]);
    let returning = Module::new(returning.sections);
    let bytes: Vec<u8> = case.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = MemorySlice::new(Avma::new(STACK), &bytes);
    for (page, expected) in [(PAGE, 3), (PAGE + 0x40_0000, 1)] {
        let mut images = [(LOADED, &module), (page, &returning)].map(|(at, module)| {
            let bias = Bias::between(Avma::new(at), Svma::new(TEXT));
            PlacedModule::new(AddrRange::from_size(Avma::new(at), 0x1000), bias, module)
        });
        let options = Options { knows_all_code: true, ..Options::default() };
        let mut walk = Walk::new(case.registers, &memory, ModuleMap::new(&mut images), options);
        let frames: Vec<_> = walk.by_ref().collect();
        assert_eq!(frames.len(), expected, "{:?}", walk.ended());
        assert_eq!(frames.get(2).is_some_and(|frame| frame.is_after_signal), expected == 3);
    }
}

#[test]
fn the_link_register_leads_out_of_leaves_and_authentication_goes() {
    // bl +0, over and over, but for one ret
    let mut code: Vec<u8> = [0, 0, 0, 0x94].into_iter().cycle().take(0x100).collect();
    code[0x20..0x24].copy_from_slice(&0xd65f_03c0_u32.to_le_bytes());
    let mut case = Case::new(Arch::Arm64e, &code).at(LOADED + 0x20);
    case.set(Register(30), 0x0025_0000_0000_0000 | (LOADED + 0x44));
    case.set(Register(29), STACK);
    case.stack = vec![0, 0x1234_0000_0000_0000 | (LOADED + 0x80), 5];
    let (frames, ended) = case.walk();
    if arch::follows_call(Family::Aarch64, &[0, 0, 0, 0x94], Avma::new(4)) {
        let expected = [
            (LOADED + 0x20, Trust::Context),
            (LOADED + 0x44, Trust::LinkRegister),
            (LOADED + 0x80, Trust::FramePointer),
        ];
        assert_eq!(frames, expected);
        assert_eq!(ended, WalkEnd::EndOfStack(End::ZeroFramePointer));
    }
}

#[test]
fn a_million_frames_are_folded() {
    let code = calls(0x100);
    let tables = eh_frame(&[(TEXT, 0x40, &[0x0e, 16]), (TEXT + 0x40, 0x40, &[0x07, 16])], b"");
    let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&tables).at(LOADED + 0x11);
    for round in 0..500_000 {
        case.stack.extend([round, LOADED + 5, round, LOADED + 10]);
    }
    case.stack.extend([0, LOADED + 15, 0, LOADED + 0x45]);
    let module = Module::new(case.sections.clone());
    let rules = module.compile();
    let bytes: Vec<u8> = case.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = MemorySlice::new(Avma::new(STACK), &bytes);
    let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
    let range = AddrRange::from_size(Avma::new(LOADED), 0x1000);
    let mut images = [PlacedModule { rules: Some(&rules), ..PlacedModule::new(range, bias, &module) }];
    let mut cache = Cache::new();
    let images = ModuleMap::new(&mut images);
    let mut walk = Walk::new(case.registers, &memory, images, Options::default()).with_cache(&mut cache);
    let folded = fold(&mut walk, 10, 20);
    assert_eq!(folded.depth(), 1_000_003);
    assert_eq!((folded.first.len(), folded.last.len()), (10, 20));
    assert_eq!(folded.repeat, Some(Repeat { start: 1, period: 2, rounds: 500_000 }));
    assert_eq!(folded.ended, WalkEnd::EndOfStack(End::Undefined));
    assert_eq!(folded.last[19].address.raw().get(), LOADED + 0x45);
    let options = Options { max_frames: 100, ..Options::default() };
    let folded = fold(&mut Walk::new(case.registers, &memory, images, options), 10, 20);
    assert_eq!((folded.depth(), folded.ended), (100, WalkEnd::Limit));
}

#[test]
fn an_interpreters_bytecode_address_comes_along() {
    let code = calls(0x100);
    // rbx is "DEX1": const4u, drop, breg12 0.
    let dex = [0x0e, 16, 0x16, 3, 8, 0x0c, b'D', b'E', b'X', b'1', 0x13, 0x7c, 0];
    let tables = eh_frame(&[(TEXT, 0x40, &dex), (TEXT + 0x40, 0x40, &[0x07, 16])], b"");
    let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&tables).at(LOADED + 0x11);
    case.set(Register(12), 0x5555);
    case.stack = vec![1, LOADED + 0x45];
    let module = Module::new(case.sections.clone());
    let bytes: Vec<u8> = case.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = MemorySlice::new(Avma::new(STACK), &bytes);
    let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
    let mut images = [PlacedModule::new(AddrRange::from_size(Avma::new(LOADED), 0x1000), bias, &module)];
    let frames: Vec<_> =
        Walk::new(case.registers, &memory, ModuleMap::new(&mut images), case.options).collect();
    assert_eq!(frames[1].bytecode, Some(Avma::new(0x5555)));
}

#[test]
fn return_code_of_signals_is_known_at_each_of_its_instructions() {
    // pop eax; mov eax, 119; int 0x80
    let mut code = vec![0x90; 16];
    code.extend([0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80]);
    code.extend([0x90; 32]);
    let mut stack = vec![0u8; 160];
    // The signal's number, then the context.
    let mut put = |at: usize, value: u32| stack[at..at + 4].copy_from_slice(&value.to_le_bytes());
    put(4 + 28, 0xff00_0100);
    put(4 + 56, 0xf700_1005);
    for (at, sp) in [(16, 0xff00_0000), (17, 0xff00_0004), (22, 0xff00_0004)] {
        let mut case = Case::new(Arch::X86, &code).at(0xf700_1000 + at);
        case.set(Register(4), sp);
        let module = Module::new(case.sections.clone());
        let memory = MemorySlice::new(Avma::new(0xff00_0000), &stack);
        let bias = Bias::between(Avma::new(0xf700_1000), Svma::new(TEXT));
        let range = AddrRange::from_size(Avma::new(0xf700_1000), 0x1000);
        let mut images = [PlacedModule::new(range, bias, &module)];
        let mut walk = Walk::new(case.registers, &memory, ModuleMap::new(&mut images), case.options);
        walk.step();
        let frame = walk.next().expect("the interrupted frame");
        assert_eq!(frame.address, FrameAddress::Exact(Avma::new(0xf700_1005)), "{at}");
        assert_eq!(frame.stack_pointer.get(), 0xff00_0100);
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

const SAVES: [u8; 4] = [0x86, 2, 0x83, 3];

/// Functions of 32 bytes each: the CFA by the stack pointer, by rbp, by rbx, by an expression, and an outermost one.
fn five_functions() -> Vec<u8> {
    let rules: [&[u8]; 5] = [&[0x0e, 32], &[0x0c, 6, 16], &[0x0c, 3, 8], &[0x0f, 2, 0x77, 32], &[0x07, 16]];
    let instructions: Vec<Vec<u8>> = rules.iter().map(|rule| [rule, &SAVES[..]].concat()).collect();
    let functions: Vec<_> =
        (0..).zip(&instructions).map(|(at, rule)| (TEXT + 32 * at, 32, rule.as_slice())).collect();
    eh_frame(&functions, b"")
}

/// A stack of frames of four words, and the registers of its innermost one.
fn random_stack(random: &mut Random, depth: u64) -> (Registers, Vec<u64>) {
    let mut stack = Vec::new();
    // rbp and rbx as frame `at`, whose function is `kind`, has them.
    let kept = |kind: u64, at: u64| {
        let cfa = STACK + (at + 1) * 32;
        (if kind == 1 { cfa - 16 } else { at }, if kind == 2 { cfa - 8 } else { at + 1 })
    };
    let kinds: Vec<u64> = (0..=depth).map(|at| if at == depth { 4 } else { random.below(4) }).collect();
    let mut registers = Registers::new(Family::X86_64);
    for (at, kind) in (0..).zip(&kinds) {
        let (rbp, rbx) = kept(*kind, at);
        // Return addresses right behind a function's last byte are among them.
        let address = LOADED + 32 * kind + 1 + random.below(32);
        if at == 0 {
            // The first is what an empty place of a cache would count from.
            for (register, value) in [(0, STACK), (7, STACK), (6, rbp), (3, rbx), (16, address - 1)] {
                registers.set(Register(register), value);
            }
            if random.below(8) == 0 {
                registers.set(Register(16), 0);
            }
        } else {
            stack.extend([0, rbx, rbp, address]);
        }
    }
    stack.extend([0; 8]);
    (registers, stack)
}

#[test]
fn every_way_of_walking_gives_the_same_frames() {
    let tables = five_functions();
    let code = calls(0x100);
    let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&tables);
    case.sections.text.clear();
    let rules = Module::new(case.sections).compile();
    let image = || {
        let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
        PlacedModule::compiled(AddrRange::from_size(Avma::new(LOADED), 0x1000), bias, &rules)
    };
    let (mut plain, list) = ([image()], crate::ModuleList::new(vec![image()]));
    let plain = ModuleMap::new(&mut plain);
    let (mut random, mut longest, mut broken) = (Random(7), 0, 0);
    let mut caches = [Cache::new(), Cache::new()];
    for round in 0..if cfg!(miri) { 20 } else { 3000 } {
        let depth = random.below(40);
        let (registers, mut stack) = random_stack(&mut random, depth);
        if round % 3 == 0 && depth > 0 {
            // A word is something else: an address, nothing, or a place on the stack.
            let place = random.below(depth * 4) as usize;
            stack[place] =
                [0, u64::MAX, 1 << 63, LOADED + 7, STACK + 64, STACK - 8][random.below(6) as usize];
        }
        let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
        let memory = MemorySlice::new(Avma::new(STACK), &bytes);
        let options = Options {
            max_frames: if round % 5 == 0 { random.below(20) } else { 100 },
            scan_words: 0,
            recover: if round % 2 == 0 { Recover::All } else { Recover::Needed },
            ..Options::default()
        };
        let mut walk = Walk::new(registers, &memory, plain, options);
        let expected: Vec<Frame> = walk.by_ref().collect();
        let (ended, last) = (walk.ended(), walk.registers().iter().collect::<Vec<_>>());
        longest = longest.max(expected.len());
        broken += usize::from(matches!(ended, Some(WalkEnd::Failed(_))));
        for (images, cache) in [(plain, Some(0)), (list.images(), None), (list.images(), Some(1))] {
            for is_each in [false, true, false, true] {
                let mut walk = Walk::new(registers, &memory, images, options);
                if let Some(cache) = cache.and_then(|cache| caches.get_mut(cache)) {
                    walk = walk.with_cache(cache);
                }
                let mut frames = Vec::new();
                if is_each {
                    // In two parts.
                    walk.each(|frame| {
                        frames.push(*frame);
                        frames.len() != 5
                    });
                    walk.each(|frame| {
                        frames.push(*frame);
                        true
                    });
                } else {
                    frames.extend(walk.by_ref());
                }
                assert_eq!((frames, walk.ended()), (expected.clone(), ended), "round {round}");
                assert_eq!(walk.registers().iter().collect::<Vec<_>>(), last, "round {round}");
            }
        }
    }
    assert!(cfg!(miri) || (longest > 35 && (100..1500).contains(&broken)), "{longest}, {broken}");
}
