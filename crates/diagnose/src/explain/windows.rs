//! What an event of Windows tells: a code, a module and a place in it, and no stack.

use super::draft::Draft;
use super::facts::Facts;
use super::tables::windows::{CODES, FAST_FAILS, MODULES};
use crate::names::image_name;
use backtrail_model::Source;

/// Modules that only raise or find what others did: the place in them says nothing.
const BYSTANDERS: [&str; 6] =
    ["kernelbase.dll", "kernel32.dll", "ntdll.dll", "ucrtbase.dll", "vcruntime140.dll", "user32.dll"];

/// Codes whose meaning says itself that the module is not to blame.
const TOLD: [u32; 9] = [
    0xc000_0006,
    0x4000_0015,
    0x8013_1506,
    0xc000_0374,
    0xc000_00fd,
    0xe000_0008,
    0xe043_4352,
    0xe043_4f4d,
    0xe06d_7363,
];

/// The end of a program, as the event log has it.
pub(super) fn error(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.report.source != Source::WindowsEvent {
        return false;
    }
    let exception = facts.exception();
    if exception.kind.as_deref() == Some("hang") {
        draft.lead(
            "The program did not answer",
            "Windows ended the program, or its user did, since its windows did not answer.",
        );
        draft.cause(
            "The thread of the windows waited or worked: for a file, the network, a lock, another process.",
        );
        draft.next("Get a dump while it hangs (Task Manager, `procdump -h`): it has the stacks, which an event has not.");
        return true;
    }
    let code = exception.raw_codes.first().and_then(|code| u32::try_from(*code).ok());
    if code == Some(ACCESS_VIOLATION) && access(facts, draft) {
        return true;
    }
    let known = CODES.iter().find(|(number, ..)| Some(*number) == code);
    let module = facts.frames.first().and_then(|frame| image_name(facts.report, frame)).unwrap_or_default();
    let module = Module { name: module, lower: module.to_ascii_lowercase() };
    let data = facts.report.fields.iter().find(|field| field.key == "exception data");
    let data = data.and_then(|field| u64::from_str_radix(field.value.trim_start_matches("0x"), 16).ok());
    let is_fast_fail = code == Some(0xc000_0409);
    let reason = FAST_FAILS.iter().find(|(number, ..)| is_fast_fail && Some(*number) == data);
    // abort() of the C library is the only thing of it that ends so; the other checks have codes of their own.
    let is_abort = is_fast_fail && data.is_none() && module.lower == "ucrtbase.dll";
    match (known, reason, code) {
        (_, Some((_, what, meaning)), _) => {
            draft.lead(format!("The program ended itself: {what}"), meaning);
        }
        _ if is_abort => draft.lead(
            "The program called abort()",
            "The C library ended the program by `__fastfail`, which is what its abort() does. No buffer was overrun, although the code is named so.",
        ),
        (Some((_, title, meaning, ..)), ..) => {
            let place = if module.is_telling() { format!(" in {}", module.name) } else { String::new() };
            draft.lead(format!("{title}{place}"), meaning);
        }
        (None, _, Some(code)) => {
            draft.lead(
                format!("Exception {code:#x}"),
                "The program ended by an exception that it did not handle. The code is none that is known here: programs and runtimes raise codes of their own.",
            );
        }
        (None, _, None) if exception.kind.as_deref() == Some("internal error") => {
            draft.lead("Internal error of .NET's runtime", "The runtime ended the program.");
        }
        (None, _, None) => draft.lead(
            "The program ended by an exception that the event does not name",
            "The event names no code, and no exception of .NET: the fault was in machine code, of the runtime or of what managed code had called.",
        ),
    }
    if exception.message.is_some() && !matches!(code, Some(0xc000_0006 | 0x8013_1506)) {
        draft.say(
            "The fault happened inside of .NET's runtime: its own memory was damaged, or it has an error.",
        );
        draft.cause(
            "Native code in the process (P/Invoke, a COM component, unsafe code) that overwrote memory.",
        );
    }
    module.tell(facts, draft, code.is_some_and(|code| !TOLD.contains(&code)) && !is_abort);
    if is_abort || reason.is_some_and(|(number, ..)| *number == 7) {
        draft.causes(&["A C++ exception that nobody caught, a failed assertion, a fatal error of a framework (qFatal of Qt), a panic of Rust."]);
        draft.next("Look at what the program wrote to its log or standard error right before: the message is there, not in the event.");
        draft.next("Get a minidump (Windows Error Reporting's LocalDumps, or `procdump -e`): it has the stack, which an event has not.");
    } else if let Some((.., causes, nexts)) = known.filter(|_| reason.is_none()) {
        draft.causes(causes);
        draft.nexts(nexts);
    }
    if reason.is_some_and(|(number, ..)| *number != 7) {
        draft.next("Get a minidump (Windows Error Reporting's LocalDumps, or `procdump -e`): it has the stack, which an event has not.");
    }
    true
}

