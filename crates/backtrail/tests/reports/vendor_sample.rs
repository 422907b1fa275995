//! The sample of `fixtures/vendor`: an app with two static SDKs, one stamped, one known by its fingerprint. The link map is the
//! truth; the reports say where in the app threads were.

use std::path::{Path, PathBuf};

use backtrail::sdk::{self, LearnOptions, MapOptions, OwnedRange};
use backtrail::{Analysis, Limits, NoProgress, Symbols};
use backtrail_core::{Confidence, Svma};

/// The app's `__TEXT`.
const BASE: u64 = 0x1_0000_0000;

fn vendor() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vendor")
}

fn owners(link_map: Option<&Path>) -> Vec<OwnedRange> {
    let options = LearnOptions::new("Ledger", "1.2");
    let ledger = sdk::learn(&vendor().join("libLedger.a"), &options).unwrap().fingerprint;
    let meter =
        sdk::learn(&vendor().join("libMeter.a"), &LearnOptions::new("meter", "4.0")).unwrap().fingerprint;
    let app = vendor().join("app/Shop.app");
    let mut options = MapOptions::new();
    options.link_map = link_map.map(Path::to_owned);
    sdk::map(&app, &[ledger, meter], &options).unwrap().swap_remove(0).owners.ranges
}

fn owner(ranges: &[OwnedRange], at: u64) -> Option<(&str, Option<&str>, Confidence)> {
    let found = ranges.iter().find(|owned| owned.range.contains(Svma::new(at)))?;
    Some((&found.owner, found.version.as_deref(), found.confidence))
}

#[test]
fn where_no_debug_file_is_the_app_is_mapped_and_it_is_said() {
    let app = vendor().join("app/Shop.app");
    let without = sdk::map(&app, &[], &MapOptions::new()).unwrap().swap_remove(0).owners;
    let mut options = MapOptions::new();
    options.symbols = vec![vendor().join("no such directory")];
    let found = sdk::map(&app, &[], &options).unwrap().swap_remove(0).owners;
    assert_eq!(found.ranges, without.ranges);
    let [missing, problem] = found.notes.as_slice() else { panic!("two notes: {:?}", found.notes) };
    assert_eq!(missing, "no debug file of this build was found");
    assert!(problem.contains("no such directory"), "{problem}");
}

#[test]
fn stamp_and_fingerprint_say_what_the_link_map_says() {
    let (found, stated) = (owners(None), owners(Some(&vendor().join("Shop.map"))));
    let text = std::fs::read_to_string(vendor().join("Shop.map")).unwrap();
    let mut counts = [0; 3];
    for line in text.lines().filter(|line| line.starts_with("0x1000")) {
        let [start, size, file] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else { continue };
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let (start, size) = (number(start), number(size));
        // Code of the members: 1 is the app's, 2 to 4 are Ledger's, 5 and 6 Meter's. Names of functions begin with `_`.
        let Some((file, name)) = file.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else {
            continue;
        };
        if !name.starts_with('_') || size == 0 {
            continue;
        }
        let (index, expected) = match file.trim().parse::<u32>().unwrap() {
            1 => (0, None),
            2..=4 => (1, Some(("Ledger", Some("1.2"), Confidence::Strong))),
            5 | 6 => (2, Some(("meter", Some("4.0"), Confidence::Certain))),
            _ => continue,
        };
        counts[index] += 1;
        for at in [start, start + size - 4] {
            assert_eq!(owner(&found, at), expected, "{name}");
            let stated = owner(&stated, at).map(|(owner, ..)| owner);
            assert_eq!(stated, expected.map(|(owner, ..)| owner), "{name} by the link map");
        }
    }
    assert!(counts[0] >= 4 && counts[1] >= 10 && counts[2] >= 4, "{counts:?}");
}

#[test]
fn reports_have_frames_of_each() {
    let ranges = owners(None);
    let symbols = Symbols::scan(&[], &NoProgress);
    for (name, expected) in [
        ("ledger-crash", &["Ledger", "Ledger", "", ""][..]),
        ("meter-crash", &["meter", "meter", "", ""]),
        ("callback-crash", &["", "", "meter", "", ""]),
        ("app-crash", &["", ""]),
    ] {
        let bytes = std::fs::read(vendor().join(format!("reports/{name}.ips"))).unwrap();
        let analysis = Analysis::new(&bytes, &symbols, &Limits::default()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let offsets = text.split("\"imageOffset\":").skip(1).map(|rest| rest.split_once(',').unwrap().0);
        let offsets: Vec<u64> = offsets.map(|offset| offset.parse().unwrap()).collect();
        // The last is dyld's. All but the first are return addresses, one instruction behind the call.
        let (_, own) = offsets.split_last().unwrap();
        let found = own.iter().enumerate().map(|(frame, offset)| {
            let at = BASE + offset - if frame == 0 { 0 } else { 1 };
            owner(&ranges, at).map_or("", |(owner, ..)| owner)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{name}");
        assert_eq!(analysis.report.fault_frames().len(), offsets.len(), "{name}: all frames are read");
    }
}
