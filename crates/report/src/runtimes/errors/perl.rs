//! Perl: what `die` and the interpreter print, `MESSAGE at FILE line N.`, and the rows of Carp's `confess`,
//! `Shop::total(1) called at cart.pl line 12`, innermost first.
//!
//! Sources: perldiag, perlfunc (`die`), Carp's `longmess`.

use super::super::log::{Log, Reader, SourcePlace, drive};
use super::{Text, give_places_to_callers};
use crate::Limits;
use crate::apple_text::Line;
use backtrail_model::{Language, Report};

/// How messages of the interpreter begin, of those that end a program and that no other language words so.
const DIAGNOSTICS: [&str; 16] = [
    "Can't locate object method \"",
    "Can't call method \"",
    "Can't use an undefined value as ",
    "Can't use string (\"",
    "Can't use bareword \"",
    "Can't modify ",
    "Can't \"last\" outside a loop block",
    "Undefined subroutine &",
    "Not a HASH reference at ",
    "Not an ARRAY reference at ",
    "Not a CODE reference at ",
    "Not a GLOB reference at ",
    "Modification of a read-only value attempted at ",
    "Modification of non-creatable array value attempted",
    "Illegal division by zero at ",
    "Can't coerce ",
];

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    let line = line.trim_matches('`');
    row(line).is_some() || is_missing_module(line) || diagnostic(line).is_some()
}

/// `Can't locate Shop/Cart.pm in @INC (you may need to install the Shop::Cart module) (@INC contains: …) at a.pl line 3.`
fn is_missing_module(line: &str) -> bool {
    line.starts_with("Can't locate ") && line.contains(".pm in @INC")
}

/// A message of the interpreter: with its place, or with the words that stand before that.
fn diagnostic(line: &str) -> Option<&str> {
    let is_known = DIAGNOSTICS.iter().any(|begin| line.starts_with(begin));
    (is_known && (place(line).is_some() || line.contains(" (perhaps you forgot to load \""))).then_some(line)
}

/// What stands before ` at FILE line N.`, and the place. A file handle that was being read may follow it: `, <STDIN> line 7.`
fn place(text: &str) -> Option<(&str, SourcePlace<'_>)> {
    let text = text.split_once(", <").map_or(text, |(before, _)| before);
    let (before, line) = text.rsplit_once(" line ")?;
    let line = line.trim_end_matches(['.', '`']).parse().ok()?;
    let (before, file) = before.rsplit_once(" at ")?;
    let is_file = !file.is_empty() && !file.contains(' ') || file.starts_with("(eval ");
    is_file.then_some((before, SourcePlace { file, line, column: None }))
}

/// `Shop::total(1, "x") called at cart.pl line 12`: the function, and where it was called.
fn row(line: &str) -> Option<(&str, SourcePlace<'_>)> {
    let (before, found) = place(line)?;
    let call = before.strip_suffix(" called")?;
    let is_call = call.ends_with(')') || call.starts_with("eval ") || call.starts_with("require ");
    let name = call.split('(').next().unwrap_or(call).trim();
    let is_name = is_call && !name.is_empty() && !name.contains(". ");
    is_name.then_some((name, found))
}

/// Reads such a text.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let text = Text::new(Language::Perl, limits);
    let mut reader = Perl { text, place: None, last: String::new(), has_rows: false };
    drive(&mut reader, input, start);
    let Perl { mut text, place, has_rows, .. } = reader;
    let place = place.as_ref().map(|(file, line)| SourcePlace { file, line: *line, column: None });
    if has_rows {
        let stacks = text.log.report.process.backtraces.iter_mut();
        stacks.take(1).for_each(|stack| give_places_to_callers(&mut stack.frames, place));
    } else if let Some(place) = place {
        text.push_place(place);
    }
    text.finish()
}

struct Perl<'l> {
    text: Text<'l>,
    /// Where it was raised.
    place: Option<(String, u32)>,
    /// The last line that is no row: what was raised, where rows follow.
    last: String,
    has_rows: bool,
}

impl Perl<'_> {
    fn raise(&mut self, line: &str) {
        let (message, found) = place(line).map_or((line, None), |(message, found)| (message, Some(found)));
        let message = message.split_once(" (@INC contains").map_or(message, |(message, _)| message);
        self.text.raise("error", message);
        self.place = found.map(|found| (found.file.to_owned(), found.line));
    }
}

impl<'l> Reader<'l> for Perl<'l> {
    fn log(&mut self) -> &mut Log<'l> {
        &mut self.text.log
    }

    fn line(&mut self, text: &str, line: &Line<'_>) -> bool {
        let text = text.trim().trim_matches('`');
        if let Some((name, found)) = row(text) {
            if !self.text.has_raised() {
                let last = std::mem::take(&mut self.last);
                self.raise(&last);
            }
            self.has_rows = true;
            return self.text.push(name, Some(found), line);
        }
        if !self.text.has_raised() && (is_missing_module(text) || diagnostic(text).is_some()) {
            self.raise(text);
        } else if !text.is_empty() {
            text.clone_into(&mut self.last);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn a_message_with_its_place() {
        for (text, message, line) in [
            (
                "It says `Can't locate object method \"sum\" via package \"Shop::Cart\" at /srv/shop/cart.pl line 12` now.\n\
                 Can't locate object method \"sum\" via package \"Shop::Cart\" at /srv/shop/cart.pl line 12.\n",
                "Can't locate object method \"sum\" via package \"Shop::Cart\"",
                Some(12),
            ),
            (
                "Can't call method \"price\" on an undefined value at cart.pl line 7, <STDIN> line 3.\n",
                "Can't call method \"price\" on an undefined value",
                Some(7),
            ),
            (
                "Can't locate Shop/Tax.pm in @INC (you may need to install the Shop::Tax module) (@INC contains: /a /b) at cart.pl line 3.\n",
                "Can't locate Shop/Tax.pm in @INC (you may need to install the Shop::Tax module)",
                Some(3),
            ),
            (
                "Can't locate object method \"sum\" via package \"self\" (perhaps you forgot to load \"self\"?)\n",
                "Can't locate object method \"sum\" via package \"self\" (perhaps you forgot to load \"self\"?)",
                None,
            ),
        ] {
            let report = parse(text.as_bytes(), &Limits::default()).unwrap();
            assert_eq!(report.exception.unwrap().message.as_deref(), Some(message), "{text}");
            let frame = report.process.backtraces.first().and_then(|stack| stack.frames.first());
            assert_eq!(frame.and_then(|frame| frame.reported.as_ref()?.line), line, "{text}");
        }
    }

    #[test]
    fn rows_of_confess() {
        let text = "no price at lib/Shop/Cart.pm line 9.\n\tShop::Cart::price(undef) called at lib/Shop/Cart.pm line 20\n\tShop::Cart::total(\"Shop::Cart\", 3) called at shop.pl line 4\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.exception.unwrap().message.as_deref(), Some("no price"));
        let frames = &report.process.backtraces[0].frames;
        let rows: Vec<_> = frames.iter().map(|frame| frame.reported.as_ref().unwrap()).collect();
        assert_eq!((rows[0].name.as_str(), rows[0].line), ("Shop::Cart::price", Some(9)));
        assert_eq!((rows[1].name.as_str(), rows[1].line), ("Shop::Cart::total", Some(20)));
    }

    #[test]
    fn sentences_are_none() {
        for text in
            ["I called at home line 3\n", "Can't call method \"x\" of it\n", "The bug is at a.pl line 3.\n"]
        {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }
}
