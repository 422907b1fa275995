//! The threads of this process.

use super::OsError;
use super::error::check;
use super::ffi::{self, BasicInfo, ExtendedInfo, IdentifierInfo, Info, Port};
use backtrail_core::Avma;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::unix::thread::JoinHandleExt as _;
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread, by the name of its port in this process. Names of threads that have ended go to new ones after a while.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadId(Port);

impl ThreadId {
    /// The calling thread.
    pub fn current() -> Self {
        // SAFETY: the calling thread's own; pthread_mach_thread_np adds no reference.
        Self(unsafe { ffi::pthread_mach_thread_np(libc::pthread_self()) })
    }

    /// The process's first thread: the first that the kernel lists.
    pub fn main() -> Self {
        let mut first = [Self(0)];
        let _ = threads(&mut first);
        let [first] = first;
        first
    }

    /// The thread whose port has this name.
    pub fn new(port: u32) -> Self {
        Self(port)
    }

    /// The port's name.
    pub fn get(self) -> u32 {
        self.0
    }

    pub(super) fn port(self) -> Port {
        self.0
    }

    /// The thread that a handle of the standard library stands for; `None` where it has ended.
    pub fn of<T>(handle: &JoinHandle<T>) -> Option<Self> {
        // SAFETY: the handle keeps the thread from being joined or detached, so that its `pthread_t` stays valid.
        unsafe { Self::of_pthread(handle.as_pthread_t()) }
    }

    /// The thread of a `pthread_t`; `None` where it has ended.
    ///
    /// # Safety
    ///
    /// The thread was neither joined nor, if it has ended, detached.
    pub unsafe fn of_pthread(thread: libc::pthread_t) -> Option<Self> {
        // SAFETY: the caller's promise.
        let port = unsafe { ffi::pthread_mach_thread_np(thread) };
        (port != 0).then_some(Self(port))
    }

    /// The `pthread_t`; `None` for threads that were not made by the C library, or have ended.
    pub fn pthread(self) -> Option<libc::pthread_t> {
        // SAFETY: answers null for ports that are no thread's.
        let thread = unsafe { ffi::pthread_from_mach_thread_np(self.0) };
        (thread != 0).then_some(thread)
    }

    /// The processor time that the thread has used so far, in the kernel and outside.
    ///
    /// # Errors
    /// Where the thread is gone.
    pub fn cpu_time(self) -> Result<Duration, OsError> {
        let info: BasicInfo = self.info()?;
        let time = |seconds: i32, microseconds: i32| {
            let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            seconds + Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
        };
        let user = time(info.user_seconds, info.user_microseconds);
        Ok(user + time(info.system_seconds, info.system_microseconds))
    }

    /// What the kernel tells of the thread. Allocates nothing.
    ///
    /// # Errors
    /// Where the thread is gone.
    pub fn facts(self) -> Result<Facts, OsError> {
        let extended: ExtendedInfo = self.info()?;
        let identifier: IdentifierInfo = self.info()?;
        Ok(Facts {
            id: identifier.thread_id,
            queue_place: Avma::new(identifier.dispatch_qaddr),
            state: RunState::new(extended.run_state),
            name: extended.name,
        })
    }

    fn info<I: Info>(self) -> Result<I, OsError> {
        let mut info = MaybeUninit::<I>::zeroed();
        let mut count = u32::try_from(size_of::<I>() / size_of::<i32>()).unwrap_or(0);
        // SAFETY: the kernel fills in at most `count` words, which is the structure's size; all zeros are one.
        let info = unsafe {
            check(
                "thread_info",
                ffi::thread_info(self.0, I::FLAVOR, info.as_mut_ptr().cast(), &raw mut count),
            )
            .map(|()| info.assume_init())
        };
        info
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the kernel tells of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The number that it has in the whole system, as reports state it.
    pub id: u64,
    /// Where the thread keeps its dispatch queue; zero for none.
    pub queue_place: Avma,
    /// What it is at.
    pub state: RunState,
    /// Its name, ended by a zero.
    pub name: [u8; 64],
}

/// `TH_STATE_…` of `mach/thread_info.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RunState {
    /// Running, or ready to.
    Running,
    /// Stopped.
    Stopped,
    /// Waits for something.
    Waiting,
    /// Waits in the kernel and cannot be interrupted.
    Uninterruptible,
    /// Halted at a clean point.
    Halted,
    /// Another number.
    Other(i32),
}

impl RunState {
    fn new(number: i32) -> Self {
        match number {
            1 => Self::Running,
            2 => Self::Stopped,
            3 => Self::Waiting,
            4 => Self::Uninterruptible,
            5 => Self::Halted,
            other => Self::Other(other),
        }
    }
}

/// This process's threads, as far as `into` has room; says how many there are.
///
/// # Errors
/// Where the kernel does not list them.
pub fn threads(into: &mut [ThreadId]) -> Result<usize, OsError> {
    let (mut list, mut count) = (std::ptr::null_mut(), 0u32);
    // SAFETY: the kernel makes an array of `count` names, which is given back below, as is a reference to each port.
    unsafe {
        check("task_threads", ffi::task_threads(ffi::task(), &raw mut list, &raw mut count))?;
        let ports = std::slice::from_raw_parts(list, count as usize);
        for (place, port) in into.iter_mut().zip(ports) {
            *place = ThreadId(*port);
        }
        for port in ports {
            // The threads themselves keep their ports alive.
            ffi::mach_port_deallocate(ffi::task(), *port);
        }
        ffi::mach_vm_deallocate(ffi::task(), list as u64, u64::from(count) * size_of::<Port>() as u64);
    }
    Ok(count as usize)
}

/// The first words of libdispatch's `dispatch_queue_offsets`: its version, where a queue has its label, how large. `None`
/// where the library does not export it.
pub fn queue_offsets() -> Option<[u16; 3]> {
    // SAFETY: a C string; the symbol is a structure that begins with these words.
    unsafe {
        let words = libc::dlsym(libc::RTLD_DEFAULT, c"dispatch_queue_offsets".as_ptr());
        words.cast::<[u16; 3]>().as_ref().copied()
    }
}

/// Blocks all signals for the calling thread: a helper thread must not run the program's handlers.
pub fn block_signals() {
    // SAFETY: the set is filled in before it is used.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}
