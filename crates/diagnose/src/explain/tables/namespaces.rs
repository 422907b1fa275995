//! Namespaces of termination reasons, and the codes that mean something in one of them only.
//!
//! Sources: as for the codes that all share.

use super::kill::{Blame, KillCode};

/// A namespace of termination reasons.
pub(crate) struct Namespace {
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// Its number in the kernel; 0 for names that only reports use.
    pub(crate) number: u64,
    /// Who speaks there.
    pub(crate) meaning: &'static str,
    /// What the stacks are worth.
    pub(crate) blame: Blame,
    /// The meanings of its codes.
    pub(crate) codes: &'static [KillCode],
}

const NONE: &[KillCode] = &[];

const fn plain(code: u64, title: &'static str, meaning: &'static str, blame: Blame) -> KillCode {
    KillCode { code, title, meaning, blame, causes: &[], next: &[] }
}

const fn advised(
    code: u64,
    title: &'static str,
    meaning: &'static str,
    causes: &'static [&'static str],
    next: &'static [&'static str],
) -> KillCode {
    KillCode { code, title, meaning, blame: Blame::Packaging, causes, next }
}

static CODESIGNING: [KillCode; 4] = [
    advised(
        1,
        "Killed for an invalid code signature",
        "The signature of the executable was not accepted when it started.",
        &[
            "The app was changed after it was signed, or signed with the wrong identity, profile or entitlements.",
        ],
        &["Run `codesign --verify --deep --strict --verbose=4` on the app; sign it again."],
    ),
    advised(
        2,
        "Killed for a page of code whose signature does not fit",
        "A page of a signed file was changed after signing, on disk or in memory, and was denied.",
        &[
            "A signed binary was overwritten in place while it was in use (an update, a copy over the old file).",
            "A library in the app was changed or not signed after the build.",
            "Code was written into memory without the entitlement for it (a JIT, hooking, an injected library).",
        ],
        &[
            "Replace signed files by moving a new file into place, never by writing into the old one.",
            "Run `codesign --verify --deep --strict --verbose=4` on the installed app.",
        ],
    ),
    advised(
        3,
        "Killed for using another task's port against its signature",
        "The process asked for control over another task, which its signature does not allow.",
        &["A debugger or tool without the entitlement for it."],
        &["Check the entitlements of the tool."],
    ),
    advised(
        4,
        "Killed for a launch that the signature's constraints forbid",
        "The executable was started by a process or from a place that its launch constraints do not allow.",
        &["A helper or system tool was copied elsewhere or started by hand."],
        &["Start the executable the way that its constraints name."],
    ),
];

static DYLD: [KillCode; 8] = [
    advised(
        1,
        "A library was not found at launch",
        "The loader (dyld) could not find a library that the app needs.",
        &[
            "The framework is linked but not embedded in the app.",
            "It is embedded, but the search path (@rpath, LC_RPATH) does not lead there, or its signature was refused.",
            "It belongs to a newer system than the one on the device.",
        ],
        &[
            "Set the framework to \"Embed & Sign\" in the target, or link it weakly if older systems lack it.",
            "Run `otool -l` on the executable and compare LC_LOAD_DYLIB and LC_RPATH with what lies in the app.",
        ],
    ),
    advised(
        2,
        "A library has the wrong architecture",
        "The loader (dyld) found the library, but without code for this processor.",
        &["A simulator or single-architecture build of the library was shipped."],
        &["Run `lipo -info` on the library; ship an XCFramework with all slices."],
    ),
    advised(
        3,
        "A library has the wrong version",
        "The loader (dyld) found the library, but its compatibility version is older than the one linked against.",
        &["The app was built against another version of the library than it ships."],
        &["Rebuild the app and the library together."],
    ),
    advised(
        4,
        "A symbol was not found at launch",
        "The loader (dyld) found the library, but a function or variable that the app needs is missing from it.",
        &[
            "The app uses an API that is newer than the system on the device, without an availability check or weak linking.",
            "The shipped library is older than the one that the app was built against.",
        ],
        &[
            "Compare the deployment target with the API's first system version; guard it with #available.",
            "Rebuild the app and its libraries together.",
        ],
    ),
    advised(
        5,
        "A library's code signature was not accepted",
        "The loader (dyld) refused a library since its signature is missing or invalid.",
        &["The library was not signed with the app's team, or was changed after signing."],
        &[
            "Run `codesign --verify --deep --strict --verbose=4` on the app; sign embedded code from the inside out.",
        ],
    ),
    advised(
        6,
        "A library could not be read for the sandbox",
        "The loader (dyld) was not allowed by the sandbox to read a library.",
        &["The library lies outside of what the app may read."],
        &["Put the library into the app."],
    ),
    advised(
        7,
        "A binary is malformed",
        "The loader (dyld) could not make sense of a binary.",
        &["A damaged or wrongly built or stripped file."],
        &["Compare the file's checksum with the build's; build it again."],
    ),
    advised(
        9,
        "The loader failed",
        "The loader (dyld) ended the launch for another reason.",
        &[],
        &["Read the text of the termination reason."],
    ),
];

