//! What a project knows of its code: the server says of reports what `symbolicate` says with the same files.

use crate::client::{Answer, Running, request};
use crate::pages::form_key;
#[cfg(unix)]
use backtrail::sdk::ImageOwners;
use backtrail::sdk::owner_sources;
use backtrail::{Analysis, Limits, NoProgress, Rules, SymbolOptions, Symbols, json};
use backtrail_server::{Config, check, copy, export};
use backtrail_testkit::{TempDir, fixtures};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap()
}

const RULES: &str = "[[owner]]\nkind = \"app\"\nmodule = \"Demo\"\nname = \"Ours\"\n";

impl Running {
    fn give(&self, token: &str, path: &str, body: &[u8]) -> Answer {
        let bearer = format!("Bearer {token}");
        request(self.address, "PUT", &format!("/api/v1/projects/{path}"), &[("Authorization", &bearer)], body)
    }

    fn given(&self, path: &str, body: &[u8]) -> Value {
        let answer = self.give(&self.token, &format!("1/{path}"), body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    fn take(&self, token: &str, path: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        request(
            self.address,
            "DELETE",
            &format!("/api/v1/projects/{path}"),
            &[("Authorization", &bearer)],
            b"",
        )
    }

    fn owner_sources(&self) -> Vec<Value> {
        let listed = self.get("/api/v1/projects/1/owner-sources").json();
        listed["owner_sources"].as_array().unwrap().clone()
    }

    /// Waits until what was worked before is worked again.
    fn settle_again(&self) {
        let until = Instant::now() + Duration::from_secs(180);
        while self.number("SELECT sum(again) FROM project") > 0 {
            assert!(Instant::now() < until, "reports are not worked again");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.settle();
    }

    fn sent(&self, name: &str) -> String {
        self.send("/api/1/reports/", &fixture(name)).json()["ids"][0].as_str().unwrap().to_owned()
    }

    fn report_document(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/projects/1/reports/{id}")).json()["report"].clone()
    }

    fn owner_of(&self, id: &str) -> (String, String) {
        let sql = |column| format!("SELECT {column} FROM report WHERE event_id = '{id}'");
        (self.text(&sql("owner")), self.text(&sql("owner_version")))
    }

    fn text(&self, sql: &str) -> String {
        // Numbers alone are asked for elsewhere: texts by their parts, which both databases have.
        let length = self.number(&format!("SELECT length(({sql}))"));
        let letter = |at: i64| match self.config.database {
            Some(_) => self.number(&format!("SELECT ascii(substr(({sql}), {at}, 1))")),
            None => self.number(&format!("SELECT unicode(substr(({sql}), {at}, 1))")),
        };
        (1..=length).map(|at| char::from(u8::try_from(letter(at)).unwrap())).collect()
    }
}

/// What `symbolicate` says of a report of `fixtures/owners` with the stripped app and such files.
fn symbolicated(report: &str, sdk: &[&str], link_maps: &[&str], rules: &str) -> Value {
    let paths = |names: &[&str]| names.iter().map(|name| fixtures().join(name)).collect::<Vec<PathBuf>>();
    let mut options = SymbolOptions::default();
    options.paths = paths(&["owners/stripped"]);
    options.debug_directories = Some(Vec::new());
    options.only_scanned = true;
    let symbols = Symbols::with_options(options, &NoProgress);
    let symbols = symbols.with_owners(owner_sources(&paths(sdk), &paths(link_maps)).unwrap());
    let rules = Rules::parse(rules.as_bytes(), "rules.toml").unwrap();
    let analysis =
        Analysis::with_rules(&fixture(report).as_slice().into(), &symbols, &rules, &Limits::default())
            .unwrap();
    let mut document = Vec::new();
    json::write_report(&mut document, &analysis, json::Origin::default()).unwrap();
    serde_json::from_slice(&document).unwrap()
}

/// Of all that a document says, what depends on owners.
fn owners_in(document: &Value) -> (Value, Value, Vec<Value>) {
    let frames = document["threads"][0]["frames"].as_array().unwrap();
    let owners: Vec<Value> = frames.iter().map(|frame| frame["owner"].clone()).collect();
    assert!(owners.len() >= 5, "{document:#}");
    (document["attribution"].clone(), document["group"].clone(), owners)
}

#[test]
fn the_server_says_what_symbolicate_says() {
    let server = Running::start();
    let report = "owners/in-library.crash";
    server.upload("Demo", &fixture("owners/stripped/Demo"));
    let id = server.sent(report);
    server.settle();
    let compare = |sdk: &[&str], maps: &[&str], rules: &str| {
        server.settle_again();
        // A page may be asked for before the build was looked at.
        let until = Instant::now() + Duration::from_secs(120);
        let expected = owners_in(&symbolicated(report, sdk, maps, rules));
        while owners_in(&server.report_document(&id)) != expected {
            let seen = owners_in(&server.report_document(&id));
            assert!(Instant::now() < until, "{seen:#?}\n{expected:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let owner = expected.0["verdict"].as_str().unwrap().to_owned();
        let name = expected.0["name"].as_str().unwrap_or_default().to_owned();
        assert!(server.owner_of(&id).0.starts_with(&owner), "{:?}", server.owner_of(&id));
        (owner, name)
    };
    assert_eq!(compare(&[], &[], "").0, "app");
    let given = server.given("fingerprints/any.btsdk", &fixture("owners/Vendor.btsdk"));
    assert_eq!((&given["kind"], &given["name"]), (&json!("fingerprint"), &json!("Vendor")));
    assert_eq!(given["version"], "2.1");
    let sdk = ["owners/Vendor.btsdk"];
    assert_eq!(compare(&sdk, &[], ""), ("sdk".to_owned(), "Vendor".to_owned()));
    assert_eq!(server.owner_of(&id), ("sdk Vendor".to_owned(), "2.1".to_owned()));
    server.given("link-maps/Demo.map", &fixture("owners/Demo.map"));
    // The map of another app says nothing here.
    server.given("link-maps/Shop.map", &fixture("vendor/Shop.map"));
    assert_eq!(compare(&sdk, &["owners/Demo.map"], "").0, "sdk");
    let maps: Vec<Value> =
        server.owner_sources().into_iter().filter(|source| source["kind"] == "link map").collect();
    assert_eq!(
        (&maps[1]["name"], &maps[1]["image"]),
        (&json!("Demo.map"), &json!("4C4C44C4-5555-3144-A1E3-86F4AD389DB6"))
    );
    assert_eq!((&maps[0]["app"], &maps[0]["image"]), (&json!("Shop"), &Value::Null));
    let rules = "[[owner]]\nname = \"Renamed\"\nmodule = \"Demo\"\n";
    server.given("rules", rules.as_bytes());
    compare(&sdk, &["owners/Demo.map"], rules);
    assert_eq!(server.get("/api/v1/projects/1/rules").text(), rules);
    // And back again.
    for source in server.owner_sources() {
        assert_eq!(server.take(&server.token, &format!("1/owner-sources/{}", source["id"])).status, 200);
    }
    assert_eq!(compare(&[], &[], "").0, "app");
    assert_eq!(server.number("SELECT count(*) FROM issue WHERE count > 0"), 1, "nothing is split");
    assert_eq!(server.number("SELECT sum(count) FROM issue"), 1, "nothing is counted twice");
    assert_eq!(server.check(), Vec::<String>::new());
}

#[test]
fn a_vendor_sees_his_library_in_stripped_apps() {
    let mut server = Running::start();
    let report = |name: &str| format!("vendor/reports/{name}.ips");
    let before = server.sent(&report("ledger-crash"));
    server.settle();
    assert_eq!(server.owner_of(&before).0, "app Shop");
    assert_eq!(server.issue_owners(), ["app Shop"]);
    // The binary comes last: late symbols and late owners at once.
    let learned = backtrail::sdk::learn(
        &fixtures().join("vendor/libLedger.a"),
        &backtrail::sdk::LearnOptions::new("Ledger", "1.2"),
    );
    server.given("fingerprints/Ledger.btsdk", &learned.unwrap().fingerprint.to_bytes());
    server.settle_again();
    server.upload("Shop", &fixture("vendor/app/Shop.app/Shop"));
    let [meter, callback] = ["meter-crash", "callback-crash"].map(|name| server.sent(&report(name)));
    server.settle();
    assert_eq!(server.owner_of(&before), ("sdk Ledger".to_owned(), "1.2".to_owned()));
    // This one has a stamp, which is read where something is compared.
    assert_eq!(server.owner_of(&meter), ("sdk meter".to_owned(), "4.0".to_owned()));
    assert_eq!(server.owner_of(&callback).0, "app Shop");
    assert_eq!(server.number("SELECT count(*) FROM issue WHERE count > 0"), 3);
    let ledger = server.get("/api/v1/projects/1/owners?owner=sdk%20Ledger").json();
    assert_eq!(
        (&ledger["versions"][0]["version"], &ledger["versions"][0]["reports"]),
        (&json!("1.2"), &json!(1))
    );
    assert_eq!(ledger["issues"].as_array().unwrap().len(), 1, "{ledger:#}");
    let cookie = server.log_in();
    let page = server.page(&cookie, "/projects/default/owners?owner=sdk%20Ledger").text();
    assert!(page.contains("1.2") && page.contains("Ledger"), "{page}");
    // What was worked out is there after a start, too.
    server.restart();
    let again = server.sent(&report("app-crash"));
    server.settle();
    assert_eq!(server.owner_of(&again).0, "app Shop");
    assert_eq!(server.check(), Vec::<String>::new());
}

impl Running {
    fn issue_owners(&self) -> Vec<String> {
        let issues = self.get("/api/v1/projects/1/issues").json();
        let owners = issues["issues"].as_array().unwrap().iter();
        owners.map(|issue| issue["owner"].as_str().unwrap().to_owned()).collect()
    }
}

/// Names alone need no binary; whose code it is shows in that.
#[test]
fn a_binary_that_comes_after_the_names_is_looked_at() {
    let server = Running::start();
    let missing = || server.get("/api/v1/projects/1/missing").json()["missing"].as_array().unwrap().len();
    let bundle = "sample/symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather";
    server.upload("Weather", &fixture(bundle));
    server.sent("sample/reports/null-member.ips");
    server.settle();
    let without = missing();
    server.given("fingerprints/Vendor.btsdk", &fixture("owners/Vendor.btsdk"));
    server.settle_again();
    assert_eq!(missing(), without + 1);
    let binary = server.upload("Weather", &fixture("sample/app/Weather.app/Weather"));
    let waited = binary["files"].as_array().unwrap().iter().map(|file| file["waited"].as_u64().unwrap());
    assert_eq!(waited.sum::<u64>(), 1, "{binary}");
    server.settle();
    assert_eq!(missing(), without);
    assert_eq!(server.check(), Vec::<String>::new());
}

impl Running {
    fn token_for(&self, scope: &str) -> String {
        let bearer = format!("Bearer {}", self.token);
        let body = json!({ "scope": scope }).to_string();
        let made = self.post("/api/v1/projects/1/tokens", &[("Authorization", &bearer)], body.as_bytes());
        made.json()["token"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_refusal_says_what_is_wanted() {
    let server = Running::start();
    let (read, member) = (server.token_for("read"), server.token_for("member"));
    let library = fixture("owners/Vendor.btsdk");
    // Members may by the API what they may on the page.
    let added = server.give(&member, "1/fingerprints/x", &library);
    assert_eq!(added.status, 200, "{}", added.text());
    let source = added.json()["id"].clone();
    assert_eq!(server.take(&member, &format!("1/owner-sources/{source}")).status, 200);
    let refused = server.give(&read, "1/fingerprints/x", &library);
    assert_eq!(refused.status, 403);
    let why = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(why.contains("\"symbols\"") && why.contains("\"read\""), "{why}");
    // Who may see all projects is told that there is no such one.
    assert_eq!(server.give(&server.token, "nosuch/fingerprints/x", &library).status, 404);
    assert_eq!(server.give(&read, "nosuch/fingerprints/x", &library).status, 401);
    let large = vec![b'#'; (256 << 10) + 1];
    let refused = server.give(&server.token, "1/rules", &large);
    assert_eq!(refused.status, 413);
    assert!(refused.text().contains("262144 bytes, this has 262145"), "{}", refused.text());
    let none = request(server.address, "PUT", "/api/v1/projects/1/fingerprints/x", &[], &library);
    assert!(none.status == 401 && none.text().contains("Authorization: Bearer"), "{}", none.text());
}

#[test]
fn what_is_none_is_refused_and_changes_nothing() {
    let server = Running::start();
    server.given("rules", RULES.as_bytes());
    for (path, body, why) in [
        ("fingerprints/x.btsdk", b"no fingerprint".to_vec(), "x.btsdk"),
        ("fingerprints/x.btsdk", fixture("owners/Vendor.btsdk")[..500].to_vec(), ""),
        ("link-maps/x.map", b"no map\n".to_vec(), "expected a link map"),
        ("link-maps/x.map", b"# Path: /a/App\n# Object files:\n[ 0] x.o\n".to_vec(), "expected symbols"),
        ("rules", b"[[owner]]\nnme = \"x\"\n".to_vec(), "rules.toml:2"),
        ("rules", b"\xff".to_vec(), "UTF-8"),
    ] {
        let answer = server.give(&server.token, &format!("1/{path}"), &body);
        assert_eq!(answer.status, 422, "{path}: {}", answer.text());
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(why) || why == "x.btsdk", "{path}: {detail}");
        assert!(!detail.contains("uploads") && !detail.is_empty(), "no path of the server: {detail}");
    }
    assert_eq!(server.get("/api/v1/projects/1/rules").text(), RULES);
    assert_eq!(server.owner_sources().len(), 1);
    // Others may not, and projects are apart.
    let (symbols, read, member) =
        (server.token_for("symbols"), server.token_for("read"), server.token_for("member"));
    let map = fixture("owners/Demo.map");
    assert_eq!(server.give(&server.key, "1/fingerprints/x", b"").status, 403, "apps have that key");
    assert_eq!(server.give(&read, "1/link-maps/x", &map).status, 403);
    assert_eq!(server.give(&symbols, "1/rules", RULES.as_bytes()).status, 403);
    assert_eq!(server.give(&member, "1/rules", RULES.as_bytes()).status, 200);
    assert_eq!(server.give(&symbols, "1/link-maps/%3Cb%3E%1b..%2f.map", &map).status, 200);
    let bearer = format!("Bearer {}", server.token);
    server.post("/api/v1/projects", &[("Authorization", &bearer)], b"{\"slug\": \"two\"}");
    assert_eq!(server.give(&symbols, "two/link-maps/x", &map).status, 401);
    assert_eq!(
        server.get("/api/v1/projects/two/owner-sources").json(),
        json!({ "owner_sources": [], "problems": [] })
    );
    let id = server.owner_sources()[0]["id"].clone();
    assert_eq!(server.take(&server.token, &format!("two/owner-sources/{id}")).status, 404);
    assert_eq!(server.take(&symbols, &format!("1/owner-sources/{id}")).status, 403);
    // On the page names are escaped, and what removes is a form of ours.
    let cookie = server.log_in();
    let page = server.page(&cookie, "/projects/default/upload").text();
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>..") && page.contains("Demo"), "{page}");
    let remove = format!("/projects/default/owner-sources/{id}/remove");
    assert_eq!(server.submit(&cookie, &remove, "form_key=guess").status, 403);
    let good = format!("form_key={}", form_key(&page));
    assert_eq!(server.submit(&cookie, &remove, &good).status, 303);
    assert_eq!(server.submit(&cookie, &remove, &good).status, 404);
    assert_eq!(server.take(&member, "1/rules").status, 200);
    assert_eq!(server.take(&member, "1/rules").status, 404);
    assert_eq!(server.get("/api/v1/projects/1/rules").status, 404);
    assert_eq!(server.check(), Vec::<String>::new());
}

/// A program in the place of the server's: needs no tables, and is killed as often as asked when it should compare a build; then it answers that
/// nobody's code is there.
#[cfg(unix)]
fn killed(directory: &std::path::Path, times: u32) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let (program, answer, count) =
        (directory.join("program"), directory.join("answer"), directory.join("count"));
    std::fs::write(&answer, [b"null\n".as_slice(), &ImageOwners::default().to_bytes()].concat()).unwrap();
    let line = |end: bool| {
        json!({ "id": "", "arch": "", "table": false, "problem": null, "again": false, "end": end })
            .to_string()
    };
    let script = format!(
        "#!/bin/sh\n[ $2 = find-owners ] || {{ echo '{last}'; exit; }}\necho >> {count}\n[ $(wc -l < {count}) -gt {times} ] || kill -9 $$\n\
         cat {answer} > $3/answer\necho '{first}'\necho '{last}'\n",
        first = line(false),
        last = line(true),
        count = count.display(),
        answer = answer.display(),
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
#[cfg(unix)]
fn a_comparison_that_was_killed_is_tried_again_and_one_that_fails_is_shown() {
    let directory = TempDir::new("server-killed");
    for (times, fails) in [(2, false), (3, true)] {
        let place = directory.join(times.to_string());
        std::fs::create_dir(&place).unwrap();
        let program = killed(&place, times);
        let server = Running::with(|config| config.tables = Some(program));
        server.upload("Demo", &fixture("owners/stripped/Demo"));
        server.given("fingerprints/Vendor.btsdk", &fixture("owners/Vendor.btsdk"));
        let id = server.sent("owners/in-library.crash");
        server.settle();
        assert_eq!(server.owner_of(&id).0, "app Demo");
        let listed = server.get("/api/v1/projects/1/owner-sources").json();
        let problems = listed["problems"].as_array().unwrap();
        assert_eq!(problems.len(), usize::from(fails), "{listed:#}");
        let tries = std::fs::read_to_string(place.join("count")).unwrap().lines().count();
        assert_eq!(tries, 3);
        let cookie = server.log_in();
        let page = server.page(&cookie, "/projects/default/upload").text();
        assert_eq!(page.contains("was killed"), fails, "{page}");
        if fails {
            assert_eq!(problems[0]["image"], "4C4C44C4-5555-3144-A1E3-86F4AD389DB6");
            assert!(problems[0]["why"].as_str().unwrap().contains("killed"));
            // Another set of fingerprints is another question.
            let source = server.owner_sources()[0]["id"].clone();
            assert_eq!(server.take(&server.token, &format!("1/owner-sources/{source}")).status, 200);
            let listed = server.get("/api/v1/projects/1/owner-sources").json();
            assert_eq!(listed, json!({ "owner_sources": [], "problems": [] }));
        }
        assert_eq!(server.check(), Vec::<String>::new());
    }
}

#[test]
fn what_failed_names_no_place_of_the_server() {
    let server = Running::start();
    if server.config.objects.is_some() {
        return;
    }
    server.upload("Demo", &fixture("owners/stripped/Demo"));
    let given = server.given("fingerprints/Vendor.btsdk", &fixture("owners/Vendor.btsdk"));
    let (first, rest) = given["sha256"].as_str().unwrap().split_at(2);
    let file = server.config.data.join("objects").join(first).join(rest);
    let kept = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    server.sent("owners/in-library.crash");
    server.settle();
    let problems = server.get("/api/v1/projects/1/owner-sources").json()["problems"].clone();
    let why = problems[0]["why"].as_str().unwrap();
    assert!(why.starts_with(&format!("file {first}")) && why.contains("No such file"), "{why}");
    assert!(!why.contains("objects"), "{why}");
    std::fs::write(&file, kept).unwrap();
    assert_eq!(server.check(), Vec::<String>::new());
}

#[test]
fn the_page_takes_what_tells_whose_code_is_whose() {
    let server = Running::start();
    let cookie = server.log_in();
    let page = server.page(&cookie, "/projects/default/upload").text();
    let mut form =
        format!("--XX\r\nContent-Disposition: form-data; name=\"form_key\"\r\n\r\n{}\r\n", form_key(&page))
            .into_bytes();
    for (name, bytes) in [
        ("Vendor.btsdk", fixture("owners/Vendor.btsdk")),
        ("Demo-LinkMap.txt", fixture("owners/Demo.map")),
        ("ours.toml", RULES.as_bytes().to_vec()),
        ("broken.toml", b"[[owner".to_vec()),
    ] {
        form.extend(
            format!("--XX\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\r\n")
                .bytes(),
        );
        form.extend(bytes);
        form.extend(b"\r\n");
    }
    form.extend(b"--XX--\r\n");
    let headers = [("Cookie", cookie.as_str()), ("Content-Type", "multipart/form-data; boundary=XX")];
    let answer = server.post("/projects/default/upload", &headers, &form);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    for said in ["fingerprint Vendor 2.1", "link map Demo-LinkMap.txt", "rules ours.toml", "broken.toml:1"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert_eq!(server.owner_sources().len(), 3);
}

#[test]
fn copies_and_exports_have_them() {
    let mut server = Running::start();
    server.given("fingerprints/Vendor.btsdk", &fixture("owners/Vendor.btsdk"));
    server.given("rules", b"[[owner]]\nname = \"first\"\nmodule = \"A\"\n");
    server.given("rules", RULES.as_bytes());
    assert_eq!(server.owner_sources().len(), 2, "one file of rules");
    // The same library and version again, and the same file under another name.
    server.given("fingerprints/other.btsdk", &fixture("owners/Vendor.btsdk"));
    assert_eq!(server.owner_sources().len(), 2);
    let directory = TempDir::new("server-owner-copy");
    let copied = copy(&server.config, &directory.join("copy")).unwrap();
    assert_eq!((copied.files, copied.missing.len()), (2, 0));
    assert_eq!(check(&Config::new(directory.join("copy"))).unwrap().problems, Vec::<String>::new());
    let mut out = Vec::new();
    export(&server.config, true, &mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let sources: Vec<Value> = lines.filter(|line| line["type"] == "owner_source").collect();
    assert_eq!(sources.len(), 2, "{sources:#?}");
    assert_eq!((&sources[0]["kind"], &sources[0]["name"]), (&json!("fingerprint"), &json!("Vendor")));
    server.restart();
    assert_eq!(server.get("/api/v1/projects/1/rules").text(), RULES);
    assert_eq!(server.check(), Vec::<String>::new());
}
