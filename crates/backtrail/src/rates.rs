//! Crash rates: crashes of each owner, version and system against the sessions that there were.
//!
//! [`Sessions`] are counts from elsewhere. [`RateTable`] counts reports beside them; [`new_groups`] says which groups a
//! version brought.

mod sessions;

use crate::analysis::Analysis;
use crate::groups::{GroupRow, GroupTable};
use backtrail_diagnose::is_crash;
use serde::Serialize;
use std::collections::BTreeMap;

pub use sessions::{Sessions, SessionsError, SessionsLine};

/// Names the shape of the document.
pub const RATES_SCHEMA: &str = "backtrail-rates/1";

/// The normal distribution's quantile of intervals that have the true rate in 95 of 100 cases.
const Z: f64 = 1.959_963_984_540_054;

/// A group is called new in a version where, at an equal rate, no earlier report in so many sessions is rarer than this.
const SIGNIFICANCE: f64 = 0.05;

/// Owners that are counted apart; further ones are counted together.
const MAX_OWNERS: usize = 4096;

/// What further ones are counted as.
const OTHERS: &str = "(others)";

/// What everybody's reports together are called.
const ALL: &str = "all";

/// Crashes of each owner, for each line of sessions.
#[derive(Clone, Debug)]
pub struct RateTable {
    sessions: Sessions,
    /// By owner and its version, and by the line of sessions; `None` for reports that no line is of.
    counts: BTreeMap<Counted, u64>,
    crashes: u64,
    /// Reports of hangs, warnings and whatever else is no crash.
    others: u64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Counted {
    line: Option<usize>,
    owner: String,
    version: Option<String>,
}

/// How often an owner's code crashed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RateRow {
    /// Whose code: `app Demo`, `sdk Foo`, `system UIKit`, `unknown`; `all` for all reports of a line of sessions.
    pub owner: String,
    /// The library's version.
    pub owner_version: Option<String>,
    /// The app's version, as the line of sessions has it; `*` is any.
    pub version: Option<String>,
    /// The system, as the line of sessions has it; `*` is any.
    pub os: Option<String>,
    /// How many crashes.
    pub crashes: u64,
    /// Of how many sessions; `None` for reports that no line is of.
    pub sessions: Option<u64>,
    /// Crashes of a session; `None` where there are fewer sessions than crashes, which cannot be.
    pub rate: Option<Rate>,
}

/// A rate and the 95 % interval of Wilson's score.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rate {
    /// Crashes of a session.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Rate {
    /// Of so many sessions so many crashed. `None` where more crashed than there were, or there was none.
    pub fn new(crashes: u64, sessions: u64) -> Option<Self> {
        if sessions == 0 || crashes > sessions {
            return None;
        }
        let (n, value) = (sessions as f64, crashes as f64 / sessions as f64);
        let square = Z * Z / n;
        let middle = value + square / 2.0;
        let spread = Z * (value * (1.0 - value) / n + square / (4.0 * n)).sqrt();
        let bound = |end: f64| (end / (1.0 + square)).clamp(0.0, 1.0);
        // Rounding must not move the ends off the edges.
        let low = if crashes == 0 { 0.0 } else { bound(middle - spread) };
        let high = if crashes == sessions { 1.0 } else { bound(middle + spread) };
        Some(Self { value, low, high })
    }
}

/// A group that a version brought.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NewGroup<'t> {
    /// The version, as sessions have it.
    pub version: String,
    /// The group.
    pub id: &'t str,
    /// What it is called.
    pub title: &'t str,
    /// Whose code it is.
    pub owner: &'t str,
    /// Its reports of the version.
    pub crashes: u64,
    /// Sessions of the version, and of earlier ones.
    pub sessions: u64,
    /// Those of earlier versions.
    pub sessions_before: u64,
    /// How often none of them is of an earlier version, if the rate there is the same.
    pub p_value: f64,
}

impl NewGroup<'_> {
    /// Whether chance is no explanation.
    pub fn is_sure(&self) -> bool {
        self.p_value < SIGNIFICANCE
    }
}

