//! Which reports are of one bug: the keys that put them into one group, and why.
//!
//! A report has up to two keys. The *key* needs no names: the sort of event, and the places in the program's own images, by
//! the images' identities and the offsets in them. It is the same for the same place of the same build. The *symbol key* needs
//! names: the sort of event and the names of the program's own functions, from the innermost one to the first that tells
//! the bug, without all that differs from build to build. Where names are found later, the key says which group they belong
//! to ([`Groups`] joins both).
//!
//! A wrong merge hides a bug, a wrong split only costs time: where a report does not tell, it stays apart.
//!
//! `docs/group.md` has the rules and their tables.

mod begins;
mod groups;
mod kind;
mod name;
mod parts;
mod places;
mod stall;
mod stated;
mod telling;

#[cfg(test)]
mod tests;

pub use begins::{Beginning, Begins, Shown, ShownSort};
pub use groups::{Added, GroupRef, Groups, Joined};

use crate::explain::Explanation;
use crate::explain::kill::killing;
use crate::explain::words::one_line;
use backtrail_model::Report;
pub use kind::is_crash;
use kind::{Kind, kind_of, message_of};
use parts::Parts;
pub use places::telling_stack;
use places::{Found, Level, Places};
use stated::{is_general, missing, stated};

/// The version of the rules that made a key, in front of it. Reports that no later rule is about keep the keys that they had, so
/// that groups which were stored stay what they are.
const FIRST: &str = "1";
/// Of stalls of Linux's kernel, what the interrupt that reported them was doing is left out.
const SECOND: &str = "2";
/// Of Sentry's events of scripts and managed code, a function without a name of its own does not tell a bug.
const THIRD: &str = "3";
/// Of reports that state places in files alone, as Android's do, the key has these places; before, it had the functions' names, or nothing. Behind a
/// cause of Java's that was shortened, the frames of the exception around it count.
const FOURTH: &str = "4";
/// Places that words name, and panics of Rust's; functions that test frameworks, kernels and virtual machines have in front of a bug;
/// closures. `docs/group.md` says of which reports.
const FIFTH: &str = "5";

/// What puts a report into a group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Group {
    /// The key that needs no names.
    pub key: String,
    /// The key by names; `None` where names that it needs are missing.
    pub symbol_key: Option<String>,
    /// The sort of event: `access`, `abort`, `hang`…
    pub kind: String,
    /// Where it happened, for titles: a function's name, or an image with an offset.
    pub place: Option<String>,
    /// What is in the keys, and by which rules.
    pub why: Vec<String>,
}

impl Group {
    /// One line for people: what happened, and where.
    pub fn title(&self, explanation: &Explanation) -> String {
        let what = without_numbers(&explanation.title);
        match &self.place {
            Some(place) if !what.contains(place.as_str()) => format!("{what} in {}", one_line(place)),
            _ => what,
        }
    }
}

/// A title without addresses, which differ from report to report.
fn without_numbers(title: &str) -> String {
    let mut out = String::with_capacity(title.len());
    let mut rest = title;
    while let Some((front, behind)) = rest.split_once("0x") {
        let digits = behind.bytes().take_while(u8::is_ascii_hexdigit).count();
        out.push_str(front);
        out.push_str(if digits > 3 { "0x…" } else { "0x" });
        rest = behind.get(if digits > 3 { digits } else { 0 }..).unwrap_or_default();
    }
    out + rest
}

/// Drops the stacks of a crash that grouping does not look at, so that nobody looks for their names.
pub fn keep_fault(report: &mut Report) {
    // Who was ended from outside may have waited for another thread.
    if report.termination.is_some() && killing(report).is_some() {
        return;
    }
    // Of a stall another stack may tell more.
    if stall::stalled(report).is_some() {
        return;
    }
    let Some(crashed) = report.process.crashed_thread else { return };
    for (position, thread) in report.process.threads.iter_mut().enumerate() {
        if position != crashed {
            thread.frames = Vec::new();
        }
    }
}

/// What puts `report` into a group. `None` where nothing tells it from others of its sort: no stack and no words.
pub fn group(report: &Report) -> Option<Group> {
    group_and_begins(report).0
}

/// The same, and what of its bug shows where a stack is cut.
pub fn group_and_begins(report: &Report) -> (Option<Group>, Begins) {
    let kind = kind_of(report);
    match Places::of(report, &kind) {
        Found::Places(places) => by_places(report, &kind, &places),
        Found::OfSystemAndCut => (None, begins::of_words(report, &kind)),
        Found::Nothing => (by_words(report, &kind), Begins::default()),
    }
}

