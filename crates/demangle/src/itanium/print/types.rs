//! Types.

use super::Printer;
use crate::error::Failed;
use crate::itanium::node::{Id, Known, List, Node, Reference, Shape, Span};

impl Printer<'_> {
    /// What the shape says, now that the innermost pack's position is known.
    pub(super) fn resolve(&mut self, id: Id, of: fn(Shape) -> Known) -> Known {
        let known = of(self.shape(id));
        if known != Known::Depends {
            return known;
        }
        if !self.step() {
            return Known::No;
        }
        self.depth += 1;
        let known = match self.table.node(id) {
            Node::Qualified { of: inner, .. } | Node::AbiTag { base: inner, .. } => self.resolve(inner, of),
            // Of a pointer only the right side is that of its target; the others are known.
            Node::Pointer(inner)
            | Node::Reference { to: inner, .. }
            | Node::MemberPointer { member: inner, .. } => self.resolve(inner, of),
            Node::Pack(elements) => match self.pack_element(elements) {
                Some(element) => self.resolve(element, of),
                None => Known::No,
            },
            Node::Forward { target: Some(target), .. } => {
                let mut known = Known::No;
                self.guarded(id, |printer| known = printer.resolve(target, of));
                known
            }
            _ => Known::No,
        };
        self.depth -= 1;
        known
    }

    fn is_array(&mut self, id: Id) -> bool {
        self.resolve(id, |shape| shape.array) == Known::Yes
    }

    fn is_function(&mut self, id: Id) -> bool {
        self.resolve(id, |shape| shape.function) == Known::Yes
    }

    /// The name of the protocol in `objc_object<Protocol>`, which is written `id<Protocol>`.
    fn objc_id_protocol(&self, pointee: Id) -> Option<Span> {
        let Node::ObjCProtocol { of, protocol } = self.table.node(pointee) else { return None };
        let Node::Source(span) = self.table.node(of) else { return None };
        let start = span.start as usize;
        let is_id = self.name.get(start..start + span.len as usize) == Some("objc_object");
        is_id.then_some(protocol)
    }

    pub(super) fn pointer_left(&mut self, to: Id) {
        if let Some(protocol) = self.objc_id_protocol(to) {
            self.write("id<");
            self.write_span(protocol);
            self.write(">");
            return;
        }
        self.left(to);
        self.wrap(to);
        self.write("*");
    }

    /// Opens the parentheses that a pointer to an array or function needs.
    fn wrap(&mut self, to: Id) {
        if self.is_array(to) {
            self.write(" (");
        } else if self.is_function(to) {
            self.write("(");
        }
    }

    pub(super) fn pointer_right(&mut self, to: Id) {
        if self.objc_id_protocol(to).is_none() {
            self.wrapped_right(to);
        }
    }

    /// Closes the parentheses that [`wrap`](Self::wrap) opened, and writes what follows.
    pub(super) fn wrapped_right(&mut self, to: Id) {
        if self.is_array(to) || self.is_function(to) {
            self.write(")");
        }
        self.right(to);
    }

    /// A reference to a reference is one reference: `&&` only if all of them are.
    fn collapse(&mut self, to: Id, kind: Reference) -> Option<(Id, Reference)> {
        let (mut to, mut kind) = (to, kind);
        // In a malformed name references can refer to each other in a circle.
        for _ in 0..=self.table.len() {
            let target = self.syntax_node(to);
            let Node::Reference { to: next, kind: next_kind } = self.table.node(target) else {
                return Some((to, kind));
            };
            if !self.step() {
                return None;
            }
            to = next;
            if next_kind == Reference::LValue {
                kind = Reference::LValue;
            }
        }
        self.stop(Failed::Invalid(self.name.len()));
        None
    }

    /// The node behind packs and template parameters.
    fn syntax_node(&mut self, id: Id) -> Id {
        match self.table.node(id) {
            Node::Pack(elements) => match self.pack_element(elements) {
                Some(element) if self.step() => self.syntax_node(element),
                _ => id,
            },
            Node::Forward { target: Some(target), .. } => {
                let mut node = id;
                self.guarded(id, |printer| node = printer.syntax_node(target));
                node
            }
            _ => id,
        }
    }

    pub(super) fn reference_left(&mut self, id: Id, to: Id, kind: Reference) {
        self.guarded(id, |printer| {
            let Some((to, kind)) = printer.collapse(to, kind) else { return };
            printer.left(to);
            printer.wrap(to);
            printer.write(if kind == Reference::LValue { "&" } else { "&&" });
        });
    }

    pub(super) fn reference_right(&mut self, id: Id, to: Id, kind: Reference) {
        self.guarded(id, |printer| {
            if let Some((to, _)) = printer.collapse(to, kind) {
                printer.wrapped_right(to);
            }
        });
    }

    pub(super) fn member_pointer_left(&mut self, class: Id, member: Id) {
        self.left(member);
        let is_wrapped = self.is_array(member) || self.is_function(member);
        self.between(if is_wrapped { "(" } else { " " }, class, "::*");
    }

    pub(super) fn array_right(&mut self, of: Id, dimension: Option<Id>) {
        if !self.out.ends_with(']') {
            self.write(" ");
        }
        self.write("[");
        if let Some(dimension) = dimension {
            self.print(dimension);
        }
        self.write("]");
        self.right(of);
    }

    pub(super) fn vendor_qualified(&mut self, of: Id, qualifier: Id, args: Option<List>) {
        self.nested(of, " ", qualifier);
        if let Some(args) = args {
            self.args(args);
        }
    }

    pub(super) fn objc_protocol(&mut self, of: Id, protocol: Span) {
        self.between("", of, "<");
        self.write_span(protocol);
        self.write(">");
    }

    pub(super) fn throws(&mut self, types: List) {
        self.write("throw");
        self.in_parens(|printer| printer.list(types));
    }

    pub(super) fn vector(&mut self, of: Id, dimension: Option<Id>) {
        self.between("", of, " vector[");
        if let Some(dimension) = dimension {
            self.print(dimension);
        }
        self.write("]");
    }

    pub(super) fn fixed_point(&mut self, is_saturating: bool, is_fraction: bool, size: u8) {
        if is_saturating {
            self.write("_Sat ");
        }
        self.write(match size {
            b's' => "short ",
            b't' => "unsigned short ",
            b'j' => "unsigned ",
            b'l' => "long ",
            b'm' => "unsigned long ",
            _ => "",
        });
        self.write(if is_fraction { "_Fract" } else { "_Accum" });
    }

    pub(super) fn bit_int(&mut self, size: Id, is_signed: bool) {
        if !is_signed {
            self.write("unsigned ");
        }
        self.write("_BitInt");
        self.in_parens(|printer| printer.print(size));
    }
}
