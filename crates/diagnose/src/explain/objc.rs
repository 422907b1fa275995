//! Bad accesses inside the Objective-C and Swift runtimes: the object is the culprit, not the runtime.

use super::draft::Draft;
use super::facts::Facts;
use super::words::hex;
use crate::names::{image_name, is_any_of};
use backtrail_core::{Avma, Family};
use backtrail_model::{Frame, Register};

const MSG_SEND: [&str; 7] = [
    "objc_msgSend",
    "objc_msgSendSuper",
    "objc_msgSendSuper2",
    "objc_msgSend_stret",
    "objc_msgSend_fpret",
    "objc_msgSendSuper2_stret",
    "objc_msgLookup",
];
const COUNTING: [&str; 27] = [
    "objc_retain",
    "objc_release",
    "objc_storeStrong",
    "objc_autorelease",
    "objc_retainAutorelease",
    "objc_retainAutoreleasedReturnValue",
    "objc_autoreleaseReturnValue",
    "objc_retainAutoreleaseReturnValue",
    "objc_release_fast_np_epilog",
    "-[NSObject release]",
    "-[NSObject retain]",
    "objc_object::release",
    "objc_object::sidetable_release",
    "objc_object::sidetable_retain",
    "objc_object::rootRelease",
    "objc_class::realizeIfNeeded",
    "swift_retain",
    "swift_release",
    "_swift_release_dealloc",
    "swift_bridgeObjectRetain",
    "swift_bridgeObjectRelease",
    "swift_unknownObjectRetain",
    "swift_unknownObjectRelease",
    "CFRetain",
    "CFRelease",
    "_CFRelease",
    "_Block_release",
];
const WEAK: [&str; 7] = [
    "objc_loadWeak",
    "objc_loadWeakRetained",
    "objc_storeWeak",
    "objc_initWeak",
    "objc_destroyWeak",
    "objc_copyWeak",
    "weak_register_no_lock",
];
/// The title where an autorelease pool found an object gone.
pub(crate) const POOL_TITLE: &str = "Released object in an autorelease pool";

const POOL: [&str; 5] = [
    "AutoreleasePoolPage::pop",
    "AutoreleasePoolPage::releaseUntil",
    "_objc_autoreleasePoolPop",
    "objc_autoreleasePoolPop",
    "_CFAutoreleasePoolPop",
];

/// What Apple's crash reporter writes into the application-specific information.
const SELECTOR_NOTE: &str = "selector name:";

const ZOMBIES: &str = "Run with Zombie Objects on (scheme diagnostics, or the Zombies instrument): it names the object's class when it is used again.";
const ADDRESS_SANITIZER: &str = "Run with Address Sanitizer: it shows where the memory was freed.";
const RELEASED: &str = "The object was released while it was still referred to: an unowned, unsafe_unretained or assign reference, a delegate, a Core Foundation object released once too often, or a race of two threads on one property.";
const OVERWRITTEN: &str =
    "The object's memory was overwritten by somebody else (a write beyond the end of a block next to it).";

/// Whether the innermost frame is one of the functions that are called `objc_retain_x19` and the like.
fn is_counting(frame: &Frame) -> bool {
    let named = |prefix: &str| frame.names().any(|name| name.starts_with(prefix));
    is_any_of(frame, &COUNTING)
        || named("objc_retain_x")
        || named("objc_release_x")
        || named("swift_retain_x")
        || named("swift_release_x")
}

/// A message to an object that is none.
pub(super) fn message(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let selector = selector(facts);
    let top = facts.top_is(&MSG_SEND);
    // Apple's reporter notes the selector when it finds the process in objc_msgSend; other registers' notes prove
    // nothing.
    let noted = facts.find_said(|text| text.contains(SELECTOR_NOTE));
    if top.is_none() && noted.is_none() {
        return false;
    }
    let message = selector.as_ref().map(|(name, _)| format!(" `{name}`")).unwrap_or_default();
    let receiver = facts.registers.argument(0);
    // A message to nil does nothing: the note is of an earlier one, or the access was another.
    if top.is_none() && receiver.is_some_and(|register| register.value == 0) {
        return false;
    }
    match receiver.filter(|register| is_no_object(facts, register)) {
        Some(register) => {
            let value = hex(Avma::new(register.value));
            let title = format!("Message{message} to something that is no object: receiver {value}");
            let what = format!(
                "A message was sent to {value}, which is no address of an object: a number was taken for one."
            );
            draft.lead(title, what);
            draft.cause("An integer or enum value where an object is expected: `%@` in a format for a number, a wrong cast, a wrong argument type.");
            draft.cause("A variable or property that was never set, or was overwritten.");
        }
        None => {
            let title = format!("Message{message} to a released or overwritten object");
            let what = "A message was sent to an object whose memory is no object (any more).";
            draft.lead(title, what);
            draft.causes(&[RELEASED, OVERWRITTEN]);
        }
    }
    top.iter().for_each(|top| draft.evidence(facts.cite(top)));
    cite_receiver(draft, receiver);
    cite_class(facts, draft);
    match selector {
        Some((_, line)) => draft.evidence(line),
        None => tell_selector_register(facts, draft),
    }
    draft.say("The report does not tell which object it was.");
    match receiver.filter(|register| is_no_object(facts, register)) {
        // No zombie ever had such an address.
        Some(_) => draft.next("Look in the named line for a number where an object is expected."),
        None => draft.nexts(&[ZOMBIES, ADDRESS_SANITIZER]),
    }
    true
}

