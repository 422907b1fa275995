//! What a file holds, for people who wonder why it does not answer.

use crate::files::debug_files_in;
use backtrail_core::{Arch, ImageId, Svma};
use backtrail_object::{Format, Kind, Limits, Object, Slice, slices};
use backtrail_store::{Error, ErrorKind, FileData, object_error};
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

/// One slice of a fat file, one member of an archive, or the whole of a plain file.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Inspected {
    /// The file.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// The archive member, for members.
    pub member: Option<String>,
    /// Its architecture.
    #[serde(serialize_with = "shown_arch")]
    pub arch: Option<Arch>,
    /// Mach-O or ELF.
    #[serde(serialize_with = "shown_format")]
    pub format: Option<Format>,
    /// Executable, library, debug companion…
    #[serde(serialize_with = "shown_kind")]
    pub kind: Option<Kind>,
    /// UUID or build id.
    #[serde(serialize_with = "shown")]
    pub id: Option<ImageId>,
    /// The address that image offsets count from.
    #[serde(serialize_with = "shown")]
    pub image_base: Option<Svma>,
    /// Whether it has DWARF.
    pub debug_info: bool,
    /// Named addresses in its symbol tables.
    pub symbols: usize,
    /// Functions whose start it tells without naming them.
    pub function_starts: usize,
    /// Object files that hold its DWARF (a Mach-O debug map).
    pub debug_map_objects: usize,
    /// The name of its separate debug file.
    pub debug_link: Option<String>,
    /// What the loader maps.
    pub segments: Vec<InspectedSegment>,
    /// Load commands or program headers.
    pub load_commands: Vec<InspectedCommand>,
    /// What is broken in it.
    pub problems: Vec<String>,
}

/// A segment.
#[derive(Clone, Debug, Serialize)]
pub struct InspectedSegment {
    /// Its name.
    pub name: String,
    /// Its first stated address.
    #[serde(serialize_with = "as_text")]
    pub address: Svma,
    /// Its size in memory, in bytes.
    pub size: u64,
    /// `r-x` and the like.
    pub permissions: String,
}

/// A load command or program header.
#[derive(Clone, Debug, Serialize)]
pub struct InspectedCommand {
    /// Its name as in the format's specification.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// Every slice of the file at `path`; of a bundle, of the files in it. A slice that cannot be read is there with its
/// problem.
///
/// # Errors
/// Where the file cannot be read, or is no object file at all.
pub fn inspect(path: impl AsRef<Path>) -> Result<Vec<Inspected>, Error> {
    let path = path.as_ref();
    let mut all = Vec::new();
    for file in debug_files_in(path) {
        let data = FileData::map(&file)?;
        let slices =
            slices(&data, &Limits::default()).map_err(|error| object_error(file.display(), &error))?;
        all.extend(slices.iter().map(|slice| inspect_slice(&file, slice)));
    }
    if all.is_empty() {
        return Err(Error::new(ErrorKind::Object, path.display(), "no object files in it"));
    }
    Ok(all)
}

fn as_text<S: Serializer>(value: &impl ToString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn shown<S: Serializer>(value: &Option<impl ToString>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(ToString::to_string).serialize(serializer)
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn shown_arch<S: Serializer>(arch: &Option<Arch>, serializer: S) -> Result<S::Ok, S::Error> {
    arch.map(Arch::name).serialize(serializer)
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn shown_format<S: Serializer>(format: &Option<Format>, serializer: S) -> Result<S::Ok, S::Error> {
    format.map(Format::as_str).serialize(serializer)
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn shown_kind<S: Serializer>(kind: &Option<Kind>, serializer: S) -> Result<S::Ok, S::Error> {
    kind.map(Kind::as_str).serialize(serializer)
}

fn inspect_slice(path: &Path, slice: &Slice<'_>) -> Inspected {
    let mut inspected = empty(path, slice);
    match slice.parse(&Limits::default()) {
        Ok(object) => fill(&mut inspected, &object),
        Err(error) => inspected.problems.push(error.to_string()),
    }
    inspected
}

fn empty(path: &Path, slice: &Slice<'_>) -> Inspected {
    Inspected {
        path: path.to_owned(),
        member: slice.member.clone(),
        arch: Some(slice.arch).filter(|arch| *arch != Arch::Unknown),
        format: None,
        kind: None,
        id: None,
        image_base: None,
        debug_info: false,
        symbols: 0,
        function_starts: 0,
        debug_map_objects: 0,
        debug_link: None,
        segments: Vec::new(),
        load_commands: Vec::new(),
        problems: Vec::new(),
    }
}

fn fill(inspected: &mut Inspected, object: &Object<'_>) {
    let mut problems: Vec<_> = object.problems().iter().map(ToString::to_string).collect();
    let mut count = |counted: Result<usize, backtrail_object::Error>| {
        counted.unwrap_or_else(|error| {
            problems.push(error.to_string());
            0
        })
    };
    inspected.symbols = count(object.symbols().map(|symbols| symbols.len()));
    inspected.function_starts = count(object.function_starts().map(|starts| starts.len()));
    inspected.problems = problems;
    inspected.arch = Some(object.arch());
    inspected.format = Some(object.format());
    inspected.kind = Some(object.kind());
    inspected.id = object.id();
    inspected.image_base = Some(object.image_base());
    inspected.debug_info = object.has_debug_info();
    inspected.debug_map_objects = object.debug_map().len();
    inspected.debug_link = object.debug_link().map(|link| link.name.to_string());
    inspected.segments = object.segments().iter().map(segment).collect();
    let commands = object.load_commands().into_iter();
    inspected.load_commands =
        commands.map(|command| InspectedCommand { name: command.name, text: command.text }).collect();
}

fn segment(segment: &backtrail_object::Segment<'_>) -> InspectedSegment {
    let flag = |set: bool, letter: char| if set { letter } else { '-' };
    let permissions =
        [flag(segment.readable, 'r'), flag(segment.writable, 'w'), flag(segment.executable, 'x')];
    InspectedSegment {
        name: segment.name.to_string(),
        address: segment.address.start(),
        size: segment.address.size(),
        permissions: permissions.iter().collect(),
    }
}
