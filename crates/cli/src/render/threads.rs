//! Threads' stacks as text, of reports and of captured processes alike.

use super::locks::lock_wait;
use super::stack::{Row, rows_in};
use super::thread_list::{Listed, ThreadList};
use super::tree::tree_rows;
use crate::io::escape::escaped;
use crate::io::text::{Look, Text};
use backtrail::{Avma, EndKind, Frame, Image, LockKind, Thread, Tree, Trust};
use std::collections::HashMap;
use std::fmt::Display;
use std::io;

/// Image names are cut to this many characters in the stacks; the images' list has them in full.
const MAX_IMAGE_WIDTH: usize = 28;

/// Deeper frames of a tree are not set further in; their depth is printed.
const MAX_INDENT: usize = 60;

/// The stacks of one process.
pub(crate) struct Threads<'a> {
    /// The images of the process that the threads are of.
    pub(crate) images: &'a [Image],
    /// What all source files have in common.
    pub(crate) directory: Option<&'a str>,
}

impl Threads<'_> {
    fn heading(&self, out: &mut Text<'_>, title: impl Display) -> io::Result<()> {
        out.end()?;
        out.painted_line(Look::Heading, title)
    }

    /// How the walk ended, where the stack was walked here.
    fn end(&self, out: &mut Text<'_>, thread: &Thread) -> io::Result<()> {
        let Some(ended) = &thread.ended else { return Ok(()) };
        let what = match ended.kind {
            EndKind::EndOfStack => "end of stack",
            EndKind::Failed => "could not go on",
            EndKind::Truncated => "cut off",
        };
        out.put_str("      ")?;
        out.painted_line(Look::Faint, format_args!("{what}: {}", ended.why))
    }

    /// One stack under the heads of all threads that share it.
    pub(crate) fn thread(&self, out: &mut Text<'_>, group: &[&Thread]) -> io::Result<()> {
        if let [first, _, ..] = group {
            self.heading(out, group_title(group))?;
            kernel(out, first)?;
            self.frames(out, &first.frames)?;
            return self.end(out, first);
        }
        for thread in group {
            self.heading(out, thread_title(thread))?;
            kernel(out, thread)?;
            self.frames(out, &thread.frames)?;
            self.end(out, thread)?;
            if let Some(recursion) = &thread.recursion {
                let note =
                    format!("  … the report left frames out; the stack was {} frames deep", recursion.depth);
                out.painted_line(Look::Faint, note)?;
            }
        }
        Ok(())
    }

    pub(crate) fn frames(&self, out: &mut Text<'_>, frames: &[Frame]) -> io::Result<()> {
        if frames.is_empty() {
            return out.painted_line(Look::Faint, "  no frames");
        }
        let rows = rows_in(self.images, frames, self.directory);
        let width = rows.iter().map(|row| row.image.chars().count()).max().unwrap_or(0).min(MAX_IMAGE_WIDTH);
        for row in &rows {
            self.row(out, row, width)?;
        }
        Ok(())
    }

    fn row(&self, out: &mut Text<'_>, row: &Row, width: usize) -> io::Result<()> {
        let index = row.index.map_or_else(String::new, |index| index.to_string());
        let image: String = escaped(&row.image).chars().take(width).collect();
        out.put(format_args!("{index:>4}  {image:<width$}  "))?;
        match row.located {
            true => out.paint(Look::Strong, &row.what)?,
            false => out.put_str(&row.what)?,
        }
        if let Some(place) = &row.place {
            out.put(format_args!("  at {place}"))?;
        }
        let reason = row.reason.map(|reason| format!("({reason})"));
        let inlined = row.inlined.then(|| "[inlined]".to_owned());
        let owner = row.owner.as_ref().map(|owner| format!("[{owner}]"));
        let notes = [inlined, owner, row.doubt.as_ref().map(|doubt| format!("[{doubt}]")), reason];
        for note in notes.into_iter().flatten() {
            out.put_str("  ")?;
            out.paint(Look::Faint, note)?;
        }
        out.end()
    }

    /// A call tree: how many samples have each frame, by how deep it stands.
    pub(crate) fn tree(&self, out: &mut Text<'_>, tree: &Tree) -> io::Result<()> {
        self.heading(out, format_args!("{} ({})", tree.title, tree.unit.as_str()))?;
        for shown in tree_rows(tree, self.images, self.directory) {
            let indent = shown.depth.min(MAX_INDENT);
            out.put(format_args!("{:>7}  {:indent$}", shown.weight, ""))?;
            if shown.depth > MAX_INDENT {
                out.put(format_args!("[{}] ", shown.depth))?;
            }
            let row = shown.row;
            match row.located {
                true => out.paint(Look::Strong, &row.what)?,
                false => out.put_str(&row.what)?,
            }
            out.put(format_args!("  in {}", escaped(&row.image)))?;
            if let Some(place) = &row.place {
                out.put(format_args!("  at {place}"))?;
            }
            let reason = row.reason.map(|reason| format!("({reason})"));
            let inlined = row.inlined.then(|| "[inlined]".to_owned());
            for note in [inlined, shown.note, reason].into_iter().flatten() {
                out.put_str("  ")?;
                out.paint(Look::Faint, note)?;
            }
            out.end()?;
        }
        Ok(())
    }

    /// The blamed thread's registers, four in a row, with what the report says of them.
    pub(crate) fn registers(&self, out: &mut Text<'_>, thread: &Thread) -> io::Result<()> {
        if thread.registers.is_empty() {
            return Ok(());
        }
        self.heading(out, format_args!("Registers of thread {}", thread.number))?;
        let (plain, noted): (Vec<_>, Vec<_>) = thread.registers.iter().partition(|reg| reg.note.is_none());
        for chunk in plain.chunks(4) {
            for register in chunk {
                out.put(format_args!("  {:>6} {:#018x}", register.name, register.value))?;
            }
            out.end()?;
        }
        for register in noted {
            let note = register.note.as_deref().unwrap_or_default();
            out.line(format_args!("  {:>6} {:#018x}  {note}", register.name, register.value))?;
        }
        Ok(())
    }
}

