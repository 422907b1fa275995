//! A line of Linux's kernel about a fault that ended a program.
//!
//! Sources: Linux `arch/x86/include/asm/trap_pf.h` and `arch/x86/mm/fault.c` for the bits of the error code; the Arm Architecture
//! Reference Manual for the syndrome.

use super::bad_access::{as_text, fill};
use super::draft::Draft;
use super::esr::{Access, decode_esr, decode_page_fault};
use super::facts::{Facts, field};
use super::kill::capitalized;
use super::tables::exceptions::signal_by_name;
use crate::names::{describe, image_name};
use backtrail_core::{Avma, Family, FrameAddress};
use backtrail_model::{Frame, Report, Source};

/// No program may map anything below (`vm.mmap_min_addr`).
const NULL_PAGES: u64 = 0x1_0000;

/// An access so near to the stack pointer, where nothing is mapped, is one of the stack.
const NEAR_STACK: u64 = 0x1_0000;

/// x86's error code of a page fault, with the bits that reports of other systems do not have.
fn cite_page_fault(code: u64, draft: &mut Draft) {
    let who = if code & 4 != 0 { "by the program" } else { "by the kernel for the program" };
    let key = if code & 0x20 != 0 { ", a protection key locks the page" } else { "" };
    draft.evidence(format!("{}, {who}{key}", decode_page_fault(code).evidence));
}

fn verb(access: Option<Access>) -> &'static str {
    match access {
        Some(Access::Read) => "read",
        Some(Access::Write) => "write",
        Some(Access::Execute) => "execute",
        None => "access",
    }
}

/// A fault of a program, of which the kernel logged a line.
pub(super) fn explain(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let exception = facts.exception();
    let kind = exception.kind.as_deref().unwrap_or_default();
    if facts.report.source != Source::KernelLog || kind == "out of memory" {
        return false;
    }
    let frame = facts.frames.first();
    let image = || facts.report.process.images.first().map(|image| image.name.as_str());
    let file = frame.and_then(|frame| image_name(facts.report, frame)).or_else(image).unwrap_or_default();
    let place =
        FaultingCode { file, frame, is_unnamed: frame.is_some_and(|frame| frame.names().next().is_none()) };
    match kind {
        "segfault" => segfault(facts, draft, &place),
        "general protection fault" | "general protection" => {
            draft.lead(
                format!("Fault without an address (general protection){}", place.suffix()),
                "The processor refused an access for another reason than its page, and states no address for that: nearly always an address that no pointer can have (not canonical, its upper 17 bits differ).",
            );
            draft.causes(&[
                "A pointer that was overwritten, or read from memory that had been freed: its bytes are text, a fill value or a number.",
                "An SSE or AVX instruction with an address that is not aligned, or an instruction that programs may not use.",
            ]);
            draft.next("Run with AddressSanitizer, or look at the registers in a core: one holds the impossible address.");
        }
        "invalid opcode" => invalid_opcode(facts, draft, &place),
        "divide error" => {
            draft.lead(
                format!("Integer division by zero, or one whose result does not fit{}", place.suffix()),
                "The processor could not divide (#DE).",
            );
            draft.causes(&["A divisor that is 0.", "The smallest number divided by -1 (INT_MIN / -1)."]);
        }
        "int3" => {
            draft.lead(
                format!("Stopped at a breakpoint instruction (int3){}", place.suffix()),
                "The program ran an int3 instruction, and no debugger was there to take it.",
            );
            draft.causes(&[
                "The program's own check: Chromium's and V8's fatal checks, GLib's G_DEBUG=fatal-warnings, __debugbreak() and their like end so on purpose; the message is in what it wrote before.",
                "A jump into the filling between functions.",
            ]);
            draft.next("Look at the program's last output.");
        }
        "control protection" => {
            draft.lead(
                format!("Control flow refused by the processor{}", place.suffix()),
                "A return did not go where the call had come from, or an indirect jump went to no place for one (CET).",
            );
            draft.causes(&[
                "A stack that was overwritten.",
                "Code that changes return addresses, and was not made for shadow stacks.",
            ]);
        }
        "audited end" => {
            audited(facts, draft);
            return true;
        }
        "seccomp" => {
            seccomp(facts, draft);
            return true;
        }
        _ => other_fault(facts, draft, kind, &place),
    }
    place.tell(facts, draft);
    true
}

