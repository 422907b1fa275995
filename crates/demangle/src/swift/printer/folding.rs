//! Lists of generic arguments, and the short form of those that are too long or too deep.

use super::Printer;
use crate::FoldTemplates;
use crate::swift::node::NodeRef;
use core::fmt;

impl Printer<'_> {
    /// `<A, B>`, or `<...>` where the caller wants it.
    pub(super) fn generic_arguments(&mut self, arguments: &[NodeRef]) -> fmt::Result {
        match self.style.fold {
            Some(fold) if !arguments.is_empty() => self.foldable_arguments(arguments, fold),
            _ => self.all_arguments(arguments),
        }
    }

    fn all_arguments(&mut self, arguments: &[NodeRef]) -> fmt::Result {
        self.put("<")?;
        self.list(arguments, ", ")?;
        self.put(">")
    }

    fn foldable_arguments(&mut self, arguments: &[NodeRef], fold: FoldTemplates) -> fmt::Result {
        if self.arguments_depth >= fold.depth {
            return self.put("<...>");
        }
        let (start, depth, arguments_depth) = (self.out.len(), self.depth, self.arguments_depth);
        self.arguments_depth += 1;
        let result = self.all_arguments(arguments);
        self.arguments_depth = arguments_depth;
        // A list that does not fit into the limit may do so when it is folded.
        if self.is_too_complex || self.out.len() - start <= fold.len {
            return result;
        }
        self.depth = depth;
        self.out.truncate(start);
        self.put("<...>")
    }
}
