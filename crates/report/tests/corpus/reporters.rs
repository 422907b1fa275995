//! Reports of reporters other than Apple's: nothing is lost, and each form of the same crash reads the same.

use crate::losses::{Words, leaves, words};
use crate::{files, read};
use backtrail_core::{FrameAddress, Utc};
use backtrail_model::{Frame, Report};

/// An address, and the name with its offset.
type Row = (Option<u64>, Option<(String, Option<u64>)>);

fn rows(frames: &[Frame]) -> Vec<Row> {
    let row = |frame: &Frame| {
        let address = frame.address.map(FrameAddress::raw).map(backtrail_core::Avma::get);
        let symbol = frame.reported.as_ref().filter(|_| frame.names().next().is_some());
        (address, symbol.map(|symbol| (symbol.name.clone(), symbol.offset)))
    };
    frames.iter().map(row).collect()
}

/// The stacks, as KSCrash's own text has them: without the frames that lie in no image.
fn stacks(report: &Report) -> Vec<(u64, bool, Vec<Row>)> {
    let stack = |thread: &backtrail_model::Thread| {
        let named = thread.frames.iter().filter(|frame| frame.image_name.is_some());
        (thread.number, thread.crashed, rows(&named.cloned().collect::<Vec<_>>()))
    };
    report.process.threads.iter().map(stack).collect()
}

#[test]
fn kscrashs_json_and_its_text_have_the_same_frames() {
    let mut count = 0;
    for path in files("kinds/kscrash-pairs", ".json") {
        let (_, json) = read(&path);
        let (_, text) = read(&path.with_extension("txt"));
        let place = path.display();
        let (mut found, mut expected) = (stacks(&json), stacks(&text));
        if path.ends_with("CrashInHandler.json") {
            // Behind the last thread the text has the rows of a second report.
            assert!(found.pop().is_some() && expected.pop().is_some());
        }
        assert_eq!(found, expected, "{place}");
        assert_eq!(json.process.crashed_thread, text.process.crashed_thread, "{place}");
        assert_eq!(json.process.images.len(), text.process.images.len(), "{place}");
        let header = |report: &Report| {
            let process = report.process.clone();
            (process.name, process.pid, process.path, process.identifier, process.version, report.os.clone())
        };
        assert_eq!(header(&json), header(&text), "{place}");
        let what =
            |report: &Report| report.exception.clone().map(|exception| (exception.kind, exception.signal));
        assert_eq!(what(&json), what(&text), "{place}");
        count += 1;
    }
    assert!(count == 5 || backtrail_testkit::corpus().is_none(), "{count}");
}

#[test]
fn every_leaf_of_kscrashs_json_is_in_the_model() {
    let mut paths = files("apple/kscrash", ".json");
    paths.extend(files("kinds/kscrash-pairs", ".json"));
    paths.extend(files("kinds/bugsnag", "KSCrashReport1.json"));
    paths.extend(files("kinds/embrace", "report.json"));
    let mut count = 0;
    for path in paths {
        let (input, report) = read(&path);
        let Ok(document) = serde_json::from_slice(&input) else { continue };
        let model = Words::of(&report);
        let mut found = Vec::new();
        leaves("", &document, &mut found);
        // What the model says by its structure.
        let structure = [".cpu_type", ".cpu_subtype", ".crashed", ".current_thread", ".backtrace.skipped"];
        // Numbers with a fraction are kept as written, which their reading here is not.
        let is_fraction = |value: &str| value.contains('.') && value.parse::<f64>().is_ok();
        let is_structure = |leaf: &str| structure.iter().any(|end| leaf.ends_with(end));
        for (leaf, value) in
            found.iter().filter(|(leaf, value)| !is_structure(leaf) && value != "null" && !is_fraction(value))
        {
            // A count since 1970 is told as a date; its first ten digits are the seconds, whatever the unit.
            if leaf.ends_with("report.timestamp") && value.parse::<u64>().is_ok() {
                let date = Utc::from_unix(value[..10].parse().unwrap()).to_string();
                let told = report.time.as_deref().unwrap_or_default();
                assert!(told.starts_with(date.trim_end_matches('Z')), "{} {value}: {told}", path.display());
                continue;
            }
            // Negative registers and addresses are two's complement.
            let negative = value.parse::<i64>().ok().filter(|number| *number < 0);
            let value = &negative.map_or_else(|| value.clone(), |number| number.cast_unsigned().to_string());
            // An address is shown in hexadecimal.
            let hex =
                |word: &str| word.parse::<u64>().map(|number| format!("{number:#x}")).unwrap_or_default();
            let is_there = |word: &String| model.0.contains(word) || model.0.contains(&hex(word));
            let lost: Vec<String> = words(value).filter(|word| !is_there(word)).collect();
            assert!(lost.is_empty(), "{} {leaf}: {lost:?} of `{value}`", path.display());
        }
        count += 1;
    }
    assert!(count > 35 || backtrail_testkit::corpus().is_none(), "{count}");
}

#[test]
fn plcrashs_binary_and_its_text_have_the_same_frames() {
    for path in files("apple/plcrash", "live_report_xamarin.plcrash") {
        let (_, binary) = read(&path);
        let (_, text) = read(&path.with_file_name("log_report_xamarin"));
        let addresses = |report: &Report| -> Vec<Vec<Option<u64>>> {
            let threads = report.process.threads.iter().map(|thread| &thread.frames);
            let stacks = threads.chain(report.process.backtraces.iter().map(|backtrace| &backtrace.frames));
            stacks.map(|frames| rows(frames).into_iter().map(|row| row.0).collect()).collect()
        };
        assert_eq!(addresses(&binary), addresses(&text));
        let images = |report: &Report| -> Vec<_> {
            let mut images: Vec<_> =
                report.process.images.iter().map(|image| (image.load_address, image.id)).collect();
            images.sort();
            images
        };
        assert_eq!(images(&binary), images(&text));
        assert_eq!(binary.process.name, text.process.name);
        assert_eq!(binary.process.arch, text.process.arch);
        let registers = |report: &Report| -> Vec<_> {
            report
                .crashed()
                .unwrap()
                .registers
                .iter()
                .map(|register| (register.name.clone(), register.value))
                .collect()
        };
        assert_eq!(registers(&binary), registers(&text));
    }
}

#[test]
fn every_binary_report_of_plcrash_is_read() {
    let mut paths = files("apple/plcrash", ".plcrash");
    paths.extend(files("kinds/plcrash", ".plcrash"));
    for path in paths.into_iter().filter(|path| !path.ends_with("live_report_empty.plcrash")) {
        let (_, report) = read(&path);
        let place = path.display();
        assert!(report.notes.is_empty(), "{place}: {:?}", report.notes);
        assert!(report.process.crashed_thread.is_some(), "{place}");
        assert!(report.process.images.len() > 70, "{place}");
        let placed = report
            .process
            .threads
            .iter()
            .flat_map(|thread| &thread.frames)
            .filter(|frame| frame.image.is_some());
        assert!(placed.count() > 2, "{place}");
    }
}
