//! Why frames have no names: what is said, and what helps.

use crate::target::{Target, program, run, stacks, traceable};
use backtrail_testkit::{HttpAnswer, HttpServer, TempDir};
use serde_json::Value;
use std::process::Command;

/// Waits in a function that nothing exports. Code of its own waits, so that the C library's symbols do not matter.
const SOURCE: &str = r#"
#include <stdio.h>
#include <unistd.h>
volatile int stop;
__attribute__((noinline)) static void wait_in_vain(void) { while (!stop) usleep(1000); }
__attribute__((noinline)) int exported(void) { wait_in_vain(); return stop; }
int main(void) {
    printf("%d\n", getpid());
    fflush(stdout);
    return exported();
}
"#;

/// The same, without its debug info and symbols; they are in the file that is second.
fn stripped(directory: &TempDir, options: &[&str]) -> Option<(std::path::PathBuf, Vec<u8>)> {
    let options = [options, &["-Wl,--build-id=sha1", "-O1", "-fno-optimize-sibling-calls"]].concat();
    let program = traceable(directory, SOURCE, "cc", &options)?;
    let debug = directory.join("program.debug");
    let copied = run(Command::new("objcopy").arg("--only-keep-debug").args([&program, &debug]));
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    let striped = run(Command::new("strip").arg(&program));
    assert_eq!(striped.code, Some(0), "{}", striped.stderr);
    Some((program, std::fs::read(debug).unwrap()))
}

fn own_image(json: &Value) -> &Value {
    json["images"].as_array().unwrap().iter().find(|image| image["name"] == "program").unwrap()
}

/// The names of the frames in the program itself, innermost first; an empty one where there is none.
fn own_names(json: &Value) -> Vec<String> {
    let frames = json["threads"][0]["frames"].as_array().unwrap();
    let own = frames.iter().filter(|frame| frame["image"] == "program");
    let name = |frame: &Value| {
        let function = frame["functions"][0]["name"].as_str().or(frame["symbol"]["name"].as_str());
        function.unwrap_or_default().to_owned()
    };
    own.map(name).collect()
}

#[test]
fn a_stripped_program_is_said_to_be_one_and_named_by_a_server() {
    let directory = TempDir::new("live-stripped");
    let Some((path, debug)) = stripped(&directory, &[]) else { return };
    let target = Target::start(&mut Command::new(path));
    let pid = target.id.to_string();

    let json = stacks(target.id, &[]);
    let image = own_image(&json);
    assert_eq!(image["symbols"], "stripped", "{image}");
    assert!(image["unnamed_frames"].as_u64().unwrap() >= 3, "{image}");
    assert!(image["how_to_get"].as_str().unwrap().contains("--debuginfod"), "{image}");
    let text = run(Command::new(program()).args(["stacks", &pid]));
    assert_eq!(text.code, Some(1), "{}", text.stdout);
    let table = text.stdout.split("Frames without names\n").nth(1).unwrap();
    assert!(table.contains("/program  ") && table.contains("the file has no names for them"), "{table}");
    assert!(table.contains("to get them: --debuginfod; or -s "), "{table}");

    let (server, cache) = (HttpServer::new(), TempDir::new("live-debuginfod"));
    let id = image["id"].as_str().unwrap();
    server.answer(&format!("/buildid/{id}/debuginfo"), HttpAnswer::File(debug));
    let with_server = run(Command::new(program())
        .args(["stacks", &pid, "--debuginfod", "--format", "json"])
        .env("DEBUGINFOD_URLS", &server.url)
        .env("DEBUGINFOD_CACHE_PATH", cache.path()));
    let json = serde_json::from_str(&with_server.stdout).unwrap();
    let names = own_names(&json);
    assert_eq!(names[..3], ["wait_in_vain", "exported", "main"]);
    assert_eq!(own_image(&json)["symbols"], "found");
    // Of images without frames, and of what has its debug info here, nothing is asked.
    let asked = server.asked();
    assert!(asked.iter().all(|path| path.starts_with("/buildid/") && path.len() < 70), "{asked:?}");
    assert!(asked.iter().all(|path| !path.ends_with("/executable")), "{asked:?}");
}

#[test]
fn between_exports_nothing_is_named_after_them() {
    let directory = TempDir::new("live-exports");
    let Some((path, _)) = stripped(&directory, &["-rdynamic"]) else { return };
    let target = Target::start(&mut Command::new(path));
    let json = stacks(target.id, &[]);
    let image = own_image(&json);
    assert_eq!(image["symbols"], "exports-only", "{image}");
    assert_eq!(
        own_names(&json)[..3],
        ["", "exported", "main"],
        "the local function lies before or behind one of these"
    );
    let text = run(Command::new(program()).args(["stacks", &target.id.to_string()]));
    assert!(text.stdout.contains("the file names only what it exports"), "{}", text.stdout);
}
