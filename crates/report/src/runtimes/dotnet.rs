//! .NET: unhandled exceptions with their inner ones.
//!
//! The heads stand in one line or several, outermost first (`---> `); then the rows of the innermost, and behind each
//! `End of inner exception stack trace` those of the next further out.

use super::log::{Log, Reader, SourcePlace, drive, named};
use super::native_row::NativeRow;
use crate::Limits;
use crate::apple_text::Line;
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{AppInfo, Exception, Frame, Language, Report, Source, Thread};

const HEADS: [&str; 3] = ["Unhandled exception. ", "Unhandled Exception: ", EVENT];

/// As an event of Windows begins it, where a fault in machine code stands as `exception code c0000005, …`.
const EVENT: &str = "Exception Info: ";

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = DotNet::new(Source::DotNetException, limits);
    drive(&mut reader, input, start);
    if reader.has_head() { Some(reader.finish()) } else { native_crash(input, start, limits) }
}

/// What Mono prints where machine code got a signal: `Got a SIGSEGV while executing native code. …`.
fn signal(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("Got a ")?.split_once(" while executing native code")?;
    name.starts_with("SIG").then_some(name)
}

/// Reads what Mono prints of such a crash: the stack of machine code, and that of methods which called it.
fn native_crash(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = NativeCrash { log: Log::new(Source::DotNetException, limits) };
    drive(&mut reader, input, start);
    let mut report = reader.log.finish();
    report.exception.as_ref()?;
    report.process.backtraces.retain(|stack| !stack.frames.is_empty());
    report.process.crashed_thread = (!report.process.threads.is_empty()).then_some(0);
    Some(report)
}

struct NativeCrash<'l> {
    log: Log<'l>,
}

impl<'l> Reader<'l> for NativeCrash<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if let Some(name) = signal(text) {
            self.log.report.exception.get_or_insert_with(|| Exception {
                kind: Some("Mono crashed".to_owned()),
                signal: Some(name.to_owned()),
                message: Some(format!("{name} in machine code")),
                ..Exception::default()
            });
            return false;
        }
        match text {
            "Stacktrace:" | "Managed Stacktrace:" => {
                self.log.begin_backtrace("Managed stack", false);
                return false;
            }
            "Native stacktrace:" => {
                self.log.begin_thread(Thread { crashed: true, ..Thread::default() });
                return false;
            }
            _ => {}
        }
        let frame = mono_row(text)
            .or_else(|| colon_row(text))
            .or_else(|| NativeRow::read(text).map(|row| row.frame(0)))
            .or_else(|| apple_row(text));
        let Some(frame) = frame.filter(|_| self.log.is_in_stack()) else { return false };
        let index = self.log.next_index();
        self.log.push(Frame { index, span: Some(line.span.clone()), ..frame })
    }
}

/// A row of newer Monos: `at N.C:M <0x0008f>`, `at <unknown> <0xffffffff>`.
fn colon_row(line: &str) -> Option<Frame> {
    let (name, offset) = line.strip_prefix("at ")?.rsplit_once(" <0x")?;
    let offset =
        offset.strip_suffix('>').filter(|offset| offset.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let mut frame = frame_of(name, "", None);
    if name == "<unknown>" {
        frame.reported = None;
    }
    frame.annotations.push(format!("0x{offset}"));
    Some(frame)
}

/// A row of Apple's `backtrace_symbols`: `0   libmonosgen-2.0.dylib  0x0000000103b1a4f0 mono_handle_native_crash + 240`.
fn apple_row(line: &str) -> Option<Frame> {
    let (number, rest) = super::log::word(line);
    let (image, rest) = super::log::word(rest);
    let (address, rest) = super::log::word(rest);
    number.parse::<u32>().ok()?;
    let address = super::log::hex(address)?;
    let (name, offset) = rest.rsplit_once(" + ")?;
    let mut frame = named(0, name, None);
    match &mut frame.reported {
        Some(symbol) if name != "<redacted>" => symbol.offset = offset.parse().ok(),
        _ => frame.reported = None,
    }
    frame.address = Some(FrameAddress::Return(Avma::new(address)));
    frame.image_name = Some(image.to_owned());
    Some(frame)
}

/// The reader of an exception's heads and rows.
pub(super) struct DotNet<'l> {
    log: Log<'l>,
    heads: Vec<String>,
    /// Those whose rows are still to come, innermost last.
    order: Vec<usize>,
    /// Of each stack, whose rows it has.
    stacks: Vec<usize>,
    /// Whether rows may follow that belong to no exception: those of a fault in machine code, and of `FailFast`.
    has_stack: bool,
    /// Visual Studio's window: whether the next line is an inner exception.
    is_inner_next: bool,
    /// How many heads are an event's. .NET Framework writes one for each exception of a chain, innermost first.
    events: usize,
    /// An exception's class alone in the line before: some programs' windows have it so, below its message.
    class_alone: Option<String>,
    line_before: String,
}

