//! Files by system calls alone: for signal handlers, and for threads that must not allocate or lock.

use super::kept::open_proc;
use super::{OsError, threads};
use std::ffi::{CStr, CString, c_void};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering::SeqCst};
use std::time::Instant;

/// A file, or none: one that a thread opens and another may close in need.
#[derive(Debug)]
pub struct RawFile {
    file: AtomicI32,
    /// The kernel's number of the first write that failed, or zero.
    failed: AtomicI32,
}

impl RawFile {
    /// None.
    pub const fn none() -> Self {
        Self { file: AtomicI32::new(-1), failed: AtomicI32::new(0) }
    }

    /// Creates a file in a directory that is open; only its owner can read it, and one that is there is an error. All methods are safe in
    /// a signal handler.
    pub(super) fn create(&self, directory: libc::c_int, name: &CStr) -> Result<(), OsError> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the name is a C string.
        let file = unsafe { libc::openat(directory, name.as_ptr(), flags, 0o600) };
        if file < 0 {
            return Err(OsError::last("open"));
        }
        self.failed.store(0, SeqCst);
        self.file.store(file, SeqCst);
        Ok(())
    }

    /// Writes all of it. Where that fails a part of it is written, and nothing from then on: what came later, where a full disk has
    /// room again, would stand in the place of the rest.
    ///
    /// # Errors
    /// The kernel's, of this call or an earlier one.
    pub fn write(&self, bytes: &[u8]) -> Result<(), OsError> {
        match self.failed.load(SeqCst) {
            0 => self.write_all(bytes).inspect_err(|error| self.failed.store(error.number, SeqCst)),
            number => Err(OsError { call: "write", number }),
        }
    }

    fn write_all(&self, mut bytes: &[u8]) -> Result<(), OsError> {
        while !bytes.is_empty() {
            // SAFETY: the pointer and the size are those of `bytes`.
            let size =
                unsafe { libc::write(self.file.load(SeqCst), bytes.as_ptr().cast::<c_void>(), bytes.len()) };
            match usize::try_from(size) {
                Ok(0) => return Err(OsError { call: "write", number: libc::EIO }),
                Ok(size) => bytes = bytes.get(size..).unwrap_or_default(),
                Err(_) if OsError::last("write").number == libc::EINTR => {}
                Err(_) if OsError::last("write").number == libc::ENOSPC && give_back() => {}
                Err(_) => return Err(OsError::last("write")),
            }
        }
        Ok(())
    }

    /// Waits until the disk has what was written, and closes it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn finish(&self) -> Result<(), OsError> {
        let file = self.file.swap(-1, SeqCst);
        // SAFETY: the file is ours; after the swap nobody else closes it.
        unsafe {
            let answer = libc::fsync(file);
            let error = OsError::last("fsync");
            libc::close(file);
            if answer == 0 { Ok(()) } else { Err(error) }
        }
    }

    /// Has it be a file that is open already, until [`RawFile::release`]: a socket, say.
    pub fn borrow(&self, file: BorrowedFd<'static>) {
        self.failed.store(0, SeqCst);
        self.file.store(file.as_raw_fd(), SeqCst);
    }

    /// Lets go of a file that was borrowed. It stays open. Says whether all that was written went out.
    pub fn release(&self) -> bool {
        self.file.store(-1, SeqCst);
        self.failed.load(SeqCst) == 0
    }

    /// Whether it is the file with this number.
    pub fn is(&self, number: u32) -> bool {
        u32::try_from(self.file.load(SeqCst)).is_ok_and(|own| own == number)
    }

    /// Whether there is a file.
    pub fn is_open(&self) -> bool {
        self.file.load(SeqCst) >= 0
    }

    /// Closes it: it is not wanted any more.
    pub fn close(&self) {
        // SAFETY: the file is ours; after the swap nobody else closes it.
        unsafe { libc::close(self.file.swap(-1, SeqCst)) };
    }
}

/// The path of the file that [`set_aside`] made. Never freed: who writes may be looking.
static SET_ASIDE: AtomicPtr<libc::c_char> = AtomicPtr::new(std::ptr::null_mut());

/// Takes room on the disk, by a file of so many bytes. The first write of a [`RawFile`] that finds the disk full gives it back, once. Not
/// for signal handlers.
///
/// # Errors
/// The kernel's; no file is left then.
pub fn set_aside(path: CString, size: u64) -> Result<(), OsError> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    let size = libc::off_t::try_from(size).unwrap_or(libc::off_t::MAX);
    // SAFETY: the path is a C string; the file is closed as it was opened.
    unsafe {
        let file = libc::open(path.as_ptr(), flags, 0o600);
        if file < 0 {
            return Err(OsError::last("open"));
        }
        let number = libc::posix_fallocate(file, 0, size);
        libc::close(file);
        if number != 0 {
            libc::unlink(path.as_ptr());
            return Err(OsError { call: "posix_fallocate", number });
        }
    }
    SET_ASIDE.store(path.into_raw(), SeqCst);
    Ok(())
}

