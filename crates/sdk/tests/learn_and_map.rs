//! Libraries and apps that are compiled and linked here, where clang and LLVM's linker are; without them one line says so.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail_core::{Arch, Confidence, Rva};
use backtrail_object::{Limits, Object};
use backtrail_sdk::{
    BuildStacks, CodeOffset, Fingerprint, Layout, LearnOptions, LinkMap, MapOptions, OwnerMap, SHARED, learn,
    map, mine, stamp, unstamp,
};
use backtrail_testkit::TempDir;
use common::{run, tool};

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
    build_with(tools, target, "-O2")
}

fn build_with(tools: &Tools, target: &str, optimised: &str) -> Built {
    let directory = TempDir::new("sdk");
    let compile = |name: &str, text: &str| {
        let source = directory.write(format!("{name}.c"), text);
        let object = directory.join(format!("{name}.o"));
        let mut command = Command::new(&tools.clang);
        command
            .args(["-target", target, optimised, "-fPIC", "-funwind-tables", "-c"])
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
    std::fs::copy(&app, built.directory.join("app.whole")).unwrap();
    run(Command::new(&tools.strip).arg(&app));
    (std::fs::read(app).unwrap(), std::fs::read(link_map).unwrap())
}

fn owners(app: &[u8], fingerprint: &Fingerprint, link_map: Option<&LinkMap>) -> OwnerMap {
    let object = Object::parse_with(app, &Limits::default()).unwrap();
    map(&object, std::slice::from_ref(fingerprint), &MapOptions::with_link_map(link_map)).unwrap()
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
    let refused =
        map(&object, &[fingerprint], &MapOptions::with_link_map(&LinkMap::parse(&link_map).unwrap()));
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

/// Seen with OAuth, EAccountApiSDK, TYRZUISDK and JVerification of jverification-react-native 2.8.8: as one library the two builds
/// of an .xcframework were another version in any app.
#[test]
fn a_simulators_build_is_apart_from_a_devices() {
    let Some(tools) = tools("ld64.lld") else { return };
    let target = "arm64-apple-ios14.0";
    let (device, simulator) = (build(&tools, target), build_with(&tools, target, "-O0"));
    let [one, other] = [&device, &simulator].map(|built| std::fs::read(&built.library).unwrap());
    let files = [("ios-arm64/libvendor.a", &*one), ("ios-arm64-simulator/libvendor.a", &*other)];
    let both = learn(&files, &LearnOptions::new("Vendor", "2.1")).unwrap().fingerprint;
    assert_eq!(both.architectures().count(), 2);
    assert_eq!(Fingerprint::from_bytes(&both.to_bytes()).unwrap(), both);
    for built in [&device, &simulator] {
        let (app, link_map) = link(&tools, built, true, Some(&built.library), &[]);
        let found = owners(&app, &both, None);
        let (met, there, wrong) = judge(&app, &link_map, &found);
        assert_eq!((met, wrong), (there, 0));
        for owned in &found.ranges {
            assert_eq!((owned.version.as_deref(), owned.how == "changed"), (Some("2.1"), false));
        }
    }
    // Builds that differ in one object file are two as well: most of the code of a C library is the same in both.
    let mixed = device.directory.join("libmixed.a");
    let member = |built: &Built, number: u32| built.directory.join(format!("lib{number}.o"));
    run(Command::new(&tools.ar)
        .arg("rcs")
        .arg(&mixed)
        .args((0..3).map(|number| member(&device, number)))
        .arg(member(&simulator, 3)));
    let mixed = std::fs::read(mixed).unwrap();
    let files_of_two = [files[0], ("ios-arm64-simulator/libvendor.a", &*mixed)];
    let two = learn(&files_of_two, &LearnOptions::new("Vendor", "2.1")).unwrap().fingerprint;
    assert_eq!(two.architectures().count(), 2);
    // A build that is the same is there once.
    let same = learn(&[files[0], files[0]], &LearnOptions::new("Vendor", "2.1")).unwrap().fingerprint;
    let alone = learn(&files[..1], &LearnOptions::new("Vendor", "2.1")).unwrap().fingerprint;
    assert_eq!(same, alone);
}

#[test]
fn elf_libraries_for_aarch64() {
    check(false, "aarch64-linux-gnu", &[&[], &["-Bsymbolic"], &["--icf=all"]]);
}

#[test]
fn elf_libraries_for_x86_64() {
    check(false, "x86_64-linux-gnu", &[&[], &["-Bsymbolic"], &["--gc-sections"]]);
}

/// Of a shared library for i386 all calls of what it exports go by way of stubs that find their slots by a register.
#[test]
fn elf_libraries_for_i386() {
    check(false, "i686-linux-gnu", &[&[], &["-Bsymbolic"]]);
}

/// Seen with Debian's liblz4: its functions were taken for the assembler's labels, which begin with L in Mach-O.
#[test]
fn functions_of_elf_may_begin_as_mach_os_labels() {
    let (Some(clang), Some(ar)) = (tool("clang"), tool("llvm-ar")) else { return };
    let directory = TempDir::new("sdk-names");
    for name in ["LZ4", "ltmp_of"] {
        let source = directory.write("names.c", source(name, 1, 12));
        let (object, library) = (directory.join("names.o"), directory.join("libnames.a"));
        run(Command::new(&clang)
            .args(["-target", "x86_64-linux-gnu", "-O1", "-c"])
            .arg(source)
            .arg("-o")
            .arg(&object));
        run(Command::new(&ar).arg("rcs").arg(&library).arg(&object));
        let data = std::fs::read(&library).unwrap();
        let learned = learn(&[("libnames.a", &data)], &LearnOptions::new("Names", "1")).unwrap();
        let functions: Vec<_> = learned.fingerprint.architectures().collect();
        assert_eq!(functions, [(Arch::X86_64, 13)], "{name}");
    }
}

/// Eight functions whose code says nothing: the app has as many.
fn alike(prefix: &str) -> String {
    (0..8).map(|number| format!("int {prefix}_{number}(void) {{ return 7; }}\n")).collect()
}

#[test]
fn names_of_a_debug_file_tell_what_code_does_not() {
    for (is_mach_o, target) in [(true, "arm64-apple-ios14.0"), (false, "x86_64-linux-gnu")] {
        let Some(tools) = tools(if is_mach_o { "ld64.lld" } else { "ld.lld" }) else { return };
        let built = build(&tools, target);
        let compile = |name: &str| {
            let source = built.directory.write(format!("{name}.c"), alike(name));
            let object = built.directory.join(format!("{name}.o"));
            let mut command = Command::new(&tools.clang);
            command.args(["-target", target, "-O2", "-fPIC", "-fvisibility=hidden", "-funwind-tables", "-c"]);
            run(command.arg(source).arg("-o").arg(&object));
            object
        };
        let (theirs, own) = (compile("libvendor_alike"), compile("own"));
        run(Command::new(&tools.ar).arg("rcs").arg(&built.library).arg(theirs));
        let fingerprint = fingerprint(&built.library);
        let own = own.to_string_lossy().into_owned();
        let id: &[&str] = if is_mach_o { &[] } else { &["--build-id"] };
        let flags = [&[own.as_str()], id].concat();
        let link = |library| {
            let (app, link_map) = link(&tools, &built, is_mach_o, library, &flags);
            (app, std::fs::read(built.directory.join("app.whole")).unwrap(), link_map)
        };
        let (app, whole, link_map) = link(Some(&built.library));
        let (stripped, _, wrong) = judge(&app, &link_map, &owners(&app, &fingerprint, None));
        assert_eq!(wrong, 0);
        let object = Object::parse_with(&app, &Limits::default()).unwrap();
        let debug = Object::parse_with(&whole, &Limits::default()).unwrap();
        let known = std::slice::from_ref(&fingerprint);
        let found = map(&object, known, &MapOptions::with_debug_files(&[&debug])).unwrap();
        let (met, there, wrong) = judge(&app, &link_map, &found);
        assert_eq!((met, wrong), (there, 0));
        assert_eq!(stripped + 8, there, "those that are alike");
        assert!(found.ranges.iter().all(|owned| owned.version.as_deref() == Some("2.1")));
        // The app's own symbols do as well.
        assert_eq!(map(&debug, known, &MapOptions::default()).unwrap(), found);
        // Another build's names are of other places.
        let (other, ..) = link(None);
        let other = Object::parse_with(&other, &Limits::default()).unwrap();
        let found = map(&other, known, &MapOptions::with_debug_files(&[&debug])).unwrap();
        assert_eq!(found.ranges, []);
    }
}

/// Behind each `bl` of an app's code, from its image base: of the library, and all others.
fn return_addresses(app: &[u8], link_map: &[u8]) -> (Vec<u64>, Vec<u64>) {
    let object = Object::parse_with(app, &Limits::default()).unwrap();
    let truth = LinkMap::parse(link_map).unwrap();
    let text = object.sections().iter().find(|section| section.name == "__text").unwrap();
    let bytes = object.section_data(text).unwrap();
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for (word, at) in bytes.chunks_exact(4).zip((text.address.start().get()..).step_by(4)) {
        if u32::from_le_bytes(word.try_into().unwrap()) >> 26 == 0x25 {
            let mut pieces =
                truth.pieces().filter(|piece| piece.range.contains(backtrail_core::Svma::new(at)));
            let is_ours = pieces.any(|piece| piece.file.contains("libvendor"));
            let list = if is_ours { &mut own } else { &mut other };
            list.push(at + 4 - object.image_base().get());
        }
    }
    (own, other)
}

fn stacks(addresses: &[u64]) -> BuildStacks {
    let mut build = BuildStacks::new(Arch::Arm64, true);
    build.size = Some(1 << 20);
    build.stacks = vec![addresses.iter().map(|at| Some(CodeOffset::Return(Rva::new(*at)))).collect()];
    build
}

#[test]
fn addresses_alone_tell_a_library_that_was_linked_alike() {
    let Some(tools) = tools("ld64.lld") else { return };
    let built = build(&tools, "arm64-apple-ios14.0");
    let fingerprint = fingerprint(&built.library);
    let (known, known_map) = link(&tools, &built, true, Some(&built.library), &[]);
    let fingerprints = [fingerprint];
    let layouts = Layout::from_file(&known, &fingerprints).unwrap();
    assert_eq!(layouts.len(), 1);
    let of_map = Layout::from_file(&known_map, &fingerprints).unwrap();
    assert_eq!(of_map[0].calls(), layouts[0].calls());
    // The app in question has more code of its own in front.
    let more = built.directory.join("more.c");
    std::fs::write(&more, source("more", 71, 30)).unwrap();
    let object = built.directory.join("more.o");
    run(Command::new(&tools.clang)
        .args(["-target", "arm64-apple-ios14.0", "-O2", "-c"])
        .arg(more)
        .arg("-o")
        .arg(&object));
    let object = object.to_str().unwrap();
    let (app, link_map) = link(&tools, &built, true, Some(&built.library), &[object]);
    let (own, other) = return_addresses(&app, &link_map);
    let all: Vec<u64> = own.iter().chain(&other).copied().collect();
    for layouts in [&layouts, &of_map] {
        let found = mine(&stacks(&all), layouts, &fingerprints);
        assert_eq!(found[0].confidence, Some(Confidence::Strong), "{found:?}");
        assert_eq!((found[0].hits, found[0].misses), (own.len(), 0));
        assert!(own.iter().all(|at| found[0].owns(CodeOffset::Return(Rva::new(*at)))));
        assert!(!other.iter().any(|at| found[0].owns(CodeOffset::Return(Rva::new(*at)))));
        // The app's own code alone, and addresses that follow no call.
        let absent = mine(&stacks(&other), layouts, &fingerprints);
        assert!(absent.iter().all(|found| found.confidence.is_none()), "{absent:?}");
        let odd: Vec<u64> = all.iter().map(|at| at * 3 + 1).collect();
        assert!(mine(&stacks(&odd), layouts, &fingerprints).iter().all(|found| found.confidence.is_none()));
    }
    // The archive's order is this app's order: all of its calls are enough.
    let found = mine(&stacks(&all), &[], &fingerprints);
    assert_eq!((found[0].how, found[0].confidence), ("archive", Some(Confidence::Strong)), "{found:?}");
    assert!(mine(&stacks(&other), &[], &fingerprints).iter().all(|found| found.confidence.is_none()));
    assert_eq!(mine(&stacks(&[]), &layouts, &fingerprints).len(), 0);
}

/// As with open source that both the library and the app have.
#[test]
fn half_of_a_library_in_an_app_is_not_the_library() {
    let Some(tools) = tools("ld64.lld") else { return };
    let built = build(&tools, "arm64-apple-ios14.0");
    let fingerprints = [fingerprint(&built.library)];
    let (known, _) = link(&tools, &built, true, Some(&built.library), &[]);
    let layouts = Layout::from_file(&known, &fingerprints).unwrap();
    let half = built.directory.join("libvendor-half.a");
    let members = [0, 1].map(|number| built.directory.join(format!("lib{number}.o")));
    run(Command::new(&tools.ar).arg("rcs").arg(&half).args(members));
    let (app, link_map) = link(&tools, &built, true, Some(&half), &[]);
    let (own, other) = return_addresses(&app, &link_map);
    assert!(!own.is_empty());
    let all: Vec<u64> = own.iter().chain(&other).copied().collect();
    let found = mine(&stacks(&all), &layouts, &fingerprints);
    // It lies there, and what is elsewhere does not say so.
    assert!(found[0].hits >= own.len() && found[0].elsewhere > 0.01, "{found:?}");
    assert_eq!(found[0].confidence, None);
}

#[test]
fn code_that_two_libraries_have_is_shared() {
    let Some(tools) = tools("ld64.lld") else { return };
    let built = build(&tools, "arm64-apple-ios14.0");
    let archive = |name: &str, members: [u32; 3]| {
        let path = built.directory.join(format!("lib{name}.a"));
        let members = members.map(|number| built.directory.join(format!("lib{number}.o")));
        run(Command::new(&tools.ar).arg("rcs").arg(&path).args(members));
        let data = std::fs::read(path).unwrap();
        learn(&[(name, &data)], &LearnOptions::new(name, "1")).unwrap().fingerprint
    };
    let both = [archive("A", [0, 1, 2]), archive("B", [1, 2, 3])];
    let (app, link_map) = link(&tools, &built, true, Some(&built.library), &[]);
    let object = Object::parse_with(&app, &Limits::default()).unwrap();
    let found = map(&object, &both, &MapOptions::default()).unwrap();
    let truth = LinkMap::parse(&link_map).unwrap();
    let mut shared = 0;
    for piece in truth.pieces().filter(|piece| !piece.range.is_empty() && piece.file.contains("libvendor")) {
        let Some(owned) = found.ranges.iter().find(|owned| owned.range.contains(piece.range.start())) else {
            continue;
        };
        let expected = match piece.file {
            file if file.contains("lib0.o") => "A",
            file if file.contains("lib3.o") => "B",
            _ => SHARED,
        };
        assert_eq!(owned.owner, expected, "{}", piece.file);
        if expected == SHARED {
            assert_eq!(owned.shared_by, ["A", "B"]);
            shared += 1;
        }
    }
    assert!(shared > 15, "{shared} shared functions");
    // One whose code is all another's is not there by itself.
    let (one, _) = link(&tools, &built, true, Some(&built.directory.join("libA.a")), &[]);
    let object = Object::parse_with(&one, &Limits::default()).unwrap();
    let found = map(&object, &both, &MapOptions::default()).unwrap();
    assert!(found.ranges.iter().all(|owned| owned.owner == "A"), "{:?}", found.ranges);
}

#[test]
fn libraries_for_armv7_and_arm64e() {
    let Some(tools) = tools("ld64.lld") else { return };
    for (target, arch) in [
        ("armv7-apple-ios9.0", Arch::from_name("armv7")),
        ("arm64e-apple-ios14.0", Arch::from_name("arm64e")),
    ] {
        let built = build(&tools, target);
        let fingerprint = fingerprint(&built.library);
        let learnt: Vec<_> = fingerprint.architectures().collect();
        assert_eq!(learnt.len(), 1, "{target}");
        assert_eq!(Some(learnt[0].0), arch, "{target}");
        assert!(learnt[0].1 >= 4 * 9, "{target}: {} functions", learnt[0].1);
        assert!(fingerprint.has_calls());
        let data = std::fs::read(&built.library).unwrap();
        let stamped = stamp(&data, "vend", None).unwrap();
        assert_eq!(stamped.sections, 4, "{target}");
        assert!(contains(&stamped.bytes, b"__text_vend"), "{target}");
        assert_eq!(unstamp(&stamped.bytes, "vend").unwrap().bytes, data, "{target}");
        // What was stamped is the same code.
        let again = learn(&[("libvendor.a", &stamped.bytes)], &LearnOptions::new("Vendor", "2.1")).unwrap();
        assert_eq!(again.fingerprint.architectures().collect::<Vec<_>>(), learnt, "{target}");
    }
}

/// Under an order file a function that nobody calls, and that only returns a number, has nothing that tells it but that it must be
/// somewhere. Where dead code was stripped it need not be, and the app's own one with its body is the app's.
#[test]
fn what_must_be_there_is_found_in_any_order() {
    let Some(tools) = tools("ld64.lld") else { return };
    const COUNT: u32 = 30;
    let function = |name: &str, seed: u32| {
        format!(
            "int {name}(int x, int y) {{ for (int i = 0; i < y; i++) x += (x ^ i) * {} + (y << {}); \
             if (x > {}) x -= y * {}; return x ^ {}; }}\n",
            seed * 37 + 11,
            seed % 9 + 1,
            seed * 101,
            seed + 3,
            seed * 7 + 1
        )
    };
    let directory = TempDir::new("sdk-present");
    let compile = |name: &str, text: &str| {
        let (source, object) =
            (directory.write(format!("{name}.c"), text), directory.join(format!("{name}.o")));
        let mut command = Command::new(&tools.clang);
        command.args(["-target", "arm64-apple-ios14.0", "-O2", "-c"]).arg(source).arg("-o").arg(&object);
        run(&mut command);
        object
    };
    let number = |name: &str| format!("int {name}(void) {{ return 70001; }}\n");
    let all = |name: &str, seed: u32| -> String {
        (0..COUNT).map(|at| function(&format!("{name}_{at}"), seed + at)).collect()
    };
    let library = directory.join("libvendor.a");
    let member = compile("lib", &(all("lib", 500) + &number("lib_number")));
    run(Command::new(&tools.ar).arg("rcs").arg(&library).arg(member));
    let main = "int main(int c, char **v) { (void)v; return c; }\n";
    let own = all("app", 7) + main;
    let built = Built { directory, library: library.clone() };
    // As many of the app's and of the library's functions, in an order of neither.
    let order: String =
        (0..COUNT).map(|at| format!("_lib_{}\n_app_{}\n", at * 11 % COUNT, at * 7 % COUNT)).collect();
    let order = built.directory.write("order", &(order + "_main\n_lib_number\n"));
    let order = order.to_string_lossy().into_owned();
    let known = fingerprint(&library);

    let place = |text: &str, flags: &[&str]| {
        let source = built.directory.write("app.c", text);
        let mut command = Command::new(&tools.clang);
        command.args(["-target", "arm64-apple-ios14.0", "-O2", "-c"]).arg(source);
        run(command.arg("-o").arg(built.directory.join("app.o")));
        let flags = [&["-order_file", &order, "-no_exported_symbols"], flags].concat();
        let (app, link_map) = link(&tools, &built, true, Some(&library), &flags);
        let found = owners(&app, &known, None);
        let hows: Vec<_> = found.ranges.iter().map(|owned| owned.how).collect();
        (judge(&app, &link_map, &found), hows.contains(&"present"))
    };
    let count = COUNT as usize;
    assert_eq!(place(&own, &[]), ((count + 1, count + 1, 0), true));
    // The app has a function of its own with that body: nobody knows which is which.
    assert_eq!(place(&(own.clone() + &number("app_number")), &[]), ((count, count + 1, 0), false));
    // Some of the library is used, and the number is not.
    let used: Vec<String> = (0..COUNT - 4).map(|at| format!("_lib_{at}")).collect();
    let mut flags = vec!["-dead_strip", "-u", "_app_number"];
    flags.extend(used.iter().flat_map(|name| ["-u", name]));
    assert_eq!(place(&(own + &number("app_number")), &flags), ((count - 4, count - 4, 0), false));
}
