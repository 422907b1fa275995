//! Static libraries inside of apps: learn a library, find its code in an app, mark it before it is shipped.
//!
//! Takes paths where [`Fingerprint`] and its like take bytes. `docs/sdk.md` tells the whole story.

mod mine;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backtrail_core::{AddrRange, Arch, Confidence, ImageId, Svma};
use backtrail_model::OwnerKind;
pub use backtrail_resolve::{ImageOwners, OwnerFinder, OwnerSources};
use backtrail_resolve::{SymbolOptions, Symbols};
pub use backtrail_sdk::{
    AppOwners, CodeOffset, Error, ErrorKind, Fingerprint, LONGEST_STAMP, LONGEST_STAMP_VERSION, Layout,
    LearnOptions, Learned, LinkMap, Markers, OwnedRange, OwnerMap, SHARED, Sighting, Stamped,
};
use backtrail_store::{FileData, Index, NoProgress, OpenFile, ScanOptions};
pub use mine::{Build, BuildReport, Builds, ReportFrame};

/// A file that could not be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum SdkError {
    /// It cannot be read.
    File(crate::FileError),
    /// Its content is not what was expected.
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Error,
    },
    /// There is no library where one was expected.
    NoLibrary(PathBuf),
    /// There is no fingerprint in a directory.
    NoFingerprint(PathBuf),
}

impl fmt::Display for SdkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Content { path, source } => write!(f, "{}: {source}", path.display()),
            Self::NoFingerprint(path) => {
                write!(f, "{}: expected fingerprints (.btsdk) in this directory", path.display())
            }
            Self::NoLibrary(path) => {
                write!(
                    f,
                    "{}: expected a static library, a static framework or an .xcframework",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for SdkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => Some(error),
            Self::Content { source, .. } => Some(source),
            Self::NoLibrary(_) | Self::NoFingerprint(_) => None,
        }
    }
}

fn open(path: &Path) -> Result<FileData, SdkError> {
    FileData::map(path).map_err(SdkError::File)
}

fn content(path: &Path) -> impl FnOnce(Error) -> SdkError {
    let path = path.to_owned();
    move |source| SdkError::Content { path, source }
}

/// Learns a library: a `.a` or `.o` file, a static `.framework`, an `.xcframework` with all of its slices.
///
/// # Errors
/// Where no file can be read as a static library.
pub fn learn(path: &Path, options: &LearnOptions) -> Result<Learned, SdkError> {
    let files = library_files(path);
    if files.is_empty() {
        return Err(SdkError::NoLibrary(path.to_owned()));
    }
    let opened = files.iter().map(|file| Ok((file.display().to_string(), open(file)?)));
    let opened = opened.collect::<Result<Vec<_>, SdkError>>()?;
    let named: Vec<(&str, &[u8])> = opened.iter().map(|(name, data)| (name.as_str(), &**data)).collect();
    backtrail_sdk::learn(&named, options).map_err(content(path))
}

/// The files that a library consists of: itself, or what bundles have at their known places.
pub fn library_files(path: &Path) -> Vec<PathBuf> {
    /// Frameworks in slices in an `.xcframework`.
    const DEPTH: usize = 3;
    let mut found = Vec::new();
    collect(path, DEPTH, &mut found);
    found.sort();
    found
}

fn collect(path: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        found.push(path.to_owned());
        return;
    }
    let extension = path.extension().unwrap_or_default();
    if extension == "framework" {
        let binary = path.join(path.file_stem().unwrap_or_default());
        found.extend(Some(binary).filter(|binary| binary.is_file()));
        return;
    }
    let Ok(entries) = std::fs::read_dir(path) else { return };
    for entry in entries.flatten().map(|entry| entry.path()) {
        let extension = entry.extension().unwrap_or_default();
        let is_library = entry.is_file() && (extension == "a" || extension == "o");
        let is_below = entry.is_dir() && extension != "dSYM" && depth > 0;
        if is_library || is_below {
            collect(&entry, depth.saturating_sub(1), found);
        }
    }
}

/// Reads fingerprints: `.btsdk` files, and directories of them.
///
/// # Errors
/// Where a file is none.
pub fn fingerprints(paths: &[PathBuf]) -> Result<Vec<Fingerprint>, SdkError> {
    let files = fingerprint_files(paths)?;
    files.iter().map(|file| Fingerprint::from_bytes(&open(file)?).map_err(content(file))).collect()
}

