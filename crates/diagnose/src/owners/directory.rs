//! Whose sources are where: directories in which package managers keep those of others, and of nobody else.

use backtrail_core::Confidence;
use backtrail_model::{Owner, OwnerKind};

/// What stands before a package's own directory.
const KEPT_IN: [(&str, Manager); 16] = [
    ("/Pods/", Manager::new("CocoaPods", Form::Name)),
    ("/Carthage/Checkouts/", Manager::new("Carthage", Form::Name)),
    ("/SourcePackages/checkouts/", Manager::new("SwiftPM", Form::Name)),
    ("/.build/checkouts/", Manager::new("SwiftPM", Form::Name)),
    ("/node_modules/", Manager::new("npm", Form::Npm)),
    ("/.cargo/registry/src/", Manager::new("Cargo", Form::Registry)),
    ("/.cargo/git/checkouts/", Manager::new("Cargo", Form::Hashed)),
    ("/vcpkg/buildtrees/", Manager::new("vcpkg", Form::Name)),
    ("/.conan/data/", Manager::new("Conan", Form::NameThenVersion)),
    ("/_deps/", Manager::new("CMake", Form::Fetched)),
    ("/pkg/mod/", Manager::new("Go", Form::GoModule)),
    ("/site-packages/", Manager::new("Python", Form::Python)),
    ("/dist-packages/", Manager::new("Python", Form::Python)),
    ("/gems/", Manager::new("RubyGems", Form::Versioned)),
    ("/.pub-cache/hosted/pub.dev/", Manager::new("pub", Form::Versioned)),
    ("/.nuget/packages/", Manager::new("NuGet", Form::NameThenVersion)),
];

/// Who keeps sources in a directory, and how it calls a package's.
#[derive(Clone, Copy)]
struct Manager {
    name: &'static str,
    form: Form,
}

impl Manager {
    const fn new(name: &'static str, form: Form) -> Self {
        Self { name, form }
    }
}

#[derive(Clone, Copy)]
enum Form {
    /// `FooSDK/…`
    Name,
    /// `regex-1.10.2/…`
    Versioned,
    /// `index.crates.io-1949cf8c6b5b557f/regex-1.10.2/…`
    Registry,
    /// `serde-3f1a/0c2d/…`: a hash of the address, and of the commit.
    Hashed,
    /// `zlib/1.2.11/…`
    NameThenVersion,
    /// `json-src/…`, as CMake's `FetchContent` has it.
    Fetched,
    /// `react/…`, `@scope/kit/…`
    Npm,
    /// `github.com/!burnt!sushi/toml@v1.2.0/…`: a capital letter is a small one behind `!` (Go Modules Reference, module cache).
    GoModule,
    /// `requests/…`, or `six.py` alone.
    Python,
}

/// Directories of CocoaPods that are no package's.
const NOT_PODS: [&str; 3] = ["Target Support Files", "Headers", "Local Podspecs"];

/// Whose a source file is.
pub(super) fn owner(path: &str) -> Option<Owner> {
    let (at, manager) = KEPT_IN
        .iter()
        // Packages have packages of their own: the innermost counts.
        .filter_map(|(before, manager)| Some((path.rfind(before)? + before.len(), *manager)))
        .max_by_key(|(at, _)| *at)?;
    let (name, version) = package(path.get(at..)?, manager.form)?;
    Some(Owner {
        kind: OwnerKind::Sdk,
        name: Some(name),
        version: version.map(str::to_owned),
        confidence: Some(Confidence::Strong),
        how: format!("directory of {}", manager.name).into(),
        file: None,
    })
}

/// The package that `inside`, a path in a manager's directory, begins with.
fn package(inside: &str, form: Form) -> Option<(String, Option<&str>)> {
    // What stands right in that directory is no package.
    let (first, rest) = inside.split_once('/').unwrap_or((inside, ""));
    let (name, version) = match form {
        Form::Python => {
            let name = first.strip_suffix(".py").filter(|_| rest.is_empty());
            return name.or((!rest.is_empty()).then_some(first)).map(|name| (name.to_owned(), None));
        }
        _ if rest.is_empty() => return None,
        Form::GoModule => {
            let (name, rest) = inside.split_once('@')?;
            return Some((module_name(name), rest.split_once('/').map(|(version, _)| version)));
        }
        Form::Npm if first.starts_with('@') => {
            let (second, _) = rest.split_once('/')?;
            return Some((format!("{first}/{second}"), None));
        }
        Form::Name | Form::Npm => (first, None),
        Form::Versioned => split_version(first),
        Form::Registry => split_version(rest.split_once('/')?.0),
        Form::Hashed => (first.rsplit_once('-')?.0, None),
        Form::NameThenVersion => (first, Some(rest.split_once('/')?.0)),
        Form::Fetched => (first.strip_suffix("-src")?, None),
    };
    (!name.is_empty() && !NOT_PODS.contains(&name)).then(|| (name.to_owned(), version))
}

/// A module's path as its users write it.
fn module_name(escaped: &str) -> String {
    let mut name = String::with_capacity(escaped.len());
    let mut is_capital = false;
    for letter in escaped.chars() {
        if letter == '!' && !is_capital {
            is_capital = true;
            continue;
        }
        name.push(if is_capital { letter.to_ascii_uppercase() } else { letter });
        is_capital = false;
    }
    name
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
            (
                "/go/pkg/mod/github.com/!burnt!sushi/toml@v1.2.0/a.go",
                Some(("github.com/BurntSushi/toml", Some("v1.2.0"))),
            ),
            ("/go/pkg/mod/cache/a.go", None),
            ("/v/lib/python3.11/site-packages/requests/api.py", Some(("requests", None))),
            ("/v/lib/python3/dist-packages/six.py", Some(("six", None))),
            ("/v/lib/python3.11/site-packages/", None),
            ("/r/ruby/3.2.0/gems/rack-session-2.0.0/lib/a.rb", Some(("rack-session", Some("2.0.0")))),
            ("/h/.pub-cache/hosted/pub.dev/dio-5.4.0/lib/a.dart", Some(("dio", Some("5.4.0")))),
            ("/w/build/_deps/json-src/include/json.hpp", Some(("json", None))),
            ("/w/build/_deps/json-build/a.c", None),
            ("/h/.conan/data/zlib/1.2.11/_/_/build/1/a.c", Some(("zlib", Some("1.2.11")))),
            ("/h/.nuget/packages/newtonsoft.json/13.0.1/src/a.cs", Some(("newtonsoft.json", Some("13.0.1")))),
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
