//! Threads: registers, names, stacks.

use super::Dump;
use crate::{Limits, Thread};
use backtrail_core::{Avma, Registers};
use minidump::{
    MinidumpBreakpadInfo, MinidumpContext, MinidumpException, MinidumpThreadList, MinidumpThreadNames,
};

/// The threads, and the memory that belongs to each.
pub(super) struct Threads<'d> {
    pub(super) threads: Vec<Thread>,
    pub(super) stacks: Vec<(Avma, &'d [u8])>,
}

pub(super) fn read<'d>(
    dump: &Dump<'_, 'd>,
    list: &MinidumpThreadList<'_>,
    exception: Option<&MinidumpException<'_>>,
    limits: &Limits,
    notes: &mut Vec<String>,
) -> Threads<'d> {
    let names: MinidumpThreadNames = dump.file.get_stream().unwrap_or_default();
    let writer = dump.file.get_stream::<MinidumpBreakpadInfo>().ok().and_then(|info| info.dump_thread_id);
    let crashed = exception.map(MinidumpException::get_crashing_thread_id);
    let memory = dump.file.get_memory().unwrap_or_default();
    let (mut threads, mut stacks) = (Vec::new(), Vec::new());
    for raw in list.threads.iter().take(limits.threads) {
        let id = raw.raw.thread_id;
        let is_crashed = crashed == Some(id);
        // Where a thread crashed its own context is that of the handler, which ran on top of it.
        let fault = exception
            .filter(|_| is_crashed)
            .and_then(|exception| exception.context(&dump.system, dump.misc.as_ref()));
        let context = fault.or_else(|| raw.context(&dump.system, dump.misc.as_ref()));
        if context.is_none() && notes.len() < limits.notes {
            notes.push(format!("the minidump has no registers of thread {id}"));
        }
        if let Some(stack) = raw.stack_memory(&memory) {
            stacks.push((Avma::new(stack.base_address()), dump.part(stack.bytes())));
        }
        threads.push(Thread {
            id: Some(u64::from(id)),
            name: names.get_name(id).map(std::borrow::Cow::into_owned).filter(|name| !name.is_empty()),
            registers: registers(dump, context.as_deref()),
            is_crashed,
            state: (writer == Some(id) && !is_crashed).then(|| "wrote the minidump".to_owned()),
            thread_pointer: None,
        });
    }
    if let Some(crashed) =
        crashed.filter(|id| !threads.iter().any(|thread| thread.id == Some(u64::from(*id))))
    {
        notes.push(format!("the exception is of thread {crashed}, which is not in the list of threads"));
    }
    Threads { threads, stacks }
}

fn registers(dump: &Dump<'_, '_>, context: Option<&MinidumpContext>) -> Registers {
    let family = dump.arch.family();
    let mut registers = Registers::new(family);
    let Some(context) = context else { return registers };
    for (name, value) in context.valid_registers() {
        if let Some(register) = family.register(name) {
            registers.set(register, value);
        }
    }
    registers
}
