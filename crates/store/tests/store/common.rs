//! Small object files and zips for the tests.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use backtrail_core::ImageId;
use backtrail_store::{Index, Locator, NoProgress, Places, ScanOptions};
use zip::write::{SimpleFileOptions, ZipWriter};

pub(crate) const ARM64: u32 = 0x0100_000c;
pub(crate) const X86_64: u32 = 0x0100_0007;
pub(crate) const MH_EXECUTE: u32 = 2;
pub(crate) const MH_DSYM: u32 = 10;

pub(crate) fn uuid(n: u8) -> ImageId {
    ImageId::Uuid([n; 16])
}

pub(crate) fn build_id(n: u8) -> ImageId {
    ImageId::from_build_id(&[n; 20]).unwrap()
}

/// A dSYM's file: UUID of all `n`, and DWARF of `payload` bytes that are not all the same.
pub(crate) fn dsym(n: u8, payload: usize) -> Vec<u8> {
    macho(ARM64, MH_DSYM, Some(n), payload)
}

/// A 64-bit Mach-O file. A dSYM has a `__DWARF` segment, the others a `__TEXT` segment of the same size.
pub(crate) fn macho(cpu: u32, kind: u32, id: Option<u8>, payload: usize) -> Vec<u8> {
    let (segment, section) = if kind == MH_DSYM { ("__DWARF", "__debug_info") } else { ("__TEXT", "__text") };
    let commands = 72 + 80 + if id.is_some() { 24 } else { 0 };
    let start = 32 + commands;
    let mut out = Words::default();
    out.words(&[0xfeed_facf, cpu, 0, kind, 1 + u32::from(id.is_some()), commands, 0, 0]);
    if let Some(id) = id {
        out.words(&[0x1b, 24]).bytes(&[id; 16]);
    }
    out.words(&[0x19, 72 + 80]).name(segment, 16).longs(&[0x1_0000, payload as u64]);
    out.longs(&[u64::from(start), payload as u64]).words(&[7, 5, 1, 0]);
    out.name(section, 16)
        .name(segment, 16)
        .longs(&[0x1_0000, payload as u64])
        .words(&[start, 0, 0, 0, 0, 0, 0, 0]);
    out.0.extend(noise(payload));
    out.0
}

/// A fat file of these slices, each beginning at a page.
pub(crate) fn fat(slices: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut body = Vec::new();
    out.extend(0xcafe_babe_u32.to_be_bytes());
    out.extend((slices.len() as u32).to_be_bytes());
    for slice in slices {
        let offset = 4096 + (body.len() as u32).next_multiple_of(4096);
        body.resize(offset as usize - 4096, 0);
        body.extend(slice);
        let cpu = u32::from_le_bytes(slice[4..8].try_into().unwrap());
        for word in [cpu, 0, offset, slice.len() as u32, 12] {
            out.extend(word.to_be_bytes());
        }
    }
    out.resize(4096, 0);
    out.extend(body);
    out
}

/// A 64-bit ELF shared object with a build id of twenty `n`, `payload` bytes of `.debug_info` if `debug`, else of
/// `.text`, and its section headers at the end.
pub(crate) fn elf(n: u8, debug: bool, payload: usize) -> Vec<u8> {
    let names: &[u8] = b"\0.shstrtab\0.debug_info\0.text\0";
    let note = [&[4u32, 20, 3].map(u32::to_le_bytes).concat()[..], b"GNU\0", &[n; 20]].concat();
    let (note_at, payload_at) = (120u64, 120 + note.len() as u64);
    let names_at = payload_at + payload as u64;
    let headers_at = (names_at + names.len() as u64).next_multiple_of(8);
    let mut out = Words::default();
    out.bytes(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0").words(&[0x003e_0003, 1]);
    out.longs(&[0, 64, headers_at]).words(&[0, 0x0038_0040, 0x0040_0001, 0x0001_0003]);
    out.words(&[4, 4]).longs(&[note_at, note_at, note_at, note.len() as u64, note.len() as u64, 4]);
    out.bytes(&note);
    out.0.extend(noise(payload));
    out.bytes(names);
    out.0.resize(headers_at as usize, 0);
    out.0.resize(headers_at as usize + 64, 0);
    out.words(&[1, 3]).longs(&[0, 0, names_at, names.len() as u64, 0, 1, 0]);
    let (name, flags) = if debug { (11, 0) } else { (23, 6) };
    out.words(&[name, 1]).longs(&[flags, 0, payload_at, payload as u64, 0, 1, 0]);
    out.0
}

#[derive(Default)]
struct Words(Vec<u8>);

impl Words {
    fn words(&mut self, words: &[u32]) -> &mut Self {
        words.iter().for_each(|word| self.0.extend(word.to_le_bytes()));
        self
    }
    fn longs(&mut self, longs: &[u64]) -> &mut Self {
        longs.iter().for_each(|long| self.0.extend(long.to_le_bytes()));
        self
    }
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }
    fn name(&mut self, name: &str, size: usize) -> &mut Self {
        let end = self.0.len() + size;
        self.0.extend(name.bytes());
        self.0.resize(end, 0);
        self
    }
}

/// Bytes that DEFLATE makes about half as large.
pub(crate) fn noise(len: usize) -> impl Iterator<Item = u8> {
    let mut state = 0x9e37_79b9_u32;
    (0..len).map(move |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 28) as u8
    })
}

pub(crate) use zip::CompressionMethod::{Deflated, Stored};

/// A zip of these members.
pub(crate) fn zip(members: &[(&str, &[u8], zip::CompressionMethod)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes, method) in members {
        writer.start_file(*name, SimpleFileOptions::DEFAULT.compression_method(*method)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(crate) const DWARF_OF_APP: &str = "App.app.dSYM/Contents/Resources/DWARF/App";

pub(crate) fn scan(paths: &[impl AsRef<Path>]) -> Index {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.as_ref().to_owned()).collect();
    Index::scan(&paths, &ScanOptions::default(), &NoProgress)
}

pub(crate) fn scan_bytes(bytes: Vec<u8>) -> Index {
    Index::of_bytes(Path::new("in.zip"), bytes, &ScanOptions::default())
}

pub(crate) fn problems(index: &Index) -> Vec<String> {
    index.problems().iter().map(ToString::to_string).collect()
}

/// Where everything was found, without the directory that the test made.
pub(crate) fn places(index: &Index, root: &Path) -> Vec<String> {
    let root = format!("{}/", root.display());
    index.entries().iter().map(|entry| entry.location.to_string().replace(&root, "")).collect()
}

/// Looks in these places; kept for as long as the test runs.
pub(crate) fn locator_of(places: Places) -> Locator<'static> {
    Box::leak(Box::new(Index::default().with_places(places))).locator()
}
