//! Command lines out of any bytes: arguments, files, standard input and environment. `fuzz/fuzz_targets/command_line.rs` is
//! built of this file, too.
//!
//! What holds for each of them: an exit code of 0, 1 or 2; no input is changed; nothing that a terminal obeys is shown to
//! people. They write below one directory, name no process, and ask nobody but the file system. Each command of the program is
//! among them (`every_command_is_among_them`). Left out is what does not end (a server, `watch` of what runs) and
//! `serve make-tables`, which limits the process that it runs in: fuzz target `convert` has the work of it.

use backtrail_cli::{Console, Environment, Streams};
use std::ffi::OsString;
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What files are made of, before they are changed: the larger ones of the repository would only be slow.
const SEEDS: [(&str, &str); 10] = [
    ("a.ips", "fixtures/sample/reports/null-member.ips"),
    ("b.crash", "fixtures/sample/reports/sdk-exception.crash"),
    ("sub/a.ips", "fixtures/sample/reports/watchdog.ips"),
    ("bin", "fixtures/symbolize/bin/gcc-cold.elf"),
    ("macho", "fixtures/symbolize/bin/macho-arm64.dwarf"),
    ("dump.dmp", "fixtures/threads/threads.i386.dmp"),
    ("lib.a", "fixtures/vendor/libMeter.a"),
    ("app", "fixtures/vendor/app/Shop.app/Shop"),
    ("app.map", "fixtures/vendor/Shop.map"),
    ("metrickit.json", "fixtures/kinds/metrickit.json"),
];

