//! What became of a process's threads since its stacks were captured earlier.

use crate::Stacks;
use backtrail_model::{Frame, Thread};
use backtrail_stacks::ThreadFilter;
use serde::Deserialize;
use std::collections::HashMap;
use std::fmt;

/// Stacks that were captured earlier, as [`json::write_stacks`](crate::json::write_stacks) printed them.
#[derive(Debug)]
pub struct EarlierStacks {
    processes: Vec<EarlierProcess>,
}

/// What is no such JSON.
#[derive(Debug)]
#[non_exhaustive]
pub struct EarlierStacksError {
    /// The line that cannot be read, counted from one.
    pub line: usize,
    what: String,
    source: Option<serde_json::Error>,
}

impl fmt::Display for EarlierStacksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected stacks as JSON: {}", self.line, self.what)
    }
}

impl std::error::Error for EarlierStacksError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// What became of a process's threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackDiff {
    /// Threads with other frames than before.
    pub moved: Vec<MovedThread>,
    /// Threads that were not there.
    pub new: Vec<ThreadLabel>,
    /// Threads that are not there any more.
    pub gone: Vec<ThreadLabel>,
    /// Threads with the same frames as before.
    pub unmoved: Vec<UnmovedThread>,
}

/// A thread by its id and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadLabel {
    /// Its id.
    pub id: Option<u64>,
    /// Its name.
    pub name: Option<String>,
}

/// A thread with other frames than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedThread {
    /// Which it is.
    pub thread: ThreadLabel,
    /// The innermost function or address that it was in; `None` where it had no frame.
    pub was_in: Option<String>,
    /// The innermost function or address that it is in.
    pub is_in: Option<String>,
    /// How many of the outermost frames are the same.
    pub common_frames: usize,
}

/// A thread with the same frames as before.
#[derive(Clone, Debug, PartialEq)]
pub struct UnmovedThread {
    /// Which it is.
    pub thread: ThreadLabel,
    /// Seconds of processor time that it used meanwhile, where both captures tell: one that used some was elsewhere and came back.
    pub cpu_time: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct EarlierProcess {
    schema: String,
    process: ProcessId,
    threads: Vec<EarlierThread>,
}

#[derive(Debug, Deserialize)]
struct ProcessId {
    pid: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct EarlierThread {
    id: Option<u64>,
    name: Option<String>,
    #[serde(default)]
    start_time: Option<f64>,
    #[serde(default)]
    user_time: Option<f64>,
    #[serde(default)]
    system_time: Option<f64>,
    frames: Vec<EarlierFrame>,
}

#[derive(Debug, Deserialize)]
struct EarlierFrame {
    address: Option<String>,
    #[serde(default)]
    functions: Vec<EarlierName>,
    #[serde(default)]
    symbol: Option<EarlierName>,
}

#[derive(Debug, Deserialize)]
struct EarlierName {
    name: String,
}

impl EarlierStacks {
    /// Reads the JSON of one process a line.
    ///
    /// # Errors
    /// Where a line is something else, or there is none.
    pub fn parse(json: &[u8]) -> Result<Self, EarlierStacksError> {
        let lines =
            json.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty());
        let processes: Vec<EarlierProcess> = lines.map(process).collect::<Result<_, _>>()?;
        if processes.is_empty() {
            return Err(EarlierStacksError { line: 1, what: "nothing is there".to_owned(), source: None });
        }
        Ok(Self { processes })
    }

