//! The process's memory: what was saved, and behind it what its files still have.

use crate::live_memory::CachedMemory;
use backtrail_capture::{Mapping, Memory};
use backtrail_core::{AddrRange, Avma, FileOffset, ReadMemory, Unreadable};
use backtrail_store::FileData;

/// Saved memory, and the files that were mapped without being written to.
pub(crate) struct ProcessMemory<'s, 'd> {
    saved: &'s Memory<'d>,
    /// Ascending.
    files: Vec<FileBacked>,
    /// The process itself, if it runs.
    live: Option<CachedMemory>,
}

struct FileBacked {
    range: AddrRange<Avma>,
    /// The bytes that lay there.
    data: FileData,
}

impl<'s, 'd> ProcessMemory<'s, 'd> {
    pub(crate) fn new(saved: &'s Memory<'d>) -> Self {
        Self { saved, files: Vec::new(), live: None }
    }

    /// What is neither saved nor in a file is read from the process.
    pub(crate) fn set_live(&mut self, live: CachedMemory) {
        self.live = Some(live);
    }

    /// Adds a mapped range of `file`. Ranges that could be written to are left out: what lay there is not what the
    /// file says.
    pub(crate) fn add(&mut self, mapping: &Mapping, file: &FileData, file_start: FileOffset) {
        let offset = mapping.offset.offset_from(file_start).map(FileOffset::new);
        let data = offset.and_then(|offset| file.part(offset, mapping.range.size()));
        if let (false, Some(data)) = (mapping.writable, data) {
            self.files.push(FileBacked { range: mapping.range, data });
        }
    }

    /// To be called after the last [`add`](Self::add).
    pub(crate) fn sort(&mut self) {
        self.files.sort_by_key(|file| file.range.start());
    }

    fn read_file(&self, address: Avma, buf: &mut [u8]) -> Option<()> {
        let after = self.files.partition_point(|file| file.range.start() <= address);
        let file = self.files.get(after.checked_sub(1)?)?;
        let at = usize::try_from(address.offset_from(file.range.start())?).ok()?;
        buf.copy_from_slice(file.data.get(at..)?.get(..buf.len())?);
        Some(())
    }
}

/// Text up to its zero, and whether that was found among so many bytes. `None` where a byte of it cannot be read.
pub(crate) fn text_at(memory: &impl ReadMemory, at: Avma, most: usize) -> Option<(String, bool)> {
    let mut text = Vec::new();
    let mut next = at;
    let mut is_ended = false;
    while !is_ended && text.len() < most {
        let mut byte = [0];
        memory.read(next, &mut byte).ok()?;
        is_ended = byte == [0];
        if !is_ended {
            text.extend(byte);
            next = next.checked_add(1)?;
        }
    }
    Some((String::from_utf8_lossy(&text).into_owned(), is_ended))
}

/// A process's memory, with the process itself before its files: what a loader relocated and then protected is not as the file has it. Unwinding
/// wants constants and code, which files have at hand.
pub(crate) struct LiveFirst<'m, 's, 'd>(pub(crate) &'m ProcessMemory<'s, 'd>);

impl ReadMemory for LiveFirst<'_, '_, '_> {
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        let Self(memory) = self;
        let Some(live) = &memory.live else { return memory.read(address, buf) };
        memory.saved.read(address, buf).or_else(|_| live.read(address, buf))
    }
}

/// A stack first, and behind it the rest of its process.
pub(crate) struct StackFirst<'m> {
    start: u64,
    stack: &'m [u8],
    rest: &'m ProcessMemory<'m, 'm>,
}

impl<'m> StackFirst<'m> {
    /// The stack is what was saved from a stack pointer on.
    pub(crate) fn new(stack_pointer: Option<Avma>, rest: &'m ProcessMemory<'m, 'm>) -> Self {
        let start = stack_pointer.unwrap_or_default();
        Self { start: start.get(), stack: rest.saved.own_bytes_from(start).unwrap_or_default(), rest }
    }

    #[inline]
    fn word<const SIZE: usize>(&self, address: Avma) -> Option<[u8; SIZE]> {
        let at = usize::try_from(address.get().checked_sub(self.start)?).ok()?;
        self.stack.get(at..)?.first_chunk().copied()
    }
}

impl ReadMemory for StackFirst<'_> {
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        self.rest.read(address, buf)
    }

    #[inline]
    fn read_u32(&self, address: Avma) -> Result<u32, Unreadable> {
        self.word(address).map_or_else(|| self.rest.read_u32(address), |bytes| Ok(u32::from_le_bytes(bytes)))
    }

    #[inline]
    fn read_u64(&self, address: Avma) -> Result<u64, Unreadable> {
        self.word(address).map_or_else(|| self.rest.read_u64(address), |bytes| Ok(u64::from_le_bytes(bytes)))
    }
}

impl ReadMemory for ProcessMemory<'_, '_> {
    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        self.saved.read(address, buf).or_else(|unreadable| {
            let by_file = self.read_file(address, buf).ok_or(unreadable);
            by_file.or_else(|_| self.live.as_ref().ok_or(unreadable)?.read(address, buf))
        })
    }
}
