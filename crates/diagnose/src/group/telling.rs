//! Which functions tell one bug from another, and which are used by too many to do so.
//!
//! A function that many callers share crashes for each of them: an accessor that was given a null object, a checked
//! allocation, an own `assert`. Its name goes into the key, but its caller's does, too. `docs/group.md` has these tables.

use backtrail_model::{Language, Source};

/// Runtimes and libraries whose code compilers put into the program itself: never whose bug it is.
const LIBRARIES: [&str; 18] = [
    "std::",
    "__gnu_cxx::",
    "__cxxabiv1::",
    "core::",
    "alloc::",
    "<std::",
    "<core::",
    "<alloc::",
    "<&",
    "rust_begin_unwind",
    "rust_panic",
    "__rust_",
    "__rustc::",
    "runtime.",
    "Swift.",
    "__asan_",
    "__interceptor_",
    "__sanitizer",
];

/// What compilers make between functions; nobody wrote it.
const GLUE: [&str; 10] = [
    "reabstraction thunk",
    "thunk for ",
    "outlined ",
    "type metadata accessor",
    "lazy protocol witness",
    "value witness",
    "__swift_",
    "block_destroy_helper",
    "block_copy_helper",
    "__clang_call_terminate",
];

/// Why a function of that normalised name is never whose bug it is; asked after the functions that attribution passes over.
pub(super) fn library_reason(name: &str) -> Option<&'static str> {
    if LIBRARIES.iter().any(|start| name.starts_with(start)) {
        return Some("is a runtime's or a standard library's code inside of the program");
    }
    GLUE.iter().any(|start| name.starts_with(start)).then_some("is made by the compiler")
}

/// Functions of Linux that report a fault or take its interrupt, on arm and arm64. They stand in front of where it was.
const KERNEL_FAULTS: [&str; 23] = [
    "dump_backtrace",
    "unwind_backtrace",
    "__do_kernel_fault",
    "die_kernel_fault",
    "report_tag_fault",
    "do_tag_check_fault",
    "do_translation_fault",
    "do_bad_area",
    "do_alignment_fault",
    "do_mem_abort",
    "do_DataAbort",
    "do_PrefetchAbort",
    "__dabt_svc",
    "__pabt_svc",
    "el1_abort",
    "el1_sync",
    "el1_sync_handler",
    "el1h_64_sync",
    "el1h_64_sync_handler",
    "el1_undef",
    "do_undefinstr",
    "__und_svc",
    "check_panic_on_warn",
];

/// Functions of C++ frameworks that stop a program, or look at its stack, for whoever calls them.
const STOPPING: [&str; 5] = [
    "base::debug::CollectStackTrace",
    "base::debug::BreakDebugger",
    "base::debug::BreakDebuggerAsyncSafe",
    "base::ImmediateCrash",
    "SbSystemBreakIntoDebugger",
];

/// Test frameworks, by whose functions checks of tests fail.
const JAVA_TESTS: [&str; 6] =
    ["org.junit.", "junit.framework.", "org.testng.", "org.hamcrest.", "org.assertj.core.", "kotlin.test."];

/// What the Java virtual machine writes as it runs.
const JAVA_GENERATED: [&str; 4] =
    ["GeneratedMethodAccessor", "GeneratedConstructorAccessor", "$$Lambda", ".$Proxy"];

/// Functions of HotSpot's that end it, or report that.
const HOTSPOT: [&str; 8] = [
    "VMError::",
    "report_vm_out_of_memory",
    "report_vm_error",
    "report_fatal",
    "report_should_not_reach_here",
    "report_unimplemented",
    "report_untested",
    "report_java_out_of_memory",
];

/// Why a function is passed over since version 5 of the rules.
pub(super) fn lately_passed(source: Source, language: Option<Language>, name: &str) -> Option<&'static str> {
    let begins = |table: &[&str]| table.iter().any(|start| name.starts_with(start));
    if source == Source::LinuxKernel {
        let plain = name.split('.').next().unwrap_or(name);
        return KERNEL_FAULTS.contains(&plain).then_some("takes a fault of the kernel, or reports it");
    }
    if source == Source::JavaErrorLog && name.starts_with('~') {
        return Some("is code that the Java virtual machine makes for its own calls");
    }
    if source == Source::JavaErrorLog && begins(&HOTSPOT) {
        return Some("ends the Java virtual machine for somebody else");
    }
    if source == Source::JavaErrorLog || language == Some(Language::Java) {
        if JAVA_GENERATED.iter().any(|part| name.contains(part)) {
            return Some("is made by the Java virtual machine as it runs");
        }
        if begins(&JAVA_TESTS) {
            return Some("is a check of a test framework");
        }
    }
    if language.is_some() {
        return None;
    }
    if begins(&["_JNIEnv::", "JNIEnv_::", "_JavaVM::", "JavaVM_::"]) {
        return Some("calls the Java virtual machine for its caller");
    }
    if begins(&["testing::internal::", "testing::UnitTest::", "fuzztest::internal::"]) {
        return Some("is a test framework's code inside of the program");
    }
    STOPPING.contains(&name).then_some("stops the program for its caller")
}

