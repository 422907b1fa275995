//! `backtrail upload`: symbols for a server.

use crate::io::console::Console;
use crate::io::file::refuse_pipe;
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::tally::Tally;
use backtrail::FileData;
use backtrail_store::{Index, JsonClient, Location, Method, NoProgress, ScanOptions};
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Sends symbols to a server of `backtrail serve`, which names with them the reports that it has and those to come.
///
/// Fingerprints of libraries (.btsdk, see `sdk learn`) among them, link maps and rules tell the server whose code it is.
///
/// What the server has already is not sent again, not even the pieces of a large file that broke off. See docs/server.md.
#[derive(Args, Debug)]
pub(crate) struct Upload {
    /// Binaries, debug files, dSYM bundles, tables, archives, fingerprints (.btsdk), or directories of such, searched recursively.
    #[arg(required_unless_present_any = ["link_map", "rules"], value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The linker's map of a build. Repeatable.
    #[arg(long, value_name = "F")]
    link_map: Vec<PathBuf>,
    /// Rules of your own (docs/rules.md), in the place of those that the project has; needs a token for members.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// The server's address.
    #[arg(long, value_name = "URL")]
    to: String,
    /// The project's short name or number.
    #[arg(long, value_name = "PROJECT", default_value = "default")]
    project: String,
    /// A token for symbols. Others see the command line: in scripts set the variable BACKTRAIL_TOKEN.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

/// The time that a server may take for a file that it has got whole.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Digests that are asked for at a time.
const TOGETHER: usize = 5_000;

/// Files that are larger are sent in pieces of so many bytes: what arrived of one is not sent again.
const PIECE: usize = 8 << 20;

/// Bytes of a body that the server is asked for first.
const LARGE: usize = 64 << 10;

/// How often a piece is sent, with longer and longer waits in between.
const ATTEMPTS: u32 = 4;

/// A file that is to be sent.
struct Candidate {
    location: Location,
    digest: String,
}

#[derive(Deserialize)]
struct Missing {
    missing: HashSet<String>,
}

/// What became of a file whose pieces were to be put together.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Assembled {
    state: String,
    #[serde(default)]
    missing_chunks: Vec<String>,
    detail: Option<String>,
    kept: Option<Answer>,
}

#[derive(Deserialize, Default)]
struct Answer {
    #[serde(default)]
    files: Vec<Received>,
    #[serde(default)]
    problems: Vec<String>,
}

#[derive(Deserialize)]
struct Received {
    id: String,
    arch: String,
    lacks: Option<String>,
    waited: u64,
}

#[derive(Deserialize)]
struct Refusal {
    detail: String,
}

pub(crate) fn run(args: &Upload, console: &Console) -> Result<Outcome, Failure> {
    if !["http://", "https://"].iter().any(|scheme| args.to.starts_with(scheme)) {
        return Err(Failure::Input(format!(
            "--to {}: expected an address that begins with https:// or http://",
            args.to
        )));
    }
    let token = args
        .token
        .clone()
        .or_else(|| std::env::var("BACKTRAIL_TOKEN").ok())
        .filter(|token| !token.is_empty());
    // In an address it stands where a user's name does.
    if token.is_none() && !args.to.contains('@') {
        return Err(Failure::Input(
            "expected a token for symbols: the variable BACKTRAIL_TOKEN, or --token; the page of the project's set-up makes them"
                .to_owned(),
        ));
    }
    let server = Server { client: JsonClient::new(&args.to, token, TIMEOUT), args };
    let index = Index::scan(&args.paths, &ScanOptions::default(), &NoProgress);
    let mut tally = Tally::default();
    for problem in index.problems() {
        console.warn(problem);
        tally.failed(problem.place().to_owned());
    }
    let candidates = candidates(&index, &mut tally, console);
    let sources = Source::all(args);
    if candidates.is_empty() && sources.is_empty() {
        return Err(Failure::Input(
            "no binary or debug file with an identity (UUID, build id) was found, and no fingerprint"
                .to_owned(),
        ));
    }
    let mut out = console.stdout();
    let mut text = Text::new(&mut out, Style::PLAIN);
    // Before the symbols: reports that wait for those are then worked once.
    for source in &sources {
        let name = source.path.display();
        match server.give(source) {
            Ok(kept) => {
                let version = kept.version.map(|version| format!(" {version}")).unwrap_or_default();
                text.line(format_args!("{name}: sent, {} {}{version}", kept.kind, kept.name))?;
                tally.read(Outcome::Done);
            }
            Err(problem) => {
                console.warn(format_args!("{name}: {problem}"));
                tally.failed(name.to_string());
            }
        }
    }
    let missing = if candidates.is_empty() { HashSet::new() } else { server.missing(&candidates)? };
    let mut sent = HashSet::new();
    for candidate in &candidates {
        let name = candidate.location.to_string();
        if !missing.contains(&candidate.digest) || !sent.insert(&candidate.digest) {
            text.line(format_args!("{name}: there already"))?;
            tally.read(Outcome::Done);
            continue;
        }
        match server.put(&index, candidate) {
            Ok(answer) if answer.files.is_empty() && answer.problems.is_empty() => {
                text.line(format_args!("{name}: there already"))?;
                tally.read(Outcome::Done);
            }
            Ok(answer) => {
                show(&mut text, &name, &answer)?;
                answer.problems.iter().for_each(|problem| console.warn(format_args!("{name}: {problem}")));
                tally.read(if answer.problems.is_empty() { Outcome::Done } else { Outcome::Incomplete });
            }
            Err(problem) => {
                console.warn(format_args!("{name}: {problem}"));
                tally.failed(name);
            }
        }
    }
    out.flush()?;
    Ok(tally.finish("files", console))
}

