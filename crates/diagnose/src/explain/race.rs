//! Evidence of a race: another thread inside the same class, or the same library, as the code that crashed.

use super::draft::Draft;
use super::facts::{Class, Facts};
use super::tables::access::Failure;
use super::tables::throwers::method;
use super::waits::{is_idle_worker, waiting_in};
use crate::names::{base_name, cite, own_frames, thread_label};
use crate::suspect::{kind_of, suspect_on};
use backtrail_model::{Frame, OwnerKind, Thread};

/// Whether two frames lie in one image and, as far as that is known, in one library of it.
fn is_same_library(one: &Frame, other: &Frame) -> bool {
    let name = |frame: &'_ Frame| frame.owner.as_ref().and_then(|owner| owner.name.clone());
    one.image.is_some() && one.image == other.image && name(one) == name(other)
}

const MAX_THREADS: usize = 512;
const MAX_CITED: usize = 2;
/// No function is longer than this.
const MAX_FUNCTION: u64 = 1 << 18;

/// Adds a race as a cause where another thread is at work in the same class or library. Heaps and objects are what races
/// damage; of other crashes it says nothing.
pub(super) fn race(facts: &Facts<'_>, draft: &mut Draft) {
    let failure = facts.fault.as_ref().map(super::fault::Fault::failure);
    let fits = match failure {
        Some(failure) => failure.is_none_or(|failure| {
            matches!(
                failure,
                Failure::Unmapped
                    | Failure::Protected
                    | Failure::GeneralProtection
                    | Failure::PointerAuthentication
            )
        }),
        None => false,
    };
    if facts.class != Class::BadAccess || !fits || super::stack::recursion(facts).is_some() {
        return;
    }
    let Some(suspect) = facts.suspect.as_ref().filter(|suspect| !suspect.is_entry) else { return };
    let class = class_of(suspect.frame);
    let is_library = kind_of(facts.report, suspect.frame) == OwnerKind::Sdk;
    let threads = facts.report.process.threads.iter().take(MAX_THREADS);
    let others = threads.filter(|thread| facts.thread.is_none_or(|crashed| !std::ptr::eq(*thread, crashed)));
    let mut found = 0;
    for thread in others {
        let Some(frame) = working(facts, thread) else { continue };
        let same_class = class.is_some() && class_of(frame) == class;
        let same_library = is_library && is_same_library(frame, suspect.frame);
        if !(same_class || same_library) || found >= MAX_CITED {
            continue;
        }
        let what = class.filter(|_| same_class).map_or_else(
            || "is inside the same library".to_owned(),
            |class| format!("is inside the same class, {class}"),
        );
        draft.evidence(format!("{} {what}", cite(facts.report, &thread_label(thread), frame)));
        found += 1;
    }
    if found > 0 {
        draft.cause("A race: two threads use the same object or variable without a lock.");
        draft.next("Run with Thread Sanitizer: it names both threads.");
    }
}

/// The frame outside of the system that a thread is at work in; one that waits changes nothing.
fn working<'r>(facts: &Facts<'r>, thread: &'r Thread) -> Option<&'r Frame> {
    let frames = own_frames(facts.report, &thread.frames);
    if waiting_in(frames).is_some() || is_idle_worker(frames) {
        return None;
    }
    let suspect = suspect_on(facts.report, &thread_label(thread), frames)?;
    (!suspect.is_entry).then_some(suspect.frame)
}

/// The class, type or namespace of a method: `Cart` of `-[Cart(Total) sum]`, `Demo.Cart` of `Demo.Cart.sum()`, `Cart` of
/// `Cart::sum`.
fn class_of(frame: &Frame) -> Option<&str> {
    let name = frame.names().last()?;
    // In images with few symbols the nearest one may lie megabytes before the code.
    let offset = frame.reported.as_ref().and_then(|reported| reported.offset);
    if frame.functions.is_empty() && offset.is_some_and(|offset| offset > MAX_FUNCTION) {
        return None;
    }
    if let Some((class, _)) =
        method(name.trim_start_matches("__").trim_start_matches(|c: char| c.is_ascii_digit()))
    {
        return class.split('(').next();
    }
    // A closure's type stands behind "in".
    let name = name.rsplit_once(" in ").map_or(name, |(_, name)| name);
    let name = base_name(name);
    let parts = name.rsplit_once("::").or_else(|| name.rsplit_once('.'))?;
    (!parts.0.is_empty() && !parts.0.contains(' ')).then_some(parts.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::Function;

    #[test]
    fn classes_of_methods_in_their_spellings() {
        let of = |name: &str| {
            let function = Function { name: name.to_owned(), ..Function::default() };
            let frame = Frame { functions: vec![function], ..Frame::new(0) };
            class_of(&frame).map(str::to_owned)
        };
        for (name, class) in [
            ("-[Cart(Total) sum]", Some("Cart")),
            ("__22-[Cart sum]_block_invoke", Some("Cart")),
            ("Cart.sum()", Some("Cart")),
            ("closure #1 in Cart.sum()", Some("Cart")),
            ("acme::Cart::sum(int)", Some("acme::Cart")),
            ("sum", None),
        ] {
            assert_eq!(of(name).as_deref(), class, "{name}");
        }
    }
}
