use super::*;
use backtrail_core::ImageId;
use backtrail_testkit::corpus_file;

fn with_file(name: &str, check: impl FnOnce(Result<Snapshot<'_>, Error>)) {
    let Some(path) = corpus_file(format!("minidump/{name}")) else { return };
    check(read(&std::fs::read(path).unwrap(), &Limits::default()));
}

#[test]
fn a_linux_dump_keeps_sixteen_bytes_of_build_ids() {
    with_file("linux-mini.dmp", |snapshot| {
        let snapshot = snapshot.unwrap();
        assert_eq!((snapshot.arch, snapshot.threads.len()), (Arch::X86_64, 1));
        assert!(
            snapshot.threads[0].is_crashed
                && snapshot.threads[0].registers.pc() == Some(Avma::new(0x40_1d72))
        );
        let main = snapshot.images.iter().find(|image| image.is_executable).unwrap();
        assert_eq!(main.path, "/work/linux/build/crash");
        assert!(matches!(main.id, Some(ImageId::BuildId(_))));
        assert_eq!(snapshot.fault.unwrap().name, "SIGSEGV");
        assert!(!snapshot.mappings.is_empty() && !snapshot.memory.is_empty());
    });
}

#[test]
fn an_apple_dump_has_uuids_and_thread_names() {
    with_file("pipeline-inlines-macos-segv.dmp", |snapshot| {
        let snapshot = snapshot.unwrap();
        assert_eq!(snapshot.threads.len(), 11);
        assert_eq!(snapshot.threads[0].name.as_deref(), Some("main"));
        let main = snapshot.images.iter().find(|image| image.is_executable).unwrap();
        assert_eq!(main.id, ImageId::parse_uuid("509C0610-9498-36F7-B70B-D88BCF03E540").ok());
    });
}

#[test]
fn broken_dumps_are_refused_with_what_is_missing() {
    for name in ["invalid-range.dmp", "invalid-record-count.dmp"] {
        with_file(name, |snapshot| {
            let error = snapshot.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{name}");
            assert!(error.to_string().contains("expected the system's description"), "{name}: {error}");
        });
    }
    assert_eq!(read(b"no dump", &Limits::default()).unwrap_err().kind(), ErrorKind::Unrecognized);
    assert_eq!(read(b"MDMP", &Limits::default()).unwrap_err().kind(), ErrorKind::Truncated);
}
