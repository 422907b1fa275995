//! Unwind tables as a person reads them: which function, where the caller's frame and registers are, what the tables
//! leave out.

mod compact;
mod coverage;
mod exidx;
mod expression;
mod frames;
pub(crate) mod postfix;
mod text;

use crate::files::debug_files_in;
use crate::symbol_names::SymbolNames;
use backtrail_core::{AddrRange, Arch, Svma};
use backtrail_object::{Limits, Object, slices};
use backtrail_store::{Error, ErrorKind, FileData, UnwindTables, object_error};
use backtrail_unwind::Sections;
use backtrail_unwind::cfi::Flavour;
use coverage::Coverage;
use serde::Serialize;
use std::io;
use std::path::Path;

pub use coverage::{Gap, Summary};

/// What to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Selection {
    /// Everything, gaps and totals too.
    #[default]
    All,
    /// What the tables say about one address.
    Address(Svma),
    /// The functions of this name, as the linker or as people spell it.
    Function(String),
}

/// One piece of a listing.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Item {
    /// A slice begins.
    File(File),
    /// A function's entry in a table.
    Function(Box<Function>),
    /// Code that no table covers.
    Gap(Gap),
    /// The slice's totals.
    Summary(Summary),
    /// Something could not be read.
    Problem {
        /// What, and where.
        message: String,
    },
}

/// A file's slice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct File {
    /// The file.
    pub path: String,
    /// The archive member, for members.
    pub member: Option<String>,
    /// Its architecture.
    pub arch: &'static str,
    /// The tables that it has.
    pub tables: Vec<Table>,
}

/// A table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Table {
    /// As the format calls it: `eh_frame`, `debug_frame`, `compact-unwind`, `exidx`.
    pub name: &'static str,
    /// Where it lies.
    #[serde(serialize_with = "hex")]
    pub address: Svma,
    /// Its size in bytes.
    pub size: usize,
}

/// What one table says about a function, or several that it treats as one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Function {
    /// Which table.
    pub table: &'static str,
    /// The first address.
    #[serde(serialize_with = "hex")]
    pub start: Svma,
    /// The first address behind it.
    #[serde(serialize_with = "hex")]
    pub end: Svma,
    /// The symbol at the start, readable.
    pub name: Option<String>,
    /// The same as the linker spells it.
    pub linkage_name: Option<String>,
    /// The entry in the table's own terms.
    pub entry: Option<String>,
    /// Where the language's data is.
    #[serde(serialize_with = "optional_hex")]
    pub lsda: Option<Svma>,
    /// The personality routine, or where its address is.
    #[serde(serialize_with = "optional_hex")]
    pub personality: Option<Svma>,
    /// The rules, by address.
    pub rows: Vec<Row>,
    /// What is wrong with the entry.
    pub problem: Option<String>,
}

impl Function {
    fn new(table: &'static str, range: AddrRange<Svma>) -> Self {
        Self {
            table,
            start: range.start(),
            end: range.end(),
            name: None,
            linkage_name: None,
            entry: None,
            lsda: None,
            personality: None,
            rows: Vec::new(),
            problem: None,
        }
    }
}

/// Rules for a range of addresses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// The first address.
    #[serde(serialize_with = "hex")]
    pub start: Svma,
    /// The first address behind it.
    #[serde(serialize_with = "hex")]
    pub end: Svma,
    /// The caller's stack pointer: `rsp+16`.
    pub cfa: String,
    /// Where the return address is: `[CFA-8]`, `x30`.
    pub return_address: String,
    /// The registers that were saved or changed, by number: `rbx=[CFA-24]`.
    pub registers: Vec<Saved>,
    /// Whether the kernel made the frame.
    pub is_signal_frame: bool,
}

/// A register and where the caller's value of it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Saved {
    /// The register.
    pub register: String,
    /// Its rule.
    pub rule: String,
}

/// Takes the pieces of a listing as they come.
pub type Receiver<'a> = dyn FnMut(Item) -> io::Result<()> + 'a;

/// Lists the tables of the file at `path`, slice by slice; of all slices, or those of `arch`.
///
/// Returns whether anything was found that the selection asks for.
///
/// # Errors
/// Where the file is no object file, has no such slice, or the receiver fails.
pub fn list(
    path: impl AsRef<Path>,
    arch: Option<Arch>,
    selection: &Selection,
    receiver: &mut Receiver<'_>,
) -> Result<bool, ListError> {
    let path = path.as_ref();
    let mut is_found = false;
    let mut is_any = false;
    for file in debug_files_in(path) {
        let data = FileData::map(&file).map_err(ListError::Input)?;
        let unreadable = |error| ListError::Input(object_error(file.display(), &error));
        for slice in slices(&data, &Limits::default()).map_err(unreadable)? {
            if arch.is_some_and(|arch| arch != slice.arch) {
                continue;
            }
            is_any = true;
            match slice.parse(&Limits::default()) {
                Ok(object) => {
                    let listing = Listing::new(&object, selection);
                    let file = listing.file(file.display().to_string(), slice.member.clone());
                    receiver(Item::File(file))?;
                    is_found |= listing.write(receiver)?;
                }
                Err(error) => receiver(Item::Problem { message: error.to_string() })?,
            }
        }
    }
    if is_any {
        return Ok(is_found);
    }
    let wanted = arch.map_or(String::new(), |arch| format!(" for {arch}"));
    let what = format!("no object file{wanted} in it");
    Err(ListError::Input(Error::new(ErrorKind::Object, path.display(), what)))
}

