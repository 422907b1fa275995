//! What a file holds, for people who wonder why it does not answer.

use crate::files::debug_files_in;
use backtrail_core::{Arch, ImageId, Svma};
use backtrail_object::{Format, Kind, Limits, Object, Slice, slices};
use backtrail_store::FileData;
use serde::Serialize;
use std::path::Path;

/// One slice of a fat file, one member of an archive, or the whole of a plain file.
#[derive(Clone, Debug, Serialize)]
pub struct Inspected {
    /// The file.
    pub path: String,
    /// The archive member, for members.
    pub member: Option<String>,
    /// Its architecture.
    pub arch: Option<&'static str>,
    /// `Mach-O` or `ELF`.
    pub format: Option<&'static str>,
    /// Executable, library, debug companion…
    pub kind: Option<&'static str>,
    /// UUID or build id.
    pub id: Option<String>,
    /// The address that image offsets count from.
    pub image_base: Option<String>,
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
    pub address: String,
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

/// Every slice of the file at `path`; of a bundle, of the files in it.
///
/// A slice that cannot be read is there with its problem; the error is for files that are no object files at all.
pub fn inspect(path: &Path) -> Result<Vec<Inspected>, String> {
    let mut all = Vec::new();
    for file in debug_files_in(path) {
        let data = FileData::map(&file).map_err(|error| error.to_string())?;
        let slices =
            slices(&data, &Limits::default()).map_err(|error| format!("{}: {error}", file.display()))?;
        all.extend(slices.iter().map(|slice| inspect_slice(&file, slice)));
    }
    if all.is_empty() {
        return Err(format!("{}: no object files in it", path.display()));
    }
    Ok(all)
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
        path: path.display().to_string(),
        member: slice.member.clone(),
        arch: (slice.arch != Arch::Unknown).then(|| slice.arch.name()),
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
    inspected.arch = Some(object.arch().name());
    inspected.format = Some(format_word(object.format()));
    inspected.kind = Some(kind_word(object.kind()));
    inspected.id = object.id().as_ref().map(ImageId::to_string);
    inspected.image_base = Some(object.image_base()).as_ref().map(Svma::to_string);
    inspected.debug_info = object.has_debug_info();
    inspected.debug_map_objects = object.debug_map().len();
    inspected.debug_link = object.debug_link().map(|link| link.name.to_string());
    inspected.segments = object.segments().iter().map(segment).collect();
    let commands = object.load_commands().into_iter();
    inspected.load_commands =
        commands.map(|command| InspectedCommand { name: command.name, text: command.text }).collect();
}

fn format_word(format: Format) -> &'static str {
    match format {
        Format::MachO => "Mach-O",
        Format::Elf => "ELF",
    }
}

fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Executable => "executable",
        Kind::Library => "library",
        Kind::Bundle => "bundle",
        Kind::DebugCompanion => "debug companion",
        Kind::Relocatable => "relocatable object",
        Kind::Core => "core",
        Kind::SharedCache => "shared cache",
        Kind::Table => "symbol table file",
        Kind::SymbolFile => "symbol file",
        _ => "object",
    }
}

fn segment(segment: &backtrail_object::Segment<'_>) -> InspectedSegment {
    let flag = |set: bool, letter: char| if set { letter } else { '-' };
    let permissions =
        [flag(segment.readable, 'r'), flag(segment.writable, 'w'), flag(segment.executable, 'x')];
    InspectedSegment {
        name: segment.name.to_string(),
        address: segment.address.start().to_string(),
        size: segment.address.size(),
        permissions: permissions.iter().collect(),
    }
}
