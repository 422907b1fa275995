//! The images of this process.

use crate::Limits;
use crate::bytes::{u16_at, u64_at};
use crate::elf_core::header::{PF_X, PT_LOAD, PT_NOTE, segment};
use crate::elf_core::memory_elf;
use crate::remote::Maps;
use backtrail_core::{AddrRange, Avma, Bias, ImageId, ReadMemory as _, Svma};
use backtrail_sys::linux::{OwnMemory, loader};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

pub use backtrail_sys::linux::loader::Counters;

/// One image of this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadedImage {
    /// The file, as the loader has it, where that is an absolute path. The program's own is what `/proc/self/exe` leads to. A library
    /// that was asked for by a relative path, and a program that is an argument of the loader, have the one that the kernel knows them
    /// by: the loader's leads elsewhere as soon as the process changes its directory. The kernel's own image is `[vdso]`, which is no file.
    pub path: PathBuf,
    /// What is mapped of it, from the first segment's start to the last one's end.
    pub range: AddrRange<Avma>,
    /// Its executable segments.
    pub code: Vec<AddrRange<Avma>>,
    /// From the file's addresses to the process's.
    pub bias: Bias,
    /// Its build id, as it lies in memory.
    pub id: Option<ImageId>,
    /// Whether it is the program itself.
    pub is_program: bool,
}

/// The loader's counters. Takes the loader's lock: see [`images`].
pub fn counters() -> Option<Counters> {
    loader::counters()
}

/// Every image of this process, and the loader's counters of that moment.
///
/// Takes the loader's lock: where another thread sits in a callback of `dl_iterate_phdr`, this waits for it. Not for
/// signal handlers.
pub fn images() -> (Vec<LoadedImage>, Counters) {
    let mut all = Vec::new();
    // The list begins with the program. glibc has no name for it, musl its first argument, or `/proc/self/exe` where it is static.
    let mut is_program = true;
    let counters = loader::images(|loaded| {
        let path = PathBuf::from(OsStr::from_bytes(loaded.name.to_bytes()));
        all.extend(image(loaded, path, is_program));
        is_program = false;
    });
    // Where the loader itself was started, as a program with another program as its argument, that link leads to the loader.
    let is_started_by_loader = all.len() > 1 && !loader::is_program_interpreted();
    for image in all.iter_mut().filter(|image| image.is_program) {
        let link = std::fs::read_link("/proc/self/exe").ok().filter(|_| !is_started_by_loader);
        image.path = link.unwrap_or_default();
    }
    if let Some(start) = loader::vdso() {
        match all.iter_mut().find(|image| image.range.contains(start)) {
            // glibc calls it `linux-vdso.so.1`, which may as well be a file's name.
            Some(image) => image.path = PathBuf::from(VDSO),
            None => all.extend(vdso(start)),
        }
    }
    complete_paths(&mut all);
    (all, counters)
}

/// What the kernel calls its own image in `/proc/PID/maps`.
const VDSO: &str = "[vdso]";

/// Gives images with a relative path the path of the file that is mapped: found by such a path, or by a relative entry of
/// `DT_RUNPATH` or `LD_LIBRARY_PATH`.
fn complete_paths(images: &mut [LoadedImage]) {
    let is_relative = |image: &LoadedImage| image.path.is_relative() && image.path.as_os_str() != VDSO;
    if !images.iter().any(is_relative) {
        return;
    }
    let Ok(text) = std::fs::read("/proc/self/maps") else { return };
    let maps = Maps::parse(&text, Limits::default().mappings);
    for image in images.iter_mut().filter(|image| is_relative(image)) {
        let start = image.range.start();
        if let Some(mapping) = maps.at(start).filter(|mapping| maps.file(mapping.range.start()).is_some()) {
            image.path = PathBuf::from(&mapping.name);
        }
    }
}