/// STATUS_ACCESS_VIOLATION.
const ACCESS_VIOLATION: u32 = 0xc000_0005;

/// Windows maps nothing in the first 64 KB.
const NULL_PAGES: u64 = 0x1_0000;

/// An access violation of which a debugger told what was accessed; the event log does not.
fn access(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let exception = facts.exception();
    let pointer =
        facts.report.fields.iter().find(|field| field.key == "pointer").map(|field| field.value.as_str());
    let how = exception.subtype.as_deref();
    let address = exception.address.map(backtrail_core::Avma::get);
    if how.is_none() && address.is_none() && pointer.is_none() {
        return false;
    }
    let frame = facts.frames.first();
    let module = frame.and_then(|frame| image_name(facts.report, frame)).unwrap_or_default();
    let place = if module.is_empty() { String::new() } else { format!(" in {module}") };
    let what = match how {
        Some("write") => "write",
        Some("execute") => "jump",
        Some(_) => "read",
        None => "access",
    };
    let value = pointer.and_then(|pointer| pointer.split_once(" = "));
    match (value, address) {
        (Some((name, "nullptr")), _) => {
            draft.lead(
                format!("Null pointer: `{name}`, {what}{place}"),
                format!("The code used {name}, which was null."),
            );
            null_causes(draft);
        }
        (Some((name, value)), _) => {
            draft.lead(
                format!("`{name}` was {value}, {what}{place}"),
                format!("The code used {name}, whose value {value} is no address."),
            );
            let number = u64::from_str_radix(value.trim_start_matches("0x"), 16).unwrap_or_default();
            if let Some((_, told)) = FILLS.iter().find(|(fill, _)| u64::from(*fill) == number & 0xffff_ffff) {
                draft.say(*told);
            }
            draft.cause("A pointer that was never set, or an object that was freed.");
        }
        (None, Some(address)) if address < NULL_PAGES => {
            draft.lead(
                format!("Null pointer {what} at {address:#x}{place}"),
                match address {
                    0 => "The code used a null pointer.".to_owned(),
                    _ => format!(
                        "The code used a null pointer: a member at offset {address:#x}, or an element."
                    ),
                },
            );
            null_causes(draft);
        }
        (None, Some(u64::MAX | 0xffff_ffff)) => {
            draft.lead(
                format!("Access violation{place}: the address was none"),
                "The code used an address that no memory can have. Windows gives all ones in its place: the processor does not tell it.",
            );
            draft.causes(&[
                "A pointer that was overwritten, freed or never set.",
                "An instruction that demands an aligned operand, with one that is not (SSE, a stack that is not aligned).",
            ]);
            draft.next("Look at the registers and at the instruction: a pattern such as 0xcdcd…, 0xdddd… or 0xfeee… tells what became of the memory.");
        }
        (None, Some(address)) => {
            draft.lead(
                format!("Access violation{place}: {what} at {address:#x}"),
                format!("The code could not {what} at {address:#x}."),
            );
            if let Some((_, told)) = FILLS.iter().find(|(fill, _)| u64::from(*fill) == address & 0xffff_ffff)
            {
                draft.say(*told);
            }
            draft.cause("A pointer that was freed, overwritten or never set; an index beyond its array.");
        }
        (None, None) => {
            draft.lead(
                format!("Access violation{place} ({what})"),
                "The code used an address that it may not use; which, the text does not tell.",
            );
            draft.cause("A pointer that was null, freed, overwritten or never set.");
        }
    }
    if frame.is_some_and(|frame| crate::suspect::is_system(facts.report, frame)) {
        draft.say(format!(
            "{module} is Windows' own: what it was called with is to be looked at, and who called it."
        ));
    }
    if let Some(bucket) = facts.report.fields.iter().find(|field| field.key == "failure bucket") {
        draft.evidence(format!("{}: {}", bucket.key, bucket.value));
    }
    true
}

/// What Microsoft's debug heap and run-time checks fill memory with.
const FILLS: [(u32, &str); 5] = [
    (0xcdcd_cdcd, "That is what the debug heap fills new memory with: it was never set."),
    (0xcccc_cccc, "That is what variables on the stack are filled with in debug builds: it was never set."),
    (0xdddd_dddd, "That is what the debug heap fills freed memory with: the object was freed."),
    (0xfeee_feee, "That is what HeapFree() fills memory with: the object was freed."),
    (0xfdfd_fdfd, "That is what the debug heap puts around blocks: it was read from beyond the end of one."),
];

fn null_causes(draft: &mut Draft) {
    draft.cause(
        "A pointer that was never set, was cleared, or is the unchecked result of a call that failed.",
    );
    draft.next("Look where that pointer is set, and what happens when it is not.");
}

struct Module<'r> {
    name: &'r str,
    lower: String,
}

