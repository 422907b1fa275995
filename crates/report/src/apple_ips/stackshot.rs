//! The stacks of all processes at one moment: `bug_type` 288 and 188, 409 and 509 around it, and a part of panics.
//!
//! `processByPid` has a process by its id, `threadById` in it a thread by its id, with `userFrames` and `kernelFrames` as
//! pairs of an index into `binaryImages` and an offset, innermost first. Images are identity, address and a letter for where
//! the system found them.

use super::body::Body;
use crate::json::Json;
use crate::leftovers::{fill, flatten, text};
use crate::panic_text;
use crate::stack::{Origin, settle, unsettled};
use backtrail_core::{Avma, ImageId};
use backtrail_model::{Frame, Image, Process, Report, Source, Thread};
use std::collections::HashMap;

/// Where a body has the stacks of all processes.
fn holder<'j, 'd>(document: &'j Json<'d>) -> Option<&'j Json<'d>> {
    let inside = document.get("stackshot");
    [Some(document), inside].into_iter().flatten().find(|json| json.get("processByPid").is_some())
}

/// Whether a body is one of these.
pub(super) fn looks_so(document: &Json<'_>) -> bool {
    holder(document).is_some()
}

pub(super) fn read(mut body: Body<'_, '_>, document: &Json<'_>) -> Report {
    body.report.source = Source::AppleStackshot;
    let holder = holder(document);
    let images = holder.and_then(|holder| images(&mut body, holder));
    for member in document.members() {
        let (name, value) = (member.name(), &member.value);
        if !take(&mut body, &name, value, &images) {
            body.keep_flat(&name, value);
        }
    }
    let frontmost =
        document.get("frontmostPids").and_then(|pids| pids.items().first()).and_then(Json::number);
    choose_main(&mut body.report, frontmost);
    body.finish(document)
}

fn take(body: &mut Body<'_, '_>, name: &str, value: &Json<'_>, images: &Images) -> bool {
    match name {
        "processByPid" => processes(body, value, images),
        "binaryImages" => images.is_some(),
        "stackshot" => {
            for member in value.members() {
                let name = member.name();
                if !take(body, &name, &member.value, images) {
                    body.keep_flat(&format!("stackshot.{name}"), &member.value);
                }
            }
            value.is_object()
        }
        // What the kernel wrote when the device was reset by its buttons.
        "string" => match text(value).filter(|text| panic_text::is(text)) {
            Some(text) => {
                let event = body.report.event.take();
                panic_text::add(&mut body.report, &text, body.limits, &mut body.notes);
                // The type of the report says better what it is of.
                body.report.event = event;
                true
            }
            None => false,
        },
        "build" => fill(&mut body.report.os, text(value)),
        "product" => fill(&mut body.report.device, text(value)),
        "date" => fill(&mut body.report.time, text(value)),
        _ => body.member(name, value),
    }
}

/// The process that the report names, or the one in front, becomes the report's own.
fn choose_main(report: &mut Report, frontmost: Option<u64>) {
    let wanted = report.process.pid.or(frontmost);
    let position = report.processes.iter().position(|process| wanted.is_some() && process.pid == wanted);
    let Some(position) = position else { return };
    let found = report.processes.remove(position);
    let own = std::mem::take(&mut report.process);
    report.process = Process {
        name: own.name.or(found.name),
        path: own.path.or(found.path),
        identifier: own.identifier.or(found.identifier),
        version: own.version.or(found.version),
        arch: own.arch.or(found.arch),
        role: own.role.or(found.role),
        parent: own.parent.or(found.parent),
        pid: found.pid,
        memory: found.memory,
        threads: if own.threads.is_empty() { found.threads } else { own.threads },
        images: if own.images.is_empty() { found.images } else { own.images },
        fields: found.fields,
        ..Process::default()
    };
}

/// The images that all processes share; `None` where they could not be read.
type Images = Option<Vec<Image>>;

pub(super) fn images(body: &mut Body<'_, '_>, holder: &Json<'_>) -> Images {
    let list = holder.get("binaryImages")?;
    let count = list.items().len();
    if count > body.limits.max_images {
        body.notes.add(|| format!("{count} images, more than the limit allows; they are kept as text"));
        return None;
    }
    let mut odd = 0;
    let image = |item: &Json<'_>| {
        let [id, base, ..] = item.items() else {
            odd += 1;
            return Image::default();
        };
        let source = item.items().get(2).and_then(text);
        let id = id.text().and_then(|id| ImageId::parse_uuid(&id).ok()).filter(|id| !id.is_nil());
        let load_address = Avma::new(base.number().unwrap_or_default());
        // No list names them; spindump calls images so that it has no name of.
        let name = id.map(|id| format!("<{id}>")).unwrap_or_default();
        Image { name, id, load_address, source, ..Image::default() }
    };
    let images: Vec<Image> = list.items().iter().map(image).collect();
    // Frames name images by position, so they are all or none.
    (odd == 0 && count > 0).then_some(images)
}

pub(super) fn processes(body: &mut Body<'_, '_>, value: &Json<'_>, images: &Images) -> bool {
    for member in value.members() {
        let pid = member.name();
        if !member.value.is_object() || body.report.processes.len() >= body.limits.max_threads {
            body.keep(format!("processByPid.{pid}"), &member.value);
            continue;
        }
        let mut process = process(body, &member.value, images);
        process.pid = process.pid.or_else(|| pid.parse().ok());
        body.report.processes.push(process);
    }
    value.is_object()
}

/// A process's own images: those of the shared list that its frames lie in.
struct Used<'i> {
    shared: &'i [Image],
    own: Vec<Image>,
    by_position: HashMap<usize, usize>,
}

