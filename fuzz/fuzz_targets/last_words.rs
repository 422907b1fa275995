//! Last lines of consoles, whole or damaged: C and C++ libraries', shells', service managers'.
#![no_main]

use backtrail_fuzz::reporter;
use libfuzzer_sys::fuzz_target;

/// How such lines begin, so that the fuzzer need not find it.
const BEGINNINGS: [&[u8]; 12] = [
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
];

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let beginning = BEGINNINGS.get(usize::from(*first) % BEGINNINGS.len()).copied().unwrap_or_default();
    reporter(beginning, rest);
});
