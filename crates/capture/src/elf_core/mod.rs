//! Core dumps of Linux processes: ELF files of type `CORE`, as the kernel, `gcore`, gdb and qemu-user write them.
//! core(5), elf(5); Linux `fs/binfmt_elf.c` for what each note holds.
//!
//! A core holds the notes (one `NT_PRSTATUS` a thread, then what concerns the process) and the memory, of which the
//! kernel by default leaves out what can be read again from mapped files: everything but their first page. Which file
//! lay where is in `NT_FILE`; where that is missing, in the loader's list and in the headers that are in memory.

pub(crate) mod auxv;
mod dynamic;
pub(crate) mod header;
pub(crate) mod images;
pub(crate) mod memory_elf;
mod notes;
mod process;
pub(crate) mod signals;
mod threads;

#[cfg(test)]
mod tests;

use crate::{Error, ErrorKind, Limits, Mapping, Memory, Snapshot, Source};
use auxv::AuxVector;
use backtrail_core::{AddrRange, Avma, FileOffset};
use header::{Header, Segment};
use std::borrow::Cow;

/// Whether these bytes begin like an ELF core.
pub fn is_core(data: &[u8]) -> bool {
    header::is_core(data)
}

/// Reads a core. `program` is the executable's file, where the caller has it: a core that keeps neither the list of
/// mapped files nor the program's headers, as qemu-user's do not, is told its images by that.
///
/// # Errors
/// For what is no core of x86, `x86_64`, ARM or ARM64 in little-endian order, for a kernel's dump, and where the notes
/// are missing or hold no thread.
pub fn read<'d>(data: &'d [u8], program: Option<&[u8]>, limits: &Limits) -> Result<Snapshot<'d>, Error> {
    let header = Header::parse(data, limits)?;
    let mut told = Vec::new();
    let memory = memory(data, &header, &mut told);
    let notes = notes::read(data, &header)?;
    if notes.iter().any(|note| note.name == b"VMCOREINFO" || note.name == b"QEMU" && header.is_system()) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "this is the dump of a kernel or a whole machine, expected a process's core",
        ));
    }
    let threads = threads::read(&header, &notes, limits, &mut told);
    if threads.is_empty() {
        return Err(Error::new(
            ErrorKind::Malformed,
            "expected a note with a thread's registers (NT_PRSTATUS), found none",
        ));
    }
    let vector = notes::find(&notes, notes::NT_AUXV)
        .map(|note| AuxVector::parse(note.data, header.is_64))
        .unwrap_or_default();
    let files = notes::find(&notes, notes::NT_FILE)
        .map(|note| process::mapped_files(note, header.is_64, limits, &mut told));
    let mappings = mappings(&header, files.as_deref().unwrap_or_default(), limits);
    let mut process = process::read(&header, &notes);
    let mut images = images::find(
        &images::Known { header: &header, memory: &memory, mappings: &mappings, vector: &vector, program },
        limits,
    );
    name_executable(&mut process, &images, &memory, &vector, limits);
    let nameless = images.iter_mut().find(|image| image.is_executable && image.path.is_empty());
    if let (Some(image), Some(path)) = (nameless, &process.executable) {
        image.path.clone_from(path);
    }
    if files.is_none() {
        told.push(
            "the core does not list mapped files (NT_FILE); images are those that its memory tells of"
                .to_owned(),
        );
    }
    told.push("ELF cores do not hold the threads' names".to_owned());
    Ok(Snapshot {
        source: Source::ElfCore,
        arch: header.arch,
        process,
        fault: signals::fault(&header, &notes),
        threads,
        images,
        mappings,
        memory,
        pointer_authentication: notes::find(&notes, notes::NT_ARM_PAC_MASK)
            .and_then(|note| crate::bytes::u64_at(note.data, 8)),
        notes: told,
    })
}

