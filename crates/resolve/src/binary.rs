//! One binary, asked for addresses.

mod symbols;

pub use symbols::BinarySymbol;

use crate::cache::TableCache;
use crate::details::Details;
use crate::files::{debug_files_in, neighbours};
use crate::image_symbolizer::ImageSymbolizer;
use crate::object_info::ObjectInfo;
use backtrail_core::{Arch, Avma, Bias, FrameAddress, Svma, SymbolInfo, SymbolInfoRef};
use backtrail_object::{Limits, Slice, slices};
use backtrail_store::{
    Error, ErrorKind, ExternalSymbolFile, FileData, ImageFiles, Index, NoProgress, OpenFile, RemoteFiles,
    ScanOptions, object_error,
};
use backtrail_table::Header;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A binary with the debug files that belong to it: what is beside it, and what it names.
#[derive(Debug)]
pub struct Binary {
    image: ImageSymbolizer,
    index: Index,
    info: ObjectInfo,
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
    /// Servers that are asked for the debug file where this machine does not have it.
    pub remote: Option<&'o Arc<dyn RemoteFiles>>,
}

/// Which addresses the caller has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressKind {
    /// Addresses as the file states them.
    AsStated,
    /// Addresses of a process that has the file's first byte at this address.
    LoadedAt(Avma),
    /// Addresses of a process that has the file this many bytes above its stated address.
    WithSlide(u64),
}

/// Why a binary cannot be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// It cannot be read, for this reason.
    Unreadable(Error),
    /// It holds several slices; one of these architectures has to be chosen.
    Ambiguous(PathBuf, Vec<Arch>),
    /// It holds no slice of that architecture, only these.
    NoSuchArch(PathBuf, Arch, Vec<Arch>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |archs: &[Arch]| archs.iter().map(|arch| arch.name()).collect::<Vec<_>>().join(", ");
        match self {
            Self::Unreadable(error) => error.fmt(f),
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

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable(error) => Some(error),
            Self::Ambiguous(..) | Self::NoSuchArch(..) => None,
        }
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Unreadable(error)
    }
}

impl Binary {
    /// Opens the slice for `arch`; of a thin file, its only one. Takes in the dSYM bundle beside it and the debug
    /// file that it names, where their identity is the same.
    ///
    /// # Errors
    /// Where it cannot be read, or has no such slice.
    pub fn open(path: impl AsRef<Path>, arch: Option<Arch>) -> Result<Self, OpenError> {
        Self::open_with(path, arch, &OpenOptions::default())
    }

