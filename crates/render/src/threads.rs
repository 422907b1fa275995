//! Threads in words, and which of them are shown as one.

use backtrail::{Avma, Frame, LockHolder, LockKind, LockWait, Thread, Trust};
use std::collections::HashMap;

/// `Thread 3 crashed · name · queue com.apple.main-thread`; of a process that runs also its id, what it is doing and what
/// time it takes.
pub fn thread_title(thread: &Thread) -> String {
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
pub fn doing(thread: &Thread) -> Option<String> {
    let state = thread.state.as_deref()?;
    let call = thread.waiting_in.as_deref().map(|call| format!(" in {call}")).unwrap_or_default();
    let file = thread.waiting_on.as_deref().map(|file| format!(" of {file}")).unwrap_or_default();
    let lock = thread.waits_for.as_ref().and_then(|waits| lock_wait(waits, thread.id));
    let lock = lock.map(|lock| format!(", {lock}")).unwrap_or_default();
    Some(format!("{state}{call}{file}{lock}"))
}

/// `37 % CPU`; what is little has a digit more.
pub fn cpu(usage: f64) -> String {
    let percent = usage * 100.0;
    if (0.05..9.95).contains(&percent) {
        format!("{percent:.1} % CPU")
    } else {
        format!("{percent:.0} % CPU")
    }
}

/// `waits for mutex 0x5581f0 held by 7540 conn-3`; `None` of what may be no lock. `own_id`: of the thread that waits.
pub fn lock_wait(waits: &LockWait, own_id: Option<u64>) -> Option<String> {
    let holder = holder(&waits.holder, own_id);
    let what = match waits.kind {
        LockKind::Mutex => "mutex",
        LockKind::RwLock => "rwlock",
        LockKind::ThreadEnd => return Some(format!("waits for the end of {holder}")),
        _ => return None,
    };
    let address = waits.address;
    Some(match waits.holder {
        LockHolder::Unknown => format!("waits for {what} {address}, {holder}"),
        _ => format!("waits for {what} {address} held by {holder}"),
    })
}

fn holder(holder: &LockHolder, own_id: Option<u64>) -> String {
    match holder {
        LockHolder::Thread { id, .. } if Some(*id) == own_id => "itself".to_owned(),
        LockHolder::Thread { id, name } => called(*id, name.as_deref()),
        LockHolder::Ended(id) => format!("{id}, which has ended"),
        LockHolder::OtherProcess(id) => format!("{id}, which is no thread of this process"),
        _ => "whose holder is not known".to_owned(),
    }
}

/// `7540 conn-3`.
pub fn called(id: u64, name: Option<&str>) -> String {
    name.map_or_else(|| id.to_string(), |name| format!("{id} {name}"))
}

/// The lock that a thread waits for: those that wait for different ones do different things.
fn lock(thread: &Thread) -> Option<Avma> {
    let waits = thread.waits_for.as_ref()?;
    (waits.kind != LockKind::Unknown).then_some(waits.address)
}

/// Threads with the same stack together, in the order of each group's first. A stack with a frame that was found by scanning
/// is a guess: it is shown on its own.
pub fn folded<'a>(threads: impl Iterator<Item = &'a Thread>) -> Vec<Vec<&'a Thread>> {
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
    use backtrail::FrameAddress;

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
