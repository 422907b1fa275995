//! Each case is a process of its own, which this test program starts: a handler is the whole process's, and what goes
//! wrong ends it.

use super::*;
use backtrail_testkit::{Guarded, TempDir};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::sync::atomic::AtomicU32;

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

const CASE: &str = "BACKTRAIL_TEST_CASE";
const PAGES: usize = 8;

fn page() -> usize {
    // SAFETY: no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap()
}

/// A file of some pages of sevens, mapped.
struct Mapping {
    file: File,
    start: *const u8,
}

impl Mapping {
    fn new() -> Self {
        let directory = TempDir::new("mapped");
        let path = directory.join("file");
        std::fs::write(&path, vec![7; PAGES * page()]).unwrap();
        let file = File::options().read(true).write(true).open(path).unwrap();
        let (size, fd) = (PAGES * page(), file.as_raw_fd());
        // SAFETY: a new mapping of its own.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_PRIVATE, fd, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        // The directory goes now: the process may end by a signal. The file stays as long as it is open.
        Self { file, start: start.cast() }
    }

    fn guard(&self) -> MappedRange {
        // SAFETY: the mapping is as stated and is never unmapped.
        unsafe { MappedRange::new(self.start, PAGES * page()) }
    }

    fn shrink(&self, pages: usize) {
        self.file.set_len((pages * page()) as u64).unwrap();
    }

    /// The first byte of a page.
    fn read(&self, number: usize) -> u8 {
        // SAFETY: it is mapped, and where the file does not reach there the handler has to see to it.
        unsafe { self.start.add(number * page()).read_volatile() }
    }
}

fn set(handler: usize, flags: c_int) -> libc::sigaction {
    // SAFETY: all zeros is a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    exchange(Some(&action)).unwrap()
}

/// Runs the case `name`, which is a function of this module, in a process of its own.
fn run(name: &str) -> ExitStatus {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", "mapped::tests::a_process_of_its_own", "--nocapture", "--test-threads=1"];
    Command::new(program).args(arguments).env(CASE, name).status().unwrap()
}