/// A file that tells whose code it is.
struct Source {
    path: PathBuf,
    /// Where the server takes it.
    place: String,
}

/// How it is kept there.
#[derive(Deserialize)]
struct Kept {
    kind: String,
    name: String,
    version: Option<String>,
}

impl Source {
    fn all(args: &Upload) -> Vec<Self> {
        let mut fingerprints = Vec::new();
        args.paths.iter().for_each(|path| find_fingerprints(path, 0, &mut fingerprints));
        fingerprints.sort();
        let name = |path: &Path| in_path(&path.file_name().unwrap_or_default().to_string_lossy());
        let at = |place: &'static str| {
            move |path: PathBuf| Self { place: format!("{place}/{}", name(&path)), path }
        };
        let maps = args.link_map.iter().cloned().map(at("link-maps"));
        let rules = args.rules.iter().map(|path| Self { path: path.clone(), place: "rules".to_owned() });
        fingerprints.into_iter().map(at("fingerprints")).chain(maps).chain(rules).collect()
    }
}

/// How deep directories are searched.
const MAX_DEPTH: usize = 32;

fn find_fingerprints(path: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let inside = std::fs::read_dir(path).into_iter().flatten().flatten();
        // What links lead to is found where it is.
        let inside = inside.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        if depth < MAX_DEPTH {
            inside.for_each(|entry| find_fingerprints(&entry.path(), depth + 1, found));
        }
    } else if path.extension().is_some_and(|extension| extension == "btsdk") && path.is_file() {
        found.push(path.to_owned());
    }
}

/// The files that a server can use, each once.
fn candidates(index: &Index, tally: &mut Tally, console: &Console) -> Vec<Candidate> {
    let with_id = index.entries().iter().filter(|entry| entry.identity.id.is_some());
    let locations: BTreeSet<_> = with_id.map(|entry| entry.location.clone()).collect();
    let mut candidates = Vec::new();
    for location in locations {
        match index.open_file(&location) {
            Ok(data) => candidates.push(Candidate { location, digest: hex(&Sha256::digest(&*data)) }),
            Err(error) => {
                console.warn(&error);
                tally.failed(location.to_string());
            }
        }
    }
    candidates
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn show(text: &mut Text<'_>, name: &str, answer: &Answer) -> std::io::Result<()> {
    for Received { id, arch, lacks, waited } in &answer.files {
        let lacks = lacks.as_ref().map_or(String::new(), |lacks| format!(", without {lacks}"));
        let waited = match waited {
            0 => String::new(),
            1 => ", 1 report waited for it".to_owned(),
            count => format!(", {count} reports waited for it"),
        };
        text.line(format_args!("{name}: sent, {arch} {id}{lacks}{waited}"))?;
    }
    Ok(())
}

/// The server that is sent to.
struct Server<'a> {
    client: JsonClient,
    args: &'a Upload,
}

