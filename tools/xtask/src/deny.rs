//! `deny`: licences, sources, duplicates and advisories, by cargo-deny after `deny.toml`.

use crate::{Result, sh};

pub(crate) fn run(_: &[String]) -> Result<()> {
    let deny = |checks: &[&str]| {
        let mut command = sh::cargo();
        command
            .args(["deny", "--workspace", "--all-features", "check", "--hide-inclusion-graph"])
            .args(checks);
        command
    };
    if sh::output(sh::cargo().args(["deny", "--version"])).is_err() {
        return Err("needs cargo-deny: cargo install --locked cargo-deny".to_owned());
    }
    sh::run(&mut deny(&["bans", "licenses", "sources"]))?;
    // The advisories lie in a database on another host, which a closed network does not reach. That is no fault of
    // the dependencies, but it has to be said.
    if sh::output(sh::cargo().args(["deny", "fetch", "db"])).is_err() {
        println!("advisories: not checked, the database could not be fetched");
        return Ok(());
    }
    sh::run(&mut deny(&["advisories"]))
}
