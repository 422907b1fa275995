//! The files of one image: looked for in every place where they may be, opened once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backtrail_core::{AddrRange, Arch, Avma, Bias, ImageId};
use backtrail_model::SymbolStatus;
use backtrail_object::Kind;

use crate::entry::Entry;
use crate::index::Index;
use crate::locate::DebugLinkCheck;
use crate::open_file::{Names, OpenFile};
use crate::remote::{RemoteFile, RemoteKind};
use crate::resolve::{Outcome, Wanted};
use crate::vdso;

/// What was found of one image.
#[derive(Clone, Debug, Default)]
pub struct ImageFiles {
    /// The binary, which has code and unwind tables.
    pub binary: Option<Arc<OpenFile>>,
    /// Its debug files, tables and symbol files, the best first.
    pub debug: Vec<Arc<OpenFile>>,
    /// The file that further files are named by.
    pub main_file: PathBuf,
    /// The outcome.
    pub status: SymbolStatus,
    /// Where it was looked for without success, for people.
    pub tried: Vec<String>,
    /// Whether the binary was taken by its path or name alone: nothing tells that it is the same build.
    pub is_unproven: bool,
    /// Whether a file of the right identity was there and could not be read.
    pub is_unreadable: bool,
}

/// The files behind some code of a process.
#[derive(Clone, Debug)]
pub struct LoadedFiles {
    /// The image that the code is shown as: a position in [`Process::images`](backtrail_model::Process::images). Code
    /// that was made at run time has files of its own within an image.
    pub image: usize,
    /// Where the code lies.
    pub ranges: Vec<AddrRange<Avma>>,
    /// From addresses of the process to those of the files; `None` where the files' image base and the image's load
    /// address tell.
    pub bias: Option<Bias>,
    /// The files.
    pub files: Arc<ImageFiles>,
}

/// Where to look for an image's files, besides the scanned paths.
#[derive(Clone, Debug, Default)]
pub struct Search<'s> {
    /// The file that the caller named for this very image.
    pub named: Option<&'s Path>,
    /// Whether the image's path means a file of this machine.
    pub use_path: bool,
    /// Whether a scanned file counts by its name where the image states no identity, if it is the only one.
    pub by_name: bool,
    /// Whether the binary is wanted even where a table answers for all of it.
    pub needs_binary: bool,
}

impl ImageFiles {
    /// The files of a binary that is at hand.
    pub fn of_binary(binary: Arc<OpenFile>) -> Self {
        let main_file = binary.path().to_owned();
        Self { main_file, binary: Some(binary), status: SymbolStatus::Found, ..Self::default() }
    }

    /// The files that name addresses, the best first.
    pub fn naming(&self) -> Vec<&Arc<OpenFile>> {
        let mut files: Vec<_> = self.debug.iter().chain(&self.binary).collect();
        files.sort_by_key(|file| file.rank());
        files
    }

    /// The files that have unwind tables: the binary itself, then what has some of its sections.
    pub fn unwinding(&self) -> impl Iterator<Item = &Arc<OpenFile>> {
        self.binary.iter().chain(&self.debug)
    }

    /// Puts a file where it belongs: the first with code is the binary, the others are debug files.
    pub fn add(&mut self, file: Arc<OpenFile>) {
        if let Some(problem) = file.problem() {
            self.is_unreadable = true;
            self.tried.push(format!("{}: {problem}", file.name()));
            return;
        }
        if self.main_file.as_os_str().is_empty() {
            self.main_file = file.path().to_owned();
        }
        if file.has_code() && self.binary.is_none() {
            self.main_file = file.path().to_owned();
            self.binary = Some(file);
        } else {
            self.add_debug(file);
        }
    }

    /// Which names the files have together.
    pub fn names(&self) -> Names {
        let mut most = Names::None;
        for file in self.naming() {
            // The best come first, and the others are not read for nothing.
            most = most.max(file.names());
            if most >= Names::Symbols {
                break;
            }
        }
        most
    }

    /// Whether no file has lines of the image: neither debug info nor another tool's symbol file.
    pub fn lacks_debug_info(&self) -> bool {
        !self.naming().iter().any(|file| file.rank() <= LEAST_WITH_LINES)
    }

    fn add_fetched(&mut self, file: Arc<OpenFile>) {
        self.add(file);
        if !self.naming().is_empty() {
            self.status = SymbolStatus::Found;
        }
    }

