//! The watcher that a crash handler starts: it writes the file when the handler tells of a crash.

use crate::WatchError;
use crate::error::KeepError;
use crate::file;
use crate::followed::{self, Later};
use crate::watcher::options_of_stacks;
use backtrail_capture::Limits;
use backtrail_capture::crash_file::format::{HEADER_BYTES, Kind, SECTION_HEADER_BYTES, sections};
use backtrail_capture::crash_file::{self, CrashFile};
use backtrail_capture::remote::raw_registers;
use backtrail_stacks::own::Capturer;
use backtrail_stacks::{Standing, standing};
use backtrail_store::Index;
use backtrail_sys::linux::OsError;
use backtrail_sys::linux::raw_file::{can_read, keep_files_from_programs, maker_of};
use backtrail_sys::linux::tracer::Tracer;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const REFRESHER: &[u8] = Capturer::REFRESHER.as_bytes();

/// What a handler sends of one crash: notes and breadcrumbs have 100 KB, the program's function may add to that.
const MAX_TOLD: usize = 16 << 20;

/// Starts this program once more, with the same arguments and `--stays`: that is the watcher. The caller ends then, so that the program
/// whose handler it is has no child that it knows nothing of. The terminal's signals are not for it, nor are files that the program left
/// open: others may wait until nobody has them.
///
/// # Errors
/// Where it cannot be started.
pub fn start_again() -> io::Result<()> {
    keep_files_from_programs()?;
    let mut again = Command::new(std::env::current_exe()?);
    again.args(std::env::args_os().skip(1)).arg("--stays").process_group(0).spawn().map(drop)
}

/// Says its process id to the handler at the other end of a socket, waits for the crash that it tells, and answers whether the file
/// is on the disk. The file has what the handler told, in the order in which it writes it itself, and everything else from outside.
/// Returns when the process has ended: nobody holds the other end then, but for its children by `fork`, which it does not wait for.
///
/// # Errors
/// Where the directory cannot be made or the socket is none.
pub fn serve_handler(socket: &UnixStream, directory: &Path, index: &Index) -> Result<(), WatchError> {
    std::fs::create_dir_all(directory)
        .map_err(|source| WatchError::Directory { path: directory.to_owned(), source })?;
    let mut socket = socket;
    socket.write_all(&std::process::id().to_le_bytes()).map_err(WatchError::Handler)?;
    let process = maker_of(socket.as_fd());
    let failed = |error: OsError| WatchError::Handler(io::Error::from_raw_os_error(error.number));
    while can_read(socket.as_fd(), process.as_ref()).map_err(failed)? {
        let Some(told) = told(socket).map_err(WatchError::Handler)? else { break };
        // The kernel lets go of what a thread follows when that thread ends, whatever state it is in.
        std::thread::scope(|scope| {
            let keeper = scope.spawn(|| {
                let answer = u8::from(keep(&told, directory, index).is_ok());
                // Before the process goes on: it must find the answer when it looks.
                (&mut &*socket).write_all(&[answer])
            });
            _ = keeper.join();
        });
    }
    Ok(())
}

/// What the handler sends of one crash, up to its last section; `None` when it is gone.
fn told(mut socket: &UnixStream) -> io::Result<Option<Vec<u8>>> {
    let mut told = vec![0; HEADER_BYTES];
    if socket.read_exact(&mut told).is_err() {
        return Ok(None);
    }
    while told.len() < MAX_TOLD {
        let mut header = [0; SECTION_HEADER_BYTES];
        if socket.read_exact(&mut header).is_err() {
            break;
        }
        told.extend(header);
        let [kind, size, _] = [0, 4, 8].map(|at| {
            let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_le_bytes)
        });
        let before = told.len();
        socket.take(size.into()).take(MAX_TOLD as u64).read_to_end(&mut told)?;
        if told.len() - before < usize::try_from(size).unwrap_or(usize::MAX) || kind == Kind::End as u32 {
            break;
        }
    }
    Ok(Some(told))
}

