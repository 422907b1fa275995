//! The JSON form.

use super::text::identity;
use super::{address, fault_address, number};
use crate::json::{self, Json};
use crate::leftovers::{fill, flatten, text};
use crate::members::Members;
use crate::{Error, ErrorKind, Limits};
use backtrail_core::{Arch, Avma};
use backtrail_model::{Exception, Frame, Image, Register, Report, ReportedSymbol, Source, Thread};

pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Result<Report, Error> {
    let arena = json::Arena::default();
    let outcome = json::read(&arena, input, start, limits);
    let Some(document) = outcome.value.as_ref().filter(|json| json.is_object()) else {
        let message = "expected a JSON object with a crash log of Swift";
        return Err(Error::new(ErrorKind::Malformed, message).at(input, start));
    };
    let mut reader = Members::new(input, Source::SwiftBacktrace, limits);
    for member in document.members() {
        let name = member.name();
        if !reader.member(&name, &member.value) {
            flatten(&mut reader.report.fields, input, &name, &member.value, limits.max_items);
        }
    }
    let mut report = reader.finish(&outcome);
    let message = report.exception.as_ref().and_then(|exception| exception.message.as_deref());
    let address = message.and_then(fault_address);
    if let Some(exception) = &mut report.exception {
        exception.address = exception.address.or(address);
    }
    Ok(report)
}

impl Members<'_, '_> {
    fn member(&mut self, name: &str, value: &Json<'_>) -> bool {
        let report = &mut self.report;
        match name {
            "timestamp" => fill(&mut report.time, text(value)),
            "description" => fill(&mut exception(report).message, text(value)),
            "faultAddress" => fill(&mut exception(report).address, value.number().map(Avma::new)),
            "platform" => fill(&mut report.os, text(value)),
            "architecture" => {
                let name = value.text().unwrap_or_default();
                let arch = Arch::from_name(&name);
                fill(&mut report.process.arch, arch) && arch.is_some_and(|arch| arch.name() == name)
            }
            "threads" => self.threads(value),
            "images" => self.images(value),
            _ => false,
        }
    }

    fn threads(&mut self, value: &Json<'_>) -> bool {
        if !self.report.process.threads.is_empty() {
            return false;
        }
        for (position, item) in value.items().iter().enumerate() {
            if position >= self.limits.max_threads {
                self.notes.add(|| "more threads than the limit allows; the rest is not read".to_owned());
                break;
            }
            let mut thread = Thread { number: position as u64, ..Thread::default() };
            for member in item.members() {
                let name = member.name();
                if !self.thread_member(&mut thread, &name, &member.value) {
                    flatten(&mut thread.fields, self.input, &name, &member.value, self.limits.max_items);
                }
            }
            if thread.crashed {
                self.report.process.crashed_thread.get_or_insert(position);
            }
            number(&mut thread.frames);
            self.report.process.threads.push(thread);
        }
        !value.items().is_empty()
    }

    fn thread_member(&mut self, thread: &mut Thread, name: &str, value: &Json<'_>) -> bool {
        match name {
            "name" => fill(&mut thread.name, text(value)),
            "crashed" => {
                thread.crashed = value.truth() == Some(true);
                thread.crashed
            }
            "registers" => {
                let registers = value.members().iter().take(512).filter_map(|member| {
                    let value = member.value.number()?;
                    Some(Register { name: member.name().into_owned(), value, note: None })
                });
                thread.registers.extend(registers);
                thread.registers.len() == value.members().len()
            }
            "frames" if thread.frames.is_empty() => {
                for (position, item) in value.items().iter().enumerate() {
                    let Some(left) = self.frames_left.checked_sub(1) else {
                        self.notes
                            .add(|| "more frames than the limit allows; the rest is not read".to_owned());
                        break;
                    };
                    self.frames_left = left;
                    let frame = self.frame(thread, position, item);
                    thread.frames.extend(frame);
                }
                matches!(value.value, json::Value::Array(_))
            }
            _ => false,
        }
    }