    /// As [`open`](Self::open), with what else there is to look for.
    ///
    /// # Errors
    /// As [`open`](Self::open)'s.
    pub fn open_with(
        path: impl AsRef<Path>,
        arch: Option<Arch>,
        options: &OpenOptions<'_>,
    ) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let file = debug_files_in(path).into_iter().next();
        let no_file = || Error::new(ErrorKind::Object, path.display(), "no debug file in it");
        let file = file.ok_or_else(no_file)?;
        let unreadable = |what: &str| Error::new(ErrorKind::Object, file.display(), what);
        let places: Vec<_> = neighbours(path).into_iter().chain(options.symbols.iter().cloned()).collect();
        let mut index = Index::scan(&places, &ScanOptions::default(), &NoProgress);
        if let Some(remote) = options.remote {
            index = index.with_remote(Arc::clone(remote));
        }
        let data = FileData::map(&file)?;
        let binary = slice(&file, data, arch, options.section)?;
        if let Some(problem) = binary.problem() {
            return Err(unreadable(problem).into());
        }
        let info =
            ObjectInfo::of(&binary, &file).ok_or_else(|| unreadable("expected a binary or debug file"))?;
        let mut files = ImageFiles { main_file: file.clone(), ..ImageFiles::default() };
        if binary.object().is_some() {
            let id = binary.id();
            files.binary = Some(binary);
            index.add_companions(&mut files);
            if let Some(id) = id {
                index.fetch_debug_files(&mut [(id, &mut files)]);
            }
        } else {
            // A table answers alone, and so does a symbol file of another tool.
            files.debug.push(binary);
        }
        let image = ImageSymbolizer::new(&files).map_err(|error| unreadable(&error))?;
        let cache = options.cache.filter(|_| options.section.is_none());
        let with_table = cache.and_then(|cache| cache.with_table(&image, &index));
        Ok(Self { image: with_table.unwrap_or(image), index, info })
    }

    /// What the file itself says of the image.
    pub fn info(&self) -> &ObjectInfo {
        &self.info
    }

    /// Where [`lookup`](Self::lookup) is to look for what the caller calls `address`; `None` where that leaves the address
    /// space. Return addresses are lowered by one. Addresses of a process lose what is no part of an address: the Thumb
    /// bit, pointer authentication.
    pub fn stated_address(&self, address: FrameAddress, kind: AddressKind) -> Option<Svma> {
        let bias = match kind {
            AddressKind::AsStated => Bias::default(),
            AddressKind::LoadedAt(load) => Bias::between(load, self.image.image_base()),
            AddressKind::WithSlide(slide) => Bias::between(Avma::new(slide), Svma::new(0)),
        };
        let address = match (kind, address) {
            (AddressKind::AsStated, FrameAddress::Exact(address)) => address,
            (_, address) => address.lookup(self.info.arch),
        };
        bias.to_svma(address)
    }

    /// What lies at a stated address, which [`stated_address`](Self::stated_address) gives for addresses of any kind.
    pub fn lookup(&self, address: Svma) -> SymbolInfo {
        self.image.lookup(&self.index, address)
    }

    /// What lies at each of many stated addresses, in their order: as [`lookup`](Self::lookup), on all cores and with no
    /// more memory than a part of the addresses needs.
    pub fn lookup_all(&self, addresses: &[Svma]) -> Vec<SymbolInfo> {
        self.image.lookup_all(&self.index, addresses)
    }

    /// Shows what lies at each of many stated addresses, in their order. From a table this is the fastest way: names and
    /// paths are not copied.
    ///
    /// # Errors
    /// What `show` answers; nothing more is shown then.
    pub fn show_all(
        &self,
        addresses: &[Svma],
        mut show: impl FnMut(&SymbolInfoRef<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.image.show_all(&self.index, addresses, &mut show)
    }

    /// What else is known of an address. It takes longer than [`lookup`](Self::lookup).
    pub fn details(&self, address: Svma) -> Details {
        // The lookup opens the files that this reads.
        self.image.lookup(&self.index, address);
        self.image.details(address)
    }

    /// Reads ahead, on all cores, what lookups of these addresses will need.
    pub fn prepare(&self, addresses: &[Svma]) {
        self.image.read_ahead(addresses);
    }

    /// What is broken in the files, and which servers failed, each thing once.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.image.problems();
        problems.extend(self.index.remote().map(|remote| remote.problems()).unwrap_or_default());
        problems
    }
}

/// The slice of a file for `arch`, parsed.
fn slice(
    file: &Path,
    data: FileData,
    arch: Option<Arch>,
    section: Option<&str>,
) -> Result<Arc<OpenFile>, OpenError> {
    let name = file.display().to_string();
    let is_table = data.starts_with(&Header::MAGIC);
    if is_table || ExternalSymbolFile::is_one(&data) {
        let table = OpenFile::new(name, file, data);
        return match arch.filter(|arch| is_table && *arch != table.arch() && table.problem().is_none()) {
            Some(arch) => Err(OpenError::NoSuchArch(file.to_owned(), arch, vec![table.arch()])),
            None => Ok(table),
        };
    }
    let slices = slices(&data, &Limits::default()).map_err(|error| object_error(&name, &error))?;
    let chosen = choose(file, &slices, arch)?;
    let own = data.part(chosen.range.start(), chosen.range.size()).unwrap_or_else(|| data.clone());
    drop(slices);
    Ok(match section {
        Some(section) => OpenFile::with_section(name, file, own, section),
        None => OpenFile::new(name, file, own),
    })
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
