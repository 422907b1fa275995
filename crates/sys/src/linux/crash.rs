//! Signals that end the process: caught, told to a thread that waits for them, and handed on as if nobody had looked.
//!
//! The handler does next to nothing, since the stack that it runs on may be small: it wakes the thread that [`listen`]s,
//! waits until that is done, for so long at most, and hands the signal on. All work is that thread's, on a stack of its
//! own. A fault of that thread while it works comes to the same handler, which lets it try something shorter once.
//!
//! A runtime that uses faults for its own purposes (a JVM's null checks) is asked first, and its crash is told when it has found out
//! that it is one: see [`AskedFirst`].
//!
//! A child of `fork` or `vfork` has the handler and its memory, but not the thread. There the handler starts one by a system call,
//! on a stack that was set aside. The process itself does not rely on that: one that is at its limit of threads or processes crashes, too.

mod asked;
mod instead;
mod waiting;
mod worker;

pub use asked::AskedFirst;
use instead::{AbortsByDefault, TakenBack};
pub use waiting::also_crashed;

use super::context::allow_misaligned;
use super::stopped::Stopped;
use super::{OsError, OwnMemory, ThreadId, futex, held};
use backtrail_core::{Avma, ReadMemory as _};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Signals are numbered from 1 to 64.
const SIGNALS: usize = 65;

/// What was there before, for each signal that is caught. Never freed: a handler may be looking.
static PREVIOUS: [AtomicPtr<libc::sigaction>; SIGNALS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS];

/// Nobody listens.
const DEAF: u32 = 0;
/// A crash can be told.
const LISTENING: u32 = 1;
/// A thread has crashed and says where.
const TAKEN: u32 = 2;
/// The worker is at work.
const TOLD: u32 = 3;
/// It has done what it could. No second crash is told: what follows is how the process ends.
const DONE: u32 = 4;

/// In the place of a signal: nothing crashed, it took too long.
pub const OUT_OF_PATIENCE: i32 = 0;

/// Where a thread that crashed and the one that works for it meet.
struct Meeting {
    state: AtomicU32,
    /// The process: of [`OWN`] the one that listens, of [`CHILD`] the last one that told a crash.
    process: AtomicI32,
    /// The thread that works.
    worker: AtomicU32,
    crashed: AtomicU32,
    info: AtomicPtr<libc::siginfo_t>,
    context: AtomicPtr<c_void>,
    /// How often the worker has crashed itself.
    nested: AtomicU32,
}

/// Of the process that listens.
static OWN: Meeting = Meeting::new();
/// Of its children by `fork` and `vfork`. Those of `vfork` share this memory with the process, and with each other.
static CHILD: Meeting = Meeting::new();

static PATIENCE: AtomicU64 = AtomicU64::new(0);
/// [`listen`]'s two functions.
static ACT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static IN_NEED: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

impl Meeting {
    const fn new() -> Self {
        Self {
            state: AtomicU32::new(DEAF),
            process: AtomicI32::new(0),
            worker: AtomicU32::new(0),
            crashed: AtomicU32::new(0),
            info: AtomicPtr::new(std::ptr::null_mut()),
            context: AtomicPtr::new(std::ptr::null_mut()),
            nested: AtomicU32::new(0),
        }
    }

