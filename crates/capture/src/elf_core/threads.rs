//! `NT_PRSTATUS`: one a thread, the one that stopped the process first. Linux `include/linux/elfcore.h`
//! (`elf_prstatus`) and each architecture's `elf_gregset_t`.

use super::header::Header;
use super::notes::{NT_ARM_TLS, NT_PRSTATUS, Note};
use crate::bytes::{u16_at, u32_at, word_at};
use crate::gregset::{registers, thread_pointer};
use crate::{Limits, Thread};
use backtrail_core::{Avma, Family};

/// Where `pr_cursig`, `pr_pid` and `pr_reg` begin.
struct Layout {
    pid: usize,
    registers: usize,
}

const SIGNAL_AT: usize = 12;
const LAYOUT_64: Layout = Layout { pid: 32, registers: 112 };
const LAYOUT_32: Layout = Layout { pid: 24, registers: 72 };

pub(super) fn read(
    header: &Header,
    notes: &[Note<'_>],
    limits: &Limits,
    told: &mut Vec<String>,
) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::new();
    let mut more = 0;
    for note in notes {
        match (note.kind, note.name) {
            (NT_PRSTATUS, b"CORE") if threads.len() < limits.threads => {
                threads.push(thread(header, note, told));
            }
            (NT_PRSTATUS, b"CORE") => more += 1,
            // The kernel writes a thread's further registers behind its first ones.
            (NT_ARM_TLS, b"LINUX") if more == 0 && header.arch.family() == Family::Aarch64 => {
                let pointer = word_at(note.data, 0, true).filter(|pointer| *pointer != 0);
                threads.last_mut().into_iter().for_each(|last| last.thread_pointer = pointer.map(Avma::new));
            }
            _ => {}
        }
    }
    if more > 0 {
        told.push(format!("{more} further threads are left out"));
    }
    // The kernel dumps the thread that stopped the process first; `gcore` dumps one that nothing stopped.
    let signal = notes.iter().find(|note| note.kind == NT_PRSTATUS).and_then(signal_of).unwrap_or_default();
    if let Some(first) = threads.first_mut() {
        first.is_crashed = signal != 0;
    }
    threads
}

/// `pr_reg` of each thread that has all of it. Behind it stands `pr_fpvalid`, with padding on 64-bit machines.
pub(super) fn raw_registers<'d>(
    header: &Header,
    notes: &[Note<'d>],
    limits: &Limits,
) -> Vec<(u32, &'d [u8])> {
    let (layout, behind) = if header.is_64 { (LAYOUT_64, 8) } else { (LAYOUT_32, 4) };
    let all = notes.iter().filter(|note| note.kind == NT_PRSTATUS && note.name == b"CORE" && !note.is_cut);
    let one = |note: &Note<'d>| {
        let end = note.data.len().checked_sub(behind)?;
        Some((u32_at(note.data, layout.pid)?, note.data.get(layout.registers..end)?))
    };
    all.take(limits.threads).filter_map(one).collect()
}

/// The signal that was being delivered.
pub(super) fn signal_of(note: &Note<'_>) -> Option<u16> {
    u16_at(note.data, SIGNAL_AT)
}

fn thread(header: &Header, note: &Note<'_>, told: &mut Vec<String>) -> Thread {
    let layout = if header.is_64 { LAYOUT_64 } else { LAYOUT_32 };
    let id = u32_at(note.data, layout.pid).map(u64::from);
    let data = note.data.get(layout.registers..).unwrap_or_default();
    let registers = registers(header.arch.family(), data);
    if registers.pc().is_none() || note.is_cut {
        let id = id.map(|id| format!(" {id}")).unwrap_or_default();
        told.push(format!("the registers of thread{id} are cut off at byte {:#x}", note.offset));
    }
    let thread_pointer = thread_pointer(header.arch.family(), data);
    Thread { id, name: None, registers, is_crashed: false, state: None, thread_pointer }
}
