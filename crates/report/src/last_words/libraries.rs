//! What C's and C++'s libraries write before they end a process.
//!
//! Each message is known whole: its words also occur in sentences about it, which are no reports.

use super::logged::Logged;
use crate::numbers::is_number;

/// Whose words a message is in, as the model names the image that left it.
const C_LIBRARY: &str = "libc";

/// A message of a library.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Message<'t> {
    /// The library, where the words are one's own.
    pub(super) by: Option<&'static str>,
    pub(super) program: Option<&'t str>,
    pub(super) text: &'t str,
}

/// The message that a line is.
pub(super) fn read<'t>(line: &Logged<'t>) -> Option<Message<'t>> {
    let all = line.text;
    let text = all.lines().next().unwrap_or_default();
    let by_c = |program| Message { by: Some(C_LIBRARY), program, text };
    if let Some(program) = assertion_of_glibc(text) {
        return Some(by_c(program));
    }
    if is_detected(text) || is_heap_error(text) {
        return Some(by_c(None));
    }
    if is_fortify_of_bionic(text) {
        return Some(by_c(None));
    }
    if let Some((program, what)) = heap_error_of_others(text) {
        return Some(Message { text: what, ..by_c(program) });
    }
    if let Some((program, what)) = heap_error_of_old(text).filter(|(_, what)| is_heap_error(what)) {
        return Some(Message { text: what, ..by_c(Some(program)) });
    }
    if let Some(text) = cpp_in_a_line(text) {
        return Some(Message { by: None, program: None, text });
    }
    if let Some(text) = assertion_of_ffmpeg(text) {
        return Some(Message { by: None, program: None, text });
    }
    if let Some(text) = qt_platform(text) {
        return Some(Message { by: Some(QT), program: None, text });
    }
    (is_assertion(text) || is_of_cpp(text)).then_some(Message { by: None, program: None, text: all })
}

/// How the model names who left Qt's message.
const QT: &str = "Qt";

/// Qt's words where the plugin that draws windows cannot be loaded (`qguiapplication.cpp`, `init_platform`), which end the program.
fn qt_platform(text: &str) -> Option<&str> {
    const WORDS: [&str; 3] = [
        "Could not load the Qt platform plugin \"",
        "Could not find the Qt platform plugin \"",
        "This application failed to start because it could not find or load the Qt platform plugin",
    ];
    let at = WORDS.iter().find_map(|words| text.find(words))?;
    let before = text.get(..at)?;
    let is_message = before.is_empty() || before.trim_end().ends_with(':');
    is_message.then(|| text.get(at..)).flatten()
}

/// What GNU's library prints of an exception in two lines, where they were joined to one: `terminate called after throwing an
/// instance of 'E' what(): text`. Words of a sentence may stand before it, a shell's behind it.
fn cpp_in_a_line(text: &str) -> Option<&str> {
    let at = text.find("terminate called after throwing an instance of '")?;
    let rest = text.get(at..)?;
    let (kind, what) = rest.split_once("what(): ")?;
    let name = kind.trim_end().strip_suffix('\'')?.rsplit_once('\'')?.1;
    let end = [" Aborted", " Abort trap", "\""].iter().filter_map(|mark| what.find(mark)).min();
    let length = kind.len() + "what(): ".len() + end.unwrap_or(what.len());
    (!name.is_empty() && !name.contains(['\'', '"'])).then(|| rest.get(..length)).flatten()
}

/// glibc's `prog: file.c:12: function: Assertion `x > 0' failed.`; the program's name is left out where it is not known.
fn assertion_of_glibc(text: &str) -> Option<Option<&str>> {
    let (_, behind) = text.rsplit_once("' failed")?;
    let behind = behind.trim_start_matches('.').trim();
    if text.starts_with("Assertion `") {
        return behind.is_empty().then_some(None);
    }
    let (before, _) = text.split_once(": Assertion `")?;
    let mut parts = before.split(": ");
    let first = parts.next()?;
    let is_end = behind.is_empty() || behind.starts_with("Aborted");
    // Node.js's `a.cc:12:void f(int): Assertion …`.
    let is_nodes = || {
        let mut parts = first.splitn(3, ':');
        parts.next().is_some_and(|file| file.contains('.') && !file.contains(' '))
            && parts.next().is_some_and(is_number)
            && parts.next().is_some_and(|function| !function.is_empty())
    };
    if has_line(first) || is_nodes() {
        return is_end.then_some(None);
    }
    let is_program = !first.contains(' ') && parts.next().is_some_and(has_line);
    (is_end && is_program).then_some(Some(first))
}

