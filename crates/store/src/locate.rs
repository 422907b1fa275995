//! Files that other files name: looked for where the name says, without a scan.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use backtrail_core::ImageId;
use flate2::Crc;

use crate::data::FileData;
use crate::identity::check_id;
use crate::index::{Index, Places};
use crate::remote::{RemoteFile, RemoteKind};
use crate::{entry::Location, scan};

/// Looks for the files that a binary or its debug information names.
#[derive(Debug)]
pub struct Locator<'i> {
    index: &'i Index,
    places: &'i Places,
}

/// What came of looking for one file.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Located {
    /// The file, and its bytes.
    pub found: Option<(Location, FileData)>,
    /// Where else it was looked for, and why that was not it.
    pub tried: Vec<(PathBuf, String)>,
}

/// How a file that a debug link names is told to be the right one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DebugLinkCheck {
    /// It has this build id.
    Id(ImageId),
    /// The CRC-32 of the whole file, where the binary has no build id. Reads all of it.
    Crc(u32),
}

impl Index {
    /// Looks where files name others, and among the scanned files.
    pub fn locator(&self) -> Locator<'_> {
        Locator { index: self, places: &self.places }
    }
}

impl Locator<'_> {
    /// The debug file of a build id: `.build-id/nn/rest.debug` in each debug directory, as [GDB] and elfutils have it.
    ///
    /// [GDB]: https://sourceware.org/gdb/current/onlinedocs/gdb.html/Separate-Debug-Files.html
    pub fn debug_file(&self, id: &ImageId) -> Located {
        self.by_build_id(id, ".debug")
    }

    /// The binary itself of a build id: `.build-id/nn/rest` in each debug directory, mostly a link.
    pub fn binary(&self, id: &ImageId) -> Located {
        self.by_build_id(id, "")
    }

    fn by_build_id(&self, id: &ImageId, ending: &str) -> Located {
        let mut located = Located::default();
        let digits = id.to_string();
        let (ImageId::BuildId(_), Some((first, rest))) = (id, digits.split_at_checked(2)) else {
            return located;
        };
        for directory in &self.places.debug_directories {
            let path = directory.join(".build-id").join(first).join(format!("{rest}{ending}"));
            located.try_path(self.index, path, |data| check_id(data, id));
        }
        located
    }

    /// The file that the `.gnu_debuglink` of `binary` names: beside it, in `.debug` beside it, then below each debug
    /// directory at the binary's own path.
    pub fn debug_link(&self, binary: &Path, name: &str, check: DebugLinkCheck) -> Located {
        let mut located = Located::default();
        if name.is_empty() || name.contains('/') {
            let why = "expected a file name in the debug link, without a directory".to_owned();
            located.tried.push((name.into(), why));
            return located;
        }
        let real = std::fs::canonicalize(binary).unwrap_or_else(|_| binary.to_owned());
        let directory = real.parent().unwrap_or(Path::new("/"));
        let below = directory.strip_prefix("/").unwrap_or(directory);
        let mut paths = vec![directory.join(name), directory.join(".debug").join(name)];
        paths.extend(self.places.debug_directories.iter().map(|debug| debug.join(below).join(name)));
        // A binary's own name in its link does not make it its own debug file.
        for path in paths.into_iter().filter(|path| *path != real) {
            located.try_path(self.index, path, |data| match &check {
                DebugLinkCheck::Id(id) => check_id(data, id),
                DebugLinkCheck::Crc(crc) => check_crc(data, *crc),
            });
        }
        located
    }

    /// The file that the `.gnu_debugaltlink` of `debug_file` names (what dwz makes of debug information that several
    /// files share): at its path, which is relative to `debug_file`, or by its build id.
    pub fn alternate(&self, debug_file: &Path, path: &Path, id: &ImageId) -> Located {
        let mut located = Located::default();
        let real = std::fs::canonicalize(debug_file).unwrap_or_else(|_| debug_file.to_owned());
        let directory = real.parent().unwrap_or(Path::new("/"));
        if self.places.named_paths {
            located.try_path(self.index, self.remap(&directory.join(path)), |data| check_id(data, id));
        }
        if located.found.is_none() {
            let by_id = self.debug_file(id);
            located.found = by_id.found;
            located.tried.extend(by_id.tried);
        }
        if located.found.is_none() {
            for entry in self.index.find(id, None) {
                located.try_location(self.index, &entry.location, |_| Ok(()));
            }
        }
        if located.found.is_none() {
            located.try_servers(self.index, id);
        }
        located
    }

    /// The package of split DWARF of `binary`: beside it, `.dwp` added to its name.
    pub fn package(&self, binary: &Path) -> Located {
        let mut located = Located::default();
        // Of `a.debug`, made from `a`, the package may be that of either.
        let other = binary.extension().filter(|ending| *ending == "debug").and(binary.file_stem());
        let names: Vec<_> = [binary.file_name(), other].into_iter().flatten().collect();
        let package = |name: &OsStr| -> OsString { [name, OsStr::new(".dwp")].into_iter().collect() };
        for name in &names {
            located.try_path(self.index, binary.with_file_name(package(name)), is_object);
        }
        for name in &names {
            self.among_loose(&mut located, Path::new(&package(name)));
        }
        located
    }

    /// The file at `path`; a relative one is tried in each of `directories` (a unit's compilation directory, the binary's
    /// own directory). If it is nowhere there, the scanned file of the same name whose path has most in common with it.
    /// For `.dwo` files and the object files of a debug map. Debug information may name any file of the machine: only
    /// an object file counts, and whoever asked checks that it is the right one.
    pub fn file(&self, path: &Path, directories: &[&Path]) -> Located {
        let mut located = Located::default();
        let named = if path.is_absolute() || directories.is_empty() {
            vec![self.remap(path)]
        } else {
            directories.iter().map(|directory| self.remap(&directory.join(path))).collect()
        };
        for path in named.into_iter().filter(|_| self.places.named_paths) {
            located.try_path(self.index, path, is_object);
        }
        self.among_loose(&mut located, path);
        located
    }

    /// As [`file`](Self::file), for an object file that a debug map names, which counts only if it was last changed
    /// at `modified` (seconds since 1970; 0 in reproducible builds, which leave the time out): else it is another
    /// build's.
    pub fn debug_map_object(&self, path: &Path, modified: u64) -> Located {
        let mut located = self.file(path, &[]);
        let location = located.found.as_ref().map(|(location, _)| location.clone());
        let Some(location) = location.filter(|location| modified != 0 && !location.is_in_zip()) else {
            return located;
        };
        let actual = std::fs::metadata(location.path()).and_then(|metadata| metadata.modified());
        let actual = actual.ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let actual = actual.map(|time| time.as_secs());
        if actual != Some(modified) {
            let why = format!(
                "expected a file last changed {modified} s after 1970, this one was at {}",
                actual.unwrap_or_default()
            );
            located.found = None;
            located.tried.push((location.path().to_owned(), why));
        }
        located
    }

    fn remap(&self, path: &Path) -> PathBuf {
        let mapped =
            self.places.remaps.iter().find_map(|(from, to)| Some(to.join(path.strip_prefix(from).ok()?)));
        mapped.unwrap_or_else(|| path.to_owned())
    }

    fn among_loose(&self, located: &mut Located, path: &Path) {
        let name = path.file_name().and_then(|name| name.to_str());
        let (None, Some(name)) = (&located.found, name) else { return };
        let index = self.index;
        let in_common = |location: &&Location| {
            let wanted = path.components().rev().filter_map(|part| part.as_os_str().to_str());
            location.components().rev().zip(wanted).take_while(|(have, want)| have == want).count()
        };
        // Of several that have equally much in common, the first in the scan's order.
        if let Some(location) = index.loose(name).iter().rev().max_by_key(in_common) {
            located.try_location(index, location, |_| Ok(()));
        }
    }
}

