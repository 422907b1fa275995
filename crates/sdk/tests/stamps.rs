//! Stamped libraries in real links, where clang and linkers are: every function of the library lies in the stamp, nothing else
//! does, and name and version are told. What is not here is said in one line and left out.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use backtrail_core::Confidence;
use backtrail_object::{Limits, Object};
use backtrail_sdk::{LinkMap, MapOptions, Markers, OwnerMap, Stamped, map, map_file, stamp, unstamp};
use backtrail_testkit::TempDir;
use common::{run, tool};

/// A member of the library: a function that others call, static ones, and a weak one where `shared`.
fn member(number: u32, shared: bool) -> String {
    let weak = if shared {
        "template <class T> inline __attribute__((noinline)) T common(T a) { return a * 7 + 1; }\n"
    } else {
        ""
    };
    let call = if shared { "common(x)" } else { "x" };
    format!(
        "{weak}extern \"C\" int vendor_state[16];\n\
         static __attribute__((noinline)) int helper{number}(int x) {{ return vendor_state[x & 15] * {number}13 + x; }}\n\
         extern \"C\" int vendor_unused{number}(int x) {{ return helper{number}(x) ^ {number}77; }}\n\
         extern \"C\" int vendor{number}(int x) {{ return helper{number}({call}) + helper{number}(x + {number}); }}\n"
    )
}

const APP: &str = "template <class T> inline __attribute__((noinline)) T common(T a) { return a * 7 + 1; }\n\
    extern \"C\" int vendor0(int); extern \"C\" int vendor1(int);\n\
    static __attribute__((noinline)) int own(int x) { return x * 41 + 5; }\n\
    extern \"C\" int start(int x) { return own(vendor0(x)) + vendor1(x) + common(x); }\n\
    extern \"C\" int main(int c, char **) { return start(c); }\n";

struct Built {
    directory: TempDir,
    library: PathBuf,
    target: &'static str,
}

impl Built {
    fn is_mach_o(&self) -> bool {
        self.target.contains("apple")
    }

    fn compile(&self, name: &str, text: &str, flags: &[&str]) -> Option<PathBuf> {
        let source = self.directory.write(format!("{name}.cpp"), text);
        let object = self.directory.join(format!("{name}.o"));
        let mut command = Command::new(tool("clang")?);
        command.args(["-target", self.target, "-O2", "-g", "-fPIC", "-fno-exceptions", "-c"]).args(flags);
        run(command.arg(source).arg("-o").arg(&object));
        Some(object)
    }
}

/// A library of three members, the last with the state that the others use.
fn build(target: &'static str, shared: bool, flags: &[&str]) -> Option<Built> {
    let directory = TempDir::new("stamps");
    let library = directory.join("libvendor.a");
    let built = Built { directory, library, target };
    let mut members = Vec::new();
    for number in 0..2 {
        members.push(built.compile(&format!("member{number}"), &member(number, shared), flags)?);
    }
    let state = "extern \"C\" { int vendor_state[16] = {1, 2, 3}; int vendor_state_sum() { return vendor_state[0] + vendor_state[5]; } }\n";
    members.push(built.compile("a_member_with_a_long_name", state, flags)?);
    run(Command::new(tool("llvm-ar")?).arg("rcs").arg(&built.library).args(members));
    Some(built)
}

fn stamped(built: &Built, version: Option<&str>) -> (Stamped, PathBuf) {
    let data = std::fs::read(&built.library).unwrap();
    let stamped = stamp(&data, "vend", version).unwrap();
    assert!(stamped.has_record);
    let back = unstamp(&stamped.bytes, "vend").unwrap().bytes;
    assert!(back == data, "unstamped, the library is another one");
    let path = built.directory.join("libvendor-stamped.a");
    std::fs::write(&path, &stamped.bytes).unwrap();
    (stamped, path)
}

struct Linked {
    app: PathBuf,
    map: PathBuf,
}

fn link(built: &Built, linker: &str, flags: &[&str], inputs: &[&Path]) -> Option<Linked> {
    let (app, map) = (built.directory.join("app"), built.directory.join("app.map"));
    let mut command = Command::new(if linker == "ld" { linker.to_owned() } else { tool(linker)? });
    if built.is_mach_o() {
        let arch = built.target.split('-').next().unwrap_or_default();
        let platform = ["-platform_version", "macos", "12.0", "14.0", "-undefined", "dynamic_lookup"];
        command.args(["-arch", arch]).args(platform).arg("-map").arg(&map);
    } else {
        command.args(["-e", "main"]).arg(format!("-Map={}", map.display()));
    }
    run(command.args(flags).args(inputs).arg("-o").arg(&app));
    Some(Linked { app, map })
}

