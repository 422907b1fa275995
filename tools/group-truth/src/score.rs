//! How well reports are grouped: B-cubed precision and recall, and groups that hold two bugs.

use crate::reports::Report;
use std::collections::{BTreeMap, HashMap};

/// Prints the scores of backtrail and of simpler ways. Tells whether backtrail merged no two bugs.
pub(crate) fn print_all(reports: &[Report]) -> bool {
    println!("{:<44} {:>9} {:>7} {:>7} {:>7}", "", "precision", "recall", "groups", "merged");
    let joined = by_keys(reports);
    let score = print("backtrail, all reports in one", reports, &joined);
    let told: Vec<usize> =
        (0..reports.len()).filter(|at| reports.get(*at).is_some_and(|it| !is_apart(it))).collect();
    let labels: Vec<String> = told.iter().filter_map(|at| joined.get(*at).cloned()).collect();
    let chosen: Vec<&Report> = told.iter().filter_map(|at| reports.get(*at)).collect();
    print_of("  of those that have a group", &chosen, &labels);
    for form in ["whole", "without names", "cut at 8", "cut at 5"] {
        let some: Vec<usize> =
            (0..reports.len()).filter(|at| reports.get(*at).is_some_and(|it| it.form == form)).collect();
        let labels: Vec<String> = some.iter().filter_map(|at| joined.get(*at).cloned()).collect();
        let chosen: Vec<&Report> = some.iter().filter_map(|at| reports.get(*at)).collect();
        print_of(&format!("  of those {form}"), &chosen, &labels);
    }
    // These know nothing of names that come later; they get reports with names only.
    let is_named = |report: &&Report| report.form != "without names";
    let named: Vec<&Report> = reports.iter().filter(is_named).collect();
    let of_named: Vec<String> =
        reports.iter().zip(&joined).filter(|(it, _)| is_named(it)).map(|(_, it)| it.clone()).collect();
    print_of("backtrail, of reports with names", &named, &of_named);
    print_simpler(&named, ", of reports with names");
    print_faults(reports, &joined);
    println!("split by late symbols: {}", split_by_names(reports, &joined));
    let apart = reports.iter().filter(|report| is_apart(report)).count();
    println!("without a group, since the stack shows none of the program's code: {apart}");
    score == 0
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
        report.symbol_key.as_deref().or(by_key).map_or_else(|| format!("apart {at}"), str::to_owned)
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
    println!("{title:<44} {precision:>9.4} {recall:>7.4} {:>7} {merged:>7}", of_label.len());
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
