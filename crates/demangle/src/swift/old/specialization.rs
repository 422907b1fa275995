//! Specializations, which stand before the name of what is specialized.

use super::{Old, Parsed};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::specialization::{self as bits, Flavor, ParamKind};
use alloc::vec::Vec;

impl Old<'_, '_> {
    /// `specialization ::= ('g' | 'r' | 'f') 'q'? pass …`
    pub(super) fn specialized_attribute(&mut self) -> Parsed {
        let flavor = match self.cursor.next() {
            b'g' => Some(Flavor::Generic),
            b'r' => Some(Flavor::NotReAbstracted),
            b'f' => None,
            _ => return None,
        };
        let info = if self.cursor.eat(b'q') { bits::SERIALIZED } else { 0 };
        self.cursor.next(); // the pass
        match flavor {
            Some(flavor) => self.generic_specialization(info | flavor.pack()),
            None => self.signature_specialization(info),
        }
    }

    /// `(type protocol-conformance* '_')* '_'`
    fn generic_specialization(&mut self, info: u32) -> Parsed {
        let mut types = Vec::new();
        while !self.cursor.eat(b'_') {
            let mut parts = Vec::new();
            parts.push(self.type_()?);
            while !self.cursor.eat(b'_') {
                parts.push(self.protocol_conformance()?);
            }
            types.push(match *parts {
                [of] => of,
                _ => self.arena.node(Kind::SpecializedType, 0, &parts),
            });
        }
        Some(self.arena.node(Kind::GenericSpecialization, info, &types))
    }

    /// `param* '_'`
    fn signature_specialization(&mut self, info: u32) -> Parsed {
        let mut params = Vec::new();
        while !self.cursor.eat(b'_') {
            let parts = self.param()?;
            params.push(self.arena.node(Kind::SpecializedParam, 0, &parts));
        }
        Some(self.arena.node(Kind::SignatureSpecialization, info, &params))
    }

    fn param(&mut self) -> Option<Vec<NodeRef>> {
        let mut parts = Vec::new();
        if self.cursor.eat_str("n_") {
            return Some(parts);
        }
        if self.cursor.eat_str("cp") {
            self.constant(&mut parts)?;
            return Some(parts);
        }
        if self.cursor.eat_str("cl") {
            self.closure(&mut parts)?;
            return Some(parts);
        }
        let boxes =
            [("i_", ParamKind::BoxToValue), ("k_", ParamKind::BoxToStack), ("r_", ParamKind::InOutToOut)];
        for (letters, kind) in boxes {
            if self.cursor.eat_str(letters) {
                self.kind(kind.pack(), &mut parts);
                return Some(parts);
            }
        }
        let mut options = 0;
        for (letter, flag) in [
            (b'd', bits::DEAD),
            (b'g', bits::OWNED_TO_GUARANTEED),
            (b'o', bits::GUARANTEED_TO_OWNED),
            (b's', bits::EXPLODED),
        ] {
            if self.cursor.eat(letter) {
                options |= flag;
            }
        }
        self.kind(options, &mut parts);
        (options != 0 && self.cursor.eat(b'_')).then_some(parts)
    }

    fn kind(&mut self, kind: u32, parts: &mut Vec<NodeRef>) {
        parts.push(self.arena.leaf(Kind::SpecProperty, kind));
    }

    fn constant(&mut self, parts: &mut Vec<NodeRef>) -> Option<()> {
        if self.cursor.eat_str("fr") {
            self.kind(ParamKind::ConstantFunction.pack(), parts);
        } else if self.cursor.eat_str("fl") {
            return self.digits(ParamKind::ConstantFloat, parts);
        } else if self.cursor.eat(b'g') {
            self.kind(ParamKind::ConstantGlobal.pack(), parts);
        } else if self.cursor.eat(b'i') {
            return self.digits(ParamKind::ConstantInteger, parts);
        } else if self.cursor.eat_str("se") {
            let encoding = match self.cursor.next() {
                b'0' => "u8",
                b'1' => "u16",
                _ => return None,
            };
            self.kind(ParamKind::ConstantString.pack(), parts);
            let start = self.arena.text_len();
            self.arena.push_text(encoding);
            parts.push(self.arena.text_node(Kind::SpecText, start, encoding.len()));
            if !self.cursor.eat(b'v') {
                return None;
            }
        } else {
            return None;
        }
        parts.push(self.identifier(None)?);
        self.cursor.eat(b'_').then_some(())
    }

    /// All up to the next `_`.
    fn digits(&mut self, kind: ParamKind, parts: &mut Vec<NodeRef>) -> Option<()> {
        self.kind(kind.pack(), parts);
        let start = self.cursor.at();
        let len = self.cursor.skip_while(|byte| byte != b'_');
        parts.push(self.arena.text_node(Kind::SpecText, start, len));
        self.cursor.eat(b'_').then_some(())
    }

    /// `identifier type* '_'`
    fn closure(&mut self, parts: &mut Vec<NodeRef>) -> Option<()> {
        self.kind(ParamKind::Closure.pack(), parts);
        parts.push(self.identifier(None)?);
        while !self.cursor.eat(b'_') {
            parts.push(self.type_()?);
        }
        Some(())
    }
}
