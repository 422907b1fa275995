//! Reports of the crashes, as `backtrail symbolicate` reads them.

use crate::Result;
use crate::builds::Crash;
use backtrail::{Begins, Group, Grouped, Limits, NoProgress, Symbols};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One report: a crash with or without names, whole or cut.
pub(crate) struct Report {
    pub(crate) bug: String,
    pub(crate) build: String,
    /// `whole`, `cut at 6`, `without names`.
    pub(crate) form: String,
    pub(crate) key: Option<String>,
    pub(crate) symbol_key: Option<String>,
    /// The same by the library, with what shows where the stack was cut.
    pub(crate) group: Option<Group>,
    pub(crate) begins: Begins,
    /// The signal, or what the report calls the event.
    pub(crate) event: String,
    pub(crate) message: String,
    /// Names of functions, innermost first, as far as they are known; those of the system too.
    pub(crate) names: Vec<String>,
    /// The frames, for fixtures.
    pub(crate) frames: Vec<Value>,
}

/// Stacks are cut to so many frames, as reporters with little room do.
const CUTS: [usize; 2] = [8, 5];

/// Reads the cores with and without symbols, and stacks that were cut.
pub(crate) fn read_all(program: &Path, directory: &Path, crashes: &[Crash]) -> Result<Vec<Report>> {
    let mut all = Vec::new();
    let empty = directory.join("none");
    fs::create_dir_all(&empty).map_err(|error| format!("{}: {error}", empty.display()))?;
    let mut of_build: HashMap<&Path, Vec<&Crash>> = HashMap::new();
    for crash in crashes {
        of_build.entry(&crash.symbols).or_default().push(crash);
    }
    let mut places: Vec<_> = of_build.into_iter().collect();
    places.sort_by_key(|(symbols, _)| symbols.to_path_buf());
    for (symbols, crashes) in places {
        let cores: Vec<PathBuf> = crashes.iter().map(|crash| crash.core.clone()).collect();
        for (form, symbols) in [("whole", symbols), ("without names", &empty)] {
            let read = Read::of(program, symbols, &cores)?;
            for crash in &crashes {
                all.extend(read.report(crash.bug, &crash.build, form, &crash.core));
            }
            if form == "whole" {
                cut_all(program, directory, symbols, &crashes, &read, &mut all)?;
            }
        }
    }
    Ok(all)
}

/// What the program and the library say of files.
struct Read {
    documents: HashMap<String, Value>,
    grouped: HashMap<PathBuf, Grouped>,
}

impl Read {
    fn of(program: &Path, symbols: &Path, files: &[PathBuf]) -> Result<Self> {
        let documents = symbolicate(program, symbols, files)?;
        let symbols = Symbols::scan(&[symbols.to_path_buf()], &NoProgress);
        let mut grouped = HashMap::new();
        for file in files {
            let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
            if let Ok(it) = Grouped::new(&bytes, &symbols, &Limits::default()) {
                grouped.insert(file.clone(), it);
            }
        }
        Ok(Self { documents, grouped })
    }

    fn report(&self, bug: &str, build: &str, form: &str, file: &Path) -> Option<Report> {
        let json = self.documents.get(file.to_string_lossy().as_ref())?;
        let mut report = of(bug, build, form, json);
        let grouped = self.grouped.get(file)?;
        report.group.clone_from(&grouped.group);
        report.begins = grouped.begins.clone();
        Some(report)
    }
}

/// Reads the cores with symbols only.
pub(crate) fn read_whole(program: &Path, crashes: &[Crash]) -> Result<Vec<Report>> {
    let mut all = Vec::new();
    for of_build in crashes.chunk_by(|one, other| one.symbols == other.symbols) {
        let cores: Vec<PathBuf> = of_build.iter().map(|crash| crash.core.clone()).collect();
        let Some(first) = of_build.first() else { continue };
        let read = symbolicate(program, &first.symbols, &cores)?;
        for crash in of_build {
            let json = read.get(crash.core.to_string_lossy().as_ref());
            all.extend(json.map(|json| of(crash.bug, &crash.build, "whole", json)));
        }
    }
    Ok(all)
}

fn cut_all(
    program: &Path,
    directory: &Path,
    symbols: &Path,
    crashes: &[&Crash],
    read: &Read,
    all: &mut Vec<Report>,
) -> Result<()> {
    let room = directory.join("cut");
    let _ = fs::remove_dir_all(&room);
    fs::create_dir_all(&room).map_err(|error| format!("{}: {error}", room.display()))?;
    let mut files = Vec::new();
    for (position, crash) in crashes.iter().enumerate() {
        let Some(json) = read.documents.get(crash.core.to_string_lossy().as_ref()) else { continue };
        let said = read.grouped.get(&crash.core).and_then(said);
        for count in CUTS {
            for (form, said) in [("", None), (WITH_WORDS, said.as_deref())] {
                let file = room.join(format!("{position}-{count}{form}.txt"));
                fs::write(&file, tombstone(json, crash, count, said))
                    .map_err(|error| format!("{}: {error}", file.display()))?;
                files.push((*crash, format!("cut at {count}{form}"), file));
            }
        }
    }
    let paths: Vec<PathBuf> = files.iter().map(|(_, _, path)| path.clone()).collect();
    let read = Read::of(program, symbols, &paths)?;
    for (crash, form, path) in &files {
        all.extend(read.report(crash.bug, &crash.build, form, path));
    }
    Ok(())
}

