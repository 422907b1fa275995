//! What a scan finds in which layouts, and what it does not stumble over.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::*;
use backtrail_core::Arch;
use backtrail_object::{Format, Kind};
use backtrail_store::{Counts, ErrorKind, Index, NoProgress, Progress, ScanOptions};
use backtrail_testkit::TempDir;

#[test]
fn every_layout_is_looked_through() {
    let temp = TempDir::new("layouts");
    let app = "A.xcarchive/Products/Applications/App.app/App";
    temp.write(app, macho(ARM64, MH_EXECUTE, Some(1), 64));
    temp.write("A.xcarchive/dSYMs/App.app.dSYM/Contents/Info.plist", "<plist/>");
    temp.write("A.xcarchive/dSYMs/App.app.dSYM/Contents/Resources/DWARF/App", dsym(1, 64));
    let support = "iOS DeviceSupport/iPhone14,2 17.0 (21A329)/Symbols/usr/lib/system/libsystem_c.dylib";
    temp.write(support, macho(ARM64, 6, Some(2), 64));
    temp.write("debug/.build-id/03/0303.debug", elf(3, true, 64));
    temp.write("K.xcframework/ios-arm64/dSYMs/K.framework.dSYM/Contents/Resources/DWARF/K", dsym(4, 64));
    temp.write("zips/dSYMs.zip", zip(&[(DWARF_OF_APP, &dsym(5, 64), Deflated)]));
    temp.write("lib.so", elf(6, false, 64));
    temp.write("App.ipa", zip(&[("Payload/App.app/App", &macho(ARM64, MH_EXECUTE, Some(7), 64), Stored)]));
    let index = scan(&[temp.path()]);

    assert_eq!(problems(&index), [""; 0]);
    assert_eq!(
        places(&index, temp.path()),
        [
            app,
            "A.xcarchive/dSYMs/App.app.dSYM/Contents/Resources/DWARF/App",
            "App.ipa!Payload/App.app/App",
            "K.xcframework/ios-arm64/dSYMs/K.framework.dSYM/Contents/Resources/DWARF/K",
            "debug/.build-id/03/0303.debug",
            support,
            "lib.so",
            "zips/dSYMs.zip!App.app.dSYM/Contents/Resources/DWARF/App",
        ]
    );
    for n in [1, 2, 4, 5, 7] {
        assert!(!index.find(&uuid(n), Some(Arch::Arm64)).is_empty(), "{n}");
    }
    let found = index.find(&build_id(3), None);
    assert_eq!((found[0].identity.format, found[0].identity.has_debug_info), (Format::Elf, true));
    assert_eq!(index.counts().files, 11, "nine files and two members");
    assert_eq!(index.counts().found, 8);
}

#[test]
fn the_debug_file_comes_before_the_binary() {
    let temp = TempDir::new("rank");
    temp.write("a/App.app/App", macho(ARM64, MH_EXECUTE, Some(1), 64));
    temp.write("b.zip", zip(&[(DWARF_OF_APP, &dsym(1, 64), Deflated)]));
    temp.write("c/App.app.dSYM/Contents/Resources/DWARF/App", dsym(1, 64));
    let index = scan(&[temp.path()]);
    let found = index.find(&uuid(1), None);
    let kinds: Vec<_> = found.iter().map(|e| (e.identity.kind, e.location.is_in_zip())).collect();
    let expected = [(Kind::DebugCompanion, false), (Kind::DebugCompanion, true), (Kind::Executable, false)];
    assert_eq!(kinds, expected);
    for name in ["App", "App.app"] {
        assert!(index.named(name).len() >= 2, "{name}");
    }
    assert_eq!(index.named("app").len(), 0);
}