/// What [`run`] starts.
#[test]
fn a_process_of_its_own() {
    match std::env::var(CASE).unwrap_or_default().as_str() {
        "" => {}
        "shrinks" => shrinks(),
        "foreign_fault" => foreign_fault(),
        "handed_on" => handed_on(libc::SA_SIGINFO),
        "handed_on_plainly" => handed_on(0),
        "set_later" => set_later(true),
        "set_later_and_selfish" => set_later(false),
        "sent_by_default" => sent(libc::SIG_DFL),
        "sent_and_ignored" => sent(libc::SIG_IGN),
        "not_wanted" => not_wanted(),
        "many_threads" => many_threads(),
        other => panic!("no case {other}"),
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn all_cases() {
    for (case, signal) in [
        ("shrinks", None),
        ("foreign_fault", Some(libc::SIGBUS)),
        ("handed_on", None),
        ("handed_on_plainly", None),
        ("set_later", None),
        ("set_later_and_selfish", None),
        ("sent_by_default", Some(libc::SIGBUS)),
        ("sent_and_ignored", None),
        ("not_wanted", Some(libc::SIGBUS)),
        ("many_threads", None),
    ] {
        let status = run(case);
        let as_expected = if signal.is_some() { status.signal() == signal } else { status.success() };
        assert!(as_expected, "{case}: {status}");
    }
}

/// What is gone reads as zeros, what is there as before, and the handler allocates nothing.
fn shrinks() {
    let (cut, whole) = (Mapping::new(), Mapping::new());
    let (cut_guard, whole_guard) = (cut.guard(), whole.guard());
    assert!(is_installed());
    assert_eq!((cut.read(3), cut.read(7)), (7, 7));
    cut.shrink(3);
    assert!(!cut_guard.is_truncated(), "nobody has read there yet");
    Guarded::forbid(true);
    let read = (cut.read(5), cut.read(2), cut.read(3), cut.read(7));
    Guarded::forbid(false);
    assert_eq!(read, (0, 7, 0, 0));
    assert!(cut_guard.is_truncated() && !whole_guard.is_truncated());
    assert_eq!(whole.read(7), 7);
    drop(cut_guard);
    // The slot is another range's now.
    let next = Mapping::new();
    let next_guard = next.guard();
    assert!(!next_guard.is_truncated());
    next.shrink(0);
    assert_eq!(next.read(0), 0);
    assert!(next_guard.is_truncated() && !whole_guard.is_truncated());
}

/// A file that somebody else has mapped is none of ours: the process ends as ever.
fn foreign_fault() {
    let (own, foreign) = (Mapping::new(), Mapping::new());
    let _guard = own.guard();
    drop(foreign.guard());
    foreign.shrink(0);
    foreign.read(0);
}

static HANDED_ON: AtomicU32 = AtomicU32::new(0);
static FOREIGN: AtomicUsize = AtomicUsize::new(0);

/// Another library's handler for a file of its own; what it was before, if it hands on.
static BELOW: AtomicUsize = AtomicUsize::new(0);

extern "C" fn mends_foreign(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let start = FOREIGN.load(SeqCst);
    // SAFETY: the kernel's, of a fault.
    let address = unsafe { (*info).si_addr() }.addr();
    if (start..start + PAGES * page()).contains(&address) {
        HANDED_ON.fetch_add(1, SeqCst);
        // SAFETY: the foreign mapping is the test's.
        assert!(unsafe { map_zeros(start, PAGES * page()) });
    } else if let below @ 1.. = BELOW.load(SeqCst) {
        // SAFETY: what `sigaction` gave.
        unsafe { std::mem::transmute::<usize, Handler>(below)(number, info, context) }
    } else {
        // A fault that nobody mends would come for ever.
        std::process::abort();
    }
}

extern "C" fn mends_foreign_plainly(_: c_int) {
    HANDED_ON.fetch_add(1, SeqCst);
    // SAFETY: the foreign mapping is the test's.
    assert!(unsafe { map_zeros(FOREIGN.load(SeqCst), PAGES * page()) });
}

/// The handler that was there before gets what is not ours, and only that.
fn handed_on(flags: c_int) {
    let before = if flags == 0 { mends_foreign_plainly as *const () } else { mends_foreign as *const () };
    set(before as usize, flags);
    let (own, foreign) = (Mapping::new(), Mapping::new());
    FOREIGN.store(foreign.start.addr(), SeqCst);
    let guard = own.guard();
    for mapping in [&own, &foreign] {
        mapping.shrink(0);
    }
    assert_eq!((own.read(1), HANDED_ON.load(SeqCst), guard.is_truncated()), (0, 0, true));
    assert_eq!((foreign.read(1), HANDED_ON.load(SeqCst)), (0, 1));
}

/// A handler that is set after ours: one that hands on, or one that does not. The next file has ours above it.
fn set_later(hands_on: bool) {
    let first = Mapping::new();
    let first_guard = first.guard();
    let below = set(mends_foreign as *const () as usize, libc::SA_SIGINFO);
    BELOW.store(if hands_on { below.sa_sigaction } else { 0 }, SeqCst);
    let foreign = Mapping::new();
    FOREIGN.store(foreign.start.addr(), SeqCst);
    if hands_on {
        first.shrink(0);
        assert_eq!((first.read(0), first_guard.is_truncated()), (0, true));
    }
    let second = Mapping::new();
    let second_guard = second.guard();
    for mapping in [&second, &foreign] {
        mapping.shrink(0);
    }
    assert_eq!((second.read(1), second_guard.is_truncated()), (0, true));
    assert_eq!((foreign.read(1), HANDED_ON.load(SeqCst)), (0, 1));
}

/// A signal that is sent is no fault.
fn sent(action: usize) {
    set(action, 0);
    let own = Mapping::new();
    let _guard = own.guard();
    // SAFETY: no preconditions.
    unsafe { libc::raise(libc::SIGBUS) };
}

/// A program that has SIGBUS for itself.
fn not_wanted() {
    handle_bus_errors(false);
    let own = Mapping::new();
    let _guard = own.guard();
    assert!(!is_installed());
    own.shrink(0);
    own.read(0);
}

/// Files are mapped, cut, read and dropped by several threads at once, more than one block of slots has.
fn many_threads() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let mappings: Vec<_> = (0..30).map(|_| Mapping::new()).collect();
                    let guards: Vec<_> = mappings.iter().map(Mapping::guard).collect();
                    for (number, mapping) in mappings.iter().enumerate() {
                        mapping.shrink(number % PAGES);
                    }
                    for (number, (mapping, guard)) in mappings.iter().zip(&guards).enumerate() {
                        let there = number % PAGES;
                        let read: Vec<_> = (0..PAGES).map(|page| mapping.read(page)).collect();
                        let expected: Vec<_> =
                            (0..PAGES).map(|page| if page < there { 7 } else { 0 }).collect();
                        assert_eq!(read, expected);
                        assert!(guard.is_truncated());
                    }
                }
            });
        }
    });
    let free = all_slots().filter(|slot| !slot.is_claimed.load(SeqCst)).count();
    assert_eq!(free, all_slots().count(), "all are given back");
}
