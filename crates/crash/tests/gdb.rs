//! The frames of crash files against those that gdb finds in the same process at the same moment.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may")]

use backtrail_capture::Limits;
use backtrail_capture::crash_file;
use backtrail_testkit::{TempDir, not_installed};
use std::process::Command;

/// Prints the addresses of the frames of the thread that got a signal, innermost first, and has the program go on with it.
const SCRIPT: &str = "
def crashed(event):
    frame = gdb.newest_frame()
    addresses = []
    while frame is not None:
        # Tail calls are told from debug info: nothing on the stack shows them.
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            addresses.append('%x' % frame.pc())
        frame = frame.older()
    print('FRAMES ' + ' '.join(addresses))
";

/// Frames by gdb, and the program's file.
fn both(kind: &str) -> (Vec<u64>, Vec<u8>) {
    let own = std::env::current_exe().unwrap();
    let host = own.parent().unwrap().parent().unwrap().join("examples/crash_on_demand");
    let directory = TempDir::new("gdb");
    let script = directory.write("frames.py", SCRIPT.as_bytes());
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set backtrace past-main on"]);
    gdb.args(["-ex", "set backtrace past-entry on", "-ex", "handle SIGTERM stop pass"]);
    // How backtrail asks other threads.
    for number in 34..65 {
        gdb.arg("-ex").arg(format!("handle SIG{number} nostop noprint pass"));
    }
    gdb.arg("-x").arg(script).args(["-ex", "run", "-ex", "python crashed(None)", "-ex", "continue"]);
    gdb.args(["-ex", "continue", "--args"]).arg(host).arg(kind).arg(directory.path().join("crashes"));
    let output = gdb.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("FRAMES "));
    let line = line.unwrap_or_else(|| panic!("{kind}: {text}\n{}", String::from_utf8_lossy(&output.stderr)));
    let frames = line.split(' ').map(|address| u64::from_str_radix(address, 16).unwrap()).collect();
    let files = backtrail_crash::pending(&directory.path().join("crashes")).unwrap();
    assert_eq!(files.len(), 1, "{kind}: {text}");
    (frames, std::fs::read(&files[0]).unwrap())
}

#[test]
fn frames_are_those_that_gdb_finds() {
    if !Command::new("gdb").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return not_installed("gdb");
    }
    for kind in [
        "segv",
        "segv-kernel",
        "abort",
        "bad-free",
        "panic",
        "bus",
        "fpe",
        "sys",
        "ill",
        "malloc-locked",
        "loader-locked",
        "in-exit",
    ] {
        let (by_gdb, data) = both(kind);
        let file = crash_file::read(&data, &Limits::default()).unwrap();
        let crashed = file.snapshot.threads.iter().find(|thread| thread.is_crashed).unwrap();
        let walked = &file.walked.iter().find(|(id, _)| Some(*id) == crashed.id).unwrap().1;
        let ours: Vec<_> = walked.iter().map(|frame| frame.raw().get()).collect();
        assert!(by_gdb.len() > 3, "{kind}: {by_gdb:x?}");
        assert_eq!(ours, by_gdb, "{kind}: {ours:x?} by us, {by_gdb:x?} by gdb");
    }
}
