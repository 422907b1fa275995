//! `backtrail addr2line`: GNU addr2line's flags and output.

mod args;
mod gnu;
mod render;

pub(crate) use args::{Addr2line, expand};

use crate::io::console::Console;
use crate::io::file::refuse_pipe;
use crate::io::lines::LineBatches;
use crate::io::text::Text;
use crate::outcome::{Failure, Outcome};
use backtrail::{AddrRange, Arch, Binary, Details, OpenError, OpenOptions, Reason, Svma, SymbolInfo};
use render::Form;
use std::io;
use std::path::Path;

pub(crate) fn run(args: &Addr2line, console: &Console) -> Result<Outcome, Failure> {
    let mut out = console.stdout();
    let mut out = Text::new(&mut out, console.style_of_tools());
    if args.version {
        out.line(format_args!("addr2line (backtrail) {}", env!("CARGO_PKG_VERSION")))?;
        out.flush()?;
        return Ok(Outcome::Done);
    }
    let demangles = args.demangles().map_err(Failure::Input)?;
    let name = args.section.as_ref().map(|name| name.to_string_lossy());
    let binary = open(&args.exe, name.as_deref())?;
    let section = name.as_deref().map(|name| section(&binary, &args.exe, name)).transpose()?;
    let form = Form {
        addresses: args.addresses,
        functions: args.functions,
        inlines: args.inlines,
        pretty: args.pretty_print,
        basenames: args.basenames,
        demangles,
        digits: if binary.info().is_64 { 16 } else { 8 },
    };
    let answers = Answers { binary: &binary, section, form };
    if args.words.is_empty() {
        answers.of_stdin(&mut out, console)?;
    } else {
        let words: Vec<_> = args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        answers.of_words(&mut out, &words)?;
    }
    for problem in binary.problems() {
        console.warn(problem);
    }
    Ok(Outcome::Done)
}

/// Opens the file; the messages are GNU's. Of a fat file, which GNU does not know, the slice that runs here.
fn open(path: &Path, section: Option<&str>) -> Result<Binary, Failure> {
    let options = OpenOptions { section, ..OpenOptions::default() };
    let shown = path.display();
    refuse_pipe(path).map_err(Failure::Input)?;
    if !path.exists() {
        return Err(Failure::Input(format!("'{shown}': No such file")));
    }
    Binary::open_with(path, None, &options)
        .or_else(|error| match &error {
            OpenError::Ambiguous(_, archs) => {
                let native = archs.iter().find(|arch| **arch == native_arch()).or(archs.first());
                native.map_or(Err(error.clone()), |arch| Binary::open_with(path, Some(*arch), &options))
            }
            _ => Err(error),
        })
        .map_err(|error| match error {
            _ if path.is_dir() => Failure::Input(format!("'{shown}' is a directory")),
            error => Failure::Input(format!("{shown}: file format not recognized ({error})")),
        })
}

fn native_arch() -> Arch {
    if cfg!(target_arch = "aarch64") { Arch::Arm64 } else { Arch::X86_64 }
}

fn section(binary: &Binary, path: &Path, name: &str) -> Result<AddrRange<Svma>, Failure> {
    let found = binary.info().section(name);
    found.ok_or_else(|| Failure::Input(format!("{}: cannot find section {name}", path.display())))
}

struct Answers<'a> {
    binary: &'a Binary,
    /// What addresses count from.
    section: Option<AddrRange<Svma>>,
    form: Form,
}

impl Answers<'_> {
    fn of_words(&self, out: &mut Text<'_>, words: &[String]) -> io::Result<()> {
        let addresses: Vec<_> = words.iter().map(|word| self.address(word)).collect();
        let stated: Vec<_> = addresses.iter().filter_map(|address| self.stated(*address)).collect();
        self.binary.prepare(&stated);
        addresses.iter().try_for_each(|address| self.one(out, *address))?;
        out.flush()
    }

    /// The lines that are there are answered before the next ones are read, so that another program can talk to this one.
    fn of_stdin(&self, out: &mut Text<'_>, console: &Console) -> Result<(), Failure> {
        let mut lines = LineBatches::new(console.stdin());
        while let Some(batch) = lines.next_batch()? {
            self.of_words(out, &batch)?;
        }
        Ok(())
    }

    /// The address in a word, cut to what the file's addresses have room for.
    fn address(&self, word: &str) -> Svma {
        let address = args::address(word);
        Svma::new(if self.form.digits == 8 { address & u64::from(u32::MAX) } else { address })
    }

    fn one(&self, out: &mut Text<'_>, address: Svma) -> io::Result<()> {
        self.form.address(out, address)?;
        let (located, details) = match self.stated(address) {
            Some(stated) => {
                let located = self.binary.lookup(stated);
                let is_known = !located.is_unknown();
                (located, if is_known { self.binary.details(stated) } else { Details::default() })
            }
            None => (SymbolInfo::unknown(Reason::OutsideSections), Details::default()),
        };
        self.form.answer(out, &located, &details)
    }

    /// The address in the file, if its section reaches that far.
    fn stated(&self, address: Svma) -> Option<Svma> {
        let Some(section) = self.section else { return Some(address) };
        section.start().checked_add(address.get()).filter(|stated| section.contains(*stated))
    }
}
