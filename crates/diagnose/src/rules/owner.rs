//! Rules that say whose code is whose.

use super::text::{Texts, fits};
use backtrail_model::OwnerKind;
use serde::Deserialize;

/// `[[owner]]` as TOML has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnerEntry {
    #[serde(default)]
    kind: Kind,
    name: Option<String>,
    version: Option<String>,
    symbol: Option<Texts>,
    module: Option<Texts>,
    path: Option<Texts>,
    team: Option<Texts>,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "lowercase")]
enum Kind {
    App,
    #[default]
    Sdk,
    System,
}

/// Says whose the code is that fits all of its conditions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnerRule {
    pub(crate) kind: OwnerKind,
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    conditions: Vec<Condition>,
}

/// One key of a rule: one of its texts must fit.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Condition {
    key: Key,
    texts: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Symbol,
    Module,
    Path,
    Team,
}

impl Key {
    fn as_str(self) -> &'static str {
        match self {
            Self::Symbol => "symbol",
            Self::Module => "module",
            Self::Path => "path",
            Self::Team => "team",
        }
    }
}

/// What rules look at.
#[derive(Clone, Default, Debug)]
pub(crate) struct Code<'a> {
    /// The function.
    pub(crate) symbol: Option<&'a str>,
    /// The image, by name.
    pub(crate) module: Option<&'a str>,
    /// The source file, the object file, the image: whatever of them is known.
    pub(crate) paths: [Option<&'a str>; 3],
    /// Who signed the app.
    pub(crate) team: Option<&'a str>,
}

impl OwnerRule {
    /// Checks an entry; the error is what is wrong with it.
    pub(super) fn new(entry: OwnerEntry) -> Result<Self, String> {
        let kind = match entry.kind {
            Kind::App => OwnerKind::App,
            Kind::Sdk => OwnerKind::Sdk,
            Kind::System => OwnerKind::System,
        };
        let name = entry.name.filter(|name| !name.is_empty());
        if name.is_none() && kind == OwnerKind::Sdk {
            return Err("expected a `name`: a rule for a library says which it is".to_owned());
        }
        let conditions = [
            (Key::Symbol, entry.symbol),
            (Key::Module, entry.module),
            (Key::Path, entry.path),
            (Key::Team, entry.team),
        ];
        let conditions = conditions
            .into_iter()
            .filter_map(|(key, texts)| Some(Condition { key, texts: texts?.0 }))
            .collect::<Vec<_>>();
        if conditions.is_empty() {
            return Err("expected `symbol`, `module`, `path` or `team`: this rule fits no code".to_owned());
        }
        Ok(Self { kind, name, version: entry.version, conditions })
    }

    /// What of the code fits, for people; `None` where it is not what the rule is about.
    pub(crate) fn fit(&self, code: &Code<'_>) -> Option<String> {
        let mut said = Vec::new();
        for Condition { key, texts } in &self.conditions {
            let text = texts.iter().find(|text| code.fits(*key, text))?;
            said.push(format!("{} {text}", key.as_str()));
        }
        Some(format!("rule: {}", said.join(", ")))
    }
}

impl Code<'_> {
    fn fits(&self, key: Key, text: &str) -> bool {
        match key {
            Key::Symbol => self.symbol.is_some_and(|symbol| begins(symbol, text)),
            Key::Module => self.module.is_some_and(|module| fits(text, module)),
            Key::Path => self.paths.iter().flatten().any(|path| holds(path, text)),
            Key::Team => self.team == Some(text),
        }
    }
}

/// Whether a function's name, or that of the class in `-[Class method]`, begins so.
fn begins(symbol: &str, prefix: &str) -> bool {
    let class = symbol.strip_prefix("-[").or_else(|| symbol.strip_prefix("+["));
    symbol.starts_with(prefix) || class.is_some_and(|class| class.starts_with(prefix))
}

/// Whether `path` lies in `directory`, or is it: from the root on if it begins with a slash, else anywhere. Directories count
/// as a whole. Windows' slashes are slashes.
fn holds(path: &str, directory: &str) -> bool {
    let path = path.replace('\\', "/");
    let wanted = directory.trim_end_matches('/');
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['/', '(']);
    if wanted.starts_with('/') {
        return path.strip_prefix(wanted).is_some_and(ends);
    }
    path.match_indices(wanted).any(|(at, found)| {
        let before = path.get(..at).unwrap_or_default();
        let after = path.get(at + found.len()..).unwrap_or_default();
        (before.is_empty() || before.ends_with('/')) && ends(after)
    })
}
