//! The files of a saved stack: a directory in the layout of libunwindstack's offline cases.

use backtrail_store::FileData;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// Bytes that the compressed files of one directory may inflate to, all together.
const MAX_INFLATED: u64 = 2 << 30;
/// Bytes that one of them may: so many anyway, and so many for each packed one. Binaries come to ten, zeros to a thousand.
const ALWAYS_INFLATED: u64 = 64 << 20;
const INFLATED_PER_BYTE: u64 = 200;
/// Files that a directory may hold; real cases have a few dozen.
const MAX_FILES: usize = 10_000;

/// A directory with `regs.txt`, `maps.txt`, `*.data`, `links.txt` and the binaries, plain or `.gz`.
pub(crate) struct Directory {
    path: PathBuf,
    /// Name in `maps.txt` to the file that stands in for it.
    links: HashMap<String, PathBuf>,
    opened: HashMap<PathBuf, Option<FileData>>,
    /// What is left of [`MAX_INFLATED`].
    left: u64,
}

impl Directory {
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        if !path.is_dir() {
            return Err(format!("{}: expected a directory with maps.txt and regs.txt", path.display()));
        }
        let mut directory =
            Self { path: path.to_owned(), links: HashMap::new(), opened: HashMap::new(), left: MAX_INFLATED };
        if let Some(links) = directory.at(&path.join("links.txt")) {
            let text = String::from_utf8_lossy(&links).into_owned();
            let link = |line: &str| {
                let (file, name) = line.trim().split_once(char::is_whitespace)?;
                Some((name.trim().to_owned(), path.join(file)))
            };
            directory.links = text.lines().filter_map(link).collect();
        }
        Ok(directory)
    }

    /// A file that has to be there.
    pub(crate) fn required(&mut self, name: &str) -> Result<FileData, String> {
        let path = self.path.join(name);
        self.at(&path).ok_or_else(|| format!("{}: expected this file of a saved stack", path.display()))
    }

    /// Every `*.data`, by name: pieces of memory.
    pub(crate) fn memory(&mut self) -> Vec<(String, Cow<'static, [u8]>)> {
        let mut names = self.names();
        names.retain(|name| without_gz(name).ends_with(".data"));
        let mut read = |name: String| {
            let bytes = self.at(&self.path.join(without_gz(&name)))?.to_vec();
            Some((name, Cow::Owned(bytes)))
        };
        names.into_iter().filter_map(&mut read).collect()
    }

    /// The file that was mapped under this name.
    pub(crate) fn mapped(&mut self, name: &str) -> Option<FileData> {
        if let Some(path) = self.links.get(name).cloned() {
            return self.at(&path);
        }
        // The names are whoever's who saved the stack: nothing outside of the directory is opened by them.
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let path = if inside { self.path.join(name) } else { self.path.join(Path::new(name).file_name()?) };
        self.at(&path)
    }

    /// Files that no name in `mapped` means, with their names: code made at run time that was saved apart.
    pub(crate) fn others(&mut self, mapped: &[&str]) -> Vec<(String, FileData)> {
        let names = self.names();
        let unmapped = names.iter().map(|name| without_gz(name)).filter(|name| {
            let is_text =
                Path::new(name).extension().is_some_and(|ending| ending == "txt" || ending == "data");
            !is_text && !mapped.contains(name)
        });
        let all: Vec<_> = unmapped.map(str::to_owned).collect();
        all.into_iter().filter_map(|name| Some((name.clone(), self.at(&self.path.join(&name))?))).collect()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten().take(MAX_FILES);
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The file at `path`, or the one with `.gz` behind it, inflated.
    fn at(&mut self, path: &Path) -> Option<FileData> {
        if let Some(known) = self.opened.get(path) {
            return known.clone();
        }
        let plain = FileData::map(path).ok();
        let data = plain.or_else(|| {
            let mut packed = path.as_os_str().to_owned();
            packed.push(".gz");
            let data = inflate(&FileData::map(Path::new(&packed)).ok()?, self.left)?;
            self.left = self.left.saturating_sub(data.len() as u64);
            Some(data)
        });
        self.opened.insert(path.to_owned(), data.clone());
        data
    }
}

fn without_gz(name: &str) -> &str {
    name.strip_suffix(".gz").unwrap_or(name)
}

/// `None` also of what inflates to more than is believable, or than `left`: a part of a file would be taken for the whole.
fn inflate(packed: &[u8], left: u64) -> Option<FileData> {
    let most = (packed.len() as u64).saturating_mul(INFLATED_PER_BYTE).max(ALWAYS_INFLATED).min(left);
    let mut bytes = Vec::new();
    let mut inflater = flate2::read::GzDecoder::new(packed).take(most.saturating_add(1));
    inflater.read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then(|| FileData::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn packed(size: usize) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&vec![0; size]).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn a_small_file_does_not_inflate_without_end() {
        let small = packed(1 << 20);
        assert_eq!(inflate(&small, MAX_INFLATED).unwrap().len(), 1 << 20);
        assert!(inflate(&small, (1 << 20) - 1).is_none(), "nothing is left for it");
        let bomb = packed((ALWAYS_INFLATED + 1).try_into().unwrap());
        assert!((bomb.len() as u64) < ALWAYS_INFLATED / INFLATED_PER_BYTE);
        assert!(inflate(&bomb, MAX_INFLATED).is_none());
    }
}
