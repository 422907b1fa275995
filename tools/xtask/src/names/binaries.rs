//! The names of a binary's symbol tables.

use super::{LLVM, Names, filtered};
use crate::{Result, sh};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// How each scheme's names start, behind an underscore more or not, and whether LLVM reads them.
const SCHEMES: [(&str, &[&str], bool); 4] = [
    ("C++", &["_Z", "___Z"], true),
    ("Swift", &["$s", "$S", "_T0"], false),
    ("Rust v0", &["_RN", "_RI", "_RM", "_RX", "_RY"], true),
    ("Rust legacy", &["_ZN"], false),
];

pub(super) fn judge(names: &Names, label: &str, path: &Path) -> Result<()> {
    let all = symbols(path)?;
    for (scheme, starts, is_llvms) in SCHEMES {
        let of_scheme: Vec<&str> = all
            .iter()
            .filter_map(|name| starts.iter().find_map(|start| without_underscore(name, start)))
            .filter(|name| is_legacy_rust(name) == (scheme == "Rust legacy"))
            .collect();
        if of_scheme.is_empty() {
            continue;
        }
        let ours = filtered(&mut Command::new(&names.program), &of_scheme)?;
        let label = format!("{label}, {scheme}");
        if is_llvms {
            let theirs = filtered(&mut Command::new(LLVM), &of_scheme)?;
            names.compare(&label, &of_scheme, &ours, &theirs, None);
        } else {
            left(&label, &of_scheme, &ours, names.is_shown);
        }
    }
    Ok(())
}

/// Of a scheme that nothing else at hand reads: which names stay mangled.
fn left(label: &str, names: &[&str], ours: &[String], is_shown: bool) {
    let left: Vec<_> = names.iter().zip(ours).filter(|(name, ours)| *name == ours).collect();
    if is_shown {
        left.iter().for_each(|(name, _)| eprintln!("{name}"));
    }
    println!("| {label} | {} | – | – | – | – | {}, – |", names.len(), left.len());
}

/// Both tables, without the versions of symbols; a file without one of them has the other.
fn symbols(path: &Path) -> Result<BTreeSet<String>> {
    let table = |arguments: &[&str]| {
        let mut command = Command::new("llvm-nm-22");
        command.args(["--no-demangle", "--quiet", "--format=just-symbols"]).args(arguments).arg(path);
        sh::output(&mut command)
    };
    let printed = table(&[])? + &table(&["--dynamic"]).unwrap_or_default();
    Ok(printed.lines().filter_map(|line| line.split('@').next()).map(str::to_owned).collect())
}

/// The name without the underscore that Mach-O adds, if it starts like that.
fn without_underscore<'n>(name: &'n str, start: &str) -> Option<&'n str> {
    let bare = name.strip_prefix('_').unwrap_or(name);
    [bare, name].into_iter().find(|name| name.starts_with(start))
}

/// Rust's legacy names are C++ names with a hash at the end, which is not shown.
fn is_legacy_rust(name: &str) -> bool {
    let hash = name.rsplit_once("17h").and_then(|(_, rest)| rest.split_at_checked(16));
    hash.is_some_and(|(hash, rest)| {
        rest.starts_with('E') && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscores_of_mach_o_are_taken_off() {
        for (name, start, bare) in [
            ("_Z1fv", "_Z", Some("_Z1fv")),
            ("__Z1fv", "_Z", Some("_Z1fv")),
            ("____Z1fv_block_invoke", "___Z", Some("___Z1fv_block_invoke")),
            ("_$s1a", "$s", Some("$s1a")),
            ("_main", "_Z", None),
        ] {
            assert_eq!(without_underscore(name, start), bare);
        }
        assert!(is_legacy_rust("_ZN1a1b17h0a1b2c3d4e5f6071E") && !is_legacy_rust("_ZN1a1bE"));
    }
}
