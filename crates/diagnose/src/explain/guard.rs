//! EXC_GUARD: something was done to a file, port or memory range that its owner had forbidden.

use super::draft::Draft;
use super::facts::{Class, Facts};
use super::fault::code_numbers;
use super::tables::guard::{Flavor, GUARD_TYPES, GuardType, SQLITE_GUARD};
use super::words::{decimal_after, hex_after};
use backtrail_model::Exception;

/// What a violation was, by the codes or by the words of older reports.
struct Violation {
    kind: Option<&'static GuardType>,
    flavors: Vec<&'static Flavor>,
    target: Option<u64>,
    guard: Option<u64>,
}

impl Violation {
    fn read(exception: &Exception) -> Self {
        let numbers = code_numbers(exception);
        let code = numbers.first().copied();
        let text = [exception.subtype.as_deref(), exception.message.as_deref(), exception.codes.as_deref()];
        let text = text.iter().flatten().copied().collect::<Vec<_>>().join(" ");
        let guard = numbers.get(1).copied().or_else(|| hex_after(&text, "guarded with"));
        let number = code.map(|code| code >> 61);
        let by_number = GUARD_TYPES.iter().find(|known| Some(known.number) == number);
        let by_name = GUARD_TYPES.iter().find(|known| text.contains(known.name));
        // Systems of 2013 to 2016 left the type bits of a descriptor's guard empty.
        let by_guard = || GUARD_TYPES.iter().find(|known| guard == Some(SQLITE_GUARD) && known.number == 2);
        let kind = by_number.or(by_name).or_else(by_guard);
        let flavor = code.and_then(|code| u32::try_from(code >> 32 & 0x1fff_ffff).ok());
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect::<Vec<_>>();
        let flavors = kind.map(|kind| flavors_of(kind, flavor, &words)).unwrap_or_default();
        let printed = decimal_after(&text, "file descriptor").and_then(|number| number.parse().ok());
        let target = code.map(|code| code & 0xffff_ffff).or(printed);
        Self { kind, flavors, target, guard }
    }
}

/// A flavor is a number of its own, or a mask of several.
fn flavors_of(kind: &'static GuardType, flavor: Option<u32>, words: &[&str]) -> Vec<&'static Flavor> {
    let exact = |known: &&Flavor| Some(known.value) == flavor;
    if let Some(one) = kind.flavors.iter().find(exact) {
        return vec![one];
    }
    if let Some(mask) = flavor.filter(|mask| *mask != 0) {
        let bit = |known: &&'static Flavor| known.value.is_power_of_two() && mask & known.value != 0;
        return kind.flavors.iter().filter(bit).collect();
    }
    kind.flavors.iter().filter(|known| words.contains(&known.name)).take(1).collect()
}

/// A guard was violated.
pub(super) fn violated(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.class != Class::Guard {
        return false;
    }
    let exception = facts.exception();
    let violation = Violation::read(exception);
    let Some(kind) = violation.kind else {
        draft.lead("A guard of the system was violated", "The process did something forbidden to a guarded file, port or memory range; the report does not tell to what.");
        return true;
    };
    let deeds: Vec<String> = violation.flavors.iter().map(|flavor| flavor.meaning.to_owned()).collect();
    let names: Vec<&str> = violation.flavors.iter().map(|flavor| flavor.name).collect();
    let name = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let deed = if deeds.is_empty() { "did something".to_owned() } else { deeds.join("; ") };
    draft.lead(
        format!("Forbidden use of {}{name}", kind.guarded),
        format!("The process {deed}; what is guarded is {}.", kind.guarded),
    );
    cite(&violation, kind, draft);
    if violation.guard == Some(SQLITE_GUARD) {
        draft
            .say("The guard is SQLite's: the descriptor belongs to an open database of Core Data or SQLite.");
    }
    draft.causes(kind.causes);
    draft.nexts(kind.next);
    true
}

fn cite(violation: &Violation, kind: &GuardType, draft: &mut Draft) {
    let target = violation
        .target
        .filter(|_| kind.target != "unused")
        .map(|target| format!(", {} {target}", kind.target));
    let guard = violation.guard.map(|guard| format!(", guard {guard:#x}")).unwrap_or_default();
    draft.evidence(format!("The codes say: type {}{}{guard}", kind.name, target.unwrap_or_default()));
}
