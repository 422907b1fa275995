//! A process that stands by, and writes the file of a crash from outside.
//!
//! It is started by `install` and waits at its end of a socket. The collecting thread sends what only the program knows, as sections
//! of a crash file, and waits for one byte: 1 where the file is on the disk. In every other case it writes the file itself.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use backtrail_sys::linux::raw_file::{byte_from, let_trace};

/// How long it may take to start.
const START: Duration = Duration::from_secs(10);

static SOCKET: OnceLock<(u32, UnixStream)> = OnceLock::new();
/// Whether it is being told of a crash now.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Starts it; gives its process id.
pub(crate) fn start(program: &Path, directory: &Path, patience: Duration) -> io::Result<u32> {
    let (own, its) = UnixStream::pair()?;
    // This one starts the one that stays, and ends: so the program has no child that it does not know of.
    let status = Command::new(program)
        .args(["watch", "--for-handler", "--out"])
        .arg(directory)
        .stdin(OwnedFd::from(its))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("{}: {status}", program.display())));
    }
    own.set_read_timeout(Some(START))?;
    let mut id = [0; 4];
    (&own).read_exact(&mut id)?;
    let id = u32::from_le_bytes(id);
    // A watcher that hangs takes no more than the socket has room for.
    own.set_write_timeout(Some(patience / 4).filter(|time| !time.is_zero()))?;
    let_trace(id);
    let _ = SOCKET.set((std::process::id(), own));
    Ok(id)
}

/// The socket to it. Children of the process have none: it follows one process.
pub(crate) fn socket() -> Option<BorrowedFd<'static>> {
    let (process, socket) = SOCKET.get()?;
    (*process == std::process::id()).then(|| socket.as_fd())
}

pub(crate) fn is_asked() -> bool {
    IS_ASKED.load(SeqCst)
}

pub(crate) fn set_asked(is_asked: bool) {
    IS_ASKED.store(is_asked, SeqCst);
}

/// Whether it says in time that the file is on the disk.
pub(crate) fn has_kept(deadline: Instant) -> bool {
    socket().is_some_and(|socket| byte_from(socket, deadline) == Some(1))
}
