//! The same crash in both formats gives the same model.

use crate::{files, read};
use backtrail_core::FrameAddress;
use backtrail_model::{Exception, Frame, Image, Report};

type Row = (u32, Option<FrameAddress>, Option<String>, Option<(String, Option<u64>)>);

/// What both formats state of a frame. The text has the image by name, the JSON by position.
fn row(frame: &Frame, images: &[Image]) -> Row {
    let image = frame.image.map(|image| images[image].name.clone());
    let symbol = frame.reported.as_ref().map(|symbol| (symbol.name.clone(), symbol.offset));
    (frame.index, frame.address, image, symbol)
}

fn stacks(report: &Report) -> Vec<(u64, bool, Option<String>, Vec<Row>)> {
    let rows = |frames: &[Frame]| frames.iter().map(|frame| row(frame, &report.process.images)).collect();
    report.process.threads.iter().map(|t| (t.number, t.crashed, t.name.clone(), rows(&t.frames))).collect()
}

fn images(report: &Report) -> Vec<Image> {
    let plain = |image: &Image| Image { source: None, ..image.clone() };
    report.process.images.iter().map(plain).collect()
}

fn exception(report: &Report) -> Exception {
    report.exception.clone().unwrap()
}

#[test]
fn both_formats_of_each_crash_agree() {
    for path in files("crashprobe/reports", ".crash") {
        let (_, text) = read(&path);
        let (_, json) = read(&path.with_extension("ips"));
        let place = path.display();
        assert_eq!(stacks(&text), stacks(&json), "{place}");
        for (a, b) in images(&text).into_iter().zip(images(&json)) {
            assert_eq!(a, b, "{place}");
        }
        assert_eq!(text.process.crashed_thread, json.process.crashed_thread, "{place}");
        assert_eq!(text.process.crashed_thread, Some(0), "{place}");
        let (a, b) = (exception(&text), exception(&json));
        assert_eq!(
            (a.kind, a.signal, a.raw_codes, a.address),
            (b.kind, b.signal, b.raw_codes, b.address),
            "{place}"
        );
        let lines =
            |report: &Report| report.app_info.iter().flat_map(|i| i.lines.clone()).collect::<Vec<_>>();
        assert_eq!(lines(&text), lines(&json), "{place}");
        let process = |report: &Report| {
            let process = report.process.clone();
            (process.name, process.pid, process.path, process.identifier, process.arch)
        };
        assert_eq!(process(&text), process(&json), "{place}");
        let header = |report: &Report| (report.os.clone(), report.device.clone(), report.incident.clone());
        assert_eq!(header(&text), header(&json), "{place}");
    }
}

/// Every frame that CrashProbe states an answer for lies where it says.
#[test]
fn application_frames_have_the_offsets_of_the_known_answer() {
    let Some(path) = backtrail_testkit::corpus_file("crashprobe/expected.json") else { return };
    let expected: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let reports = backtrail_testkit::corpus_file("crashprobe/reports").unwrap();
    for (name, answer) in expected.as_object().unwrap() {
        for ending in ["crash", "ips"] {
            let (_, report) = read(&reports.join(name).with_extension(ending));
            for frame in answer["frames"].as_array().unwrap() {
                let thread = usize::try_from(frame["thread"].as_u64().unwrap()).unwrap();
                let index = frame["frame"].as_u64().unwrap();
                let found = report.process.threads[thread]
                    .frames
                    .iter()
                    .find(|f| u64::from(f.index) == index)
                    .unwrap();
                let image = &report.process.images[found.image.unwrap()];
                assert_eq!(frame["image"], image.name.as_str(), "{name} {frame}");
                let offset = found.address.unwrap().raw().offset_from(image.load_address).unwrap();
                // On armv7 the answer is stated without the Thumb bit.
                let stated = frame["image_offset"].as_str().unwrap().trim_start_matches("0x");
                let stated = u64::from_str_radix(stated, 16).unwrap();
                assert_eq!(offset & !1, stated & !1, "{name} {frame}");
            }
        }
    }
}
