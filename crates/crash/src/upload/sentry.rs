//! A crash file as an envelope of Sentry: <https://develop.sentry.dev/sdk/data-model/envelopes/> and
//! <https://develop.sentry.dev/sdk/data-model/event-payloads/>.

use backtrail_capture::crash_file::format::MessageKind;
use backtrail_capture::crash_file::{self, CrashFile};
use backtrail_capture::{Limits, MappedImage, Thread};
use backtrail_core::{Arch, FrameAddress, ImageId, Svma, Utc};
use serde_json::{Value, json};

/// Where events go, and by which key: `SCHEME://KEY@HOST/PATH/PROJECT`.
pub(super) struct Dsn {
    /// Scheme, host and path.
    pub(super) base: String,
    key: String,
    project: String,
}

impl Dsn {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected a DSN: https://KEY@HOST/PROJECT".to_owned();
        let (scheme, rest) = text.split_once("://").ok_or_else(expected)?;
        let (key, rest) = rest.split_once('@').ok_or_else(expected)?;
        // Old ones have a secret behind the key.
        let key = key.split(':').next().unwrap_or(key);
        let (host, project) = rest.trim_end_matches('/').rsplit_once('/').ok_or_else(expected)?;
        if key.is_empty() || host.is_empty() || project.is_empty() {
            return Err(expected());
        }
        Ok(Self { base: format!("{scheme}://{host}"), key: key.to_owned(), project: project.to_owned() })
    }

    pub(super) fn path(&self) -> String {
        format!("/api/{}/envelope/", self.project)
    }

    pub(super) fn authorization(&self) -> String {
        let Self { key, .. } = self;
        format!("Sentry sentry_version=7, sentry_key={key}, sentry_client={CLIENT}")
    }
}

const CLIENT: &str = concat!("backtrail-crash/", env!("CARGO_PKG_VERSION"));

/// An event, and the file as its attachment. The same file gives the same event, so that one that is sent twice is kept once.
pub(super) fn envelope(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let file = crash_file::read(bytes, &Limits::default()).map_err(|error| error.to_string())?;
    let id = event_id(&file, bytes);
    let event = event(&file, &id).to_string();
    let mut envelope = format!("{}\n", json!({ "event_id": id }));
    envelope += &format!("{}\n{event}\n", json!({ "type": "event", "length": event.len() }));
    let head = json!({
        "type": "attachment", "length": bytes.len(), "filename": format!("{id}.btcrash"),
        "attachment_type": "event.attachment", "content_type": "application/octet-stream",
    });
    envelope += &format!("{head}\n");
    let mut envelope = envelope.into_bytes();
    envelope.extend_from_slice(bytes);
    envelope.push(b'\n');
    Ok(envelope)
}

/// An envelope of runs: <https://develop.sentry.dev/sdk/telemetry/sessions/>. `bodies` are those that backtrail's server takes.
pub(super) fn sessions(bodies: &[Vec<u8>]) -> Vec<u8> {
    let mut envelope = "{}\n".to_owned();
    for body in bodies.iter().filter_map(|body| serde_json::from_slice::<Value>(body).ok()) {
        let id = body.pointer("/sessions/0/id").and_then(Value::as_str).unwrap_or_default();
        let status = match body.pointer("/sessions/0/outcome").and_then(Value::as_str) {
            Some("well") => "exited",
            Some(other) => other,
            None => continue,
        };
        // A run's name: microseconds since 1970, process, when that began.
        let mut numbers = id.split('-').map(|number| number.parse::<u64>().unwrap_or(0));
        let [begun, pid, start] = [(); 3].map(|()| numbers.next().unwrap_or(0));
        let digits = format!("{begun:016x}{:08x}{:08x}", pid & 0xffff_ffff, start & 0xffff_ffff);
        let item = json!({
            "sid": digits,
            "init": true,
            "started": Utc::from_unix(i64::try_from(begun / 1_000_000).unwrap_or(i64::MAX)).to_string(),
            "status": status,
            "errors": u8::from(status == "crashed"),
            "attrs": { "release": body.get("release") },
        });
        let item = item.to_string();
        envelope += &format!("{}\n{item}\n", json!({ "type": "session", "length": item.len() }));
    }
    envelope.into_bytes()
}

