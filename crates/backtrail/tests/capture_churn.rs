//! Captures of a program that starts and ends threads, allocates, throws, prints and loads libraries without pause: no
//! crash, no deadlock, no wrong frame, no leak. And of threads that hold the locks that captures must not take.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    unsafe_code,
    reason = "a test's helpers may, and C libraries are called"
)]

use backtrail::capture::{CaptureError, Capturer, Method, Options, RawStack, ThreadId, ThreadStack, WalkEnd};
use backtrail::{Avma, FrameAddress, Symbols};
use backtrail_testkit::TempDir;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_long, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The tests share what is one for the process: its threads, its environment.
static ALONE: Mutex<()> = Mutex::new(());

/// Builds the libraries; `None` where there is no compiler.
fn build(directory: &Path) -> Option<(PathBuf, PathBuf)> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/capture_churn");
    let make = |compiler: &str, source: &str, output: &str| {
        let output = directory.join(output);
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-g", "-O1", "-pthread", "-o"]).arg(&output);
        let done = command.arg(sources.join(source)).args(["-ldl"]).status().ok()?;
        assert!(done.success(), "{source} does not compile");
        Some(output)
    };
    let target = std::env::var("BACKTRAIL_TEST_CC_PREFIX").unwrap_or_default();
    let built = make(&format!("{target}c++"), "churn.cpp", "libchurn.so").zip(make(
        &format!("{target}cc"),
        "plugin.c",
        "libplugin.so",
    ));
    if built.is_none() {
        println!("no C++ compiler: nothing is tested");
    }
    built
}

fn open(library: &Path) -> *mut c_void {
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: a library of our own.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null(), "{library:?} cannot be loaded");
    handle
}

fn symbol(library: *mut c_void, name: &str) -> *mut c_void {
    let name = CString::new(name).unwrap();
    // SAFETY: the handle is open.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!address.is_null(), "{name:?}");
    address
}

/// The kinds of threads of `churn.cpp` that are there all the time.
const KINDS: [&str; 5] = ["throw", "allocate", "load", "print", "start"];

/// Names of frames, each address once.
struct Names<'c> {
    capturer: &'c Capturer,
    symbols: Symbols,
    known: HashMap<FrameAddress, String>,
}

impl Names<'_> {
    fn of(&mut self, stack: &RawStack) -> Vec<String> {
        let is_known = |frame: &backtrail::capture::RawFrame| self.known.contains_key(&frame.address);
        if !stack.frames().iter().all(is_known) {
            for frame in backtrail::capture::symbolize(self.capturer, stack, &self.symbols) {
                let outermost = frame
                    .functions
                    .last()
                    .map(|function| function.linkage_name.clone().unwrap_or_else(|| function.name.clone()));
                let name = outermost.or_else(|| frame.names().last().map(str::to_owned)).unwrap_or_default();
                self.known.insert(frame.address.unwrap(), name);
            }
        }
        stack.frames().iter().map(|frame| self.known[&frame.address].clone()).collect()
    }
}

/// What is certain of a thread's stack: below (further out than) its entry nothing but what starts threads; next to it
/// its middle, and no deep function without its middle.
fn check_chain(kind: &str, names: &[String]) -> Result<bool, String> {
    let at = |part: &str| names.iter().rposition(|name| *name == format!("churn_{kind}_{part}"));
    let Some(entry) = at("entry") else { return Ok(false) };
    let rest = &names[entry + 1..];
    let starts = ["start_thread", "clone3", "__clone", "thread_start", "clone", "__clone3", ""];
    if let Some(odd) = rest.iter().find(|name| !starts.contains(&name.as_str())) {
        return Err(format!("{odd} called the entry"));
    }
    match (at("middle"), at("deep")) {
        (Some(middle), _) if middle + 1 != entry => Err("something between entry and middle".to_owned()),
        (Some(middle), Some(deep)) if deep + 1 != middle => {
            Err("something between middle and deep".to_owned())
        }
        (None, Some(_)) => Err("deep without middle".to_owned()),
        (_, deep) => Ok(deep.is_some()),
    }
}