    fn add_debug(&mut self, file: Arc<OpenFile>) {
        let is_known = |known: &Arc<OpenFile>| Arc::ptr_eq(known, &file) || known.name() == file.name();
        if !self.debug.iter().chain(&self.binary).any(is_known) {
            self.debug.push(file);
        }
    }
}

/// Adds the running kernel's image. That of another kernel has the same name, so that only the identity counts.
fn add_vdso(wanted: &Wanted, found: &mut ImageFiles) {
    let file = vdso::open().filter(|file| wanted.id.is_some() && file.id() == wanted.id);
    file.into_iter().for_each(|file| found.add(file));
}

impl Index {
    /// Looks for an image's files: the one that the caller named, what has the identity below the scanned paths or in the
    /// system's debug directories, the file at the image's path, the one of its name.
    pub fn image_files(&self, wanted: &Wanted, search: &Search<'_>) -> ImageFiles {
        let mut found = ImageFiles { status: SymbolStatus::Missing, ..ImageFiles::default() };
        if let Some(path) = search.named {
            self.try_path(path, wanted, true, &mut found);
        }
        if let Some(id) = known_id(wanted) {
            self.add_by_identity(&id, wanted.arch, search.needs_binary, &mut found);
        }
        let path = Path::new(&wanted.path);
        let use_path = search.use_path && self.places.named_paths;
        if found.binary.is_none() && use_path && path.is_absolute() {
            self.try_path(path, wanted, false, &mut found);
        }
        if found.binary.is_none() && use_path && wanted.path == vdso::NAME {
            add_vdso(wanted, &mut found);
        }
        if wanted.id.is_none() && found.binary.is_none() && search.by_name {
            self.add_by_name(wanted, &mut found);
        }
        self.add_separate_debug_file(&mut found);
        if found.binary.is_some() || !found.debug.is_empty() {
            found.status = SymbolStatus::Found;
        } else if !matches!(found.status, SymbolStatus::IdMismatch(_)) {
            self.explain_absence(wanted, search, &mut found);
        }
        found
    }

    /// Adds what has this identity: below the scanned paths, and in the system's debug directories.
    pub fn add_by_identity(
        &self,
        id: &ImageId,
        arch: Option<Arch>,
        needs_binary: bool,
        found: &mut ImageFiles,
    ) {
        for entry in self.of_identity(id, arch) {
            match self.object(entry) {
                // A table of all debug info answers alone; what it was made from need not even be opened.
                Ok(file) if !needs_binary && found.debug.is_empty() && file.rank() == 0 => {
                    found.main_file = entry.location.path().to_owned();
                    return found.add_debug(file);
                }
                Ok(file) => found.add(file),
                Err(error) => {
                    found.is_unreadable = true;
                    found.tried.push(error.to_string());
                }
            }
        }
        let locator = self.locator();
        for located in [locator.debug_file(id), locator.binary(id)] {
            if let Some(file) = located.found.and_then(|(location, _)| self.object_at(&location).ok()) {
                found.add(file);
            }
        }
        self.fetched(id).into_iter().for_each(|file| found.add(file));
    }

    fn of_identity(&self, id: &ImageId, arch: Option<Arch>) -> Vec<&Entry> {
        // Identities are unique; an architecture that does not fit is the report's mistake (translated processes).
        let mut found = match self.find(id, arch) {
            none if none.is_empty() => self.find(id, None),
            found => found,
        };
        let is_cut = id.as_bytes().len() == BREAKPAD_ID;
        if is_cut && found.iter().all(|entry| entry.identity.kind == Kind::SymbolFile) {
            let is_it = |entry: &&Entry| entry.identity.id.is_some_and(|other| is_same(id, &other));
            found.splice(0..0, self.entries().iter().filter(is_it));
        }
        found
    }

    fn try_path(&self, path: &Path, wanted: &Wanted, is_named: bool, found: &mut ImageFiles) {
        let file = match self.object_at_path(path) {
            Ok(file) => file,
            // That the machine has another set of files is nothing to tell for each of them.
            Err(error) => return found.tried.extend(is_named.then(|| error.to_string())),
        };
        if let Some(problem) = file.problem() {
            return found.tried.push(format!("{}: {problem}", file.name()));
        }
        let arch = wanted.arch.unwrap_or(file.arch());
        if file.arch().family() != arch.family() {
            let what = format!("{}: is for {}, the process ran {arch}", file.name(), file.arch());
            return found.tried.push(what);
        }
        match (wanted.id, file.id()) {
            (Some(id), Some(other)) if is_same(&id, &other) => {}
            (Some(id), Some(other)) if matches!(other, ImageId::BuildId(_)) => {
                found.tried.push(format!("{}: has {} {other}, wanted is {id}", file.name(), other.kind()));
                found.status = SymbolStatus::IdMismatch(vec![other]);
                return;
            }
            _ => found.is_unproven = !is_named,
        }
        found.main_file = path.to_owned();
        found.binary = Some(file);
    }

