//! Which group a report is likely of that has none of its own, or one of its own only since its stack was cut.
//!
//! A cut stack shows the innermost functions, places, or the report's words alone. Where all that it shows is of one group and of
//! no other, it is likely of that group; nobody moves it there. Everything is decided when it is asked for, by counts alone, so
//! that the order of the reports does not matter.

use super::GroupRow;
use backtrail_diagnose::{Beginning, Begins, ShownSort};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

/// Whole reports that have to show the same and be of one group. By the rule of succession the next one is of another bug in less than 5 of
/// 100 cases then.
pub(super) const LEAST: u64 = 18;

/// Different words of one group that are kept: with more of them, any words may be the group's. Here those with the smallest digests are
/// kept, whichever came first.
pub const MAX_WORDS: usize = 128;

/// Different things that the cut stacks of one group show.
const MAX_SHOWN: usize = 64;

/// Different things that the cut stacks of all reports without a group show.
pub(super) const MAX_APART: usize = 4096;

/// What one cut report shows of its bug.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lacking {
    #[serde(with = "hexadecimal", skip_serializing_if = "Option::is_none", default)]
    functions: Option<Beginning>,
    #[serde(with = "hexadecimal", skip_serializing_if = "Option::is_none", default)]
    places: Option<Beginning>,
    #[serde(with = "hexadecimal", skip_serializing_if = "Option::is_none", default)]
    words: Option<Beginning>,
    /// The sort of event.
    kind: String,
}

impl Lacking {
    /// `None` where the report is whole, or shows nothing.
    pub(super) fn of(begins: &Begins) -> Option<Self> {
        let mut lacking = Self { kind: begins.kind.clone(), ..Self::default() };
        for shown in &begins.shown {
            match shown.sort {
                ShownSort::Functions => lacking.functions = Some(shown.beginning),
                ShownSort::Places => lacking.places = Some(shown.beginning),
                ShownSort::Words => lacking.words = Some(shown.beginning),
            }
        }
        (!begins.shown.is_empty()).then_some(lacking)
    }

    fn shown(&self) -> impl Iterator<Item = (ShownSort, Beginning)> {
        let all = [
            (ShownSort::Functions, self.functions),
            (ShownSort::Places, self.places),
            (ShownSort::Words, self.words),
        ];
        all.into_iter().filter_map(|(sort, it)| Some((sort, it?)))
    }
}

/// What is known of how the reports of one group begin.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Evidence {
    /// Of whole reports: what cut ones of the group show, with the number of reports.
    #[serde(with = "counted")]
    begins: BTreeMap<Beginning, u64>,
    /// The same of their words.
    #[serde(with = "counted")]
    words: BTreeMap<Beginning, u64>,
    /// Whether there were more words.
    has_more_words: bool,
    /// What cut ones show.
    shown: Vec<(Lacking, u64)>,
    /// How many of its reports were cut and show something.
    cut: u64,
}

impl Evidence {
    pub(super) fn see(&mut self, begins: &Begins) {
        for beginning in &begins.of_group {
            *self.begins.entry(*beginning).or_default() += 1;
        }
        if let Some(words) = begins.words {
            *self.words.entry(words).or_default() += 1;
            self.keep_words();
        }
        if let Some(lacking) = Lacking::of(begins) {
            self.cut += 1;
            count_shown(&mut self.shown, lacking, 1, MAX_SHOWN);
        }
    }

    pub(super) fn take_in(&mut self, other: Self) {
        other.begins.into_iter().for_each(|(it, times)| *self.begins.entry(it).or_default() += times);
        other.words.into_iter().for_each(|(it, times)| *self.words.entry(it).or_default() += times);
        self.has_more_words |= other.has_more_words;
        self.keep_words();
        self.cut += other.cut;
        other.shown.into_iter().for_each(|(it, times)| count_shown(&mut self.shown, it, times, MAX_SHOWN));
    }

    /// What has a larger digest than those that are kept never came to be among them, and never will: the counts of those that are
    /// kept are exact in any order.
    fn keep_words(&mut self) {
        while self.words.len() > MAX_WORDS {
            self.words.pop_last();
            self.has_more_words = true;
        }
    }

