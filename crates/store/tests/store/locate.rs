//! Files that other files name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use backtrail_store::{DebugLinkCheck, Located, Places};
use backtrail_testkit::TempDir;
use flate2::Crc;

use crate::common::*;

fn found(located: &Located) -> Option<PathBuf> {
    located.found.as_ref().map(|(location, _)| location.path().to_owned())
}

#[test]
fn build_id_directories_hold_debug_files_and_binaries() {
    let temp = TempDir::new("build-id");
    let rest = "ab".repeat(19);
    let debug = temp.write(format!("usr/.build-id/ab/{rest}.debug"), elf(0xab, true, 64));
    temp.write(format!("wrong/.build-id/ab/{rest}.debug"), elf(1, true, 64));
    let directories = ["none", "wrong", "usr"].map(|name| temp.join(name)).to_vec();
    let locator = locator_of(Places { debug_directories: directories, ..Places::default() });
    let located = locator.debug_file(&build_id(0xab));
    assert_eq!(found(&located), Some(debug));
    let why: Vec<_> = located.tried.iter().map(|(_, why)| why.as_str()).collect();
    assert!(why[0].contains("No such file"), "{why:?}");
    assert_eq!(why[1], format!("has build id {}, not {}", build_id(1), build_id(0xab)));
    let located = locator.binary(&build_id(0xab));
    assert_eq!((located.found.is_none(), located.tried.len()), (true, 3));
    assert!(locator.debug_file(&uuid(1)).tried.is_empty());
}

#[test]
fn debug_links_are_followed_to_the_right_file_alone() {
    let temp = TempDir::new("link");
    let binary = temp.write("bin/tool", elf(1, false, 64));
    let debug = elf(1, true, 64);
    let global = temp.join("debug");
    let real = std::fs::canonicalize(temp.path()).unwrap();
    let below = global.join(real.strip_prefix("/").unwrap()).join("bin");
    let locator = || locator_of(Places { debug_directories: vec![global.clone()], ..Places::default() });
    let by_id = DebugLinkCheck::Id(build_id(1));
    let look = |check| locator().debug_link(&binary, "tool.debug", check);

    assert_eq!(look(by_id).tried.len(), 3);
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(below.join("tool.debug"), &debug).unwrap();
    assert_eq!(found(&look(by_id)), Some(below.join("tool.debug")));
    temp.write("bin/.debug/tool.debug", &debug);
    assert_eq!(found(&look(by_id)), Some(real.join("bin/.debug/tool.debug")));
    temp.write("bin/tool.debug", elf(2, true, 64));
    let located = look(by_id);
    assert_eq!(found(&located), Some(real.join("bin/.debug/tool.debug")));
    assert!(located.tried[0].1.contains("has build id"), "{located:?}");

    let mut crc = Crc::new();
    crc.update(&debug);
    assert_eq!(found(&look(DebugLinkCheck::Crc(crc.sum()))), Some(real.join("bin/.debug/tool.debug")));
    let located = look(DebugLinkCheck::Crc(1));
    assert!(
        located.found.is_none() && located.tried[1].1.contains("the debug link says 00000001"),
        "{located:?}"
    );
    // A link that names its own file, or leads elsewhere.
    let located = locator().debug_link(&binary, "tool", by_id);
    assert!(located.found.is_none() && located.tried.len() == 2, "{located:?}");
    for name in ["", "../bin/tool.debug", "/etc/passwd"] {
        assert!(locator().debug_link(&binary, name, by_id).found.is_none(), "{name}");
    }
}

#[test]
fn alternate_files_are_found_beside_by_id_and_in_the_scan() {
    let temp = TempDir::new("dwz");
    let debug = temp.write("debug/tool.debug", elf(1, true, 64));
    let alternate = temp.write("debug/.dwz/shared", elf(2, true, 64));
    let locator = locator_of(Places { debug_directories: vec![temp.join("debug")], ..Places::default() });
    let located = locator.alternate(&debug, Path::new(".dwz/shared"), &build_id(2));
    assert_eq!(found(&located), Some(std::fs::canonicalize(&alternate).unwrap()));
    let located = locator.alternate(&debug, Path::new(".dwz/shared"), &build_id(3));
    assert_eq!((located.found.is_none(), located.tried.len()), (true, 2));
    let index = scan(&[temp.path()]);
    let located = index.locator().alternate(&debug, Path::new("elsewhere"), &build_id(2));
    assert_eq!(found(&located), Some(alternate));
}

