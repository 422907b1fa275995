//! Go's special functions, on stacks made by hand.

use super::*;
use crate::runtime::{RuntimeFrame, RuntimeFunction, RuntimeTable};

/// Functions of 32 bytes each.
#[derive(Debug)]
struct Table(Vec<(RuntimeFunction, i32)>);

impl RuntimeTable for Table {
    fn frame_at(&self, at: Svma) -> Option<RuntimeFrame> {
        let index = usize::try_from(at.offset_from(Svma::new(TEXT))? / 32).ok()?;
        let (kind, depth) = *self.0.get(index)?;
        let function = Svma::new(TEXT + 32 * index as u64);
        Some(RuntimeFrame { covered: AddrRange::from_size(function, 32), function, depth, kind })
    }

    fn each(&self, give: &mut dyn FnMut(RuntimeFrame)) {
        (0..self.0.len() as u64)
            .filter_map(|index| self.frame_at(Svma::new(TEXT + 32 * index)))
            .for_each(give);
    }
}

/// Functions one after the other; each calls `target` at its byte 16, so that 21 is a return address.
fn code(targets: &[u64]) -> Vec<u8> {
    let function = |(index, target): (u64, &u64)| {
        let mut code = [0xcc; 32];
        let distance = (TEXT + 32 * target).wrapping_sub(TEXT + 32 * index + 21) as u32;
        code[16] = 0xe8;
        code[17..21].copy_from_slice(&distance.to_le_bytes());
        code
    };
    (0..).zip(targets).flat_map(function).collect()
}

/// Behind the call of a function.
fn behind_call(function: u64) -> u64 {
    LOADED + 32 * function + 21
}

fn walk(
    table: &Table,
    targets: &[u64],
    registers: &[(u8, u64)],
    stack: &[u64],
) -> (Vec<FrameAddress>, WalkEnd) {
    let code = code(targets);
    let mut case = Case::new(Arch::X86_64, &code);
    case.sections.runtime = Some(table);
    for (register, value) in registers {
        case.set(Register(*register), *value);
    }
    let module = Module::new(case.sections.clone());
    let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = MemorySlice::new(Avma::new(STACK), &bytes);
    let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
    let range = AddrRange::from_size(Avma::new(LOADED), 0x1000);
    let mut images = [PlacedModule::new(range, bias, &module)];
    let mut walk = Walk::new(case.registers, &memory, ModuleMap::new(&mut images), case.options);
    let frames: Vec<_> = walk.by_ref().collect();
    assert!(frames.iter().skip(1).all(|frame| frame.trust == Trust::RuntimeTable), "{frames:?}");
    (frames.iter().map(|frame| frame.address).collect(), walk.ended().unwrap())
}

fn exact(address: u64) -> FrameAddress {
    FrameAddress::Exact(Avma::new(address))
}

fn returns(address: u64) -> FrameAddress {
    FrameAddress::Return(Avma::new(address))
}

const PLAIN: (RuntimeFunction, i32) = (RuntimeFunction::Plain, 8);
const GOEXIT: (RuntimeFunction, i32) = (RuntimeFunction::Outermost, 0);

#[test]
fn depths_lead_to_the_goroutines_end() {
    let table = Table(vec![PLAIN, (RuntimeFunction::Plain, 24), GOEXIT]);
    // Behind the end are words of the heap that look like callers.
    let stack =
        [0, behind_call(1), 1, 2, 0, LOADED + 65, behind_call(1), 3, 4, 5, behind_call(0), behind_call(1)];
    let (frames, ended) = walk(&table, &[0, 0, 0], &[(16, LOADED + 8), (6, STACK)], &stack);
    assert_eq!(frames, [exact(LOADED + 8), returns(behind_call(1)), returns(LOADED + 65)]);
    assert_eq!(ended, WalkEnd::EndOfStack(End::ThreadStart));
}

#[test]
fn the_caller_of_an_injected_call_is_where_it_was_interrupted() {
    let table = Table(vec![PLAIN, (RuntimeFunction::Injected, 8), PLAIN, GOEXIT]);
    // A fault at the first instruction of function 2: one byte before is another function.
    let stack = [0, behind_call(1), 0, LOADED + 64, 0, LOADED + 97];
    let (frames, _) = walk(&table, &[1, 0, 0, 0], &[(16, LOADED + 8), (6, STACK)], &stack);
    assert_eq!(
        frames,
        [exact(LOADED + 8), returns(behind_call(1)), exact(LOADED + 64), returns(LOADED + 97)]
    );
}

