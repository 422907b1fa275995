//! Who waits for whom: ANR traces and thread dumps.

use super::draft::Draft;
use super::facts::Facts;
use super::words::{listed, one_line};
use crate::names::describe;
use crate::suspect::is_system;
use backtrail_model::{Frame, Report, Source, Thread};
use std::collections::{BTreeMap, HashMap};

/// Threads that a cycle of locks is looked for in.
const MAX_THREADS: usize = 10_000;

/// What a thread waits for: the lock, and the thread that the trace says holds it.
fn waits_for(thread: &Thread) -> Option<(&str, Option<u64>)> {
    // The JVM parks threads that wait for a lock of java.util.concurrent.
    const WAITING: [&str; 3] = ["- waiting to lock ", "- waiting to re-lock ", "- parking to wait for "];
    let line = thread.frames.iter().flat_map(|frame| &frame.annotations).find_map(|line| {
        let rest = WAITING.iter().find_map(|words| line.strip_prefix(words))?.trim_start();
        Some((lock(rest)?, rest))
    })?;
    // Dalvik, up to Android 4.4, writes `held by tid=26 (name)`.
    let (_, rest) = line
        .1
        .rsplit_once("held by thread ")
        .or_else(|| line.1.rsplit_once("held by tid="))
        .unwrap_or_default();
    let holder = rest.split_whitespace().next().and_then(|number| number.parse().ok());
    Some((line.0, holder))
}

/// `<0x0123>`, which locks are named by.
fn lock(text: &str) -> Option<&str> {
    let end = text.find('>')?;
    text.get(..=end).filter(|text| text.starts_with('<'))
}

/// Who holds each lock, by position among the threads.
fn holders(report: &Report) -> HashMap<&str, usize> {
    let threads = report.process.threads.iter().enumerate().take(MAX_THREADS);
    let held = threads.flat_map(|(at, thread)| {
        let lines = thread.frames.iter().flat_map(|frame| &frame.annotations);
        let monitors = lines.filter_map(|line| lock(line.strip_prefix("- locked ")?));
        let owned = thread.fields.iter().filter(|field| field.key == "Locked ownable synchronizers");
        let locks = monitors.chain(owned.flat_map(|field| field.value.lines()).filter_map(lock));
        locks.map(move |lock| (lock, at)).collect::<Vec<_>>()
    });
    held.collect()
}

/// The thread that each thread waits for, by position.
fn edges(report: &Report) -> Vec<Option<usize>> {
    let holders = holders(report);
    let threads = &report.process.threads;
    let numbers: HashMap<u64, usize> =
        threads.iter().enumerate().map(|(at, thread)| (thread.number, at)).collect();
    let edge = |thread: &Thread| {
        let (lock, number) = waits_for(thread)?;
        number.and_then(|number| numbers.get(&number)).or_else(|| holders.get(lock)).copied()
    };
    threads.iter().take(MAX_THREADS).map(edge).collect()
}

/// The cycles, each as positions of threads. A thread waits for one lock, so it is in one cycle at most.
fn cycles(edges: &[Option<usize>]) -> Vec<Vec<usize>> {
    let next = |at: usize| edges.get(at).copied().flatten().filter(|next| *next != at);
    // By whose search a thread was first come to.
    let mut seen = vec![0_usize; edges.len()];
    let mut cycles = Vec::new();
    for start in 0..edges.len() {
        let mut at = start;
        while let Some(mark) = seen.get_mut(at).filter(|mark| **mark == 0) {
            *mark = start + 1;
            match next(at) {
                Some(next) => at = next,
                None => break,
            }
        }
        // Back at a thread of this very search, with a step left to do: it leads to itself.
        if seen.get(at) == Some(&(start + 1)) && next(at).is_some() {
            let rest = std::iter::successors(next(at), |position| next(*position));
            cycles.push(std::iter::once(at).chain(rest.take_while(|position| *position != at)).collect());
        }
    }
    cycles
}

/// The heading under which a Java virtual machine says that it found deadlocks itself.
fn own_verdict(report: &Report) -> Option<&str> {
    let titles = report.sections.iter().map(|section| section.title.as_str());
    titles.clone().find(|title| title.starts_with("Found ") && title.contains("deadlock"))
}

fn label(thread: &Thread) -> String {
    match thread.name.as_deref() {
        Some(name) => format!("\"{}\" (thread {})", one_line(name), thread.number),
        None => format!("thread {}", thread.number),
    }
}

