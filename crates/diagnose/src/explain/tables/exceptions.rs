//! Exception types, signals and codes of the exceptions that are no memory accesses.
//!
//! Sources: XNU `osfmk/mach/exception_types.h`, `osfmk/mach/{arm,i386}/exception.h`, `bsd/sys/signal.h`, and Apple's
//! article on exception types.

/// The families of exceptions and signals that rules distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// EXC_BAD_ACCESS; SIGSEGV and SIGBUS where the reporter knew the signal only.
    BadAccess,
    /// EXC_BAD_INSTRUCTION; SIGILL.
    BadInstruction,
    /// EXC_ARITHMETIC; SIGFPE.
    Arithmetic,
    /// EXC_BREAKPOINT; SIGTRAP.
    Breakpoint,
    /// The process ended itself: SIGABRT.
    Abort,
    /// The process was ended from outside: SIGKILL.
    Kill,
    /// EXC_RESOURCE.
    Resource,
    /// EXC_GUARD.
    Guard,
    /// Another signal.
    Signal,
    /// Nothing that this crate knows.
    Unknown,
}

/// Mach exceptions: number, name, meaning.
pub(crate) static EXCEPTIONS: [(u64, &str, &str); 13] = [
    (1, "EXC_BAD_ACCESS", "the code read, wrote or jumped to memory that it may not use that way"),
    (2, "EXC_BAD_INSTRUCTION", "the processor met an instruction that it cannot or may not execute"),
    (3, "EXC_ARITHMETIC", "a calculation failed, usually an integer division by zero"),
    (4, "EXC_EMULATION", "an instruction of an emulated processor failed"),
    (5, "EXC_SOFTWARE", "software raised the exception"),
    (6, "EXC_BREAKPOINT", "the code stopped itself at a trap, or met a breakpoint"),
    (7, "EXC_SYSCALL", "a system call"),
    (8, "EXC_MACH_SYSCALL", "a Mach system call"),
    (9, "EXC_RPC_ALERT", "an alert of a remote call"),
    (10, "EXC_CRASH", "the process ended by a signal that it or another process sent"),
    (11, "EXC_RESOURCE", "the process used more of a resource than its limit"),
    (12, "EXC_GUARD", "the process did something forbidden to a guarded file, port or memory range"),
    (13, "EXC_CORPSE_NOTIFY", "the system examined a process that was already ending"),
];

/// What a signal means for the one who reads the report.
pub(crate) struct Signal {
    /// Its number on Apple's systems.
    pub(crate) number: u64,
    /// Its name.
    pub(crate) name: &'static str,
    /// What it means, as a clause.
    pub(crate) meaning: &'static str,
    /// A title for a process that it ended; empty where another rule has a better one.
    pub(crate) title: &'static str,
    /// Usual causes.
    pub(crate) causes: &'static [&'static str],
    /// What to do.
    pub(crate) next: &'static [&'static str],
}

const fn signal(number: u64, name: &'static str, meaning: &'static str) -> Signal {
    Signal { number, name, meaning, title: "", causes: &[], next: &[] }
}

