//! Types, template arguments, substitutions.

use super::{Direct, Kind, Part, Text};
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

    /// `T_`, `T0_`, ..., without arguments of its own.
    pub(super) fn template_param(&mut self) -> Option<Kind> {
        self.expect(b'T')?;
        let is_of_lambda = self.skip_text(b"L0_");
        let index = if self.skip(b'_') {
            0
        } else {
            let index = self.value()?.checked_add(1)?;
            self.expect(b'_')?;
            index
        };
        if self.peek(0) == b'I' {
            return None;
        }
        let level = usize::from(is_of_lambda);
        let arg = self.args_from.filter(|_| level == 0).and_then(|from| self.buffers.args.get(from + index));
        match arg.copied() {
            Some(Part { kind: Kind::Pack, text, .. }) => self.pack_element(text),
            Some(part) => self.copy(part),
            None => self.lambda_auto(level),
        }
    }

    /// A parameter of a generic lambda.
    fn lambda_auto(&mut self, level: usize) -> Option<Kind> {
        if self.lambda_level != Some(level) || level > usize::from(self.args_from.is_some()) {
            return None;
        }
        self.push(b"auto");
        Some(Kind::Plain)
    }

    /// The element of the pack that is being written; the first pack that an expansion meets sets its length.
    fn pack_element(&mut self, range: Text) -> Option<Kind> {
        let index = self.pack_index?;
        let elements = self.buffers.elements.get(range.range())?;
        self.pack_len = self.pack_len.or(Some(elements.len()));
        match elements.get(index).copied() {
            Some(element) => self.copy(element),
            None => Some(Kind::Plain),
        }
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

    /// Template arguments; those of an encoding's name (`args`: where they are to start) become what its parameters
    /// stand for.
    pub(super) fn template_args(&mut self, args: Option<usize>) -> Option<()> {
        self.expect(b'I')?;
        self.push(b"<");
        let from = self.here();
        if let Some(args) = args {
            self.buffers.args.truncate(args);
            self.args_from = Some(args);
        }
        while !self.skip(b'E') {
            let start = self.comma(from);
            let elements_from = self.buffers.elements.len() as u32;
            let kind = self.template_arg(args.is_some())?;
            if args.is_some() {
                let text = match kind {
                    Kind::Pack => Text::new(elements_from, self.buffers.elements.len() as u32),
                    _ => Text::new(start, self.here()),
                };
                self.buffers.args.push(Part { text, base: Text::NONE, kind });
            }
            self.uncomma(from, start);
        }
        self.push(b">");
        Some(())
    }

    fn template_arg(&mut self, is_kept: bool) -> Option<Kind> {
        let kind = match self.peek(0) {
            b'L' => self.literal()?,
            b'J' => {
                self.nested(|direct| direct.pack(is_kept))?;
                Kind::Pack
            }
            b'X' | b'I' => return None,
            _ => self.ty()?,
        };
        Some(if self.pack_index.is_some() { Kind::Unusable } else { kind })
    }

    fn pack(&mut self, is_kept: bool) -> Option<()> {
        self.expect(b'J')?;
        let from = self.here();
        while !self.skip(b'E') {
            let start = self.comma(from);
            // A pack within a pack would share the list of elements.
            if self.peek(0) == b'J' {
                return None;
            }
            let kind = self.template_arg(false)?;
            if is_kept {
                let text = Text::new(start, self.here());
                self.buffers.elements.push(Part { text, base: Text::NONE, kind });
            }
            self.uncomma(from, start);
        }
        Some(())
    }

    /// Numbers, `bool`, enumerators, external names.
    fn literal(&mut self) -> Option<Kind> {
        self.at += 1;
        let first = self.peek(0);
        if let Some(ty) = Word::literal_type(first) {
            self.at += 1;
            let is_suffix = ty.text().len() <= "ull".len();
            if !is_suffix {
                self.in_parens(ty.text().as_bytes());
            }
            self.literal_value()?;
            if is_suffix {
                self.push(ty.text().as_bytes());
            }
            return Some(Kind::Plain);
        }
        match first {
            b'b' => {
                let is_true = self.peek(1) == b'1';
                if !is_true && self.peek(1) != b'0' {
                    return None;
                }
                self.at += 2;
                self.expect(b'E')?;
                self.push(if is_true { b"true" } else { b"false" });
            }
            b'N' | b'S' | b'1'..=b'9' => {
                self.push(b"(");
                self.ty()?;
                self.push(b")");
                self.literal_value()?;
            }
            _ => return None,
        }
        Some(Kind::Plain)
    }

    fn in_parens(&mut self, text: &[u8]) {
        self.push(b"(");
        self.push(text);
        self.push(b")");
    }

    fn literal_value(&mut self) -> Option<()> {
        if self.skip(b'n') {
            self.push(b"-");
        }
        let digits = self.digits();
        if digits.len == 0 {
            return None;
        }
        let digits = self.text(digits);
        self.push(digits);
        self.expect(b'E')
    }
}
