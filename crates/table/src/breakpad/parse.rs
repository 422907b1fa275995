//! One line of the text.

use backtrail_core::Svma;

/// A record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Record<'d> {
    Module {
        os: &'d [u8],
        arch: &'d [u8],
        id: &'d [u8],
        name: &'d [u8],
    },
    Info(&'d [u8]),
    File {
        number: u32,
        name: &'d [u8],
    },
    Origin {
        number: u32,
        name: &'d [u8],
    },
    Function {
        address: Svma,
        size: u64,
        name: &'d [u8],
    },
    Inline {
        depth: u32,
        call_line: u32,
        call_file: u32,
        origin: u32,
        ranges: &'d [u8],
    },
    Line {
        address: Svma,
        size: u64,
        line: u32,
        file: u32,
    },
    Public {
        address: Svma,
        name: &'d [u8],
    },
    /// How to unwind; not read here.
    Stack,
}

/// Reads a line without its end. `None` where it is no record.
pub(super) fn record(line: &[u8]) -> Option<Record<'_>> {
    let (word, rest) = split(line);
    let mut words = Words(rest);
    Some(match word {
        b"MODULE" => {
            Record::Module { os: words.next()?, arch: words.next()?, id: words.next()?, name: words.rest() }
        }
        b"INFO" => Record::Info(words.rest()),
        b"FILE" => Record::File { number: words.decimal()?, name: words.rest() },
        b"INLINE_ORIGIN" => Record::Origin { number: words.decimal()?, name: words.rest() },
        b"FUNC" => {
            words.skip_mark();
            let (address, size) = (words.address()?, words.hex()?);
            words.hex()?;
            Record::Function { address, size, name: words.rest() }
        }
        b"INLINE" => Record::Inline {
            depth: words.decimal()?,
            call_line: words.line()?,
            call_file: words.decimal()?,
            origin: words.decimal()?,
            ranges: words.rest(),
        },
        b"PUBLIC" => {
            words.skip_mark();
            let address = words.address()?;
            words.hex()?;
            Record::Public { address, name: words.rest() }
        }
        b"STACK" => Record::Stack,
        _ => {
            let mut words = Words(line);
            let (address, size) = (words.address()?, words.hex()?);
            Record::Line { address, size, line: words.line()?, file: words.decimal()? }
        }
    })
}

/// Words between single spaces; the last one may have spaces in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'d>(pub(super) &'d [u8]);

fn split(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| *byte == b' ') {
        Some(space) => {
            let (word, rest) = text.split_at(space);
            (word, rest.get(1..).unwrap_or_default())
        }
        None => (text, &[]),
    }
}

impl<'d> Words<'d> {
    pub(super) fn next(&mut self) -> Option<&'d [u8]> {
        let (word, rest) = split(self.0);
        self.0 = rest;
        Some(word).filter(|word| !word.is_empty())
    }

    fn rest(&self) -> &'d [u8] {
        self.0
    }

    /// `m` marks one of several names of the same code.
    fn skip_mark(&mut self) {
        self.0 = self.0.strip_prefix(b"m ").unwrap_or(self.0);
    }

    pub(super) fn hex(&mut self) -> Option<u64> {
        number(self.next()?, 16)
    }

    pub(super) fn address(&mut self) -> Option<Svma> {
        self.hex().map(Svma::new)
    }

    fn decimal(&mut self) -> Option<u32> {
        number(self.next()?, 10).and_then(|value| u32::try_from(value).ok())
    }

    /// Some writers state lines that are none as -1, or as its 32 bits.
    fn line(&mut self) -> Option<u32> {
        let word = self.next()?;
        if word.starts_with(b"-") {
            return Some(0);
        }
        let line = number(word, 10)?;
        Some(u32::try_from(line).ok().filter(|line| *line != u32::MAX).unwrap_or(0))
    }
}

fn number(word: &[u8], base: u32) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    let digit = |byte: &u8| (*byte as char).to_digit(base).map(u64::from);
    word.iter().try_fold(0u64, |value, byte| value.checked_mul(base.into())?.checked_add(digit(byte)?))
}