/// FFmpeg's `Assertion x failed at libavcodec/a.c:155`, behind whatever the player that logs it puts before it.
///
/// Source: `libavutil/avassert.h`, `av_assert0`.
fn assertion_of_ffmpeg(text: &str) -> Option<&str> {
    const BEGIN: &str = "Assertion ";
    let at = text.find(BEGIN)?;
    let is_apart = at == 0
        || ["| ", "] ", ": "].iter().any(|end| text.get(..at).is_some_and(|before| before.ends_with(end)));
    let message = text.get(at..).filter(|_| is_apart)?;
    let (condition, place) = message.get(BEGIN.len()..)?.rsplit_once(" failed at ")?;
    (!condition.is_empty() && !place.contains(' ') && has_line(place)).then_some(message)
}

/// What Metal's validation prints before it ends the process: `-[MTLDebugDevice newBuffer:]:366: failed assertion \`x'`. The function may
/// have been cut away, and a page may have taken the backquote for its own.
fn is_metals(text: &str) -> bool {
    let Some((place, said)) = text.split_once(": failed assertion ") else { return false };
    let (function, line) = place.rsplit_once(':').unwrap_or(("", place));
    let is_function = function.is_empty()
        || !function.contains(' ')
        || function.starts_with(['-', '+']) && function.get(1..2) == Some("[");
    is_number(line) && is_function && !said.is_empty()
}

/// Whether a message of Metal's goes on in the next line: it ends with a quote of its own.
pub(super) fn is_open(said: &str) -> bool {
    is_metals(said.lines().next().unwrap_or_default())
        && said.contains("assertion `")
        && !said.trim_end_matches('`').ends_with('\'')
}

/// `file.c:12`.
fn has_line(place: &str) -> bool {
    place.rsplit_once(':').is_some_and(|(file, line)| !file.is_empty() && is_number(line))
}

/// `*** stack smashing detected ***: terminated`, of glibc and other libraries with its checks.
fn is_detected(text: &str) -> bool {
    const WHAT: [&str; 5] = [
        "stack smashing",
        "buffer overflow",
        "%n in writable segment",
        "invalid %N$ use",
        "longjmp causes uninitialized stack frame",
    ];
    let inside = text.strip_prefix("*** ").and_then(|rest| rest.split_once(" ***"));
    let Some((inside, behind)) = inside else { return false };
    let is_known = WHAT.iter().any(|what| inside.strip_suffix(" detected") == Some(what) || inside == *what);
    // Old versions name the program behind it.
    is_known && (behind.is_empty() || behind.starts_with(": "))
}

/// bionic's `FORTIFY: memcpy: prevented 16-byte write into 8-byte buffer`, `FORTIFY: FD_SET: file descriptor 1024 >= FD_SETSIZE
/// 1024` (`libc/bionic/fortify.cpp`).
fn is_fortify_of_bionic(text: &str) -> bool {
    const WHAT: [&str; 8] = [
        "prevented ",
        "file descriptor ",
        "count ",
        "size ",
        "detected ",
        "read of ",
        "pthread_mutex_",
        "attempted ",
    ];
    let Some((function, what)) = text.strip_prefix("FORTIFY: ").and_then(|rest| rest.split_once(": ")) else {
        return text.starts_with("FORTIFY: pthread_mutex_")
            && text.contains(" called on a destroyed mutex (0x");
    };
    let is_function =
        !function.is_empty() && function.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_function
        && WHAT.iter().any(|begin| what.starts_with(begin))
        && what.contains(|c: char| c.is_ascii_digit())
}