fn owners(path: &Path) -> OwnerMap {
    let data = std::fs::read(path).unwrap();
    map_file(&data, None, &[], &MapOptions::default()).unwrap().swap_remove(0).owners
}

/// Checks that the stamp is there, that it has what the link map says, and that it survives stripping.
fn check(linked: &Linked, version: Option<&str>) {
    let data = std::fs::read(&linked.app).unwrap();
    let truth = LinkMap::parse(&std::fs::read(&linked.map).unwrap()).unwrap();
    let object = Object::parse_with(&data, &Limits::default()).unwrap();
    let found = map(&object, &[], &MapOptions::default()).unwrap();
    assert_eq!(found.ranges.len(), 1, "{:?}", found.ranges);
    let owned = &found.ranges[0];
    assert_eq!((owned.owner.as_str(), owned.version.as_deref()), ("vend", version));
    assert_eq!((owned.confidence, owned.how), (Confidence::Certain, "stamp"));
    let code: Vec<_> = object.sections().iter().filter(|section| section.is_code).collect();
    let (mut inside, mut outside) = (0, Vec::new());
    for piece in truth.pieces().filter(|piece| !piece.range.is_empty()) {
        if !code.iter().any(|section| section.address.contains(piece.range.start())) {
            continue;
        }
        let is_vendors = piece.file.contains("libvendor");
        let is_inside = owned.range.contains(piece.range.start());
        inside += usize::from(is_inside && is_vendors);
        // What a linker makes itself (stubs) lies in sections of its own.
        if is_inside != is_vendors {
            outside.push(format!("{:?}", piece.range.start()));
        }
    }
    assert!(inside >= 2, "{inside} pieces of the library");
    assert_eq!(outside, Vec::<String>::new(), "of the library and outside, or inside and of others");
    run(Command::new(tool("llvm-strip").unwrap()).arg(&linked.app));
    assert_eq!(owners(&linked.app).ranges, found.ranges, "stripped");
}

#[test]
fn mach_o_links_by_lld() {
    for target in ["arm64-apple-macos12.0", "x86_64-apple-macos12.0"] {
        let Some(built) = build(target, false, &[]) else { return };
        let (_, library) = stamped(&built, Some("2.1-rc.1"));
        let app = built.compile("app", APP, &[]).unwrap();
        let lto = built.compile("app-lto", APP, &["-flto"]).unwrap();
        let order = built.directory.write("order", "_vendor1\n_start\n_vendor0\n");
        let order = order.display().to_string();
        for flags in [
            &[][..],
            &["-dead_strip"],
            &["--icf=all"],
            &["-order_file", &order],
            &["-all_load"],
            &["-dead_strip", "--icf=all", "-order_file", &order],
        ] {
            for app in [&app, &lto] {
                let Some(linked) = link(&built, "ld64.lld", flags, &[app, &library]) else { return };
                check(&linked, Some("2.1-rc.1"));
            }
        }
    }
}

#[test]
fn elf_links_by_lld_and_gnu_ld() {
    for target in ["x86_64-linux-gnu", "aarch64-linux-gnu", "i686-linux-gnu", "armv7-linux-gnueabihf"] {
        for sections in
            [&[][..], &["-ffunction-sections", "-fcf-protection=none"], &["-g0", "-mno-unaligned-access"]]
        {
            if sections.contains(&"-mno-unaligned-access") != target.starts_with("arm") {
                continue;
            }
            let Some(built) = build(target, false, sections) else { return };
            let (_, library) = stamped(&built, Some("10.0"));
            let app = built.compile("app", APP, &["-ffunction-sections"]).unwrap();
            let lto = built.compile("app-lto", APP, &["-flto"]).unwrap();
            for flags in [&[][..], &["--gc-sections"], &["--icf=all"], &["-shared"], &["--whole-archive"]] {
                for (app, linker) in [(&app, "ld.lld"), (&lto, "ld.lld"), (&app, "ld")] {
                    if linker == "ld" && (target != "x86_64-linux-gnu" || flags.contains(&"--icf=all")) {
                        continue;
                    }
                    let Some(linked) = link(&built, linker, flags, &[app, &library]) else { return };
                    check(&linked, Some("10.0"));
                }
            }
        }
    }
}

