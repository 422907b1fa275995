//! Codes by which a process is ended, whatever namespace they come in.
//!
//! Sources: XNU `bsd/sys/reason.h` (namespaces, CODESIGNING, EXEC, GUARD), `bsd/sys/kern_memorystatus.h` (JETSAM),
//! dyld's `mach-o/dyld_priv.h` (DYLD), Apple's articles on SIGKILL and on watchdog terminations and its
//! technical note TN2151 (the large codes).

/// What a killing says of the code on the stacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blame {
    /// The thread that the report blames was doing it.
    Stack,
    /// The main thread did not answer; its stack shows what it did at the end.
    MainThread,
    /// The stacks do not tell.
    Untold,
    /// Nothing in the process is at fault.
    Outside,
    /// The app's files, signature or property list are.
    Packaging,
}

/// A code with its meaning.
pub(crate) struct KillCode {
    /// The number.
    pub(crate) code: u64,
    /// A title.
    pub(crate) title: &'static str,
    /// What happened, as a sentence.
    pub(crate) meaning: &'static str,
    /// What the stacks are worth.
    pub(crate) blame: Blame,
    /// Usual causes.
    pub(crate) causes: &'static [&'static str],
    /// What to do.
    pub(crate) next: &'static [&'static str],
}

/// Codes that mean the same in whatever namespace they come.
pub(crate) static KILL_CODES: [KillCode; 18] = [
    KillCode {
        code: 0x8bad_f00d,
        title: "Killed by the watchdog",
        meaning: "The system's watchdog killed the app since it did not launch, answer or finish in the time allowed.",
        blame: Blame::MainThread,
        causes: &[],
        next: &[
            "Move work off the main thread: network, file and database access, decoding, waiting for other threads.",
        ],
    },
    KillCode {
        code: 0xbad2_2222,
        title: "Killed for being resumed too often",
        meaning: "The system killed a Voice-over-IP app that was resumed too often.",
        blame: Blame::Untold,
        causes: &["VoIP sockets or pushes that wake the app much more often than calls arrive."],
        next: &["Use PushKit and CallKit, and let the app sleep between calls."],
    },
    KillCode {
        code: 0xdead_10cc,
        title: "Killed for holding a file lock while being suspended",
        meaning: "The app was about to be suspended while it held a lock on a file or an SQLite database that other processes share.",
        blame: Blame::Untold,
        causes: &[
            "A write to a database in a shared container (Core Data, SwiftData, SQLite) that was not finished when the app went to the background.",
            "A file lock taken without a background task around it.",
        ],
        next: &[
            "Wrap such writes in beginBackgroundTask(expirationHandler:), or move the file out of the shared container.",
        ],
    },
    KillCode {
        code: 0x2bad_45ec,
        title: "Killed for drawing while the screen was locked",
        meaning: "The system ended the app for a violation of security: it drew to the screen while only the lock screen may (secure mode).",
        blame: Blame::Untold,
        causes: &["A render loop, timer or change of the interface that runs on while the device is locked."],
        next: &[
            "Stop drawing when the app becomes inactive and when protected data becomes unavailable; test with the device locked.",
        ],
    },
    KillCode {
        code: 0xdead_fa11,
        title: "Closed by the user",
        meaning: "The user forced the app to quit.",
        blame: Blame::Outside,
        causes: &[
            "The app did not react, or the user simply wanted it gone; the report does not tell which.",
        ],
        next: &["See in the main thread's stack whether the app was stuck."],
    },
    KillCode {
        code: 0xc000_10ff,
        title: "Killed to cool the device down",
        meaning: "The system killed the app since the device was too hot.",
        blame: Blame::Outside,
        causes: &[
            "Surroundings, or load by any process; the report does not tell how much of it was this app's.",
        ],
        next: &[
            "If this comes often, look for busy loops, animation and video work; reduce it when ProcessInfo.thermalState rises.",
        ],
    },
    KillCode {
        code: 0xbaaa_aaad,
        title: "A snapshot of the whole system, not a crash",
        meaning: "Somebody asked for the state of all processes (buttons pressed together, or a diagnosing tool); nothing crashed.",
        blame: Blame::Outside,
        causes: &[],
        next: &["Read it for what each process was doing; do not count it as a crash."],
    },
    KillCode {
        code: 0xbaad_ca11,
        title: "Killed for not reporting a call",
        meaning: "A PushKit push arrived and the app did not report a call to CallKit.",
        blame: Blame::Untold,
        causes: &[
            "The push handler returns, fails or waits before reportNewIncomingCall(with:update:completion:).",
        ],
        next: &[
            "Report the call to CallKit first thing in the push handler, also when it turns out to be over.",
        ],
    },
    KillCode {
        code: 0xbadd_d15c,
        title: "Closed so that its caches could be purged",
        meaning: "The system ended the app to delete its caches since storage was low.",
        blame: Blame::Outside,
        causes: &["The device was nearly full."],
        next: &["Nothing in the code; see that large files in the cache directory can be made again."],
    },
    KillCode {
        code: 0x2182_bad2,
        title: "Killed for a background task that overran",
        meaning: "A background task was not ended in time.",
        blame: Blame::Untold,
        causes: &[
            "A beginBackgroundTask without its endBackgroundTask on some way through the code.",
            "Work longer than the time granted.",
        ],
        next: &["End every background task in its expiration handler too."],
    },
    KillCode {
        code: 0x2182_bad3,
        title: "Killed for background URL session work that overran",
        meaning: "The handling of background URL session events was not finished in time.",
        blame: Blame::Untold,
        causes: &["The completion handler that the system gave was not called, or too late."],
        next: &[
            "Call the stored completion handler from urlSessionDidFinishEvents(forBackgroundURLSession:).",
        ],
    },
    KillCode {
        code: 0x2182_bad4,
        title: "Killed for a background fetch that overran",
        meaning: "A background fetch was not finished in time.",
        blame: Blame::Untold,
        causes: &["The fetch's completion handler was not called, or too late."],
        next: &[
            "Call the completion handler on every way through the code; keep the fetch below 30 seconds.",
        ],
    },
    KillCode {
        code: 0xc51b_ad01,
        title: "Watch app killed for too much CPU time in the background",
        meaning: "A background task of the watch app used more CPU time than allowed.",
        blame: Blame::Stack,
        causes: &["Too much computing in one background task."],
        next: &["Do less in one task, or spread it over several."],
    },
    KillCode {
        code: 0xc51b_ad02,
        title: "Watch app killed for taking too long in the background",
        meaning: "A background task of the watch app took longer than allowed.",
        blame: Blame::Untold,
        causes: &["setTaskCompletedWithSnapshot was not called, or the task waited for something slow."],
        next: &["Complete every background task, also when it fails."],
    },
    KillCode {
        code: 0xc51b_ad03,
        title: "Watch app ended in the background on a busy system",
        meaning: "The background task was not finished in time, but the system was so busy that the app may have had too little chance.",
        blame: Blame::Outside,
        causes: &["Load by other processes."],
        next: &["Nothing, unless it comes often; then do less in one task."],
    },
    KillCode {
        code: 0xd00d_2bad,
        title: "Killed for using too much of a scarce resource",
        meaning: "The app used too many of the system's key resources at once.",
        blame: Blame::Untold,
        causes: &["Leaked system objects: connections, surfaces, timers."],
        next: &["Look in Instruments for objects that grow without end."],
    },
    KillCode {
        code: 0xfbfb_fbfb,
        title: "Ended by the simulator",
        meaning: "The simulator's host asked for the end of the app (seen when Xcode or a test run stops it).",
        blame: Blame::Outside,
        causes: &["A new run, a stopped test or a closed simulator."],
        next: &["Nothing; do not count it as a crash."],
    },
    KillCode {
        code: 0xdead_feed,
        title: "Killed since a service did not start in time",
        meaning: "A service that the process waited for did not start in time (this reading rests on a single source).",
        blame: Blame::Untold,
        causes: &["An extension or service that is slow to launch."],
        next: &["See which service the main thread waits for."],
    },
];

/// The meaning of a code that every namespace shares. Reports may carry it sign-extended or with further high bits.
pub(crate) fn kill_code(code: u64) -> Option<&'static KillCode> {
    KILL_CODES.iter().find(|known| known.code == code || known.code == code & 0xffff_ffff)
}