/// The function of Rust's library that a panic began in, where it tells what went wrong: `core::option::unwrap_failed`. Others are
/// called for any panic.
pub(super) fn tells_panic(name: &str) -> bool {
    const WORDS: [&str; 9] =
        ["failed", "fail", "bounds", "already", "slice", "const", "alloc", "overflow", "misaligned"];
    name.starts_with("core::") && words(name).any(|word| WORDS.contains(&word.as_str()))
}

/// Functions in which programs and threads begin: what called the code, not the code.
pub(super) fn is_entry(name: &str) -> bool {
    const ENTRIES: [&str; 11] = [
        "main",
        "<module>",
        "_main",
        "start",
        "_start",
        "__libc_start_main",
        "__libc_start_call_main",
        "start_thread",
        "wmain",
        "WinMain",
        "thread_start",
    ];
    let ends = [".main", ".$main", ".<module>"];
    ENTRIES.contains(&name) || ends.iter().any(|end| name.ends_with(end))
}

/// Words in the names of functions that end the program for their caller, or check something for it.
const ENDING_WORDS: [&str; 22] = [
    "assert",
    "assertion",
    "check",
    "checked",
    "fatal",
    "panic",
    "abort",
    "die",
    "fail",
    "failed",
    "failure",
    "bail",
    "crash",
    "throw",
    "raise",
    "verify",
    "ensure",
    "require",
    "unreachable",
    "terminate",
    "bug",
    "error",
];

/// Words that name helpers, wherever they stand: in a function's name, class or namespace.
const HELPER_WORDS: [&str; 17] = [
    "log",
    "logger",
    "logging",
    "util",
    "utils",
    "utility",
    "utilities",
    "helper",
    "helpers",
    "common",
    "detail",
    "details",
    "internal",
    "wrapper",
    "impl",
    "shim",
    "safe",
];

/// Last words of the names of classes that hold others' things.
const CONTAINER_WORDS: [&str; 32] = [
    "buffer", "list", "map", "array", "vector", "queue", "stack", "string", "str", "view", "span", "table",
    "pool", "arena", "set", "ptr", "pointer", "ref", "handle", "iterator", "optional", "option", "slice",
    "vec", "hash", "heap", "dict", "bytes", "cell", "box", "result", "cache",
];

/// Words of work on memory that any function may be called for, for functions outside of classes.
const MEMORY_WORDS: [&str; 8] =
    ["malloc", "calloc", "realloc", "free", "alloc", "dealloc", "allocate", "deallocate"];

/// Words of plain work on memory and texts, for functions outside of classes.
const PLAIN_WORDS: [&str; 19] = [
    "strdup", "strlen", "strcpy", "strcat", "strcmp", "memcpy", "memset", "memmove", "memcmp", "copy",
    "append", "length", "size", "count", "str", "string", "hash", "compare", "swap",
];

/// Words that may stand beside these without saying what for: `text_length`, `copy_bytes`, but not `copy_pixels`.
const GENERAL_WORDS: [&str; 24] = [
    "text", "texts", "char", "chars", "mem", "memory", "block", "data", "item", "items", "element",
    "elements", "value", "values", "node", "strings", "buf", "n", "x", "my", "do", "fast", "int", "of",
];

/// Last words of the names of classes whose objects are called by algorithms and containers.
const FUNCTOR_WORDS: [&str; 14] = [
    "less",
    "greater",
    "equal",
    "compare",
    "comparer",
    "comparator",
    "cmp",
    "hash",
    "hasher",
    "delete",
    "deleter",
    "visitor",
    "predicate",
    "functor",
];

/// Names so common that they say nothing without a class: any program has several.
const COMMON: [&str; 58] = [
    "get", "set", "at", "front", "back", "data", "size", "length", "len", "count", "empty", "begin", "end",
    "find", "lookup", "insert", "erase", "push", "pop", "append", "add", "remove", "clear", "reset", "init",
    "deinit", "destroy", "close", "open", "read", "write", "run", "start", "stop", "execute", "call",
    "invoke", "apply", "value", "unwrap", "expect", "log", "next", "prev", "lock", "unlock", "acquire",
    "release", "handler", "callback", "update", "process", "handle", "load", "save", "worker", "loop",
    "visit",
];

/// Names that are an accessor's in any class.
const ACCESSORS: [&str; 22] = [
    "get", "set", "at", "front", "back", "data", "size", "length", "len", "count", "begin", "end", "value",
    "unwrap", "expect", "first", "last", "deref", "index", "clone", "retain", "release",
];

