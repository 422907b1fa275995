//! The operators: how they are mangled, written, and how tightly they bind.

/// One operator, by its place in [`OPERATORS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operator(u8);

/// How an operator is used in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    /// `@ expr`
    Prefix,
    /// `expr @`, or with an underscore behind its code `@ expr`
    Postfix,
    /// `left @ right`
    Binary,
    /// `expr [ index ]`
    Subscript,
    /// `left . right`, where the operator cannot be overloaded
    Dot,
    /// `left -> right`
    Arrow,
    New,
    NewArray,
    Delete,
    DeleteArray,
    /// `callee ( args )`
    Call,
    /// `( callee ) ( args )`
    CallInParens,
    /// `( type ) expr`; as a name, `operator type`
    Conversion,
    Conditional,
    /// Overloaded only, no part of an expression that is mangled.
    NameOnly,
    /// `name < type > ( expr )`
    NamedCast,
    /// `name ( type )`
    OfType,
    /// `name ( expr )`
    OfExpression,
}

/// How tightly an expression binds, tightest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    Primary,
    Postfix,
    Unary,
    Cast,
    PointerToMember,
    Multiplicative,
    Additive,
    Shift,
    Spaceship,
    Relational,
    Equality,
    And,
    Xor,
    Or,
    AndIf,
    OrIf,
    Conditional,
    Assign,
    Comma,
}

struct Entry(&'static [u8; 2], &'static str, Usage, Precedence);

use Precedence as P;
use Usage as U;

/// Code, spelling behind the word `operator`, usage, precedence.
const OPERATORS: &[Entry] = &[
    Entry(b"aN", "&=", U::Binary, P::Assign),
    Entry(b"aS", "=", U::Binary, P::Assign),
    Entry(b"aa", "&&", U::Binary, P::AndIf),
    Entry(b"ad", "&", U::Prefix, P::Unary),
    Entry(b"an", "&", U::Binary, P::And),
    Entry(b"at", "alignof ", U::OfType, P::Unary),
    Entry(b"aw", "co_await", U::NameOnly, P::Unary),
    Entry(b"az", "alignof ", U::OfExpression, P::Unary),
    Entry(b"cc", "const_cast", U::NamedCast, P::Postfix),
    Entry(b"cl", "()", U::Call, P::Postfix),
    Entry(b"cm", ",", U::Binary, P::Comma),
    Entry(b"co", "~", U::Prefix, P::Unary),
    Entry(b"cp", "()", U::CallInParens, P::Postfix),
    Entry(b"cv", "", U::Conversion, P::Cast),
    Entry(b"dV", "/=", U::Binary, P::Assign),
    Entry(b"da", "delete[]", U::DeleteArray, P::Unary),
    Entry(b"dc", "dynamic_cast", U::NamedCast, P::Postfix),
    Entry(b"de", "*", U::Prefix, P::Unary),
    Entry(b"dl", "delete", U::Delete, P::Unary),
    Entry(b"ds", ".*", U::Dot, P::PointerToMember),
    Entry(b"dt", ".", U::Dot, P::Postfix),
    // LLVM's table gives division the precedence of an assignment; its output is what ours is compared with.
    Entry(b"dv", "/", U::Binary, P::Assign),
    Entry(b"eO", "^=", U::Binary, P::Assign),
    Entry(b"eo", "^", U::Binary, P::Xor),
    Entry(b"eq", "==", U::Binary, P::Equality),
    Entry(b"ge", ">=", U::Binary, P::Relational),
    Entry(b"gt", ">", U::Binary, P::Relational),
    Entry(b"ix", "[]", U::Subscript, P::Postfix),
    Entry(b"lS", "<<=", U::Binary, P::Assign),
    Entry(b"le", "<=", U::Binary, P::Relational),
    Entry(b"ls", "<<", U::Binary, P::Shift),
    Entry(b"lt", "<", U::Binary, P::Relational),
    Entry(b"mI", "-=", U::Binary, P::Assign),
    Entry(b"mL", "*=", U::Binary, P::Assign),
    Entry(b"mi", "-", U::Binary, P::Additive),
    Entry(b"ml", "*", U::Binary, P::Multiplicative),
    Entry(b"mm", "--", U::Postfix, P::Postfix),
    Entry(b"na", "new[]", U::NewArray, P::Unary),
    Entry(b"ne", "!=", U::Binary, P::Equality),
    Entry(b"ng", "-", U::Prefix, P::Unary),
    Entry(b"nt", "!", U::Prefix, P::Unary),
    Entry(b"nw", "new", U::New, P::Unary),
    Entry(b"oR", "|=", U::Binary, P::Assign),
    Entry(b"oo", "||", U::Binary, P::OrIf),
    Entry(b"or", "|", U::Binary, P::Or),
    Entry(b"pL", "+=", U::Binary, P::Assign),
    Entry(b"pl", "+", U::Binary, P::Additive),
    Entry(b"pm", "->*", U::Arrow, P::PointerToMember),
    Entry(b"pp", "++", U::Postfix, P::Postfix),
    Entry(b"ps", "+", U::Prefix, P::Unary),
    Entry(b"pt", "->", U::Arrow, P::Postfix),
    Entry(b"qu", "?", U::Conditional, P::Conditional),
    Entry(b"rM", "%=", U::Binary, P::Assign),
    Entry(b"rS", ">>=", U::Binary, P::Assign),
    Entry(b"rc", "reinterpret_cast", U::NamedCast, P::Postfix),
    Entry(b"rm", "%", U::Binary, P::Multiplicative),
    Entry(b"rs", ">>", U::Binary, P::Shift),
    Entry(b"sc", "static_cast", U::NamedCast, P::Postfix),
    Entry(b"ss", "<=>", U::Binary, P::Spaceship),
    Entry(b"st", "sizeof ", U::OfType, P::Unary),
    Entry(b"sz", "sizeof ", U::OfExpression, P::Unary),
    Entry(b"te", "typeid ", U::OfExpression, P::Postfix),
    Entry(b"ti", "typeid ", U::OfType, P::Postfix),
];