/// The kernel's functions that a thread waits in.
fn kernel(out: &mut Text<'_>, thread: &Thread) -> io::Result<()> {
    let mut names = thread.kernel_stack.iter().chain(&thread.wait_channel);
    names.try_for_each(|name| out.line(format_args!("      [kernel]  {name}")))
}

/// `Thread 3 crashed · name · queue com.apple.main-thread`; of a process that runs also its id, what it is doing and what
/// time it takes.
pub(crate) fn thread_title(thread: &Thread) -> String {
    let crashed = if thread.crashed { " crashed" } else { "" };
    let name = thread.name.as_deref().map(|name| format!(" · {name}")).unwrap_or_default();
    let queue = thread.queue.as_deref().map(|queue| format!(" · queue {queue}")).unwrap_or_default();
    format!("Thread {}{crashed}{name}{queue}{}", thread.number, live(thread))
}

/// What is known of a thread of a process that runs only.
fn live(thread: &Thread) -> String {
    let Some(priority) = thread.priority else {
        return doing(thread).map(|doing| format!(" · {doing}")).unwrap_or_default();
    };
    let mut words = Vec::new();
    words.extend(thread.id.map(|id| match thread.namespace_id {
        Some(inner) => format!("id {id} ({inner} in its namespace)"),
        None => format!("id {id}"),
    }));
    words.extend(doing(thread));
    words.extend(thread.cpu_usage.map(cpu));
    for (time, what) in [(thread.user_time, "user"), (thread.system_time, "system")] {
        words.extend(time.filter(|time| *time > 0.0).map(|time| format!("{time:.2} s {what}")));
    }
    match (priority, thread.nice) {
        (..0, _) => words.push(format!("real-time priority {}", -1 - priority)),
        (_, Some(nice)) if nice != 0 => words.push(format!("nice {nice}")),
        _ => {}
    }
    words.iter().map(|word| format!(" · {word}")).collect()
}

