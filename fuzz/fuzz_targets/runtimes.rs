//! What runtimes, sanitizers, debuggers and Linux's kernel write, whole or damaged: read within limits, divided without a byte
//! lost, explained.
#![no_main]

use backtrail_diagnose::{attribute, explain};
use backtrail_report::{Limits, documents, parse};
use libfuzzer_sys::fuzz_target;

/// Lines by which each kind is told, so that every reader is reached.
const HEADS: [&str; 24] = [
    "==1==ERROR: AddressSanitizer: ",
    "Program received signal SIGSEGV, ",
    "goroutine 1 [running]:\n",
    "thread 'a' panicked at a.rs:1:2:\n",
    "Traceback (most recent call last):\n",
    "# A fatal error has been detected by the Java Runtime Environment:\n",
    "BUG: KASAN: ",
    "Unhandled exception. System.Exception: ",
    "E: x\n    at f (a.js:1:2)\n",
    "{\"CrashSeverity\":",
    "PHP Fatal error:  Uncaught E: x in a.php:1\nStack trace:\n#0 a.php(2): f()\n",
    "a.rb:1:in 'f': x (E)\n",
    "a.rb:1: [BUG] Segmentation fault at 0x0\n-- C level backtrace information ---\n",
    "** (E) x\n    (a 1.0) lib/a.ex:1: A.f/1\n",
    "** exception error: x\n  in function  a:f/1 (a.erl, line 1)\n",
    "Fatal error: exception E\nRaised at A.f in file \"a.ml\", line 1, characters 2-3\n",
    "a: x\nCallStack (from HasCallStack):\n  f, called at a.hs:1:2 in a:A\n",
    "lua: a.lua:1: x\nstack traceback:\n",
    "[1] signal 11 (1): Segmentation fault\n",
    "==1== Invalid read of size 8\n==1==    at 0x1: f (a.c:1)\n",
    "Unhandled exception:\nx\n#0      f (package:a/b.dart:1:2)\n",
    "#\n# Fatal error in , line 0\n# Check failed: x.\n",
    "Got a SIGSEGV while executing native code. x\nNative stacktrace:\n",
    "Thread 0 (crashed)\n 0  a!f [a.c : 1 + 0x2]\n    Found by: stack scanning\n",
];

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let head = HEADS.get(usize::from(*first)).copied().unwrap_or_default();
    let input = [head.as_bytes(), rest].concat();
    let mut limits = Limits::default();
    limits.max_frames = 1_000;
    limits.max_items = 1_000;
    limits.max_threads = 100;
    limits.max_json_values = 100_000;
    for document in documents(&input).iter().take(100) {
        let Ok(report) = parse(&document.bytes, &limits) else { continue };
        let process = &report.process;
        let frames: usize = process.threads.iter().map(|thread| thread.frames.len()).sum();
        let others: usize = process.backtraces.iter().map(|backtrace| backtrace.frames.len()).sum();
        assert!(frames + others <= limits.max_frames, "the limit of frames holds");
        assert!(process.crashed_thread.is_none_or(|at| at < process.threads.len()));
        assert!(!explain(&report).title.is_empty());
        assert!(!attribute(&report, &explain(&report)).evidence.is_empty());
    }
});
