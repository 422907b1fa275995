//! A report in the layout of Apple's JSON (`.ips`), for tools that read nothing else.
//!
//! The layout is that of a crash (bug type 309): a line of metadata, then the body. What other systems have and Apple's do not is told
//! in its members (`signal`), or by members of our own (`buildId`).

use backtrail_core::{Arch, FrameAddress, Function, ImageId};
use backtrail_model::{Frame, Image, Report, Thread};
use serde_json::{Map, Value, json};

/// Writes a report as Apple's systems write crashes. Names are those that the frames have.
pub(crate) fn ips(report: &Report) -> String {
    let process = &report.process;
    let metadata = without_nulls(json!({
        "app_name": process.name,
        "name": process.name,
        "timestamp": report.time,
        "app_version": process.version,
        "bug_type": "309",
        "os_version": report.os,
        "incident_id": report.incident,
    }));
    let mut images: Vec<Value> = process.images.iter().map(image).collect();
    // What lies in no image is counted from address 0, in an image that stands for none.
    let nowhere = images.len();
    images
        .push(json!({ "size": 0, "source": "A", "base": 0, "uuid": "00000000-0000-0000-0000-000000000000" }));
    let threads: Vec<_> =
        process.threads.iter().map(|thread| thread_value(thread, process, nowhere)).collect();
    let thrown = process.backtraces.iter().find(|backtrace| backtrace.is_exception);
    let thrown = thrown.map(|thrown| frames_value(&thrown.frames, process, nowhere));
    let faulting = process.threads.iter().position(|thread| thread.crashed);
    let said = report
        .app_info
        .iter()
        .map(|info| (info.image.clone().unwrap_or_else(|| "app".to_owned()), json!(info.lines)));
    let said: Map<String, Value> = said.collect();
    let body = without_nulls(json!({
        "procName": process.name,
        "pid": process.pid,
        "procPath": process.path,
        "bundleInfo": process.version.as_ref().map(|version| json!({ "CFBundleShortVersionString": version })),
        "cpuType": process.arch.map(cpu_type),
        "osVersion": report.os.as_ref().map(|os| json!({ "train": os })),
        "captureTime": report.time,
        "incident": report.incident,
        "exception": exception(report),
        "faultingThread": faulting,
        "asi": (!said.is_empty()).then_some(said),
        "lastExceptionBacktrace": thrown,
        "threads": threads,
        "usedImages": images,
    }));
    format!("{metadata}\n{body:#}\n")
}

fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, value| !value.is_null());
    }
    object
}

fn cpu_type(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "X86-64",
        Arch::Arm64 => "ARM-64",
        other => other.name(),
    }
}

/// Mach's kinds by signal, as Apple's kernels turn the one into the other: xnu, `bsd/uxkern/ux_exception.c`.
const KINDS: [(&str, &str); 6] = [
    ("SIGSEGV", "EXC_BAD_ACCESS"),
    ("SIGBUS", "EXC_BAD_ACCESS"),
    ("SIGILL", "EXC_BAD_INSTRUCTION"),
    ("SIGFPE", "EXC_ARITHMETIC"),
    ("SIGTRAP", "EXC_BREAKPOINT"),
    ("SIGSYS", "EXC_CRASH"),
];

fn exception(report: &Report) -> Value {
    let Some(exception) = &report.exception else { return Value::Null };
    let signal = exception.signal.as_deref();
    let kind = signal
        .map(|signal| KINDS.iter().find(|(known, _)| *known == signal).map_or("EXC_CRASH", |(_, kind)| kind));
    let address = exception.address.map(|address| format!("{:#x}", address.get()));
    let subtype = exception.subtype.clone().or_else(|| {
        let code = exception.codes.clone()?;
        Some(address.as_ref().map_or_else(|| code.clone(), |address| format!("{code} at {address}")))
    });
    without_nulls(json!({
        "type": exception.kind.as_deref().or(kind),
        "signal": signal,
        "codes": exception.codes,
        "rawCodes": (!exception.raw_codes.is_empty()).then_some(&exception.raw_codes),
        "subtype": subtype,
        "message": exception.message,
    }))
}

