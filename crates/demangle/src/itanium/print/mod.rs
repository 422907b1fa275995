//! Writes the parts of a name in order.
//!
//! A C++ type wraps around the name that it declares (`int (*name)[3]`), so each node has a left side and, if its
//! [`Shape`](super::node::Shape) says so, a right side. The style (spaces, `'lambda'`, `(anonymous namespace)`, ...) is
//! that of LLVM's tools.
//!
//! Once the output limit is reached, or the work exceeds what a sound name of this length needs, nothing is written any
//! more and the walk ends without visiting further nodes.

mod expressions;
mod literals;
mod names;
mod templates;
mod types;

use super::node::{Entry, Id, Known, List, Node, Shape, Span, Table};
use super::operators::{Operator, Precedence};
use super::words::Word;
use crate::error::Failed;
use crate::{MAX_DEPTH, Options};
use alloc::string::String;
use alloc::vec::Vec;

/// Nodes visited for each byte of the name and of the output limit; what compilers write needs less than four.
const STEPS_PER_BYTE: usize = 16;

/// The pack element that is being printed.
#[derive(Debug, Clone, Copy)]
struct PackPosition {
    index: usize,
    len: usize,
}

/// Writes one name.
pub(super) struct Printer<'a> {
    name: &'a str,
    table: &'a Table,
    options: &'a Options,
    out: &'a mut String,
    max_len: usize,
    stopped: Option<Failed>,
    /// How many more nodes may be visited; zero once writing has stopped.
    steps_left: usize,
    depth: u32,
    /// The innermost expansion's position; none outside of one, or before its pack is met.
    pack: Option<PackPosition>,
    /// Inside template arguments, where `>` needs parentheses.
    in_args: bool,
    /// Parentheses that are open within template arguments.
    parens_in_args: u32,
    /// How many template-argument lists are open.
    args_depth: u32,
    /// Nodes that a malformed name may have made part of themselves, while they are printed.
    active: Vec<Id>,
    /// Whether there can be such nodes.
    may_be_cyclic: bool,
    /// What was written for each node that is referred to more than once.
    copies: &'a mut Vec<Written>,
    /// Counts what makes earlier copies unusable.
    epoch: u32,
    /// Counts the texts that depend on the pack element that is being printed.
    pack_uses: u32,
    /// Counts the texts that depend on where they stand for other reasons.
    unstable: u32,
}

/// What was written for the left side of a node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written {
    start: u32,
    len: u32,
    epoch: u32,
}

impl<'a> Printer<'a> {
    pub(super) fn new(
        name: &'a str,
        table: &'a Table,
        options: &'a Options,
        may_be_cyclic: bool,
        copies: &'a mut Vec<Written>,
        out: &'a mut String,
    ) -> Self {
        copies.clear();
        copies.resize(table.len(), Written::default());
        let bytes = name.len().saturating_add(options.max_len).saturating_add(1024);
        Printer {
            name,
            table,
            options,
            out,
            max_len: options.max_len,
            stopped: None,
            steps_left: bytes.saturating_mul(STEPS_PER_BYTE),
            depth: 0,
            pack: None,
            in_args: false,
            parens_in_args: 0,
            args_depth: 0,
            active: Vec::new(),
            may_be_cyclic,
            copies,
            epoch: 1,
            pack_uses: 0,
            unstable: 0,
        }
    }

    /// Writes the whole name.
    pub(super) fn finish(mut self, root: Id) -> Result<(), Failed> {
        self.top(root);
        self.stopped.map_or(Ok(()), Err)
    }

    /// Writes both sides of a node.
    fn print(&mut self, id: Id) {
        let table = self.table;
        let entry = table.entry(id);
        self.left_of_entry(id, entry);
        if entry.shape.right != Known::No {
            self.right(id);
        }
    }

    #[inline]
    fn write(&mut self, text: &str) {
        if self.out.len() + text.len() <= self.max_len {
            self.out.push_str(text);
        } else {
            self.fill(text);
        }
    }

    /// The last write: as much of `text` as fits.
    #[cold]
    fn fill(&mut self, text: &str) {
        if self.stopped.is_none() {
            self.stop(Failed::Full);
            let room = self.max_len.saturating_sub(self.out.len());
            self.out.push_str(crate::limited::floor(text, room));
        }
    }

    /// Visits no more nodes.
    #[cold]
    fn stop(&mut self, why: Failed) {
        self.stopped = self.stopped.or(Some(why));
        self.steps_left = 0;
    }

    /// Takes back what was written behind `len`.
    fn take_back(&mut self, len: usize) {
        self.out.truncate(len);
        self.epoch += 1;
    }

