//! Reports of a program with known bugs: no two bugs are ever in one group, and names that come late split none.
//!
//! `fixtures/group/reports.txt` has them: stacks of real crashes, as the chore `group-truth` wrote them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test program")]

use backtrail_core::{Arch, Avma, FrameAddress, Function, ImageId};
use backtrail_diagnose::{Beginning, Groups, group, group_and_begins};
use backtrail_model::{Exception, Frame, Image, Report, Thread};
use backtrail_testkit::workspace_root;
use std::collections::{BTreeMap, BTreeSet};

/// Where images lie, by their position.
const fn load_address(position: usize) -> u64 {
    0x5000_0000_0000 + position as u64 * 0x1000_0000
}

/// A report and the bug that it is of.
struct Known {
    bug: String,
    report: Report,
}

fn reports() -> Vec<Known> {
    let text = std::fs::read_to_string(workspace_root().join("fixtures/group/reports.txt")).unwrap();
    let mut all: Vec<Known> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields.as_slice() {
            ["report", bug, _, signal] => all.push(Known { bug: (*bug).to_owned(), report: begin(signal) }),
            ["frame", count, image, id, offset, names @ ..] => {
                let report = &mut all.last_mut().unwrap().report;
                for _ in 0..count.parse().unwrap() {
                    add_frame(report, (image, id, offset), names);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    all
}

fn begin(signal: &str) -> Report {
    let mut report = Report::default();
    report.process.name = Some("app".to_owned());
    report.process.path = Some("/opt/app/bin/app".to_owned());
    report.process.arch = Some(Arch::X86_64);
    report.process.crashed_thread = Some(0);
    report.process.threads = vec![Thread { crashed: true, ..Thread::default() }];
    report.exception = Some(Exception { signal: Some(signal.to_owned()), ..Exception::default() });
    report
}

fn add_frame(report: &mut Report, (image, id, offset): (&str, &str, &str), names: &[&str]) {
    let frames = report.process.threads[0].frames.len();
    let mut frame = Frame::new(u32::try_from(frames).unwrap());
    if image != "-" {
        let position = position_of(report, image, id);
        let offset = u64::from_str_radix(offset.trim_start_matches("0x"), 16).unwrap();
        // The offset is that of the call.
        let address = load_address(position) + offset;
        frame.address = Some(match frames {
            0 => FrameAddress::Exact(Avma::new(address)),
            _ => FrameAddress::Return(Avma::new(address + 1)),
        });
        frame.image = Some(position);
    }
    let last = names.len().saturating_sub(1);
    let functions = names.iter().enumerate();
    frame.functions = functions
        .map(|(at, name)| Function { name: (*name).to_owned(), inlined: at < last, ..Function::default() })
        .collect();
    report.process.threads[0].frames.push(frame);
}

fn position_of(report: &mut Report, name: &str, id: &str) -> usize {
    let images = &mut report.process.images;
    if let Some(known) = images.iter().position(|image| image.name == name) {
        return known;
    }
    let directory = if name == "app" { "/opt/app/bin" } else { "/usr/lib/x86_64-linux-gnu" };
    let load = load_address(images.len());
    images.push(Image {
        name: name.to_owned(),
        path: Some(format!("{directory}/{name}")),
        id: ImageId::parse_build_id(id).ok(),
        load_address: Avma::new(load),
        end_address: Some(Avma::new(load + 0x1000_0000)),
        ..Image::default()
    });
    images.len() - 1
}

fn without_names(report: &Report) -> Report {
    let mut report = report.clone();
    for frame in &mut report.process.threads[0].frames {
        // What runs handlers of signals is told by its code.
        frame.functions.retain(|function| function.name == "__restore_rt");
    }
    report
}

fn cut(report: &Report, count: usize) -> Report {
    let mut report = report.clone();
    report.process.threads[0].frames.truncate(count);
    report
}

/// The reports in all forms, those without names first or last.
fn forms(known: &[Known], names_are_late: bool) -> Vec<(&str, Report)> {
    let mut named = Vec::new();
    let mut nameless = Vec::new();
    for Known { bug, report } in known {
        for report in [report.clone(), cut(report, 8), cut(report, 5)] {
            nameless.push((bug.as_str(), without_names(&report)));
            named.push((bug.as_str(), report));
        }
    }
    if names_are_late { [nameless, named].concat() } else { [named, nameless].concat() }
}

#[test]
fn two_bugs_are_never_in_one_group() {
    let known = reports();
    let bugs: BTreeSet<&str> = known.iter().map(|known| known.bug.as_str()).collect();
    assert!(bugs.len() >= 40, "{}", bugs.len());
    for names_are_late in [false, true] {
        let mut groups = Groups::new();
        let mut found = Vec::new();
        for (bug, report) in forms(&known, names_are_late) {
            let Some(group) = group(&report) else { continue };
            groups.add(&group);
            found.push((bug, group));
        }
        // Groups are joined as names are found, so that they are looked up in the end.
        let mut bugs_of: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        for (bug, group) in &found {
            let key = group.symbol_key.as_deref().unwrap_or(&group.key);
            bugs_of.entry(groups.find(key).unwrap().index()).or_default().insert(bug);
        }
        for bugs in bugs_of.values() {
            assert_eq!(bugs.len(), 1, "in one group: {bugs:?}");
        }
    }
}

#[test]
fn late_names_split_no_group() {
    let known = reports();
    for names_are_late in [false, true] {
        let mut groups = Groups::new();
        for (_, report) in forms(&known, names_are_late) {
            group(&report).map(|group| groups.add(&group));
        }
        for Known { bug, report } in &known {
            let (Some(named), Some(nameless)) = (group(report), group(&without_names(report))) else {
                panic!("{bug} has no group");
            };
            assert_eq!(named.key, nameless.key, "{bug}");
            let names = named.symbol_key.unwrap_or_else(|| panic!("{bug} has no symbol key"));
            assert_eq!(groups.find(&names), groups.find(&nameless.key), "{bug}");
        }
    }
}

#[test]
fn builds_of_one_bug_are_one_group() {
    let known = reports();
    let mut of_bug: BTreeMap<&str, BTreeSet<Option<String>>> = BTreeMap::new();
    for Known { bug, report } in &known {
        let key = group(report).and_then(|group| group.symbol_key);
        of_bug.entry(bug).or_default().insert(key);
    }
    let split: Vec<&&str> = of_bug.iter().filter(|(_, keys)| keys.len() > 1).map(|(bug, _)| bug).collect();
    // Optimised builds lose inlined accessors and tail calls: docs/group.md.
    assert!(split.len() * 10 <= of_bug.len(), "in several groups: {split:?}");
}

/// A cut stack may show what several bugs do. Where it shows what one bug does alone, it is that one's.
#[test]
fn cut_stacks_show_no_other_bug_alone() {
    let known = reports();
    let mut bugs_of: BTreeMap<Beginning, BTreeSet<&str>> = BTreeMap::new();
    for Known { bug, report } in &known {
        for whole in [report.clone(), without_names(report)] {
            for beginning in group_and_begins(&whole).1.of_group {
                bugs_of.entry(beginning).or_default().insert(bug);
            }
        }
    }
    let (mut told, mut open) = (0, 0);
    for Known { bug, report } in &known {
        // A recursion is as deep as the stack; nobody cuts it to so many frames.
        for count in 1..=12 {
            for cut in [cut(report, count), without_names(&cut(report, count))] {
                for shown in group_and_begins(&cut).1.shown {
                    let Some(bugs) = bugs_of.get(&shown.beginning) else { continue };
                    assert!(
                        bugs.contains(bug.as_str()) || bugs.len() > 1,
                        "{bug} at {count}: {bugs:?}, {}",
                        shown.what
                    );
                    if bugs.len() == 1 { told += 1 } else { open += 1 }
                }
            }
        }
    }
    assert!(told > 100 && open > 20, "{told} and {open}");
}
