//! `backtrail lookup`: addresses of one binary into functions.

use super::options::{Cache, Servers, local, named_arch, parse_address};
use crate::io::console::Console;
use crate::io::file::refuse_pipe;
use crate::io::json::buffered;
use crate::io::lines::LineBatches;
use crate::io::text::{Style, Text};
use crate::outcome::{Failure, Outcome};
use crate::render::llvm;
use backtrail::{
    AddressKind, Avma, Binary, Details, FrameAddress, OpenOptions, Reason, Svma, SymbolInfo, SymbolInfoRef,
};
use clap::{Args, ValueEnum};
use std::io::{self, Write};
use std::path::PathBuf;

/// Turns addresses of one binary into functions, inline chains, files and lines.
///
/// Addresses are hexadecimal, with or without 0x. They are looked up as they are: for a return address pass the
/// address minus one.
#[derive(Args, Debug)]
pub(crate) struct Lookup {
    /// The binary, dSYM bundle or debug file.
    #[arg(short = 'e', long = "exe", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where to look for its debug file, table or symbol file, by its identity: a file, a directory searched recursively, or a
    /// server, as for `symbolicate`. Repeatable.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) servers: Servers,
    #[command(flatten)]
    pub(crate) cache: Cache,
    /// Which slice of a fat file.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Addresses are of a process that has the file mapped at X.
    #[arg(long, value_name = "X", value_parser = parse_address, conflicts_with = "slide")]
    pub(crate) load_address: Option<u64>,
    /// Addresses are of a process that has the file mapped X bytes above its stated address.
    #[arg(long, value_name = "X", value_parser = parse_address)]
    pub(crate) slide: Option<u64>,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t = LookupFormat::Text)]
    pub(crate) format: LookupFormat,
    /// The addresses; read from standard input, one a line, where none are given.
    #[arg(value_name = "ADDR")]
    pub(crate) addresses: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LookupFormat {
    /// For people.
    Text,
    /// For programs; one line each.
    Json,
    /// As llvm-symbolizer prints it.
    Llvm,
    /// As llvm-symbolizer --output-style=JSON prints it.
    LlvmJson,
}

/// Answers that are held at a time.
const MAX_BATCH: usize = 1 << 14;

pub(crate) fn run(args: &Lookup, console: &Console) -> Result<Outcome, Failure> {
    let arch = args.arch.as_deref().map(named_arch).transpose()?;
    let symbols = local(&args.symbols);
    std::iter::once(&args.file)
        .chain(&symbols)
        .try_for_each(|path| refuse_pipe(path))
        .map_err(Failure::Input)?;
    let cache = args.cache.tables();
    let remote = args.servers.remote(&args.symbols, console);
    let options = OpenOptions {
        symbols: &symbols,
        cache: cache.as_ref(),
        remote: remote.as_ref(),
        ..OpenOptions::default()
    };
    let binary = Binary::open_with(&args.file, arch, &options);
    let binary = binary.map_err(|error| Failure::Input(error.to_string()))?;
    let placement = match (args.load_address, args.slide) {
        (Some(load), _) => AddressKind::LoadedAt(Avma::new(load)),
        (None, Some(slide)) => AddressKind::WithSlide(slide),
        (None, None) => AddressKind::AsStated,
    };
    let mut answers =
        Answers { args, binary: &binary, placement, console, outcome: Outcome::Done, answered: 0 };
    let is_safe_json = match args.format {
        LookupFormat::Json => true,
        // For programs, the bytes that the other tool writes.
        LookupFormat::LlvmJson => console.stdout_is_terminal(),
        LookupFormat::Text | LookupFormat::Llvm => false,
    };
    let mut out: Box<dyn Write + '_> =
        if is_safe_json { Box::new(buffered(console.stdout())) } else { Box::new(console.stdout()) };
    answers.all(&mut out, &args.addresses)?;
    if args.format == LookupFormat::LlvmJson && answers.answered > 0 {
        writeln!(out, "]")?;
    }
    if args.addresses.is_empty() {
        let mut lines = LineBatches::new(console.stdin());
        while let Some(batch) = lines.next_batch()? {
            answers.all(&mut out, &batch)?;
            out.flush()?;
        }
    }
    out.flush()?;
    for problem in binary.problems() {
        console.warn(problem);
    }
    Ok(answers.outcome)
}

struct Answers<'a> {
    args: &'a Lookup,
    binary: &'a Binary,
    placement: AddressKind,
    console: &'a Console,
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
                    self.console.warn(problem);
                    self.outcome = Outcome::BadInput;
                }
            }
        }
        for part in addresses.chunks(MAX_BATCH) {
            let stated = |address: &u64| {
                self.binary.stated_address(FrameAddress::Exact(Avma::new(*address)), self.placement)
            };
            let stated: Vec<_> = part.iter().map(stated).collect();
            let inside: Vec<Svma> = stated.iter().flatten().copied().collect();
            if self.args.format == LookupFormat::Text {
                self.show(out, part, &stated, &inside)?;
                continue;
            }
            let mut located = self.binary.lookup_all(&inside).into_iter();
            for (address, stated) in part.iter().zip(stated) {
                let located = stated
                    .and_then(|_| located.next())
                    .unwrap_or_else(|| SymbolInfo::unknown(Reason::OutsideSections));
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
        let outside = SymbolInfo::unknown(Reason::OutsideSections);
        let mut asked = addresses.iter().map(|address| Svma::new(*address)).zip(stated);
        let (binary, outcome) = (self.binary, &mut self.outcome);
        let mut write = |out: &mut dyn Write, address: Svma, shown: &SymbolInfoRef<'_>| {
            if shown.is_unknown() {
                *outcome = (*outcome).max(Outcome::Incomplete);
            }
            write_text(&mut Text::new(out, Style::PLAIN), address, shown)
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
        let module = self.args.file.to_string_lossy();
        llvm::write_json(out, &module, address, located, details)?;
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
            LookupFormat::Text => {
                write_text(&mut Text::new(out, Style::PLAIN), shown, &SymbolInfoRef::from(located))?;
            }
            LookupFormat::Json => backtrail::json::write_lookup(&mut *out, shown, located)?,
            LookupFormat::Llvm => {
                llvm::write_text(&mut Text::new(out, self.console.style_of_tools()), located, &details())?;
            }
            LookupFormat::LlvmJson => self.write_llvm_json(out, shown, located, &details())?,
        }
        self.answered += 1;
        Ok(())
    }
}

/// The address, then the functions innermost first, each on a line of its own.
fn write_text(out: &mut Text<'_>, address: Svma, shown: &SymbolInfoRef<'_>) -> io::Result<()> {
    out.put(address)?;
    for (position, function) in shown.functions.iter().enumerate() {
        out.put_str(if position == 0 { "  " } else { "    inlined into " })?;
        out.put_str(function.name)?;
        if let Some(file) = &function.file {
            out.put_str("  at ")?;
            out.put_str(file)?;
            match (function.line, function.column) {
                (Some(line), Some(column)) => out.put(format_args!(":{line}:{column}"))?,
                (Some(line), None) => out.put(format_args!(":{line}"))?,
                _ => {}
            }
        }
        out.end()?;
    }
    match (shown.symbol, shown.reason) {
        _ if !shown.functions.is_empty() => Ok(()),
        (Some(symbol), _) => out.line(format_args!("  {} + {}", symbol.name, symbol.offset)),
        (None, Some(reason)) => out.line(format_args!("  ???  ({})", reason.explain())),
        (None, None) => out.line("  ???"),
    }
}