struct FaultingCode<'r> {
    file: &'r str,
    frame: Option<&'r Frame>,
    is_unnamed: bool,
}

impl FaultingCode<'_> {
    fn suffix(&self) -> String {
        if self.file.is_empty() { String::new() } else { format!(" in {}", self.file) }
    }

    /// Where it was, and what the line does not have.
    fn tell(&self, facts: &Facts<'_>, draft: &mut Draft) {
        draft.evidence(facts.exception().message.as_deref().unwrap_or_default());
        let code = field(&facts.report.fields, "code");
        code.into_iter().for_each(|code| draft.evidence(format!("Code: {code}")));
        match self.frame {
            Some(frame) if !self.is_unnamed => {
                draft.place(format!("It happened in {}.", describe(facts.report, frame)));
            }
            Some(frame) if !self.file.is_empty() => {
                draft.place(format!("It happened in {}{}.", self.file, offset(facts.report, frame)));
            }
            None if !self.file.is_empty() => {
                draft.place(format!(
                    "It happened in {}; where in it, the lines behind say (`pc`), which are not there.",
                    self.file
                ));
            }
            Some(_) if facts.exception().kind.as_deref() != Some("segfault") => {
                draft.place("The instruction lies in no file: made at run time, or reached by a bad jump.");
            }
            _ => {}
        }
        let callers =
            facts.frames.get(1).map_or("", |_| " Frame 1 is what the link register held, which may be old.");
        draft.say(format!(
            "The kernel's line has one place and no stack: who called it is not known.{callers}"
        ));
        draft.say("Name and number are the thread's, which are the program's for its first thread only.");
        if self.is_unnamed && !self.file.is_empty() {
            draft.next(format!(
                "Give this build's {} or its debug file (-s): the place gets its function and line.",
                self.file
            ));
        }
        draft.next("Get the stack: `coredumpctl dump` where systemd keeps cores, or run it under `backtrail watch -- PROGRAM`.");
    }
}

/// Audit's record of a program that a signal ended: it has the signal, and no place.
fn audited(facts: &Facts<'_>, draft: &mut Draft) {
    let signal = facts.signal();
    let known = signal_by_name(signal);
    let title = known.map_or("", |known| known.title);
    let title = if title.is_empty() { "A signal ended the program" } else { title };
    let meaning = known.map(|known| format!(": {}", known.meaning)).unwrap_or_default();
    draft.lead(format!("{title} ({signal})"), format!("The process ended by {signal}{meaning}."));
    draft.say("Audit's record has the signal and the program's file, and neither a place nor a stack.");
    draft.evidence(facts.exception().message.as_deref().unwrap_or_default());
    draft.next("Look for the kernel's own line of the same second (`segfault at …`, `traps: …`), which has the place.");
    draft.next("Get the stack: `coredumpctl info PID` where systemd keeps cores, or run it under `backtrail watch -- PROGRAM`.");
}

/// The kernel ended a program, since it called what its filter forbids.
fn seccomp(facts: &Facts<'_>, draft: &mut Draft) {
    let number = field(&facts.report.fields, "system call");
    let which = number.map(|number| format!(" {number}")).unwrap_or_default();
    draft.lead(
        format!("System call{which} that the program's filter forbids (seccomp)"),
        "The kernel ended the process, since it made a system call that its filter (seccomp) does not allow.",
    );
    draft.evidence(facts.exception().message.as_deref().unwrap_or_default());
    draft.causes(&[
        "A newer C library or kernel makes a call that the filter of the sandbox or the container does not know yet.",
        "Code inside of a sandbox that does what it must not.",
    ]);
    draft.next(
        "`ausyscall NUMBER` names the call; compare it with the profile of the container or the sandbox.",
    );
}

/// Where in its file an instruction is.
fn offset(report: &Report, frame: &Frame) -> String {
    if let Some(offset) = frame.file_offset {
        return format!(", at offset {:#x} in the file", offset.get());
    }
    let mapping =
        frame.image.and_then(|at| report.process.images.get(at)).and_then(|image| image.code_mapping);
    let into = frame
        .address
        .map(FrameAddress::raw)
        .zip(mapping)
        .and_then(|(pc, mapping)| pc.offset_from(mapping.start()));
    into.map(|into| format!(", {into:#x} bytes into the mapping of its code")).unwrap_or_default()
}

