//! `group`: tables, what changed, going on after an interruption, why.

use crate::run::backtrail;
use backtrail_testkit::{TempDir, workspace_root};
use std::fs;

const SYMBOLS: &str = "fixtures/sample/symbols";

/// A directory with some of the sample's reports.
fn reports(names: &[&str]) -> TempDir {
    let directory = TempDir::new("groups");
    for name in names {
        let from = workspace_root().join("fixtures/sample/reports").join(name);
        directory.write(name, fs::read(from).unwrap());
    }
    directory
}

fn group(arguments: &[&str]) -> crate::run::Run {
    backtrail(&[&["group"], arguments].concat())
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&group(&[arguments, &["--format", "json"]].concat()).stdout).unwrap()
}

#[test]
fn both_forms_of_a_crash_are_one_group() {
    let all = json(&["fixtures/sample/reports", "-s", SYMBOLS]);
    let groups = all["groups"].as_array().unwrap();
    let of = |name: &str| {
        let fits = |group: &&serde_json::Value| group["example"]["file"].as_str().unwrap().contains(name);
        groups.iter().find(fits).map(|group| group["count"].as_u64().unwrap())
    };
    assert_eq!((of("sdk-exception"), of("watchdog"), of("worker-assertion")), (Some(2), Some(2), Some(2)));
    // The simulator's build has no symbols here.
    let total: u64 = groups.iter().map(|group| group["count"].as_u64().unwrap()).sum();
    assert_eq!((total, &all["reports"]), (10, &10.into()));
}

#[test]
fn a_report_that_is_named_twice_is_counted_once() {
    let directory = reports(&["watchdog.ips", "null-member.ips"]);
    let path = directory.path().to_str().unwrap();
    let (file, around) = (
        format!("{path}/watchdog.ips"),
        format!("{path}/../{}", directory.path().file_name().unwrap().to_str().unwrap()),
    );
    for arguments in
        [vec![path, path], vec![file.as_str(), path], vec![path, file.as_str()], vec![path, around.as_str()]]
    {
        assert_eq!(json(&arguments)["reports"], 2, "{arguments:?}");
    }
    assert_eq!(json(&[&file, &file])["reports"], 1);
    // What a search of the directory passes over is read where it is named.
    directory.write("App.dSYM/watchdog.ips", fs::read(&file).unwrap());
    let bundled = format!("{path}/App.dSYM/watchdog.ips");
    assert_eq!(json(&[path, &bundled])["reports"], 3);
}

