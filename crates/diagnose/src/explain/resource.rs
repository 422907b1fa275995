//! EXC_RESOURCE: a limit that was exceeded.

use super::draft::Draft;
use super::facts::{Class, Facts};
use super::fault::code_numbers;
use super::tables::kill::Blame;
use super::tables::resource::{Bits, RESOURCE_TYPES, ResourceType};
use backtrail_model::Exception;

fn field(value: u64, (low, width): Bits) -> u64 {
    value >> low & ((1 << width) - 1)
}

/// The type of resource: from the codes, else by the word in type or subtype.
pub(super) fn resource_type(exception: &Exception) -> Option<&'static ResourceType> {
    let number = code_numbers(exception).first().map(|code| code >> 61);
    let by_number = RESOURCE_TYPES.iter().find(|known| Some(known.number) == number);
    let texts = [exception.subtype.as_deref(), exception.kind.as_deref()];
    let named = |known: &&ResourceType| {
        texts
            .iter()
            .flatten()
            .any(|text| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == known.name))
    };
    by_number.or_else(|| RESOURCE_TYPES.iter().find(named))
}

/// What the codes hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Decoded {
    pub(crate) flavor: Option<&'static str>,
    pub(crate) limit: u64,
    pub(crate) interval: Option<u64>,
    pub(crate) observed: Option<u64>,
}

/// Unpacks code and subcode.
pub(crate) fn decode(known: &ResourceType, code: u64, subcode: Option<u64>) -> Decoded {
    let flavor = field(code, (58, 3));
    let flavor = known.flavors.iter().find(|(number, ..)| *number == flavor).map(|(_, _, meaning)| *meaning);
    let observed = known.observed.zip(subcode).map(|(bits, subcode)| field(subcode, bits));
    Decoded {
        flavor,
        limit: field(code, known.limit),
        interval: known.interval.map(|bits| field(code, bits)),
        observed,
    }
}

/// A limit was exceeded.
pub(super) fn exceeded(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.class != Class::Resource {
        return false;
    }
    let exception = facts.exception();
    let Some(known) = resource_type(exception) else {
        draft.lead(
            "A limit on a resource was exceeded",
            "The process used more of a resource than allowed; the report does not tell of which.",
        );
        return true;
    };
    let numbers = code_numbers(exception);
    let typed = numbers.first().copied().filter(|code| code >> 61 == known.number);
    let decoded = typed.map(|code| decode(known, code, numbers.get(1).copied()));
    let observed = decoded.as_ref().and_then(observed_words).map(|words| format!(": {words} {}", known.unit));
    let observed = observed.or_else(|| exception.message.as_ref().map(|message| format!(": {message}")));
    draft.lead(format!("{}{}", known.title, observed.unwrap_or_default()), what(known, decoded.as_ref()));
    if let Some(decoded) = &decoded {
        draft.evidence(codes_in_words(known, decoded));
        decoded.flavor.iter().for_each(|flavor| draft.say(format!("The limit is {flavor}.")));
    } else {
        draft.say("The report has no codes with the numbers, only its message.");
    }
    fate(facts, draft);
    draft.causes(known.causes);
    draft.nexts(known.next);
    if known.blame == Blame::Untold && !facts.report.process.threads.is_empty() {
        draft.say("The stack shows who asked last, not who used it up.");
    }
    true
}

fn observed_words(decoded: &Decoded) -> Option<String> {
    let observed = decoded.observed.filter(|observed| *observed > 0)?;
    Some(format!("{observed} (limit {})", decoded.limit))
}

fn what(known: &ResourceType, decoded: Option<&Decoded>) -> String {
    let resource = known.title.trim_start_matches("Too much ").trim_start_matches("Too many ").to_owned();
    let Some(decoded) = decoded else { return format!("The process exceeded its limit on {resource}.") };
    let over = decoded
        .interval
        .filter(|seconds| *seconds > 0)
        .map(|seconds| format!(" over {seconds} seconds"))
        .unwrap_or_default();
    let seen = decoded
        .observed
        .map(|observed| format!("; {observed} {} were observed", known.unit))
        .unwrap_or_default();
    format!("The process exceeded its limit on {resource}: {} {}{over}{seen}.", decoded.limit, known.unit)
}

fn codes_in_words(known: &ResourceType, decoded: &Decoded) -> String {
    let observed = decoded.observed.map(|observed| format!(", observed {observed}")).unwrap_or_default();
    let interval = decoded.interval.map(|seconds| format!(", interval {seconds} s")).unwrap_or_default();
    format!("The codes say: type {}, limit {} {}{interval}{observed}", known.name, decoded.limit, known.unit)
}

/// Whether the process lived on.
fn fate(facts: &Facts<'_>, draft: &mut Draft) {
    let exception = facts.exception();
    // `exceeded mem limit: ActiveHard 24 MB (fatal)`, in the kernel's words.
    let says_so = exception.message.as_deref().is_some_and(|message| message.contains("(fatal)"));
    let fatal = says_so || exception.kind.as_deref().is_some_and(|kind| kind.contains("FATAL"));
    match exception.note.as_deref() {
        Some(note) if note.contains("NON-FATAL") => {}
        _ if fatal => draft.say("The limit was one that ends the process."),
        _ => draft.say("The report does not tell whether the process was ended for it."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(code: u64, subcode: u64) -> Decoded {
        let known = RESOURCE_TYPES.iter().find(|known| known.number == code >> 61).unwrap();
        decode(known, code, Some(subcode))
    }

    #[test]
    fn codes_are_unpacked_as_the_kernel_packs_them() {
        // 50 % over 180 s, 85 % observed; flavor 1.
        let cpu = decoded(1 << 61 | 1 << 58 | 180 << 7 | 50, 85);
        assert_eq!((cpu.limit, cpu.interval, cpu.observed), (50, Some(180), Some(85)));
        assert_eq!(cpu.flavor, Some("a limit that is only reported"));
        // 150 wake-ups per second over 300 s, 206 observed.
        let wakeups = decoded(2 << 61 | 1 << 58 | 300 << 20 | 150, 206);
        assert_eq!((wakeups.limit, wakeups.interval, wakeups.observed), (150, Some(300), Some(206)));
        let memory = decoded(3 << 61 | 1 << 58 | 1450, 0);
        assert_eq!((memory.limit, memory.interval, memory.observed), (1450, None, None));
        let writes = decoded(4 << 61 | 2 << 58 | 86_400 << 15 | 1073, 1200);
        assert_eq!((writes.limit, writes.interval, writes.observed), (1073, Some(86_400), Some(1200)));
    }
}
