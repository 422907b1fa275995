//! Where the parsers stand in the mangled name.

/// A position in a mangled name. Past the end it answers with zero bytes, which no grammar uses.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'n> {
    name: &'n str,
    at: usize,
}

/// The largest number that the mangling's numbers may reach, as in Swift's own demangler.
const MAX_NUMBER: u32 = i32::MAX as u32;

impl<'n> Cursor<'n> {
    pub(super) fn new(name: &'n str, at: usize) -> Self {
        Cursor { name, at }
    }

    /// The whole name.
    pub(super) fn name(&self) -> &'n str {
        self.name
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.name.len()
    }

    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.name.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// The next byte, passed over; zero at the end.
    #[inline]
    pub(super) fn next(&mut self) -> u8 {
        let byte = self.peek();
        if !self.is_at_end() {
            self.at += 1;
        }
        byte
    }

    /// Passes over `byte` if it comes next.
    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let is_next = byte != 0 && self.peek() == byte;
        if is_next {
            self.at += 1;
        }
        is_next
    }

    /// Passes over `byte` if it comes next and `accept` takes the one after it.
    pub(super) fn eat_before(&mut self, byte: u8, accept: impl Fn(u8) -> bool) -> bool {
        let after = self.name.as_bytes().get(self.at + 1).copied().unwrap_or(0);
        accept(after) && self.eat(byte)
    }

    /// Passes over `text` if it comes next.
    pub(super) fn eat_str(&mut self, text: &str) -> bool {
        let is_next = self.name.get(self.at..).is_some_and(|rest| rest.starts_with(text));
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// `NATURAL`: decimal digits.
    pub(super) fn natural(&mut self) -> Option<u32> {
        let mut digits = 0;
        let mut number: u32 = 0;
        while let digit @ b'0'..=b'9' = self.peek() {
            number = number.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
            if number > MAX_NUMBER {
                return None;
            }
            self.at += 1;
            digits += 1;
        }
        (digits > 0).then_some(number)
    }

    /// `INDEX`: `_` is 0, `n_` is n + 1.
    pub(super) fn index(&mut self) -> Option<u32> {
        if self.eat(b'_') {
            return Some(0);
        }
        let number = self.natural()?;
        self.eat(b'_').then(|| number + 1)
    }

    /// A number in manglings before Swift 4, where none is too large: what is past the limit is the limit.
    pub(super) fn old_natural(&mut self) -> Option<u32> {
        let start = self.at;
        let mut number: u32 = 0;
        while let digit @ b'0'..=b'9' = self.peek() {
            number = number.saturating_mul(10).saturating_add(u32::from(digit - b'0')).min(MAX_NUMBER);
            self.at += 1;
        }
        (self.at > start).then_some(number)
    }

    /// An `INDEX` in manglings before Swift 4.
    pub(super) fn old_index(&mut self) -> Option<u32> {
        if self.eat(b'_') {
            return Some(0);
        }
        let number = self.old_natural()?;
        self.eat(b'_').then(|| number + 1)
    }

    /// The next `len` bytes, passed over; `None` past the end or within a character.
    pub(super) fn take(&mut self, len: usize) -> Option<&'n str> {
        let text = self.name.get(self.at..)?.get(..len)?;
        self.at += len;
        Some(text)
    }

    /// Passes over bytes as long as `accept` takes them; says how many.
    pub(super) fn skip_while(&mut self, accept: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        while !self.is_at_end() && accept(self.peek()) {
            self.at += 1;
        }
        self.at - start
    }
}
