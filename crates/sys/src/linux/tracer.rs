//! Following whole processes: their signals, new threads and children, and their ends. ptrace(2).
//!
//! Threads are seized, which they do not notice, and run until something happens to them. Then they stand, and an [`Event`]
//! tells what it is; [`Tracer::go_on`] lets them go on. A tracer that ends, however it does, is let go of by the kernel: what it
//! followed runs on. All calls have to come from the thread that made it.

use super::OsError;
use super::ptrace::{RawRegisters, registers_of};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::marker::PhantomData;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Follows processes.
#[derive(Debug)]
pub struct Tracer {
    options: libc::c_int,
    not_send: PhantomData<*mut ()>,
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What happened to a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It stands, and will get this signal when it goes on with it.
    Signal(i32),
    /// It stands because it was asked to, or has just begun.
    Interrupted,
    /// It stands with its whole process, by this signal, until `SIGCONT` comes.
    Stopped(i32),
    /// It stands, and has begun a thread or process of this id, which is followed as well.
    Began(u32),
    /// It stands at the start of another program.
    Executed,
    /// It stands before its end; its memory is still there.
    Ending(Exit),
    /// It is gone. Of a process the last of these is that of the thread with its id.
    Ended(Exit),
}

/// What a signal is for. sigaction(2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SignalInfo {
    /// `si_code`.
    pub code: i32,
    /// The address that the fault is about, where the code is one of a fault.
    pub address: Option<u64>,
    /// The process that sent it, where one did.
    pub sender: Option<u32>,
}

const EVENT_STOP: i32 = 128;

impl Tracer {
    /// `sees_ends` makes threads stand before their end, which costs some microseconds each.
    pub fn new(sees_ends: bool) -> Self {
        let mut options = libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACEEXEC;
        if sees_ends {
            options |= libc::PTRACE_O_TRACEEXIT;
        }
        Self { options, not_send: PhantomData }
    }

    /// Begins to follow one thread.
    ///
    /// # Errors
    /// `ESRCH` where there is none, `EPERM` where the caller may not or somebody traces it already.
    pub fn seize(&self, id: u32) -> Result<(), OsError> {
        let id = pid(id);
        let options = usize::try_from(self.options).unwrap_or_default();
        // SAFETY: the request takes numbers and no pointer.
        let done = unsafe { libc::ptrace(libc::PTRACE_SEIZE as _, id, 0_usize, options) };
        if done == -1 { Err(OsError::last("ptrace(PTRACE_SEIZE)")) } else { Ok(()) }
    }

