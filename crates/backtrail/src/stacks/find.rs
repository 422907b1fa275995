//! Finds the files of a captured process's images.

use super::place::Part;
use crate::foreign::Foreign;
use crate::{SymbolStatus, Symbols};
use backtrail_capture::Image;
use backtrail_core::{Arch, ImageId};
use backtrail_object::{Kind, Limits, Object};
use backtrail_store::{DebugLinkCheck, Entry, FileData, Locator};
use backtrail_table::Header;
use std::path::{Path, PathBuf};

/// The files that have an image's debug info, best first, the binary itself left out.
pub(super) fn debug_files(id: &ImageId, part: &Part, symbols: &Symbols) -> Vec<(String, FileData)> {
    let found = by_id(id, symbols).into_iter();
    let is_other = |(_, data): &(String, FileData)| part.data.as_deref() != Some(&**data);
    found.filter(is_other).collect()
}

/// Bytes that Breakpad keeps of a build id.
const BREAKPAD_ID: usize = 16;

fn by_id(id: &ImageId, symbols: &Symbols) -> Vec<(String, FileData)> {
    let open = |entry: &Entry| Some((entry.location.to_string(), symbols.index().open(entry).ok()?));
    let mut found = symbols.index().find(id, None);
    if id.as_bytes().len() == BREAKPAD_ID && found.iter().all(|entry| entry.identity.kind == Kind::SymbolFile)
    {
        let is_cut = |entry: &&Entry| entry.identity.id.is_some_and(|other| is_same(id, &other));
        found.splice(0..0, symbols.index().entries().iter().filter(is_cut));
    }
    found.into_iter().filter_map(open).collect()
}

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

/// What was found of one image.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The binary, which has the unwind tables.
    pub(super) binary: Option<(String, FileData)>,
    /// Its debug files, best first.
    pub(super) debug: Vec<(String, FileData)>,
    pub(super) main_file: PathBuf,
    pub(super) status: SymbolStatus,
    pub(super) tried: Vec<String>,
    /// Taken by its path alone: nothing tells that it is the same build.
    pub(super) is_unproven: bool,
}

/// Where to look.
pub(crate) struct Finder<'f> {
    pub(crate) symbols: &'f Symbols,
    pub(crate) arch: Arch,
    /// The program, where the caller named it.
    pub(crate) executable: Option<&'f Path>,
    /// Whether the paths of the captured machine mean files of this one.
    pub(crate) use_mapped_paths: bool,
}

