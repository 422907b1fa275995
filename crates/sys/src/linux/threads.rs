//! The threads of this process.

use super::OsError;
use super::kept_proc::open_proc;
use backtrail_core::{AddrRange, Avma};
use std::fmt;
use std::os::unix::thread::JoinHandleExt as _;
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread, by the kernel's number of it (`gettid`). The kernel gives numbers of threads that have ended to new ones
/// after a while.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadId(libc::pid_t);

impl ThreadId {
    /// The calling thread. Safe in a signal handler.
    pub fn current() -> Self {
        // SAFETY: no preconditions. By number, since old C libraries have no function for it.
        let id = unsafe { libc::syscall(libc::SYS_gettid) };
        Self(libc::pid_t::try_from(id).unwrap_or(0))
    }

    /// The process's first thread, the one that ran `main`. Safe in a signal handler.
    pub fn main() -> Self {
        // SAFETY: no preconditions.
        Self(unsafe { libc::getpid() })
    }

    /// The thread with the kernel's number `id`.
    pub fn new(id: u32) -> Self {
        Self(libc::pid_t::try_from(id).unwrap_or(0))
    }

    /// The kernel's number.
    pub fn get(self) -> u32 {
        self.0.cast_unsigned()
    }

    pub(super) fn raw(self) -> libc::pid_t {
        self.0
    }

    /// The thread that a handle of the standard library stands for; `None` where it has ended.
    #[allow(clippy::unnecessary_cast, reason = "musl's is a pointer")]
    pub fn of<T>(handle: &JoinHandle<T>) -> Option<Self> {
        // SAFETY: the handle keeps the thread from being joined or detached, so that its `pthread_t` stays valid.
        unsafe { Self::of_pthread(handle.as_pthread_t() as libc::pthread_t) }
    }

    /// The thread of a `pthread_t`; `None` where it has ended.
    ///
    /// The number is taken from the thread's CPU clock, which Linux encodes it in (`posix-timers_types.h`,
    /// `CPUCLOCK_PID`): C libraries have no function for it, or only since lately.
    ///
    /// # Safety
    ///
    /// The thread was neither joined nor, if it has ended, detached.
    pub unsafe fn of_pthread(thread: libc::pthread_t) -> Option<Self> {
        let mut clock: libc::clockid_t = 0;
        // SAFETY: the caller's promise.
        let answer = unsafe { libc::pthread_getcpuclockid(thread, &raw mut clock) };
        let id = !(clock >> 3);
        (answer == 0 && id > 0).then_some(Self(id))
    }

    /// The processor time that the thread has used so far, in the kernel and outside. Safe in a signal handler.
    ///
    /// # Errors
    /// `EINVAL` where the thread is gone.
    pub fn cpu_time(self) -> Result<Duration, OsError> {
        /// `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED`.
        const OF_THREAD: libc::clockid_t = 6;
        let clock = (!self.0 << 3) | OF_THREAD;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is valid.
        if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
            return Err(OsError::last("clock_gettime"));
        }
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        #[allow(clippy::useless_conversion, reason = "seconds have 32 bits on some systems")]
        let seconds = u64::try_from(i64::from(time.tv_sec)).unwrap_or(0);
        Ok(Duration::new(seconds, nanoseconds))
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The numbers of this process's threads, as far as `into` has room; says how many there are. Threads that begin or end
/// meanwhile may be missing or listed.
///
/// Reads `/proc/self/task` and allocates nothing.
///
/// # Errors
/// Where that directory cannot be read.
pub fn threads(into: &mut [ThreadId]) -> Result<usize, OsError> {
    let directory = open_proc(c"/proc/self/task", libc::O_DIRECTORY)?;
    let mut count = 0;
    let answer = entries(directory, |id| {
        if let Some(place) = into.get_mut(count) {
            *place = id;
        }
        count += 1;
    });
    // SAFETY: opened above.
    unsafe { libc::close(directory) };
    answer.map(|()| count)
}

/// Names in a directory that are numbers. getdents64(2): inode, offset, length of the entry, type, name.
pub(super) fn entries(directory: libc::c_int, mut each: impl FnMut(ThreadId)) -> Result<(), OsError> {
    #[repr(C, align(8))]
    struct Room([u8; 4096]);
    const LENGTH_AT: usize = 16;
    const NAME_AT: usize = 19;
    let mut room = Room([0; 4096]);
    loop {
        // SAFETY: the room is as large as is said.
        let size =
            unsafe { libc::syscall(libc::SYS_getdents64, directory, room.0.as_mut_ptr(), room.0.len()) };
        let Ok(size) = usize::try_from(size) else { return Err(OsError::last("getdents64")) };
        let mut rest = room.0.get(..size).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        while let Some(length) = rest.get(LENGTH_AT..).and_then(|bytes| bytes.first_chunk::<2>()) {
            let length = usize::from(u16::from_le_bytes(*length));
            let name = rest.get(NAME_AT..length).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            if let Some(id) = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()) {
                each(ThreadId(id));
            }
            rest = rest.get(length.max(1)..).unwrap_or_default();
        }
    }
}

/// The calling thread's stack: from where it may grow down to, up to its end.
///
/// Not for signal handlers: the C library may read files to know.
///
/// # Errors
/// Where the C library does not know.
pub(super) fn own_stack() -> Result<AddrRange<Avma>, OsError> {
    // SAFETY: the attributes are filled in by the first call and destroyed after the second.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        let answer = libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes);
        if answer != 0 {
            return Err(OsError { call: "pthread_getattr_np", number: answer });
        }
        let (mut start, mut size) = (std::ptr::null_mut(), 0);
        let answer = libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        if answer != 0 {
            return Err(OsError { call: "pthread_attr_getstack", number: answer });
        }
        Ok(AddrRange::from_size(Avma::new(start as u64), size as u64))
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn handles_and_numbers_are_of_the_same_thread() {
        let (sender, receiver) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            sender.send((ThreadId::current(), own_stack().unwrap(), &raw const sender as u64)).unwrap();
            let _ = stopped.recv();
        });
        let (id, stack, place) = receiver.recv().unwrap();
        assert_eq!(ThreadId::of(&thread), Some(id));
        assert!(stack.contains(Avma::new(place)), "{place:#x} in {stack:?}");
        let mut all = [ThreadId::new(0); 512];
        let count = threads(&mut all).unwrap();
        assert!(all[..count].contains(&id) && all[..count].contains(&ThreadId::main()));
        assert!(threads(&mut []).unwrap() > 0);
        assert!(id.cpu_time().unwrap() > Duration::ZERO);
        drop(stop);
        thread.join().unwrap();
        assert!(ThreadId::new(0x3fff_fff0).cpu_time().is_err());
    }

    #[test]
    fn threads_that_ended_have_no_number() {
        let thread = std::thread::spawn(|| ());
        while !thread.is_finished() {
            std::thread::yield_now();
        }
        // What remains of it may take a moment to go.
        let gone = (0..60_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            ThreadId::of(&thread).is_none()
        });
        assert!(gone);
    }
}
