//! Programs that are built and crash right here, where there is a compiler and the kernel writes cores into the current
//! directory: their stacks are what the source says, whatever happens to the core on the way. `cargo xtask cores` does the
//! same in all variety, and asks gdb and eu-stack too.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use backtrail::{Frame, NoProgress, StackOptions, Stacks, Symbols, Thread};
use backtrail_capture::{Limits, Mapping, elf_core};
use backtrail_core::{AddrRange, Avma, ReadMemory as _};
use backtrail_testkit::{TempDir, workspace_root};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that crashed, and its core.
struct Crash {
    directory: TempDir,
    program: PathBuf,
    core: Vec<u8>,
}

/// `None`, with a line that says so, where no compiler is or no core came of it.
fn crash(flags: &[&str], arguments: &[&str]) -> Option<Crash> {
    crash_of("cc", "crash.c", flags, arguments)
}

fn crash_of(compiler: &str, source: &str, flags: &[&str], arguments: &[&str]) -> Option<Crash> {
    let directory = TempDir::new("crashes");
    let program = directory.join("crash");
    let mut compile = Command::new(compiler);
    compile.args(["-g", "-pthread", "-Wl,--build-id", "-w"]).args(flags).arg("-o").arg(&program);
    compile.arg(workspace_root().join("fixtures/cores").join(source));
    if !compile.status().is_ok_and(|status| status.success()) {
        eprintln!(
            "crashes not checked: there is no compiler ({compiler}) that makes programs for this machine"
        );
        return None;
    }
    let mut run = Command::new(&program);
    run.args(arguments).current_dir(directory.path()).stderr(Stdio::null()).status().unwrap();
    let is_core =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("core"));
    let mut entries = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let Some(core) = entries.find(is_core) else {
        eprintln!("crashes not checked: the kernel writes no core here (core_pattern, limits)");
        return None;
    };
    let core = std::fs::read(core).unwrap();
    Some(Crash { directory, program, core })
}

impl Crash {
    /// The stacks of `core`, whatever was made of it.
    fn stacks(&self, core: &[u8], program: Option<&Path>) -> Stacks {
        self.directory.write("other.core", core);
        let symbols = Symbols::scan(&[], &NoProgress);
        Stacks::core(self.directory.join("other.core"), program, &symbols, &StackOptions::default()).unwrap()
    }
}

fn crashed(stacks: &Stacks) -> &Thread {
    stacks
        .report
        .process
        .threads
        .iter()
        .find(|thread| thread.crashed)
        .unwrap_or(&stacks.report.process.threads[0])
}

fn names(thread: &Thread) -> Vec<String> {
    thread.frames.iter().flat_map(Frame::names).map(str::to_owned).collect()
}

fn addresses(thread: &Thread) -> Vec<u64> {
    thread.frames.iter().map(|frame| frame.address.unwrap().raw().get()).collect()
}

/// The functions must be there in this order; the C library's own may lie between.
fn assert_on_stack(what: &str, thread: &Thread, functions: &[&str]) {
    let names = names(thread);
    let mut rest = names.iter();
    for function in functions {
        assert!(rest.any(|name| name == function), "{what}: {function} is not there: {names:?}");
    }
}

const BELOW: [&str; 4] = ["inner", "middle", "outer", "main"];

#[test]
fn stacks_are_what_the_source_says() {
    let ways: [(&str, &[&str]); 9] = [
        ("null", &["crash_null"]),
        ("abort", &["crash_abort"]),
        ("call-null", &["crash_call_null"]),
        ("call-wild", &["crash_call_wild"]),
        ("call-data", &["crash_call_data"]),
        ("qsort", &["crash_null", "compare", "crash_in_qsort"]),
        ("handler-other-stack", &["crash_null", "on_signal", "crash_in_handler", "crash_on_other_stack"]),
        ("twice", &["crash_abort", "on_fault", "crash_null", "crash_twice"]),
        ("twice-nowhere", &["crash_abort", "on_fault", "crash_call_null", "crash_twice_from_nowhere"]),
    ];
    for flags in [&["-O0"][..], &["-O2"], &["-O2", "-static"]] {
        for (way, functions) in ways {
            let Some(crash) = crash(flags, &[way]) else { return };
            let stacks = crash.stacks(&crash.core, Some(&crash.program));
            let thread = crashed(&stacks);
            assert_on_stack(&format!("{flags:?} {way}"), thread, &[functions, &BELOW].concat());
            assert_eq!(thread.ended.as_ref().unwrap().why, "outermost frame", "{flags:?} {way}");
        }
    }
}