    /// Without an identity a scanned file counts by its name, if it is the only one of that name.
    fn add_by_name(&self, wanted: &Wanted, found: &mut ImageFiles) {
        let name = wanted.file_name();
        let of_arch =
            |entry: &&Entry| wanted.arch.is_none_or(|arch| entry.identity.arch.family() == arch.family());
        let mut named: Vec<_> = self.named(name).into_iter().filter(of_arch).collect();
        if named.is_empty() {
            // Processes load libraries by links, whose names a scan does not keep.
            let is_linked = |entry: &&Entry| is_version_of(entry.location.path(), name);
            named = self.entries().iter().filter(of_arch).filter(is_linked).collect();
        }
        if let [entry] = named[..]
            && let Ok(file) = self.object(entry)
        {
            found.main_file = entry.location.path().to_owned();
            found.binary = Some(file);
            found.is_unproven = true;
        }
    }

    /// Adds the debug files of the binary at hand: those of its identity among the scanned ones, and the one that it
    /// names.
    pub fn add_companions(&self, found: &mut ImageFiles) {
        let Some(binary) = found.binary.clone() else { return };
        let entries = binary.id().map(|id| self.find(&id, Some(binary.arch()))).unwrap_or_default();
        for entry in entries {
            // Symbol files of other tools know less than debug info.
            let is_less = entry.identity.kind == Kind::SymbolFile && binary.has_debug_info();
            if entry.location.path() == binary.path() || is_less {
                continue;
            }
            if let Ok(file) = self.object(entry)
                && file.problem().is_none()
            {
                found.add_debug(file);
            }
        }
        self.add_separate_debug_file(found);
    }

    /// Fetches the debug files that images lack, of all images together. Where a server has no debug file and the binary is
    /// missing too, that is asked for: its symbol table names what is exported at least. What came of it is said in `tried`.
    pub fn fetch_debug_files(&self, images: &mut [(ImageId, &mut ImageFiles)]) {
        let mut wanted: Vec<_> = images
            .iter_mut()
            .filter(|(id, files)| {
                files.lacks_debug_info() && self.remote().is_some_and(|remote| remote.may_have(id))
            })
            .collect();
        for kind in [RemoteKind::DebugInfo, RemoteKind::Executable] {
            let files: Vec<_> = wanted.iter().map(|(id, _)| RemoteFile { id: *id, kind }).collect();
            for ((_, image), fetched) in wanted.iter_mut().zip(self.fetch(&files)) {
                match fetched {
                    Ok(file) => image.add_fetched(file),
                    Err(error) => image.tried.push(error.to_string()),
                }
            }
            wanted.retain(|(_, image)| image.naming().is_empty());
        }
    }

    /// Adds the debug file that a stripped binary names.
    pub fn add_separate_debug_file(&self, found: &mut ImageFiles) {
        let Some(object) = found.binary.as_ref().and_then(|binary| binary.object()) else { return };
        if object.has_debug_info() || found.debug.iter().any(|file| file.rank() <= MOST_DEBUG_INFO) {
            return;
        }
        let locator = self.locator();
        let id = object.id().filter(|id| matches!(id, ImageId::BuildId(_)));
        let by_link = || {
            let link = object.debug_link()?;
            let check = id.map_or(DebugLinkCheck::Crc(link.crc32), DebugLinkCheck::Id);
            locator.debug_link(&found.main_file, &link.name, check).found
        };
        let located = id.and_then(|id| locator.debug_file(&id).found).or_else(by_link);
        if let Some(file) = located.and_then(|(location, _)| self.object_at(&location).ok()) {
            found.add_debug(file);
        }
    }