impl Server<'_> {
    fn path(&self, rest: &str) -> String {
        format!("/api/v1/projects/{}/{rest}", in_path(&self.args.project))
    }

    /// Sends what tells whose code it is.
    fn give(&self, source: &Source) -> Result<Kept, String> {
        refuse_pipe(&source.path)?;
        let data = FileData::map(&source.path).map_err(|error| error.to_string())?;
        let answer = self.ask(Method::Put, &self.path(&source.place), &data);
        answer.map_err(|problem| format!("the server {problem}"))
    }

    /// The digests of what it does not have.
    fn missing(&self, candidates: &[Candidate]) -> Result<HashSet<String>, Failure> {
        let mut missing = HashSet::new();
        for some in candidates.chunks(TOGETHER) {
            let digests: Vec<_> = some.iter().map(|candidate| &candidate.digest).collect();
            let asked = json!({ "sha256": digests }).to_string();
            let answer = self.ask::<Missing>(Method::Post, &self.path("symbols-missing"), asked.as_bytes());
            let answer = answer.map_err(|problem| Failure::Input(format!("the server {problem}")))?;
            missing.extend(answer.missing);
        }
        Ok(missing)
    }

    fn put(&self, index: &Index, candidate: &Candidate) -> Result<Answer, String> {
        let data = index.open_file(&candidate.location).map_err(|error| error.to_string())?;
        if data.len() > PIECE
            && let Some(answer) = self.put_pieces(&data, candidate.location.file_name())?
        {
            return Ok(answer);
        }
        let path = self.path(&format!("symbols/{}", in_path(candidate.location.file_name())));
        self.ask(Method::Put, &path, &data).map_err(|problem| format!("the server {problem}"))
    }

    /// Sends a file as sentry-cli does: asks which of its pieces are not there, sends these, and has them put together. `None` where the
    /// pieces do not stay: behind one address may be several servers.
    fn put_pieces(&self, data: &[u8], name: &str) -> Result<Option<Answer>, String> {
        let pieces: Vec<_> = data.chunks(PIECE).map(|piece| (hex(&Sha1::digest(piece)), piece)).collect();
        let names: Vec<_> = pieces.iter().map(|(name, _)| name).collect();
        let whole = hex(&Sha1::digest(data));
        let wanted = json!({ &whole: { "name": name, "chunks": names } }).to_string();
        let path = format!("/api/0/projects/default/{}/files/difs/assemble/", in_path(&self.args.project));
        // Another upload may take the same piece away: it puts a file together that has it, too.
        for _ in 0..ATTEMPTS {
            let answer = self.ask::<HashMap<String, Assembled>>(Method::Post, &path, wanted.as_bytes());
            let mut answer = answer.map_err(|problem| format!("the server {problem}"))?;
            let assembled = answer.remove(&whole).ok_or("the server says nothing of the file")?;
            match assembled.state.as_str() {
                "not_found" => {}
                "ok" => return Ok(Some(assembled.kept.unwrap_or_default())),
                _ => return Err(assembled.detail.unwrap_or(assembled.state)),
            }
            let missing: HashSet<_> = assembled.missing_chunks.into_iter().collect();
            let mut sent = HashSet::new();
            for (name, piece) in pieces.iter().filter(|(name, _)| missing.contains(name)) {
                if sent.insert(name) {
                    self.put_piece(name, piece)?;
                }
            }
        }
        Ok(None)
    }

    fn put_piece(&self, name: &str, piece: &[u8]) -> Result<(), String> {
        // No piece has its own hash in it.
        let boundary = format!("piece-{name}");
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        let body = [head.as_bytes(), piece, format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
        let kind = format!("multipart/form-data; boundary={boundary}");
        let headers = [("Content-Type", kind.as_str())];
        let mut attempt = 1;
        loop {
            let answer = self.client.send_with(
                Method::Post,
                "/api/0/organizations/default/chunk-upload/",
                &headers,
                &body,
            );
            // What the server refuses it refuses again, but for what it asks to be sent later.
            let problem = match answer {
                Ok((200, _)) => return Ok(()),
                Ok((status @ (429 | 500..), _)) => format!("answered {status}"),
                Ok((status, answer)) => return Err(format!("the server {}", refusal(status, &answer))),
                Err(problem) => problem,
            };
            if attempt >= ATTEMPTS {
                return Err(format!("the server {problem}; what has arrived is not sent again"));
            }
            std::thread::sleep(Duration::from_millis(250 << attempt));
            attempt += 1;
        }
    }

    fn ask<T: for<'d> Deserialize<'d>>(&self, method: Method, path: &str, body: &[u8]) -> Result<T, String> {
        // Who may not send a large file is told so before it goes: a refusal in the midst of it is lost with the connection.
        let headers: &[_] = if body.len() > LARGE { &[("Expect", "100-continue")] } else { &[] };
        let (status, answer) = self.client.send_with(method, path, headers, body)?;
        if status != 200 {
            return Err(refusal(status, &answer));
        }
        serde_json::from_slice(&answer)
            .map_err(|_| "answered something else: is it a backtrail server?".to_owned())
    }
}

fn refusal(status: u16, answer: &[u8]) -> String {
    let why = serde_json::from_slice(answer).map(|Refusal { detail }| format!(": {detail}"));
    format!("answered {status}{}", why.unwrap_or_default())
}

/// A text as a part of an address's path: RFC 3986, 2.3.
fn in_path(text: &str) -> String {
    let text = if text.is_empty() { "unnamed" } else { text };
    text.bytes().fold(String::new(), |mut path, byte| {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_~".contains(&byte);
        let _ = if is_plain { write!(path, "{}", char::from(byte)) } else { write!(path, "%{byte:02X}") };
        path
    })
}
