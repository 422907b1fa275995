//! Functions that end up on top of a stack without being at fault, and why. What is not listed here but lies in a
//! system image is passed over for its path; these matter where such code was linked into the app or an SDK.

use super::sources;
use crate::names::{base_name, is_any_of};
use backtrail_core::Function;
use backtrail_model::Frame;

/// One group of functions that are passed over.
pub(crate) struct SkipGroup {
    /// Why they are no suspects.
    pub(crate) reason: &'static str,
    /// Names as a whole, without arguments.
    pub(crate) functions: &'static [&'static str],
    /// What a name may begin with.
    pub(crate) prefixes: &'static [&'static str],
}

/// abort() and what it calls, by the names of Apple's, glibc's and bionic's C libraries.
pub(crate) const ABORT: [&str; 15] = [
    "abort",
    "__abort",
    "abort_message",
    "abort_with_reason",
    "abort_with_payload",
    "__abort_with_payload",
    "__pthread_kill",
    "pthread_kill",
    "__pthread_kill_implementation",
    "__pthread_kill_internal",
    "raise",
    "gsignal",
    "__GI_raise",
    "__GI_abort",
    "tgkill",
];

/// Those of them that end the process by abort(), not by a signal that the caller chose.
const ABORT_ITSELF: [&str; 7] = [
    "abort",
    "__abort",
    "__GI_abort",
    "abort_message",
    "abort_with_reason",
    "abort_with_payload",
    "__abort_with_payload",
];

/// Functions that send whatever signal they are told to, which are not called by abort().
const KILL: [&str; 5] = ["kill", "__kill", "__GI_kill", "__GI___kill", "__tgkill"];

/// Whether a frame sends a signal that its caller chose.
pub(crate) fn sends_signal(frame: &Frame) -> bool {
    is_any_of(frame, &KILL) || is_any_of(frame, &ABORT) && !is_any_of(frame, &ABORT_ITSELF)
}

/// abort() is this far in at most.
const ABORT_DEPTH: usize = 16;

/// How many frames are the end of the process itself: up to the outermost of abort() and what it calls. Frames further in are
/// its own, also those without a name, and functions that do other work elsewhere (`syscall` in bionic's abort()).
pub(crate) fn frames_of_abort(frames: &[Frame]) -> usize {
    frames.iter().take(ABORT_DEPTH).rposition(|frame| is_any_of(frame, &ABORT)).map_or(0, |at| at + 1)
}

/// Whether abort() itself is among the innermost frames.
pub(crate) fn has_abort(frames: &[Frame]) -> bool {
    frames.iter().take(ABORT_DEPTH).any(|frame| is_any_of(frame, &ABORT_ITSELF))
}

const ENDS: &str = "ends the process for somebody else";
const THROWS: &str = "throws for somebody else";
pub(crate) const PANICS: &str = "is Rust's own way to panic";
const REPORTS: &str = "is a crash reporter or measuring code that wraps others' calls";

