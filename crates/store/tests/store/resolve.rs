//! From what a report says of an image to its files.

use crate::common::*;
use backtrail_core::{Arch, ImageId};
use backtrail_store::{Outcome, Wanted};
use backtrail_testkit::{TempDir, corpus_file};

fn wanted(name: &str, id: Option<u8>) -> Wanted {
    Wanted { name: name.into(), id: id.map(uuid), arch: Some(Arch::Arm64), ..Wanted::default() }
}

#[test]
fn only_an_identity_makes_a_file_the_right_one() {
    let temp = TempDir::new("resolve");
    temp.write("App.app.dSYM/Contents/Resources/DWARF/App", dsym(1, 64));
    temp.write("App.app/App", macho(ARM64, MH_EXECUTE, Some(1), 64));
    temp.write("Odd.dSYM/Contents/Resources/DWARF/Renamed", dsym(3, 64));
    let index = scan(&[temp.path()]);

    let resolution = index.resolve(&wanted("App", Some(1)));
    let Outcome::Found(found) = resolution.outcome else { panic!("{resolution:?}") };
    assert_eq!(found.len(), 2);
    assert!(found[0].identity.has_debug_info);
    assert_eq!(resolution.tried, [temp.path()]);
    // Whatever it is called.
    let resolution = index.resolve(&wanted("Other", Some(3)));
    assert!(matches!(resolution.outcome, Outcome::Found(_)), "{resolution:?}");

    let resolution = index.resolve(&wanted("App", Some(9)));
    let Outcome::Mismatch(found) = resolution.outcome else { panic!("{resolution:?}") };
    assert_eq!(found.iter().map(|entry| entry.identity.id).collect::<Vec<_>>(), [Some(uuid(1)); 2]);
    let by_path = Wanted { path: "/private/var/x/App.app/App".into(), ..wanted("", Some(9)) };
    assert!(matches!(index.resolve(&by_path).outcome, Outcome::Mismatch(_)));

    assert!(matches!(index.resolve(&wanted("app", Some(9))).outcome, Outcome::Missing));
    assert!(matches!(index.resolve(&wanted("", Some(9))).outcome, Outcome::Missing));
    for id in [None, Some(0)] {
        let resolution = index.resolve(&wanted("App", id));
        assert!(matches!(&resolution.outcome, Outcome::NoId(found) if found.len() == 2), "{resolution:?}");
    }
}

#[test]
fn the_slice_of_the_wanted_architecture_is_the_mismatch() {
    let temp = TempDir::new("arch");
    let slices = [macho(X86_64, MH_DSYM, Some(1), 64), dsym(2, 64)];
    temp.write("App.dSYM/Contents/Resources/DWARF/App", fat(&slices));
    let index = scan(&[temp.path()]);
    let resolution = index.resolve(&wanted("App", Some(9)));
    let Outcome::Mismatch(found) = resolution.outcome else { panic!("{resolution:?}") };
    assert_eq!(found.iter().map(|entry| entry.identity.id).collect::<Vec<_>>(), [Some(uuid(2))]);
    // arm64e is ARM-64 to a report; an identity that fits outweighs an architecture that does not.
    let arm64e = Wanted { arch: Some(Arch::Arm64e), ..wanted("App", Some(2)) };
    assert!(matches!(index.resolve(&arm64e).outcome, Outcome::Found(_)));
    assert!(matches!(index.resolve(&wanted("App", Some(1))).outcome, Outcome::Found(_)));
}

#[test]
fn real_reports_images_have_their_dsyms() {
    let (Some(directory), Some(reports)) =
        (corpus_file("crashprobe/dSYMs"), corpus_file("crashprobe/reports"))
    else {
        return;
    };
    let index = scan(&[&directory]);
    assert_eq!(problems(&index), [""; 0]);
    for entry in index.entries() {
        assert!(entry.identity.has_debug_info, "{entry:?}");
        assert_eq!(index.open(entry).unwrap().len() as u64, entry.identity.range.size());
    }
    let counts = index.counts();
    assert!(counts.bytes_read < counts.found * 16 * 1024, "{counts:?}");

    let files = std::fs::read_dir(reports).unwrap().flat_map(|arch| {
        let arch = arch.unwrap().path();
        std::fs::read_dir(arch).unwrap().map(|entry| entry.unwrap().path())
    });
    let crashes = files.filter(|path| path.extension().is_some_and(|extension| extension == "crash"));
    let mut images = 0;
    for report in crashes {
        for line in std::fs::read_to_string(&report).unwrap().lines().filter(|line| line.contains('<')) {
            // 0x104a30000 - 0x104a5bfff CrashProbeiOS arm64  <aa2f52b2…> /var/…
            let words: Vec<_> = line.split_whitespace().collect();
            let [_, "-", _, name, arch, id, ..] = words[..] else { continue };
            let name = name.trim_start_matches('+');
            if name != "CrashProbeiOS" && name != "CrashLibiOS" {
                continue;
            }
            let id = backtrail_core::ImageId::parse_uuid(id.trim_matches(['<', '>'])).unwrap();
            let wanted =
                Wanted { name: name.into(), id: Some(id), arch: Arch::from_name(arch), ..Wanted::default() };
            let resolution = index.resolve(&wanted);
            assert!(matches!(&resolution.outcome, Outcome::Found(found) if found[0].names().contains(&name)));
            images += 1;
        }
    }
    assert!(images >= 64, "{images}");
}