/// The document.
#[derive(Clone, Debug, Serialize)]
pub struct RatesJson<'t> {
    schema: &'static str,
    crashes: u64,
    others: u64,
    /// How often an interval has the true rate.
    level: f64,
    rates: Vec<RateRow>,
    new: Vec<NewGroup<'t>>,
}

impl RateTable {
    /// A table without reports.
    pub fn new(sessions: Sessions) -> Self {
        Self { sessions, counts: BTreeMap::new(), crashes: 0, others: 0 }
    }

    /// The sessions.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// How many crashes were added.
    pub fn crashes(&self) -> u64 {
        self.crashes
    }

    /// How many reports were added that tell of no crash: hangs, warnings, exceptions that were caught. They have no rate.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// Counts a report.
    pub fn add(&mut self, analysis: &Analysis) {
        if !is_crash(&analysis.report) {
            self.others += 1;
            return;
        }
        let attribution = &analysis.attribution;
        let report = &analysis.report;
        let version = report.process.version.as_deref().unwrap_or_default();
        let os = report.os.as_deref().unwrap_or_default();
        self.count(attribution.owner(), attribution.version.clone(), version, os);
    }

    fn count(&mut self, owner: String, owner_version: Option<String>, version: &str, os: &str) {
        self.crashes += 1;
        let line = self.sessions.line_of(version, os);
        let mut key = Counted { line, owner, version: owner_version };
        if self.counts.len() >= MAX_OWNERS && !self.counts.contains_key(&key) {
            key = Counted { line, owner: OTHERS.to_owned(), version: None };
        }
        *self.counts.entry(key).or_default() += 1;
    }

    /// The rates by lines of sessions, all reports of a line first, then owners with the most reports first. Reports that no
    /// line is of come last.
    pub fn rows(&self) -> Vec<RateRow> {
        let lines = self.sessions.lines().iter().enumerate().map(|(index, line)| (Some(index), Some(line)));
        let mut rows = Vec::new();
        for (index, line) in lines.chain([(None, None)]) {
            let row = |owner: &str, owner_version: Option<String>, crashes: u64| RateRow {
                owner: owner.to_owned(),
                owner_version,
                version: line.map(|line| line.version.clone()),
                os: line.map(|line| line.os.clone()),
                crashes,
                sessions: line.map(|line| line.sessions),
                rate: line.and_then(|line| Rate::new(crashes, line.sessions)),
            };
            let here = self.counts.iter().filter(|(counted, _)| counted.line == index);
            let mut owners: Vec<RateRow> = here
                .map(|(counted, crashes)| row(&counted.owner, counted.version.clone(), *crashes))
                .collect();
            let all = owners.iter().map(|row| row.crashes).sum();
            if line.is_some() || all > 0 {
                rows.push(row(ALL, None, all));
            }
            owners.sort_by_key(|row| std::cmp::Reverse(row.crashes));
            rows.extend(owners);
        }
        rows
    }

    /// The document, with what is new in which version.
    pub fn document<'t>(&self, groups: &'t GroupTable) -> RatesJson<'t> {
        RatesJson {
            schema: RATES_SCHEMA,
            crashes: self.crashes,
            others: self.others,
            level: 0.95,
            rates: self.rows(),
            new: new_groups(groups, &self.sessions),
        }
    }
}

/// Groups all of whose reports are of one version or later ones, where sessions tell of earlier versions. Versions are in the
/// order of their numbers.
pub fn new_groups<'t>(groups: &'t GroupTable, sessions: &Sessions) -> Vec<NewGroup<'t>> {
    let versions = sessions.versions();
    let mut new: Vec<NewGroup<'t>> =
        groups.rows().into_iter().filter_map(|row| new_group(row, sessions, &versions)).collect();
    new.sort_by(|a, b| {
        sessions::natural(&b.version, &a.version).then(b.crashes.cmp(&a.crashes)).then_with(|| a.id.cmp(b.id))
    });
    new
}

