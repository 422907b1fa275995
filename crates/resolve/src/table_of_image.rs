//! The table of one image of those that are known.

use crate::convert::{ConvertFailure, ConvertSettings, Converted, Silent, write};
use crate::symbols::Symbols;
use backtrail_core::{Arch, ImageId};
use backtrail_store::{Search, Wanted};
use std::path::Path;

impl Symbols {
    /// Writes the image of that identity as a table at `place`, from the files that are known here; `None` where there is
    /// none. The table says that the image is called `name`. Nothing is at `place` until it is whole.
    ///
    /// # Errors
    /// When none of the image's files can be read, or the output cannot be written.
    pub fn convert(
        &self,
        id: ImageId,
        arch: Option<Arch>,
        name: &str,
        place: &Path,
        settings: &ConvertSettings,
    ) -> Option<Result<Converted, ConvertFailure>> {
        let wanted = Wanted { id: Some(id), arch, ..Wanted::default() };
        let search = Search { needs_binary: true, ..Search::default() };
        let mut files = self.index_of_files().image_files(&wanted, &search);
        // What a table of ours was made from says at least as much.
        let has_original = files.naming().iter().any(|file| file.object().is_some());
        files.debug.retain(|file| !has_original || file.table().is_none());
        let is_there = !files.naming().is_empty();
        is_there.then(|| write(&files, self.index_of_files(), Path::new(name), place, settings, &Silent))
    }
}