    /// Has the function of [`listen`] look at the thread that told its crash, and says what it said.
    fn work(&self) -> bool {
        let act = ACT.load(SeqCst);
        // SAFETY: the handler that told it waits with both in its frame.
        if let (Some(info), false) = (unsafe { self.info.load(SeqCst).as_ref() }, act.is_null()) {
            // SAFETY: `listen` put a function of this type there.
            let act: fn(&Crashed<'_>) -> bool = unsafe { std::mem::transmute(act) };
            let thread = ThreadId::new(self.crashed.load(SeqCst));
            let context = self.context.load(SeqCst);
            let _ours = TakenBack::faults();
            return act(&Crashed { info, context, thread, _stands_still: PhantomData });
        }
        true
    }

    /// The same while threads that are asked for their stacks stand still. Not for children of the process: those of `vfork` would have
    /// the process's threads stay when they are gone.
    fn work_with_others_held(&self) -> bool {
        // Beyond what the thread that crashed waits.
        held::hold(Duration::from_millis(PATIENCE.load(SeqCst).saturating_mul(2)));
        self.work()
    }

    fn done(&self) {
        self.state.store(DONE, SeqCst);
        futex::wake(&self.state);
    }

    /// Takes the place of the thread that crashed. Not where another has it.
    fn take(&self) -> bool {
        self.state.compare_exchange(LISTENING, TAKEN, SeqCst, SeqCst).is_ok()
    }

    fn put(&self, thread: u32, info: *mut libc::siginfo_t, context: *mut c_void) {
        self.info.store(info, SeqCst);
        self.context.store(context, SeqCst);
        self.crashed.store(thread, SeqCst);
        self.state.store(TOLD, SeqCst);
    }

    fn wait_until_done(&self) {
        let Some(deadline) = Instant::now().checked_add(Duration::from_millis(PATIENCE.load(SeqCst))) else {
            return;
        };
        loop {
            let state = self.state.load(SeqCst);
            let left = deadline.saturating_duration_since(Instant::now());
            if !matches!(state, TAKEN | TOLD) || left.is_zero() {
                return;
            }
            futex::wait(&self.state, state, left);
        }
    }

    /// Waits for the report of another thread, which crashed first: how the process ends is its business, if it gets there.
    fn wait_for_other(&self) {
        if matches!(self.state.load(SeqCst), TAKEN | TOLD) {
            self.wait_until_done();
            sleep(Duration::from_secs(1));
        }
    }

    /// Calls the second function of [`listen`], unless it was called.
    fn call_in_need(&self, number: c_int) {
        if self.state.load(SeqCst) == TOLD && self.nested.fetch_add(1, SeqCst) == 0 {
            let act = IN_NEED.load(SeqCst);
            if !act.is_null() {
                // SAFETY: `listen` put a function of this type there.
                let act: fn(i32) = unsafe { std::mem::transmute(act) };
                act(number);
            }
        }
    }

    /// Waits for the worker. Where it takes too long, it may never end: what there is must do.
    fn wait_for_worker(&self) {
        self.wait_until_done();
        self.call_in_need(OUT_OF_PATIENCE);
    }

    /// The worker itself has crashed. It does not go on, but lets those go on that wait for it.
    fn in_need(&self, number: c_int) {
        self.call_in_need(number);
        if self.state.load(SeqCst) != TOLD {
            // It was not at work: its fault is as anybody's. No report can be had of it.
            return;
        }
        self.done();
        loop {
            // SAFETY: no preconditions.
            unsafe { libc::pause() };
        }
    }
}

fn sleep(time: Duration) {
    let time = libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(0),
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: the pointers are valid or null.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// A thread that crashed: it stands still in its handler while this lives.
#[derive(Debug)]
pub struct Crashed<'a> {
    info: &'a libc::siginfo_t,
    context: *const c_void,
    thread: ThreadId,
    _stands_still: PhantomData<*const ()>,
}

impl Crashed<'_> {
    /// The signal's number.
    pub fn signal(&self) -> i32 {
        self.info.si_signo
    }

    /// `si_code`: what the signal was for.
    pub fn code(&self) -> i32 {
        self.info.si_code
    }

    /// The address that the access was to, or the instruction that failed, where the kernel raised the signal.
    pub fn address(&self) -> Option<u64> {
        let has_one = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
        // SAFETY: of these signals, raised by the kernel, the union holds the address.
        ((1..libc::SI_KERNEL).contains(&self.code()) && has_one.contains(&self.signal()))
            .then(|| unsafe { self.info.si_addr() } as u64)
    }

    /// The process that sent the signal, where one did.
    pub fn sender(&self) -> Option<i32> {
        // SAFETY: for these codes the union holds who sent it; sigaction(2).
        (self.code() <= 0).then(|| unsafe { self.info.si_pid() })
    }

    /// The thread.
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Where it stands.
    pub fn stopped(&self) -> Stopped {
        // SAFETY: the kernel's context of a handler that waits until this is gone.
        unsafe { Stopped::interrupted(self.context) }
    }
}