/// The groups, in the order in which they are asked.
pub(crate) static SKIP_GROUPS: [SkipGroup; 12] = [
    SkipGroup { reason: ENDS, functions: &ABORT, prefixes: &[] },
    SkipGroup {
        reason: ENDS,
        functions: &[
            "abort_with_payload_wrapper_internal",
            "_exit",
            "exit",
            "__exit",
            "kill",
            "__assert_rtn",
            "__assert_fail",
            "_os_crash",
            "_os_crash_msg",
            "__stack_chk_fail",
            "__chk_fail",
            "__chk_fail_overflow",
            "__builtin_trap",
            // musl's.
            "a_crash",
            "default_terminate_handler",
            "demangling_terminate_handler",
            "__gnu_cxx::__verbose_terminate_handler",
            "__cxxabiv1::__terminate",
            // backtrail_crash.hpp's.
            "backtrail::detail::tell_and_terminate",
            "fdsan_error",
            // Kotlin/Native's and Mono's ends for exceptions that nobody caught.
            "KonanTerminateHandler",
            "konan::abort",
            "ReportBacktraceToIosCrashLog",
            "(anonymous namespace)::terminateWithUnhandledException",
            "(anonymous namespace)::processUnhandledException",
            "(anonymous namespace)::TerminateHandler::queuedHandler",
            "mono_invoke_unhandled_exception_hook",
            "ves_icall_System_Environment_FailFast",
            "ves_icall_System_Environment_FailFast_raw",
            "WTFCrash",
            "WTFCrashWithInfo",
            // Chromium's, glog's and Abseil's failed checks end the process where the message is destroyed.
            "logging::LogMessage::~LogMessage",
            "logging::LogMessageFatal::~LogMessageFatal",
            "logging::CheckError::~CheckError",
            "google::LogMessage::Fail",
            "google::LogMessage::~LogMessage",
            "google::LogMessageFatal::~LogMessageFatal",
        ],
        prefixes: &[
            "absl::log_internal::LogMessage",
            "google::LogMessage::SendToLog",
            "google::LogMessage::Flush",
            "base::debug::StackTrace::",
            "std::terminate",
            "std::__terminate",
            "std::abort",
            // Its destructor calls std::terminate where the thread was not joined.
            "std::thread::~thread",
            "std::__1::thread::~thread",
            "std::__ndk1::thread::~thread",
        ],
    },
    SkipGroup {
        reason: THROWS,
        functions: &[
            "__cxa_throw",
            "__cxa_rethrow",
            "__cxa_bad_cast",
            "__cxa_bad_typeid",
            "__cxa_pure_virtual",
            "__cxa_deleted_virtual",
            "__cxa_throw_bad_array_new_length",
            "_Unwind_RaiseException",
            "_Unwind_Resume",
            "_Unwind_Resume_or_Rethrow",
            "__gxx_personality_v0",
            "objc_exception_throw",
            "objc_exception_rethrow",
            "_objc_terminate",
            "objc_terminate",
            "__exceptionPreprocess",
            "_CFThrowFormattedException",
            "__CFThrowFormattedException",
            "_NSThrowException",
            "__NSFastEnumerationMutationHandler",
            "objc_enumerationMutation",
            "-[NSObject doesNotRecognizeSelector:]",
            "-[NSObject(NSObject) doesNotRecognizeSelector:]",
            "-[NSAssertionHandler handleFailureInMethod:object:file:lineNumber:description:]",
            "-[NSAssertionHandler handleFailureInFunction:file:lineNumber:description:]",
            "+[NSException raise:format:]",
            "-[NSException raise:format:]",
            "+[NSException raise:format:arguments:]",
            "-[NSException raise]",
        ],
        prefixes: &["std::__throw_", "std::__1::__throw_", "std::rethrow_exception"],
    },
    // Linked into every program. What they are called differs by the release of the compiler: seen with 1.60 to 1.95.
    SkipGroup {
        reason: PANICS,
        functions: &["rust_begin_unwind", "rust_panic", "rust_oom"],
        prefixes: &[
            "core::panicking::",
            "std::panicking::",
            "panic_abort::",
            "panic_unwind::",
            "__rust_start_panic",
            "__rust_abort",
            "__rustc::rust_",
            "__rustc::__rust_",
            "std::process::abort",
            "std::sys::pal::unix::abort_internal",
            "std::sys::unix::abort_internal",
            "std::sys::backtrace::__rust_end_short_backtrace",
            "std::sys_common::backtrace::__rust_end_short_backtrace",
            "core::option::expect_failed",
            "core::option::unwrap_failed",
            "core::result::unwrap_failed",
            "core::cell::panic_already_",
            "core::slice::index::slice_",
            "core::str::slice_error_fail",
            "alloc::alloc::handle_alloc_error",
            "alloc::raw_vec::handle_error",
            "alloc::raw_vec::capacity_overflow",
            "std::alloc::rust_oom",
        ],
    },
    SkipGroup {
        reason: "is .NET's runtime on its way to the end",
        functions: &[
            "xamarin_initialize.cold.1",
            "xamarin_printf",
            "xamarin_process_managed_exception",
            "xamarin_process_managed_exception_gchandle",
            "mono_handle_exception",
            "mono_handle_exception_internal",
            "mono_resume_unwind",
            "mono_arm_resume_unwind",
            "mono_arm_throw_exception",
            "llvm_resume_unwind_trampoline",
        ],
        prefixes: &["sigabrt_signal_handler"],
    },
    SkipGroup {
        reason: "is Kotlin's own library",
        functions: &[],
        prefixes: &["kfun:kotlin.", "kfun:kotlinx."],
    },
    SkipGroup {
        reason: "is Swift's own way to stop the program",
        functions: &[
            "_fatalErrorMessage",
            "_assertionFailure",
            "fatalError",
            "preconditionFailure",
            "_preconditionFailure",
            "assertionFailure",
            "swift_unexpectedError",
            "swift_dynamicCastFailure",
            "swift_abortRetainUnowned",
            "swift_deletedMethodError",
            "_swift_stdlib_reportFatalError",
            "_swift_stdlib_reportFatalErrorInFile",
            "swift_reportFatalError",
            "swift::fatalError",
            "swift::swift_abortRetainUnowned",
            "_diagnoseUnexpectedNilOptional",
        ],
        prefixes: &["Swift runtime failure: ", "Swift."],
    },
    SkipGroup {
        reason: "is a runtime's reference counting or message sending",
        functions: &[
            "objc_msgSend",
            "objc_msgSendSuper",
            "objc_msgSendSuper2",
            "objc_msgSend_stret",
            "objc_msgSend_fpret",
            "objc_retain",
            "objc_release",
            "objc_storeStrong",
            "objc_autorelease",
            "objc_loadWeak",
            "objc_loadWeakRetained",
            "objc_destroyWeak",
            "objc_autoreleasePoolPop",
            "swift_retain",
            "swift_release",
            "swift_bridgeObjectRetain",
            "swift_bridgeObjectRelease",
            "swift_unknownObjectRetain",
            "swift_unknownObjectRelease",
            "swift_beginAccess",
            "swift_allocObject",
            "CFRetain",
            "CFRelease",
        ],
        prefixes: &[
            "objc_retain_x",
            "objc_release_x",
            "-[_NSZombie_",
            "___forwarding___",
            "_CF_forwarding_prep",
        ],
    },
    SkipGroup {
        reason: "copies, compares or measures memory that its caller names",
        functions: &[
            "memcpy",
            "memmove",
            "memset",
            "memcmp",
            "bcopy",
            "bzero",
            "strlen",
            "strcmp",
            "strncmp",
            "strcpy",
            "strncpy",
            "strcat",
            "strchr",
            "strdup",
            "_platform_memmove",
            "_platform_memset",
            "_platform_memcmp",
            "_platform_strlen",
            "_platform_strcmp",
            "_platform_bzero",
            "__bzero",
            "__memcpy_chk",
            "__memset_chk",
            "__strcpy_chk",
            "__strcat_chk",
        ],
        prefixes: &["_platform_"],
    },
    SkipGroup {
        reason: "allocates or frees for its caller",
        functions: &[
            "malloc",
            "calloc",
            "realloc",
            "free",
            "malloc_error_break",
            "malloc_report",
            "malloc_vreport",
            "free_list_checksum_botch",
            "nanozone_error",
            "operator new",
            "operator new[]",
            "operator delete",
            "operator delete[]",
            // GLib's.
            "g_malloc",
            "g_malloc0",
            "g_realloc",
            "g_free",
        ],
        prefixes: &[
            "malloc_zone_",
            "szone_",
            "nano_",
            "_nano_",
            "tiny_",
            "small_",
            "large_",
            "xzm_",
            "_xzm_",
        ],
    },
    SkipGroup {
        reason: "waits for a lock or an event that its caller names",
        functions: &[
            "__psynch_mutexwait",
            "__psynch_cvwait",
            "__psynch_rw_rdlock",
            "__psynch_rw_wrlock",
            "__ulock_wait",
            "__ulock_wait2",
            "__semwait_signal",
            "__semwait_signal_nocancel",
            "semaphore_wait_trap",
            "semaphore_timedwait_trap",
            "mach_msg_trap",
            "mach_msg2_trap",
            "mach_msg",
            "pthread_mutex_lock",
            "pthread_cond_wait",
            "__select",
            "kevent",
            "kevent64",
            "kevent_id",
            "poll",
        ],
        prefixes: &[
            "_pthread_mutex_",
            "_pthread_cond_",
            "_dispatch_",
            "dispatch_",
            "_os_unfair_lock_",
            "os_unfair_lock_",
        ],
    },
    SkipGroup {
        reason: REPORTS,
        functions: &[
            "_sigtramp",
            "UmengSignalHandler",
            "FIRCLSSignalHandler",
            "plcrash_signal_handler",
            "BITCrashUncaughtCXXExceptionHandler",
            "SwizzleWrapper",
            "handleSignal",
            "handleException",
            "handleUncaughtException",
            "CPPExceptionTerminate",
            "captureStackTrace",
        ],
        prefixes: &[
            "FIRCLS",
            "__FIRCLS",
            // Fabric's, before it was Firebase's.
            "CLSException",
            "__CLSException",
            "CLSHandler",
            "CLSMachException",
            "CLSProcess",
            "CLSSignal",
            "CLSTerminateHandler",
            "kscrash",
            "ksmach",
            "sentrycrash",
            "-[KSCrash",
            "+[KSCrash",
            "-[SentryCrash",
            "+[SentryCrash",
            "-[SentrySwizzle",
            "+[SentrySwizzle",
            "+[BugsnagSwizzle",
            "bsg_ksc",
            "-[PLCrash",
            "+[PLCrash",
            "plcrash_",
            // In Rust: Sentry's, and the crate that takes its stacks.
            "sentry_backtrace::",
            "sentry_core::",
            "sentry_panic::",
            "sentry::",
            "<sentry_core::",
            "backtrace::",
            "<backtrace::",
            "NRMA__",
            "_NRMA",
            "__NRMA",
            "-[NRMA",
            "DDSwizzle",
            "__dd_",
        ],
    },
];

