//! Reading a GSYM file.

use super::bytes::Bytes;
use super::header::{self, Header};
use super::info::Info;
use super::inlines::{self, Inline};
use crate::error::{Error, ErrorKind, Result};
use crate::exchange::{self, Call, PlainAnswer, PlainFunction, PlainPath};
use backtrail_core::{ImageId, Svma};

/// A GSYM file in memory. Opening reads the header alone; a lookup reads one function.
#[derive(Clone, Debug)]
pub struct Gsym<'d> {
    data: &'d [u8],
    header: Header,
    address_offsets: &'d [u8],
    info_offsets: &'d [u8],
    files: &'d [u8],
    strings: &'d [u8],
}

/// Functions with one start address. LLVM writes one, or a few where ranges overlap.
const MAX_AT_ONE_ADDRESS: usize = 64;

/// Inlined calls around one address.
const MAX_CALLS: usize = 1024;

impl<'d> Gsym<'d> {
    /// Whether bytes begin as a GSYM file does.
    pub fn is_gsym(data: &[u8]) -> bool {
        matches!(data.get(..4), Some(b"MYSG" | b"GSYM"))
    }

    /// Opens a file.
    ///
    /// # Errors
    /// When the bytes are no GSYM of version 1, or not all there. What is inside is looked at by lookups alone, which
    /// know less where it is broken.
    pub fn open(data: &'d [u8]) -> Result<Self> {
        let header = Header::read(data)?;
        let count = u64::from(header.addresses);
        let size = u64::from(header.address_size);
        let mut bytes = Bytes::new(data, header::SIZE.next_multiple_of(size), header.is_big);
        let truncated = |at: u64, what: &'static str| move || Error::new(ErrorKind::Truncated, at, what);
        let missing = truncated(bytes.offset(), "expected the functions' addresses");
        let address_offsets = bytes.take(count * size).ok_or_else(missing)?;
        let mut bytes = Bytes::new(data, bytes.offset().next_multiple_of(4), header.is_big);
        let missing = truncated(bytes.offset(), "expected the functions' offsets");
        let info_offsets = bytes.take(count * 4).ok_or_else(missing)?;
        let missing = truncated(bytes.offset(), "expected the source files");
        let files = bytes.u32().and_then(|count| bytes.take(u64::from(count) * 8));
        let files = files.ok_or_else(missing)?;
        let mut bytes = Bytes::new(data, header.strings_offset.into(), header.is_big);
        let missing = truncated(bytes.offset(), "expected the strings");
        let strings = bytes.take(header.strings_size.into()).ok_or_else(missing)?;
        Ok(Self { data, header, address_offsets, info_offsets, files, strings })
    }

    /// How many bytes of a file's start [`peek`](Self::peek) reads.
    pub const START: usize = header::SIZE as usize;

    /// The identity that the start of a file states, as [`id`](Self::id).
    ///
    /// # Errors
    /// When these are not the first bytes of a GSYM of version 1.
    pub fn peek(start: &[u8]) -> Result<Option<ImageId>> {
        Header::read(start).map(|header| header.id())
    }

    /// The identity of the image. GSYM does not tell UUIDs from build ids; 16 bytes are taken for a UUID.
    pub fn id(&self) -> Option<ImageId> {
        self.header.id()
    }

    /// What addresses are stored as offsets from; the image base, as LLVM writes it.
    pub fn image_base(&self) -> Svma {
        Svma::new(self.header.base)
    }

    /// How many functions there are.
    pub fn len(&self) -> usize {
        self.header.addresses as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.header.addresses == 0
    }

