//! What became of groups since an earlier table.

use super::{GroupRow, GroupTable};
use serde::Serialize;
use std::collections::HashMap;

/// A change counts where chance makes one as large less often than this, all groups that are compared taken together.
const SIGNIFICANCE: f64 = 0.05;

/// What became of the groups.
#[derive(Clone, Debug, Serialize)]
pub struct GroupDiff<'t> {
    /// How many reports the earlier table had.
    pub reports_before: u64,
    /// How many this one has.
    pub reports_now: u64,
    /// Groups that are new, gone, or whose share of all reports changed by more than chance; the most reports first.
    pub changes: Vec<Change<'t>>,
    /// How many groups are as they were.
    pub same: usize,
}

/// What became of one group.
#[derive(Clone, Debug, Serialize)]
pub struct Change<'t> {
    /// What.
    pub kind: ChangeKind,
    /// The group; the earlier one where it is gone.
    pub group: &'t GroupRow,
    /// Its reports in the earlier table.
    pub before: u64,
    /// Its reports now.
    pub now: u64,
    /// How often chance alone makes such a change or a larger one, for groups that are in both tables.
    pub p_value: Option<f64>,
}

/// The sort of change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Nobody had it before.
    New,
    /// It has a larger share of all reports.
    Grown,
    /// It has a smaller share.
    Shrunk,
    /// Nobody has it now.
    Gone,
}

impl ChangeKind {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Grown => "grown",
            Self::Shrunk => "shrunk",
            Self::Gone => "gone",
        }
    }
}

impl GroupTable {
    /// What became of the groups since `earlier`. Groups are the same that share a key of either sort.
    ///
    /// Whether one has grown is decided by an exact test: of its reports in both tables, as many are now as chance gives them by
    /// the tables' sizes (binomial, two-sided by doubling), at a level of 0.05 that is divided by the number of groups compared.
    pub fn since<'t>(&'t self, earlier: &'t GroupTable) -> GroupDiff<'t> {
        let mut before: HashMap<usize, (u64, &GroupRow)> = HashMap::new();
        let mut changes = Vec::new();
        for row in earlier.rows() {
            let keys = row.symbol_keys.iter().chain(&row.keys);
            match keys.filter_map(|key| self.groups.find(key)).next() {
                Some(found) => before.entry(found.index()).or_insert((0, row)).0 += row.count,
                None => changes.push(Change {
                    kind: ChangeKind::Gone,
                    group: row,
                    before: row.count,
                    now: 0,
                    p_value: None,
                }),
            }
        }
        let compared = before.len().max(1);
        let mut same = 0;
        for (index, row) in self.rows.iter().enumerate() {
            let Some(row) = row else { continue };
            let Some((count, _)) = before.get(&index).copied() else {
                changes.push(Change {
                    kind: ChangeKind::New,
                    group: row,
                    before: 0,
                    now: row.count,
                    p_value: None,
                });
                continue;
            };
            let share = self.reports as f64 / (self.reports + earlier.reports).max(1) as f64;
            let all = count + row.count;
            let p_value = two_sided(row.count, all, share);
            if p_value * compared as f64 >= SIGNIFICANCE {
                same += 1;
                continue;
            }
            let kind =
                if row.count as f64 > all as f64 * share { ChangeKind::Grown } else { ChangeKind::Shrunk };
            changes.push(Change { kind, group: row, before: count, now: row.count, p_value: Some(p_value) });
        }
        changes.sort_by(|a, b| {
            let size = |change: &Change<'_>| change.before.max(change.now);
            a.kind.cmp(&b.kind).then(size(b).cmp(&size(a))).then_with(|| a.group.id.cmp(&b.group.id))
        });
        GroupDiff { reports_before: earlier.reports, reports_now: self.reports, changes, same }
    }
}

/// How likely it is that of `all` things, each with the chance `share`, as many as `hits` or a number further from the expected
/// one hit.
fn two_sided(hits: u64, all: u64, share: f64) -> f64 {
    if !(share > 0.0 && share < 1.0) || all == 0 {
        return 1.0;
    }
    let upper = tail(hits, all, share);
    let lower = tail(all - hits.min(all), all, 1.0 - share);
    (2.0 * upper.min(lower)).min(1.0)
}

/// The chance of `hits` or more.
fn tail(hits: u64, all: u64, share: f64) -> f64 {
    if hits == 0 {
        return 1.0;
    }
    /// Terms fall faster than a geometric series once past the expected number.
    const MAX_TERMS: u64 = 1 << 20;
    let expected = all as f64 * share;
    if (hits as f64) < expected {
        // The other tail is the one that matters; this one is above a half, or near it.
        return 1.0;
    }
    let mut term =
        log_choose(all, hits) + hits as f64 * share.ln() + (all - hits) as f64 * (1.0 - share).ln();
    let mut sum = 0.0;
    for at in hits..=all.min(hits.saturating_add(MAX_TERMS)) {
        let value = term.exp();
        sum += value;
        if value < sum * 1e-12 {
            break;
        }
        term += ((all - at) as f64).ln() - ((at + 1) as f64).ln() + share.ln() - (1.0 - share).ln();
    }
    sum.min(1.0)
}

fn log_choose(all: u64, hits: u64) -> f64 {
    log_factorial(all) - log_factorial(hits) - log_factorial(all - hits)
}

/// By Stirling's series, which has six digits from 10 on.
fn log_factorial(number: u64) -> f64 {
    if number < 10 {
        return (2..=number).map(|factor| (factor as f64).ln()).sum();
    }
    let n = number as f64;
    n * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI * n).ln() + 1.0 / (12.0 * n)
        - 1.0 / (360.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::likely::Evidence;

    #[test]
    fn the_test_is_the_binomial_one() {
        // R: binom.test(9, 10, 0.5): 0.02148; (60, 100, 0.5): 0.05689; (5, 10, 0.5): 1.
        for (hits, all, expected) in
            [(9, 10, 0.021_48), (60, 100, 0.056_89), (5, 10, 1.0), (40, 100, 0.056_89)]
        {
            let found = two_sided(hits, all, 0.5);
            assert!((found - expected).abs() < 1e-4, "{hits} of {all}: {found}");
        }
        assert!(two_sided(600_000, 1_000_000, 0.5) < 1e-9);
        assert_eq!(two_sided(3, 3, 1.0), 1.0);
    }

    fn table(counts: &[(&str, u64)]) -> GroupTable {
        let mut table = GroupTable::new();
        for (key, count) in counts {
            let row = GroupRow {
                id: (*key).to_owned(),
                count: *count,
                keys: [(*key).to_owned()].into(),
                ..GroupRow::default()
            };
            table.restore(row, Evidence::default());
            table.reports += count;
        }
        table
    }

    #[test]
    fn groups_are_new_gone_or_of_another_share() {
        let earlier = table(&[("1:a", 100), ("1:b", 50), ("1:c", 7)]);
        let now = table(&[("1:a", 102), ("1:b", 160), ("1:d", 3)]);
        let diff = now.since(&earlier);
        let found: Vec<_> = diff.changes.iter().map(|it| (it.kind.as_str(), it.group.id.as_str())).collect();
        assert_eq!(found, [("new", "1:d"), ("grown", "1:b"), ("shrunk", "1:a"), ("gone", "1:c")]);
        assert_eq!(now.since(&now).changes.len(), 0);
    }
}