    /// Says why there is no file: another build of it, no identity to go by, or nothing.
    fn explain_absence(&self, wanted: &Wanted, search: &Search<'_>, found: &mut ImageFiles) {
        let id = wanted.id.map(|id| format!("{} {id}", id.kind())).unwrap_or_default();
        if found.is_unreadable {
            return;
        }
        let resolution = self.resolve(wanted);
        let has_namesake = matches!(&resolution.outcome, Outcome::NoId(entries) if !entries.is_empty());
        match resolution.outcome {
            Outcome::Mismatch(entries) => {
                let mut others = Vec::new();
                for entry in entries {
                    let Some(other) = entry.identity.id else { continue };
                    let what = format!(
                        "{} has the name but {} {other}; wanted is {id}",
                        entry.location,
                        other.kind()
                    );
                    found.tried.push(what);
                    others.push(other);
                }
                found.status = SymbolStatus::IdMismatch(others);
            }
            Outcome::NoId(entries) => {
                let namesake = |entry: &&Entry| {
                    format!("{} has the name, but no identity is known to compare", entry.location)
                };
                found.tried.extend(entries.iter().map(namesake));
            }
            _ => {}
        }
        let what =
            if id.is_empty() { format!("called {}", wanted.file_name()) } else { format!("with {id}") };
        // Several files of the name are told above.
        if !id.is_empty() || !has_namesake {
            let roots = resolution.tried.iter();
            found.tried.extend(roots.map(|root| format!("nothing {what} below {}", root.display())));
        }
        // Of a report that was read without symbols nothing was looked for.
        if resolution.tried.is_empty() && !id.is_empty() && (search.use_path || search.needs_binary) {
            found.tried.push(format!("no file with {id} was found for {}", wanted.shown()));
        }
    }
}

/// The rank of the least file that has debug info.
const MOST_DEBUG_INFO: u8 = 2;

/// The rank of the least file that may have lines: another tool's symbol file.
const LEAST_WITH_LINES: u8 = 3;

fn known_id(wanted: &Wanted) -> Option<ImageId> {
    wanted.id.filter(|id| !id.is_nil())
}

/// Bytes that Breakpad keeps of a build id.
const BREAKPAD_ID: usize = 16;

/// Whether two identities are of the same kind and, as far as both go, the same.
fn is_same(one: &ImageId, other: &ImageId) -> bool {
    let is_cut = one.as_bytes().len() == BREAKPAD_ID && other.as_bytes().starts_with(one.as_bytes());
    one == other || is_cut && matches!((one, other), (ImageId::BuildId(_), ImageId::BuildId(_)))
}

/// Whether a file is what a library's name usually links to: `libstdc++.so.6.0.30` for `libstdc++.so.6`.
fn is_version_of(path: &Path, name: &str) -> bool {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let rest = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
    let is_version = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    name.contains(".so") && rest.is_some_and(|rest| !rest.is_empty() && is_version(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Places;

    #[test]
    #[cfg(target_os = "linux")]
    fn paths_of_strangers_open_nothing() {
        let path = std::env::current_exe().unwrap();
        let wanted = Wanted { path: path.display().to_string(), ..Wanted::default() };
        for named_paths in [true, false] {
            let places = Places { named_paths, debug_directories: Vec::new(), ..Places::default() };
            let search = Search { use_path: true, needs_binary: true, ..Search::default() };
            let found = Index::default().with_places(places).image_files(&wanted, &search);
            assert_eq!(found.binary.is_some(), named_paths);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_kernels_image_is_found_by_its_identity_alone() {
        let Some(file) = vdso::open() else { return };
        let find = |id, use_path| {
            let wanted = Wanted { name: vdso::NAME.into(), path: vdso::NAME.into(), id, arch: None };
            Index::default().image_files(&wanted, &Search { use_path, ..Search::default() })
        };
        let found = find(file.id(), true);
        assert_eq!(found.status, SymbolStatus::Found);
        let has_symbols = |object: &backtrail_object::Object<'_>| object.has_symbols();
        assert!(found.binary.is_some_and(|binary| binary.object().is_some_and(has_symbols)));
        assert!(!found.is_unproven);
        // Another kernel's, one of which nothing is known, and one of another machine.
        assert!(find(ImageId::from_build_id(&[7; 20]), true).binary.is_none());
        assert!(find(None, true).binary.is_none() && find(file.id(), false).binary.is_none());
    }

    #[test]
    fn links_lead_to_files_of_the_same_name_with_a_version() {
        let is_version = |file: &str, name: &str| is_version_of(Path::new(file), name);
        assert!(is_version("/lib/libstdc++.so.6.0.30", "libstdc++.so.6"));
        assert!(is_version("/lib/libz.so.1", "libz.so"));
        for (file, name) in [
            ("/lib/libstdc++.so.60", "libstdc++.so.6"),
            ("/lib/libz.so.1.debug", "libz.so.1"),
            ("/lib/libz.so.1", "libz.so.1"),
            ("/bin/python3.11", "python3"),
            ("/lib/libz.so.1", ""),
        ] {
            assert!(!is_version(file, name), "{file} {name}");
        }
    }
}
