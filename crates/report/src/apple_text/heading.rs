//! Lines that open a block.

/// A line that opens a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heading<'t> {
    /// `Thread 3:`, `Thread 3 Crashed:`, `Thread 3 Crashed:: name  Dispatch queue: q`.
    Thread { number: u64, crashed: bool, label: Label<'t> },
    /// `Thread 3 name:  name`, a line before the former.
    ThreadName { number: u64, label: Label<'t> },
    /// `Thread 3 crashed with ARM Thread State (64-bit):`, and what it says of the state.
    ThreadState { number: Option<u64>, flavor: &'t str },
    /// `Last Exception Backtrace:`.
    LastException,
    /// `Application Specific Backtrace 1:`, with that title.
    AppBacktrace(&'t str),
    /// `Application Specific Information:`, and what stands behind it on the line.
    AppInfo(&'t str),
    /// `Binary Images:`.
    BinaryImages,
    /// A further list of images under a title of its own: `Kernel Binary Images:`.
    MoreImages(&'t str),
    /// A titled block of text, with what stands behind the title on the line.
    Section { title: &'t str, rest: &'t str },
    /// `EOF`.
    End,
}

/// What a thread is called.
#[derive(Debug, PartialEq, Eq, Default, Clone, Copy)]
pub(crate) struct Label<'t> {
    pub(crate) name: Option<&'t str>,
    pub(crate) queue: Option<&'t str>,
}

/// Titles of the text blocks that Apple's systems write, without what varies behind them.
const SECTIONS: [&str; 20] = [
    "Application Specific Signatures",
    "Dyld Error Message",
    "Dyld Error Information",
    "Error Formulating Crash Report",
    "External Modification Summary",
    "External Modification Warnings",
    "Filtered syslog",
    "Full Report",
    "Global Trace Buffer (reverse chronological seconds)",
    "kernel messages",
    "Kernel Triage",
    "Notes",
    "Objective-C garbage collection",
    "System Profile",
    "Thread State",
    "Trial Info",
    "VM Region Info",
    "VM Region Summary",
    "VM Regions Near",
    "VM region map",
];

impl<'t> Heading<'t> {
    /// Reads a line, without blanks around it. `fresh` says whether it may open a block that only looks like one: a
    /// blank line stands before it, or a stack.
    pub(crate) fn read(text: &'t str, fresh: bool) -> Option<Self> {
        if text == "EOF" {
            return Some(Self::End);
        }
        if let Some(heading) = thread_heading(text, fresh) {
            return Some(heading);
        }
        if let Some(flavor) = text.strip_prefix("Unknown thread crashed with ") {
            return Some(Self::ThreadState { number: None, flavor: flavor.trim_end_matches(':') });
        }
        let (title, rest) = text.split_once(':')?;
        let rest = rest.trim();
        match title {
            "Last Exception Backtrace" => Some(Self::LastException),
            // One tool that translates `.ips` leaves the colon's neighbours out; the bare words come with it.
            "Binary Images" => Some(Self::BinaryImages),
            _ if title.len() <= 80 && title.contains("Binary Images") && rest.is_empty() => {
                Some(Self::MoreImages(title))
            }
            "Application Specific Information" => Some(Self::AppInfo(rest)),
            _ if title.starts_with("Application Specific Backtrace") => Some(Self::AppBacktrace(title)),
            _ if is_section(title) => Some(Self::Section { title, rest }),
            _ => None,
        }
    }

    /// A line that titles a block of a kind that is not known: short, at the margin, nothing behind its colon.
    pub(crate) fn unknown_section(line: &'t str) -> Option<Self> {
        let title = line.trim_end().strip_suffix(':')?;
        let starts_well = title.starts_with(|first: char| first.is_alphanumeric());
        let is_title = starts_well && title.len() <= 80 && !title.contains(':');
        is_title.then_some(Self::Section { title, rest: "" })
    }
}

fn is_section(title: &str) -> bool {
    SECTIONS.contains(&title) || title.starts_with("VM Regions Near ")
}

fn thread_heading(text: &str, fresh: bool) -> Option<Heading<'_>> {
    let rest = text.strip_prefix("Thread ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(digits);
    let number = number.parse().ok()?;
    if let Some(label) = rest.strip_prefix(" name:") {
        return Some(Heading::ThreadName { number, label: Label::read(label) });
    }
    if let Some(flavor) = rest.strip_prefix(" crashed with ") {
        return Some(Heading::ThreadState { number: Some(number), flavor: flavor.trim_end_matches(':') });
    }
    let marks = [" Crashed", " Highlighted", " Attributed"];
    let marked = marks.iter().find_map(|mark| rest.strip_prefix(mark));
    if let Some(label) = marked.unwrap_or(rest).strip_prefix(':') {
        let label = label.strip_prefix(':').map_or((label, false), |label| (label, true));
        // `Thread 3: some words` in running text is no heading.
        let sure = label.1 || marked.is_some() || label.0.trim().is_empty() || fresh;
        let crashed = marked.is_some();
        return sure.then(|| Heading::Thread { number, crashed, label: Label::read(label.0) });
    }
    let blocks = [" instruction stream", " last branch register state"];
    let opens = blocks.iter().any(|block| rest.starts_with(block));
    let (title, rest) = text.rsplit_once(':').filter(|_| opens)?;
    Some(Heading::Section { title, rest: rest.trim() })
}

impl<'t> Label<'t> {
    /// `name  Dispatch queue: queue`, either of which may be missing. macOS 26 capitalizes the queue's word.
    pub(crate) fn read(text: &'t str) -> Self {
        let marks = ["Dispatch queue:", "Dispatch Queue:"];
        let parts = marks.iter().find_map(|mark| text.split_once(mark));
        let (name, queue) = parts.map_or((text, None), |(name, queue)| (name, Some(queue.trim())));
        let name = name.trim().trim_end_matches(',');
        Self { name: (!name.is_empty()).then_some(name), queue: queue.filter(|queue| !queue.is_empty()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread<'t>(number: u64, crashed: bool, name: Option<&'t str>, queue: Option<&'t str>) -> Heading<'t> {
        Heading::Thread { number, crashed, label: Label { name, queue } }
    }

    #[test]
    fn thread_headings_of_all_writers() {
        let main = Some("com.apple.main-thread");
        for (text, expected) in [
            ("Thread 0:", thread(0, false, None, None)),
            ("Thread 12 Crashed:", thread(12, true, None, None)),
            ("Thread 0 Crashed:: Dispatch queue: com.apple.main-thread", thread(0, true, None, main)),
            (
                "Thread 0 Crashed:: main  Dispatch queue: com.apple.main-thread",
                thread(0, true, Some("main"), main),
            ),
            (
                "Thread 3:: caulk.messenger.shared:17",
                thread(3, false, Some("caulk.messenger.shared:17"), None),
            ),
            ("Thread 1 Crashed: Test Thread Name", thread(1, true, Some("Test Thread Name"), None)),
            ("Thread 2 Highlighted:", thread(2, true, None, None)),
        ] {
            assert_eq!(Heading::read(text, false), Some(expected), "{text}");
        }
        assert_eq!(Heading::read("Thread 1: signal SIGABRT", false), None);
        assert!(Heading::read("Thread 1: signal SIGABRT", true).is_some());
    }

    #[test]
    fn thread_names() {
        let heading = Heading::read(
            "Thread 6 name:  Dispatch queue: NSOperationQueue 0x1 :: NSOperation 0x2 (QOS: X)",
            false,
        );
        let queue = Some("NSOperationQueue 0x1 :: NSOperation 0x2 (QOS: X)");
        assert_eq!(heading, Some(Heading::ThreadName { number: 6, label: Label { name: None, queue } }));
        let heading = Heading::read("Thread 1 name: AFNetworking", false);
        let label = Label { name: Some("AFNetworking"), queue: None };
        assert_eq!(heading, Some(Heading::ThreadName { number: 1, label }));
    }

    #[test]
    fn blocks() {
        let state = Heading::ThreadState { number: Some(0), flavor: "ARM Thread State (64-bit)" };
        assert_eq!(Heading::read("Thread 0 crashed with ARM Thread State (64-bit):", false), Some(state));
        let state = Heading::ThreadState { number: None, flavor: "X86 Thread State (64-bit)" };
        assert_eq!(
            Heading::read("Unknown thread crashed with X86 Thread State (64-bit):", false),
            Some(state)
        );
        assert_eq!(Heading::read("Binary Images:", false), Some(Heading::BinaryImages));
        let more = Some(Heading::MoreImages("Kernel Binary Images"));
        assert_eq!(Heading::read("Kernel Binary Images:", false), more);
        assert_eq!(Heading::read("Last Exception Backtrace:", false), Some(Heading::LastException));
        let title = "Application Specific Backtrace 1";
        assert_eq!(
            Heading::read("Application Specific Backtrace 1:", false),
            Some(Heading::AppBacktrace(title))
        );
        let section = Heading::Section { title: "VM Regions Near 0x11212c000", rest: "" };
        assert_eq!(Heading::read("VM Regions Near 0x11212c000:", false), Some(section));
        let section = Heading::Section { title: "Thread 0 instruction stream", rest: "" };
        assert_eq!(Heading::read("Thread 0 instruction stream:", false), Some(section));
        assert_eq!(Heading::read("EOF", false), Some(Heading::End));
        assert_eq!(Heading::read("Some words: more", true), None);
        assert!(Heading::unknown_section("Xamarin Exception Stack:").is_some());
        assert!(Heading::unknown_section("dyld: in dlopen()").is_none());
        assert!(Heading::unknown_section("  indented:").is_none());
    }
}