#[test]
fn a_stack_without_tables_is_followed_by_frame_pointers_through_signals() {
    let flags =
        ["-O1", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-g0"];
    for (way, functions) in [
        ("handler", &["crash_null", "on_signal", "crash_in_handler", "middle", "outer", "main"][..]),
        ("twice", &["crash_abort", "on_fault", "crash_null", "crash_twice", "middle", "outer", "main"]),
    ] {
        let Some(crash) = crash(&flags, &[way]) else { return };
        let stacks = crash.stacks(&crash.core, Some(&crash.program));
        assert_on_stack(way, crashed(&stacks), functions);
    }
}

#[test]
fn an_uncaught_exception_is_told_with_its_type_and_words() {
    let own = ("shop::OrderLost", Some("order 4711 is lost"));
    let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>";
    let cases: [(&str, Option<(&str, Option<&str>)>); 12] = [
        ("range", Some(("std::out_of_range", Some("no such item: 17")))),
        ("own", Some(own)),
        ("noexcept-own", Some(own)),
        ("thread-own", Some(own)),
        ("system", Some(("std::system_error", Some("orders.db: No such file or directory")))),
        ("int", Some(("int", Some("-42")))),
        ("text", Some(("char const*", Some("words alone")))),
        ("string", Some((string, Some("a text of its own")))),
        ("plain", Some(("shop::Plain", None))),
        ("again", Some(("std::logic_error", Some("first")))),
        // Handled while the program ended itself.
        ("abort", None),
        ("terminate", None),
    ];
    for flags in [&["-O0"][..], &["-O2"], &["-O1", "-static"]] {
        for (kind, expected) in cases {
            let Some(crash) = crash_of("c++", "exceptions.cc", flags, &[kind]) else { return };
            let thrown = crash.stacks(&crash.core, Some(&crash.program)).report.thrown;
            let told = thrown.as_ref().map(|thrown| (&*thrown.name, thrown.reason.as_deref()));
            assert_eq!(told, expected, "{flags:?} {kind}");
        }
    }
}

#[test]
fn an_overflow_tells_how_deep_it_came() {
    let Some(crash) = crash(&["-O1"], &["overflow", "256"]) else { return };
    let depth = std::fs::read(crash.directory.join("depth")).unwrap();
    let depth = usize::try_from(u32::from_le_bytes(depth[..4].try_into().unwrap())).unwrap();
    let stacks = crash.stacks(&crash.core, Some(&crash.program));
    let there = names(crashed(&stacks)).iter().filter(|name| *name == "deeper").count();
    assert!(there == depth || there == depth + 1, "{there} frames, {depth} calls");
    assert_on_stack("overflow", crashed(&stacks), &[&["deeper", "crash_overflow"][..], &BELOW].concat());
}

#[test]
fn every_thread_has_its_stack() {
    let Some(crash) = crash(&["-O2"], &["threads", "20"]) else { return };
    let stacks = crash.stacks(&crash.core, Some(&crash.program));
    assert_eq!(stacks.report.process.threads.len(), 21);
    // Thread N has N % 11 + 1 calls.
    let mut depths: Vec<_> = stacks
        .report
        .process
        .threads
        .iter()
        .filter(|thread| !thread.crashed)
        .map(|thread| {
            assert_on_stack("threads", thread, &["wait_for_ever", "thread_main"]);
            names(thread).iter().filter(|name| *name == "wait_deeper").count()
        })
        .collect();
    depths.sort_unstable();
    let mut expected: Vec<usize> = (0..20).map(|number| number % 11 + 1).collect();
    expected.sort_unstable();
    assert_eq!(depths, expected);
}

#[test]
fn less_of_a_core_gives_less_of_the_same_stack() {
    let Some(crash) = crash(&["-O2"], &["threads", "3"]) else { return };
    let whole = crash.stacks(&crash.core, Some(&crash.program));
    let whole: Vec<_> =
        whole.report.process.threads.iter().map(|thread| (thread.id, addresses(thread))).collect();
    for hundredths in (0..100).step_by(7) {
        let part = &crash.core[..crash.core.len() * hundredths / 100];
        crash.directory.write("other.core", part);
        let symbols = Symbols::scan(&[], &NoProgress);
        let path = crash.directory.join("other.core");
        // Without the notes there is nothing to tell.
        let Ok(stacks) = Stacks::core(&path, Some(&crash.program), &symbols, &StackOptions::default()) else {
            assert!(hundredths < 20, "{hundredths}");
            continue;
        };
        for thread in &stacks.report.process.threads {
            let (_, whole) = whole.iter().find(|(id, _)| *id == thread.id).unwrap();
            let part = addresses(thread);
            assert!(whole.starts_with(&part), "{hundredths}: {part:x?} of {whole:x?}");
        }
    }
}

#[test]
fn a_core_whose_program_is_gone_leaves_no_frame_out() {
    let Some(crash) = crash(&["-O2"], &["threads", "3"]) else { return };
    let whole = crash.stacks(&crash.core, Some(&crash.program));
    std::fs::remove_file(&crash.program).unwrap();
    let stacks = crash.stacks(&crash.core, None);
    assert!(stacks.is_incomplete());
    for (thread, whole) in stacks.report.process.threads.iter().zip(&whole.report.process.threads) {
        assert!(addresses(whole).starts_with(&addresses(thread)), "{:x?}", addresses(thread));
    }
}

/// The mapped files as `maps.txt` has them, by plain names and from `offset` on in their files.
fn maps(mappings: &[Mapping], offset: u64) -> String {
    let mut text = String::new();
    for mapping in mappings.iter().filter(|mapping| !mapping.name.is_empty()) {
        let flag = |set, flag| if set { flag } else { '-' };
        let name = mapping.name.rsplit('/').next().unwrap();
        let start = if name == "crash" { offset } else { 0 };
        writeln!(
            text,
            "{:x}-{:x} {}{}{}p {:x} 00:00 0   {name}",
            mapping.range.start().get(),
            mapping.range.end().get(),
            flag(mapping.readable, 'r'),
            flag(mapping.writable, 'w'),
            flag(mapping.executable, 'x'),
            mapping.offset.get() + start,
        )
        .unwrap();
    }
    text
}

/// Saves the crashed thread as libunwindstack's offline cases do: its registers, the mapped ranges and its stack. The
/// program begins at `offset` of its file.
fn save(crash: &Crash, directory: &TempDir, offset: u64, zipped: bool) {
    let snapshot = elf_core::read(&crash.core, None, &Limits::default()).unwrap();
    let registers = snapshot.threads[0].registers;
    let mut text = String::new();
    for (register, value) in registers.iter() {
        writeln!(text, "{}: {value:x}", registers.family().register_name(register).unwrap()).unwrap();
    }
    directory.write("regs.txt", text.as_bytes());
    directory.write("maps.txt", maps(&snapshot.mappings, offset).as_bytes());
    let sp = registers.sp().unwrap();
    let stack = snapshot.memory.ranges().find(|range| range.contains(sp)).unwrap();
    let stack = AddrRange::new(Avma::new(sp.get() & !7), stack.end());
    let mut bytes = vec![0; usize::try_from(stack.size()).unwrap()];
    snapshot.memory.read(stack.start(), &mut bytes).unwrap();
    directory.write("stack.data", [&stack.start().get().to_le_bytes()[..], &bytes].concat());
    let mut files: Vec<&str> = snapshot.mappings.iter().map(|mapping| mapping.name.as_str()).collect();
    files.sort_unstable();
    files.dedup();
    for path in files.into_iter().filter(|path| path.starts_with('/')) {
        let name = path.rsplit('/').next().unwrap();
        let mut bytes = std::fs::read(path).unwrap();
        if name == "crash" {
            bytes.splice(0..0, vec![0x55; usize::try_from(offset).unwrap()]);
        }
        directory.write(name, &bytes);
        if zipped {
            assert!(Command::new("gzip").arg(directory.join(name)).status().unwrap().success());
        }
    }
}

#[test]
fn a_saved_stack_gives_the_frames_of_the_core_that_it_was_made_of() {
    // `static-pie` and `no-pie` have other biases; a file that starts inside of another one is what an APK has.
    let kinds: [(&[&str], u64, bool); 5] = [
        (&["-O2"], 0, false),
        (&["-O2"], 0, true),
        (&["-O2"], 0x5000, false),
        (&["-O1", "-no-pie"], 0, false),
        (&["-O3", "-static-pie"], 0x3000, true),
    ];
    for (flags, offset, zipped) in kinds {
        for way in ["qsort", "handler", "call-wild"] {
            let Some(crash) = crash(flags, &[way]) else { return };
            let directory = TempDir::new("saved");
            save(&crash, &directory, offset, zipped);
            let symbols = Symbols::scan(&[], &NoProgress);
            let options = StackOptions::default();
            let saved = Stacks::offline(directory.path(), &symbols, &options).unwrap();
            let stacks = crash.stacks(&crash.core, Some(&crash.program));
            let (saved, thread) = (&saved.report.process.threads[0], crashed(&stacks));
            assert_eq!(
                addresses(saved),
                addresses(thread),
                "{flags:?} {offset:#x} {way}: {:?}",
                names(saved)
            );
            assert_on_stack(way, saved, &BELOW);
        }
    }
}
