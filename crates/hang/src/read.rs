//! Reads what is left of a hang's file.

use crate::log::{Head, ImageLine, Line, NodeLine, SCHEMA};
use crate::time::nanoseconds;
use crate::{End, Hang};
use backtrail_core::{Arch, Avma, FrameAddress, ImageId, Trust};
use backtrail_model::{Frame, Image, Process, TreeNode};
use std::borrow::Cow;
use std::time::Duration;

/// Bytes, nodes and images that are read of one file; what a watch writes by default is a sixteenth of it.
const MAX_BYTES: usize = 16 << 20;
const MAX_NODES: usize = 100_000;
/// Frames of one stack: what is deeper begins a tree of its own.
const MAX_DEPTH: u32 = 4_096;
const MAX_IMAGES: usize = 20_000;
const MAX_NOTES: usize = 20;

/// Why a file is not that of a hang.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// Its first line is not such a file's.
    FirstLine(Box<dyn std::error::Error + Send + Sync>),
    /// It is of another kind, or of a version that this reader does not know: the schema that it states.
    Schema(String),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::FirstLine(error) => write!(f, "byte 0: expected the first line of a hang's file: {error}"),
            Self::Schema(found) => write!(f, "byte 0: expected schema {SCHEMA}, found {found:?}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::FirstLine(error) => Some(error.as_ref()),
            Self::Schema(_) => None,
        }
    }
}

/// A hang's file as read.
pub(crate) struct Read {
    pub(crate) hang: Hang,
    pub(crate) incarnation: Option<String>,
}

impl Hang {
    /// Reads the file that a watch writes while a hang lasts. Whatever is broken behind the first line costs that line,
    /// and a note says so.
    ///
    /// # Errors
    /// Where the first line is not that of such a file.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        read(bytes).map(|read| read.hang)
    }
}

pub(crate) fn read(bytes: &[u8]) -> Result<Read, ReadError> {
    let kept = bytes.get(..MAX_BYTES.min(bytes.len())).unwrap_or_default();
    let mut lines = kept.split(|byte| *byte == b'\n');
    let head = lines.next().unwrap_or_default();
    let head: Head<'_> = serde_json::from_slice(head).map_err(|error| ReadError::FirstLine(error.into()))?;
    if head.schema != SCHEMA {
        return Err(ReadError::Schema(head.schema.into_owned()));
    }
    let incarnation = head.process.incarnation.as_deref().map(str::to_owned);
    let mut reader = Reader { hang: begin(head), broken: 0 };
    let mut offset = 0;
    let mut lines = kept.split_inclusive(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let (at, is_first) = (offset, offset == 0);
        offset += line.len();
        // The process was killed while it wrote the last one.
        let is_cut = lines.peek().is_none() && !line.ends_with(b"\n");
        match serde_json::from_slice(line) {
            _ if is_first => {}
            Ok(line) => reader.line(&line),
            Err(_) if is_cut || line.trim_ascii().is_empty() => {}
            Err(error) => reader.broken(at, &error.to_string()),
        }
    }
    if kept.len() < bytes.len() {
        reader.note(format!("only the first {MAX_BYTES} bytes were read"));
    }
    Ok(Read { hang: reader.finish(), incarnation })
}

fn begin(head: Head<'_>) -> Hang {
    let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
    Hang {
        process: Process {
            name: owned(head.process.name),
            pid: head.process.pid,
            path: owned(head.process.path),
            arch: head.process.arch.and_then(|arch| Arch::from_name(&arch)),
            ..Process::default()
        },
        thread_id: head.thread.id,
        thread_name: owned(head.thread.name),
        number: head.number,
        began: head.time.and_then(|time| crate::time::parse_rfc3339(&time)),
        threshold: duration(head.threshold_ms),
        ..Hang::default()
    }
}

struct Reader {
    hang: Hang,
    broken: usize,
}

impl Reader {
    fn note(&mut self, note: String) {
        if self.hang.notes.len() < MAX_NOTES {
            self.hang.notes.push(note);
        }
    }

