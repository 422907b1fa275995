//! Macro expansions: the operators that begin with `fM`.

use super::{Parsed, Parser};
use crate::swift::kinds::Kind;

/// What an attached macro may do, by its letter.
pub(super) fn is_role(letter: u8) -> bool {
    crate::swift::macro_role::name(letter).is_some()
}

impl Parser<'_, '_> {
    pub(super) fn macro_expansion(&mut self) -> Parsed {
        match self.cursor.next() {
            b'f' => self.freestanding_macro(),
            b'u' => self.unique_name(),
            b'X' => self.expansion_location(),
            role if is_role(role) => self.attached_macro(role),
            _ => None,
        }
    }

    /// What the expansion stands in: another expansion, or any context.
    fn pop_expansion_context(&mut self) -> Parsed {
        let top = *self.stack.last()?;
        let is_expansion = match self.arena.kind(top) {
            Kind::FreestandingMacro | Kind::MacroExpansionLoc => true,
            // Preamble and body macros hold no further expansions.
            Kind::AttachedMacro => !matches!(self.arena.extra(top) as u8, b'q' | b'b'),
            _ => false,
        };
        if is_expansion { self.pop_any() } else { self.pop_context() }
    }

    /// `macro-expansion-operator ::= decl-name identifier 'fM' role INDEX`
    fn attached_macro(&mut self, role: u8) -> Parsed {
        let of = self.pop(Kind::Identifier)?;
        let name = self.pop_if(Kind::is_decl_name)?;
        let context = self.pop_expansion_context()?;
        let number = self.cursor.index()?.checked_mul(256)?;
        Some(self.arena.node(Kind::AttachedMacro, number | u32::from(role), &[context, name, of]))
    }

    /// `macro-expansion-operator ::= identifier file-discriminator? 'fMf' INDEX`
    fn freestanding_macro(&mut self) -> Parsed {
        let name = self.pop(Kind::Identifier)?;
        let discriminator = self.pop(Kind::PrivateDeclName);
        let context = self.pop_expansion_context()?;
        let number = self.cursor.index()?;
        let start = self.list.len();
        self.list.extend([context, name]);
        self.list.extend(discriminator);
        Some(self.listed(Kind::FreestandingMacro, number, start))
    }

    fn unique_name(&mut self) -> Parsed {
        let name = self.pop(Kind::Identifier)?;
        let context = self.pop_expansion_context()?;
        let number = self.cursor.index()?;
        Some(self.arena.node(Kind::MacroUniqueName, number, &[context, name]))
    }

    /// `identifier identifier 'fMX' INDEX INDEX`: module, file, line, column.
    fn expansion_location(&mut self) -> Parsed {
        let line = self.cursor.index()?;
        let column = self.cursor.index()?;
        let file = self.pop(Kind::Identifier)?;
        let module = self.pop(Kind::Identifier)?;
        let line = self.arena.leaf(Kind::Number, line);
        let column = self.arena.leaf(Kind::Number, column);
        Some(self.arena.node(Kind::MacroExpansionLoc, 0, &[module, file, line, column]))
    }
}
