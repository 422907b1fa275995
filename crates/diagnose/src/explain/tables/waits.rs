//! Functions in which a thread waits, and what for.

/// Functions in which a thread waits.
pub(crate) struct Wait {
    /// The names, any of which counts.
    pub(crate) functions: &'static [&'static str],
    /// What the thread waits for, as a clause after "waiting for".
    pub(crate) what: &'static str,
    /// Whether that is the run loop's wait for events: no wait that anybody minds.
    pub(crate) idle: bool,
    /// What to do about it on the main thread.
    pub(crate) advice: &'static str,
    /// Who can end the wait.
    pub(crate) by: By,
}

/// Who can end a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// Another thread of the process.
    Thread,
    /// Somebody outside of it, as the subject of "can let it go on".
    Outside(&'static str),
    /// Nobody: it ends by itself.
    Time,
}

const fn wait(functions: &'static [&'static str], what: &'static str, advice: &'static str) -> Wait {
    Wait { functions, what, idle: false, advice, by: By::Thread }
}

const fn outside(
    functions: &'static [&'static str],
    what: &'static str,
    who: &'static str,
    advice: &'static str,
) -> Wait {
    Wait { functions, what, idle: false, advice, by: By::Outside(who) }
}

const LOCK: &str =
    "Find out who held the lock: look for a thread that is inside code guarded by it and waits itself.";

