use super::*;
use crate::parse;
use backtrail_core::FrameAddress;

fn number(field: u8, mut value: u64) -> Vec<u8> {
    let mut bytes = vec![field << 3];
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        bytes.push(if value > 0 { low | 0x80 } else { low });
        if value == 0 {
            return bytes;
        }
    }
}

fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = number(field, content.len() as u64);
    bytes[0] |= 2;
    bytes.extend_from_slice(content);
    bytes
}

fn frame(pc: u64) -> Vec<u8> {
    bytes(2, &number(3, pc))
}

pub(crate) fn report() -> Vec<u8> {
    let symbol = [bytes(1, b"_main"), number(2, 0x1000_0f00)].concat();
    let first = bytes(2, &[number(3, 0x1000_1000), bytes(6, &symbol)].concat());
    let register = bytes(4, &[bytes(1, b"pc"), number(2, 0x1000_1000)].concat());
    let processor = [number(1, 1), number(2, 0x0100_000c), number(3, 0)].concat();
    let image = [
        number(1, 0x1000_0000),
        number(2, 0x8000),
        bytes(3, b"/var/App.app/App"),
        bytes(4, &[7; 16]),
        bytes(5, &processor),
    ];
    let thrown = [bytes(1, b"NSRangeException"), bytes(2, b"beyond"), bytes(3, &number(3, 0x1000_2000))];
    let parts = [
        bytes(1, &[number(1, 1), bytes(2, b"17.1"), number(4, 1_700_000_000), bytes(5, b"21B74")].concat()),
        bytes(2, &[bytes(1, b"a.b"), bytes(2, b"3"), bytes(3, b"1.2")].concat()),
        bytes(3, &[number(1, 0), first, frame(0x1000_1100), number(3, 1), register].concat()),
        bytes(3, &[number(1, 1), frame(0x10), number(3, 0)].concat()),
        bytes(4, &image.concat()),
        bytes(5, &thrown.concat()),
        bytes(6, &[bytes(1, b"SIGABRT"), bytes(2, b"#0"), number(3, 0x1000_1000)].concat()),
        bytes(7, &[bytes(1, b"App"), number(2, 7), bytes(3, b"/var/App.app/App")].concat()),
        bytes(8, &[bytes(1, b"iPhone15,2"), bytes(2, &processor), number(3, 2)].concat()),
        bytes(9, &bytes(2, &[9; 16])),
        bytes(10, b"user data"),
        bytes(77, b"from the future"),
    ];
    [b"plcrash\x01", parts.concat().as_slice()].concat()
}

#[test]
fn a_report_fills_the_model() {
    let report = parse(&report(), &Limits::default()).unwrap();
    assert_eq!(report.source, Source::PlCrash);
    let process = &report.process;
    assert_eq!(
        (process.name.as_deref(), process.pid, process.version.as_deref()),
        (Some("App"), Some(7), Some("1.2 (3)"))
    );
    assert_eq!(report.os.as_deref(), Some("iPhone OS 17.1 (21B74)"));
    assert_eq!(report.time.as_deref(), Some("2023-11-14 22:13:20 +0000"));
    assert_eq!(process.arch, Some(Arch::Arm64));
    assert_eq!(process.crashed_thread, Some(0));
    let [first, second] = process.threads[0].frames.as_slice() else { panic!() };
    assert_eq!(first.address, Some(FrameAddress::Exact(Avma::new(0x1000_1000))));
    assert_eq!(second.address, Some(FrameAddress::Return(Avma::new(0x1000_1100))));
    let symbol = first.reported.as_ref().unwrap();
    assert_eq!((symbol.name.as_str(), symbol.offset), ("main", Some(0x100)));
    assert_eq!(first.image, Some(0));
    assert!(process.backtraces[0].is_exception);
    assert_eq!(process.backtraces[0].frames[0].address, Some(FrameAddress::Return(Avma::new(0x1000_2000))));
    assert_eq!(report.app_info[0].lines, ["NSRangeException: beyond"]);
    assert_eq!(report.exception.as_ref().unwrap().codes.as_deref(), Some("#0 at 0x10001000"));
    assert_eq!(report.sections[0].text, "user data");
    assert!(report.fields.iter().any(|field| field.value == "from the future"));
}

#[test]
fn every_cut_and_every_damaged_byte_is_read_without_harm() {
    let whole = report();
    for end in 0..whole.len() {
        let _ = parse(&whole[..end], &Limits::default());
        for bits in [0xff, 0x80, 0x01] {
            let mut damaged = whole.clone();
            damaged[end] ^= bits;
            let _ = parse(&damaged, &Limits::default());
        }
    }
    let report = parse(&whole[..whole.len() - 10], &Limits::default()).unwrap();
    assert!(report.notes[0].starts_with("the report is cut or broken"), "{:?}", report.notes);
    assert_eq!(report.process.threads.len(), 2);
    assert!(parse(b"plcrash\x02", &Limits::default()).is_err());
}

#[test]
fn limits_hold() {
    let limits = Limits { max_frames: 1, max_threads: 1, max_images: 0, ..Limits::default() };
    let report = parse(&report(), &limits).unwrap();
    assert_eq!((report.process.threads.len(), report.process.images.len()), (1, 0));
    assert!(report.notes.len() >= 3, "{:?}", report.notes);
}

#[test]
fn times() {
    assert_eq!(time(0), "1970-01-01 00:00:00 +0000");
    assert_eq!(time(951_782_400), "2000-02-29 00:00:00 +0000");
    assert_eq!(time(1_461_269_380), "2016-04-21 20:09:40 +0000");
    time(u64::MAX);
}