/// Small numbers, and addresses that no processor of the family has, are no objects.
fn is_no_object(facts: &Facts<'_>, receiver: &Register) -> bool {
    let tagged = receiver.value >> 63 == 1 || (facts.family() == Family::X86_64 && receiver.value & 1 == 1);
    receiver.value != 0 && receiver.value < 0x1000 && !tagged
}

fn cite_receiver(draft: &mut Draft, receiver: Option<&Register>) {
    if let Some(register) = receiver {
        draft.evidence(format!("Register {} = {:#x}: the receiver", register.name, register.value));
    }
}

/// On 64-bit ARM objc_msgSend keeps the object's class in x16; where the address lies a little above, it was the class
/// that could not be read.
fn cite_class(facts: &Facts<'_>, draft: &mut Draft) {
    let (Some(x16), Some(fault)) = (facts.registers.get("x16"), facts.fault.as_ref()) else { return };
    let over = fault.address().and_then(|address| address.offset_from(Avma::new(x16.value)));
    if over.is_some_and(|over| over <= 0x40) && facts.family() == Family::Aarch64 {
        draft.evidence(format!(
            "Register x16 = {:#x}: the class that the object names, which cannot be read",
            x16.value
        ));
    }
}

/// The selector, where the report has it.
pub(super) fn selector(facts: &Facts<'_>) -> Option<(String, String)> {
    if let Some(said) = facts.find_said(|text| text.contains(SELECTOR_NOTE)) {
        let name = said.text.split_once(SELECTOR_NOTE)?.1.split_whitespace().next()?;
        return Some((name.to_owned(), said.cite()));
    }
    selector_field(facts)
}

/// Newer `.ips` reports note the selector at the register, in a member that readers keep as a field:
/// `threads[0].threadState.x[1].objc-selector`.
fn selector_field(facts: &Facts<'_>) -> Option<(String, String)> {
    let number = facts.report.process.crashed_thread?;
    let start = format!("threads[{number}].threadState.");
    let is_selector = |key: &str| key.starts_with(&start) && key.ends_with(".objc-selector");
    let field =
        facts.report.fields.iter().find(|field| is_selector(&field.key) && !field.value.is_empty())?;
    Some((field.value.clone(), format!("{}: {}", field.key, field.value)))
}

/// Without a name, the register holds the address of the selector's text.
fn tell_selector_register(facts: &Facts<'_>, draft: &mut Draft) {
    let Some(register) = facts.registers.argument(1) else { return };
    let address = Avma::new(register.value);
    let images = &facts.report.process.images;
    let holds = |image: &&backtrail_model::Image| {
        image.load_address <= address && image.end_address.is_some_and(|end| address < end)
    };
    let image = images.iter().find(holds);
    let place =
        image.map(|image| format!(", in {} + {}", image.name, address.get() - image.load_address.get()));
    let place = place.unwrap_or_default();
    draft.evidence(format!(
        "Register {} = {address}: the address of the selector's name{place}",
        register.name
    ));
}

/// Retaining, releasing or draining an object that is none.
pub(super) fn counting(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(top) = facts.frames.first().filter(|frame| is_counting(frame)) else { return false };
    let pool = facts.find_frame(&POOL, 6);
    let name = top.names().next().unwrap_or("the runtime");
    let (title, what) = match pool {
        Some(_) => (
            POOL_TITLE.to_owned(),
            "An autorelease pool released an object that was already gone: it was released once too often earlier in this turn of the run loop.".to_owned(),
        ),
        None => (
            format!("{name} on a released or overwritten object"),
            format!("{name} was called with an object whose memory is no object (any more)."),
        ),
    };
    draft.lead(title, what);
    draft.evidence(facts.cite(top));
    if let Some(pool) = pool {
        draft.evidence(facts.cite(pool));
        draft.say("The report does not tell which object it was, nor who released it: the stack shows the pool only.");
    } else {
        draft.say("The report does not tell which object it was.");
    }
    cite_receiver(draft, facts.registers.argument(0));
    draft.causes(&[RELEASED, OVERWRITTEN]);
    draft.nexts(&[ZOMBIES, ADDRESS_SANITIZER]);
    true
}

/// A weak reference whose target's memory, or whose own, is damaged.
pub(super) fn weak(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(top) = facts.find_frame(&WEAK, 3) else { return false };
    draft.lead(
        "Bad access in a weak reference",
        "The runtime followed a weak reference whose variable or target is no valid memory (any more).",
    );
    draft.evidence(facts.cite(top));
    draft.cause("The object that contains the weak variable was freed or overwritten.");
    draft.cause("A weak reference was made to an object while it was being released.");
    draft.nexts(&[ZOMBIES, ADDRESS_SANITIZER]);
    true
}

/// Elsewhere inside the Objective-C runtime.
pub(super) fn runtime(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(top) = facts.frames.first() else { return false };
    if !image_name(facts.report, top).is_some_and(|name| name.starts_with("libobjc")) {
        return false;
    }
    draft.lead(
        "Bad access inside the Objective-C runtime",
        "The Objective-C runtime followed data of a class or object that is damaged.",
    );
    draft.evidence(facts.cite(top));
    draft.cause("An object that was released or overwritten: its class pointer leads nowhere.");
    draft.cause("Overwritten data of the runtime itself: a class's method lists or cache.");
    draft.nexts(&[ZOMBIES, ADDRESS_SANITIZER]);
    true
}