/// What tells libraries inside of images apart: fingerprints (`.btsdk` files, and directories of them) and link maps. For
/// [`Symbols::with_owners`](crate::Symbols::with_owners).
///
/// # Errors
/// Where a file cannot be read, or is none.
pub fn owner_sources(sdk: &[PathBuf], link_maps: &[PathBuf]) -> Result<OwnerSources, SdkError> {
    let mut sources = OwnerSources::new().skipping(backtrail_diagnose::is_system_image);
    for file in &fingerprint_files(sdk)? {
        sources.add_fingerprint(&open(file)?).map_err(content(file))?;
    }
    for file in link_maps {
        sources.add_link_map(&file.display().to_string(), &open(file)?).map_err(content(file))?;
    }
    Ok(sources)
}

/// A link map that may be that of a build, as [`build_owners`] takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedLinkMap {
    /// What it is called.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Where it says that the code section is: [`LinkMap::code`]. Read is what has the same as the binary.
    pub code: AddrRange<Svma>,
}

/// Link maps with the same code section that are tried on a build.
const MAX_ALIKE: usize = 8;

/// What is known of one build.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BuildOwners {
    /// The addresses of its binary's code section, by which its link map is told.
    pub code: Option<AddrRange<Svma>>,
    /// Whose code is where.
    pub owners: Arc<ImageOwners>,
}

/// Whose code is where in one build, by what symbolication would take for it: `files` are its binary and debug files. Of maps whose code
/// section is the binary's, the last eight are tried, the last first. `None` where the binary is not among the files.
///
/// # Errors
/// Where a fingerprint or a link map cannot be read, or is none.
pub fn build_owners(
    files: &[PathBuf],
    id: ImageId,
    arch: Arch,
    fingerprints: &[PathBuf],
    link_maps: &[NamedLinkMap],
) -> Result<Option<BuildOwners>, SdkError> {
    let mut options = SymbolOptions::default();
    options.paths = files.to_vec();
    // No other file is opened, whatever these name.
    options.debug_directories = Some(Vec::new());
    options.only_scanned = true;
    let symbols = Symbols::with_options(options, &NoProgress);
    let code = symbols.code_range(id, arch);
    let mut sources = owner_sources(fingerprints, &[])?;
    // Maps of builds whose code lies alike; those that came later are more likely asked for.
    for map in link_maps.iter().filter(|map| Some(map.code) == code).rev().take(MAX_ALIKE) {
        sources.add_link_map(&map.name, &open(&map.path)?).map_err(content(&map.path))?;
    }
    let owners = symbols.with_owners(sources).image_owners(id, arch);
    Ok(owners.map(|owners| BuildOwners { code, owners }))
}

fn fingerprint_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, SdkError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
            let mut inside: Vec<_> = entries
                .filter(|entry| entry.extension().is_some_and(|extension| extension == "btsdk"))
                .collect();
            if inside.is_empty() {
                return Err(SdkError::NoFingerprint(path.clone()));
            }
            inside.sort();
            files.extend(inside);
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// What else says something of an app's code.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MapOptions {
    /// Which slice of a fat file; all of them if not given.
    pub arch: Option<Arch>,
    /// The linker's map of the very build: then its word is taken.
    pub link_map: Option<PathBuf>,
    /// Where a stripped app's debug file is looked for, by its identity: files, and directories searched recursively.
    pub symbols: Vec<PathBuf>,
}

