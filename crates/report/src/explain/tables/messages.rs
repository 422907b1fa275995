//! What the texts mean that runtimes and libraries leave before they stop a process. Each is looked for as a part of
//! the text; the first that fits counts, so the more telling ones stand first.

/// A text and what it means.
pub(crate) struct Hint {
    /// The part of the text by which it is known.
    pub(crate) text: &'static str,
    /// What it means, as a sentence; empty where the text says it all.
    pub(crate) meaning: &'static str,
    /// Usual causes.
    pub(crate) causes: &'static [&'static str],
    /// What to do.
    pub(crate) next: &'static [&'static str],
}

const fn hint(
    text: &'static str,
    meaning: &'static str,
    causes: &'static [&'static str],
    next: &'static [&'static str],
) -> Hint {
    Hint { text, meaning, causes, next }
}

const MAIN_CHECKER: &str = "Run with the Main Thread Checker on; it stops at the first such call.";
const GUARD_MALLOC: &str = "Run with Address Sanitizer (or Guard Malloc, Malloc Scribble): it stops where the memory is damaged, not later.";
const THREAD_SANITIZER: &str = "Run with Thread Sanitizer: it names both threads.";

/// Reasons of Objective-C exceptions.
pub(crate) static REASONS: [Hint; 30] = [
    hint(
        "message sent to deallocated instance",
        "A released object was used; the zombie that took its place tells which.",
        &["An object is kept by an unowned or unsafe reference, or was released once too often."],
        &["Look at who releases objects of that class, with the Zombies instrument."],
    ),
    hint(
        "unrecognized selector sent to instance",
        "An object got a message that its class does not know.",
        &[
            "The object is not of the class that the code expects: decoded JSON (NSNull, a number for a string), a wrong cast, a wrong outlet.",
            "The object was released and its memory reused by another one.",
            "A category was not linked (-ObjC missing), or the method is newer than the system.",
        ],
        &[
            "Look at the class in the reason: is it the one that the code expects? If it is unrelated, run with Zombie Objects on.",
        ],
    ),
    hint(
        "unrecognized selector sent to class",
        "A class got a message that it does not know.",
        &[
            "A category or class extension was not linked (-ObjC missing), or the method is newer than the system.",
        ],
        &["Check the linker flags of static libraries and the method's availability."],
    ),
    hint(
        "beyond bounds",
        "An index lay outside of the container.",
        &[
            "The container changed between counting and reading, or on another thread.",
            "An off-by-one, or an empty container that was not expected.",
        ],
        &["Check the index against the count at the frame where it was thrown."],
    ),
    hint(
        "out of bounds",
        "An index or range lay outside of what exists.",
        &[
            "The data changed between counting and reading.",
            "An off-by-one, or emptiness that was not expected.",
        ],
        &["Check the index or range against the length at the frame where it was thrown."],
    ),
    hint(
        "attempt to insert nil",
        "nil was put into a container that takes none.",
        &["A value that is missing: absent in JSON, a failed conversion, an unset property."],
        &["Check the value before it is inserted; use NSNull or leave the key out."],
    ),
    hint(
        "object cannot be nil",
        "nil was put into a container that takes none.",
        &["A value that is missing."],
        &["Check the value before it is inserted."],
    ),
    hint(
        "was mutated while being enumerated",
        "A collection was changed while a loop ran over it.",
        &["The loop's body changes the collection.", "Another thread changes it."],
        &["Loop over a copy; keep one queue for all changes."],
    ),
    hint(
        "Invalid update",
        "A table or collection view was told of changes that do not fit its data.",
        &["The data source changed in between, or the inserts and deletes were counted wrong."],
        &["Compare the counts in the reason; use a diffable data source, or reload."],
    ),
    hint(
        "not key value coding-compliant",
        "A key was set or read that the object does not have.",
        &[
            "An outlet in a storyboard or XIB that no longer exists in the class.",
            "A key path with a typing error.",
        ],
        &["Look for the key of the reason in storyboards, XIBs and key paths."],
    ),
    hint(
        "Modifications to the layout engine must not be performed from a background thread",
        "The interface was changed off the main thread.",
        &["A completion handler that touches views on a background queue."],
        &[MAIN_CHECKER],
    ),
    hint(
        "must be used from main thread only",
        "The interface was used off the main thread.",
        &["A completion handler on a background queue."],
        &[MAIN_CHECKER],
    ),
    hint(
        "from a background thread",
        "The interface was used off the main thread.",
        &["A completion handler on a background queue."],
        &[MAIN_CHECKER],
    ),
    hint(
        "Only run on the main thread",
        "Code for the main thread ran elsewhere.",
        &["A completion handler on a background queue."],
        &[MAIN_CHECKER],
    ),
    hint(
        "NSWindow should only be instantiated on the main thread",
        "The interface was used off the main thread.",
        &["A completion handler on a background queue."],
        &[MAIN_CHECKER],
    ),
    hint(
        "was deallocated while key value observers",
        "An object was released while somebody still observed it.",
        &["An observer (KVO) that is not removed before the observed object goes."],
        &["Remove the observer in time, or use block-based observation that ends by itself."],
    ),
    hint(
        "not registered as an observer",
        "An observer was removed that was not there.",
        &["Removed twice, or for another key path or object."],
        &["Pair adding and removing; use block-based observation."],
    ),
    hint(
        "with identifier",
        "An identifier has no registered cell, segue or controller.",
        &["A typing error, or the cell or identifier was not registered."],
        &["Compare the identifier in the reason with storyboard and code."],
    ),
    hint(
        "Could not load NIB in bundle",
        "An interface file was not found.",
        &["The file's name is wrong, or it is not in the target or bundle."],
        &["Check the target membership of the file."],
    ),
    hint(
        "Could not find a storyboard",
        "A storyboard was not found.",
        &["Its name is wrong, or it is not in the target or bundle."],
        &["Check the target membership of the file."],
    ),
    hint(
        "already presenting",
        "A view controller was presented that is already on screen.",
        &["Two presentations at once, often by a double tap."],
        &["Guard the presentation against a second call."],
    ),
    hint(
        "Application tried to present modally",
        "A view controller was presented that is already on screen.",
        &["Two presentations at once, often by a double tap."],
        &["Guard the presentation against a second call."],
    ),
    hint(
        "The model used to open the store is incompatible",
        "The database on the device was written with another model.",
        &["The Core Data model changed without a migration."],
        &["Add a model version and a mapping, or lightweight migration."],
    ),
    hint(
        "Illegal attempt to establish a relationship",
        "Objects of different Core Data contexts were joined.",
        &["Managed objects were passed between threads or contexts."],
        &["Pass object ids; fetch the object in the other context."],
    ),
    hint(
        "CoreData could not fulfill a fault",
        "A Core Data object was used after it had been deleted.",
        &["The object was deleted in another context while this one kept it."],
        &["Check isDeleted and managedObjectContext; merge changes between contexts."],
    ),
    hint(
        "__Multithreading_Violation_AllThatIsLeftToUsIsHonor__",
        "A managed object context was used on the wrong queue.",
        &["Core Data objects crossed threads."],
        &["Wrap the access in perform; run with -com.apple.CoreData.ConcurrencyDebug 1."],
    ),
    hint(
        "Invalid type in JSON write",
        "An object was given to the JSON writer that JSON has no form for.",
        &["A date, a URL or another object in the dictionary."],
        &["Convert it first; ask isValidJSONObject."],
    ),
    hint(
        "contains NaN",
        "A coordinate or size is not a number.",
        &["A division by zero in the layout."],
        &["Look for 0/0 in the code that computes the frame or position."],
    ),
    hint(
        "Invalid parameter not satisfying",
        "A system method got an argument that it does not take.",
        &["nil or an empty value for an argument that must be set."],
        &["Look up the named parameter at the frame where it was thrown."],
    ),
    hint(
        "nil argument",
        "A method got nil for an argument that must be set.",
        &["A value that is missing."],
        &["Check the value before the call."],
    ),
];

