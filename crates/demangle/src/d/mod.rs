//! D names, as <https://dlang.org/spec/abi.html#name_mangling> has them, in GNU's style: no return types, `this` for
//! constructors.
//!
//! A name is read once, except for what a back reference repeats, and for the two places where the grammar does not say
//! whether a function's parameters or a length come next; all of that is paid from one budget.

mod names;
mod types;
mod values;

use crate::error::Failed;
use crate::limited::Limited;
use crate::{MAX_DEPTH, Options, suffix};
use alloc::string::String;
use core::fmt::{self, Write as _};

/// Steps and bytes written, for each byte of the name and of the output limit.
const BUDGET_PER_BYTE: usize = 2;

/// True for what D compilers write: `_D` (one underscore more in Mach-O) and the first identifier.
pub(crate) fn is_mangled(name: &str) -> bool {
    let body = name.strip_prefix("__D").or_else(|| name.strip_prefix("_D"));
    body.is_some_and(|body| {
        body == "main" || body.starts_with(|c: char| c.is_ascii_digit()) || is_template(body.as_bytes())
    })
}

/// Template instances start with `__T` or `__U`, since 2018 without a length in front.
fn is_template(bytes: &[u8]) -> bool {
    matches!(bytes, [b'_', b'_', b'T' | b'U', ..])
}

/// Writes the readable form of a name.
pub(crate) fn demangle<W: fmt::Write>(
    name: &str,
    options: &Options,
    out: &mut Limited<W>,
) -> Result<(), Failed> {
    let name = name.strip_prefix('_').filter(|rest| rest.starts_with("_D")).unwrap_or(name);
    if name == "_Dmain" {
        return Ok(out.write_str("D main")?);
    }
    let (body, rest) = name.split_at_checked(name.find('.').unwrap_or(name.len())).unwrap_or((name, ""));
    let bytes = body.len().saturating_add(options.max_len).saturating_add(1024);
    let mut reader = Reader {
        bytes: body.as_bytes(),
        at: 0,
        options,
        budget: bytes.saturating_mul(BUDGET_PER_BYTE),
        depth: 0,
        args_depth: 0,
        last_reference: usize::MAX,
    };
    let mut text = String::new();
    let is_whole = reader.mangled_name(&mut text).is_some() && reader.at == body.len();
    if !is_whole {
        let at = reader.at.min(body.len());
        let is_too_complex = reader.budget == 0 || reader.depth >= MAX_DEPTH;
        return Err(if is_too_complex { Failed::TooComplex(at) } else { Failed::Invalid(at) });
    }
    out.write_str(&text)?;
    suffix::write(rest, out)
}

/// Reads one name. Each method writes the text of what it consumes; `None` means that the name is invalid.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    options: &'a Options,
    /// How much more may be done.
    budget: usize,
    depth: u32,
    /// How many lists of template arguments are open.
    args_depth: u32,
    /// Where the innermost type reference is that is being followed; those within must stand before it.
    last_reference: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.at.checked_add(ahead).and_then(|at| self.bytes.get(at)).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, byte: u8) -> bool {
        let is_there = self.peek(0) == byte && byte != 0;
        self.at += usize::from(is_there);
        is_there
    }

    /// Appends to a text, which is what costs.
    fn push(&mut self, out: &mut String, text: &str) -> Option<()> {
        self.budget = self.budget.saturating_sub(text.len() + 1);
        if self.budget == 0 {
            return None;
        }
        out.push_str(text);
        Some(())
    }

    /// Reads a part that may contain itself.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.budget = self.budget.saturating_sub(1);
        if self.budget == 0 || self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let part = read(self)?;
        self.depth -= 1;
        Some(part)
    }

    /// A decimal number, which fits 32 bits.
    fn number(&mut self) -> Option<usize> {
        let (mut value, from) = (0_u32, self.at);
        while self.peek(0).is_ascii_digit() {
            value = value.checked_mul(10)?.checked_add(u32::from(self.peek(0) - b'0'))?;
            self.at += 1;
        }
        if self.at == from { None } else { usize::try_from(value).ok() }
    }

    /// The next `len` bytes, as text.
    fn take(&mut self, len: usize) -> Option<&'a str> {
        let end = self.at.checked_add(len)?;
        let text = core::str::from_utf8(self.bytes.get(self.at..end)?).ok()?;
        self.at = end;
        Some(text)
    }

    /// `Q`, and in base 26 how far back what it refers to is: capital letters, then a small one. Answers where that is.
    fn back_reference(&mut self) -> Option<usize> {
        let from = self.at;
        if !self.skip(b'Q') {
            return None;
        }
        let mut distance = 0_usize;
        loop {
            let letter = self.peek(0);
            self.at += 1;
            let digit = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a',
                _ => return None,
            };
            distance = distance.checked_mul(26)?.checked_add(usize::from(digit))?;
            if letter.is_ascii_lowercase() {
                return from.checked_sub(distance).filter(|_| distance > 0);
            }
        }
    }

    /// Tries a way to read on; if it is the wrong one, nothing was consumed or written.
    fn attempt(&mut self, out: &mut String, read: impl FnOnce(&mut Self, &mut String) -> Option<()>) -> bool {
        let (at, len) = (self.at, out.len());
        let outer = (self.depth, self.args_depth, self.last_reference);
        if read(self, out).is_some() {
            return true;
        }
        // What was tried is paid for.
        self.budget = self.budget.saturating_sub(self.at.saturating_sub(at));
        self.at = at;
        (self.depth, self.args_depth, self.last_reference) = outer;
        out.truncate(len);
        false
    }
}

#[cfg(test)]
mod tests;
