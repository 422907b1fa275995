//! A file that is there whole or not at all.

#[cfg(target_os = "linux")]
mod unnamed;
#[cfg(not(target_os = "linux"))]
#[path = "output/named_only.rs"]
mod unnamed;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use unnamed::Unnamed;

/// A file on its way, moved to its place when it is whole and on the disk.
///
/// Until then it has no name, so that nothing of it stays, however the process ends. Where the file system cannot do that,
/// it is written beside its place under a name of its own, which stays behind only where the process is killed.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) file: File,
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

/// Names that are tried before giving up; more than one is in use only after the same process number was killed.
const TRIES: u32 = 64;

impl Pending {
    pub(super) fn create(place: &Path) -> io::Result<Self> {
        let place = target(place)?;
        if let Some((file, unnamed)) = Unnamed::create(folder(&place)) {
            return Ok(Self { file, stage: Stage::Unnamed(unnamed), place });
        }
        let new = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let (file, named) = Named::first(&place, new)?;
        Ok(Self { file, stage: Stage::Named(named), place })
    }

    /// Where it can be read until it is whole.
    pub(super) fn temporary(&self) -> &Path {
        match &self.stage {
            Stage::Unnamed(unnamed) => unnamed.path(),
            Stage::Named(named) => &named.0,
        }
    }

    /// Puts it in its place, over what was there.
    pub(super) fn finish(self) -> io::Result<()> {
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

impl Named {
    /// Makes a file beside `place`, of the first name that is free.
    fn first<T>(place: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, Self)> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        for attempt in 0..TRIES {
            let path = place.with_file_name(format!(".{name}.{}-{attempt}.part", std::process::id()));
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

/// What a link leads to takes the file, and the link stays. Devices and pipes would be replaced, which nobody wants.
fn target(place: &Path) -> io::Result<PathBuf> {
    place.file_name().ok_or_else(|| io::Error::other("expected the name of a file"))?;
    let Ok(metadata) = fs::metadata(place) else { return Ok(place.to_owned()) };
    if !metadata.is_file() {
        return Err(io::Error::other("expected the name of a file, this is a device, a pipe or a folder"));
    }
    if place.is_symlink() { fs::canonicalize(place) } else { Ok(place.to_owned()) }
}

fn folder(place: &Path) -> &Path {
    place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// So that the name survives a power cut, too. Not every file system can; the file itself is safe.
fn finished(place: &Path) -> io::Result<()> {
    if let Ok(folder) = File::open(folder(place)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;
    use std::io::Write as _;

    fn names(folder: &TempDir) -> Vec<String> {
        let names = fs::read_dir(folder.path()).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// One of each kind, whatever the file system can.
    fn pending(place: &Path) -> Vec<Pending> {
        let new = |path: &Path| File::create_new(path);
        let (file, named) = Named::first(place, new).unwrap();
        let named = Pending { file, stage: Stage::Named(named), place: place.to_owned() };
        vec![named, Pending::create(place).unwrap()]
    }

    #[test]
    fn dropped_it_was_never_there() {
        let folder = TempDir::new("pending");
        drop(pending(&folder.join("file")));
        assert_eq!(names(&folder), [""; 0]);
    }

    #[test]
    fn finished_it_takes_the_place_of_what_was_there() {
        let folder = TempDir::new("pending");
        let place = folder.join("file");
        for round in 0..2 {
            for (number, mut pending) in pending(&place).into_iter().enumerate() {
                let text = format!("{round} {number}");
                pending.file.write_all(text.as_bytes()).unwrap();
                assert_eq!(fs::read(pending.temporary()).unwrap(), text.as_bytes());
                pending.finish().unwrap();
                assert_eq!(fs::read(&place).unwrap(), text.as_bytes());
                assert_eq!(names(&folder).iter().filter(|name| *name == "file").count(), 1);
            }
        }
        assert_eq!(names(&folder), ["file"]);
    }

    #[test]
    fn names_left_by_killed_processes_are_passed_over() {
        let folder = TempDir::new("pending");
        let place = folder.join("file");
        for attempt in 0..3 {
            folder.write(format!(".file.{}-{attempt}.part", std::process::id()), "of another");
        }
        pending(&place).into_iter().for_each(|pending| pending.finish().unwrap());
        assert_eq!(names(&folder).len(), 4, "{:?}", names(&folder));
    }

    #[test]
    fn links_stay_and_devices_are_refused() {
        let folder = TempDir::new("pending");
        let (file, link) = (folder.write("file", "old"), folder.join("link"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        let mut pending = Pending::create(&link).unwrap();
        pending.file.write_all(b"new").unwrap();
        pending.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        for place in ["/dev/null", "/dev/full", "/", ".."] {
            assert!(Pending::create(Path::new(place)).is_err(), "{place}");
        }
        assert!(Pending::create(folder.path()).is_err());
    }
}
