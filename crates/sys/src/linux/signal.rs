//! The signal by which one thread has another do something, and its handler.
//!
//! The signal carries a number that stands for a slot and for one use of it; see [`super::slots`]. It is told from
//! everybody else's by a code that nobody uses in `si_code`: foreign signals with the same number go to the handler that
//! was there before.

use super::context::allow_misaligned;
use super::slots::{self, Claim, Sent, Work};
use super::stopped::Stopped;
use super::{OsError, ThreadId, held};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

/// `si_code` of our signals: `SI_ASYNCNL`, which glibc means for `getaddrinfo_a` and nobody asks for. Programs may use any
/// negative code among their own threads, but of those that the kernel does not know it wants all bytes behind the value
/// zero (`E2BIG`), and qemu sends what it has there. rt_sigqueueinfo(2); Linux, `known_siginfo_layout`.
const CODE: c_int = -60;

/// What the upper half of a value says, where it has one: that it is ours.
const MARK: u64 = 0x6274_7261;

/// Signals are numbered from 1 to 64.
const SIGNALS: usize = 65;

/// What was there before, for each signal that we have taken. Never freed: a handler may be looking.
static PREVIOUS: [AtomicPtr<libc::sigaction>; SIGNALS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS];

/// A signal whose handler is ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectedSignal(c_int);

impl DirectedSignal {
    /// Takes the signal `number`, or, without one, that which was taken before in the same way, or else the highest
    /// real-time signal that nothing handles. It stays taken: one that is still on its way must find its handler.
    ///
    /// The handler runs on the thread's own stack, of which it needs some kilobytes, or `on_signal_stack`, if the thread
    /// has one: Go's runtime wants that, since goroutines have small stacks. Those that Rust's standard library makes
    /// have room for little more than the kernel's own frame.
    ///
    /// # Errors
    /// Where there is no such signal, or its action cannot be set.
    pub fn take(number: Option<i32>, on_signal_stack: bool) -> Result<Self, OsError> {
        // No lock, which a thread could hold that a fork leaves behind. Whoever takes at the same time finds the same before
        // and sets the same, so that it does not matter who does so last: save for which stack the handler runs on, where
        // two want different ones in the same moment.
        let number = match number {
            Some(number) => number,
            None => taken_before(on_signal_stack)
                .or_else(|| unused(on_signal_stack))
                .ok_or(OsError { call: "sigaction", number: libc::EBUSY })?,
        };
        let before = action(number)?;
        if before.sa_sigaction != handler_address() {
            // First, so that the first foreign signal finds it.
            let place = usize::try_from(number).ok().and_then(|number| PREVIOUS.get(number));
            let place = place.ok_or(OsError { call: "sigaction", number: libc::EINVAL })?;
            place.store(Box::into_raw(Box::new(before)), SeqCst);
        }
        install(number, on_signal_stack)?;
        Ok(Self(number))
    }

    /// The signal's number.
    pub fn number(self) -> i32 {
        self.0
    }

    /// Whether the handler is still ours; somebody may have set another.
    ///
    /// # Errors
    /// Where there is no such signal.
    pub fn is_ours(self) -> Result<bool, OsError> {
        Ok(action(self.0)?.sa_sigaction == handler_address())
    }

    /// Sends the signal to a thread of this process, with a number that its handler looks up.
    ///
    /// # Errors
    /// `ESRCH` where the thread is gone, `EAGAIN` where too many signals wait in the process.
    pub(super) fn send(self, thread: ThreadId, value: u32) -> Result<(), OsError> {
        let mut info = Info::new(self.0, value);
        // SAFETY: the kernel reads a whole `siginfo_t` from there; rt_tgsigqueueinfo(2).
        let answer = unsafe {
            libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), thread.raw(), self.0, &raw mut info)
        };
        if answer == 0 { Ok(()) } else { Err(OsError::last("rt_tgsigqueueinfo")) }
    }
}

impl<W: Work> Claim<W> {
    /// Has a thread of this process do the work.
    ///
    /// # Errors
    /// Those of the signal: `ESRCH` where the thread is gone.
    pub fn send(self, signal: DirectedSignal, thread: ThreadId) -> Result<Sent<W>, OsError> {
        self.send_by(thread, |value| signal.send(thread, value))
    }
}

/// A `siginfo_t` as `sigqueue` fills it in: its fields behind the first three are a union in C.
#[repr(C)]
struct Info {
    signal: c_int,
    error: c_int,
    code: c_int,
    #[cfg(target_pointer_width = "64")]
    _gap: c_int,
    process: libc::pid_t,
    user: libc::uid_t,
    value: usize,
    _rest: [u8; 128],
}