/// The innermost frame of a thread that is not the platform's, else its innermost.
fn telling<'r>(report: &Report, thread: &'r Thread) -> Option<&'r Frame> {
    let is_own = |frame: &&Frame| !is_system(report, frame);
    thread.frames.iter().find(is_own).or(thread.frames.first())
}

fn at(report: &Report, thread: &Thread) -> String {
    telling(report, thread).map(|frame| format!(", at {}", describe(report, frame))).unwrap_or_default()
}

/// Threads that wait for each other's locks.
pub(super) fn deadlock(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if !matches!(facts.report.source, Source::AndroidAnr | Source::JavaThreadDump) {
        return false;
    }
    let all = &facts.report.process.threads;
    let found = cycles(&edges(facts.report));
    let found: Vec<Vec<&Thread>> =
        found.iter().map(|cycle| cycle.iter().filter_map(|at| all.get(*at)).collect()).collect();
    let verdict = own_verdict(facts.report);
    let Some(first) = found.first() else {
        let Some(verdict) = verdict else { return false };
        draft.lead(
            "Deadlock, by the dump's own word",
            "The virtual machine found threads that wait for each other's locks and can never go on.",
        );
        draft.evidence(verdict);
        draft.say("The stacks do not tell who holds what.");
        advise(draft);
        return true;
    };
    let names = |cycle: &[&Thread]| cycle.iter().map(|thread| label(thread)).collect::<Vec<_>>().join(", ");
    if found.len() == 1 {
        draft.lead(
            format!("Deadlock of {} threads", first.len()),
            format!("These threads wait for each other's locks and can never go on: {}.", names(first)),
        );
    } else {
        let sizes: Vec<String> = found.iter().map(|cycle| cycle.len().to_string()).collect();
        draft.lead(
            format!("{} deadlocks, of {} threads", found.len(), listed(&sizes)),
            "In each, threads wait for each other's locks and can never go on.",
        );
    }
    for cycle in &found {
        if found.len() > 1 {
            draft.evidence(format!("Deadlock of {}", names(cycle)));
        }
        for (position, thread) in cycle.iter().enumerate() {
            let holder = cycle.get((position + 1) % cycle.len()).map_or_else(String::new, |next| label(next));
            let lock = waits_for(thread).map_or("", |(lock, _)| lock);
            draft.evidence(format!(
                "{} waits for {lock}, which {holder} holds{}",
                label(thread),
                at(facts.report, thread)
            ));
        }
    }
    let threads: Vec<&Thread> = found.iter().flatten().copied().collect();
    if let Some(main) =
        facts.report.crashed().filter(|main| !threads.iter().any(|it| std::ptr::eq(*it, *main)))
    {
        draft.say(format!("The main thread is not one of them{}.", at(facts.report, main)));
    }
    advise(draft);
    true
}

fn advise(draft: &mut Draft) {
    draft.cause("The threads take the same locks in different orders.");
    draft.next("Take the locks in one order everywhere, or hold fewer at a time: no call into other code with a lock held.");
}

/// Functions in which a main thread waits for something to do.
const IDLE: [&str; 3] = ["android.os.MessageQueue.nativePollOnce", "__epoll_pwait", "epoll_pwait"];