impl<'l> DotNet<'l> {
    pub(super) fn new(source: Source, limits: &'l Limits) -> Self {
        Self {
            log: Log::new(source, limits),
            heads: Vec::new(),
            order: Vec::new(),
            stacks: Vec::new(),
            has_stack: false,
            is_inner_next: false,
            events: 0,
            class_alone: None,
            line_before: String::new(),
        }
    }

    /// Whether an exception was named.
    pub(super) fn has_head(&self) -> bool {
        !self.heads.is_empty()
    }

    /// Whether a stack was begun.
    pub(super) fn has_rows(&self) -> bool {
        !self.stacks.is_empty()
    }

    /// Names what ended the program.
    pub(super) fn add_head(&mut self, head: String) {
        if self.heads.is_empty() {
            self.order.push(0);
            self.heads.push(head);
        }
    }

    pub(super) fn finish(self) -> Report {
        let DotNet { mut log, mut heads, mut stacks, events, .. } = self;
        if events > 1 && events == heads.len() {
            heads.reverse();
            stacks.iter_mut().for_each(|at| *at = heads.len().saturating_sub(*at + 1));
        }
        for (stack, at) in log.report.process.backtraces.iter_mut().zip(&stacks) {
            let head = heads.get(*at).map_or("Stack", String::as_str);
            stack.title = if *at == 0 { head.to_owned() } else { format!("Inner exception: {head}") };
        }
        let Some(outermost) = heads.first() else { return log.finish() };
        let (kind, message) = outermost.split_once(": ").unwrap_or((outermost, ""));
        log.report.exception = Some(Exception {
            kind: Some(kind.trim_end_matches(':').to_owned()),
            message: Some(message.to_owned()).filter(|message| !message.is_empty()),
            ..Exception::default()
        });
        log.report.app_info.push(AppInfo { image: None, lines: heads.clone() });
        // Outermost first.
        let backtraces = &mut log.report.process.backtraces;
        backtraces.reverse();
        // Some exceptions only carry the one that matters out of reflection, markup, tasks or a type's initialisation.
        let innermost = backtraces.len().saturating_sub(1);
        let at = if is_carrier(kind) { innermost } else { 0 };
        if let Some(stack) = backtraces.get_mut(at) {
            stack.is_exception = true;
        }
        log.finish()
    }
}

/// Whether .NET's library throws an exception of that class only to hand on another one (its `InnerException`).
fn is_carrier(kind: &str) -> bool {
    const CARRIERS: [&str; 4] = [
        "System.Reflection.TargetInvocationException",
        "System.Windows.Markup.XamlParseException",
        "System.AggregateException",
        "System.TypeInitializationException",
    ];
    CARRIERS.contains(&kind.trim_end_matches(':'))
}

/// Lines by which a text is told to be of this kind. An event of Windows is asked for before.
pub(super) fn is_sure(line: &str) -> bool {
    let rest = HEADS.iter().find_map(|head| line.strip_prefix(head));
    signal(line).is_some()
        || unity_row(line).is_some()
        || line.starts_with("HResult=0x")
        || rest.is_some_and(|rest| {
            let name = rest.split([':', ' ']).next().unwrap_or_default();
            name.contains('.') || name.ends_with("Exception")
        })
}

