//! Valgrind's Memcheck, Helgrind and DRD: what they found, with the stacks of the access, the allocation and the release.
//!
//! Each line of theirs begins with the process id between marks: `==12==`, DRD and Helgrind alike. Source: Valgrind `m_stacktrace.c`,
//! `mc_errors.c`.

use super::log::{Log, Reader, SourcePlace, drive, file_name, hex, named, place, word};
use crate::Limits;
use crate::apple_text::Line;
use crate::last_words;
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{AppInfo, Exception, Frame, Report, Source, Thread};

/// The process id of a line, and what stands behind it.
fn marked(line: &str) -> Option<(u64, &str)> {
    let (pid, rest) = line.strip_prefix("==")?.split_once("==")?;
    Some((pid.parse().ok()?, rest.strip_prefix(' ').unwrap_or(rest)))
}

/// How its errors begin. Losses of memory are told at the end, by amounts.
const ERRORS: [&str; 17] = [
    "Invalid read of size ",
    "Invalid write of size ",
    "Invalid free() / delete",
    "Mismatched free() / delete",
    "Conditional jump or move depends on uninitialised value",
    "Use of uninitialised value of size ",
    "Syscall param ",
    "Source and destination overlap in ",
    "Argument '",
    "Jump to the invalid address ",
    "Process terminating with default action of signal ",
    "Possible data race during ",
    "Conflicting load by thread ",
    "Conflicting store by thread ",
    "Thread #",
    "Illegal memory pool address",
    "realloc() with size 0",
];

/// Whether a line is the first of an error.
pub(super) fn is_head(line: &str) -> bool {
    let Some((_, text)) = marked(line) else { return false };
    let is_loss = || {
        text.contains(" bytes in ") && text.contains(" are ") && text.contains(" lost in loss record ")
            || text.contains(" in loss record ") && text.contains(" blocks are ")
    };
    // Helgrind numbers threads in lines of other kinds, too.
    ERRORS.iter().any(|begin| text.starts_with(begin) && (*begin != "Thread #" || text.contains(": ")))
        || is_loss()
}

/// Reads such a report.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = Valgrind { log: Log::new(Source::Sanitizer, limits), title: None, has_rows: false };
    drive(&mut reader, input, start);
    let mut report = reader.log.finish();
    report.exception.as_ref()?;
    report.process.crashed_thread = (!report.process.threads.is_empty()).then_some(0);
    Some(report)
}

struct Valgrind<'l> {
    log: Log<'l>,
    /// The last line before rows, which says what their stack is.
    title: Option<String>,
    has_rows: bool,
}

impl<'l> Reader<'l> for Valgrind<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        let Some((pid, said)) = marked(text) else {
            self.printed(text);
            return false;
        };
        let said = said.trim();
        if let Some(row) = Row::read(said) {
            return self.row(&row, line);
        }
        if self.has_rows {
            self.log.end_stack();
            self.has_rows = false;
        }
        if let Some(command) = said.strip_prefix("Command: ") {
            let program = command.split(' ').next().unwrap_or(command);
            let process = &mut self.log.report.process;
            process.name.get_or_insert_with(|| file_name(program).to_owned());
            process.command_line.get_or_insert_with(|| command.to_owned());
        }
        if is_head(text) {
            self.head(pid, said);
        } else if !said.is_empty() {
            self.facts(said);
            self.title = Some(said.to_owned());
        }
        false
    }
}