#[derive(Default, Debug)]
struct Seen {
    complete: usize,
    failed: HashMap<String, usize>,
    unanswered: HashMap<String, usize>,
    deep: HashMap<String, usize>,
}

impl Seen {
    fn look(&mut self, threads: &[ThreadStack], names: &mut Names<'_>) {
        for thread in threads {
            let stack = match &thread.stack {
                Ok(stack) => stack,
                Err(why) => {
                    *self.unanswered.entry(format!("{}: {why}", thread.name)).or_default() += 1;
                    continue;
                }
            };
            match stack.ended() {
                Some(backtrail::capture::WalkEnd::EndOfStack(_)) => self.complete += 1,
                other => {
                    let key = format!(
                        "{}: {}",
                        thread.name,
                        other.map(|o| o.to_string().chars().take(40).collect::<String>()).unwrap_or_default()
                    );
                    *self.failed.entry(key).or_default() += 1;
                }
            }
            let named = names.of(stack);
            match check_chain(&thread.name, &named) {
                Ok(is_deep) => *self.deep.entry(thread.name.clone()).or_default() += usize::from(is_deep),
                Err(why) => panic!("{}: {why}: {named:#?}\n{stack:#?}", thread.name),
            }
        }
    }

    fn has_all_kinds(&self) -> bool {
        KINDS.iter().all(|kind| self.deep.get(*kind).is_some_and(|count| *count > 0))
    }

    /// That there was something to be wrong: of each kind of thread a stack with all of its functions, and most stacks whole.
    fn check(&self) {
        assert!(self.has_all_kinds(), "not all of {KINDS:?} were seen: {self:#?}");
        assert!(self.failed.values().sum::<usize>() * 20 < self.complete, "{self:#?}");
    }
}

#[test]
fn a_wrong_frame_is_noticed() {
    let chain = |names: &[&str]| {
        check_chain("load", &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    };
    let (deep, middle, entry) = ("churn_load_deep", "churn_load_middle", "churn_load_entry");
    assert_eq!(chain(&["dlopen", deep, middle, entry, "start_thread", "clone3"]), Ok(true));
    assert_eq!(chain(&[middle, entry, "start_thread", ""]), Ok(false));
    assert_eq!(chain(&["prctl", "start_thread"]), Ok(false));
    for wrong in [
        &[deep, entry, "start_thread"][..],
        &[deep, "malloc", middle, entry],
        &[deep, middle, "malloc", entry],
        &[deep, middle, entry, "malloc", "start_thread"],
        &[deep, middle, entry, middle],
        &[deep, deep, entry],
    ] {
        assert!(chain(wrong).is_err(), "{wrong:?}");
    }
}

/// Counts what Rust's side holds. The program's own threads allocate by the C library, which is not counted.
struct Counting;

static ALLOCATED: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as i64, SeqCst);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as i64, SeqCst);
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// What a process can lose bit by bit, measured while its threads rest.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Bytes that were allocated and not given back.
    allocated: i64,
    /// Kilobytes of memory that are the process's own, whoever wanted them.
    resident: i64,
    descriptors: i64,
    mappings: i64,
    threads: i64,
}

impl Held {
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with("RssAnon")).unwrap();
        let count = |directory: &str| std::fs::read_dir(directory).unwrap().count() as i64;
        Self {
            allocated: ALLOCATED.load(SeqCst),
            resident: line.split_whitespace().nth(1).unwrap().parse().unwrap(),
            descriptors: count("/proc/self/fd"),
            mappings: std::fs::read_to_string("/proc/self/maps").unwrap().lines().count() as i64,
            threads: task_count() as i64,
        }
    }

    /// What has grown with every round between these moments, by its smallest growth: what is made once and kept grows in some
    /// of them, a leak in all.
    fn growth(rounds: &[Self]) -> Self {
        let least = |of: fn(&Self) -> i64| {
            rounds.windows(2).map(|pair| of(&pair[1]) - of(&pair[0])).min().unwrap_or_default()
        };
        Self {
            allocated: least(|held| held.allocated),
            resident: least(|held| held.resident),
            descriptors: least(|held| held.descriptors),
            mappings: least(|held| held.mappings),
            threads: least(|held| held.threads),
        }
    }

    /// What leaks with rounds of so many captures: 16 bytes with each, a page with every second, or a descriptor, mapping or
    /// thread with each round.
    fn leak(rounds: &[Self], captures: usize) -> Option<String> {
        let (growth, captures) = (Self::growth(rounds), captures as i64);
        let counts = [growth.descriptors, growth.mappings, growth.threads];
        let is_leak = growth.allocated >= 16 * captures
            || growth.resident >= 2 * captures
            || counts.iter().any(|count| *count >= 1);
        is_leak.then(|| format!("{growth:?} with every round: {rounds:#?}"))
    }
}