    fn write_span(&mut self, span: Span) {
        let start = span.start as usize;
        match self.name.get(start..start + span.len as usize) {
            Some(text) => self.write(text),
            // A length that ends within a character.
            None => self.stop(Failed::Invalid(start)),
        }
    }

    fn write_word(&mut self, word: Word) {
        self.write(word.text());
    }

    fn open(&mut self, bracket: &str) {
        self.parens_in_args += u32::from(self.in_args);
        self.write(bracket);
    }

    fn close(&mut self, bracket: &str) {
        self.parens_in_args = self.parens_in_args.saturating_sub(u32::from(self.in_args));
        self.write(bracket);
    }

    fn in_parens(&mut self, print: impl FnOnce(&mut Self)) {
        self.open("(");
        print(self);
        self.close(")");
    }

    /// Counts a visit; false once there is nothing more to do.
    #[inline]
    fn step(&mut self) -> bool {
        if self.steps_left == 0 || self.depth >= MAX_DEPTH {
            self.stop(Failed::TooComplex(0));
            return false;
        }
        self.steps_left -= 1;
        true
    }

    /// Writes what stands in front of the declared name; all there is, for most nodes.
    #[inline]
    fn left(&mut self, id: Id) {
        let table = self.table;
        self.left_of_entry(id, table.entry(id));
    }

    #[inline]
    fn left_of_entry(&mut self, id: Id, entry: &Entry) {
        // Half of all nodes; they need no bookkeeping.
        if let Node::Source(span) = entry.node {
            return self.write_span(span);
        }
        if let Node::Word(word) = entry.node {
            return self.write_word(word);
        }
        if !self.step() {
            return;
        }
        self.depth += 1;
        if entry.is_reused {
            self.left_of_reused(id, entry);
        } else {
            self.left_of(id, &entry.node);
        }
        self.depth -= 1;
    }

    /// Copies what was written for the node before, unless that depends on where it stands.
    fn left_of_reused(&mut self, id: Id, entry: &Entry) {
        let written = self.copies.get(id.index()).copied().unwrap_or_default();
        let (start, len) = (written.start as usize, written.len as usize);
        if written.epoch == self.epoch && self.out.len() + len <= self.max_len {
            self.out.extend_from_within(start..start + len);
            return;
        }
        let start = self.out.len();
        let state = (self.pack_uses, self.unstable, self.epoch);
        self.left_of(id, &entry.node);
        let is_stable = (self.pack_uses, self.unstable, self.epoch) == state && self.stopped.is_none();
        let span = (u32::try_from(start), u32::try_from(self.out.len() - start));
        if let (true, (Ok(start), Ok(len)), Some(copy)) = (is_stable, span, self.copies.get_mut(id.index())) {
            *copy = Written { start, len, epoch: self.epoch };
        }
    }

    /// Writes what stands behind the declared name.
    fn right(&mut self, id: Id) {
        if !self.step() {
            return;
        }
        self.depth += 1;
        let table = self.table;
        self.right_of(id, &table.entry(id).node);
        self.depth -= 1;
    }

    fn shape(&self, id: Id) -> Shape {
        self.table.shape(id)
    }

    /// Writes the members with commas between, leaving out expansions of empty packs.
    fn list(&mut self, list: List) {
        let table = self.table;
        let mut is_first = true;
        for &member in table.list(list) {
            let before = self.out.len();
            if !is_first {
                self.write(", ");
            }
            let behind = self.out.len();
            // Only the comma operator binds as loosely as a comma.
            match self.table.node(member) {
                Node::Binary { operator, .. } if operator.precedence() == Precedence::Comma => {
                    self.in_parens(|printer| printer.print(member));
                }
                _ => self.print(member),
            }
            if self.steps_left == 0 {
                return;
            }
            if self.out.len() == behind {
                self.out.truncate(before);
            } else {
                is_first = false;
            }
        }
    }

    /// Writes an expression, in parentheses if it binds looser than `limit` (or, `strictly`, not as tight).
    fn operand(&mut self, id: Id, limit: Precedence, or_equal: bool) {
        let precedence = self.precedence(id);
        let needs_parens = if or_equal { precedence > limit } else { precedence >= limit };
        if needs_parens {
            self.in_parens(|printer| printer.print(id));
        } else {
            self.print(id);
        }
    }

    fn precedence(&self, id: Id) -> Precedence {
        match self.table.node(id) {
            Node::Binary { operator, .. }
            | Node::Prefix { operator, .. }
            | Node::Postfix { operator, .. }
            | Node::Member { operator, .. }
            | Node::Cast { operator, .. }
            | Node::OperatorOf { operator, .. } => operator.precedence(),
            Node::Subscript { .. } | Node::Call { .. } => Precedence::Postfix,
            Node::Conditional { .. } => Precedence::Conditional,
            Node::New { .. } | Node::Delete { .. } | Node::ConvertMemberPointer { .. } => Precedence::Unary,
            Node::Convert { .. } => Precedence::Cast,
            Node::Enclosing { precedence, .. } => precedence,
            _ => Precedence::Primary,
        }
    }

