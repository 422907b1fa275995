//! What is left where people paste little: a console's last lines, stacks without addresses, names and reasons alone. Each text is
//! our own, of the shape that was seen in a public issue.

use super::{explained, titles};

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
        (
            "Program received signal SIGSEGV, Segmentation fault.\n#0  a_crash () at ./arch/x86_64/atomic_arch.h:108\n\
             #1  get_meta (p=0x7f8) at src/malloc/mallocng/meta.h:131\n#2  __libc_free (p=0x7f8) at src/malloc/mallocng/free.c:105\n\
             #3  0x0000556a in take (x=1) at orders.c:9\n",
            "musl's C library found damaged memory",
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

#[test]
fn the_kernels_lines_on_faults() {
    let line = |rest: &str| format!("depot kernel: [   12.5] shopd[7]: segfault at {rest}\n");
    for (rest, title) in [
        (
            "18 ip 7f0010 sp 7ffe0020 error 4 in libledger.so[7f0000+1000]",
            "Null pointer: read at 0x18 in libledger.so",
        ),
        ("18 ip 7f0010 sp 7ffe0020 error 6 in shopd[7f0000+1000]", "Null pointer: write at 0x18 in shopd"),
        ("0 ip 0 sp 7ffe0020 error 14", "Call through a null pointer"),
        ("3946 ip 3946 sp 7ffe0020 error 14 in shopd[400000+1000]", "Jump to 0x3946, which is not mapped"),
        (
            "7f8800 ip 7f8800 sp 7ffe0020 error 15 in shopd[7f8000+1000]",
            "Jump to 0x7f8800, which may not be executed",
        ),
        (
            "7ffe0018 ip 7f0010 sp 7ffe0020 error 6 in shopd[7f0000+1000]",
            "Stack overflow, very probably in shopd",
        ),
        (
            "7f2010 ip 7f0010 sp 7ffe0020 error 7 in shopd[7f0000+1000]",
            "Write to memory that is read-only, at 0x7f2010 in shopd",
        ),
        (
            "7f992010 ip 7f0010 sp 6f000000 error 4 in shopd[7f0000+1000]",
            "Access to memory that is not mapped: read at 0x7f992010 in shopd",
        ),
        (
            "ffffffffffffff10 ip 7f0010 sp 6f000000 error 5 in shopd[7f0000+1000]",
            "Access to an address of the kernel: read at 0xffffffffffffff10 in shopd",
        ),
    ] {
        let found = explained(&line(rest));
        assert_eq!((found.rule, found.title.as_str()), ("user-fault", title), "{rest}");
        assert!(found.summary.contains("who called it is not known"), "{}", found.summary);
    }
    titles(&[
        (
            "traps: shopd[7] trap divide error ip:7f0010 sp:7ffe0020 error:0 in shopd[7f0000+1000]\n",
            "Integer division by zero, or one whose result does not fit in shopd",
        ),
        (
            "traps: shopd[7] general protection fault ip:7f0010 sp:7ffe0020 error:0 in shopd[7f0000+1000]\n",
            "Fault without an address (general protection) in shopd",
        ),
        (
            "traps: shopd[7] trap invalid opcode ip:7f0010 sp:7ffe0020 error:0 in shopd[7f0000+1000]\nCode: 90 <0f> 0b 90\n",
            "Stopped by the program's own check (ud2) in shopd",
        ),
        (
            "traps: shopd[7] trap invalid opcode ip:7f0010 sp:7ffe0020 error:0 in shopd[7f0000+1000]\nCode: 90 <c5> fd 6f 04\n",
            "Instruction that the processor does not know in shopd",
        ),
        (
            "shopd[7]: unhandled level 2 translation fault (11) at 0x00000010, esr 0x92000046, in shopd[400000+1000]\n",
            "Null pointer: write at 0x10 in shopd",
        ),
    ]);
    let found = explained(&line("7f992010 ip 7f0010 sp 6f000000 error 4 in shopd[10,7f0000+1000]"));
    assert!(found.summary.contains("at offset 0x10 in the file"), "{}", found.summary);
}

#[test]
fn kills_for_want_of_memory() {
    let text = "indexer invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
        memory: usage 524288kB, limit 524288kB, failcnt 141\n\
        [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n\
        [    150]     0   150      242       10    28672        0          -998 pause\n\
        [    155]     0   155   326026   150000    28672        0          -998 cache\n\
        [    160]  1000   160   226026   119603  1314816        0           500 search\n\
        oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0,oom_memcg=/pods/p1,task_memcg=/pods/p1/c1,task=search,pid=160,uid=1000\n\
        Memory cgroup out of memory: Killed process 160 (search) total-vm:904104kB, anon-rss:470000kB, file-rss:8412kB, shmem-rss:0kB, UID:1000 pgtables:1284kB oom_score_adj:500\n";
    let found = explained(text);
    assert_eq!(found.rule, "out-of-memory-kill");
    assert_eq!(found.title, "Killed at the memory limit of 512 MB of its cgroup: search");
    for part in [
        "It held 467 MB of memory (458 MB of it its own data), 91 % of the limit.",
        "raised its score by 50 % of all memory (oom_score_adj 500)",
        "cache (155) with 585 MB, search (160) with 467 MB and pause (150) with 40 kB",
        "had 44 % of what these held",
        "cache was larger, and its adjustment was -998.",
        "The limit is that of /pods/p1, above",
        "indexer asked for the memory",
    ] {
        assert!(found.summary.contains(part), "{part}: {}", found.summary);
    }
    titles(&[
        (
            "Out of memory: Killed process 12 (shopd) total-vm:1kB, anon-rss:2kB, file-rss:0kB\n",
            "Killed since the machine was out of memory: shopd",
        ),
        ("      Reason:       OOMKilled\n", "Container killed at its memory limit (OOMKilled)"),
        ("shop.service: Failed with result 'oom-kill'.\n", "Killed for want of memory: shop.service"),
    ]);
}

#[test]
fn full_heaps_loaders_and_codes() {
    titles(&[
        (
            "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n 1: 0xb7a940 node::Abort() [node]\n",
            "JavaScript's heap is full",
        ),
        ("java.lang.OutOfMemoryError: Metaspace\n", "Java's memory for classes is full (Metaspace)"),
        (
            "shop: error while loading shared libraries: libledger.so.2: cannot open shared object file: No such file or directory\n",
            "A shared library is missing: libledger.so.2",
        ),
        (
            "shop: symbol lookup error: ./libledger.so: undefined symbol: book_entry, version LEDGER_2\n",
            "A function or variable is missing from the libraries that were loaded: book_entry",
        ),
        (
            "shop: /lib/libc.so.6: version `GLIBC_2.38' not found (required by shop)\n",
            "A library is older than the program needs: GLIBC_2.38",
        ),
        (
            "Error relocating /opt/shop: __res_init: symbol not found\n",
            "A function or variable is missing from the libraries that were loaded: __res_init",
        ),
        (
            "FORTIFY: memcpy: prevented 16-byte write into 8-byte buffer\n",
            "Buffer overflow prevented by a checked copy (FORTIFY)",
        ),
        (
            "Error: Process completed with exit code 137.\n",
            "Exit code 137: killed with SIGKILL, mostly for want of memory",
        ),
        ("web-1 exited with code 139\n", "Exit code 139: ended by SIGSEGV"),
        ("make: *** [Makefile:3: run] Error 127\n", "Exit code 127: the program was not found"),
        ("Process finished with exit code -1073741515 (0xC0000135)\n", "A library is missing (0xc0000135)"),
    ]);
    let found = explained("web-1 exited with code 139\n");
    assert!(found.summary.contains("can also choose the number"), "{}", found.summary);
    assert!(!found.evidence.iter().any(|line| line.contains("address")), "{:?}", found.evidence);
}