/// Of cut stacks in reports that have the words of the exception or of the abort.
pub(crate) const WITH_WORDS: &str = ", with words";

/// What Android's runtime hands to debuggerd when it ends a program: the exception, or the words of who called `abort`.
fn said(grouped: &Grouped) -> Option<String> {
    let thrown = grouped.report.thrown.as_ref().map(|thrown| {
        let reason = thrown.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("terminating with uncaught exception of type {}{reason}", thrown.name)
    });
    let mut lines = grouped.report.app_info.iter().flat_map(|info| &info.lines);
    thrown.or_else(|| lines.next().cloned())
}

/// Runs the program over all files and returns its documents by file.
fn symbolicate(program: &Path, symbols: &Path, files: &[PathBuf]) -> Result<HashMap<String, Value>> {
    let mut command = Command::new(program);
    command.args(["symbolicate", "--format", "json", "-s"]).arg(symbols).args(files).stderr(Stdio::null());
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let documents = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_file = |json: Value| Some((json.get("file")?.as_str()?.to_owned(), json));
    Ok(documents.filter_map(of_file).collect())
}

fn text(value: &Value, path: &str) -> Option<String> {
    value.pointer(path).and_then(Value::as_str).map(str::to_owned)
}

fn crashed_frames(json: &Value) -> Vec<Value> {
    let threads = json.get("threads").and_then(Value::as_array).cloned().unwrap_or_default();
    let crashed = threads.iter().find(|thread| thread.get("crashed").and_then(Value::as_bool) == Some(true));
    let crashed = crashed.or(threads.first());
    crashed.and_then(|thread| thread.get("frames")).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Reads reports of others, which were labelled by them.
pub(crate) fn read_labelled(
    program: &Path,
    symbols: &Path,
    labelled: &[(String, PathBuf)],
) -> Result<Vec<Report>> {
    let mut all = Vec::new();
    for some in labelled.chunks(128) {
        let files: Vec<PathBuf> = some.iter().map(|(_, file)| file.clone()).collect();
        let read = symbolicate(program, symbols, &files)?;
        for (label, file) in some {
            let json = read.get(file.to_string_lossy().as_ref());
            all.extend(json.map(|json| of(label, &file.to_string_lossy(), "whole", json)));
        }
    }
    Ok(all)
}

fn of(bug: &str, build: &str, form: &str, json: &Value) -> Report {
    let frames = crashed_frames(json);
    let mut names = Vec::new();
    for frame in &frames {
        let functions = frame.get("functions").and_then(Value::as_array).cloned().unwrap_or_default();
        let of_functions: Vec<String> =
            functions.iter().filter_map(|function| text(function, "/name")).collect();
        let fallback = text(frame, "/symbol/name");
        names.extend(if of_functions.is_empty() { fallback.into_iter().collect() } else { of_functions });
    }
    let signal = text(json, "/exception/signal").or_else(|| text(json, "/exception/type"));
    Report {
        bug: bug.to_owned(),
        build: build.to_owned(),
        form: form.to_owned(),
        key: text(json, "/group/key"),
        symbol_key: text(json, "/group/symbol_key"),
        group: None,
        begins: Begins::default(),
        event: signal.unwrap_or_default(),
        message: text(json, "/exception/message").unwrap_or_default(),
        names,
        frames: frames.into_iter().take(80).collect(),
    }
}

/// The crash as Android's debuggerd writes it, with the innermost frames only.
fn tombstone(json: &Value, crash: &Crash, count: usize, said: Option<&str>) -> String {
    let signal = text(json, "/exception/signal").unwrap_or_default();
    let number = match signal.as_str() {
        "SIGABRT" => 6,
        "SIGILL" => 4,
        "SIGTRAP" => 5,
        "SIGBUS" => 7,
        "SIGFPE" => 8,
        _ => 11,
    };
    let abi = if crash.build.starts_with("arm64") { "arm64" } else { "x86_64" };
    let mut out = format!(
        "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\nBuild fingerprint: 'truth/truth:13/T/1:user/release-keys'\nRevision: '0'\nABI: '{abi}'\npid: 100, tid: 100, name: app  >>> com.example.app <<<\nsignal {number} ({signal}), code 1 (SEGV_MAPERR), fault addr 0x0\n"
    );
    if let Some(said) = said {
        out.push_str(&format!("Abort message: '{said}'\n"));
    }
    out.push_str("\nbacktrace:\n");
    let images = json.get("images").and_then(Value::as_array).cloned().unwrap_or_default();
    for (position, frame) in crashed_frames(json).iter().take(count).enumerate() {
        let image = text(frame, "/image").unwrap_or_default();
        let found = images.iter().find(|it| text(it, "/name").as_deref() == Some(image.as_str()));
        let id = found.and_then(|it| text(it, "/id")).unwrap_or_default();
        let place = if image == "app" {
            "/data/app/com.example.app/lib/app".to_owned()
        } else {
            format!("/system/lib64/{image}")
        };
        let pc = text(frame, "/relative_pc").unwrap_or_default();
        let pc = u64::from_str_radix(pc.trim_start_matches("0x"), 16).unwrap_or_default();
        out.push_str(&format!(
            "      #{position:02} pc {pc:016x}  {place} (BuildId: {})\n",
            id.to_lowercase()
        ));
    }
    out
}
