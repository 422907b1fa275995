//! What a function was specialized for.

use super::Printer;
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::specialization::{self, ParamKind};
use core::fmt;

/// How deep names may stand within names.
const MAX_NESTING: u32 = 4;

impl Printer<'_> {
    pub(super) fn specialization(&mut self, node: NodeRef, kind: Kind) -> fmt::Result {
        match kind {
            Kind::GenericSpecialization => {
                let text = specialization::text(self.arena.extra(node));
                self.specialization_prefix(node, text)
            }
            Kind::SignatureSpecialization => {
                self.specialization_prefix(node, "function signature specialization")
            }
            Kind::SpecializedType => self.specialized_type(node),
            Kind::SpecText => self.text(node),
            _ => Ok(()),
        }
    }

    /// `generic specialization <serialized, Swift.Int> of `
    fn specialization_prefix(&mut self, node: NodeRef, text: &str) -> fmt::Result {
        if self.style.is_simplified {
            let is_said = core::mem::replace(&mut self.said_specialized, true);
            return if is_said { Ok(()) } else { self.put("specialized ") };
        }
        let arena = self.arena;
        let info = arena.extra(node);
        if info & specialization::INFO_MASK == specialization::REPRESENTATION_CHANGED {
            return self.put("representation changed of ");
        }
        self.put(text)?;
        self.put(" <")?;
        let mut separator = "";
        if info & specialization::SERIALIZED != 0 {
            self.put("serialized")?;
            separator = ", ";
        }
        let is_signature = arena.own_kind(node) == Kind::SignatureSpecialization;
        // What else was changed takes an argument's place in the count, in Swift's own demangler.
        let changed = specialization::ASYNC_REMOVED | specialization::REPRESENTATION_CHANGED;
        let first = u64::from((info & changed).count_ones());
        for (number, &child) in (first..).zip(arena.children(node)) {
            if !is_signature || !arena.children(child).is_empty() {
                self.put(separator)?;
                separator = ", ";
                if is_signature {
                    self.argument(child, number)?;
                } else {
                    self.put(if specialization::is_partial(info) { "Signature = " } else { "" })?;
                    self.print(child)?;
                }
            }
        }
        self.put("> of ")
    }

    fn specialized_type(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        for (at, &part) in arena.children(node).iter().enumerate() {
            self.put(match at {
                0 => "",
                1 => " with ",
                _ => " and ",
            })?;
            self.print(part)?;
        }
        Ok(())
    }

    /// `Arg[0] = …`, `Return = …`
    fn argument(&mut self, param: NodeRef, number: u64) -> fmt::Result {
        let arena = self.arena;
        if arena.extra(param) == 0 {
            self.put("Arg[")?;
            self.put_number(number)?;
            self.put("] = ")?;
        } else {
            self.put("Return = ")?;
        }
        let is_kind =
            |&&child: &&NodeRef| matches!(arena.own_kind(child), Kind::SpecProperty | Kind::SpecText);
        let children = arena.children(param);
        let kinds = children.iter().take_while(is_kind).count();
        let (mut kinds, mut operands) = children.split_at(kinds.min(children.len()));
        while let Some((&kind, rest)) = kinds.split_first() {
            let texts = rest.iter().take_while(|&&text| arena.own_kind(text) == Kind::SpecText).count();
            let (texts, rest) = rest.split_at(texts.min(rest.len()));
            kinds = rest;
            match ParamKind::unpack(arena.extra(kind)) {
                Some(kind) => self.argument_kind(kind, texts, &mut operands)?,
                None => self.options(arena.extra(kind))?,
            }
        }
        Ok(())
    }

    fn options(&mut self, options: u32) -> fmt::Result {
        let mut separator = "";
        for (flag, text) in specialization::OPTION_TEXTS {
            if options & flag != 0 {
                self.put(separator)?;
                self.put(text)?;
                separator = " and ";
            }
        }
        Ok(())
    }

    fn argument_kind(
        &mut self,
        kind: ParamKind,
        texts: &[NodeRef],
        operands: &mut &[NodeRef],
    ) -> fmt::Result {
        let takes_operands = !matches!(
            kind,
            ParamKind::BoxToValue
                | ParamKind::BoxToStack
                | ParamKind::InOutToOut
                | ParamKind::ConstantInteger
                | ParamKind::ConstantFloat
                | ParamKind::ClosurePreviousArg
        );
        if takes_operands && operands.is_empty() {
            // Results have none.
            return Ok(());
        }
        match kind {
            ParamKind::BoxToValue | ParamKind::BoxToStack | ParamKind::InOutToOut => {
                return self.put(kind.text());
            }
            _ => {}
        }
        self.put("[")?;
        self.put(kind.text())?;
        self.put(if kind == ParamKind::ClosurePreviousArg { " " } else { " : " })?;
        for &text in texts {
            self.print(text)?;
        }
        match kind {
            ParamKind::ConstantFunction | ParamKind::ConstantGlobal => self.nested_operand(operands)?,
            ParamKind::ConstantString => {
                self.put("'")?;
                self.string_operand(operands)?;
                self.put("'")?;
            }
            ParamKind::ConstantKeyPath => {
                self.operand(operands)?;
                self.put("<")?;
                self.operand(operands)?;
                self.put(",")?;
                self.operand(operands)?;
                self.put(">")?;
            }
            ParamKind::ConstantStruct => self.operand(operands)?,
            ParamKind::Closure | ParamKind::EscapingClosure => {
                self.nested_operand(operands)?;
                self.put(", Argument Types : [")?;
                let types = operands.iter().take_while(|of| of.is_type()).count();
                let (types, rest) = operands.split_at(types.min(operands.len()));
                self.list(types, ", ")?;
                // One bracket closes both lists, in Swift's own demangler.
                *operands = rest;
            }
            _ => {}
        }
        self.put("]")
    }

    fn operand(&mut self, operands: &mut &[NodeRef]) -> fmt::Result {
        match operands.split_first() {
            Some((&first, rest)) => {
                *operands = rest;
                self.print(first)
            }
            None => Ok(()),
        }
    }

    /// A string that would begin with a digit or an underscore has one underscore more.
    fn string_operand(&mut self, operands: &mut &[NodeRef]) -> fmt::Result {
        let arena = self.arena;
        let Some((&first, rest)) = operands.split_first() else { return Ok(()) };
        *operands = rest;
        let text = arena.text(first);
        self.put(text.strip_prefix('_').unwrap_or(text))
    }

    /// A mangled name as an operand.
    fn nested_operand(&mut self, operands: &mut &[NodeRef]) -> fmt::Result {
        let arena = self.arena;
        let Some((&first, rest)) = operands.split_first() else { return Ok(()) };
        *operands = rest;
        let name = arena.text(first);
        let nested =
            (self.nesting < MAX_NESTING).then(|| crate::swift::nested(name, self.nesting + 1)).flatten();
        self.put(nested.as_deref().unwrap_or(name))
    }
}
