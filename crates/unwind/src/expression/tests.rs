use super::*;
use backtrail_core::{Family, MemorySlice};

const MEMORY: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

fn run_as(family: Family, bytes: &[u8], cfa: Option<u64>) -> Outcome<u64> {
    let mut registers = Registers::new(family);
    registers.set(Register(3), 0x1000);
    registers.set(family.sp(), 0x2000);
    let memory = MemorySlice::new(Avma::new(0x1000), &MEMORY);
    let bias = Bias::between(Avma::new(0x50_0000), Svma::new(0));
    evaluate(bytes, &Context { registers: &registers, memory: &memory, bias, cfa })
}

fn run(bytes: &[u8]) -> Outcome<u64> {
    run_as(Family::X86_64, bytes, None)
}

#[test]
fn constants_have_their_widths_and_signs() {
    assert_eq!(run(&[0x30]), Ok(0));
    assert_eq!(run(&[0x4f]), Ok(31));
    assert_eq!(run(&[0x08, 0xff]), Ok(0xff));
    assert_eq!(run(&[0x09, 0xff]), Ok(u64::MAX));
    assert_eq!(run(&[0x0a, 0xfe, 0xff]), Ok(0xfffe));
    assert_eq!(run(&[0x0b, 0xfe, 0xff]), Ok(u64::MAX - 1));
    assert_eq!(run(&[0x0c, 1, 0, 0, 0x80]), Ok(0x8000_0001));
    assert_eq!(run(&[0x0d, 1, 0, 0, 0x80]), Ok(0xffff_ffff_8000_0001));
    assert_eq!(run(&[0x0e, 1, 2, 3, 4, 5, 6, 7, 8]), Ok(0x0807_0605_0403_0201));
    assert_eq!(run(&[0x10, 0x80, 0x01]), Ok(128));
    assert_eq!(run(&[0x11, 0x7f]), Ok(u64::MAX));
    assert_eq!(run(&[0x03, 0, 1, 0, 0, 0, 0, 0, 0]), Ok(0x50_0100));
    assert_eq!(run_as(Family::X86, &[0x03, 0, 1, 0, 0], None), Ok(0x50_0100));
}

#[test]
fn values_are_moved_about() {
    assert_eq!(run(&[0x31, 0x32, 0x12, 0x22, 0x1c]), Ok(1u64.wrapping_sub(4)));
    assert_eq!(run(&[0x31, 0x32, 0x13]), Ok(1));
    assert_eq!(run(&[0x31, 0x32, 0x14]), Ok(1));
    assert_eq!(run(&[0x35, 0x36, 0x37, 0x15, 2]), Ok(5));
    assert_eq!(run(&[0x31, 0x34, 0x16, 0x1c]), Ok(3));
    // rot: 1 2 3 becomes 3 1 2
    assert_eq!(run(&[0x31, 0x32, 0x33, 0x17]), Ok(2));
    assert_eq!(run(&[0x31, 0x32, 0x33, 0x17, 0x13]), Ok(1));
    assert_eq!(run(&[0x31, 0x32, 0x33, 0x17, 0x13, 0x13]), Ok(3));
}

