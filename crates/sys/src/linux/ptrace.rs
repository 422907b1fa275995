//! Stopping threads of other processes for a moment. ptrace(2).
//!
//! A thread is seized, which it does not notice, then interrupted, which stops it without a signal, read, and let go.
//! Whatever becomes of the capturing thread, the kernel lets go of all that it has seized: a [`Tracee`] that is dropped
//! lets go at once, a thread that ends by the end of the thread, a process that is killed by its death
//! (`PTRACE_O_EXITKILL` is not asked for). The kernel ties a tracee to the thread that seized it, so a [`Tracee`] cannot
//! be sent to another.

use super::OsError;
use std::ffi::c_void;
use std::marker::PhantomData;

/// A seized thread. It runs on as before until it is interrupted.
#[derive(Debug)]
pub struct Tracee {
    id: libc::pid_t,
    /// Whether it stands still, and the signal that it is owed when it goes on.
    stopped: Option<i32>,
    /// All calls have to come from the thread that seized it.
    not_send: PhantomData<*mut ()>,
}

/// What a seized thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// It has not stopped yet.
    Running,
    /// It stands still: its registers can be read.
    Stopped,
    /// It has ended, or is somebody else's now.
    Gone,
}

/// Bytes of the largest set of general registers: 272 of arm64.
const MAX_REGISTERS: usize = 512;

/// General registers as the kernel lays them out (`NT_PRSTATUS`): the layout is that of the thread's own architecture,
/// so that their number tells a 32-bit process from a 64-bit one.
#[derive(Clone, Copy)]
pub struct RawRegisters {
    bytes: [u8; MAX_REGISTERS],
    size: usize,
}

impl RawRegisters {
    /// Bytes in that layout, from elsewhere (`pr_reg` of a core's note). `None` of more than any architecture has.
    pub fn of(registers: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_REGISTERS];
        bytes.get_mut(..registers.len())?.copy_from_slice(registers);
        Some(Self { bytes, size: registers.len() })
    }

    /// The kernel's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.size).unwrap_or_default()
    }
}

impl std::fmt::Debug for RawRegisters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes of registers", self.size)
    }
}

/// `PTRACE_EVENT_STOP`, in the third byte of a status: stopped by an interrupt or with its whole process, not by a
/// signal that is to be delivered.
const EVENT_STOP: i32 = 128;

impl Tracee {
    /// Seizes a thread; it goes on running.
    ///
    /// # Errors
    /// `ESRCH` where there is no such thread; `EPERM` where the caller may not, where somebody traces it already, where
    /// it is of the caller's own process, the kernel's, or has ended.
    pub fn seize(id: u32) -> Result<Self, OsError> {
        let id = libc::pid_t::try_from(id)
            .map_err(|_| OsError { call: "ptrace(PTRACE_SEIZE)", number: libc::ESRCH })?;
        // SAFETY: the request takes two numbers and no pointer.
        let done = unsafe { libc::ptrace(libc::PTRACE_SEIZE as _, id, 0_usize, 0_usize) };
        if done == -1 {
            return Err(OsError::last("ptrace(PTRACE_SEIZE)"));
        }
        Ok(Self { id, stopped: None, not_send: PhantomData })
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.id.unsigned_abs()
    }

    /// Asks it to stop. No signal is sent; a call that it waits in is begun again afterwards, unless it is one of those
    /// that end early whenever their thread was stopped (`epoll_wait`; signal(7)).
    ///
    /// # Errors
    /// `ESRCH` where it is gone.
    pub fn interrupt(&self) -> Result<(), OsError> {
        // SAFETY: the request takes two numbers and no pointer.
        let done = unsafe { libc::ptrace(libc::PTRACE_INTERRUPT as _, self.id, 0_usize, 0_usize) };
        if done == -1 { Err(OsError::last("ptrace(PTRACE_INTERRUPT)")) } else { Ok(()) }
    }

