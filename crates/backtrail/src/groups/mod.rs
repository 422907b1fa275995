//! Very many reports as the few bugs that they are of.
//!
//! [`GroupTable`] takes reports one at a time and keeps of each group counters and one example, never the reports. It is
//! written as JSON, read again to go on, and compared with an earlier one ([`GroupTable::since`]).

mod diff;
mod likely;
mod time;

pub use diff::{Change, ChangeKind, GroupDiff};
pub use likely::{Fit, Likely, MAX_WORDS, fit};

use crate::analysis::Grouped;
use crate::json::Origin;
use backtrail_diagnose::{Begins, Group, GroupRef, Groups};
use backtrail_model::Report;
use likely::{Evidence, Index, Lacking, MAX_APART, checked_shown, count_shown};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Names the shape of the document.
pub const GROUPS_SCHEMA: &str = "backtrail-groups/1";

/// Different versions or systems that one group counts apart; further ones are counted together.
const MAX_COUNTED: usize = 128;

/// What further ones are counted as.
const OTHERS: &str = "(others)";

/// Reports of a document that is read. With no more, counts never overflow, and comparing two documents takes seconds.
const MAX_REPORTS: u64 = 1 << 32;

/// Reports that nothing tells apart that are named.
const MAX_NAMED: usize = 16;

/// Groups, with what is counted of each.
#[derive(Clone, Debug, Default)]
pub struct GroupTable {
    groups: Groups,
    /// By the index of the group; `None` where it became a part of another.
    rows: Vec<Option<GroupRow>>,
    /// How the reports of each group begin, by the same index.
    evidence: Vec<Evidence>,
    reports: u64,
    apart: Apart,
    /// What those without a group show.
    apart_shown: Vec<(Lacking, u64)>,
    /// Reports of an earlier run were counted that kept nothing of how they begin: whether another group begins alike is not known.
    is_blind: bool,
}

/// Reports that have no group, since nothing tells them from others of their sort: no stack and no words.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Apart {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<Example>,
    /// How many of them are likely of one of the groups, each of which says how many.
    #[serde(skip_serializing_if = "likely::is_none", default)]
    pub likely: u64,
}

/// Which report it was.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Example {
    /// Its file; `archive!member` for one in an archive.
    pub file: String,
    /// Which of the file's reports it is, counted from 1, where the file has several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part: Option<usize>,
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.part.map_or(Ok(()), |part| write!(f, ", report {part}"))
    }
}

/// What is known of one group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GroupRow {
    /// The first report's key by names, else its other one: what to call the group by.
    pub id: String,
    /// What happened and where.
    pub title: String,
    /// The sort of event.
    pub kind: String,
    /// Whose code it is: `app Demo`, `sdk Foo`, `system UIKit`, `unknown`.
    pub owner: String,
    /// How many reports there are.
    pub count: u64,
    /// When the first and last of them happened, by the reports' own clocks: `2026-05-01T12:00:00Z`.
    pub first: Option<String>,
    /// The last.
    pub last: Option<String>,
    /// How many there are of each version of the program.
    pub versions: BTreeMap<String, u64>,
    /// How many there are of each operating system.
    pub systems: BTreeMap<String, u64>,
    /// The first of the reports.
    pub example: Example,
    /// Why that one is in this group.
    pub why: Vec<String>,
    /// All keys of its reports that need no names.
    pub keys: BTreeSet<String>,
    /// All of its reports' keys by names.
    pub symbol_keys: BTreeSet<String>,
}

impl GroupTable {
    /// A table that no report is in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a report. It is explained only where its group is new.
    pub fn add(&mut self, grouped: Grouped, origin: Origin<'_>) {
        self.reports += 1;
        let example = Example { file: origin.file.unwrap_or_default().to_owned(), part: origin.part };
        let Some(group) = grouped.group.clone() else {
            self.apart.count += 1;
            if let Some(lacking) = Lacking::of(&grouped.begins) {
                count_shown(&mut self.apart_shown, lacking, 1, MAX_APART);
            }
            if self.apart.examples.len() < MAX_NAMED {
                self.apart.examples.push(example);
            }
            return;
        };
        let place = self.place(&group);
        if let Some(evidence) = self.evidence.get_mut(place.index()) {
            evidence.see(&grouped.begins);
        }
        let Some(slot) = self.rows.get_mut(place.index()) else { return };
        let row = slot.get_or_insert_default();
        row.see(&group, &grouped.report);
        // Names say more than places do.
        let is_better = row.symbol_keys.is_empty() && group.symbol_key.is_some();
        if row.count == 1 || is_better {
            let analysis = grouped.analysis();
            row.title = group.title(&analysis.explanation);
            row.owner = analysis.attribution.owner();
            row.example = example;
            row.id = group.symbol_key.clone().unwrap_or_else(|| group.key.clone());
            row.kind.clone_from(&group.kind);
            row.why.clone_from(&group.why);
        }
        row.keys.insert(group.key);
        row.symbol_keys.extend(group.symbol_key);
    }

