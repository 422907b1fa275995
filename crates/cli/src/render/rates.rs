//! Crash rates as tables.

use super::groups::csv_cell;
use crate::io::text::{Look, Text};
use backtrail::groups::GroupTable;
use backtrail::rates::{Rate, RateRow, RateTable, new_groups};
use std::io::{self, Write};

/// Groups that are listed as new; the JSON document has all.
const MAX_NEW: usize = 50;

/// Writes the rates, and which groups a version brought.
pub(crate) fn write_table(out: &mut Text<'_>, rates: &RateTable, groups: &GroupTable) -> io::Result<()> {
    let others = match rates.others() {
        0 => String::new(),
        others => format!("; {others} reports of something else"),
    };
    out.painted_line(
        Look::Title,
        format_args!(
            "{} crashes, and how many of 1,000 sessions, with 95 % intervals{others}",
            rates.crashes()
        ),
    )?;
    let mut line = None;
    for row in rates.rows() {
        let here = Some((row.version.clone(), row.os.clone()));
        if line != here {
            line = here;
            out.end()?;
            match (&row.version, &row.os, row.sessions) {
                (Some(version), Some(os), Some(sessions)) => out.painted_line(
                    Look::Heading,
                    format_args!("version {version}, on {os}: {sessions} sessions"),
                )?,
                _ => out.painted_line(Look::Heading, "no line of sessions is of these")?,
            }
        }
        out.line(format_args!("{:>8}  {:<28}  {}", row.crashes, rate(&row), named(&row)))?;
    }
    let new = new_groups(groups, rates.sessions());
    if new.is_empty() {
        return Ok(());
    }
    out.end()?;
    out.painted_line(Look::Title, "New in a version")?;
    for group in new.iter().take(MAX_NEW) {
        let sure = if group.is_sure() { "" } else { ", which chance explains as well" };
        out.line(format_args!(
            "{:>8}  in {}: {}  ({}; none in {} earlier sessions: p = {:.1e}{sure})",
            group.crashes, group.version, group.title, group.owner, group.sessions_before, group.p_value
        ))?;
    }
    if new.len() > MAX_NEW {
        out.line(format_args!("          and {} more", new.len() - MAX_NEW))?;
    }
    Ok(())
}

fn named(row: &RateRow) -> String {
    row.owner_version.as_ref().map_or_else(|| row.owner.clone(), |version| format!("{} {version}", row.owner))
}

fn rate(row: &RateRow) -> String {
    match (row.rate, row.sessions) {
        (Some(Rate { value, low, high }), _) => {
            format!("{:.3} ({:.3} to {:.3})", value * 1000.0, low * 1000.0, high * 1000.0)
        }
        (None, Some(_)) => "fewer sessions than crashes".to_owned(),
        (None, None) => String::new(),
    }
}

/// Writes the rates for spreadsheets.
pub(crate) fn write_csv(out: &mut dyn Write, rates: &RateTable) -> io::Result<()> {
    writeln!(out, "version,os,owner,owner_version,crashes,sessions,rate,low,high")?;
    for row in rates.rows() {
        let text = |text: &Option<String>| csv_cell(text.as_deref().unwrap_or_default());
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{}",
            text(&row.version),
            text(&row.os),
            csv_cell(&row.owner),
            text(&row.owner_version),
            row.crashes,
            row.sessions.map(|sessions| sessions.to_string()).unwrap_or_default(),
            number(row.rate.map(|rate| rate.value)),
            number(row.rate.map(|rate| rate.low)),
            number(row.rate.map(|rate| rate.high)),
        )?;
    }
    Ok(())
}