/// Images of crash reporters: frames in them at the top of a stack are the act of reporting. Matched as a prefix of
/// the image's name.
pub(crate) static REPORTER_IMAGES: [&str; 7] = [
    "PLCrashReporter",
    "CrashReporter",
    "KSCrash",
    "FirebaseCrashlytics",
    "Crashlytics",
    "BugsnagReactNativePerformance",
    "libMainThreadChecker",
];

/// Whether all that happens at a frame of that name is to throw, or to end the process, for its caller.
pub(crate) fn is_end_or_throw(base_name: &str) -> bool {
    let forwards = base_name.starts_with("___forwarding___") || base_name.starts_with("_CF_forwarding_prep");
    forwards || skip_reason(base_name).is_some_and(|reason| [ENDS, THROWS, PANICS].contains(&reason))
}

/// Whether a function of that name is a crash reporter's.
pub(crate) fn is_reporters_name(base_name: &str) -> bool {
    skip_reason(base_name) == Some(REPORTS)
}

fn is_of_library(function: &Function) -> bool {
    function.file.as_deref().is_some_and(sources::is_inlined)
}

/// Whether all that is known of a frame are functions of a language's library, which compilers put into programs: Rust's
/// `core::ptr::read_volatile` and C++'s `std::vector::operator[]` have frames of their own where nothing is optimized.
pub(crate) fn is_library_only(frame: &Frame) -> bool {
    !frame.functions.is_empty() && frame.functions.iter().all(is_of_library)
}