    /// Whether it has stopped by now; never waits.
    pub fn poll(&mut self) -> Seen {
        if self.stopped.is_some() {
            return Seen::Stopped;
        }
        let mut status = 0;
        // SAFETY: `status` is a place for one number, and lives until the call is over.
        let found = unsafe { libc::waitpid(self.id, &raw mut status, libc::__WALL | libc::WNOHANG) };
        match found {
            0 => Seen::Running,
            id if id == self.id && libc::WIFSTOPPED(status) => {
                self.stopped = Some(if status >> 16 == EVENT_STOP { 0 } else { libc::WSTOPSIG(status) });
                Seen::Stopped
            }
            _ if found == -1 && OsError::last("waitpid").number == libc::EINTR => Seen::Running,
            _ => Seen::Gone,
        }
    }

    /// Its general registers, while it stands still.
    ///
    /// # Errors
    /// `ESRCH` where it runs or is gone.
    pub fn registers(&self) -> Result<RawRegisters, OsError> {
        registers_of(self.id)
    }

    /// Lets it go on, with the signal that stopped it, if one did. A thread whose process was stopped (`SIGSTOP`) stays
    /// stopped. One that has not stopped yet cannot be let go of: that the end of the capturing thread does.
    pub fn detach(mut self) {
        self.let_go();
    }

    fn let_go(&mut self) {
        if let Some(signal) = self.stopped.take() {
            let signal = usize::try_from(signal).unwrap_or_default();
            // SAFETY: the request takes two numbers and no pointer. That it is gone is no failure.
            unsafe { libc::ptrace(libc::PTRACE_DETACH as _, self.id, 0_usize, signal) };
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// The general registers of a traced thread that stands.
pub(super) fn registers_of(id: libc::pid_t) -> Result<RawRegisters, OsError> {
    let mut registers = RawRegisters { bytes: [0; MAX_REGISTERS], size: 0 };
    let mut place =
        libc::iovec { iov_base: registers.bytes.as_mut_ptr().cast::<c_void>(), iov_len: MAX_REGISTERS };
    const NT_PRSTATUS: usize = 1;
    // SAFETY: `place` describes `bytes` with its size; both live until the call is over.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETREGSET as _, id, NT_PRSTATUS, &raw mut place) };
    if done == -1 {
        return Err(OsError::last("ptrace(PTRACE_GETREGSET)"));
    }
    registers.size = place.iov_len.min(MAX_REGISTERS);
    Ok(registers)
}

/// Gives the calling thread, and no other, the most urgent nice value, where it may have it (`CAP_SYS_NICE`), and the
/// smallest timer slack. For threads that keep others stopped while they work. Threads that it waits for still get to run.
pub fn raise_nice() {
    const MOST_URGENT: i32 = -20;
    const ONE_NANOSECOND: libc::c_ulong = 1;
    // SAFETY: takes numbers only. 0 is the calling thread. Not being allowed to is fine.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, MOST_URGENT) };
    // SAFETY: takes numbers only, and is about the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ONE_NANOSECOND) };
}

/// Gives the calling thread, and no other, a real-time priority (`SCHED_FIFO`), where it may have it (`CAP_SYS_NICE`): it
/// runs as soon as it is ready. A nice value counts among the threads of one session only, where sessions are scheduled in
/// groups (sched(7), "The autogroup feature"). Beside another busy session a thread waits for milliseconds in spite of
/// [`raise_nice`], while it keeps others stopped. Only for threads that sleep often.
pub fn set_sched_fifo() {
    const LOWEST_OF_THEM: libc::c_int = 1;
    // SAFETY: a structure of numbers, for which zeros are numbers.
    let mut priority: libc::sched_param = unsafe { std::mem::zeroed() };
    priority.sched_priority = LOWEST_OF_THEM;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `priority` lives until the call is over. 0 is the calling thread. Not being allowed to is fine.
    unsafe { libc::sched_setscheduler(0, policy, &raw const priority) };
}