#[test]
fn fat_files_give_a_slice_each() {
    let temp = TempDir::new("fat");
    let (one, two) = (macho(X86_64, MH_DSYM, Some(1), 3000), dsym(2, 3000));
    temp.write("fat", fat(&[one.clone(), two.clone()]));
    let index = scan(&[temp.path()]);
    let entry = index.find(&uuid(2), Some(Arch::Arm64))[0];
    assert_eq!(*index.open(entry).unwrap(), two);
    assert!(index.open(entry).unwrap().is_mapped());
    let entry = index.find(&uuid(1), None)[0];
    assert_eq!(entry.identity.arch, Arch::X86_64);
    assert_eq!(*index.open(entry).unwrap(), one);
    assert!(index.find(&uuid(1), Some(Arch::Arm64)).is_empty());
}

#[test]
fn links_lead_on_but_not_around() {
    let temp = TempDir::new("links");
    temp.write("real/deep/b", dsym(1, 64));
    temp.write("elsewhere/c", dsym(2, 64));
    let real = temp.join("real");
    symlink("..", real.join("deep/up")).unwrap();
    symlink(".", real.join("self")).unwrap();
    symlink(temp.join("elsewhere"), real.join("a-link-first-in-order")).unwrap();
    symlink("deep/b", real.join("a")).unwrap();
    symlink("two", real.join("one")).unwrap();
    symlink("one", real.join("two")).unwrap();
    symlink("nowhere", real.join("dangling")).unwrap();
    std::fs::hard_link(real.join("deep/b"), real.join("hard")).unwrap();
    let index = scan(&[&real, &real]);
    // Under their own names: what is a link comes last.
    assert_eq!(places(&index, &real), ["a-link-first-in-order/c", "hard"]);
    let problems = problems(&index);
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].contains("dangling: cannot be read: No such file"), "{problems:?}");
    assert!(problems[1].contains("one: cannot be read: Too many levels"), "{problems:?}");
}

#[test]
fn links_out_of_the_scanned_paths_are_bounded() {
    let temp = TempDir::new("outside");
    temp.write("symbols/own", dsym(1, 64));
    for number in 2..20 {
        temp.write(format!("elsewhere/{number:02}/file"), dsym(number, 64));
    }
    let symbols = temp.join("symbols");
    symlink("/", symbols.join("everything")).unwrap();
    symlink("../..", symbols.join("above")).unwrap();
    symlink(temp.join("elsewhere"), symbols.join("outside")).unwrap();
    let index = scan(&[&symbols]);
    assert_eq!(index.entries().len(), 19);
    let problems = problems(&index);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[1].ends_with(
        "everything: a link to /, which has a scanned path within it, is not followed: name it to have all of it scanned"
    ));
    let mut options = ScanOptions::default();
    options.limits.linked = 10;
    let index = Index::scan(std::slice::from_ref(&symbols), &options, &NoProgress);
    // The directory itself, and of each below one file.
    assert_eq!(index.entries().len(), 1 + 4);
    let bounded = index.problems().iter().filter(|problem| problem.kind() == ErrorKind::Limit);
    let bounded: Vec<_> = bounded.filter(|problem| problem.what().contains("after 10 files")).collect();
    assert_eq!(bounded.len(), 1, "{:?}", index.problems());
    options = ScanOptions::default();
    options.limits.directories = 5;
    let index = Index::scan(&[temp.join("elsewhere")], &options, &NoProgress);
    assert_eq!(index.entries().len(), 3);
    assert!(index.problems()[0].what().contains("after 5 directories"), "{:?}", index.problems());
}

#[test]
fn names_that_are_no_utf8_are_scanned_and_shown() {
    let temp = TempDir::new("bytes");
    let directory = temp.join(OsStr::from_bytes(b"f\xff.dSYM/Contents/Resources/DWARF"));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(OsStr::from_bytes(b"a\xc3\x1b")), dsym(1, 64)).unwrap();
    std::fs::write(directory.join("broken"), "nothing").unwrap();
    let index = scan(&[temp.path()]);
    let entry = index.find(&uuid(1), None)[0];
    assert!(entry.location.to_string().ends_with("/f\\xff.dSYM/Contents/Resources/DWARF/a\\xc3\\u{1b}"));
    // No name rather than the directory's.
    assert_eq!((entry.location.file_name(), entry.names()), ("", vec![]));
    assert_eq!(*index.open(entry).unwrap(), dsym(1, 64));
    assert!(index.problems()[0].place().ends_with("f\\xff.dSYM/Contents/Resources/DWARF/broken"));
}

