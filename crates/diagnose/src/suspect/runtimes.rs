//! Whose code a frame is in reports of runtimes, sanitizers, debuggers and Linux's kernel: by the file of its source, the
//! file of its image, and its name.

use super::languages::{
    CPP_HEADERS, beam, dart, dot_net, go, is_nodes, is_pythons, is_rusts, java, ocaml, told,
};
use super::owner::Ownership;
use super::sources;
use crate::names::{base_name, image_name, image_of};
use backtrail_model::{Frame, Language, OwnerKind, Report, Source};

/// Beginnings of paths where a system keeps its libraries.
const SYSTEM_FILES: [&str; 12] = [
    "/lib/",
    "/lib64/",
    "/lib32/",
    "/usr/lib/",
    "/usr/lib64/",
    "/usr/lib32/",
    "/usr/libexec/",
    "/System/",
    "/system/",
    "/apex/",
    "[vdso",
    "linux-vdso",
];

/// Where package managers keep libraries: Homebrew, MacPorts, Nix, Guix, Conda.
const MANAGED: [&str; 8] = [
    "/Cellar/",
    "/opt/homebrew/",
    "/opt/local/lib/",
    "/nix/store/",
    "/gnu/store/",
    "/miniconda3/",
    "/anaconda3/",
    "/miniforge3/",
];

/// Files of the C library by their names alone.
const LIBC_SOURCES: [&str; 16] = [
    "abort.c",
    "assert.c",
    "raise.c",
    "malloc.c",
    "pthread_create.c",
    "pthread_kill.c",
    "pthread_kill_implementation.c",
    "libc-start.c",
    "libc_start_call_main.h",
    "libc_fatal.c",
    "fortify_fail.c",
    "stack_chk_fail.c",
    "clone.S",
    "clone3.S",
    "start.S",
    "restore_rt.c",
];

/// Beginnings of functions that are sanitizers', fuzzers' and the C library's own, whatever image they are linked into.
const SYSTEM_FUNCTIONS: [&str; 95] = [
    "rust_panic",
    // Of Apple's systems, where gdb names no image.
    "objc_",
    "__NSFastEnumerationMutationHandler",
    "__exceptionPreprocess",
    "-[NSException raise",
    "+[NSException raise",
    "__CFRUNLOOP_IS_",
    "CFRunLoopRun",
    "GSEventRun",
    "UIApplicationMain",
    "NSApplicationMain",
    // Where Windows begins each thread.
    "BaseThreadInitThunk",
    "RtlUserThreadStart",
    // What runtimes and servers print their own stack by, and what the kernel came back to.
    "rb_vm_bugreport",
    "rb_bug",
    "rb_print_backtrace",
    "report_bug",
    "sigsegv",
    "_sigtramp",
    "logStackTrace",
    "printCrashReport",
    "__restore_rt",
    "__kernel_rt_sigreturn",
    "mono_handle_native_crash",
    "mono_sigsegv",
    "mono_dump_native_crash",
    "my_print_stacktrace",
    "handle_fatal_signal",
    "print_stacktrace",
    "signal_handler",
    "__asan_",
    "__hwasan_",
    "__tsan_",
    "__msan_",
    "__ubsan_",
    "__lsan_",
    "__sanitizer_",
    "__interceptor_",
    "___interceptor_",
    "__interception",
    "__sanitizer::",
    "__asan::",
    "__tsan::",
    "__msan::",
    "__lsan::",
    "__ubsan::",
    "__hwasan::",
    "fuzzer::",
    "__GI_",
    "__libc_",
    "__pthread_",
    "__assert",
    "__fortify_fail",
    "__chk_fail",
    "__stack_chk_fail",
    "__cxa_",
    "__cxxabiv1::",
    "__gnu_cxx::",
    "std::terminate",
    "std::__terminate",
    "std::__throw",
    "_Unwind_",
    "_start",
    "start_thread",
    "clone",
    "__clone",
    "abort",
    "raise",
    "gsignal",
    "malloc_printerr",
    "operator new",
    "operator delete",
    "<signal handler called>",
    "rust_begin_unwind",
    "__rust",
    "core::panicking::",
    "core::option::",
    "core::result::",
    "core::ops::function::",
    "std::panicking::",
    "std::sys",
    "std::rt::",
    // Failed checks of Chromium, glog and Abseil.
    "logging::LogMessage",
    "logging::CheckError",
    "google::LogMessage",
    "absl::log_internal::",
    "absl::lts_",
    "base::debug::StackTrace",
    // OpenBSD's.
    "thrkill",
    "_libc_abort",
    "wrterror",
    // What libc++'s own file holds, not its headers.
    "std::__1::__throw_",
    "std::__1::mutex::",
    "std::__1::recursive_mutex::",
    "std::__1::condition_variable::",
];