    /// What was read from a file, as this run would have kept it. `None` where counts are larger than the number of reports, which no run
    /// writes.
    pub(super) fn checked(mut self, count: u64) -> Option<Self> {
        let is_possible = |times: &u64| (1..=count).contains(times);
        if !self.begins.values().chain(self.words.values()).all(is_possible) || self.cut > count {
            return None;
        }
        self.keep_words();
        self.shown = checked_shown(self.shown, self.cut, MAX_SHOWN)?;
        Some(self)
    }

    /// What all of the group's reports show, which is nothing where one of them is whole.
    fn all_shown(&self, count: u64) -> Option<&[(Lacking, u64)]> {
        let is_all = self.cut == count && self.shown.iter().map(|(_, times)| times).sum::<u64>() == count;
        (is_all && count > 0).then_some(self.shown.as_slice())
    }
}

/// Counts in a sorted list, of which the first few are kept.
pub(super) fn count_shown(shown: &mut Vec<(Lacking, u64)>, lacking: Lacking, times: u64, most: usize) {
    match shown.binary_search_by(|(known, _)| known.cmp(&lacking)) {
        Ok(at) => {
            if let Some((_, count)) = shown.get_mut(at) {
                *count += times;
            }
        }
        Err(at) if at < most => {
            shown.insert(at, (lacking, times));
            shown.truncate(most);
        }
        Err(_) => {}
    }
}

/// A list that was read from a file, in the order that counting needs. `None` where it has more reports than there were.
pub(super) fn checked_shown(
    read: Vec<(Lacking, u64)>,
    reports: u64,
    most: usize,
) -> Option<Vec<(Lacking, u64)>> {
    let mut shown = Vec::new();
    let mut sum = 0_u64;
    for (lacking, times) in read {
        sum = sum.checked_add(times)?;
        count_shown(&mut shown, lacking, times, most);
    }
    (sum <= reports).then_some(shown)
}

/// What is said of a group beside its own reports, and of a report that was cut.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Likely {
    /// Further reports that are likely of the group: those without a group, and those of groups that are likely a part of it.
    #[serde(rename = "likely_more", skip_serializing_if = "is_none")]
    pub more: u64,
    /// The group that these reports are likely of: all their stacks show is of that group and of no other.
    #[serde(rename = "likely_of", skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// How many whole reports say so.
    #[serde(rename = "likely_by", skip_serializing_if = "is_none")]
    pub by: u64,
    /// Groups whose reports all show the same, so that nobody knows: the first two of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub either_of: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
pub(super) fn is_none(count: &u64) -> bool {
    *count == 0
}

/// How all groups begin, for looking up.
pub(super) struct Index<'t> {
    rows: &'t [Option<GroupRow>],
    begins: HashMap<Beginning, Vec<(usize, u64)>>,
    /// Groups that have more words than are kept.
    wordy: Vec<usize>,
}

/// Which groups a cut report fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fit<G> {
    /// None, or too few reports say so.
    None,
    /// That one alone, by so many whole reports.
    One(G, u64),
    /// Several, in their order.
    Several(Vec<G>),
}

/// Decides which groups a report fits, by what its stack shows where that was cut. `find` tells which groups have whole reports
/// that show the same, with the number of these.
///
/// # Errors
/// That of `find`.
pub fn fit<G: Copy + Ord, E>(
    shown: impl Iterator<Item = (ShownSort, Beginning)>,
    mut find: impl FnMut(ShownSort, Beginning) -> Result<Vec<(G, u64)>, E>,
) -> Result<Fit<G>, E> {
    let mut left: Option<Vec<(G, u64)>> = None;
    for (sort, beginning) in shown {
        let fits = find(sort, beginning)?;
        if fits.is_empty() {
            // Another function than any group's is another bug, whatever the words are.
            if sort == ShownSort::Functions {
                return Ok(Fit::None);
            }
            continue;
        }
        left = Some(left.map_or_else(|| fits.clone(), |left| both(&left, &fits)));
    }
    let left = left.unwrap_or_default();
    Ok(match left.as_slice() {
        [] => Fit::None,
        [(group, by)] if *by >= LEAST => Fit::One(*group, *by),
        [_] => Fit::None,
        several => {
            let mut groups: Vec<G> = several.iter().map(|(group, _)| *group).collect();
            groups.sort();
            Fit::Several(groups)
        }
    })
}

