//! `backtrail atos`: the flags and output of Apple's atos.

mod args;
mod render;

pub(crate) use args::{Atos, with_two_dashes};

use super::options::parse_address;
use crate::io::console::Console;
use crate::io::file::{read_at_most, refuse_pipe};
use crate::io::lines::LineBatches;
use crate::io::text::Text;
use crate::outcome::{Failure, Outcome};
use backtrail::{AddressKind, Arch, Avma, Binary, FrameAddress, OpenError, Reason, Svma, SymbolInfo};
use render::Form;
use std::io;
use std::path::Path;

/// As atos prints it, behind an empty line.
const USAGE: &str = "\nUsage: atos -o executable/dSYM [-f file-of-input-addresses] [-s slide | -l loadAddress | \
                     -textExecAddress addr | -offset] [-arch architecture] [-printHeader] [-fullPath] [-inlineFrames] \
                     [-d delimiter] [address ...]\n";

/// Bytes of a file of addresses: ten million and more.
const MAX_ADDRESSES: u64 = 1 << 28;

pub(crate) fn run(args: &Atos, console: &Console) -> Result<Outcome, Failure> {
    if let Some(process) = &args.process {
        let message =
            "running processes cannot be read; pass the binary or its dSYM with -o, and -l with the load";
        return Err(Failure::Input(format!("-p {}: {message} address", process.display())));
    }
    let Some(path) = &args.object else {
        let message = "[invalid usage]: no processes or executables specified".to_owned();
        return Err(Failure::OfTool { message, usage: USAGE });
    };
    [Some(path), args.file.as_ref()]
        .into_iter()
        .flatten()
        .try_for_each(|path| refuse_pipe(path))
        .map_err(Failure::Input)?;
    let binary = open(path, args.arch.as_deref())?;
    let delimiter = args.delimiter.to_string_lossy();
    let form = Form {
        image: &binary.info().name,
        inlines: args.inline_frames,
        full_path: args.full_path,
        delimiter: &delimiter,
    };
    let answers = Answers { binary: &binary, origin: Origin::of(args, &binary)?, form };
    let mut out = console.stdout();
    let mut out = Text::new(&mut out, console.style_of_tools());
    if let Some(file) = &args.file {
        let text = read_at_most(file, MAX_ADDRESSES)
            .map_err(|error| Failure::Input(format!("{}: {error}", file.display())))?;
        let text = String::from_utf8_lossy(&text);
        answers.all(&mut out, &text.split_whitespace().collect::<Vec<_>>())?;
    }
    if !args.addresses.is_empty() {
        let words: Vec<_> = args.addresses.iter().map(|word| word.to_string_lossy()).collect();
        answers.all(&mut out, &words.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
    } else if args.file.is_none() {
        answers.of_stdin(&mut out, console)?;
    }
    for problem in binary.problems() {
        console.warn(problem);
    }
    Ok(Outcome::Done)
}

/// Opens the file; the message is that of atos, with the reason behind it.
fn open(path: &Path, arch: Option<&str>) -> Result<Binary, Failure> {
    let wanted = arch.map(|name| {
        let unknown = || Failure::Input(format!("-arch: no architecture is called {name:?}"));
        Arch::from_name(name).ok_or_else(unknown)
    });
    let wanted = wanted.transpose()?;
    let opened = Binary::open(path, wanted).or_else(|error| match (&error, wanted) {
        (OpenError::Ambiguous(_, archs), None) => {
            let chosen = archs.iter().find(|arch| **arch == Arch::Arm64).or(archs.first());
            chosen.map_or(Err(error.clone()), |arch| Binary::open(path, Some(*arch)))
        }
        // Whoever runs arm64e runs arm64 as well.
        (OpenError::NoSuchArch(_, Arch::Arm64, archs), _) if archs.contains(&Arch::Arm64e) => {
            Binary::open(path, Some(Arch::Arm64e))
        }
        _ => Err(error),
    });
    opened.map_err(|error| {
        let arch = arch.unwrap_or("arm64");
        let shown = path.display();
        let problem = "atos cannot load symbols for the file";
        let message = format!("{problem} {shown} for architecture {arch}. ({error})");
        Failure::OfTool { message, usage: "" }
    })
}

/// What addresses count from.
#[derive(Clone, Copy)]
enum Origin {
    Placed(AddressKind),
    Offset,
}

impl Origin {
    fn of(args: &Atos, binary: &Binary) -> Result<Self, Failure> {
        let number = |text: &str| parse_address(text).map_err(Failure::Input);
        if let Some(text) = &args.text_exec_address {
            let segment = binary.info().segment("__TEXT_EXEC");
            let problem =
                || Failure::Input("-textExecAddress: the file has no segment __TEXT_EXEC".to_owned());
            let stated = segment.ok_or_else(problem)?.start();
            return Ok(Self::Placed(AddressKind::WithSlide(number(text)?.wrapping_sub(stated.get()))));
        }
        Ok(match (&args.load_address, &args.slide) {
            (Some(load), _) => Self::Placed(AddressKind::LoadedAt(Avma::new(number(load)?))),
            (None, Some(slide)) => Self::Placed(AddressKind::WithSlide(number(slide)?)),
            (None, None) if args.offset => Self::Offset,
            (None, None) => Self::Placed(AddressKind::AsStated),
        })
    }
}

struct Answers<'a> {
    binary: &'a Binary,
    origin: Origin,
    form: Form<'a>,
}

impl Answers<'_> {
    fn all(&self, out: &mut Text<'_>, words: &[&str]) -> io::Result<()> {
        let stated: Vec<_> = words.iter().filter_map(|word| self.stated(args::address(word)?)).collect();
        self.binary.prepare(&stated);
        words.iter().try_for_each(|word| self.one(out, word))?;
        out.flush()
    }

    /// The lines that are there are answered before the next ones are read, so that another program can talk to this one.
    fn of_stdin(&self, out: &mut Text<'_>, console: &Console) -> Result<(), Failure> {
        let mut lines = LineBatches::new(console.stdin());
        while let Some(batch) = lines.next_batch()? {
            let words: Vec<&str> = batch.iter().flat_map(|line| line.split_whitespace()).collect();
            self.all(out, &words)?;
        }
        Ok(())
    }

    fn one(&self, out: &mut Text<'_>, word: &str) -> io::Result<()> {
        let address = args::address(word).filter(|address| *address != 0);
        let stated = address.and_then(|address| self.stated(address));
        let located = stated.map_or_else(
            || SymbolInfo::unknown(Reason::OutsideSections),
            |stated| self.binary.lookup(stated),
        );
        let is_inside = stated.is_some_and(|stated| self.binary.info().contains(stated));
        // With -offset the address itself is shown, not the offset.
        let shown = match (self.origin, stated) {
            (Origin::Offset, Some(stated)) => stated.get(),
            _ => address.unwrap_or(0),
        };
        self.form.answer(out, &located, (word, shown), is_inside)
    }

    fn stated(&self, address: u64) -> Option<Svma> {
        match self.origin {
            Origin::Placed(placement) => {
                self.binary.stated_address(FrameAddress::Exact(Avma::new(address)), placement)
            }
            Origin::Offset => self.binary.info().image_base.checked_add(address),
        }
    }
}
