//! The files that native frames lie in.

use super::native_row::{NativeRow, image_name};
use backtrail_core::{FileOffset, ImageId, Svma};
use backtrail_model::{Frame, Image, ReportedSymbol};
use std::collections::HashMap;

/// Images by what rows state of them: path, offset, build id.
#[derive(Debug, Default)]
pub(super) struct ImageTable {
    by_key: HashMap<(String, Option<u64>, Option<String>), usize>,
}

impl ImageTable {
    /// The position of a row's image, added where it is new; `None` where the row names no file, or there are too many.
    pub(super) fn of_row(
        &mut self,
        row: &NativeRow<'_>,
        images: &mut Vec<Image>,
        max: usize,
    ) -> Option<usize> {
        if row.file.is_empty() || row.file == "<unknown>" {
            return None;
        }
        let key = (row.file.to_owned(), row.file_offset, row.build_id.map(str::to_owned));
        if let Some(position) = self.by_key.get(&key) {
            return Some(*position);
        }
        if images.len() >= max {
            return None;
        }
        let image = Image {
            name: row.image_name().to_owned(),
            path: Some(row.file.to_owned()),
            id: row.build_id.and_then(|id| ImageId::parse_build_id(id).ok()),
            file_offset: row.file_offset.map(FileOffset::new),
            ..Image::default()
        };
        images.push(image);
        self.by_key.insert(key, images.len() - 1);
        Some(images.len() - 1)
    }

    /// Forgets the images of the process before.
    pub(super) fn clear(&mut self) {
        self.by_key.clear();
    }
}

/// A row as a frame; what its address counts from is settled when the whole report is known.
pub(super) fn frame_of(row: &NativeRow<'_>, image: Option<usize>) -> Frame {
    let mut frame = Frame::new(row.index);
    frame.image = image;
    frame.image_name = Some(image_name(row.file).to_owned()).filter(|name| !name.is_empty());
    frame.relative_pc = Some(Svma::new(row.pc));
    frame.reported = row.function.map(|name| ReportedSymbol {
        name: name.to_owned(),
        offset: row.function_offset,
        ..ReportedSymbol::default()
    });
    if !row.rest.is_empty() {
        frame.annotations.push(row.rest.to_owned());
    }
    // An identity that is none is kept as text.
    if let Some(id) = row.build_id.filter(|id| ImageId::parse_build_id(id).is_err()) {
        frame.annotations.push(format!("BuildId: {id}"));
    }
    frame
}
