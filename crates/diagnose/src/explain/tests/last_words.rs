//! What is left where people paste little: a console's last lines, stacks without addresses, names and reasons alone. Each text is
//! our own, of the shape that was seen in a public issue.

use crate::{Explanation, explain};
use backtrail_report::{Limits, parse};

fn explained(text: &str) -> Explanation {
    explain(&parse(text.as_bytes(), &Limits::default()).unwrap())
}

fn titles(cases: &[(&str, &str)]) {
    for (text, title) in cases {
        assert_eq!(&explained(text).title, title, "{text}");
    }
}

#[test]
fn libraries_words_alone() {
    titles(&[
        ("app: a.c:12: main: Assertion `x > 0' failed.\nAborted (core dumped)\n", "Assertion failed: x > 0"),
        ("*** stack smashing detected ***: <unknown> terminated\n", "Stack buffer overflow"),
        (
            "double free or corruption (out)\nAborted\n",
            "Heap error found by malloc: double free or corruption (out)",
        ),
        (
            "app(7) in free(): chunk is already free 0xe41\n",
            "Heap error found by malloc: free(): chunk is already free 0xe41",
        ),
        (
            "pure virtual method called\nterminate called without an active exception\n",
            "Call of a pure virtual function",
        ),
        (
            "terminate called without an active exception\n",
            "std::terminate was called, and nothing was thrown",
        ),
        (
            "terminate called after throwing an instance of 'E'\n  what():  no order\nAborted\n",
            "Uncaught C++ exception: E: no order",
        ),
        ("Assertion failed: x > 0 (a.c: main: 7)\n", "Assertion failed: x > 0"),
        ("Assertion failed: (x > 0), function main, file a.c, line 7.\n", "Assertion failed: (x > 0)"),
        (
            "ASSERT failure in List::at: \"range\", file a.h, line 5\n",
            "Assertion failed: List::at: \"range\"",
        ),
        (
            "F0131 12:00:00.123456 77 a.cc:12] Check failed: a == b (1 vs. 2) \n",
            "Assertion failed: a == b (1 vs. 2)",
        ),
        ("Segmentation fault (core dumped)\n", "Segmentation fault (SIGSEGV)"),
        ("./run.sh: line 3: 12 Killed   ./app\n", "Killed with SIGKILL"),
        ("fatal error: concurrent map writes\n", "Go fatal error: concurrent map writes"),
        (
            "'NSInternalInconsistencyException', reason: 'Invalid update: invalid number of rows in section 0.'\n",
            "Uncaught NSInternalInconsistencyException: Invalid update: invalid number of rows in section 0.",
        ),
        (
            "fatal error: unexpectedly found nil while unwrapping an Optional value\n",
            "Swift fatal error: unexpectedly found nil while unwrapping an Optional value",
        ),
    ]);
    assert_eq!(explained("Segmentation fault\n").rule, "signal-alone");
}

#[test]
fn what_debuggers_show_beside_the_signal() {
    let bt = "Program received signal SIGABRT, Aborted.\n#0  0x01 in raise () from /usr/lib/libc.so.6\n#1  0x02 in abort () from /usr/lib/libc.so.6\n";
    let rest = "#4  0x05 in take (x=1) at orders.c:9\n";
    titles(&[
        (
            &format!("free(): invalid pointer\n\n{bt}{rest}"),
            "Heap error found by malloc: free(): invalid pointer",
        ),
        (
            &format!(
                "{bt}#2  0x03 in malloc_printerr (str=str@entry=0x7f \"double free or corruption (out)\") at malloc.c:5\n{rest}"
            ),
            "Heap error found by malloc: double free or corruption (out)",
        ),
        (
            &format!(
                "{bt}#2  0x03 in __assert_fail (assertion=0x4 \"x > 0\", file=0x5 \"a.c\", line=12, function=0x6 \"main\") at assert.c:5\n{rest}"
            ),
            "Assertion failed: x > 0",
        ),
        (&format!("{bt}{rest}"), "The program got SIGABRT"),
        (
            "Nov 2 10:00:00 host systemd-coredump[9]: Process 8 (app) of user 1 dumped core.\nStack trace of thread 8:\n\
             #0  0x00007ff3 raise (libc.so.6 + 0x3dbc5)\n#1  0x00007ff4 malloc_printerr (libc.so.6 + 0x87e1c)\n#2  0x0000556a main (app + 0x1539)\n",
            "Heap error found by malloc",
        ),
        ("Program received signal SIGSEGV, Segmentation fault.\n", "The program got SIGSEGV"),
        (
            "* thread #1, stop reason = EXC_BAD_ACCESS (code=1, address=0xbad)\n    frame #0: 0x01 App`swift_retain + 12\n",
            "swift_retain on a released or overwritten object",
        ),
    ]);
    let deep: String = (5000..5010).map(|at| format!("#{at} 0x10 in a () at a.m:1\n")).collect();
    assert_eq!(explained(&deep).title, "Stack overflow, very probably");
}

