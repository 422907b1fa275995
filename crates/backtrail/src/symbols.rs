//! Debug files, found by identity and opened once.

use crate::cache::TableCache;
use crate::open_image::OpenImage;
use crate::{ImageSymbols, SymbolStatus};
use backtrail_core::{Arch, ImageId};
use backtrail_report::Image;
use backtrail_store::{Entry, FileData, Index, Locator, NoProgress, Outcome, Progress, ScanOptions, Wanted};
use backtrail_symbolize::FileRequest;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Everything below some paths that can name addresses. Files stay open for as long as this lives, so that a
/// hundred reports cost one file's reading. May be shared between threads.
#[derive(Debug)]
pub struct Symbols {
    index: Index,
    cache: Option<TableCache>,
    opened: Mutex<HashMap<Key, Arc<OnceLock<Kept>>>>,
}

/// What files are found by.
type Key = (ImageId, Option<Arch>);

/// What opening an image came to; kept, so that it is tried once.
#[derive(Debug, Default)]
struct Kept {
    open: Option<Arc<OpenImage>>,
    status: SymbolStatus,
    tried: Vec<String>,
    unreadable: bool,
}

/// An image's files, or why there are none.
pub(crate) enum Opened {
    Found(Arc<OpenImage>),
    Not(SymbolStatus),
}

impl Symbols {
    /// Looks for binaries and debug files below `paths`, reading headers only, on all cores.
    pub fn scan(paths: &[PathBuf], progress: &dyn Progress) -> Self {
        let index = Index::scan(paths, &ScanOptions::default(), progress);
        Self { index, cache: None, opened: Mutex::default() }
    }

    /// Answers from tables that are kept in a folder, and made there when they are first wanted.
    #[must_use]
    pub fn with_cache(self, cache: TableCache) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// An image with a table to answer from, where tables are kept and its debug info would be read otherwise.
    pub(crate) fn with_table(&self, image: &OpenImage) -> Option<OpenImage> {
        self.cache.as_ref()?.with_table(image, &self.index)
    }

    /// No symbols at all: reports are explained by what they say themselves.
    pub fn none() -> Self {
        Self::scan(&[], &NoProgress)
    }

    /// What could not be read while looking for files.
    pub fn problems(&self) -> Vec<String> {
        self.index.problems().iter().map(ToString::to_string).collect()
    }

    /// What is broken in the files that were opened since.
    pub fn late_problems(&self) -> Vec<String> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let images = opened.values().filter_map(|kept| kept.get()?.open.clone());
        let mut problems: Vec<_> = images.flat_map(|image| image.problems()).collect();
        problems.sort();
        problems
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The files of a report's image; what was tried goes to `state`.
    pub(crate) fn open(&self, image: &Image, state: &mut ImageSymbols) -> Opened {
        let kept = match image.id.filter(|id| !id.is_nil()) {
            Some(id) => {
                let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(opened.entry((id, image.arch)).or_default())
            }
            // Without an identity there is nothing to keep it under, and nothing to find either.
            None => Arc::default(),
        };
        let kept = kept.get_or_init(|| self.find(image));
        state.tried.clone_from(&kept.tried);
        state.unreadable = kept.unreadable;
        match &kept.open {
            Some(open) => Opened::Found(Arc::clone(open)),
            None => Opened::Not(kept.status.clone()),
        }
    }

    fn find(&self, image: &Image) -> Kept {
        let wanted = Wanted {
            name: image.name.clone(),
            path: image.path.clone().unwrap_or_default(),
            id: image.id,
            arch: image.arch,
        };
        let resolution = self.index.resolve(&wanted);
        let mut kept = Kept::default();
        let id = image.id.map(|id| format!("{} {id}", id.kind())).unwrap_or_default();
        match resolution.outcome {
            Outcome::Found(entries) => {
                let open = OpenImage::open(&self.index, &entries, &mut kept.tried);
                kept.open = open.map(|open| Arc::new(self.with_table(&open).unwrap_or(open)));
                kept.unreadable = kept.open.is_none();
                kept.status = if kept.unreadable { SymbolStatus::Missing } else { SymbolStatus::Found };
                return kept;
            }
            Outcome::Mismatch(entries) => {
                let other = |entry: &&Entry| Some((entry.identity.id?, entry.location.to_string()));
                let others: Vec<_> = entries.iter().filter_map(other).collect();
                let near_miss = |(other, place): &(ImageId, String)| {
                    format!("{place} has the name but {} {other}; the report wants {id}", other.kind())
                };
                kept.tried.extend(others.iter().map(near_miss));
                kept.status = SymbolStatus::IdMismatch(others.into_iter().map(|(id, _)| id).collect());
            }
            Outcome::NoId(entries) => {
                let namesake = |entry: &&Entry| {
                    format!("{} has the name, but the report states no identity to compare", entry.location)
                };
                kept.tried.extend(entries.iter().map(namesake));
                kept.status = SymbolStatus::Missing;
            }
            _ => kept.status = SymbolStatus::Missing,
        }
        kept.tried.extend(
            resolution.tried.iter().map(|root| format!("nothing with {id} below {}", root.display())),
        );
        kept
    }
}

/// A file that debug info names; `binary` is the file whose debug info names it.
pub(crate) fn locate(index: &Index, binary: &Path, request: &FileRequest) -> Option<FileData> {
    let locator = Locator::new().with_index(index);
    let folder = binary.parent().unwrap_or(Path::new("."));
    let located = match request {
        FileRequest::Dwo { path, .. } => locator.file(Path::new(path), &[folder]),
        FileRequest::Dwp => locator.package(binary),
        FileRequest::Supplementary { path, id: Some(id) } => locator.alternate(binary, Path::new(path), id),
        FileRequest::Supplementary { path, id: None } => locator.file(Path::new(path), &[folder]),
        FileRequest::DebugMapObject { path, mtime, .. } => locator.debug_map_object(Path::new(path), *mtime),
        _ => return None,
    };
    located.found.map(|(_, data)| data)
}
