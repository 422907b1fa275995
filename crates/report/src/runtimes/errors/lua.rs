//! Lua: errors with the traceback that its interpreters and `debug.traceback` print.
//!
//! Source: Lua 5.1 to 5.4 `lauxlib.c` (`luaL_traceback`), `ldblib.c`.

use super::super::log::{Log, Reader, SourcePlace, drive};
use super::{Text, unquoted};
use crate::Limits;
use crate::apple_text::Line;
use crate::numbers::is_number;
use backtrail_model::{Language, Report};

const HEAD: &str = "stack traceback:";

/// `shop.lua:12: in function 'price'`, `[C]: in ?`, `(...tail calls...)`.
struct Row<'t> {
    name: &'t str,
    place: Option<SourcePlace<'t>>,
}

impl<'t> Row<'t> {
    fn read(text: &'t str) -> Option<Self> {
        if matches!(text, "(...tail calls...)" | "(tail call): ?") {
            return Some(Self { name: "(tail calls)", place: None });
        }
        let (at, what) = text.split_once(": in ")?;
        let place = match at.rsplit_once(':') {
            Some((file, line)) if is_number(line) => {
                Some(SourcePlace { file, line: line.parse().ok()?, column: None })
            }
            _ if at == "[C]" || at.starts_with('[') && at.ends_with(']') => None,
            _ => return None,
        };
        let name = ["function ", "upvalue ", "local ", "method ", "field ", "global ", "metamethod "]
            .iter()
            .find_map(|kind| what.strip_prefix(kind))
            .unwrap_or(what);
        // `<shop.lua:10>` is a function without a name, by where it is defined.
        Some(Self { name: unquoted(name), place })
    }
}

/// An error's first line: `lua: shop.lua:12: attempt to …`, `shop.lua:12: …`; its place and what it says.
fn error(text: &str) -> Option<(SourcePlace<'_>, &str)> {
    let start = text.find(".lua:").or_else(|| text.find("\"]:"))?;
    let mark = start + text.get(start..)?.find(':')?;
    let (file, rest) = (text.get(..mark)?, text.get(mark + 1..)?);
    let (line, message) = rest.split_once(": ")?;
    let file = file.rsplit_once(": ").map_or(file, |(_, file)| file).trim();
    is_number(line).then(|| Some((SourcePlace { file, line: line.parse().ok()?, column: None }, message)))?
}

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    line == HEAD
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut reader = Lua { text: Text::new(Language::Lua, limits), last: String::new(), in_stack: false };
    drive(&mut reader, input, start);
    reader.text.finish().filter(|report| !report.process.backtraces.is_empty())
}

struct Lua<'l> {
    text: Text<'l>,
    /// The last line that may be the error's.
    last: String,
    in_stack: bool,
}

impl<'l> Reader<'l> for Lua<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.text.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim();
        if text == HEAD {
            let said = std::mem::take(&mut self.last);
            let message = error(&said).map_or(said.as_str(), |(_, message)| message);
            if self.text.has_raised() {
                self.text.log.begin_backtrace(said.clone(), false);
            }
            self.text.raise("error", message);
            self.in_stack = true;
            return false;
        }
        if self.in_stack {
            if let Some(row) = Row::read(text) {
                return self.text.push(row.name, row.place, line);
            }
            self.in_stack = text.starts_with("...");
            if self.in_stack {
                return self.text.log.annotate(text);
            }
            self.text.log.end_stack();
        }
        // The error may have lines behind the first.
        if !text.is_empty() && (error(text).is_some() || error(&self.last).is_none()) {
            text.clone_into(&mut self.last);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    #[test]
    fn rows_of_all_versions() {
        let text = "lua: shop.lua:12: attempt to index a nil value (field 'price')\nstack traceback:\n\t[C]: in function 'error'\n\tshop.lua:12: in function 'shop.price'\n\tshop.lua:20: in upvalue 'total'\n\t(...tail calls...)\n\tshop.lua:30: in main chunk\n\t[C]: in ?\nBye\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(exception.message.as_deref(), Some("attempt to index a nil value (field 'price')"));
        let frames = &report.process.backtraces[0].frames;
        let names: Vec<_> =
            frames.iter().map(|frame| frame.reported.as_ref().unwrap().name.as_str()).collect();
        assert_eq!(names, ["error", "shop.price", "total", "(tail calls)", "main chunk", "?"]);
        assert_eq!(frames[1].reported.as_ref().unwrap().line, Some(12));
        assert!(parse(b"stack traceback:\nnone was given\n", &Limits::default()).is_err());
    }
}
