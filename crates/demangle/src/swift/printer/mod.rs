//! Writes the parts of a name as Swift's tools do.

mod entities;
mod folding;
mod functions;
mod generics;
mod globals;
mod specializations;
mod types;

use super::kinds::{Group, Kind};
use super::node::{Arena, NodeRef};
use super::phrase;
use super::style::Style;
use crate::MAX_DEPTH;
use crate::error::Failed;
use alloc::string::String;
use core::fmt;

/// `Some` is a context that could not be written before the name: it is to be written behind it.
type Context = Result<Option<NodeRef>, fmt::Error>;

/// How many nodes may be visited for one byte of the output limit: a part that shows nothing may be repeated, too.
const VISITS_PER_BYTE: usize = 4;

pub(super) struct Printer<'a> {
    arena: &'a Arena,
    /// What is written so far.
    out: &'a mut String,
    style: Style,
    max_len: usize,
    depth: u32,
    /// How deep within lists of generic arguments.
    arguments_depth: u32,
    visits_left: usize,
    /// How deep this name stands within others that name it.
    nesting: u32,
    /// Whether the simplified form has said that it is a specialization; once is enough.
    said_specialized: bool,
    is_too_complex: bool,
}

/// Writes the name whose global node is `root` to an empty text. One that would be longer than `max_len` is written as
/// far as it fits, which is [`Failed::Full`].
pub(super) fn print(
    arena: &Arena,
    root: NodeRef,
    style: Style,
    max_len: usize,
    nesting: u32,
    out: &mut String,
) -> Result<(), Failed> {
    let visits_left = max_len.saturating_mul(VISITS_PER_BYTE).clamp(1 << 12, 1 << 24);
    let mut printer = Printer {
        arena,
        out,
        style,
        max_len,
        depth: 0,
        arguments_depth: 0,
        visits_left,
        nesting,
        said_specialized: false,
        is_too_complex: false,
    };
    match printer.print(root) {
        // Some parts are shown as nothing, such as modules in the simplified form; alone they are no name.
        Ok(()) if printer.out.is_empty() => Err(Failed::Invalid(0)),
        Ok(()) => Ok(()),
        Err(_) if printer.is_too_complex => Err(Failed::TooComplex(0)),
        Err(_) => Err(Failed::Full),
    }
}

