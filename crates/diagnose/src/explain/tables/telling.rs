//! Functions whose presence on top of a stack tells what happened.

use super::exceptions::Class;

/// Such functions, and what they tell.
pub(crate) struct Telling {
    /// The names, any of which counts.
    pub(crate) functions: &'static [&'static str],
    /// The exceptions with which they tell it; empty for any.
    pub(crate) classes: &'static [Class],
    /// How many frames from the innermost on are looked at.
    pub(crate) depth: usize,
    /// A title.
    pub(crate) title: &'static str,
    /// What happened, as a sentence.
    pub(crate) meaning: &'static str,
    /// Usual causes.
    pub(crate) causes: &'static [&'static str],
    /// What to do.
    pub(crate) next: &'static [&'static str],
}

const TRAPS: &[Class] = &[Class::Breakpoint, Class::BadInstruction, Class::Abort];
/// The same, and reporters that do not tell what was raised: the functions do nothing but end the process.
const ENDS: &[Class] = &[Class::Breakpoint, Class::BadInstruction, Class::Abort, Class::Unknown];
/// Traps, and reporters that do not tell what was raised.
const TRAPS_OR_UNTOLD: &[Class] = &[Class::Breakpoint, Class::BadInstruction, Class::Unknown];
const SANITIZER: &str = "Run with Address Sanitizer: it stops where the memory is damaged, not later.";

const HEAP_CAUSES: &[&str] = &[
    "Memory freed twice, or not allocated by malloc.",
    "A write to freed memory, or beyond the end of a block.",
];
const HEAP_NEXT: &[&str] = &[
    "The line before the end on the standard error says which; run with Address Sanitizer or valgrind, which stop where the memory is damaged.",
];

/// The title where the system ended an app for a usage description that is missing.
pub(crate) const PRIVACY: &str = "Private data accessed without a usage description";

