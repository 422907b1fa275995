//! Demanglers measured on the same names, in one process, on one core.
//!
//! `peers-demangle SCHEME ROUNDS LIST`: SCHEME is `cxx`, `swift` or `rust`, LIST a file with one name a line. For each
//! demangler it prints one line: name, seconds of the quickest round, names read. The rounds of all demanglers take
//! turns, so that a slow moment of the machine hits all of them.
#![allow(clippy::print_stdout)]

use backtrail_demangle::{Demangler, Options, SwiftStyle};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Writes a name's readable form into the text, and says whether it was read.
type Read = dyn FnMut(&str, &mut String) -> bool;

/// One demangler, by its label.
struct Peer {
    label: &'static str,
    read: Box<Read>,
    quickest: Duration,
    count: usize,
}

impl Peer {
    fn new(label: &'static str, read: impl FnMut(&str, &mut String) -> bool + 'static) -> Self {
        Peer { label, read: Box::new(read), quickest: Duration::MAX, count: 0 }
    }

    fn round(&mut self, names: &[&str]) {
        let mut text = String::new();
        let start = Instant::now();
        self.count = 0;
        for name in names {
            text.clear();
            self.count += usize::from((self.read)(name, &mut text));
            black_box(&text);
        }
        self.quickest = self.quickest.min(start.elapsed());
    }
}

fn ours(label: &'static str, options: Options) -> Peer {
    let mut demangler = Demangler::new();
    Peer::new(label, move |name, _| black_box(demangler.demangle(name, &options)).is_ok())
}

fn cpp_demangle() -> Peer {
    Peer::new("cpp_demangle", |name, text| {
        let Some(readable) = cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle().ok())
        else {
            return false;
        };
        *text = readable;
        true
    })
}

fn symbolic(language: symbolic_common::Language) -> Peer {
    use symbolic_common::{Name, NameMangling};
    use symbolic_demangle::{Demangle as _, DemangleOptions};
    Peer::new("symbolic-demangle", move |name, text| {
        let name = Name::new(name, NameMangling::Mangled, language);
        let Some(readable) = name.demangle(DemangleOptions::complete()) else { return false };
        *text = readable;
        true
    })
}

fn rustc() -> Peer {
    Peer::new("rustc-demangle", |name, text| {
        rustc_demangle::try_demangle(name).is_ok_and(|symbol| write!(text, "{symbol:#}").is_ok())
    })
}

fn peers(scheme: &str) -> Vec<Peer> {
    use symbolic_common::Language;
    match scheme {
        "cxx" => {
            vec![ours("backtrail-demangle", Options::default()), cpp_demangle(), symbolic(Language::Cpp)]
        }
        "swift" => {
            let mut simplified = Options::default();
            simplified.swift = SwiftStyle::Simplified;
            vec![
                ours("backtrail-demangle", Options::default()),
                ours("backtrail-demangle, simplified", simplified),
                symbolic(Language::Swift),
            ]
        }
        _ => vec![ours("backtrail-demangle", Options::default()), rustc(), symbolic(Language::Rust)],
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: peers-demangle cxx|swift|rust ROUNDS LIST");
    let (scheme, rounds, list) = (next()?, next()?.parse::<u32>()?, next()?);
    let list = std::fs::read_to_string(list)?;
    let names: Vec<&str> = list.lines().collect();
    let mut peers = peers(&scheme);
    for _ in 0..rounds {
        for peer in &mut peers {
            peer.round(&names);
        }
    }
    for peer in &peers {
        println!("{}\t{}\t{}", peer.label, peer.quickest.as_secs_f64(), peer.count);
    }
    Ok(())
}