/// Functions of C that sanitizers put their own in the place of, whole names: the code that called them is to be looked at.
const INTERCEPTED: [&str; 40] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "cfree",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "strdup",
    "strndup",
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "memchr",
    "bcmp",
    "strcpy",
    "strncpy",
    "strcat",
    "strncat",
    "strlen",
    "strnlen",
    "strcmp",
    "strncmp",
    "strcasecmp",
    "strchr",
    "strstr",
    "printf",
    "vprintf",
    "sprintf",
    "snprintf",
    "vsnprintf",
    "read",
    "write",
    "recv",
    "pthread_create",
    "pthread_mutex_lock",
    "qsort",
    "fread",
    "fwrite",
];

/// Functions of Linux that report, panic, check or hand over: never where the fault is.
const KERNEL_SKIPPED: [&str; 74] = [
    // OpenZFS's way to stop a task whose check failed.
    "spl_panic",
    "spl_dumpstack",
    "spl_debug_",
    "dump_stack",
    "__dump_stack",
    "show_stack",
    "show_regs",
    "show_trace",
    "panic",
    "__warn",
    "warn_slowpath",
    "report_bug",
    "handle_bug",
    "fixup_bug",
    "exc_",
    "asm_exc_",
    "asm_sysvec_",
    "sysvec_",
    "__sysvec_",
    "do_error_trap",
    "do_trap",
    "do_invalid_op",
    "invalid_op",
    "page_fault",
    "do_page_fault",
    "__do_page_fault",
    "no_context",
    "bad_area",
    "__bad_area",
    "kasan_",
    "__kasan_",
    "print_address_description",
    "print_report",
    "__asan_",
    "check_memory_region",
    "kmsan_",
    "__msan_",
    "kcsan_",
    "__tsan_",
    "kfence_",
    "ubsan_",
    "__ubsan_",
    "lockdep_",
    "print_circular_bug",
    "check_prev_add",
    "check_prevs_add",
    "validate_chain",
    "__lock_acquire",
    "lock_acquire",
    "print_usage_bug",
    "mark_lock",
    "nmi_",
    "rcu_",
    "trigger_",
    "arch_trigger_",
    "watchdog",
    "__schedule",
    "schedule",
    "context_switch",
    "___might_sleep",
    "__might_sleep",
    "___slab_alloc",
    "die",
    "__die",
    "refcount_warn_saturate",
    // They copy, fill or measure what their caller names.
    "memset",
    "__memset",
    "memcpy",
    "__memcpy",
    "memmove",
    "__memmove",
    "strlen",
    "strcmp",
    "string_nocheck",
];

