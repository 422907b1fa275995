//! The images' sections, made ahead of time.

use crate::sections::Section;
use backtrail_capture::crash_file::format::{IMAGE_PROGRAM, IMAGE_UUID, Kind};
use backtrail_capture::local::{LoadedImage, images};
use backtrail_core::{ImageId, Svma};
use std::os::unix::ffi::OsStrExt as _;

/// Sections of all images that the loader lists now. Takes the loader's lock.
pub(crate) fn encoded() -> Vec<u8> {
    let (all, _) = images();
    let mut section = Section::new();
    let mut bytes = Vec::new();
    for image in &all {
        bytes.extend(encode(image, &mut section));
    }
    bytes
}

fn encode<'s>(image: &LoadedImage, section: &'s mut Section) -> &'s [u8] {
    let id = image.id.as_ref().map_or(&[][..], |id| id.as_bytes());
    let bias = image.bias.to_avma(Svma::new(0)).unwrap_or_default();
    section.begin();
    section.u64(image.range.start().get()).u64(image.range.end().get()).u64(bias.get());
    let program = if image.is_program { IMAGE_PROGRAM } else { 0 };
    let uuid = if matches!(image.id, Some(ImageId::Uuid(_))) { IMAGE_UUID } else { 0 };
    section.u8(program | uuid);
    section.short(id).put(image.path.as_os_str().as_bytes()).finish(Kind::Image)
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
}
