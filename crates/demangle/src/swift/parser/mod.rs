//! The mangling since Swift 4: a list of operators in postfix order, read by a stack machine.
//!
//! An operator takes its operands from the stack and leaves one result there. What it finds on the stack decides what it
//! means: there is no other state but the substitutions and the words seen so far. The grammar is `docs/ABI/Mangling.rst`
//! of the Swift project; productions are named as there.

mod autodiff;
mod conformances;
mod entities;
mod functions;
mod generics;
mod identifiers;
mod impl_function;
mod macros;
mod metadata;
mod nominal;
mod specialization;
mod thunks;
mod types;
mod witnesses;
mod words;

use super::cursor::Cursor;
use super::kinds::Kind;
use super::node::{Arena, NodeRef};
use super::phrase::Phrase;
use alloc::vec::Vec;
use words::Words;

/// The result of an operator; `None` when its operands are not there or are of the wrong kind.
type Parsed = Option<NodeRef>;

/// How many operands may wait at one time. A repeated substitution pushes many with few bytes.
const MAX_STACK: usize = 1 << 16;

/// What the parser remembers while it reads one name. Kept for its memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    stack: Vec<NodeRef>,
    substitutions: Vec<NodeRef>,
    /// Lists on their way from the stack into a node.
    list: Vec<NodeRef>,
    words: Words,
}

impl Memory {
    /// The table of substitutions alone, for the older mangling.
    pub(super) fn substitutions(&mut self) -> &mut Vec<NodeRef> {
        &mut self.substitutions
    }

    fn clear(&mut self) {
        self.stack.clear();
        self.substitutions.clear();
        self.list.clear();
        self.words.clear();
    }
}

pub(super) struct Parser<'n, 's> {
    cursor: Cursor<'n>,
    arena: &'s mut Arena,
    stack: &'s mut Vec<NodeRef>,
    substitutions: &'s mut Vec<NodeRef>,
    list: &'s mut Vec<NodeRef>,
    words: &'s mut Words,
    /// `_T0` names (Swift 4.0): labels stand within the parameter types.
    labels_in_types: bool,
    unit: Option<NodeRef>,
}

/// Reads a name whose prefix ends at `start` and gives the node of the whole; the error is where it failed.
pub(super) fn parse(
    name: &str,
    start: usize,
    arena: &mut Arena,
    memory: &mut Memory,
) -> Result<NodeRef, usize> {
    memory.clear();
    let mut parser = Parser {
        cursor: Cursor::new(name, start),
        arena,
        stack: &mut memory.stack,
        substitutions: &mut memory.substitutions,
        list: &mut memory.list,
        words: &mut memory.words,
        labels_in_types: name.starts_with("_T"),
        unit: None,
    };
    if name.get(..start).is_some_and(|prefix| prefix.ends_with(super::ASYNC_MAIN)) {
        let main = parser.arena.leaf(Kind::AsyncMain, 0);
        parser.stack.push(main);
    }
    match parser.run() {
        Some(root) if !parser.arena.is_full() => Ok(root),
        _ => Err(parser.cursor.at()),
    }
}

impl Parser<'_, '_> {
    fn run(&mut self) -> Parsed {
        // A zero byte ends a name that was given with too great a length.
        while let first @ 1.. = self.cursor.peek() {
            let result = self.operator(first)?;
            self.stack.push(result);
        }
        self.global()
    }

    /// What is left on the stack is the name; attributes of a function come last and are shown first.
    ///
    /// Swift's own demangler shows all that is left, one after the other. More than one part is left of a name that was
    /// cut, as crash reports do; those are refused here.
    fn global(&mut self) -> Parsed {
        let suffix = self.pop(Kind::Suffix);
        let start = self.list.len();
        while let Some(attribute) = self.pop_if(Kind::is_function_attribute) {
            self.list.push(attribute);
        }
        if self.stack.len() > 1 || self.top().is_some_and(Kind::is_mark) {
            return None;
        }
        // The last attribute in the name is the first one in the list.
        let mut rest = self.stack.pop();
        for at in (start..self.list.len()).rev() {
            let attribute = *self.list.get(at)?;
            rest = Some(match (rest, self.arena.own_kind(attribute)) {
                (Some(rest), Kind::PartialApply) => {
                    let is_objc = self.arena.extra(attribute);
                    self.arena.node(Kind::PartialApply, is_objc, &[rest])
                }
                (Some(rest), _) => self.arena.node(Kind::Global, 0, &[attribute, rest]),
                (None, _) => attribute,
            });
        }
        match (rest, suffix) {
            (Some(rest), Some(suffix)) => Some(self.arena.node(Kind::Global, 0, &[rest, suffix])),
            (rest, _) => rest,
        }
    }

