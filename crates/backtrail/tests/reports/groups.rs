//! Reports of known crashes: those of different bugs are never in one group.

use backtrail::{Grouped, Groups, Limits, NoProgress, Symbols};
use backtrail_testkit::corpus;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The names of CrashProbe's tests by group, of all reports, read with `symbols`.
fn tests_of_groups(
    directory: &Path,
    symbols: &Symbols,
    groups: &mut Groups,
) -> BTreeMap<usize, BTreeSet<String>> {
    let mut found: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for arch in ["arm64", "armv7", "x86_64"] {
        let mut files: Vec<_> =
            std::fs::read_dir(directory.join(arch)).unwrap().map(|it| it.unwrap().path()).collect();
        files.sort();
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            let grouped = Grouped::new(&bytes, symbols, &Limits::default()).unwrap();
            let Some(group) = grouped.group else { continue };
            let test = file.file_stem().unwrap().to_string_lossy().into_owned();
            found.entry(groups.add(&group).group.index()).or_default().insert(test);
        }
    }
    found
}

#[test]
fn crashes_of_crashprobe_are_apart_with_and_without_names() {
    let Some(corpus) = corpus() else { return };
    let directory = corpus.join("crashprobe/reports");
    let mut groups = Groups::new();
    let nameless = tests_of_groups(&directory, &Symbols::none(), &mut groups);
    let symbols = Symbols::scan(&[corpus.join("crashprobe/dSYMs")], &NoProgress);
    let named = tests_of_groups(&directory, &symbols, &mut groups);
    for (group, tests) in nameless.iter().chain(&named) {
        assert_eq!(tests.len(), 1, "group {group}: {tests:?}");
    }
    // Text and JSON of one crash, on three processors: with names most tests are one group.
    let of = |test: &str| named.values().filter(|tests| tests.contains(test)).count();
    for test in
        ["call-abort", "dereference-a-null-pointer", "stack-overflow", "swift", "throw-objective-c-exception"]
    {
        assert_eq!(of(test), 1, "{test}");
    }
}

/// CASR's own sets, whose clusters its tests state: 2 of 5 reports, 9 (11 by crash line) of 12, 12 of 376. Its clusters are of stacks that are near each other;
/// ours are of functions and the sort of event, so that the last set has more.
#[test]
fn sets_of_casr_have_as_many_groups_as_before() {
    let Some(corpus) = corpus() else { return };
    for (set, reports, groups_wanted) in
        [("dedup-in", 5, 2), ("test_clustering_small", 12, 10), ("test_clustering_gdb", 376, 17)]
    {
        let directory = corpus.join("kinds/grouping-casr").join(set);
        let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|it| it.unwrap().path()).collect();
        files.sort();
        let mut groups = Groups::new();
        let mut found = BTreeSet::new();
        for file in &files {
            let bytes = std::fs::read(file).unwrap();
            let grouped = Grouped::new(&bytes, &Symbols::none(), &Limits::default()).unwrap();
            found.insert(groups.add(&grouped.group.unwrap()).group.index());
        }
        assert_eq!((files.len(), found.len()), (reports, groups_wanted), "{set}");
    }
}
