//! Captures and reports that were packed when they were saved, as systemd and people do: gzip, xz, zstd and LZ4, told by
//! content.
//!
//! A core may be many times as large as the memory of the machine that reads it, and most of it is zeros. It is unpacked
//! into a temporary file that has no name any more, with holes where zeros are, and that file is mapped: memory is needed
//! for the window of the packer only. A report is small, and unpacked into memory.

mod lz4;
mod zstd;

use crate::FileData;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a capture may unpack to, holes included.
const MAX_UNPACKED: u64 = 256 << 30;
/// Bytes of them that are not in holes: of any file, and of one for each packed byte.
const MAX_WRITTEN: u64 = 64 << 30;
const ALWAYS_WRITTEN: u64 = 64 << 20;
const WRITTEN_PER_BYTE: u64 = 1000;
/// Bytes that a report may unpack to, however few they were.
const UNSUSPICIOUS: usize = 4 << 20;
/// What a window may take: twice that of `xz -9 --extreme`, and what zstd uses without being asked for more.
const MAX_WINDOW: u64 = 128 << 20;
/// Zeros are left out in pieces of this size.
const PIECE: usize = 64 << 10;

/// How often a report may have been packed: `logs.zst.gz` is nobody's mistake, more is.
const MAX_LAYERS: usize = 3;

/// Bytes that were packed, unpacked, and what is to be told about that.
#[derive(Debug)]
pub struct Unpacked<D = FileData> {
    /// The bytes.
    pub data: D,
    /// That the packed bytes are broken or cut off, so that these are not all.
    pub note: Option<String>,
}

/// Opens a capture's file, unpacking it where it is packed.
///
/// # Errors
/// Where it cannot be opened, is packed in a way that is not read, or unpacks to nothing or to more than any capture has.
pub fn unpack_file(path: &Path) -> Result<Unpacked, String> {
    let data = FileData::map(path).map_err(|error| error.to_string())?;
    let Some((packing, mut bytes)) = unpacker(&data) else { return Ok(Unpacked { data, note: None }) };
    let failed = |why: String| format!("{}: a file packed by {packing}: {why}", path.display());
    let Some(reader) = &mut bytes else {
        return Err(failed(format!("it is not read, unpack it first ({packing} -d)")));
    };
    let mut room = Room::new().map_err(&failed)?;
    let most = (data.len() as u64).saturating_mul(WRITTEN_PER_BYTE).clamp(ALWAYS_WRITTEN, MAX_WRITTEN);
    let broken = room.fill(reader, most).map_err(&failed)?;
    drop(bytes);
    if let (Some(why), 0) = (&broken, room.size) {
        return Err(failed(why.clone()));
    }
    let note = broken.map(|why| {
        format!(
            "the file, packed by {packing}, is broken or cut off ({why}); its first {} bytes are read",
            room.size
        )
    });
    let data = room.into_data().map_err(&failed)?;
    Ok(Unpacked { data, note })
}

/// Unpacks bytes into memory where they are packed, and gives them back where they are not. What is broken or cut off is
/// unpacked as far as it goes.
///
/// # Errors
/// Where they are packed in a way that is not read, or unpack to nothing, or to more than `max_bytes`, or to more than a
/// thousand bytes for each (a few megabytes excepted).
pub fn unpack(bytes: Vec<u8>, max_bytes: usize) -> Result<Unpacked<Vec<u8>>, String> {
    let mut unpacked = Unpacked { data: bytes, note: None };
    for _ in 0..MAX_LAYERS {
        let Some(layer) = unpack_once(&unpacked.data, max_bytes)? else { return Ok(unpacked) };
        unpacked = Unpacked { data: layer.data, note: layer.note.or(unpacked.note) };
    }
    if unpacker(&unpacked.data).is_some() {
        return Err(format!("packed more than {MAX_LAYERS} times"));
    }
    Ok(unpacked)
}

/// `None` for bytes that are not packed.
fn unpack_once(bytes: &[u8], max_bytes: usize) -> Result<Option<Unpacked<Vec<u8>>>, String> {
    let Some((packing, reader)) = unpacker(bytes) else { return Ok(None) };
    let failed = |why: String| format!("packed by {packing}: {why}");
    let Some(reader) = reader else {
        return Err(failed(format!("it is not read, unpack it first ({packing} -d)")));
    };
    let per_byte = usize::try_from(WRITTEN_PER_BYTE).unwrap_or(usize::MAX);
    let most = bytes.len().saturating_mul(per_byte).max(UNSUSPICIOUS).min(max_bytes);
    let mut data = Vec::new();
    let broken = reader.take(most as u64 + 1).read_to_end(&mut data).err();
    if data.len() > most {
        return Err(failed(format!("it unpacks to more than {most} bytes")));
    }
    let note = match broken {
        Some(why) if data.is_empty() => return Err(failed(why.to_string())),
        Some(why) => Some(format!(
            "the file, packed by {packing}, is broken or cut off ({why}); its first {} bytes are read",
            data.len()
        )),
        None => None,
    };
    Ok(Some(Unpacked { data, note }))
}