static EXEC: [KillCode; 19] = [
    plain(1, "The executable is malformed", "The kernel could not read the executable.", Blame::Packaging),
    plain(
        2,
        "The executable's owner rights could not be set",
        "Setting user or group id at launch failed.",
        Blame::Packaging,
    ),
    plain(
        3,
        "The first thread's state was not accepted",
        "The executable's initial thread state could not be set.",
        Blame::Packaging,
    ),
    plain(
        4,
        "No stack could be made",
        "The kernel could not allocate the main thread's stack.",
        Blame::Untold,
    ),
    plain(
        5,
        "The launch arguments could not be set up",
        "The kernel could not prepare the strings for the loader.",
        Blame::Untold,
    ),
    plain(
        6,
        "The launch arguments could not be copied",
        "The kernel could not copy arguments and environment.",
        Blame::Untold,
    ),
    plain(
        7,
        "The loader could not be set up",
        "The kernel could not hand the executable to dyld.",
        Blame::Untold,
    ),
    plain(
        8,
        "A security policy refused the launch",
        "A security policy did not allow the executable to run.",
        Blame::Packaging,
    ),
    plain(
        9,
        "The signature service refused the launch",
        "The service that checks signatures refused the executable.",
        Blame::Packaging,
    ),
    plain(
        10,
        "The purchased app could not be decrypted",
        "FairPlay could not decrypt the executable: an account or installation problem.",
        Blame::Outside,
    ),
    plain(11, "The executable could not be decrypted", "Decrypting the executable failed.", Blame::Outside),
    plain(
        12,
        "The executable was packed with UPX",
        "The kernel refuses executables packed with UPX.",
        Blame::Packaging,
    ),
    plain(
        13,
        "32-bit code is not supported",
        "The system runs no 32-bit executables any more.",
        Blame::Packaging,
    ),
    plain(
        14,
        "The executable is for another platform",
        "The executable was built for another platform than this system.",
        Blame::Packaging,
    ),
    plain(
        15,
        "No file descriptor was left at launch",
        "The kernel could not open a descriptor for the executable.",
        Blame::Untold,
    ),
    plain(
        16,
        "Rosetta could not be set up",
        "The kernel could not hand the executable to Rosetta.",
        Blame::Untold,
    ),
    plain(
        17,
        "The loader's information could not be set",
        "The kernel could not prepare dyld's information.",
        Blame::Untold,
    ),
    plain(
        18,
        "The first thread could not be made",
        "The kernel could not set up the first thread.",
        Blame::Untold,
    ),
    plain(
        19,
        "The launch attributes were not accepted",
        "posix_spawn was given attributes that the kernel refuses.",
        Blame::Untold,
    ),
];