/// Names of Objective-C exceptions.
pub(crate) static EXCEPTION_NAMES: [(&str, &str); 20] = [
    (
        "NSInvalidArgumentException",
        "a method was given an argument that it does not accept, or an object a message that it does not know",
    ),
    ("NSRangeException", "an index or range lay outside of what exists"),
    (
        "NSInternalInconsistencyException",
        "an assertion of a framework or of the app failed: something was used in a way that it does not allow",
    ),
    ("NSGenericException", "a library or the app raised a general exception"),
    ("NSMallocException", "memory could not be allocated"),
    ("NSUnknownKeyException", "a key was used that the object does not have"),
    ("NSUndefinedKeyException", "a key was used that the object does not have"),
    ("NSObjectInaccessibleException", "a Core Data object could not be loaded any more"),
    ("NSObjectNotAvailableException", "an object is not available"),
    ("NSDestinationInvalidException", "the receiver of a message is not valid any more"),
    ("NSInvalidUnarchiveOperationException", "archived data could not be read back"),
    ("NSInvalidArchiveOperationException", "an object could not be archived"),
    ("NSFileHandleOperationException", "a file handle failed: closed, or the file is gone"),
    ("NSDecimalNumberOverflowException", "a decimal number became too large"),
    ("NSDecimalNumberDivideByZeroException", "a decimal number was divided by zero"),
    ("NSPortTimeoutException", "another process did not answer in time"),
    ("NSParseErrorException", "a text could not be parsed"),
    (
        "UIViewControllerHierarchyInconsistency",
        "a view was put under a controller that it does not belong to",
    ),
    ("CALayerInvalidGeometry", "a layer got a position or size that is no number"),
    ("_NSCoreDataOptimisticLockingException", "Core Data objects changed in two places"),
];

