//! The parts of a name.

use super::operators::{Operator, Precedence};
use super::words::Word;
use core::num::NonZeroU32;

/// Where a node is in its [`Table`](super::table::Table).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(NonZeroU32);

impl Id {
    /// The words come first in every table.
    pub(super) fn of_word(number: u8) -> Id {
        Id(NonZeroU32::MIN.saturating_add(u32::from(number)))
    }

    /// The node that is the `count`-th of its table.
    pub(super) fn last_of(count: usize) -> Id {
        // A table has fewer than 2^32 nodes: each takes at least half a byte of a name, whose length is checked.
        Id(NonZeroU32::new(count as u32).unwrap_or(NonZeroU32::MIN))
    }

    pub(super) fn index(self) -> usize {
        // A u32 fits a usize on all targets that have an allocator.
        (self.0.get() - 1) as usize
    }
}

impl Word {
    /// The node that stands for this word in every table.
    pub(super) fn id(self) -> Id {
        Id::of_word(self.number())
    }
}

/// A piece of the mangled name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// Several nodes in order; get them with [`Table::list`](super::table::Table::list).
#[derive(Debug, Clone, Copy)]
pub(super) struct List(pub(super) u32);

impl List {
    /// The list without nodes, in every table.
    pub(super) const EMPTY: List = List(0);
}

/// `const`, `volatile`, `restrict`, `&` and `&&` behind a type or a member function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    pub(super) is_const: bool,
    pub(super) is_volatile: bool,
    pub(super) is_restrict: bool,
}

impl Qualifiers {
    pub(super) fn any(self) -> bool {
        self.is_const || self.is_volatile || self.is_restrict
    }
}

/// What stands behind the parameters of a function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trailer {
    pub(super) qualifiers: Qualifiers,
    pub(super) reference: Option<Reference>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    LValue,
    RValue,
}

/// What an answer is before the pack that it depends on is expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    No,
    Yes,
    Depends,
}

/// How a type wraps around the name that it declares: `int (*name)[3]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Something is printed behind the name.
    pub(super) right: Known,
    pub(super) array: Known,
    pub(super) function: Known,
}

impl Shape {
    pub(super) const PLAIN: Shape = Shape { right: Known::No, array: Known::No, function: Known::No };
    pub(super) const ARRAY: Shape = Shape { right: Known::Yes, array: Known::Yes, function: Known::No };
    pub(super) const FUNCTION: Shape = Shape { right: Known::Yes, array: Known::No, function: Known::Yes };
    pub(super) const DEPENDS: Shape =
        Shape { right: Known::Depends, array: Known::Depends, function: Known::Depends };
    pub(super) const DECLARES: Shape = Shape { right: Known::Yes, array: Known::No, function: Known::No };

    /// A pointer to something of this shape: it wraps as its target does, and is itself no array or function.
    pub(super) fn pointer(self) -> Shape {
        Shape { right: self.right, ..Shape::PLAIN }
    }
}

