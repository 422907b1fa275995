//! What became of threads since an earlier capture.

use super::thread_list::{Listed, ThreadList, ThreadNames};
use crate::io::text::{Look, Text};
use backtrail::{StackDiff, ThreadLabel};
use std::io;

/// Writes how many threads moved, are new, are gone and did not move since `earlier`, and which.
pub(crate) fn write(out: &mut Text<'_>, earlier: &str, diff: &StackDiff) -> io::Result<()> {
    let (moved, new, gone) = (diff.moved.len(), diff.new.len(), diff.gone.len());
    let unmoved = diff.unmoved.len();
    out.end()?;
    let title = format!("Since {earlier}: {moved} moved, {new} new, {gone} gone, {unmoved} not moved");
    out.painted_line(Look::Heading, title)?;
    for group in moves(diff) {
        let [first, ..] = &group[..] else { continue };
        let threads = list(group.iter().map(|moved| &moved.thread));
        let place = |place: &Option<String>| place.clone().unwrap_or_else(|| "no frame".to_owned());
        let (was_in, is_in) = (place(&first.was_in), place(&first.is_in));
        out.put(format_args!("  moved    {threads}: "))?;
        match was_in == is_in {
            true => out.put(format_args!("elsewhere in {is_in} or its callers"))?,
            false => out.put(format_args!("from {was_in} to {is_in}"))?,
        }
        out.line(format_args!(", {} outer frames the same", first.common_frames))?;
    }
    for (what, threads) in [("new  ", &diff.new), ("gone ", &diff.gone)] {
        if !threads.is_empty() {
            out.line(format_args!("  {what}    {}", list(threads)))?;
        }
    }
    let used = |one: &&backtrail::UnmovedThread| one.cpu_time.is_some_and(|time| time > 0.0);
    let used: Vec<_> = diff.unmoved.iter().filter(used).collect();
    if !used.is_empty() {
        let time: f64 = used.iter().filter_map(|one| one.cpu_time).sum();
        let threads = list(used.iter().map(|one| &one.thread));
        out.line(format_args!(
            "  back     {threads}: the same frames, but {time:.2} s of processor time between"
        ))?;
    }
    let still: Vec<_> =
        diff.unmoved.iter().filter(|one| one.cpu_time.is_none_or(|time| time <= 0.0)).collect();
    if !still.is_empty() {
        out.line(format_args!("  unmoved  {}", list(still.iter().map(|one| &one.thread))))?;
    }
    Ok(())
}

/// Threads that went the same way together, in the order of each group's first.
fn moves(diff: &StackDiff) -> Vec<Vec<&backtrail::MovedThread>> {
    let mut groups: Vec<Vec<&backtrail::MovedThread>> = Vec::new();
    let mut positions = std::collections::HashMap::new();
    for moved in &diff.moved {
        let key = (&moved.was_in, &moved.is_in, moved.common_frames);
        let position = *positions.entry(key).or_insert(groups.len());
        match groups.get_mut(position) {
            Some(group) => group.push(moved),
            None => groups.push(vec![moved]),
        }
    }
    groups
}

fn list<'a>(threads: impl IntoIterator<Item = &'a ThreadLabel>) -> ThreadNames<'a> {
    let listed =
        |thread: &'a ThreadLabel| Listed { number: thread.id.unwrap_or(0), name: thread.name.as_deref() };
    ThreadNames(ThreadList::new(threads.into_iter().map(listed)))
}
