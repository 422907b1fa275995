//! Real processes, watched.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "tests"
)]

use backtrail_capture::crash_file::{self, format::Event};
use backtrail_capture::{Limits, elf_core};
use backtrail_store::{Index, NoProgress, ScanOptions};
use backtrail_testkit::TempDir;
use backtrail_watch::{Cause, Exit, KeptReport, Options, Watched, keep_core, watch};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn index() -> Index {
    Index::scan(&[], &ScanOptions::default(), &NoProgress)
}

fn shell(script: &str) -> Watched {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    Watched::Program(command)
}

/// Watches with a directory of its own; `None` where this machine lets nobody follow processes.
fn watched(
    name: &str,
    what: Watched,
    change: impl Fn(&mut Options),
) -> Option<(Exit, Vec<KeptReport>, TempDir)> {
    let directory = TempDir::new(name);
    let mut options = Options::new(directory.path());
    change(&mut options);
    let mut kept = Vec::new();
    match watch(what, &options, &index(), &mut |report| kept.push(report)) {
        Ok(exit) => Some((exit, kept, directory)),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("not permitted"), "{text}");
            eprintln!("skipped: must not follow other processes");
            None
        }
    }
}

fn bytes(kept: &KeptReport) -> Vec<u8> {
    std::fs::read(kept.file.as_ref().unwrap()).unwrap()
}

#[test]
fn a_crash_leaves_a_report_and_the_exit_is_the_programs() {
    let Some((exit, kept, _directory)) = watched("crash", shell("kill -SEGV $$"), |_| ()) else { return };
    assert_eq!(exit, Exit::Signal(11));
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].cause, Cause::Crash { signal: 11 });
    let data = bytes(&kept[0]);
    let file = crash_file::read(&data, &Limits::default()).unwrap();
    assert!(file.is_whole);
    let fault = file.snapshot.fault.unwrap();
    assert_eq!((fault.name.as_str(), fault.code.as_deref()), ("SIGSEGV", Some("SI_USER")));
    assert_eq!(fault.sender, Some(kept[0].pid.into()));
    let thread = &file.snapshot.threads[0];
    assert!(thread.is_crashed && thread.registers.pc().is_some());
    assert!(file.walked[0].1.len() > 2, "{:?}", file.walked);
    assert!(file.snapshot.images.iter().any(|image| image.path.contains("libc") && image.id.is_some()));
    assert!(file.open_file_count.is_some() && file.limits.len() == 5);
}

#[test]
fn what_the_program_handles_is_no_crash() {
    let script = "trap 'exit 4' ABRT; kill -ABRT $$; sleep 1";
    let Some((exit, kept, _directory)) = watched("handled", shell(script), |_| ()) else { return };
    assert_eq!((exit, kept.len()), (Exit::Code(4), 0));
    // A request to end is none either.
    let Some((exit, kept, _directory)) = watched("asked", shell("kill -TERM $$"), |_| ()) else { return };
    assert_eq!((exit, kept.len()), (Exit::Signal(15), 0));
}

#[test]
fn children_are_watched_and_the_first_process_says_how_it_ended() {
    let script = "sh -c 'kill -ABRT $$'; sh -c 'kill -BUS $$' & wait; exit 7";
    let Some((exit, kept, _directory)) = watched("children", shell(script), |_| ()) else { return };
    assert_eq!(exit, Exit::Code(7));
    let causes: Vec<_> = kept.iter().map(|kept| kept.cause).collect();
    assert_eq!(causes, [Cause::Crash { signal: 6 }, Cause::Crash { signal: 7 }]);
    assert_ne!(kept[0].pid, kept[1].pid);
}