impl MapOptions {
    /// All slices, by fingerprints and stamps alone.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Says whose code is where in an app's binary, or in an `.app` bundle.
///
/// # Errors
/// Where a file cannot be read, or the link map is that of another build.
pub fn map(
    app: &Path,
    fingerprints: &[Fingerprint],
    options: &MapOptions,
) -> Result<Vec<AppOwners>, SdkError> {
    let binary = binary(app);
    let data = open(&binary)?;
    let link_map = match &options.link_map {
        Some(path) => Some((path, LinkMap::parse(&open(path)?).map_err(content(path))?)),
        None => None,
    };
    let (files, problems) = debug_files(&binary, &options.symbols);
    let objects: Vec<_> = files.iter().filter_map(|file| file.object()).collect();
    let mut known = backtrail_sdk::MapOptions::with_debug_files(&objects);
    known.link_map = link_map.as_ref().map(|(_, map)| map);
    let mapped = backtrail_sdk::map_file(&data, options.arch, fingerprints, &known);
    let mut mapped = mapped.map_err(|error| match &link_map {
        Some((path, _)) if error.kind() == ErrorKind::Mismatch => content(path)(error),
        _ => content(&binary)(error),
    })?;
    if let Some((_, map)) = &link_map {
        mapped.iter_mut().for_each(|app| add_archives(&mut app.owners.ranges, map));
    }
    for app in mapped.iter_mut().filter(|_| !options.symbols.is_empty()) {
        if !objects.iter().any(|debug| debug.id() == app.id && debug.arch() == app.arch) {
            app.owners.notes.push("no debug file of this build was found".to_owned());
        }
        app.owners.notes.extend(problems.iter().map(ToString::to_string));
    }
    Ok(mapped)
}

/// Adds the archives that no fingerprint knows: that code came from there is a fact, whose it is a guess by the file's name.
fn add_archives(ranges: &mut Vec<OwnedRange>, map: &LinkMap) {
    /// Bytes between functions, of which no file says anything.
    const PADDING: u64 = 16;
    let Some(code) = map.code() else { return };
    let mut archives: Vec<OwnedRange> = Vec::new();
    // How many known ranges lie before the last archive's.
    let mut before = 0;
    for (range, file) in map.file_ranges().into_iter().filter(|(range, _)| code.contains(range.start())) {
        let owner = backtrail_diagnose::owner_of_object_file(file);
        let owner = owner.filter(|owner| owner.kind == OwnerKind::Sdk);
        let Some(name) = owner.and_then(|owner| owner.name) else { continue };
        let behind = ranges.partition_point(|known| known.range.end() <= range.start());
        let known = ranges.get(behind).map(|known| known.range);
        let end = known.map_or(range.end(), |known| known.start().min(range.end()));
        if end <= range.start() {
            continue;
        }
        match archives.last_mut() {
            Some(last)
                if last.owner == name
                    && range.start().get() - last.range.end().get() < PADDING
                    && before == behind =>
            {
                last.range = AddrRange::new(last.range.start(), end);
            }
            _ => {
                let range = AddrRange::new(range.start(), end);
                archives.push(OwnedRange::new(range, name, None, Confidence::Likely, "link map"));
            }
        }
        before = behind;
    }
    ranges.extend(archives);
    ranges.sort_by_key(|known| known.range.start());
}

/// The debug files of all builds that a binary has, and what could not be read while looking for them.
fn debug_files(binary: &Path, symbols: &[PathBuf]) -> (Vec<Arc<OpenFile>>, Vec<crate::FileError>) {
    if symbols.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let scan = |paths: &[PathBuf]| Index::scan(paths, &ScanOptions::default(), &NoProgress);
    let (builds, index) = (scan(&[binary.to_owned()]), scan(symbols));
    let (mut files, mut problems) = (Vec::new(), index.problems().to_vec());
    for build in builds.entries() {
        let Some(id) = build.identity.id else { continue };
        for entry in index.find(&id, Some(build.identity.arch)) {
            match index.object(entry) {
                Ok(file) => files.push(file),
                Err(problem) => problems.push(problem),
            }
        }
    }
    (files, problems)
}

/// The layouts of libraries in an app's binary, in an `.app` bundle, or in a link map.
///
/// # Errors
/// Where a file cannot be read, or has none of the libraries.
pub fn layouts(path: &Path, fingerprints: &[Fingerprint]) -> Result<Vec<Layout>, SdkError> {
    let binary = binary(path);
    Layout::from_file(&open(&binary)?, fingerprints).map_err(content(&binary))
}

/// An app's binary, which a bundle has at a known place.
fn binary(app: &Path) -> PathBuf {
    if app.is_dir() { app.join(app.file_stem().unwrap_or_default()) } else { app.to_owned() }
}

/// Adds what lies between marker functions to what [`map`] found in the same app.
///
/// # Errors
/// Where the app cannot be read.
pub fn add_markers(app: &Path, markers: &Markers, mapped: &mut [AppOwners]) -> Result<(), SdkError> {
    let binary = binary(app);
    markers.add_to(&open(&binary)?, mapped).map_err(content(&binary))
}

/// Marks a library's code with a name, and an archive with its version.
///
/// # Errors
/// Where the file is no static library, or cannot be marked.
pub fn stamp(library: &Path, name: &str, version: Option<&str>) -> Result<Stamped, SdkError> {
    backtrail_sdk::stamp(&open(library)?, name, version).map_err(content(library))
}

/// Takes such a mark away.
///
/// # Errors
/// As [`stamp`], and where there is no such mark.
pub fn unstamp(library: &Path, name: &str) -> Result<Stamped, SdkError> {
    backtrail_sdk::unstamp(&open(library)?, name).map_err(content(library))
}
