//! Unwind tables as text.

use backtrail::cfi::{File, Function, Gap, Item, Row, Summary};
use std::io::{self, Write};

/// Names that a gap lists before it only counts them.
const MAX_NAMES: usize = 12;

pub(crate) fn write_text(out: &mut dyn Write, item: &Item) -> io::Result<()> {
    match item {
        Item::File(file) => write_file(out, file),
        Item::Function(function) => write_function(out, function),
        Item::Gap(gap) => write_gap(out, gap),
        Item::Summary(summary) => write_summary(out, summary),
        Item::Problem { message } => writeln!(out, "problem: {message}"),
    }
}

fn write_file(out: &mut dyn Write, file: &File) -> io::Result<()> {
    let member = file.member.as_ref().map(|member| format!("({member})")).unwrap_or_default();
    writeln!(out, "{}{member}: {}", file.path, file.arch)?;
    for table in &file.tables {
        writeln!(out, "  {:<16} {:>10} bytes at {}", table.name, table.size, table.address)?;
    }
    if file.tables.is_empty() {
        writeln!(out, "  no unwind tables")?;
    }
    writeln!(out)
}

fn write_function(out: &mut dyn Write, function: &Function) -> io::Result<()> {
    let name = function.name.as_deref().unwrap_or("?");
    writeln!(out, "{}..{}  {name}  [{}]", function.start, function.end, function.table)?;
    if let Some(entry) = &function.entry {
        write!(out, "    {entry}")?;
        for (word, address) in [("personality", function.personality), ("data", function.lsda)] {
            if let Some(address) = address {
                write!(out, "; {word} {address}")?;
            }
        }
        writeln!(out)?;
    }
    for row in &function.rows {
        write_row(out, row)?;
    }
    if let Some(problem) = &function.problem {
        writeln!(out, "    problem: {problem}")?;
    }
    Ok(())
}

fn write_row(out: &mut dyn Write, row: &Row) -> io::Result<()> {
    let mut line =
        format!("    {:<12}  CFA={:<10}  return={:<8}", row.start.to_string(), row.cfa, row.return_address);
    for saved in &row.registers {
        line.push_str(&format!("  {}={}", saved.register, saved.rule));
    }
    if row.is_signal_frame {
        line.push_str("  (signal frame)");
    }
    writeln!(out, "{}", line.trim_end())
}

fn write_gap(out: &mut dyn Write, gap: &Gap) -> io::Result<()> {
    write!(out, "{}..{}  no unwind information: {} bytes of {}", gap.start, gap.end, gap.size, gap.section)?;
    for (position, name) in gap.functions.iter().take(MAX_NAMES).enumerate() {
        write!(out, "{} {name}", if position == 0 { ":" } else { "," })?;
    }
    match gap.functions.len().checked_sub(MAX_NAMES) {
        None | Some(0) => writeln!(out),
        Some(more) => writeln!(out, " and {more} more"),
    }
}

fn write_summary(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    let Summary { code_bytes, covered_bytes, gaps, padding, padding_bytes, .. } = summary;
    writeln!(
        out,
        "\ncode {code_bytes} bytes, with unwind information {covered_bytes}; {gaps} gaps, and {padding} of \
         padding ({padding_bytes} bytes)\n"
    )
}
