//! Code that was made at run time, and what may not be taken for a caller.

use super::*;

/// Executable memory without a file, and where it lies.
const GENERATED: u64 = 0x7e00_0000_0000;

/// A call through a register before each fifth byte: only such lead from an image to generated code.
fn calls_of_registers(length: usize) -> Vec<u8> {
    [0x90, 0x90, 0x90, 0xff, 0xd0].into_iter().cycle().take(length).collect()
}

fn walk(
    generated: &[u8],
    code: &[u8],
    registers: &[(u8, u64)],
    stack: &[u64],
) -> (Vec<(u64, Trust)>, WalkEnd) {
    let mut case = Case::new(Arch::X86_64, code);
    for (register, value) in registers {
        case.set(Register(*register), *value);
    }
    let module = Module::new(case.sections.clone());
    let mut memory = TwoParts { generated: generated.to_vec(), stack: Vec::new() };
    memory.stack = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
    let image = PlacedModule::new(AddrRange::from_size(Avma::new(LOADED), 0x1000), bias, &module);
    let size = generated.len() as u64;
    let mut images = [image, PlacedModule::unknown(AddrRange::from_size(Avma::new(GENERATED), size))];
    let mut walk = Walk::new(case.registers, &memory, ModuleMap::new(&mut images), case.options);
    let frames = walk.by_ref().map(|frame| (frame.address.raw().get(), frame.trust)).collect();
    (frames, walk.ended().unwrap())
}

#[derive(Debug)]
struct TwoParts {
    generated: Vec<u8>,
    stack: Vec<u8>,
}

impl ReadMemory for TwoParts {
    fn read(&self, at: Avma, into: &mut [u8]) -> Result<(), backtrail_core::Unreadable> {
        let generated = MemorySlice::new(Avma::new(GENERATED), &self.generated);
        generated.read(at, into).or_else(|_| MemorySlice::new(Avma::new(STACK), &self.stack).read(at, into))
    }
}

/// An interpreter: jumps through a table, no calls.
fn interpreter() -> Vec<u8> {
    [0xff, 0xe0].repeat(0x80)
}

#[test]
fn interpreters_are_left_by_the_chain_of_frame_pointers() {
    // As HotSpot's: frames were entered by `jmp *(table)`, their return addresses follow no call. Words between them are
    // behind calls: what was called before.
    let at = |offset| GENERATED + offset;
    let stale = LOADED + 0x25;
    let stack =
        [1, stale, STACK + 48, at(0x40), stale, 7, STACK + 80, at(0x40), stale, 8, 0, LOADED + 5, stale, 0];
    let registers = [(16, at(0x21)), (6, STACK + 16)];
    let (frames, _) = walk(&interpreter(), &calls_of_registers(0x100), &registers, &stack);
    let by_chain = |address| (address, Trust::FramePointer);
    let expected = [by_chain(at(0x40)), by_chain(at(0x40)), by_chain(LOADED + 5)];
    assert_eq!(frames.get(1..4), Some(&expected[..]), "{frames:x?}");
    // A chain that leads to no call in an image, downwards, or to data proves nothing.
    for (place, word) in [(11, LOADED + 6), (6, STACK + 48), (6, STACK + 16), (7, 0x1234_5678)] {
        let mut broken = stack;
        broken[place] = word;
        let (frames, _) = walk(&interpreter(), &calls_of_registers(0x100), &registers, &broken);
        assert!(!frames.contains(&by_chain(at(0x40))), "{place}: {frames:x?}");
    }
}

#[test]
fn compiled_code_is_left_by_the_way_to_its_return() {
    // call rax; add rsp, 0x20; pop rbp; cmp rsp, [r15 + 0x340]; ja; ret. The frame pointer is a number like any.
    let mut generated = vec![0xcc; 0x100];
    let code = [
        0xff, 0xd0, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0xa7, 0x40, 3, 0, 0, 0x0f, 0x87, 1, 0, 0, 0,
        0xc3,
    ];
    generated[0x40..0x40 + code.len()].copy_from_slice(&code);
    let frame_pointer = STACK + 8 * 8;
    let stack = [1, 2, 3, 4, frame_pointer, LOADED + 5, 6, 7, 0, LOADED + 10, 0];
    // The chain would leave out the caller.
    let registers = [(16, GENERATED + 0x42), (6, frame_pointer)];
    let (frames, _) = walk(&generated, &calls_of_registers(0x100), &registers, &stack);
    let expected = [(LOADED + 5, Trust::Analysis), (LOADED + 10, Trust::FramePointer)];
    assert_eq!(frames.get(1..3), Some(&expected[..]), "{frames:x?}");
    // A direct call within an image leads to no generated code: such a word is left over. Seen below HotSpot's frames.
    let (frames, _) = walk(&generated, &calls(0x100), &registers, &stack);
    assert!(!frames.contains(&(LOADED + 5, Trust::Analysis)), "{frames:x?}");
}

