//! What Umeng's reports say in lines of their own: behind a bare backtrace, one image.

use super::reader::Reader;
use super::words::hex_value;
use backtrail_core::{Arch, Avma, ImageId};
use backtrail_model::Image;

impl Reader<'_> {
    /// Umeng's reports state one image, in lines of their own. Once Umeng's tool has put names into the rows, their
    /// addresses may be the file's rather than the process's, and looking them up again would give wrong names.
    pub(super) fn add_umeng_image(&mut self) {
        let field = |key: &str| {
            let field = self.report.fields.iter().find(|field| field.key == key)?;
            Some(field.value.as_str())
        };
        let (Some(name), Some(base)) = (field("Binary Image"), field("Base Address")) else { return };
        let Some(base) = hex_value(base) else { return };
        let mut frames = self.report.process.backtraces.iter().flat_map(|backtrace| &backtrace.frames);
        if frames.any(|frame| frame.image_name.as_deref() == Some(name) && frame.reported.is_some()) {
            self.notes.add(|| {
                format!("rows of {name} have names already; their addresses are not looked up again")
            });
            return;
        }
        let image = Image {
            name: name.to_owned(),
            id: field("dSYM UUID").and_then(|id| ImageId::parse_uuid(id).ok()),
            arch: field("CPU Type").and_then(Arch::from_name),
            load_address: Avma::new(base),
            ..Image::default()
        };
        self.report.process.images.push(image);
    }
}
