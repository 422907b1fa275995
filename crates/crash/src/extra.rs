//! What the program adds in the midst of a crash.

use crate::sections::Section;
use backtrail_capture::crash_file::format::Kind;
use backtrail_sys::os::raw_file::RawFile;
use std::sync::atomic::AtomicBool;

/// The file, for who writes it and for who finishes it in need.
pub(crate) static FILE: RawFile = RawFile::none();

/// Whether the program's own function runs, of [`Options`](crate::Options).
pub(crate) static IN_PROGRAM: AtomicBool = AtomicBool::new(false);

/// What the program's own function can add: see [`Options::add`](crate::Options::add).
#[derive(Debug)]
pub struct Extra<'a>(&'a mut Section);

impl<'a> Extra<'a> {
    pub(crate) fn new(section: &'a mut Section) -> Self {
        Self(section)
    }

    /// Adds a note to the file.
    pub fn note(&mut self, key: &str, value: &str) {
        self.0.begin().short(key.as_bytes()).put(value.as_bytes()).write(Kind::Note, &FILE);
    }
}
