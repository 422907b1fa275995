//! What there is to convert below some paths.

use crate::files::{debug_files_in, neighbours};
use backtrail_core::{Arch, ImageId};
use backtrail_object::{Kind, Limits, Object, slices};
use backtrail_store::{
    ExternalSymbolFile, FileData, ImageFiles, Index, NoProgress, OpenFile, RemoteFiles, ScanOptions,
};
use backtrail_table::Header;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One image: all its files among the inputs.
#[derive(Debug)]
pub struct ConvertSource {
    /// The name of its table, without ending.
    pub name: String,
    /// Its identity, where its files state one.
    pub id: Option<ImageId>,
    /// Its architecture.
    pub arch: Arch,
    pub(super) files: ImageFiles,
}

impl ConvertSource {
    /// The names of its files for people, debug files first.
    pub fn file_names(&self) -> Vec<String> {
        self.files.naming().iter().map(|file| file.name().to_owned()).collect()
    }
}

/// What there is to convert, and what of the inputs cannot be.
#[derive(Debug, Default)]
pub struct ConvertSources {
    /// The images, in the order of the inputs.
    pub sources: Vec<ConvertSource>,
    /// What could not be read, each with its path.
    pub problems: Vec<String>,
    pub(super) index: Index,
}

/// A slice of an input.
struct Candidate {
    path: PathBuf,
    file: Arc<OpenFile>,
    arch: Arch,
    id: Option<ImageId>,
    kind: Kind,
    has_debug_info: bool,
    is_fat: bool,
}

/// What inputs hold.
#[derive(Default)]
struct Inputs {
    candidates: Vec<Candidate>,
    /// `.dwo` and `.dwp` files.
    split: Vec<PathBuf>,
    problems: Vec<String>,
}

impl ConvertSources {
    /// Looks into files, dSYM bundles and directories. Slices of fat files are images of their own, and files of the same
    /// identity and architecture are one image.
    pub fn find(paths: &[PathBuf]) -> Self {
        Self::find_with(paths, None)
    }

    /// As [`find`](Self::find); servers are asked for the debug files of binaries that have none on this machine.
    pub fn find_with(paths: &[PathBuf], remote: Option<Arc<dyn RemoteFiles>>) -> Self {
        let mut index = Index::scan(&with_neighbours(paths), &ScanOptions::default(), &NoProgress);
        if let Some(remote) = remote {
            index = index.with_remote(remote);
        }
        let mut found = Inputs::default();
        for path in paths {
            let before = found.count();
            if is_directory_of_many(path) {
                found.search(&index, path);
            } else {
                debug_files_in(path).iter().for_each(|file| found.look_into(file));
            }
            if found.count() == before && found.problems.is_empty() {
                found.problems.push(format!("{}: no binary or debug file in it", path.display()));
            }
        }
        let Inputs { candidates, split, mut problems } = found;
        if candidates.is_empty() {
            let what = "expected the binary that this split debug info belongs to, too";
            problems.extend(split.iter().map(|path| format!("{}: {what}", path.display())));
        }
        let mut sources = join(candidates, &index);
        let mut images: Vec<_> =
            sources.iter_mut().filter_map(|source| Some((source.id?, &mut source.files))).collect();
        index.fetch_debug_files(&mut images);
        problems.extend(index.remote().map(|remote| remote.problems()).unwrap_or_default());
        Self { sources, problems, index }
    }
}

impl Inputs {
    fn count(&self) -> usize {
        self.candidates.len() + self.split.len()
    }

    fn search(&mut self, index: &Index, directory: &Path) {
        for entry in index.entries().iter().filter(|entry| entry.location.path().starts_with(directory)) {
            let identity = &entry.identity;
            if identity.member.is_some() || matches!(identity.kind, Kind::Table | Kind::SymbolFile) {
                continue;
            }
            match index.object(entry) {
                Ok(file) if file.object().is_some_and(is_split) => {
                    self.split.push(entry.location.path().to_owned());
                }
                Ok(file) => self.candidates.push(Candidate {
                    path: entry.location.path().to_owned(),
                    file,
                    arch: identity.arch,
                    id: identity.id,
                    kind: identity.kind,
                    has_debug_info: identity.has_debug_info,
                    is_fat: index.entries().iter().filter(|other| other.location == entry.location).count()
                        > 1,
                }),
                Err(error) => self.problems.push(error.to_string()),
            }
        }
    }

