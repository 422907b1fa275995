//! `backtrail demangle`: names as arguments, or any text as a filter.

use crate::io::console::Console;
use crate::io::text::Text;
use crate::outcome::{Failure, Outcome};
use backtrail::demangle::{Demangler, FoldTemplates, Options, Piece, Scheme, SwiftStyle, Underscore, pieces};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::io::{self, BufRead as _, Read as _};

/// Makes C++, Swift, Rust, Objective-C, D and Microsoft names readable.
///
/// Names are given as arguments; without any, standard input is copied with every name in it made readable. The options
/// are those of c++filt, llvm-cxxfilt and swift demangle.
#[derive(Args, Debug)]
pub(crate) struct Demangle {
    /// The names; standard input is filtered where none are given.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<OsString>,
    /// Leave out parameters and return types.
    #[arg(short = 'p', long)]
    pub(crate) no_params: bool,
    /// Leave out return types.
    #[arg(long)]
    pub(crate) no_return_types: bool,
    /// Swift names in the short form that Xcode shows.
    #[arg(long)]
    pub(crate) simplified: bool,
    /// Swift types in full, without the short forms of arrays, dictionaries and optionals.
    #[arg(long)]
    pub(crate) no_sugar: bool,
    /// Also read words that are mangled C++ types, not names.
    #[arg(short, long)]
    pub(crate) types: bool,
    /// Read names of one scheme only.
    #[arg(short = 's', long, value_enum, default_value_t = Mangling::Auto)]
    pub(crate) format: Mangling,
    /// Every name has an underscore in front, as Mach-O writes it.
    #[arg(short = '_', long, overrides_with = "no_strip_underscore")]
    pub(crate) strip_underscore: bool,
    /// No name has an underscore in front; without either option one more is ignored.
    #[arg(short = 'n', long, overrides_with = "strip_underscore")]
    pub(crate) no_strip_underscore: bool,
    /// Put readable names in double quotes, unless they are quoted already.
    #[arg(long)]
    pub(crate) quote: bool,
    /// Cut readable names that are longer, and mark the cut.
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_length: Option<usize>,
    /// Fold template arguments nested deeper: with 1, A<B<...>>.
    #[arg(long, value_name = "DEPTH")]
    pub(crate) fold_depth: Option<u32>,
    /// Fold template argument lists longer than this.
    #[arg(long, value_name = "BYTES")]
    pub(crate) fold_length: Option<usize>,
    /// Accepted for compatibility and without effect, like -r, -R and --compact.
    #[arg(short = 'i', long)]
    pub(crate) no_verbose: bool,
    #[arg(short = 'R', long, hide = true)]
    pub(crate) recurse_limit: bool,
    #[arg(short = 'r', long, alias = "no-recursion-limit", hide = true)]
    pub(crate) no_recurse_limit: bool,
    #[arg(long, hide = true)]
    pub(crate) compact: bool,
}

/// How names are mangled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Mangling {
    /// Any of the others.
    Auto,
    /// Leave every name as it is.
    None,
    /// C++ of clang, gcc and most others.
    #[value(alias = "gnu-v3", alias = "gnu")]
    Itanium,
    /// Swift of every generation.
    Swift,
    /// Rust, legacy and v0.
    Rust,
    /// D.
    Dlang,
    /// Objective-C.
    Objc,
    /// C++ of Microsoft.
    Msvc,
}

/// How much of a line without end is looked at in one piece.
const MAX_LINE: u64 = 1 << 20;

pub(crate) fn run(args: &Demangle, console: &Console) -> Result<Outcome, Failure> {
    let mut filter = Filter {
        demangler: Demangler::new(),
        options: options(args),
        is_off: args.format == Mangling::None,
        has_quotes: args.quote,
    };
    let mut out = console.stdout();
    let mut out = Text::new(&mut out, console.style_of_tools());
    if args.names.is_empty() {
        filter.copy(&mut io::BufReader::with_capacity(1 << 16, console.stdin()), &mut out)?;
    }
    for name in &args.names {
        match name.to_str() {
            Some(name) => filter.word(name, false, &mut out)?,
            None => out.put_bytes(name.as_encoded_bytes())?,
        }
        out.end()?;
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
    fn copy(&mut self, input: &mut io::BufReader<impl io::Read>, out: &mut Text<'_>) -> Result<(), Failure> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
            if read.map_err(|error| Failure::Input(error.to_string()))? == 0 {
                return Ok(());
            }
            let end = line.strip_suffix(b"\n");
            for chunk in end.unwrap_or(&line).utf8_chunks() {
                self.text(chunk.valid(), out)?;
                // What is no UTF-8 passes as it is.
                out.put_bytes(chunk.invalid())?;
            }
            if end.is_some() {
                out.end()?;
            }
            if input.buffer().is_empty() {
                out.flush()?;
            }
        }
    }

    fn text(&mut self, text: &str, out: &mut Text<'_>) -> io::Result<()> {
        let mut is_in_quotes = false;
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => {
                    out.put_str(text)?;
                    is_in_quotes = text.ends_with('"');
                }
                Piece::Word(word) => self.word(word, is_in_quotes, out)?,
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &str, is_in_quotes: bool, out: &mut Text<'_>) -> io::Result<()> {
        let readable = if self.is_off { None } else { self.demangler.demangle(word, &self.options).ok() };
        match readable {
            Some(readable) if self.has_quotes && !is_in_quotes => out.put(format_args!("\"{readable}\"")),
            Some(readable) => out.put_str(readable),
            None => out.put_str(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::text::{Escaping, Style};

    fn filter(has_quotes: bool) -> Filter {
        Filter { demangler: Demangler::new(), options: Options::default(), is_off: false, has_quotes }
    }

    fn filtered(mut filter: Filter, text: &[u8]) -> String {
        let mut out = Vec::new();
        let style = Style { coloured: false, escaping: Escaping::None };
        filter.copy(&mut io::BufReader::with_capacity(4, text), &mut Text::new(&mut out, style)).unwrap();
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
