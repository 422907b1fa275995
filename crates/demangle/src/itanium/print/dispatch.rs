//! Which text each kind of node makes.
//!
//! Two flat tables: they are longer than other functions because there are as many kinds of nodes.

use super::Printer;
use crate::itanium::node::{Id, Node};
use crate::itanium::words::Word;

impl Printer<'_> {
    #[rustfmt::skip]
    pub(super) fn left_of(&mut self, id: Id, node: &Node) {
        match *node {
            Node::Word(word) => self.write_word(word),
            Node::Source(span) => self.write_span(span),

            Node::Nested { scope, name } => self.nested(scope, "::", name),
            Node::Inside { scope, name } => { self.print(scope); self.write("::"); self.write_span(name); }
            Node::Local { function, entity } => self.local(function, entity),
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

            Node::Function { name, returns, .. } => self.function_left(id, name, returns),
            Node::Constrained { function, .. } => self.left(function),
            Node::EnableIf(conditions) => self.enable_if(conditions),
            Node::MethodQualifiers(qualifiers) => self.method_qualifiers(qualifiers),
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

            Node::Templated { name, args } => { self.print(name); self.args(args); }
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
    pub(super) fn right_of(&mut self, id: Id, node: &Node) {
        match *node {
            Node::Function { returns, params, trailer, .. } => {
                let returns = returns.filter(|_| self.shows_return_type(id));
                self.function_right(returns, params, trailer, None);
            }
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
}