    /// Frames that were left out (`omittedFrames`, `truncated`) have no address: the thread's fields say so.
    fn frame(&self, thread: &mut Thread, position: usize, item: &Json<'_>) -> Option<Frame> {
        let kind = item.get("kind").and_then(text).unwrap_or_default();
        let path = |name: &str| format!("frames[{position}].{name}");
        let stated = item.get("address").and_then(Json::number);
        let mut frame = Frame::new(0);
        frame.address = stated.map(|value| address(value, kind == "returnAddress"));
        let mut symbol = ReportedSymbol::default();
        let mut linkage_name = None;
        for member in item.members() {
            let (name, value) = (member.name(), &member.value);
            let taken = match &*name {
                "address" => frame.address.is_some(),
                "kind" => matches!(&*kind, "programCounter" | "returnAddress"),
                "image" => fill(&mut frame.image_name, text(value)),
                "inlined" => {
                    frame.inlined = value.truth() == Some(true);
                    frame.inlined
                }
                "symbol" => fill(&mut linkage_name, text(value)),
                "offset" => fill(&mut symbol.offset, value.number()),
                _ => false,
            };
            if !taken && name != "sourceLocation" {
                flatten(&mut thread.fields, self.input, &path(&name), value, self.limits.max_items);
            }
            for part in value.members().iter().filter(|_| name == "sourceLocation") {
                let (part, value) = (part.name(), &part.value);
                let line = || value.number().and_then(|line| u32::try_from(line).ok());
                let taken = match &*part {
                    "file" => fill(&mut symbol.file, text(value)),
                    "line" => fill(&mut symbol.line, line()),
                    _ => false,
                };
                if !taken {
                    flatten(
                        &mut thread.fields,
                        self.input,
                        &path(&format!("{name}.{part}")),
                        value,
                        self.limits.max_items,
                    );
                }
            }
        }
        if let Some(name) = linkage_name {
            symbol.name = name;
        }
        let says_something = !symbol.name.is_empty() || symbol.file.is_some();
        frame.reported = says_something.then_some(symbol);
        (frame.address.is_some() || frame.reported.is_some()).then_some(frame)
    }

    fn images(&mut self, value: &Json<'_>) -> bool {
        for item in value.items().iter().take(self.limits.max_images) {
            let mut image = Image::default();
            let mut name = None;
            for member in item.members() {
                let (key, value) = (member.name(), &member.value);
                let taken = match &*key {
                    "name" => fill(&mut name, text(value)),
                    "path" => fill(&mut image.path, text(value)),
                    "buildId" => fill(&mut image.id, value.text().and_then(|id| identity(&id))),
                    "baseAddress" => {
                        image.load_address = Avma::new(value.number().unwrap_or_default());
                        value.number().is_some()
                    }
                    "endOfText" => fill(&mut image.end_address, value.number().map(Avma::new)),
                    _ => false,
                };
                if !taken {
                    let path = format!("images.{key}");
                    flatten(&mut self.report.fields, self.input, &path, value, self.limits.max_items);
                }
            }
            let file = || image.path.as_deref()?.rsplit('/').next().map(str::to_owned);
            image.name = name.or_else(file).unwrap_or_default();
            self.report.process.images.push(image);
        }
        !value.items().is_empty()
    }
}

fn exception(report: &mut Report) -> &mut Exception {
    report.exception.get_or_insert_with(Exception::default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::FrameAddress;

    #[test]
    fn a_log_as_json() {
        let log = r#"{"timestamp":"2024-01-01T00:00:00Z","kind":"crashReport","description":"Bad pointer dereference","faultAddress":"0x10",
            "platform":"Linux","architecture":"x86_64","threads":[{"crashed":true,"name":"shop","registers":{"rax":"0x1"},"frames":[
            {"kind":"programCounter","address":"0x401010","symbol":"$s4shop5levelyyF","offset":16,"image":"shop","sourceLocation":{"file":"/src/main.swift","line":4,"column":15}},
            {"kind":"returnAddress","address":"0x401100","image":"shop"},{"kind":"omittedFrames","count":3}]}],
            "images":[{"name":"shop","path":"/opt/shop","buildId":"0123456789abcdef0123456789abcdef01234567","baseAddress":"0x400000","endOfText":"0x402000"}],"backtraceTime":0.2}"#;
        let report = read(log.as_bytes(), 0, &Limits::default()).unwrap();
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(exception.message.as_deref(), Some("Bad pointer dereference"));
        assert_eq!(exception.address, Some(Avma::new(16)));
        let thread = report.crashed().unwrap();
        assert_eq!((thread.frames.len(), thread.frames[0].image), (2, Some(0)));
        assert_eq!(thread.frames[0].reported.as_ref().unwrap().line, Some(4));
        assert_eq!(thread.frames[1].address, Some(FrameAddress::Return(Avma::new(0x40_1100))));
        let said: Vec<_> = thread.fields.iter().map(|field| field.key.as_str()).collect();
        assert_eq!(said, ["frames[0].sourceLocation.column", "frames[2].kind", "frames[2].count"]);
        assert!(report.fields.iter().any(|field| field.key == "backtraceTime"));
        for end in 1..log.len() {
            let _ = read(&log.as_bytes()[..end], 0, &Limits::default());
        }
    }
}