/// How many bytes of a core from its begin on have its headers and notes: those behind are memory. `None` where that cannot be
/// told from the bytes that are there, which have the header and program headers or are too few.
pub fn head_size(data: &[u8], limits: &Limits) -> Option<u64> {
    let header = Header::parse(data, limits).ok()?;
    let notes = header.segments.iter().filter(|segment| segment.kind == header::PT_NOTE);
    notes.map(|segment| segment.offset.saturating_add(segment.file_size)).max()
}

/// The registers of each thread as the kernel lays them out (`pr_reg`), by thread ids.
///
/// # Errors
/// As [`read`]'s.
pub fn raw_registers<'d>(data: &'d [u8], limits: &Limits) -> Result<Vec<(u32, &'d [u8])>, Error> {
    let header = Header::parse(data, limits)?;
    let notes = notes::read(data, &header)?;
    Ok(threads::raw_registers(&header, &notes, limits))
}

/// The program's path: its image's, else what the loader was told.
fn name_executable(
    process: &mut crate::Process,
    images: &[crate::MappedImage],
    memory: &Memory<'_>,
    vector: &AuxVector,
    limits: &Limits,
) {
    let image = images.iter().find(|image| image.is_executable && !image.path.is_empty());
    let told = || {
        let bytes = memory.bytes_from(Avma::new(vector.get(auxv::AT_EXECFN)?))?;
        Some(crate::bytes::text(bytes, limits.name_bytes)).filter(|path| !path.is_empty())
    };
    process.executable = image.map(|image| image.path.clone()).or_else(told);
}

/// What was saved of the memory. What the file is too short for becomes a note.
fn memory<'d>(data: &'d [u8], header: &Header, told: &mut Vec<String>) -> Memory<'d> {
    let (mut missing, mut cut_segments) = (0_u64, 0);
    let mut pieces = Vec::new();
    for segment in header.loads() {
        let start = usize::try_from(segment.offset).unwrap_or(usize::MAX).min(data.len());
        let bytes = data.get(start..).unwrap_or_default();
        let size = usize::try_from(segment.file_size).unwrap_or(usize::MAX).min(bytes.len());
        let lost = segment.file_size - size as u64;
        missing = missing.saturating_add(lost);
        cut_segments += u64::from(lost > 0);
        pieces.push((segment.start, Cow::Borrowed(bytes.get(..size).unwrap_or_default())));
    }
    if missing > 0 {
        told.push(format!(
            "the core is cut off after {} bytes: {missing} bytes of memory in {cut_segments} of {} segments are missing",
            data.len(),
            header.loads().count(),
        ));
    }
    Memory::new(pieces)
}

/// The loaded segments with the files that were mapped there.
fn mappings(header: &Header, files: &[Mapping], limits: &Limits) -> Vec<Mapping> {
    let mut mappings: Vec<_> =
        header.loads().take(limits.mappings).map(|segment| mapping(segment, files)).collect();
    // A core that a user may not read all of, or that another tool wrote, can leave mapped files out of its segments.
    let unlisted = files.iter().filter(|file| !header.has_loaded(file.range.start()));
    mappings.extend(unlisted.take(limits.mappings).cloned());
    mappings.sort_by_key(|mapping| mapping.range.start());
    mappings
}

fn mapping(segment: &Segment, files: &[Mapping]) -> Mapping {
    let after = files.partition_point(|file| file.range.start() <= segment.start);
    let file =
        after.checked_sub(1).and_then(|at| files.get(at)).filter(|file| file.range.contains(segment.start));
    let into = file.and_then(|file| segment.start.offset_from(file.range.start())).unwrap_or_default();
    let offset = file.map_or(0, |file| file.offset.get().saturating_add(into));
    Mapping {
        range: AddrRange::from_size(segment.start, segment.memory_size),
        offset: FileOffset::new(offset),
        readable: segment.flags & header::PF_R != 0,
        writable: segment.flags & header::PF_W != 0,
        executable: segment.flags & header::PF_X != 0,
        name: file.map(|file| file.name.clone()).unwrap_or_default(),
    }
}