/// Tells whose the code of a frame is.
pub(super) fn owner_of(report: &Report, frame: &Frame) -> Ownership {
    let name = frame.names().next().unwrap_or_default();
    let base = base_name(name);
    if report.source == Source::LinuxKernel {
        return kernel(frame, base);
    }
    let file = frame.functions.first().and_then(|function| function.file.as_deref());
    let file = file.or(frame.reported.as_ref().and_then(|symbol| symbol.file.as_deref())).unwrap_or_default();
    // Its own functions are Rust's wherever their sources lie.
    if report.source == Source::RustPanic && is_rusts(name) {
        return told(OwnerKind::System, format!("{name} is of Rust's library"));
    }
    if let Some(rule) = sources::rule_for(file) {
        return told(rule.owner, format!("{file}: {}", rule.what));
    }
    match frame.language {
        Some(Language::Python) if is_pythons(file) => {
            return told(OwnerKind::System, format!("{file} is a module of Python's library"));
        }
        Some(Language::Go) => return go(name, file),
        Some(Language::JavaScript) if matches!(file, "<anonymous>" | "native") => {
            return told(OwnerKind::System, format!("{name} is a function of the engine"));
        }
        Some(Language::JavaScript) if is_nodes(file) => {
            return told(OwnerKind::System, format!("{file} is a file of Node.js itself"));
        }
        Some(Language::DotNet) => return dot_net(name),
        Some(Language::Java) => return java(name),
        Some(Language::Beam) => return beam(frame, name, file),
        Some(Language::OCaml) => return ocaml(name, file),
        // The interpreter's own, or one of a gem's extension: the control frames do not tell.
        Some(Language::Ruby) if file.is_empty() => {
            return told(
                OwnerKind::Unknown,
                format!("{name} is a function in C, the report does not tell whose"),
            );
        }
        Some(Language::Php | Language::Lua) if file.is_empty() => {
            return told(OwnerKind::System, format!("{name} is a function of the language itself"));
        }
        // Files of the library are told from where Julia was built.
        Some(Language::Julia) if file.starts_with("./") && file.ends_with(".jl") => {
            return told(OwnerKind::System, format!("{file} is a file of Julia's library"));
        }
        Some(Language::Dart) => return dart(report, name, file),
        Some(Language::Tcl) if file.is_empty() => {
            let is_own = ["::tcl::", "tcl::", "::tk::", "tk::"].iter().any(|begin| name.starts_with(begin));
            let (owner, whose) =
                if is_own { (OwnerKind::System, "Tcl's") } else { (OwnerKind::App, "the program's") };
            return told(owner, format!("{name} is a procedure of {whose} own"));
        }
        Some(_) => {
            return told(
                OwnerKind::App,
                format!("{file} is neither the language's nor an installed package's"),
            );
        }
        None => {}
    }
    if report.source == Source::JavaScriptError {
        let image = frame.image_name.as_deref().unwrap_or_default();
        if image.ends_with(".node") {
            return told(OwnerKind::Sdk, format!("{image} is an addon in machine code"));
        }
        // V8's own way to the end.
        return told(OwnerKind::System, "the frame is one of the engine's own");
    }
    // Symbols of Mach-O files have an underscore before C's names.
    let plain = base.strip_prefix('_').unwrap_or(base);
    let is_known = |name: &str| SYSTEM_FUNCTIONS.iter().any(|begin| name.starts_with(begin));
    if is_known(base) || is_known(plain) || INTERCEPTED.contains(&base) {
        return told(
            OwnerKind::System,
            format!("{base} is a function of the C library, a sanitizer or a runtime"),
        );
    }
    let source = file.rsplit('/').next().unwrap_or(file);
    if LIBC_SOURCES.contains(&source) && !file.starts_with("/src/") {
        return told(OwnerKind::System, format!("{source} is a file of the C library"));
    }
    if CPP_HEADERS.contains(&file) {
        return told(OwnerKind::System, format!("{file} is a header of the C++ library"));
    }
    native(report, frame, file)
}

/// The libraries of machine code that a JDK comes with, without `lib` and the file's extension: OpenJDK, `src/*/{share,unix}/native`.
/// Elsewhere these names are too general.
const JDK_LIBRARIES: [&str; 31] = [
    "attach",
    "awt",
    "awt_headless",
    "awt_xawt",
    "dt_socket",
    "extnet",
    "fontmanager",
    "hprof",
    "instrument",
    "j2gss",
    "j2pcsc",
    "j2pkcs11",
    "jaas",
    "jaas_unix",
    "javajpeg",
    "jdwp",
    "jimage",
    "jsig",
    "jsound",
    "management",
    "management_ext",
    "mlib_image",
    "net",
    "nio",
    "npt",
    "prefs",
    "rmi",
    "saproc",
    "sunec",
    "verify",
    "zip",
];