static GUARD: [KillCode; 5] = [
    plain(
        1,
        "Killed for touching a guarded file",
        "The process did something to a file that its owner had forbidden.",
        Blame::Stack,
    ),
    plain(
        2,
        "Killed for touching guarded memory",
        "The process did something to memory that is forbidden.",
        Blame::Stack,
    ),
    plain(
        3,
        "Killed for misusing a Mach port",
        "The process did something to a Mach port that is forbidden.",
        Blame::Stack,
    ),
    plain(
        4,
        "Killed by a guard of a system enclave",
        "The process misused a service of an exclave.",
        Blame::Stack,
    ),
    plain(
        5,
        "Killed by the guard of JIT memory",
        "The process misused memory for generated code.",
        Blame::Stack,
    ),
];

static JETSAM: [KillCode; 15] = [
    plain(
        1,
        "Killed to free memory",
        "The system killed the app for a reason that it does not detail.",
        Blame::Untold,
    ),
    KillCode {
        code: 2,
        title: "Killed for exceeding its memory mark",
        meaning: "The app used more memory than its high-water mark while memory was short.",
        blame: Blame::Untold,
        causes: &["Memory that grows: images, caches, leaks."],
        next: &["Profile with Instruments (Allocations, VM Tracker) and react to memory warnings."],
    },
    plain(
        3,
        "Killed since the system ran out of file nodes",
        "Too many files were open in the whole system.",
        Blame::Outside,
    ),
    plain(
        4,
        "Killed to free memory for the system",
        "The whole system was short of memory and the app was next in line.",
        Blame::Outside,
    ),
    plain(
        5,
        "Killed since the system was thrashing",
        "The system was busy moving memory back and forth.",
        Blame::Outside,
    ),
    plain(
        6,
        "Killed since the file cache was thrashing",
        "The system was busy rereading files.",
        Blame::Outside,
    ),
    KillCode {
        code: 7,
        title: "Killed for using too much memory",
        meaning: "The app exceeded the memory limit for a single process.",
        blame: Blame::Untold,
        causes: &[
            "Memory that grows without end: a leak, a retain cycle, an unbounded cache.",
            "One very large allocation: an image or a video decoded at full size.",
        ],
        next: &[
            "Profile with Instruments (Allocations, Leaks, VM Tracker); compare memory graphs over time.",
            "App extensions have much lower limits than apps: check whether this was one.",
        ],
    },
    plain(8, "Killed since the disk was full", "The system was short of storage.", Blame::Outside),
    plain(
        9,
        "Closed while idle",
        "The app was idle in the background and the system took its memory.",
        Blame::Outside,
    ),
    plain(
        10,
        "Killed since the kernel's memory ran out",
        "The kernel's zone memory was exhausted.",
        Blame::Outside,
    ),
    plain(
        11,
        "Killed since compressed memory was thrashing",
        "The system was busy compressing memory.",
        Blame::Outside,
    ),
    plain(
        12,
        "Killed since compressed memory was full",
        "No room was left for compressed memory.",
        Blame::Outside,
    ),
    plain(13, "Killed since swap space was low", "The system was short of swap space.", Blame::Outside),
    plain(14, "Killed under lasting memory pressure", "Memory was short for a long time.", Blame::Outside),
    plain(
        100,
        "Killed for using too much CPU",
        "The app exceeded a CPU limit that ends the process.",
        Blame::Untold,
    ),
];

const fn space(name: &'static str, number: u64, meaning: &'static str, blame: Blame) -> Namespace {
    Namespace { name, number, meaning, blame, codes: NONE }
}

const fn coded(
    name: &'static str,
    number: u64,
    meaning: &'static str,
    blame: Blame,
    codes: &'static [KillCode],
) -> Namespace {
    Namespace { name, number, meaning, blame, codes }
}