/// Types of C++ exceptions.
pub(crate) static CPP_TYPES: [Hint; 14] = [
    hint(
        "std::bad_alloc",
        "Memory could not be allocated.",
        &["A size that is wrong (negative, or not checked), or memory that ran out."],
        &["Look at the size that is asked for at the frame where it was thrown."],
    ),
    hint(
        "std::out_of_range",
        "An index or key does not exist in the container.",
        &["at() with an index or key that is not there, or a number too large for its type."],
        &["Check the index at the frame where it was thrown."],
    ),
    hint(
        "std::length_error",
        "A container was asked to become larger than possible.",
        &["A negative or garbage size."],
        &["Look at the size at the frame where it was thrown."],
    ),
    hint(
        "std::invalid_argument",
        "An argument is not valid, often a text that is no number.",
        &["std::stoi and the like on unchecked text."],
        &["Check the text before converting it."],
    ),
    hint(
        "std::bad_function_call",
        "An empty std::function was called.",
        &["A callback that was never set, or was moved away."],
        &["Check the function before the call."],
    ),
    hint(
        "std::bad_optional_access",
        "The value of an empty std::optional was read.",
        &["A value that is missing."],
        &["Check has_value() first."],
    ),
    hint(
        "std::bad_variant_access",
        "A std::variant was read as a type that it does not hold.",
        &["An alternative that was not expected."],
        &["Use std::visit or get_if."],
    ),
    hint(
        "std::bad_weak_ptr",
        "shared_from_this was called on an object that no shared_ptr owns.",
        &["A call in the constructor or destructor."],
        &["Make sure that a shared_ptr owns the object first."],
    ),
    hint(
        "std::bad_cast",
        "A dynamic_cast to a reference failed.",
        &["The object is of another type."],
        &["Use a pointer cast and check it."],
    ),
    hint(
        "std::__1::system_error",
        "The operating system refused something.",
        &["A thread that joins itself or is joined twice; a lock misused; a resource that ran out."],
        &["Read the text for the error."],
    ),
    hint(
        "std::system_error",
        "The operating system refused something.",
        &["A thread that joins itself or is joined twice; a lock misused; a resource that ran out."],
        &["Read the text for the error."],
    ),
    hint(
        "std::logic_error",
        "A library's precondition was not met.",
        &["Often a std::string made from a null pointer."],
        &["Look at the frame where it was thrown."],
    ),
    hint(
        "std::runtime_error",
        "A library or the app reported an error that nobody handled.",
        &["An error that the code does not catch."],
        &["Catch it where it can be handled, or keep it from leaving noexcept functions and callbacks."],
    ),
    hint(
        "NSException",
        "An Objective-C exception came through C++ code.",
        &[],
        &["Look for the exception's name and reason in the device's log."],
    ),
];