impl Used<'_> {
    fn own(&mut self, position: usize) -> Option<usize> {
        let image = self.shared.get(position)?;
        let next = self.own.len();
        let own = *self.by_position.entry(position).or_insert(next);
        if own == next {
            self.own.push(image.clone());
        }
        Some(own)
    }
}

fn process(body: &mut Body<'_, '_>, item: &Json<'_>, images: &Images) -> Process {
    let mut process = Process::default();
    let mut used =
        Used { shared: images.as_deref().unwrap_or_default(), own: Vec::new(), by_position: HashMap::new() };
    for member in item.members() {
        let (name, value) = (member.name(), &member.value);
        let taken = match &*name {
            "pid" => fill(&mut process.pid, value.number()),
            "procname" => fill(&mut process.name, text(value)),
            "residentMemoryBytes" => fill(&mut process.memory, value.number()),
            "threadById" => {
                threads(body, &mut process, value, &mut used);
                value.is_object()
            }
            _ => false,
        };
        if !taken {
            flatten(&mut process.fields, body.input, &name, value, body.limits.max_items);
        }
    }
    process.images = used.own;
    process
}

fn threads(body: &mut Body<'_, '_>, process: &mut Process, value: &Json<'_>, used: &mut Used<'_>) {
    for member in value.members() {
        let id = member.name();
        let thread = &member.value;
        if !thread.is_object() || process.threads.len() >= body.limits.max_threads {
            flatten(
                &mut process.fields,
                body.input,
                &format!("threadById.{id}"),
                thread,
                body.limits.max_items,
            );
            continue;
        }
        let mut thread = read_thread(body, thread, used);
        thread.id = thread.id.or_else(|| id.parse().ok());
        thread.number = process.threads.len() as u64;
        process.threads.push(thread);
    }
}

fn read_thread(body: &mut Body<'_, '_>, item: &Json<'_>, used: &mut Used<'_>) -> Thread {
    let mut thread = Thread::default();
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    for member in item.members() {
        let (name, value) = (member.name(), &member.value);
        let taken = match &*name {
            "id" => fill(&mut thread.id, value.number()),
            "name" => fill(&mut thread.name, text(value)),
            "queue" | "dispatch_queue_label" => fill(&mut thread.queue, text(value)),
            "schedPriority" => fill(&mut thread.priority, value.number().map(u64::cast_signed)),
            "user_usec" => fill(&mut thread.user_time, seconds(value)),
            "system_usec" => fill(&mut thread.system_time, seconds(value)),
            "state" => {
                let states: Option<Vec<_>> = value.items().iter().map(text).collect();
                fill(
                    &mut thread.state,
                    states.filter(|states| !states.is_empty()).map(|states| states.join(" ")),
                )
            }
            "waitEvent" => {
                fill(&mut thread.waiting_on, text(value).or_else(|| wait_event(body.input, value)))
            }
            "kernelFrames" => frames(body, value, used, &mut kernel),
            "userFrames" => frames(body, value, used, &mut user),
            _ => false,
        };
        if !taken {
            flatten(&mut thread.fields, body.input, &name, value, body.limits.max_items);
        }
    }
    // The kernel was entered from the innermost user frame: both states that an instruction.
    settle(&mut kernel, Origin::Thread);
    settle(&mut user, Origin::Thread);
    kernel.append(&mut user);
    for (frame, index) in kernel.iter_mut().zip(0..) {
        frame.index = index;
    }
    thread.frames = kernel;
    thread
}

/// `[1, 18446744007137442607]`, as written.
fn wait_event(input: &[u8], value: &Json<'_>) -> Option<String> {
    let is_list = !value.items().is_empty();
    is_list.then(|| crate::leftovers::raw(input, value).split_whitespace().collect::<Vec<_>>().join(" "))
}

fn seconds(value: &Json<'_>) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "microseconds of years fit")]
    value.number().map(|microseconds| microseconds as f64 / 1e6)
}

fn frames(body: &mut Body<'_, '_>, value: &Json<'_>, used: &mut Used<'_>, frames: &mut Vec<Frame>) -> bool {
    let is_list = matches!(value.value, crate::json::Value::Array(_));
    if !is_list || !frames.is_empty() || value.items().len() > body.frames_left {
        body.notes.add(|| "a thread's frames are not read: too many, or no list".to_owned());
        return false;
    }
    let read: Option<Vec<Frame>> = value.items().iter().map(|item| frame(item, used)).collect();
    let Some(read) = read else { return false };
    body.frames_left -= read.len();
    *frames = read;
    true
}

fn frame(item: &Json<'_>, used: &mut Used<'_>) -> Option<Frame> {
    let (position, offset) = match item.items() {
        [position, offset] => (position.number()?, offset.number()?),
        _ => (item.get("imageIndex")?.number()?, item.get("imageOffset")?.number()?),
    };
    let mut frame = Frame::new(0);
    let position = usize::try_from(position).ok();
    let image = position.and_then(|position| used.shared.get(position));
    let base = image.map(|image| image.load_address);
    if image.is_some_and(|image| image.id.is_some()) {
        frame.image = position.and_then(|position| used.own(position));
        frame.image_offset = Some(offset);
        frame.address = base.and_then(|base| base.checked_add(offset)).map(unsettled);
    } else if image.is_some() {
        // The image that stands for "none": the offset is the address.
        frame.address = base.and_then(|base| base.checked_add(offset)).map(unsettled);
    } else {
        frame.image_name = position.map(|position| format!("image {position}"));
        frame.image_offset = Some(offset);
    }
    Some(frame)
}