fn by_places(report: &Report, kind: &Kind, places: &Places<'_>) -> (Option<Group>, Begins) {
    let mut why = vec![format!("sort of event: {}", kind.key())];
    let parts = Parts::of(report, places);
    let missing = missing_of(report, kind);
    let lacks = missing.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let recursion = if places.is_recursion { "recursion " } else { "" };
    let event = format!("{recursion}{}{}{lacks}", kind.key(), places.via());
    why.push(places.why());
    why.extend(parts.why.iter().cloned());
    let spots = places.spots(report);
    let shown = spots.get(..MAX_SHOWN).unwrap_or(&spots);
    let more = spots.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    why.push(format!("key: {}{more}", shown.join(", ")));
    let stated = stated(report).filter(|_| places.level == Level::Own && !report.source.is_runtimes());
    let key = match &stated {
        Some(stated) => {
            why.push(format!("the words name a place, which counts for the key: {}", stated.place));
            let parts = [spots.as_slice(), std::slice::from_ref(&stated.place)].concat();
            key_of(FIFTH, "k", &event, &parts)
        }
        None if missing.is_some() => key_of(FIFTH, "k", &event, &spots),
        None => key_of(places.version_of_places(report), "k", &event, &spots),
    };
    let by_names = match () {
        () if parts.is_fifth || missing.is_some() => FIFTH,
        () if parts.is_continued => FOURTH,
        () => places.version(report),
    };
    let symbol_key = parts.is_complete.then(|| key_of(by_names, "s", &event, &parts.texts));
    match &symbol_key {
        Some(_) => why.push(format!("symbol key: {}", parts.texts.join(", "))),
        None => why.push(format!("no symbol key: {}", parts.lacks)),
    }
    let begins = begins::of_stack(report, kind, places, &parts, &spots, symbol_key.is_some());
    why.extend(begins.shown.iter().map(|shown| format!("cut short: it shows {}", shown.what)));
    // All that is left of the stack may be what every panic has.
    let is_lost = places.may_be_panic && !places.is_whole && spots.len() < places.least();
    if is_lost && symbol_key.is_none() && stated.is_none() {
        return (None, begins);
    }
    let place = parts.place.clone().or_else(|| places.first_spot(report));
    (Some(Group { key, symbol_key, kind: event, place, why }), begins)
}

/// Reports without a stack are told apart by their words alone, and by whom they are of.
fn by_words(report: &Report, kind: &Kind) -> Option<Group> {
    if !kind.has_words() {
        return None;
    }
    let words = message_of(report);
    let is_detailed = !kind.detail.is_empty();
    if words.is_none() && !is_detailed {
        return None;
    }
    let process = &report.process;
    let who = process.identifier.as_deref().or(process.name.as_deref()).unwrap_or_default();
    let mut parts = vec![who.to_owned()];
    parts.extend(words.clone());
    // Of the program's own words those of one file are one bug, in whichever line they stand in the next release.
    let stated = stated(report).filter(|stated| stated.is_panic).map(|stated| {
        if is_general(words.as_deref().unwrap_or_default()) { stated.place } else { stated.file }
    });
    parts.extend(stated.clone());
    let missing = missing_of(report, kind);
    parts.extend(missing.clone());
    let at = stated.as_ref().map(|at| format!(" at {at}"));
    let lacks = missing.as_ref().map(|name| format!(", without {name}"));
    let at = at.or(lacks).unwrap_or_default();
    let why = vec![
        format!("sort of event: {}", kind.key()),
        format!(
            "no stack tells more: the process {who:?}, and the report's own words {:?}{at}",
            words.unwrap_or_default()
        ),
    ];
    let key =
        key_of(if stated.is_some() || missing.is_some() { FIFTH } else { FIRST }, "w", &kind.key(), &parts);
    Some(Group { symbol_key: Some(key.clone()), key, kind: kind.key(), place: stated, why })
}

/// What a program lacks that Apple's loader ended.
fn missing_of(report: &Report, kind: &Kind) -> Option<String> {
    if kind.is_loaders() { missing(report) } else { None }
}

/// Places that people are shown of a key.
const MAX_SHOWN: usize = 8;

/// Bytes of a digest that a key has: two groups of a thousand million share one by chance once in 10^11 times.
const KEY_BYTES: usize = 12;

fn key_of(version: &str, space: &str, kind: &str, parts: &[String]) -> String {
    use std::fmt::Write as _;
    let digest = digest([version, space, kind].into_iter().chain(parts.iter().map(String::as_str)));
    let mut key = format!("{version}:");
    for byte in digest.as_bytes().iter().take(KEY_BYTES) {
        // Writing to a String cannot fail.
        let _ = write!(key, "{byte:02x}");
    }
    key
}

fn digest<'p>(parts: impl Iterator<Item = &'p str>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize()
}
