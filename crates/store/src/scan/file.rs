//! What one file is.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use backtrail_core::{Arch, FileOffset};
use backtrail_object::{FileRange, Format, Identity, Kind, ReadAt};
use backtrail_table::breakpad::Breakpad;
use backtrail_table::gsym::Gsym;
use backtrail_table::{Error as TableError, Header, SourceKind};

use crate::data::open_regular;
use crate::entry::{Entry, Location};
use crate::error::{Error, ErrorKind, Fault};
use crate::scan::{Findings, Scan, walk};
use crate::source::{Source, Window};

/// What a file's first bytes say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Magic {
    /// Mach-O, fat, ELF, a static library or a shared cache.
    Object,
    Zip,
    /// A symbol table file of ours.
    Table,
    /// LLVM's GSYM.
    Gsym,
    /// What may be Breakpad's; programs in Fortran start in the same way.
    Breakpad,
    /// gzip, bzip2, xz, zstd or 7z.
    Compressed,
    Other,
}

/// Bytes that decide whether more is read.
pub(super) const MAGIC: usize = 8;

impl Magic {
    pub(super) fn of(head: &[u8]) -> Self {
        const OBJECTS: [&[u8]; 8] = [
            b"\xfe\xed\xfa\xce",
            b"\xce\xfa\xed\xfe",
            b"\xfe\xed\xfa\xcf",
            b"\xcf\xfa\xed\xfe",
            b"\xca\xfe\xba\xbf",
            b"\x7fELF",
            b"!<arch>\n",
            b"dyld_v1 ",
        ];
        const COMPRESSED: [&[u8]; 5] =
            [b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c"];
        let starts = |magic: &&[u8]| head.starts_with(magic);
        if OBJECTS.iter().any(starts) || is_fat(head) {
            Self::Object
        } else if head == Header::MAGIC {
            Self::Table
        } else if is_gsym(head) {
            Self::Gsym
        } else if head.starts_with(b"MODULE ") {
            Self::Breakpad
        } else if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            Self::Zip
        } else if COMPRESSED.iter().any(starts) {
            Self::Compressed
        } else {
            Self::Other
        }
    }
}

/// Java's class files share the magic of fat files; there, the next word is a version of at least 45.
fn is_fat(head: &[u8]) -> bool {
    matches!(head, [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, slices, ..] if (1..45).contains(slices))
}

/// Text may start with these letters too, but not with a small number behind them.
fn is_gsym(head: &[u8]) -> bool {
    matches!(head, [b'M', b'Y', b'S', b'G', 1 | 2, 0, ..] | [b'G', b'S', b'Y', b'M', 0, 1 | 2, ..])
}

