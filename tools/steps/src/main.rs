//! Runs a program instruction by instruction and holds the walk from each against the calls that were really made: all
//! of them and nothing else, each with the registers that its caller had. `cargo xtask steps` builds programs for
//! every architecture and runs this on them.
//!
//! Usage: `steps [--qemu PROGRAM] [--sysroot DIR] [--steps N] [--visits N] [--from FUNCTION] PROGRAM`
//!
//! The program runs under `qemu -g`. Each instruction is judged the first `--visits` times that it is
//! reached. Prints one line of JSON: instructions, frames, faults.
#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people at a terminal, run on well-formed files"
)]

mod calls;
mod check;
mod images;
mod machine;
mod remote;

use backtrail_core::Registers;
use backtrail_object::Object;
use calls::{Calls, Change};
use check::{Check, LiveMemory};
use images::Process;
use machine::Machine;
use remote::{Remote, Stop};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

type Result<T> = std::result::Result<T, String>;

struct Options {
    qemu: String,
    sysroot: PathBuf,
    steps: u64,
    visits: u32,
    from: Option<String>,
    program: PathBuf,
}

/// gdb's numbers of the signals that programs here raise on themselves: they are delivered to `on_signal`.
const HANDLER: &str = "on_signal";

fn main() -> ExitCode {
    match parse().and_then(|options| run(&options)) {
        Ok(check) => {
            println!("{}", check.json());
            ExitCode::from(u8::from(check.faults() != 0))
        }
        Err(message) => {
            eprintln!("steps: {message}");
            ExitCode::from(2)
        }
    }
}

fn parse() -> Result<Options> {
    let mut options = Options {
        qemu: "qemu-x86_64".to_owned(),
        sysroot: PathBuf::from("/"),
        steps: 200_000,
        visits: 2,
        from: None,
        program: PathBuf::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
        match argument.as_str() {
            "--qemu" => options.qemu = value()?,
            "--sysroot" => options.sysroot = value()?.into(),
            "--steps" => options.steps = number(value()?)?,
            "--visits" => options.visits = u32::try_from(number(value()?)?).unwrap_or(u32::MAX),
            "--from" => options.from = Some(value()?),
            _ => options.program = argument.into(),
        }
    }
    if options.program.as_os_str().is_empty() { Err("no program".to_owned()) } else { Ok(options) }
}

/// libgcc's variable that says whether the processor has atomic instructions beside pairs of exclusive ones.
const ATOMICS: &str = "__aarch64_have_lse_atomics";

/// Ends the program with us.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(options: &Options) -> Result<(Guest, Remote)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    drop(listener);
    let mut command = Command::new(&options.qemu);
    command.args(["-g", &port.to_string(), "-L"]).arg(&options.sysroot).arg(&options.program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let guest = Guest(child);
    Ok((guest, Remote::connect(port)?))
}

fn family_of(program: &Path) -> Result<Machine> {
    let data = std::fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let object = Object::parse(&data).map_err(|error| error.to_string())?;
    Machine::new(object.arch().family()).ok_or_else(|| format!("cannot step {:?}", object.arch()))
}

fn run(options: &Options) -> Result<Check> {
    let machine = family_of(&options.program)?;
    let (_guest, mut remote) = start(options)?;
    let word = machine.family.word_size();
    let process = Process::open(&mut remote, &options.program, &options.sysroot, word)?;
    let mut watch = Watch {
        machine,
        calls: Calls::new(machine),
        handler: process.function(HANDLER),
        process,
        code: HashMap::new(),
        visits: HashMap::new(),
        check: Check::new(machine),
    };
    // Stepped, a pair of exclusive load and store never succeeds: qemu forgets the first at each stop. Static programs of
    // aarch64 use such pairs up to where libgcc's switch for better instructions is set.
    if let Some(at) = watch.process.function(ATOMICS) {
        remote.ask(&format!("M{at:x},1:01"))?;
    }
    let mut started = options.from.is_none();
    let from = options.from.as_deref().and_then(|name| watch.process.function(name));
    if !started && from.is_none() {
        return Err("--from names no function of the program".to_owned());
    }
    let mut before = machine.registers(&remote.registers()?);
    let mut left = options.steps;
    while left > 0 {
        let pc = before.pc().unwrap_or_default().get();
        started = started || from == Some(pc & !1) || from == Some(pc);
        if started {
            left -= 1;
            watch.judge(&before, &mut remote, options.visits)?;
        }
        match watch.step(&before, &mut remote)? {
            Some(after) => before = after,
            None => break,
        }
    }
    remote.kill();
    Ok(watch.check)
}

