//! The file that dwz moves what several files have in common into (`.gnu_debugaltlink`).

use super::file::DwarfFile;
use crate::request::FileRequest;
use std::sync::OnceLock;

/// A supplementary file: wanted, here, or known not to be had.
pub(crate) struct Supplementary<'d> {
    request: FileRequest,
    file: OnceLock<Option<Box<DwarfFile<'d>>>>,
}

impl<'d> Supplementary<'d> {
    pub(crate) fn new(request: FileRequest) -> Self {
        Self { request, file: OnceLock::new() }
    }

    /// What to ask for, as long as nobody has answered.
    pub(crate) fn wanted(&self) -> Option<&FileRequest> {
        if self.file.get().is_none() { Some(&self.request) } else { None }
    }

    pub(crate) fn request(&self) -> &FileRequest {
        &self.request
    }

    pub(crate) fn file(&self) -> Option<&DwarfFile<'d>> {
        self.file.get()?.as_deref()
    }

    /// Takes the answer; a second one changes nothing.
    pub(crate) fn set(&self, file: Option<DwarfFile<'d>>) {
        self.file.get_or_init(|| file.map(Box::new));
    }
}
