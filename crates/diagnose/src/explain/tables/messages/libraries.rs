//! Messages of malloc, libdispatch and other system libraries.

use super::{GUARD_MALLOC, Hint, THREAD_SANITIZER, hint};

/// Messages of malloc.
pub(crate) static MALLOC: [Hint; 14] = [
    hint(
        "pointer being freed was not allocated",
        "free() got an address that malloc never gave out, or that was freed before.",
        &[
            "Memory is freed twice.",
            "A pointer into the middle of a block, to the stack, or of another allocator is freed.",
            "The pointer itself was overwritten.",
        ],
        &[GUARD_MALLOC],
    ),
    hint("double free", "Memory was freed twice.", &["Two owners free the same block."], &[GUARD_MALLOC]),
    hint(
        "incorrect checksum for freed object",
        "A freed block was written to after it had been freed.",
        &["A pointer that outlives its memory.", "A write beyond the end of the block before it."],
        &[GUARD_MALLOC],
    ),
    hint(
        "modified after being freed",
        "A freed block was written to.",
        &["A pointer that outlives its memory."],
        &[GUARD_MALLOC],
    ),
    hint(
        "free list is damaged",
        "malloc's list of free blocks was overwritten.",
        &["A write to freed memory, or beyond the end of a block."],
        &[GUARD_MALLOC],
    ),
    hint(
        "memory corruption of free block",
        "A free block was overwritten.",
        &[
            "A write to freed memory, or beyond the end of a block. The code that notices is rarely the code that did it.",
        ],
        &[GUARD_MALLOC],
    ),
    hint(
        "Heap corruption detected",
        "malloc found its bookkeeping overwritten.",
        &["A write to freed memory, or beyond the end of a block."],
        &[GUARD_MALLOC],
    ),
    hint(
        "Incorrect guard value",
        "malloc found its bookkeeping overwritten.",
        &["A write beyond the end of a block."],
        &[GUARD_MALLOC],
    ),
    hint(
        "Corruption of",
        "malloc found its bookkeeping overwritten.",
        &["A write to freed memory, or beyond the end of a block."],
        &[GUARD_MALLOC],
    ),
    hint(
        "on-aligned pointer being freed",
        "free() got an address that malloc never gives out.",
        &["A pointer into the middle of a block is freed, or the pointer was overwritten."],
        &[GUARD_MALLOC],
    ),
    hint(
        "can't allocate region",
        "malloc could not get memory from the kernel.",
        &["The process used up its memory or address space.", "A size that is wrong."],
        &[
            "Look at the size in the message and in the calling frame; profile with Instruments (Allocations).",
        ],
    ),
    hint(
        "mach_vm_map(size=",
        "malloc could not get memory from the kernel.",
        &["The process used up its memory or address space.", "A size that is wrong."],
        &["Look at the size in the message and in the calling frame."],
    ),
    hint(
        "*** error for object",
        "malloc refused an operation on a block.",
        &["A block is freed twice, or its surroundings were overwritten."],
        &[GUARD_MALLOC],
    ),
    hint(
        "BUG IN CLIENT OF LIBMALLOC",
        "malloc was used wrongly, or its memory was overwritten.",
        &["A write to freed memory, a double free, or a pointer that is not malloc's."],
        &[GUARD_MALLOC],
    ),
];