impl Module<'_> {
    /// Whether the title is better with it.
    fn is_telling(&self) -> bool {
        !self.name.is_empty() && self.name != ".NET runtime" && !BYSTANDERS.contains(&self.lower.as_str())
    }

    fn tell(&self, facts: &Facts<'_>, draft: &mut Draft, is_untold: bool) {
        if let Some(name) = self.lower.strip_suffix("_unloaded") {
            draft.say(format!("{name} had been unloaded: something still called or returned into its code."));
            draft.cause(format!("A callback, thread or object of {name} that outlived it."));
            return;
        }
        if let Some((_, what)) = MODULES.iter().find(|(begin, _)| self.lower.starts_with(begin)) {
            draft.say(format!("{} is {what}.", self.name));
            draft.next(format!(
                "Look for another version of {what}; what the program asked of it, only a stack tells."
            ));
            return;
        }
        let has_address = facts.frames.first().is_some_and(|frame| frame.address.is_some());
        if self.name.is_empty() && has_address {
            let address = facts.frames.first().and_then(|frame| frame.address).map(|it| it.raw().get());
            let null = if address == Some(0) { ": a call through a null pointer" } else { "" };
            draft.say(format!("The program counter was in no module{null}."));
            draft.cause("A call through a pointer that is no function's, or a stack that was overwritten.");
        } else if is_untold
            && facts.frames.first().is_some_and(|frame| crate::suspect::is_system(facts.report, frame))
        {
            draft.say(format!(
                "{} is Windows' or .NET's own, and seldom at fault: what called it, or broke its memory before, is not in the event.",
                self.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use backtrail_model::{Exception, Field, Frame, Image, Report, Source, Thread};

    fn event(code: u64, module: &str) -> Report {
        let mut report = Report { source: Source::WindowsEvent, ..Report::default() };
        report.exception = Some(Exception { raw_codes: vec![code], ..Exception::default() });
        report.process.images.push(Image { name: module.to_owned(), ..Image::default() });
        let frame = Frame { image: Some(0), image_offset: Some(0x10), ..Frame::new(0) };
        report.process.threads.push(Thread { crashed: true, frames: vec![frame], ..Thread::default() });
        report.process.crashed_thread = Some(0);
        report
    }

    #[test]
    fn a_fast_fail_is_told_by_its_reason_or_its_module() {
        let title = |report: &Report| explain(report).title;
        let mut report = event(0xc000_0409, "ucrtbase.dll");
        assert_eq!(title(&report), "The program called abort()");
        report.fields.push(Field { key: "exception data".to_owned(), value: "0000000000000005".to_owned() });
        assert_eq!(title(&report), "The program ended itself: an invalid argument");
        let report = event(0xc000_0409, "app.exe");
        assert_eq!(title(&report), "The program ended itself at once (fast fail) in app.exe");
    }

    /// XAML's and reflection's exceptions only hand on what happened; the reader marks the stack of that.
    #[test]
    fn carriers_of_dot_net_are_not_the_title() {
        let text = b"Unhandled Exception: System.Reflection.TargetInvocationException: Exception has been thrown ---> System.IO.IOException: no file\n   at Shop.Store.Open()\n   --- End of inner exception stack trace ---\n   at Shop.Program.Main()\n";
        let found = explain(&backtrail_report::parse(text, &backtrail_report::Limits::default()).unwrap());
        assert_eq!(found.title, "System.IO.IOException: no file");
        assert!(found.summary.contains("Shop.Store.Open"), "{}", found.summary);
        assert!(found.summary.contains("TargetInvocationException only handed it on"), "{}", found.summary);
    }

    /// Of Android: the kernel has no address for a general protection fault, and says 0.
    #[test]
    fn a_number_in_the_place_of_a_code() {
        for (codes, title) in [
            ("code 128, fault addr 0x0", "Fault without an address"),
            ("code 1, fault addr 0x50f04", "Access to memory that is not mapped"),
        ] {
            let text = format!("F/libc  (11): Fatal signal 11 (SIGSEGV), {codes} in tid 12 (ui)\n");
            let report =
                backtrail_report::parse(text.as_bytes(), &backtrail_report::Limits::default()).unwrap();
            let found = explain(&report);
            assert!(found.title.starts_with(title), "{}", found.title);
            assert!(found.summary.contains("The text has no stack."), "{}", found.summary);
        }
    }

    #[test]
    fn modules_that_only_find_it_are_not_in_the_title() {
        let found = explain(&event(0xc000_0005, "ntdll.dll"));
        assert_eq!(found.title, "Access violation");
        assert!(found.summary.contains("seldom at fault"), "{}", found.summary);
        let found = explain(&event(0xc000_0005, "nvoglv64.dll"));
        assert_eq!(found.title, "Access violation in nvoglv64.dll");
        assert!(found.summary.contains("NVIDIA"), "{}", found.summary);
        let found = explain(&event(0xc000_0005, "x.dll_unloaded"));
        assert!(found.summary.contains("had been unloaded"), "{}", found.summary);
        assert_eq!(explain(&event(0x1234, "x.dll")).title, "Exception 0x1234");
    }
}
