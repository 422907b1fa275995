//! Types.

use super::Reader;
use alloc::string::String;

impl Reader<'_> {
    pub(super) fn ty(&mut self, out: &mut String) -> Option<()> {
        self.nested(|reader| reader.ty_inside(out))
    }

    fn ty_inside(&mut self, out: &mut String) -> Option<()> {
        let letter = self.peek(0);
        if let Some(name) = basic(letter) {
            self.at += 1;
            return self.push(out, name);
        }
        match letter {
            b'O' => self.qualified(out, 1, "shared("),
            b'x' => self.qualified(out, 1, "const("),
            b'y' => self.qualified(out, 1, "immutable("),
            b'N' => match self.peek(1) {
                b'g' => self.qualified(out, 2, "inout("),
                b'h' => self.qualified(out, 2, "__vector("),
                b'n' => {
                    self.at += 2;
                    self.push(out, "typeof(*null)")
                }
                _ => None,
            },
            b'z' => {
                let name = match self.peek(1) {
                    b'i' => "cent",
                    b'k' => "ucent",
                    _ => return None,
                };
                self.at += 2;
                self.push(out, name)
            }
            b'A' => {
                self.at += 1;
                self.ty(out)?;
                self.push(out, "[]")
            }
            b'G' => self.static_array(out),
            b'H' => self.associative_array(out),
            b'P' if !self.is_at_call_convention(1) => {
                self.at += 1;
                self.ty(out)?;
                self.push(out, "*")
            }
            b'C' | b'S' | b'E' | b'T' => {
                self.at += 1;
                self.qualified_name(out, false)
            }
            b'D' => self.delegate(out),
            b'B' => self.tuple(out),
            b'Q' => self.type_reference(out, Self::ty),
            _ => {
                // A function, or a pointer to one
                self.skip(b'P');
                self.function_type(out)?;
                self.push(out, "function")
            }
        }
    }

    fn qualified(&mut self, out: &mut String, len: usize, before: &str) -> Option<()> {
        self.at += len;
        self.push(out, before)?;
        self.ty(out)?;
        self.push(out, ")")
    }

    /// `G <number> <type>`
    fn static_array(&mut self, out: &mut String) -> Option<()> {
        self.at += 1;
        let from = self.at;
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        let len = self.at - from;
        self.at = from;
        let number = self.take(len).filter(|number| !number.is_empty())?;
        self.ty(out)?;
        self.push(out, "[")?;
        self.push(out, number)?;
        self.push(out, "]")
    }

    /// `H <key type> <value type>`
    fn associative_array(&mut self, out: &mut String) -> Option<()> {
        self.at += 1;
        let mut key = String::new();
        self.ty(&mut key)?;
        self.ty(out)?;
        self.push(out, "[")?;
        self.push(out, &key)?;
        self.push(out, "]")
    }

    /// `D <modifiers> <function type>`
    fn delegate(&mut self, out: &mut String) -> Option<()> {
        self.at += 1;
        let mut modifiers = String::new();
        self.type_modifiers(&mut modifiers)?;
        if self.peek(0) == b'Q' {
            self.type_reference(out, Self::function_type)?;
        } else {
            self.function_type(out)?;
        }
        self.push(out, "delegate")?;
        self.push(out, &modifiers)
    }

    /// `B <number> <type>*`
    fn tuple(&mut self, out: &mut String) -> Option<()> {
        self.at += 1;
        let count = self.number()?;
        self.push(out, "Tuple!(")?;
        for index in 0..count {
            if index > 0 {
                self.push(out, ", ")?;
            }
            self.ty(out)?;
        }
        self.push(out, ")")
    }

    /// A reference to a type that stands before every reference it is followed from, so that it comes to an end.
    fn type_reference(
        &mut self,
        out: &mut String,
        read: impl FnOnce(&mut Self, &mut String) -> Option<()>,
    ) -> Option<()> {
        let from = self.at;
        if from >= self.last_reference {
            return None;
        }
        let target = self.back_reference()?;
        let behind = core::mem::replace(&mut self.at, target);
        let outer = core::mem::replace(&mut self.last_reference, from);
        self.nested(|reader| read(reader, out))?;
        self.last_reference = outer;
        self.at = behind;
        Some(())
    }

    /// What qualifies `this`: ` const`, ` shared inout`.
    pub(super) fn type_modifiers(&mut self, out: &mut String) -> Option<()> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'x', _) => {
                    self.at += 1;
                    return self.push(out, " const");
                }
                (b'y', _) => {
                    self.at += 1;
                    return self.push(out, " immutable");
                }
                (b'O', _) => {
                    self.at += 1;
                    self.push(out, " shared")?;
                }
                (b'N', b'g') => {
                    self.at += 2;
                    self.push(out, " inout")?;
                }
                _ => return Some(()),
            }
        }
    }

    pub(super) fn is_at_call_convention(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), b'F' | b'U' | b'V' | b'W' | b'R' | b'Y')
    }

    /// Mangled as convention, attributes, parameters, return type; written with the return type first, and a space
    /// behind.
    fn function_type(&mut self, out: &mut String) -> Option<()> {
        let (mut params, mut attributes) = (String::new(), String::new());
        self.function_without_return(out, &mut params, &mut attributes)?;
        self.ty(out)?;
        self.push(out, &params)?;
        self.push(out, " ")?;
        self.push(out, &attributes)
    }

    pub(super) fn function_without_return(
        &mut self,
        convention: &mut String,
        params: &mut String,
        attributes: &mut String,
    ) -> Option<()> {
        let name = match self.peek(0) {
            b'F' => "",
            b'U' => "extern(C) ",
            b'W' => "extern(Windows) ",
            b'V' => "extern(Pascal) ",
            b'R' => "extern(C++) ",
            b'Y' => "extern(Objective-C) ",
            _ => return None,
        };
        self.at += 1;
        self.push(convention, name)?;
        self.attributes(attributes)?;
        self.push(params, "(")?;
        self.params(params)?;
        self.push(params, ")")
    }

    fn attributes(&mut self, out: &mut String) -> Option<()> {
        while self.peek(0) == b'N' {
            let name = match self.peek(1) {
                b'a' => "pure ",
                b'b' => "nothrow ",
                b'c' => "ref ",
                b'd' => "@property ",
                b'e' => "@trusted ",
                b'f' => "@safe ",
                b'i' => "@nogc ",
                b'j' => "return ",
                b'l' => "scope ",
                b'm' => "@live ",
                // Of the first parameter's type
                b'g' | b'h' | b'k' | b'n' => return Some(()),
                _ => return None,
            };
            self.at += 2;
            self.push(out, name)?;
        }
        Some(())
    }

    fn params(&mut self, out: &mut String) -> Option<()> {
        let mut is_first = true;
        loop {
            match self.peek(0) {
                // The last parameter takes any number of arguments.
                b'X' => {
                    self.at += 1;
                    return self.push(out, "...");
                }
                b'Y' => {
                    self.at += 1;
                    return self.push(out, if is_first { "..." } else { ", ..." });
                }
                b'Z' => {
                    self.at += 1;
                    return Some(());
                }
                _ => {}
            }
            if !is_first {
                self.push(out, ", ")?;
            }
            is_first = false;
            self.storage(out)?;
            self.ty(out)?;
        }
    }

    /// How a parameter is passed.
    fn storage(&mut self, out: &mut String) -> Option<()> {
        if self.skip(b'M') {
            self.push(out, "scope ")?;
        }
        if self.rest().starts_with(b"Nk") {
            self.at += 2;
            self.push(out, "return ")?;
        }
        let is_in = self.skip(b'I');
        if is_in {
            self.push(out, "in ")?;
        }
        let name = match self.peek(0) {
            b'K' => "ref ",
            b'J' if !is_in => "out ",
            b'L' if !is_in => "lazy ",
            _ => return Some(()),
        };
        self.at += 1;
        self.push(out, name)
    }
}

fn basic(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'a' => "char",
        b'b' => "bool",
        b'c' => "creal",
        b'd' => "double",
        b'e' => "real",
        b'f' => "float",
        b'g' => "byte",
        b'h' => "ubyte",
        b'i' => "int",
        b'j' => "ireal",
        b'k' => "uint",
        b'l' => "long",
        b'm' => "ulong",
        b'n' => "typeof(null)",
        b'o' => "ifloat",
        b'p' => "idouble",
        b'q' => "cfloat",
        b'r' => "cdouble",
        b's' => "short",
        b't' => "ushort",
        b'u' => "wchar",
        b'v' => "void",
        b'w' => "dchar",
        _ => return None,
    })
}
