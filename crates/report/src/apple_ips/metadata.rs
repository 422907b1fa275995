//! The first line: which kind of report it is, and some of the header once more.

use super::bug_types;
use crate::json::Json;
use crate::leftovers::raw;
use backtrail_model::{Field, Report};

/// The metadata as names and texts.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    members: Vec<(String, String)>,
}

impl Metadata {
    pub(super) fn none() -> Self {
        Self::default()
    }

    pub(super) fn read(input: &[u8], document: &Json<'_>) -> Self {
        let text =
            |json: &Json<'_>| json.scalar().map_or_else(|| raw(input, json), std::borrow::Cow::into_owned);
        let members = document.members().iter().map(|m| (m.name().into_owned(), text(&m.value)));
        Self { members: members.collect() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Whether this is the metadata of a crash, or does not say.
    pub(super) fn is_crash(&self) -> bool {
        self.get("bug_type").is_none_or(|bug_type| bug_types::CRASHES.contains(&bug_type))
    }

    /// The kind of report that the type stands for.
    fn event(&self) -> Option<String> {
        let bug_type = self.get("bug_type").filter(|_| !self.is_crash())?;
        Some(bug_types::name(bug_type).map_or_else(|| format!("bug type {bug_type}"), str::to_owned))
    }

    /// Fills what the body left open, and keeps all of the metadata as fields.
    pub(super) fn add_to(&self, report: &mut Report) {
        let text =
            |name: &str| self.get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let process = &mut report.process;
        process.name = process.name.take().or_else(|| text("app_name")).or_else(|| text("name"));
        process.identifier = process.identifier.take().or_else(|| text("bundleID"));
        report.incident = report.incident.take().or_else(|| text("incident_id"));
        report.os = report.os.take().or_else(|| text("os_version"));
        report.time = report.time.take().or_else(|| text("timestamp"));
        report.event = report.event.take().or_else(|| self.event());
        let fields = self
            .members
            .iter()
            .map(|(name, text)| Field { key: format!("metadata.{name}"), value: text.clone() });
        report.fields.extend(fields);
    }
}
