//! Code that stops itself: deliberate traps, and instructions that the processor refuses.

use super::draft::Draft;
use super::esr::{self, break_meaning};
use super::facts::{Class, Facts};
use super::fault::code_numbers;
use super::instruction::{Instruction, at_pc};
use super::tables::exceptions::{EXCEPTION_CODES, SIGNAL_CODES};
use super::tables::messages::CLIENT_BUGS;
use super::tables::telling::{TELLING, Telling};
use super::thrown::{hint_for, tell};
use super::words::one_line;
use crate::names::{base_name, image_name, is_any_of};
use crate::suspect::skip::skip_reason;
use backtrail_core::Family;
use backtrail_model::Frame;

/// A library says that its caller, or it itself, has a bug.
pub(super) fn client_bug(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let marked = |text: &str| {
        text.contains("BUG IN CLIENT OF")
            || text.contains("BUG IN LIB")
            || text.contains("API MISUSE")
            || text.contains("API Misuse")
    };
    let Some(said) = facts.find_said(marked) else { return false };
    let text = one_line(&said.text);
    // People quote it in a sentence.
    let text = text.find("BUG IN ").and_then(|at| text.get(at..)).unwrap_or(&text);
    let text = text.split(['`', '"']).next().unwrap_or(text).trim_end_matches('.').to_owned();
    let own = text.contains("BUG IN LIB");
    draft.lead(
        &text,
        match own {
            true => format!("A system library found an error of its own and stopped the process: {text}."),
            false => format!("A system library found itself used wrongly and stopped the process: {text}."),
        },
    );
    draft.evidence(said.cite());
    match hint_for(&CLIENT_BUGS, &text) {
        Some(hint) => tell(hint, draft),
        None if own => draft.cause("A defect of the library, or memory damage by somebody else."),
        None => draft.cause("The caller breaks a rule of the library that the message names; memory damage can look the same."),
    }
    true
}

/// A function on top of the stack tells what happened.
pub(super) fn telling_frame(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let fits = |row: &&Telling| row.classes.is_empty() || row.classes.contains(&facts.class);
    let frames = facts.interrupted();
    let find = |row: &Telling| frames.iter().take(row.depth).find(|frame| is_any_of(frame, row.functions));
    let found = TELLING.iter().filter(fits).find_map(|row| Some((row, find(row)?)));
    let Some((row, frame)) = found else { return false };
    draft.lead(row.title, row.meaning);
    if facts.suspect.as_ref().is_none_or(|suspect| !std::ptr::eq(suspect.frame, frame)) {
        draft.evidence(facts.cite(frame));
    }
    if row.functions.contains(&"_assertionFailure")
        && let Some(function) = swifts_check(facts, frame)
    {
        draft.say(format!("The check that failed is one of `{function}` in Swift's library."));
    }
    draft.causes(row.causes);
    draft.nexts(row.next);
    true
}

/// Which function of Swift's library made the check that failed: the one that called the library's own way to stop.
fn swifts_check<'r>(facts: &Facts<'r>, frame: &Frame) -> Option<&'r str> {
    /// The library's own way to stop takes this many frames at most.
    const DEPTH: usize = 8;
    let at = facts.frames.iter().position(|known| std::ptr::eq(known, frame))?;
    let is_swifts =
        |frame: &&Frame| image_name(facts.report, frame).is_some_and(|name| name.starts_with("libswift"));
    let is_end = |name: &str| name.contains("_assertionFailure") || skip_reason(base_name(name)).is_some();
    let behind = facts.frames.iter().skip(at + 1).take(DEPTH).take_while(is_swifts);
    behind.flat_map(Frame::names).find(|name| !is_end(name))
}

/// A library of the system that stopped the process where it stands, and said why.
pub(super) fn said_by_system(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let is_trap = matches!(facts.class, Class::Breakpoint | Class::BadInstruction);
    let top = facts.frames.first().filter(|frame| is_trap && crate::suspect::is_system(facts.report, frame));
    let is_words = |text: &str| text.trim().contains(' ') && !text.contains("abort() called");
    let (Some(top), Some(said)) = (top, facts.find_said(is_words)) else { return false };
    let Some(hint) = hint_for(&CLIENT_BUGS, &said.text) else { return false };
    draft.lead(
        one_line(&said.text).trim_end_matches('.'),
        "A library of the system found itself used wrongly and stopped the process.",
    );
    draft.evidence(said.cite());
    draft.evidence(facts.cite(top));
    tell(hint, draft);
    true
}

