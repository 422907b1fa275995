//! What the output forms of other tools show beyond functions, files and lines.

use backtrail_core::{Svma, Symbol};
use backtrail_symbolize::{self as symbolize, SymbolRef};

/// What else is known of an address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Details {
    /// One for each of the functions at the address, innermost first.
    pub declarations: Vec<Declaration>,
    /// Which of several blocks of the same source line the address is in; 0 where there is only one.
    pub discriminator: u32,
    /// The symbol around the address and where it starts, also where debug info has its function.
    pub symbol: Option<(Symbol, Svma)>,
    /// The source file that the symbol table states for the symbol; without directories as a rule.
    pub symbol_source: Option<String>,
}

/// Where a function is declared, and where its code starts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Declaration {
    /// Where its code starts; `None` where debug info states several ranges instead.
    pub start: Option<Svma>,
    /// The file that declares it.
    pub file: Option<String>,
    /// The line that declares it, counted from 1.
    pub line: Option<u32>,
    /// Which of several calls on the same source line an inlined function stands for; 0 where there is only one.
    pub call_discriminator: u32,
}

impl Details {
    pub(crate) fn of(details: &symbolize::Details<'_>) -> Self {
        Self {
            declarations: details.declarations.iter().map(Declaration::of).collect(),
            discriminator: details.discriminator,
            symbol: details.symbol.as_ref().map(|symbol| (SymbolRef::to_owned(symbol), symbol.start())),
            symbol_source: details.symbol.as_ref().and_then(SymbolRef::source).map(str::to_owned),
        }
    }
}

impl Declaration {
    fn of(declaration: &symbolize::Declaration<'_>) -> Self {
        Self {
            start: declaration.start(),
            file: declaration.file().map(ToString::to_string),
            line: declaration.line(),
            call_discriminator: declaration.call_discriminator(),
        }
    }
}