impl Valgrind<'_> {
    /// What the program itself printed before its end.
    fn printed(&mut self, text: &str) {
        let said = &mut self.log.report.app_info;
        let has_room = said.len() < MAX_SAID;
        let goes_on = last_words::goes_on(said.last_mut().and_then(|info| info.lines.last_mut()), text);
        if !goes_on && has_room && last_words::is_librarys(text) {
            last_words::add(&mut self.log.report, text);
        }
    }

    fn head(&mut self, pid: u64, said: &str) {
        self.title = Some(said.to_owned());
        let report = &mut self.log.report;
        if report.exception.is_some() {
            return;
        }
        report.process.pid = Some(pid);
        let signal = said.split_once("(SIG").and_then(|(_, rest)| rest.split_once(')'));
        report.exception = Some(Exception {
            kind: Some("Valgrind".to_owned()),
            subtype: Some(short(said).to_owned()),
            signal: signal.map(|(name, _)| format!("SIG{name}")),
            message: Some(said.to_owned()),
            ..Exception::default()
        });
        report.app_info.push(AppInfo { image: None, lines: vec![said.to_owned()] });
    }

    /// `Address 0x5203d98 is 120 bytes inside a block of size 240 free'd`.
    fn facts(&mut self, said: &str) {
        let Some(exception) = self.log.report.exception.as_mut().filter(|it| it.codes.is_none()) else {
            return;
        };
        let is_address = said.starts_with("Address 0x")
            || said.starts_with("Access not within mapped region at ")
            || said.starts_with("General Protection Fault")
            || said.starts_with("Jump to ");
        if is_address {
            let at = said.find("0x").and_then(|at| said.get(at..));
            exception.codes = Some(said.to_owned());
            exception.address =
                exception.address.or_else(|| hex(word(at?).0.trim_end_matches(',')).map(Avma::new));
            let size =
                exception.message.as_deref().and_then(|said| said.rsplit_once(" of size ")?.1.parse().ok());
            if let Some(subtype) = &mut exception.subtype
                && let Some(what) = block(said).or_else(|| beyond(said, size?))
            {
                *subtype = format!("{subtype} {what}");
            }
        }
    }

    fn row(&mut self, row: &Row<'_>, line: &Line<'_>) -> bool {
        if self.log.report.exception.is_none() {
            return false;
        }
        if (!self.has_rows || row.is_first) && !self.begin() {
            return false;
        }
        self.has_rows = true;
        let index = self.log.next_index();
        let frame = Frame { span: Some(line.span.clone()), ..row.frame(index) };
        // Functions at one address: the inner ones are inlined.
        if let Some(before) = self.log.frames().and_then(|frames| frames.last_mut())
            && before.address == frame.address
        {
            before.inlined = true;
        }
        let pushed = self.log.push(frame);
        if pushed && let Some(object) = row.object {
            return self.log.annotate(&format!("from {object}"));
        }
        pushed
    }

    fn begin(&mut self) -> bool {
        let process = &self.log.report.process;
        if process.threads.is_empty() && process.backtraces.is_empty() {
            self.title = None;
            return self.log.begin_thread(Thread { crashed: true, ..Thread::default() });
        }
        self.log.begin_backtrace(self.title.take().unwrap_or_else(|| "Stack".to_owned()), false)
    }
}

/// So many messages of the program's are kept apart from the text.
const MAX_SAID: usize = 16;

/// An error without what differs from one time to the next: `Invalid read`, `memory definitely lost`.
fn short(said: &str) -> &str {
    if said.contains(" lost in loss record ") || said.contains(" in loss record ") {
        let kinds = ["definitely lost", "indirectly lost", "possibly lost", "still reachable"];
        return kinds.into_iter().find(|kind| said.contains(kind)).unwrap_or("memory lost");
    }
    if let Some((before, _)) = said.split_once(" of size ") {
        return before;
    }
    if said.starts_with("Possible data race ") {
        return "Possible data race";
    }
    said.split_once(" with default action of signal ").map_or(said, |(before, _)| before)
}

/// Whether an access of so many bytes goes beyond the block that it begins in: `Address 0x64acad0 is 0 bytes inside a block of size 2
/// alloc'd`.
fn beyond(said: &str, size: u64) -> Option<&'static str> {
    let (_, rest) = said.split_once(" is ")?;
    let (offset, rest) = rest.split_once(" bytes inside a block of size ")?;
    let number = |digits: &str| digits.replace(',', "").parse::<u64>().ok();
    let end = number(offset)?.checked_add(size)?;
    (end > number(word(rest).0)?).then_some("behind a block")
}

