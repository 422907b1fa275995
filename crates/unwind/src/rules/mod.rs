//! One image's rules, compiled: small rows of fixed size, found and applied without any parsing.
//!
//! A row says where it starts (four bytes, an RVA) and which [`Packed`] rule holds from there on (four bytes). Images
//! have few distinct rules: some hundreds among the 200,000 rows of a large library. What a packed rule cannot say,
//! such as DWARF expressions, stays a [`Row`] beside them.

mod build;
mod packed;

pub(crate) use packed::{Base, CallerState, FastRule, Packed, frame_pointer_slot, packed_registers};

use crate::Module;
use crate::row::{CoveredRow, Expression, Row};
use crate::runtime::RuntimeFrame;
use alloc::vec::Vec;
use backtrail_core::{AddrRange, Family, Svma};

/// No rule: what lies here is in no table.
const GAP: u32 = u32::MAX;
/// No rule, where other tables may have one that is wrong: see [`Rules::special`].
const SPECIAL: u32 = u32::MAX - 1;

/// Every row of one image's tables, ready for stepping: made by [`Module::compile`].
///
/// # Signal safety
///
/// [`Rules::find`] and a [`Walk`](crate::Walk) over compiled images allocate nothing and take no lock.
#[derive(Clone, Debug)]
pub struct Rules {
    family: Family,
    image_base: Svma,
    /// First RVA of each row, ascending. The last row is a gap.
    starts: Vec<u32>,
    /// The rule of each row: an index into `rules`, or [`GAP`].
    indices: Vec<u32>,
    /// For each stretch of `1 << shift` bytes of code, the first row that starts in it or later.
    stretches: Vec<u32>,
    shift: u32,
    rules: Vec<Packed>,
    /// Rows that do not fit.
    wide: Vec<Row>,
    /// The bytes of their expressions.
    expressions: Vec<u8>,
    /// The callee-saved registers that some rule counts from, as slots of packed rules.
    bases: u16,
    /// What a language runtime's table says of functions that a rule cannot say; by address.
    special: Vec<RuntimeFrame>,
}

/// What compiling an image came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Rows, gaps included.
    pub rows: usize,
    /// Distinct rules.
    pub rules: usize,
    /// Of these, how many need a full row (expressions, registers saved beyond the usual).
    pub wide: usize,
    /// Bytes of memory in all.
    pub bytes: usize,
}

impl Module<'_> {
    /// Compiles all tables into rows of fixed size; the code is not looked at.
    pub fn compile(&self) -> Rules {
        build::compile(self)
    }
}

impl Rules {
    /// The architecture family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// How large the compiled rules are.
    pub fn size(&self) -> Size {
        let words = self.starts.len() + self.indices.len() + self.stretches.len();
        let bytes = words * size_of::<u32>()
            + self.rules.len() * size_of::<Packed>()
            + self.wide.len() * size_of::<Row>()
            + self.expressions.len()
            + self.special.len() * size_of::<RuntimeFrame>();
        Size { rows: self.starts.len(), rules: self.rules.len(), wide: self.wide.len(), bytes }
    }

    /// The callee-saved registers that some rule counts from: a walk that recovers these finds every frame.
    pub(crate) fn bases(&self) -> u16 {
        self.bases
    }

    /// The number of the row at `at`.
    #[inline]
    fn row_at(&self, at: Svma) -> Option<usize> {
        let rva = u32::try_from(at.offset_from(self.image_base)?).ok()?;
        let stretch = rva.checked_sub(*self.starts.first()?)? >> self.shift;
        let stretch = stretch as usize;
        let low = *self.stretches.get(stretch)? as usize;
        let high = *self.stretches.get(stretch + 1)? as usize;
        let inside = self.starts.get(low..high)?;
        (low + inside.partition_point(|start| *start <= rva)).checked_sub(1)
    }

    /// The packed rule at `at`, and whether `at` is the last byte that it holds for.
    #[inline]
    pub(crate) fn packed(&self, at: Svma) -> Option<(&Packed, bool)> {
        let row = self.row_at(at)?;
        let rule = self.rules.get(*self.indices.get(row)? as usize)?;
        let end = self.image_base.checked_add(u64::from(*self.starts.get(row + 1)?))?;
        Some((rule, at.checked_add(1)? == end))
    }

    /// The function at `at`, where a language runtime's table says that there is something special about it.
    pub(crate) fn special(&self, at: Svma) -> Option<RuntimeFrame> {
        let after = self.special.partition_point(|frame| frame.covered.start() <= at);
        self.special.get(after.checked_sub(1)?).filter(|frame| frame.covered.contains(at)).copied()
    }

    /// The number of a packed rule of these.
    pub(crate) fn number(&self, packed: &Packed) -> Option<usize> {
        let distance = core::ptr::from_ref(packed).addr().checked_sub(self.rules.as_ptr().addr())?;
        let number = distance / size_of::<Packed>();
        self.rules.get(number).is_some_and(|rule| core::ptr::eq(rule, packed)).then_some(number)
    }

    /// The packed rule with that number.
    #[inline]
    pub(crate) fn numbered(&self, number: usize) -> Option<&Packed> {
        self.rules.get(number)
    }

    /// The full row that a packed rule stands for.
    pub(crate) fn wide(&self, packed: &Packed) -> Option<&Row> {
        self.wide.get(packed.wide()?)
    }

    /// The rules at `at`.
    pub fn find(&self, at: Svma) -> Option<CoveredRow> {
        let index = self.row_at(at)?;
        self.found(index)
    }

    fn found(&self, index: usize) -> Option<CoveredRow> {
        let packed = self.rules.get(*self.indices.get(index)? as usize)?;
        let row = match packed.wide() {
            Some(_) => *self.wide(packed)?,
            None => packed.unpack(self.family),
        };
        let start = *self.starts.get(index)?;
        let end = self.starts.get(index + 1).copied().unwrap_or(start);
        let address = |rva: u32| Svma::new(self.image_base.get().wrapping_add(rva.into()));
        Some(CoveredRow { row, trust: packed.trust(), covered: AddrRange::new(address(start), address(end)) })
    }

    /// Every row that is no gap, by address.
    pub fn iter(&self) -> impl Iterator<Item = CoveredRow> + '_ {
        (0..self.starts.len()).filter_map(|index| self.found(index))
    }

    /// The bytes of an expression in one of these rows.
    pub fn expression(&self, expression: Expression) -> Option<&[u8]> {
        self.expressions.get(expression.start as usize..)?.get(..usize::from(expression.length))
    }
}
