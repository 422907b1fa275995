//! What is added to a bad access whatever rule leads: registers, typical values, the processor's account.

use super::{Accessing, DANGLING, GARBAGE, NULL_PAGE};
use crate::explain::draft::Draft;
use crate::explain::facts::Facts;
use crate::explain::fault::{Fault, FaultAddress};
use crate::explain::tables::access::{AccessCode, FILLS, Failure, Fill};
use crate::explain::words::listed;
use backtrail_core::{Avma, Family};

/// Tells what a value is that memory is filled with, and the cause that follows from it. False where it is none.
pub(super) fn cite_fill(on: &Accessing<'_, '_>, draft: &mut Draft, value: Avma) -> bool {
    let Some((fill, base)) = fill(on.facts.family(), value) else { return false };
    let offset = value.get().wrapping_sub(base);
    let place = if offset == 0 { String::new() } else { format!(" ({base:#x} + {offset:#x})") };
    draft.say(format!("The value {value}{place} is typical for {}.", fill.meaning));
    match fill.is_freed {
        Some(true) => draft.cause(DANGLING),
        Some(false) => draft.cause(GARBAGE),
        None => {}
    }
    true
}

/// What bytes of a wild pointer say: a fill value, or text. A fill value may read as text (0x55 is `U`) and is none then.
pub(super) fn cite_bytes(on: &Accessing<'_, '_>, draft: &mut Draft, address: Avma) {
    if !cite_fill(on, draft, address) {
        cite_text(draft, address);
    }
}

/// The fill value that `value` lies at or a little above, as the whole pointer has it.
pub(in crate::explain) fn fill(family: Family, value: Avma) -> Option<(&'static Fill, u64)> {
    let wide = !matches!(family, Family::X86 | Family::Arm);
    FILLS.iter().find_map(|fill| {
        let word = u64::from(fill.word);
        let double = word << 32 | word;
        // Reports may have cut the address to 32 bits, or stripped its upper bits.
        let stripped = double & ((1 << 47) - 1);
        let bases = [Some(word), wide.then_some(double), wide.then_some(stripped)];
        let base = bases
            .into_iter()
            .flatten()
            .find(|base| value.get().checked_sub(*base).is_some_and(|over| over < 0x1000))?;
        Some((fill, base))
    })
}

/// Bytes that read as text: a pointer overwritten by a string.
fn cite_text(draft: &mut Draft, address: Avma) {
    if let Some(text) = as_text(address) {
        draft.evidence(format!("The bytes of {address} read \"{text}\" as text"));
        draft.cause("The pointer was overwritten by text (a string copied beyond its buffer).");
    }
}

/// The bytes of a pointer in memory order, where at least six of them are printable and the rest are zero.
pub(in crate::explain) fn as_text(address: Avma) -> Option<String> {
    let bytes = address.get().to_le_bytes();
    let used = 8 - bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let used = bytes.get(..used)?;
    let printable = used.iter().all(|byte| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n'));
    let letters = used.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    (used.len() >= 6 && printable && letters >= 4).then(|| used.escape_ascii().to_string())
}

/// Detail: which registers held the address, or a base a little below it.
pub(in crate::explain) fn holders(facts: &Facts<'_>, draft: &mut Draft) {
    let Some(address) = facts.fault.as_ref().and_then(Fault::address) else { return };
    let exact: Vec<String> = facts
        .registers
        .general()
        .filter(|register| register.value == address.get())
        .map(|register| register.name.clone())
        .collect();
    // Zero lies in many registers that have nothing to do with it.
    let most = if address.get() == 0 { 2 } else { 4 };
    if !exact.is_empty() && exact.len() <= most {
        let verb = if exact.len() == 1 { "holds" } else { "hold" };
        let plural = if exact.len() == 1 { "Register" } else { "Registers" };
        draft.evidence(format!("{plural} {} {verb} the address {address}", listed(&exact)));
        return;
    }
    if address.get() < NULL_PAGE {
        return;
    }
    let near = facts.registers.general().filter_map(|register| {
        let over = address.get().checked_sub(register.value)?;
        (over > 0 && over < 0x400 && over % 4 == 0).then(|| {
            format!(
                "Register {} = {:#x}: the address is {} + {over:#x}",
                register.name, register.value, register.name
            )
        })
    });
    near.take(3).for_each(|line| draft.evidence(line));
}

/// Detail: what the processor says, and how far the address can be believed.
pub(in crate::explain) fn account(facts: &Facts<'_>, draft: &mut Draft) {
    let Some(on) = Accessing::of(facts) else { return };
    if let Some(syndrome) = &on.syndrome {
        draft.evidence(&syndrome.evidence);
    }
    // The two codes that nearly every report has are told by title and sentence.
    let says_more = |code: &&AccessCode| {
        !code.name.starts_with("KERN_") && code.name != "SEGV_MAPERR" || code.failure == Failure::Pager
    };
    if let Some(code) = on.fault.code.filter(says_more) {
        draft.evidence(format!("{}: {}", code.name, code.meaning));
    }
    if let FaultAddress::Assumed(address, why) = on.fault.address {
        draft.evidence(format!("The address {address} is assumed: {why}"));
    }
}