/// What glibc's `malloc_printerr` is called with, in all versions; a number or words in brackets may follow.
const HEAP_ERRORS: [&str; 43] = [
    "free(): invalid pointer",
    "free(): invalid size",
    "free(): invalid next size",
    "free(): double free detected in tcache",
    "free(): too many chunks detected in tcache",
    "free(): unaligned chunk detected in tcache",
    "free(): corrupted unsorted chunks",
    "free(): chunks in smallbin corrupted",
    "double free or corruption",
    "malloc(): memory corruption",
    "malloc(): corrupted top size",
    "malloc(): corrupted unsorted chunks",
    "malloc(): invalid size",
    "malloc(): invalid next size",
    "malloc(): invalid next->prev_inuse",
    "malloc(): mismatching next->prev_size",
    "malloc(): unsorted double linked list corrupted",
    "malloc(): smallbin double linked list corrupted",
    "malloc(): largebin double linked list corrupted",
    "malloc(): unaligned tcache chunk detected",
    "malloc(): unaligned fastbin chunk detected",
    "malloc(): largebin next pointers corrupted",
    "malloc_consolidate(): invalid chunk size",
    "malloc_consolidate(): unaligned fastbin chunk detected",
    "malloc: top chunk is corrupt",
    "malloc_check_get_size: memory corruption",
    "realloc(): invalid pointer",
    "realloc(): invalid old size",
    "realloc(): invalid next size",
    "munmap_chunk(): invalid pointer",
    "mremap_chunk(): invalid pointer",
    "corrupted size vs. prev_size",
    "corrupted size vs. prev_size in fastbins",
    "corrupted size vs. prev_size while consolidating",
    "corrupted double-linked list",
    "invalid fastbin entry",
    "break adjusted to free malloc space",
    "sysmalloc: Assertion failed",
    "tcache_thread_shutdown(): unaligned tcache chunk detected",
    "unaligned fastbin chunk detected",
    "unaligned chunk detected in tcache",
    "free_check: invalid pointer",
    "realloc_check: invalid pointer",
];

fn is_heap_error(text: &str) -> bool {
    let is_rest = |rest: &str| {
        let rest = rest.trim();
        let is_bracket = rest
            .strip_prefix('(')
            .is_some_and(|inside| inside.find(')').is_some_and(|end| end + 1 == inside.len()));
        rest.is_empty() || is_number(rest) || is_bracket
    };
    HEAP_ERRORS.iter().any(|known| text.strip_prefix(known).is_some_and(is_rest))
}

/// glibc up to 2.26: `*** Error in `./a.out': double free or corruption (out): 0x0184a010 ***`, and before that
/// `*** glibc detected *** ./a.out: free(): invalid pointer: 0x0184a010 ***`.
fn heap_error_of_old(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix("*** ")?.strip_suffix(" ***")?;
    let (what, _) = inside.rsplit_once(": 0x")?;
    match what.strip_prefix("Error in `") {
        Some(rest) => rest.split_once("': "),
        None => what.strip_prefix("glibc detected *** ")?.split_once(": "),
    }
}

/// OpenBSD's `app(123) in free(): chunk is already free 0xe416811bb0`, tcmalloc's `src/tcmalloc.cc:332] Attempt to free invalid
/// pointer 0x7f9b64bfe0`.
fn heap_error_of_others(text: &str) -> Option<(Option<&str>, &str)> {
    let of_openbsd = || {
        let (before, what) = text.split_once(") in ")?;
        let (program, pid) = before.rsplit_once('(')?;
        let functions = ["free(): ", "malloc(): ", "realloc(): ", "calloc(): "];
        let is_known = is_number(pid) && functions.iter().any(|it| what.starts_with(it));
        is_known.then_some((Some(program), what))
    };
    let of_tcmalloc = || {
        let (place, what) = text.split_once("] ")?;
        let is_known =
            place.contains("tcmalloc.cc:") && what.starts_with("Attempt to free invalid pointer 0x");
        is_known.then_some((None, what))
    };
    of_openbsd().or_else(of_tcmalloc)
}

