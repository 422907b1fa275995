//! The tables hold each thing once, and nothing empty.

use super::super::tables::{access, exceptions, guard, kill, messages, namespaces, resource, telling, waits};
use std::collections::BTreeSet;
use std::fmt::Debug;

fn unique<T: Ord + Copy + Debug>(what: &str, items: impl IntoIterator<Item = T>) {
    let mut seen = BTreeSet::new();
    for item in items {
        assert!(seen.insert(item), "{what}: {item:?} twice");
    }
    assert!(!seen.is_empty());
}

#[test]
fn codes_and_names_come_once() {
    unique("kill codes", kill::KILL_CODES.iter().map(|code| code.code));
    unique("namespaces", namespaces::NAMESPACES.iter().map(|space| space.name));
    let numbered = namespaces::NAMESPACES.iter().filter(|space| space.number != 0);
    unique("namespaces", numbered.map(|space| space.number));
    for space in namespaces::NAMESPACES.iter().filter(|space| !space.codes.is_empty()) {
        unique(space.name, space.codes.iter().map(|code| code.code));
    }
    unique("access codes", access::ACCESS_CODES.iter().map(|code| code.name));
    unique("access codes", access::ACCESS_CODES.iter().filter_map(|code| code.code));
    unique("fills", access::FILLS.iter().map(|fill| fill.word));
    unique("exceptions", exceptions::EXCEPTIONS.iter().map(|(number, ..)| *number));
    unique("signals", exceptions::SIGNALS.iter().map(|signal| signal.number));
    unique("exception codes", exceptions::EXCEPTION_CODES.iter().map(|code| code.name));
    unique("guards", guard::GUARD_TYPES.iter().map(|known| known.number));
    unique("resources", resource::RESOURCE_TYPES.iter().map(|known| known.number));
    for known in guard::GUARD_TYPES.iter().filter(|known| !known.flavors.is_empty()) {
        unique(known.name, known.flavors.iter().map(|flavor| flavor.value));
    }
    for table in [
        &messages::REASONS[..],
        &messages::SWIFT,
        &messages::MALLOC,
        &messages::CLIENT_BUGS,
        &messages::CPP_TYPES,
    ] {
        unique("messages", table.iter().map(|hint| hint.text));
    }
}

#[test]
fn no_message_hides_a_longer_one_behind_it() {
    for table in [
        &messages::REASONS[..],
        &messages::SWIFT,
        &messages::MALLOC,
        &messages::CLIENT_BUGS,
        &messages::CPP_TYPES,
    ] {
        for (at, hint) in table.iter().enumerate() {
            let earlier = table.iter().take(at).find(|earlier| hint.text.contains(earlier.text));
            assert!(
                earlier.is_none(),
                "{:?} is never reached: {:?}",
                hint.text,
                earlier.map(|hint| hint.text)
            );
        }
    }
}

#[test]
fn everything_says_something() {
    for hint in messages::REASONS
        .iter()
        .chain(&messages::SWIFT)
        .chain(&messages::MALLOC)
        .chain(&messages::CLIENT_BUGS)
    {
        assert!(!hint.text.is_empty() && !hint.causes.is_empty() && !hint.next.is_empty(), "{}", hint.text);
    }
    for row in &telling::TELLING {
        assert!(
            !row.functions.is_empty()
                && row.depth > 0
                && row.meaning.ends_with('.')
                && !row.causes.is_empty(),
            "{}",
            row.title
        );
    }
    for wait in &waits::WAITS {
        assert!(!wait.functions.is_empty() && (wait.idle || !wait.advice.is_empty()), "{}", wait.what);
    }
    for code in kill::KILL_CODES.iter().chain(namespaces::NAMESPACES.iter().flat_map(|space| space.codes)) {
        assert!(!code.title.is_empty() && code.meaning.ends_with('.'), "{:#x}", code.code);
    }
}
