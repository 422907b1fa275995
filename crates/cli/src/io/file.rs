//! Whether two paths are one file, and what else paths mean.

use std::collections::HashSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Links that are followed; as many as Linux follows.
const MAX_LINKS: usize = 40;

/// What a link leads to, also where nothing is there yet. A descriptor of the own process stays as it is named.
pub(crate) fn follow(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if descriptor(&path).is_some() {
            break;
        }
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => break,
        }
    }
    path
}

/// The number of a descriptor of the own process that is named like a file: `/dev/stdout`, `/dev/fd/3`.
pub(crate) fn descriptor(path: &Path) -> Option<u32> {
    let path = path.to_str()?;
    let own = format!("/proc/{}/fd/", std::process::id());
    match path {
        "/dev/stdin" => Some(0),
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        _ => ["/dev/fd/", "/proc/self/fd/", &own]
            .iter()
            .find_map(|prefix| path.strip_prefix(prefix)?.parse().ok()),
    }
}

/// Which file a path means, whatever it is called.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Files that were or will be read, and must not be written.
#[derive(Debug, Default)]
pub(crate) struct InputFiles {
    #[cfg(unix)]
    files: HashSet<(u64, u64)>,
    #[cfg(not(unix))]
    files: HashSet<PathBuf>,
}

impl InputFiles {
    pub(crate) fn new<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        let mut inputs = Self::default();
        paths.into_iter().for_each(|path| inputs.add(path.as_ref()));
        inputs
    }

    /// Devices and pipes give and take, and directories are not replaced.
    pub(crate) fn add(&mut self, path: &Path) {
        if path.is_file() {
            self.files.extend(identity(path));
        }
    }

    pub(crate) fn contains(&self, place: &Path) -> bool {
        identity(place).is_some_and(|identity| self.files.contains(&identity))
    }
}

/// Refuses a named pipe, which nobody may ever write to. Those that the command line's own shell made (`<(…)`) are named
/// as descriptors.
pub(crate) fn refuse_pipe(path: &Path) -> Result<(), String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        let is_pipe = fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
        if is_pipe && descriptor(&follow(path)).is_none() {
            return Err(format!(
                "{} is a named pipe, and reading it may wait for ever: expected a file",
                path.display()
            ));
        }
    }
    Ok(())
}

/// A whole file of at most so many bytes; no named pipe, and of devices, which may never end, less.
pub(crate) fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    const MOST_OF_DEVICES: u64 = 16 << 20;
    refuse_pipe(path)?;
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let most = if is_file || descriptor(&follow(path)).is_some() { most } else { most.min(MOST_OF_DEVICES) };
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most { Err(format!("larger than {} MiB", most >> 20)) } else { Ok(bytes) }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;
    use std::os::unix::fs::symlink;

    #[test]
    fn one_file_by_any_name() {
        let directory = TempDir::new("one-file");
        let file = directory.write("a/file", "x");
        let (hard, soft) = (directory.join("hard"), directory.join("soft"));
        fs::hard_link(&file, &hard).unwrap();
        symlink(&file, &soft).unwrap();
        let inputs = InputFiles::new([&file]);
        for place in [hard, soft, directory.join("a/../a/file")] {
            assert!(inputs.contains(&place), "{}", place.display());
        }
        assert!(!inputs.contains(&directory.write("b", "x")));
        assert!(!inputs.contains(&directory.join("absent")));
    }

    #[test]
    fn descriptors_are_told_by_their_names() {
        for (path, number) in [
            ("/dev/stdout", Some(1)),
            ("/dev/fd/7", Some(7)),
            ("/proc/self/fd/0", Some(0)),
            ("/dev/null", None),
        ] {
            assert_eq!(descriptor(Path::new(path)), number, "{path}");
        }
    }
}
