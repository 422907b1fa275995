//! The process that is captured, as `/proc` shows it.

use super::denied::Situation;
use super::error::Error;
use super::maps::{MappedFile, Maps};
use super::memory::LiveMemory;
use crate::Limits;
use crate::ThreadState;
use crate::bytes::u16_at;
use crate::procfs::{Stat, Status, parse_id};
use backtrail_core::Arch;
use backtrail_sys::linux::Directory;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A process that can be captured.
#[derive(Debug)]
pub struct Target {
    process: u32,
    /// A thread that has not ended: the first one may have, and its memory and files are then gone from `/proc`.
    living: u32,
    arch: Arch,
    status: Status,
    /// `/proc/PID/task`.
    tasks: Directory,
}

impl Target {
    /// Finds a process by its id, or that of one of its threads.
    ///
    /// # Errors
    /// Where there is none, it has ended, or is the kernel's or the caller's own.
    pub fn open(id: u32) -> Result<Self, Error> {
        let status = fs::read(format!("/proc/{id}/status")).map_err(|error| missing(id, error))?;
        let status = Status::parse(&status);
        let process = status.process.unwrap_or(id);
        if process == std::process::id() {
            return Err(Error::OwnProcess(process));
        }
        let stat = |thread: u32| small_file(&path(thread, "stat")).and_then(|line| Stat::parse(&line));
        let first = stat(process).ok_or(Error::NoSuchProcess(process))?;
        if first.is_kernel_thread || status.is_kernel_thread == Some(true) {
            return Err(Error::KernelThread { process, name: first.name });
        }
        let tasks = Directory::open(&path(process, "task")).map_err(|error| missing(process, error))?;
        let mut target = Self { process, living: process, arch: Arch::Unknown, status, tasks };
        if first.state.is_gone() {
            let living = target
                .thread_ids()?
                .into_iter()
                .find(|id| *id != process && stat(*id).is_some_and(|stat| !stat.state.is_gone()));
            let (name, parent) = (first.name, first.parent);
            target.living = living.ok_or(Error::Zombie { process, name, parent })?;
        }
        target.arch = target.arch_of_program().unwrap_or(Arch::HOST);
        Ok(target)
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.process
    }

    /// Its id in the innermost namespace of processes that it is in, or else [`id`](Self::id): what its own files name it
    /// by.
    pub fn own_id(&self) -> u32 {
        self.status.inner_id().unwrap_or(self.process)
    }

    /// The architecture of its program.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The directory that is `/` to it.
    pub fn root(&self) -> PathBuf {
        self.file("root")
    }

    /// A path of its, as this process can open it. Its root may be another, and so may what is mounted there.
    pub fn path(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix("/").unwrap_or(path);
        self.root().join(below)
    }

    /// Its memory.
    pub fn memory(&self) -> LiveMemory {
        LiveMemory::new(self.living)
    }

    /// Paths that lead to the very file that is mapped in a range, the surest first, and whether one is to be believed
    /// without comparing [`MappedFile::is`].
    pub fn paths_of(&self, name: &str, file: Option<&MappedFile>, is_program: bool) -> Vec<(PathBuf, bool)> {
        let mut paths = Vec::new();
        if let Some(file) = file {
            // Needs CAP_CHECKPOINT_RESTORE, and leads to files that were deleted or never had a name.
            let name = format!("map_files/{:x}-{:x}", file.range.start().get(), file.range.end().get());
            paths.push((self.file(&name), true));
        }
        if is_program {
            paths.push((self.file("exe"), true));
        }
        if name.starts_with('/') {
            paths.push((self.path(Path::new(name)), false));
        }
        paths
    }

    /// What is mapped now.
    ///
    /// # Errors
    /// Where the caller may not know, or the process has ended.
    pub fn maps(&self, limits: &Limits) -> Result<Maps, Error> {
        let text = fs::read(self.file("maps")).map_err(|error| self.refused(error))?;
        if text.is_empty() {
            return Err(Error::NoSuchProcess(self.process));
        }
        Ok(Maps::parse(&text, limits.mappings))
    }

