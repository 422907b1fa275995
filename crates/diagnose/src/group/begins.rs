//! What a report whose stack was cut shows of its bug, and what the reports of a group would show if theirs were.
//!
//! Both are digests, which whoever has many reports compares: a cut stack is likely of the one group whose reports begin like it.

use super::kind::{Kind, said};
use super::parts::{Ending, Parts};
use super::places::Places;
use backtrail_model::Report;
use std::fmt;
use std::str::FromStr;

/// What a stack shows that may have been cut there: the sort of event with the innermost functions, or places, or with the
/// report's words. Written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Beginning(u64);

impl Beginning {
    fn of(space: Space, event: &str, parts: &[String]) -> Self {
        let what = ["begins", space.as_str(), event];
        let digest = super::digest(what.into_iter().chain(parts.iter().map(String::as_str)));
        let bytes = digest.as_bytes().first_chunk().copied().unwrap_or_default();
        Self(u64::from_le_bytes(bytes))
    }
}

impl fmt::Display for Beginning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Beginning {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

/// What a report shows of its bug, whole or cut.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Begins {
    /// The sort of event.
    pub kind: String,
    /// Of a report that has all that its keys need: what others of its bug show where their stacks are cut.
    pub of_group: Vec<Beginning>,
    /// The same by the report's words alone, where it has any. They may differ between reports of one bug.
    pub words: Option<Beginning>,
    /// Of a report whose stack was cut before it tells the bug: what it shows, each sort once.
    pub shown: Vec<Shown>,
}

/// What a cut stack shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// The digest to look for.
    pub beginning: Beginning,
    /// What it is a digest of.
    pub sort: ShownSort,
    /// The same for people.
    pub what: String,
}

/// What a beginning is a digest of, beside the sort of event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShownSort {
    /// Names of the program's innermost functions, or of one round of a recursion.
    Functions,
    /// The program's innermost places in a build, where names are missing or passed over.
    Places,
    /// What the exception or the process said.
    Words,
}

impl Shown {
    fn new(space: Space, event: &str, parts: &[String]) -> Self {
        let (sort, what) = match space {
            Space::Names => (ShownSort::Functions, "the functions"),
            Space::Round => (ShownSort::Functions, "a recursion of"),
            Space::Thrown => (ShownSort::Functions, "something thrown by"),
            Space::Places => (ShownSort::Places, "the places"),
            Space::Words => (ShownSort::Words, "the words"),
        };
        let beginning = Beginning::of(space, event, parts);
        Self { beginning, sort, what: format!("{what} {}", parts.join(", ")) }
    }
}

/// What is digested: no digest of one is one of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Space {
    Names,
    Places,
    Round,
    Thrown,
    Words,
}

impl Space {
    fn as_str(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Places => "places",
            Self::Round => "round",
            Self::Thrown => "thrown",
            Self::Words => "words",
        }
    }
}

/// Of a report whose stack has frames of the program.
pub(super) fn of_stack(
    report: &Report,
    kind: &Kind,
    places: &Places<'_>,
    parts: &Parts,
    spots: &[String],
    is_named: bool,
) -> Begins {
    let event = format!("{}{}", kind.key(), places.via());
    let said = said(report, kind).map(|words| by_words(kind, &words));
    let shown = shown(report, kind, &event, places, parts, spots, is_named);
    if let Some(shown) = shown {
        return Begins {
            kind: kind.key(),
            shown: shown.into_iter().chain(said).collect(),
            ..Begins::default()
        };
    }
    let mut of_group = Vec::new();
    if is_named && places.is_recursion {
        of_group.push(Beginning::of(Space::Round, &event, &parts.texts));
    } else if is_named {
        of_group.extend(beginnings(Space::Names, &event, &parts.texts));
    }
    if is_named && kind.is_exception() && places.is_cpp_runtimes {
        of_group.push(Beginning::of(Space::Thrown, Kind::ABORT, &parts.texts));
    }
    if !places.is_recursion && places.is_proven(report) {
        of_group.extend(beginnings(Space::Places, &event, spots));
    }
    let words = said.filter(|_| is_named).map(|words| words.beginning);
    Begins { kind: kind.key(), of_group, words, shown: Vec::new() }
}

/// What a stack shows that was cut before it tells the bug, words left out. `None` where it was not.
fn shown(
    report: &Report,
    kind: &Kind,
    event: &str,
    places: &Places<'_>,
    parts: &Parts,
    spots: &[String],
    is_named: bool,
) -> Option<Vec<Shown>> {
    if let Some(round) = places.cut_round() {
        let texts = Parts::of_round(report, places, &round);
        let is_shown = !texts.is_empty();
        return is_shown.then(|| vec![Shown::new(Space::Round, event, &texts)]);
    }
    // Reporters that look at signals alone know nothing of exceptions.
    if is_named && kind.is_plain_abort() && places.is_cpp_runtimes {
        return Some(vec![Shown::new(Space::Thrown, event, &parts.texts)]);
    }
    if places.is_whole || is_named {
        return None;
    }
    match parts.ending {
        Ending::Stack if !parts.texts.is_empty() => Some(vec![Shown::new(Space::Names, event, &parts.texts)]),
        // Nothing is known of the functions: where they were called from is.
        Ending::Stack | Ending::Name if parts.texts.is_empty() && spots.len() < places.least() => {
            let is_proven = places.is_proven(report);
            Some(if is_proven { vec![Shown::new(Space::Places, event, spots)] } else { Vec::new() })
        }
        _ => None,
    }
}

/// Of a report whose stack ends in the system's code: nothing but its words tells of the bug.
pub(super) fn of_words(report: &Report, kind: &Kind) -> Begins {
    let said = said(report, kind).map(|words| by_words(kind, &words));
    Begins { kind: kind.key(), shown: said.into_iter().collect(), ..Begins::default() }
}

fn by_words(kind: &Kind, words: &str) -> Shown {
    Shown::new(Space::Words, &kind.key(), &[words.to_owned()])
}

fn beginnings<'p>(space: Space, event: &'p str, parts: &'p [String]) -> impl Iterator<Item = Beginning> + 'p {
    (1..=parts.len()).map(move |count| Beginning::of(space, event, parts.get(..count).unwrap_or_default()))
}
