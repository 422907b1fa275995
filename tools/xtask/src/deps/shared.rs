//! What the manifests of the product and of the tools both state, since cargo shares nothing between workspaces: the lints
//! and the versions of dependencies.

use crate::{Result, sh};
use std::collections::BTreeMap;

const MANIFEST: &str = "Cargo.toml";
const LINTS: [&str; 2] = ["workspace.lints.rust", "workspace.lints.clippy"];
const DEPENDENCIES: &str = "workspace.dependencies";

/// One line for each lint that is not the same in both manifests, and for each dependency of both whose versions differ.
pub(super) fn faults() -> Result<Vec<String>> {
    let product = sh::read(&sh::root().join(MANIFEST))?;
    let tools = sh::read(&sh::tools().join(MANIFEST))?;
    Ok(compare(&product, &tools))
}

fn compare(product: &str, tools: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for section in LINTS {
        let (product, tools) = (entries(product, section), entries(tools, section));
        let keys = product.keys().chain(tools.keys().filter(|key| !product.contains_key(*key)));
        let different = keys.filter(|key| product.get(*key) != tools.get(*key));
        faults.extend(
            different.map(|key| format!("tools/Cargo.toml: {key} of [{section}] is not that of Cargo.toml")),
        );
    }
    let (product, tools) = (entries(product, DEPENDENCIES), entries(tools, DEPENDENCIES));
    for (name, ours) in &tools {
        // Where a path is, no version decides.
        if let Some(theirs) = product.get(name).filter(|_| !ours.contains("path ="))
            && version(ours) != version(theirs)
        {
            faults.push(format!("tools/Cargo.toml: {name} has another version than in Cargo.toml"));
        }
    }
    faults
}

/// The entries of a section, each of which is one line.
fn entries<'t>(manifest: &'t str, section: &str) -> BTreeMap<&'t str, &'t str> {
    let is_header =
        |line: &&str| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) == Some(section);
    let lines = manifest.lines().skip_while(|line| !is_header(line)).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(" = ")).collect()
}

/// `"1.2"` of `"1.2"` and of `{ version = "1.2", … }`.
fn version(entry: &str) -> Option<&str> {
    let from = entry.split_once("version = ").map_or(entry, |(_, rest)| rest);
    from.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRODUCT: &str = "[workspace.dependencies]\na = { version = \"1.2\", features = [\"b\"] }\nown = { path = \"crates/own\", version = \"0.1\" }\n\n\
                           [workspace.lints.rust]\n# Why.\nunsafe_code = \"deny\"\n[workspace.lints.clippy]\ntodo = \"warn\"\n";

    #[test]
    fn comments_and_features_may_differ() {
        let tools = "[workspace.dependencies]\na = \"1.2\"\nb = \"3\"\nown = { path = \"../crates/own\" }\n\n\
                     [workspace.lints.rust]\nunsafe_code = \"deny\"\n[workspace.lints.clippy]\ntodo = \"warn\"\n";
        assert_eq!(compare(PRODUCT, tools), [""; 0]);
    }

    #[test]
    fn versions_and_lints_may_not() {
        let tools = "[workspace.dependencies]\na = \"1.3\"\n\n\
                     [workspace.lints.rust]\nunsafe_code = \"allow\"\n[workspace.lints.clippy]\npanic = \"warn\"\n";
        let expected = [
            "tools/Cargo.toml: unsafe_code of [workspace.lints.rust] is not that of Cargo.toml",
            "tools/Cargo.toml: todo of [workspace.lints.clippy] is not that of Cargo.toml",
            "tools/Cargo.toml: panic of [workspace.lints.clippy] is not that of Cargo.toml",
            "tools/Cargo.toml: a has another version than in Cargo.toml",
        ];
        assert_eq!(compare(PRODUCT, tools), expected);
    }
}