fn segfault(facts: &Facts<'_>, draft: &mut Draft, place: &FaultingCode<'_>) {
    let exception = facts.exception();
    let address = exception.address.unwrap_or_default();
    let pc = place.frame.and_then(|frame| frame.address).map(FrameAddress::raw);
    // Others than x86's kernels state no error code of this form.
    let error = exception.codes.as_deref().filter(|codes| codes.starts_with("error "));
    let code = error.and(exception.raw_codes.first().copied());
    code.iter().for_each(|code| cite_page_fault(*code, draft));
    let fault = code.map(decode_page_fault);
    let in_words = match exception.subtype.as_deref() {
        Some("read") => Some(Access::Read),
        Some("write") => Some(Access::Write),
        _ => None,
    };
    let access = fault.as_ref().and_then(|fault| fault.access).or(in_words);
    let verb = verb(access);
    let (is_protection, is_fetch) =
        (fault.is_some_and(|fault| fault.permission), access == Some(Access::Execute));
    let stack = place.frame.and_then(|frame| frame.stack_pointer);
    let near_stack = stack.is_some_and(|sp| address.get().abs_diff(sp.get()) < NEAR_STACK);
    let where_to = place.suffix();
    let unmapped = if is_protection { "may not be executed" } else { "is not mapped" };
    match () {
        () if Some(address) == pc || is_fetch => {
            let is_null = address.get() == 0;
            let title = if is_null {
                "Call through a null pointer".to_owned()
            } else {
                format!("Jump to {address}, which {unmapped}")
            };
            draft.lead(title, format!("The program tried to execute at {address}, which {unmapped}."));
            draft.causes(&[
                "A pointer to a function that is null, was overwritten or belongs to a library that was unloaded; an object that was freed, whose table of virtual functions is no more.",
                "A return address that was overwritten on the stack.",
            ]);
        }
        () if address.get() < NULL_PAGES => {
            null_pointer(draft, verb, &format!(" at {address}"), place);
            draft.next(format!(
                "See which pointer the place uses: it is null, and {address} is the offset of what it wanted."
            ));
        }
        () if near_stack && !is_protection => {
            draft.lead(
                format!("Stack overflow, very probably{where_to}"),
                format!("The program tried to {verb} at {address}, right at its stack pointer, where nothing is mapped: the stack is used up."),
            );
            draft.causes(&["A recursion without an end.", "A large array or alloca() on the stack of a thread, which is smaller than the first thread's."]);
        }
        () if is_protection && address.get() >> 63 != 0 => {
            draft.lead(
                format!("Access to an address of the kernel: {verb} at {address}{where_to}"),
                "The address lies in the kernel's half of the address space, which no program may use; the kernel does not say whether anything is there.",
            );
            draft.cause(
                "A pointer that was overwritten, a negative number used as a pointer, or an index below 0.",
            );
        }
        () if is_protection && access == Some(Access::Write) => {
            draft.lead(
                format!("Write to memory that is read-only, at {address}{where_to}"),
                format!("A page is mapped at {address}, and may not be written."),
            );
            draft.causes(&["A write to a constant, a string literal, code, or data that was made read-only after linking.", "A pointer that was overwritten."]);
        }
        () if is_protection => {
            draft.lead(
                format!("Access to memory that is protected: {verb} at {address}{where_to}"),
                format!("A page is mapped at {address}, and may not be used so."),
            );
            draft.cause("A pointer to memory that is guarded on purpose, or that was overwritten.");
        }
        () => {
            draft.lead(
                format!("Access to memory that is not mapped: {verb} at {address}{where_to}"),
                format!("The program tried to {verb} at {address}, where it has no memory, or none that may be used at all."),
            );
            draft.causes(&[
                "A pointer to memory that was freed and given back.",
                "A pointer that was overwritten, or an index beyond the end.",
            ]);
        }
    }
    bytes(draft, address);
}

/// An access next to address 0.
fn null_pointer(draft: &mut Draft, verb: &str, at: &str, place: &FaultingCode<'_>) {
    draft.lead(
        format!("Null pointer: {verb}{at}{}", place.suffix()),
        format!("The program tried to {verb}{at}, next to null: a member or element of an object that is not there."),
    );
    draft.cause(
        "A pointer that was never set, was cleared, or is the unchecked result of a call that failed.",
    );
}

