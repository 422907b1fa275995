//! Reports from files, archives, directories and standard input.

use super::console::Console;
use super::file::refuse_pipe;
use crate::outcome::Failure;
use backtrail::{Archive, CaptureKind, FileData, Unpacked, unpack, unpack_file, unpacked_head};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A report, or a file of several, that is yet to be read.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    source: Source,
    /// Found in a directory rather than named: what is no report, and is not called like one, is passed over.
    found: bool,
}

#[derive(Clone, Debug)]
enum Source {
    /// Standard input, which is read once.
    Stdin(Result<FileData, String>),
    File(PathBuf),
    /// What lies in an archive, at this position.
    Member(Arc<Archive>, PathBuf, usize),
    /// An archive that cannot be read, and why.
    BrokenArchive(PathBuf, String),
}

/// How deep directories of reports are searched.
const MAX_DEPTH: usize = 16;

/// What reports are called.
const EXTENSIONS: [&str; 11] =
    ["crash", "ips", "hang", "spin", "diag", "panic", "beta", "plcrash", "dmp", "mdmp", "core"];

/// How much of a file is looked at to find out whether it is meant to be a report.
const HEAD: usize = 4096;
/// How much of a file tells whether it is packed, an archive or a capture.
const MAGIC: usize = 64;

impl Input {
    fn file(path: PathBuf, found: bool) -> Self {
        Self { source: Source::File(path), found }
    }

    /// The name to show.
    pub(crate) fn name(&self) -> String {
        match &self.source {
            Source::Stdin(_) => "standard input".to_owned(),
            Source::File(path) | Source::BrokenArchive(path, _) => path.display().to_string(),
            Source::Member(archive, path, position) => {
                format!("{}!{}", path.display(), archive.members().nth(*position).unwrap_or_default())
            }
        }
    }

    /// Its file, if it is or lies in one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::Stdin(_) => None,
            Source::File(path) | Source::BrokenArchive(path, _) | Source::Member(_, path, _) => Some(path),
        }
    }

    /// Sorts inputs as a search of directories finds them.
    pub(crate) fn by_name(&self, other: &Self) -> Ordering {
        let member = |input: &Self| match &input.source {
            Source::Member(_, _, position) => Some(*position),
            _ => None,
        };
        self.path().cmp(&other.path()).then_with(|| member(self).cmp(&member(other)))
    }

    /// The path that its output is called after.
    fn named_after(&self) -> Option<PathBuf> {
        match &self.source {
            Source::Stdin(_) => None,
            Source::File(path) | Source::BrokenArchive(path, _) => Some(path.clone()),
            Source::Member(archive, path, position) => {
                Some(path.join(archive.members().nth(*position).unwrap_or_default()))
            }
        }
    }

    /// Whether somebody said that this is a report: by naming it, by its extension, or it says so itself.
    pub(crate) fn is_meant(&self, bytes: &[u8]) -> bool {
        let path = self.named_after();
        let extension = path.as_deref().and_then(Path::extension).and_then(|extension| extension.to_str());
        let is_called =
            extension.is_some_and(|extension| EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()));
        let head = bytes.get(..bytes.len().min(HEAD)).unwrap_or_default();
        let says = |word: &[u8]| head.windows(word.len()).any(|window| window == word);
        !self.found
            || is_called
            || head.starts_with(b"{")
            || says(b"Incident Identifier:")
            || says(b"\nProcess:")
    }

    /// The bytes, unpacked, or why there are none. Nothing above `max_bytes` is taken in; captures are mapped, and may be
    /// larger.
    pub(crate) fn read(&self, max_bytes: usize) -> Result<Unpacked, String> {
        match &self.source {
            Source::Stdin(bytes) => unpacked(bytes.as_ref().map_err(Clone::clone)?, max_bytes),
            Source::File(path) => read_file(path, max_bytes),
            Source::Member(archive, _, position) => {
                unpacked(&archive.read(*position).map_err(|error| error.what().to_owned())?, max_bytes)
            }
            Source::BrokenArchive(_, why) => Err(why.clone()),
        }
    }

    /// Names for its output, from the shortest to those that more inputs differ in: the name without extension, with it,
    /// and with ever more of the directories that it lies in.
    fn names(&self, level: usize) -> String {
        let Some(path) = self.named_after() else { return "stdin".to_owned() };
        let text = |text: Option<&std::ffi::OsStr>| text.unwrap_or_default().to_string_lossy().into_owned();
        if level == 0 {
            return text(path.file_stem());
        }
        let parents = path.parent().into_iter().flat_map(Path::components).rev();
        let parents = parents.filter_map(|part| match part {
            Component::Normal(name) => Some(text(Some(name))),
            Component::ParentDir => Some("up".to_owned()),
            _ => None,
        });
        let mut parts: Vec<_> =
            std::iter::once(text(path.file_name())).chain(parents.take(level - 1)).collect();
        parts.reverse();
        parts.join("-")
    }
}