impl Scan<'_> {
    /// A file on the disk.
    pub(super) fn look_into(&self, path: &Arc<Path>) -> Findings {
        let location = Location::file(Arc::clone(path));
        let source = open_regular(path).and_then(|file| {
            let metadata = file.metadata().map_err(|error| Fault::io("cannot be read", &error))?;
            Ok(Source::file(file, metadata.len()))
        });
        match source {
            Ok(source) => {
                let mut findings = self.look_into_source(&location, &source);
                if !findings.entries.is_empty() && self.may_keep_open() {
                    findings.open.extend(source.into_file().map(|file| (Arc::clone(path), file)));
                }
                findings
            }
            Err(fault) => Findings::problem(fault.at(&location)),
        }
    }

    /// The outermost file, on the disk or in memory.
    pub(super) fn look_into_source(&self, location: &Location, source: &Source) -> Findings {
        let findings = match source.read_vec(0, MAGIC) {
            Ok(head) => match Magic::of(&head) {
                Magic::Object => {
                    let window = Window::new(source, 0, source.len());
                    self.identify(location, &window, || window.fault())
                }
                Magic::Zip => {
                    self.budget.grant(source.len());
                    self.look_into_zip(location, source)
                }
                kind @ (Magic::Table | Magic::Gsym | Magic::Breakpad) => {
                    let fill = |start: &mut [u8]| source.read_exact(0, start);
                    self.identify_other(kind, location, source.len(), fill)
                }
                other => {
                    let fill = |start: &mut [u8]| source.read_exact(0, start);
                    text_or_nothing(location, other, source.len(), &head, fill)
                }
            },
            Err(fault) => Findings::problem(fault.at(location)),
        };
        self.count(source.bytes_read());
        findings
    }

    /// What the headers of an object file say. `fault` tells why a read failed.
    pub(super) fn identify(
        &self,
        location: &Location,
        data: &dyn ReadAt,
        fault: impl Fn() -> Option<Fault>,
    ) -> Findings {
        let problem = |error: &backtrail_object::Error| {
            let unread = if error.kind() == backtrail_object::ErrorKind::Io { fault() } else { None };
            unread.unwrap_or_else(|| Fault::object(error)).at(location)
        };
        let identities = match backtrail_object::identify_each(data, &self.limits.object) {
            Ok(identities) => identities,
            Err(error) => return Findings::problem(problem(&error)),
        };
        let mut findings = Findings::default();
        let (mut objects, mut without_id) = (0, 0);
        for identity in identities {
            match identity {
                Ok(identity) => {
                    objects += 1;
                    without_id += usize::from(identity.id.is_none());
                    if is_image(&identity) {
                        findings.entries.push(Entry { location: location.clone(), identity });
                    }
                }
                Err(error) => findings.problems.push(problem(&error)),
            }
        }
        self.found.fetch_add(findings.entries.len() as u64, Ordering::Relaxed);
        if objects > 0 && objects == without_id {
            findings.loose.push(location.clone());
            if walk::is_in_dsym(location) {
                let what =
                    "expected a UUID in a dSYM's Mach-O file, so that it could belong to a binary; cut off?";
                findings.problems.push(Error::new(ErrorKind::Object, location, what));
            }
        }
        findings
    }
}

impl Scan<'_> {
    /// What the first bytes of a symbol table file say, ours or another tool's; `fill` reads them.
    pub(super) fn identify_other(
        &self,
        kind: Magic,
        location: &Location,
        size: u64,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Fault>,
    ) -> Findings {
        let wanted = match kind {
            Magic::Table => Header::SIZE,
            Magic::Gsym => Gsym::START,
            _ => Breakpad::START,
        };
        let mut start = vec![0; usize::try_from(size).map_or(wanted, |size| size.min(wanted))];
        let identity = fill(&mut start).and_then(|()| {
            let identity = match kind {
                Magic::Table => of_table(&start, size).map(Some),
                Magic::Gsym => of_gsym(&start, size).map(Some),
                _ => Ok(of_breakpad(&start, size)),
            };
            identity.map_err(|error| Fault::new(ErrorKind::Object, error.to_string()))
        });
        match identity {
            Ok(Some(identity)) => {
                self.found.fetch_add(1, Ordering::Relaxed);
                let entries = vec![Entry { location: location.clone(), identity }];
                Findings { entries, ..Findings::default() }
            }
            Ok(None) => Findings::default(),
            Err(fault) => Findings::problem(fault.at(location)),
        }
    }
}

fn whole(size: u64) -> FileRange {
    FileRange::from_size(FileOffset::new(0), size)
}

fn of_table(start: &[u8], size: u64) -> Result<Identity, TableError> {
    let header = Header::peek(start, size)?;
    let format = match header.source {
        SourceKind::MachODwarf | SourceKind::MachOSymbols => Format::MachO,
        _ => Format::Elf,
    };
    Ok(Identity::of_table(format, header.arch, header.id, whole(size), header.has_debug_info()))
}

/// GSYM states neither format nor architecture.
fn of_gsym(start: &[u8], size: u64) -> Result<Identity, TableError> {
    let id = Gsym::peek(start)?;
    Ok(Identity::of_symbol_file(Format::Elf, Arch::Unknown, id, whole(size)))
}

fn of_breakpad(start: &[u8], size: u64) -> Option<Identity> {
    let module = Breakpad::peek(start)?;
    let format = if module.is_apple() { Format::MachO } else { Format::Elf };
    Some(Identity::of_symbol_file(format, module.arch(), module.id(), whole(size)))
}

