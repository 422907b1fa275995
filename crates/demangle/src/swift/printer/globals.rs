//! What a whole name can be besides a declaration or a type: thunks, tables, attributes.

use super::Printer;
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::{key_path, phrase, value_witness};
use core::fmt;

impl Printer<'_> {
    pub(super) fn global(&mut self, node: NodeRef, kind: Kind) -> fmt::Result {
        match kind {
            Kind::Global => self.list_of(node, ""),
            Kind::Number => self.put_number(u64::from(self.arena.extra(node))),
            Kind::AsyncMain => self.put("async main entry point"),
            Kind::TypeMangling => self.type_mangling(node),
            Kind::ValueWitness => {
                self.put(value_witness::name(self.arena.extra(node)).unwrap_or_default())?;
                self.prefixed(if self.style.is_simplified { " for " } else { " value witness for " }, node)
            }
            Kind::OnceToken => self.once("one-time initialization token for ", node),
            Kind::OnceFunction => self.once("one-time initialization function for ", node),
            Kind::ReabstractionThunk => self.reabstraction_thunk(node),
            Kind::KeyPathThunk => self.key_path_thunk(node),
            Kind::KeyPathIndexThunk => self.key_path_index_thunk(node),
            Kind::CompletionHandler => self.completion_handler(node),
            Kind::AutoDiffFunction => self.auto_diff_function(node),
            Kind::AutoDiffSubsetThunk => self.auto_diff_subset_thunk(node),
            Kind::AutoDiffReordering => self.auto_diff_reordering(node),
            Kind::Derivative => self.put(auto_diff_kind(self.arena.extra(node))),
            Kind::DifferentiabilityWitness => self.differentiability_witness(node),
            Kind::IndexSubset => self.index_subset(node),
            Kind::ExistentialShape => self.existential_shape(node),
            Kind::MacroExpansionLoc => self.macro_location(node),
            Kind::Suffix => self.suffix(node),
            _ => Ok(()),
        }
    }

    pub(super) fn function_attribute(&mut self, node: NodeRef, kind: Kind) -> fmt::Result {
        let number = u64::from(self.arena.extra(node));
        match kind {
            Kind::Attribute => {
                let packed = self.arena.extra(node);
                let is_hidden = self.style.is_simplified && phrase::is_detail(packed);
                if is_hidden { Ok(()) } else { self.put(phrase::text(packed)) }
            }
            Kind::PartialApply => {
                self.put(match (self.style.is_simplified, number) {
                    (true, _) => "partial apply",
                    (false, 0) => "partial apply forwarder",
                    (false, _) => "partial apply ObjC forwarder",
                })?;
                if self.arena.children(node).is_empty() {
                    Ok(())
                } else {
                    self.enclosed(" for ", node, "", "")
                }
            }
            Kind::AsyncAwaitResume | Kind::AsyncSuspendResume if self.style.is_simplified => Ok(()),
            Kind::AsyncAwaitResume => self.numbered("(", number, ") await resume partial function for "),
            Kind::AsyncSuspendResume => self.numbered("(", number, ") suspend resume partial function for "),
            Kind::OutlinedVariable => self.numbered("outlined variable #", number, " of "),
            Kind::OutlinedReadOnlyObject => self.numbered("outlined read-only object #", number, " of "),
            Kind::OutlinedBridgedMethod => {
                self.put("outlined bridged method (")?;
                self.text(node)?;
                self.put(") of ")
            }
            _ => self.specialization(node, kind),
        }
    }

    fn numbered(&mut self, before: &str, number: u64, after: &str) -> fmt::Result {
        self.put(before)?;
        self.put_number(number)?;
        self.put(after)
    }

    fn type_mangling(&mut self, node: NodeRef) -> fmt::Result {
        let Some(of) = self.arena.child(node, 0) else { return Ok(()) };
        match self.arena.child(node, 1) {
            Some(labels) if self.arena.own_kind(of) == Kind::FunctionType => {
                self.function_type(of, Some(labels), true)
            }
            _ => self.print(of),
        }
    }

    fn once(&mut self, text: &str, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        self.put(text)?;
        match arena.children(node) {
            [_, name] => self.print(*name),
            children => {
                self.put("(")?;
                self.list(children.get(1..).unwrap_or_default(), ", ")?;
                self.put(")")
            }
        }
    }

    fn reabstraction_thunk(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let mut types = arena.children(node);
        let letter = u8::try_from(arena.extra(node)).unwrap_or_default();
        let has_self = letter == b'y';
        if self.style.is_simplified && !has_self {
            self.put("thunk for ")?;
            return types.last().map_or(Ok(()), |&from| self.print(from));
        }
        self.put(if letter == b'R' { "reabstraction thunk helper " } else { "reabstraction thunk " })?;
        if let Some((&signature, rest)) = types.split_first().filter(|(first, _)| !first.is_type()) {
            self.print(signature)?;
            self.put(" ")?;
            types = rest;
        }
        let (dynamic_self, to, from) = match *types {
            [dynamic_self, to, from] => (Some(dynamic_self), to, from),
            [to, from] => (None, to, from),
            _ => return Ok(()),
        };
        self.put("from ")?;
        self.print(from)?;
        self.put(" to ")?;
        self.print(to)?;
        if let Some(dynamic_self) = dynamic_self {
            self.put(" self ")?;
            self.print(dynamic_self)?;
        }
        Ok(())
    }

    fn key_path_thunk(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let bits = arena.extra(node);
        self.put(key_path::text(bits))?;
        self.child(node, 0)?;
        self.put(" : ")?;
        self.list(arena.children(node).get(1..).unwrap_or_default(), "")?;
        if bits & key_path::SERIALIZED == 0 { Ok(()) } else { self.put(", serialized") }
    }

    fn key_path_index_thunk(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let mut types = arena.children(node);
        self.put(key_path::text(arena.extra(node)))?;
        if let Some((&signature, rest)) = types.split_first().filter(|(first, _)| !first.is_type()) {
            self.print(signature)?;
            types = rest;
        }
        self.put("(")?;
        self.list(types, ", ")?;
        self.put(")")
    }

    fn completion_handler(&mut self, node: NodeRef) -> fmt::Result {
        let packed = self.arena.extra(node);
        if packed.to_be_bytes()[3] == b'Z' {
            self.put("checked ")?;
        }
        self.put("@objc completion handler block implementation for ")?;
        self.child(node, 2)?;
        self.child(node, 0)?;
        self.put(" with result type ")?;
        self.child(node, 1)?;
        self.put(match packed >> 8 {
            0 => "",
            1 => " nonzero on error",
            2 => " zero on error",
            _ => " <invalid error flag>",
        })
    }

    fn auto_diff_function(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let [original @ .., kind, parameters, results] = arena.children(node) else { return Ok(()) };
        if arena.extra(node) != 0 {
            self.put("vtable thunk for ")?;
        }
        self.print(*kind)?;
        self.put(" of ")?;
        let (original, signature) = match original {
            [original @ .., last] if arena.kind(*last) == Kind::GenericSignature => (original, Some(*last)),
            _ => (original, None),
        };
        self.list(original, "")?;
        if self.style.is_simplified {
            return Ok(());
        }
        self.with_respect_to(*parameters, *results, signature)
    }

    fn with_respect_to(
        &mut self,
        parameters: NodeRef,
        results: NodeRef,
        signature: Option<NodeRef>,
    ) -> fmt::Result {
        self.put(" with respect to parameters ")?;
        self.print(parameters)?;
        self.put(" and results ")?;
        self.print(results)?;
        match signature {
            Some(signature) => {
                self.put(" with ")?;
                self.print(signature)
            }
            None => Ok(()),
        }
    }

    fn auto_diff_subset_thunk(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let [of @ .., kind, parameters, results, to_parameters] = arena.children(node) else { return Ok(()) };
        self.put("autodiff subset parameters thunk for ")?;
        self.print(*kind)?;
        self.put(" from ")?;
        let (from, to_type) = match of {
            [from @ .., to] if !from.is_empty() => (from, Some(*to)),
            _ => (of, None),
        };
        self.list(from, "")?;
        if self.style.is_simplified {
            return Ok(());
        }
        self.with_respect_to(*parameters, *results, None)?;
        self.put(" to parameters ")?;
        self.print(*to_parameters)?;
        match to_type {
            Some(to) => {
                self.put(" of type ")?;
                self.print(to)
            }
            None => Ok(()),
        }
    }

    fn auto_diff_reordering(&mut self, node: NodeRef) -> fmt::Result {
        self.put("autodiff self-reordering reabstraction thunk for ")?;
        if self.style.is_simplified {
            return self.child(node, 0);
        }
        self.put(auto_diff_kind(self.arena.extra(node)))?;
        if let Some(signature) = self.arena.child(node, 2) {
            self.print(signature)?;
            self.put(" ")?;
        }
        self.put(" from ")?;
        self.child(node, 0)?;
        self.put(" to ")?;
        self.child(node, 1)
    }

    fn differentiability_witness(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let (rest, signature) = match arena.children(node) {
            [rest @ .., last] if arena.kind(*last) == Kind::GenericSignature => (rest, Some(*last)),
            rest => (rest, None),
        };
        let [of @ .., parameters, results] = rest else { return Ok(()) };
        self.put(match u8::try_from(arena.extra(node)) {
            Ok(b'f') => "forward-mode",
            Ok(b'r') => "reverse-mode",
            Ok(b'l') => "linear",
            _ => "normal",
        })?;
        self.put(" differentiability witness for ")?;
        self.list(of, "")?;
        self.with_respect_to(*parameters, *results, signature)
    }

    /// `{0, 2}`: the places of the letter `S`.
    fn index_subset(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        self.put("{")?;
        let mut separator = "";
        for (at, letter) in (0_u64..).zip(arena.text(node).bytes()) {
            if letter == b'S' {
                self.put(separator)?;
                self.put_number(at)?;
                separator = ", ";
            }
        }
        self.put("}")
    }

    fn existential_shape(&mut self, node: NodeRef) -> fmt::Result {
        self.put("existential shape for ")?;
        let of = match *self.arena.children(node) {
            [signature, of] => {
                self.print(signature)?;
                self.put(" ")?;
                of
            }
            [of] => of,
            _ => return Ok(()),
        };
        self.put("any ")?;
        self.print(of)
    }

    fn macro_location(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let words = ["module ", " file ", " line ", " column "];
        for (word, &part) in words.into_iter().zip(arena.children(node)) {
            self.put(word)?;
            match arena.own_kind(part) {
                Kind::Number => self.print(part)?,
                _ => self.text(part)?,
            }
        }
        Ok(())
    }

    /// ` with unmangled suffix ".123"`
    fn suffix(&mut self, node: NodeRef) -> fmt::Result {
        if self.style.is_simplified {
            return Ok(());
        }
        let arena = self.arena;
        self.put(" with unmangled suffix \"")?;
        for byte in arena.text(node).bytes() {
            match byte {
                b'\\' => self.put("\\\\")?,
                b'"' => self.put("\\\"")?,
                b'\t' => self.put("\\t")?,
                b'\n' => self.put("\\n")?,
                b'\r' => self.put("\\r")?,
                b' '..=b'~' => self.put(char::from(byte).encode_utf8(&mut [0; 4]))?,
                _ => {
                    let digits = [b'\\', b'x', hex(byte >> 4), hex(byte & 15)];
                    self.put(core::str::from_utf8(&digits).unwrap_or_default())?;
                }
            }
        }
        self.put("\"")
    }
}

fn hex(digit: u8) -> u8 {
    if digit < 10 { b'0' + digit } else { b'A' + digit - 10 }
}

/// `AUTODIFF-FUNCTION-KIND`
fn auto_diff_kind(letter: u32) -> &'static str {
    match u8::try_from(letter) {
        Ok(b'f') => "forward-mode derivative",
        Ok(b'r') => "reverse-mode derivative",
        Ok(b'd') => "differential",
        _ => "pullback",
    }
}
