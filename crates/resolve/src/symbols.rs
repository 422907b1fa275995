//! Where names come from: files found by identity, opened once, kept for whoever asks next.

use crate::cache::TableCache;
use crate::image_owners::ImageOwners;
use crate::image_symbolizer::ImageSymbolizer;
use crate::mapping_file::MappingFile;
use crate::owners::OwnerSources;
use backtrail_core::{AddrRange, Arch, ImageId, Svma};
use backtrail_model::{Image, Process};
use backtrail_store::{
    Error, ImageFiles, Index, Location, NoProgress, OpenFile, Places, Progress, RemoteFiles, ScanOptions,
    Search, Wanted,
};
use backtrail_symbolize::mapping::MappingHead;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Everything that can name addresses. Files stay open for as long as this lives, so that a hundred reports cost one
/// file's reading. May be shared between threads.
#[derive(Debug, Default)]
pub struct Symbols {
    index: Index,
    cache: Option<TableCache>,
    is_none: bool,
    is_only_scanned: bool,
    by_id: Once<IdKey, Arc<ImageFiles>>,
    symbolizers: Once<FilesKey, Opened>,
    owner_sources: OwnerSources,
    /// By where the binary is in memory, which is kept along with the answer.
    owners: Once<usize, (Arc<OpenFile>, Arc<ImageOwners>)>,
    /// Mapping files of Java code that were read.
    pub(crate) mappings: Mutex<Vec<MappingFile>>,
    /// What the mapping files say of themselves.
    pub(crate) mapping_heads: Mutex<HashMap<Location, Option<MappingHead>>>,
}

/// What an image's files are found by, and whether its path means a file of this machine.
type IdKey = (ImageId, Option<Arch>, bool);

/// The files of an image, by where they are in memory: they are kept as long as the entry is.
type FilesKey = Vec<usize>;

/// An image ready to answer; else why it is not: empty where it has no file.
type Opened = Result<Arc<ImageSymbolizer>, String>;

/// Where symbols are looked for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SymbolOptions {
    /// Files and directories that are searched for binaries and debug files, by their headers.
    pub paths: Vec<PathBuf>,
    /// Where tables of debug info are kept, made when they are first wanted.
    pub cache: Option<TableCache>,
    /// Directories laid out as `/usr/lib/debug` is, which stands for `None`.
    pub debug_directories: Option<Vec<PathBuf>>,
    /// Beginnings of paths in debug info, and what stands for them on this machine.
    pub path_remaps: Vec<(PathBuf, PathBuf)>,
    /// Leaves files alone that captures and debug info name by a path and that are not below `paths`: those of strangers may
    /// name any file of this machine. So it is where symbols are uploaded, and what is said of missing ones is to upload them.
    pub only_scanned: bool,
    /// Servers that are asked for what frames need and this machine does not have.
    pub remote: Option<Arc<dyn RemoteFiles>>,
}

impl Symbols {
    /// Symbols of the images' own files and of the system's debug directories.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for binaries and debug files below `paths` too, reading headers only, on all cores.
    pub fn scan(paths: &[PathBuf], progress: &dyn Progress) -> Self {
        Self { index: Index::scan(paths, &ScanOptions::default(), progress), ..Self::default() }
    }

    /// Looks where the options say.
    pub fn with_options(options: SymbolOptions, progress: &dyn Progress) -> Self {
        let mut places = Places::default();
        if let Some(directories) = options.debug_directories {
            places.debug_directories = directories;
        }
        places.remaps = options.path_remaps;
        places.named_paths = !options.only_scanned;
        let mut index = Self::scan(&options.paths, progress).index.with_places(places);
        if let Some(remote) = options.remote {
            index = index.with_remote(remote);
        }
        Self { index, cache: options.cache, is_only_scanned: options.only_scanned, ..Self::default() }
    }