impl Printer<'_> {
    #[inline]
    fn put(&mut self, text: &str) -> fmt::Result {
        if self.out.len() + text.len() > self.max_len {
            return self.put_what_fits(text);
        }
        self.out.push_str(text);
        Ok(())
    }

    #[cold]
    fn put_what_fits(&mut self, text: &str) -> fmt::Result {
        let room = self.max_len - self.out.len();
        let fitting = (0..=room.min(text.len())).rev().find_map(|end| text.get(..end));
        self.out.push_str(fitting.unwrap_or_default());
        Err(fmt::Error)
    }

    fn put_number(&mut self, number: u64) -> fmt::Result {
        let mut digits = [0_u8; 20];
        let mut rest = number;
        let mut at = digits.len();
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            at -= 1;
            if rest == 0 {
                break;
            }
        }
        let text = digits.get(at..).and_then(|digits| core::str::from_utf8(digits).ok());
        self.put(text.unwrap_or_default())
    }

    fn text(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        self.put(arena.text(node))
    }

    fn too_complex(&mut self) -> fmt::Error {
        self.is_too_complex = true;
        fmt::Error
    }

    fn print(&mut self, node: NodeRef) -> fmt::Result {
        self.enter()?;
        self.node(node)?;
        self.depth -= 1;
        Ok(())
    }

    fn enter(&mut self) -> fmt::Result {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.too_complex());
        }
        self.spend(1)
    }

    /// Accounts for work that may show nothing.
    fn spend(&mut self, visits: usize) -> fmt::Result {
        match self.visits_left.checked_sub(visits) {
            Some(left) => self.visits_left = left,
            None => return Err(self.too_complex()),
        }
        Ok(())
    }

    /// As [`print`](Self::print), for a node that stands before a dot and a name.
    fn print_as_context(&mut self, node: NodeRef) -> Context {
        self.enter()?;
        let left = match self.entity_form(node, self.arena.own_kind(node)) {
            Some(form) => self.entity(node, &form, true)?,
            None => {
                self.node(node)?;
                None
            }
        };
        self.depth -= 1;
        Ok(left)
    }

    fn child(&mut self, node: NodeRef, at: usize) -> fmt::Result {
        match self.arena.child(node, at) {
            Some(child) => self.print(child),
            None => Ok(()),
        }
    }

    fn list(&mut self, nodes: &[NodeRef], separator: &str) -> fmt::Result {
        for (at, &node) in nodes.iter().enumerate() {
            if at > 0 {
                self.put(separator)?;
            }
            self.print(node)?;
        }
        Ok(())
    }

    fn list_of(&mut self, node: NodeRef, separator: &str) -> fmt::Result {
        let arena = self.arena;
        self.list(arena.children(node), separator)
    }

    /// A node whatever it is: the kinds that are frequent, then each group of the others.
    fn node(&mut self, node: NodeRef) -> fmt::Result {
        match self.arena.own_kind(node) {
            Kind::Identifier => self.text(node),
            Kind::Standard => self.standard(node),
            Kind::Class | Kind::Structure | Kind::Enum | Kind::Protocol => self.nominal(node),
            Kind::BoundGeneric => self.bound_generic(node),
            Kind::FunctionType => self.function_type(node, None, true),
            Kind::Tuple => self.enclosed("(", node, ", ", ")"),
            Kind::GenericParam => self.param(node),
            Kind::Phrase | Kind::Qualified | Kind::Simple | Kind::ConformanceRef => self.phrase(node),
            kind => match kind.group() {
                Group::Name => self.name(node, kind),
                Group::Entity => match self.entity_form(node, kind) {
                    Some(form) => self.entity(node, &form, false).map(|_| ()),
                    None => self.name(node, kind),
                },
                Group::Type => self.type_node(node, kind),
                Group::Generic => self.generic_node(node, kind),
                Group::Conformance => self.conformance_node(node, kind),
                Group::Global => self.global(node, kind),
                Group::Attribute => self.function_attribute(node, kind),
            },
        }
    }

    /// Modules, and names of declarations.
    fn name(&mut self, node: NodeRef, kind: Kind) -> fmt::Result {
        match kind {
            Kind::Module if self.style.is_simplified => Ok(()),
            Kind::Module => self.text(node),
            Kind::InfixOperator => {
                self.text(node)?;
                self.put(" infix")
            }
            Kind::PrefixOperator => {
                self.text(node)?;
                self.put(" prefix")
            }
            Kind::PostfixOperator => {
                self.text(node)?;
                self.put(" postfix")
            }
            Kind::LocalDeclName => {
                self.child(node, 0)?;
                self.put(" #")?;
                self.put_number(u64::from(self.arena.extra(node)) + 1)
            }
            Kind::PrivateDeclName => self.private_name(node),
            Kind::RelatedEntityDeclName => {
                let letter = char::from_u32(self.arena.extra(node)).unwrap_or_default();
                self.put("related decl '")?;
                self.put(letter.encode_utf8(&mut [0; 4]))?;
                self.put("' for ")?;
                self.child(node, 0)
            }
            Kind::LabelList => Ok(()),
            Kind::Static => {
                self.put("static ")?;
                self.child(node, 0)
            }
            Kind::Extension => self.extension(node),
            Kind::AnonymousContext => self.anonymous_context(node),
            Kind::TheTupleType => self.put("Builtin.TheTupleType"),
            _ => Ok(()),
        }
    }

    /// `(name in discriminator)`; the simplified form is the name alone.
    fn private_name(&mut self, node: NodeRef) -> fmt::Result {
        let name = self.arena.child(node, 1);
        if self.style.is_simplified {
            return name.map_or(Ok(()), |name| self.print(name));
        }
        self.put("(")?;
        if let Some(name) = name {
            self.print(name)?;
            self.put(" ")?;
        }
        self.put("in ")?;
        self.child(node, 0)?;
        self.put(")")
    }

    /// A fixed text with children in it.
    fn phrase(&mut self, node: NodeRef) -> fmt::Result {
        let (before, mut rest) = phrase::parts(self.arena.extra(node));
        self.put(before)?;
        while let [b'$', digit, ..] = *rest.as_bytes() {
            self.child(node, usize::from(digit.wrapping_sub(b'0')))?;
            let after = rest.get(2..).unwrap_or_default();
            if after.is_empty() {
                break;
            }
            let end = after.find('$').unwrap_or(after.len());
            self.put(after.get(..end).unwrap_or_default())?;
            rest = after.get(end..).unwrap_or_default();
        }
        Ok(())
    }
}
