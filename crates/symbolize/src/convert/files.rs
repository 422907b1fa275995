//! The source files of a unit, each made into a path once.

use super::fast_map::FastMap;
use crate::dwarf::{FilePath, FileTable, View};
use backtrail_table::{Builder, FileId};

/// Files as a table keeps them. Belongs to one worker.
pub(super) struct Files<'b> {
    builder: &'b Builder,
    /// Paths by where their pieces lie in memory: units share most of them.
    known: FastMap<[usize; 3], FileId>,
    /// Those of the unit by number; the inner `None` where there is no such file.
    by_number: Vec<Option<Option<FileId>>>,
}

impl<'b> Files<'b> {
    pub(super) fn new(builder: &'b Builder) -> Self {
        Self { builder, known: FastMap::default(), by_number: Vec::new() }
    }

    /// Forgets what belongs to the last unit.
    pub(super) fn next_unit(&mut self, files: &FileTable) {
        self.by_number.clear();
        self.by_number.resize(files.files.len() + 1, None);
    }

    /// The file of a number that rows and calls use.
    pub(super) fn get(&mut self, view: View<'_, '_>, files: &FileTable, number: u32) -> Option<FileId> {
        let slot = self.by_number.get_mut(number as usize)?;
        if let Some(known) = slot {
            return *known;
        }
        let file = files.path(view, number).map(|path| {
            let builder = self.builder;
            *self.known.entry(key(&path)).or_insert_with(|| builder.file(path.to_string().as_bytes()))
        });
        *slot = Some(file);
        file
    }
}

fn key(path: &FilePath<'_>) -> [usize; 3] {
    path.parts().map(|part| part.map_or(0, |part| part.as_ptr().addr()))
}
