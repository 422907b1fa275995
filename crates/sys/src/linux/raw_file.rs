//! Linux's files by system calls alone: for signal handlers, and for threads that must not allocate or lock.

use super::kept_proc::open_proc;
use super::{OsError, threads};
use std::ffi::{CStr, c_void};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Instant;

pub use crate::unix::{RawFile, c_path, set_aside, system};

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

/// Reads the beginning of the list of this process's mappings; says how many bytes that was.
///
/// # Errors
/// The kernel's.
///
/// # Signal safety
///
/// Safe.
pub fn read_maps(into: &mut [u8]) -> Result<usize, OsError> {
    match read_proc(c"/proc/self/maps", into) {
        Ok(size) if size > 0 => Ok(size),
        // The process's first thread has ended before this one, and has no memory any more: kernels answer with nothing or an error.
        _ => read_proc(c"/proc/thread-self/maps", into),
    }
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
    // Of the calling thread: the process's first one may have ended, and lists none then.
    let directory = open_proc(c"/proc/thread-self/fd", libc::O_DIRECTORY)
        .or_else(|_| open_proc(c"/proc/self/fd", libc::O_DIRECTORY))?;
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

/// Where the C library keeps what it says before it aborts: the address of a pointer (glibc's `__abort_msg`; musl keeps nothing).
/// Not for signal handlers.
pub fn abort_message() -> Option<backtrail_core::Avma> {
    #[cfg(target_env = "gnu")]
    // SAFETY: the names are C strings.
    let address =
        unsafe { libc::dlvsym(libc::RTLD_DEFAULT, c"__abort_msg".as_ptr(), c"GLIBC_PRIVATE".as_ptr()) };
    #[cfg(not(target_env = "gnu"))]
    let address = std::ptr::null::<c_void>();
    (!address.is_null()).then(|| backtrail_core::Avma::new(address as u64))
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