impl<'l> Reader<'l> for DotNet<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let trimmed = text.trim();
        let announced = HEADS
            .iter()
            .find_map(|head| trimmed.strip_prefix(head))
            .filter(|head| !head.starts_with("exception code "));
        self.has_stack |= trimmed == "Stack:" || trimmed.starts_with("Exception Info: exception code ");
        // Mono prints an exception without words before it.
        let head = announced
            .or_else(|| head(trimmed))
            .filter(|_| self.heads.is_empty() || trimmed.starts_with(EVENT));
        if let Some(head) = head.or(trimmed.strip_prefix("---> ")) {
            if trimmed.starts_with(EVENT) {
                self.log.end_stack();
                self.order.clear();
                self.events += 1;
            }
            if self.heads.len() < 100 {
                for part in head.split(" ---> ") {
                    self.order.push(self.heads.len());
                    self.heads.push(part.to_owned());
                }
            }
            return false;
        }
        // Visual Studio's window of an exception has its members in lines of their own.
        if let Some(message) = trimmed.strip_prefix("Message=")
            && let Some(head) = self.heads.last_mut().filter(|head| !head.contains(": "))
        {
            head.push_str(": ");
            head.push_str(message);
            return false;
        }
        if trimmed.starts_with("Inner Exception ") && trimmed.ends_with(':') {
            self.is_inner_next = true;
            return false;
        }
        if std::mem::take(&mut self.is_inner_next) && !trimmed.is_empty() && self.heads.len() < 100 {
            self.heads.push(trimmed.to_owned());
            return false;
        }
        if trimmed.starts_with("--- End of inner exception stack trace") {
            self.log.end_stack();
            self.order.pop();
            return false;
        }
        let frame = row(trimmed);
        if let Some(class) = self.class_alone.take().filter(|_| frame.is_some() && self.heads.is_empty()) {
            self.add_head(match self.line_before.trim() {
                "" => class,
                message => format!("{class}: {message}"),
            });
        }
        if frame.is_none() && !trimmed.is_empty() {
            let is_class =
                trimmed.ends_with("Exception") && trimmed.bytes().all(|byte| byte.is_ascii_alphanumeric());
            match is_class {
                true => self.class_alone = Some(trimmed.to_owned()),
                false if self.heads.is_empty() && trimmed.len() <= 1024 => {
                    self.line_before.clear();
                    self.line_before.push_str(trimmed);
                }
                false => {}
            }
        }
        let Some(frame) = frame.filter(|_| !self.heads.is_empty() || self.has_stack) else {
            return false;
        };
        if !self.log.is_in_stack() {
            let at = self.order.last().copied().unwrap_or(0);
            if !self.log.begin_backtrace("", false) {
                return false;
            }
            self.stacks.push(at);
        }
        let index = self.log.next_index();
        self.log.push(Frame { index, span: Some(line.span.clone()), ..frame })
    }
}

/// A row as Unity shows it: `Shop.Cart.Total (System.Int32 count) (at Assets/Shop/Cart.cs:12)`, and with two colons those of its own
/// log: `UnityEngine.Debug:Log (object) (at …)`.
fn unity_row(line: &str) -> Option<Frame> {
    let (call, at) = line.strip_suffix(')')?.rsplit_once(" (at ")?;
    let found = super::log::place(at).filter(|place| place.column.is_none())?;
    let (name, arguments) = call.strip_suffix(')')?.split_once(" (")?;
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace) && name.contains(['.', ':']);
    is_name.then(|| frame_of(name, arguments, Some(found)))
}

/// A row of code that ILRuntime interprets (hot updates of Unity's games): `Shop.Cart.Total(Int32 count) D:/Shop/Cart.cs:Line 12`.
fn interpreted_row(line: &str) -> Option<Frame> {
    let (before, number) = line.rsplit_once(":Line ")?;
    let (call, file) = before.split_once(") ")?;
    let (name, arguments) = call.split_once('(')?;
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace) && name.contains('.');
    let found = SourcePlace { file: file.trim(), line: number.trim().parse().ok()?, column: None };
    is_name.then(|| frame_of(name, arguments, Some(found)))
}

