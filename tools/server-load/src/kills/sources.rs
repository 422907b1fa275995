//! What kills are looked at by of whose code it is: a project of its own whose rules, fingerprints and link maps change all the time. Once all is
//! worked again, each of its reports says what its present ones say.

use super::{Result, read};
use crate::Server;
use crate::client::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

/// The project, which is made second.
pub(super) const PROJECT: u64 = 2;

/// Versions of the library that there are fingerprints of. Each is sent again only once it was removed.
const VERSIONS: usize = 24;

/// What is sent: a report of the app whose code it is, and what tells that.
pub(super) struct Files {
    pub(super) report: Vec<u8>,
    fingerprints: Vec<Vec<u8>>,
    link_map: Vec<u8>,
}

/// A request that changes what is known.
#[derive(Clone)]
pub(super) enum Change {
    Rules(String),
    /// With its position.
    Fingerprint(usize, Vec<u8>),
    LinkMap(Vec<u8>),
    /// By its number, with its SHA-256.
    Remove(u64, String),
}

/// What is there after the changes that were acknowledged.
#[derive(Default)]
pub(super) struct There {
    /// The numbers of fingerprints and maps, by their SHA-256, with the positions of fingerprints.
    sources: BTreeMap<String, (u64, Option<usize>)>,
    /// Fingerprints that are there or on their way.
    used: BTreeSet<usize>,
    /// What removing was asked of: it may be there until that is acknowledged.
    leaving: BTreeSet<String>,
    rules: BTreeSet<String>,
}

