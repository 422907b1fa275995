//! A thread that a crash starts for itself, in a child process that has no other.
//!
//! It is made by the system call alone, without the C library: `pthread_create` allocates and locks. It has no storage of its own
//! for what is kept by thread, but shares that of the thread that crashed, which waits.

use super::{CHILD, OsError, ThreadId, sleep};
use std::arch::asm;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Without the guard.
const STACK: usize = 512 << 10;
const GUARD: usize = 64 << 10;

/// The end of the stack, from which on it grows down.
static TOP: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// 0 where there is none: the kernel sets it when the thread has left its stack.
static RUNS: AtomicI32 = AtomicI32::new(0);

const FLAGS: libc::c_int = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_CHILD_CLEARTID;

/// Sets the stack aside. Memory is taken when it is used.
pub(super) fn reserve_stack() -> Result<(), OsError> {
    // SAFETY: a new private mapping, whose lowest part is made inaccessible. It is never unmapped.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let start = libc::mmap(std::ptr::null_mut(), GUARD + STACK, protection, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return Err(OsError::last("mmap"));
        }
        if libc::mprotect(start, GUARD, libc::PROT_NONE) != 0 {
            return Err(OsError::last("mprotect"));
        }
        TOP.store(start.cast::<u8>().wrapping_add(GUARD + STACK).cast(), SeqCst);
    }
    Ok(())
}

/// Starts the thread. One at a time: who calls this has taken [`CHILD`].
pub(super) fn start() -> bool {
    let top = TOP.load(SeqCst);
    if top.is_null() {
        return false;
    }
    RUNS.store(1, SeqCst);
    // SAFETY: the stack is nobody else's, the function never returns, and `RUNS` lives for ever.
    let answer = unsafe { clone(top, RUNS.as_ptr()) };
    let is_started = answer > 0;
    if !is_started {
        RUNS.store(0, SeqCst);
    }
    is_started
}

/// Whether it has left its stack, or does so within that time.
pub(super) fn has_ended(patience: Duration) -> bool {
    let begun = Instant::now();
    while RUNS.load(SeqCst) != 0 {
        if begun.elapsed() > patience {
            return false;
        }
        sleep(Duration::from_micros(100));
    }
    true
}

extern "C" fn run() -> ! {
    CHILD.worker.store(ThreadId::current().get(), SeqCst);
    CHILD.work();
    CHILD.done();
    loop {
        // SAFETY: ends this thread alone; nothing of the C library belongs to it.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// `clone`, whose thread calls [`run`]. Gives the kernel's answer: the thread's number, or a negative number of an error.
#[cfg(target_arch = "x86_64")]
unsafe fn clone(top: *mut c_void, cleared: *mut i32) -> isize {
    let answer: isize;
    // SAFETY: the caller's promise. The thread has registers of its own; frames end behind `run`, as rbp is 0.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "call {run}",
            "ud2",
            "2:",
            run = sym run,
            inlateout("rax") libc::SYS_clone => answer,
            in("rdi") i64::from(FLAGS),
            in("rsi") top,
            in("rdx") 0,
            in("r10") cleared,
            in("r8") 0,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    answer
}

/// The same; the kernel takes the last two arguments in the other order.
#[cfg(target_arch = "aarch64")]
unsafe fn clone(top: *mut c_void, cleared: *mut i32) -> isize {
    let answer: isize;
    // SAFETY: the caller's promise. The thread has registers of its own; frames end behind `run`, as x29 is 0.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "bl {run}",
            "brk 1",
            "2:",
            run = sym run,
            in("x8") libc::SYS_clone,
            inlateout("x0") FLAGS as isize => answer,
            in("x1") top,
            in("x2") 0,
            in("x3") 0,
            in("x4") cleared,
            lateout("x30") _,
        );
    }
    answer
}
