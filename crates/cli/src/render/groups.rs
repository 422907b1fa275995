//! Groups as tables and pages.

use crate::io::text::{Look, Text};
use backtrail::Grouped;
use backtrail::groups::{GroupDiff, GroupRow, GroupTable, Likely, ListedGroup};
use backtrail_render::html::{self, Prose};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Versions, systems and files that a line names.
const MAX_NAMED: usize = 3;

/// Writes the groups, two lines each.
pub(crate) fn write_table(out: &mut Text<'_>, table: &GroupTable) -> io::Result<()> {
    let groups = table.listed();
    out.painted_line(Look::Title, heading(table, groups.len()))?;
    for group in groups {
        out.end()?;
        write_row(out, &group.row.count.to_string(), group.row)?;
        for line in likely_lines(&group.likely) {
            out.line(format_args!("          {line}"))?;
        }
    }
    write_apart(out, table)
}

fn heading(table: &GroupTable, groups: usize) -> String {
    format!("{} in {}", many(table.reports(), "report"), many(groups as u64, "group"))
}

/// `1 report`, `2 reports`.
fn many(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What is likely of a group, a sentence each.
fn likely_lines(likely: &Likely) -> Vec<String> {
    let mut lines = Vec::new();
    if likely.more > 0 {
        lines.push(format!(
            "likely {} more that were cut short: all that they show is this group's and no other's",
            likely.more
        ));
    }
    lines.extend(likely_of(likely));
    lines
}

/// Which group reports are likely of that were cut.
fn likely_of(likely: &Likely) -> Option<String> {
    if let Some(of) = &likely.of {
        return Some(format!(
            "cut short, likely of {of}: {} whole reports show the same, all of that group",
            likely.by
        ));
    }
    let [one, other] = likely.either_of.as_slice() else { return None };
    Some(format!("cut short, perhaps of {one} or of {other}: reports of both show the same"))
}

fn write_row(out: &mut Text<'_>, count: &str, row: &GroupRow) -> io::Result<()> {
    out.paint(Look::Strong, format_args!("{count:>8}  "))?;
    out.line(&row.title)?;
    let mut facts = vec![row.owner.clone()];
    facts.extend(seen(row));
    facts.push(format!("versions {}", listed(&row.versions)));
    facts.push(format!("on {}", listed(&row.systems)));
    out.painted_line(Look::Faint, format_args!("          {}", facts.join(" · ")))?;
    out.painted_line(Look::Faint, format_args!("          {}  {}", row.id, row.example))
}

pub(super) fn write_apart(out: &mut Text<'_>, table: &GroupTable) -> io::Result<()> {
    let apart = table.apart();
    if apart.count == 0 {
        return Ok(());
    }
    out.end()?;
    apart_lines(table).iter().try_for_each(|line| out.line(line))
}

/// What is said of the reports without a group.
fn apart_lines(table: &GroupTable) -> Vec<String> {
    let apart = table.apart();
    if apart.count == 0 {
        return Vec::new();
    }
    let examples: Vec<String> = apart.examples.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let more = if apart.count > examples.len() as u64 { ", …" } else { "" };
    let mut lines = vec![format!(
        "{} without a group: neither a stack nor words tell them from others of their sort ({}{more})",
        many(apart.count, "report"),
        examples.join(", "),
    )];
    let likely = table.apart_likely();
    if likely > 0 {
        lines.push(format!("{likely} of them are likely of a group above, which says so"));
    }
    lines
}

/// When the first and the last happened.
fn seen(row: &GroupRow) -> Option<String> {
    let day = |time: &Option<String>| time.as_ref().map(|time| time.get(..10).unwrap_or(time).to_owned());
    match (day(&row.first)?, day(&row.last)?) {
        (first, last) if first == last => Some(first),
        (first, last) => Some(format!("{first} to {last}")),
    }
}

/// The most frequent names, and how many more there are.
fn listed(counted: &BTreeMap<String, u64>) -> String {
    let mut names: Vec<_> = counted.iter().collect();
    names.sort_by(|a, b| b.1.cmp(a.1));
    let more = names.len().saturating_sub(MAX_NAMED);
    let names: Vec<&str> = names.iter().take(MAX_NAMED).map(|(name, _)| name.as_str()).collect();
    if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
}

/// Writes what became of groups.
pub(crate) fn write_diff(out: &mut Text<'_>, diff: &GroupDiff<'_>) -> io::Result<()> {
    out.painted_line(
        Look::Title,
        format_args!(
            "{} reports before, {} now; {} groups as before",
            diff.reports_before, diff.reports_now, diff.same
        ),
    )?;
    for change in &diff.changes {
        out.end()?;
        let chance = change.p_value.map(|p| format!(", by chance with p = {p:.1e}")).unwrap_or_default();
        out.painted_line(
            Look::Heading,
            format_args!("{}: {} before, {} now{chance}", change.kind.as_str(), change.before, change.now),
        )?;
        write_row(out, &change.now.to_string(), change.group)?;
    }
    Ok(())
}

/// Writes a report's keys, what they are made of, and its group among those of `table`.
pub(crate) fn write_why(
    out: &mut Text<'_>,
    name: &str,
    grouped: Grouped,
    table: &GroupTable,
) -> io::Result<()> {
    out.painted_line(Look::Strong, name)?;
    let likely = table.likely(&grouped.begins);
    let shown: Vec<String> = grouped.begins.shown.iter().map(|shown| shown.what.clone()).collect();
    let analysis = grouped.analysis();
    let Some(group) = &analysis.group else {
        out.line("no group: neither a stack nor words tell it from others of its sort")?;
        for what in &shown {
            out.line(format_args!("  cut short: it shows {what}"))?;
        }
        return likely_of(&likely).map_or(Ok(()), |line| out.line(line));
    };
    out.line(group.title(&analysis.explanation))?;
    out.line(format_args!("key:        {}", group.key))?;
    out.line(format_args!("symbol key: {}", group.symbol_key.as_deref().unwrap_or("none")))?;
    for line in &group.why {
        out.line(format_args!("  {line}"))?;
    }
    if table.reports() > 0 {
        match table.find(group) {
            Some(row) => {
                out.line(format_args!("its group has {} of {} reports", row.count, table.reports()))?;
            }
            None => out.line(format_args!("none of {} reports is in its group", table.reports()))?,
        }
    }
    likely_of(&likely).map_or(Ok(()), |line| out.line(line))
}

/// Writes the table for spreadsheets.
pub(crate) fn write_csv(out: &mut dyn Write, table: &GroupTable) -> io::Result<()> {
    writeln!(out, "count,first,last,versions,systems,owner,kind,title,id,example,likely_more,likely_of")?;
    for group in table.listed() {
        let row = group.row;
        let names = |counted: &BTreeMap<String, u64>| {
            counted.iter().map(|(name, count)| format!("{name}: {count}")).collect::<Vec<_>>().join("; ")
        };
        let time = |time: &Option<String>| time.clone().unwrap_or_default();
        let (versions, systems) = (names(&row.versions), names(&row.systems));
        let cells =
            [time(&row.first), time(&row.last), versions, systems, row.owner.clone(), row.kind.clone()];
        write!(out, "{}", row.count)?;
        for cell in cells.iter().chain([&row.title, &row.id, &row.example.to_string()]) {
            write!(out, ",{}", csv_cell(cell))?;
        }
        let of = group.likely.of.as_deref().unwrap_or_default();
        writeln!(out, ",{},{}", group.likely.more, csv_cell(of))?;
    }
    Ok(())
}

/// A cell of RFC 4180. One that a spreadsheet would run as a formula gets a quote in front.
pub(crate) fn csv_cell(text: &str) -> String {
    let text: String = backtrail_render::escape::escaped(text).into_owned();
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    let text = if is_formula { format!("'{text}") } else { text };
    if text.contains([',', '"', '\n', '\r', ';']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// The file of a group's page.
pub(crate) fn page_name(row: &GroupRow) -> String {
    let safe: String = row.id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("group-{safe}.html")
}

/// Writes the page that lists the groups.
pub(crate) fn write_index(out: &mut dyn Write, table: &GroupTable) -> io::Result<()> {
    let groups = table.listed();
    let title = heading(table, groups.len());
    html::begin(out, &title)?;
    writeln!(out, "<header>\n<h1 class=\"plain\">{title}</h1>\n</header>\n<ol class=\"index\">")?;
    for ListedGroup { row, likely } in &groups {
        writeln!(out, "<li><a href=\"./{}\">{}</a>", page_name(row), Prose(&row.title))?;
        let seen = seen(row).map(|seen| format!(" · {seen}")).unwrap_or_default();
        let text = format!(
            "{} · {}{seen} · versions {}",
            many(row.count, "report"),
            row.owner,
            listed(&row.versions)
        );
        writeln!(out, "<p class=\"faint\">{}</p>", html::Text(&text))?;
        for line in likely_lines(likely) {
            writeln!(out, "<p class=\"faint\">{}</p>", html::Text(&line))?;
        }
        writeln!(out, "</li>")?;
    }
    writeln!(out, "</ol>")?;
    for line in apart_lines(table) {
        writeln!(out, "<p>{}</p>", html::Text(&line))?;
    }
    html::end(out)
}

/// Writes a group's page.
pub(crate) fn write_page(out: &mut dyn Write, group: &ListedGroup<'_>) -> io::Result<()> {
    let row = group.row;
    html::begin(out, &row.title)?;
    writeln!(out, "<header>\n<h1 class=\"plain\">{}</h1>\n</header>", Prose(&row.title))?;
    let seen = seen(row).map(|seen| format!(" · {seen}")).unwrap_or_default();
    let text = format!("{} · {}{seen} · {}", many(row.count, "report"), row.owner, row.kind);
    writeln!(out, "<p>{}</p>", html::Text(&text))?;
    writeln!(out, "<p class=\"faint\">{}</p>", html::Text(&row.example.to_string()))?;
    html::list(out, "Likely", "ul", &likely_lines(&group.likely))?;
    for (title, counted) in [("Versions", &row.versions), ("Systems", &row.systems)] {
        let items: Vec<String> = counted.iter().map(|(name, count)| format!("{name}: {count}")).collect();
        html::list(out, title, "ul", &items)?;
    }
    html::list(out, "Why the example is in this group", "ul", &row.why)?;
    let keys: Vec<String> = row.symbol_keys.iter().chain(&row.keys).take(64).cloned().collect();
    html::list(out, "Keys", "ul", &keys)?;
    writeln!(out, "<p><a href=\"./index.html\">All groups</a></p>")?;
    html::end(out)
}