/// `at N.C.M(String s) in /src/c.cs:line 12`, Mono's rows, Unity's and ILRuntime's.
fn row(line: &str) -> Option<Frame> {
    if let Some(frame) = mono_row(line).or_else(|| unity_row(line)).or_else(|| interpreted_row(line)) {
        return Some(frame);
    }
    if let Some(frame) = local_row(line) {
        return Some(frame);
    }
    let rest = line.strip_prefix("at ")?;
    let (call, at) = rest.split_once(") in ").map_or((rest, None), |(call, at)| (call, Some(at)));
    let (name, arguments) = call.split_once('(')?;
    let found = at.and_then(|at| at.rsplit_once(":line ")).map(|(file, line)| SourcePlace {
        file,
        line: line.parse().unwrap_or(0),
        column: None,
    });
    Some(frame_of(name, arguments.trim_end_matches(')'), found))
}

/// A row in another language, as .NET Framework has them for the user: `à N.C.M(String s) dans c:\\src\\c.cs:ligne 12`.
///
/// Sources: the resources `Word_At` and `StackTrace_InFileLineNumber` of `mscorlib.resources`.
pub(super) fn local_row(line: &str) -> Option<Frame> {
    /// The words for `at`, `in` and `line`: Czech, German, Spanish, French, Italian, Dutch, Polish, Portuguese, Russian, Swedish and
    /// Danish, Turkish, Chinese, Japanese, Korean.
    const WORDS: [(&str, &str, &str); 18] = [
        ("à ", ") dans ", ":ligne "),
        ("bei ", ") in ", ":Zeile "),
        ("v ", ") v ", ":řádek "),
        ("en ", ") en ", ":línea "),
        ("in ", ") in ", ":riga "),
        ("bij ", ") in ", ":regel "),
        ("w ", ") w ", ":wiersz "),
        ("em ", ") em ", ":linha "),
        ("em ", ") na ", ":linha "),
        ("в ", ") в ", ":строка "),
        ("vid ", ") i ", ":rad "),
        ("ved ", ") i ", ":linje "),
        ("konum: ", ") ", ": satır "),
        ("在 ", ") 位置 ", ":行号 "),
        ("於 ", ") 於 ", ": 行 "),
        ("場所 ", ") 場所 ", ":行 "),
        ("위치: ", ") 파일 ", ":줄 "),
        ("konum ", ") içinde ", ":satır "),
    ];
    // This is asked of every line.
    match line.as_bytes() {
        [0xc3 | 0xd0 | 0xe4..=0xed, ..]
        | [b'b', b'e' | b'i', ..]
        | [b'v', b' ' | b'i' | b'e', ..]
        | [b'e', b'n' | b'm', b' ', ..]
        | [b'i', b'n', b' ', ..]
        | [b'w', b' ', ..]
        | [b'k', b'o', b'n', ..] => {}
        _ => return None,
    }
    WORDS.iter().find_map(|(at, within, number)| {
        let rest = line.strip_prefix(at)?;
        let (call, place) = rest.split_once(within).map_or((rest, None), |(call, place)| (call, Some(place)));
        let (name, arguments) = call.split_once('(')?;
        let arguments = if place.is_some() { arguments } else { arguments.strip_suffix(')')? };
        // Types have names in front of theirs, which prose has not.
        let is_name = name.contains('.')
            && !name.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '\\' | ':'))
            && name.starts_with(|first: char| first.is_alphabetic() || matches!(first, '_' | '<'));
        let are_types = arguments.is_empty()
            || arguments.split(", ").all(|it| it.trim().contains(' ') && !it.contains('='));
        let found = place.and_then(|place| place.rsplit_once(number)).map(|(file, line)| SourcePlace {
            file,
            line: line.trim().parse().unwrap_or(0),
            column: None,
        });
        let is_row =
            is_name && are_types && !arguments.contains(['(', ')']) && found.is_some() == place.is_some();
        is_row.then(|| frame_of(name, arguments, found))
    })
}

