//! How each program can end, and which functions are then on the stack: what its source says.

/// One way to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The program's arguments.
    pub(super) arguments: &'static [&'static str],
    /// Functions of the thread that crashes, innermost first; others may lie between them.
    pub(super) functions: &'static [&'static str],
    /// Which of its functions call each other until the stack is full.
    pub(super) repeated: &'static [&'static str],
    /// How many threads there are.
    pub(super) threads: Option<usize>,
}

const fn way(arguments: &'static [&'static str], functions: &'static [&'static str]) -> Way {
    Way { arguments, functions, repeated: &[], threads: None }
}

const fn among(arguments: &'static [&'static str], threads: usize) -> Way {
    let functions = &["crash_null", "crash_among_threads", "middle", "outer", "main"];
    Way { arguments, functions, repeated: &[], threads: Some(threads) }
}

/// `crash.c`, in every build.
pub(super) const C: [Way; 14] = [
    Way { threads: Some(1), ..way(&["null"], &["crash_null", "middle", "outer", "main"]) },
    way(&["abort"], &["crash_abort", "middle", "outer", "main"]),
    way(&["call-null"], &["crash_call_null", "middle", "outer", "main"]),
    way(&["call-wild"], &["crash_call_wild", "middle", "outer", "main"]),
    way(&["call-data"], &["crash_call_data", "middle", "outer", "main"]),
    way(&["qsort"], &["crash_null", "compare", "crash_in_qsort", "middle", "outer", "main"]),
    way(&["handler"], &["crash_null", "on_signal", "crash_in_handler", "middle", "outer", "main"]),
    way(
        &["handler-other-stack"],
        &["crash_null", "on_signal", "crash_in_handler", "crash_on_other_stack", "middle", "outer", "main"],
    ),
    way(&["twice"], &["crash_abort", "on_fault", "crash_null", "crash_twice", "middle", "outer", "main"]),
    way(
        &["twice-other-stack"],
        &["crash_abort", "on_fault", "crash_null", "crash_twice_on_other_stack", "middle", "outer", "main"],
    ),
    way(
        &["twice-nowhere"],
        &[
            "crash_abort",
            "on_fault",
            "crash_call_null",
            "crash_twice_from_nowhere",
            "middle",
            "outer",
            "main",
        ],
    ),
    Way {
        repeated: &["deeper"],
        ..way(&["overflow", "512"], &["deeper", "crash_overflow", "middle", "outer", "main"])
    },
    Way {
        repeated: &["even", "odd"],
        ..way(&["overflow-in-turns", "512"], &["crash_overflow_in_turns", "middle", "outer", "main"])
    },
    among(&["threads", "10"], 11),
];

/// `crash.c`, in one build.
pub(super) const C_THREADS: [Way; 4] = [
    among(&["threads", "1"], 2),
    among(&["threads", "2"], 3),
    among(&["threads", "100"], 101),
    among(&["threads", "499"], 500),
];

/// `throws.cc`.
pub(super) const CPP: [Way; 8] = [
    way(&["uncaught"], &["abort", "shop::throws", "main"]),
    way(&["catch"], &["crash_null", "shop::in_catch", "main"]),
    way(
        &["destructor"],
        &["crash_null", "shop::Guard::~Guard", "shop::with_guard", "shop::in_destructor", "main"],
    ),
    way(&["noexcept"], &["abort", "shop::never_throws", "main"]),
    way(&["algorithm"], &["shop::in_algorithm", "main"]),
    way(&["sort"], &["crash_null", "shop::in_sort", "main"]),
    way(&["function"], &["crash_null", "shop::in_function", "main"]),
    Way { threads: Some(2), ..way(&["thread"], &["crash_null", "shop::in_catch"]) },
];

/// `panics.rs`.
pub(super) const RUST: [Way; 5] = [
    way(&["panic"], &["abort", "panics::panics", "panics::outer", "panics::main", "main"]),
    way(&["iterator"], &["panics::crash_null", "panics::in_iterator", "panics::outer", "panics::main"]),
    way(&["dyn"], &["panics::crash_null", "panics::in_dyn", "panics::outer", "panics::main"]),
    way(&["drop"], &["panics::crash_null", "panics::in_map", "panics::outer", "panics::main"]),
    Way { threads: Some(9), ..way(&["threads"], &["abort", "panics::panics"]) },
];

/// `panics.go`; the number of threads is the runtime's affair.
pub(super) const GO: [Way; 8] = [
    way(&["null"], &["main.crashNull", "main.outer", "main.main", "runtime.main", "runtime.goexit"]),
    way(&["panic"], &["main.panics", "main.outer", "main.main", "runtime.main", "runtime.goexit"]),
    way(&["sort"], &["main.crashNull", "main.inSort", "main.outer", "main.main", "runtime.goexit"]),
    way(&["defer"], &["main.crashNull", "main.inDefer", "main.outer", "main.main", "runtime.goexit"]),
    way(&["depth"], &["main.crashNull", "main.deeper", "main.inDepth", "main.main", "runtime.goexit"]),
    way(&["overflow"], &["runtime.throw"]),
    way(&["killed"], &[]),
    way(&["goroutine"], &["main.crashNull", "runtime.goexit"]),
];
