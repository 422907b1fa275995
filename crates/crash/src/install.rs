//! Prepares everything that a crash will need, and starts the thread that waits for it.

use crate::images::Listed;
use crate::options::{Options, Requests};
use crate::pending::remove_old;
use crate::prepared::{Directory, Prepared};
use crate::program;
use crate::sections::Section;
#[cfg(target_os = "linux")]
use crate::watcher;
use crate::{InstallError, OsError, collect, panic_hook, sessions};
use backtrail_capture::crash_file::format::checksum;
#[cfg(target_os = "linux")]
use backtrail_capture::local;
use backtrail_capture::local::Shared;
use backtrail_core::{Avma, ReadMemory as _};
use backtrail_stacks::own::{self, Capturer, Method, OwnMemory, RawStack, StackCopy, ThreadId};
use backtrail_sys::os::crash::{Crashed, catch, is_listening, listen};
use backtrail_sys::os::raw_file;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, TryLockError, mpsc};
use std::time::{Duration, Instant};

pub use backtrail_sys::os::SignalStack;

/// ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS: the same numbers on every processor that this is for.
#[cfg(target_os = "linux")]
const FAULTS: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];
/// ABRT, SYS: the others are made of exceptions, which come first.
#[cfg(not(target_os = "linux"))]
const FAULTS: [i32; 2] = [6, 12];
const SIGQUIT: i32 = 3;
const SIGTERM: i32 = 15;
const SIGXCPU: i32 = 24;
/// Bytes of `/proc/self/maps` that are kept: some 2,500 lines.
#[cfg(target_os = "linux")]
const MAX_MAPS: usize = 256 << 10;
/// The collecting thread's stack.
const STACK: usize = 512 << 10;

/// The file that takes room on the disk. All processes that have the directory share it.
const RESERVE: &str = "btcrash.reserve";

/// How long a report waits for another one.
const OTHERS: Duration = Duration::from_secs(2);

static INSTALLED: AtomicBool = AtomicBool::new(false);
static DIRECTORY: OnceLock<Directory> = OnceLock::new();
/// Locked for one report. A child of `vfork` and the process itself can crash at the same time.
static PREPARED: OnceLock<Mutex<Prepared>> = OnceLock::new();

/// The handler that is installed. It stays so when this is dropped.
#[derive(Debug)]
pub struct Handler {
    images: Arc<Shared<Listed>>,
    capturer: Arc<Capturer>,
    watcher: Option<Result<u32, String>>,
}

impl Handler {
    /// The process id of the watcher that [`Options::watcher`] wanted, or why there is none; `None` where none was wanted.
    pub fn watcher(&self) -> Option<Result<u32, &str>> {
        let watcher = self.watcher.as_ref()?;
        Some(watcher.as_ref().copied().map_err(String::as_str))
    }

    /// Lists the images anew: to be called after libraries were loaded by `dlopen`. Libraries that are newer than the list are found in the
    /// crash, by the headers that lie in memory, but the handler itself does not know how to unwind in them: stacks through them end early
    /// in what the filter is asked about, and where the saved stack ends before they do.
    pub fn refresh_images(&self) {
        self.capturer.refresh();
        self.images.replace(Listed::now());
    }
}

/// Installs the handler: reads the images' unwind tables, starts a thread, gives the calling thread a stack for signal handlers if
/// it has none, catches the signals and keeps what panics say. Once a process, as early as possible: handlers that are installed
/// later come first, and what they do not pass on is not seen.
///
/// # Errors
/// Where it is installed already, the directory cannot be made, or the system refuses a thread or a handler.
pub fn install(options: Options) -> Result<Handler, InstallError> {
    let directory = prepare_directory(&options.directory)?;
    // By the crash files that are removed next.
    sessions::tidy(&options.directory);
    remove_old(&options.directory, options.keep);
    let stack = SignalStack::ensure()?;
    if INSTALLED.swap(true, SeqCst) {
        return Err(InstallError::Installed);
    }
    // A copy: the directory itself is given away.
    let path = directory.path().to_owned();
    if let Some(file) = raw_file::c_path(&path.join(RESERVE)).filter(|_| options.reserve > 0) {
        let _ = raw_file::set_aside(file, options.reserve);
    }
    let signals = signals(options.requests);
    let patience = options.patience;
    let watcher = options.watcher.as_ref().map(|program| start_watcher(program, &path, patience));
    let release = options.release.clone();
    let prepared = prepare(options).inspect_err(|_| INSTALLED.store(false, SeqCst))?;
    let handler =
        Handler { images: Arc::clone(&prepared.images), capturer: Arc::clone(&prepared.capturer), watcher };
    if let Some(release) = release.filter(|release| !release.is_empty()) {
        program::note("release", &release);
        sessions::begin(&path, &release, &prepared.system);
    }
    let _ = DIRECTORY.set(directory);
    // On Apple's systems the standard library's lock allocates when it is taken for the first time.
    drop(PREPARED.get_or_init(|| Mutex::new(prepared)).lock());
    stack.keep();
    let thread = std::thread::Builder::new().name("backtrail-crash".to_owned()).stack_size(STACK);
    let (say, told) = mpsc::channel();
    thread.spawn(move || wait(patience, &say)).map_err(InstallError::Thread)?;
    while !is_listening() {
        if let Ok(error) = told.recv_timeout(Duration::from_micros(50)) {
            INSTALLED.store(false, SeqCst);
            return Err(error.into());
        }
    }
    panic_hook::install();
    catch_signals(&signals)?;
    Ok(handler)
}

