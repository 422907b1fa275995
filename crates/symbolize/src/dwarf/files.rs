//! File names of line tables (DWARF 5 section 6.2.4).

use super::reader::Reader;
use super::sections::SectionId;
use super::value::Value;
use super::view::View;
use std::borrow::Cow;

/// The file table of one line program. Strings stay in their sections.
#[derive(Default)]
pub(crate) struct FileTable {
    pub(crate) version: u16,
    pub(crate) directories: Vec<Value>,
    pub(crate) files: Vec<FileEntry>,
}

/// A file by its name and the index of its directory.
pub(crate) struct FileEntry {
    pub(crate) name: Value,
    pub(crate) directory: u32,
}

impl FileTable {
    /// The path of a file by the number that rows and calls use. Files are counted from 0 since DWARF 5, from 1 before.
    pub(crate) fn path<'a>(&self, view: View<'a, '_>, number: u32) -> Option<FilePath<'a>> {
        let is_5 = self.version >= 5;
        let index = if is_5 { number } else { number.checked_sub(1)? };
        let entry = self.files.get(index as usize)?;
        let name = string(view, entry.name)?;
        let directory = if is_5 { Some(entry.directory) } else { entry.directory.checked_sub(1) };
        let directory = directory.and_then(|index| self.directories.get(index as usize));
        let directory = directory.and_then(|value| string(view, *value));
        // Directory 0 of DWARF 5 is the compilation directory itself.
        let has_base = is_5 && entry.directory == 0;
        let base = if has_base { None } else { view.root().comp_dir.and_then(|value| view.string(value)) };
        Some(FilePath { base, directory, name })
    }
}

/// A string of a line table: what stands inline stands in `.debug_line`.
fn string<'a>(view: View<'a, '_>, value: Value) -> Option<&'a [u8]> {
    match value {
        Value::InlineString(offset) => {
            let sections = &view.file.sections;
            Reader::new(sections.get(SectionId::Line), offset, sections.big_endian).cstr()
        }
        value => view.string(value),
    }
}

/// A path in the pieces that debug info keeps apart; [`fmt::Display`](std::fmt::Display) and
/// [`to_string`](ToString::to_string) join them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilePath<'a> {
    /// The compilation directory.
    base: Option<&'a [u8]>,
    /// The directory of the file table, absolute or relative to `base`.
    directory: Option<&'a [u8]>,
    name: &'a [u8],
}

impl<'a> FilePath<'a> {
    /// A path in one piece.
    pub(crate) fn whole(name: &'a [u8]) -> Self {
        Self { base: None, directory: None, name }
    }

    /// The last piece: the file's name, possibly with directories before it.
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }

    /// All pieces, those that fall away too.
    pub(crate) fn parts(&self) -> [Option<&'a [u8]>; 3] {
        [self.base, self.directory, Some(self.name)]
    }

    /// The pieces that the whole path consists of: what stands before an absolute piece falls away.
    fn pieces(&self) -> impl Iterator<Item = &'a [u8]> {
        let pieces = [self.base.unwrap_or_default(), self.directory.unwrap_or_default(), self.name];
        let first = pieces.iter().rposition(|piece| is_absolute(piece)).unwrap_or(0);
        pieces.into_iter().skip(first).filter(|piece| !piece.is_empty())
    }
}

/// The whole path as debug info states it: compilation directory, directory and name, nothing normalised.
impl std::fmt::Display for FilePath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut separator = "";
        let mut is_windows = false;
        for piece in self.pieces() {
            f.write_str(separator)?;
            write!(
                f,
                "{}",
                piece.utf8_chunks().map(|chunk| chunk.valid()).collect::<Vec<_>>().join("\u{fffd}")
            )?;
            is_windows |= is_windows_path(piece);
            separator = match piece.last() {
                Some(b'/' | b'\\') => "",
                _ if is_windows => "\\",
                _ => "/",
            };
        }
        Ok(())
    }
}

/// A path made absolute.
pub(crate) fn join(base: Option<&[u8]>, name: &[u8]) -> String {
    FilePath { base, directory: None, name }.to_string()
}

fn is_absolute(path: &[u8]) -> bool {
    path.starts_with(b"/") || is_windows_path(path)
}

/// `C:\…`, `C:/…` and `\\server\…`.
fn is_windows_path(path: &[u8]) -> bool {
    match path {
        [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
        [b'\\', b'\\', ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(base: &str, directory: &str, name: &str) -> String {
        let bytes = |text: &'static str| text.as_bytes();
        let leak = |text: &str| bytes(String::from(text).leak());
        FilePath { base: Some(leak(base)), directory: Some(leak(directory)), name: leak(name) }.to_string()
    }

    #[test]
    fn relative_pieces_join_and_absolute_ones_start_anew() {
        assert_eq!(path("/src", "lib", "a.c"), "/src/lib/a.c");
        assert_eq!(path("/src", "/usr/include", "b.h"), "/usr/include/b.h");
        assert_eq!(path("/src", "lib", "/abs/c.c"), "/abs/c.c");
        assert_eq!(path("/src/", "", "./d.c"), "/src/./d.c");
        assert_eq!(path("", "", "e.c"), "e.c");
    }

    #[test]
    fn windows_paths_keep_their_separator() {
        assert_eq!(path(r"C:\src", "lib", "a.c"), r"C:\src\lib\a.c");
        assert_eq!(path(r"C:\src", r"D:\sdk\include", "b.h"), r"D:\sdk\include\b.h");
        assert_eq!(path(r"\\server\src", "", "c.c"), r"\\server\src\c.c");
        assert_eq!(path("/src", "lib", r"C:\x\d.c"), r"C:\x\d.c");
    }
}
