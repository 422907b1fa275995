//! PHP: fatal errors and exceptions that nothing caught, as the command line, logs of servers, pages and Laravel's log have them.
//!
//! A row says which function was called, and where: that place is in its caller. The error's own place is where the innermost
//! function was.

use super::super::log::{Log, Reader, SourcePlace, drive};
use super::{Text, give_places_to_callers};
use crate::Limits;
use crate::apple_text::Line;
use crate::numbers::is_number;
use backtrail_model::{Language, Report};

/// What the first line says.
#[derive(PartialEq, Eq, Debug)]
struct Head<'t> {
    /// A class, or `Fatal error`.
    kind: &'t str,
    message: &'t str,
    /// Where it was thrown; a line that goes on has none yet.
    place: Option<(&'t str, u32)>,
    /// A stack that follows on the same line.
    stack: &'t str,
}

impl<'t> Head<'t> {
    /// Reads `PHP Fatal error:  Uncaught TypeError: … in FILE:LINE`, `Fatal error: Allowed memory size of … in FILE on line N`,
    /// Laravel's `… [object] (CLASS(code: 0): … at FILE:LINE)`.
    fn read(line: &'t str) -> Option<Self> {
        if let Some((_, rest)) = line.split_once("[object] (") {
            let (class, rest) = rest.split_once("(code: ")?;
            let (_, rest) = rest.split_once("): ")?;
            let (message, place) = rest.trim_end_matches([')', '"', '}']).rsplit_once(" at ")?;
            return Some(Self { kind: class, message, place: place_of(place), stack: "" });
        }
        let (kind, rest) = behind_kind(line)?;
        let rest = rest.trim_start();
        let (rest, stack) = rest.split_once(" Stack trace: ").unwrap_or((rest, ""));
        let Some(thrown) = rest.strip_prefix("Uncaught ") else {
            let (message, place) = rest.rsplit_once(" in ")?;
            return Some(Self { kind, message, place: Some(place_of(place)?), stack });
        };
        // PHP 5: `Uncaught exception 'E' with message 'text' in FILE:LINE`.
        if let Some((class, rest)) =
            thrown.strip_prefix("exception '").and_then(|rest| rest.split_once("' with message '"))
        {
            let (message, place) = rest.rsplit_once("' in ").unwrap_or((rest.trim_end_matches('\''), ""));
            return Some(Self { kind: class, message, place: place_of(place), stack });
        }
        let (class, text) = thrown.split_once(": ").unwrap_or((thrown, ""));
        let is_class =
            class.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'\\' | b'_' | 0x80..));
        let (message, place) = match text.rsplit_once(" in ") {
            Some((message, place)) if place_of(place).is_some() => (message, place_of(place)),
            _ => (text, None),
        };
        is_class.then_some(Self { kind: class, message, place, stack })
    }
}

/// What stands behind PHP's word for the error, and that word.
fn behind_kind(line: &str) -> Option<(&str, &str)> {
    const KINDS: [&str; 4] =
        ["Fatal error", "Parse error", "Recoverable fatal error", "Catchable fatal error"];
    const LOGGED: &str = "PHP message: ";
    let line = line.split_once(LOGGED).map_or(line, |(_, rest)| rest);
    let marked = line.find("PHP ").and_then(|at| line.get(at + 4..)).filter(|rest| {
        KINDS.iter().any(|kind| rest.strip_prefix(kind).is_some_and(|rest| rest.starts_with(':')))
    });
    let rest = marked.unwrap_or_else(|| line.trim_start_matches(['`', ' ']));
    // Pages have it in bold letters.
    let rest = rest.strip_prefix("<b>").unwrap_or(rest);
    let kind = KINDS.iter().find(|kind| rest.starts_with(**kind))?;
    let behind = rest.get(kind.len()..)?;
    let behind = behind.strip_prefix("</b>").unwrap_or(behind).strip_prefix(':')?;
    Some((kind, behind))
}

/// `FILE:LINE`, `FILE on line LINE`, perhaps in bold letters, and what Apache's log puts behind it.
fn place_of(text: &str) -> Option<(&str, u32)> {
    let text = text.split_once(", referer: ").map_or(text, |(text, _)| text);
    let text = text.trim().trim_end_matches(['`', '"', ',']);
    let text = text.strip_suffix("<br />").unwrap_or(text);
    let (file, line) = text
        .rsplit_once(" on line ")
        .or_else(|| text.rsplit_once(":<b>"))
        .or_else(|| text.rsplit_once(':'))?;
    let bare = |text: &'_ str| -> (usize, usize) {
        let start = text.strip_prefix("<b>").map_or(0, |_| "<b>".len());
        (start, text.strip_suffix("</b>").map_or(text.len(), str::len))
    };
    let (start, end) = bare(line);
    let line = line.get(start..end)?;
    let (start, end) = bare(file);
    let file = file.get(start..end)?.trim_end();
    (is_number(line) && !file.is_empty()).then(|| Some((file, line.parse().ok()?)))?
}

