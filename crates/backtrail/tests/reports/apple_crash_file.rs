//! Crash files of Apple's systems. Nobody has one yet: they are laid out from the sample's reports, as the crash handler would write them,
//! and have to have the same answers.

use crate::sample::{each_report, frame, functions};
use backtrail::{Analysis, Limits, NoProgress, Report, Symbols};
use backtrail_capture::crash_file::{CrashFile, NsException, write};
use backtrail_capture::mach::Exception;
use backtrail_capture::{Fault, MappedImage, Process, Snapshot, Source, Thread};
use backtrail_core::{AddrRange, Avma, Bias, FrameAddress, ImageId, Registers, Svma};
use backtrail_testkit::fixtures;

/// What the sample's exception says.
const REASON: &str = "*** -[__NSArrayM objectAtIndex:]: index 2 beyond bounds [0 .. 1]";

/// Text reports have no ids of threads.
fn id(thread: &backtrail::Thread) -> u64 {
    thread.id.unwrap_or(thread.number + 1)
}

/// What a crash handler would have kept of this; `None` where none is called.
fn crash_file(report: &Report) -> Option<CrashFile<'static>> {
    let process = &report.process;
    let arch = process.arch.unwrap();
    let exception = report.exception.as_ref().unwrap();
    let mut file = CrashFile::new(Snapshot {
        process: Process {
            pid: process.pid,
            executable: process.path.clone(),
            time: Some(1_777_636_800),
            ..Process::default()
        },
        ..Snapshot::new(Source::CrashFile, arch)
    });
    match (exception.kind.as_deref(), exception.signal.as_deref()) {
        (Some("EXC_BAD_ACCESS"), _) => {
            let [code, subcode] = exception.raw_codes[..] else { panic!("{:?}", exception.raw_codes) };
            let crashed = process.threads.iter().find(|thread| thread.crashed).unwrap();
            let esr = crashed.registers.iter().find(|register| register.name == "esr");
            // The simulator's page fault: a read, by the program, of what is not mapped.
            let syndrome = esr.map_or(4 << 32 | 14, |register| register.value);
            let mach = Exception { kind: 1, code, subcode, syndrome };
            let signal = mach.signal(arch.family()).unwrap().into();
            let address = mach.address(arch.family()).map(Avma::new);
            file.snapshot.fault = Some(Fault::of_signal(signal, mach.linux_code(), address, None));
            file.mach_exception = Some(mach);
        }
        (_, Some("SIGABRT")) => file.snapshot.fault = Some(Fault::of_signal(6, -6, None, process.pid)),
        _ => return None,
    }
    for image in process.images.iter().filter(|image| image.id.is_some()) {
        let ends = image.end_address.unwrap();
        file.snapshot.images.push(MappedImage {
            path: image.path.clone().unwrap(),
            id: image.id,
            range: Some(AddrRange::new(image.load_address, ends)),
            bias: image.symbols.bias.or(Some(Bias::between(image.load_address, Svma::new(0)))),
            is_executable: image.path == process.path,
            ..MappedImage::default()
        });
    }
    for thread in &process.threads {
        let mut registers = Registers::new(arch.family());
        for register in &thread.registers {
            if let Some(number) = arch.family().register(&register.name) {
                registers.set(number, register.value);
            }
        }
        let frames: Vec<FrameAddress> =
            thread.frames.iter().filter(|frame| !frame.inlined).filter_map(|frame| frame.address).collect();
        if let Some(first) = frames.first() {
            registers.set(arch.family().pc(), first.raw().get());
        }
        file.walked.push((id(thread), frames));
        file.snapshot.threads.push(Thread {
            id: Some(id(thread)),
            name: thread.name.clone(),
            registers,
            is_crashed: thread.crashed,
            state: None,
            thread_pointer: None,
        });
    }
    file.ns_exception = process.backtraces.iter().find(|backtrace| backtrace.is_exception).map(|thrown| {
        let frames = thrown.frames.iter().filter(|frame| !frame.inlined);
        NsException {
            name: "NSRangeException".to_owned(),
            reason: REASON.to_owned(),
            thrown_at: frames.filter_map(|frame| Some(frame.address?.raw())).collect(),
        }
    });
    Some(file)
}

