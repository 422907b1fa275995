//! What is mapped where in a running process, and in which files.

use crate::{Mapping, parse_maps};
use backtrail_core::{AddrRange, Avma};
use std::collections::HashMap;

/// The mapped ranges of a process.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    all: Vec<Mapping>,
    /// The file of each range that has one, by the range's start.
    files: HashMap<u64, MappedFile>,
}

/// The file that a range is mapped from, as the kernel knows it: its name may mean another file by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// The range, by which `/proc/PID/map_files` names it.
    pub range: AddrRange<Avma>,
    /// Major and minor number of the device that it is on.
    pub device: (u32, u32),
    /// Its inode there.
    pub inode: u64,
    /// Whether its name was taken away, or given to another file.
    pub is_deleted: bool,
}

/// What the kernel puts behind the name of a file that has none any more.
const DELETED: &str = " (deleted)";

impl Maps {
    /// Reads `/proc/PID/maps`. Names are those that the files have or had.
    pub fn parse(text: &[u8], max: usize) -> Self {
        let (mut all, _) = parse_maps(text, max);
        let mut files = HashMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(file) = mapped_file(line) {
                files.insert(file.range.start().get(), file);
            }
        }
        for mapping in &mut all {
            if let Some(name) = mapping.name.strip_suffix(DELETED) {
                mapping.name = name.to_owned();
            }
            // The kernel writes line breaks so.
            if mapping.name.contains("\\012") {
                mapping.name = mapping.name.replace("\\012", "\n");
            }
        }
        Self { all, files }
    }

    /// All ranges, by address.
    pub fn all(&self) -> &[Mapping] {
        &self.all
    }

    /// The range that has an address.
    pub fn at(&self, address: Avma) -> Option<&Mapping> {
        let after = self.all.partition_point(|mapping| mapping.range.start() <= address);
        self.all.get(after.checked_sub(1)?).filter(|mapping| mapping.range.contains(address))
    }

    /// The file of the range that begins at an address.
    pub fn file(&self, start: Avma) -> Option<&MappedFile> {
        self.files.get(&start.get())
    }
}

/// `start-end perms offset device inode name`; `None` for what is no file.
fn mapped_file(line: &[u8]) -> Option<MappedFile> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let mut words = words.skip(2);
    let (major, minor) = words.next()?.split_once(':')?;
    let inode: u64 = words.next()?.parse().ok()?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    (inode != 0).then_some(MappedFile {
        range: AddrRange::new(Avma::new(hex(start)?), Avma::new(hex(end)?)),
        device: (number(major)?, number(minor)?),
        inode,
        is_deleted: line.ends_with(DELETED),
    })
}

impl MappedFile {
    /// Whether a file with this device (`st_dev`) and inode is the one.
    pub fn is(&self, device: u64, inode: u64) -> bool {
        // glibc's gnu_dev_major and gnu_dev_minor.
        let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
        let minor = (device & 0xff) | (device >> 12 & !0xff);
        self.inode == inode && (u64::from(self.device.0), u64::from(self.device.1)) == (major, minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_before_the_file_was_deleted() {
        let text = b"1000-2000 r-xp 00000000 fe:01 77 /tmp/a b.so (deleted)\n\
            2000-3000 rw-p 00000000 00:00 0 [heap]\n\
            3000-4000 r--p 00001000 fe:01 77 /tmp/line\\012break\n";
        let maps = Maps::parse(text, 10);
        let names: Vec<_> = maps.all().iter().map(|mapping| mapping.name.as_str()).collect();
        assert_eq!(names, ["/tmp/a b.so", "[heap]", "/tmp/line\nbreak"]);
        let file = maps.file(Avma::new(0x1000)).unwrap();
        assert_eq!((file.device, file.inode, file.is_deleted), ((0xfe, 1), 77, true));
        assert!(file.is(0xfe01, 77) && !file.is(0xfe01, 78) && !file.is(0xfe02, 77));
        assert_eq!(maps.file(Avma::new(0x2000)), None);
        assert!(!maps.file(Avma::new(0x3000)).unwrap().is_deleted);
        assert_eq!(maps.at(Avma::new(0x2fff)).unwrap().name, "[heap]");
        assert_eq!(maps.at(Avma::new(0x4000)), None);
    }

    #[test]
    fn this_process_has_its_program_mapped() {
        use std::os::unix::fs::MetadataExt as _;
        let maps = Maps::parse(&std::fs::read("/proc/self/maps").unwrap(), 100_000);
        let own = std::env::current_exe().unwrap();
        let mapping = maps.all().iter().find(|mapping| own.to_str() == Some(&mapping.name)).unwrap();
        let (file, metadata) = (maps.file(mapping.range.start()).unwrap(), own.metadata().unwrap());
        assert!(file.is(metadata.dev(), metadata.ino()) && !file.is_deleted);
    }
}