#[test]
fn what_is_no_file_is_never_opened() {
    let temp = TempDir::new("special");
    let fifo = temp.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let socket = std::os::unix::net::UnixListener::bind(temp.join("socket")).unwrap();
    symlink("/dev/zero", temp.join("zero")).unwrap();
    temp.write("a", dsym(1, 64));
    let index = scan(&[temp.path()]);
    assert_eq!((index.entries().len(), problems(&index).len()), (1, 0));
    let index = scan(&[&fifo, Path::new("/dev/zero"), &temp.join("missing"), &temp.join("a")]);
    let kinds: Vec<_> = index.problems().iter().map(backtrail_store::Error::kind).collect();
    assert_eq!(kinds, [ErrorKind::NotAFile, ErrorKind::NotAFile, ErrorKind::Io]);
    assert_eq!(index.entries().len(), 1);
    drop(socket);
}

#[test]
fn noise_is_passed_over_and_broken_bundles_are_named() {
    let temp = TempDir::new("noise");
    temp.write("._App", dsym(1, 64));
    temp.write("__MACOSX/App", dsym(2, 64));
    temp.write("Main.class", b"\xca\xfe\xba\xbe\0\0\0\x34 and more bytes of Java");
    temp.write("notes.txt", "text");
    temp.write("empty", "");
    let dwarf = "Contents/Resources/DWARF";
    temp.write(format!("A.dSYM/{dwarf}/A"), "");
    temp.write(format!("B.dSYM/{dwarf}/B"), "version https://git-lfs.github.com/spec/v1\noid sha256:00");
    temp.write(format!("C.dSYM/{dwarf}/C"), &dsym(3, 64)[..40]);
    for name in ["a.tar.gz", "b.tgz"] {
        temp.write(name, b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
    }
    temp.write("log.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
    let index = scan(&[temp.path()]);
    assert!(index.find(&uuid(1), None).is_empty());
    let problems = problems(&index);
    assert_eq!(problems.len(), 4, "{problems:#?}");
    assert!(
        problems[0]
            .contains("A.dSYM/Contents/Resources/DWARF/A: expected a dSYM's Mach-O file, this one is empty")
    );
    assert!(problems[1].contains("Git LFS"), "{problems:#?}");
    assert!(problems[2].contains("C.dSYM/Contents/Resources/DWARF/C: expected a UUID"), "{problems:#?}");
    assert!(
        problems[3].contains("a.tar.gz: a compressed archive, not read (and 1 more such)"),
        "{problems:#?}"
    );
}

#[test]
fn limits_end_the_walk_and_say_so() {
    let temp = TempDir::new("limits");
    let mut deep = String::new();
    for _ in 0..10 {
        deep.push_str("d/");
    }
    temp.write(format!("{deep}a"), dsym(1, 64));
    temp.write("b", dsym(2, 64));
    temp.write("c", dsym(3, 64));
    let mut options = ScanOptions::default();
    options.limits.directory_depth = 5;
    let index = Index::scan(&[temp.path().into()], &options, &NoProgress);
    assert_eq!(index.entries().len(), 2);
    assert_eq!(index.problems()[0].kind(), ErrorKind::Limit);
    let mut options = ScanOptions::default();
    options.limits.files = 2;
    let index = Index::scan(&[temp.path().into()], &options, &NoProgress);
    assert_eq!(index.entries().len(), 2);
    assert!(problems(&index)[0].contains("the scan ends here, after 2 files"));
    options.limits = ScanOptions::default().limits;
    options.limits.problems = 1;
    for name in ["x", "y", "z"] {
        symlink("nowhere", temp.join(name)).unwrap();
    }
    let index = Index::scan(&[temp.path().into()], &options, &NoProgress);
    assert!(
        problems(&index)[1].starts_with("2 more: could not be read either; of 3"),
        "{:?}",
        problems(&index)
    );
}

#[test]
fn a_file_cut_in_half_gives_what_it_still_has() {
    let temp = TempDir::new("cut");
    let slices = [macho(X86_64, MH_DSYM, Some(1), 10_000), dsym(2, 10_000)];
    let whole = fat(&slices);
    let dwarf = "Contents/Resources/DWARF/App";
    temp.write(format!("in-first.dSYM/{dwarf}"), &whole[..10_000]);
    temp.write(format!("in-second.dSYM/{dwarf}"), &whole[..20_000]);
    temp.write(format!("thin.dSYM/{dwarf}"), &dsym(3, 10_000)[..5000]);
    let index = scan(&[temp.path()]);
    let opened = |n: u8, file: &str| {
        let found = index.find(&uuid(n), None);
        let entry = found.iter().find(|entry| entry.location.path().starts_with(temp.join(file)));
        entry.map(|entry| index.open(entry).unwrap().len())
    };
    assert_eq!(opened(3, "thin.dSYM"), Some(5000));
    assert_eq!(opened(1, "in-second.dSYM"), Some(slices[0].len()));
    assert_eq!(opened(2, "in-second.dSYM"), Some(20_000 - 16_384));
    assert_eq!(opened(1, "in-first.dSYM"), Some(10_000 - 4096));
    let problems = problems(&index);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let expected = format!("in-first.dSYM/{dwarf}: at offset 0x4000: expected the slice arm64");
    assert!(problems[0].contains(&expected), "{problems:?}");
}

/// The highest counts that were told.
#[derive(Default)]
struct Highest {
    files: AtomicU64,
    found: AtomicU64,
}

impl Progress for Highest {
    fn scanned(&self, counts: &Counts) {
        self.files.fetch_max(counts.files, Ordering::Relaxed);
        self.found.fetch_max(counts.found, Ordering::Relaxed);
    }
}

#[test]
fn a_thousand_dsyms_cost_kilobytes_each_and_come_in_order() {
    const COUNT: usize = 1000;
    const SIZE: usize = 300_000;
    let temp = TempDir::new("thousand");
    for n in 0..COUNT {
        let mut file = dsym(0, 0);
        let id = [&(n as u32).to_be_bytes()[..], &[7; 12]].concat();
        file[40..56].copy_from_slice(&id);
        // Sparse, so that the test costs no disk.
        let path = temp.write(format!("{n}/App.app.dSYM/Contents/Resources/DWARF/App"), &file);
        std::fs::File::options().write(true).open(path).unwrap().set_len(SIZE as u64).unwrap();
    }
    let progress = Highest::default();
    let roots = [temp.path().to_owned()];
    let index = Index::scan(&roots, &ScanOptions::default(), &progress);
    assert_eq!(problems(&index), [""; 0]);
    assert_eq!(index.entries().len(), COUNT);
    assert_eq!(progress.files.into_inner(), COUNT as u64);
    assert_eq!(progress.found.into_inner(), COUNT as u64);
    let each = index.counts().bytes_read / COUNT as u64;
    assert!(each <= 8192, "{each} bytes read of each");
    // Reading the kernel's count is counted too.
    let (counted, by_kernel) = (index.counts().bytes_read, kernel_count(&roots));
    assert!((counted..counted + 1024).contains(&by_kernel), "{counted}, but {by_kernel}");

    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let again = alone.install(|| Index::scan(&roots, &ScanOptions::default(), &NoProgress));
    assert_eq!(places(&index, temp.path()), places(&again, temp.path()));
    for n in 0..COUNT {
        let id = backtrail_core::ImageId::parse_uuid(&format!("{n:08x}{}", "07".repeat(12))).unwrap();
        assert_eq!(index.find(&id, None).len(), 1, "{n}");
    }
}

/// Bytes that a scan on one thread reads, by the kernel's count of that thread.
fn kernel_count(roots: &[std::path::PathBuf]) -> u64 {
    let read = || {
        let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        let count = text.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        count.parse::<u64>().unwrap()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let before = read();
        let _ = Index::scan(roots, &ScanOptions::default(), &NoProgress);
        read() - before
    })
}
