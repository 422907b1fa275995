//! Qualified names: identifiers, functions they are in, template instances.

use super::{Reader, is_template};
use alloc::string::String;

impl Reader<'_> {
    /// `_D <qualified name> (<type> | Z)`, where the type is read and not written.
    pub(super) fn mangled_name(&mut self, out: &mut String) -> Option<()> {
        self.take("_D".len()).filter(|prefix| *prefix == "_D")?;
        self.qualified_name(out, true)?;
        // What compilers make for themselves has no type.
        if self.skip(b'Z') {
            return Some(());
        }
        self.ty(&mut String::new())
    }

    /// Identifiers, each possibly with the parameters of a function; `is_outermost`: with what the last function's
    /// `this` is qualified with.
    pub(super) fn qualified_name(&mut self, out: &mut String, is_outermost: bool) -> Option<()> {
        self.nested(|reader| {
            let mut is_first = true;
            loop {
                // Names that have none.
                let mut has_skipped = false;
                while reader.skip(b'0') {
                    has_skipped = true;
                }
                if !has_skipped || reader.is_at_name() {
                    if !is_first {
                        reader.push(out, ".")?;
                    }
                    is_first = false;
                    reader.identifier(out)?;
                    if reader.peek(0) == b'M' || reader.is_at_call_convention(0) {
                        reader.attempt(out, |reader, out| reader.function(out, is_outermost));
                    }
                }
                if !reader.is_at_name() {
                    return Some(());
                }
            }
        })
    }

    /// The parameters of a function within a name; where nothing follows them, they are those of the name's type.
    fn function(&mut self, out: &mut String, is_outermost: bool) -> Option<()> {
        let mut modifiers = String::new();
        if self.skip(b'M') {
            self.type_modifiers(&mut modifiers)?;
        }
        let mut params = String::new();
        self.function_without_return(&mut String::new(), &mut params, &mut String::new())?;
        if self.at >= self.bytes.len() {
            return None;
        }
        if self.options.parameters {
            self.push(out, &params)?;
            if is_outermost {
                self.push(out, &modifiers)?;
            }
        }
        Some(())
    }

    /// Whether an identifier comes next.
    pub(super) fn is_at_name(&mut self) -> bool {
        match self.peek(0) {
            b'0'..=b'9' => true,
            b'_' => is_template(self.rest()),
            b'Q' => {
                let at = self.at;
                let target = self.back_reference();
                self.at = at;
                target.and_then(|target| self.bytes.get(target)).is_some_and(u8::is_ascii_digit)
            }
            _ => false,
        }
    }

    fn identifier(&mut self, out: &mut String) -> Option<()> {
        if self.peek(0) == b'Q' {
            let target = self.back_reference()?;
            let behind = core::mem::replace(&mut self.at, target);
            let len = self.number()?;
            self.plain_identifier(out, len)?;
            self.at = behind;
            return Some(());
        }
        if is_template(self.rest()) {
            return self.nested(|reader| reader.template_instance(out));
        }
        let len = self.number().filter(|&len| len > 0)?;
        let name = self.rest().get(..len)?;
        if is_template(name) && len >= "__T1a".len() {
            let end = self.at + len;
            self.nested(|reader| reader.template_instance(out))?;
            return (self.at == end).then_some(());
        }
        // A parent that is made up to tell apart two things of the same name in one function: `__S1`.
        if let [b'_', b'_', b'S', digits @ ..] = name
            && !digits.is_empty()
            && digits.iter().all(u8::is_ascii_digit)
        {
            self.at += len;
            return self.nested(|reader| reader.identifier(out));
        }
        self.plain_identifier(out, len)
    }

    fn plain_identifier(&mut self, out: &mut String, len: usize) -> Option<()> {
        let name = self.take(len)?;
        let is_artificial = self.peek(0) == b'Z';
        let what = match name {
            "__ctor" => return self.push(out, "this"),
            "__dtor" => return self.push(out, "~this"),
            "__postblit" if self.rest().starts_with(b"MFZ") => {
                self.at += "MFZ".len();
                return self.push(out, "this(this)");
            }
            "__init" if is_artificial => "initializer for ",
            "__vtbl" if is_artificial => "vtable for ",
            "__Class" if is_artificial => "ClassInfo for ",
            "__Interface" if is_artificial => "Interface for ",
            "__ModuleInfo" if is_artificial => "ModuleInfo for ",
            _ => return self.push(out, name),
        };
        // In front of the name, whose dot is left over.
        out.truncate(out.trim_end_matches('.').len());
        out.insert_str(0, what);
        self.push(&mut String::new(), what)
    }

    /// `__T <identifier> <template argument>* Z`
    fn template_instance(&mut self, out: &mut String) -> Option<()> {
        self.at += "__T".len();
        if !self.is_at_name() || self.peek(0) == b'0' {
            return None;
        }
        self.identifier(out)?;
        let mut args = String::new();
        self.args_depth += 1;
        self.template_args(&mut args)?;
        let is_folded = self
            .options
            .fold_templates
            .is_some_and(|fold| self.args_depth > fold.depth || args.len() + "!()".len() > fold.len);
        self.args_depth -= 1;
        self.push(out, "!(")?;
        self.push(out, if is_folded && !args.is_empty() { "..." } else { &args })?;
        self.push(out, ")")
    }

    fn template_args(&mut self, out: &mut String) -> Option<()> {
        let mut is_first = true;
        while !self.skip(b'Z') {
            if !is_first {
                self.push(out, ", ")?;
            }
            is_first = false;
            // An argument that a specialization was chosen by.
            self.skip(b'H');
            let kind = self.peek(0);
            self.at += 1;
            match kind {
                b'S' => self.symbol_arg(out)?,
                b'T' => self.ty(out)?,
                b'V' => self.value_arg(out)?,
                b'X' => {
                    let len = self.number()?;
                    let text = self.take(len)?;
                    self.push(out, text)?;
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// A symbol as an argument: a mangled name, a qualified one, or, before 2018, either behind its length.
    fn symbol_arg(&mut self, out: &mut String) -> Option<()> {
        if self.is_at_mangled_name() {
            return self.nested(|reader| reader.mangled_name(out));
        }
        if self.peek(0) == b'Q' {
            return self.qualified_name(out, false);
        }
        let from = self.at;
        let len = self.number().filter(|&len| len > 0)?;
        // The digits of the length and of the first identifier are one number: try each way to part them.
        let mut part = len;
        for start in (from + 1..=self.at).rev() {
            if self.attempt(out, |reader, out| reader.symbol_of_len(out, start, Some(part))) {
                return Some(());
            }
            part /= 10;
        }
        self.symbol_of_len(out, from, None)
    }

    fn symbol_of_len(&mut self, out: &mut String, start: usize, len: Option<usize>) -> Option<()> {
        self.at = start;
        if self.is_at_name() {
            self.qualified_name(out, false)?;
        } else if self.is_at_mangled_name() {
            self.nested(|reader| reader.mangled_name(out))?;
        } else {
            return None;
        }
        (len.is_none_or(|len| self.at - start == len)).then_some(())
    }

    fn is_at_mangled_name(&mut self) -> bool {
        if !self.rest().starts_with(b"_D") {
            return false;
        }
        self.at += 2;
        let is_name = self.is_at_name();
        self.at -= 2;
        is_name
    }
}
