//! `java.lang.OutOfMemoryError: …` without a stack: each of the texts that virtual machines give it.
//!
//! Sources: OpenJDK `src/hotspot/share/memory/universe.cpp`, `prims/jvm.cpp`, `java/nio/Bits.java`; Android
//! `art/runtime/gc/heap.cc`, `art/runtime/thread.cc`.

use super::logged::Logged;

/// Whose words they are, as the model names what left them.
pub(super) const JAVA: &str = "java";

const NAME: &str = "java.lang.OutOfMemoryError: ";

/// Its texts; some have figures behind them.
const TEXTS: [&str; 15] = [
    "Java heap space",
    "GC overhead limit exceeded",
    "Metaspace",
    "Compressed class space",
    "PermGen space",
    "unable to create native thread",
    "unable to create new native thread",
    "Requested array size exceeds VM limit",
    "Required array length too large",
    "Direct buffer memory",
    "Cannot reserve ",
    "Map failed",
    "Failed to allocate a ",
    "pthread_create (",
    "request ",
];

/// The message of such a line.
pub(super) fn read<'t>(line: &Logged<'t>) -> Option<&'t str> {
    let (before, text) = line.text.split_once(NAME)?;
    let is_known_before = before.is_empty()
        || before.starts_with("Exception in thread \"") && before.ends_with("\" ")
        || matches!(before, "Caused by: " | "Terminating due to " | "Aborting due to " | "Exception: ");
    let rest = TEXTS.iter().find_map(|known| Some((text.strip_prefix(known)?, known.ends_with(['(', ' ']))));
    let is_whole = rest.is_some_and(|(rest, has_figures)| {
        if has_figures {
            rest.starts_with(|c: char| c.is_ascii_digit())
        } else {
            rest.is_empty() || rest.starts_with([':', ',', '('])
        }
    });
    let all = line.text.get(before.len()..)?;
    (is_known_before && is_whole).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_messages_only() {
        for line in [
            "java.lang.OutOfMemoryError: Java heap space",
            "Exception in thread \"main\" java.lang.OutOfMemoryError: GC overhead limit exceeded",
            "Terminating due to java.lang.OutOfMemoryError: Metaspace",
            "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory or process/resource limits reached",
            "java.lang.OutOfMemoryError: Cannot reserve 8192 bytes of direct buffer memory (allocated: 1, limit: 2)",
            "java.lang.OutOfMemoryError: Failed to allocate a 65548 byte allocation with 2288 free bytes and 2KB until OOM",
            "java.lang.OutOfMemoryError: pthread_create (1040KB stack) failed: Try again",
        ] {
            assert!(read(&Logged::read(line)).is_some(), "{line}");
        }
        for line in [
            "java.lang.OutOfMemoryError: Java heap space is what I see",
            "It ends with java.lang.OutOfMemoryError: Java heap space",
            "java.lang.OutOfMemoryError: why?",
        ] {
            assert!(read(&Logged::read(line)).is_none(), "{line}");
        }
    }
}