#[test]
fn what_is_new_fails_where_that_was_asked_for() {
    let (old, new) = (reports(&["watchdog.ips"]), reports(&["watchdog.ips", "null-member.ips"]));
    let earlier = TempDir::new("earlier");
    let file = earlier.path().join("old.json");
    let file = file.to_str().unwrap();
    let run = group(&[old.path().to_str().unwrap(), "--format", "json", "-o", file]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let run = group(&[new.path().to_str().unwrap(), "--diff", file, "--fail-on", "new"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stdout.contains("new: 0 before, 1 now") && run.stderr.contains("1 groups are new"),
        "{}",
        run.stdout
    );
    let run = group(&[old.path().to_str().unwrap(), "--diff", file, "--fail-on", "new"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn the_next_run_goes_on_where_the_last_one_ended() {
    let directory = reports(&["null-member.ips"]);
    let state = TempDir::new("state");
    let file = state.path().join("state.json");
    let path = directory.path().to_str().unwrap();
    let arguments = [path, "--state", file.to_str().unwrap()];
    assert_eq!(json(&arguments)["reports"], 1);
    // A report that was read is not read again: what it holds now is nothing.
    directory.write("null-member.ips", "nothing");
    let from = workspace_root().join("fixtures/sample/reports/watchdog.ips");
    directory.write("watchdog.ips", fs::read(from).unwrap());
    assert_eq!(json(&arguments)["reports"], 2);
    // As many inputs, of which the last is the same.
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"names\":"), "{text}");
    let (one, other) = (directory.path().join("null-member.ips"), directory.path().join("nice.ips"));
    fs::rename(&one, &other).unwrap();
    let run = group(&arguments);
    assert!(run.stderr.contains("is of other inputs"), "{}", run.stderr);
    fs::rename(&other, &one).unwrap();
    fs::write(&file, text).unwrap();
    // Other inputs: all are read.
    directory.write("a.ips", "nothing");
    let run = group(&arguments);
    assert!(run.stderr.contains("is of other inputs"), "{}", run.stderr);
    assert!(run.stdout.starts_with("1 report in 1 group\n"), "{}", run.stdout);
}

#[test]
fn the_order_of_the_inputs_does_not_matter() {
    let paths = ["null-member.crash", "null-member.ips", "watchdog.ips"]
        .map(|name| format!("fixtures/sample/reports/{name}"));
    let [one, two, three] = paths.each_ref().map(String::as_str);
    let formatted = |arguments: &[&str]| group(&[arguments, &["--format", "json"]].concat()).stdout;
    let wanted = formatted(&[one, two, three]);
    assert!(wanted.contains("null-member.crash"), "{wanted}");
    for order in [[three, two, one], [two, three, one]] {
        assert_eq!(formatted(&order), wanted);
    }
}

#[test]
fn a_state_whose_counts_are_wrong_is_refused() {
    let state = TempDir::new("state");
    let file = state.path().join("state.json");
    let arguments = ["fixtures/sample/reports", "--state", file.to_str().unwrap()];
    assert_eq!(json(&arguments)["reports"], 10);
    let text = fs::read_to_string(&file).unwrap();
    for damaged in [
        text.replacen("\"reports\":10", "\"reports\":18446744073709551615", 1),
        text.replacen("\"count\":", "\"count\":1", 1),
        text.get(..text.len() / 2).unwrap().to_owned(),
    ] {
        assert_ne!(damaged, text);
        fs::write(&file, damaged).unwrap();
        let run = group(&arguments);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("state.json: "), "{}", run.stderr);
    }
}

#[test]
fn counts_have_every_form_but_pages() {
    let by = |format: &str| group(&["fixtures/sample/reports", "--by", "kind", "--format", format]);
    let document: serde_json::Value = serde_json::from_str(&by("json").stdout).unwrap();
    assert_eq!((&document["by"], &document["reports"]), (&"kind".into(), &10.into()));
    let counted: u64 =
        document["counts"].as_array().unwrap().iter().filter_map(|it| it["reports"].as_u64()).sum();
    assert_eq!(Some(counted), document["apart"].as_u64().map(|apart| 10 - apart));
    assert!(by("csv").stdout.starts_with("reports,groups,kind\n"));
    assert!(by("text").stdout.starts_with(" reports   groups\n"));
    assert_eq!(by("html").code, 2);
}

#[test]
fn a_report_says_why() {
    let run = group(&["--explain", "fixtures/sample/reports/null-member.ips", "-s", SYMBOLS]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for said in ["key:        1:", "symbol key: 1:", "sort of event: access", "symbol key: celsius (Weather)"]
    {
        assert!(run.stdout.contains(said), "{said}: {}", run.stdout);
    }
}

#[test]
fn pages_want_a_directory_and_get_one_each() {
    assert_eq!(group(&["fixtures/sample/reports", "--format", "html"]).code, 2);
    let directory = TempDir::new("pages");
    let path = format!("{}/", directory.path().display());
    let run = group(&["fixtures/sample/reports", "--format", "html", "-o", &path]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let index = fs::read_to_string(directory.path().join("index.html")).unwrap();
    assert!(
        fs::read_dir(directory.path()).unwrap().count() > 4 && index.contains("10 reports in"),
        "{index}"
    );
}

#[test]
fn spreadsheets_get_no_formulas() {
    let run = group(&["fixtures/sample/reports", "--format", "csv"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("count,first,last,versions"), "{}", run.stdout);
    assert!(run.stdout.lines().count() > 4);
}

/// A tombstone of these functions of the program, behind `abort`; one that was cut lacks `main`.
fn tombstone(number: usize, functions: &[&str], words: &str, is_cut: bool) -> String {
    let end = if is_cut { &[][..] } else { &["main"] };
    let own = functions.iter().chain(end).zip(1..).map(|(name, at)| {
        let place = name.len();
        format!("      #{at:02} pc 000000000000{place:02x}34  /data/app/com.example.shop/lib/arm64/libshop.so ({name}+20)\n")
    });
    format!(
        "{}\nBuild fingerprint: 'a/b/c:13/T/1:user/release-keys'\nABI: 'arm64'\n\
         pid: {number}, tid: {number}, name: shop  >>> com.example.shop <<<\n\
         signal 6 (SIGABRT), code -1 (SI_QUEUE), fault addr --------\nAbort message: '{words}'\n\n\
         backtrace:\n      #00 pc 000000000004e000  /apex/com.android.runtime/lib64/bionic/libc.so (abort+164)\n{}",
        "*** ".repeat(16),
        own.collect::<String>()
    )
}

/// Cut stacks of bugs that crash in one helper: where only one has been seen, where two have, where nothing but words is left.
#[test]
fn what_was_cut_is_told_as_likely_and_merged_with_nothing() {
    let directory = TempDir::new("groups-cut");
    let write = |name: String, text: String| directory.write(&name, text);
    for at in 0..20 {
        write(format!("cart{at}.txt"), tombstone(at, &["check_failed", "load_cart"], "no cart", false));
        write(format!("user{at}.txt"), tombstone(at, &["check_failed", "log_in"], "no user", false));
        write(format!("song{at}.txt"), tombstone(at, &["raise_error", "play_song"], "no song", false));
    }
    write("z-one.txt".to_owned(), tombstone(1, &["raise_error"], "", true));
    write("z-two.txt".to_owned(), tombstone(2, &["check_failed"], "", true));
    write("z-words.txt".to_owned(), tombstone(3, &[], "no user", true));
    let path = directory.path().to_str().unwrap();
    let all = json(&[path]);
    let groups = all["groups"].as_array().unwrap();
    let of =
        |file: &str| groups.iter().find(|it| it["example"]["file"].as_str().unwrap().contains(file)).unwrap();
    let (cart, user, song) = (of("cart"), of("user"), of("song"));
    assert_eq!((&cart["count"], &user["count"], &song["count"]), (&20.into(), &20.into(), &20.into()));
    assert_eq!((&of("z-one")["likely_of"], &of("z-one")["likely_by"]), (&song["id"], &20.into()));
    assert_eq!((&song["likely_more"], &user["likely_more"]), (&1.into(), &1.into()));
    let mut either = [cart["id"].clone(), user["id"].clone()];
    either.sort_by_key(ToString::to_string);
    assert_eq!(of("z-two")["either_of"].as_array().unwrap(), &either);
    assert_eq!((&all["apart"]["count"], &all["apart"]["likely"]), (&1.into(), &1.into()));
    let text = group(&[path]).stdout;
    assert!(text.contains("likely 1 more that were cut short: all that they show is this group's"), "{text}");
    assert!(text.contains("1 of them are likely of a group above"), "{text}");
    for (file, wanted) in [
        ("z-one.txt", "cut short, likely of "),
        ("z-two.txt", "cut short, perhaps of "),
        ("z-words.txt", "cut short, likely of "),
    ] {
        let why = group(&[path, "--explain", &format!("{path}/{file}")]).stdout;
        assert!(why.contains(wanted) && why.contains("cut short: it shows the "), "{file}: {why}");
    }
    let csv = group(&[path, "--format", "csv"]).stdout;
    let one = csv.lines().find(|line| line.contains("z-one")).unwrap();
    assert!(one.ends_with(&format!(",0,{}", song["id"].as_str().unwrap())), "{one}");
    // What an earlier run kept is what it knew.
    let state = directory.path().join("../").join(format!("state-{}.json", std::process::id()));
    let state = state.to_str().unwrap();
    group(&[path, "--state", state]);
    directory.write("zz-more.txt", tombstone(4, &["raise_error"], "", true));
    let resumed = json(&[path, "--state", state]);
    fs::remove_file(state).unwrap();
    assert_eq!(resumed, json(&[path]));
}
