//! A table as text.

use crate::read::{Function, Table, Text};
use std::io::{self, Write};

impl Table<'_> {
    /// Writes all that the table holds, for people: facts first, then every function with its ranges, calls and rows,
    /// then every symbol. What is broken is told in its place.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn dump(&self, out: &mut impl Write) -> io::Result<()> {
        self.dump_facts(out)?;
        for function in self.functions() {
            match function {
                Ok(function) => self.dump_function(&function, out)?,
                Err(error) => writeln!(out, "\n{error}")?,
            }
        }
        writeln!(out)?;
        for symbol in self.symbols() {
            match symbol {
                Ok(symbol) => {
                    let (start, end) = (symbol.range.start(), symbol.range.end());
                    writeln!(out, "symbol {} {start}..{end} of {}", name(symbol.name, None), symbol.start)?;
                }
                Err(error) => writeln!(out, "{error}")?,
            }
        }
        Ok(())
    }

    fn dump_facts(&self, out: &mut impl Write) -> io::Result<()> {
        let header = self.header();
        writeln!(out, "name {}", header.name)?;
        writeln!(out, "arch {}", header.arch)?;
        match header.id {
            Some(id) => writeln!(out, "{} {id}", id.kind())?,
            None => writeln!(out, "no identity")?,
        }
        writeln!(out, "source {:?}", header.source)?;
        writeln!(out, "image base {}", header.image_base)?;
        let stats = self.stats();
        for (section, bytes) in &stats.sections {
            writeln!(out, "section {section} {bytes}")?;
        }
        for (reason, count) in self.dropped() {
            writeln!(out, "left out {} {count}", reason.as_str())?;
        }
        Ok(())
    }

    fn dump_function(&self, function: &Function<'_>, out: &mut impl Write) -> io::Result<()> {
        let what =
            if function.is_function { name(function.linkage_name, function.name) } else { "lines".into() };
        writeln!(out, "\n{what}")?;
        for range in &function.ranges {
            writeln!(out, "  range {}..{}", range.start(), range.end())?;
        }
        for call in &function.inlines {
            let indent = call.depth as usize * 2;
            let what = name(call.linkage_name, call.name);
            let site = self.place(call.call_file, call.call_line, call.call_column);
            write!(out, "{:indent$}  inlined {what} at {site}", "")?;
            for range in &call.ranges {
                write!(out, " {}..{}", range.start(), range.end())?;
            }
            writeln!(out)?;
        }
        for row in &function.rows {
            writeln!(out, "  row {} {}", row.address, self.place(row.file, row.line, row.column))?;
        }
        Ok(())
    }

    fn place(&self, file: Option<u32>, line: u32, column: u32) -> String {
        let mut path = Vec::new();
        file.and_then(|file| self.file(file)).inspect(|file| file.append_to(&mut path));
        let path = if file.is_some() { String::from_utf8_lossy(&path) } else { "??".into() };
        format!("{path}:{line}:{column}")
    }
}

fn name(linkage_name: Option<Text<'_>>, name: Option<Text<'_>>) -> String {
    linkage_name.or(name).map_or_else(|| "??".to_owned(), |name| name.to_text())
}