#[cfg(target_os = "linux")]
fn catch_signals(signals: &[i32]) -> Result<(), OsError> {
    let (images, _) = local::images();
    catch(signals, |handler| crate::runtimes::asked_first(handler, &images))
}

#[cfg(not(target_os = "linux"))]
fn catch_signals(signals: &[i32]) -> Result<(), OsError> {
    // Of a program without Foundation there are none.
    let _ = backtrail_sys::macos::objc::tell_uncaught(crate::ns_exception::keep);
    catch(signals)
}

#[cfg(target_os = "linux")]
fn start_watcher(program: &Path, directory: &Path, patience: Duration) -> Result<u32, String> {
    watcher::start(program, directory, patience).map_err(|error| error.to_string())
}

#[cfg(not(target_os = "linux"))]
fn start_watcher(_: &Path, _: &Path, _: Duration) -> Result<u32, String> {
    Err("watchers are there on Linux alone".to_owned())
}

/// Gives the calling thread a stack for signal handlers, if it has none: without one an overflow of its stack leaves no file. Threads
/// of Rust's standard library have one where `main` is Rust's. Keep what is returned until the thread ends.
///
/// # Errors
/// Where there is no memory.
pub fn protect_thread() -> Result<SignalStack, OsError> {
    SignalStack::ensure()
}

fn prepare_directory(directory: &Path) -> Result<Directory, InstallError> {
    let fault = |source| InstallError::Directory { path: directory.to_owned(), source };
    std::fs::create_dir_all(directory).map_err(fault)?;
    // The program may go to another directory before it crashes.
    let directory = directory.canonicalize().map_err(fault)?;
    let zero = || io::Error::new(io::ErrorKind::InvalidInput, "expected a path without a zero byte");
    let path = raw_file::c_path(&directory).ok_or_else(|| fault(zero()))?;
    Directory::open(path).map_err(|error| fault(io::Error::from_raw_os_error(error.number)))
}

fn prepare(options: Options) -> Result<Prepared, InstallError> {
    let mut capture = own::Options::default();
    capture.max_frames = options.max_frames;
    // One thread that does not answer must not cost all the others.
    capture.timeout = options.patience / 8;
    // A process crashes once: rules that are compiled ahead of time would make each start longer.
    capture.method = Method::CopyStack(options.other_stack_bytes);
    let capturer = Arc::new(Capturer::new(capture)?);
    // Both find out what this machine can do when they are used for the first time.
    let probe = 1_u64;
    let _ = OwnMemory::without_stack().read_u64(Avma::new(&raw const probe as u64));
    checksum(0, 0, &[0; 1024]);
    let program = std::env::current_exe().map(|path| path.as_os_str().as_bytes().to_vec());
    Ok(Prepared {
        program: program.unwrap_or_default(),
        system: raw_file::system(),
        begun: program::now(),
        #[cfg(target_os = "linux")]
        abort_message: raw_file::abort_message(),
        images: Arc::new(Shared::new(Listed::now())),
        capturer,
        section: Section::new(),
        frames: RawStack::with_capacity(options.max_frames),
        copy: StackCopy::with_capacity(options.max_frames, options.other_stack_bytes),
        #[cfg(target_os = "linux")]
        maps: vec![0; MAX_MAPS],
        // Beside these: the thread that crashed, and backtrail's own two.
        threads: vec![ThreadId::new(0); options.max_threads.saturating_add(3)],
        options,
    })
}

fn signals(requests: Requests) -> Vec<i32> {
    let Requests { quit, terminate, processor_time } = requests;
    let wanted = [(quit, SIGQUIT), (terminate, SIGTERM), (processor_time, SIGXCPU)];
    let wanted = wanted.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, number)| number);
    FAULTS.into_iter().chain(wanted).collect()
}

/// The collecting thread.
fn wait(patience: Duration, say: &mpsc::Sender<OsError>) {
    #[cfg(target_os = "linux")]
    backtrail_sys::linux::crash::take_only(&FAULTS);
    #[cfg(not(target_os = "linux"))]
    backtrail_sys::macos::crash::take_no_signals();
    // A fault of this thread comes to the handler, too, which finishes the file.
    match SignalStack::replace() {
        Ok(stack) => stack.keep(),
        Err(error) => {
            let _ = say.send(error);
            return;
        }
    }
    let in_need = |signal| {
        if let Some(directory) = DIRECTORY.get() {
            collect::in_need(signal, directory);
        }
    };
    if let Err(error) = listen(patience, in_need, report) {
        let _ = say.send(error);
        return;
    }
    // The process is about to end, unless a handler of its own goes on; nothing of this is freed, since that would lock.
    loop {
        std::thread::park();
    }
}

/// Writes the report, on the collecting thread or on that of a child process. `false` where none is wanted.
fn report(crashed: &Crashed<'_>) -> bool {
    let (Some(prepared), Some(directory)) = (PREPARED.get(), DIRECTORY.get()) else { return true };
    let begun = Instant::now();
    loop {
        // Never waits in the lock: a thread that holds it may be gone.
        match prepared.try_lock() {
            Ok(mut prepared) => return collect::report(&mut prepared, directory, crashed),
            Err(TryLockError::Poisoned(prepared)) => {
                return collect::report(&mut prepared.into_inner(), directory, crashed);
            }
            Err(TryLockError::WouldBlock) if begun.elapsed() > OTHERS => return true,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