/// What the bytes of a wild pointer say.
fn bytes(draft: &mut Draft, address: Avma) {
    if address.get() < NULL_PAGES {
        return;
    }
    if let Some((fill, _)) = fill(Family::X86_64, address) {
        draft.say(format!("The value {address} is typical for {}.", fill.meaning));
    } else if let Some(text) = as_text(address) {
        draft.evidence(format!("The bytes of {address} read \"{text}\" as text"));
        draft.cause("The pointer was overwritten by text (a string copied beyond its buffer).");
    }
}

fn invalid_opcode(facts: &Facts<'_>, draft: &mut Draft, place: &FaultingCode<'_>) {
    // The byte at the instruction pointer stands in angle brackets.
    let code = field(&facts.report.fields, "code").unwrap_or_default();
    let at =
        code.split_once('<').map(|(_, rest)| rest.replace('>', "").to_ascii_lowercase()).unwrap_or_default();
    let begins = |bytes: &[&str]| bytes.iter().any(|bytes| at.starts_with(bytes));
    if begins(&["0f 0b"]) {
        draft.lead(
            format!("Stopped by the program's own check (ud2){}", place.suffix()),
            "The instruction is ud2, which compilers put where the program must not go on.",
        );
        draft.causes(&[
            "__builtin_trap(), a failed check of the program or its runtime, code that the compiler took for unreachable, a function that ends without a return.",
        ]);
        draft.next("Look at the program's last output, and at the condition right before the place.");
        return;
    }
    draft.lead(
        format!("Instruction that the processor does not know{}", place.suffix()),
        "The processor refused an instruction (#UD).",
    );
    if begins(&["c4 ", "c5 ", "62 "]) {
        draft.say("Its bytes are those of AVX, AVX2 or AVX-512.");
        draft.cause("A program built for a newer processor than this one, or a virtual machine that hides its features.");
        draft.next("Compare `grep flags /proc/cpuinfo` with what the program was built for (-march).");
        return;
    }
    draft.causes(&[
        "The program's own check: compilers put ud2 where it must not go on (__builtin_trap, unreachable code).",
        "A program built for a newer processor than this one, or a virtual machine that hides its features.",
        "A jump to what is no code.",
    ]);
    draft.next("Look at the bytes in angle brackets of the line `Code:` behind this one: `0f 0b` is ud2, `c4`, `c5` and `62` begin AVX.");
}

/// Faults of other processors than x86, in the kernel's words.
fn other_fault(facts: &Facts<'_>, draft: &mut Draft, kind: &str, place: &FaultingCode<'_>) {
    let exception = facts.exception();
    let address = exception.address;
    let esr =
        exception.codes.as_deref().filter(|codes| codes.starts_with("esr ")).and(exception.raw_codes.first());
    let esr = esr.map(|esr| decode_esr(*esr));
    esr.iter().for_each(|esr| draft.evidence(&esr.evidence));
    let verb = verb(esr.and_then(|esr| esr.access));
    let at = address.map(|address| format!(" at {address}")).unwrap_or_default();
    let is_null = address.is_some_and(|address| address.get() < NULL_PAGES);
    let is_translation = kind.contains("translation fault") || kind.contains("page fault");
    let signal = facts.signal();
    if is_null && matches!(signal, "SIGSEGV" | "") {
        null_pointer(draft, verb, &at, place);
    } else if is_translation {
        draft.lead(
            format!("Access to memory that is not mapped: {verb}{at}{}", place.suffix()),
            format!("The program tried to {verb}{at}, where it has no memory."),
        );
        draft.causes(&[
            "A null pointer, a pointer to memory that was freed and given back, or one that was overwritten.",
            "An index beyond the end.",
        ]);
    } else if kind.contains("permission fault") {
        draft.lead(
            format!("Access to memory that is protected: {verb}{at}{}", place.suffix()),
            "The page is mapped, and may not be used so.",
        );
        draft.cause("A write to a constant or to code, or a jump to data.");
    } else {
        let named = if signal.is_empty() { String::new() } else { format!(" ({signal})") };
        draft.lead(
            format!("{}{named}{}", capitalized(kind), place.suffix()),
            format!("The kernel ended the program for: {kind}."),
        );
    }
    if address.is_none() && is_translation {
        draft.say("The kernel's line has no address.");
    }
}
