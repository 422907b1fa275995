//! The smallest pieces of a name: letters, numbers, identifiers, sequence ids.

use super::node::{Qualifiers, Span};

/// Where reading is in a name. Each method consumes what it reads; `None` is for what is not there.
pub(super) struct Cursor<'n> {
    pub(super) bytes: &'n [u8],
    pub(super) at: usize,
}

impl<'n> Cursor<'n> {
    /// The byte that is `ahead` of the current one; zero behind the end.
    #[inline]
    pub(super) fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    #[inline]
    pub(super) fn skip(&mut self, byte: u8) -> bool {
        if self.bytes.get(self.at) == Some(&byte) {
            self.at += 1;
            return true;
        }
        false
    }

    #[inline]
    pub(super) fn skip_text(&mut self, text: &[u8]) -> bool {
        let is_there = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(text));
        if is_there {
            self.at += text.len();
        }
        is_there
    }

    /// Consumes `byte`, which must be there.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Option<()> {
        self.skip(byte).then_some(())
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        // Names are shorter than 4 GiB: see `MAX_NAME`.
        Span { start: start as u32, len: (end - start) as u32 }
    }

    /// `[0-9]+`, or nothing.
    pub(super) fn digits(&mut self) -> Span {
        let start = self.at;
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        self.span(start, self.at)
    }

    /// `[n] [0-9]+`, or nothing; then an `n` is consumed all the same.
    pub(super) fn number(&mut self) -> Span {
        let start = self.at;
        self.skip(b'n');
        if self.digits().len == 0 { self.span(start, start) } else { self.span(start, self.at) }
    }

    /// `[0-9]+`, as a value: a length or a position, so never more than the name is long.
    #[inline]
    pub(super) fn value(&mut self) -> Option<usize> {
        let mut value = usize::from(self.peek(0).wrapping_sub(b'0'));
        if value > 9 {
            return None;
        }
        self.at += 1;
        loop {
            let digit = self.peek(0).wrapping_sub(b'0');
            if digit > 9 {
                return Some(value);
            }
            self.at += 1;
            value = value * 10 + usize::from(digit);
            if value > self.bytes.len() {
                return None;
            }
        }
    }

    /// `<source-name>` without its node.
    #[inline]
    pub(super) fn identifier(&mut self) -> Option<Span> {
        let len = self.value()?;
        if len == 0 || len > self.left() {
            return None;
        }
        let start = self.at;
        self.at += len;
        Some(self.span(start, self.at))
    }

    /// Whether it is what compilers call an anonymous namespace.
    #[inline]
    pub(super) fn is_anonymous(&self, span: Span) -> bool {
        self.bytes.get(span.start as usize) == Some(&b'_') && self.text(span).starts_with(b"_GLOBAL__N")
    }

    pub(super) fn text(&self, span: Span) -> &'n [u8] {
        let start = span.start as usize;
        self.bytes.get(start..start + span.len as usize).unwrap_or_default()
    }

    /// `<seq-id> ::= <0-9A-Z>+`
    pub(super) fn sequence_id(&mut self) -> Option<usize> {
        let mut value: Option<usize> = None;
        loop {
            let digit = match self.peek(0) {
                digit @ b'0'..=b'9' => digit - b'0',
                letter @ b'A'..=b'Z' => letter - b'A' + 10,
                _ => return value,
            };
            value = Some(value.unwrap_or(0).checked_mul(36)?.checked_add(usize::from(digit))?);
            self.at += 1;
        }
    }

    /// `<CV-qualifiers> ::= [r] [V] [K]`
    pub(super) fn qualifiers(&mut self) -> Qualifiers {
        Qualifiers { is_restrict: self.skip(b'r'), is_volatile: self.skip(b'V'), is_const: self.skip(b'K') }
    }

    /// `<discriminator> ::= _ <digit> | __ <number> _`; older compilers end the name in any digits, with an underscore
    /// or without.
    pub(super) fn discriminator(&mut self) {
        let from = self.at;
        if self.skip(b'_') {
            if self.peek(0).is_ascii_digit() {
                self.at += 1;
                let behind_digit = self.at;
                self.digits();
                if !self.is_at_end() {
                    self.at = behind_digit;
                }
                return;
            }
            if self.skip(b'_') {
                self.digits();
                if self.skip(b'_') {
                    return;
                }
            }
        } else if self.digits().len > 0 && self.is_at_end() {
            return;
        }
        self.at = from;
    }

    /// What can follow an encoding; none of these starts a type.
    pub(super) fn is_at_encoding_end(&self) -> bool {
        self.is_at_end() || matches!(self.peek(0), b'E' | b'.' | b'_' | b'$')
    }

    /// ```text
    /// <call-offset> ::= h <number> _
    ///               ::= v <number> _ <number> _
    /// ```
    pub(super) fn call_offset(&mut self) -> Option<()> {
        if self.skip(b'h') {
            return self.offset();
        }
        self.expect(b'v')?;
        self.offset()?;
        self.offset()
    }

    /// `<number> _`, which is no part of the readable name.
    pub(super) fn offset(&mut self) -> Option<()> {
        if self.number().len == 0 {
            return None;
        }
        self.expect(b'_')
    }
}
