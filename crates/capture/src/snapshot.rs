//! The facts of one moment.

use crate::{Mapping, Memory};
use backtrail_core::{AddrRange, Arch, Avma, Bias, ImageId, Registers};

/// A process at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot<'d> {
    /// What it was read from.
    pub source: Source,
    /// The architecture of its code.
    pub arch: Arch,
    /// Which process it is.
    pub process: Process,
    /// What stopped it, where something did.
    pub fault: Option<Fault>,
    /// Its threads, in the capture's order.
    pub threads: Vec<Thread>,
    /// Its images, by address.
    pub images: Vec<MappedImage>,
    /// Everything that is known to have been mapped, by address; anonymous memory has an empty name.
    pub mappings: Vec<Mapping>,
    /// The memory that was saved.
    pub memory: Memory<'d>,
    /// Bits of a code address that hold a pointer authentication code, where the capture says so.
    pub pointer_authentication: Option<u64>,
    /// What is missing or odd, one sentence each.
    pub notes: Vec<String>,
}

impl Snapshot<'_> {
    /// One of which nothing more is known yet.
    pub fn new(source: Source, arch: Arch) -> Self {
        Self {
            source,
            arch,
            process: Process::default(),
            fault: None,
            threads: Vec::new(),
            images: Vec::new(),
            mappings: Vec::new(),
            memory: Memory::default(),
            pointer_authentication: None,
            notes: Vec::new(),
        }
    }
}

/// What a snapshot was read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Source {
    /// A saved stack in libunwindstack's layout.
    Offline,
    /// An ELF core.
    ElfCore,
    /// A minidump.
    Minidump,
    /// What a process's own crash handler wrote.
    CrashFile,
    /// A process that runs.
    Process,
}

/// Which process a snapshot is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its process id.
    pub pid: Option<u64>,
    /// Its name; kernels cut it to 15 bytes.
    pub name: Option<String>,
    /// The path of its executable.
    pub executable: Option<String>,
    /// Its command line; kernels cut it to 80 bytes in cores.
    pub command_line: Option<String>,
    /// The operating system, where the capture says so.
    pub os: Option<String>,
    /// When the capture was made, where it says so: seconds since 1970.
    pub time: Option<u64>,
}

/// What stopped a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// The signal or exception by name: `SIGSEGV`, `EXCEPTION_ACCESS_VIOLATION_WRITE`.
    pub name: String,
    /// Its number: the signal on Linux, the exception code on Windows.
    pub number: u64,
    /// What it was for, by name where there is one: `SEGV_MAPERR`.
    pub code: Option<String>,
    /// The address whose access failed, or the instruction that did.
    pub address: Option<Avma>,
    /// The id of the process that sent the signal, where one did and the capture says which.
    pub sender: Option<u64>,
}

/// One thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// The kernel's thread id.
    pub id: Option<u64>,
    /// Its name.
    pub name: Option<String>,
    /// Its registers; without any where the capture has none for it.
    pub registers: Registers,
    /// Whether the capture blames it.
    pub is_crashed: bool,
    /// What the capture says of its state, in words.
    pub state: Option<String>,
    /// Where its thread-local storage is counted from, where the capture says so (x86_64: the base of `fs`; aarch64: `tpidr_el0`).
    pub thread_pointer: Option<Avma>,
}

/// One mapped binary as far as the capture knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedImage {
    /// Its path in the process; a name in brackets for what the kernel supplies (`[vdso]`).
    pub path: String,
    /// Its identity.
    pub id: Option<ImageId>,
    /// Its debug file's name, where the capture says so (PDB).
    pub debug_file: Option<String>,
    /// From its first mapped byte to behind its last.
    pub range: Option<AddrRange<Avma>>,
    /// Bias, where the capture tells it: a loader's list, the auxiliary vector, headers in memory.
    pub bias: Option<Bias>,
    /// Where in its file the image begins: not zero for libraries inside of an archive.
    pub file_offset: u64,
    /// Whether it is the program itself.
    pub is_executable: bool,
    /// Whether its headers were read from memory, so that its identity is that of what really ran.
    pub is_from_memory: bool,
}

impl MappedImage {
    /// The last part of its path.
    pub fn name(&self) -> &str {
        let path = self.path.trim_end_matches(['/', '\\']);
        path.rsplit(['/', '\\']).next().unwrap_or(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_last_part_of_either_kind_of_path() {
        for (path, name) in [
            ("/usr/lib/libc.so.6", "libc.so.6"),
            (r"C:\Windows\ntdll.dll", "ntdll.dll"),
            ("[vdso]", "[vdso]"),
        ] {
            assert_eq!(MappedImage { path: path.to_owned(), ..MappedImage::default() }.name(), name);
        }
    }
}
