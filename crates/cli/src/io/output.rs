//! Where results go: standard output, a file, or a directory with a file for each.

use super::console::{Console, Locked};
use super::file::{InputFiles, descriptor, follow};
use crate::outcome::Failure;
use backtrail_store::NewFile;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What a path for output means. Finding out changes nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Stdout,
    /// A device or a pipe, which is written to as it is.
    Stream(PathBuf),
    /// A file, which is replaced when the new one is whole.
    File(PathBuf),
    /// A directory for one file each; made if it is not there.
    Directory(PathBuf),
}

impl Target {
    /// Standard output without a path or for `-`; a directory where the path is one, or ends like one.
    pub(crate) fn of(path: Option<&Path>) -> Self {
        let Some(path) = path.filter(|path| path.as_os_str() != "-") else { return Self::Stdout };
        if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Self::Directory(path.to_owned());
        }
        let end = follow(path);
        match descriptor(&end) {
            Some(1) => return Self::Stdout,
            Some(_) => return Self::Stream(path.to_owned()),
            None => {}
        }
        let is_stream = fs::metadata(&end).is_ok_and(|metadata| !metadata.is_file());
        if is_stream { Self::Stream(path.to_owned()) } else { Self::File(path.to_owned()) }
    }

    /// Whether a person may see the bytes as they are written.
    pub(crate) fn may_be_terminal(&self, console: &Console) -> bool {
        match self {
            Self::Stdout => console.stdout_is_terminal(),
            #[cfg(unix)]
            Self::Stream(path) => {
                use std::os::unix::fs::FileTypeExt as _;
                fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device())
            }
            #[cfg(not(unix))]
            Self::Stream(_) => true,
            Self::File(_) | Self::Directory(_) => false,
        }
    }

    /// The file of the result that is called `name`, if results become files.
    pub(crate) fn place(&self, name: &str) -> Option<PathBuf> {
        match self {
            Self::Stdout | Self::Stream(_) => None,
            Self::File(path) => Some(path.clone()),
            Self::Directory(path) => Some(path.join(name)),
        }
    }

    /// Fails where the result would replace an input.
    pub(crate) fn check(&self, name: &str, inputs: &InputFiles) -> Result<(), Failure> {
        match self.place(name) {
            Some(place) if inputs.contains(&place) => Err(Failure::Input(format!(
                "{}: is one of the inputs, which is never written over; name another output",
                place.display()
            ))),
            _ => Ok(()),
        }
    }
}

/// Opens a device or a pipe. Descriptors may be files that were opened to be added to.
pub(crate) fn open_stream(path: &Path) -> Result<BufWriter<File>, Failure> {
    let file = OpenOptions::new().append(true).open(path);
    // Not every device can be opened for appending.
    let file = file.or_else(|_| OpenOptions::new().write(true).open(path));
    file.map(BufWriter::new).map_err(|error| Failure::File(path.to_owned(), error))
}

/// Writes results to their target. Nothing is opened before the first result is there.
pub(crate) struct Sink<'a> {
    target: Target,
    console: &'a Console,
    open: Open<'a>,
}

enum Open<'a> {
    Nothing,
    Stdout(BufWriter<Locked<'a, dyn Write + Send>>),
    Stream(BufWriter<File>),
    File(BufWriter<NewFile>),
}

impl<'a> Sink<'a> {
    pub(crate) fn new(target: Target, console: &'a Console) -> Self {
        Self { target, console, open: Open::Nothing }
    }

    /// Writes one result; `name` names its file in a directory.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        if let Target::Directory(path) = &self.target {
            fs::create_dir_all(path).map_err(|error| Failure::File(path.clone(), error))?;
            let place = path.join(name);
            return write_file(&place, bytes).map_err(|error| Failure::File(place, error));
        }
        if matches!(self.open, Open::Nothing) {
            self.open = self.opened()?;
        }
        let written = match &mut self.open {
            Open::Nothing => Ok(()),
            Open::Stdout(out) => out.write_all(bytes),
            Open::Stream(out) => out.write_all(bytes),
            Open::File(out) => out.write_all(bytes),
        };
        written.map_err(|error| self.failed(error))
    }

    fn opened(&self) -> Result<Open<'a>, Failure> {
        match &self.target {
            Target::Directory(_) => Ok(Open::Nothing),
            Target::Stdout => Ok(Open::Stdout(self.console.stdout())),
            Target::Stream(path) => open_stream(path).map(Open::Stream),
            Target::File(path) => {
                let file = NewFile::create(path).map_err(|error| self.failed(error))?;
                Ok(Open::File(BufWriter::with_capacity(1 << 16, file)))
            }
        }
    }

    fn failed(&self, error: io::Error) -> Failure {
        match &self.target {
            Target::Stdout => Failure::Output(error),
            Target::Stream(path) | Target::File(path) | Target::Directory(path) => {
                Failure::File(path.clone(), error)
            }
        }
    }

    /// Hands over what is still buffered, and gives a file its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let finished = match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => Ok(()),
            Open::Stdout(mut out) => out.flush(),
            Open::Stream(mut out) => out.flush(),
            Open::File(out) => {
                out.into_inner().map_err(io::IntoInnerError::into_error).and_then(NewFile::finish)
            }
        };
        finished.map_err(|error| self.failed(error))
    }
}

/// A file that appears whole.
pub(crate) fn write_file(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::create(place)?;
    file.write_all(bytes)?;
    file.finish()
}
