//! Unwind tables as text.

use crate::io::text::Text;
use backtrail::cfi::{File, Function, Gap, Item, Row, Summary};
use std::io;

/// Names that a gap lists before it only counts them.
const MAX_NAMES: usize = 12;

pub(crate) fn write_text(out: &mut Text<'_>, item: &Item) -> io::Result<()> {
    match item {
        Item::File(file) => write_file(out, file),
        Item::Function(function) => write_function(out, function),
        Item::Gap(gap) => write_gap(out, gap),
        Item::Summary(summary) => write_summary(out, summary),
        Item::Problem { message } => out.line(format_args!("problem: {message}")),
    }
}

fn write_file(out: &mut Text<'_>, file: &File) -> io::Result<()> {
    let member = file.member.as_ref().map(|member| format!("({member})")).unwrap_or_default();
    out.line(format_args!("{}{member}: {}", file.path, file.arch))?;
    for table in &file.tables {
        out.line(format_args!("  {:<16} {:>10} bytes at {}", table.name, table.size, table.address))?;
    }
    if file.tables.is_empty() {
        out.line("  no unwind tables")?;
    }
    out.end()
}

fn write_function(out: &mut Text<'_>, function: &Function) -> io::Result<()> {
    let name = function.name.as_deref().unwrap_or("?");
    out.line(format_args!("{}..{}  {name}  [{}]", function.start, function.end, function.table))?;
    if let Some(entry) = &function.entry {
        out.put(format_args!("    {entry}"))?;
        for (word, address) in [("personality", function.personality), ("data", function.lsda)] {
            if let Some(address) = address {
                out.put(format_args!("; {word} {address}"))?;
            }
        }
        out.end()?;
    }
    for row in &function.rows {
        write_row(out, row)?;
    }
    if let Some(problem) = &function.problem {
        out.line(format_args!("    problem: {problem}"))?;
    }
    Ok(())
}

fn write_row(out: &mut Text<'_>, row: &Row) -> io::Result<()> {
    let mut line =
        format!("    {:<12}  CFA={:<10}  return={:<8}", row.start.to_string(), row.cfa, row.return_address);
    for saved in &row.registers {
        line.push_str(&format!("  {}={}", saved.register, saved.rule));
    }
    if row.is_signal_frame {
        line.push_str("  (signal frame)");
    }
    out.line(line.trim_end())
}

fn write_gap(out: &mut Text<'_>, gap: &Gap) -> io::Result<()> {
    out.put(format_args!(
        "{}..{}  no unwind information: {} bytes of {}",
        gap.start, gap.end, gap.size, gap.section
    ))?;
    for (position, name) in gap.functions.iter().take(MAX_NAMES).enumerate() {
        out.put(format_args!("{} {name}", if position == 0 { ":" } else { "," }))?;
    }
    match gap.functions.len().checked_sub(MAX_NAMES) {
        None | Some(0) => out.end(),
        Some(more) => out.line(format_args!(" and {more} more")),
    }
}

fn write_summary(out: &mut Text<'_>, summary: &Summary) -> io::Result<()> {
    let Summary { code_bytes, covered_bytes, gaps, padding, padding_bytes, .. } = summary;
    out.end()?;
    out.line(format_args!(
        "code {code_bytes} bytes, with unwind information {covered_bytes}; {gaps} gaps, and {padding} of \
         padding ({padding_bytes} bytes)"
    ))?;
    out.end()
}
