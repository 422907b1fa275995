//! The examples, run as their pages say. Files and lines are not asked for: builds may leave debug info out.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test's helpers may"
)]

use backtrail_testkit::{TempDir, cargo_build, workspace_root};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// For what a busy machine may be late with.
const PATIENCE: Duration = Duration::from_secs(120);

/// An example, built as this test was.
fn example(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = cargo_build(directory, &["--package", "backtrail", "--example", name]);
    let mut messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = messages.find_map(|message| match (&message["target"]["name"], &message["executable"]) {
        (Value::String(built), Value::String(program)) if built == name => Some(PathBuf::from(program)),
        _ => None,
    });
    program.expect("cargo built it")
}

fn output(program: &Path, arguments: &[&Path]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Whether there is a line that has all of `parts`.
fn has_line(text: &str, parts: &[&str]) -> bool {
    text.lines().any(|line| parts.iter().all(|part| line.contains(part)))
}

/// Ends with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file of our own test data.
fn fixture(path: &str) -> PathBuf {
    workspace_root().join("fixtures").join(path)
}

#[test]
fn an_address_has_its_functions_and_lines() {
    let file = fixture("sample/symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather");
    let text =
        output(&example("lookup"), &[&file, Path::new("arm64"), Path::new("0x1000041cc"), Path::new("0x10")]);
    assert!(has_line(&text, &["celsius(reading const*)", "units.h:13", "(inlined)"]), "{text}");
    assert!(has_line(&text, &["weather::Forecast::refresh()", "forecast.cpp:18"]), "{text}");
    assert!(has_line(&text, &["no name: "]), "{text}");
}

#[test]
fn a_report_is_explained() {
    let report = fixture("sample/reports/null-member.ips");
    let program = example("report");
    let text = output(&program, &[&report, &fixture("sample/symbols")]);
    assert!(has_line(&text, &["Null pointer access: read at 0x10"]), "{text}");
    assert!(has_line(&text, &["whose code: app"]), "{text}");
    let chain = ["0 Weather: celsius(reading const*), inlined into ", "weather::Forecast::refresh()"];
    assert!(has_line(&text, &chain), "{text}");
    assert!(has_line(&output(&program, &[&report]), &["symbols of Weather are missing"]));
}

#[test]
fn stacks_of_a_core_and_of_a_process_are_printed() {
    let program = example("stacks");
    let text = output(&program, &[&fixture("stacks/orders.core"), &fixture("stacks")]);
    assert!(has_line(&text, &["orders [21629]"]), "{text}");
    assert!(has_line(&text, &["0 store_total, inlined into total_of (context)"]), "{text}");
    assert!(has_line(&text, &["1 take (cfi)"]), "{text}");

    let child = Running(Command::new("sleep").arg("600").spawn().unwrap());
    let text = output(&program, &[Path::new(&child.0.id().to_string())]);
    assert!(has_line(&text, &["thread "]) && has_line(&text, &["  0 "]), "{text}");
}

#[test]
fn the_own_stacks_are_printed() {
    let text = output(&example("capture"), &[]);
    let (own, worker) = text.split_once("The worker:").unwrap();
    assert!(has_line(own, &["capture::main"]), "{text}");
    assert!(has_line(worker, &["capture::wait"]), "{text}");
    assert!(has_line(worker, &[" threads in all"]), "{text}");
}

#[test]
fn all_threads_are_printed_on_each_sigusr1() {
    let mut child = Running(Command::new(example("dump_on_signal")).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let id = child.0.id().to_string();
    assert_eq!(lines.next().unwrap(), format!("process {id} waits for SIGUSR1"));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Again and again: at first not all of its threads have begun.
        scope.spawn(|| {
            while !over.load(SeqCst) {
                let _ = Command::new("kill").args(["-USR1", &id]).status();
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let mut missing = vec!["\"worker 0\"", "\"worker 1\"", "\"worker 2\"", "dump_on_signal::work"];
        while !missing.is_empty() {
            let Some(line) = lines.next() else { break };
            missing.retain(|part| !line.contains(part));
        }
        over.store(true, SeqCst);
        assert!(missing.is_empty(), "never printed: {missing:?}");
    });
}

#[test]
fn an_error_is_logged_with_the_stack_that_it_was_made_on() {
    let text = output(&example("log_errors"), &[]);
    assert!(has_line(&text, &["error: 100 cannot be divided into 0 parts"]), "{text}");
    for function in ["divide", "settle", "main"] {
        assert!(has_line(&text, &[&format!("log_errors::{function}")]), "{text}");
    }
}

/// Runs an example until it has seen a hang `count` times: a machine so busy that the monitor does not come to run excuses all.
fn until_it_hangs(program: &Path, arguments: &[&Path], count: usize) -> String {
    let began = Instant::now();
    loop {
        let text = output(program, arguments);
        if text.matches(" hung for ").count() >= count {
            return text;
        }
        assert!(began.elapsed() < PATIENCE, "{text}");
    }
}

#[test]
fn a_plain_loop_that_stalls_is_caught_in_the_act() {
    let directory = TempDir::new("example-hangs");
    let text = until_it_hangs(&example("watch_loop"), &[directory.path()], 1);
    for function in ["handle", "main"] {
        assert!(has_line(&text, &[&format!("watch_loop::{function}")]), "{text}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "what is over is removed");
}

#[test]
fn an_asynchronous_runtime_that_stalls_is_caught_by_both_ways() {
    let text = until_it_hangs(&example("watch_async"), &[], 2);
    let (hooks, ticks) = text.split_once("By a task that ticks").unwrap();
    for way in [hooks, ticks] {
        assert!(has_line(way, &["watch_async::block_the_thread"]), "{text}");
    }
}
