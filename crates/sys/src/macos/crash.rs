//! Exceptions and signals that end the process: told to a thread that waits for them, and handed on as if nobody had looked.
//! Nobody has run this yet.
//!
//! Two threads wait. The one that [`listen`]s has the task's exception port: while it looks, the kernel keeps the thread that crashed
//! where it is. The other one guards it: the listener's own faults come to its port, and where the listener takes too long, the guard
//! answers in its place, so that nothing waits for ever. A signal (`abort` raises no exception that a process could catch itself)
//! has its handler tell the listener, and wait.
//!
//! What comes after: the ports from before are set again, and the thread goes on, into the same fault. So whoever was there before is told
//! by the kernel itself; where nobody was, the kernel makes its signal of the exception, and the system's reporter sees it.

use super::ffi::{self, Port};
use super::ports::{Message, answer, make, receive, tell};
use super::slots::syndrome;
use super::{OsError, Stopped, ThreadId, block_signals, exception_ports, is_traced};
use crate::FAMILY;
use crate::error::location;
use crate::mach_exception::Exception;
use crate::mach_message::{self, GOES_ON, NOT_MINE, Request};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Signals are numbered from 1 to 31.
const SIGNALS: usize = 32;
/// What was there before, for each signal that is caught. Never freed: a handler may be looking.
static PREVIOUS: [AtomicPtr<libc::sigaction>; SIGNALS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS];

/// Notes of our own.
const SIGNAL: i32 = -1;
const BEGUN: i32 = -2;
const DONE: i32 = -3;

/// The process that listens.
static PROCESS: AtomicI32 = AtomicI32::new(0);
static LISTENER: AtomicU32 = AtomicU32::new(0);
static LISTENERS_PORT: AtomicU32 = AtomicU32::new(0);
static GUARDS_PORT: AtomicU32 = AtomicU32::new(0);
static PATIENCE: AtomicU64 = AtomicU64::new(0);
static IS_LISTENING: AtomicBool = AtomicBool::new(false);
/// A report was kept: what follows is how the process ends.
static IS_KEPT: AtomicBool = AtomicBool::new(false);
/// [`listen`]'s two functions.
static ACT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static IN_NEED: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Who waits for the listener.
static WAITING: Waiting = Waiting {
    state: AtomicU32::new(NOBODY),
    request: UnsafeCell::new(None),
    signalled: AtomicU32::new(0),
    info: AtomicPtr::new(std::ptr::null_mut()),
    context: AtomicPtr::new(std::ptr::null_mut()),
};

const NOBODY: u32 = 0;
/// The request is being written.
const WRITTEN: u32 = 1;
/// A thread waits: for the kernel's answer, or in the handler of a signal.
const WAITS: u32 = 2;

struct Waiting {
    state: AtomicU32,
    /// Of an exception.
    request: UnsafeCell<Option<Request>>,
    /// The thread that is in a handler, and what the kernel gave it.
    signalled: AtomicU32,
    info: AtomicPtr<libc::siginfo_t>,
    context: AtomicPtr<c_void>,
}

// SAFETY: the request is written by the listener alone, in the state `WRITTEN`, and read by whoever has changed `WAITS` to that.
unsafe impl Sync for Waiting {}

impl Waiting {
    fn put(&self, request: Option<Request>) {
        // The guard may be about to let go the one before, which takes some system calls.
        while self.state.compare_exchange(NOBODY, WRITTEN, SeqCst, SeqCst).is_err() {
            sleep(Duration::from_millis(1));
        }
        // SAFETY: see above.
        unsafe { *self.request.get() = request };
        self.state.store(WAITS, SeqCst);
    }

    /// Lets go on who waits: once, whether the listener says so or the guard.
    fn release(&self) {
        if self.state.compare_exchange(WAITS, WRITTEN, SeqCst, SeqCst).is_err() {
            return;
        }
        // SAFETY: see above.
        let request = unsafe { (*self.request.get()).take() };
        exception_ports::give_back();
        self.state.store(NOBODY, SeqCst);
        if let Some(request) = request {
            let_go(&request);
        } else {
            self.signalled.store(0, SeqCst);
        }
    }
}

