//! Whether a table is whole.

use crate::error::{Error, ErrorKind, Result};
use crate::read::Table;

impl Table<'_> {
    /// Reads everything and compares the checksums.
    ///
    /// # Errors
    /// At the first thing that is wrong.
    pub fn check(&self) -> Result<()> {
        for entry in &self.entries {
            if entry.bytes(self.data).map(crc32fast::hash) != Some(entry.checksum) {
                return Err(Error::new(ErrorKind::Checksum, entry.offset, "expected the section's checksum"));
            }
        }
        self.check_structure()
    }

    fn check_structure(&self) -> Result<()> {
        for number in 0..self.names.len() as u32 {
            self.names.get(number.saturating_add(1)).ok_or_else(|| self.broken_name(number))?;
        }
        for number in 0..self.file_count() {
            self.file(number).ok_or_else(|| self.broken_file(number))?;
        }
        let mut last = None;
        for number in 0..self.index.len() {
            let start = self.index.get(number).map(|entry| entry.start);
            if start.is_none() || start <= last {
                return Err(self.misplaced_chunk(number));
            }
            last = start;
        }
        self.functions().try_for_each(|function| function.map(drop))?;
        self.symbols().try_for_each(|symbol| symbol.map(drop))
    }
}