    fn operator_name(&mut self, operator: Operator) {
        self.write(if operator.is_word() { "operator " } else { "operator" });
        self.write(operator.symbol());
    }

    #[rustfmt::skip]
    fn left_of(&mut self, id: Id, node: &Node) {
        match *node {
            Node::Word(word) => self.write_word(word),
            Node::Source(span) => self.write_span(span),

            Node::Nested { scope, name } => self.nested(scope, "::", name),
            Node::Local { function, entity } => self.nested(function, "::", entity),
            Node::Friend { scope, name } => self.nested(scope, "::friend ", name),
            Node::Module { parent, name, is_partition } => self.module(parent, name, is_partition),
            Node::InModule { module, name } => self.nested(name, "@", module),
            Node::Global(name) => self.between("::", name, ""),
            Node::Standard(standard) => self.standard(standard),
            Node::StandardExpanded(standard) => self.standard_expanded(standard),
            Node::Constructor(class) => self.base_name(class),
            Node::Destructor(class) => { self.write("~"); self.base_name(class); }
            Node::UnresolvedDestructor(of) => { self.write("~"); self.left(of); }
            Node::UnnamedType(count) => self.unnamed("'unnamed", count),
            Node::Closure { signature, count } => { self.unnamed("'lambda", count); self.left(signature); }
            Node::Signature { templates, params, requires } => self.signature(templates, params, requires),
            Node::SignatureRequires { .. } => {}
            Node::StructuredBinding(names) => self.bracketed(names),
            Node::AbiTag { base, tag } => self.abi_tag(base, tag),
            Node::OperatorName(operator) => self.operator_name(operator),
            Node::Conversion(to) => self.between("operator ", to, ""),
            Node::LiteralOperator(name) => self.between("operator\"\" ", name, ""),

            Node::Function { name, returns, .. } => self.function_left(name, returns),
            Node::Constrained { function, .. } => self.left(function),
            Node::EnableIf(conditions) => self.enable_if(conditions),
            Node::ExplicitObject(ty) => self.between("this ", ty, ""),
            Node::Special { what, of } => self.between(what.text(), of, ""),
            Node::ConstructionVtable { of, inside } => self.construction_vtable(of, inside),
            Node::Suffixed { name, suffix } => self.suffixed(name, suffix),

            Node::Qualified { of, qualifiers } => { self.left(of); self.qualifiers(qualifiers); }
            Node::VendorQualified { of, qualifier, args } => self.vendor_qualified(of, qualifier, args),
            Node::Postfixed { of, behind } => { self.left(of); self.write_word(behind); }
            Node::Elaborated { keyword, of } => { self.write_word(keyword); self.between(" ", of, ""); }
            Node::Transformed { transform, of } => { self.write_span(transform); self.between("(", of, ")"); }
            Node::ObjCProtocol { of, protocol } => self.objc_protocol(of, protocol),
            Node::Pointer(to) => self.pointer_left(to),
            Node::Reference { to, kind } => self.reference_left(id, to, kind),
            Node::MemberPointer { class, member } => self.member_pointer_left(class, member),
            Node::Array { of, .. } => self.left(of),
            Node::FunctionType { returns, .. } => { self.left(returns); self.write(" "); }
            Node::Noexcept(condition) => self.enclosing(Word::NOEXCEPT, condition),
            Node::Throws(types) => self.throws(types),
            Node::Vector { of, dimension } => self.vector(of, dimension),
            Node::PixelVector(dimension) => self.between("pixel vector[", dimension, "]"),
            Node::BinaryFloat(bits) => self.between("_Float", bits, ""),
            Node::FixedPoint { is_saturating, is_fraction, size } => self.fixed_point(is_saturating, is_fraction, size),
            Node::BitInt { size, is_signed } => self.bit_int(size, is_signed),

            Node::Templated { name, args } => { self.print(name); self.print(args); }
            Node::Args(args) => self.args(args),
            Node::ArgPack(elements) | Node::CapturedPack(elements) => self.list(elements),
            Node::Pack(elements) => self.with_pack_element(elements, Self::left),
            Node::Expansion(pattern) => self.expansion(pattern),
            Node::PackIndex { pack, index } => self.pack_index(pack, index),
            Node::QualifiedArg(arg) => self.print(arg),
            Node::Forward { target, .. } => self.guarded(id, |printer| printer.left_of_option(target)),
            Node::InventedParam { kind, index } => self.invented_param(kind, index),
            Node::TypeParam(_) => self.write("typename "),
            Node::ConstrainedParam { constraint, .. } => self.between("", constraint, " "),
            Node::NonTypeParam { ty, .. } => self.declaration_left(ty),
            Node::TemplateParam { params, .. } => self.template_param_left(params),
            Node::PackParam(param) => { self.left(param); self.write("..."); }

            Node::Binary { operator, left, right } => self.binary(operator, left, right),
            Node::Prefix { operator, of } => self.prefix(operator, of),
            Node::Postfix { operator, of } => self.postfix(operator, of),
            Node::Subscript { of, index } => self.subscript(of, index),
            Node::Member { operator, left, right } => self.member(operator, left, right),
            Node::Conditional { condition, then, otherwise } => self.conditional(condition, then, otherwise),
            Node::Cast { operator, to, from } => self.cast(operator, to, from),
            Node::Call { callee, args, in_parens } => self.call(callee, args, in_parens),
            Node::New { placement, ty, init, is_global, is_array, is_braced } => {
                self.new_keyword(is_global, is_array);
                self.new_operands(placement, ty, init, is_braced);
            }
            Node::Delete { of, is_global, is_array } => self.delete(of, is_global, is_array),
            Node::Convert { to, args } => self.convert(to, args),
            Node::ConvertMemberPointer { to, from } => self.convert_member_pointer(to, from),
            Node::Enclosing { what, of, .. } => self.enclosing_plain(what.text(), of),
            Node::OperatorOf { operator, of } => self.enclosing_plain(operator.symbol(), of),
            Node::SizeofPack(pack) => self.sizeof_pack(pack),
            Node::FunctionParam(number) => { self.write("fp"); self.write_span(number); }
            Node::InitList { ty, values } => self.init_list(ty, values),
            Node::BracedField { field, value } => { self.between(".", field, ""); self.braced_value(value); }
            Node::BracedIndex { index, value } => { self.between("[", index, "]"); self.braced_value(value); }
            Node::BracedRange { first, last, value } => self.braced_range(first, last, value),
            Node::Subobject { of, ty, offset } => self.subobject(of, ty, offset),
            Node::Fold { operator, pack, init, is_left } => self.fold(operator, pack, init, is_left),
            Node::Throw(of) => self.between("throw ", of, ""),
            Node::StringLiteral(ty) => self.between("\"<", ty, ">\""),
            Node::Lambda(closure) => self.lambda(closure),
            Node::EnumLiteral { ty, value } => self.enum_literal(ty, value),
            Node::Integer { ty, value } => self.integer(ty, value),
            Node::Float { kind, is_long, digits } => self.suffixed_float(kind, is_long, digits),
            Node::TypedFloat { ty, kind, digits } => self.typed_float(ty, kind, digits),
            Node::Complex { ty, real, imaginary } => self.complex(ty, real, imaginary),
            Node::Requires { params, requirements } => self.requires(params, requirements),
            Node::ExpressionRequirement { expression, is_noexcept, constraint } =>
                self.expression_requirement(expression, is_noexcept, constraint),
            Node::TypeRequirement(ty) => self.between(" typename ", ty, ";"),
            Node::NestedRequirement(constraint) => self.between(" requires ", constraint, ";"),
        }
    }