    /// Answers from tables that are kept in a directory, and made there when they are first wanted.
    #[must_use]
    pub fn with_cache(self, cache: TableCache) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// Says of frames whose code they are, where static libraries are told apart inside of images.
    #[must_use]
    pub fn with_owners(self, sources: OwnerSources) -> Self {
        Self { owner_sources: sources, ..self }
    }

    /// Asks servers for the files of images that frames need and this machine does not have.
    #[must_use]
    pub fn with_remote(self, remote: Arc<dyn RemoteFiles>) -> Self {
        Self { index: self.index.with_remote(remote), ..self }
    }

    /// No symbols at all, not even the system's: inputs are taken at their own words, and no file is opened for a name.
    pub fn none() -> Self {
        Self { is_none: true, ..Self::scan(&[], &NoProgress) }
    }

    /// Whether no file is opened for a name: see [`none`](Self::none).
    pub(crate) fn is_none(&self) -> bool {
        self.is_none
    }

    /// Whether only files below the searched paths are opened: see [`SymbolOptions::only_scanned`].
    pub fn is_only_scanned(&self) -> bool {
        self.is_only_scanned
    }

    /// The scanned files and those that are open.
    pub(crate) fn index_of_files(&self) -> &Index {
        &self.index
    }

    /// What could not be read while looking for files.
    pub fn problems(&self) -> &[Error] {
        self.index.problems()
    }

    /// What is broken in the files that were opened since, and which servers failed, one sentence each.
    pub fn late_problems(&self) -> Vec<String> {
        let opened = self.symbolizers.all();
        let mut problems: Vec<_> = opened.iter().flatten().flat_map(|image| image.problems()).collect();
        problems.extend(self.server_problems());
        problems.extend(self.owners.all().iter().flat_map(|(_, owners)| owners.problems.clone()));
        problems.extend(self.owner_sources.problems());
        problems.sort();
        problems.dedup();
        problems
    }

    /// Which servers failed, and what else was wrong with them, one sentence each.
    pub fn server_problems(&self) -> Vec<String> {
        self.index.remote().map(|remote| remote.problems()).unwrap_or_default()
    }

    /// The files of an image. `use_path` is whether the image's path means a file of this machine, `by_name` whether the only
    /// file of its name counts where it states no identity.
    pub(crate) fn files_of(&self, image: &Image, use_path: bool, by_name: bool) -> Arc<ImageFiles> {
        if self.is_none {
            return Arc::default();
        }
        let find = || {
            let wanted = Wanted {
                name: image.name.clone(),
                path: image.path.clone().unwrap_or_default(),
                id: image.id,
                arch: image.arch,
            };
            // Whose code is where shows in the binary alone.
            let needs_binary = !self.owner_sources.is_empty();
            let search = Search { use_path, by_name, needs_binary, ..Search::default() };
            Arc::new(self.index.image_files(&wanted, &search))
        };
        match image.id.filter(|id| !id.is_nil()) {
            Some(id) => self.by_id.get((id, image.arch, use_path), find),
            // Without an identity there is nothing to keep it under.
            None => find(),
        }
    }

    /// For each image of a process whether it is asked whose code lies where in it: those that frames lie in, a few of hundreds.
    pub(crate) fn wants_owners(&self, process: &mut Process) -> Vec<bool> {
        let mut wants = vec![false; process.images.len()];
        let (frames, _) = process.frames_and_images_mut();
        for position in frames.filter_map(|frame| frame.image) {
            if let Some(wants) = wants.get_mut(position) {
                *wants = !self.is_none;
            }
        }
        for (wants, image) in wants.iter_mut().zip(&process.images) {
            *wants = *wants && self.owner_sources.wants(process, image);
        }
        wants
    }

