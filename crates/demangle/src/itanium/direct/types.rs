//! Types, template arguments, substitutions.

use super::{Direct, Kind, Text};
use crate::itanium::words::Word;

impl Direct<'_, '_> {
    /// A type; answers what is to be known of it.
    pub(super) fn ty(&mut self) -> Option<Kind> {
        let first = self.peek(0);
        if let Some(word) = Word::builtin(first) {
            self.at += 1;
            self.push(word.text().as_bytes());
            return Some(Kind::Plain);
        }
        self.nested(|direct| direct.compound_type(first))
    }

    fn compound_type(&mut self, first: u8) -> Option<Kind> {
        let start = self.here();
        let kind = match first {
            b'P' => self.pointer()?,
            b'R' | b'O' => self.reference(first)?,
            b'K' | b'V' | b'r' => self.qualified()?,
            b'S' if self.peek(1) != b't' => return self.substitution_type(),
            b'T' => self.template_param()?,
            b'F' => self.function_type()?,
            b'A' => self.array_type()?,
            b'D' => return self.d_type(),
            b'N' | b'S' | b'Z' | b'1'..=b'9' => {
                let base = self.name(None)?;
                self.remember(start, base, Kind::Plain);
                return Some(Kind::Plain);
            }
            _ => return None,
        };
        self.remember(start, Text::NONE, kind);
        Some(kind)
    }

    fn pointer(&mut self) -> Option<Kind> {
        self.at += 1;
        let substitutions_from = self.buffers.substitutions.len();
        match self.ty()? {
            Kind::Bare(place) => self.wrap(place, b"*", substitutions_from),
            Kind::Wrapped(place) => self.add(place, b"*", substitutions_from),
            Kind::Unusable => None,
            _ => {
                self.push(b"*");
                Some(Kind::Plain)
            }
        }
    }

    /// Opens the parentheses that a pointer to a function or array needs.
    fn wrap(&mut self, place: u32, mark: &[u8], substitutions_from: usize) -> Option<Kind> {
        let is_array = self.out.get(place as usize) == Some(&b' ');
        self.insert(place, if is_array { b" ()" } else { b"()" }, substitutions_from)?;
        self.add(place + if is_array { 2 } else { 1 }, mark, substitutions_from)
    }

    /// Adds something within the parentheses.
    fn add(&mut self, place: u32, mark: &[u8], substitutions_from: usize) -> Option<Kind> {
        self.insert(place, mark, substitutions_from)?;
        Some(Kind::Wrapped(place + mark.len() as u32))
    }

    /// `&` and `&&`; of references to references one remains, `&&` only if both are.
    fn reference(&mut self, first: u8) -> Option<Kind> {
        self.at += 1;
        let substitutions_from = self.buffers.substitutions.len();
        let to = self.ty()?;
        let (mark, own): (&[u8], _) =
            if first == b'R' { (b"&", Kind::LValueReference) } else { (b"&&", Kind::RValueReference) };
        match (to, own) {
            (Kind::LValueReference, _) => Some(Kind::LValueReference),
            (Kind::RValueReference, Kind::RValueReference) => Some(Kind::RValueReference),
            // The text that is there would have to change.
            (Kind::RValueReference | Kind::Unusable, _) => None,
            (Kind::Bare(place), _) => self.closed(|direct| direct.wrap(place, mark, substitutions_from)),
            (Kind::Wrapped(place), _) => self.closed(|direct| direct.add(place, mark, substitutions_from)),
            _ => {
                self.push(mark);
                Some(own)
            }
        }
    }

    /// A reference to a function or array is rarely used again; as what, only the general way knows.
    fn closed(&mut self, wrap: impl FnOnce(&mut Self) -> Option<Kind>) -> Option<Kind> {
        wrap(self)?;
        Some(Kind::Unusable)
    }

    fn qualified(&mut self) -> Option<Kind> {
        let substitutions_from = self.buffers.substitutions.len();
        let qualifiers = self.qualifiers();
        let mut kind = self.ty()?;
        let marks: [(bool, &[u8]); 3] = [
            (qualifiers.is_const, b" const"),
            (qualifiers.is_volatile, b" volatile"),
            (qualifiers.is_restrict, b" restrict"),
        ];
        for (is_there, mark) in marks {
            kind = match kind {
                _ if !is_there => continue,
                Kind::Wrapped(place) => self.add(place, mark, substitutions_from)?,
                // Of an array the elements are qualified; a qualified function is another production.
                Kind::Bare(_) | Kind::Unusable => return None,
                _ => {
                    self.push(mark);
                    Kind::Plain
                }
            };
        }
        Some(kind)
    }

