//! The parts of a name, in one flat table that is reused from name to name.

use super::operators::{Operator, Precedence};
use super::words::{WORDS, Word};
use alloc::vec::Vec;
use core::num::NonZeroU32;

/// Where a node is in its [`Table`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(NonZeroU32);

impl Id {
    /// The words come first in every table.
    pub(super) fn of_word(number: u8) -> Id {
        Id(NonZeroU32::MIN.saturating_add(u32::from(number)))
    }

    pub(super) fn index(self) -> usize {
        // A u32 fits a usize on all targets that have an allocator.
        (self.0.get() - 1) as usize
    }
}

/// A piece of the mangled name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// Several nodes in order; get them with [`Table::list`].
#[derive(Debug, Clone, Copy)]
pub(super) struct List(u32);

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
#[derive(Debug, Clone, Copy)]
pub(super) enum Node {
    Word(Word),
    /// An identifier or a number as it stands in the mangled name.
    Source(Span),

    // Names.
    Nested {
        scope: Id,
        name: Id,
    },
    Local {
        function: Id,
        entity: Id,
    },
    Friend {
        scope: Id,
        name: Id,
    },
    Module {
        parent: Option<Id>,
        name: Id,
        is_partition: bool,
    },
    InModule {
        module: Id,
        name: Id,
    },
    Global(Id),
    Standard(Standard),
    /// As [`Standard`](Node::Standard), written out: in front of a constructor's name.
    StandardExpanded(Standard),
    Constructor(Id),
    Destructor(Id),
    /// A destructor named in an expression: any type may stand behind the `~`.
    UnresolvedDestructor(Id),
    UnnamedType(Span),
    Closure {
        signature: Id,
        count: Span,
    },
    Signature {
        templates: List,
        params: List,
        requires: Option<Id>,
    },
    SignatureRequires {
        before: Option<Id>,
        behind: Option<Id>,
    },
    StructuredBinding(List),
    AbiTag {
        base: Id,
        tag: Span,
    },
    OperatorName(Operator),
    Conversion(Id),
    LiteralOperator(Id),

    // Encodings.
    Function {
        name: Id,
        returns: Option<Id>,
        params: List,
        trailer: Trailer,
    },
    /// A function with `enable_if` attributes or a `requires` clause.
    Constrained {
        function: Id,
        attributes: Option<Id>,
        requires: Option<Id>,
    },
    EnableIf(List),
    ExplicitObject(Id),
    Special {
        what: Word,
        of: Id,
    },
    ConstructionVtable {
        of: Id,
        inside: Id,
    },
    Suffixed {
        name: Id,
        suffix: Span,
    },

    // Types.
    Qualified {
        of: Id,
        qualifiers: Qualifiers,
    },
    VendorQualified {
        of: Id,
        qualifier: Id,
        args: Option<Id>,
    },
    Postfixed {
        of: Id,
        behind: Word,
    },
    Elaborated {
        keyword: Word,
        of: Id,
    },
    Transformed {
        transform: Span,
        of: Id,
    },
    ObjCProtocol {
        of: Id,
        protocol: Span,
    },
    Pointer(Id),
    Reference {
        to: Id,
        kind: Reference,
    },
    MemberPointer {
        class: Id,
        member: Id,
    },
    Array {
        of: Id,
        dimension: Option<Id>,
    },
    FunctionType {
        returns: Id,
        params: List,
        exceptions: Option<Id>,
        trailer: Trailer,
    },
    Noexcept(Id),
    Throws(List),
    Vector {
        of: Id,
        dimension: Option<Id>,
    },
    PixelVector(Id),
    BinaryFloat(Id),
    FixedPoint {
        is_saturating: bool,
        is_fraction: bool,
        size: u8,
    },
    BitInt {
        size: Id,
        is_signed: bool,
    },

    // Templates.
    Templated {
        name: Id,
        args: Id,
    },
    Args(List),
    ArgPack(List),
    /// A pack that a template parameter stands for.
    Pack(List),
    Expansion(Id),
    /// One element of a pack.
    PackIndex {
        pack: Id,
        index: Id,
    },
    QualifiedArg(Id),
    /// A template parameter whose argument comes later in the name.
    Forward {
        target: Option<Id>,
    },
    InventedParam {
        kind: ParamKind,
        index: u32,
    },
    TypeParam(Id),
    ConstrainedParam {
        constraint: Id,
        name: Id,
    },
    NonTypeParam {
        name: Id,
        ty: Id,
    },
    TemplateParam {
        name: Id,
        params: List,
        requires: Option<Id>,
    },
    PackParam(Id),
    /// The arguments of a captured pack.
    CapturedPack(List),

