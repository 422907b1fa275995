//! The images' sections, made ahead of time; and those of libraries that were loaded since, made in the crash.

use crate::sections::Section;
use backtrail_capture::crash_file::format::{IMAGE_PROGRAM, IMAGE_UUID, Kind};
use backtrail_capture::local::{LoadedImage, images};
#[cfg(target_os = "linux")]
use backtrail_capture::{crash_file::format::IMAGE_NEWER, local::image_at};
use backtrail_core::{AddrRange, Avma, Bias, ImageId, Svma};
use std::os::unix::ffi::OsStrExt as _;

/// All images that the loader listed.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Their sections.
    pub(crate) sections: Vec<u8>,
    #[cfg(target_os = "linux")]
    known: Vec<Known>,
}

/// Where an image lay, and which it was.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Known {
    range: AddrRange<Avma>,
    id: Option<ImageId>,
}

impl Listed {
    /// Those that the loader lists now. Takes the loader's lock.
    pub(crate) fn now() -> Self {
        let (all, _) = images();
        let mut section = Section::new();
        let mut sections = Vec::new();
        for image in &all {
            sections.extend(encode(image, &mut section));
        }
        Self {
            sections,
            #[cfg(target_os = "linux")]
            known: all.iter().map(|image| Known { range: image.range, id: image.id }).collect(),
        }
    }

    /// Calls `each` with the sections of images that are mapped and were not there when the list was made: in a program's plug-ins crashes
    /// happen, too. `maps` is what the kernel lists. Neither allocates nor locks.
    #[cfg(target_os = "linux")]
    pub(crate) fn each_newer(&self, maps: &[u8], section: &mut Section, mut each: impl FnMut(&[u8])) {
        let lines = || maps.split(|byte| *byte == b'\n').filter_map(Mapped::of);
        for first in lines().filter(|mapped| mapped.is_first) {
            let Some(found) = image_at(first.range.start()) else { continue };
            let is_code = |mapped: Mapped<'_>| {
                mapped.is_code && mapped.path == first.path && mapped.range.contains(found.code)
            };
            let is_known = |known: &Known| known.range.contains(found.range.start()) && known.id == found.id;
            if !self.known.iter().any(is_known) && lines().any(is_code) {
                each(put(section, found.range, found.bias, IMAGE_NEWER, found.id.as_ref(), first.path));
            }
        }
    }
}

/// A part of a file that is mapped.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mapped<'m> {
    range: AddrRange<Avma>,
    /// Whether it begins with the file's first byte, to be read.
    is_first: bool,
    is_code: bool,
    path: &'m [u8],
}

#[cfg(target_os = "linux")]
impl<'m> Mapped<'m> {
    /// By a line of `/proc/PID/maps`: `start-end perms offset device inode path`. proc(5).
    fn of(line: &'m [u8]) -> Option<Self> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let (range, permissions, offset) = (words.next()?, words.next()?, words.next()?);
        let path = words.nth(2)?.trim_ascii_start();
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        let number = |digits: &[u8]| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let dash = range.iter().position(|byte| *byte == b'-')?;
        let (start, end) = (number(range.get(..dash)?)?, number(range.get(dash + 1..)?)?);
        let mapped = Self {
            range: AddrRange::new(Avma::new(start), Avma::new(end.max(start))),
            is_first: permissions.starts_with(b"r") && number(offset) == Some(0),
            is_code: permissions.get(2) == Some(&b'x'),
            path,
        };
        path.starts_with(b"/").then_some(mapped)
    }
}

fn encode<'s>(image: &LoadedImage, section: &'s mut Section) -> &'s [u8] {
    let program = if image.is_program { IMAGE_PROGRAM } else { 0 };
    let uuid = if matches!(image.id, Some(ImageId::Uuid(_))) { IMAGE_UUID } else { 0 };
    put(
        section,
        image.range,
        image.bias,
        program | uuid,
        image.id.as_ref(),
        image.path.as_os_str().as_bytes(),
    )
}

fn put<'s>(
    section: &'s mut Section,
    range: AddrRange<Avma>,
    bias: Bias,
    flags: u8,
    id: Option<&ImageId>,
    path: &[u8],
) -> &'s [u8] {
    let bias = bias.to_avma(Svma::new(0)).unwrap_or_default();
    section.begin().u64(range.start().get()).u64(range.end().get()).u64(bias.get()).u8(flags);
    section.short(id.map_or(&[][..], |id| id.as_bytes())).put(path).finish(Kind::Image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_capture::Limits;
    use backtrail_capture::crash_file::read;

    #[test]
    fn a_uuid_is_told_from_a_build_id() {
        let (mut all, _) = images();
        for id in [ImageId::Uuid([7; 16]), ImageId::from_build_id(&[7; 16]).unwrap()] {
            all[0].id = Some(id);
            let mut file = crate::sections::header().to_vec();
            file.extend(encode(&all[0], &mut Section::new()));
            let file = read(&file, &Limits::default()).unwrap();
            let read = &file.snapshot.images[0];
            assert_eq!((read.id, read.bias), (Some(id), Some(all[0].bias)));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn parts_of_files_are_told_from_other_memory() {
        let line = |line: &'static str| Mapped::of(line.as_bytes());
        let first = line("7f00a000-7f00b000 r--p 00000000 fe:00 123   /opt/a plug in.so (deleted)").unwrap();
        assert_eq!((first.range.start().get(), first.range.end().get()), (0x7f00_a000, 0x7f00_b000));
        assert_eq!((first.is_first, first.is_code, first.path), (true, false, &b"/opt/a plug in.so"[..]));
        let code = line("7f00a000-7f00b000 r-xp 00001000 fe:00 123   /opt/a.so").unwrap();
        assert_eq!((code.is_first, code.is_code), (false, true));
        let guard = line("7f00a000-7f00b000 ---p 00000000 fe:00 123   /opt/a.so").unwrap();
        assert_eq!((guard.is_first, guard.is_code), (false, false));
        for other in [
            "7f00a000-7f00b000 rw-p 00000000 00:00 0",
            "7f00a000-7f00b000 rw-p 00000000 00:00 0   [stack]",
            "7f00a000",
            "",
        ] {
            assert_eq!(line(other), None, "{other}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn images_that_were_not_listed_are_found_and_take_the_place_of_others() {
        let maps = std::fs::read("/proc/self/maps").unwrap();
        let mut listed = Listed::now();
        let count = |listed: &Listed| {
            let mut sections = Vec::new();
            listed.each_newer(&maps, &mut Section::new(), |section| sections.push(section.to_vec()));
            sections
        };
        assert!(count(&listed).is_empty());
        // What was there before at the place of each is another library.
        let all = listed.known.len();
        listed.known.iter_mut().for_each(|known| known.id = ImageId::from_build_id(&[7; 20]));
        let newer = count(&listed);
        // A static program is one.
        let least = if cfg!(target_feature = "crt-static") { 1 } else { 2 };
        assert!(newer.len() >= least && newer.len() <= all, "{}", newer.len());
        let file = [&crate::sections::header()[..], &listed.sections, &newer.concat()].concat();
        let file = read(&file, &Limits::default()).unwrap();
        let images = &file.snapshot.images;
        assert_eq!(images.len(), all);
        let ends_before = |pair: &[backtrail_capture::MappedImage]| {
            pair[0].range.unwrap().end() <= pair[1].range.unwrap().start()
        };
        assert!(images.windows(2).all(ends_before), "{images:?}");
    }
}