#[test]
fn compiled_calls_are_marked_by_what_follows_them() {
    // HotSpot since version 20: `nopl 0x500069c(%rax,%rax,1)` behind each call; here behind a second one on the way, too.
    let marked = [0x0f, 0x1f, 0x84, 0, 0x9c, 6, 0, 5];
    let (call, leave) = ([0xff, 0xd0], [0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3]);
    let mut generated = vec![0xcc; 0x100];
    let code = [&call[..], &marked, &call, &marked, &leave].concat();
    generated[0x40..0x40 + code.len()].copy_from_slice(&code);
    let stack = [1, 2, 3, 4, 7, LOADED + 5, 6, 7, 0, 0, 0];
    let registers = [(16, GENERATED + 0x42), (6, 7)];
    let (frames, _) = walk(&generated, &calls_of_registers(0x100), &registers, &stack);
    assert_eq!(frames.get(1), Some(&(LOADED + 5, Trust::Analysis)), "{frames:x?}");
}

#[test]
fn interpreted_and_compiled_frames_alternate() {
    // An interpreted frame, which was entered by a jump, then a compiled one without a frame pointer (32 bytes, and a number
    // in `rbp`), then an interpreted one again. Frame pointers alone lead nowhere.
    let at = |offset| GENERATED + offset;
    let mut generated = interpreter();
    let code = [0xff, 0xd0, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3];
    generated[0x40..0x40 + code.len()].copy_from_slice(&code);
    let stale = LOADED + 5;
    let stack = |number: u64, last: u64| {
        // Two interpreted frames; then what is compiled: four words, its saved frame pointer, its return address.
        let interpreted = [1, stale, STACK + 32, at(0x60), STACK + 56, at(0x42)];
        // By frame pointers `number` would be one, and what is behind it a return address.
        let compiled = [3, number, at(0x42), 4, STACK + 12 * 8, at(0x80)];
        [&interpreted[..], &compiled, &[0, last, 0]].concat()
    };
    let by_chain = |address| (address, Trust::FramePointer);
    let walk = |number, last| {
        let registers = [(16, at(0x21)), (6, STACK + 16)];
        super::generated::walk(&generated, &calls_of_registers(0x100), &registers, &stack(number, last)).0
    };
    for number in [0, 7, STACK + 24] {
        let frames = walk(number, LOADED + 10);
        let expected =
            [by_chain(at(0x60)), by_chain(at(0x42)), (at(0x80), Trust::Analysis), by_chain(LOADED + 10)];
        assert_eq!(frames.get(1..5), Some(&expected[..]), "{number:x}: {frames:x?}");
    }
    // Where it does not end behind a call in an image, none of it is believed.
    let frames = walk(7, 0x1234_5678);
    assert!(!frames.contains(&by_chain(at(0x60))), "{frames:x?}");
}

#[test]
fn arguments_that_an_adapter_has_put_between_frames_are_passed_by() {
    // Compiled as above, called by an interpreter's frame below which the stack pointer of the compiled code is kept.
    let mut generated = interpreter();
    let code = [0xff, 0xd0, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3];
    generated[0x40..0x40 + code.len()].copy_from_slice(&code);
    generated[0x50..0x52].copy_from_slice(&[0xff, 0xd0]);
    let walk = |kept: u64| {
        let frame_pointer = STACK + 2 * 8;
        // The interpreter's frame, two arguments, then the compiled frame: 32 bytes, what it saved, its return address.
        let end = STACK + 12 * 8;
        let stack =
            [1, kept, end, GENERATED + 0x42, 5, 5, 0, 0, 0, 0, end, GENERATED + 0x52, 0, LOADED + 10, 0];
        let registers = [(16, GENERATED + 0x21), (6, frame_pointer)];
        super::generated::walk(&generated, &calls(0x100), &registers, &stack).0
    };
    let compiled = (GENERATED + 0x42, Trust::FramePointer);
    let expected = [compiled, (GENERATED + 0x52, Trust::Analysis), (LOADED + 10, Trust::FramePointer)];
    assert_eq!(walk(STACK + 6 * 8).get(1..), Some(&expected[..]), "{:x?}", walk(STACK + 6 * 8));
    for kept in [0, STACK + 5 * 8, STACK + 6 * 8 + 1, STACK + 3 * 8, STACK + (1 << 20)] {
        assert_ne!(walk(kept).get(2), Some(&expected[1]), "{kept:x}");
    }
}