impl<'t> Index<'t> {
    pub(super) fn new(rows: &'t [Option<GroupRow>], evidence: &[Evidence]) -> Self {
        let mut begins: HashMap<Beginning, Vec<(usize, u64)>> = HashMap::new();
        let mut wordy = Vec::new();
        for (row, of_row) in evidence.iter().enumerate() {
            for (beginning, times) in of_row.begins.iter().chain(&of_row.words) {
                begins.entry(*beginning).or_default().push((row, *times));
            }
            if of_row.has_more_words {
                wordy.push(row);
            }
        }
        Self { rows, begins, wordy }
    }

    /// The groups that all of it fits.
    fn fit(&self, lacking: &Lacking) -> Fit<usize> {
        let find = |sort, beginning| {
            let mut fits = self.begins.get(&beginning).cloned().unwrap_or_default();
            if sort == ShownSort::Words {
                let is_alike =
                    |row: &usize| self.row(*row).is_some_and(|row| row.kind.contains(&lacking.kind));
                let more = self.wordy.iter().copied().filter(is_alike);
                let more: Vec<_> = more.filter(|row| !fits.iter().any(|(known, _)| known == row)).collect();
                fits.extend(more.into_iter().map(|row| (row, 0)));
            }
            Ok::<_, Infallible>(fits)
        };
        let Ok(fit) = fit(lacking.shown(), find);
        fit
    }

    /// What is to be said of something that shows this.
    pub(super) fn likely(&self, lacking: &Lacking) -> Likely {
        match self.fit(lacking) {
            Fit::None => Likely::default(),
            Fit::One(row, by) => Likely { of: Some(self.id(row).to_owned()), by, ..Likely::default() },
            Fit::Several(rows) => {
                let mut either_of: Vec<String> = rows.iter().map(|row| self.id(*row).to_owned()).collect();
                either_of.sort();
                either_of.truncate(2);
                Likely { either_of, ..Likely::default() }
            }
        }
    }

    fn row(&self, row: usize) -> Option<&'t GroupRow> {
        self.rows.get(row)?.as_ref()
    }

    fn id(&self, row: usize) -> &'t str {
        self.row(row).map(|row| row.id.as_str()).unwrap_or_default()
    }

    /// What is to be said of each group, and how many of the reports without a group are likely of one.
    pub(super) fn all(&self, evidence: &[Evidence], apart: &[(Lacking, u64)]) -> (Vec<Likely>, u64) {
        let mut all = vec![Likely::default(); self.rows.len()];
        let mut more: Vec<(usize, u64)> = Vec::new();
        for (row, of_row) in evidence.iter().enumerate() {
            let Some(count) = self.row(row).map(|row| row.count) else { continue };
            let Some(shown) = of_row.all_shown(count) else { continue };
            let Some(likely) = all.get_mut(row) else { continue };
            // One place without and with names, or with other words: all of it has to be of the same group.
            let mut told = shown.iter().map(|(lacking, _)| self.likely(lacking));
            let Some(first) = told.next() else { continue };
            let is_one = told.all(|it| (&it.of, &it.either_of) == (&first.of, &first.either_of));
            if is_one {
                *likely = first;
            }
            if let Some(of) = likely.of.as_deref().and_then(|of| self.position(of)) {
                more.push((of, count));
            }
        }
        let mut apart_told = 0;
        for (lacking, count) in apart {
            if let Fit::One(row, _) = self.fit(lacking) {
                more.push((row, *count));
                apart_told += count;
            }
        }
        for (row, count) in more {
            if let Some(likely) = all.get_mut(row) {
                likely.more += count;
            }
        }
        (all, apart_told)
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.as_ref().is_some_and(|row| row.id == id))
    }
}

/// What is in both lists, with the larger count.
fn both<G: Copy + Eq>(one: &[(G, u64)], other: &[(G, u64)]) -> Vec<(G, u64)> {
    let of_other = |row: G| other.iter().find(|(it, _)| *it == row).map(|(_, by)| *by);
    one.iter().filter_map(|(row, by)| Some((*row, of_other(*row)?.max(*by)))).collect()
}

