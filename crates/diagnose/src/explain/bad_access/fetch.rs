//! Jumps to where no code is.

use super::details::cite_fill;
use super::{ADDRESS_SANITIZER, Accessing, NULL_PAGE, holds};
use crate::explain::draft::Draft;
use crate::explain::esr::Access;
use crate::explain::facts::Facts;
use crate::explain::region;
use crate::explain::registers;
use crate::explain::stack::lies_in_image;
use crate::explain::tables::access::Failure;
use backtrail_core::Avma;
use backtrail_model::Register;

/// What lies so far above the stack pointer at most is on the stack, by all appearance.
const ON_STACK: u64 = 0x10000;

/// The processor was sent to an address that is no code.
pub(in crate::explain) fn code_fetch(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let Some(pc) = registers::current_instruction(&facts.registers, facts.thread) else { return false };
    if !was_fetch(&on, pc) {
        return false;
    }
    let overwritten =
        facts.registers.fp().filter(|fp| fp.value & !1 == pc.get() & !1 && pc.get() >= NULL_PAGE);
    if let Some(fp) = overwritten {
        return_into_garbage(&on, draft, pc, fp);
        return true;
    }
    if pc.get() < NULL_PAGE {
        call_through_null(draft, pc);
    } else {
        jump_into_data(&on, draft, pc);
    }
    cite_call_registers(&on, draft, pc);
    cite_caller(&on, draft);
    draft.nexts(&[
        "Look at the caller: the function pointer, block or object that it called through.",
        ADDRESS_SANITIZER,
    ]);
    true
}

fn call_through_null(draft: &mut Draft, pc: Avma) {
    draft.lead(
        format!("Call through a null function pointer: jump to {pc}"),
        format!("The code jumped to {pc}, where no code can be: it called a function or block that is NULL."),
    );
    draft.causes(&[
        "A callback, block or function pointer that was never set, called without a check.",
        "A weakly linked function that this version of the system does not have.",
        "The table of methods of an object that was freed or zeroed.",
    ]);
}

fn jump_into_data(on: &Accessing<'_, '_>, draft: &mut Draft, pc: Avma) {
    let region = region::of(on.facts.report);
    let denied = on.fault.failure() == Some(Failure::Protected)
        || on.syndrome.as_ref().is_some_and(|syndrome| syndrome.permission);
    let place = region.as_ref().map(|region| format!(" in {}", region.kind)).unwrap_or_default();
    if let Some(stripped) = on.fault.stripped {
        draft.lead(
            format!("Jump to {pc}, whose upper bits are no address"),
            format!("The code jumped to {pc}: a failed pointer authentication, or a function pointer that was overwritten."),
        );
        draft.evidence(format!("Without the upper bits the pointer would be {stripped}"));
        draft.say("The report does not tell which of the two it was.");
    } else if denied {
        draft.lead(
            format!("Jump into memory that may not be executed: {pc}{place}"),
            format!("The code jumped to {pc}{place}, which is mapped but is no code."),
        );
    } else {
        draft.lead(
            format!("Jump to an address that is no code: {pc}"),
            format!("The code jumped to {pc}, where no code is."),
        );
    }
    region.iter().for_each(|region| draft.evidence(&region.evidence));
    if let Some(sp) = on.facts.registers.sp().filter(|sp| pc.get().wrapping_sub(sp.get()) <= ON_STACK) {
        draft.evidence(format!("The stack pointer is {sp}: the address lies on the stack"));
    }
    draft.causes(&[
        "A call through the table of methods or the block of an object that was freed or overwritten.",
        "A return address or function pointer that was overwritten.",
    ]);
}

/// The address is the program counter; or the processor says that it fetched an instruction; or the address is not
/// told and the program counter lies in no image.
fn was_fetch(on: &Accessing<'_, '_>, pc: Avma) -> bool {
    match (on.access(), on.fault.target()) {
        (Some(access), _) => access == Access::Execute,
        (None, Some(address)) => address == pc || on.fault.address() == Some(pc),
        // A translated process has addresses that no image holds.
        (None, None) if on.facts.report.process.translated => false,
        (None, None) => {
            let known = on.facts.report.process.images.iter().any(|image| image.end_address.is_some());
            known && !lies_in_image(on.facts.report, pc)
        }
    }
}

fn return_into_garbage(on: &Accessing<'_, '_>, draft: &mut Draft, pc: Avma, fp: &Register) {
    draft.lead(
        format!("Return to an overwritten address {pc}: the stack was overwritten"),
        format!("The code returned to {pc}, which is no code; the saved frame pointer holds the same value, so the stack was overwritten."),
    );
    draft.evidence(format!("The program counter is {pc}"));
    draft.evidence(format!("Register {} = {:#x}: the frame pointer, with the same value", fp.name, fp.value));
    cite_fill(on, draft, pc);
    draft.cause("A write beyond the end of an array on the stack: memset, memcpy, strcpy or a loop with a wrong length.");
    draft.say("The stack is lost with it: the report does not tell which function did it.");
    draft.nexts(&[
        "Run with Address Sanitizer: it stops at the write.",
        "Look at the last frames that are left, and at what they had called.",
    ]);
}

/// 64-bit code calls through a register: compilers for Apple's ARM systems take x8 for entries of a table of methods,
/// and x0 then holds the object.
fn cite_call_registers(on: &Accessing<'_, '_>, draft: &mut Draft, pc: Avma) {
    let registers = &on.facts.registers;
    let holds = |name: &str| registers.get(name).is_some_and(|register| register.value == pc.get());
    let object = registers.argument(0);
    match object.filter(|_| holds("x8")) {
        Some(object) => draft.evidence(format!(
            "Register x8 holds {pc}, as in a call of a virtual method or block; {} = {:#x} would be its object",
            object.name, object.value
        )),
        None => draft.evidence(format!("The program counter is {pc}")),
    }
}

/// Who jumped: the return address in the link register, or the next frame.
fn cite_caller(on: &Accessing<'_, '_>, draft: &mut Draft) {
    let facts = on.facts;
    if let Some(lr) = facts.registers.lr() {
        let image = facts.report.process.images.iter().find(|image| holds(image, lr));
        let place = image.map(|image| format!(" ({} + {})", image.name, lr.get() - image.load_address.get()));
        draft.evidence(format!(
            "Register lr = {lr}{}: the return address of the call",
            place.unwrap_or_default()
        ));
    }
    let caller = facts.frames.iter().find(|frame| frame.image.is_some());
    match caller {
        Some(frame) => draft.evidence(facts.cite(frame)),
        None => draft.say("The report does not tell who jumped there: the stack could not be followed."),
    }
}