    /// A substitution, or a template or member of it.
    fn substitution_type(&mut self) -> Option<Kind> {
        let start = self.here();
        let kind = self.substitution()?;
        if self.peek(0) != b'I' {
            return Some(kind);
        }
        let base = self.substituted;
        self.template_args(None)?;
        self.remember(start, base, Kind::Plain);
        Some(Kind::Plain)
    }

    /// A substitution; notes what its constructors are called.
    pub(super) fn substitution(&mut self) -> Option<Kind> {
        self.expect(b'S')?;
        let letter = self.peek(0);
        if letter.is_ascii_lowercase() {
            self.substituted = self.standard_substitution(letter)?;
            return Some(Kind::Plain);
        }
        let index = if letter == b'_' { 0 } else { self.sequence_id()?.checked_add(1)? };
        self.expect(b'_')?;
        let part = *self.buffers.substitutions.get(index)?;
        self.substituted = part.base.moved(self.here().wrapping_sub(part.text.start()));
        self.copy(part)
    }

    fn standard_substitution(&mut self, letter: u8) -> Option<Text> {
        let name: &[u8] = match letter {
            b'a' => b"std::allocator",
            b'b' => b"std::basic_string",
            b's' => b"std::string",
            b'i' => b"std::istream",
            b'o' => b"std::ostream",
            b'd' => b"std::iostream",
            _ => return None,
        };
        self.at += 1;
        if self.peek(0) == b'B' {
            return None;
        }
        let start = self.here() + b"std::".len() as u32;
        self.push(name);
        // The typedefs' constructors are those of the templates behind them.
        let has_base = matches!(letter, b'a' | b'b');
        Some(if has_base { Text::new(start, self.here()) } else { Text::NONE })
    }

    fn d_type(&mut self) -> Option<Kind> {
        let second = self.peek(1);
        self.at += 2;
        if second == b'p' {
            let start = self.here();
            self.expansion()?;
            self.remember(start, Text::NONE, Kind::Plain);
            return Some(Kind::Plain);
        }
        self.push(Word::builtin_d(second)?.text().as_bytes());
        Some(Kind::Plain)
    }

    /// Writes the pattern once for each element of the packs in it.
    fn expansion(&mut self) -> Option<()> {
        if self.pack_index.is_some() {
            return None;
        }
        let (start, pattern) = (self.here(), self.at);
        self.pack_index = Some(0);
        self.pack_len = None;
        self.ty()?;
        let substitutions = self.buffers.substitutions.len();
        // Without a pack the length is not known.
        let len = self.pack_len?;
        if len == 0 {
            self.out.truncate(start as usize);
        }
        for index in 1..len {
            self.push(b", ");
            self.pack_index = Some(index);
            self.at = pattern;
            self.ty()?;
            self.buffers.substitutions.truncate(substitutions);
        }
        self.pack_index = None;
        self.pack_len = None;
        Some(())
    }

    fn function_type(&mut self) -> Option<Kind> {
        self.expect(b'F')?;
        self.skip(b'Y');
        if !matches!(self.ty()?, Kind::Plain | Kind::LValueReference | Kind::RValueReference) {
            return None;
        }
        self.push(b" ");
        let place = self.here();
        self.push(b"(");
        let from = self.here();
        while !self.skip(b'E') {
            if self.skip(b'v') {
                continue;
            }
            // A ref-qualifier
            if matches!(self.peek(0), b'R' | b'O') && self.peek(1) == b'E' {
                return None;
            }
            let start = self.comma(from);
            self.ty()?;
            self.uncomma(from, start);
        }
        self.push(b")");
        Some(Kind::Bare(place))
    }

    /// `A <number> _ <type>`, of elements that are no arrays themselves.
    fn array_type(&mut self) -> Option<Kind> {
        self.expect(b'A')?;
        let dimension = self.digits();
        self.expect(b'_')?;
        if self.ty()? != Kind::Plain || self.out.last() == Some(&b']') {
            return None;
        }
        let place = self.here();
        self.push(b" [");
        let dimension = self.text(dimension);
        self.push(dimension);
        self.push(b"]");
        Some(Kind::Bare(place))
    }
}
