//! What is written into a hang's file.

use crate::log::{Head, ImageLine, Line, NodeLine, ProcessLine, SCHEMA, ThreadLine};
use crate::monitor as core;
use crate::time::millis;
use crate::watched_thread::WatchedThread;
use backtrail_core::{Arch, Avma, FrameAddress, ImageId, Trust};
use backtrail_model::Image;
use std::borrow::Cow;
use std::time::Duration;

impl<'a> Head<'a> {
    pub(crate) fn of(
        subject: &'a WatchedThread,
        hang: &core::Hang,
        time: &'a str,
        threshold: Duration,
    ) -> Self {
        let process = &subject.process;
        Self {
            schema: SCHEMA.into(),
            process: ProcessLine {
                name: process.name.as_deref().map(Cow::from),
                pid: process.pid,
                path: process.path.as_deref().map(Cow::from),
                arch: process.arch.map(|arch| Arch::name(arch).into()),
                incarnation: subject.incarnation.as_deref().map(Cow::from),
            },
            thread: ThreadLine { id: subject.thread_id, name: subject.thread_name.as_deref().map(Cow::from) },
            time: Some(time.into()),
            number: hang.number,
            threshold_ms: millis(threshold),
        }
    }
}

impl<'a> From<&'a Image> for Line<'a> {
    fn from(image: &'a Image) -> Self {
        let line = ImageLine {
            name: image.name.as_str().into(),
            path: image.path.as_deref().map(Cow::from),
            id: image.id.map(|id| id.to_string().into()),
            id_kind: image.id.as_ref().map(|id| ImageId::kind(id).into()),
            load_address: hex(image.load_address),
            end_address: image.end_address.map(hex),
        };
        Self { image: Some(line), ..Self::default() }
    }
}

impl From<&core::Node> for NodeLine<'_> {
    fn from(node: &core::Node) -> Self {
        Self {
            parent: node.parent.and_then(|parent| usize::try_from(parent.0).ok()),
            address: hex(node.address.raw()),
            exact: matches!(node.address, FrameAddress::Exact(_)),
            trust: Trust::as_str(node.trust).into(),
        }
    }
}

impl Line<'_> {
    /// What changes in every line.
    pub(crate) fn progress(hang: &core::Hang) -> Self {
        let some = |time: Duration| (!time.is_zero()).then(|| millis(time));
        Self {
            lasted_ms: Some(millis(hang.lasted)),
            cpu_ms: hang.usage.map(|usage| millis(usage.cpu)),
            queued_ms: hang.usage.and_then(|usage| usage.queued).map(millis),
            measured_ms: some(hang.measured),
            suspended_ms: some(hang.excused.suspended),
            stopped_ms: some(hang.excused.stopped),
            gaps: (hang.excused.gaps > 0).then_some(hang.excused.gaps),
            ended: hang.end.map(|end| core::End::as_str(end).into()),
            ..Self::default()
        }
    }
}

/// JSON numbers lose bits above 2^53.
fn hex(address: Avma) -> Cow<'static, str> {
    format!("{:#x}", address.get()).into()
}
