//! The issue that Bugsnag opens in a tracker for an error: its class and message, where it was, and the innermost row.
//!
//! ```text
//! ## Error in Shop
//!
//! **java.lang.IllegalStateException** in **Cart.java:12**
//! Not attached
//!
//! ## Stacktrace
//!
//!     Cart.java:12 - shop.Cart.total
//! ```

use crate::Limits;
use crate::apple_text::Lines;
use crate::members::note_thrown;
use backtrail_model::{
    Exception, Frame, Language, Report, ReportedSymbol, Section, Source, Thread, ThrowingRuntime,
    ThrownException,
};

/// A link that every such issue has.
const VIEW: &str = "View on Bugsnag";

/// Reads such an issue; `None` where the text is none.
pub(crate) fn read(input: &[u8], limits: &Limits) -> Option<Report> {
    memchr::memmem::find(input, VIEW.as_bytes())?;
    let mut form = Form::default();
    for line in Lines::new(input, 0..input.len(), 1).filter(|line| line.bytes.len() <= limits.max_line) {
        form.line(line.text().trim(), limits);
    }
    let class = form.class?;
    let message = Some(form.message.trim().to_owned()).filter(|message| !message.is_empty());
    let mut report = Report { source: Source::Bugsnag, ..Report::default() };
    match crate::numbers::fault_named(&class) {
        Some(signal) => {
            let signal = Some(signal.to_owned());
            report.exception = Some(Exception { signal, message, ..Exception::default() });
        }
        None => {
            let is_objc = class.starts_with("NS") && class.ends_with("Exception");
            let runtime = if is_objc { ThrowingRuntime::ObjectiveC } else { ThrowingRuntime::Other };
            let thrown = ThrownException { runtime, name: class, reason: message, is_handled: false };
            note_thrown(&mut report, thrown);
        }
    }
    report.process.name = form.app;
    if !form.frames.is_empty() {
        report.process.threads.push(Thread { crashed: true, frames: form.frames, ..Thread::default() });
        report.process.crashed_thread = Some(0);
    }
    let text = String::from_utf8_lossy(input).into_owned();
    report.sections.push(Section { title: "Text".to_owned(), text });
    Some(report)
}

#[derive(Default)]
struct Form {
    app: Option<String>,
    class: Option<String>,
    message: String,
    /// Whether the lines are those of the message.
    is_message: bool,
    frames: Vec<Frame>,
}

impl Form {
    fn line(&mut self, text: &str, limits: &Limits) {
        let heading = text.trim_start_matches(['#', ' ']);
        if let Some(app) = heading.strip_prefix("Error in ") {
            self.app.get_or_insert_with(|| app.to_owned());
            return;
        }
        if let Some(class) = class_of(text).filter(|_| self.class.is_none()) {
            self.class = Some(class.to_owned());
            self.is_message = true;
            return;
        }
        self.is_message &= !text.contains(VIEW);
        if self.is_message {
            if !text.is_empty() && self.message.len() < limits.max_line {
                self.message.push_str(text);
                self.message.push('\n');
            }
            return;
        }
        if self.class.is_some() && self.frames.len() < limits.max_frames {
            let index = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
            self.frames.extend(row(text, index));
        }
    }
}

/// `**java.lang.IllegalStateException** in **Cart.java:12**`.
fn class_of(text: &str) -> Option<&str> {
    let (class, place) = text.strip_prefix("**")?.split_once("** in **")?;
    (place.ends_with("**") && !class.is_empty() && !class.contains(char::is_whitespace)).then_some(class)
}

/// `Cart.java:12 - shop.Cart.total`, `/system/lib64/libc.so:439432 - tgkill`, `index.android.bundle:4:77 - e`.
fn row(text: &str, index: u32) -> Option<Frame> {
    let (place, name) = text.split_once(" - ")?;
    let (file, line) = place.rsplit_once(':')?;
    let line: i64 = line.parse().ok()?;
    let name = name.trim();
    if file.is_empty() || file.contains(' ') || name.is_empty() {
        return None;
    }
    let mut frame = Frame::new(index);
    let mut symbol = ReportedSymbol { name: name.to_owned(), ..ReportedSymbol::default() };
    if file.ends_with(".so") || file.contains(".so.") {
        frame.image_name = Some(file.to_owned());
        frame.image_offset = u64::try_from(line).ok();
    } else {
        // Of what has no source lines, Java has a number below 0.
        symbol.line = u32::try_from(line).ok();
        symbol.file = Some(file.to_owned());
        frame.language = language(file);
    }
    frame.reported = Some(symbol);
    Some(frame)
}

fn language(file: &str) -> Option<Language> {
    let file = file.split(':').next().unwrap_or(file);
    match file.rsplit('.').next()? {
        "java" | "kt" => Some(Language::Java),
        "js" | "jsx" | "ts" | "tsx" | "bundle" | "jsbundle" => Some(Language::JavaScript),
        "rb" => Some(Language::Ruby),
        "py" => Some(Language::Python),
        "php" => Some(Language::Php),
        "cs" => Some(Language::DotNet),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const TEXT: &str = "## Error in Shop\n\n**java.lang.IllegalStateException** in **Cart.java:12**\nNot attached\n\n[View on Bugsnag](https://app.example/1)\n\n## Stacktrace\n\n    Cart.java:12 - io.example.shop.Cart.total\n\n[View full stacktrace](https://app.example/1)\n";

    #[test]
    fn an_issue() {
        let report = parse(TEXT.as_bytes(), &Limits::default()).unwrap();
        let thrown = report.thrown.unwrap();
        assert_eq!(thrown.name, "java.lang.IllegalStateException");
        assert_eq!(thrown.reason.as_deref(), Some("Not attached"));
        assert_eq!(report.process.name.as_deref(), Some("Shop"));
        let frame = &report.process.threads[0].frames[0];
        assert_eq!(frame.language, Some(Language::Java));
        assert_eq!(frame.reported.as_ref().unwrap().line, Some(12));
    }

    #[test]
    fn signals_and_files_of_machine_code() {
        let text = TEXT
            .replace("java.lang.IllegalStateException", "SIGABRT")
            .replace("Cart.java:12 - io.example.shop.Cart.total", "/system/lib64/libc.so:4321 - tgkill");
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.exception.unwrap().signal.as_deref(), Some("SIGABRT"));
        assert_eq!(report.process.threads[0].frames[0].image_offset, Some(4321));
        let text = TEXT.replace("** in **", " in ");
        assert!(parse(text.as_bytes(), &Limits::default()).is_err());
    }
}