#[test]
fn a_caller_has_to_be_code_whatever_a_table_says() {
    let code = calls(0x100);
    let table = eh_frame(&[(TEXT, 0x100, &[])], b"");
    for word in [0x2, 0x16, STACK + 8, LOADED + 0x2005] {
        for uses_cache in [false, true] {
            let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&table).at(LOADED + 0x21);
            case.stack = vec![LOADED + 5, word, LOADED + 10, 0];
            let module = Module::new(case.sections.clone());
            let bytes: Vec<u8> = case.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
            let memory = MemorySlice::new(Avma::new(STACK), &bytes);
            let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
            let mut images =
                [PlacedModule::new(AddrRange::from_size(Avma::new(LOADED), 0x1000), bias, &module)];
            let images = ModuleMap::new(&mut images);
            let mut cache = Cache::new();
            for _ in 0..3 {
                let mut walk = Walk::new(case.registers, &memory, images, case.options);
                if uses_cache {
                    walk = walk.with_cache(&mut cache);
                }
                let mut frames = Vec::new();
                walk.each(|frame| {
                    frames.push(frame.address.raw().get());
                    true
                });
                assert_eq!(frames, [LOADED + 0x21, LOADED + 5]);
                assert_eq!(walk.ended(), Some(WalkEnd::Failed(Failure::NotCode(Avma::new(word)))));
            }
        }
    }
}

#[test]
fn an_address_where_a_function_starts_that_nothing_called_is_exact() {
    // `makecontext` has the function return to the start of `__start_context`.
    let mut code = calls(0x100);
    code[0x70..0x80].fill(0xcc);
    let table = eh_frame(&[(TEXT, 0x70, &[]), (TEXT + 0x80, 0x20, &[0x07, 16])], b"");
    let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&table).at(LOADED + 0x21);
    case.stack = vec![LOADED + 0x80, LOADED + 10, 0];
    let module = Module::new(case.sections.clone());
    let bytes: Vec<u8> = case.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = MemorySlice::new(Avma::new(STACK), &bytes);
    let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
    let mut images = [PlacedModule::new(AddrRange::from_size(Avma::new(LOADED), 0x1000), bias, &module)];
    let images = ModuleMap::new(&mut images);
    let mut cache = Cache::new();
    for _ in 0..3 {
        let mut walk = Walk::new(case.registers, &memory, images, case.options).with_cache(&mut cache);
        let frames: Vec<_> = walk.by_ref().map(|frame| frame.address).collect();
        let exact = |address| FrameAddress::Exact(Avma::new(address));
        assert_eq!(frames, [exact(LOADED + 0x21), exact(LOADED + 0x80)]);
        assert_eq!(walk.ended(), Some(WalkEnd::EndOfStack(End::Undefined)));
    }
}

#[test]
fn a_scan_that_nothing_confirms_gives_up() {
    // A heap full of old return addresses, in code without tables.
    let code = calls(0x800);
    let mut case = Case::new(Arch::X86_64, &code).at(LOADED + 0x21);
    case.stack = (0..200).map(|index| if index % 3 == 2 { LOADED + 5 * index } else { 7 }).collect();
    let (frames, ended) = case.walk();
    assert!(frames.len() <= 4, "{frames:x?}");
    assert_eq!(frames.get(1).map(|frame| frame.1), Some(Trust::Scan));
    assert!(matches!(ended, WalkEnd::Failed(Failure::NothingCertain(_))), "{ended:?}");
}

#[test]
fn a_scan_passes_by_calls_that_cannot_have_led_there() {
    // A call in the image leads on by its table to what is no caller; a direct call of the image leads to no generated
    // code; the call through a register does.
    let mut code = calls(0x100);
    code[0x40..0x48].copy_from_slice(&[0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0]);
    let table = eh_frame(&[(TEXT, 0x100, &[0x0e, 16])], b"");
    let mut case = Case::new(Arch::X86_64, &code).with_eh_frame(&table).at(GENERATED + 0x21);
    case.stack = vec![1, LOADED + 5, LOADED + 0x48, 9, 8, LOADED + 0x48, 2, LOADED + 10, 0, 0, 0];
    let module = Module::new(case.sections.clone());
    let memory = TwoParts {
        generated: interpreter(),
        stack: case.stack.iter().flat_map(|word| word.to_le_bytes()).collect(),
    };
    let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
    let mut images = [
        PlacedModule::new(AddrRange::from_size(Avma::new(LOADED), 0x1000), bias, &module),
        PlacedModule::unknown(AddrRange::from_size(Avma::new(GENERATED), 0x100)),
    ];
    let mut walk = Walk::new(case.registers, &memory, ModuleMap::new(&mut images), case.options);
    let frames: Vec<_> = walk.by_ref().map(|frame| (frame.stack_pointer.get(), frame.trust)).collect();
    assert_eq!(frames.get(1), Some(&(STACK + 48, Trust::Scan)), "{frames:x?}");
    assert_eq!(frames.get(2), Some(&(STACK + 64, Trust::Cfi)), "{frames:x?}");
}
