//! Libraries and apps that are compiled and linked here, where clang and LLVM's linker are; without them one line says so.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test program"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail_core::Confidence;
use backtrail_object::{Limits, Object};
use backtrail_sdk::{Fingerprint, LearnOptions, LinkMap, OwnerMap, learn, map, stamp, unstamp};
use backtrail_testkit::TempDir;

/// The program of the newest LLVM that Debian has it of.
fn tool(name: &str) -> Option<String> {
    let names =
        [22, 19, 16, 14].map(|version| format!("{name}-{version}")).into_iter().chain([name.to_owned()]);
    let found = names.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    if found.is_none() {
        eprintln!("{name} is not here: test left out");
    }
    found
}

struct Tools {
    clang: String,
    ar: String,
    linker: String,
    strip: String,
}

fn tools(linker: &str) -> Option<Tools> {
    Some(Tools {
        clang: tool("clang")?,
        ar: tool("llvm-ar")?,
        linker: tool(linker)?,
        strip: tool("llvm-strip")?,
    })
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// C functions that differ from each other; `seed` tells libraries apart.
fn source(name: &str, seed: u32, count: u32) -> String {
    let mut text = format!("int {name}_log(const char *, int);\nint {name}_state[32];\n");
    for number in 0..count {
        let kind = if number % 3 == 1 { "static __attribute__((noinline)) " } else { "" };
        let (a, b) = (seed * 131 + number * 17 + 3, number % 7 + 1);
        text += &format!(
            "{kind}int {name}_{number}(int x, int y) {{\n  for (int i = 0; i < y; i++) x += {name}_state[(x ^ i) & 31] * {a};\n  \
             x ^= y << {b};\n  if (x > {a}) x -= {name}_log(\"{name} {number}\", y);\n"
        );
        if number > 0 {
            text += &format!("  x += {name}_{}(y, x);\n", number - 1);
        }
        text += "  return x;\n}\n";
    }
    text + &format!("int {name}_log(const char *s, int x) {{ return s[0] * {seed} + x; }}\n")
}

struct Built {
    directory: TempDir,
    library: PathBuf,
}

const MEMBERS: u32 = 4;

/// A library of four members, and an app's own object.
fn build(tools: &Tools, target: &str) -> Built {
    let directory = TempDir::new("sdk");
    let compile = |name: &str, text: &str| {
        let source = directory.write(format!("{name}.c"), text);
        let object = directory.join(format!("{name}.o"));
        let mut command = Command::new(&tools.clang);
        command
            .args(["-target", target, "-O2", "-fPIC", "-funwind-tables", "-c"])
            .arg(source)
            .arg("-o")
            .arg(&object);
        run(&mut command);
        object
    };
    let members: Vec<_> = (0..MEMBERS)
        .map(|number| compile(&format!("lib{number}"), &source(&format!("lib{number}"), number + 1, 12)))
        .collect();
    compile(
        "app",
        &(source("app", 99, 20) + "int main(int c, char **v) { (void)v; return app_19(c, c); }\n"),
    );
    let library = directory.join("libvendor.a");
    run(Command::new(&tools.ar).arg("rcs").arg(&library).args(members));
    Built { directory, library }
}

fn fingerprint(library: &Path) -> Fingerprint {
    let data = std::fs::read(library).unwrap();
    let learned = learn(&[("libvendor.a", &data)], &LearnOptions::new("Vendor", "2.1")).unwrap();
    assert!(learned.problems.is_empty(), "{:?}", learned.problems);
    let bytes = learned.fingerprint.to_bytes();
    let again = Fingerprint::from_bytes(&bytes).unwrap();
    assert_eq!(again, learned.fingerprint);
    assert_eq!(again.to_bytes(), bytes);
    assert!(!contains(&bytes, b"lib1_"), "a name of the library's code is in its fingerprint");
    again
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

/// Links an app; the stripped one and its link map.
fn link(
    tools: &Tools,
    built: &Built,
    is_mach_o: bool,
    library: Option<&Path>,
    flags: &[&str],
) -> (Vec<u8>, Vec<u8>) {
    let (app, link_map) = (built.directory.join("app"), built.directory.join("app.map"));
    let mut command = Command::new(&tools.linker);
    if is_mach_o {
        command.args([
            "-arch",
            "arm64",
            "-platform_version",
            "ios",
            "14.0",
            "17.0",
            "-undefined",
            "dynamic_lookup",
        ]);
        command.arg("-map").arg(&link_map);
    } else {
        command.args(["-shared", "--eh-frame-hdr"]).arg(format!("-Map={}", link_map.display()));
    }
    command.arg(built.directory.join("app.o")).args(flags);
    if let Some(library) = library {
        if is_mach_o {
            command.arg("-force_load").arg(library);
        } else {
            command.arg("--whole-archive").arg(library);
        }
    }
    run(command.arg("-o").arg(&app));
    run(Command::new(&tools.strip).arg(&app));
    (std::fs::read(app).unwrap(), std::fs::read(link_map).unwrap())
}

fn owners(app: &[u8], fingerprint: &Fingerprint, link_map: Option<&LinkMap>) -> OwnerMap {
    let object = Object::parse_with(app, &Limits::default()).unwrap();
    map(&object, std::slice::from_ref(fingerprint), link_map).unwrap()
}

/// How many of the library's functions are found, how many there are, and how many others are claimed.
fn judge(app: &[u8], link_map: &[u8], found: &OwnerMap) -> (usize, usize, usize) {
    let object = Object::parse_with(app, &Limits::default()).unwrap();
    let truth = LinkMap::parse(link_map).unwrap();
    let pieces: Vec<_> = truth.pieces().filter(|piece| !piece.range.is_empty()).collect();
    let (mut there, mut met, mut wrong) = (0, 0, 0);
    for start in object.function_starts().unwrap() {
        let piece = pieces.iter().rev().find(|piece| piece.range.contains(start)).unwrap();
        let is_ours = piece.file.contains("libvendor");
        let is_found = found.ranges.iter().any(|owned| owned.range.contains(start));
        there += usize::from(is_ours);
        met += usize::from(is_ours && is_found);
        wrong += usize::from(!is_ours && is_found);
    }
    (met, there, wrong)
}

fn check(is_mach_o: bool, target: &str, ways: &[&[&str]]) {
    let Some(tools) = tools(if is_mach_o { "ld64.lld" } else { "ld.lld" }) else { return };
    let built = build(&tools, target);
    let fingerprint = fingerprint(&built.library);
    let (app, _) = link(&tools, &built, is_mach_o, None, &[]);
    assert_eq!(owners(&app, &fingerprint, None).ranges, [], "an app without the library");
    for flags in ways {
        let (app, link_map) = link(&tools, &built, is_mach_o, Some(&built.library), flags);
        let found = owners(&app, &fingerprint, None);
        let (met, there, wrong) = judge(&app, &link_map, &found);
        assert!(there > 15, "{flags:?}: {there} functions of the library");
        assert_eq!((met, wrong), (there, 0), "{flags:?}");
        assert!(found.ranges.iter().all(|owned| owned.version.as_deref() == Some("2.1")));
        let stated = owners(&app, &fingerprint, Some(&LinkMap::parse(&link_map).unwrap()));
        assert!(stated.ranges.iter().all(|owned| owned.confidence == Confidence::Certain));
        assert_eq!(judge(&app, &link_map, &stated), (there, there, 0), "{flags:?}: by the link map");
    }
    // Stamped: one section, and undone to the same bytes.
    let data = std::fs::read(&built.library).unwrap();
    let stamped = stamp(&data, "vend", Some("2.1")).unwrap();
    assert_eq!(unstamp(&stamped.bytes, "vend").unwrap().bytes, data);
    let library = built.directory.join("libvendor-stamped.a");
    std::fs::write(&library, &stamped.bytes).unwrap();
    let (app, link_map) = link(&tools, &built, is_mach_o, Some(&library), &[]);
    let found = owners(&app, &fingerprint, None);
    assert_eq!(found.ranges.iter().filter(|owned| owned.how == "stamp").count(), 1);
    let (met, there, wrong) = judge(&app, &link_map, &found);
    assert_eq!((met, wrong), (there, 0));
    // The map of another build is refused.
    let (other, _) = link(&tools, &built, is_mach_o, None, &[]);
    let object = Object::parse_with(&other, &Limits::default()).unwrap();
    let refused = map(&object, &[fingerprint], Some(&LinkMap::parse(&link_map).unwrap()));
    assert!(refused.unwrap_err().to_string().contains("another build"));
}

#[test]
fn mach_o_apps_for_arm64() {
    check(
        true,
        "arm64-apple-ios14.0",
        &[
            &[],
            &["--icf=all"],
            &["-dead_strip", "-u", "_lib0_11", "-u", "_lib1_11", "-u", "_lib2_11", "-u", "_lib3_11"],
            &["-no_fixup_chains"],
        ],
    );
}

#[test]
fn elf_libraries_for_aarch64() {
    check(false, "aarch64-linux-gnu", &[&[], &["-Bsymbolic"], &["--icf=all"]]);
}

#[test]
fn elf_libraries_for_x86_64() {
    check(false, "x86_64-linux-gnu", &[&[], &["-Bsymbolic"], &["--gc-sections"]]);
}
