//! The images of this process, for others.

use super::Capturer;
use crate::Image;
use backtrail_core::{Arch, Avma};

impl Capturer {
    /// The images as they were listed last, with their names, files, identities and ranges.
    ///
    /// # Signal safety
    ///
    /// Not safe: it allocates.
    pub fn images(&self) -> Vec<Image> {
        let images = self.kept.images(self.kept.now().generation());
        let listed = images.iter().map(|image| {
            let path = image.path.to_string_lossy().into_owned();
            // Load addresses are those of pages, also where the first segment begins within one.
            let load_address = Avma::new(image.range.start().get() & !0xfff);
            Image {
                name: path.rsplit('/').next().unwrap_or(&path).to_owned(),
                path: Some(path),
                id: image.id,
                arch: Some(Arch::HOST),
                load_address,
                end_address: Some(image.range.end()),
                ..Image::default()
            }
        });
        listed.collect()
    }
}
