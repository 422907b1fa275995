//! EXC_GUARD: types, and what was done to the guarded thing.
//!
//! Sources: XNU `osfmk/kern/exc_guard.h` (layout and types), `bsd/sys/guarded.h` (descriptors, vnodes),
//! `osfmk/mach/port.h` (ports), `osfmk/mach/vm_statistics.h` (memory).

/// A flavor of a guard's violation.
pub(crate) struct Flavor {
    /// The value: a number, or one bit of a mask.
    pub(crate) value: u32,
    /// The word that reports print.
    pub(crate) name: &'static str,
    /// What was done, as a clause after "the process".
    pub(crate) meaning: &'static str,
}

const fn flavor(value: u32, name: &'static str, meaning: &'static str) -> Flavor {
    Flavor { value, name, meaning }
}

/// A type of guard.
pub(crate) struct GuardType {
    /// Bits 63 to 61 of the code.
    pub(crate) number: u64,
    /// The name in reports.
    pub(crate) name: &'static str,
    /// What is guarded.
    pub(crate) guarded: &'static str,
    /// What bits 31 to 0 of the code tell.
    pub(crate) target: &'static str,
    /// The flavors, bits 60 to 32.
    pub(crate) flavors: &'static [Flavor],
    /// Usual causes.
    pub(crate) causes: &'static [&'static str],
    /// What to do.
    pub(crate) next: &'static [&'static str],
}

static PORT: [Flavor; 23] = [
    flavor(1, "DESTROY", "destroyed a right that it must keep"),
    flavor(2, "MOD_REFS", "changed the reference count of a guarded right, usually releasing one too many"),
    flavor(3, "INVALID_OPTIONS", "gave options that are not allowed"),
    flavor(4, "SET_CONTEXT", "set the context of a guarded port"),
    flavor(5, "THREAD_SET_STATE", "set the state of a thread without being allowed to"),
    flavor(6, "EXCEPTION_BEHAVIOR_ENFORCE", "set an exception port with a behavior that is not allowed"),
    flavor(8, "UNGUARDED", "treated an unguarded port as guarded"),
    flavor(16, "INCORRECT_GUARD", "gave the wrong guard value"),
    flavor(32, "IMMOVABLE", "tried to move a right that must stay"),
    flavor(64, "STRICT_REPLY", "broke the rules for reply ports"),
    flavor(128, "MSG_FILTERED", "sent a message that a filter forbids"),
    flavor(256, "INVALID_RIGHT", "used a name as a right that it is not"),
    flavor(512, "INVALID_NAME", "used a name that does not exist, usually one already released"),
    flavor(1 << 10, "INVALID_VALUE", "gave an invalid value"),
    flavor(1 << 11, "INVALID_ARGUMENT", "gave an invalid argument"),
    flavor(1 << 12, "RIGHT_EXISTS", "made a right that exists already"),
    flavor(1 << 13, "KERN_NO_SPACE", "ran out of room for names"),
    flavor(1 << 14, "KERN_FAILURE", "met a failure of the kernel"),
    flavor(1 << 15, "KERN_RESOURCE", "ran out of a resource of the kernel"),
    flavor(1 << 16, "SEND_INVALID_REPLY", "sent a message with an invalid reply port"),
    flavor(1 << 17, "SEND_INVALID_VOUCHER", "sent a message with an invalid voucher"),
    flavor(1 << 18, "SEND_INVALID_RIGHT", "sent a message with an invalid right"),
    flavor(1 << 19, "RCV_INVALID_NAME", "received on a name that is invalid"),
];

static FD: [Flavor; 7] = [
    flavor(1, "CLOSE", "closed the descriptor"),
    flavor(2, "DUP", "duplicated or replaced the descriptor (dup, dup2, fcntl)"),
    flavor(4, "NOCLOEXEC", "cleared the descriptor's close-on-exec flag"),
    flavor(8, "SOCKET_IPC", "sent the descriptor through a socket"),
    flavor(16, "FILEPORT", "made a file port of the descriptor"),
    flavor(32, "MISMATCH", "gave the wrong guard for the descriptor"),
    flavor(64, "WRITE", "wrote to the descriptor"),
];

static VNODE: [Flavor; 7] = [
    flavor(1, "RENAME_TO", "renamed another file over the guarded one"),
    flavor(2, "RENAME_FROM", "renamed the guarded file"),
    flavor(4, "UNLINK", "deleted the guarded file"),
    flavor(8, "WRITE_OTHER", "wrote to the guarded file"),
    flavor(16, "TRUNC_OTHER", "truncated the guarded file"),
    flavor(32, "LINK", "made a link to the guarded file"),
    flavor(64, "EXCHDATA", "exchanged the guarded file's contents"),
];

