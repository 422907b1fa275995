//! `deps`: what may depend on what, and what may show where.
//!
//! The edges are those of ARCHITECTURE.md. A new one is a decision, made there and here in the same commit.

mod documented;
mod foreign;
mod shared;
mod unsafety;

use crate::{Result, fuzz, sh, source};
use serde_json::Value;

/// Every crate and the crates below that it may use. `testkit` may besides be a dev-dependency of all. What is in
/// `tools/` may use any of them, and none of them uses that. A crate of this table need not exist yet.
const EDGES: &[(&str, &[&str])] = &[
    // L0
    ("core", &[]),
    // L1
    ("model", &["core"]),
    ("object", &["core"]),
    ("unwind", &["core"]),
    ("table", &["core"]),
    ("demangle", &[]),
    ("sys", &["core"]),
    // L2
    ("report", &["model", "demangle", "core"]),
    ("symbolize", &["object", "table", "demangle", "core"]),
    // Its tests read reports.
    ("diagnose", &["report", "model", "core"]),
    ("capture", &["model", "sys", "core"]),
    // L3
    ("store", &["model", "object", "table", "unwind", "sys", "core"]),
    ("sdk", &["object", "core"]),
    // L4
    ("resolve", &["store", "sdk", "symbolize", "model", "object", "table", "unwind", "demangle", "core"]),
    ("stacks", &["store", "capture", "model", "object", "unwind", "core"]),
    // L5
    ("crash", &["stacks", "store", "capture", "object", "demangle", "sys", "core"]),
    // Its tests crash.
    ("altstack", &["crash", "capture", "sys"]),
    // Its tests crash, too.
    ("watch", &["crash", "stacks", "store", "capture", "model", "sys", "core"]),
    ("hang", &["stacks", "resolve", "capture", "model", "sys", "core"]),
    // L6. Its tests look into captures, files and tables themselves.
    (
        "backtrail",
        &[
            "hang", "stacks", "resolve", "diagnose", "store", "sdk", "report", "model", "demangle", "core",
            "capture", "object", "table", "unwind",
        ],
    ),
    // L7
    ("render", &["backtrail"]),
    // L8
    ("server", &["render", "backtrail", "store", "core"]),
    // L9
    ("cli", &["server", "render", "watch", "backtrail", "store"]),
    ("ffi", &["crash", "backtrail"]),
    // For tests only.
    ("testkit", &["core"]),
];

/// Crates whose list of foreign dependencies is part of their promise.
const FOREIGN: [(&str, &[&str]); 2] = [("core", &[]), ("demangle", &["rustc-demangle", "undname"])];

pub(crate) fn run(_: &[String]) -> Result<()> {
    let mut faults = edges()?;
    faults.extend(documented::faults(&sh::read(&sh::root().join("ARCHITECTURE.md"))?, EDGES));
    let files = source::all()?;
    faults.extend(files.iter().flat_map(foreign::faults));
    faults.extend(unsafety::faults(&files));
    faults.extend(shared::faults()?);
    faults.extend(fuzz::faults()?);
    sh::faults(&faults)
}

fn edges() -> Result<Vec<String>> {
    let metadata = sh::output(sh::cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata)
        .map_err(|error| format!("cargo metadata printed no JSON: {error}"))?;
    let packages = list(&metadata, "packages");
    if packages.is_empty() {
        return Err("cargo metadata names no packages".to_owned());
    }
    Ok(packages.iter().flat_map(package_faults).collect())
}

fn package_faults(package: &Value) -> Vec<String> {
    let name = text(package, "name");
    let short = short(name);
    let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == short) else {
        return vec![format!("{name}: a crate that tools/xtask/src/deps.rs has no edges for")];
    };
    list(package, "dependencies")
        .iter()
        .filter_map(|dependency| edge_fault(short, allowed, dependency))
        .collect()
}

fn edge_fault(from: &str, allowed: &[&str], dependency: &Value) -> Option<String> {
    let name = text(dependency, "name");
    let is_dev = text(dependency, "kind") == "dev";
    if text(dependency, "path").is_empty() {
        let (_, foreign) = FOREIGN.iter().find(|(known, _)| *known == from)?;
        return (!is_dev && !foreign.contains(&name))
            .then(|| format!("{from}: may not depend on {name}, only on {foreign:?}"));
    }
    let to = short(name);
    // A crate names itself for tests that need its features.
    let fine = allowed.contains(&to) || (is_dev && (to == "testkit" || to == from));
    (!fine).then(|| format!("{from} -> {to}: no such edge in ARCHITECTURE.md"))
}

fn short(package: &str) -> &str {
    package.strip_prefix("backtrail-").unwrap_or(package)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
