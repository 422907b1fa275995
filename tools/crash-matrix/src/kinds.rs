//! The kinds of crashes, and what each has to leave.

/// What a crash leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaves {
    /// A complete report, with so many threads of the program beside the one that crashed.
    Report { workers: usize },
    /// A whole file that says that the handler's own function crashed, with the thread that crashed.
    Shorter,
    /// As much as the disk had room for; the file says that it is cut off.
    CutOff,
    /// Nothing: there is nowhere to write to.
    Nothing,
}

/// What the folder of reports is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Folder {
    Usual,
    /// A file system of its own, with room for so many bytes.
    Room(u64),
    /// One that the program makes read-only.
    Own,
}

#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) signal: &'static str,
    /// The handler finds at least so many frames.
    pub(crate) frames: usize,
    pub(crate) leaves: Leaves,
    pub(crate) folder: Folder,
    /// Whether `backtrail watch` follows it: no handler sees it.
    pub(crate) is_followed: bool,
}

/// Callers of the functions that crash: by name, within `kinds_crash`, within the host's.
const USUAL_FRAMES: usize = 4;
const USUAL: Leaves = Leaves::Report { workers: 3 };

const SIMPLE: [(&str, &str); 26] = [
    ("abort", "SIGABRT"),
    ("assert", "SIGABRT"),
    ("throw", "SIGABRT"),
    ("throw-noexcept", "SIGABRT"),
    ("pure-virtual", "SIGABRT"),
    ("released", "SIGSEGV"),
    ("freed-twice", "SIGABRT"),
    ("null", "SIGSEGV"),
    ("garbage", "SIGSEGV"),
    ("log-no-object", "SIGSEGV"),
    ("privileged", if cfg!(target_arch = "x86_64") { "SIGSEGV" } else { "SIGILL" }),
    ("read-only-page", "SIGSEGV"),
    ("overflow", "SIGSEGV"),
    ("breakpoint", "SIGTRAP"),
    ("undefined", "SIGILL"),
    ("divided", "SIGFPE"),
    ("bus", "SIGBUS"),
    ("sys", "SIGSYS"),
    ("malloc-locked", "SIGSEGV"),
    ("loader-locked", "SIGSEGV"),
    ("overflow-in-thread", "SIGSEGV"),
    ("in-exit", "SIGSEGV"),
    ("watcher", "SIGSEGV"),
    ("watcher-throw", "SIGABRT"),
    ("watcher-killed", "SIGSEGV"),
    ("watcher-stopped", "SIGSEGV"),
];

/// Both of a pair: the crash, and the one in the handler.
const PAIRED: [(&str, &str); 5] = [
    ("null", "SIGSEGV"),
    ("abort", "SIGABRT"),
    ("throw", "SIGABRT"),
    ("overflow", "SIGSEGV"),
    ("undefined", "SIGILL"),
];

pub(crate) fn all() -> Vec<Kind> {
    let usual = |name: &str, signal| Kind {
        name: name.to_owned(),
        signal,
        frames: USUAL_FRAMES,
        leaves: USUAL,
        folder: Folder::Usual,
        is_followed: false,
    };
    let null = |name| usual(name, "SIGSEGV");
    let mut kinds: Vec<Kind> = SIMPLE.iter().map(|(name, signal)| usual(name, signal)).collect();
    // Who reads the file has the mappings, and finds the callers.
    kinds.push(Kind { frames: 1, ..null("not-executable") });
    // What there were of callers is gone.
    kinds.push(Kind { frames: 1, ..null("return-to-nowhere") });
    kinds.push(Kind { frames: 1, ..usual("stack-top", "SIGILL") });
    kinds.push(Kind { frames: 2, ..usual("stack-bottom", "SIGILL") });
    // Both begin at the function that a thread begins with.
    kinds.push(Kind { frames: 3, ..null("two-threads") });
    kinds.push(Kind { leaves: Leaves::Report { workers: 1000 }, ..null("many-threads") });
    kinds.push(Kind { leaves: Leaves::Report { workers: 0 }, ..null("in-fork") });
    kinds.push(Kind { leaves: Leaves::Report { workers: 0 }, ..null("in-vfork") });
    kinds.push(Kind { is_followed: true, ..null("signals-blocked") });
    kinds.push(Kind { leaves: Leaves::CutOff, folder: Folder::Room(16 << 10), ..null("disk-short") });
    kinds.push(Kind { folder: Folder::Room(2 << 20), ..null("disk-full") });
    kinds.push(Kind { leaves: Leaves::Nothing, folder: Folder::Room(0), ..null("disk-none") });
    kinds.push(Kind { leaves: Leaves::Nothing, folder: Folder::Own, ..null("read-only-directory") });
    for (outer, signal) in PAIRED {
        for (inner, _) in PAIRED {
            kinds.push(Kind { leaves: Leaves::Shorter, ..usual(&format!("pair-{outer}-{inner}"), signal) });
        }
    }
    kinds
}