/// A crash reporter's handler lies further in than the throw.
#[test]
fn handlers_on_the_stack_of_a_throw() {
    let text = "-[NSNull count]: unrecognized selector sent to instance 0x3ee\n\n0 Shop 0x000a7105 +[Handler backtrace] + 429\n\
        1 CoreFoundation 0x342f0987 __handleUncaughtException + 74\n2 libobjc.A.dylib 0x345402d1 _objc_terminate + 128\n\
        3 libobjc.A.dylib 0x34540223 objc_exception_throw + 94\n4 CoreFoundation 0x342f3acb -[NSObject doesNotRecognizeSelector:] + 174\n\
        5 CoreFoundation 0x342f2945 ___forwarding___ + 300\n6 Shop 0x00005fd7 -[Home load:] (Home.m:99)\n";
    let explanation = explained(text);
    assert_eq!(
        explanation.title,
        "Uncaught NSInvalidArgumentException: -[NSNull count]: unrecognized selector sent to instance 0x3ee"
    );
    assert!(explanation.summary.contains("-[Home load:]"), "{}", explanation.summary);
}

/// libdispatch of iOS 10 and 11, in an export that names no exception.
#[test]
fn a_queue_that_waits_for_itself() {
    for top in ["_dispatch_barrier_sync_f_slow", "_dispatch_sync_wait"] {
        let text = format!(
            "Crashed: com.example.db\n0  libdispatch.dylib              0x190885f60 {top} + 596\n1  Shop  0x100525d70 -[Store create] (Store.m:551)\n"
        );
        assert_eq!(explained(&text).title, "Deadlock: dispatch_sync to the queue it already runs on");
    }
    let quoted = "It stops with `BUG IN CLIENT OF LIBDISPATCH: dispatch_barrier_sync called on queue already owned by current thread`.\n";
    let explanation = explained(quoted);
    assert_eq!(
        explanation.title,
        "BUG IN CLIENT OF LIBDISPATCH: dispatch_barrier_sync called on queue already owned by current thread"
    );
    assert!(explanation.summary.contains("wait for itself"));
}

/// Up to macOS 10.11 the loader ended the process by a trap.
#[test]
fn a_library_that_is_missing_with_a_trap() {
    let text = "Process: App [1]\nException Type: EXC_BREAKPOINT (SIGTRAP)\nException Codes: 0x0000000000000002, 0x0000000000000000\n\n\
        Dyld Error Message:\n  Library not loaded: @rpath/liba.dylib\n  Reason: image not found\n";
    let explanation = explained(text);
    assert_eq!(explanation.rule, "killed", "{}", explanation.title);
    assert!(explanation.title.contains("liba.dylib"), "{}", explanation.title);
}

#[test]
fn androids_runtime_without_a_signal() {
    let text = "*** *** *** *** *** *** *** ***\npid: 1, tid: 1 >>> org.example <<<\n\nbacktrace:\n\
        #00  pc 0001  /system/lib/libc.so (abort+4)\n#01  pc 0002  /system/lib/libart.so (art::Runtime::Abort(char const*)+328)\n\
        #02  pc 0003  /system/lib/libart.so (art::IndirectReferenceTable::Add(unsigned int, art::mirror::Object*)+308)\n";
    assert_eq!(explained(text).title, "Table of JNI references full");
}

/// KSCrash's diagnosis, in Sentry's text.
#[test]
fn an_address_in_words() {
    let text = "Exception Type: EXC_BAD_ACCESS (SIGBUS)\nCrashed Thread: 2\n\nApplication Specific Information:\n\
        Attempted to dereference garbage pointer 0x16e023180.\n\nThread 2 Crashed:\n0   App  0x5f35fc  work\n";
    assert!(explained(text).title.contains("0x16e023180"), "{}", explained(text).title);
}