/// Names of the inputs' outputs, without extension, no two of them alike: not even where upper and lower case are one, and
/// each says which input it is of. None is `reserved`, which is another file's, as long as the input's name has more to tell.
pub(crate) fn output_names(inputs: &[Input], reserved: Option<&str>) -> Vec<String> {
    /// Directories that a name tells before numbers do.
    const MAX_LEVEL: usize = 8;
    let mut levels = vec![0; inputs.len()];
    loop {
        let names: Vec<_> = inputs.iter().zip(&levels).map(|(input, level)| input.names(*level)).collect();
        let mut positions: HashMap<String, Vec<usize>> = HashMap::new();
        for (position, name) in names.iter().enumerate() {
            positions.entry(name.to_lowercase()).or_default().push(position);
        }
        let is_reserved = |name: &str| reserved.is_some_and(|reserved| name == reserved);
        let alike = positions.into_iter();
        let alike = alike.filter(|(name, positions)| positions.len() > 1 || is_reserved(name));
        let alike = alike.flat_map(|(_, positions)| positions);
        let deeper: Vec<_> =
            alike.filter(|position| levels.get(*position).is_some_and(|level| *level < MAX_LEVEL)).collect();
        if deeper.is_empty() {
            // The same file was given twice.
            return numbered(names);
        }
        for position in deeper {
            levels.get_mut(position).into_iter().for_each(|level| *level += 1);
        }
    }
}

/// Adds numbers to names that are alike.
pub(crate) fn numbered(names: Vec<String>) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let number = |name: String| {
        let count = seen.entry(name.to_lowercase()).or_default();
        *count += 1;
        if *count == 1 {
            return name;
        }
        loop {
            let numbered = format!("{name}-{count}");
            if taken.insert(numbered.to_lowercase()) {
                return numbered;
            }
            *count += 1;
        }
    };
    names.into_iter().map(number).collect()
}

fn read_file(path: &Path, max_bytes: usize) -> Result<Unpacked, String> {
    refuse_pipe(path)?;
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().ok();
    if metadata.as_ref().is_some_and(fs::Metadata::is_dir) {
        return Err("is a directory".to_owned());
    }
    let mut head = Vec::with_capacity(MAGIC);
    file.by_ref().take(MAGIC as u64).read_to_end(&mut head).map_err(|error| error.to_string())?;
    // Text, as nearly all reports are, begins with none of what binary files begin with.
    let is_text = head.iter().all(|byte| (b' '..0x7f).contains(byte) || byte.is_ascii_whitespace());
    // A pipe can be read once, so that it is no capture.
    let length = metadata.filter(fs::Metadata::is_file).map(|metadata| metadata.len());
    if length.is_some() && !is_text && CaptureKind::of(&unpacked_head(path, MAGIC)?).is_some() {
        return unpack_file(path);
    }
    let bytes = read_limited(head.chain(file), length, max_bytes)?;
    if is_text { Ok(Unpacked { data: bytes.into(), note: None }) } else { unpacked(&bytes, max_bytes) }
}

fn unpacked(data: &[u8], max_bytes: usize) -> Result<Unpacked, String> {
    let Unpacked { data, note } = unpack(data.to_vec(), max_bytes)?;
    Ok(Unpacked { data: data.into(), note })
}

