//! A file that is there whole or not at all.

#[cfg(target_os = "linux")]
mod unnamed;
#[cfg(not(target_os = "linux"))]
#[path = "new_file/named_only.rs"]
mod unnamed;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use unnamed::Unnamed;

/// A file on its way, moved to its place when it is whole and on the disk: every file that backtrail writes.
///
/// Until then it has no name, so that nothing of it stays, however the process ends. Where the file system cannot do that,
/// it is written beside its place under a name of its own, which stays behind only where the process is killed.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    stage: Stage,
    place: PathBuf,
}

#[derive(Debug)]
enum Stage {
    Unnamed(Unnamed),
    Named(Named),
}

/// A file of a passing name, removed when this is dropped.
#[derive(Debug)]
struct Named(PathBuf);

/// Links that are followed; as many as Linux follows.
const MAX_LINKS: usize = 40;

/// Names that are tried before giving up; more than one is in use only after the same process number was killed.
const TRIES: u32 = 64;

impl NewFile {
    /// Begins the file that will be at `place`. Where that is a link, what it leads to takes the file.
    ///
    /// # Errors
    /// Where it cannot be made, or `place` is a device, a pipe or a directory.
    pub fn create(place: &Path) -> io::Result<Self> {
        let place = target(place)?;
        if let Some((file, unnamed)) = Unnamed::create(directory(&place)) {
            return Ok(Self { file, stage: Stage::Unnamed(unnamed), place });
        }
        let new = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let (file, named) = Named::first(&place, new)?;
        Ok(Self { file, stage: Stage::Named(named), place })
    }

    /// What was written so far.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where it can be read until it is whole.
    pub fn temporary(&self) -> &Path {
        match &self.stage {
            Stage::Unnamed(unnamed) => unnamed.path(),
            Stage::Named(named) => &named.0,
        }
    }

    /// Puts it in its place, over what was there, whose permissions it takes.
    ///
    /// # Errors
    /// Where that fails; then nothing has changed there.
    pub fn finish(self) -> io::Result<()> {
        if let Ok(old) = fs::metadata(&self.place) {
            self.file.set_permissions(old.permissions())?;
        }
        self.file.sync_all()?;
        let named = match self.stage {
            Stage::Named(named) => named,
            // What has no name cannot take the place of what is there, but for by way of a name beside it.
            Stage::Unnamed(unnamed) => match unnamed.link(&self.place) {
                Ok(()) => return finished(&self.place),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) => Named::first(&self.place, |path| unnamed.link(path))?.1,
            },
        };
        fs::rename(&named.0, &self.place)?;
        // Whoever has the name now, it is not ours.
        std::mem::forget(named);
        finished(&self.place)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Named {
    /// Makes a file beside `place`, of the first name that is free.
    fn first<T>(place: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, Self)> {
        for attempt in 0..TRIES {
            // Not made of the file's own name, which may be as long as names can be.
            let path = place.with_file_name(format!(".backtrail-{}-{attempt}.part", std::process::id()));
            match make(&path) {
                Ok(made) => return Ok((made, Self(path))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// What a link leads to takes the file, also where nothing is there yet, and the link stays. Devices and pipes would be
/// replaced, which nobody wants.
fn target(place: &Path) -> io::Result<PathBuf> {
    let mut place = place.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&place) else { break };
        place = place.parent().unwrap_or(Path::new("")).join(target);
    }
    place.file_name().ok_or_else(|| io::Error::other("expected the name of a file"))?;
    match fs::metadata(&place) {
        Ok(metadata) if !metadata.is_file() => {
            Err(io::Error::other("expected the name of a file, this is a device, a pipe or a directory"))
        }
        _ => Ok(place),
    }
}

fn directory(place: &Path) -> &Path {
    place.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// So that the name survives a power cut, too. Not every file system can; the file itself is safe.
fn finished(place: &Path) -> io::Result<()> {
    if let Ok(directory) = File::open(directory(place)) {
        let _ = directory.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn names(directory: &TempDir) -> Vec<String> {
        let names = fs::read_dir(directory.path()).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// One of each kind, whatever the file system can.
    fn pending(place: &Path) -> Vec<NewFile> {
        let new = |path: &Path| File::create_new(path);
        let (file, named) = Named::first(place, new).unwrap();
        let named = NewFile { file, stage: Stage::Named(named), place: place.to_owned() };
        vec![named, NewFile::create(place).unwrap()]
    }

    #[test]
    fn dropped_it_was_never_there() {
        let directory = TempDir::new("new-file");
        drop(pending(&directory.join("file")));
        assert_eq!(names(&directory), [""; 0]);
    }

    #[test]
    fn finished_it_takes_the_place_of_what_was_there() {
        let directory = TempDir::new("new-file");
        let place = directory.join("file");
        for round in 0..2 {
            for (number, mut pending) in pending(&place).into_iter().enumerate() {
                let text = format!("{round} {number}");
                pending.file.write_all(text.as_bytes()).unwrap();
                assert_eq!(fs::read(pending.temporary()).unwrap(), text.as_bytes());
                pending.finish().unwrap();
                assert_eq!(fs::read(&place).unwrap(), text.as_bytes());
                assert_eq!(names(&directory).iter().filter(|name| *name == "file").count(), 1);
            }
        }
        assert_eq!(names(&directory), ["file"]);
    }

    #[test]
    fn names_left_by_killed_processes_are_passed_over() {
        let directory = TempDir::new("new-file");
        let place = directory.join("file");
        for attempt in 0..3 {
            directory.write(format!(".backtrail-{}-{attempt}.part", std::process::id()), "of another");
        }
        pending(&place).into_iter().for_each(|pending| pending.finish().unwrap());
        assert_eq!(names(&directory).len(), 4, "{:?}", names(&directory));
    }

    #[test]
    fn links_and_permissions_stay() {
        let directory = TempDir::new("new-file");
        let old = directory.write("old", "old");
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
        let (link, dangling) = (directory.join("link"), directory.join("dangling"));
        symlink("old", &link).unwrap();
        symlink("absent", &dangling).unwrap();
        for place in [&link, &dangling] {
            let mut file = NewFile::create(place).unwrap();
            file.write_all(b"new").unwrap();
            file.finish().unwrap();
        }
        let mut all = names(&directory);
        all.sort();
        assert_eq!(all, ["absent", "dangling", "link", "old"]);
        assert!(link.is_symlink() && dangling.is_symlink());
        assert_eq!(fs::read(&old).unwrap(), b"new");
        assert_eq!(fs::metadata(&old).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn links_stay_and_devices_are_refused() {
        let directory = TempDir::new("new-file");
        let (file, link) = (directory.write("file", "old"), directory.join("link"));
        symlink("file", &link).unwrap();
        let mut pending = NewFile::create(&link).unwrap();
        pending.file.write_all(b"new").unwrap();
        pending.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        for place in ["/dev/null", "/dev/full", "/", ".."] {
            assert!(NewFile::create(Path::new(place)).is_err(), "{place}");
        }
        assert!(NewFile::create(directory.path()).is_err());
    }
}