/// How many of the functions that are inlined at a frame, innermost first, only end the process or throw, or are a language's library;
/// 0 where all are.
pub(crate) fn inlined_help(frame: &Frame) -> usize {
    let helps = |function: &&Function| is_end_or_throw(base_name(&function.name)) || is_of_library(function);
    let passed = frame.functions.iter().take_while(helps).count();
    if passed < frame.functions.len() { passed } else { 0 }
}

/// Why a function is passed over.
pub(crate) fn skip_reason(base_name: &str) -> Option<&'static str> {
    let matches = |group: &&SkipGroup| {
        group.functions.contains(&base_name)
            || group.prefixes.iter().any(|prefix| base_name.starts_with(prefix))
    };
    let reason = SKIP_GROUPS.iter().find(matches).map(|group| group.reason);
    reason
        .or_else(|| is_swifts(base_name).then_some("is Swift's library, which is compiled into the program"))
}

/// Whether a function is of Swift's library, as compilers put it into programs: what is inside of its collections
/// (`specialized _ArrayBuffer._checkValidSubscriptMutating`), their subscripts, thunks. Members of other names may be
/// extensions of the program's own.
fn is_swifts(base_name: &str) -> bool {
    const TYPES: [&str; 12] = [
        "Array",
        "ArraySlice",
        "ContiguousArray",
        "Dictionary",
        "Set",
        "String",
        "Substring",
        "Range",
        "Optional",
        "UnsafeBufferPointer",
        "UnsafeMutableBufferPointer",
        "UnsafeMutablePointer",
    ];
    const INSIDES: [&str; 11] = [
        "_ArrayBuffer",
        "_ContiguousArrayBuffer",
        "_ContiguousArrayStorage",
        "_SliceBuffer",
        "_NativeDictionary",
        "_NativeSet",
        "_StringGuts",
        "_StringObject",
        "__RawDictionaryStorage",
        "__RawSetStorage",
        "_DictionaryStorage",
    ];
    if base_name.starts_with("thunk for @") || INSIDES.iter().any(|begin| base_name.starts_with(begin)) {
        return true;
    }
    let Some((kind, member)) = base_name.split_once('.') else { return false };
    TYPES.contains(&kind) && (member.starts_with('_') || member.starts_with("subscript."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_are_skipped_and_ordinary_code_is_not() {
        assert_eq!(skip_reason("abort"), Some("ends the process for somebody else"));
        assert_eq!(skip_reason("std::__1::__throw_out_of_range"), Some("throws for somebody else"));
        assert!(skip_reason("Swift runtime failure: Index out of range").is_some());
        assert_eq!(
            skip_reason("std::panicking::panic_handler::{closure#0}"),
            Some("is Rust's own way to panic")
        );
        for name in [
            "specialized _ArrayBuffer._checkValidSubscriptMutating(_:)",
            "specialized Array.subscript.modify",
            "thunk for @callee_guaranteed () -> (@error @owned Error)",
        ] {
            assert!(skip_reason(crate::names::base_name(name)).is_some(), "{name}");
        }
        for name in ["Array.chunked", "Dictionary.merged", "ArrayModel._load", "_ArrayModel"] {
            assert_eq!(skip_reason(name), None, "{name}");
        }
        for name in ["-[Foo abort]", "MyApp.abortUpload", "freeSpace", "main", "", "callback"] {
            assert_eq!(skip_reason(name), None, "{name}");
        }
    }

    #[test]
    fn no_function_is_listed_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for function in SKIP_GROUPS.iter().flat_map(|group| group.functions) {
            assert!(seen.insert(*function), "{function}");
        }
    }
}