/// Gives back what was set aside; says whether there was something. Safe in a signal handler.
fn give_back() -> bool {
    let path = SET_ASIDE.swap(std::ptr::null_mut(), SeqCst);
    // SAFETY: the path is a C string that is never freed.
    !path.is_null() && unsafe { libc::unlink(path) } == 0
}

fn pause() {
    let millisecond = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // SAFETY: the pointers are valid or null.
    unsafe { libc::nanosleep(&raw const millisecond, std::ptr::null_mut()) };
}

/// One byte that comes in at a socket before the deadline; `None` where it is closed, or nothing comes.
///
/// # Signal safety
///
/// Safe.
pub fn byte_from(file: BorrowedFd<'_>, deadline: Instant) -> Option<u8> {
    let number = file.as_raw_fd();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut wanted = libc::pollfd { fd: number, events: libc::POLLIN, revents: 0 };
        let milliseconds = libc::c_int::try_from(left.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: the pointer is one to one structure.
        match unsafe { libc::poll(&raw mut wanted, 1, milliseconds) } {
            0 => return None,
            -1 if OsError::last("poll").number == libc::EINTR => continue,
            // Where a process may have no file, it may wait for none either, but for those that it has.
            -1 if OsError::last("poll").number == libc::EINVAL && !left.is_zero() => pause(),
            -1 => return None,
            _ => {}
        }
        let mut byte = 0_u8;
        // SAFETY: the pointer is one to one byte.
        match unsafe { libc::recv(number, (&raw mut byte).cast::<c_void>(), 1, libc::MSG_DONTWAIT) } {
            1 => return Some(byte),
            -1 if matches!(OsError::last("read").number, libc::EINTR | libc::EAGAIN) => {}
            _ => return None,
        }
    }
}

/// The process that made a pair of sockets, to be asked whether it has ended; `None` where the kernel is older than 5.3, or it has ended
/// already. unix(7), pidfd_open(2). Not for signal handlers.
pub fn maker_of(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut maker = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    // SAFETY: the pointers are to a structure and its size.
    let answer = unsafe {
        let maker = (&raw mut maker).cast::<c_void>();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, maker, &raw mut size)
    };
    if answer != 0 || maker.pid <= 0 {
        return None;
    }
    // SAFETY: takes numbers only.
    let file = unsafe { libc::syscall(libc::SYS_pidfd_open, maker.pid, 0) };
    let file = libc::c_int::try_from(file).ok().filter(|file| *file >= 0)?;
    // SAFETY: the file was opened for us.
    Some(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Waits until a socket can be read, which it can also be when nobody has its other end any more: `true`; or until the process has
/// ended and there is nothing to read: `false`. Not for signal handlers.
///
/// # Errors
/// The kernel's.
pub fn can_read(socket: BorrowedFd<'_>, process: Option<&OwnedFd>) -> Result<bool, OsError> {
    loop {
        let wanted =
            |file: BorrowedFd<'_>| libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // The kernel passes over a number below 0.
        let none = libc::pollfd { fd: -1, events: 0, revents: 0 };
        let mut files = [wanted(socket), process.map_or(none, |process| wanted(process.as_fd()))];
        // SAFETY: the pointer is to two structures.
        if unsafe { libc::poll(files.as_mut_ptr(), 2, -1) } < 0 {
            match OsError::last("poll") {
                error if error.number == libc::EINTR => continue,
                error => return Err(error),
            }
        }
        let [socket, process] = files.map(|file| file.revents != 0);
        if socket || process {
            return Ok(socket);
        }
    }
}

/// Lets another process follow this one, where only ancestors may otherwise: `kernel.yama.ptrace_scope`, prctl(2). Where there is no
/// such rule, nothing is done.
pub fn let_trace(process: u32) {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(process)) };
}

/// Reads the beginning of a file below `/proc`, as far as `into` has room; says how many bytes that was.
///
/// # Errors
/// The kernel's.
///
/// # Signal safety
///
/// Safe.
pub fn read_proc(path: &CStr, into: &mut [u8]) -> Result<usize, OsError> {
    let file = open_proc(path, 0)?;
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        // SAFETY: the pointer and the size are those of `rest`.
        let size = unsafe { libc::read(file, rest.as_mut_ptr().cast::<c_void>(), rest.len()) };
        match usize::try_from(size) {
            Ok(size) if size > 0 => done += size,
            _ => break,
        }
    }
    // SAFETY: opened above.
    unsafe { libc::close(file) };
    Ok(done)
}

