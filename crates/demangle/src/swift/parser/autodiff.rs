//! Differentiable functions: derivatives, thunks, witnesses.

use super::{Parsed, Parser};
use crate::swift::kinds::Kind;

impl Parser<'_, '_> {
    /// The operators that begin with `TJ`.
    pub(super) fn auto_diff(&mut self) -> Parsed {
        if self.cursor.eat(b'S') {
            let start = self.derivative_of_all()?;
            self.derivative_subset(b'P')?;
            // The four parts at the end say how; before them must be what the thunk is for.
            let is_of_something = self.list.len() - start > 4;
            return is_of_something.then(|| self.listed(Kind::AutoDiffSubsetThunk, 0, start));
        }
        if self.cursor.eat(b'O') {
            return self.self_reordering_thunk();
        }
        let is_vtable_thunk = self.cursor.eat(b'V');
        let start = self.derivative_of_all()?;
        Some(self.listed(Kind::AutoDiffFunction, u32::from(is_vtable_thunk), start))
    }

    /// All operands there are, the kind, and the indices of parameters and results: left in the list.
    fn derivative_of_all(&mut self) -> Option<usize> {
        let start = self.list.len();
        self.list.append(self.stack);
        let kind = self.derivative_kind()?;
        let kind = self.arena.leaf(Kind::Derivative, kind);
        self.list.push(kind);
        self.derivative_subset(b'p')?;
        self.derivative_subset(b'r')?;
        Some(start)
    }

    /// `AUTODIFF-FUNCTION-KIND`
    fn derivative_kind(&mut self) -> Option<u32> {
        let letter = self.cursor.next();
        matches!(letter, b'f' | b'r' | b'd' | b'p').then_some(u32::from(letter))
    }

    /// `INDEX-SUBSET` and the letter that ends it: left in the list.
    fn derivative_subset(&mut self, end: u8) -> Option<()> {
        let start = self.cursor.at();
        let len = self.cursor.skip_while(|letter| matches!(letter, b'S' | b'U'));
        let subset = self.arena.text_node(Kind::IndexSubset, start, len);
        self.list.push(subset);
        (len > 0 && self.cursor.eat(end)).then_some(())
    }

    /// `global ::= type type generic-signature? 'TJO' AUTODIFF-FUNCTION-KIND`
    fn self_reordering_thunk(&mut self) -> Parsed {
        let signature = self.pop(Kind::GenericSignature);
        let to = self.pop_type()?;
        let from = self.pop_type()?;
        let kind = self.derivative_kind()?;
        let start = self.list.len();
        self.list.extend([from, to]);
        self.list.extend(signature);
        Some(self.listed(Kind::AutoDiffReordering, kind, start))
    }

    /// The letter after `Yj` or `WJ`.
    pub(super) fn differentiability_kind(&mut self) -> Option<u32> {
        let letter = self.cursor.next();
        matches!(letter, b'f' | b'r' | b'd' | b'l').then_some(u32::from(letter))
    }

    /// `global ::= global generic-signature? 'WJ' DIFFERENTIABILITY-KIND INDEX-SUBSET 'p' INDEX-SUBSET 'r'`
    pub(super) fn differentiability_witness(&mut self) -> Parsed {
        let signature = self.pop(Kind::GenericSignature);
        let start = self.list.len();
        self.list.append(self.stack);
        let kind = self.differentiability_kind()?;
        self.derivative_subset(b'p')?;
        self.derivative_subset(b'r')?;
        self.list.extend(signature);
        Some(self.listed(Kind::DifferentiabilityWitness, kind, start))
    }
}
