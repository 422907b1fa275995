//! The file's layout, for who writes it and who reads it: `docs/crash-file.md`.

/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"BTCRASH\n";
/// Raised where an old reader would misread what it knows. What is added does not raise it.
pub const VERSION: u32 = 1;
/// Magic, version, machine.
pub const HEADER_BYTES: usize = 16;
/// Kind, size, checksum.
pub const SECTION_HEADER_BYTES: usize = 12;
/// The largest content of a section: larger ones are taken for damage.
pub const MAX_SECTION: usize = 64 << 10;

/// ELF's number of the machine, `e_machine`.
pub const EM_X86_64: u32 = 62;
/// See [`EM_X86_64`].
pub const EM_AARCH64: u32 = 183;

/// What a section holds. Readers skip those that they do not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[repr(u32)]
pub enum Kind {
    /// The file is whole.
    End = 1,
    /// What happened, to which thread.
    Crash = 2,
    /// The program's path.
    Program = 3,
    /// The operating system in words.
    System = 4,
    /// A thread with its registers.
    Thread = 5,
    /// Some memory.
    Memory = 6,
    /// An image.
    Image = 7,
    /// Some of `/proc/self/maps`.
    Maps = 8,
    /// A note of the program: key and value.
    Note = 9,
    /// A breadcrumb of the program: when, and its text.
    Breadcrumb = 10,
    /// What a library or runtime said before it ended the process.
    Message = 11,
    /// A limit of the process.
    Limit = 12,
    /// An open file.
    OpenFile = 13,
    /// How many open files there were.
    OpenFiles = 14,
    /// What is missing, and why.
    Missing = 15,
    /// A thread's frames, as the handler walked them.
    Frames = 16,
    /// The C++ exception that nobody caught: its type, and what it says.
    Exception = 17,
    /// What happened where it is no crash.
    Event = 18,
    /// Threads of the handler's own, which are no part of a file that a watcher writes for it.
    Own = 19,
    /// The exception of Apple's kernel that the crash was: kind, code, subcode.
    MachException = 20,
    /// The exception of Objective-C that nobody caught: its name, its reason, where it was thrown.
    NsException = 21,
}

/// What happened where it is no crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The first thread has not run for so many milliseconds.
    Hang(u64),
    /// This thread ends the process with this exit code.
    Exit {
        /// Its id.
        thread: u32,
        /// The exit code.
        code: u64,
    },
}

/// The numbers of [`Event`]s in the file.
pub const EVENT_HANG: u8 = 1;
/// See [`EVENT_HANG`].
pub const EVENT_EXIT: u8 = 2;

/// Who said a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MessageKind {
    /// The C library, before it aborts.
    Abort,
    /// Rust's panic.
    Panic,
    /// Somebody whom this reader does not know.
    Other,
}

impl MessageKind {
    /// The number that stands in the file.
    pub fn number(self) -> u8 {
        match self {
            Self::Other => 0,
            Self::Abort => 1,
            Self::Panic => 2,
        }
    }

    pub(super) fn of(number: u8) -> Self {
        match number {
            1 => Self::Abort,
            2 => Self::Panic,
            _ => Self::Other,
        }
    }
}

/// In the place of the milliseconds since the handler was installed: there was none, the file was written from outside.
pub const NO_UPTIME: u64 = u64::MAX;
/// Whether a frame's address is that of the instruction, or one that is returned to.
pub const FRAME_RETURNS: u8 = 1;
/// In a thread's flags: it crashed.
pub const THREAD_CRASHED: u8 = 1;
/// In an image's flags: it is the program.
pub const IMAGE_PROGRAM: u8 = 1;
/// In an image's flags: its identity is the UUID of a Mach-O file, and no build id.
pub const IMAGE_UUID: u8 = 2;
/// In an image's flags: it was found when the crash was written, and is there in the place of those that it overlaps.
pub const IMAGE_NEWER: u8 = 4;

/// The whole sections of a file, with their kinds: the bytes of each, and its content. Ends where it is damaged.
pub fn sections(file: &[u8]) -> impl Iterator<Item = (u32, &[u8], &[u8])> {
    let mut rest = file.get(HEADER_BYTES..).unwrap_or_default();
    std::iter::from_fn(move || {
        let number = |at: usize| rest.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
        let (kind, size, sum) = (number(0)?, number(4)?, number(8)?);
        let size_here = usize::try_from(size).ok().filter(|size| *size <= MAX_SECTION)?;
        let (whole, left) = rest.split_at_checked(SECTION_HEADER_BYTES + size_here)?;
        let content = whole.get(SECTION_HEADER_BYTES..)?;
        rest = left;
        (checksum(kind, size, content) == sum).then_some((kind, whole, content))
    })
}

/// The checksum of a section: CRC-32 (that of zip and PNG) of kind, size and content.
pub fn checksum(kind: u32, size: u32, content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&kind.to_le_bytes());
    hasher.update(&size.to_le_bytes());
    hasher.update(content);
    hasher.finalize()
}
