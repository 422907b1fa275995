//! One binary, asked for addresses.

use crate::cache::TableCache;
use crate::facts::Facts;
use crate::foreign::Foreign;
use crate::inspect::files;
use crate::open_image::OpenImage;
use backtrail_core::{Arch, Avma, Bias, FrameAddress, Function, ImageId, Reason, Svma, Symbol};
use backtrail_object::{Kind, Limits, Object, Slice, slices};
use backtrail_report::Frame;
use backtrail_store::{DebugLinkCheck, Entry, FileData, Index, Locator, NoProgress, ScanOptions};
use backtrail_symbolize::{Answer, FunctionRef, SymbolRef, TableAnswer, TextFunction};
use backtrail_table::Header;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A binary with the debug files that belong to it: what is beside it, and what it names.
#[derive(Debug)]
pub struct Binary {
    pub(crate) open: OpenImage,
    index: Index,
    facts: Facts,
}

/// What lies at an address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Located {
    /// The functions, innermost first; empty without debug info for the address.
    pub functions: Vec<Function>,
    /// The symbol table's answer, where debug info had none.
    pub symbol: Option<Symbol>,
    /// Why there is neither.
    pub reason: Option<Reason>,
    /// Bytes from the start of the machine function to the address.
    pub function_offset: Option<u64>,
}

/// Where else a binary's answers may come from.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions<'o> {
    /// Paths below which the files of its identity are looked for.
    pub symbols: &'o [PathBuf],
    /// Where a table of its debug info is kept, made when there is none.
    pub cache: Option<&'o TableCache>,
    /// The section that addresses mean where several lie one over the other, as in `.o` files; else the first that is
    /// long enough.
    pub section: Option<&'o str>,
}

/// What lies at an address, in borrowed texts: [`Located`] for who shows it and forgets it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shown<'a> {
    /// The functions, innermost first; empty without debug info for the address.
    pub functions: Vec<TextFunction<'a>>,
    /// The symbol table's answer, where debug info had none.
    pub symbol: Option<&'a Symbol>,
    /// Why there is neither.
    pub reason: Option<Reason>,
}

impl<'a> Shown<'a> {
    /// The same answer in borrowed texts.
    pub fn of(located: &'a Located) -> Self {
        let function = |function: &'a Function| TextFunction {
            name: &function.name,
            file: function.file.as_deref(),
            line: function.line,
            column: function.column,
            inlined: function.inlined,
        };
        Self {
            functions: located.functions.iter().map(function).collect(),
            symbol: located.symbol.as_ref(),
            reason: located.reason,
        }
    }

    /// Whether there is no name at all.
    pub fn is_unknown(&self) -> bool {
        self.functions.is_empty() && self.symbol.is_none()
    }
}

/// Which addresses the caller has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Addresses as the file states them.
    AsStated,
    /// Addresses of a process that has the file's first byte at this address.
    LoadedAt(Avma),
    /// Addresses of a process that has the file this many bytes above its stated address.
    Slid(u64),
}

