//! The central directory: APPNOTE.TXT sections 4.3.12 (file headers) to 4.3.16 (end of central directory).

use std::borrow::Cow;

use crate::Limits;
use crate::error::{ErrorKind, Fault, Shown};
use crate::source::{Source, Window};
use crate::zip::member::{Member, Method};

/// What a zip says it holds.
#[derive(Debug)]
pub(crate) struct Directory {
    /// In the order of the directory, without directories and without members that lie over each other.
    pub(crate) members: Vec<Member>,
    /// Members and parts of the directory that had to be left out.
    pub(crate) faults: Vec<Fault>,
}

/// Where the central directory lies.
struct End {
    /// Position of the directory.
    start: u64,
    size: u64,
    /// Number of members; only its lower 16 bits count in a zip that is not a zip64.
    count: u64,
    is_zip64: bool,
    /// Bytes before the zip, which its own positions do not count.
    base: u64,
}

const END: usize = 22;
const END_64: usize = 56;
const LOCATOR_64: usize = 20;
const FILE_HEADER: usize = 46;
const MAX_COMMENT: usize = 0xffff;

impl Directory {
    /// Reads the directory of a zip.
    ///
    /// # Errors
    /// When there is none, as in a zip that was cut off. A directory that breaks off gives what came before.
    pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Self, Fault> {
        let end = End::find(source)?;
        let mut directory = Self { members: Vec::new(), faults: Vec::new() };
        if let Err(fault) = directory.read_members(source, &end, limits) {
            directory.faults.push(fault);
        }
        directory.leave_out_overlaps();
        Ok(directory)
    }

    fn read_members(&mut self, source: &Source, end: &End, limits: &Limits) -> Result<(), Fault> {
        let window = Window::new(source, 0, end.start.saturating_add(end.size));
        let mut at = end.start;
        let mut count = 0u64;
        while at < end.start + end.size {
            if count == limits.zip_members as u64 {
                let what = format!("more than {count} members; those beyond are left unread");
                return Err(Fault::new(ErrorKind::Limit, what).offset(at));
            }
            let (member, next) = read_file_header(&window, at, end)?;
            // Guaranteed to grow: a header has at least its fixed size.
            at = next;
            count += 1;
            self.keep(member, end.start);
        }
        // Archive Utility writes more than 65,535 members without making it a zip64: the count wraps around.
        let same = if end.is_zip64 { count == end.count } else { count & 0xffff == end.count };
        if !same {
            let what = format!("the directory has {count} members, its end states {}", end.count);
            return Err(Fault::new(ErrorKind::Zip, what).offset(end.start));
        }
        Ok(())
    }

    fn keep(&mut self, member: Member, directory_start: u64) {
        let is_directory = member.name().ends_with(['/', '\\']);
        if is_directory {
            return;
        }
        if member.least_end().is_none_or(|end| end > directory_start) {
            let what = format!(
                "member {} of {} compressed bytes: expected it to end before the directory at {directory_start:#x}",
                Shown(member.name()),
                member.compressed_size()
            );
            self.faults.push(Fault::new(ErrorKind::Zip, what).offset(member.header()));
            return;
        }
        self.members.push(member);
    }

    /// Members that share bytes make a small zip inflate without end (D. Fifield, "A better zip bomb", 2019). Of those
    /// only the first stays. Entries for the very same bytes are one member that is listed twice.
    fn leave_out_overlaps(&mut self) {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|index| self.members.get(*index).map(|member| (member.header(), *index)));
        let mut out = vec![false; self.members.len()];
        let mut last: Option<&Member> = None;
        let mut overlapping = Vec::new();
        for index in order {
            let Some(member) = self.members.get(index) else { continue };
            if let Some(before) = last.filter(|before| before.least_end() > Some(member.header())) {
                if let Some(out) = out.get_mut(index) {
                    *out = true;
                }
                if before.header() != member.header() {
                    overlapping.push((before, member));
                }
            } else {
                last = Some(member);
            }
        }
        if let Some((before, member)) = overlapping.first() {
            let what = format!(
                "{} members lie over others and are left out, such as {} over {}",
                overlapping.len(),
                Shown(member.name()),
                Shown(before.name())
            );
            self.faults.push(Fault::new(ErrorKind::Zip, what).offset(member.header()));
        }
        let mut out = out.into_iter();
        self.members.retain(|_| !out.next().unwrap_or(false));
    }
}

impl End {
    fn find(source: &Source) -> Result<Self, Fault> {
        let (position, record) = find_end(source)?;
        let disks = (u16_at(&record, 4), u16_at(&record, 6));
        let mut end = Self {
            start: u32_at(&record, 16),
            size: u32_at(&record, 12),
            count: u16_at(&record, 10),
            is_zip64: false,
            base: 0,
        };
        let mut limit = position;
        if end.start == 0xffff_ffff || end.size == 0xffff_ffff || end.count == 0xffff {
            if let Some(found) = find_zip64(source, position)? {
                limit = found.0;
                end = found.1;
            }
        } else if disks != (0, 0) {
            let what = "part of a zip that was split into several files, which is not read";
            return Err(Fault::new(ErrorKind::NotRead, what).offset(position));
        }
        end.settle(limit)
    }