#[test]
fn an_injected_call_of_arm64_has_saved_the_link_register() {
    let table = Table(vec![
        (RuntimeFunction::Plain, 16),
        (RuntimeFunction::Injected, 16),
        (RuntimeFunction::Plain, 0),
        (RuntimeFunction::Plain, 32),
        GOEXIT,
    ]);
    // `bl` at byte 16 of each function.
    let function = [[0xd5; 16], [0, 0, 0, 0x94, 0xd5, 0xd5, 0xd5, 0xd5, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let code = function.repeat(5);
    let mut case = Case::new(Arch::Arm64, &code).at(LOADED + 8);
    case.sections.runtime = Some(&table);
    // A leaf faulted before it had saved anything: its caller is in the pushed link register alone.
    case.stack = vec![LOADED + 52, 0, LOADED + 68, 0, LOADED + 96 + 20, 0, LOADED + 128 + 4, 0, 0, 0, 0];
    let (frames, ended) = case.walk();
    let frames: Vec<_> = frames.iter().map(|frame| frame.0 - LOADED).collect();
    assert_eq!(frames, [8, 52, 68, 96 + 20, 128 + 4]);
    assert_eq!(ended, WalkEnd::EndOfStack(End::ThreadStart));
}

#[test]
fn a_switch_of_stacks_leads_back_to_the_goroutine() {
    // 0 runs on the thread's stack, called by the switch 1, which 2 called from the goroutine's stack.
    let table = Table(vec![PLAIN, (RuntimeFunction::Switch, 0), (RuntimeFunction::Plain, 40), GOEXIT]);
    let caller_frame_pointer = STACK + 8 * (8 + 5);
    let stack = [
        caller_frame_pointer,
        behind_call(1),
        2,
        0x16,
        behind_call(2),
        0,
        0,
        // The goroutine's: the return address into the caller, and the caller's frame.
        0,
        behind_call(2),
        1,
        2,
        3,
        4,
        0,
        LOADED + 97,
        0,
    ];
    let registers = [(16, LOADED + 8), (6, STACK)];
    let (frames, ended) = walk(&table, &[1, 0, 1, 0], &registers, &stack);
    assert_eq!(
        frames,
        [exact(LOADED + 8), returns(behind_call(1)), returns(behind_call(2)), returns(LOADED + 97)]
    );
    assert_eq!(ended, WalkEnd::EndOfStack(End::ThreadStart));
    // Where nothing proves the way back, there is none.
    let mut broken = stack;
    broken[0] = STACK + 8 * 12;
    let (frames, ended) = walk(&table, &[1, 0, 1, 0], &registers, &broken);
    assert_eq!((frames.len(), ended), (2, WalkEnd::EndOfStack(End::StackSwitch)));
}

#[test]
fn a_saved_stack_pointer_leads_back_over_a_switch() {
    let r12 = Register(12);
    let table = Table(vec![PLAIN, (RuntimeFunction::Saved(r12), 16), PLAIN, GOEXIT]);
    let stack = [0, behind_call(1), 2, 0x16, 9, 9, 0, behind_call(2), 0, LOADED + 97];
    let registers = [(16, LOADED + 8), (6, STACK), (12, STACK + 8 * 5)];
    let (frames, _) = walk(&table, &[1, 0, 1, 0], &registers, &stack);
    assert_eq!(
        frames,
        [exact(LOADED + 8), returns(behind_call(1)), returns(behind_call(2)), returns(LOADED + 97)]
    );
}

#[test]
fn what_leaves_a_stack_ends_it() {
    for kind in [RuntimeFunction::Leave, RuntimeFunction::Unknown, RuntimeFunction::Top] {
        let table = Table(vec![PLAIN, (kind, 8), PLAIN]);
        // What its row would lead to is no code: 2, or a stale call of the runtime's own.
        for word in [2, behind_call(2)] {
            let stack = [0, behind_call(1), 0, word, 0x16, behind_call(2)];
            let (frames, ended) = walk(&table, &[1, 0, 0], &[(16, LOADED + 8), (6, STACK)], &stack);
            let end = if kind == RuntimeFunction::Top { End::ThreadStart } else { End::StackSwitch };
            assert_eq!((frames.len(), ended), (2, WalkEnd::EndOfStack(end)));
        }
    }
}

#[test]
fn compiled_images_keep_what_is_special() {
    let table = Table(vec![PLAIN, (RuntimeFunction::Injected, 8), PLAIN, GOEXIT]);
    let code = code(&[1, 0, 0, 0]);
    let mut case = Case::new(Arch::X86_64, &code).at(LOADED + 8);
    case.sections.runtime = Some(&table);
    // Debug info knows nothing of what is special.
    let debug_frame = eh_frame(&[(TEXT, 128, &[0x0e, 16])], b"");
    case.sections.eh_frame = Some(Section::new(Svma::new(0x9000), &debug_frame));
    let rules = Module::new(case.sections).compile();
    let stack = [0, behind_call(1), 0, LOADED + 64, 0, LOADED + 97, 1, 2, 3];
    let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = MemorySlice::new(Avma::new(STACK), &bytes);
    let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
    let range = AddrRange::from_size(Avma::new(LOADED), 0x1000);
    let mut images = [PlacedModule::compiled(range, bias, &rules)];
    let mut walk = Walk::new(case.registers, &memory, ModuleMap::new(&mut images), case.options);
    let frames: Vec<_> = walk.by_ref().map(|frame| frame.address).collect();
    assert_eq!(
        frames,
        [exact(LOADED + 8), returns(behind_call(1)), exact(LOADED + 64), returns(LOADED + 97)]
    );
    assert_eq!(walk.ended(), Some(WalkEnd::EndOfStack(End::ThreadStart)));
}
