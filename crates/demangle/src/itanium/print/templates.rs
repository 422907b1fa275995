//! Template arguments and parameters; packs.

use super::{PackPosition, Printer};
use crate::error::Failed;
use crate::itanium::node::{Id, List, Node, ParamKind};
use core::fmt::Write as _;

impl Printer<'_> {
    /// Writes something in angle brackets, where `>` needs parentheses.
    pub(super) fn angled(&mut self, print: impl FnOnce(&mut Self)) {
        let outer = core::mem::replace(&mut self.in_args, true);
        self.write("<");
        print(self);
        self.write(">");
        self.in_args = outer;
    }

    pub(super) fn args(&mut self, args: List) {
        let Some(fold) = self.options.fold_templates else {
            return self.angled(|printer| printer.list(args));
        };
        let from = self.out.len();
        self.unstable += 1;
        self.args_depth += 1;
        if self.args_depth <= fold.depth {
            self.angled(|printer| printer.list(args));
        }
        let is_folded = self.args_depth > fold.depth || self.out.len() - from > fold.len;
        if is_folded && self.stopped.is_none() && !self.table.list(args).is_empty() {
            self.take_back(from);
            self.write("<...>");
        }
        self.args_depth -= 1;
    }

    /// The element of this pack that is to be printed; an expansion takes its length from the first pack it meets.
    pub(super) fn pack_element(&mut self, elements: List) -> Option<Id> {
        self.pack_uses += 1;
        let elements = self.table.list(elements);
        let position = self.pack.get_or_insert(PackPosition { index: 0, len: elements.len() });
        elements.get(position.index).copied()
    }

    pub(super) fn with_pack_element(&mut self, elements: List, print: impl FnOnce(&mut Self, Id)) {
        if let Some(element) = self.pack_element(elements) {
            print(self, element);
        }
    }

    /// Writes the pattern once for each element of the packs in it.
    pub(super) fn expansion(&mut self, pattern: Id) {
        let (outer, outer_uses) = (self.pack.take(), self.pack_uses);
        let from = self.out.len();
        self.print(pattern);
        match self.pack {
            // No pack was met: a function's parameter, whose length is not known.
            None => self.write("..."),
            Some(PackPosition { len: 0, .. }) => {
                if self.stopped.is_none() {
                    self.take_back(from);
                }
            }
            Some(PackPosition { len, .. }) => {
                for index in 1..len {
                    if self.stopped.is_some() {
                        break;
                    }
                    self.write(", ");
                    self.pack = Some(PackPosition { index, len });
                    self.print(pattern);
                }
            }
        }
        // Packs within are at this expansion's position, whatever is around it.
        self.pack_uses = outer_uses;
        self.pack = outer;
    }

    /// `T...[2]`; where both are known, the element itself.
    pub(super) fn pack_index(&mut self, pack: Id, index: Id) {
        if let Some(element) = self.element_at(pack, index) {
            return self.print(element);
        }
        self.between("", pack, "...[");
        self.between("", index, "]");
    }

    fn element_at(&self, pack: Id, index: Id) -> Option<Id> {
        let Node::Pack(elements) = self.table.node(pack) else { return None };
        let Node::Integer { value, .. } = self.table.node(index) else { return None };
        let start = value.start as usize;
        let index: usize = self.name.get(start..start + value.len as usize)?.parse().ok()?;
        self.table.list(elements).get(index).copied()
    }

    /// Visits a node unless that is already under way: a name that is part of itself is none.
    pub(super) fn guarded(&mut self, id: Id, visit: impl FnOnce(&mut Self)) {
        if !self.may_be_cyclic {
            return visit(self);
        }
        self.unstable += 1;
        if self.active.contains(&id) {
            return self.stop(Failed::Invalid(self.name.len()));
        }
        self.active.push(id);
        visit(self);
        self.active.pop();
    }

    pub(super) fn left_of_option(&mut self, id: Option<Id>) {
        if let Some(id) = id {
            self.left(id);
        }
    }

    pub(super) fn right_of_option(&mut self, id: Option<Id>) {
        if let Some(id) = id {
            self.right(id);
        }
    }

    /// `$T`, `$T0`, `$T1`, ...
    pub(super) fn invented_param(&mut self, kind: ParamKind, index: u32) {
        self.write(match kind {
            ParamKind::Type => "$T",
            ParamKind::NonType => "$N",
            ParamKind::Template => "$TT",
        });
        if let Some(number) = index.checked_sub(1) {
            self.number(number);
        }
    }

    fn number(&mut self, number: u32) {
        let mut text = alloc::string::String::new();
        // Writing to a string cannot fail.
        let _ = write!(text, "{number}");
        self.write(&text);
    }

    pub(super) fn template_param_left(&mut self, params: List) {
        let outer = core::mem::replace(&mut self.in_args, true);
        self.write("template<");
        self.list(params);
        self.write("> typename ");
        self.in_args = outer;
    }

    pub(super) fn template_param_right(&mut self, name: Id, requires: Option<Id>) {
        self.print(name);
        if let Some(requires) = requires {
            self.between(" requires ", requires, "");
        }
    }
}
