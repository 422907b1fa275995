//! Symbol files of other tools: GSYM and Breakpad's.

use crate::binary::Located;
use backtrail_core::{Arch, Function, ImageId, Reason, Svma, Symbol};
use backtrail_demangle::{Options, demangle};
use backtrail_table::breakpad::Breakpad;
use backtrail_table::exchange::{PlainAnswer, PlainFrame};
use backtrail_table::gsym::Gsym;

/// A symbol file of another tool.
pub(crate) enum Foreign<'d> {
    Gsym(Gsym<'d>),
    Breakpad(Box<Breakpad<'d>>),
}

impl<'d> Foreign<'d> {
    /// Whether bytes begin as one of these files does.
    pub(crate) fn is_one(data: &[u8]) -> bool {
        Gsym::is_gsym(data) || Breakpad::is_breakpad(data)
    }

    pub(crate) fn open(data: &'d [u8]) -> Result<Self, String> {
        let opened = match Gsym::is_gsym(data) {
            true => Gsym::open(data).map(Self::Gsym),
            false => Breakpad::open(data).map(|file| Self::Breakpad(Box::new(file))),
        };
        opened.map_err(|error| error.to_string())
    }

    /// What addresses count from. Breakpad's count from the image's start, wherever that is.
    pub(crate) fn image_base(&self) -> Svma {
        match self {
            Self::Gsym(gsym) => gsym.image_base(),
            Self::Breakpad(_) => Svma::new(0),
        }
    }

    pub(crate) fn id(&self) -> Option<ImageId> {
        match self {
            Self::Gsym(gsym) => gsym.id(),
            Self::Breakpad(file) => file.module().id(),
        }
    }

    /// The architecture, which GSYM does not state.
    pub(crate) fn arch(&self) -> Arch {
        match self {
            Self::Gsym(_) => Arch::Unknown,
            Self::Breakpad(file) => file.module().arch(),
        }
    }

    /// The image's name, which GSYM does not state.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Gsym(_) => None,
            Self::Breakpad(file) => Some(&file.module().name),
        }
    }

    /// What lies at an address of an image with that base.
    pub(crate) fn lookup_in(&self, image_base: Svma, address: Svma) -> Located {
        let (answer, address) = match self {
            Self::Gsym(gsym) => (gsym.lookup(address), address),
            Self::Breakpad(file) => {
                let Some(offset) = address.offset_from(image_base) else { return Located::outside() };
                (file.lookup(Svma::new(offset)), Svma::new(offset))
            }
        };
        match answer {
            Some(answer) => located(&answer, address),
            None => Located { reason: Some(Reason::NoSymbol), ..Located::default() },
        }
    }
}

fn located(answer: &PlainAnswer<'_>, address: Svma) -> Located {
    let function_offset = address.offset_from(answer.start);
    let answered = Located { function_offset, ..Located::default() };
    match answer.frames.as_slice() {
        [PlainFrame { name: b"", file: None, .. }] => Located { reason: Some(Reason::Stripped), ..answered },
        // Without a file it is no more than a symbol.
        [PlainFrame { name, file: None, line: 0, .. }] => {
            let (name, linkage_name) = names(name);
            let offset = function_offset.unwrap_or(0);
            Located { symbol: Some(Symbol { name, linkage_name, offset }), ..answered }
        }
        frames => Located { functions: frames.iter().map(function).collect(), ..answered },
    }
}

fn function(frame: &PlainFrame<'_>) -> Function {
    let (name, linkage_name) = names(frame.name);
    Function {
        name,
        linkage_name,
        file: frame.file.map(|file| file.to_text()),
        line: Some(frame.line).filter(|line| *line != 0),
        column: None,
        inlined: frame.inlined,
    }
}

/// The readable name and the linkage name: GSYM has the latter, Breakpad files the former, as a rule.
fn names(name: &[u8]) -> (String, Option<String>) {
    let name = String::from_utf8_lossy(name).into_owned();
    let readable = demangle(&name, &Options::default()).into_owned();
    (readable, Some(name))
}