struct Watch {
    machine: Machine,
    calls: Calls,
    handler: Option<u64>,
    process: Process,
    /// Bytes at each address that was executed.
    code: HashMap<u64, Vec<u8>>,
    visits: HashMap<u64, u32>,
    check: Check,
}

impl Watch {
    /// One instruction; `None` when the program has ended.
    fn step(&mut self, before: &Registers, remote: &mut Remote) -> Result<Option<Registers>> {
        let pc = before.pc().unwrap_or_default().get() & !u64::from(self.machine.family.lr().is_some());
        if !self.code.contains_key(&pc) {
            // A library that was loaded since; a jump to nowhere stays what it is.
            if !self.process.has(pc) {
                self.process.refresh(remote)?;
            }
            let bytes = remote.memory(pc, 12)?.or(remote.memory(pc, 4)?);
            self.code.insert(pc, bytes.unwrap_or_default());
        }
        match remote.step()? {
            Stop::Ended => Ok(None),
            Stop::Trap => {
                let after = self.machine.registers(&remote.registers()?);
                let top = self.top(&after, remote)?;
                let code = self.code.get(&pc).map(Vec::as_slice).unwrap_or_default();
                match self.calls.watch(code, before, &after, top) {
                    Change::None => {}
                    Change::Leapt => self.check.forgive(),
                    Change::Called | Change::Returned => self.check.confirm(),
                }
                Ok(Some(after))
            }
            Stop::Signal(signal) => self.signal(signal, remote),
        }
    }

    /// The word on top of the stack, where machines have return addresses there.
    fn top(&self, registers: &Registers, remote: &mut Remote) -> Result<Option<u64>> {
        if self.machine.family.lr().is_some() {
            return Ok(None);
        }
        let sp = registers.sp().unwrap_or_default().get();
        let bytes = remote.memory(sp, self.machine.family.word_size().into())?;
        Ok(bytes.map(|bytes| machine::number_of(&bytes)))
    }

    fn signal(&mut self, signal: u8, remote: &mut Remote) -> Result<Option<Registers>> {
        let handler = self.handler.ok_or_else(|| format!("signal {signal}, and no {HANDLER}"))?;
        let interrupted = self.machine.registers(&remote.registers()?);
        let kind = match self.machine.family {
            backtrail_core::Family::X86 | backtrail_core::Family::X86_64 => 1,
            backtrail_core::Family::Arm if handler & 1 != 0 => 2,
            _ => 4,
        };
        let is_arm = self.machine.family == backtrail_core::Family::Arm;
        let at = if is_arm { handler & !1 } else { handler };
        match remote.deliver(signal, at, kind)? {
            Stop::Ended => Ok(None),
            Stop::Trap => {
                let after = self.machine.registers(&remote.registers()?);
                if after.pc().is_none_or(|pc| pc.get() & !1 != handler & !1) {
                    return Err(format!(
                        "signal {signal} led to {} instead of {handler:#x}",
                        self.process.shown(after.pc().unwrap_or_default().get())
                    ));
                }
                let top = self.top(&after, remote)?;
                self.calls.signal(&interrupted, &after, top);
                self.check.signals += 1;
                Ok(Some(after))
            }
            Stop::Signal(other) => Err(format!("signal {other} while {signal} is delivered")),
        }
    }

    fn judge(&mut self, registers: &Registers, remote: &mut Remote, visits: u32) -> Result<()> {
        let pc = registers.pc().unwrap_or_default().get();
        let seen = self.visits.entry(pc).or_default();
        *seen += 1;
        if *seen > visits {
            return Ok(());
        }
        let mut images = self.process.images();
        let memory = LiveMemory::new(remote);
        self.check.judge(registers, &memory, &mut images, &self.calls, &self.process);
        Ok(())
    }
}