/// Commands as they are used, and what may be added. Words in capitals stand for a choice.
pub(crate) const COMMANDS: [(&str, &[&str]); 36] = [
    (
        "symbolicate REPORT",
        &[
            "REPORT",
            "-s PATH",
            "-o OUT",
            "-o OUT",
            "-o OUT",
            "--format text",
            "--format json",
            "--format html",
            "--format crash",
            "--cache CACHE",
            "--color always",
        ],
    ),
    (
        "symbolicate REPORT -o OUT",
        &["REPORT", "REPORT", "-s PATH", "--format json", "--format crash", "--format html"],
    ),
    ("symbolicate -", &["REPORT", "-o OUT", "--format crash"]),
    ("explain REPORT", &["REPORT", "PATH", "--format json", "--color always", "--color never"]),
    (
        "lookup -e BINARY ADDRESS",
        &[
            "ADDRESS",
            "WORD",
            "-s PATH",
            "--format json",
            "--format llvm",
            "--format llvm-json",
            "--arch arm64",
            "--arch WORD",
            "--load-address 0x10000",
            "--slide 0x10",
            "--cache CACHE",
        ],
    ),
    ("lookup -e BINARY", &["--format json", "--format llvm", "--format llvm-json", "-s PATH"]),
    (
        "stacks --minidump DUMP",
        &[
            "-s PATH",
            "--format json",
            "--format collapsed",
            "--detail names",
            "--detail addresses",
            "--no-fold",
            "--max-frames 2",
            "--cache CACHE",
            "--color always",
        ],
    ),
    ("stacks --core PATH", &["-e BINARY", "-s PATH", "--format json"]),
    ("stacks --offline PATH", &["-s PATH", "--format collapsed"]),
    (
        "convert BINARY -o OUT",
        &[
            "PATH",
            "BINARY",
            "--format gsym",
            "--format breakpad",
            "--verify",
            "--stats",
            "--json",
            "--jobs 1",
        ],
    ),
    ("images PATH", &["PATH", "--format json", "-s PATH"]),
    (
        "cfi BINARY",
        &["--address ADDRESS", "--function WORD", "--function outer", "--arch x86_64", "--format json"],
    ),
    (
        "demangle WORD",
        &[
            "WORD",
            "_Z3foov",
            "$s4main3runyyF",
            "-p",
            "--quote",
            "--max-length 8",
            "--fold-depth 0",
            "-t",
            "-s swift",
        ],
    ),
    ("demangle", &["--quote", "-n", "-_", "--simplified"]),
    (
        "addr2line -e BINARY ADDRESS",
        &[
            "-a",
            "-f",
            "-i",
            "-C",
            "-p",
            "-s",
            "-j .text",
            "-j WORD",
            "ADDRESS",
            "WORD",
            "@OPTIONS",
            "--version",
        ],
    ),
    (
        "atos -o BINARY ADDRESS",
        &["-i", "-fullPath", "-d WORD", "-l 0x1000", "-offset", "-f PATH", "ADDRESS", "WORD"],
    ),
    ("generate man CACHE", &[]),
    ("generate completions CACHE", &[]),
    (
        "group REPORT",
        &[
            "REPORT",
            "PATH",
            "-s PATH",
            "--sdk LIBRARY",
            "--link-map PATH",
            "--rules PATH",
            "--by owner",
            "--by version",
            "--by os",
            "--by kind",
            "--format json",
            "--format csv",
            "--format html",
            "-o OUT",
            "-o OUT",
            "--diff PATH",
            "--fail-on new",
            "--state OUT",
            "--state PATH",
            "--explain REPORT",
            "--sessions 7",
            "--sessions PATH",
            "--cache CACHE",
            "--color always",
        ],
    ),
    ("group REPORT --explain REPORT", &["-s PATH", "--format json", "--rules PATH"]),
    ("group REPORT --diff GROUPS", &["--format json", "--fail-on new", "-o OUT", "REPORT"]),
    ("group REPORT --state GROUPS", &["REPORT", "--format json", "-o OUT"]),
    (
        "symbolicate REPORT --sdk LIBRARY",
        &[
            "REPORT",
            "--sdk PATH",
            "--link-map app.map",
            "--link-map PATH",
            "--rules PATH",
            "--format json",
            "--format summary",
            "--format minidump",
            "-o OUT",
        ],
    ),
    ("sdk learn lib.a -n WORD --lib-version WORD -o OUT", &["PATH", "-o OUT", "--color always"]),
    ("sdk learn PATH -n Meter --lib-version 1 -o OUT", &["PATH"]),
    (
        "sdk map app --sdk LIBRARY",
        &["--sdk PATH", "--sdk LIBRARY", "--link-map app.map", "--link-map PATH", "--format json"],
    ),
    ("sdk map PATH --sdk LIBRARY", &["--sdk PATH", "--format json", "--color always"]),
    ("sdk mine REPORT --sdk LIBRARY", &["REPORT", "PATH", "--sdk PATH", "--format json"]),
    ("sdk stamp LIBRARY -n WORD -o OUT", &["--lib-version WORD", "PATH"]),
    ("sdk unstamp LIBRARY -n Meter -o OUT", &["PATH", "-n WORD"]),
    ("ndk-stack --sym PATH", &["--dump REPORT", "-i PATH", "-dump PATH", "--color always"]),
    // At this port nobody listens.
    ("upload PATH --to http://127.0.0.1:1", &["PATH", "--token WORD", "--project WORD"]),
    (
        "serve --data CACHE --check",
        &[
            "--data PATH",
            "--objects PATH",
            "--renew-token",
            "--url WORD",
            "--keep-days WORD",
            "backup OUT",
            "restore PATH",
            "export",
        ],
    ),
    // No process has this id; `absent` is no program.
    ("watch --core-pattern 999999999 -o CACHE", &["-s PATH", "-o OUT", "-q", "--max-reports 1", "--hang 5"]),
    ("watch -o CACHE -- absent", &["WORD"]),
    ("help", &["lookup", "WORD", "--version", "--color always"]),
];

const REPORTS: [&str; 6] = ["a.ips", "b.crash", "sub/a.ips", "sub", ".", "link"];
const BINARIES: [&str; 3] = ["bin", "macho", "dump.dmp"];
const PATHS: [&str; 13] = [
    "a.ips",
    "b.crash",
    "sub/a.ips",
    "bin",
    "macho",
    "dump.dmp",
    "sub",
    ".",
    "absent",
    "link",
    "lib.a",
    "app.map",
    "options",
];
/// Static libraries and fingerprints.
const LIBRARIES: [&str; 4] = ["lib.a", "lib.a", "fingerprint", "app"];
/// Files of words that the choices gave, which come first where text is asked for.
const GROUPS: [&str; 3] = ["groups.json", "groups.json", "options"];
const ADDRESSES: [&str; 8] = ["0x1000", "1004", "0", "ffffffffffffffff", "0x11317", "zebra", "-1", ""];

