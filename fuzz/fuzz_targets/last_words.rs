//! Last lines of consoles, whole or damaged: C and C++ libraries', loaders', shells', service managers', the kernel's on programs.
#![no_main]

use backtrail_fuzz::reporter;
use libfuzzer_sys::fuzz_target;

/// How such lines begin, so that the fuzzer need not find it.
const BEGINNINGS: [&[u8]; 20] = [
    b"",
    b"Nov 22 17:00:00 host app[123]: ",
    b"app: a.c:12: main: Assertion `",
    b"*** Error in `app': double free or corruption",
    b"free(): ",
    b"terminate called after throwing an instance of '",
    b"libc++abi: terminating ",
    b"./run.sh: line 3: 1234 Segmentation fault ",
    b"app.service: Main process exited, code=",
    b"'NSRangeException', reason: '",
    b"F0131 12:00:00.123456 77 a.cc:12] Check failed: ",
    b"#0 0x00007ff37db6abc5 raise (libc.so.6 + ",
    b"app[1]: segfault at 18 ip 7f0010 sp 7ffe0020 error 4",
    b"traps: app[1] trap invalid opcode ip:7f0010 sp:7ffe0020 error:0",
    b"app[1]: unhandled exception: DABT (lower EL), ESR 0x92000006, ",
    b"[ pid ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n[    1]     0 1 2 3 4 5 6 ",
    b"Memory cgroup out of memory: Killed process 1 (app) total-vm:",
    b"app: error while loading shared libraries: ",
    b"java.lang.OutOfMemoryError: ",
    b"Process completed with exit code ",
];

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let beginning = BEGINNINGS.get(usize::from(*first) % BEGINNINGS.len()).copied().unwrap_or_default();
    reporter(beginning, rest);
});