/// Why a listing could not go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListError {
    /// The file cannot be read.
    Input(Error),
    /// The receiver failed.
    Output(io::Error),
}

impl From<io::Error> for ListError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl std::fmt::Display for ListError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ListError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Input(error) => Some(error),
            Self::Output(error) => Some(error),
        }
    }
}

/// The listing of one slice.
struct Listing<'o, 'd> {
    object: &'o Object<'d>,
    tables: UnwindTables<'d>,
    names: SymbolNames,
    selection: &'o Selection,
    /// The ranges that are wanted; `None` for all.
    wanted: Option<Vec<AddrRange<Svma>>>,
}

impl<'o, 'd> Listing<'o, 'd> {
    fn new(object: &'o Object<'d>, selection: &'o Selection) -> Self {
        let names = SymbolNames::read(object);
        let wanted = match selection {
            Selection::All => None,
            Selection::Address(address) => Some(vec![AddrRange::from_size(*address, 1)]),
            Selection::Function(name) => Some(names.ranges_of(name)),
        };
        Self { object, tables: UnwindTables::read(object), names, selection, wanted }
    }

    fn file(&self, path: String, member: Option<String>) -> File {
        let sections = self.tables.sections();
        let table = |name, section: Option<backtrail_unwind::Section<'_>>| {
            section.map(|section| Table { name, address: section.start, size: section.data.len() })
        };
        let tables = [
            table("eh_frame", sections.eh_frame),
            table("debug_frame", sections.debug_frame),
            table("compact-unwind", sections.unwind_info),
            table("exidx", sections.exidx),
        ];
        let tables = tables.into_iter().flatten().collect();
        File { path, member, arch: self.object.arch().name(), tables }
    }

    fn write(&self, receiver: &mut Receiver<'_>) -> io::Result<bool> {
        for problem in self.tables.problems() {
            receiver(Item::Problem { message: problem.clone() })?;
        }
        let sections = self.tables.sections();
        let mut coverage = Coverage::default();
        let mut is_found = false;
        let problems = Self::each(&sections, &mut |range, is_rule, function| {
            if is_rule {
                coverage.add(range);
            }
            if !self.is_wanted(range) {
                return Ok(());
            }
            is_found = true;
            receiver(Item::Function(Box::new(self.complete(range, function()))))
        })?;
        for message in problems {
            receiver(Item::Problem { message })?;
        }
        let (gaps, summary) = coverage.finish(self.object, &self.names);
        let is_all = *self.selection == Selection::All;
        for gap in gaps {
            if is_all || self.is_wanted(AddrRange::new(gap.range.start(), gap.range.end())) {
                receiver(Item::Gap(gap))?;
            }
        }
        if is_all {
            receiver(Item::Summary(summary))?;
        }
        Ok(is_found || is_all)
    }

    /// Every entry of every table: its range, whether it has a rule, and how to describe it.
    /// Gives what is wrong with tables that could not be read to their end.
    fn each(sections: &Sections<'_>, visit: &mut Visit<'_>) -> io::Result<Vec<String>> {
        let mut problems = frames::each(sections, Flavour::EhFrame, visit)?;
        problems.extend(frames::each(sections, Flavour::DebugFrame, visit)?);
        compact::each(sections, visit)?;
        exidx::each(sections, visit)?;
        Ok(problems)
    }

    fn is_wanted(&self, range: AddrRange<Svma>) -> bool {
        let overlaps =
            |wanted: &AddrRange<Svma>| wanted.start() < range.end() && range.start() < wanted.end();
        self.wanted.as_ref().is_none_or(|wanted| wanted.iter().any(overlaps))
    }

    /// SymbolNames the function; for a single address leaves the row that holds there.
    fn complete(&self, range: AddrRange<Svma>, mut function: Function) -> Function {
        if let Some(symbol) = self.names.at(range.start()) {
            function.name = Some(symbol.readable());
            function.linkage_name = Some(symbol.name.clone());
        }
        if let Selection::Address(address) = self.selection {
            function.rows.retain(|row| row.covers(*address));
        }
        function
    }
}

/// Takes an entry: its range, whether the entry has a rule, and what describes it.
type Visit<'v> = dyn FnMut(AddrRange<Svma>, bool, &dyn Fn() -> Function) -> io::Result<()> + 'v;

/// Addresses are strings in JSON, whose numbers lose bits above 2^53.
fn hex<S: serde::Serializer>(address: &Svma, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{:#x}", address.get()))
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn optional_hex<S: serde::Serializer>(address: &Option<Svma>, serializer: S) -> Result<S::Ok, S::Error> {
    match address {
        Some(address) => hex(address, serializer),
        None => serializer.serialize_none(),
    }
}
