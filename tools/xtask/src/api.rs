//! `api [--check]`: the public API of the library, a line for each item, in `crates/backtrail/api.txt`: written, or with
//! `--check` compared, so that a review sees every change of it.
//!
//! What rustdoc knows as JSON is an unstable format; the crate `rustdoc-types` reads the one of a certain compiler. With
//! another compiler nothing is written, and nothing compared unless `CI` is set.

mod items;
mod types;

use crate::{Result, sh};
use items::Crates;
use rustdoc_types::{Crate, FORMAT_VERSION};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The package that users depend on.
const FACADE: &str = "backtrail";
const SNAPSHOT: &str = "crates/backtrail/api.txt";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let is_check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        other => return Err(format!("no option {}", other.join(" "))),
    };
    let path = sh::root().join(SNAPSHOT);
    if is_check && !path.exists() {
        return Err(format!("{SNAPSHOT} does not exist: cargo xtask api"));
    }
    let Some(crates) = documented()? else {
        let message = format!("needs a compiler whose rustdoc writes format {FORMAT_VERSION} (Rust 1.95)");
        let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        if is_ci || !is_check {
            return Err(message);
        }
        println!("not checked: {message}");
        return Ok(());
    };
    let text = items::text(&crates, FACADE)?;
    if !is_check {
        return sh::write(&path, text);
    }
    let faults = differences(&sh::read(&path)?, &text);
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("{SNAPSHOT} is not the public API; `cargo xtask api` writes it\n{}", faults.join("\n")))
}

/// What one text has and the other has not.
fn differences(known: &str, now: &str) -> Vec<String> {
    let (known, now): (BTreeSet<_>, BTreeSet<_>) = (known.lines().collect(), now.lines().collect());
    let gone = known.difference(&now).map(|line| format!("- {line}"));
    let new = now.difference(&known).map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

/// The documentation of the facade and of every crate of ours below it; `None` where it has another format.
fn documented() -> Result<Option<Crates>> {
    let names = packages()?;
    let mut command = sh::cargo();
    command.args(["doc", "--quiet", "--no-deps", "--lib"]);
    command.args(names.iter().flat_map(|name| ["-p", name]));
    command.env("RUSTDOC", unstable_rustdoc()?);
    command.env("RUSTDOCFLAGS", "-Zunstable-options --output-format=json --cap-lints=allow");
    sh::run(&mut command)?;
    let directory = target_directory()?.join("doc");
    let mut crates = Crates::default();
    for name in names {
        let name = name.replace('-', "_");
        let text = sh::read(&directory.join(format!("{name}.json")))?;
        let Some(parsed) = parse(&text).map_err(|error| format!("{name}.json: {error}"))? else {
            return Ok(None);
        };
        crates.add(name, parsed);
    }
    Ok(Some(crates))
}

/// `None` where the format is another.
fn parse(text: &str) -> Result<Option<Crate>> {
    #[derive(serde::Deserialize)]
    struct Version {
        format_version: u32,
    }
    let version: Version = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if version.format_version != FORMAT_VERSION {
        return Ok(None);
    }
    serde_json::from_str(text).map(Some).map_err(|error| error.to_string())
}

/// A script that lets rustdoc, and it alone, take unstable options: set for the compiler too, the variable would have
/// everything built anew.
fn unstable_rustdoc() -> Result<PathBuf> {
    let path = sh::root().join("target/tools/rustdoc-json");
    sh::write(&path, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n")?;
    sh::run(std::process::Command::new("chmod").arg("+x").arg(&path))?;
    Ok(path)
}

fn metadata() -> Result<Value> {
    let metadata = sh::output(sh::cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata printed no JSON: {error}"))
}

fn target_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let path = metadata.get("target_directory").and_then(Value::as_str);
    path.map(|path| Path::new(path).to_path_buf())
        .ok_or_else(|| "cargo metadata names no target directory".to_owned())
}

/// The facade and all packages of the workspace that it is built of.
fn packages() -> Result<BTreeSet<String>> {
    let metadata = metadata()?;
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let packages = list(&metadata, "packages");
    let (mut found, mut open) = (BTreeSet::new(), vec![FACADE.to_owned()]);
    while let Some(name) = open.pop() {
        let Some(package) = packages.iter().find(|package| text(package, "name") == name) else { continue };
        if found.insert(name) {
            let own = list(package, "dependencies");
            let own =
                own.iter().filter(|other| text(other, "kind") != "dev" && !text(other, "path").is_empty());
            open.extend(own.map(|other| text(other, "name")));
        }
    }
    if found.is_empty() { Err(format!("no package called {FACADE}")) } else { Ok(found) }
}

#[cfg(test)]
mod tests;
