//! The promise of handler mode: a walk over compiled images allocates nothing.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test's helpers may"
)]

use backtrail_core::{AddrRange, Arch, Avma, Bias, Family, FrameAddress, MemorySlice, Registers, Svma};
use backtrail_testkit::Guarded;
use backtrail_unwind::{
    Cache, End, Module, ModuleMap, Options, PlacedModule, Recover, Section, Sections, Walk, WalkEnd,
};

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

/// A CIE and three FDEs: one row with saved registers, one whose CFA is an expression, one that is outermost.
fn eh_frame() -> Vec<u8> {
    let mut bytes = Vec::new();
    entry(&mut bytes, &[&[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1]]);
    let fde = |bytes: &mut Vec<u8>, start: u64, instructions: &[u8]| {
        let back = u32::try_from(bytes.len() + 4).unwrap().to_le_bytes();
        entry(bytes, &[&back, &start.to_le_bytes(), &0x100u64.to_le_bytes(), &[0], instructions]);
    };
    // rbp and rbx saved, 32 bytes of frame
    fde(&mut bytes, 0x1000, &[0x0e, 32, 0x86, 2, 0x83, 3]);
    // DW_OP_breg7 16, DW_OP_nop
    fde(&mut bytes, 0x1100, &[0x0f, 3, 0x77, 16, 0x96]);
    fde(&mut bytes, 0x1200, &[0x07, 16]);
    bytes.extend([0; 4]);
    bytes
}

fn entry(bytes: &mut Vec<u8>, parts: &[&[u8]]) {
    let mut body = parts.concat();
    body.resize(body.len().next_multiple_of(4), 0);
    bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
    bytes.extend(body);
}

#[test]
fn nothing_is_allocated_while_walking() {
    let eh_frame = eh_frame();
    let text = [0xcc; 0x300];
    let sections = Sections {
        arch: Some(Arch::X86_64),
        image_base: Svma::new(0),
        eh_frame: Some(Section::new(Svma::new(0x8000), &eh_frame)),
        text: vec![Section::new(Svma::new(0x1000), &text)],
        ..Sections::default()
    };
    let rules = Module::new(sections).compile();
    let bias = Bias::between(Avma::new(0x7000_1000), Svma::new(0x1000));
    let range = AddrRange::from_size(Avma::new(0x7000_1000), 0x300);
    let mut images = [PlacedModule::compiled(range, bias, &rules)];
    let images = ModuleMap::new(&mut images);
    // 0: in the first function; 1: in the second; 2: outermost; and below them a recursion of the first.
    let mut stack: Vec<u64> = Vec::new();
    for _ in 0..1000 {
        stack.extend([0, 11, 22, 0x7000_1010]);
    }
    stack.extend([0, 33, 44, 0x7000_1110, 55, 0x7000_1210, 0, 0]);
    let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let memory = MemorySlice::new(Avma::new(0x7fff_0000), &bytes);
    let mut registers = Registers::new(Family::X86_64);
    registers.set(Family::X86_64.pc(), 0x7000_1010);
    registers.set(Family::X86_64.sp(), 0x7fff_0000);
    registers.set(Family::X86_64.fp(), 1);
    let mut cache = Cache::new();
    let ways = [Recover::All, Recover::Needed].into_iter().flat_map(|way| [(way, false), (way, true)]);
    for (recover, is_each) in ways {
        Guarded::forbid(true);
        let options = Options { recover, ..Options::default() };
        let mut walk = Walk::new(registers, &memory, images, options).with_cache(&mut cache);
        let (mut count, mut last) = (0, None);
        if is_each {
            walk.each(|frame| {
                count += 1;
                last = Some(frame.address);
                true
            });
        } else {
            for frame in walk.by_ref() {
                count += 1;
                last = Some(frame.address);
            }
        }
        let (ended, rbp) = (walk.ended(), walk.registers().fp());
        // A wild jump takes the methods without tables, which read memory and find nothing.
        registers.set(Family::X86_64.pc(), 0);
        let lost = Walk::new(registers, &memory, images, options).count();
        registers.set(Family::X86_64.pc(), 0x7000_1010);
        Guarded::forbid(false);
        assert_eq!(count, 1003);
        assert_eq!(last, Some(FrameAddress::Return(Avma::new(0x7000_1210))));
        assert_eq!(ended, Some(WalkEnd::EndOfStack(End::Undefined)));
        assert_eq!(rbp, Some(Avma::new(44)));
        assert_eq!(lost, 1);
    }
}
