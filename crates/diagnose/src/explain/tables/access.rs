//! Codes of EXC_BAD_ACCESS, and the words other reporters write for the same.
//!
//! Sources: XNU `osfmk/mach/kern_return.h`, `osfmk/mach/arm/exception.h`, `osfmk/mach/i386/exception.h`,
//! `bsd/sys/signal.h`.

/// In what way an access failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// Nothing is mapped there.
    Unmapped,
    /// Something is mapped, and its protection forbids the access.
    Protected,
    /// The address is not a multiple of what the instruction needs.
    Misaligned,
    /// x86's general protection fault.
    GeneralProtection,
    /// The contents could not be brought in.
    Pager,
    /// The page's signature was refused.
    CodeSigning,
    /// A pointer's authentication failed.
    PointerAuthentication,
    /// Memory tagging refused the pointer.
    Tag,
    /// Anything else.
    Other,
}

/// A code with its meaning.
#[derive(Debug)]
pub(crate) struct AccessCode {
    /// The number; `None` for words that other reporters write.
    pub(crate) code: Option<u64>,
    /// The name in reports.
    pub(crate) name: &'static str,
    /// In what way the access failed.
    pub(crate) failure: Failure,
    /// What it means, as a clause after "the kernel says that".
    pub(crate) meaning: &'static str,
}

const fn mach(code: u64, name: &'static str, failure: Failure, meaning: &'static str) -> AccessCode {
    AccessCode { code: Some(code), name, failure, meaning }
}

const fn word(name: &'static str, failure: Failure, meaning: &'static str) -> AccessCode {
    AccessCode { code: None, name, failure, meaning }
}

/// The codes that the kernel gives, then the words of reporters that know the signal only.
pub(crate) static ACCESS_CODES: [AccessCode; 22] = [
    mach(1, "KERN_INVALID_ADDRESS", Failure::Unmapped, "nothing is mapped at the address"),
    mach(
        2,
        "KERN_PROTECTION_FAILURE",
        Failure::Protected,
        "memory is mapped at the address, but this access to it is not allowed",
    ),
    mach(10, "KERN_MEMORY_ERROR", Failure::Pager, "the contents of the page could not be brought in"),
    mach(
        13,
        "EXC_I386_GPFLT",
        Failure::GeneralProtection,
        "the processor refused the instruction (general protection fault)",
    ),
    mach(
        50,
        "KERN_CODESIGN_ERROR",
        Failure::CodeSigning,
        "the page's code signature does not fit its contents",
    ),
    mach(
        0x101,
        "EXC_ARM_DA_ALIGN",
        Failure::Misaligned,
        "the address is not aligned as the instruction needs it",
    ),
    mach(0x102, "EXC_ARM_DA_DEBUG", Failure::Other, "a watchpoint or breakpoint register was hit"),
    mach(0x103, "EXC_ARM_SP_ALIGN", Failure::Misaligned, "the stack pointer is not aligned to 16 bytes"),
    mach(0x104, "EXC_ARM_SWP", Failure::Other, "the obsolete SWP instruction was used"),
    mach(0x105, "EXC_ARM_PAC_FAIL", Failure::PointerAuthentication, "a pointer's authentication failed"),
    mach(0x106, "EXC_ARM_MTE_TAGCHECK_FAIL", Failure::Tag, "the pointer's tag is not that of the memory"),
    mach(
        0x107,
        "EXC_ARM_MTE_CANONICAL_FAIL",
        Failure::Tag,
        "a tagged pointer was used for memory that has no tags",
    ),
    // How Apple's own tools print KERN_CODESIGN_ERROR (50) where they have no name for it.
    word("UNKNOWN_0x32", Failure::CodeSigning, "the page's code signature does not fit its contents"),
    word("SEGV_MAPERR", Failure::Unmapped, "nothing is mapped at the address"),
    word(
        "SEGV_ACCERR",
        Failure::Protected,
        "the access is not allowed (Apple's kernels write this for unmapped addresses too)",
    ),
    word("SEGV_NOOP", Failure::Other, "the kernel gave no detail"),
    word(
        "BUS_ADRALN",
        Failure::Other,
        "the address is misaligned (Apple's kernels write this for nearly every SIGBUS)",
    ),
    word("BUS_ADRERR", Failure::Pager, "no memory could be found for the address"),
    word("BUS_OBJERR", Failure::Pager, "the mapped file or device failed"),
    word("BUS_NOOP", Failure::Other, "the kernel gave no detail"),
    word("KERN_ABORTED", Failure::Other, "the access was abandoned"),
    word("KERN_FAILURE", Failure::Other, "the access failed without a detail"),
];

/// What Linux's kernel says where it means more, or less, than the same words elsewhere. arch/x86/kernel/traps.c, `exc_general_protection`,
/// `exc_stack_segment`, `exc_alignment_check`.
pub(crate) static LINUX_CODES: [AccessCode; 1] = [word(
    "SEGV_ACCERR",
    Failure::Protected,
    "memory is mapped at the address, but this access to it is not allowed",
)];
/// The same of x86, which does not tell the address then.
pub(crate) static LINUX_X86_CODES: [AccessCode; 2] = [
    word(
        "SI_KERNEL",
        Failure::GeneralProtection,
        "the processor refused the instruction (general protection fault)",
    ),
    word("BUS_ADRALN", Failure::Misaligned, "the address is misaligned, and the flag AC of x86 forbids that"),
];

/// Set in the code where pointer authentication may be the reason (`EXC_PTRAUTH_BIT`).
pub(crate) const PTRAUTH_BIT: u64 = 0x200;

/// The code of that number.
pub(crate) fn by_number(code: u64) -> Option<&'static AccessCode> {
    ACCESS_CODES.iter().find(|known| known.code == Some(code))
}

/// The code that `text` names.
pub(crate) fn by_name(text: &str) -> Option<&'static AccessCode> {
    ACCESS_CODES.iter().find(|known| text.contains(known.name))
}

/// A value that memory is filled with on purpose.
pub(crate) struct Fill {
    /// The byte that fills it, or the word's lowest byte where the pattern is a word.
    pub(crate) word: u32,
    /// What such memory is.
    pub(crate) meaning: &'static str,
    /// Whether the value says that the memory was freed (true), or never set (false).
    pub(crate) is_freed: Option<bool>,
}

/// Values that tell what became of memory; the whole pointer repeats the word.
pub(crate) static FILLS: [Fill; 8] = [
    Fill {
        word: 0x5555_5555,
        meaning: "freed memory: MallocScribble fills it with 0x55",
        is_freed: Some(true),
    },
    Fill {
        word: 0xaaaa_aaaa,
        meaning: "memory that was allocated and never set: MallocPreScribble fills it with 0xaa",
        is_freed: Some(false),
    },
    Fill { word: 0xdead_beef, meaning: "memory that somebody marked as dead", is_freed: Some(true) },
    Fill { word: 0xbbad_beef, meaning: "WebKit's mark for a failed check", is_freed: None },
    Fill { word: 0xbaad_f00d, meaning: "memory that was allocated and never set", is_freed: Some(false) },
    Fill {
        word: 0xcccc_cccc,
        meaning: "memory that was never set, as some compilers and tools fill it",
        is_freed: Some(false),
    },
    Fill {
        word: 0xa5a5_a5a5,
        meaning: "memory that was filled with the byte 0xa5, as some allocators and tests do",
        is_freed: None,
    },
    Fill {
        word: 0xffff_ffff,
        meaning: "a value with all bits set, often an error code taken for a pointer",
        is_freed: None,
    },
];