/// Assertions as other C libraries and frameworks word them.
fn is_assertion(text: &str) -> bool {
    let is_apples_or_windows =
        || text.starts_with("Assertion failed: ") && text.contains(", file ") && text.contains(", line ");
    // `Assertion failed: x (a.c: main: 7)`.
    let is_musls = || {
        let inside = text.strip_prefix("Assertion failed: ").and_then(|rest| rest.strip_suffix(')'));
        let place = inside.and_then(|inside| inside.rsplit_once(" (")).map(|(_, place)| place);
        place.is_some_and(|place| {
            let mut parts = place.rsplitn(3, ": ");
            parts.next().is_some_and(is_number) && parts.count() == 2
        })
    };
    let is_newlibs = || text.starts_with("assertion \"") && text.contains("\" failed: file \"");
    let is_bionics = || {
        let before = text.strip_suffix("\" failed").and_then(|rest| rest.split_once(": assertion \""));
        before.is_some_and(|(place, _)| place.split(": ").next().is_some_and(has_line))
    };
    // GLib's, of tests and programs.
    let is_glibs = || {
        let rest = text.strip_prefix("Bail out! ").unwrap_or(text);
        rest.starts_with("ERROR:") && rest.contains(": assertion failed")
    };
    let is_qts = || {
        (text.starts_with("ASSERT: \"") || text.starts_with("ASSERT failure in "))
            && text.contains("file ")
            && text.contains(", line ")
    };
    // Of glog, Abseil and Chromium: `F0131 12:00:00.123456 77 file.cc:12] Check failed: a == b (1 vs. 2)`.
    let is_check = || {
        let before = text.split_once("] Check failed: ").map(|(before, _)| before);
        before.is_some_and(|before| {
            before.contains(":FATAL:") || before.starts_with("F") && before.split(' ').any(has_line)
        })
    };
    is_apples_or_windows()
        || is_metals(text)
        || is_musls()
        || is_newlibs()
        || is_bionics()
        || is_glibs()
        || is_qts()
        || is_check()
}