#[test]
fn a_dsym_tells_range_and_version() {
    let Some(built) = build("arm64-apple-macos12.0", false, &[]) else { return };
    let (_, library) = stamped(&built, Some("2.1"));
    let app = built.compile("app", APP, &[]).unwrap();
    let (Some(linked), Some(dsymutil)) =
        (link(&built, "ld64.lld", &["-dead_strip"], &[&app, &library]), tool("dsymutil"))
    else {
        return;
    };
    let dsym = built.directory.join("app.dwarf");
    run(Command::new(dsymutil).arg("--flat").arg(&linked.app).arg("-o").arg(&dsym));
    assert_eq!(owners(&dsym).ranges, owners(&linked.app).ranges);
}

#[test]
fn a_stamp_without_a_version_has_none() {
    let Some(built) = build("arm64-apple-macos12.0", false, &[]) else { return };
    let (_, library) = stamped(&built, None);
    let app = built.compile("app", APP, &[]).unwrap();
    let Some(linked) = link(&built, "ld64.lld", &[], &[&app, &library]) else { return };
    check(&linked, None);
}

/// As zig's own linker does.
#[test]
fn code_that_a_linker_joined_is_said() {
    let Some(built) = build("arm64-apple-macos12.0", false, &[]) else { return };
    let (_, library) = stamped(&built, Some("2.1"));
    let app = built.compile("app", APP, &[]).unwrap();
    let rename = ["-rename_section", "__TEXT", "__text_vend", "__TEXT", "__text"];
    let Some(linked) = link(&built, "ld64.lld", &rename, &[&app, &library]) else { return };
    let found = owners(&linked.app);
    assert_eq!(found.ranges, []);
    assert!(found.notes.iter().any(|note| note.contains("stamp of vend 2.1")), "{:?}", found.notes);
}

/// Two archives of one stamp, all of both: one version is told, two are not.
#[test]
fn two_archives_of_one_stamp() {
    for (target, linker, all) in [
        ("arm64-apple-macos12.0", "ld64.lld", "-all_load"),
        ("x86_64-linux-gnu", "ld.lld", "--whole-archive"),
    ] {
        let Some(built) = build(target, false, &[]) else { return };
        let (_, library) = stamped(&built, Some("1"));
        let app = built.compile("app", APP, &[]).unwrap();
        let object =
            built.compile("more", "extern \"C\" int more(int x) { return x * 3 + x / 7; }\n", &[]).unwrap();
        let other = built.directory.join("libother.a");
        run(Command::new(tool("llvm-ar").unwrap()).arg("rcs").arg(&other).arg(object));
        let data = std::fs::read(&other).unwrap();
        for (version, told) in [("1", Some("1")), ("2", None)] {
            std::fs::write(&other, stamp(&data, "vend", Some(version)).unwrap().bytes).unwrap();
            let Some(linked) = link(&built, linker, &[all], &[&app, &library, &other]) else { return };
            let found = owners(&linked.app).ranges;
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].version.as_deref(), told);
        }
    }
}

/// Functions of templates are whoever's came first.
#[test]
fn shared_code_is_counted() {
    for (target, linker) in [("arm64-apple-macos12.0", "ld64.lld"), ("x86_64-linux-gnu", "ld.lld")] {
        let Some(built) = build(target, true, &[]) else { return };
        let (stamped, library) = stamped(&built, Some("1"));
        assert_eq!(stamped.shared, 2, "members with weak code");
        let app = built.compile("app", APP, &[]).unwrap();
        let Some(linked) = link(&built, linker, &[], &[&library, &app]) else { return };
        let data = std::fs::read(&linked.app).unwrap();
        let object = Object::parse_with(&data, &Limits::default()).unwrap();
        let symbols = object.symbols().unwrap();
        let common = symbols.iter().find(|symbol| symbol.name.contains("common")).unwrap().address;
        let range = owners(&linked.app).ranges[0].range;
        assert!(!range.contains(common), "{target}: the app's copy, which came first");
    }
}