/// A trap that the code holds, without a word why.
pub(super) fn trap(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let x86 = matches!(facts.family(), Family::X86 | Family::X86_64);
    let is_trap = facts.class == Class::Breakpoint || (facts.class == Class::BadInstruction && x86);
    if !is_trap {
        return false;
    }
    let syndrome = esr::read(facts.report, &facts.registers);
    let break_code = syndrome.and_then(|syndrome| syndrome.break_code);
    if let Some(code) = break_code.filter(|code| esr::is_sanitizers(*code)) {
        sanitizer_trap(facts, draft, esr::sanitizer_check(code));
        return true;
    }
    if facts.class == Class::BadInstruction {
        match at_pc(facts.report) {
            Some(Instruction::Avx) => {
                missing_avx(facts, draft, true);
                return true;
            }
            Some(Instruction::Trap) => draft.lead(TRAP, "The code ran into a trap instruction (ud2), which compilers put where the program must not go on."),
            Some(Instruction::Other) | None if facts.report.process.translated => {
                missing_avx(facts, draft, false);
                return true;
            }
            Some(Instruction::Other) | None => {
                draft.lead(
                    "Illegal instruction: most likely a deliberate trap",
                    "The processor met an undefined instruction. Compilers for x86 put one (ud2) where the program must not go on, so this is most likely a deliberate trap.",
                );
                draft.say("The report does not tell it from an instruction that the processor really does not know.");
            }
        }
    } else {
        draft.lead(TRAP, "The code ran into a trap instruction: a check that the compiler or the programmer put there failed.");
    }
    if let Some(meaning) = break_code.and_then(break_meaning) {
        draft.say(format!("The instruction says: {meaning}."));
    }
    draft.say("The report does not tell which check it was.");
    // Without Swift in the process none of its checks can have failed.
    if has_swift(facts) {
        draft.cause("Swift: `!` on a nil optional, an index out of range, an integer overflow, a failed `as!`, `try!` or precondition.");
    }
    draft.cause("C, C++ or Objective-C: `__builtin_trap`, an assertion, undefined behavior that the compiler turned into a trap (a missing return).");
    let is_named = facts.suspect.as_ref().is_some_and(|suspect| !suspect.frame.functions.is_empty());
    if !is_named && has_swift(facts) {
        draft.next(
            "Add symbols: an inlined function `Swift runtime failure: …` at that address names the check.",
        );
    } else if is_named {
        draft.next("Look at the checks of the named line.");
    }
    cite_top(facts, draft);
    true
}

/// A check of clang's that failed; Swift's never look so.
fn sanitizer_trap(facts: &Facts<'_>, draft: &mut Draft, check: Option<&str>) {
    draft.lead(
        format!("Undefined behavior: {}", check.unwrap_or("a check of clang failed")),
        "The code ran into a trap of Undefined Behavior Sanitizer (`-fsanitize=… -fsanitize-trap`), or of clang's bounds checks.",
    );
    draft.say(match check {
        Some(check) => format!("It found {check}."),
        None => "The report does not tell which check it was.".to_owned(),
    });
    draft.next("Look in the named line for it; without `-fsanitize-trap` the sanitizer prints the values.");
    cite_top(facts, draft);
}

const TRAP: &str = "Deliberate trap: a check in the code failed";

/// Whether the process has Swift's library, or the report has no list of its images.
fn has_swift(facts: &Facts<'_>) -> bool {
    let images = &facts.report.process.images;
    let is_android = facts.report.os.as_deref().is_some_and(|os| os.starts_with("Android"));
    !is_android && images.is_empty() || images.iter().any(|image| image.name.starts_with("libswift"))
}

/// The innermost frame, where it is not the one to look at.
fn cite_top(facts: &Facts<'_>, draft: &mut Draft) {
    let Some(frame) = facts.frames.first() else { return };
    if facts.suspect.as_ref().is_none_or(|suspect| !std::ptr::eq(suspect.frame, frame)) {
        draft.evidence(facts.cite(frame));
    }
}

/// An instruction of AVX where the processor, or Rosetta, does not have it. Rosetta knows AVX and AVX2 from macOS 15 on,
/// and AVX-512 not at all (Apple's "About the Rosetta translation environment").
fn missing_avx(facts: &Facts<'_>, draft: &mut Draft, certain: bool) {
    let translated = facts.report.process.translated;
    let (title, what) = match (translated, certain) {
        (true, true) => (
            "AVX instruction under Rosetta",
            "The code was translated by Rosetta and ran into an instruction of AVX, which Rosetta has from macOS 15 on, and AVX-512 not at all.",
        ),
        (true, false) => (
            "Illegal instruction under Rosetta: AVX, or a deliberate trap",
            "The code was translated by Rosetta and ran into an instruction that it does not translate: one of AVX, which Rosetta has from macOS 15 on, or a trap that compilers for x86 put where the program must not go on.",
        ),
        (false, _) => (
            "AVX instruction on a processor without it",
            "The processor met an instruction of AVX that it does not have.",
        ),
    };
    draft.lead(title, what);
    if !certain {
        draft.say("The report does not tell which: it does not have the instruction.");
    }
    draft.cause("Code for AVX that is called without asking the processor for it (sysctl hw.optional.avx1_0, avx2_0, avx512f).");
    if !certain {
        draft.cause("A check that failed: Swift's run-time checks, an assertion, `__builtin_trap`.");
    }
    draft.next(
        "Disassemble the place with `llvm-objdump -d`: instructions of AVX begin with `v`, a trap is `ud2`.",
    );
    draft.next(if translated {
        "Ship code for Apple silicon, or ask for AVX before using it."
    } else {
        "Ask for AVX before using it."
    });
}