    /// What became of the threads since; `None` where that process was not captured then. `filter` is what the present capture was
    /// made with: threads that it leaves out are not gone.
    pub fn diff(&self, stacks: &Stacks, filter: &ThreadFilter) -> Option<StackDiff> {
        let process = &stacks.report.process;
        let earlier = self.processes.iter().rev().find(|earlier| earlier.process.pid == process.pid)?;
        let wanted = |thread: &&EarlierThread| filter.matches(thread.id, thread.name.as_deref());
        let mut left: HashMap<Option<u64>, &EarlierThread> =
            earlier.threads.iter().filter(wanted).map(|thread| (thread.id, thread)).collect();
        let mut diff = StackDiff::default();
        for thread in &process.threads {
            let label = ThreadLabel { id: thread.id, name: thread.name.clone() };
            match left.get(&thread.id).filter(|earlier| is_same(earlier, thread)) {
                Some(earlier) => {
                    diff.compare(label, earlier, thread);
                    left.remove(&thread.id);
                }
                None => diff.new.push(label),
            }
        }
        let mut gone: Vec<_> = left.into_values().collect();
        gone.sort_by_key(|thread| thread.id);
        let label = |thread: &EarlierThread| ThreadLabel { id: thread.id, name: thread.name.clone() };
        diff.gone = gone.into_iter().map(label).collect();
        Some(diff)
    }
}

fn process((line, number): (&[u8], usize)) -> Result<EarlierProcess, EarlierStacksError> {
    let process: EarlierProcess = serde_json::from_slice(line).map_err(|source| EarlierStacksError {
        line: number,
        what: source.to_string(),
        source: Some(source),
    })?;
    if process.schema.starts_with("backtrail-stacks/") {
        return Ok(process);
    }
    Err(EarlierStacksError {
        line: number,
        what: format!("its schema is `{}`", process.schema),
        source: None,
    })
}

/// Whether it is the same thread, and not a later one with its id.
fn is_same(earlier: &EarlierThread, thread: &Thread) -> bool {
    match (earlier.start_time, thread.start_time) {
        // Both are whole hundredths of a second.
        (Some(before), Some(now)) => (before - now).abs() < 0.001,
        _ => true,
    }
}

impl StackDiff {
    fn compare(&mut self, label: ThreadLabel, earlier: &EarlierThread, thread: &Thread) {
        let address = |frame: &Frame| frame.address.map(|address| address.raw().to_string());
        let now = thread.frames.iter().rev().map(address);
        let before = earlier.frames.iter().rev().map(|frame| frame.address.clone());
        let common_frames = now.zip(before).take_while(|(now, before)| now == before).count();
        if common_frames == thread.frames.len() && common_frames == earlier.frames.len() {
            let times = |user: Option<f64>, system: Option<f64>| Some(user? + system?);
            let before = times(earlier.user_time, earlier.system_time);
            let now = times(thread.user_time, thread.system_time);
            let cpu_time =
                now.zip(before).map(|(now, before)| ((now - before).max(0.0) * 100.0).round() / 100.0);
            self.unmoved.push(UnmovedThread { thread: label, cpu_time });
            return;
        }
        self.moved.push(MovedThread {
            thread: label,
            was_in: earlier.frames.first().and_then(EarlierFrame::innermost),
            is_in: thread
                .frames
                .first()
                .and_then(|frame| frame.names().next().map(str::to_owned).or_else(|| address(frame))),
            common_frames,
        });
    }
}

impl EarlierFrame {
    fn innermost(&self) -> Option<String> {
        let name = self.functions.first().or(self.symbol.as_ref()).map(|function| function.name.clone());
        name.or_else(|| self.address.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::{Avma, FrameAddress};
    use backtrail_model::{Process, Report};

    fn stacks(threads: &[(u64, f64, &[u64])]) -> Stacks {
        let frame = |(address, index): (&u64, u32)| {
            let mut frame = Frame::new(index);
            frame.address = Some(FrameAddress::Exact(Avma::new(*address)));
            frame
        };
        let thread = |(id, start, frames): &(u64, f64, &[u64])| Thread {
            id: Some(*id),
            name: Some(format!("t-{id}")),
            start_time: Some(*start),
            user_time: Some(*start),
            system_time: Some(0.5),
            frames: frames.iter().zip(0..).map(frame).collect(),
            ..Thread::default()
        };
        let threads = threads.iter().map(thread).collect();
        let process = Process { pid: Some(7), threads, ..Process::default() };
        Stacks { report: Report { process, ..Report::default() }, wants_names: true }
    }

    fn json(stacks: &Stacks) -> Vec<u8> {
        let mut json = Vec::new();
        crate::json::write_stacks(&mut json, stacks, None).unwrap();
        json
    }

    fn ids<'l>(labels: impl IntoIterator<Item = &'l ThreadLabel>) -> Vec<u64> {
        labels.into_iter().filter_map(|label| label.id).collect()
    }

    #[test]
    fn threads_are_moved_new_gone_or_where_they_were() {
        let before = stacks(&[(1, 0.0, &[16, 32]), (2, 0.0, &[48, 32]), (3, 0.0, &[1]), (4, 1.0, &[1])]);
        let earlier = EarlierStacks::parse(&json(&before)).unwrap();
        // The fourth's id is another thread's by now.
        let mut now = stacks(&[(1, 0.0, &[16, 32]), (2, 0.0, &[49, 50, 32]), (5, 9.0, &[1]), (4, 2.0, &[1])]);
        now.report.process.threads[0].user_time = Some(0.25);
        let diff = earlier.diff(&now, &ThreadFilter::default()).unwrap();
        assert_eq!(ids(diff.unmoved.iter().map(|one| &one.thread)), [1]);
        assert_eq!(diff.unmoved[0].cpu_time, Some(0.25));
        let moved = &diff.moved[0];
        assert_eq!((moved.thread.id, moved.common_frames), (Some(2), 1));
        assert_eq!((moved.was_in.as_deref(), moved.is_in.as_deref()), (Some("0x30"), Some("0x31")));
        assert_eq!((ids(&diff.new), ids(&diff.gone)), (vec![5, 4], vec![3, 4]));
        let filter = ThreadFilter::default().with_ids([1]);
        assert!(earlier.diff(&stacks(&[(1, 0.0, &[16, 32])]), &filter).unwrap().gone.is_empty());
        now.report.process.pid = Some(8);
        assert_eq!(earlier.diff(&now, &ThreadFilter::default()), None);
    }

    #[test]
    fn what_is_no_stacks_is_refused_with_its_line() {
        let good = json(&stacks(&[]));
        let second = [&good[..], b"{}\n"].concat();
        for (bytes, line) in [(&b""[..], 1), (b"\n\n", 1), (b"\xff", 1), (&second, 2)] {
            assert_eq!(EarlierStacks::parse(bytes).unwrap_err().line, line);
        }
        let other = String::from_utf8(good.clone()).unwrap().replace("backtrail-stacks", "other");
        assert!(EarlierStacks::parse(other.as_bytes()).unwrap_err().to_string().contains("`other/"));
        let deep = [b"[".repeat(100_000), good].concat();
        assert!(EarlierStacks::parse(&deep).is_err());
    }
}