    fn broken(&mut self, offset: usize, what: &str) {
        self.broken += 1;
        if self.broken <= 3 {
            self.note(format!("byte {offset}: a line cannot be read: {what}"));
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        if let Some(image) = &line.image {
            self.image(image);
        }
        for node in &line.nodes {
            self.node(node);
        }
        self.sample(line);
        let hang = &mut self.hang;
        let set = |slot: &mut Duration, value: Option<f64>| {
            if let Some(value) = value {
                *slot = duration(value);
            }
        };
        set(&mut hang.lasted, line.lasted_ms);
        set(&mut hang.measured, line.measured_ms);
        set(&mut hang.excused.suspended, line.suspended_ms);
        set(&mut hang.excused.stopped, line.stopped_ms);
        hang.cpu = line.cpu_ms.map(duration).or(hang.cpu);
        hang.queued = line.queued_ms.map(duration).or(hang.queued);
        hang.excused.gaps = line.gaps.unwrap_or(hang.excused.gaps);
        hang.end = line.ended.as_deref().and_then(end).or(hang.end);
    }

    fn image(&mut self, line: &ImageLine<'_>) {
        let Some(load_address) =
            address(&line.load_address).filter(|_| self.hang.process.images.len() < MAX_IMAGES)
        else {
            return self.note(format!("image {} is left out", line.name));
        };
        self.hang.process.images.push(Image {
            name: line.name.clone().into_owned(),
            path: line.path.clone().map(Cow::into_owned),
            id: line.id.as_deref().and_then(|id| identity(id, line.id_kind.as_deref()?)),
            arch: self.hang.process.arch,
            load_address,
            end_address: line.end_address.as_deref().and_then(address),
            ..Image::default()
        });
    }

    fn node(&mut self, line: &NodeLine<'_>) {
        let position = self.hang.nodes().len();
        if position >= MAX_NODES {
            return self.note(format!("only {MAX_NODES} frames of the tree were read"));
        }
        // A broken line may have had the parent; what it calls is a root then, not lost.
        let parent =
            line.parent.and_then(|parent| Some((parent, self.hang.nodes().get(parent)?.frame.index)));
        let (parent, depth) = parent.filter(|(_, depth)| *depth < MAX_DEPTH).unzip();
        let mut frame = Frame::new(depth.map_or(0, |depth| depth.saturating_add(1)));
        frame.address = address(&line.address)
            .map(|at| if line.exact { FrameAddress::Exact(at) } else { FrameAddress::Return(at) });
        frame.trust = trust(&line.trust);
        self.hang.tree_mut().nodes.push(TreeNode::new(parent, frame));
    }

    fn sample(&mut self, line: &Line<'_>) {
        if let Some(missed) = &line.missed_because {
            self.hang.missed = self.hang.missed.saturating_add(1);
            self.hang.missed_because = Some(missed.clone().into_owned());
        }
        let Some(node) = line.node.and_then(|node| self.hang.tree_mut().nodes.get_mut(node)) else { return };
        let time = line.time_ms.map(duration).unwrap_or_default();
        node.own_samples += 1;
        node.own_weight = node.own_weight.saturating_add(nanoseconds(time));
        self.hang.samples += 1;
        self.hang.incomplete += u64::from(line.incomplete);
    }

    fn finish(mut self) -> Hang {
        if self.broken > 3 {
            self.note(format!("{} lines cannot be read", self.broken));
        }
        self.hang.tree_mut().add_up();
        self.hang.place_frames();
        self.hang
    }
}

fn duration(millis: f64) -> Duration {
    // A century is more than any machine was up for, and sums of it do not overflow.
    const MAX: f64 = 3.2e9;
    Duration::from_secs_f64((millis / 1e3).clamp(0.0, MAX))
}

fn address(text: &str) -> Option<Avma> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Avma::new)
}

fn identity(text: &str, kind: &str) -> Option<ImageId> {
    match kind {
        "UUID" => ImageId::parse_uuid(text).ok(),
        "build id" => ImageId::parse_build_id(text).ok(),
        "code hash" => match ImageId::parse_uuid(text).ok()? {
            ImageId::Uuid(bytes) => Some(ImageId::CodeHash(bytes)),
            _ => None,
        },
        _ => None,
    }
}

fn trust(word: &str) -> Trust {
    let all = [
        Trust::Context,
        Trust::Cfi,
        Trust::CompactUnwind,
        Trust::Exidx,
        Trust::RuntimeTable,
        Trust::FramePointer,
        Trust::LinkRegister,
        Trust::Analysis,
        Trust::Scan,
    ];
    all.into_iter().find(|trust| trust.as_str() == word).unwrap_or(Trust::Report)
}

fn end(word: &str) -> Option<End> {
    [End::Recovered, End::ThreadEnded, End::Unwatched].into_iter().find(|end| end.as_str() == word)
}
