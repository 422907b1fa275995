//! Who holds the file that a process may not hold while it is suspended (0xdead10cc).

use crate::names::{base_name, image_name, own_frames, thread_label};
use crate::suspect::suspect_on;
use backtrail_model::{Frame, Report, Thread};

/// A thread inside of a database or of a call that locks a file.
pub(crate) struct Holder<'r> {
    pub(crate) thread: &'r Thread,
    /// The innermost frame of the database or lock.
    pub(crate) lock: &'r Frame,
    /// What it is, as a clause after "is inside".
    pub(crate) what: &'static str,
    /// The code outside of the system that called it.
    pub(crate) caller: Option<&'r Frame>,
}

/// What such frames are known by: the image's name, what functions begin with, or hold.
struct Kind {
    image: &'static str,
    prefixes: &'static [&'static str],
    what: &'static str,
}

/// The first that fits a stack counts: a database's own name says more than the system call at its end.
static KINDS: [Kind; 4] = [
    Kind {
        image: "CoreData",
        prefixes: &["-[NSSQL", "-[NSPersistentStore", "-[NSManagedObjectContext", "-[NSXPCStore"],
        what: "Core Data",
    },
    Kind { image: "libsqlite3", prefixes: &["sqlite3"], what: "SQLite" },
    Kind { image: "", prefixes: &["sqlcipher_", "-[FMDatabase", "realm::", "-[RLM"], what: "a database" },
    Kind {
        image: "",
        prefixes: &[
            "flock",
            "__flock",
            "fcntl",
            "__fcntl",
            "lockf",
            "-[NSFileCoordinator",
            "-[NSDistributedLock",
        ],
        what: "a file lock",
    },
];

/// Frames further out called half of the program.
const DEPTH: usize = 48;
const MAX_THREADS: usize = 512;

impl Kind {
    fn is(&self, report: &Report, frame: &Frame) -> bool {
        let in_image = !self.image.is_empty()
            && image_name(report, frame)
                .is_some_and(|name| name.trim_start_matches("com.apple.").starts_with(self.image));
        let named = frame.names().any(|name| {
            let name = base_name(name);
            self.prefixes.iter().any(|prefix| name.starts_with(prefix))
        });
        in_image || named
    }
}

/// The threads that are inside a database or a file lock and do not merely wait for work, those called by code outside of the
/// system first.
pub(crate) fn holders(report: &Report) -> Vec<Holder<'_>> {
    let threads = report.process.threads.iter().take(MAX_THREADS);
    let mut found: Vec<_> = threads.filter_map(|thread| holder(report, thread)).collect();
    found.sort_by_key(|holder| holder.caller.is_none());
    found
}

fn holder<'r>(report: &'r Report, thread: &'r Thread) -> Option<Holder<'r>> {
    let frames = own_frames(report, &thread.frames);
    let near = frames.get(..DEPTH.min(frames.len()))?;
    let (kind, position) =
        KINDS.iter().find_map(|kind| Some((kind, near.iter().position(|frame| kind.is(report, frame))?)))?;
    // A thread that waits for another one's turn in the database does not hold it.
    if position > 0 && near.get(..position)?.iter().any(super::waits::is_wait_for_threads) {
        return None;
    }
    let behind = near.get(position..)?;
    let caller = suspect_on(report, &thread_label(thread), behind).filter(|suspect| !suspect.is_entry);
    Some(Holder {
        thread,
        lock: near.get(position)?,
        what: kind.what,
        caller: caller.map(|suspect| suspect.frame),
    })
}