    fn look_into(&mut self, path: &Path) {
        let data = match FileData::map(path) {
            Ok(data) => data,
            Err(error) => return self.problems.push(error.to_string()),
        };
        if data.starts_with(&Header::MAGIC) || ExternalSymbolFile::is_one(&data) {
            return self.problems.push(format!("{}: is a table already", path.display()));
        }
        let limits = Limits::default();
        let slices = match slices(&data, &limits) {
            Ok(slices) => slices,
            Err(error) => return self.problems.push(format!("{}: {error}", path.display())),
        };
        if slices.iter().any(|slice| slice.member.is_some()) {
            let what =
                "expected a linked image, an object file or debug file, not an archive of object files";
            return self.problems.push(format!("{}: {what}", path.display()));
        }
        for slice in &slices {
            let object = match slice.parse(&limits) {
                Ok(object) => object,
                Err(error) => {
                    self.problems.push(format!("{}: {error}", path.display()));
                    continue;
                }
            };
            if is_split(&object) {
                self.split.push(path.to_owned());
                continue;
            }
            let Some(own) = data.part(slice.range.start(), slice.range.size()) else { continue };
            self.candidates.push(Candidate {
                path: path.to_owned(),
                file: OpenFile::new(path.display().to_string(), path, own),
                arch: object.arch(),
                id: object.id(),
                kind: object.kind(),
                has_debug_info: object.has_debug_info(),
                is_fat: slices.len() > 1,
            });
        }
    }
}

/// Whether this is a `.dwo` or `.dwp` file: without addresses of its own, it is read with the binary that names it.
fn is_split(object: &Object<'_>) -> bool {
    object.section(".debug_info.dwo").is_some() && object.section(".debug_info").is_none()
}

/// A directory that is no dSYM bundle.
fn is_directory_of_many(path: &Path) -> bool {
    path.is_dir() && !path.join("Contents/Resources/DWARF").is_dir()
}

/// The inputs, and the dSYM bundles that lie beside them by custom.
fn with_neighbours(paths: &[PathBuf]) -> Vec<PathBuf> {
    let neighbours = paths.iter().flat_map(|path| neighbours(path));
    paths.iter().cloned().chain(neighbours).collect()
}

/// Makes images of what was found.
fn join(candidates: Vec<Candidate>, index: &Index) -> Vec<ConvertSource> {
    let mut groups: Vec<Vec<Candidate>> = Vec::new();
    let mut by_id: HashMap<(ImageId, Arch), usize> = HashMap::new();
    for candidate in candidates {
        let key = candidate.id.filter(|id| !id.is_nil()).map(|id| (id, candidate.arch));
        match key.and_then(|key| groups.get_mut(*by_id.get(&key)?)) {
            Some(group) => {
                if group.iter().all(|other| other.path != candidate.path) {
                    group.push(candidate);
                }
            }
            None => {
                if let Some(key) = key {
                    by_id.insert(key, groups.len());
                }
                groups.push(vec![candidate]);
            }
        }
    }
    let mut names = HashMap::new();
    groups.into_iter().filter_map(|group| source(group, index, &mut names)).collect()
}

fn source(
    mut group: Vec<Candidate>,
    index: &Index,
    names: &mut HashMap<String, usize>,
) -> Option<ConvertSource> {
    group.sort_by_key(|candidate| (!candidate.has_debug_info, candidate.kind != Kind::DebugCompanion));
    let named = group.iter().find(|candidate| candidate.kind != Kind::DebugCompanion).or(group.first())?;
    let name = table_name(named, names);
    let (id, arch) = (named.id, named.arch);
    let has_debug_info = group.iter().any(|candidate| candidate.has_debug_info);
    let mut files = ImageFiles { main_file: group.first()?.path.clone(), ..ImageFiles::default() };
    if !has_debug_info {
        let mut beside = ImageFiles::of_binary(Arc::clone(&named.file));
        index.add_companions(&mut beside);
        beside.debug.retain(|file| file.object().is_some());
        files = beside;
    }
    for file in group.into_iter().map(|candidate| candidate.file) {
        files.add(file);
    }
    Some(ConvertSource { name, id, arch, files })
}

/// The file's name without `.debug`, with the architecture for a slice, and a number where it is taken.
fn table_name(candidate: &Candidate, names: &mut HashMap<String, usize>) -> String {
    let name = candidate.path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".debug").unwrap_or(&name);
    let name = match candidate.is_fat {
        true => format!("{name}-{}", candidate.arch.name()),
        false => name.to_owned(),
    };
    let count = names.entry(name.clone()).or_insert(0);
    *count += 1;
    if *count == 1 { name } else { format!("{name}-{count}") }
}