/// `sleeping in read of pipe:[4242]`; `sleeping in futex, waits for mutex 0x5581f0 held by 7540 conn-3`.
fn doing(thread: &Thread) -> Option<String> {
    let state = thread.state.as_deref()?;
    let call = thread.waiting_in.as_deref().map(|call| format!(" in {call}")).unwrap_or_default();
    let file = thread.waiting_on.as_deref().map(|file| format!(" of {file}")).unwrap_or_default();
    let lock = thread.waits_for.as_ref().and_then(|waits| lock_wait(waits, thread.id));
    let lock = lock.map(|lock| format!(", {lock}")).unwrap_or_default();
    Some(format!("{state}{call}{file}{lock}"))
}

/// Which threads share a stack, and what they do.
fn group_title(group: &[&Thread]) -> String {
    let is_live = group.iter().any(|thread| thread.priority.is_some());
    let listed = |thread: &Thread| match (is_live, thread.id) {
        (true, Some(number)) => (number, thread.name.clone()),
        _ => (thread.number, None),
    };
    let listed: Vec<_> = group.iter().map(|thread| listed(thread)).collect();
    let list = ThreadList::new(
        listed.iter().map(|(number, name)| Listed { number: *number, name: name.as_deref() }),
    );
    let what = doings(group).map(|what| format!(" · {what}")).unwrap_or_default();
    format!("{list}{what}")
}

/// `37 % CPU`; what is little has a digit more.
fn cpu(usage: f64) -> String {
    let percent = usage * 100.0;
    if (0.05..9.95).contains(&percent) {
        format!("{percent:.1} % CPU")
    } else {
        format!("{percent:.0} % CPU")
    }
}

/// What threads with the same stack do, if it is the same, and what time they take together.
fn doings(group: &[&Thread]) -> Option<String> {
    group.first()?.priority?;
    let mut what: Vec<_> = group.iter().filter_map(|thread| doing(thread)).collect();
    what.sort();
    what.dedup();
    let usage: f64 = group.iter().filter_map(|thread| thread.cpu_usage).sum();
    let what = if what.len() <= 2 { what.join(", ") } else { format!("{} and others", what.first()?) };
    Some(format!("{what} · {}", cpu(usage)))
}

/// The lock that a thread waits for: those that wait for different ones do different things.
fn lock(thread: &Thread) -> Option<Avma> {
    let waits = thread.waits_for.as_ref()?;
    (waits.kind != LockKind::Unknown).then_some(waits.address)
}

/// Threads with the same stack together, in the order of each group's first. A stack with a frame that was found by scanning
/// is a guess: it is shown on its own.
pub(crate) fn folded<'a>(threads: impl Iterator<Item = &'a Thread>) -> Vec<Vec<&'a Thread>> {
    let mut groups: Vec<Vec<&Thread>> = Vec::new();
    let mut seen = HashMap::new();
    for thread in threads {
        if thread.frames.iter().any(|frame| frame.trust == Trust::Scan) {
            groups.push(vec![thread]);
            continue;
        }
        let name = |frame: &'a Frame| frame.reported.as_ref().map(|symbol| (&symbol.name, symbol.line));
        let place = |frame: &'a Frame| (frame.address, frame.relative_pc, frame.file_offset);
        let frames = thread.frames.iter();
        let key: Vec<_> =
            frames.map(|frame| (place(frame), &frame.image_name, name(frame), &frame.annotations)).collect();
        let position = *seen
            .entry((key, lock(thread), &thread.kernel_stack, &thread.wait_channel))
            .or_insert(groups.len());
        match groups.get_mut(position) {
            Some(group) => group.push(thread),
            None => groups.push(vec![thread]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail::{Avma, FrameAddress};

    fn thread(number: u64, trust: Trust) -> Thread {
        let mut frame = Frame::new(0);
        frame.address = Some(FrameAddress::Exact(Avma::new(0x10)));
        frame.trust = trust;
        Thread { number, frames: vec![frame], ..Thread::default() }
    }

    #[test]
    fn guesses_are_not_folded() {
        let threads =
            [thread(1, Trust::Cfi), thread(2, Trust::Scan), thread(3, Trust::Cfi), thread(4, Trust::Scan)];
        let groups = folded(threads.iter());
        let numbers: Vec<Vec<_>> =
            groups.iter().map(|group| group.iter().map(|thread| thread.number).collect()).collect();
        assert_eq!(numbers, [vec![1, 3], vec![2], vec![4]]);
    }
}
