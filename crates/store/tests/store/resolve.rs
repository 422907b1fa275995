//! From what a report says of an image to its files.

use crate::common::*;
use backtrail_core::Arch;
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
    let (Some(folder), Some(reports)) = (corpus_file("crashprobe/dSYMs"), corpus_file("crashprobe/reports"))
    else {
        return;
    };
    let index = scan(&[&folder]);
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