fn image(image: &Image) -> Value {
    let size = image.end_address.and_then(|end| end.get().checked_sub(image.load_address.get()));
    without_nulls(json!({
        "source": "P",
        "base": image.load_address.get(),
        "size": size,
        "arch": image.arch.map(Arch::name),
        "name": image.name,
        "path": image.path,
        "uuid": image.id.as_ref().map(uuid),
        "buildId": image.id.as_ref().filter(|id| id.as_bytes().len() != 16).map(|id| hex(id.as_bytes())),
        "CFBundleIdentifier": image.bundle_id,
        "CFBundleShortVersionString": image.version,
    }))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first 16 bytes of an identity, which is all that there is room for.
fn uuid(id: &ImageId) -> String {
    let mut bytes = [0_u8; 16];
    bytes.iter_mut().zip(id.as_bytes()).for_each(|(to, from)| *to = *from);
    let digits = hex(&bytes);
    let parts =
        [digits.get(..8), digits.get(8..12), digits.get(12..16), digits.get(16..20), digits.get(20..)];
    parts.map(Option::unwrap_or_default).join("-")
}

fn frames_value(frames: &[Frame], process: &backtrail_model::Process, nowhere: usize) -> Vec<Value> {
    let mut values = Vec::new();
    for frame in frames {
        put_frame(frame, process, nowhere, &mut values);
    }
    values
}

fn thread_value(thread: &Thread, process: &backtrail_model::Process, nowhere: usize) -> Value {
    let frames = frames_value(&thread.frames, process, nowhere);
    let registers: Map<_, _> = thread
        .registers
        .iter()
        .map(|register| (register.name.clone(), json!({ "value": register.value })))
        .collect();
    without_nulls(json!({
        "id": thread.id,
        "name": thread.name,
        "queue": thread.queue,
        "triggered": thread.crashed.then_some(true),
        "threadState": (!registers.is_empty()).then_some(registers),
        "frames": frames,
    }))
}

/// Where a frame lies: Apple's reports have the return address for a caller.
fn put_frame(frame: &Frame, process: &backtrail_model::Process, nowhere: usize, frames: &mut Vec<Value>) {
    let address = frame.address.map(FrameAddress::raw).map_or(0, backtrail_core::Avma::get);
    let base = frame.image.and_then(|image| process.images.get(image)).map(|image| image.load_address.get());
    let offset = base.and_then(|base| address.checked_sub(base));
    let (image, offset) = match (frame.image, offset) {
        (Some(image), Some(offset)) => (image, offset),
        _ => (nowhere, address),
    };
    let place = json!({ "imageIndex": image, "imageOffset": offset });
    let mut put = |name: Option<&str>, more: Value| {
        let mut object = place.clone();
        if let (Value::Object(members), Value::Object(more)) = (&mut object, without_nulls(more)) {
            members.extend(name.map(|name| ("symbol".to_owned(), json!(name))));
            members.extend(more);
        }
        frames.push(object);
    };
    let lines = |function: &Function| (function.file.clone(), function.line);
    if let Some((outermost, inlined)) = frame.functions.split_last() {
        for function in inlined {
            let (file, line) = lines(function);
            put(Some(&function.name), json!({ "inline": true, "sourceFile": file, "sourceLine": line }));
        }
        let (file, line) = lines(outermost);
        let start = frame.function_offset;
        put(
            Some(&outermost.name),
            json!({ "symbolLocation": start, "sourceFile": file, "sourceLine": line }),
        );
    } else if let Some(symbol) = &frame.symbol {
        put(Some(&symbol.name), json!({ "symbolLocation": symbol.offset }));
    } else if let Some(reported) = &frame.reported {
        let inline = frame.inlined.then_some(true);
        put(
            Some(&reported.name),
            json!({ "symbolLocation": reported.offset, "sourceFile": reported.file, "sourceLine": reported.line, "inline": inline }),
        );
    } else {
        put(None, json!({}));
    }
}

#[cfg(test)]
mod tests {
    use crate::{Analysis, Limits, Symbols};
    use backtrail_model::Report;
    use backtrail_testkit::fixtures;

    /// What must be the same.
    fn facts(report: &Report) -> impl PartialEq + std::fmt::Debug {
        let process = &report.process;
        let names = |frame: &backtrail_model::Frame| frame.names().map(str::to_owned).collect::<Vec<_>>();
        let threads: Vec<_> = process
            .threads
            .iter()
            .map(|thread| {
                let frames = thread.frames.iter().map(|frame| (frame.address, frame.inlined, names(frame)));
                let registers =
                    thread.registers.iter().map(|register| (register.name.clone(), register.value));
                let registers: std::collections::BTreeMap<_, _> = registers.collect();
                (thread.crashed, thread.name.clone(), frames.collect::<Vec<_>>(), registers)
            })
            .collect();
        let images = process.images.iter().filter(|image| !image.is_filler());
        let images: Vec<_> = images
            .map(|image| {
                (image.name.clone(), image.path.clone(), image.id, image.load_address, image.end_address)
            })
            .collect();
        let signal = report.exception.as_ref().and_then(|exception| exception.signal.clone());
        (threads, images, signal, process.pid, process.arch)
    }

    #[test]
    fn a_report_that_is_written_reads_the_same() {
        let symbols = Symbols::none();
        let limits = Limits::default();
        let mut count = 0;
        for directory in ["sample/reports", "stacks"] {
            for entry in std::fs::read_dir(fixtures().join(directory)).unwrap() {
                let path = entry.unwrap().path();
                if !path
                    .extension()
                    .is_some_and(|own| ["ips", "dmp", "btcrash"].iter().any(|known| own == *known))
                {
                    continue;
                }
                let bytes = std::fs::read(&path).unwrap();
                let Ok(read) = Analysis::new(&bytes, &symbols, &limits) else { continue };
                if read.report.process.threads.is_empty() {
                    continue;
                }
                let text = read.ips();
                let again = Analysis::new(text.as_bytes(), &symbols, &limits).unwrap();
                assert_eq!(facts(&read.report), facts(&again.report), "{}", path.display());
                count += 1;
            }
        }
        assert!(count > 2, "{count}");
    }
}
