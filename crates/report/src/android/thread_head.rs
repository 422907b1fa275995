//! The line that a thread begins with in ART's and HotSpot's dumps.
//!
//! ART: `"main" prio=5 tid=1 Native`, `"Signal Catcher" daemon prio=10 tid=6 Runnable`, of a thread that it does not know
//! `"name" sysTid=123`. Crashlytics: `main (runnable):tid=1 systid=12345 `. HotSpot: `"main" #1 [5379] daemon prio=5 os_prio=31 cpu=2ms tid=0x01 nid=0x02 runnable  [0x03]`.

use backtrail_model::{Field, Thread};

/// Words that follow a thread's name, with the quote and blank between.
const MARKS: [&str; 9] = [
    "\" prio=",
    "\" daemon",
    "\" sysTid=",
    "\" #",
    "\" os_prio=",
    "\" tid=",
    "\" nid=",
    "\" virtual",
    "\" cpu=",
];

/// Whose dump a thread's first line is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writer {
    Art,
    HotSpot,
    Crashlytics,
}

/// A thread's first line, and who wrote it.
pub(super) fn read(line: &str, position: usize) -> Option<(Thread, Writer)> {
    let Some(inner) = line.strip_prefix('"') else {
        return crashlytics(line).map(|it| (it, Writer::Crashlytics));
    };
    let end = MARKS.iter().filter_map(|mark| inner.find(mark)).min()?;
    let (name, rest) = inner.split_at_checked(end)?;
    let rest = rest.get(1..)?;
    let mut thread = Thread { name: Some(name.to_owned()), number: position as u64, ..Thread::default() };
    let (mut is_hotspot, mut words) = (false, Vec::new());
    for word in rest.split_whitespace() {
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        };
        match word.split_once('=') {
            Some(("sysTid", id)) => thread.id = number(id),
            Some(("nid", id)) => {
                (thread.id, is_hotspot) = (number(id), true);
                push(&mut thread, "nid", id);
            }
            Some(("tid", id)) if !id.starts_with("0x") && id.parse::<u64>().is_ok() => {
                thread.number = id.parse().unwrap_or_default();
            }
            Some((key, value)) => {
                is_hotspot |= key == "os_prio";
                push(&mut thread, key, value);
            }
            None => match word.strip_prefix('#').and_then(|number| number.parse().ok()) {
                Some(number) => (thread.number, is_hotspot) = (number, true),
                None if word == "daemon" => push(&mut thread, "daemon", ""),
                None => words.push(word),
            },
        }
    }
    thread.state = Some(words.join(" ")).filter(|state| !state.is_empty());
    Some((thread, if is_hotspot { Writer::HotSpot } else { Writer::Art }))
}

/// `pool-4-thread-1 (waiting):tid=31 systid=12377 | waiting on <0x0cde> (a java.lang.Object)`.
fn crashlytics(line: &str) -> Option<Thread> {
    let (head, rest) = line.split_once("):tid=")?;
    let (name, state) = head.rsplit_once(" (")?;
    let (number, rest) = rest.split_once(" systid=")?;
    let (id, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let mut thread = Thread {
        name: Some(name.to_owned()),
        number: number.parse().ok()?,
        id: Some(id.trim().parse().ok()?),
        state: Some(state.to_owned()),
        ..Thread::default()
    };
    if let Some(lock) = rest.trim().strip_prefix("| ") {
        push(&mut thread, "", lock);
    }
    Some(thread)
}

fn push(thread: &mut Thread, key: &str, value: &str) {
    thread.fields.push(Field { key: key.to_owned(), value: value.to_owned() });
}

/// `  | sysTid=12 nice=-10 cgrp=top-app`: what ART says of a thread.
pub(super) fn facts(line: &str, thread: &mut Thread) {
    // `held mutexes= "mutator lock"(shared held)` is one value, whatever stands in it.
    let line = line.trim();
    if let Some(held) = line.strip_prefix("held mutexes=") {
        return push(thread, "held mutexes", held.trim());
    }
    let mut rest = line;
    while let Some((key, behind)) = rest.split_once('=') {
        let (value, next) = split_value(behind);
        match key.trim() {
            "sysTid" => thread.id = value.trim().parse().ok().or(thread.id),
            "nice" => thread.nice = value.trim().parse().ok(),
            _ => {}
        }
        push(thread, key.trim(), value.trim());
        rest = next;
    }
    if !rest.trim().is_empty() {
        push(thread, "", rest.trim());
    }
}

/// A value, up to the word that has the next `=`.
fn split_value(text: &str) -> (&str, &str) {
    let Some(equals) = text.find('=') else { return (text, "") };
    let before = text.get(..equals).unwrap_or(text);
    match before.rfind(' ') {
        Some(blank) => text.split_at_checked(blank).unwrap_or((text, "")),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_both_machines() {
        let (thread, writer) = read("\"main\" prio=5 tid=1 Native (still starting up)", 7).unwrap();
        assert_eq!((thread.name.as_deref(), thread.number, writer), (Some("main"), 1, Writer::Art));
        assert_eq!(thread.state.as_deref(), Some("Native (still starting up)"));
        let line =
            "\"a \"b\" c\" #3 [5379] daemon prio=5 os_prio=31 tid=0x1 nid=0x10 waiting on condition  [0x3]";
        let (thread, writer) = read(line, 7).unwrap();
        assert_eq!((thread.name.as_deref(), thread.number, writer), (Some("a \"b\" c"), 3, Writer::HotSpot));
        assert_eq!(
            (thread.id, thread.state.as_deref()),
            (Some(16), Some("[5379] waiting on condition [0x3]"))
        );
        let (thread, _) = read("\"x\" sysTid=12", 7).unwrap();
        assert_eq!((thread.number, thread.id), (7, Some(12)));
        assert!(read("\"Thread-1\":", 0).is_none());
        let line = "pool 4 (x) (waiting):tid=31 systid=12377 | waiting on <0x0cde> (a java.lang.Object)";
        let (thread, writer) = read(line, 7).unwrap();
        assert_eq!(
            (thread.name.as_deref(), thread.number, writer),
            (Some("pool 4 (x)"), 31, Writer::Crashlytics)
        );
        assert_eq!((thread.id, thread.state.as_deref()), (Some(12_377), Some("waiting")));
        assert_eq!(thread.fields[0].value, "waiting on <0x0cde> (a java.lang.Object)");
        assert!(read("main (runnable):tid=1 systid=", 0).is_none());
    }

    #[test]
    fn facts_of_a_thread() {
        let mut thread = Thread::default();
        facts("state=R schedstat=( 3 4 5 ) utm=2 stm=8", &mut thread);
        facts("sysTid=12 nice=-10 cgrp=top-app", &mut thread);
        facts("held mutexes= \"mutator lock\"(shared held)", &mut thread);
        let fields: Vec<_> = thread.fields.iter().map(|f| (f.key.as_str(), f.value.as_str())).collect();
        let expected = [
            ("state", "R"),
            ("schedstat", "( 3 4 5 )"),
            ("utm", "2"),
            ("stm", "8"),
            ("sysTid", "12"),
            ("nice", "-10"),
            ("cgrp", "top-app"),
            ("held mutexes", "\"mutator lock\"(shared held)"),
        ];
        assert_eq!(fields, expected);
        assert_eq!((thread.id, thread.nice), (Some(12), Some(-10)));
    }
}
