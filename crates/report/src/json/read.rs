//! The reader: one pass, no recursion, bounded depth and count.

use super::{Json, Member, Value};
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

/// Reads the value that begins at or behind `start`; what follows it is not looked at.
pub(crate) fn read<'d>(input: &'d [u8], start: usize, limits: &Limits) -> Outcome<'d> {
    let mut reader = Reader {
        input,
        at: start,
        open: Vec::new(),
        depth: limits.max_json_depth,
        left: limits.max_json_values,
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
enum Open<'d> {
    Array(usize, Vec<Json<'d>>),
    /// With the name whose value is being read.
    Object(usize, Vec<Member<'d>>, Option<(&'d [u8], Range<usize>)>),
}

struct Reader<'d> {
    input: &'d [u8],
    at: usize,
    open: Vec<Open<'d>>,
    depth: usize,
    left: usize,
}

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
            b'"' => Value::String(self.string()?.0),
            b't' => self.word("true", Value::Bool(true))?,
            b'f' => self.word("false", Value::Bool(false))?,
            b'n' => self.word("null", Value::Null)?,
            b'-' | b'0'..=b'9' => Value::Number(self.number()),
            _ => return Err("a JSON value"),
        };
        Ok(Some(Json { span: start..self.at, value }))
    }

    fn open_array(&mut self, start: usize) -> Result<Option<Json<'d>>, &'static str> {
        self.enter()?;
        self.skip_blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Some(Json { span: start..self.at, value: Value::Array(Vec::new()) }));
        }
        self.open.push(Open::Array(start, Vec::new()));
        Ok(None)
    }

    fn open_object(&mut self, start: usize) -> Result<Option<Json<'d>>, &'static str> {
        self.enter()?;
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Some(Json { span: start..self.at, value: Value::Object(Vec::new()) }));
        }
        self.open.push(Open::Object(start, Vec::new(), None));
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
        let (raw, span) = self.string()?;
        self.skip_blanks();
        if self.peek() != Some(b':') {
            return Err("`:` behind a member's name");
        }
        self.at += 1;
        if let Some(Open::Object(_, _, name)) = self.open.last_mut() {
            *name = Some((raw, span));
        }
        Ok(())
    }

    /// Puts a complete value into what is open around it.
    fn attach(&mut self, value: Json<'d>) {
        match self.open.last_mut() {
            Some(Open::Array(_, items)) => items.push(value),
            Some(Open::Object(_, members, name)) => {
                if let Some((raw_name, name_span)) = name.take() {
                    members.push(Member { raw_name, name_span, value });
                }
            }
            None => {}
        }
    }

    /// Behind a value inside an array or object: goes on to the next one, or closes and gives what is complete now.
    fn after_value(&mut self) -> Result<Option<Json<'d>>, &'static str> {
        self.skip_blanks();
        let in_array = matches!(self.open.last(), Some(Open::Array(..)));
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
        Some(match self.open.pop()? {
            Open::Array(start, items) => Json { span: start..self.at, value: Value::Array(items) },
            Open::Object(start, members, _) => Json { span: start..self.at, value: Value::Object(members) },
        })
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

    /// Reads a string: what stands between the quotes, and where it stands with them.
    fn string(&mut self) -> Result<(&'d [u8], Range<usize>), &'static str> {
        let start = self.at;
        let mut at = start + 1;
        loop {
            match self.input.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None => {
                    self.at = self.input.len();
                    return Err("the closing `\"` of a string, found the end of the file");
                }
            }
        }
        self.at = at + 1;
        Ok((self.input.get(start + 1..at).unwrap_or_default(), start..self.at))
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