/// The signals that end processes.
pub(crate) static SIGNALS: [Signal; 19] = [
    Signal {
        number: 1,
        name: "SIGHUP",
        meaning: "the terminal or session that the process belonged to ended",
        title: "Ended with its session (SIGHUP)",
        causes: &["The terminal was closed, or a service manager asked to reload."],
        next: &[],
    },
    Signal {
        number: 2,
        name: "SIGINT",
        meaning: "somebody interrupted the process",
        title: "Interrupted (SIGINT)",
        causes: &["Control-C, or a script that sends the same."],
        next: &[],
    },
    Signal {
        number: 3,
        name: "SIGQUIT",
        meaning: "another process asked for the end and for a report",
        title: "Ended by a supervising process (SIGQUIT)",
        causes: &[
            "An extension, such as a keyboard, took too long to load or to answer, and its host ended it.",
            "A supervisor or a person asked for a stack of a process that hangs.",
        ],
        next: &["See what the main thread did at that moment; do less work at the start of an extension."],
    },
    signal(4, "SIGILL", "the processor met an instruction that it cannot or may not execute"),
    signal(5, "SIGTRAP", "the code stopped itself at a trap"),
    signal(6, "SIGABRT", "the process ended itself with abort()"),
    Signal {
        number: 7,
        name: "SIGEMT",
        meaning: "an emulated instruction failed",
        title: "Emulation trap (SIGEMT)",
        causes: &[],
        next: &[],
    },
    signal(8, "SIGFPE", "a calculation failed"),
    signal(9, "SIGKILL", "the process was killed from outside and could do nothing about it"),
    signal(10, "SIGBUS", "memory is there, but this access to it is not allowed or not possible"),
    signal(11, "SIGSEGV", "the address is not mapped, or may not be used that way"),
    Signal {
        number: 12,
        name: "SIGSYS",
        meaning: "a system call had a number or argument that the kernel refuses",
        title: "Forbidden system call (SIGSYS)",
        causes: &["A system call that a sandbox forbids, or an argument that no valid call has."],
        next: &["See in the innermost frames which call it was and with what it was given."],
    },
    Signal {
        number: 13,
        name: "SIGPIPE",
        meaning: "the process wrote to a pipe or socket whose other end was closed",
        title: "Write to a closed connection (SIGPIPE)",
        causes: &[
            "A write to a socket that the other side closed, often after the app came back from the background.",
        ],
        next: &["Set SO_NOSIGPIPE on the socket or ignore SIGPIPE, and handle EPIPE."],
    },
    Signal {
        number: 14,
        name: "SIGALRM",
        meaning: "a timer that nobody handled ran out",
        title: "Timer ran out (SIGALRM)",
        causes: &["alarm() or setitimer() without a handler."],
        next: &[],
    },
    Signal {
        number: 15,
        name: "SIGTERM",
        meaning: "another process asked for the end",
        title: "Asked to end by another process (SIGTERM)",
        causes: &["The system or a person ended the process; by itself this is no fault of the code."],
        next: &["See who sent it, if the report says so."],
    },
    Signal {
        number: 24,
        name: "SIGXCPU",
        meaning: "the process used more CPU time than its limit",
        title: "CPU time limit exceeded (SIGXCPU)",
        causes: &["A loop that does not end."],
        next: &[],
    },
    Signal {
        number: 25,
        name: "SIGXFSZ",
        meaning: "a file grew beyond the limit",
        title: "File size limit exceeded (SIGXFSZ)",
        causes: &["A log or temporary file that grows without end."],
        next: &[],
    },
    Signal {
        number: 30,
        name: "SIGUSR1",
        meaning: "another process sent it for a purpose of its own",
        title: "Ended by SIGUSR1",
        causes: &["A tool sent a signal that the process does not handle."],
        next: &[],
    },
    Signal {
        number: 31,
        name: "SIGUSR2",
        meaning: "another process sent it for a purpose of its own",
        title: "Ended by SIGUSR2",
        causes: &["A tool sent a signal that the process does not handle."],
        next: &[],
    },
];

/// The signal of that name.
pub(crate) fn signal_by_name(name: &str) -> Option<&'static Signal> {
    SIGNALS.iter().find(|signal| signal.name == name)
}

/// The signal of that number on Apple's systems.
pub(crate) fn signal_by_number(number: u64) -> Option<&'static Signal> {
    SIGNALS.iter().find(|signal| signal.number == number)
}

/// A code of an exception that is no memory access, on the processors that it belongs to.
pub(crate) struct ExceptionCode {
    /// The exception.
    pub(crate) exception: &'static str,
    /// The number.
    pub(crate) code: u64,
    /// Its name.
    pub(crate) name: &'static str,
    /// What it means.
    pub(crate) meaning: &'static str,
    /// Whether it is x86's; else ARM's.
    pub(crate) x86: bool,
}

const fn arm(exception: &'static str, code: u64, name: &'static str, meaning: &'static str) -> ExceptionCode {
    ExceptionCode { exception, code, name, meaning, x86: false }
}

const fn x86(exception: &'static str, code: u64, name: &'static str, meaning: &'static str) -> ExceptionCode {
    ExceptionCode { exception, code, name, meaning, x86: true }
}