static MEMORY: [Flavor; 14] = [
    flavor(1, "DEALLOC_GAP", "unmapped a range that holds memory already unmapped"),
    flavor(2, "RECLAIM_COPYIO_FAILURE", "broke the buffer by which the kernel reclaims memory"),
    flavor(4, "RECLAIM_INDEX_FAILURE", "broke the buffer by which the kernel reclaims memory"),
    flavor(8, "RECLAIM_DEALLOCATE_FAILURE", "broke the buffer by which the kernel reclaims memory"),
    flavor(9, "RECLAIM_ACCOUNTING_FAILURE", "broke the buffer by which the kernel reclaims memory"),
    flavor(10, "SEC_IOPL_ON_EXEC_PAGE", "asked for a device mapping of an executable page"),
    flavor(11, "SEC_EXEC_ON_IOPL_PAGE", "made a page with a device mapping executable"),
    flavor(12, "SEC_UPL_WRITE_ON_EXEC_REGION", "asked to write to an executable region"),
    flavor(98, "SEC_ACCESS_FAULT", "touched memory that is protected for security"),
    flavor(99, "SEC_ASYNC_ACCESS_FAULT", "touched memory that is protected for security"),
    flavor(100, "SEC_COPY_DENIED", "copied memory that is protected for security"),
    flavor(101, "SEC_SHARING_DENIED", "shared memory that is protected for security"),
    flavor(200, "MTE_SYNC_FAULT", "used a pointer whose memory tag does not fit: stale, or out of bounds"),
    flavor(
        201,
        "MTE_ASYNC_USER_FAULT",
        "used a pointer whose memory tag does not fit: stale, or out of bounds",
    ),
];

/// The types.
pub(crate) static GUARD_TYPES: [GuardType; 6] = [
    GuardType {
        number: 1,
        name: "GUARD_TYPE_MACH_PORT",
        guarded: "a Mach port",
        target: "port",
        flavors: &PORT,
        causes: &[
            "A port's right was released once too often, or after somebody else had got the same name.",
            "A name was used after it had been released.",
        ],
        next: &[
            "Look in the innermost frames for mach_port_deallocate, mach_port_mod_refs or mach_port_destroy and who owns that port.",
        ],
    },
    GuardType {
        number: 2,
        name: "GUARD_TYPE_FD",
        guarded: "a file descriptor",
        target: "file descriptor",
        flavors: &FD,
        causes: &[
            "The code closes a descriptor twice; between the two, a system library opened a file and got the same number.",
            "The code keeps the number of a descriptor that it no longer owns.",
        ],
        next: &[
            "Look for the second close of the descriptor that the crashed thread works on; set the number to -1 after closing.",
            "Note which library owns the guard, if the code tells.",
        ],
    },
    GuardType {
        number: 3,
        name: "GUARD_TYPE_USER",
        guarded: "a check that a library makes itself",
        target: "reason namespace",
        flavors: &[],
        causes: &[
            "A system library found itself used wrongly and said so without ending the process at once.",
        ],
        next: &["Read the message; the innermost frames show which library it was."],
    },
    GuardType {
        number: 4,
        name: "GUARD_TYPE_VN",
        guarded: "a file",
        target: "process id",
        flavors: &VNODE,
        causes: &[
            "A file in use, often a live SQLite database, was moved, deleted or written by somebody who does not own it.",
        ],
        next: &[
            "Close the database before its files are moved or deleted; use the database's own backup functions.",
        ],
    },
    GuardType {
        number: 5,
        name: "GUARD_TYPE_VIRT_MEMORY",
        guarded: "memory",
        target: "unused",
        flavors: &MEMORY,
        causes: &["Memory was unmapped twice, or with a size larger than what was mapped."],
        next: &["Look for vm_deallocate or munmap in the innermost frames and check address and size."],
    },
    GuardType {
        number: 6,
        name: "GUARD_TYPE_REJECTED_SC",
        guarded: "system calls that a filter forbids",
        target: "Mach trap",
        flavors: &[],
        causes: &["The process made a system call that its sandbox forbids."],
        next: &["See in the innermost frames which call it was."],
    },
];

/// The guard value by which Apple's SQLite marks the descriptors of its databases.
pub(crate) const SQLITE_GUARD: u64 = 0x08fd_4dbf_ade2_dead;