const _: () = assert!(size_of::<Info>() >= size_of::<libc::siginfo_t>());

impl Info {
    fn new(signal: c_int, value: u32) -> Self {
        Self {
            signal,
            error: 0,
            code: CODE,
            #[cfg(target_pointer_width = "64")]
            _gap: 0,
            // SAFETY: these calls have no preconditions.
            process: unsafe { libc::getpid() },
            // SAFETY: as before.
            user: unsafe { libc::getuid() },
            value: marked(value),
            _rest: [0; 128],
        }
    }
}

/// The value that a signal carries for a slot's use.
fn marked(value: u32) -> usize {
    // Of 32 bits there are only the lower ones.
    (MARK << 32 | u64::from(value)) as usize
}

fn action(number: c_int) -> Result<libc::sigaction, OsError> {
    // SAFETY: all zeros is a valid `sigaction`; the call fills it in.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the pointers are valid or null.
    let answer = unsafe { libc::sigaction(number, std::ptr::null(), &raw mut action) };
    if answer == 0 { Ok(action) } else { Err(OsError::last("sigaction")) }
}

/// Whether the signal's action is ours, with the same stack: all that share a handler may share its signal, of which there
/// are few.
fn shares(action: &libc::sigaction, on_signal_stack: bool) -> bool {
    let is_on_stack = action.sa_flags & libc::SA_ONSTACK != 0;
    action.sa_sigaction == handler_address() && is_on_stack == on_signal_stack
}

/// A signal that is ours already.
fn taken_before(on_signal_stack: bool) -> Option<c_int> {
    let is_ours = |number: &c_int| action(*number).is_ok_and(|action| shares(&action, on_signal_stack));
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(is_ours)
}

/// A signal that nobody uses, or that another thread took since [`taken_before`] looked.
fn unused(on_signal_stack: bool) -> Option<c_int> {
    let is_unused = |number: &c_int| {
        action(*number)
            .is_ok_and(|action| action.sa_sigaction == libc::SIG_DFL || shares(&action, on_signal_stack))
    };
    // The lowest and the highest are what people take first, and emulators have not all of them (qemu maps 63 and 64 to
    // none and takes handlers for them all the same).
    const SKIPPED: c_int = 4;
    (libc::SIGRTMIN()..=libc::SIGRTMAX() - SKIPPED).rev().find(is_unused)
}

fn handler_address() -> usize {
    handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
}

fn install(number: c_int, on_signal_stack: bool) -> Result<(), OsError> {
    // SAFETY: all zeros is a valid `sigaction`.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = handler_address();
    let stack = if on_signal_stack { libc::SA_ONSTACK } else { 0 };
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | stack;
    // SAFETY: both pointers are valid.
    let answer = unsafe {
        libc::sigfillset(&raw mut ours.sa_mask);
        libc::sigaction(number, &raw const ours, std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(OsError::last("sigaction")) }
}

/// The handler. Neither allocates nor locks, and leaves `errno` as it was.
extern "C" fn handle(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    allow_misaligned();
    // SAFETY: errno is this thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as before.
    let saved = unsafe { *errno };
    // SAFETY: the kernel gives both pointers; ours are queued signals, which carry a value.
    unsafe {
        let value = (*info).si_value().sival_ptr.addr();
        let short = value as u32;
        if (*info).si_code == CODE && value == marked(short) {
            slots::serve(short, || Stopped::interrupted(context));
            held::stay((&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast());
        } else {
            chain(number, info, context);
        }
        *errno = saved;
    }
}

/// Hands a foreign signal on to the handler that was there before us. Where none was it is ignored: for the default
/// action, the end of the process, nobody would have sent it.
///
/// # Safety
///
/// The arguments are what the kernel gave our handler.
unsafe fn chain(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = usize::try_from(number).ok().and_then(|number| PREVIOUS.get(number));
    let Some(previous) = previous.map(|previous| previous.load(SeqCst)) else { return };
    // SAFETY: never freed once it is there.
    let Some(previous) = (unsafe { previous.as_ref() }) else { return };
    let address = previous.sa_sigaction;
    if address == libc::SIG_DFL || address == libc::SIG_IGN || address == handler_address() {
        return;
    }
    // SAFETY: whoever installed it promised a function of the kind that its flags tell.
    unsafe {
        if previous.sa_flags & libc::SA_SIGINFO == 0 {
            let function: extern "C" fn(c_int) = std::mem::transmute(address);
            function(number);
        } else {
            let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                std::mem::transmute(address);
            function(number, info, context);
        }
    }
}