/// The namespaces, in the kernel's order, then those that only reports name.
pub(crate) static NAMESPACES: [Namespace; 47] = [
    coded("JETSAM", 1, "the kernel's memory management", Blame::Untold, &JETSAM),
    space("SIGNAL", 2, "a signal", Blame::Stack),
    coded("CODESIGNING", 3, "the check of code signatures", Blame::Packaging, &CODESIGNING),
    space("HANGTRACER", 4, "the tracer of hangs", Blame::MainThread),
    space("TEST", 5, "a test", Blame::Outside),
    coded("DYLD", 6, "the loader of libraries", Blame::Packaging, &DYLD),
    space("LIBXPC", 7, "the library for talking to services", Blame::Stack),
    space("OBJC", 8, "the Objective-C runtime", Blame::Stack),
    coded("EXEC", 9, "the kernel at launch", Blame::Packaging, &EXEC),
    space("SPRINGBOARD", 10, "the system's home screen, which manages apps", Blame::Untold),
    space("TCC", 11, "privacy protection", Blame::Packaging),
    space("REPORTCRASH", 12, "the crash reporter", Blame::Outside),
    space("COREANIMATION", 13, "the window server's animation", Blame::Untold),
    space("AGGREGATED", 14, "the daemon for statistics", Blame::Untold),
    space("RUNNINGBOARD", 15, "the manager of processes' states", Blame::Untold),
    space("SKYWALK", 16, "the kernel's networking", Blame::Stack),
    space("SETTINGS", 17, "the Settings app", Blame::Outside),
    space("LIBSYSTEM", 18, "the C library", Blame::Stack),
    space("FOUNDATION", 19, "Foundation", Blame::Stack),
    space("WATCHDOG", 20, "the system's watchdog", Blame::MainThread),
    space("METAL", 21, "Metal, the graphics system", Blame::Stack),
    space("WATCHKIT", 22, "WatchKit", Blame::Untold),
    coded("GUARD", 23, "the kernel's guards", Blame::Stack, &GUARD),
    space("ANALYTICS", 24, "analytics", Blame::Untold),
    space("SANDBOX", 25, "the sandbox", Blame::Stack),
    space("SECURITY", 26, "the security framework", Blame::Untold),
    space("ENDPOINTSECURITY", 27, "endpoint security", Blame::Untold),
    space("PAC_EXCEPTION", 28, "pointer authentication", Blame::Stack),
    space("BLUETOOTH_CHIP", 29, "the Bluetooth chip", Blame::Outside),
    space("PORT_SPACE", 30, "the kernel: no Mach port was left", Blame::Untold),
    space("WEBKIT", 31, "WebKit", Blame::Stack),
    space("BACKLIGHTSERVICES", 32, "the services of the always-on display", Blame::Untold),
    space("MEDIA", 33, "the media services", Blame::Stack),
    space("ROSETTA", 34, "Rosetta, the translator", Blame::Stack),
    space("LIBIGNITION", 35, "the start of the system", Blame::Outside),
    space("BOOTMOUNT", 36, "the start of the system", Blame::Outside),
    space("REALITYKIT", 38, "RealityKit", Blame::Stack),
    space("AUDIO", 39, "the audio system", Blame::Stack),
    space("WAKEBOARD", 40, "the manager of wake-ups", Blame::Untold),
    space("CORERC", 41, "the remote control service", Blame::Untold),
    space("SELF_RESTRICT", 42, "the process's own restrictions", Blame::Stack),
    space("ARKIT", 43, "ARKit", Blame::Stack),
    // Seen on macOS 26 beside EXC_ARM_MTE_TAGCHECK_FAIL.
    space("MTE_FAIL", 0, "memory tagging", Blame::Stack),
    space("FRONTBOARD", 0, "the manager of apps on screen", Blame::Untold),
    space("ASSERTIOND", 0, "the manager of processes' states", Blame::Untold),
    space("CAROUSEL", 0, "the watch's home screen, which manages apps", Blame::Untold),
    space("LAUNCHD", 0, "launchd, which starts processes", Blame::Untold),
];

/// The namespace of that name; reporters that do not know a new one print its number.
pub(crate) fn namespace(name: &str) -> Option<&'static Namespace> {
    let name = name.trim();
    let number = super::super::words::number(name).filter(|number| *number != 0);
    NAMESPACES.iter().find(|known| known.name.eq_ignore_ascii_case(name) || Some(known.number) == number)
}

impl Namespace {
    /// The meaning of a code in this namespace.
    pub(crate) fn code(&self, code: u64) -> Option<&'static KillCode> {
        self.codes.iter().find(|known| known.code == code)
    }
}