/// A process that did not respond.
pub(super) fn anr(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let report = facts.report;
    if report.source != Source::AndroidAnr {
        return false;
    }
    let subject =
        report.fields.iter().find(|field| field.key == "Subject").map(|field| one_line(&field.value));
    let what = subject
        .as_deref()
        .and_then(|subject| subject.split(" (").next())
        .unwrap_or("the app did not respond");
    let title = |state: &str| format!("ANR: {what}; {state}");
    subject.iter().for_each(|subject| draft.evidence(format!("Subject: {subject}")));
    let Some(main) = report.crashed() else {
        draft.lead(title("no main thread in the trace"), "The trace has no stack of the main thread.");
        draft.say("The report does not tell what the app did.");
        return true;
    };
    let state = main.state.as_deref().unwrap_or_default();
    draft.evidence(format!("{}: {}", label(main), if state.is_empty() { "no state" } else { state }));
    if main.frames.is_empty() {
        draft.lead(title("the main thread has no stack"), "The stack of the main thread could not be taken.");
        let channel = main.waiting_in.as_deref().map(|channel| format!("The kernel has it in {channel}."));
        channel.iter().for_each(|channel| draft.say(channel));
        return true;
    }
    let place = at(report, main);
    if let Some((lock, number)) = waits_for(main) {
        let position =
            number.and_then(|number| report.process.threads.iter().position(|it| it.number == number));
        let holder = position
            .or_else(|| holders(report).get(lock).copied())
            .and_then(|at| report.process.threads.get(at));
        match holder {
            Some(holder) => {
                draft.lead(
                    title(&format!("the main thread waits for a lock of {}", label(holder))),
                    format!(
                        "The main thread waits for {lock}, which {} holds{}.",
                        label(holder),
                        at(report, holder)
                    ),
                );
                draft.next("Look at what the thread that holds the lock does: the main thread can only go on when it lets go.");
            }
            None => draft.lead(
                title("the main thread waits for a lock"),
                match number {
                    Some(number) => format!(
                        "The main thread waits for {lock}, which thread {number} holds; the text does not have its stack."
                    ),
                    None => format!("The main thread waits for {lock}; the trace does not tell who holds it."),
                },
            ),
        }
        draft.say(format!("The main thread is{}.", place.trim_start_matches(',')));
        return true;
    }
    let is_idle = main.frames.iter().take(4).any(|frame| frame.names().any(|name| IDLE.contains(&name)));
    let is_running = matches!(state, "Runnable" | "R" | "Suspended");
    if is_idle {
        draft.lead(
            title("the main thread was idle when the trace was taken"),
            "The main thread waits for messages: what held it up was over when the trace was taken.",
        );
        draft.cause("Work on the main thread that ended just before, or a device under load.");
        draft.next(
            "Look at slow messages in the log, and at the processor's load in the ANR's own description.",
        );
    } else if is_running {
        draft.lead(
            title(&format!("the main thread was busy{place}")),
            format!("The main thread was running{place}."),
        );
        draft.cause("Work that takes too long on the main thread.");
        draft.next("Move the work off the main thread, or do less of it at a time.");
    } else {
        draft.lead(
            title(&format!("the main thread was waiting{place}")),
            format!("The main thread was waiting ({state}){place}."),
        );
        let first = main.frames.iter().find_map(|frame| frame.names().next()).unwrap_or_default();
        if first.contains("BinderProxy") || first.contains("ioctl") {
            draft.cause("A call to another process that does not answer in time.");
        } else {
            draft.cause(
                "A wait on the main thread for another thread, for input or output, or for another process.",
            );
        }
        draft.next("Look at what the innermost frames wait for, and who would end the wait.");
    }
    true
}

/// Stacks of a virtual machine that is not known to have crashed.
pub(super) fn thread_dump(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source != Source::JavaThreadDump {
        return false;
    }
    let threads = &facts.report.process.threads;
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for thread in threads {
        let state = thread.state.as_deref().unwrap_or("no state");
        *states.entry(state.split(" (").next().unwrap_or(state)).or_default() += 1;
    }
    let count = |(state, count): (&&str, &usize)| format!("{count} {}", one_line(state));
    let shown: Vec<_> = states.iter().take(12).map(count).collect();
    draft.lead(
        format!("Thread dump of {} threads; no deadlock of locks", threads.len()),
        format!("The dump has {} threads: {}.", threads.len(), shown.join(", ")),
    );
    let mut waiters: HashMap<usize, usize> = HashMap::new();
    edges(facts.report).into_iter().flatten().for_each(|holder| *waiters.entry(holder).or_default() += 1);
    let most = waiters.into_iter().max_by_key(|(holder, count)| (*count, std::cmp::Reverse(*holder)));
    if let Some((thread, count)) = most.and_then(|(at, count)| Some((threads.get(at)?, count))) {
        let s = if count == 1 { " waits" } else { "s wait" };
        draft.say(format!(
            "{count} thread{s} for a lock that {} holds{}.",
            label(thread),
            at(facts.report, thread)
        ));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cycle_is_found_once_and_nothing_else() {
        let found = |edges: &[Option<usize>]| cycles(edges);
        assert_eq!(found(&[None, Some(0), Some(1)]), Vec::<Vec<usize>>::new());
        assert_eq!(found(&[Some(0)]), Vec::<Vec<usize>>::new(), "a lock that its own thread holds");
        let two = found(&[Some(1), Some(0), Some(0), Some(4), Some(5), Some(3), Some(9)]);
        assert_eq!(two, [vec![0, 1], vec![3, 4, 5]]);
    }
}
