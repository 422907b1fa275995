//! Whose sources are where: directories in which package managers keep those of others, and of nobody else.

use backtrail_core::Confidence;
use backtrail_model::{Owner, OwnerKind};

/// What stands before a package's own directory.
const KEPT_IN: [(&str, &str); 8] = [
    ("/Pods/", "CocoaPods"),
    ("/Carthage/Checkouts/", "Carthage"),
    ("/SourcePackages/checkouts/", "SwiftPM"),
    ("/.build/checkouts/", "SwiftPM"),
    ("/node_modules/", "npm"),
    ("/.cargo/registry/src/", "Cargo"),
    ("/.cargo/git/checkouts/", "Cargo"),
    ("/vcpkg/buildtrees/", "vcpkg"),
];

/// Directories of CocoaPods that are no package's.
const NOT_PODS: [&str; 3] = ["Target Support Files", "Headers", "Local Podspecs"];

/// Whose a source file is.
pub(super) fn owner(path: &str) -> Option<Owner> {
    let (at, before, manager) = KEPT_IN
        .iter()
        // Packages have packages of their own: the innermost counts.
        .filter_map(|(before, manager)| Some((path.rfind(before)?, *before, *manager)))
        .max_by_key(|(at, before, _)| at + before.len())?;
    let mut parts = path.get(at + before.len()..)?.split('/');
    let (name, version) = match manager {
        // `index.crates.io-1949cf8c6b5b557f/regex-1.10.2/src/lib.rs`, `serde-3f1a/0c2d/src/lib.rs`.
        "Cargo" if before.ends_with("src/") => split_version(parts.nth(1)?),
        "Cargo" => (parts.next()?.rsplit_once('-')?.0, None),
        "npm" => {
            let name = parts.next()?;
            if name.starts_with('@') {
                let end = at + before.len() + name.len() + 1 + parts.next()?.len();
                (path.get(at + before.len()..end)?, None)
            } else {
                (name, None)
            }
        }
        _ => (parts.next()?, None),
    };
    // What stands right in that directory is no package.
    let is_package = parts.next().is_some() && !name.is_empty() && !NOT_PODS.contains(&name);
    is_package.then(|| Owner {
        kind: OwnerKind::Sdk,
        name: Some(name.to_owned()),
        version: version.map(str::to_owned),
        confidence: Some(Confidence::Strong),
        how: format!("directory of {manager}").into(),
        file: None,
    })
}

/// `regex-automata-0.4.3` as name and version.
fn split_version(directory: &str) -> (&str, Option<&str>) {
    let is_version = |(at, _): &(usize, &str)| {
        directory.get(at + 1..).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    match directory.match_indices('-').find(is_version) {
        Some((at, _)) => (directory.get(..at).unwrap_or(directory), directory.get(at + 1..)),
        None => (directory, None),
    }
}

#[cfg(test)]
mod tests {
    use super::owner;

    #[test]
    fn packages_are_told_by_where_their_managers_keep_them() {
        for (path, expected) in [
            ("/w/ios/Pods/FooSDK/Foo/a.m", Some(("FooSDK", None))),
            ("/w/ios/Pods/Target Support Files/Foo/a.m", None),
            ("/w/ios/Pods/a.m", None),
            ("/w/Carthage/Checkouts/Bar/Sources/a.swift", Some(("Bar", None))),
            ("/D/SourcePackages/checkouts/firebase-ios-sdk/a.m", Some(("firebase-ios-sdk", None))),
            (
                "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/regex-automata-0.4.3/src/lib.rs",
                Some(("regex-automata", Some("0.4.3"))),
            ),
            ("/root/.cargo/git/checkouts/serde-3f1a/0c2d/src/lib.rs", Some(("serde", None))),
            ("/w/node_modules/react-native/React/a.m", Some(("react-native", None))),
            ("/w/node_modules/@scope/kit/a.m", Some(("@scope/kit", None))),
            ("/w/node_modules/a/node_modules/b/c.m", Some(("b", None))),
            ("/w/MyPods/FooSDK/a.m", None),
            ("/w/Sources/a.m", None),
            ("/Pods/", None),
        ] {
            let found = owner(path);
            let found =
                found.as_ref().map(|owner| (owner.name.as_deref().unwrap(), owner.version.as_deref()));
            assert_eq!(found, expected, "{path}");
        }
    }
}
