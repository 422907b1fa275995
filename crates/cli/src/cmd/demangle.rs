//! `backtrail demangle`: names as arguments, or any text as a filter.

use crate::args::{Demangle, Mangling};
use crate::output::{Failure, Outcome};
use backtrail::demangle::{Demangler, FoldTemplates, Options, Piece, Scheme, SwiftStyle, Underscore, pieces};
use std::io::{self, BufRead as _, Read as _, Write};

/// How much of a line without end is looked at in one piece.
const MAX_LINE: u64 = 1 << 20;

pub(crate) fn run(args: &Demangle) -> Result<Outcome, Failure> {
    let mut filter = Filter {
        demangler: Demangler::new(),
        options: options(args),
        is_off: args.format == Mangling::None,
        has_quotes: args.quote,
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.names.is_empty() {
        filter.copy(&mut io::BufReader::with_capacity(1 << 16, io::stdin().lock()), &mut out)?;
    }
    for name in &args.names {
        filter.word(name, false, &mut out)?;
        writeln!(out)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn options(args: &Demangle) -> Options {
    let mut options = Options::default();
    options.parameters = !args.no_params;
    options.return_types = !args.no_params && !args.no_return_types;
    options.swift = if args.simplified { SwiftStyle::Simplified } else { SwiftStyle::Full };
    options.sugar = !args.no_sugar;
    options.types = args.types;
    options.scheme = match args.format {
        Mangling::Auto | Mangling::None => None,
        Mangling::Itanium => Some(Scheme::Itanium),
        Mangling::Swift => Some(Scheme::Swift),
        Mangling::Rust => Some(Scheme::Rust),
        Mangling::Dlang => Some(Scheme::D),
        Mangling::Objc => Some(Scheme::ObjC),
        Mangling::Msvc => Some(Scheme::Msvc),
    };
    options.underscore = match (args.strip_underscore, args.no_strip_underscore) {
        (true, _) => Underscore::Present,
        (_, true) => Underscore::Absent,
        _ => Underscore::Either,
    };
    options.max_len = args.max_length.unwrap_or(options.max_len);
    if args.fold_depth.is_some() || args.fold_length.is_some() {
        options.fold_templates = Some(FoldTemplates {
            depth: args.fold_depth.unwrap_or(u32::MAX),
            len: args.fold_length.unwrap_or(usize::MAX),
        });
    }
    options
}

struct Filter {
    demangler: Demangler,
    options: Options,
    is_off: bool,
    has_quotes: bool,
}

impl Filter {
    /// Line by line, so that it can stand in a pipe of a running program: what was read is written before more is
    /// waited for.
    fn copy(
        &mut self,
        input: &mut io::BufReader<impl io::Read>,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
            if read.map_err(|error| Failure::Input(error.to_string()))? == 0 {
                return Ok(());
            }
            for chunk in line.utf8_chunks() {
                self.text(chunk.valid(), out)?;
                // What is no UTF-8 passes as it is.
                out.write_all(chunk.invalid())?;
            }
            if input.buffer().is_empty() {
                out.flush()?;
            }
        }
    }

    fn text(&mut self, text: &str, out: &mut impl Write) -> io::Result<()> {
        let mut is_in_quotes = false;
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => {
                    out.write_all(text.as_bytes())?;
                    is_in_quotes = text.ends_with('"');
                }
                Piece::Word(word) => self.word(word, is_in_quotes, out)?,
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &str, is_in_quotes: bool, out: &mut impl Write) -> io::Result<()> {
        let readable = if self.is_off { None } else { self.demangler.demangle(word, &self.options).ok() };
        match readable {
            Some(readable) if self.has_quotes && !is_in_quotes => write!(out, "\"{readable}\""),
            Some(readable) => out.write_all(readable.as_bytes()),
            None => out.write_all(word.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(has_quotes: bool) -> Filter {
        Filter { demangler: Demangler::new(), options: Options::default(), is_off: false, has_quotes }
    }

    fn filtered(mut filter: Filter, text: &[u8]) -> String {
        let mut out = Vec::new();
        filter.copy(&mut io::BufReader::with_capacity(4, text), &mut out).unwrap();
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn names_are_found_wherever_they_stand() {
        for (text, expected) in [
            ("at _Z3foov+0x10 (_ZN1a1bEi).\n", "at foo()+0x10 (a::b(int)).\n"),
            ("call _Z3foov. Then __Z3barv\n", "call foo(). Then bar()\n"),
            ("no _Zames here, \u{e9}\n\n_Z1fv", "no _Zames here, \u{e9}\n\nf()"),
            ("?f@@YAXXZ", "void __cdecl f(void)"),
        ] {
            assert_eq!(filtered(filter(false), text.as_bytes()), expected);
        }
    }

    #[test]
    fn names_among_bytes_that_are_no_text() {
        assert_eq!(filtered(filter(false), b"\xff_Z1fv\xfe _Z1gv\n"), "\u{fffd}f()\u{fffd} g()\n");
    }

    #[test]
    fn quotes_around_what_has_none() {
        assert_eq!(filtered(filter(true), b"main _Z1fv \"_Z1gv\"\n"), "main \"f()\" \"g()\"\n");
    }

    /// A line longer than the limit is read in pieces, and nothing of it is lost.
    #[test]
    fn a_line_without_end() {
        let line = "x".repeat(3 << 20) + " _Z1fv";
        let out = filtered(filter(false), line.as_bytes());
        assert_eq!(out.len(), line.len() - "_Z1fv".len() + "f()".len());
        assert!(out.ends_with("x f()"));
    }
}