fn task_count() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn what_grows_with_every_round_is_a_leak_and_what_is_held_for_a_moment_is_none() {
    let held = |allocated: i64| Held { allocated, resident: 0, descriptors: 0, mappings: 0, threads: 0 };
    let leaks = |allocated: [i64; 4]| Held::leak(&allocated.map(held), 100).is_some();
    assert!(leaks([0, 1600, 3200, 4800]));
    assert!(leaks([0, 900_000, 901_600, 950_000]));
    assert!(!leaks([0, 900_000, 0, 900_000]));
    assert!(!leaks([0, 900_000, 900_000, 900_500]));
}

/// Who waits for long: a busy machine may be late.
fn patient(mut options: Options) -> Capturer {
    options.timeout = Duration::from_secs(30);
    Capturer::new(options).unwrap()
}

/// The functions of `churn.cpp`.
#[derive(Clone, Copy)]
struct Churn {
    begin: extern "C" fn(*const c_char),
    end: extern "C" fn() -> c_long,
}

impl Churn {
    fn of(library: *mut c_void) -> Self {
        let (begin, end) = (symbol(library, "churn_begin"), symbol(library, "churn_end"));
        // SAFETY: the functions have these types.
        unsafe {
            Self {
                begin: std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char)>(begin),
                end: std::mem::transmute::<*mut c_void, extern "C" fn() -> c_long>(end),
            }
        }
    }
}

/// Its threads.
struct Threads {
    end: Option<extern "C" fn() -> c_long>,
    others: usize,
}

impl Threads {
    fn begin(churn: Churn, plugin: &Path) -> Self {
        let others = task_count();
        (churn.begin)(CString::new(plugin.to_str().unwrap()).unwrap().as_ptr());
        Self { end: Some(churn.end), others }
    }

    /// Ends them, and waits until the kernel has none of them any more, which is after they were joined; says how many steps of
    /// work they have done.
    fn end(mut self) -> c_long {
        let steps = self.end.take().map_or(0, |end| end());
        let late = Instant::now() + Duration::from_secs(60);
        while task_count() > self.others && Instant::now() < late {
            std::thread::sleep(Duration::from_millis(1));
        }
        steps
    }
}

impl Drop for Threads {
    /// A test that fails removes the plugin, which they load: they would end the process before it has told why.
    fn drop(&mut self) {
        self.end.take().map(|end| end());
    }
}

/// Rounds in which stacks are named and looked at. What is named is kept, so that these are not those that are measured: an image
/// that is named for the first time takes 864 kB, and more with each further function.
const NAMED_ROUNDS: usize = 5;

/// Captures all threads so many times in each of some rounds. Between rounds all threads rest.
fn churn(rounds: usize, captures: usize) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = TempDir::new("capture-churn");
    let Some((library, plugin)) = build(directory.path()) else { return };
    let churn = Churn::of(open(&library));
    let mut options = Options::default();
    // With a list that is late for long, plugins would be walked as unknown code.
    options.loader_patience = Duration::from_secs(30);
    let capturer = patient(options);
    let (start, mut steps) = (Instant::now(), 0);
    let (mut seen, mut held) = (Seen::default(), Vec::with_capacity(rounds));
    for round in 0.. {
        let threads = Threads::begin(churn, &plugin);
        let mut names = Names { capturer: &capturer, symbols: Symbols::new(), known: HashMap::new() };
        for number in 0..captures {
            let captured = capturer.all();
            assert!(captured.len() >= 6, "{captured:?}");
            if round >= rounds && number % (captures / 20).max(1) == 0 {
                // Libraries come and go: what an address is called holds for this capture.
                names.known.clear();
                seen.look(&captured, &mut names);
            }
        }
        drop(names);
        steps = threads.end();
        // The helper thread has nothing left to do then.
        rest(&capturer);
        if round < rounds {
            held.push(Held::now());
        } else if round >= rounds + NAMED_ROUNDS
            && (seen.has_all_kinds() || start.elapsed() > Duration::from_secs(300))
        {
            break;
        }
    }
    println!(
        "{seen:#?}\n{rounds} rounds of {captures} captures in {:?}; {steps} steps of work",
        start.elapsed()
    );
    println!("{held:#?}");
    seen.check();
    assert_eq!(Held::leak(&held, captures), None);
}