fn frame_of(name: &str, arguments: &str, place: Option<SourcePlace<'_>>) -> Frame {
    let mut frame = named(0, name.trim(), place);
    frame.language = Some(Language::DotNet);
    frame.annotations.extend((!arguments.is_empty()).then(|| format!("({arguments})")));
    frame
}

/// Mono's rows, which nothing else writes: the offset in the method's IL or machine code, and the module's id where the file
/// is not known.
///
/// `at N.C.M (System.String s) [0x00012] in <5d1f…>:0`, `at N.C.M () <0x4012ab + 0x0005b> in /src/c.cs:44`,
/// `at (wrapper dynamic-method) N.C.M(intptr)`.
pub(super) fn mono_row(line: &str) -> Option<Frame> {
    let rest = line.trim().strip_prefix("at ")?;
    let (wrapper, rest) = match rest.strip_prefix("(wrapper ") {
        Some(behind) => behind.split_once(") ").map(|(kind, rest)| (Some(kind), rest))?,
        None => (None, rest),
    };
    let opening = rest.find('(')?;
    let (name, behind) = rest.split_at_checked(opening)?;
    let is_name = !name.trim().is_empty() && !name.trim().contains(char::is_whitespace);
    // Types of arguments have no parentheses.
    let (arguments, behind) = behind.strip_prefix('(')?.split_once(')')?;
    let behind = behind.trim();
    let offset = match behind.as_bytes() {
        [b'[', b'0', b'x', ..] => behind.split_once(']'),
        [b'<', b'0', b'x', ..] => behind.split_once('>'),
        _ => None,
    };
    if !is_name || (offset.is_none() && wrapper.is_none()) {
        return None;
    }
    let (offset, at) = offset.map_or(("", behind), |(offset, at)| (offset, at));
    let at = at.trim().strip_prefix("in ").unwrap_or_default().trim();
    let found = super::log::place(at).filter(|place| !place.file.starts_with('<') && place.column.is_none());
    let mut frame = frame_of(name, arguments, found);
    frame.annotations.extend(wrapper.map(|kind| format!("wrapper {kind}")));
    frame.annotations.extend((!offset.is_empty()).then(|| offset.trim_start_matches(['[', '<']).to_owned()));
    frame.annotations.extend((found.is_none() && !at.is_empty()).then(|| format!("in {at}")));
    Some(frame)
}

/// Exceptions that Unity's log names without their namespace.
const UNITYS: [&str; 14] = [
    "ArgumentException",
    "ArgumentNullException",
    "ArgumentOutOfRangeException",
    "DivideByZeroException",
    "IndexOutOfRangeException",
    "InvalidCastException",
    "InvalidOperationException",
    "KeyNotFoundException",
    "MissingMethodException",
    "MissingReferenceException",
    "NotImplementedException",
    "NullReferenceException",
    "TypeLoadException",
    "UnassignedReferenceException",
];

