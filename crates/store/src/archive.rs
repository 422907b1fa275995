//! A zip whose members are read one by one, for those who want what is in it rather than symbols.

use crate::data::FileData;
use crate::error::{Error, ErrorKind, Fault, Shown};
use crate::limits::{Budget, Limits};
use crate::open::unpack;
use crate::source::Source;
use crate::zip::{Directory, Member};
use std::path::Path;

/// A zip: its members' names, and their bytes when they are asked for. What its members unpack to together is bounded.
#[derive(Debug)]
pub struct Archive {
    name: String,
    data: FileData,
    directory: Directory,
    limits: Limits,
    budget: Budget,
}

/// What all members of an archive that is read so may unpack to.
const MAX_UNPACKED: u64 = 8 << 30;

impl Archive {
    /// Whether bytes begin as a zip does.
    pub fn is_archive(head: &[u8]) -> bool {
        head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
    }

    /// Opens the zip at `path`, of whose members none may be larger than `max_bytes`.
    ///
    /// # Errors
    /// Where it is no zip, or its directory is cut off.
    pub fn open(path: &Path, max_bytes: usize) -> Result<Self, Error> {
        Self::of_bytes(&path.display().to_string(), FileData::map(path)?, max_bytes)
    }

    /// The same for bytes that are called `name`.
    ///
    /// # Errors
    /// As [`Archive::open`]'s.
    pub fn of_bytes(name: &str, data: FileData, max_bytes: usize) -> Result<Self, Error> {
        let limits = Limits { member_bytes: max_bytes as u64, ..Limits::default() };
        let directory = Directory::read(&Source::Bytes(data.clone()), &limits);
        let directory = directory.map_err(|fault| fault.at(Shown(name)))?;
        let budget = Budget::new(MAX_UNPACKED);
        budget.grant(data.len() as u64);
        Ok(Self { name: name.to_owned(), data, directory, limits, budget })
    }

    /// What is wrong with its directory, beside the members that could be read.
    pub fn problems(&self) -> impl Iterator<Item = Error> {
        self.directory.faults.iter().map(|fault| fault.clone().at(Shown(&self.name)))
    }

    /// The names of its members, in the archive's order, without directories.
    pub fn members(&self) -> impl ExactSizeIterator<Item = &str> {
        self.directory.members.iter().map(Member::name)
    }

    /// The positions of what may be a report: not what is inside of dSYMs, nor what macOS's archiver puts beside each file.
    pub fn reports(&self) -> impl Iterator<Item = usize> {
        let is_noise = |name: &str| name.split('/').any(|part| part.ends_with(".dSYM") || part == "__MACOSX");
        self.members().enumerate().filter(move |(_, name)| !is_noise(name)).map(|(position, _)| position)
    }

    /// The bytes of the member at this position.
    ///
    /// # Errors
    /// Where it is encrypted, packed in a way that is not read, broken, or larger than it may be; and where there is none.
    pub fn read(&self, position: usize) -> Result<FileData, Error> {
        let Some(member) = self.directory.members.get(position) else {
            return Err(Error::new(ErrorKind::Io, Shown(&self.name), "there is no such member"));
        };
        let place = || format!("{}!{}", Shown(&self.name), Shown(member.name()));
        member.check_size(self.limits.member_bytes, &self.limits).map_err(|fault| fault.at(place()))?;
        if !self.budget.take(member.size().max(member.compressed_size())) {
            let what = "left unread: the archive has unpacked to all it may";
            return Err(Error::new(ErrorKind::Limit, place(), what));
        }
        unpack(self.data.clone(), member, &self.limits).map_err(|fault: Fault| fault.at(place()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write as _};
    use zip::CompressionMethod;
    use zip::write::{SimpleFileOptions, ZipWriter};

    fn made() -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes, method) in [
            ("a.crash", &b"first"[..], CompressionMethod::Stored),
            ("below/b.ips", &[b'x'; 5000][..], CompressionMethod::Deflated),
            ("empty", b"", CompressionMethod::Deflated),
        ] {
            writer.start_file(name, SimpleFileOptions::DEFAULT.compression_method(method)).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn what_is_beside_reports_is_left_out() {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for name in ["a.dSYM/Contents/Info.plist", "a.ips", "__MACOSX/._a.ips"] {
            writer.start_file(name, SimpleFileOptions::DEFAULT).unwrap();
        }
        let bytes = writer.finish().unwrap().into_inner();
        let archive = Archive::of_bytes("reports.zip", bytes.into(), 100).unwrap();
        assert_eq!(archive.reports().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn members_are_read_one_by_one() {
        let archive = Archive::of_bytes("reports.zip", made().into(), 10_000).unwrap();
        assert_eq!(archive.members().collect::<Vec<_>>(), ["a.crash", "below/b.ips", "empty"]);
        assert_eq!(*archive.read(0).unwrap(), b"first"[..]);
        assert_eq!(*archive.read(1).unwrap(), [b'x'; 5000][..]);
        assert_eq!(*archive.read(2).unwrap(), b""[..]);
        assert!(archive.read(3).is_err());
        assert_eq!(archive.problems().count(), 0);
    }

    #[test]
    fn what_is_too_large_or_broken_costs_that_member_only() {
        let archive = Archive::of_bytes("reports.zip", made().into(), 1000).unwrap();
        let error = archive.read(1).unwrap_err();
        assert_eq!(error.to_string(), "reports.zip!below/b.ips: 5000 bytes; the limit is 1000");
        assert!(archive.read(0).is_ok());
        let mut bytes = made();
        let at = bytes.windows(11).position(|window| window == b"below/b.ips").unwrap() + 12;
        bytes[at] ^= 0x55;
        let archive = Archive::of_bytes("reports.zip", bytes.into(), 10_000).unwrap();
        assert!(archive.read(1).is_err());
        assert!(archive.read(0).is_ok());
        assert!(Archive::of_bytes("reports.zip", made()[..60].to_vec().into(), 1000).is_err());
        assert!(Archive::is_archive(&made()) && !Archive::is_archive(b"Process:"));
    }
}