    /// One operator. The letters of the grammar's first level, in its order.
    fn operator(&mut self, first: u8) -> Parsed {
        match first {
            b'0'..=b'9' => return self.identifier(),
            b'.' => return Some(self.suffix()),
            _ => {}
        }
        self.cursor.next();
        match first {
            b'A' => self.multi_substitution(),
            b'B' => self.builtin_type(),
            b'C' => self.nominal(Kind::Class),
            b'D' => self.type_mangling(),
            b'E' => self.extension(),
            b'F' => self.plain_function(),
            b'G' => self.bound_generic_type(),
            b'H' => self.conformance_operator(),
            b'I' => self.impl_function_type(),
            b'K' => Some(self.mark(Kind::Throws)),
            b'L' => self.local_identifier(),
            b'M' => self.metadata(),
            b'N' => self.phrase_of_type(Phrase::TypeMetadata),
            b'O' => self.nominal(Kind::Enum),
            b'P' => self.nominal(Kind::Protocol),
            b'Q' => self.archetype(),
            b'R' => self.generic_requirement(),
            b'S' => self.standard_substitution(),
            b'T' => self.thunk_or_specialization(),
            b'V' => self.nominal(Kind::Structure),
            b'W' => self.witness(),
            b'X' => self.special_type(),
            b'Y' => self.type_annotation(),
            b'Z' => self.static_entity(),
            b'a' => self.nominal(Kind::TypeAlias),
            b'c' => self.function_type(functions::Convention::Swift),
            b'd' => Some(self.mark(Kind::VariadicMarker)),
            b'f' => self.function_entity(),
            b'g' => self.retroactive_conformance(),
            b'h' => self.qualified(Phrase::Shared),
            b'i' => self.subscript(),
            b'l' => self.generic_signature(false),
            b'm' => self.type_of_type(Kind::Metatype, 0),
            b'n' => self.qualified(Phrase::Owned),
            b'o' => self.operator_identifier(),
            b'p' => self.protocol_list_type(),
            b'q' => self.generic_param_type(),
            b'r' => self.generic_signature(true),
            b's' => Some(self.swift_module()),
            b't' => self.tuple(),
            b'u' => self.generic_type(),
            b'v' => self.variable(),
            b'w' => self.value_witness(),
            b'x' => Some(self.arena.param(0, 0).as_type()),
            b'y' => Some(self.mark(Kind::EmptyList)),
            b'z' => self.inout(),
            b'_' => Some(self.mark(Kind::FirstElementMarker)),
            b'$' => self.integer_type(),
            _ => None,
        }
    }

    /// What LLVM or IRGen appended: everything from the first dot on.
    fn suffix(&mut self) -> NodeRef {
        let start = self.cursor.at();
        let len = self.cursor.skip_while(|_| true);
        self.arena.text_node(Kind::Suffix, start, len)
    }

    fn mark(&mut self, kind: Kind) -> NodeRef {
        self.arena.leaf(kind, 0)
    }

    fn top(&self) -> Option<Kind> {
        self.stack.last().map(|&node| self.arena.kind(node))
    }

    fn pop_any(&mut self) -> Parsed {
        self.stack.pop()
    }

    fn pop(&mut self, kind: Kind) -> Parsed {
        if self.top()? == kind { self.stack.pop() } else { None }
    }

    fn pop_if(&mut self, accept: impl Fn(Kind) -> bool) -> Parsed {
        if accept(self.top()?) { self.stack.pop() } else { None }
    }

    fn pop_type(&mut self) -> Parsed {
        self.pop(Kind::Type)
    }

    /// Takes the operands at the top of the stack that `accept` takes, in their order, as children of a new node.
    fn pop_run(&mut self, kind: Kind, extra: u32, accept: impl Fn(Kind) -> bool) -> NodeRef {
        let waiting = self.stack.iter().rev().take_while(|&&node| accept(self.arena.kind(node))).count();
        let start = self.stack.len() - waiting;
        let node = self.arena.node(kind, extra, self.stack.get(start..).unwrap_or_default());
        self.stack.truncate(start);
        node
    }

    /// Takes a list: its elements, the first of which is followed by `_`, or nothing but a `y`. The elements wait in
    /// [`Self::list`] from the returned place on.
    fn pop_list(&mut self, mut element: impl FnMut(&mut Self) -> Parsed) -> Option<usize> {
        let start = self.list.len();
        if self.pop(Kind::EmptyList).is_some() {
            return Some(start);
        }
        loop {
            let is_first = self.pop(Kind::FirstElementMarker).is_some();
            let element = element(self)?;
            self.list.push(element);
            if is_first {
                break;
            }
        }
        self.list.get_mut(start..)?.reverse();
        Some(start)
    }

    /// Makes a node of what waits in the list from `start` on.
    fn listed(&mut self, kind: Kind, extra: u32, start: usize) -> NodeRef {
        let node = self.arena.node(kind, extra, self.list.get(start..).unwrap_or_default());
        self.list.truncate(start);
        node
    }

    /// A node that later parts of the name may refer to.
    fn substitutable(&mut self, node: NodeRef) -> NodeRef {
        self.substitutions.push(node);
        node
    }

    fn phrase(&mut self, phrase: Phrase, children: &[NodeRef]) -> NodeRef {
        self.arena.node(Kind::Phrase, phrase.pack(), children)
    }

    fn phrase_of(&mut self, phrase: Phrase, child: Parsed) -> Parsed {
        Some(self.phrase(phrase, &[child?]))
    }

    fn phrase_of_type(&mut self, phrase: Phrase) -> Parsed {
        let of = self.pop_type();
        self.phrase_of(phrase, of)
    }

    fn phrase_of_entity(&mut self, phrase: Phrase) -> Parsed {
        let of = self.pop_if(Kind::is_entity);
        self.phrase_of(phrase, of)
    }

    fn phrase_of_protocol(&mut self, phrase: Phrase) -> Parsed {
        let of = self.pop_protocol();
        self.phrase_of(phrase, of)
    }

    fn phrase_of_conformance(&mut self, phrase: Phrase) -> Parsed {
        let of = self.pop_protocol_conformance();
        self.phrase_of(phrase, of)
    }

    fn attribute(&mut self, phrase: Phrase) -> Parsed {
        Some(self.arena.leaf(Kind::Attribute, phrase.pack()))
    }
}
