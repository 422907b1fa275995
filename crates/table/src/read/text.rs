//! Strings and paths of a table.

use std::fmt;

/// A string of a table.
#[derive(Clone, Copy)]
pub struct Text<'t>(pub(crate) &'t [u8]);

impl<'t> Text<'t> {
    /// The bytes, which are UTF-8 in honest files.
    #[inline]
    pub fn as_bytes(&self) -> &'t [u8] {
        self.0
    }

    /// Appends the bytes. Allocates nothing where the buffer has room.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }

    /// The string on its own; what is not UTF-8 is replaced.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(self.0).into_owned()
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_text())
    }
}

/// A source file.
#[derive(Clone, Copy)]
pub struct File<'t> {
    pub(crate) path: &'t [u8],
    /// Bytes of the directory.
    pub(crate) directory: usize,
}

impl<'t> File<'t> {
    /// The whole path, as debug info states it.
    pub fn path(&self) -> Text<'t> {
        Text(self.path)
    }

    /// The directory with its last separator; empty where the path has none.
    pub fn directory(&self) -> Text<'t> {
        Text(self.path.get(..self.directory).unwrap_or_default())
    }

    /// The name in that directory.
    pub fn name(&self) -> Text<'t> {
        Text(self.path.get(self.directory..).unwrap_or_default())
    }

    /// Appends the whole path.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.path);
    }
}

impl fmt::Debug for File<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().fmt(f)
    }
}
