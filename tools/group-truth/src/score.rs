//! How well reports are grouped: B-cubed precision and recall, and groups that hold two bugs.

use crate::reports::Report;
use crate::reports::WITH_WORDS;
use backtrail::Grouped;
use backtrail::groups::GroupTable;
use backtrail::json::Origin;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Prints the scores of backtrail and of simpler ways. Tells whether backtrail merged no two bugs, neither for certain nor likely.
pub(crate) fn print_all(reports: &[Report]) -> bool {
    println!("{:<52} {:>9} {:>7} {:>7} {:>7}", "", "precision", "recall", "groups", "merged");
    let joined = by_keys(reports);
    let likely = with_likely(reports, &joined);
    let has_words = |report: &Report| report.form.ends_with(WITH_WORDS);
    let mut merged = 0;
    for (what, labels) in [("for certain", &joined), ("with what is likely", &likely)] {
        let part = |title: &str, is_wanted: &dyn Fn(&Report, &str) -> bool| {
            let both = reports.iter().zip(labels).filter(|(it, label)| is_wanted(it, label));
            let (chosen, labels): (Vec<&Report>, Vec<String>) =
                both.map(|(it, label)| (it, label.clone())).unzip();
            print_of(&format!("{title}, {what}"), &chosen, &labels)
        };
        merged += part("all in one", &|it, _| !has_words(it));
        part("  those that have a group", &|it, label| !has_words(it) && !label.starts_with(APART));
        for form in ["whole", "without names", "cut at 8", "cut at 5"] {
            part(&format!("  {form}"), &|it, _| it.form == form);
        }
        merged +=
            part("all in one, cut ones with words", &|it, _| !it.form.starts_with("cut") || has_words(it));
        for form in ["cut at 8", "cut at 5"] {
            let form = format!("{form}{WITH_WORDS}");
            part(&format!("  {form}"), &|it, _| it.form == form);
        }
        merged += part("all forms", &|_, _| true);
    }
    // These know nothing of names that come later; they get reports with names only.
    let named: Vec<&Report> =
        reports.iter().filter(|it| it.form != "without names" && !has_words(it)).collect();
    print_simpler(&named, ", of reports with names");
    print_ceiling(reports);
    print_faults(reports, &joined);
    println!("with what is likely:");
    print_merged(reports, &likely);
    println!("split by late symbols: {}", split_by_names(reports, &joined));
    for (what, labels) in [("for certain", &joined), ("with what is likely", &likely)] {
        let is_apart = |with: bool| {
            let both = reports.iter().zip(labels).filter(|(it, _)| has_words(it) == with);
            both.filter(|(_, label)| label.starts_with(APART)).count()
        };
        println!("without a group, {what}: {}, of those with words {}", is_apart(false), is_apart(true));
    }
    print_unseen(reports);
    merged == 0
}

/// In front of the labels of reports that have no group.
const APART: &str = "apart ";

/// All reports as the program counts them.
fn table_of<'r>(reports: impl Iterator<Item = &'r Report>) -> GroupTable {
    let mut table = GroupTable::new();
    for it in reports {
        let grouped = Grouped {
            report: backtrail::Report::default(),
            group: it.group.clone(),
            begins: it.begins.clone(),
        };
        table.add(grouped, Origin { file: None, part: None });
    }
    table
}

/// The labels, those of the group that a report is likely of where that is another one.
fn with_likely(reports: &[Report], joined: &[String]) -> Vec<String> {
    let table = table_of(reports.iter());
    let listed = table.listed();
    let of_group: HashMap<&str, &str> = listed
        .iter()
        .filter_map(|group| Some((group.row.id.as_str(), group.likely.of.as_deref()?)))
        .collect();
    let label = |(report, label): (&Report, &String)| match &report.group {
        Some(group) => {
            let id = table.find(group).map(|row| row.id.as_str())?;
            let of = of_group.get(id).copied()?;
            Some(of.to_owned()).filter(|of| of != label)
        }
        None => table.likely(&report.begins).of,
    };
    reports.iter().zip(joined).map(|both| label(both).unwrap_or_else(|| both.1.clone())).collect()
}

