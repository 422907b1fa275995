//! What the instruction that failed tells, where servers' reports have it.

use super::draft::Draft;
use super::facts::{Facts, field};

/// The instruction that met a general protection fault, where it is one of SSE that moves 16 bytes and demands an aligned address
/// (Intel's manual, volume 2: MOVAPS, MOVAPD, MOVDQA, MOVNTPS and MOVNTDQ raise #GP where it is not).
pub(super) fn aligned_move(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    const MOVES: [&[&str]; 7] = [
        &["0f", "28"],
        &["0f", "29"],
        &["0f", "2b"],
        &["66", "0f", "28"],
        &["66", "0f", "29"],
        &["66", "0f", "6f"],
        &["66", "0f", "7f"],
    ];
    let lines = facts.report.sections.iter().flat_map(|section| section.text.lines());
    let code = lines.filter_map(|line| line.split_once("Code: ")).map(|(_, bytes)| bytes).next();
    let Some(code) = code else { return false };
    let at_pc = code.split_whitespace().skip_while(|byte| !byte.starts_with('<'));
    let bytes: Vec<&str> = at_pc.take(4).map(|byte| byte.trim_matches(['<', '>'])).collect();
    // REX prefixes choose registers.
    let bytes: Vec<&str> = bytes.into_iter().filter(|byte| !byte.starts_with('4')).collect();
    let is_move = MOVES.iter().any(|known| bytes.starts_with(known));
    if is_move {
        draft.say("The instruction moves 16 bytes and demands an address that is a multiple of 16: its operand was not aligned so, whatever the address.");
        draft.cause("A stack that is not aligned to 16 bytes: code that was compiled for another alignment of the stack than its callers, as the kernel's own code is.");
        draft.evidence(format!("Code: {code}"));
        draft.next("Look at how that code is compiled: -mpreferred-stack-boundary and -mstack-alignment of it and of its callers.");
    }
    is_move
}

/// `minidump_stackwalk` names the instruction: `ud2` is what compilers put where the program must not go on.
pub(super) fn illegal(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let instruction = field(&facts.report.fields, "Crashing instruction").unwrap_or_default();
    if instruction.trim_matches('`') != "ud2" {
        return false;
    }
    draft.lead(
        "Deliberate trap: a check in the code failed (ud2)",
        "The code ran into ud2, which compilers put where the program must not go on.",
    );
    draft.causes(&[
        "Code that the compiler took for impossible: behind a call that must not return, in a function without a return, after undefined behavior such as a write through a null pointer that it could see.",
        "`__builtin_trap`, `abort()` of Rust's `core::intrinsics`, a failed check of a library.",
    ]);
    draft.evidence(format!("Crashing instruction: {instruction}"));
    true
}