fn image(loaded: &loader::Loaded<'_>, path: PathBuf, is_program: bool) -> Option<LoadedImage> {
    let mapped = |range: AddrRange<_>| {
        let start = loaded.bias.to_avma(range.start())?;
        Some(AddrRange::from_size(start, range.size()))
    };
    let segments: Vec<_> = loaded
        .segments()
        .filter_map(|segment| Some((mapped(segment.address)?, segment.is_executable)))
        .collect();
    let start = segments.iter().map(|(range, _)| range.start()).min()?;
    let end = segments.iter().map(|(range, _)| range.end()).max()?;
    let code = segments.iter().filter(|(_, is_executable)| *is_executable).map(|(range, _)| *range);
    Some(LoadedImage {
        path,
        range: AddrRange::new(start, end),
        code: code.collect(),
        bias: loaded.bias,
        id: loaded.notes().filter_map(mapped).find_map(build_id),
        is_program,
    })
}

/// Notes larger than this hold no build id.
const MAX_NOTES: u64 = 64 << 10;

/// The build id among the notes at `range`.
fn build_id(range: AddrRange<Avma>) -> Option<ImageId> {
    let size = usize::try_from(range.size()).ok().filter(|size| *size as u64 <= MAX_NOTES)?;
    let mut bytes = vec![0; size];
    OwnMemory::without_stack().read(range.start(), &mut bytes).ok()?;
    memory_elf::build_id(&bytes)
}

/// An image as its header in memory describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundImage {
    /// What is mapped of it.
    pub range: AddrRange<Avma>,
    /// From the file's addresses to the process's.
    pub bias: Bias,
    /// The first byte of its code, which a file that is mapped to be read has nowhere.
    pub code: Avma,
    /// Its build id.
    pub id: Option<ImageId>,
}

/// The image whose file is mapped from its first byte on at `start`; `None` where that is no ELF file with code. ELF-64, "File Header",
/// "Program Header".
///
/// # Signal safety
///
/// Safe: neither allocates nor locks.
pub fn image_at(start: Avma) -> Option<FoundImage> {
    const HEADER: usize = 64;
    const PROGRAM_HEADER: usize = 56;
    const MAX_PROGRAM_HEADERS: u16 = 32;
    const PAGE: u64 = 4096;
    let memory = OwnMemory::without_stack();
    let mut header = [0; HEADER];
    memory.read(start, &mut header).ok()?;
    // 64 bits, little-endian.
    let is_elf = header.starts_with(b"\x7fELF\x02\x01");
    let (at, size, count) = (u64_at(&header, 32)?, u16_at(&header, 54)?, u16_at(&header, 56)?);
    if !is_elf || usize::from(size) != PROGRAM_HEADER || count > MAX_PROGRAM_HEADERS {
        return None;
    }
    let mut room = [0; PROGRAM_HEADER * MAX_PROGRAM_HEADERS as usize];
    let headers = room.get_mut(..PROGRAM_HEADER * usize::from(count))?;
    memory.read(start.checked_add(at)?, headers).ok()?;
    let of = |kind: u32| {
        let all = (0..usize::from(count)).filter_map(|index| segment(headers, index * PROGRAM_HEADER, true));
        all.filter(move |segment| segment.kind == kind)
    };
    let code = of(PT_LOAD).find(|segment| segment.flags & PF_X != 0)?.start;
    let low = of(PT_LOAD).map(|segment| segment.start).min()?;
    let high = of(PT_LOAD).filter_map(|segment| segment.start.checked_add(segment.memory_size)).max()?;
    let bias = Bias::between(start, Svma::new(low.get() & !(PAGE - 1)));
    let place = |stated: Avma| bias.to_avma(Svma::new(stated.get()));
    let id = of(PT_NOTE).find_map(|segment| {
        let mut notes = [0; 1024];
        let notes = notes.get_mut(..usize::try_from(segment.memory_size).ok()?.min(1024))?;
        memory.read(place(segment.start)?, notes).ok()?;
        memory_elf::build_id(notes)
    });
    Some(FoundImage { range: AddrRange::new(place(low)?, place(high)?), bias, code: place(code)?, id })
}

