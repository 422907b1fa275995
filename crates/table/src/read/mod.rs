//! Reading a table.

mod answer;
mod check;
mod chunk;
mod functions;
mod index;
mod many;
mod names;
mod place;
mod regions;
mod text;

use crate::body;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Entry, Facts, HEADER_SIZE, SectionKind, read_header};
use crate::stats::Stats;
use crate::types::{DropReason, Header};
pub use answer::{Frame, Frames, FunctionAt, Lookup, Symbol};
use backtrail_core::{AddrRange, Reason, Svma};
use chunk::Chunk;
pub use functions::{Function, Functions, Inline, Row, Symbols};
use index::{ChunkEntry, Index};
pub use many::LookupMany;
use names::{Files, Names};
use regions::Regions;
pub use text::{File, Text};

/// A table in memory: mapped, as a rule. Opening reads the header, the directory of sections and a few small facts; a
/// lookup reads what it needs and allocates nothing.
#[derive(Clone, Debug)]
pub struct Table<'d> {
    data: &'d [u8],
    header: Header,
    entries: Vec<Entry>,
    facts: Facts,
    bodies: &'d [u8],
    index: Index<'d>,
    names: Names<'d>,
    files: Files<'d>,
    regions: Regions<'d>,
}

impl<'d> Table<'d> {
    /// Opens a table.
    ///
    /// # Errors
    /// When the bytes are no table, one of another version, or not all there. What the sections hold is looked at by
    /// [`check`](Self::check) alone; lookups in a broken table know less, and that is all.
    pub fn open(data: &'d [u8]) -> Result<Self> {
        let (mut header, entries) = read_header(data)?;
        let section = |kind: SectionKind| {
            let entry = entries.iter().find(|entry| entry.kind == kind as u32);
            let missing = || {
                Error::malformed(HEADER_SIZE as u64, format!("expected a section of kind {}", kind as u32))
            };
            let entry = entry.ok_or_else(missing)?;
            let broken =
                Error::malformed(entry.offset, format!("expected the start of the section {}", kind.name()));
            Ok((entry, entry.bytes(data).unwrap_or_default(), broken))
        };
        let (entry, bytes, broken) = section(SectionKind::Facts)?;
        if crc32fast::hash(bytes) != entry.checksum {
            return Err(Error::new(
                ErrorKind::Checksum,
                entry.offset,
                "expected the checksum of the section facts",
            ));
        }
        let facts = Facts::read(bytes).ok_or(broken)?;
        header.name = String::from_utf8_lossy(&facts.name).into_owned();
        let (_, bodies, _) = section(SectionKind::Bodies)?;
        let (_, bytes, broken) = section(SectionKind::Index)?;
        let index = Index::read(bytes).ok_or(broken)?;
        let (_, bytes, broken) = section(SectionKind::Names)?;
        let names = Names::read(bytes).ok_or(broken)?;
        let (_, bytes, broken) = section(SectionKind::Files)?;
        let files = Files::read(bytes).ok_or(broken)?;
        let (_, bytes, _) = section(SectionKind::Regions)?;
        let regions = Regions::new(bytes);
        Ok(Self { data, header, entries, facts, bodies, index, names, files, regions })
    }

    /// What the table says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What is known of an address. Return addresses have to be looked up at minus one, and without code bits.
    #[inline]
    pub fn lookup(&self, address: Svma) -> Lookup<'_> {
        let address = address.get();
        self.lookup_in(address, self.index.find(address).map(|(_, entry)| entry))
    }

    #[inline]
    fn lookup_in(&self, address: u64, entry: Option<ChunkEntry>) -> Lookup<'_> {
        let Some(entry) = entry else { return self.unknown(address) };
        let Some(chunk) = Chunk::read(self.bodies, entry) else { return Lookup::None(Reason::Unreadable) };
        let Some(offset) = address.checked_sub(chunk.start).filter(|offset| *offset < chunk.size) else {
            return self.unknown(address);
        };
        if chunk.flags & body::KIND == body::SYMBOL {
            return self.symbol(&chunk).map_or(Lookup::None(Reason::Unreadable), Lookup::Symbol);
        }
        FunctionAt::at(self, chunk, offset).map_or(Lookup::None(Reason::Unreadable), Lookup::Found)
    }

    fn unknown(&self, address: u64) -> Lookup<'_> {
        Lookup::None(self.regions.reason(address))
    }

    fn symbol(&self, chunk: &Chunk<'d>) -> Option<Symbol<'_>> {
        let name = self.names.get(chunk.name)?;
        let range = AddrRange::from_size(Svma::new(chunk.start), chunk.size);
        Some(Symbol { name: name.linkage_name, start: Svma::new(chunk.piece_start), range })
    }

    fn chunk(&self, entry: ChunkEntry) -> Option<Chunk<'d>> {
        Chunk::read(self.bodies, entry)
    }

    /// What was left out of the table, by reason.
    pub fn dropped(&self) -> &[(DropReason, u64)] {
        &self.facts.dropped
    }

    /// What the table holds, and what each section costs.
    pub fn stats(&self) -> Stats {
        let (names, files) = (self.names.len() as u64, self.files.len() as u64);
        Stats::new(&self.facts.counts, names, files, self.data.len() as u64, &self.entries)
    }
}
