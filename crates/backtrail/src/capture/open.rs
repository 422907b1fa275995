//! Opening an image of this process: its file, or what lies in memory where the file is another by now.

use crate::stacks::{InMemory, UnwindImage};
use backtrail_capture::Memory;
use backtrail_capture::local::{FAMILY, LoadedImage, OwnMemory};
use backtrail_core::{Arch, Avma, Family, ImageId, ReadMemory as _};
use backtrail_object::{Limits, Object};
use backtrail_store::FileData;
use backtrail_unwind::Rules;
use std::borrow::Cow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What leads on from an image's frames.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) rules: Option<Rules>,
    /// Kept only where copies of stacks are walked.
    pub(super) tables: Option<UnwindImage>,
}

impl Opened {
    pub(super) fn open(image: &LoadedImage, keep_tables: bool) -> Self {
        let tables = data(image).and_then(|(_, data)| UnwindImage::open(&[data]));
        let rules = tables.as_ref().map(|tables| tables.module().compile());
        Self { rules, tables: tables.filter(|_| keep_tables) }
    }
}

/// What an image's rules are kept under: its file, as exactly as it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Key {
    path: PathBuf,
    id: Option<ImageId>,
    file: Option<(u64, u64, i64, i64, u64)>,
}

pub(super) fn key(image: &LoadedImage) -> Key {
    let file = || {
        let data = std::fs::metadata(&image.path).ok()?;
        Some((data.dev(), data.ino(), data.mtime(), data.mtime_nsec(), data.size()))
    };
    let file = if image.id.is_none() { file() } else { None };
    Key { path: image.path.clone(), id: image.id, file }
}

/// The architecture of this process.
pub(super) fn arch() -> Arch {
    match FAMILY {
        Family::X86 => Arch::X86,
        Family::X86_64 => Arch::X86_64,
        Family::Arm => Arch::Arm,
        Family::Aarch64 => Arch::Arm64,
        Family::Other => Arch::Unknown,
        _ => Arch::Unknown,
    }
}

/// The bytes of an image's file, with a name for them; from memory where there is no file with its identity.
pub(super) fn data(image: &LoadedImage) -> Option<(String, FileData)> {
    let path = if image.is_program { Path::new("/proc/self/exe") } else { &image.path };
    let shown = image.path.display().to_string();
    let file = Some(path).filter(|path| path.is_absolute()).and_then(|path| FileData::map(path).ok());
    match file.filter(|file| is_the_same(file, image)) {
        Some(file) => Some((shown, file)),
        None => from_memory(image).map(|bytes| (shown, bytes)),
    }
}

fn is_the_same(file: &FileData, image: &LoadedImage) -> bool {
    let Ok(object) = Object::parse_with(file, &Limits::default()) else { return false };
    let same_id = image.id.is_none() || object.id() == image.id;
    same_id && object.arch().family() == FAMILY
}

/// Larger images are not copied out of memory.
const MOST: u64 = 512 << 20;
const PIECE: usize = 64 << 10;

fn from_memory(image: &LoadedImage) -> Option<FileData> {
    let memory = OwnMemory::without_stack();
    let size = usize::try_from(image.range.size()).ok().filter(|size| *size as u64 <= MOST)?;
    let mut bytes = vec![0; size];
    let mut at = image.range.start();
    for piece in bytes.chunks_mut(PIECE) {
        // Between segments nothing need be mapped, and what is not may begin with any page.
        if memory.read(at, piece).is_err() {
            by_pages(&memory, at, piece);
        }
        at = at.checked_add(piece.len() as u64)?;
    }
    let copy = Memory::new([(image.range.start(), Cow::Owned(bytes))]);
    let file = InMemory::new(&copy).image(image.range.start(), arch())?;
    Some(FileData::from(file))
}

fn by_pages(memory: &OwnMemory, mut at: Avma, piece: &mut [u8]) {
    const PAGE: usize = 4096;
    for page in piece.chunks_mut(PAGE) {
        let _ = memory.read(at, page);
        at = at.checked_add(page.len() as u64).unwrap_or(at);
    }
}
