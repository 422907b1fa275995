//! `java.lang.OutOfMemoryError`: which memory it was.
//!
//! Sources: Oracle, Java Platform Troubleshooting Guide, "Understand the OutOfMemoryError Exception"; OpenJDK
//! `src/hotspot/share`; Android `art/runtime/gc/heap.cc`, `art/runtime/thread.cc`.

use super::draft::Draft;
use super::facts::Facts;
use super::words::one_line;

/// A part of the text, the title, what it means, causes, what to do.
type Kind = (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const HEAP_DUMP: &str =
    "Take a heap dump (-XX:+HeapDumpOnOutOfMemoryError) and look at what retains most (Eclipse MAT).";

pub(in crate::explain) static KINDS: [Kind; 11] = [
    (
        "Java heap space",
        "Java's heap is full",
        "An object did not fit into the heap (-Xmx), and collecting garbage freed too little. The place that asked last need not be the one that uses most.",
        &[
            "Objects that are kept for ever: caches, static collections, listeners, sessions.",
            "A need that is larger than -Xmx, or one huge result read at once.",
        ],
        &[HEAP_DUMP, "Raise -Xmx (in containers -XX:MaxRAMPercentage) where the need is real."],
    ),
    (
        "GC overhead limit exceeded",
        "Java's heap is nearly full: collecting garbage took all the time",
        "More than 98 % of the time went into collecting garbage, and less than 2 % of the heap came free.",
        &["A heap that is too small for what is alive, or a leak."],
        &[HEAP_DUMP, "Raise -Xmx where the need is real."],
    ),
    (
        "Metaspace",
        "Java's memory for classes is full (Metaspace)",
        "The virtual machine has no room for the data of further classes (-XX:MaxMetaspaceSize).",
        &[
            "Class loaders that are never freed: applications deployed again and again, generated classes and proxies, scripts compiled each time.",
        ],
        &[
            "Count classes by loader (`jcmd PID VM.classloader_stats`); raise -XX:MaxMetaspaceSize where the need is real.",
        ],
    ),
    (
        "Compressed class space",
        "Java's room for class pointers is full (Compressed class space)",
        "The part of the memory for classes that compressed pointers can reach is full (-XX:CompressedClassSpaceSize).",
        &["Class loaders that are never freed, or very many classes."],
        &["Raise -XX:CompressedClassSpaceSize, or find the class loaders that stay."],
    ),
    (
        "PermGen space",
        "Java's memory for classes is full (PermGen, Java 7 and before)",
        "The permanent generation, which holds classes and interned strings, is full (-XX:MaxPermSize).",
        &["Applications deployed again and again, very many classes."],
        &["Raise -XX:MaxPermSize, or find the class loaders that stay."],
    ),
    (
        "native thread",
        "Java could not start a thread",
        "The system refused another thread: a limit on threads or processes, or no memory for its stack. The heap is not full.",
        &[
            "A limit on threads or processes: ulimit -u, the container's pids limit, kernel.threads-max.",
            "Threads that never end: pools that are made and not shut down.",
            "Too little memory outside of the heap for another stack (-Xss).",
        ],
        &[
            "Count threads (`jstack PID`, `ls /proc/PID/task | wc -l`) and compare with the limits (`cat /proc/PID/limits`, pids.max).",
        ],
    ),
    (
        "pthread_create",
        "Android could not start a thread",
        "The system refused another thread: no memory or address space for its stack, or too many threads. The heap is not full.",
        &["Threads that never end; on 32-bit devices an address space that is used up."],
        &["Count the threads by name in the tombstone or a trace."],
    ),
    (
        "array",
        "An array larger than Java can have",
        "An array was asked for that is larger than the virtual machine's limit, about 2^31 elements. The heap need not be full.",
        &["A size that was computed wrongly, or a collection or string builder that grows without end."],
        &["Look at the frame that asks for the array."],
    ),
    (
        "irect buffer memory",
        "Java's memory for direct buffers is full",
        "The limit of memory outside of the heap for direct buffers (-XX:MaxDirectMemorySize) is reached.",
        &[
            "Buffers that are not released (Netty's ByteBuf, NIO), or that garbage collection has not found yet.",
        ],
        &["Raise -XX:MaxDirectMemorySize; with Netty use -Dio.netty.leakDetection.level=paranoid."],
    ),
    (
        "Map failed",
        "A file could not be mapped",
        "The system refused to map a file into memory. The heap is not full.",
        &["Too many mappings (vm.max_map_count), or an address space or limit that is used up (ulimit -v)."],
        &["Raise vm.max_map_count; look at `wc -l /proc/PID/maps`."],
    ),
    (
        "Failed to allocate a ",
        "The app's Java heap is full (Android)",
        "An object did not fit into the heap that Android allows the app, and collecting garbage freed too little. The line has size, free bytes and limit.",
        &[
            "Bitmaps at full size, activities that are kept (leaked listeners, static fields), one huge buffer.",
        ],
        &["Look with Android Studio's memory profiler or LeakCanary at what is kept."],
    ),
];

/// The line alone.
pub(super) fn alone(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(said) = facts.said.iter().find(|said| said.place.ends_with("(java)")) else { return false };
    let text = one_line(&said.text);
    let kind = KINDS.iter().find(|(part, ..)| text.contains(part));
    let (title, what) = kind.map_or(
        ("A Java virtual machine had no memory", "The virtual machine threw OutOfMemoryError."),
        |(_, title, what, ..)| (*title, *what),
    );
    draft.lead(title, what);
    draft.evidence(said.cite());
    add(draft, kind);
    true
}

/// Tells of the error's text in a report with a stack.
pub(super) fn tell(text: &str, draft: &mut Draft) {
    let kind = KINDS.iter().find(|(part, ..)| text.contains(part));
    if let Some((_, title, what, ..)) = kind {
        draft.say(format!("{title}: {what}"));
    }
    add(draft, kind);
}

fn add(draft: &mut Draft, kind: Option<&Kind>) {
    if let Some((.., causes, next)) = kind {
        draft.causes(causes);
        draft.nexts(next);
    }
}
