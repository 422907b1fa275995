//! The images of this process, for whoever wants their sections.

use object::{Object, ObjectSection, ObjectSegment, SectionKind};
use std::collections::BTreeMap;

/// One mapped file.
pub struct Mapped {
    pub path: String,
    pub start: u64,
    pub end: u64,
    pub data: &'static [u8],
    pub base_svma: u64,
}

/// A section: its address in the file and its bytes.
pub type Bytes = (u64, &'static [u8]);

impl Mapped {
    pub fn section(&self, name: &str) -> Option<Bytes> {
        let file = object::File::parse(self.data).ok()?;
        let section = file.section_by_name(name)?;
        Some((section.address(), section.data().ok()?))
    }

    pub fn text(&self) -> Vec<Bytes> {
        let Ok(file) = object::File::parse(self.data) else { return Vec::new() };
        let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
        code.filter_map(|section| Some((section.address(), section.data().ok()?))).collect()
    }
}

/// Every file that is mapped executable here.
pub fn all() -> Vec<Mapped> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut ranges: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in maps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [range, _, _, _, _, path] = words[..] else { continue };
        if !path.starts_with('/') {
            continue;
        }
        let (start, end) = range.split_once('-').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        let entry = ranges.entry(path.to_owned()).or_insert((u64::MAX, 0));
        *entry = (entry.0.min(number(start)), entry.1.max(number(end)));
    }
    ranges.into_iter().filter_map(|(path, (start, end))| mapped(path, start, end)).collect()
}

fn mapped(path: String, start: u64, end: u64) -> Option<Mapped> {
    let data: &'static [u8] = std::fs::read(&path).ok()?.leak();
    let file = object::File::parse(data).ok()?;
    let base_svma = file.segments().map(|segment| segment.address()).min()? & !0xfff;
    file.section_by_name(".text")?;
    Some(Mapped { path, start, end, data, base_svma })
}