/// Catches these signals, from now on. What handled them before is called afterwards; before, where `asked_first` says so of its
/// address.
///
/// # Errors
/// Where there is no such signal.
pub fn catch(signals: &[i32], asked_first: impl Fn(Avma) -> AskedFirst) -> Result<(), OsError> {
    for number in signals {
        let place = usize::try_from(*number).ok().and_then(|number| PREVIOUS.get(number));
        let place = place.ok_or(OsError { call: "sigaction", number: libc::EINVAL })?;
        // SAFETY: all zeros is a valid `sigaction`; the call fills it in.
        let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the pointers are valid or null.
        if unsafe { libc::sigaction(*number, std::ptr::null(), &raw mut before) } != 0 {
            return Err(OsError::last("sigaction"));
        }
        if before.sa_sigaction == handler_address() {
            continue;
        }
        if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN {
            asked::keep(*number, asked_first(Avma::new(before.sa_sigaction as u64)));
        }
        place.store(Box::into_raw(Box::new(before)), SeqCst);
        exchanged(*number, &ours()).ok_or_else(|| OsError::last("sigaction"))?;
    }
    Ok(())
}

/// Waits for a crash on the calling thread, and has `act` look at it while the thread that crashed stands still, for
/// `patience` at most. Where `act` crashes or takes longer, `in_need` is called, once, with the signal or [`OUT_OF_PATIENCE`]: then `act` may
/// be at work still, and the thread that crashed calls it, on a stack that may be small. Returns when `act` has said `true`; the thread should sleep
/// then, since the process is about to end. After `false` it waits for the next crash: this one did not matter, and a handler from
/// before may go on.
///
/// In children of the process `act` is called on a thread that the crash itself starts. It shares everything with the thread that
/// crashed, also what is kept by thread (`errno`).
///
/// One thread of the process listens; `false` where another does or did.
///
/// # Errors
/// Where there is no memory for the stack of that thread.
pub fn listen(patience: Duration, in_need: fn(i32), act: fn(&Crashed<'_>) -> bool) -> Result<bool, OsError> {
    if OWN.worker.compare_exchange(0, ThreadId::current().get(), SeqCst, SeqCst).is_err() {
        return Ok(false);
    }
    worker::reserve_stack()?;
    PATIENCE.store(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX), SeqCst);
    IN_NEED.store(in_need as *mut c_void, SeqCst);
    ACT.store(act as *mut c_void, SeqCst);
    // SAFETY: no preconditions.
    OWN.process.store(unsafe { libc::getpid() }, SeqCst);
    CHILD.state.store(LISTENING, SeqCst);
    OWN.state.store(LISTENING, SeqCst);
    loop {
        match OWN.state.load(SeqCst) {
            TOLD if OWN.work_with_others_held() => break,
            TOLD => {
                OWN.nested.store(0, SeqCst);
                OWN.state.store(LISTENING, SeqCst);
                futex::wake(&OWN.state);
            }
            state => futex::wait(&OWN.state, state, Duration::from_secs(3600)),
        }
    }
    OWN.done();
    Ok(true)
}

/// Whether a thread listens: from then on crashes are told.
pub fn is_listening() -> bool {
    OWN.state.load(SeqCst) == LISTENING
}