/// Has the list of images be that of this moment.
fn rest(capturer: &Capturer) {
    // The helper thread has to get the processor first.
    let late = Instant::now() + Duration::from_secs(60);
    while !capturer.refresh() {
        assert!(Instant::now() < late, "the list stays as it was");
    }
}

#[test]
fn captures_of_a_program_without_a_moments_rest() {
    churn(6, 50);
}

#[test]
#[ignore = "some minutes: cargo test --release -p backtrail --test capture_churn -- --ignored"]
fn ten_thousand_captures_of_a_program_without_a_moments_rest() {
    churn(10, 1_000);
}

/// A thread that stays somewhere until it is let go.
static HELD: AtomicU32 = AtomicU32::new(0);
static LET_GO: AtomicBool = AtomicBool::new(false);

extern "C" fn hold() {
    HELD.store(ThreadId::current().get(), SeqCst);
    while !LET_GO.load(SeqCst) {
        std::thread::yield_now();
    }
}

fn while_held<T>(work: impl FnOnce() + Send, check: impl FnOnce(ThreadId) -> T) -> T {
    HELD.store(0, SeqCst);
    LET_GO.store(false, SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(work);
        while HELD.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let checked = check(ThreadId::new(HELD.load(SeqCst)));
        LET_GO.store(true, SeqCst);
        checked
    })
}

fn names_of(capturer: &Capturer, stack: &RawStack) -> Vec<String> {
    Names { capturer, symbols: Symbols::new(), known: HashMap::new() }.of(stack)
}

/// Captures a thread by itself and with all others while it holds something, and wants a function in its stack. Frames
/// are named when all is over: that may wait for locks.
fn capture_held(capturer: &Capturer, work: impl FnOnce() + Send, function: &str) {
    let stack = while_held(work, |id| {
        let mut stack = RawStack::new();
        // A capture that waited for what is held would not come back.
        capturer.thread(id, &mut stack).unwrap();
        let all = capturer.all();
        assert!(all.iter().any(|thread| thread.id == id && thread.stack.is_ok()));
        stack
    });
    let names = names_of(capturer, &stack);
    assert!(names.iter().any(|name| name.contains(function)), "{names:#?}");
}

#[test]
fn threads_in_the_loader_are_captured() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    unsafe extern "C" fn visit(_: *mut libc::dl_phdr_info, _: libc::size_t, _: *mut c_void) -> c_int {
        hold();
        1
    }
    let capturer = patient(Options::default());
    // The loader's list is locked: captures go on with the images that they have.
    let in_list = || {
        // SAFETY: the callback has the type that is asked for.
        unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::null_mut()) };
    };
    while_held(in_list, |_| assert!(!capturer.refresh()));
    rest(&capturer);
    capture_held(&capturer, in_list, "dl_iterate_phdr");

    let directory = TempDir::new("capture-loader");
    let Some((_, plugin)) = build(directory.path()) else { return };
    // SAFETY: the tests of this program that look at the environment run alone.
    unsafe { std::env::set_var("BACKTRAIL_PLUGIN_HOLD", format!("{:x}", hold as *const () as usize)) };
    let in_constructor = || {
        open(&plugin);
    };
    capture_held(&capturer, in_constructor, "plugin_begin");
    // SAFETY: as before.
    unsafe { std::env::remove_var("BACKTRAIL_PLUGIN_HOLD") };
}