/// The kernel's library where the loader does not list it: so many pages as can be read.
fn vdso(start: Avma) -> Option<LoadedImage> {
    const PAGE: u64 = 4096;
    let memory = OwnMemory::without_stack();
    let is_there = |page: &u64| start.checked_add(page * PAGE).is_some_and(|at| memory.read_u32(at).is_ok());
    if memory.read_u32(start) != Ok(u32::from_le_bytes(*b"\x7fELF")) {
        return None;
    }
    let range = AddrRange::from_size(start, (0..4).take_while(is_there).count() as u64 * PAGE);
    Some(LoadedImage {
        path: PathBuf::from(VDSO),
        range,
        code: vec![range],
        bias: Bias::between(start, Svma::new(0)),
        id: None,
        is_program: false,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_the_c_library_are_listed() {
        let (images, counters) = images();
        assert_eq!(super::counters(), Some(counters));
        let here = Avma::new(the_program_and_the_c_library_are_listed as *const () as u64);
        let program = images.iter().find(|image| image.is_program).unwrap();
        assert!(program.code.iter().any(|range| range.contains(here)));
        let started = std::env::args_os().next().unwrap();
        assert_eq!(program.path, std::fs::canonicalize(started).unwrap());
        assert!(images.iter().all(|image| image.code.iter().all(|code| image.range.contains(code.start()))));
    }

    /// Seen: `/proc/self/exe` leads to the loader then, whose path the program got.
    #[test]
    fn a_program_that_is_an_argument_of_the_loader_has_its_own_path() {
        let is_loader = |image: &LoadedImage| {
            let name = image.path.file_name().map(OsStr::as_bytes);
            name.is_some_and(|name| name.starts_with(b"ld-"))
        };
        // A static program has none.
        let Some(loader) = images().0.into_iter().find(is_loader) else { return };
        let mut again = std::process::Command::new(loader.path);
        let name = "local::images::tests::the_program_and_the_c_library_are_listed";
        let output = again.arg(std::env::current_exe().unwrap()).args(["--exact", name]).output().unwrap();
        assert!(
            output.status.success() && output.stdout.windows(8).any(|text| text == b"1 passed"),
            "{output:?}"
        );
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn headers_in_memory_tell_what_the_loader_tells() {
        let mut found = 0;
        for image in images().0.iter().filter(|image| image.path.is_absolute()) {
            let at = image_at(image.range.start()).unwrap();
            assert_eq!((at.range, at.bias, at.id), (image.range, image.bias, image.id), "{image:?}");
            assert_eq!(at.code, image.code[0].start());
            found += 1;
        }
        assert!(found >= 2);
        let no_image = vec![0_u8; 64 << 10];
        assert_eq!(image_at(Avma::new(no_image.as_ptr() as u64)), None);
        assert_eq!(image_at(Avma::new(8)), None);
    }

    #[test]
    fn the_kernels_image_has_the_name_that_it_has_elsewhere() {
        let Some(start) = loader::vdso() else { return };
        let image = images().0.into_iter().find(|image| image.range.contains(start)).unwrap();
        assert_eq!(image.path.to_str(), Some("[vdso]"));
        assert!(!image.code.is_empty());
    }

    #[test]
    fn a_relative_path_becomes_that_of_the_mapped_file() {
        let (mut all, _) = images();
        let names = |all: &[LoadedImage]| all.iter().map(|image| image.path.clone()).collect::<Vec<_>>();
        let before = names(&all);
        for image in all.iter_mut().filter(|image| image.path.is_absolute()) {
            image.path = PathBuf::from("./elsewhere.so");
        }
        complete_paths(&mut all);
        // The loader's names may lead over links: the files are the same.
        let files =
            |names: Vec<PathBuf>| names.iter().map(|name| name.canonicalize().ok()).collect::<Vec<_>>();
        assert_eq!(files(names(&all)), files(before));
        assert!(files(names(&all)).iter().flatten().count() >= 2, "{all:?}");
    }

    #[test]
    fn build_ids_are_found_behind_other_notes() {
        let note = |name: &[u8], kind: u32, content: &[u8]| {
            let mut bytes = Vec::new();
            for number in [name.len(), content.len(), kind as usize] {
                bytes.extend(u32::try_from(number).unwrap().to_ne_bytes());
            }
            for part in [name, content] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let notes = [note(b"stapsdt\0", 3, b"abc"), note(b"GNU\0", 1, &[0; 16]), note(b"GNU\0", 3, &[7; 20])];
        let notes = notes.concat();
        assert_eq!(memory_elf::build_id(&notes), ImageId::from_build_id(&[7; 20]));
        for size in 0..notes.len() {
            assert_eq!(memory_elf::build_id(&notes[..size]), None, "{size}");
        }
    }
}
