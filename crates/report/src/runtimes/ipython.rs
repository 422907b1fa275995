//! Tracebacks as IPython and Jupyter show them: the exception's class at the left of the head, some lines of source around each
//! place, an arrow at the line. Outermost first; the exception stands below.
//!
//! Source: IPython's `core/ultratb.py` (`VerboseTB`, `format_record`), versions 5 to 8.

use super::log::{Log, Reader, SourcePlace, drive, named};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_model::{Exception, Frame, Language, Report, Source};

const HEAD: &str = "Traceback (most recent call last)";

/// The class that a head names: `ValueError                 Traceback (most recent call last)`.
fn head(line: &str) -> Option<&str> {
    let class = line.strip_suffix(HEAD)?.strip_suffix("  ")?.trim();
    let is_class =
        !class.is_empty() && class.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
    is_class.then_some(class)
}

/// Whether a line tells that the text is of this kind.
pub(super) fn is_head(line: &str) -> bool {
    head(line.trim_start_matches('`')).is_some()
}

/// Reads such a text; `None` where it is none.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let log = Log::new(Source::PythonTraceback, limits);
    let mut reader = Notebook { log, class: String::new(), message: None };
    drive(&mut reader, input, start);
    let Notebook { mut log, class, message } = reader;
    if class.is_empty() {
        return None;
    }
    let title = message.as_deref().map_or_else(|| class.clone(), |message| format!("{class}: {message}"));
    for stack in log.report.process.backtraces.iter_mut().take(1) {
        stack.title = title.clone();
        stack.is_exception = true;
        stack.frames.reverse();
        for (frame, index) in stack.frames.iter_mut().zip(0..) {
            frame.index = index;
        }
    }
    log.report.exception = Some(Exception { kind: Some(class), message, ..Exception::default() });
    Some(log.finish())
}

struct Notebook<'l> {
    log: Log<'l>,
    /// The exception's class, once the head was there.
    class: String,
    message: Option<String>,
}

impl<'l> Reader<'l> for Notebook<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim_matches('`');
        if let Some(class) = head(text.trim()) {
            // Of a chain the last one is what nobody caught.
            class.clone_into(&mut self.class);
            self.message = None;
            self.log.report.process.backtraces.clear();
            self.log.begin_backtrace("", false);
            return false;
        }
        if self.class.is_empty() || self.message.is_some() {
            return false;
        }
        if let Some(frame) = row(text, line) {
            return self.log.push(frame);
        }
        if let Some(number) = arrow(text) {
            let last = self.log.frames().and_then(|frames| frames.last_mut());
            if let Some(symbol) = last.and_then(|frame| frame.reported.as_mut()) {
                symbol.line = symbol.line.or(Some(number));
            }
            return false;
        }
        let said = text.strip_prefix(self.class.as_str()).and_then(|rest| rest.strip_prefix(": "));
        if let Some(said) = said {
            self.message = Some(said.trim().to_owned());
            self.log.end_stack();
        }
        false
    }
}

/// The number behind an arrow: `----> 2 import shop`, `---> 23     total(x)`.
fn arrow(text: &str) -> Option<u32> {
    let (dashes, rest) = text.trim_start().split_once("> ")?;
    let is_arrow = dashes.len() >= 2 && dashes.bytes().all(|byte| byte == b'-');
    rest.split(' ').next()?.parse().ok().filter(|_| is_arrow)
}

/// `~/shop/cart.py in total(items)`, `<ipython-input-3-9f8d> in <module>`, `File ~/shop/cart.py:12, in total(items)`,
/// `Cell In[3], line 2`, `Input In [3], in <cell line: 2>()`.
fn row(text: &str, at: &Line<'_>) -> Option<Frame> {
    let (file, number, name) =
        notebook_cell(text).or_else(|| with_line(text)).or_else(|| without_line(text))?;
    let name = name.split('(').next().unwrap_or(name).trim();
    let place = SourcePlace { file, line: number, column: None };
    let mut frame = named(0, if name.is_empty() { "<module>" } else { name }, Some(place));
    frame.language = Some(Language::Python);
    frame.span = Some(at.span.clone());
    Some(frame)
}

fn notebook_cell(text: &str) -> Option<(&str, u32, &str)> {
    let rest = text.strip_prefix("Cell ").or_else(|| text.strip_prefix("Input "))?;
    let end = rest.find(']').filter(|_| rest.starts_with("In"))? + 1;
    let (cell, rest) = rest.split_at_checked(end)?;
    let number = rest.split_once("line ").or_else(|| rest.split_once("line: ")).map_or("", |(_, rest)| rest);
    let digits = number.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let name = rest.split_once(", in ").map_or("", |(_, name)| name);
    Some((
        cell,
        digits.parse().unwrap_or(0),
        name.split_once("(").filter(|_| !name.starts_with('<')).map_or("", |(name, _)| name),
    ))
}

fn with_line(text: &str) -> Option<(&str, u32, &str)> {
    let (place, name) = text.strip_prefix("File ")?.split_once(", in ")?;
    let (file, line) = place.rsplit_once(':')?;
    Some((file, line.parse().ok()?, name))
}

fn without_line(text: &str) -> Option<(&str, u32, &str)> {
    let (file, name) = text.split_once(" in ")?;
    let is_file = file.starts_with("<ipython-input-")
        || [".py", ".pyx", ".ipynb", ".so"].iter().any(|end| file.ends_with(end));
    (is_file && !text.starts_with(char::is_whitespace)).then_some((file, 0, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// Function, file and line.
    type Row = (String, Option<String>, Option<u32>);

    fn rows(text: &str) -> (String, Vec<Row>) {
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.source, Source::PythonTraceback);
        let exception = report.exception.unwrap();
        let symbols = report.process.backtraces[0].frames.iter().filter_map(|frame| frame.reported.clone());
        let title = format!("{}: {}", exception.kind.unwrap(), exception.message.unwrap());
        (title, symbols.map(|symbol| (symbol.name, symbol.file, symbol.line)).collect())
    }

    #[test]
    fn old_and_new() {
        let old = "It fails:\n---------------------------------------------------------------------------\nKeyError                                  Traceback (most recent call last)\n<ipython-input-3-9f8df34a69f4> in <module>\n      1 import shop\n----> 2 shop.total({})\n\n~/lib/shop/cart.py in total(items)\n     11 def total(items):\n---> 12     return items['price']\n     13 \n\nKeyError: 'price'\n";
        let (title, found) = rows(old);
        assert_eq!(title, "KeyError: 'price'");
        assert_eq!(found[0], ("total".to_owned(), Some("~/lib/shop/cart.py".to_owned()), Some(12)));
        assert_eq!(found[1].2, Some(2));
        let new = "KeyError                                  Traceback (most recent call last)\nCell In[3], line 2\n      1 import shop\n----> 2 shop.total({})\n\nFile ~/lib/shop/cart.py:12, in total(items)\n     11 def total(items):\n---> 12     return items['price']\n\nKeyError: 'price'\n";
        let (title, found) = rows(new);
        assert_eq!(title, "KeyError: 'price'");
        assert_eq!(found[0].2, Some(12));
        assert_eq!(found[1], ("<module>".to_owned(), Some("In[3]".to_owned()), Some(2)));
    }
}
