//! Accesses to memory that failed: the rules that lead, in the order in which they are asked.

use super::draft::Draft;
use super::esr::{Access, Syndrome};
use super::facts::Facts;
use super::fault::{Fault, FaultAddress};
use super::region::{self, Region};
use super::stack::{broken_frame_pointer, guards_another_thread, lies_in_image};
use super::tables::access::{FILLS, Failure};
use super::words::{hex, listed};
use super::{esr, registers};
use crate::{Image, Register};
use backtrail_core::{Avma, Family};

/// No object, struct or table is reached at a larger offset from null by ordinary code; the first page of a 16 KB
/// system is never mapped.
pub(super) const NULL_PAGE: u64 = 0x4000;

const ADDRESS_SANITIZER: &str =
    "Run with Address Sanitizer: it stops where the memory was freed or overwritten, not later.";
const DANGLING: &str = "A pointer to memory that was freed and given back.";
const GARBAGE: &str = "A pointer that was never set, or was overwritten.";

/// What the rules of this file share.
struct Accessing<'f, 'r> {
    facts: &'f Facts<'r>,
    fault: &'f Fault,
    syndrome: Option<Syndrome>,
}

impl<'f, 'r> Accessing<'f, 'r> {
    fn of(facts: &'f Facts<'r>) -> Option<Self> {
        let fault = facts.fault.as_ref()?;
        Some(Self { facts, fault, syndrome: esr::read(facts.report, &facts.registers) })
    }

    fn access(&self) -> Option<Access> {
        self.syndrome.as_ref().and_then(|syndrome| syndrome.access)
    }

    /// `: read at 0x8`, or ` at 0x8` where the report does not tell what for.
    fn act(&self, address: Avma) -> String {
        let noun = self.access().map(|access| format!(": {}", access.noun())).unwrap_or_default();
        format!("{noun} at {}", hex(address))
    }

    /// `read`, `wrote to`, `accessed`.
    fn verb(&self) -> &'static str {
        match self.access() {
            Some(Access::Read) => "read",
            Some(Access::Write) => "wrote to",
            Some(Access::Execute) => "jumped to",
            None => "accessed",
        }
    }
}

/// A page whose signature was refused.
pub(super) fn codesign(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let by_signal = facts.signal() == "Code Signature Invalid";
    if on.fault.failure() != Some(Failure::CodeSigning) && !by_signal {
        return false;
    }
    draft.lead(
        "Killed for a page of code whose signature does not fit",
        "A page of a signed file was changed after signing, on disk or in memory; the kernel denied it.",
    );
    if let Some(said) = facts.find_said(|text| text.contains("CODE SIGNING") && text.contains("in file")) {
        draft.evidence(said.cite());
    }
    draft.causes(&[
        "A signed file was overwritten in place while it was in use (an update, a copy over the old file).",
        "A library of the app was changed after signing, or is not signed.",
        "Code was written into memory without the entitlement for it.",
    ]);
    draft.nexts(&[
        "Run `codesign --verify --deep --strict --verbose=4` on the installed app.",
        "Replace signed files by moving a new file into place, never by writing into the old one.",
    ]);
    true
}

/// The processor was sent to an address that is no code.
pub(super) fn code_fetch(facts: &Facts<'_>, draft: &mut Draft) -> bool {
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
        let title = format!("Call through a null function pointer: jump to {pc}");
        draft.lead(
            title,
            format!(
                "The code jumped to {pc}, where no code can be: it called a function or block that is NULL."
            ),
        );
        draft.causes(&[
            "A callback, block or function pointer that was never set, called without a check.",
            "A weakly linked function that this version of the system does not have.",
            "The table of methods of an object that was freed or zeroed.",
        ]);
    } else {
        draft.lead(
            format!("Jump to an address that is no code: {pc}"),
            format!("The code jumped to {pc}, where no code is."),
        );
        draft.causes(&[
            "A call through the table of methods or the block of an object that was freed or overwritten.",
            "A return address or function pointer that was overwritten.",
        ]);
    }
    draft.evidence(format!("The program counter is {pc}"));
    cite_caller(&on, draft);
    draft.nexts(&[
        "Look at the caller: the function pointer, block or object that it called through.",
        ADDRESS_SANITIZER,
    ]);
    true
}