fn new_group<'t>(row: &'t GroupRow, sessions: &Sessions, versions: &[(String, u64)]) -> Option<NewGroup<'t>> {
    // A report whose version is unknown may be of any.
    let mut seen: Vec<(usize, u64)> = Vec::new();
    for (version, count) in &row.versions {
        let name = sessions.version_of(version)?;
        let at = versions.iter().position(|(known, _)| *known == name)?;
        seen.push((at, *count));
    }
    let first = seen.iter().map(|(at, _)| *at).min()?;
    let (version, own) = versions.get(first)?;
    let before: u64 = versions.iter().take(first).map(|(_, sessions)| *sessions).sum();
    if before == 0 || *own == 0 {
        return None;
    }
    let crashes = seen.iter().filter(|(at, _)| *at == first).map(|(_, count)| *count).sum();
    let share = *own as f64 / (*own as f64 + before as f64);
    Some(NewGroup {
        version: version.clone(),
        id: &row.id,
        title: &row.title,
        owner: &row.owner,
        crashes,
        sessions: *own,
        sessions_before: before,
        p_value: share.powf(crashes as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions() -> Sessions {
        Sessions::parse(b"version,os,sessions\n1.9,iOS 17,900\n1.10,iOS 17,100\n1.10,*,50\n").unwrap()
    }

    /// The values are those of Wilson's formula, worked out with 40 digits.
    #[test]
    fn intervals_are_wilson_s() {
        let rate = Rate::new(10, 1000).unwrap();
        assert!((rate.low - 0.005_440_755).abs() < 1e-8, "{rate:?}");
        assert!((rate.high - 0.018_309_469).abs() < 1e-8, "{rate:?}");
        let none = Rate::new(0, 100).unwrap();
        assert_eq!((none.value, none.low), (0.0, 0.0));
        assert!((none.high - 0.036_993_498).abs() < 1e-8, "{none:?}");
        assert_eq!(Rate::new(5, 5).unwrap().high, 1.0);
        assert_eq!((Rate::new(2, 1), Rate::new(0, 0)), (None, None));
    }

    #[test]
    fn reports_count_for_the_line_that_says_most() {
        let mut table = RateTable::new(sessions());
        table.count("sdk A".to_owned(), Some("2".to_owned()), "1.10 (7)", "iOS 17.5 (21F90)");
        table.count("sdk A".to_owned(), Some("2".to_owned()), "1.10", "iOS 16.1");
        table.count("app B".to_owned(), None, "1.1", "iOS 17.5");
        let rows = table.rows();
        let told: Vec<_> = rows
            .iter()
            .map(|row| {
                (row.owner.as_str(), row.version.as_deref(), row.os.as_deref(), row.crashes, row.sessions)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("all", Some("1.9"), Some("iOS 17"), 0, Some(900)),
                ("all", Some("1.10"), Some("iOS 17"), 1, Some(100)),
                ("sdk A", Some("1.10"), Some("iOS 17"), 1, Some(100)),
                ("all", Some("1.10"), Some("*"), 1, Some(50)),
                ("sdk A", Some("1.10"), Some("*"), 1, Some(50)),
                ("all", None, None, 1, None),
                ("app B", None, None, 1, None),
            ]
        );
    }

    fn row(versions: &[(&str, u64)]) -> GroupRow {
        let versions = versions.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        GroupRow { id: "1:a".to_owned(), versions, ..GroupRow::default() }
    }

    #[test]
    fn a_group_is_new_where_earlier_sessions_had_none() {
        let sessions = sessions();
        let versions = sessions.versions();
        assert_eq!(versions, [("1.9".to_owned(), 900), ("1.10".to_owned(), 150)]);
        let new = row(&[("1.10 (3)", 2)]);
        let found = new_group(&new, &sessions, &versions).unwrap();
        assert_eq!((found.version.as_str(), found.crashes, found.sessions_before), ("1.10", 2, 900));
        assert!(found.is_sure(), "{found:?}");
        assert!(!new_group(&row(&[("1.10", 1)]), &sessions, &versions).unwrap().p_value.is_nan());
        assert_eq!(new_group(&row(&[("1.10", 2), ("1.9", 1)]), &sessions, &versions), None);
        assert_eq!(new_group(&row(&[("1.10", 2), ("unknown", 1)]), &sessions, &versions), None);
    }
}
