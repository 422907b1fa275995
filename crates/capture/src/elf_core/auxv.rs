//! `NT_AUXV`: what the kernel told the program at its start. getauxval(3).

use crate::bytes::word_at;

pub(crate) const AT_PHDR: u64 = 3;
pub(crate) const AT_PHENT: u64 = 4;
pub(crate) const AT_PHNUM: u64 = 5;
pub(crate) const AT_ENTRY: u64 = 9;
pub(crate) const AT_EXECFN: u64 = 31;
pub(crate) const AT_SYSINFO_EHDR: u64 = 33;

/// The auxiliary vector.
#[derive(Debug, Default)]
pub(crate) struct AuxVector {
    entries: Vec<(u64, u64)>,
}

/// The kernel writes two dozen.
const MAX_ENTRIES: usize = 256;

impl AuxVector {
    pub(crate) fn parse(data: &[u8], is_64: bool) -> Self {
        let width = if is_64 { 8 } else { 4 };
        let entry = |index: usize| {
            let at = index * 2 * width;
            Some((word_at(data, at, is_64)?, word_at(data, at + width, is_64)?))
        };
        Self { entries: (0..MAX_ENTRIES).map_while(entry).take_while(|(key, _)| *key != 0).collect() }
    }

    /// An entry's value; zero counts as none, since no address is.
    pub(crate) fn get(&self, wanted: u64) -> Option<u64> {
        self.entries
            .iter()
            .find(|(key, _)| *key == wanted)
            .map(|(_, value)| *value)
            .filter(|value| *value != 0)
    }
}
