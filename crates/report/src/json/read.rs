//! The reader: one pass, no recursion, bounded depth and count.

use super::{Json, Member, Raw, Value};
use crate::Limits;
use std::ops::Range;

/// What reading one value gave.
#[derive(Debug)]
pub(crate) struct Outcome<'d> {
    /// The value; where reading broke off, all that came before, with everything open closed.
    pub(crate) value: Option<Json<'d>>,
    /// The first byte behind what was read.
    pub(crate) end: usize,
    /// Where and why reading broke off.
    pub(crate) problem: Option<Problem>,
}

/// Why reading broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Position in the input.
    pub(crate) at: usize,
    /// What was expected there.
    pub(crate) expected: &'static str,
}

/// Where what is in arrays and objects lies; given back all at once.
#[derive(Debug, Default)]
pub(crate) struct Arena(bumpalo::Bump);

/// Reads the value that begins at or behind `start`; what follows it is not looked at.
pub(crate) fn read<'d>(arena: &'d Arena, input: &'d [u8], start: usize, limits: &Limits) -> Outcome<'d> {
    if u32::try_from(input.len()).is_err() {
        return Outcome {
            value: None,
            end: start,
            problem: Some(Problem { at: start, expected: "less than 4 GiB of JSON" }),
        };
    }
    let mut reader = Reader {
        arena,
        input,
        at: start,
        open: Vec::new(),
        items: Vec::new(),
        members: Vec::new(),
        depth: limits.max_json_depth,
        left: limits.max_json_values,
        sound: (0, ""),
    };
    let result = reader.run();
    let (value, problem) = match result {
        Ok(value) => (Some(value), None),
        Err(expected) => {
            let problem = Problem { at: reader.at.min(input.len()), expected };
            (reader.close_all(), Some(problem))
        }
    };
    Outcome { value, end: reader.at.min(input.len()), problem }
}

/// An array or object that is not closed yet.
struct Open<'d> {
    start: usize,
    /// Where what is in it begins in the reader's `items` or `members`.
    first: usize,
    is_array: bool,
    /// The name whose value is being read, and where it begins.
    name: Option<(Raw<'d>, usize)>,
}

struct Reader<'d> {
    arena: &'d Arena,
    input: &'d [u8],
    at: usize,
    open: Vec<Open<'d>>,
    /// What is in the arrays that are open. A report has thousands of small ones, and none of them grows step by step.
    items: Vec<Json<'d>>,
    /// What is in the objects that are open.
    members: Vec<Member<'d>>,
    depth: usize,
    left: usize,
    /// A part of the input that is known to be UTF-8, and where it begins: to check thousands of short strings one by one takes
    /// longer.
    sound: (usize, &'d str),
}

/// How much of the input is checked at a time.
const CHECKED: usize = 4096;

impl<'d> Reader<'d> {
    fn run(&mut self) -> Result<Json<'d>, &'static str> {
        loop {
            self.skip_blanks();
            let mut done = match self.begin_value()? {
                Some(value) => value,
                None => continue,
            };
            // A value is complete; it may complete the arrays and objects around it.
            loop {
                if self.open.is_empty() {
                    return Ok(done);
                }
                self.attach(done);
                match self.after_value()? {
                    Some(closed) => done = closed,
                    None => break,
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Reads a value up to where it is complete; `None` where it opened an array or object that has something in it.
    fn begin_value(&mut self) -> Result<Option<Json<'d>>, &'static str> {
        self.left = self.left.checked_sub(1).ok_or("fewer JSON values than the limit allows")?;
        let start = self.at;
        let value = match self.peek().ok_or("a JSON value, found the end of the file")? {
            b'{' => return self.open_object(start),
            b'[' => return self.open_array(start),
            b'"' => match self.string() {
                Ok(text) => Value::String(text),
                Err(why) => {
                    self.keep_cut_text(start);
                    return Err(why);
                }
            },
            b't' => self.word("true", Value::Bool(true))?,
            b'f' => self.word("false", Value::Bool(false))?,
            b'n' => self.word("null", Value::Null)?,
            b'-' | b'0'..=b'9' => Value::Number(self.number()),
            _ => return Err("a JSON value"),
        };
        Ok(Some(self.complete(start, value)))
    }

    /// A value that ends here.
    fn complete(&self, start: usize, value: Value<'d>) -> Json<'d> {
        // The input has less than 4 GiB.
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Json { start: place(start), end: place(self.at), value }
    }

    fn open_array(&mut self, start: usize) -> Result<Option<Json<'d>>, &'static str> {
        self.enter()?;
        self.skip_blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Some(self.complete(start, Value::Array(&[]))));
        }
        self.open.push(Open { start, first: self.items.len(), is_array: true, name: None });
        Ok(None)
    }

    fn open_object(&mut self, start: usize) -> Result<Option<Json<'d>>, &'static str> {
        self.enter()?;
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Some(self.complete(start, Value::Object(&[]))));
        }
        self.open.push(Open { start, first: self.members.len(), is_array: false, name: None });
        self.name()?;
        Ok(None)
    }

    fn enter(&mut self) -> Result<(), &'static str> {
        if self.open.len() >= self.depth {
            return Err("JSON that nests less deeply");
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a member's name and the colon behind it.
    fn name(&mut self) -> Result<(), &'static str> {
        self.skip_blanks();
        if self.peek() != Some(b'"') {
            return Err("a member's name in quotes");
        }
        let start = self.at;
        let raw = self.string()?;
        self.skip_blanks();
        if self.peek() != Some(b':') {
            return Err("`:` behind a member's name");
        }
        self.at += 1;
        if let Some(open) = self.open.last_mut() {
            open.name = Some((raw, start));
        }
        Ok(())
    }

    /// Puts a complete value into what is open around it.
    fn attach(&mut self, value: Json<'d>) {
        let Some(open) = self.open.last_mut() else { return };
        if open.is_array {
            self.items.push(value);
        } else if let Some((raw_name, start)) = open.name.take() {
            let name_start = u32::try_from(start).unwrap_or(u32::MAX);
            self.members.push(Member { raw_name, name_start, value });
        }
    }

    /// Behind a value inside an array or object: goes on to the next one, or closes and gives what is complete now.
    fn after_value(&mut self) -> Result<Option<Json<'d>>, &'static str> {
        self.skip_blanks();
        let in_array = self.open.last().is_some_and(|open| open.is_array);
        let (closing, expected) =
            if in_array { (b']', "`,` or `]` behind an item") } else { (b'}', "`,` or `}` behind a member") };
        match self.peek() {
            Some(b',') => self.at += 1,
            Some(byte) if byte == closing => return Ok(self.close()),
            _ => return Err(expected),
        }
        self.skip_blanks();
        if self.peek() == Some(closing) {
            // A comma before the bracket: hand-edited reports have it.
            return Ok(self.close());
        }
        if !in_array {
            self.name()?;
        }
        Ok(None)
    }

    fn close(&mut self) -> Option<Json<'d>> {
        self.at += 1;
        self.pop()
    }

