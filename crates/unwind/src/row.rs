//! How one frame's caller is recovered: the CFA and a rule for each register.

use backtrail_core::{AddrRange, REGISTER_COUNT, Register, Svma, Trust};

/// Unwind rules valid for a range of code addresses, whichever table or analysis they come from.
///
/// The caller's stack pointer is the CFA, unless [`Row::rule`] of the stack pointer says otherwise (anything but
/// [`Rule::Same`]). Registers without a rule of their own keep their value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The canonical frame address.
    pub cfa: Cfa,
    /// Where the caller's program counter is. [`Rule::Undefined`] marks the outermost frame.
    pub return_address: Rule,
    /// Whether the kernel made this frame: the caller's address is then exact, no return address.
    pub is_signal_frame: bool,
    rules: [Rule; REGISTER_COUNT],
    /// Which of the rules are not [`Rule::Same`].
    touched: u64,
}

/// How the canonical frame address is computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cfa {
    /// A register's value plus a number of bytes.
    RegisterOffset(Register, i32),
    /// The result of a DWARF expression.
    Expression(Expression),
}

/// How one register of the caller is recovered (DWARF 5, section 6.4.1, with its names).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Rule {
    /// It still has its value.
    #[default]
    Same,
    /// It is lost.
    Undefined,
    /// It was saved at the CFA plus this number of bytes.
    Offset(i32),
    /// Its value is the CFA plus this number of bytes.
    ValueOffset(i32),
    /// Its value is now in this register.
    Register(Register),
    /// It was saved at the address that the expression gives, which starts with the CFA on its stack.
    Expression(Expression),
    /// The expression, started with the CFA on its stack, gives its value.
    ValueExpression(Expression),
}

/// A DWARF expression: where its bytes lie in the tables of the [`Module`](crate::Module) or
/// [`Rules`](crate::Rules) that the row came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Expression {
    pub(crate) start: u32,
    pub(crate) length: u16,
    pub(crate) table: u8,
}

impl Row {
    /// Every register but the program counter keeps its value.
    pub const fn new(cfa: Cfa, return_address: Rule) -> Self {
        Self { cfa, return_address, is_signal_frame: false, rules: [Rule::Same; REGISTER_COUNT], touched: 0 }
    }

    /// The register's rule.
    #[inline]
    pub fn rule(&self, register: Register) -> Rule {
        self.rules.get(usize::from(register.0)).copied().unwrap_or_default()
    }

    /// Sets the register's rule; one that [`Registers`](backtrail_core::Registers) have no place for is ignored.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "checked; `get_mut` is not const in the oldest compiler")]
    pub const fn set(&mut self, register: Register, rule: Rule) {
        let index = register.0 as usize;
        if index < REGISTER_COUNT {
            self.rules[index] = rule;
            let bit = 1 << index;
            self.touched = if matches!(rule, Rule::Same) { self.touched & !bit } else { self.touched | bit };
        }
    }

    /// The same row with one more rule.
    #[must_use]
    pub fn with(mut self, register: Register, rule: Rule) -> Self {
        self.set(register, rule);
        self
    }

    /// The registers that do not simply keep their value, by number.
    pub fn rules(&self) -> impl Iterator<Item = (Register, Rule)> + '_ {
        let mut rest = self.touched;
        core::iter::from_fn(move || {
            let index = u8::try_from(rest.trailing_zeros()).ok()?;
            let rule = self.rules.get(usize::from(index))?;
            rest &= rest - 1;
            Some((Register(index), *rule))
        })
    }
}

/// A row and where it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoveredRow {
    /// The rules.
    pub row: Row,
    /// What they come from.
    pub trust: Trust,
    /// The addresses that they hold for. Analysis gives one instruction.
    pub covered: AddrRange<Svma>,
}

/// Why a table has no row for an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Miss {
    /// The image has no such table, or the table says nothing about the address.
    NotCovered,
    /// The table says that frames of this function cannot be unwound (`EXIDX_CANTUNWIND`).
    CannotUnwind,
    /// The entry says what no [`Row`] can: its instructions must be executed ([`crate::exidx::execute()`]).
    NoRow,
    /// The entry is there, but its bytes break the format.
    Malformed(Malformed),
}

/// Bytes of a table that break its format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Malformed {
    /// Where: the stated address of the byte.
    pub at: Svma,
    /// What the format asks for there.
    pub expected: &'static str,
}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: expected {}", self.at, self.expected)
    }
}

impl From<Malformed> for Miss {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}