#[test]
fn a_failing_exit_is_reported_if_that_is_wanted() {
    let Some((exit, kept, _directory)) = watched("quiet", shell("exit 3"), |_| ()) else { return };
    assert_eq!((exit, kept.len()), (Exit::Code(3), 0));
    let Some((exit, kept, _directory)) = watched("exit", shell("exit 3"), |options| options.on_exit = true)
    else {
        return;
    };
    assert_eq!(exit, Exit::Code(3));
    assert_eq!(kept.iter().map(|kept| kept.cause).collect::<Vec<_>>(), [Cause::Exit(3)]);
    let data = bytes(&kept[0]);
    let file = crash_file::read(&data, &Limits::default()).unwrap();
    assert_eq!(file.event, Some(Event::Exit { thread: kept[0].pid, code: 3 }));
    assert_eq!(file.snapshot.process.pid, Some(kept[0].pid.into()));
    assert!(file.snapshot.fault.is_none());
}

#[test]
fn a_hang_is_reported_once() {
    let hang = |options: &mut Options| options.hang = Some(Duration::from_millis(500));
    let mut command = Command::new("sleep");
    command.arg("3");
    let Some((exit, kept, _directory)) = watched("hang", Watched::Program(command), hang) else { return };
    assert_eq!(exit, Exit::Code(0));
    let [kept] = &kept[..] else { panic!("{kept:?}") };
    assert!(matches!(kept.cause, Cause::Hang(stood) if stood >= Duration::from_millis(500)));
    let data = bytes(kept);
    let file = crash_file::read(&data, &Limits::default()).unwrap();
    assert!(matches!(file.event, Some(Event::Hang(time)) if time >= 500), "{:?}", file.event);
}

