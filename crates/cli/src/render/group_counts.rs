//! How many reports and groups there are of each owner, version, system or sort of event.

use super::groups::{csv_cell, write_apart};
use crate::io::text::{Look, Text};
use backtrail::groups::GroupTable;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Names the shape of the document.
const SCHEMA: &str = "backtrail-group-counts/1";

/// What reports are counted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counted {
    Owner,
    Version,
    System,
    Kind,
}

impl Counted {
    /// As it is asked for.
    fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Version => "version",
            Self::System => "os",
            Self::Kind => "kind",
        }
    }
}

/// One line.
#[derive(Serialize)]
struct Count<'t> {
    name: &'t str,
    reports: u64,
    groups: u64,
}

/// The document.
#[derive(Serialize)]
pub(crate) struct CountsJson<'t> {
    schema: &'static str,
    by: &'static str,
    reports: u64,
    counts: Vec<Count<'t>>,
    apart: u64,
}

/// Those with the most reports first.
fn counts(table: &GroupTable, by: Counted) -> Vec<Count<'_>> {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in table.rows() {
        let of_row: Vec<(&String, &u64)> = match by {
            Counted::Owner => vec![(&row.owner, &row.count)],
            Counted::Kind => vec![(&row.kind, &row.count)],
            Counted::Version => row.versions.iter().collect(),
            Counted::System => row.systems.iter().collect(),
        };
        for (name, count) in of_row {
            let entry = counts.entry(name.as_str()).or_default();
            *entry = (entry.0 + count, entry.1 + 1);
        }
    }
    let count = |(name, (reports, groups))| Count { name, reports, groups };
    let mut counts: Vec<Count<'_>> = counts.into_iter().map(count).collect();
    counts.sort_by(|a, b| (b.reports, b.groups).cmp(&(a.reports, a.groups)).then(a.name.cmp(b.name)));
    counts
}

/// For people.
pub(crate) fn write(out: &mut Text<'_>, table: &GroupTable, by: Counted) -> io::Result<()> {
    out.painted_line(Look::Heading, " reports   groups")?;
    for Count { name, reports, groups } in counts(table, by) {
        out.line(format_args!("{reports:>8} {groups:>8}  {name}"))?;
    }
    write_apart(out, table)
}

/// For programs.
pub(crate) fn document(table: &GroupTable, by: Counted) -> CountsJson<'_> {
    CountsJson {
        schema: SCHEMA,
        by: by.as_str(),
        reports: table.reports(),
        counts: counts(table, by),
        apart: table.apart().count,
    }
}

/// For spreadsheets.
pub(crate) fn write_csv(out: &mut dyn Write, table: &GroupTable, by: Counted) -> io::Result<()> {
    writeln!(out, "reports,groups,{}", by.as_str())?;
    for Count { name, reports, groups } in counts(table, by) {
        writeln!(out, "{reports},{groups},{}", csv_cell(name))?;
    }
    Ok(())
}