/// Makes the project, and gives it its app, whose SHA-256 is given back.
pub(super) fn start(program: &Path, directory: &Path, server: &Server) -> Result<(Files, String)> {
    let vendor = Path::new("fixtures/vendor");
    let learnt = directory.join("learnt.btsdk");
    let learn = |version: usize| {
        let mut learn = Command::new(program);
        learn.args(["sdk", "learn"]).arg(vendor.join("libLedger.a")).arg("-o").arg(&learnt);
        learn.args(["-n", "Ledger", "--lib-version", &format!("1.{version}")]).stdout(Stdio::null());
        let is_learnt = learn.status().is_ok_and(|status| status.success());
        if is_learnt { read(&learnt) } else { Err("sdk learn failed".to_owned()) }
    };
    let files = Files {
        report: read(&vendor.join("reports/ledger-crash.ips"))?,
        fingerprints: (0..VERSIONS).map(learn).collect::<Result<_>>()?,
        link_map: read(&vendor.join("Shop.map"))?,
    };
    let mut connection = Connection::open(&server.address)?;
    let mut ask = |what: &str, body: &[u8]| {
        let head = format!(
            "{what} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
            server.token,
            body.len()
        );
        connection.ask(&head, &[body])
    };
    ask("POST /api/v1/projects", br#"{"slug": "vendor", "name": "Vendor"}"#)?;
    let app = read(&vendor.join("app/Shop.app/Shop"))?;
    let answer = ask(&format!("PUT /api/v1/projects/{PROJECT}/symbols/Shop"), &app)?;
    let answer = String::from_utf8_lossy(&answer);
    let digest = answer.split_once("\"sha256\":\"").and_then(|(_, rest)| rest.split('"').next());
    Ok((files, digest.ok_or_else(|| format!("no digest: {answer}"))?.to_owned()))
}

impl Files {
    /// The change of a number; something is removed as often as something is added.
    pub(super) fn change(&self, number: u64, there: &mut There) -> Change {
        let removable = there.sources.iter().find(|(digest, _)| !there.leaving.contains(*digest));
        match (number % 5, removable) {
            (0, _) => {
                // Every other file of rules says nothing of the app.
                let module = if number.is_multiple_of(10) { "Shop" } else { "Other" };
                let rules =
                    format!("[[owner]]\nkind = \"sdk\"\nmodule = \"{module}\"\nname = \"Owner {number}\"\n");
                there.rules.insert(rules.clone());
                Change::Rules(rules)
            }
            (3 | 4, Some((digest, (id, _)))) => {
                let remove = Change::Remove(*id, digest.clone());
                there.leaving.insert(digest.clone());
                remove
            }
            (1 | 3, _) if there.used.len() < VERSIONS => {
                let mut free = self.fingerprints.iter().enumerate();
                let free = free.find(|(position, _)| !there.used.contains(position));
                let (position, bytes) =
                    free.map(|(position, bytes)| (position, bytes.clone())).unwrap_or_default();
                there.used.insert(position);
                Change::Fingerprint(position, bytes)
            }
            _ => Change::LinkMap([&self.link_map, format!("\n# {number}\n").as_bytes()].concat()),
        }
    }
}

impl Change {
    /// The request's line, and its body.
    pub(super) fn request(&self) -> (String, &[u8]) {
        let base = format!("/api/v1/projects/{PROJECT}");
        match self {
            Self::Rules(rules) => (format!("PUT {base}/rules"), rules.as_bytes()),
            Self::Fingerprint(_, bytes) => (format!("PUT {base}/fingerprints/Ledger.btsdk"), bytes),
            Self::LinkMap(bytes) => (format!("PUT {base}/link-maps/Shop.map"), bytes),
            Self::Remove(id, _) => (format!("DELETE {base}/owner-sources/{id}"), b""),
        }
    }

    /// Writes down that it was acknowledged.
    pub(super) fn acknowledged(&self, answer: &str, there: &mut There) -> Result<()> {
        let answer: serde_json::Value = serde_json::from_str(answer).map_err(|error| error.to_string())?;
        let id = answer.get("id").and_then(serde_json::Value::as_u64);
        match (self, answer.get("sha256").and_then(serde_json::Value::as_str), id) {
            (Self::Rules(_), Some(_), _) => {}
            (Self::Remove(_, digest), ..) => {
                there.leaving.remove(digest);
                if let Some((_, Some(position))) = there.sources.remove(digest) {
                    there.used.remove(&position);
                }
            }
            (_, Some(digest), Some(id)) => {
                let position = if let Self::Fingerprint(position, _) = self { Some(*position) } else { None };
                there.sources.insert(digest.to_owned(), (id, position));
            }
            _ => return Err(format!("neither digest nor number: {answer}")),
        }
        Ok(())
    }
}

/// What an export says of the project.
#[derive(Default)]
pub(super) struct Exported {
    sources: BTreeSet<String>,
    owners: BTreeMap<String, String>,
}

impl Exported {
    pub(super) fn add(&mut self, line: &serde_json::Value) {
        let text =
            |name: &str| line.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        if line.get("project").and_then(serde_json::Value::as_u64) != Some(PROJECT) {
            return;
        }
        match text("type").as_str() {
            "owner_source" if text("kind") != "rules" => drop(self.sources.insert(text("sha256"))),
            "report" => drop(self.owners.insert(text("owner"), text("id"))),
            _ => {}
        }
    }

    /// Compares it with what was acknowledged, and the reports with one another and with the rules that the server has.
    pub(super) fn compare(&self, server: &Server, there: &There) -> Result<()> {
        let acknowledged: BTreeSet<String> = there.sources.keys().cloned().collect();
        if self.sources != acknowledged {
            return Err(format!(
                "owner sources: {:?} were acknowledged, {:?} are there",
                acknowledged, self.sources
            ));
        }
        if there.rules.is_empty() {
            return Ok(());
        }
        let mut connection = Connection::open(&server.address)?;
        let rules = server.get(&mut connection, &format!("/api/v1/projects/{PROJECT}/rules"))?;
        let rules = String::from_utf8_lossy(&rules).into_owned();
        if !there.rules.contains(&rules) {
            return Err(format!("rules that nobody sent are there: {rules}"));
        }
        let named = rules.split_once("name = \"").and_then(|(_, rest)| rest.split('"').next());
        let has =
            |is_fingerprint| there.sources.values().any(|(_, position)| position.is_some() == is_fingerprint);
        let expected = match (has(true), has(false), rules.contains("\"Shop\"")) {
            // What a map says stands above rules, and these above what fingerprints say.
            (true, true, _) | (true, false, false) => Some("sdk Ledger".to_owned()),
            (_, _, true) => Some(format!("sdk {}", named.unwrap_or_default())),
            (false, false, false) => Some("app Shop".to_owned()),
            (false, true, false) => None,
        };
        let all_say_it = match &expected {
            Some(owner) => self.owners.keys().all(|other| other == owner),
            None => self.owners.len() <= 1,
        };
        if !all_say_it {
            return Err(format!("owners are {:?}, expected {expected:?}; rules: {rules}", self.owners));
        }
        Ok(())
    }
}