/// The first bytes of a file as they are once it is unpacked, `count` of them or all that there are: enough to tell what it is
/// without unpacking it.
///
/// # Errors
/// Where it cannot be opened or is no regular file.
pub fn unpacked_head(path: &Path, count: usize) -> Result<Vec<u8>, String> {
    let data = FileData::map(path).map_err(|error| error.to_string())?;
    let mut head = Vec::new();
    match unpacker(&data) {
        Some((_, Some(reader))) => {
            // What is broken shows when the file is read.
            let _ = reader.take(count as u64).read_to_end(&mut head);
        }
        _ => head.extend_from_slice(data.get(..count).unwrap_or(&data)),
    }
    Ok(head)
}

type Reader<'d> = Box<dyn Read + 'd>;

/// What packed these bytes, and what unpacks them, if that is at hand; `None` for bytes that are not packed.
fn unpacker(data: &[u8]) -> Option<(&'static str, Option<Reader<'_>>)> {
    let window = u32::try_from(MAX_WINDOW >> 10).unwrap_or(u32::MAX);
    Some(match data {
        [0x1f, 0x8b, ..] => ("gzip", Some(Box::new(MultiGzDecoder::new(data)))),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            ("xz", Some(Box::new(XzReader::new_mem_limit(data, true, window))))
        }
        _ if zstd::is_zstd(data) => ("zstd", Some(Box::new(zstd::Frames::new(data, MAX_WINDOW)))),
        _ if lz4::is_lz4(data) => ("lz4", Some(Box::new(lz4::Frames::new(data)))),
        [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', ..] => ("bzip2", None),
        _ => return None,
    })
}

/// A file without a name.
struct Room {
    file: File,
    path: PathBuf,
    size: u64,
}

impl Room {
    fn new() -> Result<Self, String> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let directory = std::env::temp_dir();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        // What a process had in its memory is nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        for _ in 0..1000 {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("backtrail-{}-{number}", std::process::id()));
            match options.open(&path) {
                Ok(file) => return Ok(Self { file, path, size: 0 }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(format!("cannot make a temporary file in {}: {error}", directory.display()));
                }
            }
        }
        Err(format!("cannot make a temporary file in {}", directory.display()))
    }

    /// Writes all that can be read; what stopped the reading before its end is returned.
    fn fill(&mut self, from: &mut dyn Read, most: u64) -> Result<Option<String>, String> {
        let mut piece = vec![0; PIECE];
        let mut written = 0_u64;
        let broken = loop {
            let (filled, broken) = read_piece(from, &mut piece);
            let bytes = piece.get(..filled).unwrap_or_default();
            if bytes.iter().any(|byte| *byte != 0) {
                written += filled as u64;
                self.put(bytes)?;
            }
            self.size += filled as u64;
            if self.size > MAX_UNPACKED || written > most {
                let limit = if written > most { most } else { MAX_UNPACKED };
                return Err(format!("it unpacks to more than {limit} bytes"));
            }
            if broken.is_some() || filled < PIECE {
                break broken;
            }
        };
        self.file.set_len(self.size).map_err(|error| self.cannot_write(&error))?;
        Ok(broken)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), String> {
        let put = self.file.seek(SeekFrom::Start(self.size)).and_then(|_| self.file.write_all(bytes));
        put.map_err(|error| self.cannot_write(&error))
    }

    fn cannot_write(&self, error: &io::Error) -> String {
        let directory = self.path.parent().unwrap_or(&self.path).display();
        format!("cannot unpack it into {directory} (TMPDIR names another place): {error}")
    }

    fn into_data(self) -> Result<FileData, String> {
        FileData::map(&self.path).map_err(|error| error.to_string())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // The mapping keeps the bytes. A name that stays behind is nothing to fail for.
        let _ = fs::remove_file(&self.path);
    }
}

/// Fills the piece; less than that is the end, or what could be read before an error.
fn read_piece(from: &mut dyn Read, piece: &mut [u8]) -> (usize, Option<String>) {
    let mut filled = 0;
    while let Some(rest) = piece.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(error.to_string())),
        }
    }
    (filled, None)
}

#[cfg(test)]
mod tests;