fn read_limited(reader: impl Read, length: Option<u64>, max_bytes: usize) -> Result<Vec<u8>, String> {
    let length = length.map_or(0, |length| usize::try_from(length).unwrap_or(max_bytes).min(max_bytes));
    // One byte of room more, and the end is seen without growing.
    let mut bytes = Vec::with_capacity(length + 1);
    reader.take(max_bytes as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > max_bytes {
        return Err(format!("larger than {} MiB: no crash report is", max_bytes >> 20));
    }
    Ok(bytes)
}

/// The paths without those that are given twice, and those in a directory that is given as well: who counts reports wants each once.
pub(crate) fn distinct(paths: &[PathBuf]) -> Vec<PathBuf> {
    let real = |path: &PathBuf| fs::canonicalize(path).ok().filter(|_| path.as_os_str() != "-");
    let real: Vec<Option<PathBuf>> = paths.iter().map(real).collect();
    let given: HashSet<&Path> = real.iter().flatten().map(PathBuf::as_path).collect();
    let mut seen = HashSet::new();
    let mut wanted = Vec::with_capacity(paths.len());
    for (path, real) in paths.iter().zip(&real) {
        let is_twice = real.as_deref().is_some_and(|real| {
            let mut above = real.ancestors().skip(1);
            !seen.insert(real) || above.any(|above| given.contains(above) && is_found(above, real))
        });
        if !is_twice {
            wanted.push(path.clone());
        }
    }
    wanted
}

/// Whether a search of `directory` comes to `path`.
fn is_found(directory: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(directory).unwrap_or(path);
    let is_bundle = |name: &Path| name.extension().is_some_and(|extension| extension == "dSYM");
    let bundles = below.components().any(|name| is_bundle(Path::new(name.as_os_str())));
    below.components().count() <= MAX_DEPTH && !bundles && !is_of_organizer(path)
}

/// The inputs that `paths` stand for: directories are searched, in the order of their names, and archives opened.
pub(crate) fn collect(paths: &[PathBuf], max_bytes: usize, console: &Console) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let bytes = read_limited(console.stdin(), None, max_bytes).map(FileData::from);
            let archive = bytes.as_ref().ok().filter(|bytes| Archive::is_archive(bytes));
            match archive.map(|bytes| Archive::of_bytes("standard input", bytes.clone(), max_bytes)) {
                Some(archive) => {
                    add_archive(PathBuf::from("standard input"), archive, false, console, &mut inputs);
                }
                None => inputs.push(Input { source: Source::Stdin(bytes), found: false }),
            }
        } else if path.is_dir() {
            let mut found = Vec::new();
            search(path, MAX_DEPTH, &mut found);
            // To look at a hundred thousand files takes seconds.
            let archives: Vec<bool> = found.par_iter().map(is_archive).collect();
            for (input, is_archive) in found.into_iter().zip(archives) {
                add(input, is_archive, max_bytes, console, &mut inputs);
            }
        } else {
            let input = Input::file(path.clone(), false);
            let is_archive = is_archive(&input);
            add(input, is_archive, max_bytes, console, &mut inputs);
        }
    }
    if inputs.is_empty() {
        return Err(Failure::Input("there are no files in the given directories".to_owned()));
    }
    Ok(inputs)
}

/// Whether a file begins as archives do.
fn is_archive(input: &Input) -> bool {
    let mut head = [0; 4];
    // What is read from a pipe is gone.
    let path = input.path().filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.is_file()));
    let file = path.and_then(|path| File::open(path).ok());
    file.is_some_and(|mut file| file.read(&mut head).is_ok()) && Archive::is_archive(&head)
}

/// Adds a file; where it is an archive, its members.
fn add(input: Input, is_archive: bool, max_bytes: usize, console: &Console, inputs: &mut Vec<Input>) {
    match input.path().filter(|_| is_archive) {
        Some(path) => {
            add_archive(path.to_owned(), Archive::open(path, max_bytes), input.found, console, inputs);
        }
        None => inputs.push(input),
    }
}

fn add_archive(
    path: PathBuf,
    archive: Result<Archive, backtrail::FileError>,
    found: bool,
    console: &Console,
    inputs: &mut Vec<Input>,
) {
    let archive = match archive {
        Ok(archive) => Arc::new(archive),
        Err(error) => {
            inputs.push(Input { source: Source::BrokenArchive(path, error.what().to_owned()), found });
            return;
        }
    };
    archive.problems().for_each(|problem| console.warn(problem));
    let member = |position| Source::Member(Arc::clone(&archive), path.clone(), position);
    inputs.extend(archive.reports().map(member).map(|source| Input { source, found: true }));
}

