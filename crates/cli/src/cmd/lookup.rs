//! `backtrail lookup`: addresses of one binary into functions.

use super::named_arch;
use crate::args::{Lookup, LookupFormat, parse_address};
use crate::batches::LineBatches;
use crate::output::{Failure, Outcome};
use crate::render::llvm;
use backtrail::{Avma, Binary, Details, SymbolInfo, OpenOptions, AddressKind, SymbolInfoRef, Svma};
use std::io::{self, Write};

/// Answers that are held at a time.
const MAX_BATCH: usize = 1 << 14;

pub(crate) fn run(args: &Lookup) -> Result<Outcome, Failure> {
    let arch = args.arch.as_deref().map(named_arch).transpose()?;
    let cache = args.cache.tables();
    let options = OpenOptions { symbols: &args.symbols, cache: cache.as_ref(), section: None };
    let binary = Binary::open_with(&args.file, arch, &options);
    let binary = binary.map_err(|error| Failure::Input(error.to_string()))?;
    let placement = match (args.load_address, args.slide) {
        (Some(load), _) => AddressKind::LoadedAt(Avma::new(load)),
        (None, Some(slide)) => AddressKind::WithSlide(slide),
        (None, None) => AddressKind::AsStated,
    };
    let mut answers = Answers { args, binary: &binary, placement, outcome: Outcome::Done, answered: 0 };
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    answers.all(&mut out, &args.addresses)?;
    if args.format == LookupFormat::LlvmJson && answers.answered > 0 {
        writeln!(out, "]")?;
    }
    if args.addresses.is_empty() {
        let mut lines = LineBatches::new(io::stdin().lock());
        while let Some(batch) = lines.next_batch()? {
            answers.all(&mut out, &batch)?;
            out.flush()?;
        }
    }
    out.flush()?;
    for problem in binary.problems() {
        eprintln!("backtrail: {problem}");
    }
    Ok(answers.outcome)
}

struct Answers<'a> {
    args: &'a Lookup,
    binary: &'a Binary,
    placement: AddressKind,
    outcome: Outcome,
    answered: usize,
}

impl Answers<'_> {
    /// Answers addresses in their order; what is no address is said and passed over.
    fn all(&mut self, out: &mut dyn Write, texts: &[String]) -> Result<(), Failure> {
        let mut addresses = Vec::new();
        for text in texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
            match parse_address(text) {
                Ok(address) => addresses.push(address),
                Err(problem) => {
                    eprintln!("backtrail: {problem}");
                    self.outcome = Outcome::BadInput;
                }
            }
        }
        for part in addresses.chunks(MAX_BATCH) {
            let stated: Vec<_> =
                part.iter().map(|address| self.binary.stated_address(*address, self.placement)).collect();
            let inside: Vec<Svma> = stated.iter().flatten().copied().collect();
            if self.args.format == LookupFormat::Text {
                self.show(out, part, &stated, &inside)?;
                continue;
            }
            let mut located = self.binary.lookup_all(&inside).into_iter();
            for (address, stated) in part.iter().zip(stated) {
                let located = stated.and_then(|_| located.next()).unwrap_or_else(|| SymbolInfo::unknown(Reason::OutsideSections));
                self.one(out, *address, stated, &located)?;
            }
        }
        Ok(())
    }

    /// Answers in the form for people.
    fn show(
        &mut self,
        out: &mut dyn Write,
        addresses: &[u64],
        stated: &[Option<Svma>],
        inside: &[Svma],
    ) -> io::Result<()> {
        let outside = || SymbolInfo::unknown(Reason::OutsideSections)();
        let mut asked = addresses.iter().map(|address| Svma::new(*address)).zip(stated);
        let (binary, outcome) = (self.binary, &mut self.outcome);
        let mut write = |out: &mut dyn Write, address: Svma, shown: &SymbolInfoRef<'_>| {
            if shown.is_unknown() {
                *outcome = (*outcome).max(Outcome::Incomplete);
            }
            write_text(out, address, shown)
        };
        binary.show_all(inside, |shown| {
            for (address, stated) in asked.by_ref() {
                if stated.is_some() {
                    return write(&mut *out, address, shown);
                }
                write(&mut *out, address, &SymbolInfoRef::from(&outside))?;
            }
            Ok(())
        })?;
        self.answered += addresses.len();
        asked.try_for_each(|(address, _)| write(&mut *out, address, &SymbolInfoRef::from(&outside)))
    }

    /// LLVM prints one list for the addresses of a command line, and a line each for those of standard input.
    fn write_llvm_json(
        &self,
        out: &mut dyn Write,
        address: Svma,
        located: &SymbolInfo,
        details: &Details,
    ) -> io::Result<()> {
        let is_list = !self.args.addresses.is_empty();
        if is_list {
            out.write_all(if self.answered == 0 { b"[" } else { b"," })?;
        }
        llvm::write_json(out, &self.args.file.to_string_lossy(), address, located, details)?;
        if is_list { Ok(()) } else { writeln!(out) }
    }

    fn one(
        &mut self,
        out: &mut dyn Write,
        address: u64,
        stated: Option<Svma>,
        located: &SymbolInfo,
    ) -> Result<(), Failure> {
        let shown = Svma::new(address);
        let details = || stated.map(|stated| self.binary.details(stated)).unwrap_or_default();
        if located.is_unknown() {
            self.outcome = self.outcome.max(Outcome::Incomplete);
        }
        match self.args.format {
            LookupFormat::Text => write_text(out, shown, &SymbolInfoRef::from(located))?,
            LookupFormat::Json => backtrail::json::write_lookup(&mut *out, shown, located)?,
            LookupFormat::Llvm => llvm::write_text(out, located, &details())?,
            LookupFormat::LlvmJson => self.write_llvm_json(out, shown, located, &details())?,
        }
        self.answered += 1;
        Ok(())
    }
}

/// The address, then the functions innermost first, each on a line of its own.
fn write_text(out: &mut dyn Write, address: Svma, shown: &SymbolInfoRef<'_>) -> io::Result<()> {
    write!(out, "{address}")?;
    for (position, function) in shown.functions.iter().enumerate() {
        out.write_all(if position == 0 { b"  " } else { b"    inlined into " })?;
        out.write_all(function.name.as_bytes())?;
        if let Some(file) = function.file {
            out.write_all(b"  at ")?;
            out.write_all(file.as_bytes())?;
            match (function.line, function.column) {
                (Some(line), Some(column)) => writeln!(out, ":{line}:{column}")?,
                (Some(line), None) => writeln!(out, ":{line}")?,
                _ => writeln!(out)?,
            }
        } else {
            writeln!(out)?;
        }
    }
    match (shown.symbol, shown.reason) {
        _ if !shown.functions.is_empty() => Ok(()),
        (Some(symbol), _) => writeln!(out, "  {} + {}", symbol.name, symbol.offset),
        (None, Some(reason)) => writeln!(out, "  ???  ({})", reason.explain()),
        (None, None) => writeln!(out, "  ???"),
    }
}