impl Finder<'_> {
    /// Looks for an image's files: the program that the caller named, what has the identity below the symbol paths or in
    /// the system's debug folders, the file at the image's path.
    pub(super) fn find(&self, image: &Image) -> Found {
        let mut found = Found { status: SymbolStatus::Missing, ..Found::default() };
        let named = self.executable.filter(|_| image.is_executable);
        if let Some(path) = named {
            self.try_path(path, image, true, &mut found);
        }
        if let Some(id) = &image.id {
            self.by_identity(id, &mut found);
        }
        let path = Path::new(&image.path);
        if found.binary.is_none() && self.use_mapped_paths && path.is_absolute() {
            self.try_path(path, image, false, &mut found);
        }
        if image.id.is_none() && found.binary.is_none() {
            self.by_name(image, &mut found);
        }
        self.separate_debug_file(&mut found);
        if found.binary.is_some() || !found.debug.is_empty() {
            found.status = SymbolStatus::Found;
        } else if let Some(id) = &image.id {
            found.tried.push(format!("no file with {} {id} was found for {}", id.kind(), image.path));
        }
        found
    }

    /// The files of an image whose binary is at hand: its debug files, best first, or else the binary itself.
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "ios"))]
    pub(crate) fn beside(
        &self,
        image: &Image,
        binary: Option<(String, FileData)>,
    ) -> Vec<(String, FileData)> {
        let mut found = Found { main_file: PathBuf::from(&image.path), ..Found::default() };
        if let Some(id) = &image.id {
            self.by_identity(id, &mut found);
        }
        found.binary = binary.or(found.binary);
        self.separate_debug_file(&mut found);
        let is_other =
            |file: &(String, FileData)| found.binary.as_ref().is_none_or(|(_, own)| **own != *file.1);
        let mut files: Vec<_> = found.debug.iter().filter(|file| is_other(file)).cloned().collect();
        files.extend(found.binary);
        files
    }

    pub(super) fn by_identity(&self, id: &ImageId, found: &mut Found) {
        let locator = Locator::new();
        let installed = [locator.debug_file(id), locator.binary(id)].into_iter();
        let installed = installed.filter_map(|located| located.found);
        let installed = installed.map(|(location, data)| (location.to_string(), data));
        for (place, data) in by_id(id, self.symbols).into_iter().chain(installed) {
            let Ok(object) = Object::parse_with(&data, &Limits::default()) else {
                let is_table = data.starts_with(&Header::MAGIC) || Foreign::is_one(&data);
                found.debug.extend(Some((place, data)).filter(|_| is_table));
                continue;
            };
            let has_code = object.sections().iter().any(|section| section.is_code && section.file.is_some());
            if has_code && found.binary.is_none() {
                found.main_file = PathBuf::from(&place);
                found.binary = Some((place, data.clone()));
            } else if found.debug.iter().all(|(known, _)| *known != place) {
                found.debug.push((place, data.clone()));
            }
        }
    }

    fn try_path(&self, path: &Path, image: &Image, is_named: bool, found: &mut Found) {
        let shown = path.display().to_string();
        let data = match FileData::map(path) {
            Ok(data) => data,
            // That the machine has another set of files is nothing to tell for each of them.
            Err(error) => {
                if is_named {
                    found.tried.push(error.to_string());
                }
                return;
            }
        };
        let object = match Object::parse_with(&data, &Limits::default()) {
            Ok(object) if object.arch().family() == self.arch.family() => object,
            Ok(object) => {
                found.tried.push(format!("{shown}: is for {}, the process ran {}", object.arch(), self.arch));
                return;
            }
            Err(error) => {
                found.tried.push(format!("{shown}: {error}"));
                return;
            }
        };
        match (image.id, object.id()) {
            (Some(wanted), Some(other))
                if !is_same(&wanted, &other) && matches!(other, ImageId::BuildId(_)) =>
            {
                found.tried.push(format!("{shown}: has {} {other}, the process ran {wanted}", other.kind()));
                found.status = SymbolStatus::IdMismatch(vec![other]);
                return;
            }
            (Some(wanted), Some(other)) if is_same(&wanted, &other) => {}
            _ => found.is_unproven = !is_named,
        }
        found.main_file = path.to_owned();
        found.binary = Some((shown, data.clone()));
    }

    /// Without an identity a scanned file counts by its name, if it is the only one of that name.
    fn by_name(&self, image: &Image, found: &mut Found) {
        let index = self.symbols.index();
        let of_arch = |entry: &&Entry| entry.identity.arch.family() == self.arch.family();
        let mut named: Vec<_> = index.named(image.name()).into_iter().filter(of_arch).collect();
        if named.is_empty() {
            // Processes load libraries by links, whose names a scan does not keep.
            let is_linked = |entry: &&Entry| is_version_of(entry.location.path(), image.name());
            named = index.entries().iter().filter(of_arch).filter(is_linked).collect();
        }
        if let [entry] = named[..]
            && let Ok(data) = self.symbols.index().open(entry)
        {
            found.main_file = entry.location.path().to_owned();
            found.binary = Some((entry.location.to_string(), data));
            found.is_unproven = true;
        }
    }

    /// The debug file that a stripped binary names.
    pub(super) fn separate_debug_file(&self, found: &mut Found) {
        let Some((_, data)) = &found.binary else { return };
        let Ok(object) = Object::parse_with(data, &Limits::default()) else { return };
        if object.has_debug_info() || !found.debug.is_empty() {
            return;
        }
        let locator = Locator::new();
        let id = object.id().filter(|id| matches!(id, ImageId::BuildId(_)));
        let located = id.and_then(|id| locator.debug_file(&id).found).or_else(|| {
            let link = object.debug_link()?;
            let check = id.map_or(DebugLinkCheck::Crc(link.crc32), DebugLinkCheck::Id);
            locator.debug_link(&found.main_file, &link.name, check).found
        });
        found.debug.extend(located.map(|(location, data)| (location.to_string(), data)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