#[test]
fn libraries_whose_file_is_gone_are_read_from_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = TempDir::new("capture-gone");
    let Some((_, plugin)) = build(directory.path()) else { return };
    let library = open(&plugin);
    std::fs::remove_file(&plugin).unwrap();
    let capturer = patient(Options::default());
    let work = symbol(library, "plugin_work") as usize;
    let in_plugin = move || {
        // SAFETY: the function of plugin.c.
        let work: extern "C" fn(extern "C" fn()) = unsafe { std::mem::transmute(work) };
        work(hold);
    };
    let mut stack = RawStack::new();
    while_held(in_plugin, |id| capturer.thread(id, &mut stack).unwrap());
    let inside = |frame: &&backtrail::capture::RawFrame| {
        (work..work + 64).contains(&usize::try_from(frame.address.raw().get()).unwrap())
    };
    let frame = stack.frames().iter().find(inside).expect("a frame of the library");
    assert_eq!(frame.trust, backtrail::Trust::Cfi);
    let ended = stack.ended().unwrap();
    assert!(matches!(ended, backtrail::capture::WalkEnd::EndOfStack(_)), "{ended}: {stack:#?}");
}

#[test]
fn libraries_with_a_relative_path_are_named_wherever_the_process_is() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = TempDir::new("capture-relative");
    let Some((_, plugin)) = build(directory.path()) else { return };
    let before = std::env::current_dir().unwrap();
    std::env::set_current_dir(directory.path()).unwrap();
    let library = open(&Path::new(".").join(plugin.file_name().unwrap()));
    std::env::set_current_dir(before).unwrap();
    let capturer = patient(Options::default());
    let frame = backtrail::capture::symbolize_address(
        &capturer,
        FrameAddress::Exact(Avma::new(symbol(library, "plugin_work") as u64)),
        &Symbols::new(),
    );
    let function = frame.functions.first().unwrap_or_else(|| panic!("no debug info: {frame:?}"));
    assert_eq!(function.name, "plugin_work");
    assert!(function.file.as_deref().is_some_and(|file| file.ends_with("plugin.c")), "{function:?}");
}

/// What a coroutine of `makecontext` captured of itself, by each method.
#[cfg(target_env = "gnu")]
static FROM_COROUTINE: Mutex<Vec<(Method, RawStack)>> = Mutex::new(Vec::new());

#[cfg(target_env = "gnu")]
extern "C" fn coroutine() {
    for method in [Method::Rules, Method::CopyStack(64 << 10)] {
        let mut options = Options::default();
        options.method = method;
        let capturer = patient(options);
        // Of a thread that asks for itself nothing is copied, so that another one asks.
        let thread = ThreadId::current();
        let ask = || {
            let mut stack = RawStack::new();
            capturer.thread(thread, &mut stack).unwrap();
            stack
        };
        let stack = std::thread::scope(|scope| scope.spawn(ask).join().unwrap());
        FROM_COROUTINE.lock().unwrap().push((method, stack));
    }
    std::hint::black_box(());
}

#[test]
#[cfg(target_env = "gnu")]
fn a_coroutine_ends_where_it_began() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut memory = vec![0_u8; 1 << 20];
    // SAFETY: all zeros is a context that `getcontext` fills; the memory and both contexts outlive the coroutine.
    unsafe {
        let (mut outside, mut inside): (libc::ucontext_t, libc::ucontext_t) = std::mem::zeroed();
        assert_eq!(libc::getcontext(&mut inside), 0);
        inside.uc_stack.ss_sp = memory.as_mut_ptr().cast();
        inside.uc_stack.ss_size = memory.len();
        inside.uc_link = &raw mut outside;
        libc::makecontext(&mut inside, coroutine, 0);
        assert_eq!(libc::swapcontext(&mut outside, &inside), 0);
    }
    let capturer = patient(Options::default());
    let all = std::mem::take(&mut *FROM_COROUTINE.lock().unwrap());
    assert_eq!(all.len(), 2);
    for (method, stack) in all {
        let frames = backtrail::capture::symbolize(&capturer, &stack, &Symbols::new());
        let names: Vec<_> = frames.iter().map(|frame| frame.names().last().unwrap_or("none")).collect();
        let at = names.iter().position(|name| name.ends_with("::coroutine")).unwrap();
        // What it returns to is the first instruction of a function of the C library, whose debug info may be absent.
        let first = stack.frames().last().unwrap().address;
        assert!(matches!(first, FrameAddress::Exact(_)), "{method:?}: {names:#?}");
        assert!(matches!(names[at + 1..], ["__start_context" | "none"]), "{method:?}: {names:#?}");
        assert!(matches!(stack.ended(), Some(WalkEnd::EndOfStack(_))), "{method:?}: {:?}", stack.ended());
    }
}

