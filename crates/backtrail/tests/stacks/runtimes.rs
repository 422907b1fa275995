//! Processes that run on a runtime with code and stacks of its own: Go's goroutines, the JVM's interpreter and compilers.
//! No frame is a guess, and each stack comes to its end. What is not installed is said.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use backtrail::{Frame, NoProgress, StackOptions, Stacks, Symbols, Thread};
use backtrail_core::{FrameAddress, Trust};
use backtrail_testkit::{TempDir, workspace_root};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A process that has said that it is ready, and ends with this.
struct Running(Child);

impl Running {
    /// `None` where it does not start, or ends before it is ready.
    fn start(command: &mut Command) -> Option<Self> {
        let child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut running = Self(child);
        let mut line = String::new();
        BufReader::new(running.0.stdout.take()?).read_line(&mut line).ok()?;
        (line.trim() == "ready").then_some(running)
    }

    /// Of one moment: a goroutine's stack is not always the one that its thread's stack pointer is in.
    fn stacks(&self) -> Option<Stacks> {
        let symbols = Symbols::scan(&[], &NoProgress);
        let mut options = StackOptions::default();
        options.consistent = true;
        options.cpu_window = std::time::Duration::ZERO;
        // Nothing moves on while the rest of the stacks is read.
        self.signal("STOP");
        std::thread::sleep(std::time::Duration::from_millis(50));
        let stacks = Stacks::process(self.0.id(), &symbols, &options);
        self.signal("CONT");
        match stacks {
            Ok(stacks) => Some(stacks),
            Err(error) => {
                eprintln!("runtimes not checked: {error}");
                None
            }
        }
    }

    fn signal(&self, name: &str) {
        Command::new("kill").arg(format!("-{name}")).arg(self.0.id().to_string()).status().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(thread: &Thread) -> String {
    let frame = |frame: &Frame| {
        let names: Vec<_> = frame.names().collect();
        format!("{:?} {} {}\n", frame.address.map(FrameAddress::raw), frame.trust, names.join(" < "))
    };
    let frames: String = thread.frames.iter().map(frame).collect();
    format!("{:?}\n{frames}{:?}", thread.name, thread.ended)
}

/// No frame is a guess, and the walk knows why it ended.
fn check(stacks: &Stacks) {
    assert!(stacks.report.process.threads.len() > 4);
    for thread in &stacks.report.process.threads {
        let ended = thread.ended.as_ref().unwrap();
        assert!(matches!(ended.kind, backtrail::EndKind::EndOfStack), "{}", text(thread));
        assert!(thread.frames.iter().all(|frame| frame.trust != Trust::Scan), "{}", text(thread));
    }
}

/// The thread whose frames have the name, and where it is among them.
fn find<'s>(stacks: &'s Stacks, name: &str) -> (&'s Thread, usize) {
    let position = |thread: &'s Thread| {
        let is_it = |frame: &Frame| frame.names().any(|other| other == name);
        Some((thread, thread.frames.iter().position(is_it)?))
    };
    stacks.report.process.threads.iter().find_map(position).unwrap()
}

#[test]
fn goroutines_of_a_stripped_program_are_whole() {
    let directory = TempDir::new("runtimes-go");
    let program = directory.join("stands");
    let mut go = Command::new("go");
    go.args(["build", "-ldflags=-s -w", "-o"]).arg(&program);
    go.arg(workspace_root().join("fixtures/runtimes/stands.go"));
    go.env("GOCACHE", directory.join("cache")).env("GOFLAGS", "-mod=mod");
    if !go.status().is_ok_and(|status| status.success()) {
        eprintln!("goroutines not checked: there is no go to build a program with");
        return;
    }
    let running = Running::start(&mut Command::new(&program)).unwrap();
    for _ in 0..5 {
        let Some(stacks) = running.stacks() else { return };
        check(&stacks);
        // Behind a fault: the frame that faulted, at the very instruction.
        let (thread, sigpanic) = find(&stacks, "runtime.sigpanic");
        let faulted = &thread.frames[sigpanic + 1];
        assert_eq!(faulted.names().collect::<Vec<_>>(), ["main.faults"], "{}", text(thread));
        assert!(matches!(faulted.address, Some(FrameAddress::Exact(_))), "{}", text(thread));
        let source = std::fs::read_to_string(workspace_root().join("fixtures/runtimes/stands.go")).unwrap();
        let line = 1 + source.lines().position(|line| line.contains("// the fault")).unwrap();
        assert_eq!(faulted.functions[0].line, u32::try_from(line).ok(), "{}", text(thread));
        let names: Vec<_> = thread.frames[sigpanic + 2..].iter().flat_map(Frame::names).collect();
        // Between them some versions of Go have a function that passes the argument.
        assert_eq!((names[0], names[names.len() - 1]), ("main.aroundFault", "runtime.goexit"), "{names:?}");
        assert!(names.len() < 4, "{names:?}");
        // Eight times.
        let (thread, first) = find(&stacks, "main.deep");
        let names: Vec<_> = thread.frames[first..].iter().flat_map(Frame::names).collect();
        assert!(names.iter().take(8).all(|name| *name == "main.deep"), "{names:?}");
        assert!(names.len() <= 10 && names.ends_with(&["runtime.goexit"]), "{names:?}");
        let (thread, receives) = find(&stacks, "os/signal.loop");
        assert_eq!(thread.frames.len(), receives + 2, "{}", text(thread));
    }
}