/// The address is the program counter; or the processor says that it fetched an instruction; or the address is not
/// told and the program counter lies in no image.
fn was_fetch(on: &Accessing<'_, '_>, pc: Avma) -> bool {
    match (on.access(), on.fault.target()) {
        (Some(access), _) => access == Access::Execute,
        (None, Some(address)) => address == pc || on.fault.address() == Some(pc),
        (None, None) => {
            let known = on.facts.report.images.iter().any(|image| image.end_address.is_some());
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

/// Who jumped: the return address in the link register, or the next frame.
fn cite_caller(on: &Accessing<'_, '_>, draft: &mut Draft) {
    let facts = on.facts;
    if let Some(lr) = facts.registers.lr() {
        let image = facts.report.images.iter().find(|image| holds(image, lr));
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

fn holds(image: &Image, address: Avma) -> bool {
    image.load_address <= address && image.end_address.is_some_and(|end| address < end)
}

/// A pointer that failed its authentication.
pub(super) fn pointer_authentication(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let by_processor = on.syndrome.as_ref().is_some_and(|syndrome| syndrome.ptrauth);
    let certain = on.fault.failure() == Some(Failure::PointerAuthentication) || by_processor;
    let likely = on.fault.maybe_ptrauth && on.fault.stripped.is_some();
    if !(certain || likely) {
        return false;
    }
    let Some(address) = on.fault.address() else { return false };
    if certain {
        draft.lead(
            "A pointer failed its authentication",
            format!("A signed pointer ({address}) does not carry the signature that belongs to it."),
        );
    } else {
        let title = format!("Bad pointer {address}: its upper bits are no address");
        draft.lead(title, format!("The code used {address}, whose upper bits no address has: a failed pointer authentication, or a pointer that was overwritten."));
        draft.say("The report does not tell which of the two it was.");
    }
    if let Some(stripped) = on.fault.stripped {
        draft.evidence(format!("Without the upper bits the pointer would be {stripped}"));
    }
    draft.causes(&[
        "The pointer was overwritten, or the object that holds it was freed and its memory reused.",
        "A signed pointer (function pointer, vtable, isa) was copied or changed as plain data.",
    ]);
    draft.next(ADDRESS_SANITIZER);
    true
}

/// Memory tagging caught the pointer.
pub(super) fn memory_tagging(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    if !on.syndrome.as_ref().is_some_and(|syndrome| syndrome.tag_fault) {
        return false;
    }
    draft.lead(
        "Memory tagging caught a stale or stray pointer",
        "The pointer's tag does not fit the tag of the memory: the block was freed and reused, or the access went beyond its end.",
    );
    draft.causes(&[DANGLING, "A read or write beyond the end of a block."]);
    draft.next(ADDRESS_SANITIZER);
    true
}

/// An access at or a little above null.
pub(super) fn null(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let Some(address) = on.fault.target().filter(|address| address.get() < NULL_PAGE) else { return false };
    if !is_plausible(&on, address) {
        return false;
    }
    let unsure = matches!(on.fault.address, FaultAddress::Assumed(..)) && facts.registers.is_empty();
    let probably = if unsure { ", probably" } else { "" };
    draft.lead(format!("Null pointer access{}{probably}", on.act(address)), null_sentence(&on, address));
    if unsure && address.get() == 0 && matches!(facts.family(), Family::X86 | Family::X86_64) {
        draft.say("On x86 a pointer beyond the address space and a forbidden instruction are reported the same way; without registers the report does not tell them apart.");
    }
    draft.cause("A pointer or reference that was never set, was cleared, or is the unchecked result of a call that failed.");
    if address.get() != 0 {
        draft.cause("A number where a pointer is expected, or an index into an array that is null.");
        draft.next(format!("See which member lies at offset {address} of the struct or class used at that line: the pointer before it is null."));
    } else {
        draft.next("See which pointer the named line uses: it is null.");
    }
    draft.next("Check where that pointer is set, and what happens when it is not.");
    true
}

fn null_sentence(on: &Accessing<'_, '_>, address: Avma) -> String {
    let verb = on.verb();
    match address.get() {
        0 => format!("The code {verb} memory through a null pointer."),
        _ => format!(
            "The code {verb} memory at {address}: a member at that offset of an object whose pointer is null."
        ),
    }
}

/// An address that the report states counts as it is. One that is only assumed counts where a register holds a base
/// for it: code reaches memory through a register, and an access that failed leaves it unchanged.
fn is_plausible(on: &Accessing<'_, '_>, address: Avma) -> bool {
    match on.fault.address {
        FaultAddress::Stated(_) => true,
        FaultAddress::Assumed(..) => {
            on.facts.registers.is_empty()
                || on.facts.registers.general().any(|register| register.value <= address.get())
        }
        FaultAddress::Untold(_) => false,
    }
}

/// An access a little below null: an index of -1, or a header that stands before an object.
pub(super) fn below_null(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let width =
        if matches!(facts.family(), Family::X86 | Family::Arm) { u64::from(u32::MAX) } else { u64::MAX };
    let below = on
        .fault
        .address()
        .and_then(|address| width.checked_sub(address.get()))
        .and_then(|bytes| bytes.checked_add(1));
    let Some(offset) = below.filter(|bytes| *bytes < NULL_PAGE) else { return false };
    draft.lead(
        format!("Null pointer access: {offset:#x} bytes below null"),
        format!("The code {} memory {offset:#x} bytes below null: something before an object whose pointer is null.", on.verb()),
    );
    draft.cause("A null pointer with a negative index or offset (a header that stands before an object).");
    draft.cause("A value of -1 or another error code taken for a pointer.");
    draft.next("See which pointer the named line uses, and what it is when a call fails.");
    true
}

/// The address is not told.
pub(super) fn untold(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    if on.fault.failure() == Some(Failure::GeneralProtection) {
        general_protection(&on, draft);
        return true;
    }
    let why = match on.fault.address {
        FaultAddress::Untold(why) => why.to_owned(),
        // Assumed and near null: `null` has found no register that could have led there.
        FaultAddress::Assumed(address, _) if address.get() < NULL_PAGE => {
            format!("it gives {address}, but no register holds a value near 0")
        }
        FaultAddress::Stated(_) | FaultAddress::Assumed(..) => return false,
    };
    let forbidden = on.fault.failure() == Some(Failure::Protected);
    if let Some(line) = broken_frame_pointer(facts) {
        draft.lead("Bad memory access after the stack was overwritten", "Memory was accessed that may not be, and the stack holds values that are no addresses: it was overwritten.");
        draft.evidence(line);
        draft.cause("A write beyond the end of an array on the stack: memset, memcpy, strcpy or a loop with a wrong length.");
        draft.next("Run with Address Sanitizer: it stops at the write.");
    } else if forbidden {
        draft.lead("Memory access that its protection forbids", "The code accessed memory that is mapped but may not be used that way: a write to read-only memory, or a jump into data.");
        draft.cause("A write to a constant, to code, or to a file mapped for reading.");
        draft.cause("A stack that ran out into its guard page.");
    } else {
        draft.lead(
            "Bad memory access at an address that the report does not give",
            "The code accessed memory that it may not access.",
        );
        draft.causes(&[GARBAGE, DANGLING]);
        if matches!(facts.family(), Family::X86 | Family::X86_64) {
            draft.cause("An instruction that only the kernel may execute: x86 reports it the same way.");
        }
    }
    draft.say(format!("The report does not tell the address: {why}."));
    draft.next("Look at the named line and at the registers for a pointer that is no address.");
    draft.next(ADDRESS_SANITIZER);
    true
}

/// x86's general protection fault: a pointer beyond the address space, or a forbidden instruction.
fn general_protection(on: &Accessing<'_, '_>, draft: &mut Draft) {
    let odd: Vec<&Register> =
        on.facts.registers.general().filter(|register| is_non_canonical(register.value)).collect();
    if let [first, ..] = odd.as_slice() {
        let value = Avma::new(first.value);
        draft.lead(
            format!("Bad pointer, probably {value}: no address that the processor has"),
            "The code used a pointer beyond the processor's address space (general protection fault).",
        );
        for register in odd.iter().take(4) {
            draft.evidence(format!(
                "Register {} = {:#x}: no address that the processor has",
                register.name, register.value
            ));
            cite_fill(on, draft, Avma::new(register.value));
        }
        draft.causes(&[DANGLING, "A pointer that was overwritten, often by text."]);
    } else {
        draft.lead(
            "General protection fault",
            "The processor refused an instruction: a pointer beyond its address space, or an instruction that only the kernel may execute.",
        );
        draft.say("The report does not tell which: no register holds such a pointer.");
        draft.causes(&[DANGLING, GARBAGE]);
    }
    draft.say("The processor does not report the address in this case.");
    draft.next(ADDRESS_SANITIZER);
}

/// x86-64 has 48 address bits, the upper ones copies of bit 47.
fn is_non_canonical(value: u64) -> bool {
    let upper = value >> 47;
    upper != 0 && upper != 0x1_ffff
}

/// An address that the processor has no room for.
pub(super) fn beyond_address_space(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let Some(address) = on.fault.address().filter(|address| is_beyond(facts.family(), *address)) else {
        return false;
    };
    draft.lead(
        format!("Bad pointer{}, which no program can use", on.act(address)),
        format!(
            "The code {} {address}, which lies beyond the addresses of programs: the pointer is no pointer.",
            on.verb()
        ),
    );
    cite_fill(&on, draft, address);
    cite_text(draft, address);
    draft.causes(&["The pointer was overwritten: by text, numbers or another structure.", DANGLING, GARBAGE]);
    draft.next(ADDRESS_SANITIZER);
    true
}

fn is_beyond(family: Family, address: Avma) -> bool {
    match family {
        Family::X86_64 | Family::Aarch64 | Family::Other => address.get() >> 47 != 0,
        _ => false,
    }
}

/// An address that the instruction cannot use since it is not a multiple of its size.
pub(super) fn misaligned(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let by_processor = on.syndrome.as_ref().is_some_and(|syndrome| syndrome.misaligned);
    if on.fault.failure() != Some(Failure::Misaligned) && !by_processor {
        return false;
    }
    let at = on.fault.address().map(|address| format!(" at {address}")).unwrap_or_default();
    draft.lead(
        format!("Misaligned access{at}"),
        format!("The code accessed memory{at} with an instruction that needs an aligned address."),
    );
    draft.causes(&[
        "A pointer cast to a type of larger alignment: bytes of a file or message read as numbers.",
        "Atomic or exclusive instructions on a packed field.",
        GARBAGE,
    ]);
    draft.next("Copy the bytes with memcpy (or loadUnaligned in Swift) instead of casting; Undefined Behavior Sanitizer finds such places.");
    true
}

/// A page that is there, and not for this.
pub(super) fn protection(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let Some(address) = on.fault.target() else { return false };
    let region = region::of(facts.report);
    let image = facts.report.images.iter().find(|image| holds(image, address));
    let permission = on.syndrome.as_ref().is_some_and(|syndrome| syndrome.permission);
    let denied = on.fault.failure() == Some(Failure::Protected) || permission;
    // Without a code: an image's range is mapped and can be read, so what failed was no read.
    let inferred = on.fault.code.is_none() && image.is_some();
    if !denied && !inferred {
        return false;
    }
    if let Some(region) = region.as_ref().filter(|region| guards_another_thread(facts, region)) {
        stray_into_guard(draft, address, region);
        return true;
    }
    let place = place_of(image, region.as_ref(), address);
    let read_only = is_read_only(&on, region.as_ref(), image);
    if read_only || inferred {
        let sure = if on.access() == Some(Access::Write) { "" } else { ", by all appearance" };
        draft.lead(
            format!("Write to read-only memory: {address}{place}"),
            format!("The code wrote to {address}{place}, which is read-only{sure}."),
        );
        draft.causes(&[
            "A write through a pointer to a constant: a string literal, a const table, code.",
            "A write through a pointer that was overwritten or never set.",
            "A write to a file that is mapped for reading only.",
        ]);
    } else {
        let title = format!("Memory access that its protection forbids{}{place}", on.act(address));
        draft.lead(
            title,
            format!("The code {} {address}{place}, which is mapped but may not be used that way.", on.verb()),
        );
        draft.causes(&[
            "A pointer that was overwritten or never set.",
            "A write to read-only memory, or use of a guard page.",
        ]);
    }
    if inferred {
        draft.evidence(format!(
            "{address} lies{place}, which can be read and executed: an access that fails there is a write"
        ));
    }
    if let Some(region) = region {
        draft.evidence(region.evidence);
    }
    draft.next("See what the pointer in the named line points to.");
    draft.next(ADDRESS_SANITIZER);
    true
}

fn stray_into_guard(draft: &mut Draft, address: Avma, region: &Region) {
    draft.lead(
        format!("Stray access to another thread's stack guard at {address}"),
        "The code accessed the guard page of a stack that is not its own: a stray pointer, not a recursion of this thread.",
    );
    draft.evidence(&region.evidence);
    draft.causes(&[GARBAGE, "A pointer to a local variable of another thread, with a wrong offset."]);
    draft.next(ADDRESS_SANITIZER);
}

fn place_of(image: Option<&Image>, region: Option<&Region>, address: Avma) -> String {
    match (image, region) {
        (Some(image), _) => format!(" in {} + {}", image.name, address.get() - image.load_address.get()),
        (None, Some(region)) => format!(" in {}", region.kind),
        (None, None) => String::new(),
    }
}

/// Whether the page can be read and not written, so that what failed was a write.
fn is_read_only(on: &Accessing<'_, '_>, region: Option<&Region>, image: Option<&Image>) -> bool {
    let no_write = region.and_then(|region| region.protection.as_deref()).map(|bits| !bits.contains('w'));
    let readable =
        region.and_then(|region| region.protection.as_deref()).is_none_or(|bits| bits.starts_with('r'));
    match on.access() {
        Some(Access::Write) => no_write.unwrap_or(true),
        Some(_) => false,
        None => readable && no_write.unwrap_or(image.is_some()),
    }
}

/// The contents of a page could not be brought in.
pub(super) fn memory_error(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    if on.fault.failure() != Some(Failure::Pager) {
        return false;
    }
    let at = on.fault.address().map(|address| format!(" at {address}")).unwrap_or_default();
    draft.lead(
        format!("A page could not be read from its file{at}"),
        format!("Memory{at} is backed by a file or device that could not deliver its contents."),
    );
    if let Some(region) = region::of(facts.report) {
        draft.evidence(region.evidence);
    }
    draft.causes(&[
        "A mapped file was truncated or deleted while it was in use.",
        "The volume is gone, or its storage fails (an unplugged disk, a network share, a full or damaged flash).",
    ]);
    draft
        .next("See which file is mapped there; read files that others may truncate instead of mapping them.");
    true
}

/// An address where nothing is.
pub(super) fn unmapped(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let Some(address) = on.fault.target() else { return false };
    let certain = on.fault.failure() == Some(Failure::Unmapped);
    let what = if certain { ", where nothing is mapped" } else { "" };
    draft.lead(format!("Bad pointer{}", on.act(address)), format!("The code {} {address}{what}.", on.verb()));
    cite_fill(&on, draft, address);
    cite_text(draft, address);
    if is_in_zero_page(facts, address) {
        draft.evidence(format!(
            "{address} lies in the first 4 GB, which no 64-bit process of this system maps"
        ));
        draft.cause("A 64-bit pointer that was cut to 32 bits, or a number taken for a pointer.");
    }
    if let Some(line) = region::placement(facts.report) {
        draft.evidence(line);
    }
    draft.causes(&[DANGLING, GARBAGE, "An index far outside of an array."]);
    draft.next(ADDRESS_SANITIZER);
    true
}

/// 64-bit programs have a `__PAGEZERO` of 4 GB. Some reports carry addresses cut to 32 bits; they show it by their
/// images.
fn is_in_zero_page(facts: &Facts<'_>, address: Avma) -> bool {
    let is_64 = matches!(facts.family(), Family::X86_64 | Family::Aarch64);
    let images = &facts.report.images;
    is_64
        && address.get() >> 32 == 0
        && !images.is_empty()
        && images.iter().all(|image| image.load_address.get() >> 32 != 0)
}

/// Tells what a value is that memory is filled with.
fn cite_fill(on: &Accessing<'_, '_>, draft: &mut Draft, value: Avma) {
    let Some((meaning, base)) = fill(on.facts.family(), value) else { return };
    let offset = value.get().wrapping_sub(base);
    let place = if offset == 0 { String::new() } else { format!(" ({base:#x} + {offset:#x})") };
    draft.evidence(format!("{value}{place}: {meaning}"));
    draft.say(format!("The value {base:#x} is typical for {meaning}."));
}

/// The fill value that `value` lies at or a little above, with its meaning.
pub(super) fn fill(family: Family, value: Avma) -> Option<(&'static str, u64)> {
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
        Some((fill.meaning, base))
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
pub(super) fn as_text(address: Avma) -> Option<String> {
    let bytes = address.get().to_le_bytes();
    let used = 8 - bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let used = bytes.get(..used)?;
    let printable = used.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    let letters = used.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    (used.len() >= 6 && printable && letters >= 4)
        .then(|| used.iter().map(|byte| char::from(*byte)).collect())
}

/// Detail: which registers held the address, or a base a little below it.
pub(super) fn holders(facts: &Facts<'_>, draft: &mut Draft) {
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
        draft.evidence(format!(
            "Register {} = {address}: {} {verb} the address",
            exact.join(", "),
            listed(&exact)
        ));
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
pub(super) fn account(facts: &Facts<'_>, draft: &mut Draft) {
    let Some(on) = Accessing::of(facts) else { return };
    if let Some(syndrome) = &on.syndrome {
        draft.evidence(&syndrome.evidence);
    }
    on.fault.evidence.iter().for_each(|line| draft.evidence(line));
    if let Some(code) = on.fault.code {
        draft.evidence(format!("{}: {}", code.name, code.meaning));
    }
    if let FaultAddress::Assumed(address, why) = on.fault.address {
        draft.evidence(format!("The address {address} is assumed: {why}"));
    }
}