/// 32 digits: when, which process, and a checksum of the content.
fn event_id(file: &CrashFile<'_>, bytes: &[u8]) -> String {
    let (time, pid) = (file.snapshot.process.time.unwrap_or(0), file.snapshot.process.pid.unwrap_or(0));
    let sum = backtrail_capture::crash_file::format::checksum(0, 0, bytes);
    format!("{time:016x}{:08x}{sum:08x}", pid & u64::from(u32::MAX))
}

fn event(file: &CrashFile<'_>, id: &str) -> Value {
    let snapshot = &file.snapshot;
    let uptime = file.uptime.unwrap_or(0);
    let begun = snapshot.process.time.map(|time| time.saturating_sub(uptime / 1000));
    let breadcrumbs: Vec<_> = file
        .breadcrumbs
        .iter()
        .map(|(time, text)| {
            let mut breadcrumb = json!({ "message": text, "level": "info" });
            if let (Some(begun), Value::Object(fields)) = (begun, &mut breadcrumb) {
                fields.insert("timestamp".to_owned(), json!(begun.saturating_add(time / 1000)));
            }
            breadcrumb
        })
        .collect();
    let notes = file.notes.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let release = file.notes.iter().find(|(key, _)| key == "release").map(|(_, value)| value);
    json!({
        "event_id": id,
        "timestamp": snapshot.process.time,
        "platform": "native",
        "level": "fatal",
        "release": release,
        "sdk": { "name": "backtrail-crash", "version": env!("CARGO_PKG_VERSION") },
        "contexts": {
            "os": { "name": if file.is_apple() { "Darwin" } else { "Linux" }, "raw_description": snapshot.process.os },
            "device": { "arch": arch(snapshot.arch) },
        },
        "exception": { "values": [exception(file)] },
        "threads": { "values": snapshot.threads.iter().map(|thread| threads_value(file, thread)).collect::<Vec<_>>() },
        "debug_meta": { "images": snapshot.images.iter().filter_map(image).collect::<Vec<_>>() },
        "breadcrumbs": { "values": breadcrumbs },
        "extra": Value::Object(notes),
    })
}

fn arch(arch: Arch) -> &'static str {
    if arch == Arch::Arm64 { "arm64" } else { "x86_64" }
}

fn exception(file: &CrashFile<'_>) -> Value {
    let snapshot = &file.snapshot;
    let crashed = snapshot.threads.iter().find(|thread| thread.is_crashed);
    let fault = snapshot.fault.as_ref();
    let signal = fault.map_or("crash", |fault| fault.name.as_str());
    let code = fault.and_then(|fault| fault.code.as_deref());
    let said = file.messages.iter().find(|(kind, _)| *kind == MessageKind::Panic).or(file.messages.first());
    let thrown = file.ns_exception.as_ref().map(|thrown| (thrown.name.clone(), thrown.reason.clone()));
    let is_thrown = thrown.is_some() || file.exception.is_some();
    let (name, value) = thrown.unwrap_or_else(|| match (&file.exception, said) {
        (Some((name, what)), _) => (readable_type(name), what.clone()),
        (None, Some((_, text))) => (signal.to_owned(), text.clone()),
        (None, None) => {
            let address = fault.and_then(|fault| fault.address);
            let at = address.map_or_else(String::new, |address| format!(" at {:#x}", address.get()));
            (signal.to_owned(), format!("{}{at}", code.unwrap_or("Fatal signal")))
        }
    });
    json!({
        "type": name,
        "value": value,
        "mechanism": {
            "type": "signalhandler",
            "handled": false,
            "synthetic": !is_thrown,
            "meta": { "signal": {
                "number": fault.map(|fault| fault.number), "name": signal, "code_name": code,
            } },
        },
        "thread_id": crashed.and_then(|thread| thread.id),
        "stacktrace": crashed.map(|thread| stack(file, thread)),
    })
}

/// As C++ has it in its source.
fn readable_type(name: &str) -> String {
    let mangled = format!("_ZTS{name}");
    let text = backtrail_demangle::demangle(&mangled, &backtrail_demangle::Options::default());
    text.strip_prefix("typeinfo name for ").unwrap_or(name).to_owned()
}

fn threads_value(file: &CrashFile<'_>, thread: &Thread) -> Value {
    json!({
        "id": thread.id,
        "name": thread.name,
        "crashed": thread.is_crashed,
        "current": thread.is_crashed,
        // That of the thread that crashed is the exception's.
        "stacktrace": (!thread.is_crashed).then(|| stack(file, thread)),
    })
}

