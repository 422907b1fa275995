//! Which bytes are a thread's stack.

use super::maps::Maps;
use super::options::Options;
use super::target::Target;
use crate::bytes::word_at;
use crate::gregset;
use crate::procfs::{Calling, parse_syscall};
use backtrail_core::{AddrRange, Arch, Avma, Family, Registers};

/// Below the stack pointer, what a function may use without moving it. System V ABI x86_64, 3.2.2.
const RED_ZONE: u64 = 128;
/// Copied where the mapped ranges do not have the stack pointer: a thread that began after they were read.
const UNKNOWN: u64 = 64 << 10;

/// The range to copy for a stack pointer, and whether the stack goes on behind it.
pub(super) fn range(stack_pointer: Avma, maps: &Maps, options: &Options) -> (AddrRange<Avma>, bool) {
    let start = Avma::new(stack_pointer.get().saturating_sub(RED_ZONE));
    let end = maps.at(stack_pointer).map(|mapping| mapping.range.end());
    let most = options.stack_bytes.saturating_add(RED_ZONE);
    let Some(end) = end else { return (AddrRange::from_size(start, most.min(UNKNOWN)), false) };
    let start = maps.at(start).map_or(stack_pointer, |_| start);
    let whole = end.offset_from(start).unwrap_or_default();
    (AddrRange::from_size(start, whole.min(most)), whole > most)
}

/// The stack pointer among general registers as the kernel lays them out: its place is the only thing that is needed
/// while the thread stands still.
pub(super) fn stack_pointer(arch: Arch, bytes: &[u8]) -> Option<Avma> {
    let (index, is_64) = match arch.family() {
        Family::X86_64 => (19, true),
        Family::X86 => (15, false),
        Family::Aarch64 => (31, true),
        Family::Arm => (13, false),
        _ => return None,
    };
    word_at(bytes, index * if is_64 { 8 } else { 4 }, is_64).map(Avma::new)
}

/// Registers and stack of a thread that stands still without us, as far as the kernel tells: the stack pointer, the program
/// counter, and what the registers of its system call's arguments have. One of these is where `vfork` of glibc and musl keeps
/// its return address, which must not be on the stack that parent and child share.
pub(super) fn without_stopping(
    target: &Target,
    id: u32,
    options: &Options,
    maps: &Maps,
) -> Option<(Registers, Avma, Vec<u8>)> {
    let calling = target.of_thread(id, "syscall", parse_syscall)?;
    let Calling::Waiting { call, stack_pointer, program_counter } = calling else { return None };
    if program_counter.get() == 0 {
        return None;
    }
    let family = target.arch().family();
    let mut registers = Registers::new(family);
    registers.set(family.sp(), stack_pointer.get());
    registers.set(family.pc(), program_counter.get());
    if let Some(call) = &call {
        gregset::set_arguments(&mut registers, family, call);
    }
    let (range, _) = range(stack_pointer, maps, options);
    let mut bytes = vec![0; usize::try_from(range.size()).ok()?];
    let size = target.memory().copy(range.start(), &mut bytes);
    bytes.truncate(size);
    Some((registers, range.start(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_reaches_to_the_end_of_its_mapping_or_to_the_limit() {
        let maps = Maps::parse(b"10000-90000 rw-p 0 00:00 0 [stack]\n", 10);
        let options = Options { stack_bytes: 0x10000, ..Options::default() };
        let at = |sp: u64| {
            let (range, is_cut) = range(Avma::new(sp), &maps, &options);
            (range.start().get(), range.end().get(), is_cut)
        };
        assert_eq!(at(0x8f000), (0x8f000 - 128, 0x90000, false));
        assert_eq!(at(0x20000), (0x20000 - 128, 0x30000, true));
        // The red zone is not mapped.
        assert_eq!(at(0x10010), (0x10010, 0x10010 + 0x10080, true));
        // A stack that the list does not have yet.
        assert_eq!(at(0x200_0000), (0x200_0000 - 128, 0x200_ff80, false));
        assert_eq!(at(0).0, 0);
    }
}