/// What an address is of: a block that was freed, the end of one.
fn block(said: &str) -> Option<&'static str> {
    match said {
        // These words also end in "free'd".
        _ if said.contains(" is not stack'd, malloc'd or (recently) free'd") => {
            Some("where there is no block")
        }
        _ if said.ends_with(" free'd") => Some("of freed memory"),
        _ if said.contains(" bytes after a block of size ") => Some("behind a block"),
        _ if said.contains(" bytes before a block of size ") => Some("before a block"),
        _ => None,
    }
}

/// `at 0x10BDFB: btree_find (btree.c:977)`, `by 0x4842AD6: memmove (in /usr/lib/x.so)`, `by 0x1FFEFFFFB7: ???`.
struct Row<'t> {
    is_first: bool,
    address: u64,
    name: &'t str,
    place: Option<SourcePlace<'t>>,
    object: Option<&'t str>,
}

impl<'t> Row<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let (how, rest) = word(text);
        let is_first = match how {
            "at" => true,
            "by" => false,
            _ => return None,
        };
        let (address, rest) = rest.split_once(": ")?;
        let address = hex(address)?;
        let (name, inside) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
            Some((name, inside)) => (name, inside),
            None => (rest, ""),
        };
        let object = inside.strip_prefix("in ");
        Some(Self { is_first, address, name, place: place(inside).filter(|_| object.is_none()), object })
    }

    fn frame(&self, index: u32) -> Frame {
        let mut frame = named(index, self.name, self.place);
        if self.name == "???" {
            frame.reported = None;
        }
        // Rows of callers state the call, not the address behind it.
        frame.address = Some(FrameAddress::Exact(Avma::new(self.address)));
        frame.image_name = self.object.map(|object| file_name(object).to_owned());
        frame
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    const FREED: &str = "==12== Memcheck, a memory error detector\n==12== Command: ./shop 7\n==12== \n==12== Invalid read of size 8\n==12==    at 0x10BDFB: price (shop.c:12)\n==12==    by 0x109CF7: main (main.c:3)\n==12==  Address 0x5203d98 is 8 bytes inside a block of size 24 free'd\n==12==    at 0x4C2E10B: free (in /usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so)\n==12==    by 0x10BDEA: drop (shop.c:30)\n==12==    by 0x10BDEA: done (shop.c:40)\n==12==  Block was alloc'd at\n==12==    at 0x4C2EEF5: malloc (vg_replace_malloc.c:711)\n==12==    by 0x10A7CE: load (shop.c:5)\n==12== \n==12== HEAP SUMMARY:\n";

    #[test]
    fn an_access_with_its_stacks() {
        let report = parse(FREED.as_bytes(), &Limits::default()).unwrap();
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(exception.subtype.as_deref(), Some("Invalid read of freed memory"));
        assert_eq!(exception.address.map(backtrail_core::Avma::get), Some(0x520_3d98));
        assert_eq!((report.process.name.as_deref(), report.process.pid), (Some("shop"), Some(12)));
        assert_eq!(report.crashed().unwrap().frames.len(), 2);
        let stacks: Vec<_> =
            report.process.backtraces.iter().map(|it| (it.title.as_str(), it.frames.len())).collect();
        assert_eq!(
            stacks,
            [
                ("Address 0x5203d98 is 8 bytes inside a block of size 24 free'd", 3),
                ("Block was alloc'd at", 2)
            ]
        );
        assert!(report.process.backtraces[0].frames[1].inlined);
    }

    #[test]
    fn each_error_is_a_report() {
        let twice = format!(
            "{FREED}==12== 24 bytes in 1 blocks are definitely lost in loss record 1 of 2\n==12==    at 0x4C2EEF5: malloc (vg_replace_malloc.c:711)\n==12==    by 0x10A7CE: load (shop.c:5)\n"
        );
        let documents = crate::documents(twice.as_bytes());
        let found = documents
            .iter()
            .map(|it| parse(&it.bytes, &Limits::default()).unwrap().exception.unwrap().subtype.unwrap());
        assert_eq!(found.collect::<Vec<_>>(), ["Invalid read of freed memory", "definitely lost"]);
        assert!(
            parse(b"==12== HEAP SUMMARY:\n==12== All heap blocks were freed\n", &Limits::default()).is_err()
        );
    }
}