/// Hands an exception on.
fn let_go(request: &Request) {
    // Where somebody was told before, the fault comes again for them. Otherwise the kernel need not run it again.
    let again = exception_ports::has_before(request.exception.kind) && request.exception.comes_again(FAMILY);
    answer(request, if again { GOES_ON } else { NOT_MINE });
}

/// A thread that crashed: it stands still while this lives.
#[derive(Debug)]
pub struct Crashed<'a> {
    how: How<'a>,
    thread: ThreadId,
    _stands_still: PhantomData<*const ()>,
}

#[derive(Debug)]
enum How<'a> {
    Exception(Exception),
    Signal(&'a libc::siginfo_t, *const c_void),
}

/// `SI_TKILL` and `SIGSYS` of Linux, `SIGSYS` of Apple's systems.
const SENT_BY_THREAD: i32 = -6;
const LINUX_SIGSYS: i32 = 31;

impl Crashed<'_> {
    /// The signal's number, by Linux's count.
    pub fn signal(&self) -> i32 {
        match &self.how {
            How::Exception(exception) => exception.signal(FAMILY).map_or(0, u32::cast_signed),
            How::Signal(info, _) if info.si_signo == libc::SIGSYS => LINUX_SIGSYS,
            How::Signal(info, _) => info.si_signo,
        }
    }

    /// What the signal was for, by Linux's `si_code`.
    pub fn code(&self) -> i32 {
        match &self.how {
            How::Exception(exception) => exception.linux_code(),
            How::Signal(..) if self.sender().is_some() => 0,
            How::Signal(..) => SENT_BY_THREAD,
        }
    }

    /// The address that the access was to.
    pub fn address(&self) -> Option<u64> {
        match &self.how {
            How::Exception(exception) => exception.address(FAMILY),
            How::Signal(..) => None,
        }
    }

    /// The other process that sent the signal, where one did.
    pub fn sender(&self) -> Option<i32> {
        match &self.how {
            How::Exception(_) => None,
            // SAFETY: takes nothing.
            How::Signal(info, _) => {
                Some(info.si_pid).filter(|pid| *pid != 0 && *pid != unsafe { libc::getpid() })
            }
        }
    }

    /// What the kernel raised; `None` of a signal that was sent.
    pub fn exception(&self) -> Option<Exception> {
        match self.how {
            How::Exception(exception) => Some(exception),
            How::Signal(..) => None,
        }
    }

    /// The thread.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Where it stands; without registers where the kernel does not give them.
    pub fn stopped(&self) -> Stopped {
        match self.how {
            How::Exception(_) => Stopped::in_exception(self.thread).unwrap_or_else(|_| Stopped::unknown()),
            // SAFETY: the kernel's context of a handler that waits until this is gone.
            How::Signal(_, context) => unsafe { Stopped::interrupted(context) },
        }
    }
}

/// Catches these signals, from now on. What handled them before is called afterwards. Exceptions are caught by [`listen`].
///
/// # Errors
/// Where there is no such signal.
pub fn catch(signals: &[i32]) -> Result<(), OsError> {
    for number in signals {
        let place = usize::try_from(*number).ok().and_then(|number| PREVIOUS.get(number));
        let place = place.ok_or(OsError { call: "sigaction", number: libc::EINVAL })?;
        // SAFETY: all zeros is a valid `sigaction`; the pointers are valid or null; the handler is of the kind that the flags tell.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(*number, std::ptr::null(), &raw mut before) != 0 {
                return Err(OsError::last("sigaction"));
            }
            if before.sa_sigaction == handler_address() {
                continue;
            }
            place.store(Box::into_raw(Box::new(before)), SeqCst);
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = handler_address();
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigemptyset(&raw mut ours.sa_mask);
            if libc::sigaction(*number, &raw const ours, std::ptr::null_mut()) != 0 {
                return Err(OsError::last("sigaction"));
            }
        }
    }
    Ok(())
}

