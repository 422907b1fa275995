//! Whose code: a static library inside of a stripped app, by its fingerprint, a link map, a debug map, and rules.

use crate::run::backtrail;
use backtrail_testkit::{Schema, TempDir, assert_snapshot, workspace_root};
use serde_json::Value;

const REPORTS: [&str; 3] = ["in-library", "called-back", "system-on-top"];
const STRIPPED: &str = "fixtures/owners/stripped";

fn analysed(report: &str, arguments: &[&str]) -> Value {
    let path = format!("fixtures/owners/{report}.crash");
    let run = backtrail(&[&["symbolicate", &path, "--format", "json"], arguments].concat());
    let json: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stderr));
    Schema::new().check("report", &json).unwrap();
    json
}

/// Kind, name, version, confidence and how of each frame's owner.
fn owners(json: &Value) -> Vec<String> {
    let frames = json["threads"][0]["frames"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let line = |frame: &Value| {
        ["kind", "name", "version", "confidence", "how"].map(|key| text(&frame["owner"][key])).join(" ")
    };
    frames.iter().map(line).collect()
}

fn verdict(json: &Value) -> [&Value; 4] {
    ["verdict", "name", "version", "confidence"].map(|key| &json["attribution"][key])
}

#[test]
fn a_fingerprint_tells_the_library_in_a_stripped_app() {
    let sdk = ["-s", STRIPPED, "--sdk", "fixtures/owners"];
    let json = analysed("in-library", &sdk);
    assert_eq!(verdict(&json), ["sdk", "Vendor", "2.1", "strong"]);
    let found = owners(&json);
    assert!(found[..3].iter().all(|owner| owner.starts_with("sdk Vendor 2.1 strong")), "{found:?}");
    assert_eq!(found[3..], ["app Demo - likely executable"; 2]);
    let json = analysed("called-back", &sdk);
    assert_eq!(json["attribution"]["verdict"], "app");
    assert_eq!(json["attribution"]["called"]["name"], "Vendor");
    let json = analysed("system-on-top", &sdk);
    assert_eq!(json["attribution"]["name"], "Vendor");
    assert_eq!(json["attribution"]["crashed"]["kind"], "system");
    assert_eq!(json["attribution"]["blamed"]["frame"], 1);
    // Nobody told of the library.
    assert_eq!(analysed("in-library", &["-s", STRIPPED])["attribution"]["verdict"], "app");
}

#[test]
fn the_linkers_word_is_certain() {
    let map = "fixtures/owners/Demo.map";
    let json = analysed("in-library", &["-s", STRIPPED, "--sdk", "fixtures/owners", "--link-map", map]);
    assert_eq!(owners(&json)[0], "sdk Vendor 2.1 certain link map");
    assert_eq!(json["threads"][0]["frames"][0]["owner"]["file"], "libvendor.a(vendor.o)");
    // Without a fingerprint the archive gives the name, and whose it is is a guess.
    let json = analysed("in-library", &["-s", STRIPPED, "--link-map", map]);
    assert_eq!(owners(&json)[0], "sdk vendor - likely archive libvendor.a");
    assert_eq!(owners(&json)[3], "app Demo - strong object file");
    let json = analysed("in-library", &["-s", "fixtures/owners/unstripped", "--sdk", "fixtures/owners"]);
    assert_eq!(owners(&json)[0], "sdk Vendor 2.1 certain debug map");
    let other = ["symbolicate", "fixtures/sample/reports/null-member.ips", "-s", "fixtures/sample/symbols"];
    let run = backtrail(&[&other[..], &["--link-map", map]].concat());
    assert!(run.stderr.contains("is the link map of no binary that was found"), "{}", run.stderr);
}

#[test]
fn a_link_map_alone_names_the_archives() {
    let map = |arguments: &[&str]| {
        let app = ["sdk", "map", "fixtures/vendor/app/Shop.app", "--link-map", "fixtures/vendor/Shop.map"];
        let run = backtrail(&[&app[..], &["--format", "json"], arguments].concat());
        let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let ranges = json["ranges"].as_array().unwrap().iter();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
        let range = |range: &serde_json::Value| {
            ["start", "end", "owner", "version", "confidence", "how"].map(|key| text(&range[key])).join(" ")
        };
        ranges.map(range).collect::<Vec<_>>()
    };
    assert_eq!(
        map(&[]),
        [
            "0x10000422c 0x100004b80 Ledger - likely link map",
            "0x100004c1c 0x100004d98 meter 4.0 certain stamp"
        ]
    );
    let directory = TempDir::new("archives");
    let print = directory.join("Ledger.btsdk");
    let learn = ["sdk", "learn", "fixtures/vendor/libLedger.a", "-n", "Ledger", "--lib-version", "1.2", "-o"];
    assert_eq!(backtrail(&[&learn[..], &[print.to_str().unwrap()]].concat()).code, 0);
    assert_eq!(
        map(&["--sdk", print.to_str().unwrap()])[0],
        "0x10000422c 0x100004b80 Ledger 1.2 certain link map"
    );
}

#[test]
fn what_was_compared_is_kept_and_asked_again() {
    let directory = TempDir::new("owners");
    let cache = directory.join("cache");
    let arguments = ["-s", STRIPPED, "--sdk", "fixtures/owners", "--cache", cache.to_str().unwrap()];
    let first = owners(&analysed("in-library", &arguments));
    let kept: Vec<_> =
        std::fs::read_dir(cache.join("owners")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(owners(&analysed("in-library", &arguments)), first);
    // A file that somebody changed is not believed.
    let text = std::fs::read_to_string(&kept[0]).unwrap().replace("Vendor", "Wrong");
    std::fs::write(&kept[0], text).unwrap();
    assert_eq!(owners(&analysed("in-library", &arguments)), first);
}

#[test]
fn rules_say_whose_code_is_whose() {
    let directory = TempDir::new("rules");
    let rules =
        directory.write("rules.toml", "[[owner]]\nname = \"Forecasts\"\nsymbol = \"weather::Forecast\"\n");
    let path = "fixtures/sample/reports/null-member.ips";
    let rules = rules.to_str().unwrap();
    let run = backtrail(&[
        "symbolicate",
        path,
        "-s",
        "fixtures/sample/symbols",
        "--rules",
        rules,
        "--format",
        "json",
    ]);
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(verdict(&json)[..2], ["sdk", "Forecasts"], "{}", run.stderr);
    let wrong = directory.write("wrong.toml", "\n[[owner]]\nname = \"a\"\nsymbl = \"b\"\n");
    for command in ["symbolicate", "explain"] {
        let run = backtrail(&[command, path, "--rules", wrong.to_str().unwrap()]);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("wrong.toml:4: unknown field `symbl`"), "{}", run.stderr);
    }
    let run = backtrail(&["symbolicate", path, "--sdk", "docs"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("expected fingerprints"), "{}", run.stderr);
}

#[test]
fn people_see_whose_code_it_was() {
    let mut all = String::new();
    for report in REPORTS {
        let path = format!("fixtures/owners/{report}.crash");
        for form in ["text", "summary"] {
            let run = backtrail(&[
                "symbolicate",
                &path,
                "-s",
                STRIPPED,
                "--sdk",
                "fixtures/owners",
                "--format",
                form,
            ]);
            all.push_str(&run.whole());
        }
    }
    assert_snapshot(workspace_root().join("crates/cli/tests/program/snapshots/owners.txt"), &all);
    let path = "fixtures/owners/in-library.crash";
    let run =
        backtrail(&["symbolicate", path, "-s", STRIPPED, "--sdk", "fixtures/owners", "--format", "html"]);
    assert!(run.stdout.contains("<span class=\"owner\">Vendor 2.1</span>"));
}

/// Four frames tell nothing: a library is named only where accident is ruled out.
#[test]
fn few_addresses_claim_no_library() {
    let directory = TempDir::new("mine");
    let fingerprint = directory.path().join("Ledger.btsdk");
    let fingerprint = fingerprint.to_str().unwrap();
    let library = "fixtures/vendor/libLedger.a";
    let learn = ["sdk", "learn", library, "-n", "Ledger", "--lib-version", "1.2", "-o", fingerprint];
    assert_eq!(backtrail(&learn).code, 0);
    let mine = ["sdk", "mine", "fixtures/vendor/reports", "--sdk", fingerprint, "--format", "json"];
    let run = backtrail(&mine);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let builds: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shop = builds.iter().find(|build| build["build"]["name"] == "Shop").unwrap();
    assert_eq!(shop["build"]["reports"], 4);
    let claimed = |library: &Value| !library["confidence"].is_null();
    assert!(!shop["libraries"].as_array().unwrap().iter().any(claimed), "{shop}");
    // Fingerprints of earlier versions know no calls.
    let run = backtrail(&["sdk", "mine", "fixtures/vendor/reports", "--sdk", "fixtures/owners/Vendor.btsdk"]);
    assert!(run.stderr.contains("learn the library again"), "{}", run.stderr);
}
