//! Where the images' files come from: deleted, replaced, in another namespace, static, of 32 bits.

use crate::target::{ODD, THREADS, Target, backtrail, names, stacks, traceable};
use backtrail_testkit::TempDir;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

fn has_lines(captured: &Value, function: &str) {
    let threads = captured["threads"].as_array().unwrap();
    let mut functions = threads.iter().flat_map(|thread| {
        thread["frames"].as_array().unwrap().iter().flat_map(|frame| frame["functions"].as_array().unwrap())
    });
    let found = functions.find(|found| found["name"] == function).unwrap_or_else(|| panic!("{captured:#}"));
    assert!(found["file"].as_str().unwrap().ends_with("program.c") && found["line"].is_u64(), "{found:#}");
}

#[test]
fn a_program_that_was_deleted_or_replaced_is_read_as_it_runs() {
    let directory = TempDir::new("live-deleted");
    let Some(program) = traceable(&directory, THREADS, "cc", &[]) else { return };
    let target = Target::start(Command::new(&program).arg("2"));
    std::fs::remove_file(&program).unwrap();
    has_lines(&stacks(target.id, &[]), "deep");
    std::fs::copy(crate::target::program(), &program).unwrap();
    has_lines(&stacks(target.id, &[]), "deep");
    let images = backtrail(&["images", &target.id.to_string()]);
    assert_eq!(images.code, Some(0), "{}", images.stderr);
    assert!(images.stdout.contains(program.to_str().unwrap()), "{}", images.stdout);
}

#[test]
fn a_library_that_was_deleted_is_read_as_it_runs() {
    const LIBRARY: &str = "int in_library(int (*call)(void)) { return call() + 1; }\n";
    const PROGRAM: &str = "#include <stdio.h>\n#include <unistd.h>\n#include <dlfcn.h>\n\
        static int waits(void) { char c[4]; return fgets(c, 4, stdin) != 0; }\n\
        int main(int argc, char **argv) { int (*f)(int (*)(void)) = dlsym(dlopen(argv[1], RTLD_NOW), \"in_library\");\n\
        printf(\"%d\\n\", getpid()); fflush(stdout); return f(waits); }\n";
    let (directory, other) = (TempDir::new("live-library"), TempDir::new("live-library-user"));
    let Some(library) = traceable(&directory, LIBRARY, "cc", &["-shared", "-fPIC"]) else { return };
    let Some(program) = traceable(&other, PROGRAM, "cc", &["-ldl"]) else { return };
    let target = Target::start(Command::new(program).arg(&library));
    std::fs::remove_file(&library).unwrap();
    has_lines(&stacks(target.id, &[]), "in_library");
}

#[test]
fn a_process_in_other_namespaces_is_read_by_its_own_root() {
    let directory = TempDir::new("live-namespaces");
    let Some(program) = traceable(&directory, THREADS, "cc", &[]) else { return };
    // The program is run from a file system that is mounted in its namespace only, under a name that no other run of this test has.
    let inside = format!("in-{}", std::process::id());
    let script = format!(
        "mount -t tmpfs none /mnt && cp \"$0\" /mnt/{inside} && exec unshare -p -f --mount-proc /mnt/{inside} 2"
    );
    let mut command = Command::new("unshare");
    let may = Command::new("unshare")
        .args(["-m", "-p", "-f", "true"])
        .status()
        .is_ok_and(|status| status.success());
    if !may {
        return eprintln!("skipped: no namespaces may be made here");
    }
    let target = Target::start(command.args(["-m", "sh", "-c", &script]).arg(&program));
    assert_eq!(target.id, 1, "the first process of its namespace");
    let outside = std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (name.trim() == inside).then_some(id)
    });
    assert!(!Path::new("/mnt").join(&inside).exists());
    let captured = stacks(outside.unwrap(), &[]);
    has_lines(&captured, "deep");
    assert_eq!(captured["threads"][0]["namespace_id"], 1);
    assert_eq!(captured["threads"][0]["id"], outside.unwrap());
    let text = backtrail(&["stacks", &outside.unwrap().to_string()]).stdout;
    assert!(text.contains("(1 in its namespace)"), "{text}");
}

#[test]
fn static_musl_and_32_bit_programs() {
    for (compiler, options) in [
        ("cc", &["-static"][..]),
        ("cc", &["-static-pie", "-O2"]),
        ("cc", &["-no-pie", "-O2", "-fomit-frame-pointer"]),
        ("musl-gcc", &[]),
        ("musl-gcc", &["-static", "-O2"]),
        ("cc", &["-m32"]),
        ("cc", &["-m32", "-O2", "-fomit-frame-pointer"]),
    ] {
        let directory = TempDir::new("live-kinds");
        let Some(program) = traceable(&directory, THREADS, compiler, options) else { continue };
        let target = Target::start(Command::new(program).arg("3"));
        let captured = stacks(target.id, &[]);
        has_lines(&captured, "deep");
        has_lines(&captured, "main");
        let is_32 = options.contains(&"-m32");
        assert_eq!(captured["process"]["arch"], if is_32 { "i386" } else { std::env::consts::ARCH });
        for thread in captured["threads"].as_array().unwrap() {
            // musl has no unwind information for the code that starts threads.
            let is_last = thread["ended_because"].as_str().unwrap().contains("no unwind information");
            if compiler == "musl-gcc" && is_last {
                continue;
            }
            assert_eq!(thread["ended"], "end-of-stack", "{compiler} {options:?}: {thread:#}");
        }
        assert_eq!(captured["threads"][1]["waiting_in"], "pause", "{compiler} {options:?}");
        let depth = names(&captured["threads"][3]).iter().filter(|name| *name == "deep").count();
        // musl's `pause` has no unwind information and leaves its caller's frame pointer as it is: that caller can be missing.
        assert!(depth == 23 || compiler == "musl-gcc" && depth == 22, "{compiler} {options:?}: {depth}");
    }
}

#[test]
fn images_are_told_with_their_places_and_symbols() {
    let directory = TempDir::new("live-images");
    let Some(program) = traceable(&directory, ODD, "cc", &["-Wl,--build-id"]) else { return };
    let target = Target::start(&mut Command::new(&program));
    let run = backtrail(&["images", &target.id.to_string(), "--format", "json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let images: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let own = images.iter().find(|image| image["path"] == program.to_str().unwrap()).unwrap();
    assert_eq!((own["symbols"].as_str(), &own["files"][0]), (Some("found"), &own["path"]));
    assert!(own["id"].is_string() && own["slide"].is_string(), "{own:#}");
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", target.id)).unwrap();
    let start = own["load_address"].as_str().unwrap().trim_start_matches("0x");
    assert!(maps.lines().next().unwrap().starts_with(start), "{maps}");
    assert!(images.iter().any(|image| image["name"] == "[vdso]"), "{}", run.stdout);
}

#[test]
fn a_process_that_is_just_starting_has_images_for_all_its_frames() {
    // It maps them while it is captured, or has done so before, as it comes.
    for _ in 0..30 {
        let mut starting = Command::new(crate::target::program());
        let mut child = starting.arg("demangle").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let captured = stacks(child.id(), &["--detail", "names"]);
        child.kill().unwrap();
        child.wait().unwrap();
        let threads = captured["threads"].as_array().unwrap();
        let frames = threads.iter().flat_map(|thread| thread["frames"].as_array().unwrap());
        for frame in frames {
            assert_ne!(frame["reason"], "no-image", "{captured:#}");
        }
    }
}