/// On Linux `in_need` of [`listen`] is called with this in the place of a signal where the report takes too long; here it is not.
pub const OUT_OF_PATIENCE: i32 = 0;

/// Waits for crashes on the calling thread, and has `act` look at the first while the thread that crashed stands still, for
/// `patience` at most. Where `act` crashes, `in_need` is called, once, on another thread. Does not return: what comes after a report goes to
/// whoever was there before. Where a debugger has the process, exceptions are left to it.
///
/// One thread of the process listens; `false` where another does or did.
///
/// # Errors
/// Where the kernel gives no port, or the guard cannot be started.
pub fn listen(patience: Duration, in_need: fn(i32), act: fn(&Crashed<'_>) -> bool) -> Result<bool, OsError> {
    let own = ThreadId::current().get();
    if LISTENER.compare_exchange(0, own, SeqCst, SeqCst).is_err() {
        return Ok(false);
    }
    PATIENCE.store(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX), SeqCst);
    IN_NEED.store(in_need as *mut c_void, SeqCst);
    ACT.store(act as *mut c_void, SeqCst);
    // SAFETY: takes nothing.
    PROCESS.store(unsafe { libc::getpid() }, SeqCst);
    let (port, guards) = (make()?, make()?);
    LISTENERS_PORT.store(port, SeqCst);
    GUARDS_PORT.store(guards, SeqCst);
    let guard = std::thread::Builder::new().name(GUARD.to_owned()).stack_size(GUARDS_STACK);
    guard
        .spawn(move || guard_listener(guards))
        .map_err(|error| OsError { call: "pthread_create", number: error.raw_os_error().unwrap_or(0) })?;
    exception_ports::take_of_thread(own, guards)?;
    if !is_traced() {
        exception_ports::take(port)?;
    }
    IS_LISTENING.store(true, SeqCst);
    let mut message = Message::new();
    loop {
        if receive(port, &mut message, None)? {
            heed(&message);
        }
    }
}

/// The name of the thread that guards the one that listens.
pub const GUARD: &str = "backtrail-guard";
const GUARDS_STACK: usize = 512 << 10;

/// Whether a thread listens: from then on crashes are told.
pub fn is_listening() -> bool {
    IS_LISTENING.load(SeqCst)
}

/// Has the calling thread take no signals; exceptions come all the same.
pub fn take_no_signals() {
    block_signals();
}

/// A message to the listener.
fn heed(message: &Message) {
    if let Some(request) = Request::parse(message.bytes()) {
        if request.task != ffi::task() {
            // A child by `fork` has this process's ports.
            answer(&request, NOT_MINE);
            return;
        }
        if IS_KEPT.load(SeqCst) {
            // Another thread, while the process is about to end.
            let_go(&request);
            return;
        }
        let thread = ThreadId::new(request.thread);
        let exception = Exception { syndrome: syndrome(thread), ..request.exception };
        WAITING.put(Some(request));
        work(&Crashed { how: How::Exception(exception), thread, _stands_still: PhantomData });
    } else if mach_message::id(message.bytes()) == Some(SIGNAL) {
        if IS_KEPT.load(SeqCst) {
            WAITING.signalled.store(0, SeqCst);
            return;
        }
        let thread = WAITING.signalled.load(SeqCst);
        // SAFETY: the handler that told it waits with both in its frame.
        let info = unsafe { WAITING.info.load(SeqCst).as_ref() };
        if let Some(info) = info.filter(|_| thread != 0) {
            WAITING.put(None);
            let how = How::Signal(info, WAITING.context.load(SeqCst));
            work(&Crashed { how, thread: ThreadId::new(thread), _stands_still: PhantomData });
        }
    }
}