fn keep(told: &[u8], directory: &Path, index: &Index) -> Result<PathBuf, KeepError> {
    let nothing = |what: &str| KeepError::Told(format!("the handler told no {what}"));
    let known =
        crash_file::read(told, &Limits::default()).map_err(|error| KeepError::Told(error.to_string()))?;
    let snapshot = &known.snapshot;
    let id = |id: Option<u64>| id.and_then(|id| u32::try_from(id).ok());
    let pid = id(snapshot.process.pid).ok_or_else(|| nothing("process"))?;
    let crashed =
        snapshot.threads.iter().find(|thread| thread.is_crashed).ok_or_else(|| nothing("thread"))?;
    let thread = id(crashed.id).ok_or_else(|| nothing("thread"))?;
    let tracer = Tracer::new(false);
    tracer.attach(pid).map_err(|error| KeepError::Told(error.to_string()))?;
    let mut later = Later::default();
    let mut registers = followed::stop(&tracer, pid, None, &mut later).registers;
    // It stands in its handler: what it did before is what the handler was given.
    let before = raw_registers(&crashed.registers, registers.get(&thread));
    registers.extend(before.map(|registers| (thread, registers)));
    let fault = snapshot.fault.clone().map(|fault| (thread, fault));
    let process = Standing { pid, registers: &registers, crashed: fault, event: None };
    let captured = standing(process, index, &options_of_stacks()).map_err(KeepError::Capture)?;
    file::keep(directory, pid, &joined(told, &known, &captured.file))
        .map_err(|(path, error)| KeepError::Write(path, error))
}

/// One file: what happened, as the handler tells it; threads, images and memory as they were seen from outside; the rest of what the
/// handler told.
fn joined(told: &[u8], known: &CrashFile<'_>, seen: &[u8]) -> Vec<u8> {
    let is = |kind: u32, known: &[Kind]| known.iter().any(|own| *own as u32 == kind);
    let first_word =
        |content: &[u8]| content.get(..4).and_then(|id| id.try_into().ok()).map_or(0, u32::from_le_bytes);
    // The thread that collects, and the one that looks for new images, whose name follows id, flags and size.
    let is_refresher = |content: &[u8]| content.get(6..).is_some_and(|name| name.starts_with(REFRESHER));
    let of_handler = sections(told).filter(|(kind, ..)| is(*kind, &[Kind::Own]));
    let of_capturer =
        sections(seen).filter(|(kind, _, content)| is(*kind, &[Kind::Thread]) && is_refresher(content));
    let own: Vec<u32> = of_handler.chain(of_capturer).map(|(.., content)| first_word(content)).collect();
    let begin = [Kind::Crash, Kind::Program, Kind::System];
    let mut file = seen.get(..HEADER_BYTES).unwrap_or_default().to_vec();
    let mut add = |bytes: &[u8]| file.extend_from_slice(bytes);
    sections(told).filter(|(kind, ..)| is(*kind, &begin)).for_each(|(_, whole, _)| add(whole));
    for (kind, whole, content) in sections(seen) {
        let is_own = is(kind, &[Kind::Thread, Kind::Frames]) && own.contains(&first_word(content));
        let is_told = is(kind, &begin) || is(kind, &[Kind::End]);
        let is_said = (is(kind, &[Kind::Message]) && !known.messages.is_empty())
            || (is(kind, &[Kind::Exception]) && known.exception.is_some());
        if !(is_own || is_told || is_said) {
            add(whole);
        }
    }
    let left_out = [Kind::Thread, Kind::Own, Kind::End];
    for (kind, whole, _) in sections(told) {
        if !is(kind, &begin) && !is(kind, &left_out) {
            add(whole);
        }
    }
    let end = sections(seen).find(|(kind, ..)| is(*kind, &[Kind::End]));
    end.into_iter().for_each(|(_, whole, _)| add(whole));
    file
}