/// Has the calling thread take no signals but these, which must be such as faults raise: a blocked one would end the process at
/// once.
pub fn take_only(signals: &[i32]) {
    super::block_signals();
    // SAFETY: the set is filled in before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for number in signals {
            libc::sigaddset(&raw mut set, *number);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

fn handler_address() -> usize {
    handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
}

/// The handler. Neither allocates nor locks, and leaves `errno` as it was.
extern "C" fn handle(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    allow_misaligned();
    // SAFETY: errno is this thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as before.
    let saved = unsafe { *errno };
    let previous = previous(number);
    // SAFETY: the kernel gives a valid pointer.
    let is_sent = unsafe { (*info).si_code } <= 0;
    let is_ignored = previous.is_some_and(|previous| previous.sa_sigaction == libc::SIG_IGN);
    if is_sent && is_ignored {
        return;
    }
    let own = ThreadId::current().get();
    let has_room = is_sent || previous.is_none_or(|previous| would_have_run(previous, context));
    // A runtime that found a crash of the worker's own would end the process, or have the thread that crashed first wait for ever.
    let is_workers = [&OWN, &CHILD].iter().any(|meeting| meeting.worker.load(SeqCst) == own);
    if !is_sent
        && !is_workers
        && has_room
        && asked::is_asked(number, context)
        && let Some(_asked) = asked::ask(own, info, context)
    {
        // It handles the fault and returns, or finds that it is a crash and ends the process, most of all by SIGABRT.
        // SAFETY: the arguments are the kernel's.
        unsafe { chain(previous, number, info, context) };
        // SAFETY: as before.
        unsafe { *errno = saved };
        return;
    }
    let mask = block_all_but_faults();
    let (fault, at) = asked::fault_of(own, context).unwrap_or((info, context));
    tell(own, number, fault, at);
    // SAFETY: both pointers are valid or null.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut()) };
    let aborts = AbortsByDefault::after(number);
    let next = previous.filter(|_| has_room);
    // By default the process ends, and nobody is to do anything else until it has.
    let is_last = next.is_none_or(|next| is_default(next.sa_sigaction));
    if !is_last {
        held::hear();
    }
    // SAFETY: the arguments are the kernel's.
    unsafe { chain(next, number, info, context) };
    // Rust's sets the default action, and the fault comes again.
    if !is_last && !ends(number) {
        held::let_go();
    }
    drop(aborts);
    // SAFETY: as before.
    unsafe { *errno = saved };
}

/// Whether the handler from before would have run, without us, on the stack that the fault came from. One without `SA_ONSTACK`, as
/// HotSpot's up to JDK 17, has no room where that stack has overflowed: the kernel ends the process.
fn would_have_run(previous: &libc::sigaction, context: *const c_void) -> bool {
    if previous.sa_flags & libc::SA_ONSTACK != 0 || is_default(previous.sa_sigaction) {
        return true;
    }
    // SAFETY: the kernel's context of a handler that has not returned.
    let Some(sp) = (unsafe { Stopped::interrupted(context) }).registers().sp() else { return true };
    // Below the red zone; its frame has far more than that.
    let top_of_frame = Avma::new(sp.get().saturating_sub(128 + 1024));
    OwnMemory::without_stack().read(top_of_frame, &mut [0]).is_ok()
}

/// Whether the signal, should it come again, ends the process.
fn ends(number: c_int) -> bool {
    // SAFETY: all zeros is a valid `sigaction`; the call fills it in.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the pointers are valid or null.
    let answer = unsafe { libc::sigaction(number, std::ptr::null(), &raw mut now) };
    answer == 0 && now.sa_sigaction == libc::SIG_DFL
}

fn is_default(handler: usize) -> bool {
    handler == libc::SIG_DFL || handler == libc::SIG_IGN
}

/// Nothing else is to run here: on a small stack for signals there is no room for the frame of a second one (that of Rust's standard
/// library has 8 KB; two threads that crashed together, of which one was asked for its stack). Gives the mask from before.
fn block_all_but_faults() -> libc::sigset_t {
    // SAFETY: the sets are filled in before they are used.
    unsafe {
        let (mut set, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut set);
        for number in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP] {
            libc::sigdelset(&raw mut set, number);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, &raw mut before);
        before
    }
}

/// Tells who works, and waits for it.
fn tell(own: u32, number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: no preconditions.
    let process = unsafe { libc::getpid() };
    if process != OWN.process.load(SeqCst) {
        tell_in_child(process, own, number, info, context);
        return;
    }
    if own == OWN.worker.load(SeqCst) {
        OWN.in_need(number);
    }
    if OWN.take() {
        OWN.put(own, info, context);
        futex::wake(&OWN.state);
        OWN.wait_for_worker();
    } else if OWN.crashed.load(SeqCst) != own {
        let _place = waiting::wait_here(own, number, context);
        OWN.wait_for_other();
    }
}

