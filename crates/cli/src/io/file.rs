//! Files that appear whole or not at all, and the question whether two paths are one file.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Names that are tried before giving up; more than one is in use only after a process of the same number was killed.
const TRIES: u32 = 64;

/// Links that are followed; as many as Linux follows.
const MAX_LINKS: usize = 40;

/// A file that is written beside its place under a passing name, and moved there when it is whole and on the disk.
/// Dropped before, it was never there.
pub(crate) struct NewFile {
    out: BufWriter<File>,
    /// `None` once it has its name.
    temporary: Option<PathBuf>,
    place: PathBuf,
}

impl NewFile {
    /// What a link leads to takes the file, and the link stays.
    pub(crate) fn create(place: &Path) -> io::Result<Self> {
        let place = follow(place);
        place.file_name().ok_or_else(|| io::Error::other("expected the name of a file"))?;
        for attempt in 0..TRIES {
            // Not made of the file's own name, which may be as long as names can be.
            let temporary = place.with_file_name(format!(".backtrail-{}-{attempt}.part", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    let out = BufWriter::with_capacity(1 << 16, file);
                    return Ok(Self { out, temporary: Some(temporary), place });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Puts it in its place, over what was there, whose permissions it takes.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        let file = self.out.get_ref();
        if let Ok(old) = fs::metadata(&self.place) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.place)?;
        }
        self.temporary = None;
        // So that the name survives a power cut, too. Not every file system can; the file itself is safe.
        let parent = self.place.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Ok(directory) = File::open(parent.unwrap_or(Path::new("."))) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

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

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn names(folder: &TempDir) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn write(place: &Path, text: &str) {
        let mut file = NewFile::create(place).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.finish().unwrap();
    }

    #[test]
    fn dropped_it_was_never_there() {
        let folder = TempDir::new("new-file");
        let old = folder.write("old", "old");
        for place in [&old, &folder.join("new")] {
            NewFile::create(place).unwrap().write_all(b"half").unwrap();
        }
        assert_eq!(names(&folder), ["old"]);
        assert_eq!(fs::read(old).unwrap(), b"old");
    }

    #[test]
    fn links_and_permissions_stay() {
        let folder = TempDir::new("new-file");
        let old = folder.write("old", "old");
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
        let (link, dangling) = (folder.join("link"), folder.join("dangling"));
        symlink("old", &link).unwrap();
        symlink("absent", &dangling).unwrap();
        write(&link, "new");
        write(&dangling, "new");
        assert_eq!(names(&folder), ["absent", "dangling", "link", "old"]);
        assert!(link.is_symlink() && dangling.is_symlink());
        assert_eq!(fs::read(&old).unwrap(), b"new");
        assert_eq!(fs::metadata(&old).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn one_file_by_any_name() {
        let folder = TempDir::new("new-file");
        let file = folder.write("a/file", "x");
        let (hard, soft) = (folder.join("hard"), folder.join("soft"));
        fs::hard_link(&file, &hard).unwrap();
        symlink(&file, &soft).unwrap();
        let inputs = InputFiles::new([&file]);
        for place in [hard, soft, folder.join("a/../a/file")] {
            assert!(inputs.contains(&place), "{}", place.display());
        }
        assert!(!inputs.contains(&folder.write("b", "x")));
        assert!(!inputs.contains(&folder.join("absent")));
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
