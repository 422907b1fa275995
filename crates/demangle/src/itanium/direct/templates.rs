//! Template arguments, and the parameters that stand for them.

use super::{Direct, Kind, Part, Text};
use crate::itanium::words::Word;

impl Direct<'_, '_> {
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