/// The same in a child of the process, which may share the process's memory (`vfork`): other children find everything as it was.
fn tell_in_child(
    process: libc::pid_t,
    own: u32,
    number: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    if own == CHILD.worker.load(SeqCst) {
        CHILD.in_need(number);
    }
    let mut is_taken = CHILD.take();
    if !is_taken && CHILD.process.load(SeqCst) == process {
        if CHILD.crashed.load(SeqCst) != own {
            let _place = waiting::wait_here(own, number, context);
            CHILD.wait_for_other();
        }
        return;
    }
    if !is_taken {
        // Another child's report. Its worker needs some time after that to end.
        CHILD.wait_until_done();
        sleep(Duration::from_millis(10));
        is_taken = CHILD.take();
    }
    if !is_taken {
        return;
    }
    let is_first = CHILD.process.swap(process, SeqCst) != process;
    if is_first {
        CHILD.nested.store(0, SeqCst);
        CHILD.put(own, info, context);
    }
    if !is_first || !worker::start() {
        CHILD.state.store(LISTENING, SeqCst);
        return;
    }
    CHILD.wait_for_worker();
    if worker::has_ended(Duration::from_secs(1)) {
        CHILD.worker.store(0, SeqCst);
        CHILD.state.store(LISTENING, SeqCst);
    }
}

/// How our handler is installed.
fn ours() -> libc::sigaction {
    // SAFETY: all zeros is a valid `sigaction`.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = handler_address();
    // A fault within the handler has to come to the handler again: a blocked one ends the process at once.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER | libc::SA_RESTART;
    ours
}

/// Installs a handler; gives the one that was there.
fn exchanged(number: c_int, new: &libc::sigaction) -> Option<libc::sigaction> {
    // SAFETY: all zeros is a valid `sigaction`; the call fills it in.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the pointers are valid.
    (unsafe { libc::sigaction(number, new, &raw mut before) } == 0).then_some(before)
}

fn previous(number: c_int) -> Option<&'static libc::sigaction> {
    let place = usize::try_from(number).ok().and_then(|number| PREVIOUS.get(number))?;
    // SAFETY: never freed once it is there.
    unsafe { place.load(SeqCst).as_ref() }
}

/// Hands the signal on to the handler that was there before, or has the kernel do what it does without any.
///
/// # Safety
///
/// The arguments are what the kernel gave our handler.
unsafe fn chain(
    previous: Option<&libc::sigaction>,
    number: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    let address = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    // An ignored signal that the kernel raised for a fault ends the process all the same.
    if is_default(address) {
        by_default(number, info);
        return;
    }
    let is_long = previous.is_some_and(|previous| previous.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: whoever installed it promised a function of the kind that its flags tell; the sets are filled in before they are used.
    unsafe {
        let (mut blocked, mut before): (libc::sigset_t, libc::sigset_t) =
            (previous.map_or_else(|| std::mem::zeroed(), |previous| previous.sa_mask), std::mem::zeroed());
        if previous.is_some_and(|previous| previous.sa_flags & libc::SA_NODEFER == 0) {
            libc::sigaddset(&raw mut blocked, number);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, &raw mut before);
        if is_long {
            let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                std::mem::transmute(address);
            function(number, info, context);
        } else {
            let function: extern "C" fn(c_int) = std::mem::transmute(address);
            function(number);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
}

/// Has the same signal come once more as soon as the handler returns, with the default action: the process ends with its
/// number, and a core has the registers of the fault, not of a handler. It is blocked until then; what the handler returns to
/// has the mask from before.
fn by_default(number: c_int, info: *mut libc::siginfo_t) {
    // SAFETY: all zeros is a valid `sigaction` and means the default action; the set is filled in before it is used; the kernel
    // reads the information that it gave.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(number, &raw const action, std::ptr::null_mut());
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, number);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let (process, thread) = (libc::getpid(), ThreadId::current().raw());
        if libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, number, info) != 0 {
            libc::syscall(libc::SYS_tgkill, process, thread, number);
        }
    }
}