    #[rustfmt::skip]
    fn right_of(&mut self, id: Id, node: &Node) {
        match *node {
            Node::Function { returns, params, trailer, .. } => self.function_right(returns, params, trailer, None),
            Node::Constrained { function, attributes, requires } =>
                self.constrained_right(function, attributes, requires),
            Node::Qualified { of, .. } => self.right(of),
            Node::Pointer(to) => self.pointer_right(to),
            Node::Reference { to, kind } => self.reference_right(id, to, kind),
            Node::MemberPointer { member, .. } => self.wrapped_right(member),
            Node::Array { of, dimension } => self.array_right(of, dimension),
            Node::FunctionType { returns, params, exceptions, trailer } =>
                self.function_right(Some(returns), params, trailer, exceptions),
            Node::Pack(elements) => self.with_pack_element(elements, Self::right),
            Node::Forward { target, .. } => self.guarded(id, |printer| printer.right_of_option(target)),
            Node::TypeParam(name) | Node::ConstrainedParam { name, .. } => self.print(name),
            Node::NonTypeParam { name, ty } => { self.print(name); self.right(ty); }
            Node::TemplateParam { name, requires, .. } => self.template_param_right(name, requires),
            Node::PackParam(param) => self.right(param),
            _ => {}
        }
    }

    /// Writes `before`, a node, and `behind`.
    fn between(&mut self, before: &str, id: Id, behind: &str) {
        self.write(before);
        self.print(id);
        self.write(behind);
    }
}