/// The table; the first that fits counts, so the callers that say more stand before the system calls that they make.
pub(crate) static WAITS: [Wait; 17] = [
    Wait {
        functions: &["__CFRunLoopServiceMachPort", "-[UIEventFetcher threadMain]"],
        what: "the next event in its run loop (idle)",
        idle: true,
        advice: "",
        by: By::Outside("an event"),
    },
    wait(
        &[
            "__DISPATCH_WAIT_FOR_QUEUE__",
            "_dispatch_sync_f_slow",
            "_dispatch_sync_wait",
            "_dispatch_barrier_sync_f_slow",
            "_dispatch_lane_barrier_sync_invoke_and_complete",
        ],
        "a dispatch queue (dispatch_sync)",
        "Do not call dispatch_sync from the main thread on a queue whose blocks may be slow or call back to main.",
    ),
    wait(
        &[
            "_dispatch_semaphore_wait_slow",
            "dispatch_semaphore_wait",
            "semaphore_wait_trap",
            "semaphore_timedwait_trap",
            "semaphore_wait",
        ],
        "a semaphore",
        "Do not make asynchronous work synchronous with a semaphore on the main thread; continue in the completion handler.",
    ),
    wait(
        &["_dispatch_group_wait_slow", "dispatch_group_wait"],
        "a dispatch group",
        "Use dispatch_group_notify instead of waiting on the main thread.",
    ),
    wait(
        &["_os_unfair_lock_lock_slow", "__ulock_wait", "__ulock_wait2", "os_unfair_lock_lock"],
        "a lock (or a thread that holds one)",
        LOCK,
    ),
    wait(
        &[
            "_pthread_mutex_firstfit_lock_slow",
            "_pthread_mutex_firstfit_lock_wait",
            "__psynch_mutexwait",
            "pthread_mutex_lock",
            "-[NSLock lock]",
            "-[NSRecursiveLock lock]",
            "objc_sync_enter",
            "___pthread_mutex_lock",
            "__GI___pthread_mutex_lock",
            "__lll_lock_wait",
            "__GI___lll_lock_wait",
        ],
        "a mutex",
        LOCK,
    ),
    wait(
        &[
            "__psynch_rw_rdlock",
            "__psynch_rw_wrlock",
            "_pthread_rwlock_lock_slow",
            "___pthread_rwlock_rdlock",
            "___pthread_rwlock_wrlock",
        ],
        "a read-write lock",
        LOCK,
    ),
    wait(
        &[
            "-[NSOperationQueue waitUntilAllOperationsAreFinished]",
            "-[NSOperation waitUntilFinished]",
            "-[__NSOperationInternal _waitUntilFinished:]",
        ],
        "operations on another queue",
        "Use completion blocks or dependencies instead of waiting on the main thread.",
    ),
    outside(
        &[
            "+[NSURLConnection sendSynchronousRequest:returningResponse:error:]",
            "-[NSURLConnection sendSynchronousRequest:]",
            "CFURLConnectionSendSynchronousRequest",
            "getaddrinfo",
            "SCNetworkReachabilityGetFlags",
            "_mdns_search",
            "connect",
            "__connect",
            "recvfrom",
            "__recvfrom",
        ],
        "the network",
        "the other side of the connection, or a timeout,",
        "Move network calls off the main thread; a slow network then costs nobody an app.",
    ),
    outside(
        &[
            "xpc_connection_send_message_with_reply_sync",
            "_xpc_connection_send_message_with_reply_sync",
            "dispatch_mach_send_with_result_and_wait_for_reply",
            "__NSXPCCONNECTION_IS_WAITING_FOR_A_SYNCHRONOUS_REPLY__",
            "_dispatch_mach_send_and_wait_for_reply",
        ],
        "another process (synchronous XPC)",
        "the service that was called",
        "Find the call of the system service in the stack (keychain, location, pasteboard…) and make it off the main thread.",
    ),
    outside(
        &[
            "fcntl",
            "__fcntl",
            "fsync",
            "__fsync",
            "read",
            "__read_nocancel",
            "pread",
            "write",
            "__write_nocancel",
            "pwrite",
            "open",
            "__open",
            "__open_nocancel",
            "stat",
            "lstat",
            "__getdirentries64",
            "rename",
            "unlink",
            "flock",
            "fdatasync",
            "__fdatasync",
            "ftruncate",
            "guarded_pwrite_np",
        ],
        "the file system",
        "the disk, or who else holds the file,",
        "Move file and database access off the main thread.",
    ),
    wait(
        &[
            "__psynch_cvwait",
            "pthread_cond_wait",
            "_pthread_cond_wait",
            "___pthread_cond_wait",
            "__pthread_cond_wait_common",
            "___pthread_cond_timedwait64",
            "-[NSCondition wait]",
            "-[NSConditionLock lockWhenCondition:]",
        ],
        "a condition that another thread signals",
        "Find out which thread should signal and what it does.",
    ),
    Wait {
        functions: &[
            "__semwait_signal",
            "__semwait_signal_nocancel",
            "nanosleep",
            "usleep",
            "sleep",
            "clock_nanosleep",
            "__clock_nanosleep",
            "__GI___clock_nanosleep",
            "+[NSThread sleepForTimeInterval:]",
        ],
        what: "time to pass (sleep)",
        idle: false,
        advice: "Do not sleep on the main thread.",
        by: By::Time,
    },
    wait(
        &["__ulock_wait_pthread_join", "pthread_join", "_pthread_join", "__pthread_clockjoin_ex"],
        "another thread's end",
        "Do not join threads on the main thread.",
    ),
    outside(
        &["mach_msg_trap", "mach_msg2_trap", "mach_msg_overwrite_trap", "mach_msg", "mach_msg2_internal"],
        "a message from another process",
        "who sends the message",
        "Find the system service that the calling frames talk to, and call it off the main thread.",
    ),
    Wait {
        functions: &[
            "epoll_wait",
            "__GI_epoll_wait",
            "__epoll_wait",
            "__GI___poll",
            "__poll",
            "__GI___select",
        ],
        what: "the next event (idle)",
        idle: true,
        advice: "",
        by: By::Outside("an event"),
    },
    // glibc's waits for threads end in these; the frames behind them, where there are any, said more.
    wait(
        &[
            "__futex_abstimed_wait_common64",
            "__futex_abstimed_wait_common",
            "__GI___futex_abstimed_wait_cancelable64",
            "futex_wait",
        ],
        "another thread (a futex)",
        "Look at the frames that call it: which lock, condition or semaphore it is.",
    ),
];