/// `zip` of `libzip.so` and of `zip.dll`.
fn stem_of(library: &str) -> &str {
    let stem = library.split('.').next().unwrap_or(library);
    stem.strip_prefix("lib").unwrap_or(stem)
}

fn native(report: &Report, frame: &Frame, file: &str) -> Ownership {
    let path = image_of(report, frame).and_then(|image| image.path.as_deref());
    // A debugger states the whole path beside the row.
    let beside = frame.annotations.iter().find_map(|line| line.strip_prefix("from "));
    let path = path.or(beside).unwrap_or_default();
    if SYSTEM_FILES.iter().any(|begin| path.starts_with(begin)) {
        return told(OwnerKind::System, format!("{path} is where the system keeps its libraries"));
    }
    let image = image_name(report, frame).unwrap_or_default();
    if let Some(rule) = sources::rule_for(path).filter(|rule| rule.owner == OwnerKind::Sdk) {
        return told(rule.owner, format!("{path}: {}", rule.what));
    }
    // An interpreter loads nothing of machine code but its library, the system's, and extensions.
    if report.source == Source::RuntimeError && image.ends_with(".bundle") {
        return told(OwnerKind::Sdk, format!("{image} is an extension that Ruby loaded"));
    }
    if report.source == Source::WindowsEvent {
        return windows(report, path, image);
    }
    if report.source == Source::KernelLog && image.contains(".so") && !is_of_c(image) {
        return told(OwnerKind::Sdk, format!("{image} is a library; the kernel does not say whose"));
    }
    let is_library = image.ends_with(".dylib") || image.ends_with(".jnilib") || image.contains(".so");
    if let Some(directory) = MANAGED.iter().find(|part| is_library && path.contains(**part)) {
        return told(
            OwnerKind::Sdk,
            format!("{path} is a library below {directory}, where a package manager keeps them"),
        );
    }
    if let Some(what) = super::owner::shipped_runtime(image) {
        return told(OwnerKind::Sdk, format!("{image} is {what}, which apps ship"));
    }
    let is_vm = || ["libjvm", "jvm.dll", "libjli", "libjava."].iter().any(|name| image.starts_with(name));
    let is_jdks = || report.source == Source::JavaErrorLog && JDK_LIBRARIES.contains(&stem_of(image));
    if is_vm() || is_jdks() {
        return told(OwnerKind::System, format!("{image} is the Java virtual machine"));
    }
    if WINDOWS_LIBRARIES.contains(&image.to_ascii_lowercase().as_str()) || image.starts_with("libsystem_") {
        return told(OwnerKind::System, format!("{image} is a library of the system"));
    }
    if is_of_c(image) || super::paths::is_system_name(image) {
        return told(OwnerKind::System, format!("{image} is a library of the system"));
    }
    if frame.names().next().is_none() && image.is_empty() {
        return told(OwnerKind::Unknown, "the frame has neither a name nor a file");
    }
    if file.is_empty() && path.is_empty() && image.is_empty() {
        return told(
            OwnerKind::App,
            "nothing says that the code is the system's or a library's, so it is taken for the program's",
        );
    }
    if report.source == Source::JavaErrorLog && is_library {
        return told(
            OwnerKind::Sdk,
            format!("{image} is machine code that Java loaded; the log does not say whose"),
        );
    }
    // systemd's and gdb's rows name the file alone. The program is another one.
    let is_other = || super::owner::image_of_main(report).is_some_and(|main| main != image);
    if report.source == Source::DebuggerBacktrace
        && image.starts_with("lib")
        && is_library
        && file.is_empty()
        && is_other()
    {
        return told(OwnerKind::Sdk, format!("{image} is a library; the text does not say whose"));
    }
    if let Some(program) = calling_image(report, image).filter(|_| path.is_empty()) {
        return told(
            OwnerKind::Sdk,
            format!("{image} is another image than {program}, which called it on the main thread"),
        );
    }
    let is_shortened = report.source == Source::DebuggerBacktrace
        && frame.address.is_none()
        && frame.image_offset.is_none()
        && file.is_empty()
        && !image.is_empty()
        && !image.contains('.');
    if is_shortened && super::owner::image_of_main(report).is_none() {
        return told(
            OwnerKind::Unknown,
            format!("nothing tells whether {image} is the program or a library of it"),
        );
    }
    let place = [file, path, image].into_iter().find(|place| !place.is_empty()).unwrap_or_default();
    told(OwnerKind::App, format!("{place} is neither the system's nor an installed package's"))
}

