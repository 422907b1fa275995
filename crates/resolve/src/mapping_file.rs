//! A mapping file of Java code, opened.

use backtrail_store::FileData;
use backtrail_symbolize::mapping::Mapping;
use std::sync::Arc;

/// A mapping file that a report's names were found in.
#[derive(Clone, Debug)]
pub struct MappingFile {
    mapping: Arc<Mapping<FileData>>,
    /// Its name, for people.
    name: String,
}

impl MappingFile {
    pub(crate) fn mapping(&self) -> &Mapping<FileData> {
        &self.mapping
    }

    /// Its name, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A text with its Java frames and exceptions as they are in the source, all else as it is: what R8's `retrace` prints.
    pub fn retrace(&self, text: &str) -> String {
        self.mapping.retrace(text, false)
    }

    pub(crate) fn open(name: String, data: FileData) -> Option<Self> {
        Mapping::new(data).map(|mapping| Self { mapping: Arc::new(mapping), name })
    }
}