#[test]
fn frames_get_the_names_that_the_systems_own_report_gets() {
    let symbols = Symbols::scan(&[fixtures().join("sample/symbols")], &NoProgress);
    let mut count = 0;
    each_report("symbols", |path, _, system, case| {
        let Some(file) = crash_file(&system.report) else { return };
        let bytes = write(&file).unwrap();
        let ours = Analysis::new(&bytes, &symbols, &Limits::default()).unwrap();
        for wanted in case["frames"].as_array().unwrap() {
            let theirs = frame(&system.report, wanted);
            // Threads stand in another order: the one that crashed is the first.
            let found = match wanted["thread"].as_u64() {
                Some(thread) => {
                    let id = Some(id(&system.report.process.threads[usize::try_from(thread).unwrap()]));
                    let thread = ours.report.process.threads.iter().find(|thread| thread.id == id).unwrap();
                    thread.frames.iter().find(|frame| frame.address == theirs.address).unwrap()
                }
                None => frame(&ours.report, wanted),
            };
            assert_eq!(functions(found), wanted["functions"], "{} {found:?}", path.display());
        }
        assert_eq!(ours.report.time.as_deref(), Some("2026-05-01T12:00:00Z"), "{}", path.display());
        let (theirs, ours) = (&system.explanation, &ours);
        let of = |analysis: &Analysis| analysis.attribution.verdict;
        assert_eq!(of(ours), of(system), "{}", path.display());
        // What a library says before it aborts is not in the file.
        if file.mach_exception.is_some() || file.ns_exception.is_some() {
            assert_eq!(ours.explanation.title, theirs.title, "{}", path.display());
        }
        count += 1;
    });
    assert!(count >= 6, "{count}");
}

#[test]
fn the_kernels_exception_is_told_in_apples_words() {
    let report = std::fs::read(fixtures().join("sample/reports/null-member.ips")).unwrap();
    let system = Analysis::new(&report, &Symbols::none(), &Limits::default()).unwrap();
    let bytes = write(&crash_file(&system.report).unwrap()).unwrap();
    let ours = Analysis::new(&bytes, &Symbols::none(), &Limits::default()).unwrap();
    let (theirs, ours) = (system.report.exception.unwrap(), ours.report.exception.unwrap());
    assert_eq!(ours.kind, theirs.kind);
    assert_eq!(ours.signal, theirs.signal);
    assert_eq!(ours.subtype, theirs.subtype);
    assert_eq!(ours.raw_codes, theirs.raw_codes);
}

#[test]
fn an_exception_of_objective_c_has_its_name_and_where_it_was_thrown() {
    let report = std::fs::read(fixtures().join("sample/reports/sdk-exception.ips")).unwrap();
    let system = Analysis::new(&report, &Symbols::none(), &Limits::default()).unwrap();
    let bytes = write(&crash_file(&system.report).unwrap()).unwrap();
    let ours = Analysis::new(&bytes, &Symbols::none(), &Limits::default()).unwrap();
    let thrown = ours.report.thrown.as_ref().unwrap();
    assert_eq!(format!("{:?}", thrown.runtime), "ObjectiveC");
    assert_eq!(thrown.text(), format!("NSRangeException: {REASON}"));
    let [backtrace] = &ours.report.process.backtraces[..] else { panic!("one stack that threw") };
    assert!(backtrace.is_exception && backtrace.frames.iter().all(|frame| frame.image.is_some()));
    // As Apple's JSON it still has both.
    let again = Analysis::new(ours.ips().as_bytes(), &Symbols::none(), &Limits::default()).unwrap();
    let [again] = &again.report.process.backtraces[..] else { panic!("one stack that threw") };
    let addresses = |frames: &[backtrail::Frame]| -> Vec<_> {
        frames.iter().map(|frame| frame.address.unwrap().raw()).collect()
    };
    assert_eq!(addresses(&again.frames), addresses(&backtrace.frames));
}

/// Those have no words for a minidump that its readers would understand.
#[test]
#[cfg(feature = "minidump")]
fn a_minidump_is_not_made_of_it() {
    let report = std::fs::read(fixtures().join("sample/reports/null-member.ips")).unwrap();
    let system = Analysis::new(&report, &Symbols::none(), &Limits::default()).unwrap();
    let bytes = write(&crash_file(&system.report).unwrap()).unwrap();
    let error = backtrail::minidump_of_crash_file(&bytes).unwrap_err();
    assert!(error.to_string().contains("Apple"), "{error}");
    assert!(matches!(system.report.process.images[0].id, Some(ImageId::Uuid(_))));
}