/// Why a binary cannot be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It holds several slices; one of these architectures has to be chosen.
    Ambiguous(PathBuf, Vec<Arch>),
    /// It holds no slice of that architecture, only these.
    NoSuchArch(PathBuf, Arch, Vec<Arch>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |archs: &[Arch]| archs.iter().map(|arch| arch.name()).collect::<Vec<_>>().join(", ");
        match self {
            Self::Unreadable(problem) => f.write_str(problem),
            Self::Ambiguous(path, archs) => {
                write!(
                    f,
                    "{}: has slices for {}; an architecture must be chosen",
                    path.display(),
                    list(archs)
                )
            }
            Self::NoSuchArch(path, arch, archs) => {
                write!(f, "{}: has no slice for {arch}, only for {}", path.display(), list(archs))
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl Binary {
    /// Opens the slice for `arch`; of a thin file, its only one. Takes in the dSYM bundle beside it and the debug
    /// file that it names, where their identity is the same.
    pub fn open(path: &Path, arch: Option<Arch>) -> Result<Self, OpenError> {
        Self::open_with(path, arch, &OpenOptions::default())
    }

    /// As [`open`](Self::open), with what else there is to look for.
    pub fn open_with(path: &Path, arch: Option<Arch>, options: &OpenOptions<'_>) -> Result<Self, OpenError> {
        let file = files(path).into_iter().next();
        let file =
            file.ok_or_else(|| OpenError::Unreadable(format!("{}: no debug file in it", path.display())))?;
        let unreadable = |error: String| OpenError::Unreadable(format!("{}: {error}", file.display()));
        let data = FileData::map(&file).map_err(|error| OpenError::Unreadable(error.to_string()))?;
        if data.starts_with(&Header::MAGIC) {
            return Self::of_table(file, data, arch);
        }
        if Foreign::is_one(&data) {
            return Self::of_foreign(file, data);
        }
        let slices = slices(&data, &Limits::default()).map_err(|error| unreadable(error.to_string()))?;
        let slice = choose(&file, &slices, arch)?;
        let object = slice.parse(&Limits::default()).map_err(|error| unreadable(error.to_string()))?;
        let facts = Facts::of(&object, &file);
        let places: Vec<_> = neighbours(path).into_iter().chain(options.symbols.iter().cloned()).collect();
        let index = Index::scan(&places, &ScanOptions::default(), &NoProgress);
        let mut parts = companions(&index, &object, &file);
        let own = data.part(slice.range.start(), slice.range.size());
        parts.extend(own.map(|own| (file.display().to_string(), own)));
        let open = OpenImage::of_section(parts, file.clone(), options.section).map_err(unreadable)?;
        let with_table = options
            .cache
            .filter(|_| options.section.is_none())
            .and_then(|cache| cache.with_table(&open, &index));
        Ok(Self { open: with_table.unwrap_or(open), index, facts })
    }

    /// A symbol file of another tool answers alone.
    fn of_foreign(file: PathBuf, data: FileData) -> Result<Self, OpenError> {
        let unreadable = |error: String| OpenError::Unreadable(format!("{}: {error}", file.display()));
        let facts =
            Foreign::open(&data).map(|foreign| Facts::of_foreign(&foreign, &file)).map_err(unreadable)?;
        let parts = vec![(file.display().to_string(), data)];
        let open = OpenImage::from_data(parts, file).map_err(OpenError::Unreadable)?;
        Ok(Self { open, index: Index::default(), facts })
    }

    fn of_table(file: PathBuf, data: FileData, arch: Option<Arch>) -> Result<Self, OpenError> {
        let unreadable = |error: String| OpenError::Unreadable(format!("{}: {error}", file.display()));
        let header = Header::peek(&data, data.len() as u64).map_err(|error| unreadable(error.to_string()))?;
        if let Some(arch) = arch.filter(|arch| *arch != header.arch) {
            return Err(OpenError::NoSuchArch(file, arch, vec![header.arch]));
        }
        let facts = Facts::of_table(&header, &file);
        let parts = vec![(file.display().to_string(), data)];
        let open = OpenImage::from_data(parts, file.clone()).map_err(OpenError::Unreadable)?;
        Ok(Self { open, index: Index::default(), facts })
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// What the file itself says of the image.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The stated address of what the caller calls `address`; `None` where that leaves the address space.
    pub fn stated_address(&self, address: u64, placement: Placement) -> Option<Svma> {
        match placement {
            Placement::AsStated => Some(Svma::new(address)),
            Placement::LoadedAt(load) => {
                Bias::between(load, self.open.image_base()).to_svma(Avma::new(address))
            }
            Placement::Slid(slide) => {
                Bias::between(Avma::new(slide), Svma::new(0)).to_svma(Avma::new(address))
            }
        }
    }

    /// What lies at a stated address. The address is taken as it is: pass return addresses lowered by one.
    pub fn lookup(&self, address: Svma) -> Located {
        self.open.lookup(&self.index, address)
    }

    /// What lies at each of many stated addresses, in their order: as [`lookup`](Self::lookup), on all cores and with no
    /// more memory than a part of the addresses needs.
    pub fn lookup_all(&self, addresses: &[Svma]) -> Vec<Located> {
        self.open.lookup_all(&self.index, addresses)
    }

    /// Shows what lies at each of many stated addresses, in their order. From a table this is the fastest way: names and
    /// paths are not copied.
    ///
    /// # Errors
    /// What `show` answers; nothing more is shown then.
    pub fn show_all(
        &self,
        addresses: &[Svma],
        mut show: impl FnMut(&Shown<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.open.show_all(&self.index, addresses, &mut show)
    }

    /// What is broken in the files, each thing once.
    pub fn problems(&self) -> Vec<String> {
        self.open.problems()
    }
}

fn choose<'s, 'd>(
    path: &Path,
    slices: &'s [Slice<'d>],
    arch: Option<Arch>,
) -> Result<&'s Slice<'d>, OpenError> {
    let archs = || slices.iter().map(|slice| slice.arch).collect::<Vec<_>>();
    match (arch, slices) {
        (None, [slice]) => Ok(slice),
        (None, _) => Err(OpenError::Ambiguous(path.to_owned(), archs())),
        (Some(arch), _) => {
            let slice = slices.iter().find(|slice| slice.arch == arch);
            slice.ok_or_else(|| OpenError::NoSuchArch(path.to_owned(), arch, archs()))
        }
    }
}

/// Where a binary's dSYM and tables are by custom: `Foo.dSYM`, `Foo.btsym`, `Foo.gsym` and `Foo.sym` beside `Foo`,
/// `Foo.app.dSYM` beside `Foo.app/Foo`.
pub(crate) fn neighbours(path: &Path) -> Vec<PathBuf> {
    let named = |path: &Path, ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let bundles = path.ancestors().take(2).map(|part| named(part, ".dSYM")).filter(|path| path.is_dir());
    let tables = [".btsym", ".gsym", ".sym"].map(|ending| named(path, ending));
    bundles.chain(tables.into_iter().filter(|path| path.is_file())).collect()
}

/// The debug files of the same identity, best first.
pub(crate) fn companions(index: &Index, object: &Object<'_>, file: &Path) -> Vec<(String, FileData)> {
    let beside = object.id().map(|id| index.find(&id, Some(object.arch()))).unwrap_or_default();
    // Symbol files of other tools know less than debug info.
    let is_wanted = |entry: &&Entry| {
        entry.location.path() != file && (entry.identity.kind != Kind::SymbolFile || !object.has_debug_info())
    };
    let beside = beside.into_iter().filter(is_wanted);
    let beside = beside.filter_map(|entry| Some((entry.location.to_string(), index.open(entry).ok()?)));
    let separate = if object.has_debug_info() { None } else { separate_debug_file(object, file) };
    beside.chain(separate).collect()
}

/// The debug file of a stripped ELF binary: by build id first, by its debug link then.
fn separate_debug_file(object: &Object<'_>, file: &Path) -> Option<(String, FileData)> {
    let locator = Locator::new();
    let id = object.id().filter(|id| matches!(id, ImageId::BuildId(_)));
    let by_id = id.and_then(|id| locator.debug_file(&id).found);
    let by_link = || {
        let link = object.debug_link()?;
        let check = id.map_or(DebugLinkCheck::Crc(link.crc32), DebugLinkCheck::Id);
        locator.debug_link(file, &link.name, check).found
    };
    by_id.or_else(by_link).map(|(location, data)| (location.to_string(), data))
}

impl Located {
    /// The answer for an address that lies outside of the file.
    pub fn outside() -> Self {
        Self { reason: Some(Reason::OutsideSections), ..Self::default() }
    }

    /// Whether there is no name at all.
    pub fn is_unknown(&self) -> bool {
        self.functions.is_empty() && self.symbol.is_none()
    }

    /// Tells a frame what lies at its address. Offsets count to the address that the frame states; a return address was
    /// looked up one byte earlier.
    pub(crate) fn fill_in(self, frame: &mut Frame, address: FrameAddress) {
        let behind = u64::from(matches!(address, FrameAddress::Return(_)));
        let stated = |offset: u64| offset.saturating_add(behind);
        frame.functions = self.functions;
        frame.symbol = self.symbol.map(|symbol| Symbol { offset: stated(symbol.offset), ..symbol });
        frame.reason = self.reason;
        frame.function_offset = self.function_offset.map(stated);
    }

    pub(crate) fn from_table(answer: TableAnswer, address: Svma) -> Self {
        Self {
            functions: answer.functions,
            symbol: answer.symbol,
            reason: answer.reason,
            function_offset: answer.function_start.and_then(|start| address.offset_from(start)),
        }
    }

    pub(crate) fn from_answer(answer: &Answer<'_>, address: Svma) -> Self {
        Self {
            functions: answer.functions.iter().map(FunctionRef::to_owned).collect(),
            symbol: answer.symbol.as_ref().map(SymbolRef::to_owned),
            reason: answer.reason,
            function_offset: answer.function_start.and_then(|start| address.offset_from(start)),
        }
    }
}
