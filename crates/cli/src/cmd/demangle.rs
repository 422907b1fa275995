//! `backtrail demangle`: names as arguments, or any text as a filter.

use crate::args::Demangle;
use crate::output::{Failure, Outcome};
use backtrail::demangle::{Options, SwiftStyle, demangle};
use std::io::{self, BufRead as _, Write as _};

pub(crate) fn run(args: &Demangle) -> Result<Outcome, Failure> {
    let swift = if args.simplified { SwiftStyle::Simplified } else { SwiftStyle::Full };
    let mut options = Options::default();
    options.parameters = !args.no_params;
    options.return_types = !args.no_params;
    options.swift = swift;
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.names.is_empty() {
        filter(&options, &mut out)?;
    }
    for name in &args.names {
        writeln!(out, "{}", demangle(name, &options))?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Line by line, so that it can stand in a pipe of a running program. Text that is not UTF-8 passes unchanged.
fn filter(options: &Options, out: &mut impl io::Write) -> Result<(), Failure> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).map_err(|error| Failure::Input(error.to_string()))? > 0 {
        match std::str::from_utf8(&line) {
            Ok(text) => write_readable(text, options, out)?,
            Err(_) => out.write_all(&line)?,
        }
        line.clear();
    }
    Ok(())
}

/// Copies `text`, every mangled name in it made readable. A name is a run of the characters that linkers allow.
fn write_readable(text: &str, options: &Options, out: &mut impl io::Write) -> io::Result<()> {
    let mut rest = text;
    while let Some(start) = rest.find(is_name_character) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|character| !is_name_character(character)).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        // A sentence may end right behind a name.
        let bare = name.trim_end_matches('.');
        let dots = name.get(bare.len()..).unwrap_or_default();
        write!(out, "{before}{}{dots}", demangle(bare, options))?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

fn is_name_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(text: &str) -> String {
        let mut out = Vec::new();
        write_readable(text, &Options::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_are_found_wherever_they_stand() {
        assert_eq!(filtered("at _Z3foov+0x10 (_ZN1a1bEi).\n"), "at foo()+0x10 (a::b(int)).\n");
        assert_eq!(filtered("call _Z3foov. Then __Z3barv\n"), "call foo(). Then bar()\n");
        assert_eq!(filtered("no _Zames here, é\n"), "no _Zames here, é\n");
    }
}