/// An instruction that the processor refuses.
pub(super) fn bad_instruction(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.class != Class::BadInstruction {
        return false;
    }
    lead_with_instruction(draft, instruction_word(facts));
    name_code(facts, draft);
    cite_top(facts, draft);
    if facts.frames.first().is_some_and(|frame| image_name(facts.report, frame).is_none()) {
        draft.cause("A jump to a place that is no code: an overwritten function pointer or return address.");
    }
    draft.cause("Code built for a newer processor than the one it runs on.");
    if facts.family() == Family::Arm {
        draft.cause("A deliberate trap of an older compiler (the udf instruction).");
    }
    draft.cause("A jump into data, by an overwritten function pointer or return address.");
    draft.next("Disassemble the place with `llvm-objdump -d` and see whether the instruction belongs there.");
    true
}

fn lead_with_instruction(draft: &mut Draft, word: Option<u32>) {
    let Some(word) = word else {
        draft.lead("Undefined instruction", "The processor met an instruction that it does not know.");
        return;
    };
    if is_system_instruction(word) {
        let what = "it addresses the system's registers or caches, which programs may not do";
        draft.lead(
            format!("Privileged or system instruction: {word:#010x}"),
            format!("The processor refused the instruction {word:#010x}: {what}."),
        );
    } else {
        draft.lead(
            format!("Undefined instruction: {word:#010x}"),
            format!("The processor does not know the instruction {word:#010x}."),
        );
    }
    draft.evidence(format!("The codes hold the instruction word {word:#010x}"));
}

/// 64-bit ARM gives the instruction as subcode; reporters other than Apple's may give it first.
fn instruction_word(facts: &Facts<'_>) -> Option<u32> {
    if facts.family() != Family::Aarch64 {
        return None;
    }
    let numbers = code_numbers(facts.exception());
    let word = match numbers.as_slice() {
        [1, word, ..] | [word, _, ..] | [word] => *word,
        [] => return None,
    };
    u32::try_from(word).ok().filter(|word| *word > 0xffff)
}

/// Bits 31 to 22 of 64-bit ARM's system instructions are 1101010100.
fn is_system_instruction(word: u32) -> bool {
    word >> 22 == 0b11_0101_0100
}

/// Names the exception's code, or the word by which other reporters tell it.
fn name_code(facts: &Facts<'_>, draft: &mut Draft) {
    if let Some(line) = code_words(facts) {
        draft.evidence(line);
    }
}

/// `EXC_ARM_FP_DZ: a floating-point division by zero`, where the codes or their text say so.
fn code_words(facts: &Facts<'_>) -> Option<String> {
    let exception = facts.exception();
    let texts = [exception.subtype.as_deref(), exception.codes.as_deref()];
    let holds = |name: &str| texts.iter().flatten().any(|text| text.contains(name));
    if let Some(code) = EXCEPTION_CODES.iter().find(|code| holds(code.name)) {
        return Some(format!("{}: {}", code.name, code.meaning));
    }
    if let Some((name, meaning)) = SIGNAL_CODES.iter().find(|(name, _)| holds(name)) {
        return Some(format!("{name}: {meaning}"));
    }
    let kind = exception.kind.as_deref()?;
    let x86 = match facts.family() {
        Family::X86 | Family::X86_64 => true,
        Family::Arm | Family::Aarch64 => false,
        _ => return None,
    };
    let numbers = code_numbers(exception);
    // With fewer than two numbers, or with Apple's order broken, the first is no code.
    let [first, ..] = numbers.as_slice() else { return None };
    let known = EXCEPTION_CODES
        .iter()
        .find(|code| kind.starts_with(code.exception) && code.x86 == x86 && code.code == *first)?;
    (numbers.len() > 1 && *first != 0).then(|| format!("Code {first}, {}: {}", known.name, known.meaning))
}

/// A calculation failed.
pub(super) fn arithmetic(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.class != Class::Arithmetic {
        return false;
    }
    let words = code_words(facts);
    let float = words.as_deref().is_some_and(|words| words.contains("floating-point"));
    match (&words, float) {
        (Some(words), true) => {
            let what = words.split_once(": ").map_or(words.as_str(), |(_, what)| what);
            draft.lead(
                format!("Floating-point exception: {what}"),
                format!(
                    "A calculation failed: {what}. Such traps are off unless the program turned them on."
                ),
            );
            draft.cause("Floating-point traps were enabled (feenableexcept, a FPCR or MXCSR bit), and the calculation met one.");
        }
        _ => {
            draft.lead(
                "Arithmetic error: division by zero",
                "An integer was divided by zero, or a quotient did not fit.",
            );
            draft.causes(&[
                "A divisor that is zero: a count, a size, a difference.",
                "The smallest integer divided by -1.",
            ]);
            if matches!(facts.family(), Family::Arm | Family::Aarch64) {
                draft.say("ARM processors give 0 for an integer division by zero, so this was raised by other means; the report does not tell which.");
            }
        }
    }
    words.iter().for_each(|words| draft.evidence(words));
    draft.next("Check the divisor in the named line.");
    true
}
