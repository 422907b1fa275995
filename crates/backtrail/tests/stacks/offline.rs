//! Every saved stack of the corpus against the frames that libunwindstack's tests expect.

use backtrail::{Frame, FrameAddress, StackOptions, Stacks, Symbols};
use backtrail_testkit::corpus_file;
use std::fs;
use std::path::Path;

/// One frame as `output.txt` states it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Expected {
    number: u32,
    pc: u64,
    image: String,
    function: Option<(String, u64)>,
}

/// `#01 pc 00000000000010f0  unwinder.apk!lib.so (offset 0xa000) (main+144)`.
fn expected(text: &str) -> Vec<Expected> {
    let frame = |line: &str| {
        let (number, rest) = line.trim().strip_prefix('#')?.split_once(" pc ")?;
        let (pc, rest) = rest.split_once("  ")?;
        let (image, function) = match rest.split_once(" (") {
            Some((image, function)) => (image, Some(function)),
            None => (rest, None),
        };
        let function = function.and_then(|function| match function.strip_prefix("offset 0x") {
            Some(after) => after.split_once(" (").map(|(_, function)| function),
            None => Some(function),
        });
        let function = function.and_then(|function| function.strip_suffix(')')).map(|function| {
            // A function's first instruction has no offset; operators have a plus of their own.
            let parsed =
                function.rsplit_once('+').and_then(|(name, offset)| Some((name, offset.parse().ok()?)));
            parsed.map_or((function.to_owned(), 0), |(name, offset)| (name.to_owned(), offset))
        });
        Some(Expected {
            number: number.parse().ok()?,
            pc: u64::from_str_radix(pc, 16).ok()?,
            image: image.to_owned(),
            function,
        })
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| frame(line).expect(line)).collect()
}

/// The frame in those terms. Offsets there count to the call instruction.
fn ours(stacks: &Stacks, frame: &Frame) -> Expected {
    let image = frame.image.map(|index| stacks.report.process.images[index].name.clone());
    let raw = frame.address.map_or(0, |address| address.raw().get());
    let pc = frame.relative_pc.map_or(raw, backtrail::Svma::get);
    let name = frame.functions.last().map(|function| function.name.clone());
    let name = name.or_else(|| frame.symbol.as_ref().map(|symbol| symbol.name.clone()));
    let offset = frame.function_offset.or(frame.symbol.as_ref().map(|symbol| symbol.offset));
    let call = match frame.address {
        Some(FrameAddress::Return(_)) => call_size(frame),
        _ => 0,
    };
    Expected {
        number: frame.index,
        pc,
        image: image.or(frame.image_name.clone()).unwrap_or_else(|| "<unknown>".to_owned()),
        function: name.map(|name| (name, offset.unwrap_or_default().saturating_sub(call))),
    }
}

/// Bytes from the call instruction to the return address: what the relative pc was lowered by.
fn call_size(frame: &Frame) -> u64 {
    let (Some(address), Some(pc)) = (frame.address, frame.relative_pc) else { return 0 };
    // Images lie at multiples of eight.
    address.raw().get().wrapping_sub(pc.get()) & 7
}

/// Two symbols at one address: libunwindstack takes the one that its search comes upon.
const ALIASES: [(&str, &str); 4] = [
    ("__write", "write"),
    ("_IO_vfprintf", "vfprintf"),
    ("_IO_printf", "printf"),
    // The linker folded two functions of the same code; that a test's body called `abort` is what happened.
    ("std::__ndk1::__throw_bad_cast()", "Linker_Test_Test::TestBody()"),
];

/// Cases whose main binary is too large for the corpus: what is expected of its frames only it could tell. For the first
/// all frames are found all the same, the second's code keeps no frame pointers.
const WITHOUT_BINARY: [(&str, &str); 2] =
    [("load_bias_ro_rx_x86_64", "perfetto_unittests"), ("shared_lib_in_apk_single_map_arm64", "test.apk")];

/// Whether the frames say the same. docs/stacks.md tells the differences that are no mistakes.
fn agree(case: &str, want: &Expected, have: &Expected, frame: &Frame) -> bool {
    let mut want = want.clone();
    // What a signal interrupted was not calling anything: its address is that of the instruction. libunwindstack goes
    // back by one all the same.
    if want.number > 0 && matches!(frame.address, Some(FrameAddress::Exact(_))) {
        let back = have.pc.wrapping_sub(want.pc);
        // 5: four bytes, and the Thumb bit, which the status register told.
        if matches!(back, 1 | 2 | 4 | 5) {
            want.pc += back;
            let size = if back == 5 { 4 } else { back };
            want.function = want.function.map(|(name, offset)| (name, offset + size));
        }
    }
    if let Some((name, _)) = &mut want.function {
        *name = name.replace("> >", ">>");
        if let Some((_, ours)) = ALIASES.iter().find(|(theirs, _)| theirs == name) {
            *name = (*ours).to_owned();
        }
    }
    want.image = want.image.rsplit('/').next().unwrap_or_default().to_owned();
    if WITHOUT_BINARY.iter().any(|(of, image)| *of == case && want.image == *image) {
        return have.image == want.image && have.number == want.number;
    }
    want == *have
}

fn compare(case: &Path, name: &str) -> Result<usize, String> {
    let want = expected(&fs::read_to_string(case.join("output.txt")).unwrap());
    let stacks = Stacks::offline(case, &Symbols::new(), &StackOptions::default())
        .map_err(|error| error.to_string())?;
    let thread = &stacks.report.process.threads[0];
    let have: Vec<_> = thread.frames.iter().map(|frame| ours(&stacks, frame)).collect();
    let ends_at = if name == "shared_lib_in_apk_single_map_arm64" { 2 } else { want.len().max(have.len()) };
    let mut differences = Vec::new();
    for index in 0..ends_at {
        let (want, have, frame) = (want.get(index), have.get(index), thread.frames.get(index));
        let same =
            want.zip(have).zip(frame).is_some_and(|((want, have), frame)| agree(name, want, have, frame));
        if !same {
            let show =
                |frame: Option<&Expected>| frame.map_or("nothing".to_owned(), |frame| format!("{frame:x?}"));
            differences.push(format!("  want {}\n  have {}", show(want), show(have)));
        }
    }
    if differences.is_empty() {
        return Ok(ends_at);
    }
    let ended = thread.ended.as_ref().map(|ended| format!("{ended:?}")).unwrap_or_default();
    Err(format!(
        "{} of {} frames differ, ended {ended}\n{}",
        differences.len(),
        want.len(),
        differences.join("\n")
    ))
}

#[test]
fn every_saved_stack_gives_its_frames() {
    let Some(corpus) = corpus_file("offline") else { return };
    let mut cases: Vec<_> = fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|case| case.join("output.txt").is_file());
    cases.sort();
    assert!(cases.len() >= 20, "the corpus has 20 cases and more");
    let mut failed = Vec::new();
    for case in &cases {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        match compare(case, &name) {
            Ok(frames) => println!("{name}: {frames} frames"),
            Err(difference) => failed.push(format!("{name}: {difference}")),
        }
    }
    assert!(failed.is_empty(), "{} of {} cases differ:\n{}", failed.len(), cases.len(), failed.join("\n"));
}