/// The table; the first that fits counts.
pub(crate) static TELLING: [Telling; 40] = [
    // Core Foundation's own breakpoint behind the line `*** -[X y]: message sent to deallocated instance`.
    Telling {
        functions: &["___forwarding___"],
        classes: &[Class::Breakpoint],
        depth: 1,
        title: "Message to a zombie: the object was released",
        meaning: "A message was sent to an object that was already freed. Zombie objects were switched on; Core Foundation says so in the log and stops.",
        causes: &[
            "The object was released while it was still referred to: an unowned, unsafe_unretained or assign reference, a delegate, a release too many.",
        ],
        next: &["Read the log: `message sent to deallocated instance` names the class and the message."],
    },
    Telling {
        functions: &[
            "gpus_ReturnNotPermittedKillClient",
            "gpus_ReturnNotPermittedKillClient.cold.1",
            // With the underscore that symbol tables have, as some reporters print it.
            "_gpus_ReturnNotPermittedKillClient",
        ],
        classes: &[],
        depth: 3,
        title: "Graphics work in the background",
        meaning: "The app drew with OpenGL ES while it was in the background, which is not permitted; the driver ended it.",
        causes: &["A render loop, timer or queued frame that runs on after the app left the foreground."],
        next: &[
            "Stop rendering in applicationWillResignActive and call glFinish before going to the background.",
        ],
    },
    // Exported by libGPUSupportMercury.dylib and its kin; seen on top of stacks with EXC_BAD_ACCESS and SIGABRT.
    Telling {
        functions: &[
            "gpus_ReturnGuiltyForHardwareRestart",
            "gpus_ReturnInnocentForHardwareRestart",
            "gpus_ReturnUnknownForHardwareRestart",
            "gpusKillClient",
            "gpusKillClientExt",
            "gpus_ReturnObjectErrorKillClient",
            "gpusGenerateCrashLog",
            "gpusGenerateCrashLog.cold.1",
        ],
        classes: &[],
        depth: 4,
        title: "Killed by the graphics driver after a fault of the GPU",
        meaning: "The graphics processor hung or met an error in work that this process had submitted (or another one's, which cost it its state); the driver ended the process.",
        causes: &[
            "A shader that loops too long, or reads or writes beyond its buffers.",
            "A texture or buffer that is freed while the GPU still uses it.",
        ],
        next: &[
            "Run with Metal's API and shader validation on; look for the driver's message in the system's log.",
        ],
    },
    Telling {
        functions: &["MTLReportFailure", "MTLReportFailure.cold.1", "MTLReportFailure.cold.2"],
        classes: ENDS,
        depth: 8,
        title: "Metal's validation stopped the process",
        meaning: "A call of Metal has arguments or a state that the API does not allow.",
        causes: &["A pipeline, texture or encoder that does not fit what the call needs."],
        next: &[
            "Read the application-specific information, which has the failed check; run with Metal's API validation on.",
        ],
    },
    Telling {
        functions: &["malloc_printerr"],
        classes: &[],
        depth: 10,
        title: "Heap error found by malloc",
        meaning: "glibc's malloc ended the process: its bookkeeping is damaged, or it was asked to free what it never gave out.",
        causes: HEAP_CAUSES,
        next: HEAP_NEXT,
    },
    // The same where systemd found no names: free() calls abort() for no other reason.
    Telling {
        functions: &["__libc_free", "__GI___libc_free", "_int_free", "cfree"],
        classes: &[Class::Abort],
        depth: 10,
        title: "Heap error found by malloc",
        meaning: "free() ended the process: malloc's bookkeeping is damaged, or it was asked to free what it never gave out.",
        causes: HEAP_CAUSES,
        next: HEAP_NEXT,
    },
    // GCC's `libgcc/unwind-dw2.c`, `uw_init_context_1`: `gcc_assert (code == _URC_NO_REASON)`, which calls abort().
    Telling {
        functions: &["uw_init_context_1", "uw_init_context_1.cold", "uw_init_context_1.cold.1"],
        classes: &[Class::Abort, Class::Unknown],
        depth: 8,
        title: "GCC's unwinder ended the process",
        meaning: "An exception was thrown, or a thread ended, and the unwinder of GCC's library (libgcc_s) found no unwind table for its own caller; it ends the process then.",
        causes: &[
            "Two unwinders in one process: libraries built by GCC and by Clang, libgcc_s beside the system's libunwind.",
            "Code without unwind tables that calls into the library, or tables that are damaged.",
        ],
        next: &[
            "Look at which libraries bring libgcc_s (`otool -L`, `ldd`), and build all of them by one compiler.",
        ],
    },
    // Foundation names its own function so.
    Telling {
        functions: &[
            "KVO_IS_RETAINING_ALL_OBSERVERS_OF_THIS_OBJECT_IF_IT_CRASHES_AN_OBSERVER_WAS_OVERRELEASED_OR_SMASHED",
            "NSKVODeallocate",
        ],
        classes: &[Class::BadAccess, Class::Unknown],
        depth: 8,
        title: "Key-value observing met an observer that is gone",
        meaning: "The value of an observed key changed, and Foundation retained the object's observers to tell them: one of them was released or overwritten.",
        causes: &[
            "An observer that was released without being removed (`removeObserver:forKeyPath:`).",
            "An object that is observed while it is being deallocated.",
        ],
        next: &[
            "Run with Zombie Objects on: it names the observer's class. Use observations that end by themselves (NSKeyValueObservation, Combine).",
        ],
    },
    // CoreGraphics names its own function so.
    Telling {
        functions: &["ERROR_CGDataProvider_BufferIsNotBigEnough"],
        classes: &[Class::BadAccess],
        depth: 3,
        title: "The buffer of an image is smaller than the image",
        meaning: "CoreGraphics read the bytes of an image up to the end that its size states, and its buffer ends before or was freed.",
        causes: &[
            "Width, height or bytes per row that do not fit the buffer given to CGDataProvider or CGBitmapContext.",
            "A buffer that was freed or resized while the image still used it.",
        ],
        next: &[
            "Compare the buffer's size with height times bytes per row; keep it until the image is released.",
        ],
    },
    // musl says nothing: its `assert` of `malloc` (src/malloc/mallocng/glue.h) and `__stack_chk_fail` end by `a_crash`, an instruction
    // for the kernel alone (x86) or a write to null.
    Telling {
        functions: &["a_crash"],
        classes: &[],
        depth: 3,
        title: "musl's C library found damaged memory",
        meaning: "musl ends a program by a fault of its own where its bookkeeping of the heap is damaged, where it was asked to free what it never gave out, or where a function wrote beyond the end of a buffer on its stack.",
        causes: HEAP_CAUSES,
        next: &["Look at who called the C library: what it frees there, and who else holds it.", SANITIZER],
    },
    // glibc's `__libc_message` prints why and calls abort(); who called it stands behind it, if the text has that.
    Telling {
        functions: &["__libc_message", "__GI___libc_message", "__libc_message_impl"],
        classes: &[],
        depth: 10,
        title: "glibc ended the process with a message",
        meaning: "glibc found damage and ended the process with a message: of the heap nearly always, else of a checked copy or the stack protector. Which message it was is not in the text.",
        causes: &[
            "Memory freed twice, a write to freed memory, or beyond the end of a block.",
            "A buffer that was overrun, found by a checked copy or the stack protector.",
        ],
        next: &[
            "Read the program's standard error, or the caller of __libc_message: malloc_printerr, __fortify_fail.",
            SANITIZER,
        ],
    },
    Telling {
        functions: &["__stack_chk_fail"],
        classes: &[],
        depth: 6,
        title: "Stack buffer overflow",
        meaning: "A function wrote beyond the end of a buffer on its stack; the guard value behind it was found changed when the function returned.",
        causes: &[
            "A fixed-size array or C string that was given more than it holds (strcpy, sprintf, memcpy with a wrong size).",
        ],
        next: &["Look at the local arrays of the function that called __stack_chk_fail.", SANITIZER],
    },
    Telling {
        functions: &["__chk_fail_overflow", "__chk_fail_overlap", "__chk_fail"],
        classes: &[],
        depth: 8,
        title: "Buffer overflow prevented by a checked copy",
        meaning: "A copy into a buffer of known size would have gone beyond its end, so the C library stopped the process.",
        causes: &["A length that is not checked against the buffer's size (strcpy, memcpy, snprintf)."],
        next: &["Look at the lengths at the frame that calls the copy."],
    },
    Telling {
        functions: &["__cxa_pure_virtual", "__cxa_deleted_virtual"],
        classes: &[],
        depth: 8,
        title: "Call of a pure virtual function",
        meaning: "A C++ method without a body was called: the object is under construction, under destruction, or gone.",
        causes: &[
            "A virtual call from a constructor or destructor, or by another thread while the object is being destroyed.",
            "A call through a dangling pointer to a destroyed object.",
        ],
        next: &["See who may use the object while or after it is destroyed.", SANITIZER],
    },
    Telling {
        functions: &["__DISPATCH_WAIT_FOR_QUEUE__"],
        classes: TRAPS,
        depth: 3,
        title: "Deadlock: dispatch_sync to the queue it already runs on",
        meaning: "dispatch_sync was called on a queue that the thread is already running on; libdispatch stopped the process instead of letting it wait for itself forever.",
        causes: &[
            "`DispatchQueue.main.sync` on the main thread, or sync on a serial queue from a block of the same queue.",
        ],
        next: &["Use async, or call the work directly when already on the queue."],
    },
    Telling {
        // Innermost they have trapped (libdispatch-703 of iOS 10, -913 of iOS 11); a thread that waits is further in.
        functions: &[
            "_dispatch_barrier_sync_f_slow",
            "_dispatch_sync_wait",
            "__DISPATCH_WAIT_FOR_QUEUE__",
            "DISPATCH_WAIT_FOR_QUEUE",
        ],
        classes: TRAPS_OR_UNTOLD,
        depth: 1,
        title: "Deadlock: dispatch_sync to the queue it already runs on",
        meaning: "dispatch_sync was called on a queue that the thread is already running on; libdispatch stopped the process instead of letting it wait for itself forever.",
        causes: &[
            "`DispatchQueue.main.sync` on the main thread, or sync on a serial queue from a block of the same queue.",
        ],
        next: &["Use async, or call the work directly when already on the queue."],
    },
    Telling {
        functions: &["_dispatch_assert_queue_fail", "dispatch_assert_queue", "dispatch_assert_queue$V2"],
        classes: ENDS,
        depth: 3,
        title: "Code ran on the wrong queue",
        meaning: "Code that requires a certain dispatch queue ran on another one.",
        causes: &[
            "Swift 6: a closure isolated to the main actor was called off the main thread, usually by an API that is not annotated.",
            "A completion handler on a background queue that calls code for the main queue.",
        ],
        next: &[
            "Hop to the required queue before the call; annotate the closure @Sendable if it need not run there.",
        ],
    },
    Telling {
        functions: &[
            "swift_task_isCurrentExecutor",
            "swift_task_checkIsolated",
            "swift_task_reportUnexpectedExecutor",
            "_checkExpectedExecutor",
        ],
        classes: ENDS,
        depth: 6,
        title: "Code of an actor ran off its executor",
        meaning: "Code that belongs to an actor (often the main actor) ran on another thread.",
        causes: &["A closure isolated to the main actor was called by an API that is not annotated."],
        next: &["Hop with `Task { @MainActor in … }`, or annotate the closure @Sendable."],
    },
    Telling {
        functions: &["_os_unfair_lock_recursive_abort"],
        classes: ENDS,
        depth: 3,
        title: "Deadlock: a lock taken twice by one thread",
        meaning: "A thread took an os_unfair_lock (or a lock made of one) that it already holds.",
        causes: &["A function that locks calls another that takes the same lock."],
        next: &["Look in the stack for the two functions that take the lock."],
    },
    Telling {
        functions: &["_os_unfair_lock_unowned_abort"],
        classes: ENDS,
        depth: 3,
        title: "A lock released by a thread that does not hold it",
        meaning: "An os_unfair_lock was unlocked by a thread that does not hold it.",
        causes: &["Lock and unlock on different threads, or unlocked twice."],
        next: &["Pair lock and unlock in one function."],
    },
    Telling {
        functions: &["_os_unfair_lock_corruption_abort"],
        classes: ENDS,
        depth: 3,
        title: "The memory of a lock is damaged",
        meaning: "An os_unfair_lock holds a value that no lock can have.",
        causes: &[
            "A lock in a Swift struct or property passed with `&`, which Swift may move.",
            "Memory damage, or a lock whose owner was freed.",
        ],
        next: &["In Swift use OSAllocatedUnfairLock or allocate the lock.", SANITIZER],
    },
    Telling {
        functions: &["_os_once_gate_recursive_abort", "_dispatch_once_wait.cold.1"],
        classes: ENDS,
        depth: 3,
        title: "Deadlock: one-time initialisation reached itself again",
        meaning: "The code that sets up something once needed the same thing while setting it up.",
        causes: &["Two lazily made globals or singletons that need each other."],
        next: &["Break the circle: pass one into the other."],
    },
    Telling {
        functions: &[
            "_NSAssertMainEventQueueIsCurrentEventQueue",
            "-[NSException(NSExceptionPortability) _crashOnException:]",
            "-[NSApplication _crashOnException:]",
        ],
        classes: TRAPS,
        depth: 3,
        title: "Uncaught exception in AppKit",
        meaning: "AppKit met an exception that nobody caught, or use of its objects off the main thread, and stopped the process.",
        causes: &[
            "An exception in an event handler or drawing code, or interface code on a background thread.",
        ],
        next: &[
            "Look for the exception's name and reason in the report's application-specific information or the system's log.",
        ],
    },
    Telling {
        functions: &[
            "CFRelease",
            "CFRetain",
            "_CFRelease",
            "_CFRetain",
            "CFRelease.cold.1",
            "CFRetain.cold.1",
        ],
        classes: &[Class::Breakpoint, Class::BadInstruction],
        depth: 2,
        title: "CFRetain or CFRelease of NULL, or of a damaged object",
        meaning: "Core Foundation stopped the process: CFRetain or CFRelease was given NULL, or an object with an impossible reference count.",
        causes: &[
            "The result of a Create or Copy function was NULL and is released unchecked.",
            "The object was released once too often.",
        ],
        next: &["Check the value for NULL before CFRelease; run with Zombie Objects on."],
    },
    Telling {
        functions: &["swift_unexpectedError"],
        classes: ENDS,
        depth: 5,
        title: "Swift: `try!` met an error",
        meaning: "An error was thrown where `try!` says that none can be.",
        causes: &["An error that was thought impossible: a missing file, invalid data."],
        next: &["Use `do`/`catch` or `try?` in the named line; the device's log names the error."],
    },
    Telling {
        functions: &[
            "swift_dynamicCastFailure",
            "swift_dynamicCastClassUnconditional",
            "swift_dynamicCastUnknownClassUnconditional",
            "swift::swift_dynamicCastFailure",
        ],
        classes: ENDS,
        depth: 5,
        title: "Swift: a forced cast (`as!`) failed",
        meaning: "A value is of another type than `as!` says.",
        causes: &["Data of another type than expected; a class in another module or target."],
        next: &["Use `as?` in the named line and handle nil."],
    },
    Telling {
        functions: &["swift_abortRetainUnowned", "swift::swift_abortRetainUnowned"],
        classes: ENDS,
        depth: 5,
        title: "Swift: an unowned reference to an object that is gone",
        meaning: "An `unowned` reference was used after its object had gone.",
        causes: &["A closure or object that lives longer than what it refers to."],
        next: &["Make the reference `weak`, or end the closure with its owner."],
    },
    Telling {
        functions: &["swift_beginAccess", "swift_reportExclusivityConflict", "reportExclusivityConflict"],
        classes: TRAPS,
        depth: 5,
        title: "Swift: overlapping access to the same memory",
        meaning: "The same variable was changed in two places at once.",
        causes: &["An inout argument or mutating call that reaches the same variable again, or two threads."],
        next: &["Run with Thread Sanitizer; work on a local copy."],
    },
    Telling {
        functions: &["swift_deletedMethodError"],
        classes: ENDS,
        depth: 5,
        title: "Swift: a method that was compiled away",
        meaning: "A method was called that was removed from the library or never meant to be called.",
        causes: &["App and library were not built together."],
        next: &["Rebuild all modules together."],
    },
    Telling {
        functions: &[
            "_fatalErrorMessage",
            "_assertionFailure",
            "fatalError",
            "preconditionFailure",
            "_preconditionFailure",
            "_swift_stdlib_reportFatalError",
            "_swift_stdlib_reportFatalErrorInFile",
            "assertionFailure",
            "_fatalErrorFlags",
            "_diagnoseUnexpectedNilOptional",
            "Swift._assertionFailure",
            "Swift._fatalErrorMessage",
        ],
        classes: &[],
        depth: 4,
        title: "Swift fatal error",
        meaning: "Swift code stopped the process itself: a fatalError, a failed precondition or assertion, or a runtime check.",
        causes: &[
            "`!` on a nil optional, an index out of range, an integer overflow, a failed `try!` or precondition, or fatalError() in the code.",
        ],
        next: &[
            "Look at the line of the first frame outside of Swift's library; the device's log has the message.",
        ],
    },
    Telling {
        functions: &["_xpc_api_misuse"],
        classes: &[],
        depth: 3,
        title: "Misuse of XPC",
        meaning: "libxpc found itself called in a way that it forbids.",
        causes: &["A connection or object released too early, or not resumed or cancelled as required."],
        next: &["Read the application-specific information; look at the calling frame."],
    },
    Telling {
        functions: &["_objc_fatal", "_objc_fatalv"],
        classes: &[],
        depth: 6,
        title: "The Objective-C runtime stopped the process",
        meaning: "The Objective-C runtime found damaged or inconsistent data.",
        causes: &["Memory damage, or categories and classes that do not fit each other."],
        next: &["Read the application-specific information.", SANITIZER],
    },
    Telling {
        functions: &[
            "malloc_error_break",
            "nanozone_error",
            "szone_error",
            "malloc_zone_error",
            "free_list_checksum_botch",
            "malloc_vreport",
            "malloc_report",
            "free_small_botch",
            "free_tiny_botch",
            "tiny_free_list_add_ptr.cold.1",
            "_nano_malloc_check_clear",
            "___BUG_IN_CLIENT_OF_LIBMALLOC_POINTER_BEING_FREED_WAS_NOT_ALLOCATED",
            "xzm_malloc_zone_error",
            "_xzm_xzone_malloc_freelist_outlined.cold.1",
        ],
        classes: TRAPS,
        depth: 8,
        title: "Heap error found by malloc",
        meaning: "malloc found its bookkeeping overwritten, or was asked to free what it never gave out, and stopped the process.",
        causes: &[
            "A write to freed memory, or beyond the end of a block. The code that notices is rarely the code that did it.",
            "Memory freed twice.",
        ],
        next: &[
            "Run with Address Sanitizer (or Guard Malloc, Malloc Scribble): it stops where the memory is damaged, not later.",
        ],
    },
    Telling {
        functions: &[
            "WTFCrash",
            "WTFCrashWithInfo",
            "WTFCrashWithSecurityImplication",
            "WTF::isIntegralOrPointerType",
        ],
        classes: &[],
        depth: 3,
        title: "WebKit stopped itself",
        meaning: "A check inside of WebKit or JavaScriptCore failed.",
        causes: &["A defect in WebKit, or its objects used on the wrong thread."],
        next: &["Look which WebKit call of the app leads there, and on which thread."],
    },
    Telling {
        functions: &["abort_report_np", "__assert_rtn"],
        classes: &[],
        depth: 6,
        title: "Failed assertion",
        meaning: "An assertion in C or C++ code failed.",
        causes: &["Something that the code thought impossible happened."],
        next: &[
            "Look at the frame that calls __assert_rtn; the application-specific information has the condition.",
        ],
    },
    Telling {
        functions: &["__TCC_CRASHING_DUE_TO_PRIVACY_VIOLATION__", "__CRASHING_DUE_TO_PRIVACY_VIOLATION__"],
        classes: &[],
        depth: 6,
        title: PRIVACY,
        meaning: "The app asked for private data without saying in its Info.plist what for, so the system ended it.",
        causes: &["The usage description key for that kind of data is missing from the Info.plist."],
        next: &["Add the key; the termination reason names it."],
    },
    // Kotlin/Native's `runtime/src/main/cpp/Exceptions.cpp`, and before Kotlin 1.4 `KonanTerminateHandler`.
    Telling {
        functions: &["kfun:kotlinx.coroutines#handleCoroutineException"],
        classes: &[Class::Abort, Class::Unknown],
        depth: 16,
        title: "Uncaught Kotlin exception in a coroutine",
        meaning: "A coroutine ended with an exception that nobody handles; kotlinx.coroutines gave it to Kotlin/Native, which ended the process.",
        causes: &[
            "An exception in a coroutine started by launch (or in its scope) without a try or a CoroutineExceptionHandler.",
        ],
        next: &[
            "Look in the app's log for `Uncaught Kotlin exception`, which has the exception and its own stack.",
            "Install a CoroutineExceptionHandler in the scope, or catch the exception inside of the coroutine.",
        ],
    },
    Telling {
        functions: &[
            "KonanTerminateHandler",
            "(anonymous namespace)::terminateWithUnhandledException",
            "(anonymous namespace)::processUnhandledException",
            "terminateWithUnhandledException",
            "ReportBacktraceToIosCrashLog",
            "Kotlin_ObjCExport_trapOnUndeclaredException",
        ],
        classes: &[Class::Abort, Class::Unknown],
        depth: 12,
        title: "Uncaught Kotlin exception",
        meaning: "Kotlin/Native ended the process since nobody caught an exception; the stack here is that of its handler, not of the throw.",
        causes: &[
            "An exception that leaves Kotlin code for Swift or Objective-C by a function without @Throws.",
            "An exception that nobody catches in a coroutine or in a worker.",
        ],
        next: &[
            "Look in the app's log for `Uncaught Kotlin exception`, which has the exception and its own stack.",
            "Set setUnhandledExceptionHook, so that the reporter gets the exception.",
        ],
    },
    // `mono/metadata/exception.c`, and `FailFast` of `mono/metadata/icall.c`.
    Telling {
        functions: &["ves_icall_System_Environment_FailFast", "ves_icall_System_Environment_FailFast_raw"],
        classes: &[Class::Abort, Class::Unknown],
        depth: 12,
        title: ".NET code ended the process: Environment.FailFast",
        meaning: "Managed code called Environment.FailFast, which the runtime itself does where an exception was not caught.",
        causes: &["A managed exception that nobody caught, or a library that gives up."],
        next: &["Look in the device's log for the message of FailFast and the managed stack behind it."],
    },
    Telling {
        functions: &["mono_invoke_unhandled_exception_hook", "xamarin_unhandled_exception_handler"],
        classes: &[Class::Abort, Class::Unknown],
        depth: 12,
        title: "Uncaught .NET exception",
        meaning: "A managed exception was thrown and nobody caught it; the runtime ended the process.",
        causes: &["An exception in managed code that nobody catches; in an `async void` method nobody can."],
        next: &[
            "Look in the device's log for `Unhandled managed exception`, which has the exception's type, message and stack.",
            "Subscribe to AppDomain.UnhandledException, so that the reporter gets the exception.",
        ],
    },
];