/// Messages of Swift's runtime and library. A message is known by its text behind `Fatal error: ` or in the name of
/// an inlined `Swift runtime failure: …` function.
pub(crate) static SWIFT: [Hint; 32] = [
    hint(
        "while implicitly unwrapping an Optional value",
        "An implicitly unwrapped optional (`T!`) was nil.",
        &[
            "An outlet that is not connected, or a property that is used before it is set.",
            "An Objective-C method that returns nil although its header does not say so.",
        ],
        &["Find the `!`-typed value in the named line and why it is not set yet."],
    ),
    hint(
        "while unwrapping an Optional value",
        "An optional was unwrapped with `!` and was nil.",
        &["A value that is missing: absent data, a failed conversion, an object not loaded yet."],
        &[
            "Replace the `!` in the named line by `if let`, `guard let` or a default; find out why the value is missing.",
        ],
    ),
    hint(
        "orce unwrapped a nil value",
        "An optional was unwrapped with `!` and was nil.",
        &["A value that is missing."],
        &["Replace the `!` in the named line by `if let` or `guard let`."],
    ),
    hint(
        "ndex out of range",
        "An index lay outside of an array or another collection.",
        &["The collection is shorter than expected, or changed on another thread.", "An off-by-one."],
        &["Check the index against the collection's indices in the named line."],
    ),
    hint(
        "ndex is out of bounds",
        "An index lay outside of a collection.",
        &["An index of another or an older collection."],
        &["Check the index against the collection's indices in the named line."],
    ),
    hint(
        "ndex is out of range",
        "An index lay outside of an array or another collection.",
        &["The collection is shorter than expected, or changed on another thread."],
        &["Check the index in the named line."],
    ),
    hint(
        "arithmetic overflow",
        "A calculation left the range of its integer type.",
        &["A subtraction below zero in an unsigned type, or a sum or product too large."],
        &["Use a larger type, &+ and its kin, or the …ReportingOverflow methods."],
    ),
    hint(
        "ivision by zero",
        "An integer was divided by zero.",
        &["A count or size that is zero."],
        &["Check the divisor in the named line."],
    ),
    hint(
        "Not enough bits to represent",
        "A number does not fit the integer type that it was converted to.",
        &["A negative or large number converted to a smaller or unsigned type."],
        &["Use init(exactly:) or init(clamping:)."],
    ),
    hint(
        "egative value is not representable",
        "A negative number was converted to an unsigned type.",
        &["A difference that became negative."],
        &["Check the sign first, or use a signed type."],
    ),
    hint(
        "value cannot be converted to",
        "A floating-point number does not fit the integer type: too large, infinite or not a number.",
        &["A division by zero before the conversion."],
        &["Check isFinite and the range before converting."],
    ),
    hint(
        "Could not cast value of type",
        "A forced cast (`as!`) failed: the value is of another type.",
        &["Data of another type than expected; a class in another module or target."],
        &["Use `as?` and handle nil."],
    ),
    hint(
        "type cast failed",
        "A forced cast (`as!`) failed: the value is of another type.",
        &["Data of another type than expected."],
        &["Use `as?` and handle nil."],
    ),
    hint(
        "unexpectedly raised an error",
        "A `try!` met an error.",
        &["An error that was thought impossible: a missing file, invalid data."],
        &["Use `do`/`catch` or `try?`; the message names the error."],
    ),
    hint(
        "Attempted to read an unowned reference",
        "An `unowned` reference was used after its object had gone.",
        &["A closure or object that lives longer than what it refers to."],
        &["Make the reference `weak`, or end the closure with its owner."],
    ),
    hint(
        "requires exclusive access",
        "The same memory was changed in two places at once.",
        &[
            "An inout argument or mutating call that reaches the same variable again.",
            "Two threads that change the same variable.",
        ],
        &[THREAD_SANITIZER],
    ),
    hint(
        "access conflict",
        "The same memory was changed in two places at once.",
        &["An inout argument or mutating call that reaches the same variable again."],
        &[THREAD_SANITIZER],
    ),
    hint(
        "Incorrect actor executor assumption",
        "Code of an actor ran off its executor.",
        &[
            "A closure isolated to the main actor was called on another thread, usually by an API that is not annotated.",
        ],
        &["Hop with `Task { @MainActor in … }` or annotate the closure @Sendable."],
    ),
    hint(
        "tried to resume its continuation more than once",
        "A continuation was resumed twice.",
        &["A callback that is called more than once."],
        &["Guard the continuation so that it is resumed exactly once."],
    ),
    hint(
        "leaked its continuation",
        "A continuation was never resumed.",
        &["A way through the code that does not call back."],
        &["Resume on every way."],
    ),
    hint(
        "uplicate keys",
        "A dictionary was made from keys of which some are equal.",
        &["Data with equal keys, or a literal that names a key twice."],
        &["Use Dictionary(_:uniquingKeysWith:)."],
    ),
    hint(
        "lowerBound",
        "A range's end lies before its start.",
        &["A count that became negative, or an empty collection."],
        &["Check both ends before making the range."],
    ),
    hint(
        "upperBound",
        "A range's end lies before its start.",
        &["A count that became negative, or an empty collection."],
        &["Check both ends before making the range."],
    ),
    hint(
        "remove last element from an empty",
        "An element was removed from an empty collection.",
        &["An empty collection that was not expected."],
        &["Use popLast() or check isEmpty."],
    ),
    hint(
        "remove first element from an empty",
        "An element was removed from an empty collection.",
        &["An empty collection that was not expected."],
        &["Check isEmpty first."],
    ),
    hint(
        "has not been implemented",
        "Code ran that was left empty on purpose.",
        &[
            "An initializer, usually init(coder:), that the class does not implement.",
            "A branch that was thought unreachable.",
        ],
        &["Implement it, or find out how the code got there."],
    ),
    hint(
        "Use of unimplemented initializer",
        "An initializer was called that the Swift class does not have.",
        &["A subclass that does not inherit the initializer that Objective-C code calls."],
        &["Override the initializer that the message names."],
    ),
    hint(
        "retained too many times",
        "A reference count overflowed: the object is damaged or retained without end.",
        &["Memory damage, or a loop that retains."],
        &[GUARD_MALLOC],
    ),
    hint(
        "deallocated with non-zero retain count",
        "An object was kept while it was being released.",
        &["`self` escapes from deinit: a closure, a notification or a Task made there."],
        &["Look in the deinit of the class that the message names."],
    ),
    hint(
        "Precondition failed",
        "A precondition of the code failed.",
        &["A caller does not keep to what the function requires."],
        &["Read the condition and message in the named line."],
    ),
    hint(
        "precondition failure",
        "A precondition failed.",
        &["A caller does not keep to what the function requires."],
        &["Read the condition in the named line."],
    ),
    hint(
        "Assertion failed",
        "An assertion of the code failed.",
        &["Something that was thought impossible happened."],
        &["Read the condition and message in the named line; release builds do not check it."],
    ),
];

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
pub(crate) static CLIENT_BUGS: [Hint; 17] = [
    hint(
        "dispatch_sync called on queue already owned by current thread",
        "dispatch_sync was called on the queue that the thread is already running on: it would wait for itself forever.",
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
