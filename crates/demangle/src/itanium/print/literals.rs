//! Literals: numbers, and arrays of characters as strings.

use super::Printer;
use crate::itanium::node::{FloatKind, Id, List, Node, Span};
use crate::itanium::words::Word;
use alloc::string::String;
use core::fmt::Write as _;

impl Printer<'_> {
    /// A number with `n` for a minus sign.
    pub(super) fn signed(&mut self, number: Span) {
        let start = number.start as usize;
        if self.name.as_bytes().get(start) == Some(&b'n') {
            self.write("-");
            self.write_span(Span { start: number.start + 1, len: number.len.saturating_sub(1) });
        } else {
            self.write_span(number);
        }
    }

    pub(super) fn enum_literal(&mut self, ty: Id, value: Span) {
        self.in_parens(|printer| printer.print(ty));
        self.signed(value);
    }

    /// `1ul`, `(char)97`
    pub(super) fn integer(&mut self, ty: Word, value: Span) {
        let ty = ty.text();
        let is_suffix = ty.len() <= "ull".len();
        if !is_suffix {
            self.in_parens(|printer| printer.write(ty));
        }
        self.signed(value);
        if is_suffix {
            self.write(ty);
        }
    }

    /// Hexadecimal, as C's `%a` has it: exact.
    pub(super) fn float(&mut self, kind: FloatKind, digits: Span) {
        let start = digits.start as usize;
        let text = self.name.get(start..start + digits.len as usize).unwrap_or_default();
        let Ok(bits) = u128::from_str_radix(text, 16) else { return };
        let mut number = String::new();
        write_hex_float(&mut number, &Binary::new(kind, bits));
        self.write(&number);
    }

    pub(super) fn suffixed_float(&mut self, kind: FloatKind, is_long: bool, digits: Span) {
        self.float(kind, digits);
        match kind {
            _ if is_long => self.write("L"),
            FloatKind::Float => self.write("f"),
            _ => {}
        }
    }

    pub(super) fn typed_float(&mut self, ty: Id, kind: FloatKind, digits: Span) {
        self.in_parens(|printer| printer.print(ty));
        self.float(kind, digits);
    }

    pub(super) fn complex(&mut self, ty: Id, real: Id, imaginary: Id) {
        self.in_parens(|printer| printer.print(ty));
        self.write("{");
        self.complex_part(real);
        self.write(", ");
        self.complex_part(imaginary);
        self.write("}");
    }

    fn complex_part(&mut self, part: Id) {
        match self.table.node(part) {
            Node::Source(number) => self.signed(number),
            _ => self.print(part),
        }
    }

    /// Writes the values as one string literal, unless one of them is not a character.
    pub(super) fn string(&mut self, values: List) -> bool {
        let from = self.out.len();
        let table = self.table;
        self.write("\"");
        let mut is_after_escape = false;
        for &value in table.list(values) {
            let Some(character) = self.character(value) else {
                self.take_back(from);
                return false;
            };
            // Two literals, so that the digit is not taken for part of the escape.
            if is_after_escape && character.is_ascii_hexdigit() {
                self.write("\"\"");
            }
            is_after_escape = self.escaped(character);
        }
        self.write("\"");
        true
    }

    fn character(&self, value: Id) -> Option<u8> {
        let Node::Integer { value, .. } = self.table.node(value) else { return None };
        let start = value.start as usize;
        self.name.get(start..start + value.len as usize)?.parse().ok()
    }

    /// Writes a character; tells whether it became a numeric escape.
    fn escaped(&mut self, character: u8) -> bool {
        let escape = match character {
            b'\x07' => "\\a",
            b'\x08' => "\\b",
            b'\x0c' => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            b'\x0b' => "\\v",
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b' '..=b'~' => {
                self.write(char::from(character).encode_utf8(&mut [0; 4]));
                return false;
            }
            // LLVM writes the bytes of other character sets as they are, which would not be text.
            _ => return self.numeric_escape(character),
        };
        self.write(escape);
        false
    }

    fn numeric_escape(&mut self, character: u8) -> bool {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = if character > 7 { write!(text, "\\x{character:X}") } else { write!(text, "\\{character}") };
        self.write(&text);
        true
    }
}