/// Digests as texts.
mod hexadecimal {
    use backtrail_diagnose::Beginning;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(it: &Option<Beginning>, to: S) -> Result<S::Ok, S::Error> {
        match it {
            Some(it) => to.collect_str(it),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Beginning>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// Digests with counts.
mod counted {
    use backtrail_diagnose::Beginning;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::collections::BTreeMap;

    pub(super) fn serialize<S: Serializer>(it: &BTreeMap<Beginning, u64>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(it.iter().map(|(it, times)| (it.to_string(), times)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<Beginning, u64>, D::Error> {
        let texts = BTreeMap::<String, u64>::deserialize(from)?;
        let read = |(text, times): (String, u64)| Ok((text.parse().map_err(D::Error::custom)?, times));
        texts.into_iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Done, GroupTable, ListedGroup};
    use super::*;
    use crate::analysis::Grouped;
    use crate::json::Origin;
    use backtrail_diagnose::{Group, Shown};
    use backtrail_model::Report;

    fn beginning(what: &str) -> Beginning {
        let number =
            what.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(251).wrapping_add(u64::from(byte)));
        format!("{number:x}").parse().unwrap()
    }

    fn grouped(key: Option<&str>, names: Option<&str>, begins: Begins) -> Grouped {
        let group = key.map(|key| Group {
            key: key.to_owned(),
            symbol_key: names.map(str::to_owned),
            kind: begins.kind.clone(),
            ..Group::default()
        });
        Grouped { report: Report::default(), group, begins }
    }

    /// A whole report of a bug that begins with these functions and says these words.
    fn whole(bug: &str, functions: &[&str], words: &str) -> Grouped {
        let begins = Begins {
            kind: "abort".to_owned(),
            of_group: functions.iter().map(|it| beginning(it)).collect(),
            words: Some(beginning(words)),
            shown: Vec::new(),
        };
        grouped(Some(&format!("1:k{bug}")), Some(&format!("1:{bug}")), begins)
    }

    /// One that was cut; without a key, where its frames are the system's.
    fn cut(key: Option<&str>, shown: &[(ShownSort, &str)]) -> Grouped {
        let shown = shown.iter().map(|(sort, it)| Shown {
            beginning: beginning(it),
            sort: *sort,
            what: String::new(),
        });
        let begins = Begins { kind: "abort".to_owned(), shown: shown.collect(), ..Begins::default() };
        grouped(key, None, begins)
    }

    fn reports() -> Vec<Grouped> {
        let mut all = Vec::new();
        for _ in 0..20 {
            all.push(whole("cart", &["check", "cart"], "no cart"));
            all.push(whole("login", &["check", "login"], "no user"));
            all.push(whole("video", &["pick", "video"], "no frame"));
        }
        // Too few to say anything.
        all.extend((0..3).map(|_| whole("rare", &["seek", "rare"], "no track")));
        let functions = |it| (ShownSort::Functions, it);
        let words = |it| (ShownSort::Words, it);
        all.push(cut(Some("1:c1"), &[functions("pick")]));
        all.push(cut(Some("1:c1"), &[functions("pick")]));
        all.push(cut(Some("1:c2"), &[functions("check")]));
        all.push(cut(Some("1:c3"), &[functions("check"), words("no user")]));
        all.push(cut(Some("1:c4"), &[functions("seek")]));
        all.push(cut(None, &[words("no cart")]));
        all.push(cut(None, &[words("no idea")]));
        // Another function, whatever the words are.
        all.push(cut(Some("1:c5"), &[functions("send"), words("no cart")]));
        // One of the reports of that place shows that it is another bug's.
        all.push(cut(Some("1:c6"), &[functions("pick")]));
        all.push(cut(Some("1:c6"), &[functions("check"), words("no user")]));
        all
    }

    fn table(reports: impl IntoIterator<Item = Grouped>) -> GroupTable {
        let mut table = GroupTable::new();
        reports.into_iter().for_each(|it| table.add(it, Origin { file: None, part: None }));
        table
    }

    fn told(table: &GroupTable) -> Vec<(String, u64, Likely)> {
        let of = |group: ListedGroup<'_>| (group.row.id.clone(), group.row.count, group.likely);
        table.listed().into_iter().map(of).collect()
    }

    #[test]
    fn what_was_cut_is_likely_of_the_one_group_that_begins_so() {
        let table = table(reports());
        let all = told(&table);
        let of = |id: &str| all.iter().find(|it| it.0 == id).map(|it| &it.2).unwrap();
        assert_eq!((of("1:c1").of.as_deref(), of("1:c1").by), (Some("1:video"), 20));
        assert_eq!((of("1:video").more, of("1:login").more, of("1:cart").more), (2, 1, 1));
        assert_eq!(of("1:c2").either_of, ["1:cart", "1:login"]);
        assert_eq!(of("1:c3").of.as_deref(), Some("1:login"));
        for none in ["1:c4", "1:c5", "1:c6", "1:rare"] {
            assert_eq!(of(none), &Likely::default(), "{none}");
        }
        assert_eq!((table.apart().count, table.apart_likely()), (2, 1));
        // Nobody was moved.
        assert_eq!(all.iter().find(|it| it.0 == "1:video").unwrap().1, 20);
    }

    #[test]
    fn the_order_of_the_reports_does_not_matter() {
        let wanted = told(&table(reports()));
        let mut backwards = reports();
        backwards.reverse();
        assert_eq!(told(&table(backwards)), wanted);
        for step in [7, 13, 29] {
            let all = reports();
            let order = (0..all.len()).map(|at| all[at * step % all.len()].clone());
            assert!(!all.len().is_multiple_of(step), "each report once");
            assert_eq!(told(&table(order)), wanted, "{step}");
        }
    }

    #[test]
    fn a_run_that_goes_on_says_the_same() {
        let all = reports();
        let wanted = told(&table(all.clone()));
        for at in [0, 1, 25, 61, 66, all.len()] {
            let (first, rest) = all.split_at(at);
            let table_of_first = table(first.to_vec());
            let json = serde_json::to_vec(&table_of_first.state(Done::default())).unwrap();
            let (mut table, _) = GroupTable::of_document(&json).unwrap();
            rest.iter().for_each(|it| table.add(it.clone(), Origin { file: None, part: None }));
            assert_eq!(told(&table), wanted, "{at}");
            assert_eq!(table.apart_likely(), 1);
        }
        // What an earlier version kept says nothing of how its reports begin: another group may begin alike.
        let json = serde_json::to_vec(&table(all[..60].to_vec()).document()).unwrap();
        let (mut table, _) = GroupTable::of_document(&json).unwrap();
        all[60..].iter().for_each(|it| table.add(it.clone(), Origin { file: None, part: None }));
        assert!(told(&table).iter().all(|it| it.2 == Likely::default()));
    }

    #[test]
    fn words_that_are_many_are_bounded_and_nobody_is_told_by_them() {
        let mut all: Vec<Grouped> = (0..20).map(|_| whole("cart", &["cart"], "no cart")).collect();
        all.extend((0..400).map(|at| whole("noisy", &["noisy"], &format!("user {at}x"))));
        let table = table(all);
        assert!(table.evidence.iter().all(|it| it.words.len() <= MAX_WORDS));
        // One of the words of the other group that were not kept may be these.
        let likely = table.likely(&cut(None, &[(ShownSort::Words, "no cart")]).begins);
        assert_eq!(likely.of, None, "{likely:?}");
    }

    #[test]
    fn names_that_come_late_move_what_was_seen_along() {
        let mut nameless = whole("cart", &["check"], "no cart");
        nameless.group.as_mut().unwrap().symbol_key = None;
        let all: Vec<Grouped> =
            (0..20).flat_map(|_| [nameless.clone(), whole("cart", &["check"], "no cart")]).collect();
        let table = table(all);
        let likely = table.likely(&cut(None, &[(ShownSort::Functions, "check")]).begins);
        assert_eq!((likely.of.as_deref(), likely.by), (Some("1:cart"), 40));
    }
}