/// How much any rule could reach that goes by the stack alone: reports whose frames are, to the byte, those of several bugs of the build are
/// told by none.
fn print_ceiling(reports: &[Report]) {
    for form in ["cut at 8", "cut at 5"] {
        let some: Vec<&Report> = reports.iter().filter(|it| it.form == form).collect();
        let shown = |report: &Report| {
            let place = |frame: &serde_json::Value| {
                let text = |key: &str| frame.get(key).map(ToString::to_string).unwrap_or_default();
                text("image") + &text("relative_pc")
            };
            let build = report.build.rsplit_once(' ').map_or("", |(build, _)| build);
            let places: Vec<String> = report.frames.iter().map(place).collect();
            format!("{build} {} {}", report.event, places.join(" "))
        };
        let mut bugs: HashMap<String, BTreeSet<&str>> = HashMap::new();
        for report in &some {
            bugs.entry(shown(report)).or_default().insert(&report.bug);
        }
        let is_told = |report: &Report| bugs.get(&shown(report)).is_some_and(|bugs| bugs.len() == 1);
        let told = some.iter().filter(|report| is_told(report)).count();
        let label = |(at, report): (usize, &&Report)| {
            if is_told(report) { report.bug.clone() } else { format!("{APART}{at}") }
        };
        let labels: Vec<String> = some.iter().enumerate().map(label).collect();
        print_of(&format!("  {form}, what any rule could reach"), &some, &labels);
        println!("    {} of {} show the same frames as another bug", some.len() - told, some.len());
    }
}

/// What becomes of cut stacks of bugs that no whole stack is of: each bug in turn is taken away but for its cut stacks.
fn print_unseen(reports: &[Report]) {
    let bugs: BTreeSet<&str> = reports.iter().map(|it| it.bug.as_str()).collect();
    let (mut all, mut wrong) = (0, 0);
    let mut of: BTreeMap<&str, usize> = BTreeMap::new();
    for bug in bugs {
        let is_unseen = |it: &&Report| it.bug == bug && it.form.starts_with("cut");
        let table = table_of(reports.iter().filter(|it| it.bug != bug));
        for it in reports.iter().filter(is_unseen).filter(|it| !it.begins.shown.is_empty()) {
            all += 1;
            if table.likely(&it.begins).of.is_some() {
                wrong += 1;
                *of.entry(bug).or_default() += 1;
            }
        }
    }
    println!(
        "of {all} cut reports of bugs that were never seen whole, {wrong} are likely of another bug: {of:?}"
    );
}