#[test]
fn files_are_found_where_they_were_built_where_they_went_and_by_name() {
    let temp = TempDir::new("path");
    // Relocatable files have no identity: they are found by name.
    let object = macho(ARM64, 1, None, 64);
    temp.write("moved/obj/main.o", &object);
    temp.write("other/main.o", macho(ARM64, 1, None, 32));
    temp.write("objects.zip", zip(&[("build/obj/zipped.o", &object, Deflated)]));
    let index = scan(&[temp.path()]);
    assert_eq!(index.loose("main.o").len(), 2);

    let path = Path::new("/build/obj/main.o");
    assert!(locator_of(Places::default()).file(path, &[]).found.is_none());
    let remapped =
        locator_of(Places { remaps: vec![("/build".into(), temp.join("moved"))], ..Places::default() });
    assert_eq!(found(&remapped.file(path, &[])), Some(temp.join("moved/obj/main.o")));
    let relative =
        locator_of(Places::default()).file(Path::new("main.o"), &[&temp.join("none"), &temp.join("other")]);
    assert_eq!((found(&relative), relative.tried.len()), (Some(temp.join("other/main.o")), 1));
    let named = index.locator();
    assert_eq!(found(&named.file(path, &[])), Some(temp.join("moved/obj/main.o")));
    let (location, data) = named.file(Path::new("/gone/obj/zipped.o"), &[]).found.unwrap();
    assert_eq!((location.is_in_zip(), &*data), (true, &object[..]));
}

#[test]
fn strangers_do_not_say_which_files_are_opened() {
    let temp = TempDir::new("named");
    let object = temp.write("private/main.o", macho(ARM64, 1, None, 64));
    let debug = temp.write("usr/tool.debug", elf(1, true, 64));
    let shared = temp.write("private/shared.debug", elf(2, true, 64));
    for named_paths in [true, false] {
        let locator = locator_of(Places { named_paths, debug_directories: Vec::new(), ..Places::default() });
        let found = [
            locator.file(&object, &[]),
            locator.file(Path::new("main.o"), &[&temp.join("private")]),
            locator.file(Path::new("../private/main.o"), &[&temp.join("usr")]),
            locator.debug_map_object(&object, 0),
            locator.alternate(&debug, &shared, &build_id(2)),
        ]
        .map(|located| located.found.is_some());
        assert_eq!(found, [named_paths; 5]);
    }
    // What was scanned is found by its name and identity.
    let mut index = scan(&[temp.path()]);
    index =
        index.with_places(Places { named_paths: false, debug_directories: Vec::new(), ..Places::default() });
    let named = index.locator();
    assert_eq!(found(&named.file(Path::new("/build/main.o"), &[])), Some(object));
    assert_eq!(found(&named.alternate(&debug, Path::new("/gone"), &build_id(2))), Some(shared));
}

#[test]
fn object_files_of_another_time_are_another_builds() {
    let temp = TempDir::new("time");
    let path = temp.write("main.o", macho(ARM64, 1, None, 64));
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let seconds = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let locator = locator_of(Places::default());
    for time in [0, seconds] {
        assert_eq!(found(&locator.debug_map_object(&path, time)), Some(path.clone()));
    }
    let located = locator.debug_map_object(&path, seconds + 5);
    assert!(located.found.is_none() && located.tried[0].1.starts_with("expected a file last changed"));
}

#[test]
fn packages_lie_beside_their_binary() {
    let temp = TempDir::new("dwp");
    let binary = temp.write("tool", elf(1, false, 64));
    let package = temp.write("tool.dwp", elf(2, true, 64));
    let locator = locator_of(Places::default());
    assert_eq!(found(&locator.package(&binary)), Some(package.clone()));
    assert_eq!(found(&locator.package(&temp.join("tool.debug"))), Some(package));
    assert!(locator.package(&temp.join("other")).found.is_none());
    // A name that is not UTF-8.
    let binary = temp.join(OsStr::from_bytes(b"t\xff"));
    let package = temp.write(OsStr::from_bytes(b"t\xff.dwp"), elf(2, true, 64));
    assert_eq!(found(&locator.package(&binary)), Some(package));
}