/// The exception that a line names: `System.InvalidOperationException: Cart is empty`.
pub(super) fn head(line: &str) -> Option<&str> {
    /// What names of Java begin with, which are of the same form; namespaces of .NET hardly begin so.
    const JAVAS: [&str; 8] =
        ["java.", "javax.", "kotlin.", "kotlinx.", "android.", "androidx.", "com.", "org."];
    let name = line.split([':', ' ']).next()?;
    if JAVAS.iter().any(|begin| name.starts_with(begin)) {
        return None;
    }
    // Unity leaves the namespace of .NET's own out.
    let is_name = (name.contains('.') || UNITYS.contains(&name) && line.starts_with(&format!("{name}: ")))
        && name.ends_with("Exception")
        && name.split('.').all(|part| {
            part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_`+".contains(&byte))
        });
    is_name.then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn an_exception_of_mono() {
        let report = parse(
            b"System.InvalidOperationException: Cart is empty ---> System.NullReferenceException: Object reference\n  at Shop.Cart.Total (System.String currency) [0x00012] in <5d1f2e3a>:0 \n  at Shop.Cart+<Load>d__5.MoveNext () <0x4a + 0x5b> in /src/Shop/Cart.cs:44 \n   --- End of inner exception stack trace ---\n  at (wrapper dynamic-method) Android.Runtime.DynamicMethodNameCounter.43(intptr,intptr)\n",
            &Limits::default(),
        )
        .unwrap();
        assert_eq!(report.source, Source::DotNetException);
        let stacks: Vec<_> =
            report.process.backtraces.iter().map(|it| (it.title.as_str(), it.frames.len())).collect();
        assert_eq!(
            stacks,
            [
                ("System.InvalidOperationException: Cart is empty", 1),
                ("Inner exception: System.NullReferenceException: Object reference", 2)
            ]
        );
        let [total, load] = report.process.backtraces[1].frames.as_slice() else { panic!() };
        assert_eq!(total.reported.as_ref().unwrap().name, "Shop.Cart.Total");
        assert_eq!(total.annotations, ["(System.String currency)", "0x00012", "in <5d1f2e3a>:0"]);
        let symbol = load.reported.as_ref().unwrap();
        assert_eq!((symbol.name.as_str(), symbol.line), ("Shop.Cart+<Load>d__5.MoveNext", Some(44)));
        assert_eq!(symbol.file.as_deref(), Some("/src/Shop/Cart.cs"));
        for line in [
            "at a.b.C.d(C.java:3)",
            "at f (x.js:1:2)",
            "at N.C.M(String s) in /a/c.cs:line 3",
            "at noon (about) [0x1]",
        ] {
            let row = mono_row(line);
            assert!(row.is_none() || line.ends_with("[0x1]"), "{line}");
        }
    }

    #[test]
    fn an_inner_exception() {
        let report = parse(
            b"Unhandled exception. System.InvalidOperationException: outer\n ---> System.ArgumentException: inner\n   at App.B.F(String s) in /src/b.cs:line 4\n   --- End of inner exception stack trace ---\n   at App.Program.Main(String[] args) in /src/p.cs:line 9\n",
            &Limits::default(),
        )
        .unwrap();
        assert_eq!(
            report.exception.as_ref().unwrap().kind.as_deref(),
            Some("System.InvalidOperationException")
        );
        let stacks: Vec<_> = report
            .process
            .backtraces
            .iter()
            .map(|it| (it.title.as_str(), it.is_exception, it.frames.len()))
            .collect();
        assert_eq!(
            stacks,
            [
                ("System.InvalidOperationException: outer", true, 1),
                ("Inner exception: System.ArgumentException: inner", false, 1)
            ]
        );
        let frame = &report.process.backtraces[0].frames[0];
        let symbol = frame.reported.as_ref().unwrap();
        assert_eq!((symbol.name.as_str(), symbol.line), ("App.Program.Main", Some(9)));
    }

    #[test]
    fn a_crash_of_machine_code_below_mono() {
        let text = "=================================================================\n\tNative Crash Reporting\n=================================================================\nGot a SIGSEGV while executing native code. This usually indicates\na fatal error in the mono runtime or one of the native libraries \nused by your application.\n=================================================================\n\tNative stacktrace:\n=================================================================\n\t0x7fb9e3ca5f89 - /usr/lib/libmonosgen-2.0.so.1 : mono_handle_native_crash\n\t0x7fb9e3c5a5b1 - /opt/shop/libprice.so : price\n\n=================================================================\n\tManaged Stacktrace:\n=================================================================\n\t  at <unknown> <0xffffffff>\n\t  at Shop.Native:Price <0x00061>\n\t  at Shop.Cart:Total <0x0008f>\n";
        let report = crate::parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.exception.as_ref().unwrap().signal.as_deref(), Some("SIGSEGV"));
        let names = |frames: &[Frame]| {
            frames.iter().map(|it| it.reported.as_ref().map(|it| it.name.clone())).collect::<Vec<_>>()
        };
        let text = |name: &str| Some(name.to_owned());
        assert_eq!(
            names(&report.crashed().unwrap().frames),
            [text("mono_handle_native_crash"), text("price")]
        );
        assert_eq!(
            names(&report.process.backtraces[0].frames),
            [None, text("Shop.Native:Price"), text("Shop.Cart:Total")]
        );
    }
}
