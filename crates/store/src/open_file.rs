//! A file that is open and parsed, for everybody who reads it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use backtrail_core::{Arch, ImageId, Svma};
use backtrail_object::{Format, Kind, Limits, Object};
use backtrail_table::breakpad::Breakpad;
use backtrail_table::gsym::Gsym;
use backtrail_table::{Header, Table};
use self_cell::self_cell;

use crate::data::FileData;
use crate::entry::rank;

/// Which names a file has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Names {
    /// None at all.
    None,
    /// Those that it exports to others.
    Exports,
    /// Those of functions, too, as far as a symbol table has them.
    Symbols,
    /// Those of debug info, or of a file made from it.
    DebugInfo,
}

/// What a file turned out to be.
enum Content<'d> {
    Object(Arc<Object<'d>>),
    Table(Box<Table<'d>>),
    Symbols(Box<ExternalSymbolFile<'d>>),
    Unreadable(String),
}

self_cell!(
    struct Parsed {
        owner: FileData,
        #[covariant]
        dependent: Content,
    }
);

/// One binary, debug file, table or symbol file, open and with its headers read. [`Index`](crate::Index) hands the same
/// one out to all who ask for the same file.
pub struct OpenFile {
    name: String,
    path: PathBuf,
    parsed: Parsed,
    /// The ELF file that a stripped binary may have inside of it, with the symbols that were stripped off.
    embedded: OnceLock<Option<Arc<OpenFile>>>,
}

impl OpenFile {
    /// Parses `bytes`. `name` is what the file is called for people, `path` where it lies on the disk, or would lie.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>, bytes: FileData) -> Arc<Self> {
        Arc::new(Self::parse(name.into(), path.into(), bytes, None))
    }

    /// As [`new`](Self::new); where the sections of the file lie one over the other, addresses mean this one.
    pub fn with_section(
        name: impl Into<String>,
        path: impl Into<PathBuf>,
        bytes: FileData,
        section: &str,
    ) -> Arc<Self> {
        Arc::new(Self::parse(name.into(), path.into(), bytes, Some(section)))
    }

    fn parse(name: String, path: PathBuf, bytes: FileData, section: Option<&str>) -> Self {
        let parsed = Parsed::new(bytes, |bytes| content(bytes, section).unwrap_or_else(Content::Unreadable));
        Self { name, path, parsed, embedded: OnceLock::new() }
    }

    /// What it is called for people: a path, `zip!member`, `memory of libc.so.6`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it lies on the disk: the zip, for its members.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes.
    pub fn bytes(&self) -> &FileData {
        self.parsed.borrow_owner()
    }

    fn content(&self) -> &Content<'_> {
        self.parsed.borrow_dependent()
    }

    /// The parsed object file, where it is one.
    pub fn object(&self) -> Option<&Object<'_>> {
        match self.content() {
            Content::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The same, to be shared.
    pub fn shared_object(&self) -> Option<Arc<Object<'_>>> {
        match self.content() {
            Content::Object(object) => Some(Arc::clone(object)),
            _ => None,
        }
    }

    /// The symbol table file, where it is one.
    pub fn table(&self) -> Option<&Table<'_>> {
        match self.content() {
            Content::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The symbol file of another tool, where it is one.
    pub fn external_symbols(&self) -> Option<&ExternalSymbolFile<'_>> {
        match self.content() {
            Content::Symbols(file) => Some(file),
            _ => None,
        }
    }

    /// Why it cannot be read.
    pub fn problem(&self) -> Option<&str> {
        match self.content() {
            Content::Unreadable(problem) => Some(problem),
            _ => None,
        }
    }

    /// The ELF file in `.gnu_debugdata`, where there is one and it can be read.
    pub fn embedded(&self) -> Option<&Arc<OpenFile>> {
        let open = || {
            let bytes = self.object()?.gnu_debugdata()?.ok()?;
            let name = format!("{} (.gnu_debugdata)", self.name);
            Some(Self::new(name, self.path.clone(), FileData::from(bytes)))
        };
        self.embedded.get_or_init(open).as_ref()
    }

    /// The identity that it states.
    pub fn id(&self) -> Option<ImageId> {
        match self.content() {
            Content::Object(object) => object.id(),
            Content::Table(table) => table.header().id,
            Content::Symbols(file) => file.id(),
            Content::Unreadable(_) => None,
        }
    }

    /// The architecture that it states.
    pub fn arch(&self) -> Arch {
        match self.content() {
            Content::Object(object) => object.arch(),
            Content::Table(table) => table.header().arch,
            Content::Symbols(file) => file.arch(),
            Content::Unreadable(_) => Arch::Unknown,
        }
    }

    /// The address that offsets in the image count from.
    pub fn image_base(&self) -> Option<Svma> {
        match self.content() {
            Content::Object(object) => Some(object.image_base()),
            Content::Table(table) => Some(table.header().image_base),
            Content::Symbols(file) => Some(file.image_base()),
            Content::Unreadable(_) => None,
        }
    }

    /// Whether it is an object file with code in it: a binary, not a debug file.
    pub fn has_code(&self) -> bool {
        let sections = self.object().map(Object::sections).unwrap_or_default();
        sections.iter().any(|section| section.is_code && section.file.is_some())
    }

    /// Whether it has debug info of its own.
    pub fn has_debug_info(&self) -> bool {
        self.object().is_some_and(Object::has_debug_info)
    }

    /// Which names it has.
    pub fn names(&self) -> Names {
        match self.content() {
            Content::Table(table) if !table.header().has_debug_info() => Names::Symbols,
            Content::Table(_) | Content::Symbols(_) => Names::DebugInfo,
            Content::Object(object) if object.has_debug_info() => Names::DebugInfo,
            Content::Object(object) if object.format() == Format::Elf => {
                let has = |name: &str| object.section(name).is_some();
                // Of Go's functions, their table has all names.
                if [".symtab", ".gnu_debugdata", ".gopclntab"].into_iter().any(has) {
                    Names::Symbols
                } else if object.has_symbols() && exports_code(object) {
                    Names::Exports
                } else {
                    Names::None
                }
            }
            Content::Object(object) if object.has_symbols() => Names::Symbols,
            Content::Object(_) | Content::Unreadable(_) => Names::None,
        }
    }

    /// How much it says about addresses; the least is the best. See [`Index::find`](crate::Index::find).
    pub(crate) fn rank(&self) -> u8 {
        match self.content() {
            Content::Table(table) => rank(Kind::Table, table.header().has_debug_info(), true),
            Content::Object(object) => rank(object.kind(), object.has_debug_info(), object.has_symbols()),
            Content::Symbols(_) => rank(Kind::SymbolFile, false, true),
            Content::Unreadable(_) => u8::MAX,
        }
    }
}