/// Where `-o` points: new and old files, inputs, links to them, directories, devices.
const OUTPUTS: [&str; 11] = [
    "out.txt",
    "out/",
    "old",
    "a.ips",
    "b.crash",
    "bin",
    "link",
    "sub",
    "/dev/stdout",
    "/dev/null",
    "/dev/full",
];

/// Decisions, taken from bytes; 0 where they have run out.
struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, count: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % count.max(1)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let chosen = self.below(choices.len());
        choices[chosen]
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream that takes so many bytes, as a disk that fills up or a reader that leaves.
struct Failing(usize, io::ErrorKind);

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.0);
        self.0 -= count;
        if count == 0 && !bytes.is_empty() { Err(self.1.into()) } else { Ok(count) }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The files that command lines name.
struct Files<'a> {
    directory: &'a Path,
    contents: Vec<(PathBuf, Vec<u8>)>,
}

impl<'a> Files<'a> {
    fn write(directory: &'a Path, seeds: &[(String, Vec<u8>)], choices: &mut Choices<'_>) -> Self {
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir_all(directory.join("sub")).unwrap();
        let mut contents = Vec::new();
        contents.extend(seeds.iter().map(|(name, seed)| (directory.join(name), seed.clone())));
        for _ in 0..choices.below(4) {
            let chosen = choices.below(contents.len());
            change(&mut contents[chosen].1, choices);
        }
        contents.push((directory.join("old"), b"what was there".to_vec()));
        let count = choices.below(64);
        contents.push((directory.join("options"), choices.bytes(count).to_vec()));
        for (path, bytes) in &contents {
            std::fs::write(path, bytes).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("a.ips", directory.join("link")).unwrap();
        Self { directory, contents }
    }

    fn path(&self, name: &str) -> OsString {
        if name.starts_with("/dev/") { name.into() } else { self.directory.join(name).into() }
    }

    /// Files that the command line names elsewhere than behind `-o` are as they were.
    fn check(&self, argv: &[OsString]) {
        // What was read so far is kept where it was.
        let is_state = |position: usize| argv.get(position - 1).is_some_and(|word| word == "--state");
        let is_output = |position: usize| {
            is_state(position)
                || argv.get(position - 1).is_some_and(|word| word == "-o" || word == "--output")
        };
        let is_atos = argv.get(1).is_some_and(|word| word == "atos");
        let is_symbolicate = argv.get(1).is_some_and(|word| word == "symbolicate");
        let is_report = |position: usize| {
            is_symbolicate
                && !argv
                    .get(position - 1)
                    .is_some_and(|word| ["-o", "-s", "--cache"].iter().any(|flag| word == flag))
        };
        for (path, bytes) in &self.contents {
            let is_link = |word: &OsString| path.ends_with("a.ips") && Path::new(word).ends_with("link");
            let is_input = argv.iter().enumerate().skip(1).any(|(position, word)| {
                let is_below = || Path::new(word).is_dir() && path.starts_with(word);
                (is_atos && !is_state(position) || !is_output(position))
                    && (*word == path.as_os_str() || is_link(word))
                    || is_report(position) && is_below()
            });
            if is_input {
                assert!(std::fs::read(path).unwrap() == *bytes, "{}: changed by {argv:?}", path.display());
            }
        }
    }
}

/// Leaves the seed as it is, or cuts it, or puts other bytes somewhere.
fn change(bytes: &mut Vec<u8>, choices: &mut Choices<'_>) {
    for _ in 0..choices.below(4) {
        let at = choices.below(bytes.len());
        let count = choices.below(24);
        match choices.below(4) {
            0 => bytes.truncate(at),
            1 => drop(bytes.splice(at..at, choices.bytes(count).to_vec())),
            _ => {
                for (place, byte) in bytes.iter_mut().skip(at).zip(choices.bytes(count)) {
                    *place = *byte;
                }
            }
        }
    }
}

/// A word that is no path, no flag, and no number, which could be the id of a process.
fn word(choices: &mut Choices<'_>) -> OsString {
    let count = choices.below(40);
    let bytes: Vec<_> =
        choices.bytes(count).iter().copied().filter(|byte| !matches!(byte, 0 | b'/')).collect();
    let is_number = std::str::from_utf8(&bytes).is_ok_and(|text| text.parse::<u64>().is_ok());
    let mut whole = if is_number || bytes.starts_with(b"-") || bytes.starts_with(b"@") {
        b"z".to_vec()
    } else {
        Vec::new()
    };
    whole.extend(bytes);
    #[cfg(unix)]
    return std::os::unix::ffi::OsStringExt::from_vec(whole);
    #[cfg(not(unix))]
    return String::from_utf8_lossy(&whole).into_owned().into();
}

/// What a word of `COMMANDS` stands for.
fn meant(token: &str, files: &Files<'_>, choices: &mut Choices<'_>) -> OsString {
    match token {
        "REPORT" => files.path(choices.one_of(&REPORTS)),
        "BINARY" => files.path(choices.one_of(&BINARIES)),
        "DUMP" => files.path("dump.dmp"),
        "PATH" => files.path(choices.one_of(&PATHS)),
        "OUT" => files.path(choices.one_of(&OUTPUTS)),
        "CACHE" => files.path("cache"),
        "LIBRARY" => files.path(choices.one_of(&LIBRARIES)),
        "GROUPS" => files.path(choices.one_of(&GROUPS)),
        "lib.a" | "app" | "app.map" | "absent" => files.path(token),
        "ADDRESS" => choices.one_of(&ADDRESSES).into(),
        "WORD" => word(choices),
        "@OPTIONS" => {
            let mut at = OsString::from("@");
            at.push(files.path("options"));
            at
        }
        token => token.into(),
    }
}

fn argv(files: &Files<'_>, choices: &mut Choices<'_>) -> Vec<OsString> {
    let (command, options) = choices.one_of(&COMMANDS);
    let mut argv: Vec<OsString> = vec!["backtrail".into()];
    argv.extend(command.split_whitespace().map(|token| meant(token, files, choices)));
    for _ in 0..choices.below(5) {
        if options.is_empty() {
            break;
        }
        argv.extend(choices.one_of(options).split_whitespace().map(|token| meant(token, files, choices)));
    }
    // What nobody means: a word too many.
    if choices.below(8) == 0 {
        argv.push(word(choices));
    }
    argv
}

/// Whether the bytes are those of other tools, which are escaped on terminals only.
fn is_of_tools(argv: &[OsString]) -> bool {
    let is_tool = |word: &OsString| {
        ["addr2line", "atos", "demangle", "ndk-stack", "crash", "llvm", "llvm-json", "/dev/stdout"]
            .iter()
            .any(|tool| word == tool)
            || word.as_encoded_bytes().ends_with(b"=crash")
    };
    argv.iter().any(is_tool)
}

fn is_unsafe(character: char) -> bool {
    let code = u32::from(character);
    (code < 0x20 && !matches!(character, '\n' | '\t'))
        || (0x7f..0xa0).contains(&code)
        || matches!(code, 0xad | 0x61c | 0xfeff | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xe0000..=0xe007f)
}

/// What stands behind a progress line of ours, or behind the spaces that wipe it out: on a machine that is busy any run may
/// show one on a terminal.
fn behind_progress(found: &str) -> Option<&str> {
    let line = found.strip_prefix('\r')?;
    let shown = ["looking for symbols: ", "converting [", "asking debuginfod: ", "grouping: "];
    shown
        .iter()
        .find_map(|start| line.strip_prefix(start))
        .or_else(|| line.trim_start_matches(' ').strip_prefix('\r'))
}

/// Fails where something is left of the output besides safe text, our own colours and progress.
fn check_shown(bytes: &[u8], argv: &[OsString], is_coloured: bool, has_progress: bool) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{argv:?}: {error}"));
    let mut rest = text;
    while let Some(at) = rest.find(is_unsafe) {
        let (before, found) = rest.split_at(at);
        if let Some(after) = behind_progress(found).filter(|_| has_progress) {
            rest = after;
            continue;
        }
        let colour = found
            .strip_prefix("\u{1b}[")
            .filter(|_| is_coloured)
            .map(|code| code.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        match colour.and_then(|code| code.strip_prefix('m')) {
            Some(after) => rest = after,
            None => panic!("{argv:?}: {:?}", found.chars().take(8).collect::<String>() + before),
        }
    }
}

/// The seeds' bytes, by name: files of the repository, and what the program makes of them.
pub(crate) fn seeds(root: &Path) -> Vec<(String, Vec<u8>)> {
    let file = |(name, path): &(&str, &str)| ((*name).to_owned(), std::fs::read(root.join(path)).unwrap());
    let library = root.join("fixtures/vendor/libMeter.a");
    let reports = root.join("fixtures/sample/reports");
    let (library, reports) = (library.to_str().unwrap(), reports.to_str().unwrap());
    let directory = backtrail_testkit::TempDir::new("command-line-seeds");
    let mut seeds: Vec<_> = SEEDS.iter().map(file).collect();
    for (name, arguments) in [
        ("fingerprint", &["sdk", "learn", library, "-n", "Meter", "--lib-version", "1"][..]),
        ("groups.json", &["group", reports, "--format", "json"]),
    ] {
        let place = directory.join(name);
        let mut argv: Vec<OsString> = vec!["backtrail".into()];
        argv.extend(arguments.iter().map(OsString::from));
        argv.extend(["-o".into(), place.clone().into()]);
        let streams = Streams {
            stdin: Box::new(io::empty()),
            stdout: Box::new(io::sink()),
            stderr: Box::new(io::sink()),
        };
        let code = backtrail_cli::run(argv, &Console::new(streams, Environment::default()));
        assert!(code < 2, "{arguments:?}: {code}");
        seeds.push((name.to_owned(), std::fs::read(place).unwrap()));
    }
    seeds
}

/// Runs the command line that `data` stands for, below `directory`, which is made anew.
pub(crate) fn check(data: &[u8], seeds: &[(String, Vec<u8>)], directory: &Path) -> u8 {
    let mut choices = Choices(data);
    let switches = choices.byte();
    let is = |bit: u8| switches & 1 << bit != 0;
    let environment = Environment {
        stdout_is_terminal: is(0),
        stderr_is_terminal: is(1),
        no_color: is(2),
        clicolor_force: is(3),
        clicolor_off: is(4),
        terminal_is_dumb: is(5),
    };
    let room = choices.below(1 << 12);
    let files = Files::write(directory, seeds, &mut choices);
    let argv = argv(&files, &mut choices);
    let (out, err) = (Shared::default(), Shared::default());
    let kind = if is(0) { io::ErrorKind::StorageFull } else { io::ErrorKind::BrokenPipe };
    let streams = Streams {
        stdin: Box::new(Cursor::new(choices.bytes(1 << 16).to_vec())),
        stdout: if is(6) { Box::new(Failing(room, kind)) } else { Box::new(out.clone()) },
        stderr: if is(7) { Box::new(Failing(room, kind)) } else { Box::new(err.clone()) },
    };
    let code = backtrail_cli::run(argv.clone(), &Console::new(streams, environment));
    assert!(code <= 2, "{argv:?}: exit code {code}");
    files.check(&argv);
    let is_coloured = is(3) || argv.iter().any(|word| word == "always") || is(0) || is(1);
    check_shown(&err.bytes(), &argv, is_coloured, environment.stderr_is_terminal);
    if !is_of_tools(&argv)
        || (environment.stdout_is_terminal && !argv.iter().any(|word| word == "/dev/stdout"))
    {
        check_shown(&out.bytes(), &argv, is_coloured, false);
    }
    code
}