/// The numbers of this process's open files, with what each leads to: a path, or a kind (`socket:[1]`). Allocates nothing.
///
/// # Errors
/// Where `/proc` is not there.
///
/// # Signal safety
///
/// Safe.
pub fn open_files(mut each: impl FnMut(u32, &[u8])) -> Result<(), OsError> {
    let directory = open_proc(c"/proc/self/fd", libc::O_DIRECTORY)?;
    let answer = threads::entries(directory, |file| {
        let number = file.get();
        if number == directory.unsigned_abs() {
            return;
        }
        let mut name = [0_u8; 16];
        let digits = decimal(number, &mut name);
        let mut target = [0_u8; 512];
        // SAFETY: the name ends with a zero; the pointer and the size are those of `target`.
        let size =
            unsafe { libc::readlinkat(directory, digits.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
        let size = usize::try_from(size).unwrap_or(0);
        each(number, target.get(..size).unwrap_or_default());
    });
    // SAFETY: opened above.
    unsafe { libc::close(directory) };
    answer
}

/// A number's digits as a C string. Safe in a signal handler.
pub fn decimal(mut number: u32, into: &mut [u8; 16]) -> &CStr {
    let mut at = into.len() - 1;
    into.fill(0);
    loop {
        at -= 1;
        if let Some(place) = into.get_mut(at) {
            *place = b'0' + (number % 10) as u8;
        }
        number /= 10;
        if number == 0 {
            break;
        }
    }
    CStr::from_bytes_until_nul(into.get(at..).unwrap_or_default()).unwrap_or_default()
}

/// Soft and hard limit of a resource (`RLIMIT_…`); `None` where there is no such resource. Safe in a signal handler.
pub fn limit(resource: u32) -> Option<(u64, u64)> {
    let mut limits = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is valid; `prlimit` of process 0 is this one.
    let answer = unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, resource, std::ptr::null::<c_void>(), &raw mut limits)
    };
    (answer == 0).then_some((limits.rlim_cur, limits.rlim_max))
}

/// Where the C library keeps what it says before it aborts: the address of a pointer (glibc's `__abort_msg`). Not for signal
/// handlers.
pub fn abort_message() -> Option<backtrail_core::Avma> {
    // SAFETY: the names are C strings.
    let address =
        unsafe { libc::dlvsym(libc::RTLD_DEFAULT, c"__abort_msg".as_ptr(), c"GLIBC_PRIVATE".as_ptr()) };
    (!address.is_null()).then(|| backtrail_core::Avma::new(address as u64))
}

/// The kernel's name, release and version. Not for signal handlers.
pub fn system() -> String {
    // SAFETY: all zeros is a valid `utsname`; the call fills it in with strings that end.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        if libc::uname(&raw mut name) != 0 {
            return String::new();
        }
        let text = |field: &[libc::c_char]| -> String {
            let bytes =
                field.iter().map(|byte| u8::from_ne_bytes(byte.to_ne_bytes())).take_while(|byte| *byte != 0);
            String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
        };
        format!("{} {} {}", text(&name.sysname), text(&name.release), text(&name.machine))
    }
}

/// Keeps programs that are started from now on from getting this process's files, but for standard input, output and error. Not for
/// signal handlers.
///
/// # Errors
/// Where the list of open files (`/proc/self/fd`) cannot be read.
pub fn keep_files_from_programs() -> std::io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(number) = number.filter(|number| *number > libc::STDERR_FILENO) {
            // SAFETY: this changes a flag of a file, or fails where the number is none any more.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}

/// A path as the kernel wants it.
pub fn c_path(path: &std::path::Path) -> Option<CString> {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(path.as_os_str().as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_digits() {
        for number in [0, 7, 10, 4_294_967_295] {
            assert_eq!(decimal(number, &mut [0; 16]).to_str(), Ok(number.to_string().as_str()));
        }
    }

    #[test]
    fn a_socket_is_told_apart_from_the_end_of_its_process() {
        let (own, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let maker = maker_of(own.as_fd()).unwrap();
        std::io::Write::write_all(&mut &other, b"x").unwrap();
        assert_eq!(can_read(own.as_fd(), Some(&maker)), Ok(true));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        // SAFETY: takes numbers only.
        let ended = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
        // SAFETY: the file was opened for us.
        let ended = unsafe { OwnedFd::from_raw_fd(libc::c_int::try_from(ended).unwrap()) };
        let (silent, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(can_read(silent.as_fd(), Some(&ended)), Ok(false));
        child.wait().unwrap();
        drop(other);
        assert_eq!(can_read(own.as_fd(), None), Ok(true));
    }

    #[test]
    fn programs_get_no_files_of_this_process() {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        // SAFETY: reads a flag of a file that is open.
        let flags = || unsafe { libc::fcntl(number, libc::F_GETFD) };
        // SAFETY: sets it.
        assert_eq!(unsafe { libc::fcntl(number, libc::F_SETFD, 0) }, 0);
        assert_eq!(flags(), 0);
        keep_files_from_programs().unwrap();
        assert_eq!(flags(), libc::FD_CLOEXEC);
    }

    #[test]
    fn open_files_are_listed_with_where_they_lead() {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&file).unsigned_abs();
        let mut found = 0;
        open_files(|each, target| found += u32::from(each == number && target.ends_with(b"/status")))
            .unwrap();
        assert_eq!(found, 1);
        let (soft, hard) = limit(libc::RLIMIT_NOFILE).unwrap();
        assert!(soft > 0 && soft <= hard);
        assert!(limit(999).is_none());
    }
}