#[test]
fn the_kernels_image_is_named() {
    let capturer = patient(Options::default());
    let vdso = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(line) = vdso.lines().find(|line| line.ends_with("[vdso]")) else { return };
    let start = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let at = FrameAddress::Exact(Avma::new(start + 4));
    let frame = backtrail::capture::symbolize_address(&capturer, at, &Symbols::new());
    assert_eq!(frame.image_name.as_deref(), Some("[vdso]"), "{frame:?}");
}

#[test]
fn threads_that_hold_stdios_lock_are_captured() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        fn flockfile(file: *mut libc::FILE);
        fn funlockfile(file: *mut libc::FILE);
    }
    let capturer = patient(Options::default());
    let locked = || {
        // SAFETY: the C library's own file.
        unsafe { flockfile(stdout) };
        hold();
        // SAFETY: as before.
        unsafe { funlockfile(stdout) };
    };
    capture_held(&capturer, locked, "hold");
}

#[test]
fn threads_that_do_not_take_the_signal_are_reported() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let capturer = patient(Options::default());
    let signal = capturer.signal();
    let set = |how: c_int| {
        // SAFETY: the set is filled in before it is used.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&raw mut set, signal);
            libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut());
        }
    };
    let deaf = || {
        set(libc::SIG_BLOCK);
        hold();
        set(libc::SIG_UNBLOCK);
        LET_GO.store(false, SeqCst);
        hold();
    };
    while_held(deaf, |id| {
        let mut stack = RawStack::new();
        for _ in 0..20 {
            assert_eq!(capturer.thread(id, &mut stack), Err(CaptureError::SignalBlocked));
            assert!(stack.frames().is_empty());
        }
        // One signal waits for the thread, not twenty; when it comes at last it is too late, and nothing happens.
        let status = std::fs::read_to_string(format!("/proc/self/task/{id}/status")).unwrap();
        let queued = status.lines().find(|line| line.starts_with("SigQ")).unwrap().to_owned();
        println!("{queued}");
        LET_GO.store(true, SeqCst);
        while LET_GO.load(SeqCst) {
            std::thread::yield_now();
        }
        capturer.thread(id, &mut stack).unwrap();
    });
}

#[test]
fn foreign_signals_reach_the_handler_that_was_there_before() {
    static CAUGHT: AtomicU32 = AtomicU32::new(0);
    extern "C" fn theirs(_: c_int) {
        CAUGHT.fetch_add(1, SeqCst);
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let number = libc::SIGRTMIN() + 3;
    // SAFETY: the handler only counts.
    unsafe { libc::signal(number, theirs as *const () as usize) };
    let mut options = Options::default();
    options.signal = Some(number);
    let capturer = patient(options);
    assert_eq!(capturer.signal(), number);
    // SAFETY: a signal to this thread.
    unsafe { libc::pthread_kill(libc::pthread_self(), number) };
    assert_eq!(CAUGHT.load(SeqCst), 1);
    capture_held(&capturer, hold_here, "hold");
    assert_eq!(CAUGHT.load(SeqCst), 1);
    // Somebody takes the signal away.
    // SAFETY: as before.
    unsafe { libc::signal(number, theirs as *const () as usize) };
    let mut stack = RawStack::new();
    while_held(hold_here, |id| {
        assert_eq!(capturer.thread(id, &mut stack), Err(CaptureError::HandlerReplaced));
    });
}

fn hold_here() {
    hold();
}