    /// Positions of the images that frames lie in and whose binaries are not there, where it is asked whose code lies where in them.
    pub fn without_binary(&self, process: &mut Process) -> Vec<usize> {
        if self.owner_sources.is_empty() {
            return Vec::new();
        }
        let wanted = self.wants_owners(process);
        let asked = wanted.iter().zip(process.images.iter().enumerate()).filter(|(wanted, _)| **wanted);
        let missing = asked.filter(|(_, (_, image))| self.files_of(image, false, false).binary.is_none());
        missing.map(|(_, (position, _))| position).collect()
    }

    /// Whose code is where in an image. A binary that may be of another build says nothing.
    pub(crate) fn owners(&self, files: &ImageFiles) -> Option<Arc<ImageOwners>> {
        let binary = files.binary.as_ref().filter(|_| !files.is_unproven)?;
        if let (Some(finder), Some(id)) = (self.owner_sources.finder(), binary.id()) {
            let paths: Vec<_> = files.unwinding().map(|file| file.path()).collect();
            return finder.owners(id, binary.arch(), &paths);
        }
        let make = || {
            let owners = self.owner_sources.owners(binary, &files.debug, self.cache.as_ref());
            (Arc::clone(binary), Arc::new(owners))
        };
        Some(self.owners.get(Arc::as_ptr(binary).addr(), make).1)
    }

    /// Whose code is where in the build with that identity, by the files that were found of it; `None` where its binary is not there.
    pub fn image_owners(&self, id: ImageId, arch: Arch) -> Option<Arc<ImageOwners>> {
        self.owners(&self.files_of_build(id, arch))
    }

    /// The addresses of the code section of the binary with that identity.
    pub fn code_range(&self, id: ImageId, arch: Arch) -> Option<AddrRange<Svma>> {
        backtrail_sdk::code_range(self.files_of_build(id, arch).binary.as_ref()?.object()?)
    }

    fn files_of_build(&self, id: ImageId, arch: Arch) -> ImageFiles {
        let wanted = Wanted { id: Some(id), arch: Some(arch), ..Wanted::default() };
        self.index.image_files(&wanted, &Search { needs_binary: true, ..Search::default() })
    }

    /// The files of one image, ready to answer; the same for all who ask for the same files.
    pub(crate) fn symbolizer(&self, files: &ImageFiles) -> Opened {
        let naming = files.naming();
        if self.is_none || naming.is_empty() {
            return Err(String::new());
        }
        let key = naming.iter().map(|file| Arc::as_ptr(file).addr()).collect();
        self.symbolizers.get(key, || {
            let image = ImageSymbolizer::new(files)?;
            let with_table = self.cache.as_ref().and_then(|cache| cache.with_table(&image, &self.index));
            Ok(Arc::new(with_table.unwrap_or(image)))
        })
    }
}

#[derive(Debug)]
struct Once<K, V>(Mutex<Entries<K, V>>);

/// Values by key, and the keys in the order in which they came.
type Entries<K, V> = (HashMap<K, Arc<OnceLock<V>>>, VecDeque<K>);

/// Entries that are kept: more images than a process has, fewer than all builds that ever crashed.
const KEPT: usize = 4096;

impl<K: Clone + Eq + Hash, V: Clone> Once<K, V> {
    /// The value of a key, made by the first who asks; others wait for it.
    fn get(&self, key: K, make: impl FnOnce() -> V) -> V {
        let slot = {
            let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (values, order) = &mut *entries;
            if let Some(slot) = values.get(&key) {
                Arc::clone(slot)
            } else {
                if order.len() >= KEPT
                    && let Some(oldest) = order.pop_front()
                {
                    values.remove(&oldest);
                }
                order.push_back(key.clone());
                Arc::clone(values.entry(key).or_default())
            }
        };
        slot.get_or_init(make).clone()
    }

    fn all(&self) -> Vec<V> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.0.values().filter_map(|slot| slot.get().cloned()).collect()
    }
}

impl<K, V> Default for Once<K, V> {
    fn default() -> Self {
        Self(Mutex::new((HashMap::new(), VecDeque::new())))
    }
}