impl Located {
    /// Only files that lookups need are asked for, so that this one is needed.
    fn try_servers(&mut self, index: &Index, id: &ImageId) {
        for fetched in index.fetch(&[RemoteFile { id: *id, kind: RemoteKind::DebugInfo }]) {
            match fetched {
                Ok(file) => self.try_path(index, file.path().to_owned(), |data| check_id(data, id)),
                Err(error) => self.tried.push((id.to_string().into(), error.to_string())),
            }
        }
    }

    fn try_path(&mut self, index: &Index, path: PathBuf, check: impl Fn(&FileData) -> Result<(), String>) {
        self.try_location(index, &Location::file(path.into()), check);
    }

    fn try_location(
        &mut self,
        index: &Index,
        location: &Location,
        check: impl Fn(&FileData) -> Result<(), String>,
    ) {
        if self.found.is_some() {
            return;
        }
        let opened = index.open_file(location).map_err(|error| error.what().to_owned());
        match opened.and_then(|data| check(&data).map(|()| data)) {
            Ok(data) => self.found = Some((location.clone(), data)),
            Err(why) => self.tried.push((location.path().to_owned(), why)),
        }
    }
}

/// Of any other file, nothing is told but that it is none.
fn is_object(data: &FileData) -> Result<(), String> {
    if scan::starts_as_object(data) { Ok(()) } else { Err("expected an object file".to_owned()) }
}

fn check_crc(data: &FileData, crc: u32) -> Result<(), String> {
    let mut actual = Crc::new();
    actual.update(data);
    if actual.sum() == crc {
        return Ok(());
    }
    Err(format!("has CRC {:08x}, the debug link says {crc:08x}", actual.sum()))
}
