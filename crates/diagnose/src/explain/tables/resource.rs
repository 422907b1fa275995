//! EXC_RESOURCE: which limit, and how the numbers are packed.
//!
//! Source: XNU `osfmk/kern/exc_resource.h`. Code: bits 63 to 61 the type, 60 to 58 the flavor, the rest as below.

use super::kill::Blame;

/// A field of a code: its lowest bit and its width.
pub(crate) type Bits = (u32, u32);

/// A type of resource.
pub(crate) struct ResourceType {
    /// Bits 63 to 61.
    pub(crate) number: u64,
    /// The word that reports print.
    pub(crate) name: &'static str,
    /// A title.
    pub(crate) title: &'static str,
    /// The unit of limit and observation.
    pub(crate) unit: &'static str,
    /// Where the code has the limit.
    pub(crate) limit: Bits,
    /// Where the code has the seconds of observation.
    pub(crate) interval: Option<Bits>,
    /// Where the subcode has what was observed.
    pub(crate) observed: Option<Bits>,
    /// Flavors by number.
    pub(crate) flavors: &'static [(u64, &'static str, &'static str)],
    /// What the stacks are worth.
    pub(crate) blame: Blame,
    /// Usual causes.
    pub(crate) causes: &'static [&'static str],
    /// What to do.
    pub(crate) next: &'static [&'static str],
}

/// The types.
pub(crate) static RESOURCE_TYPES: [ResourceType; 6] = [
    ResourceType {
        number: 1,
        name: "CPU",
        title: "Too much CPU time",
        unit: "% CPU",
        limit: (0, 7),
        interval: Some((7, 25)),
        observed: Some((0, 7)),
        flavors: &[
            (1, "CPU_MONITOR", "a limit that is only reported"),
            (2, "CPU_MONITOR_FATAL", "a limit that ends the process"),
        ],
        blame: Blame::Stack,
        causes: &["A loop that runs too often or does not end; work in the background that is not needed."],
        next: &[
            "Compare several such reports: the frames that they share are the busy code.",
            "Profile with Instruments (Time Profiler).",
        ],
    },
    ResourceType {
        number: 2,
        name: "WAKEUPS",
        title: "Too many wake-ups",
        unit: "wake-ups per second",
        limit: (0, 20),
        interval: Some((20, 12)),
        observed: Some((0, 20)),
        flavors: &[(1, "WAKEUPS_MONITOR", "a limit on how often threads wake up")],
        blame: Blame::Stack,
        causes: &[
            "Threads that hand tiny pieces of work back and forth.",
            "Timers with a short interval, or polling instead of waiting.",
        ],
        next: &["Look for several threads with nearly the same stack: they wake each other. Batch the work."],
    },
    ResourceType {
        number: 3,
        name: "MEMORY",
        title: "Too much memory",
        unit: "MB",
        limit: (0, 13),
        interval: None,
        observed: None,
        flavors: &[
            (1, "HIGH_WATERMARK", "the process's memory limit"),
            (2, "DIAG_MEMLIMIT", "a limit set for diagnosis"),
        ],
        blame: Blame::Untold,
        causes: &["Memory that grows: leaks, retain cycles, caches, images decoded at full size."],
        next: &[
            "Profile with Instruments (Allocations, Leaks, VM Tracker); the thread shown only made the last allocation.",
        ],
    },
    ResourceType {
        number: 4,
        name: "IO",
        title: "Too much written to disk",
        unit: "MB",
        limit: (0, 15),
        interval: Some((15, 17)),
        observed: Some((0, 15)),
        flavors: &[
            (1, "IO_PHYSICAL_WRITES", "writes that reached the storage"),
            (2, "IO_LOGICAL_WRITES", "writes that the process made"),
        ],
        blame: Blame::Stack,
        causes: &[
            "A database or log that is rewritten too often; large files written again for small changes.",
        ],
        next: &["Batch writes; look at the database's journal mode and at how often logs are flushed."],
    },
    ResourceType {
        number: 5,
        name: "THREADS",
        title: "Too many threads",
        unit: "threads",
        limit: (0, 15),
        interval: None,
        observed: None,
        flavors: &[(1, "THREADS_HIGH_WATERMARK", "the limit on threads")],
        blame: Blame::Stack,
        causes: &[
            "Blocking work on concurrent queues: each blocked worker makes the system start another thread.",
        ],
        next: &["Look for many threads with the same stack; bound the concurrency, do not block workers."],
    },
    ResourceType {
        number: 6,
        name: "PORTS",
        title: "Too many Mach ports",
        unit: "ports",
        limit: (0, 24),
        interval: None,
        observed: None,
        flavors: &[(1, "PORT_SPACE_FULL", "the table of port names is full")],
        blame: Blame::Untold,
        causes: &["Ports that are made and never released."],
        next: &["Look with `lsmp -p` at which ports grow in number."],
    },
];