fn search(directory: &Path, depth: usize, inputs: &mut Vec<Input>) {
    let Ok(entries) = fs::read_dir(directory) else {
        // Kept as an input, so that reading it says what is wrong.
        inputs.push(Input::file(directory.to_owned(), false));
        return;
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| (entry.path(), entry.file_type())).collect();
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, kind) in paths {
        let Ok(kind) = kind else { continue };
        // A dSYM may lie beside the reports; there are none inside it.
        if kind.is_dir() && depth > 0 && path.extension().is_none_or(|extension| extension != "dSYM") {
            search(&path, depth - 1, inputs);
        } else if (kind.is_file() || is_link_to_read(&path, kind))
            && !is_of_organizer(&path)
            && !is_of_handler(&path)
        {
            inputs.push(Input::file(path, true));
        }
    }
}

/// Whether a link leads to a file; or nowhere, in which case reading it says so. Links to directories are not followed: they may
/// lead around in a circle.
fn is_link_to_read(path: &Path, kind: fs::FileType) -> bool {
    kind.is_symlink() && fs::metadata(path).map_or(true, |metadata| metadata.is_file())
}

/// Whether a file is Xcode Organizer's own: beside the logs in its `.xccrashpoint` directories lie lists in JSON, which are no
/// reports.
fn is_of_organizer(path: &Path) -> bool {
    let ends = |path: &Path, extension: &str| path.extension().is_some_and(|found| found == extension);
    ends(path, "json") && path.ancestors().any(|above| ends(above, "xccrashpoint"))
}

/// Whether a file is one that our own crash handler keeps beside its crash files: room on the disk, and runs of the program that it counts.
fn is_of_handler(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_run = |end: &str| name.ends_with(end) && name.starts_with(|first: char| first.is_ascii_digit());
    name == "btcrash.reserve" || [".btsession", ".btsession.ended", ".btsession.json"].into_iter().any(is_run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_crash_handler_keeps_for_itself_is_no_report() {
        let of = |path: &str| is_of_handler(Path::new(path));
        for path in
            ["btcrash.reserve", "17956-7405-38.btsession", "1-2-3.btsession.ended", "1-2-3.btsession.json"]
        {
            assert!(of(&format!("/var/lib/orders/crashes/{path}")), "{path}");
        }
        assert!(!of("1795-7405.btcrash") && !of("1795-7405.btcrash.part") && !of("orders.btsession.json"));
    }

    #[test]
    fn lists_of_the_organizer_are_no_reports() {
        let of = |path: &str| is_of_organizer(Path::new(path));
        assert!(of("Crashes/a.xccrashpoint/DistributionInfos/all/PointInfo.json"));
        assert!(!of("Crashes/a.xccrashpoint/DistributionInfos/all/Logs/a.crash"));
        assert!(!of("Crashes/PointInfo.json"));
    }

    fn names(paths: &[&str]) -> Vec<String> {
        let input = |path: &&str| Input::file(PathBuf::from(path), false);
        output_names(&paths.iter().map(input).collect::<Vec<_>>(), Some("index"))
    }

    #[test]
    fn each_output_has_a_name_of_its_own() {
        assert_eq!(names(&["x/a.crash", "y/b.ips"]), ["a", "b"]);
        assert_eq!(names(&["x/a.crash", "x/a.ips"]), ["a.crash", "a.ips"]);
        assert_eq!(names(&["x/a.crash", "y/a.crash", "z/a-2.crash"]), ["x-a.crash", "y-a.crash", "a-2"]);
        assert_eq!(names(&["w/x/a.crash", "v/x/a.crash"]), ["w-x-a.crash", "v-x-a.crash"]);
        assert_eq!(names(&["x/a.crash", "x/A.crash"]).len(), 2);
        // The page that lists the others has that name.
        assert_eq!(names(&["x/a.crash", "x/Index.crash"]), ["a", "Index.crash"]);
        assert_eq!(names(&["x/index"]), ["x-index"]);
    }

    #[test]
    fn the_same_input_twice_is_numbered() {
        let names = names(&["a.crash", "a.crash", "a.crash-2.x", "../a.crash"]);
        assert_eq!(names, ["a.crash", "a.crash-3", "a.crash-2", "up-a.crash"]);
    }
}