    fn pop(&mut self) -> Option<Json<'d>> {
        let Open { start, first, is_array, .. } = self.open.pop()?;
        let Arena(arena) = self.arena;
        let value = if is_array {
            let items = arena.alloc_slice_copy(self.items.get(first..).unwrap_or_default());
            self.items.truncate(first);
            Value::Array(items)
        } else {
            let members = arena.alloc_slice_copy(self.members.get(first..).unwrap_or_default());
            self.members.truncate(first);
            Value::Object(members)
        };
        Some(self.complete(start, value))
    }

    /// Closes everything that is open where reading broke off.
    fn close_all(&mut self) -> Option<Json<'d>> {
        self.at = self.at.min(self.input.len());
        let mut done = self.pop()?;
        while !self.open.is_empty() {
            self.attach(done);
            done = self.pop()?;
        }
        Some(done)
    }

    /// Reads a string: what stands between the quotes.
    fn string(&mut self) -> Result<Raw<'d>, &'static str> {
        let start = self.at;
        let mut at = start + 1;
        let mut has_escapes = false;
        loop {
            let rest = self.input.get(at..).unwrap_or_default();
            let Some(next) = memchr::memchr2(b'"', b'\\', rest) else {
                self.at = self.input.len();
                return Err("the closing `\"` of a string, found the end of the file");
            };
            at += next;
            if rest.get(next) == Some(&b'"') {
                break;
            }
            // The escaped character is passed over.
            at += 2;
            has_escapes = true;
        }
        self.at = at + 1;
        let plain = if has_escapes { None } else { self.sound_text(start + 1..at) };
        let bytes = || self.input.get(start + 1..at).unwrap_or_default();
        Ok(plain.map_or_else(|| Raw::Escaped(bytes()), Raw::Plain))
    }

    /// A text of several lines that the input ends in is of use as far as it goes: the kernel's own report stands in one. A
    /// name that is cut would be another name.
    fn keep_cut_text(&mut self, start: usize) {
        let Some(text) = self.input.get(start + 1..) else { return };
        let has_lines = memchr::memmem::find(text, b"\\n").is_some() || memchr::memchr(b'\n', text).is_some();
        if has_lines {
            let text = self.complete(start, Value::String(Raw::Escaped(text)));
            self.attach(text);
        }
    }

    /// A part of the input as text, if it is UTF-8.
    fn sound_text(&mut self, span: Range<usize>) -> Option<&'d str> {
        let (start, sound) = self.sound;
        if span.start < start || span.end > start + sound.len() {
            let end = span.end.max(span.start + CHECKED).min(self.input.len());
            let part = self.input.get(span.start..end)?;
            // Up to what is none, or is cut.
            let sound = std::str::from_utf8(part).ok();
            let sound = sound.or_else(|| part.utf8_chunks().next().map(|chunk| chunk.valid()));
            self.sound = (span.start, sound.unwrap_or_default());
        }
        let (start, sound) = self.sound;
        sound.get(span.start - start..span.end - start)
    }

    fn word(&mut self, word: &str, value: Value<'d>) -> Result<Value<'d>, &'static str> {
        if !self.input.get(self.at..).unwrap_or_default().starts_with(word.as_bytes()) {
            return Err("`true`, `false` or `null`");
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> &'d str {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.at += length;
        std::str::from_utf8(rest.get(..length).unwrap_or_default()).unwrap_or_default()
    }
}