/// A GSYM file of nothing but its header.
fn gsym(id: &[u8]) -> Vec<u8> {
    let mut bytes = b"MYSG\x01\0\x04".to_vec();
    bytes.push(id.len() as u8);
    bytes.extend([0; 20]);
    bytes.extend(id);
    bytes.resize(48 + 4, 0);
    bytes
}

#[test]
fn symbol_files_of_other_tools_are_found_by_what_they_state_of_an_identity() {
    let temp = TempDir::new("symbol-files");
    let build = ImageId::parse_build_id("6fc3066a42132cbd9626c8f469af71b862e801c6").unwrap();
    let guid = "6A06C36F1342BD2C9626C8F469AF71B80";
    temp.write(format!("lib.so/{guid}/short.sym"), format!("MODULE Linux x86_64 {guid} lib.so\n"));
    let with_code =
        format!("MODULE Linux x86_64 {guid} lib.so\r\nINFO CODE_ID {build} lib.so\r\nFILE 0 a.c\r\n");
    temp.write("whole.sym", &with_code);
    temp.write("other.sym", with_code.replace("62e801c6", "00000000"));
    temp.write("mac.sym", "MODULE Mac arm64 030303030303030303030303030303030 App\n");
    temp.write("lib.gsym", gsym(build.as_bytes()));
    temp.write("md5.gsym", gsym(&[7; 16]));
    temp.write("code.f90", "MODULE weather\nEND MODULE\n");
    temp.write("text", "GSYM is a format\n");
    temp.write("App.app.dSYM/Contents/Resources/DWARF/App", dsym(3, 64));
    let (stored, deflated) = (zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated);
    let inner = gsym(build.as_bytes());
    let zipped = zip(&[("in/zip.sym", with_code.as_bytes(), deflated), ("in/zip.gsym", &inner, stored)]);
    temp.write("symbols.zip", zipped);
    let index = scan(&[temp.path()]);
    assert!(index.problems().is_empty(), "{:?}", index.problems());

    let names = |id: &ImageId, arch| {
        let found = index.find(id, arch);
        let mut names: Vec<_> = found.iter().map(|entry| entry.location.file_name().to_owned()).collect();
        names.sort();
        names
    };
    let all = ["lib.gsym", "short.sym", "whole.sym", "zip.gsym", "zip.sym"];
    let all: Vec<_> = all.iter().map(|name| name.rsplit('/').next().unwrap().to_owned()).collect();
    let shown = |names: Vec<String>| {
        names.iter().map(|name| name.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown(names(&build, Some(Arch::X86_64))), all);
    // GSYM states no architecture.
    assert_eq!(shown(names(&build, Some(Arch::Arm64))), ["lib.gsym", "zip.gsym"]);
    // A build id of 16 bytes looks like a UUID in GSYM, and an id that was cut to 16 bytes is as good as the whole one.
    assert_eq!(names(&ImageId::from_build_id(&[7; 16]).unwrap(), None), ["md5.gsym"]);
    let cut = ImageId::from_build_id(&build.as_bytes()[..16]).unwrap();
    assert_eq!(names(&cut, None).len(), 6, "{:?}", names(&cut, None));
    let wrong = ImageId::parse_build_id("6fc3066a42132cbd9626c8f469af71b862e801c7").unwrap();
    assert_eq!(names(&wrong, None), ["short.sym"], "it states 16 bytes alone");
    // Debug info comes first.
    let found = index.find(&uuid(3), Some(Arch::Arm64));
    let found: Vec<_> = found.iter().map(|entry| entry.location.file_name()).collect();
    assert_eq!(found, ["App", "mac.sym"]);
    // By name it is known which other build there is.
    let mismatch = index.resolve(&wanted("lib", Some(9)));
    assert!(matches!(mismatch.outcome, Outcome::Mismatch(_)), "{mismatch:?}");
}
