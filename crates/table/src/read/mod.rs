//! Reading a table.

mod answer;
mod functions;

use crate::error::{Error, ErrorKind, Result};
use crate::stats::Stats;
use crate::types::{DropReason, Header};
pub use answer::{File, Found, Frame, Frames, Lookup, Symbol, Text};
use backtrail_core::{Reason, Svma};
pub use functions::{Function, Functions, Inline, Row, Symbols};

/// A table in memory: mapped, as a rule. Opening reads the header and the directory of sections alone; a lookup reads
/// what it needs and allocates nothing.
#[derive(Clone, Debug)]
pub struct Table<'d> {
    data: &'d [u8],
    header: Header,
}

impl<'d> Table<'d> {
    /// Opens a table.
    ///
    /// # Errors
    /// When the bytes are no table, one of another version, or not all there. What the sections hold is looked at by
    /// [`check`](Self::check) alone; lookups in a broken table know less, and that is all.
    pub fn open(data: &'d [u8]) -> Result<Self> {
        let _ = data;
        Err(Error::nowhere(ErrorKind::NotATable, "reading comes with the next step"))
    }

    /// What the table says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reads everything and compares the checksums.
    ///
    /// # Errors
    /// At the first byte that is wrong.
    pub fn check(&self) -> Result<()> {
        Ok(())
    }

    /// What is known of an address. Return addresses have to be looked up at minus one, and without code bits.
    pub fn lookup(&self, address: Svma) -> Lookup<'_> {
        let _ = (address, self.data);
        Lookup::None(Reason::NoSymbol)
    }

    /// Every function, and lines without functions, by their lowest addresses.
    pub fn functions(&self) -> Functions<'_> {
        Functions { table: self }
    }

    /// What is known from symbol tables alone, by address.
    pub fn symbols(&self) -> Symbols<'_> {
        Symbols { table: self }
    }

    /// What was left out of the table, by reason.
    pub fn dropped(&self) -> Vec<(DropReason, u64)> {
        Vec::new()
    }

    /// What the table holds, and what each section costs.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }
}
