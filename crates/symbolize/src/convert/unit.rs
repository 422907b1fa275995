//! One unit into batches.

mod emit;

use super::files::Files;
use super::names::Names;
use super::symbols::Symbols;
use super::target::Target;
use super::walk::{Walked, fill_gaps, walk};
use crate::dwarf::{AbbrevTable, Plan, Rows, View};
use backtrail_table::{Builder, DropReason};
use emit::Emit;
pub(super) use emit::Ranks;
use std::sync::Arc;

/// What one worker keeps from unit to unit.
pub(super) struct Worker<'b> {
    pub(super) builder: &'b Builder,
    pub(super) symbols: &'b Symbols<'b>,
    pub(super) names: Names<'b>,
    pub(super) files: Files<'b>,
    pub(super) walked: Walked,
    pub(super) rows: Rows,
    /// Address ranges of the unit's functions, sorted and joined.
    pub(super) covered: Vec<(u64, u64)>,
    /// The abbreviations of the unit before: `dsymutil` and LTO have one table for all.
    pub(super) plan: Option<(Arc<AbbrevTable>, Arc<Plan>)>,
}

impl<'b> Worker<'b> {
    pub(super) fn new(builder: &'b Builder, symbols: &'b Symbols<'b>) -> Self {
        Self {
            builder,
            symbols,
            names: Names::new(builder),
            files: Files::new(builder),
            walked: Walked::default(),
            rows: Rows::default(),
            covered: Vec::new(),
            plan: None,
        }
    }

    /// Adds a unit to the builder. `view` has the lines, `dies` the functions: two units where debug info is split.
    pub(super) fn unit<'a, 'd>(
        &mut self,
        view: View<'a, 'd>,
        dies: View<'a, 'd>,
        target: &Target<'_>,
        ranks: Ranks,
    ) {
        let plan = self.plan_of(dies);
        if let Some(error) = self.rows.read(view) {
            view.file.problems.lines(error);
            self.builder.dropped(DropReason::BrokenLines, 1);
        }
        walk(dies, &plan, false, &mut self.walked);
        self.cover();
        if self.walked.has_gaps() && self.may_hide_functions(target) {
            fill_gaps(dies, &plan, &mut self.walked);
            self.cover();
        }
        if let Some(error) = self.walked.error {
            dies.file.problems.unit(dies.unit.header.offset, error);
            self.builder.dropped(DropReason::BrokenUnit, 1);
        }
        for (reason, count) in
            [(DropReason::DeadFunction, self.walked.dead), (DropReason::DeadRows, self.rows.dead)]
        {
            if count > 0 {
                self.builder.dropped(reason, count);
            }
        }
        Emit::new(self, view, dies, target, &plan).run(ranks);
    }

    fn plan_of(&mut self, dies: View<'_, '_>) -> Arc<Plan> {
        let abbrevs = &dies.body.abbrevs;
        match &self.plan {
            Some((known, plan)) if Arc::ptr_eq(known, abbrevs) => Arc::clone(plan),
            _ => {
                let plan = Arc::new(Plan::new(abbrevs));
                self.plan = Some((Arc::clone(abbrevs), Arc::clone(&plan)));
                plan
            }
        }
    }

    /// Sorts and joins the ranges of all functions.
    fn cover(&mut self) {
        let walked = &self.walked;
        self.covered.clear();
        for function in &walked.functions {
            self.covered.extend(walked.ranges(function.ranges));
        }
        self.covered.sort_unstable();
        self.covered.dedup_by(|next, last| {
            let touches = next.0 <= last.1;
            if touches {
                last.1 = last.1.max(next.1);
            }
            touches
        });
    }

    /// Calls `each` with every range that has lines and no function.
    pub(super) fn uncovered(rows: &Rows, covered: &[(u64, u64)], each: &mut impl FnMut(u64, u64)) {
        let mut covered = covered.iter().peekable();
        for span in rows.spans() {
            let mut at = span.start;
            while covered.next_if(|(_, end)| *end <= at).is_some() {}
            while at < span.end {
                match covered.peek() {
                    Some(&&(start, end)) if start < span.end => {
                        if at < start {
                            each(at, start);
                        }
                        at = end;
                        if end <= span.end {
                            covered.next();
                        }
                    }
                    _ => {
                        each(at, span.end);
                        break;
                    }
                }
            }
        }
    }

    /// Whether a function may be in what the walk passed over: there are rows that start outside of all functions. The
    /// rows of padding between functions start within the function before it.
    fn may_hide_functions(&self, target: &Target<'_>) -> bool {
        if self.rows.spans().is_empty() {
            return true;
        }
        let mut may = false;
        Self::uncovered(&self.rows, &self.covered, &mut |start, end| {
            target.clip(start, end, &mut |start, end, _| {
                may = may || self.rows.starts_between(start, end);
            });
        });
        may
    }
}