/// A floating-point number in its parts.
struct Binary {
    is_negative: bool,
    magnitude: Magnitude,
}

enum Magnitude {
    Infinite,
    NotANumber,
    /// `0x<lead>.<fraction>p<exponent>`, where the fraction has this many hexadecimal digits.
    Finite {
        lead: u128,
        fraction: u128,
        digits: usize,
        exponent: i32,
    },
}

impl Binary {
    fn new(kind: FloatKind, bits: u128) -> Binary {
        match kind {
            FloatKind::Half => Binary::of_double(half_to_double(bits as u16)),
            FloatKind::BFloat16 => Binary::of_float((bits as u32) << 16),
            FloatKind::Float => Binary::of_float(bits as u32),
            FloatKind::Double => Binary::of_double(bits as u64),
            FloatKind::Extended => Binary::of_extended(bits),
            FloatKind::Quad => Binary::of_ieee(bits, 15, 112),
        }
    }

    fn of_float(bits: u32) -> Binary {
        Binary::of_double(f64::from(f32::from_bits(bits)).to_bits())
    }

    fn of_double(bits: u64) -> Binary {
        Binary::of_ieee(u128::from(bits), 11, 52)
    }

    /// A format of IEEE 754 with these many bits of exponent and fraction.
    fn of_ieee(bits: u128, exponent_bits: u32, fraction_bits: u32) -> Binary {
        let fraction = bits & ((1 << fraction_bits) - 1);
        let largest = (1 << exponent_bits) - 1;
        let exponent = (bits >> fraction_bits) as i32 & largest;
        let bias = largest >> 1;
        let digits = fraction_bits as usize / 4;
        let finite = |lead, exponent| Magnitude::Finite { lead, fraction, digits, exponent };
        let magnitude = match exponent {
            _ if exponent == largest && fraction == 0 => Magnitude::Infinite,
            _ if exponent == largest => Magnitude::NotANumber,
            0 if fraction == 0 => finite(0, 0),
            0 => finite(0, 1 - bias),
            _ => finite(1, exponent - bias),
        };
        Binary { is_negative: (bits >> (exponent_bits + fraction_bits)) & 1 != 0, magnitude }
    }

    /// x87's format, with the leading bit stored.
    fn of_extended(bits: u128) -> Binary {
        let mantissa = bits & u128::from(u64::MAX);
        let exponent = ((bits >> 64) & 0x7fff) as i32;
        let (lead, fraction) = (mantissa >> 60, mantissa & ((1 << 60) - 1));
        let finite = |exponent| Magnitude::Finite { lead, fraction, digits: 15, exponent };
        let magnitude = match exponent {
            0x7fff if mantissa & u128::from(u64::MAX >> 1) == 0 => Magnitude::Infinite,
            0x7fff => Magnitude::NotANumber,
            0 if mantissa == 0 => finite(0),
            0 => finite(-16385),
            _ => finite(exponent - 16386),
        };
        Binary { is_negative: (bits >> 79) & 1 != 0, magnitude }
    }
}

/// The bits of the double that has the same value.
fn half_to_double(bits: u16) -> u64 {
    let sign = u64::from(bits >> 15) << 63;
    let fraction = u64::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0x1f => (0x7ff << 52) | (fraction << 42),
        // Exact: it is a whole number of steps of two to the power of -24.
        0 => (fraction as f64 / f64::from(1 << 24)).to_bits(),
        exponent => ((u64::from(exponent) + 1023 - 15) << 52) | (fraction << 42),
    };
    sign | magnitude
}

fn write_hex_float(out: &mut String, number: &Binary) {
    if number.is_negative {
        out.push('-');
    }
    match number.magnitude {
        Magnitude::Infinite => out.push_str("inf"),
        Magnitude::NotANumber => out.push_str("nan"),
        Magnitude::Finite { lead, fraction, digits, exponent } => {
            let mut text = String::new();
            // Writing to a string cannot fail.
            let _ = write!(text, "{fraction:0digits$x}");
            let _ = write!(out, "0x{lead:x}");
            let fraction = text.trim_end_matches('0');
            if !fraction.is_empty() {
                let _ = write!(out, ".{fraction}");
            }
            let _ = write!(out, "p{exponent:+}");
        }
    }
}
