//! The words that writer and reader share.

use backtrail_core::{AddrRange, Arch, ImageId, Svma};

/// What a table says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The identity of the image.
    pub id: Option<ImageId>,
    /// The architecture of the image.
    pub arch: Arch,
    /// What the table was made from.
    pub source: SourceKind,
    /// Where the image's relative addresses count from.
    pub image_base: Svma,
    /// The name of the file that the table was made from, without directories; for people only.
    pub name: String,
}

impl Header {
    /// A header without identity and name, based at 0.
    pub fn new(arch: Arch, source: SourceKind) -> Self {
        Self { id: None, arch, source, image_base: Svma::new(0), name: String::new() }
    }

    /// Whether it was made from debug info, not from symbols alone.
    pub fn has_debug_info(&self) -> bool {
        !matches!(self.source, SourceKind::ElfSymbols | SourceKind::MachOSymbols | SourceKind::Unknown)
    }
}

/// What a table was made from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum SourceKind {
    /// Anything that this version has no word for.
    Unknown = 0,
    /// ELF with DWARF in itself, in a debug companion, in `.dwo` files or in a package of these.
    ElfDwarf = 1,
    /// A Mach-O file or dSYM bundle with DWARF, or the object files that a debug map names.
    MachODwarf = 2,
    /// ELF with symbols only.
    ElfSymbols = 3,
    /// Mach-O with symbols only.
    MachOSymbols = 4,
    /// A GSYM file.
    Gsym = 5,
    /// A Breakpad symbol file.
    Breakpad = 6,
}

/// A source language by its `DW_LANG` code (DWARF 5 section 7.12); 0 where none is stated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Language(pub u16);

/// A string that a [`Builder`](crate::Builder) keeps. Means nothing to another builder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StringId(pub(crate) u32);

/// A source file that a [`Builder`](crate::Builder) keeps. Means nothing to another builder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileId(pub(crate) u32);

/// What a function is called, by the number that a [`Builder`](crate::Builder) keeps it under. Means nothing to another
/// builder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct NameId(pub(crate) u32);

/// What a function is called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FunctionHead {
    /// The readable name. Left out where it can be made from the linkage name.
    pub name: Option<StringId>,
    /// The name that the linker sees.
    pub linkage_name: Option<StringId>,
    /// The language that it was written in.
    pub language: Language,
}

/// Where in its caller's source an inlined call stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CallSite {
    /// The file.
    pub file: Option<FileId>,
    /// The line, counted from 1; 0 where none is stated.
    pub line: u32,
    /// The column, counted from 1; 0 where none is stated.
    pub column: u32,
}

/// A piece of the address space that a symbol table knows something of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SymbolPiece {
    /// The addresses for which the symbol is the answer.
    pub range: AddrRange<Svma>,
    /// Where the symbol starts; not above the range's start.
    pub start: Svma,
    /// The name that the linker sees; `None` for a function whose name was stripped.
    pub name: Option<StringId>,
}

/// Why something of the input is not in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum DropReason {
    /// Anything that this version has no word for.
    Other = 0,
    /// Functions whose code the linker left out.
    DeadFunction = 1,
    /// Line sequences whose code the linker left out.
    DeadRows = 2,
    /// Functions of whose addresses all belong to other functions: the linker merged their code.
    MergedFunction = 3,
    /// Inlined calls without addresses.
    EmptyInline = 4,
    /// Inlined calls nested deeper than a table can say.
    DeepInline = 5,
    /// Units that could not be read to their ends.
    BrokenUnit = 6,
    /// Line programs that could not be read to their ends.
    BrokenLines = 7,
    /// Units whose other file (`.dwo`, `.dwp`, dwz) is missing.
    MissingFile = 8,
    /// What went past a limit.
    Limit = 9,
    /// Lines of addresses that another unit has a line for.
    MergedRows = 10,
    /// Names, paths or numbers that a table has no room for.
    TooLarge = 11,
}
