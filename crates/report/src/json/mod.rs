//! JSON as a tree that knows where each value stands in the input.
//!
//! Three things that reports need and general readers do not give: the byte span of every value, by which frames are
//! filled in without touching anything else; numbers as they are written, since addresses go past `i64`; and what was
//! read before a broken or cut place, since half a report is still worth reading.

mod read;
mod string;
#[cfg(test)]
mod tests;

pub(crate) use read::{Arena, Outcome, read};
pub(crate) use string::{decode, encode};

use std::borrow::Cow;
use std::ops::Range;

/// One value. Reports have tens of thousands: places are of four bytes, and lists lie in an [`Arena`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Json<'d> {
    start: u32,
    end: u32,
    pub(crate) value: Value<'d>,
}

/// What a value is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'d> {
    Null,
    Bool(bool),
    /// The number as written.
    Number(&'d str),
    String(Raw<'d>),
    Array(&'d [Json<'d>]),
    Object(&'d [Member<'d>]),
}

/// What stands between a string's quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Raw<'d> {
    /// Text without escapes.
    Plain(&'d str),
    /// Escapes and all; perhaps no UTF-8.
    Escaped(&'d [u8]),
}

impl<'d> Raw<'d> {
    pub(crate) fn bytes(self) -> &'d [u8] {
        match self {
            Self::Plain(text) => text.as_bytes(),
            Self::Escaped(bytes) => bytes,
        }
    }

    pub(crate) fn text(self) -> Cow<'d, str> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text),
            Self::Escaped(bytes) => decode(bytes),
        }
    }
}

/// A member of an object. Names that come twice are kept twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'d> {
    raw_name: Raw<'d>,
    name_start: u32,
    pub(crate) value: Json<'d>,
}

impl<'d> Member<'d> {
    pub(crate) fn name(&self) -> Cow<'d, str> {
        self.raw_name.text()
    }

    /// Where the name stands, quotes included.
    pub(crate) fn name_span(&self) -> Range<usize> {
        let start = self.name_start as usize;
        start..start + self.raw_name.bytes().len() + 2
    }
}

impl<'d> Json<'d> {
    /// Where it stands in the input, from its first byte to behind its last.
    pub(crate) fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The members of an object; none for everything else.
    pub(crate) fn members(&self) -> &'d [Member<'d>] {
        match self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }

    /// The items of an array; none for everything else.
    pub(crate) fn items(&self) -> &'d [Json<'d>] {
        match self.value {
            Value::Array(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.value, Value::Object(_))
    }

    /// The member of that name; the last one where there are several, as other readers have it.
    pub(crate) fn get(&self, name: &str) -> Option<&'d Json<'d>> {
        self.members().iter().rev().find(|member| member.name() == name).map(|member| &member.value)
    }

    /// A string's text.
    pub(crate) fn text(&self) -> Option<Cow<'d, str>> {
        match self.value {
            Value::String(raw) => Some(raw.text()),
            _ => None,
        }
    }

    /// A string's text, or a number or word as written; `None` for what holds other values.
    pub(crate) fn scalar(&self) -> Option<Cow<'d, str>> {
        match self.value {
            Value::Null => Some(Cow::Borrowed("null")),
            Value::Bool(value) => Some(Cow::Borrowed(if value { "true" } else { "false" })),
            Value::Number(text) => Some(Cow::Borrowed(text)),
            Value::String(raw) => Some(raw.text()),
            Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// A whole number of 64 bits. Negative ones are taken as two's complement, which is how some writers print
    /// addresses and registers; strings of digits, also hexadecimal ones, count as the number.
    pub(crate) fn number(&self) -> Option<u64> {
        match self.value {
            Value::Number(text) => whole_number(text),
            Value::String(raw) => {
                let text = raw.text();
                let text = text.trim();
                match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                    Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
                    Some(_) => None,
                    None => whole_number(text),
                }
            }
            _ => None,
        }
    }

    /// A truth value in any of the spellings seen in reports: `true`, `1`, `"1"`, `"YES"`.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            _ => match self.scalar()?.trim().to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" => Some(true),
                "0" | "false" | "no" => Some(false),
                _ => None,
            },
        }
    }
}

fn whole_number(text: &str) -> Option<u64> {
    if text.starts_with('-') {
        return text.parse::<i64>().ok().map(i64::cast_unsigned);
    }
    if text.starts_with('+') {
        return None;
    }
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    // `12.0` is how JavaScript-born tools that re-wrote a report may print a whole number.
    let digits = text
        .split_once('.')
        .map_or(text, |(whole, zeros)| if zeros.bytes().all(|byte| byte == b'0') { whole } else { "" });
    digits.parse().ok()
}