/// What C++'s libraries print from std::terminate and at a call without a body.
fn is_of_cpp(text: &str) -> bool {
    let thrown = text.strip_prefix("terminate called after throwing an instance of ");
    let is_thrown = thrown.is_some_and(|name| {
        let name = name.trim().trim_end_matches(['`', '.']);
        name.len() > 2 && name.starts_with(['\'', '`', '"']) && name.ends_with(['\'', '"'])
    });
    let of_llvm = ["libc++abi: ", "libc++abi.dylib: "].iter().find_map(|name| text.strip_prefix(name));
    let is_llvms = of_llvm.is_some_and(|said| {
        let reason = said.strip_prefix("terminating").map(str::trim);
        let begins = [
            "with uncaught ",
            "due to uncaught ",
            "with unexpected ",
            "due to unexpected ",
            "due to exception ",
        ];
        let is_reason =
            |reason: &str| reason.is_empty() || begins.iter().any(|begin| reason.starts_with(begin));
        reason.is_some_and(is_reason)
            || matches!(said, "Pure virtual function called!" | "Deleted virtual function called!")
            || said.starts_with("terminate_handler ")
    });
    let whole = [
        "terminate called without an active exception",
        "terminate called recursively",
        "pure virtual method called",
        "deleted virtual method called",
    ];
    is_thrown || is_llvms || whole.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<(Option<&'static str>, Option<&str>, &str)> {
        read(&Logged::read(line)).map(|said| (said.by, said.program, said.text))
    }

    #[test]
    fn whole_messages_only() {
        let libc = Some(C_LIBRARY);
        for (line, expected) in [
            ("prog: a.c:12: main: Assertion `x > 0' failed.", (libc, Some("prog"))),
            ("a.cc:12: void f(int): Assertion `x' failed.Aborted (core dumped)", (libc, None)),
            ("Assertion `x' failed.", (libc, None)),
            ("../src/a.cc:12:static void ns::C::f(int): Assertion `(fd) >= (0)' failed.", (libc, None)),
            ("*** stack smashing detected ***: <unknown> terminated", (libc, None)),
            ("> `double free or corruption (!prev)`", (libc, None)),
            ("free(): double free detected in tcache 2", (libc, None)),
            ("app(123) in free(): chunk is already free 0xe416811bb0", (libc, Some("app"))),
            ("src/tcmalloc.cc:332] Attempt to free invalid pointer 0x7f9b64bfe0", (libc, None)),
            ("*** Error in `./a': free(): invalid pointer: 0x0184a010 ***", (libc, Some("./a"))),
            (
                "*** glibc detected *** ./a: free(): invalid next size (fast): 0x0184a010 ***",
                (libc, Some("./a")),
            ),
            ("FORTIFY: memcpy: prevented 16-byte write into 8-byte buffer", (libc, None)),
            ("FORTIFY: FD_SET: file descriptor 1024 >= FD_SETSIZE 1024", (libc, None)),
            ("Assertion failed: (x > 0), function main, file a.c, line 7.", (None, None)),
            ("Assertion failed: x > 0 (a.c: main: 7)", (None, None)),
            ("Player: open(url:) | Assertion s->size failed at libavcodec/frames.c:77", (None, None)),
            (
                "-[MTLDebugDevice newBuffer:]:12: failed assertion `length 0x20 must not exceed 16.'",
                (None, None),
            ),
            ("validatePass:78: failed assertion `Pass Validation", (None, None)),
            ("a.c:7: main: assertion \"x > 0\" failed", (None, None)),
            ("assertion \"x\" failed: file \"a.c\", line 7, function: main", (None, None)),
            ("ERROR:a.c:12:f: assertion failed (x == 1): (2 == 1)", (None, None)),
            ("ASSERT: \"x\" in file a.cpp, line 5", (None, None)),
            ("F0131 12:00:00.123456 77 a.cc:12] Check failed: a == b (1 vs. 2)", (None, None)),
            ("[77:78:0131/120000.123456:FATAL:a.cc(12)] Check failed: p.", (None, None)),
            ("terminate called after throwing an instance of 'std::bad_alloc'", (None, None)),
            ("libc++abi: terminating due to uncaught exception of type E: x", (None, None)),
            ("pure virtual method called", (None, None)),
            (
                "it says \"terminate called after throwing an instance of 'E' what(): no order Aborted (core dumped)\"",
                (None, None),
            ),
            (
                "qt.qpa.plugin: Could not load the Qt platform plugin \"xcb\" in \"\" even though it was found.",
                (Some(QT), None),
            ),
            (
                "This application failed to start because it could not find or load the Qt platform plugin \"xcb\"",
                (Some(QT), None),
            ),
        ] {
            assert_eq!(said(line).map(|(by, program, _)| (by, program)), Some(expected), "{line}");
        }
    }

    #[test]
    fn sentences_about_them_are_none() {
        for line in [
            "free(): invalid pointer is what glibc prints",
            "double free or corruption (out) comes from glibc (2.31)",
            "My program says double free or corruption (out)",
            "FORTIFY: what it is: nobody knows 100 %",
            "An Assertion `x' failed.",
            "Assertion failed: nobody knows why",
            "The Assertion x failed at a.c:12",
            "Assertion x failed at the first line",
            "the test in line 12: failed assertion of mine",
            "When terminate called after throwing an instance of 'E' is printed",
            "terminate called after throwing an instance of 'E' means that nobody caught it",
            "libc++abi: terminating is what I saw",
            "pure virtual method called by my library",
            "*** stack smashing detected *** is glibc's",
            "Check failed: the other one",
            "Why can it not load: Could a Qt platform plugin be missing",
            "see terminate called after throwing an instance of what(): is",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[test]
    fn programs_of_logs() {
        for line in [
            "Nov 22 17:00:00 host app[123]: malloc(): corrupted top size",
            "2024-11-22T17:00:00+0100 host app[123]: malloc(): corrupted top size",
            "2024-11-22 17:00:00.123 app[123:4567] malloc(): corrupted top size",
        ] {
            let logged = Logged::read(line);
            assert_eq!(logged.program, Some(("app", 123)), "{line}");
            assert!(read(&logged).is_some(), "{line}");
        }
        assert!(read(&Logged::read("2024-11-22T17:00:00Z corrupted double-linked list")).is_some());
    }
}