/// Whether an image of a process can be this, or have its debug information here.
fn is_image(identity: &Identity) -> bool {
    match identity.kind {
        Kind::Core => false,
        Kind::Relocatable => identity.id.is_some(),
        _ => true,
    }
}

/// Whether this is likely a mapping file of R8 or ProGuard. Names are many, but `mapping` is what the build tools call it;
/// to look into every text below a path would cost more than all the rest of a scan.
fn may_be_mapping(location: &Location, size: u64, fill: impl FnOnce(&mut [u8]) -> Result<(), Fault>) -> bool {
    const LOOKED_AT: usize = 4096;
    let name = location.file_name().to_ascii_lowercase();
    if !name.contains("mapping") && !name.contains("proguard") {
        return false;
    }
    let mut start = vec![0; usize::try_from(size).map_or(LOOKED_AT, |size| size.min(LOOKED_AT))];
    if fill(&mut start).is_err() {
        return false;
    }
    let has = |word: &[u8]| start.windows(word.len()).any(|window| window == word);
    has(b" -> ") || has(b"# compiler: R8") || has(b"# pg_map_id: ")
}

/// What is no object and no symbol file: a mapping file, or nothing. `fill` reads the first bytes, of which `head` has some.
pub(super) fn text_or_nothing(
    location: &Location,
    magic: Magic,
    size: u64,
    head: &[u8],
    fill: impl FnOnce(&mut [u8]) -> Result<(), Fault>,
) -> Findings {
    if magic == Magic::Other && may_be_mapping(location, size, fill) {
        return Findings { mappings: vec![location.clone()], ..Findings::default() };
    }
    not_an_object(location, magic, size, head)
}

/// Most files are none and are passed over, but not where a dSYM bundle should have its debug information, and not
/// archives that may well hold some.
fn not_an_object(location: &Location, magic: Magic, len: u64, head: &[u8]) -> Findings {
    if walk::is_in_dsym(location) {
        let what = match len {
            0 => "expected a dSYM's Mach-O file, this one is empty".to_owned(),
            _ if head.starts_with(b"version ") => {
                "expected a dSYM's Mach-O file, this seems to be a Git LFS pointer to it (run git lfs pull)"
                    .to_owned()
            }
            _ => "expected a dSYM's Mach-O file, its first bytes are none's".to_owned(),
        };
        return Findings::problem(Error::new(ErrorKind::Object, location, what));
    }
    let unread = if magic == Magic::Compressed && is_archive_name(location.file_name()) {
        vec![location.clone()]
    } else {
        Vec::new()
    };
    Findings { unread, ..Findings::default() }
}

fn is_archive_name(name: &str) -> bool {
    const ENDINGS: [&str; 7] = [".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".txz", ".tar.zst", ".7z"];
    let name = name.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_decide() {
        assert_eq!(Magic::of(b"\xcf\xfa\xed\xfe\x0c\0\0\x01"), Magic::Object);
        assert_eq!(Magic::of(b"\xca\xfe\xba\xbe\0\0\0\x02"), Magic::Object);
        assert_eq!(Magic::of(b"\xca\xfe\xba\xbe\0\0\0\x34"), Magic::Other, "a Java class");
        assert_eq!(Magic::of(b"PK\x03\x04\0\0\0\0"), Magic::Zip);
        assert_eq!(Magic::of(b"\x1f\x8b\x08\0\0\0\0\0"), Magic::Compressed);
        assert_eq!(Magic::of(&Header::MAGIC), Magic::Table);
        assert_eq!(Magic::of(b"MYSG\x01\0\x04\x14"), Magic::Gsym);
        assert_eq!(Magic::of(b"GSYM\0\x01\x04\x14"), Magic::Gsym);
        assert_eq!(Magic::of(b"GSYM is "), Magic::Other);
        assert_eq!(Magic::of(b"MODULE L"), Magic::Breakpad);
        assert_eq!(Magic::of(b"PK\x03"), Magic::Other);
        assert_eq!(Magic::of(b""), Magic::Other);
    }
}
