//! Ends in a thread that C made, in the way that its first argument says; the second is where crash files go.
#![allow(unsafe_code, reason = "threads of C")]
#![allow(clippy::unwrap_used, reason = "that is what it is for")]

use backtrail_altstack as _;
use backtrail_crash::{Options, install};
use backtrail_testkit::overflow;
use libc::c_void;
use std::hint::black_box;
use std::time::Duration;

extern "C" fn overflow_here(_: *mut c_void) -> *mut c_void {
    black_box(overflow(1));
    std::ptr::null_mut()
}

extern "C" fn return_early(_: *mut c_void) -> *mut c_void {
    std::ptr::null_mut()
}

unsafe extern "C" {
    fn pthread_exit(value: *mut c_void) -> !;
}

extern "C-unwind" fn exit_early(_: *mut c_void) -> *mut c_void {
    // SAFETY: the frames between have nothing to drop.
    unsafe { pthread_exit(std::ptr::null_mut()) }
}

fn start(function: extern "C" fn(*mut c_void) -> *mut c_void) {
    // SAFETY: the function takes no argument; the thread is joined.
    unsafe {
        let mut thread = 0;
        assert_eq!(
            libc::pthread_create(&raw mut thread, std::ptr::null(), function, std::ptr::null_mut()),
            0
        );
        assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
    }
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap();
    let mut options = Options::new(arguments.next().unwrap());
    options.patience = Duration::from_secs(60);
    let _handler = install(options).unwrap();
    match kind.as_str() {
        "overflow" => start(overflow_here),
        _ => {
            // SAFETY: the two types differ in what may unwind out of them; the frame of `run` lets it.
            let exit_early = unsafe {
                std::mem::transmute::<
                    extern "C-unwind" fn(*mut c_void) -> *mut c_void,
                    extern "C" fn(*mut c_void) -> *mut c_void,
                >(exit_early)
            };
            start(return_early);
            let before = mappings();
            for _ in 0..100 {
                start(return_early);
                start(exit_early);
            }
            // Each stack that was not freed would be three more.
            assert!(mappings() < before + 30, "{before} mappings, then {}", mappings());
        }
    }
}