/// Where LLDB names the image of each frame: the outermost one on the main thread's stack that is not the system's, if that is not `image`.
/// An app's own executable begins that stack.
fn calling_image<'r>(report: &'r Report, image: &str) -> Option<&'r str> {
    let is_plain =
        |name: &str| !name.is_empty() && !name.contains('.') && !super::paths::is_system_name(name);
    let first =
        report.crashed().filter(|thread| thread.number == 1 && report.source == Source::DebuggerBacktrace);
    let frames = &first.filter(|_| is_plain(image))?.frames;
    let outermost =
        frames.iter().rev().filter_map(|frame| frame.image_name.as_deref()).find(|name| is_plain(name))?;
    (outermost != image).then_some(outermost)
}

/// Whether a file is of the C library, of C++'s or of the sanitizers.
fn is_of_c(image: &str) -> bool {
    const NAMES: [&str; 16] = [
        "vgpreload_",
        "libruby.",
        "libmonosgen",
        "libmono-",
        "libc.so",
        "libc-2",
        "libpthread",
        "ld-linux",
        "ld-2",
        "libm.so",
        "libstdc++",
        "libgcc_s",
        "libasan",
        "libtsan",
        "libubsan",
        "liblsan",
    ];
    NAMES.iter().any(|name| image.starts_with(name))
}

/// Libraries of Windows, by their directory; where an event states none, by their names.
const WINDOWS_LIBRARIES: [&str; 10] = [
    "ntdll.dll",
    "kernelbase.dll",
    "kernel32.dll",
    "ucrtbase.dll",
    "msvcrt.dll",
    "user32.dll",
    "combase.dll",
    "clr.dll",
    "coreclr.dll",
    ".net runtime",
];

/// Whose a module is that an event of Windows names.
fn windows(report: &Report, path: &str, image: &str) -> Ownership {
    let (lower, name) = (path.to_ascii_lowercase(), image.to_ascii_lowercase());
    let program = report.process.name.as_deref().unwrap_or_default();
    if !program.is_empty() && program.eq_ignore_ascii_case(image) {
        return told(OwnerKind::App, format!("{image} is the program"));
    }
    if lower.get(1..).is_some_and(|rest| rest.starts_with(":\\windows\\"))
        && !lower.contains("\\driverstore\\")
    {
        return told(OwnerKind::System, format!("{path} is where Windows keeps its libraries"));
    }
    // WinDbg leaves the extension out.
    if [&name, &format!("{name}.dll")].iter().any(|name| WINDOWS_LIBRARIES.contains(&name.as_str())) {
        return told(OwnerKind::System, format!("{image} is a library of Windows or .NET"));
    }
    if name.ends_with(".exe") {
        return told(OwnerKind::App, format!("{image} is a program"));
    }
    if image.is_empty() {
        return told(OwnerKind::Unknown, "the event names no module");
    }
    told(OwnerKind::Sdk, format!("{image} is neither the program nor a library of Windows"))
}