/// The codes.
pub(crate) static EXCEPTION_CODES: [ExceptionCode; 24] = [
    arm("EXC_BAD_INSTRUCTION", 1, "EXC_ARM_UNDEFINED", "the instruction is undefined"),
    arm("EXC_BREAKPOINT", 1, "EXC_ARM_BREAKPOINT", "a BRK or BKPT instruction"),
    arm("EXC_ARITHMETIC", 0, "EXC_ARM_FP_UNDEFINED", "a floating-point exception of unknown kind"),
    arm("EXC_ARITHMETIC", 1, "EXC_ARM_FP_IO", "an invalid floating-point operation"),
    arm("EXC_ARITHMETIC", 2, "EXC_ARM_FP_DZ", "a floating-point division by zero"),
    arm("EXC_ARITHMETIC", 3, "EXC_ARM_FP_OF", "a floating-point overflow"),
    arm("EXC_ARITHMETIC", 4, "EXC_ARM_FP_UF", "a floating-point underflow"),
    arm("EXC_ARITHMETIC", 5, "EXC_ARM_FP_IX", "an inexact floating-point result"),
    arm("EXC_ARITHMETIC", 6, "EXC_ARM_FP_ID", "a denormal floating-point input"),
    x86("EXC_BAD_INSTRUCTION", 1, "EXC_I386_INVOP", "the instruction is undefined"),
    x86("EXC_BAD_INSTRUCTION", 10, "EXC_I386_INVTSSFLT", "an invalid task state segment"),
    x86("EXC_BAD_INSTRUCTION", 11, "EXC_I386_SEGNPFLT", "a segment that is not present"),
    x86("EXC_BAD_INSTRUCTION", 12, "EXC_I386_STKFLT", "a stack segment fault"),
    x86("EXC_BAD_INSTRUCTION", 13, "EXC_I386_GPFLT", "a general protection fault"),
    x86("EXC_BREAKPOINT", 1, "EXC_I386_SGL", "a single step"),
    x86("EXC_BREAKPOINT", 2, "EXC_I386_BPT", "a breakpoint instruction (INT3)"),
    x86(
        "EXC_ARITHMETIC",
        1,
        "EXC_I386_DIV",
        "an integer division by zero, or a quotient too large for the register",
    ),
    x86("EXC_ARITHMETIC", 2, "EXC_I386_INTO", "an integer overflow trap"),
    x86("EXC_ARITHMETIC", 3, "EXC_I386_NOEXT", "no floating-point unit"),
    x86("EXC_ARITHMETIC", 4, "EXC_I386_EXTOVR", "a floating-point operand beyond its segment"),
    x86("EXC_ARITHMETIC", 5, "EXC_I386_EXTERR", "a floating-point exception of the x87 unit"),
    x86("EXC_ARITHMETIC", 6, "EXC_I386_EMERR", "an error of the floating-point emulator"),
    x86("EXC_ARITHMETIC", 7, "EXC_I386_BOUND", "an index out of bounds (BOUND instruction)"),
    x86("EXC_ARITHMETIC", 8, "EXC_I386_SSEEXTERR", "a floating-point exception of the SSE unit"),
];

/// Signal codes of SIGFPE and SIGILL, as reporters that know the signal only write them.
pub(crate) static SIGNAL_CODES: [(&str, &str); 12] = [
    ("FPE_INTDIV", "an integer division by zero"),
    ("FPE_INTOVF", "an integer overflow"),
    ("FPE_FLTDIV", "a floating-point division by zero"),
    ("FPE_FLTOVF", "a floating-point overflow"),
    ("FPE_FLTUND", "a floating-point underflow"),
    ("FPE_FLTINV", "an invalid floating-point operation"),
    ("ILL_ILLOPC", "the instruction is undefined"),
    ("ILL_ILLTRP", "an illegal trap instruction"),
    ("ILL_PRVOPC", "the instruction is privileged"),
    ("ILL_ILLOPN", "an operand of the instruction is invalid"),
    ("TRAP_BRKPT", "a breakpoint instruction"),
    ("TRAP_TRACE", "a trace trap"),
];