#[test]
fn fat_archives_and_other_archivers_are_undone_to_the_same_bytes() {
    let Some(lipo) = tool("llvm-lipo") else { return };
    let directory = TempDir::new("stamps-fat");
    let fat = directory.join("fat.a");
    let built: Option<Vec<_>> =
        ["arm64-apple-ios12.0", "x86_64-apple-ios12.0-simulator", "armv7-apple-ios10.0"]
            .map(|target| build(target, true, &[]))
            .into_iter()
            .collect();
    let Some(built) = built else { return };
    run(Command::new(lipo)
        .arg("-create")
        .args(built.iter().map(|one| &one.library))
        .arg("-output")
        .arg(&fat));
    for format in ["gnu", "bsd", "darwin"] {
        let archive = directory.join(format!("{format}.a"));
        let mut command = Command::new(tool("llvm-ar").unwrap());
        command.arg(format!("--format={format}")).arg("rcsD").arg(&archive);
        let members = ["member0.o", "member1.o", "a_member_with_a_long_name.o"];
        run(command.args(members.map(|name| built[0].directory.join(name))));
        let data = std::fs::read(&archive).unwrap();
        let stamped = stamp(&data, "vend", Some("3")).unwrap();
        assert!(unstamp(&stamped.bytes, "vend").unwrap().bytes == data, "{format}");
    }
    let data = std::fs::read(&fat).unwrap();
    let stamped = stamp(&data, "vend", Some("3")).unwrap();
    assert_eq!(stamped.sections, 9);
    assert!(unstamp(&stamped.bytes, "vend").unwrap().bytes == data);
    assert!(stamp(&stamped.bytes, "vend", Some("3")).unwrap_err().to_string().contains("no stamp"));
    assert!(unstamp(&stamped.bytes, "other").unwrap_err().to_string().contains("this stamp"));
    let path = directory.join("stamped.a");
    std::fs::write(&path, &stamped.bytes).unwrap();
    // LLVM's tools read what came out, members of all slices with the symbol that asks for the record.
    let output = Command::new(tool("llvm-nm").unwrap()).arg("--arch=all").arg(&path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches(" U _backtrail_sdk$vend$3").count(), 9, "{text}");
    assert_eq!(text.matches(" _backtrail_sdk$vend$3").count(), 12, "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn an_object_alone_is_marked_without_a_record() {
    let Some(built) = build("arm64-apple-macos12.0", false, &[]) else { return };
    let data = std::fs::read(built.directory.join("member0.o")).unwrap();
    let stamped = stamp(&data, "vend", Some("1")).unwrap();
    assert!(!stamped.has_record && stamped.sections == 1);
    assert_eq!(unstamp(&stamped.bytes, "vend").unwrap().bytes, data);
    // Cut: what was before is not known.
    let error = unstamp(&stamped.bytes[..stamped.bytes.len() - 8], "vend").unwrap_err().to_string();
    assert!(error.contains("another tool") || error.contains("expected"), "{error}");
}

#[test]
fn markers_enclose_what_is_likely_the_library_s() {
    let Some(built) = build("arm64-apple-macos12.0", false, &[]) else { return };
    let markers = "extern \"C\" int first() { return 1; } extern \"C\" int inside(int x) { return x * 9; }\n\
                   extern \"C\" int last() { return 2; }\n";
    let marked = built.compile("marked", markers, &[]).unwrap();
    let app = built.compile("app", APP, &[]).unwrap();
    let (_, library) = stamped(&built, Some("1"));
    let Some(linked) = link(&built, "ld64.lld", &[], &[&app, &marked, &library]) else { return };
    let data = std::fs::read(&linked.app).unwrap();
    let find = |text: &str| {
        let mut mapped = map_file(&data, None, &[], &MapOptions::default()).unwrap();
        text.parse::<Markers>().unwrap().add_to(&data, &mut mapped).unwrap();
        let owners = mapped.swap_remove(0).owners;
        let found = owners.ranges.into_iter().find(|owned| owned.how == "markers");
        (found, owners.notes.join(" "))
    };
    let object = Object::parse_with(&data, &Limits::default()).unwrap();
    let address = |name: &str| {
        object.symbols().unwrap().into_iter().find(|symbol| symbol.name == name).unwrap().address
    };
    let (found, notes) = find("Marked=first,last");
    let found = found.unwrap();
    assert_eq!((found.owner.as_str(), found.confidence, notes.as_str()), ("Marked", Confidence::Likely, ""));
    assert_eq!((found.range.start(), found.range.end()), (address("_first"), address("_last")));
    assert!(find("last,first").1.contains("moved functions"));
    assert!(find("first,nothing").1.contains("none of the app's symbols"));
    // The vendor's stamp lies between.
    let (found, notes) = find("X=first,vendor_state_sum");
    assert!(found.is_none() && notes.contains("code of others"), "{notes}");
    for wrong in ["", "a", "a,", ",b", "=a,b", "a,b,c"] {
        assert!(wrong.parse::<Markers>().is_err(), "{wrong}");
    }
}
