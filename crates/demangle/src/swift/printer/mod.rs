//! Writes the parts of a name as Swift's tools do.

mod entities;
mod functions;
mod generics;
mod globals;
mod specializations;
mod types;

use super::kinds::Kind;
use super::node::{Arena, NodeRef};
use super::phrase;
use super::style::Style;
use crate::MAX_DEPTH;
use crate::error::Failed;
use crate::limited::Limited;
use core::fmt::{self, Write as _};

/// `Some` is a context that could not be written before the name: it is to be written behind it.
type Context = Result<Option<NodeRef>, fmt::Error>;

/// How many nodes may be visited for one byte of the output limit: a part that shows nothing may be repeated, too.
const VISITS_PER_BYTE: usize = 4;

pub(super) struct Printer<'a, W> {
    arena: &'a Arena,
    out: &'a mut Limited<W>,
    style: Style,
    /// How many bytes were written.
    written: usize,
    depth: u32,
    visits_left: usize,
    /// How deep this name stands within others that name it.
    nesting: u32,
    /// Whether the simplified form has said that it is a specialization; once is enough.
    said_specialized: bool,
    is_too_complex: bool,
}

/// Writes the name whose global node is `root`.
pub(super) fn print<W: fmt::Write>(
    arena: &Arena,
    root: NodeRef,
    style: Style,
    max_len: usize,
    nesting: u32,
    out: &mut Limited<W>,
) -> Result<(), Failed> {
    let visits_left = max_len.saturating_mul(VISITS_PER_BYTE).clamp(1 << 12, 1 << 24);
    let mut printer = Printer {
        arena,
        out,
        style,
        written: 0,
        depth: 0,
        visits_left,
        nesting,
        said_specialized: false,
        is_too_complex: false,
    };
    match printer.print(root) {
        // Some parts are shown as nothing, such as modules in the simplified form; alone they are no name.
        Ok(()) if printer.written == 0 => Err(Failed::Invalid(0)),
        Ok(()) => Ok(()),
        Err(_) if printer.is_too_complex => Err(Failed::TooComplex(0)),
        Err(_) => Err(Failed::Full),
    }
}

impl<W: fmt::Write> Printer<'_, W> {
    #[inline]
    fn put(&mut self, text: &str) -> fmt::Result {
        self.written += text.len();
        self.out.write_str(text)
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
        self.visits_left = self.visits_left.saturating_sub(1);
        if self.depth > MAX_DEPTH || self.visits_left == 0 {
            return Err(self.too_complex());
        }
        Ok(())
    }

    /// As [`print`](Self::print), for a node that stands before a dot and a name.
    fn print_as_context(&mut self, node: NodeRef) -> Context {
        self.enter()?;
        let left = match self.entity_form(node) {
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
            Kind::Phrase | Kind::Qualified | Kind::Simple | Kind::ConformanceRef => self.phrase(node),
            kind => {
                if let Some(form) = self.entity_form(node) {
                    return self.entity(node, &form, false).map(|_| ());
                }
                self.name(node, kind)
            }
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
            Kind::Number => self.put_number(u64::from(self.arena.extra(node))),
            _ => self.type_node(node, kind),
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
        let mut rest = phrase::text(self.arena.extra(node));
        while let Some((before, after)) = rest.split_once('$') {
            self.put(before)?;
            let at = after.bytes().next().map_or(0, |digit| usize::from(digit.wrapping_sub(b'0')));
            self.child(node, at)?;
            rest = after.get(1..).unwrap_or_default();
        }
        self.put(rest)
    }
}
