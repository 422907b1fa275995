//! Swift's own ends: messages of its library, and the names of runtime failures that symbolizing brings to light.

use super::draft::Draft;
use super::facts::{Class, Facts, Said};
use super::tables::messages::SWIFT;
use super::thrown::{hint_for, tell};
use super::words::one_line;
use backtrail_model::Frame;

/// How compilers name the empty functions that they inline at a trap.
pub(super) const RUNTIME_FAILURE: &str = "Swift runtime failure: ";

/// What comes before the message proper.
const MARKS: [&str; 5] = [
    "Fatal error: ",
    "fatal error: ",
    "Precondition failed: ",
    "Assertion failed: ",
    "Fatal access conflict detected",
];

/// Texts that Swift's runtime writes without such a mark.
const UNMARKED: [&str; 10] = [
    RUNTIME_FAILURE,
    "Unexpectedly found nil while",
    "Could not cast value of type",
    "requires exclusive access",
    "Attempted to read an unowned reference",
    "Incorrect actor executor assumption",
    "tried to resume its continuation more than once",
    "retained too many times",
    "deallocated with non-zero retain count",
    "Precondition failed",
];

/// Swift's library left a message.
pub(super) fn message(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(said) = facts.said.iter().find(|said| is_swift(said)) else { return false };
    let text = core_of(&said.text);
    match text.strip_prefix(RUNTIME_FAILURE).map(without_offset) {
        Some(failure) => draft.lead(
            format!("{RUNTIME_FAILURE}{failure}"),
            format!("A check that Swift makes at run time failed: {failure}."),
        ),
        None => draft.lead(
            format!("Swift fatal error: {text}"),
            format!("Swift code stopped the process itself: {text}."),
        ),
    }
    draft.evidence(said.cite());
    match hint_for(&SWIFT, &said.text) {
        Some(hint) => tell(hint, draft),
        None => draft.cause("A fatalError, precondition or check in the code that the message names."),
    }
    if let Some(line) = source_line(&said.text) {
        draft.next(format!("Look at {line}, which the message names."));
    }
    true
}

fn is_swift(said: &Said) -> bool {
    let swift_image = said.place.contains("libswift");
    let marked = MARKS.iter().any(|mark| said.text.contains(mark));
    let unmarked = UNMARKED.iter().any(|text| said.text.contains(text));
    // Other libraries write "Assertion failed: (x), function f" too; `assertion` reads those.
    let of_c = said.text.contains(", function ")
        || said.text.contains("Assertion failed: ") && said.text.ends_with(')');
    (swift_image && !said.text.trim().is_empty()) || ((marked || unmarked) && !of_c)
}

/// The message without its source position: `File.swift:12: Fatal error: Index out of range`, or the older
/// `fatal error: Index out of range: file /path/File.swift, line 12`.
fn core_of(text: &str) -> String {
    let (_, text) = MARKS.iter().take(2).find_map(|mark| text.split_once(mark)).unwrap_or(("", text));
    let text = text.split_once(": file ").map_or(text, |(message, _)| message);
    one_line(text).trim_end_matches('.').to_owned()
}

/// The position in the source, as the message has it.
fn source_line(text: &str) -> Option<String> {
    if let Some((_, rest)) = text.split_once(": file ") {
        let (file, line) = rest.split_once(", line ")?;
        let digits: String = line.chars().take_while(char::is_ascii_digit).collect();
        return Some(format!("{}:{digits}", file.rsplit('/').next()?));
    }
    let (before, _) = MARKS.iter().find_map(|mark| text.split_once(mark))?;
    let position = before.trim().trim_end_matches(':');
    let (file, line) = position.rsplit_once(':')?;
    let is_line = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    is_line.then(|| format!("{}:{line}", file.rsplit(['/', ' ']).next().unwrap_or(file)))
}

/// A check that the compiler put into the code failed; the inlined function's name says which.
pub(super) fn runtime_failure(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if !matches!(facts.class, Class::Breakpoint | Class::BadInstruction | Class::Abort | Class::Unknown) {
        return false;
    }
    let frames = facts.frames.iter().take(3);
    let failure = |frame: &'_ Frame| {
        frame.names().find_map(|name| Some(name.split_once(RUNTIME_FAILURE)?.1.to_owned()))
    };
    let Some((frame, text)) = frames.into_iter().find_map(|frame| Some((frame, failure(frame)?))) else {
        return false;
    };
    draft.lead(
        format!("Swift runtime failure: {text}"),
        format!("A check that Swift makes at run time failed: {text}."),
    );
    draft.evidence(format!("{}: {RUNTIME_FAILURE}{text}", facts.cite(frame)));
    match hint_for(&SWIFT, &text) {
        Some(hint) => tell(hint, draft),
        None => draft.cause("The condition that the failure names."),
    }
    true
}

/// A name in a stack's row has an offset behind it.
fn without_offset(failure: &str) -> &str {
    let parts = failure.rsplit_once(" + ");
    parts
        .filter(|(_, offset)| offset.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(failure, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_their_position_and_keep_it_apart() {
        for (text, core, line) in [
            (
                "Demo/Menu.swift:437: Fatal error: Triggered from the menu",
                "Triggered from the menu",
                Some("Menu.swift:437"),
            ),
            (
                "fatal error: Index out of range: file /x/Swift/Array.swift, line 12",
                "Index out of range",
                Some("Array.swift:12"),
            ),
            ("Fatal error: Index out of range", "Index out of range", None),
            (
                "Could not cast value of type 'A' (0x1) to 'B' (0x2).",
                "Could not cast value of type 'A' (0x1) to 'B' (0x2)",
                None,
            ),
        ] {
            assert_eq!((core_of(text).as_str(), source_line(text).as_deref()), (core, line), "{text}");
        }
    }
}
