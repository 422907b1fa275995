//! A program in Rust, with the handler by its Rust API, that crashes in C: LIBRARY KIND [DIRECTORY].
#![allow(unsafe_code, reason = "calls C, which crashes")]
#![allow(clippy::panic, clippy::expect_used, clippy::exit, reason = "a program that crashes on demand")]

use backtrail_crash::{self as crash, Options, Seen};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::time::Duration;

static WITHIN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

fn main() {
    let arguments: Vec<CString> =
        std::env::args().skip(1).map(|argument| CString::new(argument).expect("has no zero")).collect();
    let [library, kind, directory @ ..] = &arguments[..] else { panic!("expected LIBRARY KIND [DIRECTORY]") };
    // SAFETY: the library is the chore's own.
    let library = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "the library cannot be loaded");
    let symbol = |name: &CStr| {
        // SAFETY: the library is open, the name a C string.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?} is missing");
        found
    };
    let (begin, crash) = (symbol(c"kinds_begin"), symbol(c"kinds_crash"));
    // SAFETY: kinds.h has their types.
    let begin: extern "C" fn(*const c_char, *const c_char) = unsafe { std::mem::transmute(begin) };
    // SAFETY: as before.
    let crash: extern "C" fn(*const c_char) = unsafe { std::mem::transmute(crash) };
    WITHIN.store(symbol(c"kinds_crash_within"), SeqCst);
    let name = kind.to_str().expect("a name of a kind");
    let watcher = directory.first().and_then(|directory| install(name, directory.to_str().ok()?));
    begin(kind.as_ptr(), directory.first().map_or(c"".as_ptr(), |directory| directory.as_ptr()));
    let signal = match name {
        "watcher-killed" => libc::SIGKILL,
        "watcher-stopped" => libc::SIGSTOP,
        _ => 0,
    };
    if let Some(watcher) = watcher.and_then(|id| i32::try_from(id).ok()) {
        // SAFETY: the watcher is this program's own; signal 0 does nothing.
        unsafe { libc::kill(watcher, signal) };
    }
    crash(kind.as_ptr());
    std::process::exit(95);
}

/// Gives the watcher's process, where one is wanted.
fn install(kind: &str, directory: &str) -> Option<u32> {
    let mut options = Options::new(directory);
    options.patience = Duration::from_secs(if kind == "watcher-stopped" { 8 } else { 60 });
    options.max_threads = 2000;
    // Beside gdb all frames of an overflow are compared.
    if std::env::var_os("MATRIX_CORE").is_some() {
        options.max_frames = 7000;
    }
    if kind.starts_with("pair-") {
        options.filter = Some(within);
    }
    if kind.starts_with("watcher") {
        options.watcher = std::env::var_os("MATRIX_WATCHER").map(Into::into);
    }
    let handler = crash::install(options).unwrap_or_else(|error| panic!("{error}"));
    crash::note("version", "1.2.3");
    crash::breadcrumb("about to crash");
    handler.watcher().map(|watcher| watcher.unwrap_or_else(|why| panic!("no watcher: {why}")))
}

fn within(_: &Seen<'_>) -> bool {
    let within = WITHIN.load(SeqCst);
    // SAFETY: kinds.h has its type.
    let within: extern "C" fn() = unsafe { std::mem::transmute(within) };
    within();
    true
}