    fn place(&mut self, group: &Group) -> GroupRef {
        let added = self.groups.add(group);
        self.grow();
        if let Some(joined) = added.joined {
            self.merge(joined.from, joined.into);
        }
        added.group
    }

    fn grow(&mut self) {
        self.rows.resize_with(self.groups.len().max(self.rows.len()), || None);
        self.evidence.resize_with(self.rows.len(), Evidence::default);
    }

    fn merge(&mut self, from: GroupRef, into: GroupRef) {
        if let Some(gone) = self.evidence.get_mut(from.index()).map(std::mem::take)
            && let Some(evidence) = self.evidence.get_mut(into.index())
        {
            evidence.take_in(gone);
        }
        let Some(gone) = self.rows.get_mut(from.index()).and_then(Option::take) else { return };
        if let Some(slot) = self.rows.get_mut(into.index()) {
            match slot {
                Some(row) => row.take_in(gone),
                None => *slot = Some(gone),
            }
        }
    }

    /// How many reports were added.
    pub fn reports(&self) -> u64 {
        self.reports
    }

    /// Those that have no group.
    pub fn apart(&self) -> &Apart {
        &self.apart
    }

    /// The groups, those of the most reports first.
    pub fn rows(&self) -> Vec<&GroupRow> {
        let mut rows: Vec<&GroupRow> = self.rows.iter().flatten().collect();
        rows.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.id.cmp(&b.id)));
        rows
    }

    /// The group of a report, if it is in the table.
    pub fn find(&self, group: &Group) -> Option<&GroupRow> {
        let by_names = group.symbol_key.as_deref().and_then(|key| self.groups.find(key));
        let found = by_names.or_else(|| self.groups.find(&group.key))?;
        self.rows.get(found.index())?.as_ref()
    }

    /// The groups as [`rows`](Self::rows) has them, each with what is likely.
    pub fn listed(&self) -> Vec<ListedGroup<'_>> {
        let (likely, _) = self.all_likely();
        let mut listed: Vec<ListedGroup<'_>> = Vec::new();
        for (row, likely) in self.rows.iter().zip(likely) {
            listed.extend(row.as_ref().map(|row| ListedGroup { row, likely }));
        }
        listed.sort_by(|a, b| b.row.count.cmp(&a.row.count).then_with(|| a.row.id.cmp(&b.row.id)));
        listed
    }

    /// How many of the reports without a group are likely of one.
    pub fn apart_likely(&self) -> u64 {
        self.all_likely().1
    }

    fn all_likely(&self) -> (Vec<Likely>, u64) {
        if self.is_blind {
            return (vec![Likely::default(); self.rows.len()], 0);
        }
        Index::new(&self.rows, &self.evidence).all(&self.evidence, &self.apart_shown)
    }

    /// Which group a report is likely of, by what its stack shows, where that was cut.
    pub fn likely(&self, begins: &Begins) -> Likely {
        match Lacking::of(begins).filter(|_| !self.is_blind) {
            Some(lacking) => Index::new(&self.rows, &self.evidence).likely(&lacking),
            None => Likely::default(),
        }
    }

    /// The document: the groups and what is likely.
    pub fn document(&self) -> GroupsJson<ListedGroup<'_>> {
        GroupsJson {
            schema: GROUPS_SCHEMA.to_owned(),
            reports: self.reports,
            groups: self.listed(),
            apart: Apart { likely: self.apart_likely(), ..self.apart.clone() },
            done: None,
            begins: None,
        }
    }

    /// The document with all that is needed to go on from there.
    pub fn state(&self, done: Done) -> GroupsJson<ListedGroup<'_>> {
        let mut order: Vec<(&GroupRow, &Evidence)> = Vec::new();
        for (row, evidence) in self.rows.iter().zip(&self.evidence) {
            order.extend(row.as_ref().map(|row| (row, evidence)));
        }
        order.sort_by(|(a, _), (b, _)| b.count.cmp(&a.count).then_with(|| a.id.cmp(&b.id)));
        let groups = order.into_iter().map(|(_, evidence)| evidence.clone()).collect();
        let begins = StateOfBegins { groups, apart: self.apart_shown.clone() };
        GroupsJson { done: Some(done), begins: (!self.is_blind).then_some(begins), ..self.document() }
    }

    /// The table that a document was written from.
    ///
    /// # Errors
    /// Where it is no such document, or one whose numbers contradict each other.
    pub fn of_document(json: &[u8]) -> Result<(Self, Option<Done>), GroupsError> {
        let document: GroupsJson<GroupRow> =
            serde_json::from_slice(json).map_err(|error| GroupsError(error.to_string()))?;
        if document.schema != GROUPS_SCHEMA {
            let found = document.schema;
            return Err(GroupsError(format!("expected the schema {GROUPS_SCHEMA}, found {found:?}")));
        }
        document.check()?;
        let mut table = Self { reports: document.reports, apart: document.apart, ..Self::default() };
        table.apart.examples.truncate(MAX_NAMED);
        table.is_blind = document.begins.is_none() && document.reports > 0;
        let begins = document.begins.unwrap_or_default();
        let damaged = || GroupsError("more reports begin in some way than there are".to_owned());
        table.apart_shown = checked_shown(begins.apart, table.apart.count, MAX_APART).ok_or_else(damaged)?;
        let evidence = begins.groups.into_iter().chain(std::iter::repeat_with(Evidence::default));
        for (row, evidence) in document.groups.into_iter().zip(evidence) {
            let evidence = evidence.checked(row.count).ok_or_else(damaged)?;
            table.restore(row, evidence);
        }
        Ok((table, document.done))
    }

    fn restore(&mut self, row: GroupRow, evidence: Evidence) {
        let keys = row.keys.iter().map(String::as_str);
        let group = self.groups.restore(keys, row.symbol_keys.iter().map(String::as_str));
        self.grow();
        if let Some(slot) = self.rows.get_mut(group.index()) {
            *slot = Some(row);
        }
        if let Some(slot) = self.evidence.get_mut(group.index()) {
            *slot = evidence;
        }
    }
}