/// Whether a line is the first of such an error.
pub(super) fn is_sure(line: &str) -> bool {
    // This is asked of every line: the first byte dismisses most.
    let has = |word: &[u8]| memchr::memmem::find(line.as_bytes(), word).is_some();
    let is_possible = matches!(line.as_bytes().first(), Some(b'P' | b'F' | b'R' | b'C' | b'<' | b'`'))
        || line.len() > 24
            && (memchr::memchr(b'P', line.as_bytes()).is_some() && has(b"PHP ")
                || memchr::memchr(b'{', line.as_bytes()).is_some() && has(b"[object] ("));
    // Without a place it may be anybody's word; one of `Uncaught` goes on in further lines.
    is_possible
        && Head::read(line).is_some_and(|head| {
            head.place.is_some() || line.contains("PHP Fatal error: ") && line.contains(" Uncaught ")
        })
        || is_row(line)
}

/// Whether a line is a row that nothing but PHP writes, where a framework has words of its own for the error:
/// `#0 /srv/shop/Cart.php(12): Shop\Cart->total()`. In the place of the number `-1` CakePHP has where it was thrown.
fn is_row(line: &str) -> bool {
    let Some((number, rest)) = line.strip_prefix('#').and_then(|rest| rest.split_once(' ')) else {
        return false;
    };
    let is_row = || {
        let (place, call) = rest.split_once("): ")?;
        let (file, line) = place.rsplit_once('(')?;
        Some(file.ends_with(".php") && is_number(line) && call.contains('('))
    };
    is_number(number) && is_row().unwrap_or(false)
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader =
        Php { text: Text::new(Language::Php, limits), last: String::new(), place: None, part: Part::Before };
    drive(&mut reader, input, start);
    let Php { mut text, place, .. } = reader;
    let place = place.as_ref().map(|(file, line)| SourcePlace { file, line: *line, column: None });
    match (text.log.report.process.backtraces.first_mut(), place) {
        (Some(stack), _) => give_places_to_callers(&mut stack.frames, place),
        (None, Some(place)) => {
            text.push_place(place);
        }
        (None, None) => {}
    }
    text.finish()
}

#[derive(PartialEq, Eq)]
enum Part {
    Before,
    /// The message goes on.
    Message,
    Stack,
    After,
}

struct Php<'l> {
    text: Text<'l>,
    /// The last line before an error that only its rows tell.
    last: String,
    place: Option<(String, u32)>,
    part: Part,
}

impl<'l> Reader<'l> for Php<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.text.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if matches!(self.part, Part::Message | Part::Stack) && self.thrown(text) {
            return false;
        }
        match self.part {
            Part::Before => {
                if is_row(text) {
                    let message = std::mem::take(&mut self.last);
                    self.text.raise("", &message);
                    self.part = Part::Stack;
                    return self.row(text, line);
                }
                if let Some(head) = Head::read(text).filter(|_| is_sure(text)) {
                    self.head(&head, line);
                } else if let Some(place) =
                    text.strip_prefix("#-1 ").and_then(|place| place.strip_suffix(')'))
                {
                    self.set_place(
                        place.rsplit_once('(').and_then(|(file, line)| Some((file, line.parse().ok()?))),
                    );
                } else if !text.is_empty() {
                    text.clone_into(&mut self.last);
                }
                false
            }
            Part::Message | Part::Stack if is_trace(text) => {
                self.part = Part::Stack;
                false
            }
            Part::Message => {
                // The place stands at the end of the message.
                if let Some((_, place)) = text.rsplit_once(" in ")
                    && self.place.is_none()
                {
                    self.set_place(place_of(place));
                }
                self.row(text, line)
            }
            Part::Stack => self.row(text, line),
            Part::After => false,
        }
    }
}

/// The words before the rows.
fn is_trace(text: &str) -> bool {
    matches!(text, "Stack trace:" | "[stacktrace]")
}

