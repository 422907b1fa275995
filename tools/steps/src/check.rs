//! The walk against the calls.

use crate::calls::{Call, Calls};
use crate::images::Process;
use crate::machine::Machine;
use crate::remote::Remote;
use backtrail_core::{Avma, Family, FrameAddress, ReadMemory, Register, Registers, Unreadable};
use backtrail_unwind::{End, ModuleMap, Options, PlacedModule, Walk, WalkEnd};
use std::cell::RefCell;
use std::collections::HashMap;

/// The standing program's memory, read in blocks.
pub(crate) struct LiveMemory<'r> {
    remote: RefCell<&'r mut Remote>,
    blocks: RefCell<HashMap<u64, Option<Vec<u8>>>>,
}

const BLOCK: u64 = 1024;

impl<'r> LiveMemory<'r> {
    pub(crate) fn new(remote: &'r mut Remote) -> Self {
        Self { remote: RefCell::new(remote), blocks: RefCell::new(HashMap::new()) }
    }

    fn byte(&self, at: u64) -> Option<u8> {
        let start = at & !(BLOCK - 1);
        let mut blocks = self.blocks.borrow_mut();
        let block = blocks
            .entry(start)
            .or_insert_with(|| self.remote.borrow_mut().memory(start, BLOCK as usize).ok().flatten());
        block.as_ref()?.get((at - start) as usize).copied()
    }
}

impl ReadMemory for LiveMemory<'_> {
    fn read(&self, address: Avma, buf: &mut [u8]) -> std::result::Result<(), Unreadable> {
        for (at, place) in (address.get()..).zip(buf) {
            *place = self.byte(at).ok_or(Unreadable { address })?;
        }
        Ok(())
    }
}

/// What came of it.
pub(crate) struct Check {
    machine: Machine,
    instructions: u64,
    frames: u64,
    methods: std::collections::BTreeMap<String, u64>,
    pub(crate) signals: u64,
    /// Faults since the last call or return.
    open: Vec<String>,
    faults: Vec<String>,
    /// Of `longjmp`, whose table in glibc already tells of the frame that is leapt to.
    forgiven: u64,
    /// Stacks that ended early because a table says so.
    untold: u64,
    /// Whether the last call or return was a leap, which may not have landed yet.
    leaping: bool,
    /// Instructions that no table speaks of, and what is wrong there.
    undescribed: u64,
    undescribed_faults: Vec<String>,
}