    /// The ids of its threads now.
    ///
    /// # Errors
    /// Where the process has ended.
    pub fn thread_ids(&self) -> Result<Vec<u32>, Error> {
        let entries =
            fs::read_dir(path(self.process, "task")).map_err(|error| missing(self.process, error))?;
        Ok(entries.flatten().filter_map(|entry| parse_id(entry.file_name().as_encoded_bytes())).collect())
    }

    /// How many threads it has by the kernel's count, which is quicker than listing them. All stand still when it is asked for:
    /// the links of the directory are counted at once, while for `stat` the kernel adds up the times of all threads.
    pub(super) fn thread_count(&self) -> Option<u64> {
        /// Those that a directory has anyway.
        const OWN_LINKS: u64 = 2;
        let links = fs::metadata(path(self.process, "task")).ok()?.nlink();
        let by_links = links.checked_sub(OWN_LINKS).filter(|count| *count > 0);
        by_links.or_else(|| Some(Stat::parse(&small_file(&path(self.process, "stat"))?)?.threads))
    }

    /// What `parse` makes of a file of one of the threads.
    pub(super) fn of_thread<T>(
        &self,
        id: u32,
        name: &str,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Option<T> {
        let (mut path, mut bytes) = ([0; 32], [0; SMALL]);
        write!(&mut path[..], "{id}/{name}\0").ok()?;
        let size = self.tasks.read(CStr::from_bytes_until_nul(&path).ok()?, &mut bytes).ok()?;
        parse(bytes.get(..size)?)
    }

    /// Asked for only where the process is in a namespace of its own.
    pub(super) fn inner_id_of(&self, id: u32) -> Option<u32> {
        self.status.inner_id()?;
        self.of_thread(id, "status", |text| Status::parse(text).inner_id())
    }

    /// What a file descriptor of it leads to.
    pub(super) fn file_behind(&self, descriptor: u64) -> Option<String> {
        let link = fs::read_link(self.file(&format!("fd/{descriptor}"))).ok()?;
        Some(link.to_string_lossy().into_owned())
    }

    /// How many files it has open, where that may be asked, and the first of them: their numbers and what they lead to.
    pub fn open_files(&self, most: usize) -> (Option<u32>, Vec<(u32, String)>) {
        let Ok(entries) = fs::read_dir(self.file("fd")) else { return (None, Vec::new()) };
        let number = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        let mut numbers: Vec<u32> = entries.filter_map(number).collect();
        numbers.sort_unstable();
        let first = numbers.iter().take(most);
        let named = first.filter_map(|number| Some((*number, self.file_behind((*number).into())?)));
        (u32::try_from(numbers.len()).ok(), named.collect())
    }

    /// Its limits: the number of the resource (`RLIMIT_…`), soft, hard; `u64::MAX` stands for none. Stack, core, processes, open
    /// files, address space. proc(5).
    pub fn resource_limits(&self) -> Vec<(u32, u64, u64)> {
        const RESOURCES: [(&str, u32); 5] = [
            ("Max stack size", 3),
            ("Max core file size", 4),
            ("Max processes", 6),
            ("Max open files", 7),
            ("Max address space", 9),
        ];
        let text = small_file(&self.file("limits")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let value = |word: &str| if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() };
        let limit = |line: &str| {
            let (name, number) = RESOURCES.iter().find(|(name, _)| line.starts_with(name))?;
            let mut words = line.get(name.len()..)?.split_ascii_whitespace();
            Some((*number, value(words.next()?)?, value(words.next()?)?))
        };
        text.lines().filter_map(limit).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        path(self.living, name)
    }

    /// Its name.
    pub fn name(&self) -> Option<String> {
        let name = small_file(&path(self.process, "comm"))?;
        Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
    }

    /// The path of its program, as it had it.
    pub fn executable(&self) -> Option<String> {
        let link = fs::read_link(self.file("exe")).ok()?;
        let link = link.to_string_lossy();
        Some(link.strip_suffix(" (deleted)").unwrap_or(&link).to_owned())
    }

    /// Its command line, arguments joined by spaces.
    pub fn command_line(&self) -> Option<String> {
        let line = fs::read(self.file("cmdline")).ok()?;
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let joined = words.join(" ").trim_end().to_owned();
        (!joined.is_empty()).then_some(joined)
    }

    /// What the kernel told the program at its start.
    pub(super) fn auxiliary_vector(&self) -> Vec<u8> {
        fs::read(self.file("auxv")).unwrap_or_default()
    }

    fn arch_of_program(&self) -> Option<Arch> {
        let mut header = [0; 20];
        File::open(self.file("exe")).ok()?.read_exact(&mut header).ok()?;
        crate::elf_core::header::arch_of(u16_at(&header, 18)?, header.get(4) == Some(&2))
    }

    fn refused(&self, error: io::Error) -> Error {
        match error.kind() {
            ErrorKind::PermissionDenied => Error::Denied(self.process, self.why_denied()),
            ErrorKind::NotFound => Error::NoSuchProcess(self.process),
            _ => Error::Unreadable(self.process, error),
        }
    }

    /// Which setting or capability is in the way.
    pub(super) fn why_denied(&self) -> String {
        let own = fs::read("/proc/self/status").unwrap_or_default();
        let filtered = own.split(|byte| *byte == b'\n').any(|line| line == b"Seccomp:\t2");
        let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
        // The directory itself always belongs to the process's user.
        let owner = fs::metadata(path(self.process, "stat")).ok().map(|metadata| metadata.uid());
        let situation = Situation {
            caller: Status::parse(&own),
            is_undumpable: owner.is_some() && owner != self.status.users.get(1).copied(),
            target: self.status.clone(),
            yama: yama.and_then(|text| text.trim().parse().ok()),
            is_filtered: filtered,
        };
        situation.explain()
    }

    /// Who traces a thread.
    pub(super) fn tracer_of(&self, id: u32) -> Option<u32> {
        self.of_thread(id, "status", |text| Some(Status::parse(text).tracer)).filter(|tracer| *tracer != 0)
    }

    /// The kernel's function that a thread sleeps in; `None` where it does not sleep, or the kernel does not tell.
    pub(super) fn wait_channel(&self, id: u32) -> Option<String> {
        let text = |text: &[u8]| Some(String::from_utf8_lossy(text).trim().to_owned());
        self.of_thread(id, "wchan", text).filter(|place| !matches!(place.as_str(), "" | "0"))
    }

    /// What a thread is doing now.
    pub(super) fn state_of(&self, id: u32) -> Option<ThreadState> {
        self.of_thread(id, "stat", Stat::parse).map(|stat| stat.state)
    }
}

fn path(id: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{id}/{name}"))
}

fn missing(id: u32, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::NoSuchProcess(id),
        // ESRCH: it ended between opening and reading.
        _ if error.raw_os_error() == Some(3) => Error::NoSuchProcess(id),
        _ => Error::Unreadable(id, error),
    }
}

/// ` (name)` of a process, or nothing.
pub(super) fn called(id: u32) -> String {
    let name = small_file(&path(id, "comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name).trim_end().to_owned();
    if name.is_empty() { name } else { format!(" ({name})") }
}

/// The kernel's name and release.
pub(super) fn kernel() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(format!("Linux {}", release.trim()))
}

/// Files of one thread: their lines are short, and one read gives all.
const SMALL: usize = 4096;

/// A file of the kernel's that fits into a page.
pub(super) fn small_file(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = vec![0; SMALL];
    let size = File::open(path).ok()?.read(&mut bytes).ok()?;
    bytes.truncate(size);
    Some(bytes)
}