/// One of a table's groups.
#[derive(Clone, Debug, Serialize)]
pub struct ListedGroup<'t> {
    /// What was counted.
    #[serde(flatten)]
    pub row: &'t GroupRow,
    /// What is likely besides.
    #[serde(flatten)]
    pub likely: Likely,
}

/// How far an earlier run came.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// How many inputs were read.
    pub inputs: usize,
    /// The last of them, by name.
    pub last: String,
    /// All of their names, in short. Files of earlier versions have none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub names: Option<InputNames>,
}

/// The names of inputs, in order, as one number: FNV-1a, which is the same for every run and every build.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InputNames(u64);

impl InputNames {
    /// Of no inputs.
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// The next input.
    pub fn add(&mut self, name: &str) {
        // No name has the last byte, so that names do not run into each other.
        for byte in name.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Default for InputNames {
    fn default() -> Self {
        Self::new()
    }
}

/// The document of groups.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupsJson<R> {
    schema: String,
    reports: u64,
    groups: Vec<R>,
    apart: Apart,
    /// How far the run came, in the file that it goes on from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub done: Option<Done>,
    /// How the groups' reports begin, in that file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    begins: Option<StateOfBegins>,
}

impl GroupsJson<GroupRow> {
    /// Looks for what no run writes. A file may have been damaged, and counts that are wrong would stay so.
    fn check(&self) -> Result<(), GroupsError> {
        let mut sum = self.apart.count;
        for row in &self.groups {
            let counted = [&row.versions, &row.systems].map(|counted| sum_of(counted.values()));
            if row.count == 0 || counted.iter().any(|it| *it != Some(row.count)) {
                let id = &row.id;
                return Err(GroupsError(format!("group {id:?}: its counts contradict each other")));
            }
            sum = sum.saturating_add(row.count);
        }
        match self.reports {
            reports if reports > MAX_REPORTS => {
                Err(GroupsError(format!("expected at most {MAX_REPORTS} reports, found {reports}")))
            }
            reports if reports != sum => {
                Err(GroupsError(format!("expected {reports} reports in its groups, found {sum}")))
            }
            _ => Ok(()),
        }
    }
}

fn sum_of<'c>(mut counts: impl Iterator<Item = &'c u64>) -> Option<u64> {
    counts.try_fold(0_u64, |sum, count| sum.checked_add(*count))
}

/// What is kept of how reports begin; of groups in the order of the document's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StateOfBegins {
    groups: Vec<Evidence>,
    apart: Vec<(Lacking, u64)>,
}

/// What is no document of groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupsError(String);

impl fmt::Display for GroupsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GroupsError {}

impl GroupRow {
    fn see(&mut self, group: &Group, report: &Report) {
        self.count += 1;
        if self.kind.is_empty() {
            self.kind.clone_from(&group.kind);
        }
        if let Some(time) = report.time.as_deref().and_then(time::in_utc) {
            self.first = self.first.take().into_iter().chain([time.clone()]).min();
            self.last = self.last.take().into_iter().chain([time]).max();
        }
        count(&mut self.versions, report.process.version.as_deref().unwrap_or("unknown"), 1);
        count(&mut self.systems, report.os.as_deref().unwrap_or("unknown"), 1);
    }