#[test]
fn javas_frames_are_those_of_the_chain() {
    for mode in ["-Xint", "-Xmixed"] {
        let mut java = Command::new("java");
        java.arg(mode).arg(workspace_root().join("fixtures/runtimes/Interpreted.java"));
        let Some(running) = Running::start(&mut java) else {
            eprintln!("java's frames not checked: there is no java that compiles a source");
            return;
        };
        let Some(stacks) = running.stacks() else { return };
        check(&stacks);
        let has_generated = |thread: &&Thread| {
            let from_java =
                |frame: &&Frame| frame.names().any(|name| name.contains("JavaCalls::call_helper"));
            thread.frames.iter().any(|frame| from_java(&frame))
        };
        // Each of the program's own threads was called from the JVM, once.
        let own = stacks.report.process.threads.iter().filter(|thread| {
            thread.name.as_deref().is_some_and(|name| {
                ["sleeps-", "waits-", "computes", "accepts"].iter().any(|start| name.starts_with(start))
            })
        });
        let own: Vec<_> = own.collect();
        assert_eq!(own.len(), 10);
        for thread in own {
            assert!(has_generated(&thread), "{}", text(thread));
            // Interpreted code has a frame for each of `deep`'s calls.
            if mode == "-Xint" && thread.name.as_deref() == Some("sleeps-3") {
                let generated =
                    thread.frames.iter().filter(|frame| frame.trust == Trust::FramePointer).count();
                assert!(generated >= 7, "{}", text(thread));
            }
        }
    }
}

#[test]
fn generated_code_of_v8_and_its_copied_builtins_are_left() {
    let mut node = Command::new("node");
    node.arg(workspace_root().join("fixtures/runtimes/builtins.js"));
    let Some(running) = Running::start(&mut node) else {
        eprintln!("node's frames not checked: there is no node with worker threads");
        return;
    };
    std::thread::sleep(std::time::Duration::from_millis(300));
    let Some(stacks) = running.stacks() else { return };
    check(&stacks);
    // Generated code is in no image's range.
    for image in &stacks.report.process.images {
        let size = image.end_address.unwrap().get() - image.load_address.get();
        assert!(size < 1 << 30, "{} has {size} bytes", image.name);
    }
}

#[test]
fn coroutines_end_where_they_began() {
    for flags in [&["-g"][..], &["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]] {
        let directory = TempDir::new("runtimes-coroutine");
        let program = directory.join("coroutine");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-fomit-frame-pointer"]).args(flags).arg("-o").arg(&program);
        compiler.arg(workspace_root().join("fixtures/runtimes/coroutine.c"));
        if !compiler.status().is_ok_and(|status| status.success()) {
            eprintln!("coroutines not checked: there is no C compiler (cc)");
            return;
        }
        let running = Running::start(&mut Command::new(&program)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        let Some(stacks) = running.stacks() else { return };
        let thread = &stacks.report.process.threads[0];
        let ended = thread.ended.as_ref().unwrap();
        assert!(matches!(ended.kind, backtrail::EndKind::EndOfStack), "{}", text(thread));
        // `pause`, four of `deep`, the coroutine, and what it returns to.
        assert_eq!(thread.frames.len(), 7, "{}", text(thread));
        assert!(thread.frames.iter().all(|frame| frame.trust != Trust::Scan), "{}", text(thread));
        assert!(matches!(thread.frames[6].address, Some(FrameAddress::Exact(_))), "{}", text(thread));
        let names: Vec<_> = thread.frames[1..6].iter().flat_map(Frame::names).collect();
        assert_eq!(names, ["deep", "deep", "deep", "deep", "coroutine"], "{}", text(thread));
    }
}