    // Expressions.
    Binary {
        operator: Operator,
        left: Id,
        right: Id,
    },
    Prefix {
        operator: Operator,
        of: Id,
    },
    Postfix {
        operator: Operator,
        of: Id,
    },
    Subscript {
        of: Id,
        index: Id,
    },
    Member {
        operator: Operator,
        left: Id,
        right: Id,
    },
    Conditional {
        condition: Id,
        then: Id,
        otherwise: Id,
    },
    Cast {
        operator: Operator,
        to: Id,
        from: Id,
    },
    Call {
        callee: Id,
        args: List,
        in_parens: bool,
    },
    New {
        placement: List,
        ty: Id,
        init: List,
        is_global: bool,
        is_array: bool,
        is_braced: bool,
    },
    Delete {
        of: Id,
        is_global: bool,
        is_array: bool,
    },
    Convert {
        to: Id,
        args: List,
    },
    ConvertMemberPointer {
        to: Id,
        from: Id,
    },
    Enclosing {
        what: Word,
        of: Id,
        precedence: Precedence,
    },
    OperatorOf {
        operator: Operator,
        of: Id,
    },
    SizeofPack(Id),
    FunctionParam(Span),
    InitList {
        ty: Option<Id>,
        values: List,
    },
    BracedField {
        field: Id,
        value: Id,
    },
    BracedIndex {
        index: Id,
        value: Id,
    },
    BracedRange {
        first: Id,
        last: Id,
        value: Id,
    },
    Subobject {
        of: Id,
        ty: Id,
        offset: Id,
    },
    Fold {
        operator: Operator,
        pack: Id,
        init: Option<Id>,
        is_left: bool,
    },
    Throw(Id),
    StringLiteral(Id),
    Lambda(Id),
    EnumLiteral {
        ty: Id,
        value: Span,
    },
    Integer {
        ty: Word,
        value: Span,
    },
    Float {
        kind: FloatKind,
        is_long: bool,
        digits: Span,
    },
    /// A floating-point literal of a type that has no suffix.
    TypedFloat {
        ty: Id,
        kind: FloatKind,
        digits: Span,
    },
    Complex {
        ty: Id,
        real: Id,
        imaginary: Id,
    },
    Requires {
        params: List,
        requirements: List,
    },
    ExpressionRequirement {
        expression: Id,
        is_noexcept: bool,
        constraint: Option<Id>,
    },
    TypeRequirement(Id),
    NestedRequirement(Id),
}

/// A node, and what is known of it beside what it says itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) node: Node,
    pub(super) shape: Shape,
    /// Whether a substitution or template parameter refers to it, so that it is printed more than once.
    pub(super) is_reused: bool,
}

const NOTHING: Entry = Entry { node: Node::Word(Word::EMPTY), shape: Shape::PLAIN, is_reused: false };

/// All nodes of one name.
#[derive(Debug)]
pub(super) struct Table {
    entries: Vec<Entry>,
    /// The members of all lists.
    members: Vec<Id>,
    /// Where each list's members are.
    lists: Vec<Span>,
}

impl Default for Table {
    fn default() -> Self {
        let words = (0..WORDS.len()).map(|number| {
            let word = Word::numbered(u8::try_from(number).unwrap_or_default());
            Entry { node: Node::Word(word), ..NOTHING }
        });
        Table { entries: words.collect(), members: Vec::new(), lists: alloc::vec![Span { start: 0, len: 0 }] }
    }
}

impl Table {
    /// Makes room for the next name.
    pub(super) fn clear(&mut self) {
        self.entries.truncate(WORDS.len());
        self.members.clear();
        self.lists.truncate(1);
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn entry(&self, id: Id) -> &Entry {
        self.entries.get(id.index()).unwrap_or(&NOTHING)
    }

    #[inline]
    pub(super) fn node(&self, id: Id) -> Node {
        self.entry(id).node
    }

    #[inline]
    pub(super) fn shape(&self, id: Id) -> Shape {
        self.entry(id).shape
    }

    pub(super) fn list(&self, list: List) -> &[Id] {
        let span = self.lists.get(list.0 as usize).copied().unwrap_or(Span { start: 0, len: 0 });
        let start = span.start as usize;
        self.members.get(start..start + span.len as usize).unwrap_or_default()
    }

    #[inline]
    pub(super) fn push(&mut self, node: Node) -> Id {
        self.push_shaped(node, Shape::PLAIN)
    }

    #[inline]
    pub(super) fn push_shaped(&mut self, node: Node, shape: Shape) -> Id {
        self.entries.push(Entry { node, shape, is_reused: false });
        // The length of a name is checked before, and each node takes at least half a byte of it.
        Id(NonZeroU32::new(self.entries.len() as u32).unwrap_or(NonZeroU32::MIN))
    }

    /// Makes a list of `members`.
    pub(super) fn push_list(&mut self, members: &[Id]) -> List {
        if members.is_empty() {
            return List::EMPTY;
        }
        let start = self.members.len() as u32;
        self.members.extend_from_slice(members);
        let number = self.lists.len() as u32;
        self.lists.push(Span { start, len: members.len() as u32 });
        List(number)
    }

    /// Says what a [`Node::Forward`] stands for.
    pub(super) fn resolve(&mut self, forward: Id, argument: Id) {
        if let Some(Entry { node: Node::Forward { target, .. }, .. }) = self.entries.get_mut(forward.index())
        {
            *target = Some(argument);
        }
    }

    /// Notes that a node is referred to.
    #[inline]
    pub(super) fn reuse(&mut self, id: Id) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            entry.is_reused = true;
        }
    }
}