    /// Adds what was counted of a group that turned out to be this one.
    fn take_in(&mut self, other: Self) {
        self.count += other.count;
        let times = [self.first.take(), other.first];
        self.first = times.into_iter().flatten().min();
        let times = [self.last.take(), other.last];
        self.last = times.into_iter().flatten().max();
        other.versions.iter().for_each(|(name, times)| count(&mut self.versions, name, *times));
        other.systems.iter().for_each(|(name, times)| count(&mut self.systems, name, *times));
        self.keys.extend(other.keys);
        self.symbol_keys.extend(other.symbol_keys);
    }
}

fn count(counted: &mut BTreeMap<String, u64>, name: &str, times: u64) {
    let is_room = counted.len() < MAX_COUNTED || counted.contains_key(name);
    *counted.entry(if is_room { name } else { OTHERS }.to_owned()).or_default() += times;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(key: &str, names: Option<&str>, version: &str) -> Grouped {
        let mut report = Report::default();
        report.process.version = Some(version.to_owned());
        report.time = Some(format!("2026-01-0{} 10:00:00 +0200", version.len()));
        let group = Group {
            key: key.to_owned(),
            symbol_key: names.map(str::to_owned),
            kind: "access".to_owned(),
            place: names.map(str::to_owned),
            why: Vec::new(),
        };
        Grouped { report, group: Some(group), begins: Begins::default() }
    }

    fn table() -> GroupTable {
        let mut table = GroupTable::new();
        let origin = |file| Origin { file: Some(file), part: None };
        table.add(grouped("1:a", None, "1"), origin("a"));
        table.add(grouped("1:b", Some("1:s"), "22"), origin("b"));
        table.add(grouped("1:a", Some("1:s"), "1"), origin("c"));
        table.add(grouped("1:z", None, "1"), origin("d"));
        let begins = Begins::default();
        table.add(Grouped { report: Report::default(), group: None, begins }, origin("e"));
        table
    }

    #[test]
    fn names_that_come_late_join_what_was_counted() {
        let table = table();
        let rows = table.rows();
        assert_eq!(rows.iter().map(|row| row.count).collect::<Vec<_>>(), [3, 1]);
        let first = rows[0];
        assert_eq!(
            (first.first.as_deref(), first.last.as_deref()),
            (Some("2026-01-01T08:00:00Z"), Some("2026-01-02T08:00:00Z"))
        );
        assert_eq!((first.versions["1"], first.versions["22"]), (2, 1));
        assert_eq!((table.reports(), table.apart().count), (5, 1));
    }

    #[test]
    fn a_document_is_read_as_it_was_written() {
        let table = table();
        let json = serde_json::to_vec(&table.document()).unwrap();
        let (read, done) = GroupTable::of_document(&json).unwrap();
        assert_eq!(done, None);
        assert_eq!(serde_json::to_vec(&read.document()).unwrap(), json);
        assert!(GroupTable::of_document(b"{\"schema\":\"x\"}").is_err());
    }

    /// Such a file would go on counting from there, up to an overflow.
    #[test]
    fn a_document_that_contradicts_itself_is_refused() {
        let whole = serde_json::to_value(table().state(Done::default())).unwrap();
        let of = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut json = whole.clone();
            change(&mut json);
            GroupTable::of_document(&serde_json::to_vec(&json).unwrap()).map(|_| ()).map_err(|error| error.0)
        };
        assert_eq!(of(&|_| {}), Ok(()));
        let error = of(&|json| json["reports"] = 6.into()).unwrap_err();
        assert_eq!(error, "expected 6 reports in its groups, found 5");
        assert!(of(&|json| json["reports"] = u64::MAX.into()).unwrap_err().contains("at most"));
        assert!(of(&|json| json["groups"][0]["count"] = u64::MAX.into()).unwrap_err().contains("contradict"));
        assert!(
            of(&|json| json["groups"][0]["versions"]["1"] = 9.into()).unwrap_err().contains("contradict")
        );
        assert!(of(&|json| json["groups"][0]["count"] = 0.into()).is_err());
        let many = |json: &mut serde_json::Value| json["begins"]["groups"][0]["cut"] = 9.into();
        assert!(of(&many).unwrap_err().contains("than there are"));
    }

    #[test]
    fn names_of_inputs_do_not_run_into_each_other() {
        let of = |names: &[&str]| {
            let mut all = InputNames::new();
            names.iter().for_each(|name| all.add(name));
            all
        };
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        for other in [&["ab"][..], &["b", "a"], &["a"], &["a", "b", ""]] {
            assert_ne!(of(&["a", "b"]), of(other), "{other:?}");
        }
    }

    #[test]
    fn what_is_counted_is_bounded() {
        let mut counted = BTreeMap::new();
        (0..1000).for_each(|at| count(&mut counted, &at.to_string(), 1));
        assert!(counted.len() <= MAX_COUNTED + 1);
        assert_eq!(counted.values().sum::<u64>(), 1000);
    }
}