#[test]
fn arithmetic_is_signed_where_dwarf_says_so() {
    let minus = |value: i8| [0x09, value.cast_unsigned()];
    let pair =
        |a: i8, b: i8, op: u8| run(&[&minus(a)[..], &minus(b)[..], &[op]].concat()).map(u64::cast_signed);
    assert_eq!(pair(-7, 2, 0x1b), Ok(-3));
    assert_eq!(pair(7, 3, 0x1d), Ok(1));
    assert_eq!(pair(-7, 3, 0x1e), Ok(-21));
    assert_eq!(pair(6, 3, 0x1a), Ok(2));
    assert_eq!(pair(6, 3, 0x21), Ok(7));
    assert_eq!(pair(6, 3, 0x27), Ok(5));
    assert_eq!(pair(3, 4, 0x24), Ok(48));
    assert_eq!(pair(-16, 2, 0x26), Ok(-4));
    assert_eq!(pair(-16, 100, 0x26), Ok(-1));
    assert_eq!(pair(-1, 60, 0x25), Ok(15));
    assert_eq!(pair(1, 64, 0x24), Ok(0));
    assert_eq!(run(&[0x09, 0xf0, 0x19]), Ok(16));
    assert_eq!(run(&[0x31, 0x1f]), Ok(u64::MAX));
    assert_eq!(run(&[0x31, 0x20]), Ok(u64::MAX - 1));
    assert_eq!(run(&[0x31, 0x23, 0x80, 0x02]), Ok(257));
    for (op, expected) in [(0x29, 0), (0x2a, 0), (0x2b, 0), (0x2c, 1), (0x2d, 1), (0x2e, 1)] {
        assert_eq!(pair(-1, 1, op), Ok(expected), "{op:#x}");
    }
    assert_eq!(run_as(Family::X86, &[0x30, 0x31, 0x1c], None), Ok(0xffff_ffff));
    assert_eq!(run_as(Family::X86, &[0x30, 0x31, 0x1c, 0x32, 0x1b], None), Ok(0));
}

#[test]
fn registers_memory_and_the_cfa() {
    assert_eq!(run(&[0x73, 8]), Ok(0x1008));
    assert_eq!(run(&[0x53]), Ok(0x1000));
    assert_eq!(run(&[0x90, 3]), Ok(0x1000));
    assert_eq!(run(&[0x92, 7, 0x78]), Ok(0x1ff8));
    assert_eq!(run(&[0x73, 0, 0x06]), Ok(0x8807_0605_0403_0201));
    assert_eq!(run(&[0x73, 0, 0x94, 2]), Ok(0x0201));
    assert_eq!(run_as(Family::X86, &[0x73, 0, 0x06], None), Ok(0x0403_0201));
    assert_eq!(run_as(Family::X86_64, &[0x23, 8], Some(0x7000)), Ok(0x7008));
    assert_eq!(run_as(Family::X86_64, &[0x9c, 0x22], Some(0x7000)), Ok(0xe000));
    assert_eq!(run(&[0x9c]), Err(ExpressionError::Operation(0x9c)));
    assert_eq!(run(&[0x74, 0]), Err(ExpressionError::MissingRegister(Register(4))));
    let address = Avma::new(0x100a);
    assert_eq!(run(&[0x73, 10, 0x06]), Err(ExpressionError::Unreadable(Unreadable { address })));
}

#[test]
fn branches_go_both_ways_and_loops_end() {
    // 1 if the condition holds, 2 else
    let choose = |condition: u8| run(&[condition, 0x28, 4, 0, 0x32, 0x2f, 1, 0, 0x31]);
    assert_eq!(choose(0x31), Ok(1));
    assert_eq!(choose(0x30), Ok(2));
    assert_eq!(run(&[0x2f, 0xfd, 0xff]), Err(ExpressionError::TooLong));
    assert_eq!(run(&[0x2f, 0, 0x80]), Err(ExpressionError::Branch));
    assert_eq!(run(&[0x2f, 1, 0]), Err(ExpressionError::Branch));
}

#[test]
fn faults_have_their_names() {
    assert_eq!(run(&[]), Err(ExpressionError::StackUnderflow));
    assert_eq!(run(&[0x22]), Err(ExpressionError::StackUnderflow));
    assert_eq!(run(&[0x0c, 1]), Err(ExpressionError::Truncated));
    assert_eq!(run(&[0x31, 0x30, 0x1b]), Err(ExpressionError::DivisionByZero));
    assert_eq!(run(&[0x31, 0x30, 0x1d]), Err(ExpressionError::DivisionByZero));
    assert_eq!(run(&[0x31; 33]), Err(ExpressionError::StackOverflow));
    assert_eq!(run(&[0x73, 0, 0x94, 9]), Err(ExpressionError::Operation(0x94)));
    for operation in [0x18, 0x91, 0x93, 0x97, 0xa3, 0xe0, 0xff] {
        assert_eq!(run(&[operation]), Err(ExpressionError::Operation(operation)));
    }
    // The lowest number by minus one has no positive.
    let lowest = [0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b];
    assert_eq!(run(&lowest), Ok(1 << 63));
}