impl Php<'_> {
    fn head(&mut self, head: &Head<'_>, line: &Line<'_>) {
        self.text.raise(head.kind, head.message);
        self.set_place(head.place);
        self.part = Part::Message;
        // ` Stack trace: #0 F(1): a() #1 {main} thrown in F on line 1`.
        let (mut rest, end) = head.stack.split_once(" thrown in ").unwrap_or((head.stack, ""));
        for number in 1_u32.. {
            let (row, behind) = rest.split_once(&format!(" #{number} ")).unwrap_or((rest, ""));
            let row = if number == 1 { row.to_owned() } else { format!("#{} {row}", number - 1) };
            if !self.row(&row, line) {
                break;
            }
            rest = behind;
        }
        if !end.is_empty() {
            self.thrown(&format!("thrown in {end}"));
        }
    }

    fn set_place(&mut self, place: Option<(&str, u32)>) {
        self.place = self.place.take().or_else(|| place.map(|(file, line)| (file.to_owned(), line)));
    }

    /// `thrown in FILE on line LINE`, which ends the report.
    fn thrown(&mut self, text: &str) -> bool {
        let Some(place) = text.strip_prefix("thrown in ") else { return false };
        self.set_place(place_of(place));
        self.part = Part::After;
        self.text.log.end_stack();
        true
    }

    /// `#0 FILE(LINE): FUNCTION(…)`, `#1 [internal function]: FUNCTION(…)`, `#2 {main}`.
    fn row(&mut self, text: &str, line: &Line<'_>) -> bool {
        let Some((number, rest)) = text.strip_prefix('#').and_then(|rest| rest.split_once(' ')) else {
            return false;
        };
        if !is_number(number) {
            return false;
        }
        if rest.trim() == "{main}" {
            return self.text.push("{main}", None, line);
        }
        let Some((place, call)) = rest.split_once("): ").or_else(|| rest.split_once("]: ")) else {
            return false;
        };
        let found = place
            .rsplit_once('(')
            .and_then(|(file, number)| Some(SourcePlace { file, line: number.parse().ok()?, column: None }));
        let name = call.split('(').next().unwrap_or(call).trim();
        let is_closure = call.starts_with("{closure}") || name.ends_with('\\');
        self.text.push(if is_closure { call.trim() } else { name }, found, line)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};
    use backtrail_model::Report;

    fn stack(report: &Report) -> Vec<String> {
        let frames = &report.process.backtraces[0].frames;
        let row = |frame: &backtrail_model::Frame| {
            let symbol = frame.reported.clone().unwrap();
            format!("{} {}:{}", symbol.name, symbol.file.unwrap_or_default(), symbol.line.unwrap_or(0))
        };
        frames.iter().map(row).collect()
    }

    #[test]
    fn each_place_is_the_callers() {
        let text = "[10-Feb-2023 16:36:43 UTC] PHP Fatal error:  Uncaught App\\Oops: no order 7 in /srv/shop/order.php:12\n\
            Stack trace:\n#0 /srv/shop/cart.php(30): Order->load(7)\n#1 [internal function]: Cart->total()\n#2 /srv/shop/index.php(4): array_map(Object(Closure), Array)\n#3 {main}\n  thrown in /srv/shop/order.php on line 12\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(
            (exception.kind.as_deref(), exception.message.as_deref()),
            (Some("App\\Oops"), Some("no order 7"))
        );
        let rows = [
            "Order->load /srv/shop/order.php:12",
            "Cart->total /srv/shop/cart.php:30",
            "array_map :0",
            "{main} /srv/shop/index.php:4",
        ];
        assert_eq!(stack(&report), rows);
        // The same in a line, as consoles and chats have it.
        let line = "`Fatal error: Uncaught App\\Oops: no order 7 in /srv/shop/order.php:12 Stack trace: #0 /srv/shop/cart.php(30): Order->load(7) #1 [internal function]: Cart->total() #2 /srv/shop/index.php(4): array_map(Object(Closure), Array) #3 {main} thrown in /srv/shop/order.php on line 12`\n";
        assert_eq!(stack(&parse(line.as_bytes(), &Limits::default()).unwrap()), rows);
    }

    #[test]
    fn errors_without_a_stack() {
        for (text, kind, place) in [
            (
                "PHP Fatal error:  Allowed memory size of 134217728 bytes exhausted (tried to allocate 20480 bytes) in /a/b.php on line 7\n",
                "Fatal error",
                "(b.php) /a/b.php:7",
            ),
            (
                "PHP Parse error:  syntax error, unexpected '}' in /a/b.php on line 7\n",
                "Parse error",
                "(b.php) /a/b.php:7",
            ),
            ("<br />\n<b>Fatal error</b>:  Uncaught E: x in /a/b.php:7\n<br />", "E", "(b.php) /a/b.php:7"),
            (
                "2023/01/02 10:00:00 [error] 12#12: *3 FastCGI sent in stderr: \"PHP message: PHP Fatal error:  Uncaught E: x in /a/b.php:7\n",
                "E",
                "(b.php) /a/b.php:7",
            ),
            (
                "Fatal error: Uncaught exception 'E' with message 'x' in /a/b.php:7\n",
                "E",
                "(b.php) /a/b.php:7",
            ),
            (
                "[2023-01-02 10:00:00] production.ERROR: x {\"exception\":\"[object] (E(code: 0): x at /a/b.php:7)\n[stacktrace]\n#0 {main}\n\"}\n",
                "E",
                "{main} /a/b.php:7",
            ),
        ] {
            let report = parse(text.as_bytes(), &Limits::default()).unwrap();
            assert_eq!(report.exception.as_ref().unwrap().kind.as_deref(), Some(kind), "{text}");
            assert_eq!(stack(&report), [place], "{text}");
        }
        for text in [
            "PHP Fatal error: x\n",
            "Fatal error: we saw it in production\n",
            "It says PHP Fatal error: Uncaught, what now?\n",
        ] {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }
}
