//! What only the output forms of other tools show.

use crate::answer::SymbolRef;
use crate::dwarf::{Declared, FilePath, FoundDetails};
use backtrail_core::Svma;

/// What else is known of an address, beyond its [`Answer`](crate::Answer).
#[derive(Clone, Debug, Default)]
pub struct Details<'a> {
    /// One for each function of the answer, in its order.
    pub declarations: Vec<Declaration<'a>>,
    /// Which of several blocks of the same source line the address is in; 0 where there is only one.
    pub discriminator: u32,
    /// The symbol around the address, also where debug info has its function.
    pub symbol: Option<SymbolRef<'a>>,
}

/// Where a function is declared, and where its code starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Declaration<'a> {
    start: Option<Svma>,
    file: Option<FilePath<'a>>,
    line: u32,
    call_discriminator: u32,
}

impl<'a> Details<'a> {
    pub(crate) fn new(found: FoundDetails<'a>, symbol: Option<SymbolRef<'a>>) -> Self {
        let declarations = found.functions.into_iter().map(Declaration::new).collect();
        Self { declarations, discriminator: found.discriminator, symbol }
    }
}

impl<'a> Declaration<'a> {
    fn new(declared: Declared<'a>) -> Self {
        Self {
            start: declared.low_pc.map(Svma::new),
            file: declared.file,
            line: declared.line,
            call_discriminator: declared.call_discriminator,
        }
    }

    /// Where the function's code starts; `None` where debug info states several ranges instead.
    pub fn start(&self) -> Option<Svma> {
        self.start
    }

    /// The file that declares the function.
    pub fn file(&self) -> Option<&FilePath<'a>> {
        self.file.as_ref()
    }

    /// The line that declares the function, counted from 1.
    pub fn line(&self) -> Option<u32> {
        Some(self.line).filter(|line| *line != 0)
    }

    /// Which of several calls on the same source line this inlined function stands for; 0 where there is only one.
    pub fn call_discriminator(&self) -> u32 {
        self.call_discriminator
    }
}