/// Has the function of [`listen`] look, then lets go on who waits.
fn work(crashed: &Crashed<'_>) {
    let guards = GUARDS_PORT.load(SeqCst);
    tell(guards, BEGUN);
    let act = ACT.load(SeqCst);
    if !act.is_null() {
        // SAFETY: `listen` put a function of this type there.
        let act: fn(&Crashed<'_>) -> bool = unsafe { std::mem::transmute(act) };
        IS_KEPT.fetch_or(act(crashed), SeqCst);
    }
    tell(guards, DONE);
    WAITING.release();
}

/// The guard: its port has the listener's own faults, and notes of when it begins and ends.
fn guard_listener(port: Port) {
    block_signals();
    let patience = Duration::from_millis(PATIENCE.load(SeqCst));
    let mut deadline: Option<Instant> = None;
    let mut message = Message::new();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match receive(port, &mut message, left) {
            Err(_) => return,
            Ok(false) => {
                deadline = None;
                WAITING.release();
            }
            Ok(true) => match mach_message::id(message.bytes()) {
                Some(BEGUN) => deadline = Instant::now().checked_add(patience),
                Some(DONE) => deadline = None,
                _ => {
                    if let Some(request) = Request::parse(message.bytes()) {
                        // It is never answered: the listener stays where it is.
                        deadline = None;
                        help(request.exception.signal(FAMILY).map_or(0, u32::cast_signed));
                    }
                }
            },
        }
    }
}

/// The listener has crashed itself.
fn help(signal: i32) {
    let act = IN_NEED.load(SeqCst);
    if !act.is_null() && WAITING.state.load(SeqCst) == WAITS {
        // SAFETY: `listen` put a function of this type there.
        let act: fn(i32) = unsafe { std::mem::transmute(act) };
        act(signal);
        IS_KEPT.store(true, SeqCst);
    }
    WAITING.release();
}

fn handler_address() -> usize {
    handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
}

/// The handler of signals. Neither allocates nor locks, and leaves `errno` as it was.
extern "C" fn handle(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: errno is this thread's own.
    let saved = unsafe { *location() };
    let own = ThreadId::current().get();
    if previous(number).is_some_and(|previous| previous.sa_sigaction == libc::SIG_IGN) {
        return;
    }
    if own == LISTENER.load(SeqCst) {
        // It has no more to say: another thread does that, and the process ends.
        help(number);
        sleep_for_ever();
    }
    // SAFETY: takes nothing.
    if unsafe { libc::getpid() } != PROCESS.load(SeqCst) {
        // A child by `fork`, in which nobody listens.
        hand_on(number);
        return;
    }
    let is_first = !IS_KEPT.load(SeqCst)
        && is_listening()
        && WAITING.signalled.compare_exchange(0, own, SeqCst, SeqCst).is_ok();
    if is_first {
        WAITING.info.store(info, SeqCst);
        WAITING.context.store(context, SeqCst);
        tell(LISTENERS_PORT.load(SeqCst), SIGNAL);
    }
    wait();
    hand_on(number);
    // SAFETY: as before.
    unsafe { *location() = saved };
}

fn previous(number: c_int) -> Option<&'static libc::sigaction> {
    let place = usize::try_from(number).ok().and_then(|number| PREVIOUS.get(number))?;
    // SAFETY: never freed.
    unsafe { place.load(SeqCst).as_ref() }
}

/// Waits until nobody waits for the listener any more: for twice its patience at most, since another thread's crash may come first.
fn wait() {
    let patience = Duration::from_millis(PATIENCE.load(SeqCst).saturating_mul(2));
    let Some(deadline) = Instant::now().checked_add(patience) else { return };
    let is_at_work = || WAITING.signalled.load(SeqCst) != 0 || WAITING.state.load(SeqCst) != NOBODY;
    while is_at_work() && Instant::now() < deadline {
        sleep(Duration::from_millis(1));
    }
}

/// Has the same signal come once more as soon as the handler returns, to whoever handled it before.
fn hand_on(number: c_int) {
    let Some(previous) = previous(number) else { return };
    // SAFETY: the pointers are valid or null; the calling thread's own.
    unsafe {
        libc::sigaction(number, previous, std::ptr::null_mut());
        libc::pthread_kill(libc::pthread_self(), number);
    }
}

fn sleep(time: Duration) {
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(0),
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: the pointers are valid or null.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

fn sleep_for_ever() -> ! {
    loop {
        sleep(Duration::from_secs(3600));
    }
}