/// Why a function of that normalised name does not tell a bug alone; `None` where it does.
pub(super) fn sharing_reason(name: &str) -> Option<&'static str> {
    // A block or closure is as telling as what it was written in.
    let name = name.trim_end_matches(" {closure}").trim_end_matches(" {block}");
    // A lambda is as telling as the function that it was written in, and an object that is called as its class.
    let outer = name.trim_end_matches("::operator()");
    let is_functor = outer.len() < name.len();
    let name = outer;
    let (scope, last) = split(name);
    if last.starts_with("operator")
        || (is_functor && words(last).last().is_some_and(|word| FUNCTOR_WORDS.contains(&word.as_str())))
    {
        return Some("is an operator");
    }
    if words(last).any(|word| ENDING_WORDS.contains(&word.as_str())) {
        return Some("checks or ends something for its callers");
    }
    if words(name).any(|word| HELPER_WORDS.contains(&word.as_str())) {
        return Some("is a helper by its name");
    }
    let lower = last.to_ascii_lowercase();
    match scope {
        None if COMMON.contains(&lower.as_str()) => Some("has a name that any program has several of"),
        None if is_plain_work(last) => Some("does plain work on memory or texts"),
        None => None,
        Some(_) if ACCESSORS.contains(&lower.as_str()) => Some("is an accessor"),
        Some(class) if words(class).last().is_some_and(|word| CONTAINER_WORDS.contains(&word.as_str())) => {
            Some("belongs to a class that holds others' things")
        }
        Some(_) => None,
    }
}

/// Whether a function's name says no more than what it does with memory or a text, not what for. `xmalloc` and `my_strlen` are
/// plain work as well.
fn is_plain_work(name: &str) -> bool {
    let is_of = |table: &[&str], word: &str| {
        table.contains(&word) || word.strip_prefix('x').is_some_and(|rest| table.contains(&rest))
    };
    let words: Vec<String> = words(name).collect();
    let has = |table: &[&str]| words.iter().any(|word| is_of(table, word));
    let is_general = |word: &String| {
        let word = word.trim_end_matches(|digit: char| digit.is_ascii_digit());
        is_of(&PLAIN_WORDS, word) || GENERAL_WORDS.contains(&word) || CONTAINER_WORDS.contains(&word)
    };
    has(&MEMORY_WORDS) || (has(&PLAIN_WORDS) && words.iter().all(is_general))
}

/// The class or innermost namespace, and the function's own name.
fn split(name: &str) -> (Option<&str>, &str) {
    if let Some(method) = name.strip_prefix(['-', '+']).and_then(|rest| rest.strip_prefix('[')) {
        let (class, method) = method.trim_end_matches(']').split_once(' ').unwrap_or(("", method));
        return (Some(class), method.split(':').next().unwrap_or(method));
    }
    let name = name.trim_end_matches("::{closure}");
    let colons = name
        .rsplit_once("::")
        .map(|(scope, last)| (scope.rsplit_once("::").map_or(scope, |(_, it)| it), last));
    let dots = || {
        name.rsplit_once('.').map(|(scope, last)| (scope.rsplit_once('.').map_or(scope, |(_, it)| it), last))
    };
    match colons.or_else(dots) {
        // Files are no classes: `(anonymous)::get` is as common as `get`.
        Some(("(anonymous)", last)) => (None, last),
        Some((scope, last)) => (Some(scope), last),
        None => (None, name),
    }
}

/// The words of a name in any spelling: `check_failed`, `checkFailed`, `HTTPCheck`.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for next in name.chars() {
        let begins = !before.is_alphanumeric() || (next.is_uppercase() && !before.is_uppercase());
        if next.is_alphanumeric() {
            match words.last_mut().filter(|_| !begins) {
                Some(word) => word.extend(next.to_lowercase()),
                None => words.push(next.to_lowercase().collect()),
            }
        }
        before = next;
    }
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_functions_are_known_by_their_names() {
        for name in [
            "xmalloc",
            "my_strlen",
            "check_failed",
            "Log::fatal",
            "util::parse",
            "StringView::at",
            "Node::operator->",
            "get",
            "(anonymous)::run",
            "-[Foo assertValid]",
            "Demo.RingBuffer.push",
            "demo::check_invariant",
            "text_length",
            "count_list",
            "free_pages",
            "NameCompare::operator()",
            "logging::LogMessage::~LogMessage",
            "get::operator()",
        ] {
            assert!(sharing_reason(name).is_some(), "{name}");
        }
    }

    #[test]
    fn others_tell() {
        for name in [
            "parse_header",
            "Parser::read",
            "-[FeedController loadPage:]",
            "Demo.Feed.load {closure}",
            "demo::feed::load_page",
            "ns::Feed::load::operator()",
            "ns::LoadPage::operator()",
            "copy_pixels",
            "main",
            "checkout_cart",
        ] {
            assert_eq!(sharing_reason(name), None, "{name}");
        }
    }

    #[test]
    fn library_code_is_known() {
        for name in
            ["std::vector::at", "<alloc::vec::Vec as core::ops::Index>::index", "outlined copy of Foo"]
        {
            assert!(library_reason(name).is_some(), "{name}");
        }
        assert_eq!(library_reason("stdio_open"), None);
    }
}