/// Second letters of codes are `A` to `z`.
const SECOND_LETTERS: usize = (b'z' - b'A' + 1) as usize;
const SLOTS: usize = 26 * SECOND_LETTERS;

/// For each pair of letters one more than the place in [`OPERATORS`], or zero.
const BY_CODE: [u8; SLOTS] = by_code();

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn by_code() -> [u8; SLOTS] {
    let mut slots = [0; SLOTS];
    let mut number = 0;
    while number < OPERATORS.len() {
        let [first, second] = *OPERATORS[number].0;
        slots[(first - b'a') as usize * SECOND_LETTERS + (second - b'A') as usize] = number as u8 + 1;
        number += 1;
    }
    slots
}

impl Operator {
    /// The operator that two letters of a mangled name stand for.
    pub(super) fn by_code(first: u8, second: u8) -> Option<Operator> {
        let first = usize::from(first.checked_sub(b'a').filter(|&letter| letter < 26)?);
        let second = usize::from(second.checked_sub(b'A')?);
        if second >= SECOND_LETTERS {
            return None;
        }
        BY_CODE.get(first * SECOND_LETTERS + second)?.checked_sub(1).map(Operator)
    }

    fn entry(self) -> &'static Entry {
        const NONE: Entry = Entry(b"  ", "", Usage::NameOnly, Precedence::Primary);
        OPERATORS.get(usize::from(self.0)).unwrap_or(&NONE)
    }

    /// How it is written in an expression.
    pub(super) fn symbol(self) -> &'static str {
        self.entry().1
    }

    pub(super) fn usage(self) -> Usage {
        self.entry().2
    }

    pub(super) fn precedence(self) -> Precedence {
        self.entry().3
    }

    /// True if `operator @` can be the name of a function.
    pub(super) fn is_nameable(self) -> bool {
        !matches!(
            self.usage(),
            Usage::NamedCast | Usage::OfType | Usage::OfExpression | Usage::Dot | Usage::Conversion
        )
    }

    /// True if a letter, so that a space parts it from the word `operator`.
    pub(super) fn is_word(self) -> bool {
        self.symbol().starts_with(|c: char| c.is_ascii_lowercase())
    }

    /// True if a pack can be folded over it.
    pub(super) fn is_foldable(self) -> bool {
        match self.usage() {
            Usage::Binary => true,
            Usage::Dot | Usage::Arrow => self.precedence() == Precedence::PointerToMember,
            _ => false,
        }
    }
}