/// Whether a file without a symbol table of its own has names of code for others: what it wants of them is in the same
/// table.
fn exports_code(object: &Object<'_>) -> bool {
    object.symbols_and_problems().0.iter().any(|symbol| symbol.is_code)
}

fn content<'d>(bytes: &'d [u8], section: Option<&str>) -> Result<Content<'d>, String> {
    if ExternalSymbolFile::is_one(bytes) {
        return ExternalSymbolFile::open(bytes).map(|file| Content::Symbols(Box::new(file)));
    }
    if bytes.starts_with(&Header::MAGIC) {
        let table = Table::open(bytes).map_err(|error| error.to_string())?;
        return Ok(Content::Table(Box::new(table)));
    }
    let mut object = Object::parse_with(bytes, &Limits::default()).map_err(|error| error.to_string())?;
    if let Some(section) = section {
        object.select_section(section);
    }
    Ok(Content::Object(Arc::new(object)))
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A symbol file of another tool.
#[derive(Debug)]
pub enum ExternalSymbolFile<'d> {
    /// LLVM's.
    Gsym(Gsym<'d>),
    /// Breakpad's.
    Breakpad(Box<Breakpad<'d>>),
}

impl<'d> ExternalSymbolFile<'d> {
    /// Whether bytes begin as one of these files does.
    pub fn is_one(data: &[u8]) -> bool {
        Gsym::is_gsym(data) || Breakpad::is_breakpad(data)
    }

    fn open(data: &'d [u8]) -> Result<Self, String> {
        let opened = match Gsym::is_gsym(data) {
            true => Gsym::open(data).map(Self::Gsym),
            false => Breakpad::open(data).map(|file| Self::Breakpad(Box::new(file))),
        };
        opened.map_err(|error| error.to_string())
    }

    /// What addresses count from. Breakpad's count from the image's start, wherever that is.
    pub fn image_base(&self) -> Svma {
        match self {
            Self::Gsym(gsym) => gsym.image_base(),
            Self::Breakpad(_) => Svma::new(0),
        }
    }

    /// The identity that it states.
    pub fn id(&self) -> Option<ImageId> {
        match self {
            Self::Gsym(gsym) => gsym.id(),
            Self::Breakpad(file) => file.module().id(),
        }
    }

    /// The architecture, which GSYM does not state.
    pub fn arch(&self) -> Arch {
        match self {
            Self::Gsym(_) => Arch::Unknown,
            Self::Breakpad(file) => file.module().arch(),
        }
    }

    /// The image's name, which GSYM does not state.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Gsym(_) => None,
            Self::Breakpad(file) => Some(&file.module().name),
        }
    }
}