/// The abbreviations of the standard library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standard {
    Allocator,
    BasicString,
    String,
    Istream,
    Ostream,
    Iostream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParamKind {
    Type,
    NonType,
    Template,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FloatKind {
    Half,
    BFloat16,
    Float,
    Double,
    /// x87's 80 bits.
    Extended,
    Quad,
}

impl FloatKind {
    /// The format of a literal with this many hexadecimal digits.
    pub(super) fn of_digits(digits: u32) -> Option<FloatKind> {
        Some(match digits {
            4 => FloatKind::Half,
            8 => FloatKind::Float,
            16 => FloatKind::Double,
            20 => FloatKind::Extended,
            32 => FloatKind::Quad,
            _ => return None,
        })
    }
}

/// One part of a name. Named after the productions of the ABI's grammar where there is one.
///
/// The tag is as wide as what follows it, so that a node is written whole.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
#[rustfmt::skip]
pub(super) enum Node {
    Word(Word),
    /// An identifier or a number as it stands in the mangled name.
    Source(Span),

    // Names.
    Nested { scope: Id, name: Id },
    /// As [`Nested`](Node::Nested), with an identifier.
    Inside { scope: Id, name: Span },
    Local { function: Id, entity: Id },
    Friend { scope: Id, name: Id },
    Module { parent: Option<Id>, name: Id, is_partition: bool },
    InModule { module: Id, name: Id },
    Global(Id),
    Standard(Standard),
    /// As [`Standard`](Node::Standard), written out: in front of a constructor's name.
    StandardExpanded(Standard),
    Constructor(Id),
    Destructor(Id),
    /// A destructor named in an expression: any type may stand behind the `~`.
    UnresolvedDestructor(Id),
    UnnamedType(Span),
    Closure { signature: Id, count: Span },
    Signature { templates: List, params: List, requires: Option<Id> },
    SignatureRequires { before: Option<Id>, behind: Option<Id> },
    StructuredBinding(List),
    AbiTag { base: Id, tag: Span },
    OperatorName(Operator),
    Conversion(Id),
    LiteralOperator(Id),

    // Encodings.
    Function { name: Id, returns: Option<Id>, params: List, trailer: Trailer },
    /// A function with `enable_if` attributes, a vendor's qualifiers or a `requires` clause.
    Constrained { function: Id, attributes: Option<Id>, requires: Option<Id> },
    EnableIf(List),
    /// What a vendor's qualifiers of member functions are, in the order in which they stand.
    MethodQualifiers(List),
    ExplicitObject(Id),
    Special { what: Word, of: Id },
    ConstructionVtable { of: Id, inside: Id },
    Suffixed { name: Id, suffix: Span },

    // Types.
    Qualified { of: Id, qualifiers: Qualifiers },
    VendorQualified { of: Id, qualifier: Id, args: Option<List> },
    Postfixed { of: Id, behind: Word },
    Elaborated { keyword: Word, of: Id },
    Transformed { transform: Span, of: Id },
    ObjCProtocol { of: Id, protocol: Span },
    Pointer(Id),
    Reference { to: Id, kind: Reference },
    MemberPointer { class: Id, member: Id },
    Array { of: Id, dimension: Option<Id> },
    FunctionType { returns: Id, params: List, exceptions: Option<Id>, trailer: Trailer },
    Noexcept(Id),
    Throws(List),
    Vector { of: Id, dimension: Option<Id> },
    PixelVector(Id),
    BinaryFloat(Id),
    FixedPoint { is_saturating: bool, is_fraction: bool, size: u8 },
    BitInt { size: Id, is_signed: bool },

    // Templates.
    Templated { name: Id, args: List },
    ArgPack(List),
    /// A pack that a template parameter stands for.
    Pack(List),
    Expansion(Id),
    /// One element of a pack.
    PackIndex { pack: Id, index: Id },
    QualifiedArg(Id),
    /// A template parameter whose argument comes later in the name.
    Forward { target: Option<Id> },
    InventedParam { kind: ParamKind, index: u32 },
    TypeParam(Id),
    ConstrainedParam { constraint: Id, name: Id },
    NonTypeParam { name: Id, ty: Id },
    TemplateParam { name: Id, params: List, requires: Option<Id> },
    PackParam(Id),
    /// The arguments of a captured pack.
    CapturedPack(List),

    // Expressions.
    Binary { operator: Operator, left: Id, right: Id },
    Prefix { operator: Operator, of: Id },
    Postfix { operator: Operator, of: Id },
    Subscript { of: Id, index: Id },
    Member { operator: Operator, left: Id, right: Id },
    Conditional { condition: Id, then: Id, otherwise: Id },
    Cast { operator: Operator, to: Id, from: Id },
    Call { callee: Id, args: List, in_parens: bool },
    New { placement: List, ty: Id, init: List, is_global: bool, is_array: bool, is_braced: bool },
    Delete { of: Id, is_global: bool, is_array: bool },
    Convert { to: Id, args: List },
    ConvertMemberPointer { to: Id, from: Id },
    Enclosing { what: Word, of: Id, precedence: Precedence },
    OperatorOf { operator: Operator, of: Id },
    SizeofPack(Id),
    FunctionParam(Span),
    InitList { ty: Option<Id>, values: List },
    BracedField { field: Id, value: Id },
    BracedIndex { index: Id, value: Id },
    BracedRange { first: Id, last: Id, value: Id },
    Subobject { of: Id, ty: Id, offset: Id },
    Fold { operator: Operator, pack: Id, init: Option<Id>, is_left: bool },
    Throw(Id),
    StringLiteral(Id),
    Lambda(Id),
    EnumLiteral { ty: Id, value: Span },
    Integer { ty: Word, value: Span },
    Float { kind: FloatKind, is_long: bool, digits: Span },
    /// A floating-point literal of a type that has no suffix.
    TypedFloat { ty: Id, kind: FloatKind, digits: Span },
    Complex { ty: Id, real: Id, imaginary: Id },
    Requires { params: List, requirements: List },
    ExpressionRequirement { expression: Id, is_noexcept: bool, constraint: Option<Id> },
    TypeRequirement(Id),
    NestedRequirement(Id),
}
