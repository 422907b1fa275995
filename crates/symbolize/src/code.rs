//! Which addresses of an image are code.

use backtrail_core::{AddrRange, Reason, Svma};

/// The sections of an image by address, of all files that are known of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeMap {
    /// Sorted, joined where they touch.
    code: Vec<AddrRange<Svma>>,
    mapped: Vec<AddrRange<Svma>>,
    /// Each section on its own, sorted: symbols never reach across their borders.
    sections: Vec<AddrRange<Svma>>,
}

impl CodeMap {
    /// From each section's address range and whether it holds instructions. Files without section headers give
    /// their segments instead.
    pub(crate) fn new(sections: impl IntoIterator<Item = (AddrRange<Svma>, bool)>) -> Self {
        let mut all: Vec<_> = sections.into_iter().filter(|(range, _)| !range.is_empty()).collect();
        all.sort_by_key(|(range, _)| (range.start(), range.end()));
        let code = join(all.iter().filter(|(_, is_code)| *is_code).map(|(range, _)| *range));
        let mapped = join(all.iter().map(|(range, _)| *range));
        let mut sections: Vec<_> = all.into_iter().map(|(range, _)| range).collect();
        sections.dedup();
        Self { code, mapped, sections }
    }

    /// Whether code can start here. Linkers leave debug info of code that they dropped in place, starting at 0, 1,
    /// or the highest addresses, or at a small offset from there; none of that lies in a code section, while a kernel
    /// or an object file that really is based at 0 has one there. Without any sections only the marks themselves tell.
    pub(crate) fn is_live(&self, start: u64, max_address: u64) -> bool {
        if start >= max_address - 1 {
            return false;
        }
        if self.code.is_empty() {
            return start > 1;
        }
        find(&self.code, Svma::new(start)).is_some()
    }

    /// The code around an address.
    pub(crate) fn code_around(&self, address: u64) -> Option<AddrRange<Svma>> {
        find(&self.code, Svma::new(address))
    }

    /// Why nothing is known of an address.
    pub(crate) fn reason(&self, address: Svma) -> Reason {
        if self.mapped.is_empty() || find(&self.code, address).is_some() {
            Reason::NoSymbol
        } else if find(&self.mapped, address).is_some() {
            Reason::NotCode
        } else {
            Reason::OutsideSections
        }
    }

    /// Where sections start and end.
    pub(crate) fn borders(&self) -> impl Iterator<Item = Svma> {
        self.sections.iter().flat_map(|section| [section.start(), section.end()])
    }

    /// What is mapped: ranges, each with whether it is code.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (AddrRange<Svma>, bool)> {
        let code = self.code.iter().map(|range| (*range, true));
        self.mapped.iter().map(|range| (*range, false)).chain(code)
    }

    /// Whether anything is known of where sections lie.
    pub(crate) fn has_sections(&self) -> bool {
        !self.sections.is_empty()
    }

    /// The start of the innermost section around an address.
    pub(crate) fn section_start(&self, address: Svma) -> Option<Svma> {
        let behind = self.sections.partition_point(|section| section.start() <= address);
        let candidates = self.sections.get(..behind)?;
        // Sections do not overlap; where a broken file's do, a few steps back are enough.
        candidates
            .iter()
            .rev()
            .take(8)
            .find(|section| section.contains(address))
            .map(|section| section.start())
    }
}

/// Asks whether code can start at addresses, many of which lie near each other.
#[derive(Clone, Copy)]
pub(crate) struct LiveCode<'c> {
    code: &'c CodeMap,
    max_address: u64,
    /// Code around the last one.
    around: (u64, u64),
}

impl<'c> LiveCode<'c> {
    pub(crate) fn new(code: &'c CodeMap, max_address: u64) -> Self {
        Self { code, max_address, around: (0, 0) }
    }

    /// The same as [`CodeMap::is_live`].
    #[inline]
    pub(crate) fn is_live(&mut self, start: u64) -> bool {
        if self.around.0 <= start && start < self.around.1 && start < self.max_address - 1 {
            return true;
        }
        let is_live = self.code.is_live(start, self.max_address);
        if is_live && let Some(range) = self.code.code_around(start) {
            self.around = (range.start().get(), range.end().get());
        }
        is_live
    }
}

fn join(ranges: impl Iterator<Item = AddrRange<Svma>>) -> Vec<AddrRange<Svma>> {
    let mut joined: Vec<AddrRange<Svma>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start() <= last.end() => {
                *last = AddrRange::new(last.start(), last.end().max(range.end()));
            }
            _ => joined.push(range),
        }
    }
    joined
}

fn find(ranges: &[AddrRange<Svma>], address: Svma) -> Option<AddrRange<Svma>> {
    let behind = ranges.partition_point(|range| range.start() <= address);
    ranges.get(behind.checked_sub(1)?).copied().filter(|range| range.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(sections: &[(u64, u64, bool)]) -> CodeMap {
        let range = |start, end| AddrRange::new(Svma::new(start), Svma::new(end));
        CodeMap::new(sections.iter().map(|(start, end, code)| (range(*start, *end), *code)))
    }

    #[test]
    fn zero_is_dead_unless_code_lies_there() {
        let library = map(&[(0x2a8, 0x300, false), (0x1000, 0x2000, true)]);
        assert!(!library.is_live(0, u64::MAX));
        assert!(!library.is_live(1, u64::MAX));
        assert!(!library.is_live(u64::MAX, u64::MAX));
        assert!(!library.is_live(u64::MAX - 1, u64::MAX));
        assert!(library.is_live(0x1000, u64::MAX));
        assert!(!library.is_live(0x2000, u64::MAX));
        let kernel = map(&[(0, 0x1000, true)]);
        assert!(kernel.is_live(0, u64::MAX));
        assert!(!map(&[(0, 1 << 33, true)]).is_live(0xffff_ffff, 0xffff_ffff));
        assert!(!map(&[]).is_live(0, u64::MAX));
        assert!(map(&[]).is_live(0x1000, u64::MAX));
    }

    #[test]
    fn reasons_follow_the_sections() {
        let map = map(&[(0x100, 0x200, false), (0x1000, 0x1800, true), (0x1800, 0x2000, true)]);
        assert_eq!(map.reason(Svma::new(0x150)), Reason::NotCode);
        assert_eq!(map.reason(Svma::new(0x1900)), Reason::NoSymbol);
        assert_eq!(map.reason(Svma::new(0x2000)), Reason::OutsideSections);
        assert_eq!(map.section_start(Svma::new(0x1900)), Some(Svma::new(0x1800)));
        assert_eq!(map.section_start(Svma::new(0x900)), None);
    }
}