/// Messages of system libraries that blame their caller.
pub(crate) static CLIENT_BUGS: [Hint; 18] = [
    // AppKit, where an NSResponder is released that was released as often as it was retained.
    hint(
        "Over-release of NSResponder",
        "A view, window or controller of AppKit was released once more often than it was retained.",
        &[
            "A manual release of an object that somebody else owns, a `CFRelease` or `__bridge_transfer` too many, a window that releases itself when it is closed (`isReleasedWhenClosed`).",
        ],
        &["Run with Zombie Objects on: it names the object's class when it is used again."],
    ),
    hint(
        "called on queue already owned by current thread",
        "dispatch_sync, or one of its like, was called on the queue that the thread is already running on: it would wait for itself forever.",
        &[
            "`DispatchQueue.main.sync` on the main thread, or sync on a serial queue from a block of the same queue.",
        ],
        &["Use async, or call the work directly when already on the queue."],
    ),
    hint(
        "was expected to execute on queue",
        "Code ran on another queue than the one that it requires.",
        &[
            "A completion handler on a background queue that touches main-queue code.",
            "Swift 6: a closure isolated to the main actor called off the main thread by an API that is not annotated.",
        ],
        &["Hop to the named queue before the call; annotate the closure @Sendable if it need not run there."],
    ),
    hint(
        "was not expected to execute on queue",
        "Code ran on a queue that it must not run on.",
        &["A blocking call on the main queue."],
        &["Move the call off the named queue."],
    ),
    hint(
        "Unbalanced call to dispatch_group_leave",
        "A dispatch group was left more often than entered.",
        &["A completion handler that runs twice, or a leave without its enter."],
        &["Pair enter and leave on every way through the code."],
    ),
    hint(
        "Semaphore object deallocated while in use",
        "A semaphore was released below its starting value, that is while somebody waited.",
        &["A semaphore made with a value above what it has when released."],
        &["Make it with 0 and signal to the wanted value; keep it until nobody waits."],
    ),
    hint(
        "Semaphore/group object deallocated while in use",
        "A semaphore or group was released while somebody used it.",
        &["It is released too early."],
        &["Keep it until nobody waits."],
    ),
    hint(
        "Release of a suspended object",
        "A suspended queue or source was released.",
        &["A timer source that is released without being resumed."],
        &["Resume the source, then cancel it, then release it."],
    ),
    hint(
        "Release of an inactive object",
        "A queue or source that was never activated was released.",
        &["A source that is made and thrown away."],
        &["Activate it before releasing it."],
    ),
    hint(
        "Over-resume of an object",
        "A queue or source was resumed more often than suspended.",
        &["resume called twice."],
        &["Pair suspend and resume."],
    ),
    hint(
        "Over-release of an object",
        "A dispatch or XPC object was released once too often.",
        &["A release too many, or memory damage."],
        &[GUARD_MALLOC],
    ),
    hint(
        "Resurrection of an object",
        "An object was retained while it was being released.",
        &["A race between releasing and using it."],
        &[THREAD_SANITIZER],
    ),
    hint(
        "trying to lock recursively",
        "A thread locked an os_unfair_lock (or a lock made of it) that it already holds.",
        &[
            "A function that locks calls another that locks the same.",
            "`lazy`/once initialisation that reaches itself again.",
        ],
        &["Look in the stack for the two functions that take the lock."],
    ),
    hint(
        "Trying to recursively lock an os_unfair_lock",
        "A thread locked an os_unfair_lock that it already holds.",
        &["A function that locks calls another that locks the same."],
        &["Look in the stack for the two functions that take the lock."],
    ),
    hint(
        "trying to unlock",
        "A lock was released by a thread that does not hold it.",
        &["Lock and unlock on different threads, or unlocked twice."],
        &["Pair lock and unlock in one function."],
    ),
    hint(
        "nlock of an os_unfair_lock not owned by current thread",
        "A lock was released by a thread that does not hold it.",
        &["Lock and unlock on different threads, or unlocked twice."],
        &["Pair lock and unlock in one function."],
    ),
    hint(
        "os_unfair_lock is corrupt",
        "The memory of a lock was overwritten, or the lock was used in a forked child or after it had been freed.",
        &[
            "An os_unfair_lock stored in a Swift struct or property and passed with `&`: Swift may move it.",
            "Memory damage, or a lock whose owner was freed.",
        ],
        &["In Swift use OSAllocatedUnfairLock or allocate the lock; run with Address Sanitizer."],
    ),
    hint(
        "Do not close random Unix descriptors",
        "A file descriptor that libdispatch watches was closed behind its back.",
        &["A descriptor closed twice, or closed while a source watches it."],
        &["Cancel the source first and close in its cancel handler."],
    ),
];
