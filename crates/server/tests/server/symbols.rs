//! Symbols: what is uploaded names what waited, and can be asked for.

use crate::client::{Answer, Running, request};
use backtrail_testkit::fixtures;
use serde_json::{Value, json};
use std::io::{Cursor, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn dwarf(bundle: &str, name: &str) -> Vec<u8> {
    let path = format!("sample/symbols/{bundle}.dSYM/Contents/Resources/DWARF/{name}");
    std::fs::read(fixtures().join(path)).unwrap()
}

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join("sample/reports").join(name)).unwrap()
}

impl Running {
    fn put(&self, name: &str, token: &str, body: &[u8]) -> Answer {
        let bearer = format!("Bearer {token}");
        let path = format!("/api/v1/projects/1/symbols/{name}");
        request(self.address, "PUT", &path, &[("Authorization", &bearer)], body)
    }

    pub(crate) fn upload(&self, name: &str, body: &[u8]) -> Value {
        let answer = self.put(name, &self.token, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    fn titles(&self) -> Vec<String> {
        let issues = self.get("/api/v1/projects/1/issues").json();
        let titles = issues["issues"].as_array().unwrap().iter();
        titles.map(|issue| issue["title"].as_str().unwrap().to_owned()).collect()
    }

    fn linked(&self) -> Vec<PathBuf> {
        let directory = self.directory.join("data").join("symbols").join("1");
        let files = std::fs::read_dir(directory).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }
}

#[test]
fn symbols_that_come_late_name_what_waited_and_split_nothing() {
    let mut server = Running::start();
    server.send("/api/1/reports/", &sample("null-member.ips"));
    server.settle();
    assert!(server.titles()[0].contains("in Weather + 0x"), "{:?}", server.titles());
    let weather = dwarf("Weather.app", "Weather");
    let answer = server.upload("Weather", &weather);
    let files = answer["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["arch"] == "arm64").unwrap();
    assert_eq!((&file["new"], &file["waited"], &file["lacks"]), (&json!(true), &json!(1), &Value::Null));
    assert_eq!((&file["arch"], &file["name"]), (&json!("arm64"), &json!("Weather")));
    server.settle();
    let titles = server.titles();
    assert!(titles.len() == 1 && !titles[0].contains("+ 0x"), "{titles:?}");
    // A further report is of the same issue, by another start of the server, too.
    server.restart();
    server.send("/api/1/reports/", &sample("null-member.crash"));
    server.settle();
    assert_eq!(server.titles(), titles);
    // What is here is not wanted again.
    let bearer = format!("Bearer {}", server.token);
    let asked = json!({ "sha256": [file["sha256"], "0".repeat(64)] }).to_string();
    let path = "/api/v1/projects/1/symbols-missing";
    let missing = server.post(path, &[("Authorization", &bearer)], asked.as_bytes()).json();
    assert_eq!(missing, json!({ "missing": ["0".repeat(64)] }));
    let again = server.upload("Weather", &weather);
    assert_eq!(again["files"][0]["new"], false);
    assert_eq!(server.number("SELECT count(*) FROM symbol_file"), i64::try_from(files.len()).unwrap());
    assert_eq!(server.linked().len(), 1);
}

#[test]
fn what_a_crash_left_is_put_right() {
    let mut server = Running::start();
    server.upload("Weather", &dwarf("Weather.app", "Weather"));
    let linked = server.linked().remove(0);
    std::fs::write(linked.with_file_name("0".repeat(64)), b"nobody's").unwrap();
    std::fs::remove_file(&linked).unwrap();
    std::fs::write(server.directory.join("data/symbols/uploads/half"), b"hal").unwrap();
    server.restart();
    // At once, or soon, where files are fetched from elsewhere.
    let until = Instant::now() + Duration::from_secs(60);
    while server.linked() != [linked.clone()] {
        assert!(Instant::now() < until, "{:?}", server.linked());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!server.directory.join("data/symbols/uploads/half").exists());
    assert_eq!(server.check(), Vec::<String>::new());
}

#[test]
fn not_everybody_gives_or_gets_symbols() {
    let server = Running::with(|config| config.limits.symbol_file = 1 << 20);
    let weather = dwarf("Weather.app", "Weather");
    assert_eq!(server.put("Weather", &server.key, &weather).status, 403, "apps have that key");
    assert_eq!(server.put("Weather", "nobody", &weather).status, 401);
    assert_eq!(server.put("text", &server.token, b"no symbols at all").status, 422);
    assert_eq!(server.put("large", &server.token, &vec![0; (1 << 20) + 1]).status, 413);
    // A name never becomes a path.
    let answer = server.upload("..%2f..%2f..%2fetc%2f%1b[31m", &weather);
    assert_eq!(answer["files"][0]["name"], "../../../etc/[31m");
    assert_eq!(server.linked().len(), 1);
    let uploads = std::fs::read_dir(server.directory.join("data/symbols/uploads")).unwrap();
    assert_eq!(uploads.count(), 0, "nothing of what was refused stays");
}

#[test]
fn files_are_found_by_build_id() {
    let server = Running::start();
    let program = std::fs::read(fixtures().join("symbolize/bin/dwz-one.elf")).unwrap();
    let file = server.upload("program", &program)["files"][0].clone();
    let id = file["id"].as_str().unwrap();
    let executable = server.get(&format!("/symbols/1/buildid/{id}/executable"));
    assert_eq!((executable.status, executable.body.len()), (200, program.len()));
    assert!(executable.body == program);
    let debuginfo = server.get(&format!("/symbols/1/buildid/{id}/debuginfo"));
    assert_eq!(debuginfo.status, if file["lacks"].is_null() { 200 } else { 404 });
    assert_eq!(server.get("/symbols/1/buildid/00ff/executable").status, 404);
    assert_eq!(server.get(&format!("/symbols/1/buildid/{id}/source")).status, 404);
    let nobody = request(server.address, "GET", &format!("/symbols/1/buildid/{id}/executable"), &[], b"");
    assert_eq!(nobody.status, 401);
}

/// A form with one piece of a file.
fn piece(name: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
    [head.as_bytes(), bytes, b"\r\n--XX--\r\n"].concat()
}

fn sha1_of(bytes: &[u8]) -> String {
    use sha1::Digest as _;
    sha1::Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn sentry_cli_sends_files_in_pieces() {
    let server = Running::start();
    server.send("/api/1/reports/", &sample("null-member.ips"));
    server.settle();
    let made = {
        let bearer = format!("Bearer {}", server.token);
        let scope = json!({ "scope": "symbols" }).to_string();
        let path = "/api/v1/projects/1/tokens";
        server.post(path, &[("Authorization", &bearer)], scope.as_bytes()).json()
    };
    let other = made["token"].as_str().unwrap();
    let ask = |token: &str, method: &str, path: &str, body: &[u8]| {
        let bearer = format!("Bearer {token}");
        let headers =
            [("Authorization", bearer.as_str()), ("Content-Type", "multipart/form-data; boundary=XX")];
        request(server.address, method, path, &headers, body)
    };
    let (chunks, difs) =
        ("/api/0/organizations/o/chunk-upload/", "/api/0/projects/o/default/files/difs/assemble/");
    let options = ask(&server.token, "GET", chunks, b"").json();
    assert_eq!(options["hashAlgorithm"], "sha1");
    assert!(options["url"].as_str().unwrap().ends_with(chunks), "{options}");
    assert_eq!(ask(&server.key, "GET", chunks, b"").status, 403);
    let weather = dwarf("Weather.app", "Weather");
    let (first, second) = weather.split_at(weather.len() / 3);
    let (whole, names) = (sha1_of(&weather), [sha1_of(first), sha1_of(second)]);
    let wanted = json!({ whole.as_str(): { "name": "Weather", "chunks": names } }).to_string();
    let assemble = |token: &str| {
        let answer = ask(token, "POST", difs, wanted.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()[&whole].clone()
    };
    assert_eq!(assemble(&server.token)["missingChunks"], json!(names));
    assert_eq!(ask(&server.token, "POST", chunks, &piece(&names[1], first)).status, 400, "another name");
    assert_eq!(ask(&server.token, "POST", chunks, &piece("../x", first)).status, 400);
    assert_eq!(ask(&server.token, "POST", chunks, &piece(&names[0], first)).status, 200);
    let half = assemble(&server.token);
    assert_eq!((&half["state"], &half["missingChunks"]), (&json!("not_found"), &json!([names[1]])));
    assert_eq!(assemble(other)["missingChunks"], json!(names), "others are not told what is here");
    assert_eq!(ask(&server.token, "POST", chunks, &piece(&names[1], second)).status, 200);
    let swapped =
        json!({ whole.as_str(): { "name": "Weather", "chunks": [names[1], names[0]] } }).to_string();
    let wrong = ask(&server.token, "POST", difs, swapped.as_bytes()).json()[&whole].clone();
    assert_eq!(
        (&wrong["state"], &wrong["detail"]),
        (&json!("error"), &json!("the pieces make another file"))
    );
    let done = assemble(&server.token);
    assert_eq!((&done["state"], &done["dif"]["objectName"]), (&json!("ok"), &json!("Weather")), "{done}");
    assert_eq!(assemble(other)["state"], "ok", "of the same project");
    server.settle();
    assert!(!server.titles()[0].contains("+ 0x"), "{:?}", server.titles());
    let text = sha1_of(b"no symbols");
    assert_eq!(ask(&server.token, "POST", chunks, &piece(&text, b"no symbols")).status, 200);
    let wanted = json!({ text.as_str(): { "name": "text", "chunks": [text] } }).to_string();
    let refused = ask(&server.token, "POST", difs, wanted.as_bytes()).json()[&text].clone();
    assert_eq!(refused["state"], "error", "{refused}");
    assert_eq!(ask(&server.token, "POST", difs, b"{\"../../etc\": {}}").status, 400);
}

#[test]
fn files_are_served_as_other_clients_ask_for_them() {
    let server = Running::start();
    let weather = dwarf("Weather.app", "Weather");
    let answer = server.upload("Weather", &weather);
    let files = answer["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["arch"] == "arm64").unwrap();
    let uuid = file["id"].as_str().unwrap();
    let digits = uuid.replace('-', "");
    for path in [
        format!("buildid/{}/debuginfo", digits.to_lowercase()),
        format!("_.dwarf/mach-uuid-sym-{digits}/_.dwarf"),
        format!("{}/{}/debuginfo", &digits[..2], &digits[2..]),
    ] {
        let answer = server.get(&format!("/symbols/1/{path}"));
        assert!(answer.status == 200 && answer.body == weather, "{path}");
    }
    // A dSYM has no code.
    assert_eq!(server.get(&format!("/symbols/1/Weather/mach-uuid-{digits}/Weather")).status, 404);
    let path = format!("/symbols/default/Weather/{digits}0/Weather.sym");
    let sym = server.get(&format!("{path}?code_file=Weather&code_id=")).text();
    assert!(sym.starts_with(&format!("MODULE Mac arm64 {digits}0 Weather\n")), "{}", &sym[..80]);
    assert!(sym.contains("\nFUNC ") && sym.contains("\nFILE "));
    let left = std::fs::read_dir(server.directory.join("data/symbols/uploads")).unwrap().count();
    assert_eq!(left, 0);
    assert_eq!(server.get(&format!("/symbols/1/Weather/{}0/Weather.sym", "0".repeat(32))).status, 404);
    // Clients' keys are in every app: they do not fetch symbols.
    let key = format!("Bearer {}", server.key);
    assert_ne!(request(server.address, "GET", &path, &[("Authorization", &key)], b"").status, 200);
    // An address of a function that the symbol file has, asked for by Mozilla's protocol.
    let func = sym.lines().find(|line| line.starts_with("FUNC ") && line.contains("main")).unwrap();
    let words: Vec<_> = func.splitn(5, ' ').collect();
    let offset = u64::from_str_radix(words[1], 16).unwrap() + 4;
    let asked = json!({ "jobs": [{
        "memoryMap": [["Weather", format!("{digits}0")], ["libc.so", "AAAA"]],
        "stacks": [[[0, offset], [1, 16], [-1, 17]]],
    }] });
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let answer = server.post("/symbols/1/symbolicate/v5", &headers, asked.to_string().as_bytes()).json();
    let result = &answer["results"][0];
    assert_eq!(result["found_modules"], json!({ format!("Weather/{digits}0"): true, "libc.so/AAAA": false }));
    let frames = result["stacks"][0].as_array().unwrap();
    assert_eq!(frames[0]["function"], words[4], "{frames:?}");
    assert_eq!((&frames[0]["function_offset"], &frames[0]["frame"]), (&json!("0x4"), &json!(0)));
    assert!(frames[0]["line"].is_u64() && frames[0]["file"].is_string());
    assert_eq!(frames[1], json!({ "frame": 1, "module": "libc.so", "module_offset": "0x10" }));
    assert_eq!(frames[2], json!({ "frame": 2, "module": "<unknown>", "module_offset": "0x11" }));
    assert_eq!(server.post("/symbols/1/symbolicate/v5", &headers, b"{}").status, 400);
}

/// As Sentry's own tools ask Symbolicator.
#[test]
fn symbolicators_clients_are_answered() {
    let server = Running::start();
    let uploaded = server.upload("Weather", &dwarf("Weather.app", "Weather"));
    let file = uploaded["files"].as_array().unwrap().iter().find(|file| file["arch"] == "arm64").unwrap();
    let id = file["id"].as_str().unwrap().to_ascii_lowercase();
    let digits = id.replace('-', "").to_ascii_uppercase();
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Authorization", bearer.as_str())];
    // Where a function with several inlined ones lies, by the other protocol.
    let sym = server.get(&format!("/symbols/default/Weather/{digits}0/Weather.sym")).text();
    let function = sym.lines().find(|line| line.starts_with("FUNC ")).unwrap();
    let words: Vec<_> = function.splitn(5, ' ').collect();
    let start = u64::from_str_radix(words[1], 16).unwrap();
    let base = 0x1_0400_0000_u64;
    let asked = json!({
        "modules": [
            { "type": "macho", "debug_id": id, "image_addr": format!("{base:#x}"), "image_size": 0x10_0000, "code_file": "/a/Weather" },
            { "type": "elf", "debug_id": "00000000-0000-0000-0000-000000000001", "image_addr": "0x7f0000000000", "image_size": 4096 },
            { "type": "elf", "image_addr": "0x100", "image_size": 1 },
        ],
        "stacktraces": [{
            "registers": { "pc": "0x1" },
            "frames": [
                { "instruction_addr": format!("{:#x}", base + start) },
                // Returned to: its call is the last instruction before.
                { "instruction_addr": base + start + 4 },
                { "instruction_addr": start, "addr_mode": "rel:0", "adjust_instruction_addr": false },
                { "instruction_addr": "0x7f0000000010" },
                { "instruction_addr": "0x10" },
            ],
        }],
    });
    let path = "/symbols/default/symbolicate";
    let answer = server.post(path, &headers, asked.to_string().as_bytes()).json();
    assert_eq!(answer["status"], "completed");
    let statuses: Vec<_> =
        answer["modules"].as_array().unwrap().iter().map(|it| it["debug_status"].clone()).collect();
    assert_eq!(statuses, ["found", "missing", "unused"]);
    assert_eq!(answer["stacktraces"][0]["registers"], json!({ "pc": "0x1" }));
    let frames = answer["stacktraces"][0]["frames"].as_array().unwrap();
    let of =
        |index: u64| frames.iter().filter(move |frame| frame["original_index"] == index).collect::<Vec<_>>();
    for index in [0, 1, 2] {
        let last = of(index).pop().unwrap();
        assert_eq!(
            (&last["status"], &last["function"]),
            (&json!("symbolicated"), &json!(words[4])),
            "{index}: {last}"
        );
        assert_eq!(
            (&last["sym_addr"], &last["package"]),
            (&json!(format!("{:#x}", base + start)), &json!("/a/Weather"))
        );
        assert!(last["lineno"].is_u64() && last["filename"].is_string() && last["abs_path"].is_string());
    }
    assert_eq!((&of(3)[0]["status"], &of(4)[0]["status"]), (&json!("missing"), &json!("unknown_image")));
    assert_eq!(server.post(path, &headers, b"{}").status, 400);
    assert_eq!(server.post(path, &[], asked.to_string().as_bytes()).status, 401);
}

/// As `upload_symbols.py` of Mozilla's sends symbols.
#[test]
fn teckens_clients_send_archives_of_symbol_files() {
    let server = Running::start();
    let id = "0123456789ABCDEF0123456789ABCDEF0";
    let sym = format!(
        "MODULE Linux x86_64 {id} shop\nFILE 0 order.cpp\nFUNC 1000 10 0 write_order()\n1000 10 17 0\n"
    );
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file(format!("shop/{id}/shop.sym"), zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(sym.as_bytes()).unwrap();
    let archive = archive.finish().unwrap().into_inner();
    let mut form =
        b"--XX\r\nContent-Disposition: form-data; name=\"symbols.zip\"; filename=\"symbols.zip\"\r\n\r\n"
            .to_vec();
    form.extend([&archive[..], b"\r\n--XX--\r\n"].concat());
    let send = |token: &str, form: &[u8]| {
        let headers = [("Auth-Token", token), ("Content-Type", "multipart/form-data; boundary=XX")];
        server.post("/upload/", &headers, form)
    };
    assert_eq!(send("wrong", &form).status, 401);
    assert_eq!(send(&server.key, &form).status, 403, "apps add no symbols");
    assert_eq!(send(&server.token, b"--XX--\r\n").status, 400);
    let answer = send(&server.token, &form);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let upload = &answer.json()["upload"];
    assert_eq!((&upload["filename"], &upload["size"]), (&json!("symbols.zip"), &json!(archive.len())));
    assert_eq!(
        (&upload["files"][0]["kind"], &upload["files"][0]["new"]),
        (&json!("symbol file"), &json!(true))
    );
    // A token of a project says which one is meant.
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Authorization", bearer.as_str())];
    server.post("/api/v1/projects", &headers, b"{\"slug\": \"other\"}");
    let made = server.post("/api/v1/projects/other/tokens", &headers, b"{\"scope\": \"symbols\"}").json();
    assert_eq!(send(made["token"].as_str().unwrap(), &form).status, 201);
    assert_eq!(server.number("SELECT count(DISTINCT project) FROM symbol_file"), 2);
    // What Tecken's readers ask for.
    let path = format!("/symbols/default/shop/{id}/shop.sym");
    let found = request(server.address, "GET", &path, &headers, b"");
    assert_eq!((found.status, found.text()), (200, sym));
}