impl Check {
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            machine,
            instructions: 0,
            frames: 0,
            methods: std::collections::BTreeMap::new(),
            signals: 0,
            open: Vec::new(),
            faults: Vec::new(),
            forgiven: 0,
            untold: 0,
            leaping: false,
            undescribed: 0,
            undescribed_faults: Vec::new(),
        }
    }

    pub(crate) fn faults(&self) -> usize {
        self.faults.len() + self.open.len()
    }

    /// A call or return: what was wrong before it was wrong.
    pub(crate) fn confirm(&mut self) {
        if std::mem::take(&mut self.leaping) {
            self.forgiven += self.open.len() as u64;
            self.open.clear();
        }
        self.faults.append(&mut self.open);
    }

    /// A leap: the instructions right before it already belong to where it leads.
    pub(crate) fn forgive(&mut self) {
        self.leaping = true;
        self.forgiven += self.open.len() as u64;
        self.open.clear();
    }

    pub(crate) fn judge<'i>(
        &mut self,
        registers: &Registers,
        memory: &'i LiveMemory<'i>,
        images: &'i mut [PlacedModule<'i>],
        calls: &Calls,
        process: &Process,
    ) {
        self.instructions += 1;
        let pc = registers.pc().unwrap_or_default();
        let mut walk = Walk::new(*registers, memory, ModuleMap::new(images), Options::default());
        walk.step();
        let described = process.is_described(pc.get());
        self.undescribed += u64::from(!described);
        if let Err(fault) = self.follow(&mut walk, calls, process) {
            let place = if described { &mut self.open } else { &mut self.undescribed_faults };
            let thumb = u64::from(self.machine.family == Family::Arm);
            place.push(format!("{} {pc}: {fault}", process.shown(pc.get() & !thumb)));
        }
    }

    fn follow(
        &mut self,
        walk: &mut Walk<'_, LiveMemory<'_>>,
        calls: &Calls,
        process: &Process,
    ) -> std::result::Result<(), String> {
        let count = calls.open().len();
        let mut last = walk.registers().pc().unwrap_or_default();
        for (depth, call) in calls.open().enumerate() {
            let Some(frame) = walk.next() else {
                if self.is_untold(walk, last, process) {
                    self.untold += 1;
                    return Ok(());
                }
                return Err(format!("ends after {depth} of {count}: {}", ended(walk.ended())));
            };
            self.frames += 1;
            *self.methods.entry(frame.trust.to_string()).or_default() += 1;
            let is_exact = matches!(frame.address, FrameAddress::Exact(_));
            if frame.address.raw().get() != call.address || is_exact != call.is_exact {
                let (wanted, found) = (process.shown(call.address), process.shown(frame.address.raw().get()));
                return Err(format!(
                    "caller {depth} of {count} is {wanted}, not {found} ({}, exact: {is_exact})",
                    frame.trust
                ));
            }
            last = frame.address.raw();
            let is_thunk = depth == 0 && calls.has_changed_register(walk.registers());
            // What never returns need not give registers back, as glibc's `__libc_start_call_main` and, in static
            // programs, what `_start` calls.
            if process.is_program(last.get()) && !is_thunk && depth + 1 < count {
                let fault = |fault| format!("caller {depth} of {count} {fault}");
                self.compare(walk.registers(), call).map_err(fault)?;
            }
        }
        if let Some(frame) = walk.next() {
            let at = process.shown(frame.address.raw().get());
            return Err(format!("a frame too many: {at} ({})", frame.trust));
        }
        match walk.ended() {
            Some(WalkEnd::EndOfStack(_)) => Ok(()),
            other => Err(format!("after the last of {count}: {}", ended(other))),
        }
    }

    /// 32-bit ARM's C library and the compilers' own pieces of a program are built without tables: their entries say
    /// that nothing can be unwound. Stacks end there early, and no frame is wrong.
    fn is_untold(&self, walk: &Walk<'_, LiveMemory<'_>>, last: Avma, process: &Process) -> bool {
        let is_end = match walk.ended() {
            Some(WalkEnd::EndOfStack(End::CannotUnwind | End::Undefined)) => true,
            Some(WalkEnd::EndOfStack(End::ZeroReturnAddress)) => !process.is_program(last.get()),
            _ => false,
        };
        self.machine.family == Family::Arm && is_end
    }

    fn compare(&self, known: &Registers, call: &Call) -> std::result::Result<(), String> {
        for (number, saved) in self.machine.callee_saved.iter().zip(&call.saved) {
            let register = Register(*number);
            if let Some(value) = known.get(register).filter(|value| value != saved) {
                let name = self.machine.family.register_name(register).unwrap_or_default();
                return Err(format!("has {name}={saved:#x}, not {value:#x}"));
            }
        }
        Ok(())
    }

    pub(crate) fn json(&self) -> String {
        let faults: Vec<&String> =
            self.faults.iter().chain(&self.open).chain(&self.undescribed_faults).take(300).collect();
        serde_json::json!({
            "instructions": self.instructions,
            "frames": self.frames,
            "methods": self.methods,
            "signals": self.signals,
            "forgiven": self.forgiven,
            "untold": self.untold,
            "undescribed": self.undescribed,
            "undescribed_wrong": self.undescribed_faults.len(),
            "wrong": self.faults(),
            "faults": faults,
        })
        .to_string()
    }
}

fn ended(ended: Option<WalkEnd>) -> String {
    ended.map_or_else(|| "goes on".to_owned(), |ended| ended.to_string())
}
