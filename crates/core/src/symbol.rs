//! What symbolizing answers.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// One function at an address: the one that the code belongs to, or one that was inlined there.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Function {
    /// The readable name; the linkage name where it cannot be made readable. Empty where debug info names none.
    pub name: String,
    /// The name that the linker sees.
    pub linkage_name: Option<String>,
    /// The source file as debug info states it: compilation directory, directory and name joined.
    pub file: Option<String>,
    /// The line, counted from 1. Compilers that state no line (0) leave it out.
    pub line: Option<u32>,
    /// The column, counted from 1.
    pub column: Option<u32>,
    /// Whether this function was inlined into the next one of the chain.
    pub inlined: bool,
}

/// A symbol table's answer: no lines, only the name of what lies there.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Symbol {
    /// The readable name.
    pub name: String,
    /// The name that the linker sees.
    pub linkage_name: Option<String>,
    /// Bytes from the symbol's start to the address.
    pub offset: u64,
}

/// What lies at an address.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SymbolInfo {
    /// The functions, innermost first: inlined ones, and last the one that the code belongs to. Empty without debug info
    /// for the address.
    pub functions: Vec<Function>,
    /// The symbol table's answer, where debug info had none.
    pub symbol: Option<Symbol>,
    /// Why there is neither.
    pub reason: Option<Reason>,
    /// Bytes from the start of the function that the code belongs to, to the address.
    pub function_offset: Option<u64>,
}

impl SymbolInfo {
    /// The answer for an address without a name.
    pub fn unknown(reason: Reason) -> Self {
        Self { reason: Some(reason), ..Self::default() }
    }

    /// Whether there is no name at all.
    pub fn is_unknown(&self) -> bool {
        self.functions.is_empty() && self.symbol.is_none()
    }
}

/// A function at an address, in borrowed texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FunctionRef<'a> {
    /// The readable name; empty where there is none.
    pub name: &'a str,
    /// The whole path of the source file.
    pub file: Option<&'a str>,
    /// The line, counted from 1.
    pub line: Option<u32>,
    /// The column, counted from 1.
    pub column: Option<u32>,
    /// Whether this function was inlined into the next one.
    pub inlined: bool,
}

/// What lies at an address, in borrowed texts: [`SymbolInfo`] for who shows it and forgets it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SymbolInfoRef<'a> {
    /// The functions, innermost first; empty without debug info for the address.
    pub functions: Vec<FunctionRef<'a>>,
    /// The symbol table's answer, where debug info had none.
    pub symbol: Option<&'a Symbol>,
    /// Why there is neither.
    pub reason: Option<Reason>,
}

impl SymbolInfoRef<'_> {
    /// Whether there is no name at all.
    pub fn is_unknown(&self) -> bool {
        self.functions.is_empty() && self.symbol.is_none()
    }
}

impl<'a> From<&'a SymbolInfo> for SymbolInfoRef<'a> {
    fn from(info: &'a SymbolInfo) -> Self {
        let function = |function: &'a Function| FunctionRef {
            name: &function.name,
            file: function.file.as_deref(),
            line: function.line,
            column: function.column,
            inlined: function.inlined,
        };
        Self {
            functions: info.functions.iter().map(function).collect(),
            symbol: info.symbol.as_ref(),
            reason: info.reason,
        }
    }
}

/// Why an address has no name. An answer, not an error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The address lies in no known image.
    NoImage,
    /// No file with the image's identity was found.
    MissingSymbols,
    /// A file of the same name was found, of another build.
    IdMismatch,
    /// The image states no identity to find its file by.
    NoId,
    /// The file was found and could not be read.
    Unreadable,
    /// The address lies outside of every section of the file.
    OutsideSections,
    /// The address lies in data, not code.
    NotCode,
    /// The file knows of a function here, and its name was stripped.
    Stripped,
    /// The file has symbols, and none of them covers the address.
    NoSymbol,
}

impl Reason {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoImage => "no-image",
            Self::MissingSymbols => "missing-symbols",
            Self::IdMismatch => "id-mismatch",
            Self::NoId => "no-id",
            Self::Unreadable => "unreadable",
            Self::OutsideSections => "outside-sections",
            Self::NotCode => "not-code",
            Self::Stripped => "stripped",
            Self::NoSymbol => "no-symbol",
        }
    }

    /// One sentence for people.
    pub fn explain(self) -> &'static str {
        match self {
            Self::NoImage => "the address lies in no image of the process",
            Self::MissingSymbols => "no file with the image's identity was found",
            Self::IdMismatch => "a file of that name was found, but of another build",
            Self::NoId => "the image states no identity to find its symbols by",
            Self::Unreadable => "the image's file was found but could not be read",
            Self::OutsideSections => "the address lies outside of every section of the file",
            Self::NotCode => "the address lies in data, not in code",
            Self::Stripped => "the function's name was stripped from the file",
            Self::NoSymbol => "no symbol of the file covers the address",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