/// All of it is the kernel; what only reports the fault, or runs because of it, is passed over.
fn kernel(frame: &Frame, name: &str) -> Ownership {
    if KERNEL_SKIPPED.iter().any(|begin| name.starts_with(begin)) {
        return told(OwnerKind::System, format!("{name} reports what was found"));
    }
    match frame.image_name.as_deref().filter(|image| *image != "vmlinux") {
        Some(module) => told(OwnerKind::Sdk, format!("{module} is a module of the kernel")),
        None => told(OwnerKind::App, "the kernel's own code"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_model::ReportedSymbol;

    fn owner(source: Source, language: Option<Language>, name: &str, file: &str) -> OwnerKind {
        let report = Report { source, ..Report::default() };
        let file = Some(file.to_owned()).filter(|file| !file.is_empty());
        let reported = Some(ReportedSymbol { name: name.to_owned(), file, ..ReportedSymbol::default() });
        owner_of(&report, &Frame { reported, language, ..Frame::new(0) }).owner
    }

    #[test]
    fn frames_by_their_source_and_name() {
        let (python, go, script) = (Some(Language::Python), Some(Language::Go), Some(Language::JavaScript));
        for (source, language, name, file, expected) in [
            (Source::PythonTraceback, python, "f", "/app/x.py", OwnerKind::App),
            (Source::PythonTraceback, python, "f", "/usr/lib/python3.11/json/decoder.py", OwnerKind::System),
            (
                Source::PythonTraceback,
                python,
                "f",
                "/usr/lib/python3/site-packages/flask/app.py",
                OwnerKind::Sdk,
            ),
            (Source::PythonTraceback, python, "f", "./traceback.py", OwnerKind::System),
            (Source::PythonTraceback, python, "f", "json/decoder.py", OwnerKind::System),
            (Source::PythonTraceback, python, "f", "shop/json/decoder.py", OwnerKind::App),
            (Source::PythonTraceback, python, "f", "queue.py", OwnerKind::App),
            (Source::GoTrace, go, "main.(*T).f", "/src/main.go", OwnerKind::App),
            (
                Source::GoTrace,
                go,
                "net/http.(*Server).Serve",
                "/usr/local/go/src/net/http/server.go",
                OwnerKind::System,
            ),
            (Source::GoTrace, go, "runtime.gopanic", "/usr/local/go/src/runtime/panic.go", OwnerKind::System),
            (
                Source::GoTrace,
                go,
                "github.com/a/b.F",
                "/home/u/go/pkg/mod/github.com/a/b@v1/f.go",
                OwnerKind::Sdk,
            ),
            (Source::GoTrace, go, "github.com/me/app/api.F", "/home/u/app/api/f.go", OwnerKind::App),
            (Source::JavaScriptError, script, "f", "node:internal/main", OwnerKind::System),
            (Source::JavaScriptError, script, "Socket.emit", "node:events", OwnerKind::System),
            (Source::JavaScriptError, script, "Socket.emit", "events.js", OwnerKind::System),
            (Source::JavaScriptError, script, "f", "/app/events.js", OwnerKind::App),
            (Source::JavaScriptError, script, "f", "/app/node_modules/express/x.js", OwnerKind::Sdk),
            (Source::JavaScriptError, script, "f", "/app/x.js", OwnerKind::App),
            (Source::Sanitizer, None, "__asan_memcpy", "", OwnerKind::System),
            (Source::Sanitizer, None, "malloc", "", OwnerKind::System),
            (Source::Sanitizer, None, "parse", "/src/app/p.c", OwnerKind::App),
            (
                Source::RustPanic,
                None,
                "core::panicking::panic",
                "/rustc/1/library/core/src/panicking.rs",
                OwnerKind::System,
            ),
            (Source::RustPanic, None, "app::f", "src/main.rs", OwnerKind::App),
            (Source::RustPanic, None, "_rust_begin_unwind", "", OwnerKind::System),
            (Source::RustPanic, None, "BaseThreadInitThunk", "", OwnerKind::System),
            (Source::LinuxKernel, None, "dump_stack", "", OwnerKind::System),
            (Source::LinuxKernel, None, "vfs_read", "", OwnerKind::App),
        ] {
            assert_eq!(owner(source, language, name, file), expected, "{name} {file}");
        }
    }
}
