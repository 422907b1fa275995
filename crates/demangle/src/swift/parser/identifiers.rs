//! Identifiers, the words in them, and what refers back to earlier parts.

use super::{Parsed, Parser};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::standard::{self, Set};
use crate::swift::{operators, punycode};

/// How often one substitution may be repeated.
const MAX_REPEAT: u32 = 2048;

impl Parser<'_, '_> {
    /// `identifier ::= NATURAL text | '0' parts | '00' NATURAL '_'? punycode`
    pub(super) fn identifier(&mut self) -> Parsed {
        let identifier = if self.cursor.eat(b'0') {
            if self.cursor.eat(b'0') { self.punycode_identifier()? } else { self.word_identifier()? }
        } else {
            let (start, len) = self.literal()?;
            self.arena.text_node(Kind::Identifier, start, len)
        };
        Some(self.substitutable(identifier))
    }

    /// `NATURAL text`: where the text stands.
    fn literal(&mut self) -> Option<(usize, usize)> {
        let len = self.cursor.natural()? as usize;
        let start = self.cursor.at();
        let text = self.cursor.take(len)?;
        if text.is_empty() {
            return None;
        }
        self.words.add(start, len);
        Some((start, len))
    }

    /// Pieces of text and words seen before: a small letter means that more words follow, a capital is the last one.
    fn word_identifier(&mut self) -> Parsed {
        let start = self.arena.text_len();
        let mut has_words = true;
        while has_words {
            while has_words && self.cursor.peek().is_ascii_alphabetic() {
                let letter = self.cursor.next();
                has_words = letter.is_ascii_lowercase();
                let index = usize::from(letter.to_ascii_lowercase() - b'a');
                let (word, len) = self.words.get(index, self.cursor.name())?;
                self.arena.push_text_from(word, len);
            }
            if self.cursor.eat(b'0') {
                break;
            }
            let (text, len) = self.literal()?;
            self.arena.push_text_from(text, len);
        }
        self.decoded(Kind::Identifier, start)
    }

    fn punycode_identifier(&mut self) -> Parsed {
        let len = self.cursor.natural()? as usize;
        self.cursor.eat(b'_');
        let encoded = self.cursor.take(len)?;
        let start = self.arena.text_len();
        self.arena.decode_text(|text| punycode::decode(encoded, text))?;
        self.decoded(Kind::Identifier, start)
    }

    /// A node for the text decoded since `start`.
    fn decoded(&mut self, kind: Kind, start: usize) -> Parsed {
        let len = self.arena.text_len().checked_sub(start)?;
        (len > 0).then(|| self.arena.text_node(kind, start, len))
    }

    /// `identifier 'o' OPERATOR-FIXITY`
    pub(super) fn operator_identifier(&mut self) -> Parsed {
        let identifier = self.pop(Kind::Identifier)?;
        let kind = operators::fixity(self.cursor.next())?;
        let start = self.arena.text_len();
        operators::decode(identifier, self.arena)?;
        self.decoded(kind, start)
    }

    /// `decl-name ::= identifier 'L' INDEX`, and its relatives.
    pub(super) fn local_identifier(&mut self) -> Parsed {
        match self.cursor.peek() {
            b'L' => {
                self.cursor.next();
                let discriminator = self.pop(Kind::Identifier)?;
                let name = self.pop_if(Kind::is_decl_name)?;
                Some(self.arena.node(Kind::PrivateDeclName, 0, &[discriminator, name]))
            }
            b'l' => {
                self.cursor.next();
                let discriminator = self.pop(Kind::Identifier)?;
                Some(self.arena.node(Kind::PrivateDeclName, 0, &[discriminator]))
            }
            letter @ (b'a'..=b'j' | b'A'..=b'J') => {
                self.cursor.next();
                let name = self.pop_any()?;
                Some(self.arena.node(Kind::RelatedEntityDeclName, u32::from(letter), &[name]))
            }
            _ => {
                let number = self.cursor.index()?;
                let name = self.pop_if(Kind::is_decl_name)?;
                Some(self.arena.node(Kind::LocalDeclName, number, &[name]))
            }
        }
    }

    /// `substitution ::= 'A' INDEX | 'A' (NATURAL? [a-z])* NATURAL? [A-Z]`
    pub(super) fn multi_substitution(&mut self) -> Parsed {
        let mut number = None;
        loop {
            match self.cursor.peek() {
                letter @ b'a'..=b'z' => {
                    self.cursor.next();
                    let node = self.repeated_substitution(number.take(), letter - b'a')?;
                    self.stack.push(node);
                }
                letter @ b'A'..=b'Z' => {
                    self.cursor.next();
                    return self.repeated_substitution(number, letter - b'A');
                }
                b'_' => {
                    self.cursor.next();
                    let index = number.map_or(26, |number| number as usize + 27);
                    return self.substitutions.get(index).copied();
                }
                _ => number = Some(self.cursor.natural()?),
            }
        }
    }

    fn repeated_substitution(&mut self, repeat: Option<u32>, index: u8) -> Parsed {
        let node = self.substitutions.get(usize::from(index)).copied()?;
        self.repeat(node, repeat)
    }

    /// Pushes a node but the last of its repetitions, which the operator returns.
    fn repeat(&mut self, node: NodeRef, repeat: Option<u32>) -> Parsed {
        let Some(count) = repeat else { return Some(node) };
        if count > MAX_REPEAT || self.stack.len() >= super::MAX_STACK {
            return None;
        }
        for _ in 1..count {
            self.stack.push(node);
        }
        Some(node)
    }

    /// `standard-substitutions ::= 'S' NATURAL? 'c'? letter`, the modules of C, and the optional's short form.
    pub(super) fn standard_substitution(&mut self) -> Parsed {
        match self.cursor.peek() {
            b'o' => {
                self.cursor.next();
                Some(self.named_module("__C"))
            }
            b'C' => {
                self.cursor.next();
                Some(self.named_module("__C_Synthesized"))
            }
            b'g' => {
                self.cursor.next();
                let wrapped = self.pop_type()?;
                let optional = self.arena.leaf(Kind::Standard, standard::pack(Set::First, b'q'));
                let bound = self.bound(optional, wrapped)?;
                Some(self.substitutable(bound))
            }
            first => {
                let repeat = if first.is_ascii_digit() { Some(self.cursor.natural()?) } else { None };
                let set = if self.cursor.eat(b'c') { Set::Concurrency } else { Set::First };
                let letter = self.cursor.next();
                standard::lookup(set, letter)?;
                let node = self.arena.leaf(Kind::Standard, standard::pack(set, letter)).as_type();
                self.repeat(node, repeat)
            }
        }
    }

    pub(super) fn swift_module(&mut self) -> NodeRef {
        self.named_module("Swift")
    }

    fn named_module(&mut self, name: &str) -> NodeRef {
        let start = self.arena.text_len();
        self.arena.push_text(name);
        self.arena.text_node(Kind::Module, start, name.len())
    }
}