/// Outermost first. A frame has the address that is returned to, as the protocol wants it, or that of the first instruction.
fn stack(file: &CrashFile<'_>, thread: &Thread) -> Value {
    let walked =
        file.walked.iter().find(|(id, _)| Some(*id) == thread.id).map(|(_, frames)| frames.as_slice());
    let frames: Vec<_> = walked
        .unwrap_or_default()
        .iter()
        .rev()
        .map(|frame: &FrameAddress| json!({ "instruction_addr": format!("{:#x}", frame.raw().get()) }))
        .collect();
    json!({ "frames": frames })
}

fn image(image: &MappedImage) -> Option<Value> {
    let range = image.range?;
    let id = image.id.as_ref()?;
    // Where its first byte lies, also where only the code is mapped.
    let start = image.bias.and_then(|bias| bias.to_avma(Svma::new(0))).filter(|start| range.contains(*start));
    Some(json!({
        "type": if matches!(id, ImageId::Uuid(_)) { "macho" } else { "elf" },
        "code_file": image.path,
        "code_id": hex(id.as_bytes()),
        "debug_id": debug_id(id),
        "image_addr": format!("{:#x}", start.unwrap_or(range.start()).get()),
        "image_size": range.size(),
    }))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A UUID as it is; the first 16 bytes of a build id as a GUID, whose first three numbers are little-endian:
/// <https://docs.rs/debugid> and Breakpad's `FileID`.
fn debug_id(id: &ImageId) -> String {
    let mut bytes = [0_u8; 16];
    bytes.iter_mut().zip(id.as_bytes()).for_each(|(to, from)| *to = *from);
    let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
    let first = match id {
        ImageId::Uuid(_) => hex(&[a, b, c, d, e, f, g, h]),
        _ => hex(&[d, c, b, a, f, e, h, g]),
    };
    let rest = hex(&rest);
    let parts = [first.get(..8), first.get(8..12), first.get(12..), rest.get(..4), rest.get(4..)];
    parts.map(Option::unwrap_or_default).join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dsn_has_a_key_a_host_and_a_project() {
        let dsn =
            Dsn::parse("https://abc:secret@crashes.example.org/sub/17").unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(
            (dsn.base.as_str(), dsn.path().as_str()),
            ("https://crashes.example.org/sub", "/api/17/envelope/")
        );
        assert!(dsn.authorization().contains("sentry_key=abc,"));
        for text in ["", "https://crashes.example.org/17", "https://abc@crashes.example.org", "https://@h/1"]
        {
            assert!(Dsn::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_run_is_told_as_a_session() {
        let body =
            br#"{"release":"a@1","os":"L","sessions":[{"id":"1700000000000000-7-9","outcome":"well"}]}"#;
        let envelope = String::from_utf8(sessions(&[body.to_vec(), b"no JSON".to_vec()])).unwrap();
        let lines: Vec<_> = envelope.lines().collect();
        let item: Value = serde_json::from_str(lines[2]).unwrap();
        assert_eq!((lines.len(), lines[0]), (3, "{}"));
        assert_eq!(item["started"], "2023-11-14T22:13:20Z");
        assert_eq!((&item["status"], &item["attrs"]["release"]), (&json!("exited"), &json!("a@1")));
        assert_eq!(item["sid"], "00060a24181e40000000000700000009");
    }

    #[test]
    fn a_build_id_is_a_guid_in_microsofts_order() {
        let id = ImageId::parse_build_id("b1b2b3b4c1c2d1d2e1e2f1f2f3f4f5f6aabbccdd").unwrap();
        assert_eq!(debug_id(&id), "b4b3b2b1-c2c1-d2d1-e1e2-f1f2f3f4f5f6");
    }

    #[test]
    fn an_apple_image_keeps_its_uuid() {
        let id = "b1b2b3b4-c1c2-d1d2-e1e2-f1f2f3f4f5f6";
        let start = backtrail_core::Avma::new(0x1_0443_0000);
        let told = image(&MappedImage {
            id: ImageId::parse_uuid(id).ok(),
            range: Some(backtrail_core::AddrRange::from_size(start, 0x8000)),
            ..MappedImage::default()
        })
        .unwrap();
        assert_eq!((&told["type"], &told["debug_id"]), (&json!("macho"), &json!(id)));
        assert_eq!(told["image_addr"], json!("0x104430000"));
    }

    #[test]
    fn types_are_as_in_the_source() {
        assert_eq!(readable_type("N4shop7NoOrderE"), "shop::NoOrder");
        assert_eq!(readable_type("i"), "int");
    }
}
