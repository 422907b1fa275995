//! Values of template parameters.

use super::Reader;
use alloc::format;
use alloc::string::String;

impl<'a> Reader<'a> {
    /// `V <type> <value>`, of which the value is written.
    pub(super) fn value_arg(&mut self, out: &mut String) -> Option<()> {
        // What the type's letter is behind a reference
        let mut letter = self.peek(0);
        if letter == b'Q' {
            let at = self.at;
            let target = self.back_reference()?;
            letter = self.bytes.get(target).copied().unwrap_or(0);
            self.at = at;
        }
        let mut ty = String::new();
        self.ty(&mut ty)?;
        self.value(out, &ty, letter)
    }

    fn value(&mut self, out: &mut String, ty: &str, letter: u8) -> Option<()> {
        self.nested(|reader| reader.value_inside(out, ty, letter))
    }

    fn value_inside(&mut self, out: &mut String, ty: &str, letter: u8) -> Option<()> {
        let kind = self.peek(0);
        if kind.is_ascii_digit() {
            return self.integer(out, letter);
        }
        self.at += 1;
        match kind {
            b'n' => self.push(out, "null"),
            b'N' => {
                self.push(out, "-")?;
                self.integer(out, letter)
            }
            b'i' => self.integer(out, letter),
            b'e' => self.real(out),
            b'c' => {
                self.real(out)?;
                self.push(out, "+")?;
                if !self.skip(b'c') {
                    return None;
                }
                self.real(out)?;
                self.push(out, "i")
            }
            b'a' | b'w' | b'd' => self.string(out, kind),
            b'A' if letter == b'H' => self.list(out, "[", "]", true),
            b'A' => self.list(out, "[", "]", false),
            b'S' => {
                self.push(out, ty)?;
                self.list(out, "(", ")", false)
            }
            b'f' => self.mangled_name(out),
            _ => None,
        }
    }

    /// `<number> <value>*`, or pairs of values
    fn list(&mut self, out: &mut String, open: &str, close: &str, has_keys: bool) -> Option<()> {
        let count = self.number()?;
        self.push(out, open)?;
        for index in 0..count {
            if index > 0 {
                self.push(out, ", ")?;
            }
            self.value(out, "", 0)?;
            if has_keys {
                self.push(out, ":")?;
                self.value(out, "", 0)?;
            }
        }
        self.push(out, close)
    }

    /// A number, written as a literal of its type.
    fn integer(&mut self, out: &mut String, letter: u8) -> Option<()> {
        match letter {
            b'a' | b'u' | b'w' => {
                let value = self.number()?;
                let text = match letter {
                    b'a' if (0x20..0x7f).contains(&value) => format!("'{}'", char::from(value as u8)),
                    b'a' => format!("'\\x{value:02x}'"),
                    b'u' => format!("'\\u{value:04x}'"),
                    _ => format!("'\\U{value:08x}'"),
                };
                return self.push(out, &text);
            }
            b'b' => {
                let value = self.number()?;
                return self.push(out, if value == 0 { "false" } else { "true" });
            }
            _ => {}
        }
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = self.take(digits).filter(|digits| !digits.is_empty())?;
        self.push(out, digits)?;
        self.push(
            out,
            match letter {
                b'h' | b't' | b'k' => "u",
                b'l' => "L",
                b'm' => "uL",
                _ => "",
            },
        )
    }

    /// `[N] <hexadecimal digits> P [N] <digits>`, or `NAN`, `INF`, `NINF`
    fn real(&mut self, out: &mut String) -> Option<()> {
        for (mangled, text) in [("NAN", "NaN"), ("INF", "Inf"), ("NINF", "-Inf")] {
            if self.rest().starts_with(mangled.as_bytes()) {
                self.at += mangled.len();
                return self.push(out, text);
            }
        }
        if self.skip(b'N') {
            self.push(out, "-")?;
        }
        let first = self.hex_digits(1)?;
        self.push(out, "0x")?;
        self.push(out, first)?;
        self.push(out, ".")?;
        let count = self.rest().iter().take_while(|byte| is_hex(**byte)).count();
        let fraction = self.take(count)?;
        self.push(out, fraction)?;
        if !self.skip(b'P') {
            return None;
        }
        self.push(out, "p")?;
        if self.skip(b'N') {
            self.push(out, "-")?;
        }
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let exponent = self.take(count)?;
        self.push(out, exponent)
    }

    fn hex_digits(&mut self, count: usize) -> Option<&'a str> {
        let digits = self.rest().get(..count)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        self.take(count)
    }

    /// `<number> _ <two hexadecimal digits for each byte>`; `kind` is what a literal of other characters ends in.
    fn string(&mut self, out: &mut String, kind: u8) -> Option<()> {
        let len = self.number()?;
        if !self.skip(b'_') {
            return None;
        }
        self.push(out, "\"")?;
        for _ in 0..len {
            let digits = self.hex_digits(2)?;
            let byte = u8::from_str_radix(digits, 16).ok()?;
            let text = match byte {
                b'\t' => "\\t".into(),
                b'\n' => "\\n".into(),
                b'\r' => "\\r".into(),
                b'\x0c' => "\\f".into(),
                b'\x0b' => "\\v".into(),
                b' '..=b'~' => String::from(char::from(byte)),
                _ => format!("\\x{digits}"),
            };
            self.push(out, &text)?;
        }
        self.push(out, "\"")?;
        if kind == b'a' {
            return Some(());
        }
        self.push(out, if kind == b'w' { "w" } else { "d" })
    }
}

/// The digits of a number: small letters are no part of it.
fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte)
}