    /// What is known of an address. Return addresses have to be looked up at minus one.
    pub fn lookup(&self, address: Svma) -> Option<PlainAnswer<'d>> {
        let info = self.info_around(address)?;
        let inlines = info.inlines().unwrap_or_default();
        let calls: Vec<_> = self.calls(&inlines, address);
        let calls: Vec<_> = calls.iter().collect();
        let function = (self.string(info.name), info.start);
        Some(exchange::answer(function, info.row(address), &calls, |file| self.file(file)))
    }

    /// The names of all functions at an address whose code the linker merged into one, without the one that
    /// [`lookup`](Self::lookup) gives.
    pub fn merged(&self, address: Svma) -> Vec<&'d [u8]> {
        let merged = self.info_around(address).and_then(|info| info.merged().ok()).unwrap_or_default();
        merged.iter().map(|info| self.string(info.name)).collect()
    }

    /// Every function, by address.
    pub fn functions(&self) -> GsymFunctions<'_, 'd> {
        // Functions may share their information; an honest file has each of them once.
        GsymFunctions { gsym: self, next: 0, budget: self.data.len() as u64 * 4 }
    }

    /// The path of a file that a row or call names.
    pub fn file(&self, number: u32) -> Option<PlainPath<'d>> {
        let mut bytes = Bytes::new(self.files, u64::from(number) * 8, self.header.is_big);
        let (directory, name) = (bytes.u32()?, bytes.u32()?);
        let path = PlainPath { directory: self.string(directory), name: self.string(name) };
        Some(path).filter(|path| !path.name.is_empty())
    }

    fn calls(&self, inlines: &[Inline], address: Svma) -> Vec<Call<'d>> {
        let mut calls = Vec::new();
        for inline in inlines.iter().filter(|inline| inline.depth > 0) {
            if inline.depth as usize == calls.len() + 1 && inline.contains(address) && calls.len() < MAX_CALLS
            {
                let file = Some(inline.call_file).filter(|file| *file != 0);
                calls.push(Call { name: self.string(inline.name), file, line: inline.call_line });
            }
        }
        calls
    }

    /// The function around an address. Of several with one start LLVM has the one it knows most of first.
    fn info_around(&self, address: Svma) -> Option<Info<'d>> {
        let offset = address.offset_from(self.image_base())?;
        let behind = self.partition_point(|start| start <= offset);
        let last = behind.checked_sub(1)?;
        let start = self.address_offset(last)?;
        let first = self.partition_point(|other| other < start);
        let candidates = (first..behind).take(MAX_AT_ONE_ADDRESS).filter_map(|index| self.info(index).ok());
        // What states no size reaches as far as there is nothing else.
        candidates.into_iter().find(|info| {
            // The list of a broken file may not be sorted.
            info.range().contains(address) || info.size == 0 && info.start <= address
        })
    }

    fn partition_point(&self, is_before: impl Fn(u64) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.address_offset(middle) {
                Some(offset) if is_before(offset) => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    fn address_offset(&self, index: usize) -> Option<u64> {
        let size = self.header.address_size;
        Bytes::new(self.address_offsets, index as u64 * u64::from(size), self.header.is_big).uint(size)
    }

    fn info(&self, index: usize) -> Result<Info<'d>> {
        let place = header::SIZE.next_multiple_of(self.header.address_size.into());
        let place = place + index as u64 * u64::from(self.header.address_size);
        let missing = || Error::malformed(place, "expected a function's address and offset");
        let start = self.address_offset(index).and_then(|offset| self.image_base().checked_add(offset));
        let start = start.ok_or_else(missing)?;
        let offset = Bytes::new(self.info_offsets, index as u64 * 4, self.header.is_big).u32();
        Info::read(Bytes::new(self.data, offset.ok_or_else(missing)?.into(), self.header.is_big), start)
    }

    /// A string by its offset; empty where there is none.
    fn string(&self, offset: u32) -> &'d [u8] {
        let tail = self.strings.get(offset as usize..).unwrap_or_default();
        tail.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// Every function of a GSYM file.
#[derive(Clone, Debug)]
pub struct GsymFunctions<'g, 'd> {
    gsym: &'g Gsym<'d>,
    next: usize,
    /// Bytes that may still be read.
    budget: u64,
}

impl<'d> GsymFunctions<'_, 'd> {
    fn read(&mut self, index: usize) -> Result<PlainFunction<'d>> {
        let gsym = self.gsym;
        let info = gsym.info(index)?;
        let rows = info.rows()?;
        let inlines = info.inlines()?;
        let name = gsym.string(info.name);
        let names = inlines.iter().map(|inline| gsym.string(inline.name).len() as u64).sum::<u64>();
        // Names may be shared as well, at a cost of their own.
        let cost = info.bytes + (name.len() as u64 + names) / 16 + 1;
        self.budget = self.budget.checked_sub(cost).ok_or_else(|| {
            Error::new(
                ErrorKind::LimitExceeded,
                header::SIZE,
                "expected functions that do not share their information",
            )
        })?;
        Ok(PlainFunction {
            name: name.into(),
            ranges: vec![info.range()],
            rows,
            inlines: inlines::plain(&inlines, |name| gsym.string(name)),
        })
    }
}

/// One broken function does not end the list; an exhausted budget does.
impl<'d> Iterator for GsymFunctions<'_, 'd> {
    type Item = Result<PlainFunction<'d>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.gsym.len() {
            return None;
        }
        let function = self.read(self.next);
        self.next += 1;
        if function.as_ref().is_err_and(|error| error.kind() == ErrorKind::LimitExceeded) {
            self.next = self.gsym.len();
        }
        Some(function)
    }
}