    /// Starts a program that is followed from its first instruction on. The answer is its process id. It has to be waited for by
    /// [`Tracer::wait`].
    ///
    /// # Errors
    /// Where it cannot be started or followed.
    pub fn spawn(&self, mut command: Command) -> std::io::Result<u32> {
        let (mut id_reader, id_writer) = std::io::pipe()?;
        let (go_reader, mut go_writer) = std::io::pipe()?;
        let mut tell_id = id_writer.try_clone()?;
        let mut wait_to_go = go_reader.try_clone()?;
        let wait_in_child = move || {
            tell_id.write_all(&std::process::id().to_le_bytes())?;
            wait_to_go.read_exact(&mut [0])
        };
        // SAFETY: it writes to one pipe and reads from another, by system calls alone.
        unsafe { command.pre_exec(wait_in_child) };
        // `spawn` comes back when the program has begun, for which the child waits until it is followed.
        let spawned = std::thread::spawn(move || {
            let spawned = command.spawn();
            // With the last writer gone, a child that told no id is noticed.
            drop((command, id_writer));
            spawned
        });
        let mut id = [0; 4];
        let seized = match id_reader.read_exact(&mut id) {
            Ok(()) => self.seize(u32::from_le_bytes(id)).map_err(std::io::Error::other),
            // Its own error says why.
            Err(_) => Ok(()),
        };
        // It goes on in any case; what cannot be followed is ended below.
        let _ = go_writer.write_all(&[0]);
        let spawned = spawned.join().map_err(|_| std::io::Error::other("the thread that starts it ended"))?;
        let mut child = spawned?;
        drop(go_reader);
        if let Err(error) = seized {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
        Ok(child.id())
    }

    /// Begins to follow all threads of a process. The answer is how many.
    ///
    /// # Errors
    /// Where its first thread cannot be followed.
    pub fn attach(&self, process: u32) -> Result<usize, OsError> {
        const MAX_ROUNDS: usize = 16;
        self.seize(process)?;
        let mut known = BTreeSet::from([process]);
        // Those that begin meanwhile belong to a thread that may not have been followed yet.
        for _ in 0..MAX_ROUNDS {
            let before = known.len();
            for id in threads_of(process) {
                if !known.contains(&id) && self.seize(id).is_ok() {
                    known.insert(id);
                }
            }
            if known.len() == before {
                break;
            }
        }
        Ok(known.len())
    }

    /// What happened to a thread, of any process that is followed. `None` where a signal interrupted the wait: see [`Interrupts`](super::Interrupts).
    ///
    /// # Errors
    /// `ECHILD` where nothing is followed any more.
    pub fn wait(&self) -> Result<Option<(u32, Event)>, OsError> {
        wait_for(-1, 0)
    }

    /// What happened to one thread, without waiting for it.
    pub fn poll(&self, id: u32) -> Option<Event> {
        wait_for(pid(id), libc::WNOHANG).ok().flatten().map(|(_, event)| event)
    }

    /// Asks a thread to stand. Whether it is there to be asked.
    pub fn interrupt(&self, id: u32) -> bool {
        // SAFETY: the request takes numbers and no pointer.
        unsafe { libc::ptrace(libc::PTRACE_INTERRUPT as _, pid(id), 0_usize, 0_usize) != -1 }
    }

    /// Lets a thread that stands go on, with a signal or 0.
    pub fn go_on(&self, id: u32, signal: i32) {
        let signal = usize::try_from(signal).unwrap_or_default();
        // SAFETY: the request takes numbers and no pointer. That it is gone shows when it is waited for.
        unsafe { libc::ptrace(libc::PTRACE_CONT as _, pid(id), 0_usize, signal) };
    }

    /// Leaves a thread that stands with its process standing, until `SIGCONT` comes.
    pub fn leave_stopped(&self, id: u32) {
        // SAFETY: the request takes numbers and no pointer.
        unsafe { libc::ptrace(libc::PTRACE_LISTEN as _, pid(id), 0_usize, 0_usize) };
    }

    /// The registers of a thread that stands.
    ///
    /// # Errors
    /// `ESRCH` where it is gone or runs.
    pub fn registers(&self, id: u32) -> Result<RawRegisters, OsError> {
        registers_of(pid(id))
    }

    /// What the signal is for that a thread stands before.
    ///
    /// # Errors
    /// `ESRCH` where it is gone, `EINVAL` where it does not stand before a signal.
    pub fn signal_info(&self, id: u32) -> Result<SignalInfo, OsError> {
        // SAFETY: a structure of numbers, for which zeros are numbers.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` has the size that the kernel writes, and lives until the call is over.
        let done = unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO as _, pid(id), 0_usize, &raw mut info) };
        if done == -1 {
            return Err(OsError::last("ptrace(PTRACE_GETSIGINFO)"));
        }
        let is_fault_signal =
            [libc::SIGILL, libc::SIGTRAP, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV].contains(&info.si_signo);
        let is_fault = is_fault_signal && (1..0x80).contains(&info.si_code);
        // SAFETY: whatever the union holds is read as a number: the fields are addresses and ids at fixed places.
        let (address, sender) = unsafe { (info.si_addr() as u64, info.si_pid()) };
        Ok(SignalInfo {
            code: info.si_code,
            address: is_fault.then_some(address),
            // `SI_USER`, `SI_TKILL`, `SI_QUEUE`.
            sender: matches!(info.si_code, 0 | -6 | -1).then(|| sender.unsigned_abs()),
        })
    }

    /// From here on the terminal's `SIGINT` and `SIGQUIT` do not end the calling process: they are for the program that it follows.
    /// To be called after that has begun, which would ignore them, too.
    pub fn leave_terminal_signals(&self) {
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: no function of ours is installed.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
}

fn pid(id: u32) -> libc::pid_t {
    // What is no id is none of any thread: 0 and below mean something else to some calls.
    libc::pid_t::try_from(id).unwrap_or(libc::pid_t::MAX)
}

/// Only of what the calling thread follows: other threads of the process may follow others, and have children of their own.
fn wait_for(id: libc::pid_t, flags: libc::c_int) -> Result<Option<(u32, Event)>, OsError> {
    let mut status = 0;
    // SAFETY: `status` is a place for one number, and lives until the call is over.
    let found = unsafe { libc::waitpid(id, &raw mut status, libc::__WALL | libc::__WNOTHREAD | flags) };
    match found {
        0 => Ok(None),
        -1 if OsError::last("waitpid").number == libc::EINTR => Ok(None),
        -1 => Err(OsError::last("waitpid")),
        id => Ok(Some((id.unsigned_abs(), event(id, status)))),
    }
}

fn exit(status: libc::c_int) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}

fn event(id: libc::pid_t, status: libc::c_int) -> Event {
    if !libc::WIFSTOPPED(status) {
        return Event::Ended(exit(status));
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        0 => Event::Signal(signal),
        EVENT_STOP if signal == libc::SIGTRAP => Event::Interrupted,
        EVENT_STOP => Event::Stopped(signal),
        libc::PTRACE_EVENT_EXEC => Event::Executed,
        libc::PTRACE_EVENT_EXIT => {
            let status = message(id).and_then(|status| libc::c_int::try_from(status).ok());
            Event::Ending(exit(status.unwrap_or_default()))
        }
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            message(id).and_then(|id| u32::try_from(id).ok()).map_or(Event::Interrupted, Event::Began)
        }
        _ => Event::Interrupted,
    }
}

/// What comes with an event.
fn message(id: libc::pid_t) -> Option<libc::c_ulong> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: `message` is a place for one number, and lives until the call is over.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG as _, id, 0_usize, &raw mut message) };
    (done != -1).then_some(message)
}

/// The threads of a process, as far as the kernel tells.
pub fn threads_of(process: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}
