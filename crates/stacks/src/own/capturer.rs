//! The capturer: everything that capturing needs, made ahead of time.

use super::job::{Job, slots};
use super::snapshot::Snapshots;
use super::walk::{self, ThreadCache};
use super::{CaptureError, Method, Options, OsError, RawStack, Stopped, ThreadId};
use backtrail_capture::local::{self, BackgroundRefresher, Claim, DirectedSignal, Sent};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Captures stacks of this process.
///
/// May be shared between threads, and there may be several, which share a signal. After a `fork`, the child needs one of
/// its own; with the parent's it may go on capturing the calling thread, with the images as they were listed last.
#[derive(Debug)]
pub struct Capturer {
    options: Options,
    pub(super) directed: DirectedSignal,
    pub(super) kept: Arc<Snapshots>,
    refresher: BackgroundRefresher,
    pub(super) usage: super::thread::Usage,
    pub(crate) files: super::open::OpenFiles,
}

impl Capturer {
    /// The name of the thread that keeps the list of images: no list of threads has it.
    pub const REFRESHER: &str = "backtrail-image";

    /// Takes the signal, lists the images, compiles their rules where the [`Method`] needs that (a millisecond for each megabyte of code
    /// or so), and starts the thread that keeps the list.
    ///
    /// # Errors
    /// Where the signal cannot be had or the thread not be started.
    ///
    /// # Signal safety
    ///
    /// Not safe.
    pub fn new(options: Options) -> Result<Self, OsError> {
        let signal = DirectedSignal::take(options.signal, options.on_signal_stack)?;
        let kept = Arc::new(Snapshots::new(options.method));
        let own = Arc::clone(&kept);
        let refresher = BackgroundRefresher::start(Self::REFRESHER, move || own.follow());
        let refresher = refresher
            .map_err(|error| OsError { call: "pthread_create", number: error.raw_os_error().unwrap_or(0) })?;
        // Captures find room that is made already.
        let mut claims: Vec<_> = std::iter::from_fn(|| slots().claim()).collect();
        for claim in &mut claims {
            claim.work().reserve(options.method, options.max_frames);
        }
        drop(claims);
        let (usage, files) = (<_>::default(), <_>::default());
        Ok(Self { options, directed: signal, kept, refresher, usage, files })
    }

    /// The number of the signal that threads are asked by.
    pub fn signal(&self) -> i32 {
        self.directed.number()
    }

    /// The options that it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Brings the list of images up to date, as captures of other threads do by themselves. Says whether it is: false
    /// where the loader was busy for all of [`Options::loader_patience`].
    ///
    /// # Signal safety
    ///
    /// Not safe.
    pub fn refresh(&self) -> bool {
        self.refresher.ask(self.options.loader_patience)
    }

    /// The calling thread's stack, from the caller of this function on.
    ///
    /// # Signal safety
    ///
    /// Safe: neither allocates nor locks, and takes the images as they were listed last.
    #[inline(never)]
    pub fn current(&self, stack: &mut RawStack) {
        self.at(&Stopped::here(), 1, stack);
    }

    /// The same without the `top` innermost frames: 1 leaves the caller of this function out too. Frames of functions
    /// that were inlined are none.
    ///
    /// # Signal safety
    ///
    /// Safe, as [`Capturer::current`] is.
    #[inline(never)]
    pub fn current_skipping(&self, top: usize, stack: &mut RawStack) {
        self.at(&Stopped::here(), top.saturating_add(1), stack);
    }

    /// The calling thread's stack at the least cost: what `cache` knows is not looked up again.
    ///
    /// # Signal safety
    ///
    /// Safe, as [`Capturer::current`] is.
    #[inline(never)]
    pub fn current_cached(&self, cache: &mut ThreadCache, top: usize, stack: &mut RawStack) {
        let at = Stopped::here_on(cache.stack());
        let top = top.saturating_add(1);
        self.kept.with_now(|snapshot| match self.options.method {
            Method::FramePointers => walk::by_frame_pointers(&at, snapshot.generation(), top, stack),
            _ => {
                let rules = cache.rules(snapshot.generation());
                walk::in_place(&at, snapshot, Some(rules), top, stack);
            }
        });
        stack.thread = Some(cache.thread());
    }

    /// The calling thread's stack from a place on where it stands still, without the `top` innermost frames: what a
    /// handler of the program's own has interrupted ([`Stopped::interrupted`]).
    ///
    /// # Signal safety
    ///
    /// Safe, as [`Capturer::current`] is.
    pub fn at(&self, at: &Stopped, top: usize, stack: &mut RawStack) {
        self.kept.with_now(|snapshot| match self.options.method {
            Method::FramePointers => walk::by_frame_pointers(at, snapshot.generation(), top, stack),
            _ => walk::in_place(at, snapshot, None, top, stack),
        });
        stack.thread = Some(ThreadId::current());
    }

    /// The stack of any thread of this process.
    ///
    /// Neither allocates nor takes a lock that the thread could hold.
    ///
    /// # Errors
    /// Why the thread did not answer; `stack` is empty then.
    ///
    /// # Signal safety
    ///
    /// Not safe: it waits.
    #[inline(never)]
    pub fn thread(&self, id: ThreadId, stack: &mut RawStack) -> Result<(), CaptureError> {
        stack.clear();
        self.refresh();
        if id == ThreadId::current() {
            self.at(&Stopped::here(), 1, stack);
            return Ok(());
        }
        let asked = Instant::now();
        let sent = self.send(free_slot(self.deadline(asked))?, id, self.options.method)?;
        self.receive(sent, id, asked, stack)
    }

    /// The stack of the process's first thread; see [`Capturer::thread`].
    ///
    /// # Errors
    /// Why the thread did not answer: it may have ended before the others.
    ///
    /// # Signal safety
    ///
    /// Not safe: it waits.
    pub fn main_thread(&self, stack: &mut RawStack) -> Result<(), CaptureError> {
        self.thread(ThreadId::main(), stack)
    }

    pub(super) fn deadline(&self, asked: Instant) -> Instant {
        asked.checked_add(self.options.timeout).unwrap_or(asked)
    }

    pub(super) fn send(
        &self,
        mut claim: Claim<Job>,
        id: ThreadId,
        method: Method,
    ) -> Result<Sent<Job>, CaptureError> {
        claim.work().prepare(self.kept.now(), method, self.options.max_frames, id);
        local::send(claim, self.directed, id)
    }

    pub(super) fn receive(
        &self,
        sent: Sent<Job>,
        id: ThreadId,
        asked: Instant,
        stack: &mut RawStack,
    ) -> Result<(), CaptureError> {
        let mut claim = local::wait(sent, self.directed, id, asked, self.deadline(asked))?;
        claim.work().finish(stack);
        Ok(())
    }
}

/// All slots in use means that as many threads are captured at the same time: one will be free soon. To be asked for only by
/// who has none: all others wait for nothing but their threads.
pub(super) fn free_slot(deadline: Instant) -> Result<Claim<Job>, CaptureError> {
    loop {
        if let Some(claim) = slots().claim() {
            return Ok(claim);
        }
        if Instant::now() >= deadline {
            return Err(CaptureError::Busy);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}