/// Simpler ways to group, on the same reports.
fn print_simpler(reports: &[&Report], of: &str) {
    type Way = (&'static str, fn(&Report) -> String);
    let ways: [Way; 5] = [
        ("signal or type", |report| report.event.clone()),
        ("signal or type, and message", |report| format!("{}|{}", report.event, report.message)),
        ("top frame", |report| report.names.first().cloned().unwrap_or_default()),
        ("top five frames", |report| report.names.iter().take(5).cloned().collect::<Vec<_>>().join("|")),
        ("Socorro's rules, as described", socorro),
    ];
    for (title, way) in ways {
        let labels: Vec<String> = reports.iter().map(|report| way(report)).collect();
        print_of(&format!("{title}{of}"), reports, &labels);
    }
}

/// The same table of reports whose labels others gave them, and what is in one group although its labels differ.
pub(crate) fn print_labelled(reports: &[Report]) {
    println!("{:<44} {:>9} {:>7} {:>7} {:>7}", "", "precision", "recall", "groups", "merged");
    let joined = by_keys(reports);
    print("backtrail", reports, &joined);
    let told: Vec<(&Report, String)> = reports
        .iter()
        .zip(&joined)
        .filter(|(it, _)| !is_apart(it))
        .map(|(it, at)| (it, at.clone()))
        .collect();
    let (chosen, labels): (Vec<&Report>, Vec<String>) = told.into_iter().unzip();
    print_of(&format!("  of those that have a group: {}", chosen.len()), &chosen, &labels);
    print_simpler(&reports.iter().collect::<Vec<_>>(), "");
    print_merged(reports, &joined);
}

fn is_apart(report: &Report) -> bool {
    report.key.is_none() && report.symbol_key.is_none()
}

/// The groups, joined by either key as the program joins them.
fn by_keys(reports: &[Report]) -> Vec<String> {
    // A key that reports of several names have joins none of them.
    let mut of_key: HashMap<&str, &str> = HashMap::new();
    for report in reports {
        if let (Some(key), Some(name)) = (&report.key, &report.symbol_key) {
            let known = of_key.entry(key).or_insert(name);
            if known != name {
                *known = key;
            }
        }
    }
    let label = |(at, report): (usize, &Report)| {
        let by_key = report.key.as_deref().map(|key| of_key.get(key).copied().unwrap_or(key));
        report.symbol_key.as_deref().or(by_key).map_or_else(|| format!("{APART}{at}"), str::to_owned)
    };
    reports.iter().enumerate().map(label).collect()
}

/// Crashes of which the report with names and the one without are in different groups.
fn split_by_names(reports: &[Report], labels: &[String]) -> usize {
    let mut of_crash: HashMap<(&str, &str), Vec<&str>> = HashMap::new();
    for (report, label) in reports.iter().zip(labels) {
        if matches!(report.form.as_str(), "whole" | "without names") {
            of_crash.entry((&report.bug, &report.build)).or_default().push(label);
        }
    }
    of_crash.values().filter(|labels| labels.iter().any(|label| Some(label) != labels.first())).count()
}

fn print(title: &str, reports: &[Report], labels: &[String]) -> usize {
    print_of(title, &reports.iter().collect::<Vec<_>>(), labels)
}

fn print_of(title: &str, reports: &[&Report], labels: &[String]) -> usize {
    let mut both: HashMap<(&str, &str), f64> = HashMap::new();
    let mut of_label: BTreeMap<&str, f64> = BTreeMap::new();
    let mut of_bug: HashMap<&str, f64> = HashMap::new();
    for (report, label) in reports.iter().zip(labels) {
        *both.entry((&report.bug, label)).or_default() += 1.0;
        *of_label.entry(label).or_default() += 1.0;
        *of_bug.entry(&report.bug).or_default() += 1.0;
    }
    let all = reports.len().max(1) as f64;
    let share = |of: &dyn Fn(&(&str, &str)) -> f64| {
        both.iter().map(|(pair, count)| count * count / of(pair)).sum::<f64>() / all
    };
    let precision = share(&|(_, label)| of_label.get(label).copied().unwrap_or(1.0));
    let recall = share(&|(bug, _)| of_bug.get(bug).copied().unwrap_or(1.0));
    let mut bugs: HashMap<&str, usize> = HashMap::new();
    both.keys().for_each(|(_, label)| *bugs.entry(label).or_default() += 1);
    let merged = bugs.values().filter(|count| **count > 1).count();
    println!("{title:<52} {precision:>9.4} {recall:>7.4} {:>7} {merged:>7}", of_label.len());
    merged
}

/// Lists the bugs whose reports are in several groups, and the groups of several bugs.
fn print_faults(reports: &[Report], labels: &[String]) {
    let mut of_bug: BTreeMap<&str, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for (report, label) in reports.iter().zip(labels) {
        let what = format!("{}, {}", report.build, report.form);
        of_bug.entry(&report.bug).or_default().entry(label).or_default().push(what);
    }
    for (bug, groups) in of_bug.iter().filter(|(_, groups)| groups.len() > 1) {
        let sizes: Vec<String> = groups
            .values()
            .map(|reports| format!("{} ({})", reports.len(), reports.first().cloned().unwrap_or_default()))
            .collect();
        println!(
            "{bug} is in {} groups: {}",
            groups.len(),
            sizes.iter().take(6).cloned().collect::<Vec<_>>().join(", ")
        );
    }
    print_merged(reports, labels);
}

/// Lists the groups that several bugs are in.
fn print_merged(reports: &[Report], labels: &[String]) {
    let mut of_label: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (report, label) in reports.iter().zip(labels) {
        *of_label.entry(label).or_default().entry(&report.bug).or_default() += 1;
    }
    for (label, bugs) in of_label.iter().filter(|(_, bugs)| bugs.len() > 1) {
        println!("MERGED {label}: {bugs:?}");
    }
}

/// Functions that Mozilla's crash statistics pass over, in the kinds that its documentation describes: those that end the process
/// or wait are irrelevant, those of allocation and of runtimes are only prefixes of a signature.
fn socorro(report: &Report) -> String {
    const IRRELEVANT: [&str; 10] = [
        "raise",
        "abort",
        "gsignal",
        "__pthread_kill",
        "pthread_kill",
        "kill",
        "_exit",
        "__GI_",
        "__restore_rt",
        "__libc_message",
    ];
    const PREFIX: [&str; 16] = [
        "malloc",
        "free",
        "calloc",
        "realloc",
        "operator new",
        "operator delete",
        "mem",
        "str",
        "std::",
        "__cxa",
        "__gnu_cxx",
        "_Unwind",
        "_int_free",
        "core::",
        "alloc::",
        "__assert",
    ];
    let mut parts = Vec::new();
    for name in &report.names {
        let name = name.split(['(', '<']).next().unwrap_or(name);
        if IRRELEVANT.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        parts.push(name);
        if !PREFIX.iter().any(|start| name.starts_with(start)) {
            break;
        }
    }
    parts.join(" | ")
}