    /// The directory ends where its end record begins; what was put before the zip moves all positions.
    fn settle(mut self, limit: u64) -> Result<Self, Fault> {
        let start = limit.checked_sub(self.size);
        let base = start.and_then(|start| start.checked_sub(self.start));
        let (Some(start), Some(base)) = (start, base) else {
            let what = format!(
                "expected a central directory of {} bytes at {:#x}, before this end record",
                self.size, self.start
            );
            return Err(Fault::new(ErrorKind::Zip, what).offset(limit));
        };
        self.start = start;
        self.base = base;
        Ok(self)
    }
}

/// The end record and its position. A comment of up to 64 KiB may follow it.
fn find_end(source: &Source) -> Result<(u64, Vec<u8>), Fault> {
    for max in [END, END + MAX_COMMENT] {
        let start = source.len().saturating_sub(max as u64);
        let tail = source.read_vec(start, max)?;
        for at in (0..=tail.len().saturating_sub(END)).rev() {
            let Some(record) = tail.get(at..at + END) else { continue };
            let comment = u16_at(record, 20);
            if record.starts_with(b"PK\x05\x06") && (at + END) as u64 + comment <= tail.len() as u64 {
                return Ok((start + at as u64, record.to_vec()));
            }
        }
    }
    let what = "expected a zip's end record (PK 5 6) in the last 64 KiB: cut off, or no zip";
    Err(Fault::new(ErrorKind::Zip, what).offset(source.len()))
}

/// The zip64 end record that the locator before `end` names; `None` where there is no locator.
fn find_zip64(source: &Source, end: u64) -> Result<Option<(u64, End)>, Fault> {
    let Some(locator_at) = end.checked_sub(LOCATOR_64 as u64) else { return Ok(None) };
    let locator = source.read_vec(locator_at, LOCATOR_64)?;
    if !locator.starts_with(b"PK\x06\x07") {
        return Ok(None);
    }
    // Right before the locator unless the record has an extensible part; the stated position is wrong in a zip that
    // something was put before.
    let stated = u64_at(&locator, 8);
    for at in [stated, locator_at.saturating_sub(END_64 as u64)] {
        if at.saturating_add(END_64 as u64) > locator_at {
            continue;
        }
        let record = source.read_vec(at, END_64)?;
        if record.starts_with(b"PK\x06\x06") {
            let (size, start) = (u64_at(&record, 40), u64_at(&record, 48));
            let end = End { start, size, count: u64_at(&record, 32), is_zip64: true, base: 0 };
            return Ok(Some((at, end)));
        }
    }
    Err(Fault::new(ErrorKind::Zip, "expected a zip64 end record (PK 6 6)").offset(stated))
}

/// One file header, and the position of the next.
fn read_file_header(window: &Window<'_>, at: u64, end: &End) -> Result<(Member, u64), Fault> {
    let mut header = [0; FILE_HEADER];
    window.fill(at, &mut header).map_err(|fault| Fault { kind: ErrorKind::Zip, ..fault })?;
    if !header.starts_with(b"PK\x01\x02") {
        let what = "expected a file header (PK 1 2) in the central directory";
        return Err(Fault::new(ErrorKind::Zip, what).offset(at));
    }
    let [name_len, extra_len, comment_len] = [28, 30, 32].map(|field| u16_at(&header, field));
    let name_at = at + FILE_HEADER as u64;
    let mut rest = vec![0; usize::try_from(name_len + extra_len).unwrap_or(0)];
    window.fill(name_at, &mut rest).map_err(|fault| Fault { kind: ErrorKind::Zip, ..fault })?;
    let (name, extra) = rest.split_at_checked(usize::try_from(name_len).unwrap_or(0)).unwrap_or_default();

    let mut sizes = [u32_at(&header, 24), u32_at(&header, 20), u32_at(&header, 42)];
    read_zip64_extra(extra, &mut sizes);
    let [size, compressed_size, header_at] = sizes;
    let member = Member::new(
        decode_name(name),
        header_at.saturating_add(end.base),
        compressed_size,
        size,
        u32::try_from(u32_at(&header, 16)).unwrap_or(0),
        Method::new(u16_at(&header, 10), u16_at(&header, 8)),
    );
    Ok((member, name_at + name_len + extra_len + comment_len))
}

/// Extra field 1 (APPNOTE.TXT 4.5.3): size, compressed size and position, each only where the header has all ones.
fn read_zip64_extra(mut extra: &[u8], sizes: &mut [u64; 3]) {
    while let Some((head, rest)) = extra.split_at_checked(4) {
        let len = usize::try_from(u16_at(head, 2)).unwrap_or(0);
        let Some((mut field, next)) = rest.split_at_checked(len) else { return };
        if u16_at(head, 0) == 1 {
            for size in sizes.iter_mut().filter(|size| **size == 0xffff_ffff) {
                let Some((value, rest)) = field.split_first_chunk::<8>() else { return };
                *size = u64::from_le_bytes(*value);
                field = rest;
            }
            return;
        }
        extra = next;
    }
}

/// Names are UTF-8 in every zip that Apple's tools write, whether or not flag 11 says so; Windows' own tools of
/// old wrote `\` for `/`.
fn decode_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let name = if name.contains('/') { name } else { Cow::Owned(name.replace('\\', "/")) };
    name.into_owned()
}

fn u16_at(bytes: &[u8], at: usize) -> u64 {
    array_at(bytes, at).map_or(0, |bytes| u64::from(u16::from_le_bytes(bytes)))
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    array_at(bytes, at).map_or(0, |bytes| u64::from(u32::from_le_bytes(bytes)))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    array_at(bytes, at).map_or(0, u64::from_le_bytes)
}

/// Callers hold the whole record, so that `None` is never seen.
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