#[test]
fn no_more_reports_are_kept_than_allowed() {
    let script = "for i in 1 2 3; do sh -c 'kill -ABRT $$'; done; exit 0";
    let Some((_, kept, directory)) = watched("many", shell(script), |options| options.max_reports = 2) else {
        return;
    };
    assert_eq!(kept.iter().map(|kept| kept.file.is_ok()).collect::<Vec<_>>(), [true, true, false]);
    assert!(kept[2].file.as_ref().unwrap_err().contains("2 reports have been kept"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn what_cannot_be_watched_is_said() {
    let directory = TempDir::new("none");
    let options = Options::new(directory.path());
    let try_to = |what| watch(what, &options, &index(), &mut |_| ()).unwrap_err().to_string();
    assert!(
        try_to(Watched::Program(Command::new("/nowhere/to/be/found"))).starts_with("/nowhere/to/be/found: ")
    );
    assert!(try_to(Watched::Process(u32::MAX)).contains("cannot be followed"));
    // The caller's own process.
    assert!(try_to(Watched::Process(std::process::id())).contains("cannot be followed"));
}

/// A process that waits for its input, and ends with the test.
struct Waiting(Child);

impl Waiting {
    fn begin(script: &str) -> Self {
        let mut command = Command::new("sh");
        let child = command.args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        // It has begun when it waits in `read`.
        let is_waiting = || {
            let call = std::fs::read_to_string(format!("/proc/{}/syscall", child.id()));
            call.is_ok_and(|call| call.starts_with(if cfg!(target_arch = "x86_64") { "0 " } else { "63 " }))
        };
        for _ in 0..6000 {
            if is_waiting() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Self(child)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_runs_is_watched_from_now_on() {
    let mut waiting = Waiting::begin("read line; kill -ILL $$");
    let pid = waiting.0.id();
    let mut stdin = waiting.0.stdin.take().unwrap();
    let go = std::thread::spawn(move || {
        let is_followed = || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
        };
        for _ in 0..6000 {
            if is_followed() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = stdin.write_all(b"\n");
    });
    let watched = watched("attach", Watched::Process(pid), |_| ());
    go.join().unwrap();
    let Some((exit, kept, _directory)) = watched else { return };
    assert_eq!(exit, Exit::Signal(4));
    assert_eq!(kept.iter().map(|kept| kept.cause).collect::<Vec<_>>(), [Cause::Crash { signal: 4 }]);
}

/// What the kernel writes first: headers, and the notes of a thread that crashed. Its registers are those of a process that waits,
/// by `/proc/PID/syscall`.
fn head_of_core(pid: u32) -> Vec<u8> {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap();
    let numbers = call.split_ascii_whitespace().rev().take(2);
    let numbers: Vec<_> = numbers.map(|hex| u64::from_str_radix(&hex[2..], 16).unwrap()).collect();
    let (pc, sp) = (numbers[0], numbers[1]);
    let (machine, count, pc_at, sp_at) =
        if cfg!(target_arch = "x86_64") { (62_u16, 27, 16, 19) } else { (183_u16, 34, 32, 31) };
    let mut registers = vec![0_u64; count];
    (registers[pc_at], registers[sp_at]) = (pc, sp);
    let mut status = vec![0; 112];
    status[12] = 11;
    status[32..36].copy_from_slice(&pid.to_le_bytes());
    status.extend(registers.iter().flat_map(|value| value.to_le_bytes()));
    status.extend([0; 8]);
    let mut details = vec![0; 128];
    details[0] = 11;
    details[8] = 1;
    details[16] = 0x18;
    let mut notes = Vec::new();
    for (kind, data) in [(1_u32, &status), (0x5349_4749, &details)] {
        for number in [5, u32::try_from(data.len()).unwrap(), kind] {
            notes.extend(number.to_le_bytes());
        }
        notes.extend(b"CORE\0\0\0\0");
        notes.extend(data);
    }
    let mut core = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0".to_vec();
    core.extend(machine.to_le_bytes());
    core.extend(1_u32.to_le_bytes());
    for number in [0_u64, 64, 0] {
        core.extend(number.to_le_bytes());
    }
    core.extend(0_u32.to_le_bytes());
    for number in [64_u16, 56, 2, 0, 0, 0] {
        core.extend(number.to_le_bytes());
    }
    // Notes, then a gigabyte of memory that nobody will ask for.
    let behind = 64 + 2 * 56 + notes.len() as u64;
    for (kind, offset, size) in [(4_u32, 64 + 2 * 56, notes.len() as u64), (1, behind, 1 << 30)] {
        core.extend(kind.to_le_bytes());
        core.extend(6_u32.to_le_bytes());
        for number in [offset, 0x10000, 0, size, size, 1] {
            core.extend(number.to_le_bytes());
        }
    }
    core.extend(notes);
    core
}

#[test]
fn a_core_that_comes_in_becomes_a_report() {
    let waiting = Waiting::begin("read line");
    let pid = waiting.0.id();
    let head = head_of_core(pid);
    assert_eq!(elf_core::head_size(&head, &Limits::default()), Some(head.len() as u64));
    let directory = TempDir::new("core");
    let kept = keep_core(&mut &head[..], pid, directory.path(), &index());
    let path: PathBuf = match kept {
        Ok(path) => path,
        Err(error) if error.to_string().contains("ptrace") => {
            return eprintln!("skipped: must not read other processes: {error}");
        }
        Err(error) => panic!("{error}"),
    };
    let data = std::fs::read(path).unwrap();
    let file = crash_file::read(&data, &Limits::default()).unwrap();
    let fault = file.snapshot.fault.unwrap();
    assert_eq!((fault.name.as_str(), fault.code.as_deref()), ("SIGSEGV", Some("SEGV_MAPERR")));
    assert_eq!(fault.address.map(backtrail_core::Avma::get), Some(0x18));
    assert!(file.snapshot.threads[0].is_crashed);
    assert!(file.walked[0].1.len() > 2, "the stack was read from the process: {:?}", file.walked);
    assert!(data.len() < 100_000, "{}", data.len());
    let problem = keep_core(&mut &b"no core"[..], pid, directory.path(), &index()).unwrap_err();
    assert!(problem.to_string().contains("expected an ELF core"), "{problem}");
}
