//! What a lookup answers.

use crate::dwarf::{FilePath, Frame};
use crate::request::FileRequest;
use crate::table::readable;
use backtrail_core::{Function, Reason, Svma, Symbol, SymbolInfo};
use backtrail_demangle::{Options, demangle};
use std::borrow::Cow;

/// What a lookup comes to.
#[derive(Debug)]
pub enum Step<'a> {
    /// The answer.
    Answer(Answer<'a>),
    /// Another file is needed first: give it to [`Symbolizer::provide`](crate::Symbolizer::provide), or say there that
    /// it is not to be had, and look up again.
    NeedFile(FileRequest),
}

/// What is known of one address. Borrows from the [`Symbolizer`](crate::Symbolizer): names are made readable and paths
/// are joined only when asked for.
#[derive(Clone, Debug, Default)]
pub struct Answer<'a> {
    /// The functions around the address, innermost first: inlined ones, and last the one that the code belongs to.
    pub functions: Vec<FunctionRef<'a>>,
    /// The symbol around the address, where there is no debug info for it.
    pub symbol: Option<SymbolRef<'a>>,
    /// Why there is neither.
    pub reason: Option<Reason>,
    /// Where the function around the address starts. For a function in several pieces: the piece with the address.
    pub function_start: Option<Svma>,
}

impl Answer<'_> {
    /// The same without borrowing, for the address that was looked up.
    pub fn to_symbol_info(&self, address: Svma) -> SymbolInfo {
        SymbolInfo {
            functions: self.functions.iter().map(FunctionRef::to_owned).collect(),
            symbol: self.symbol.as_ref().map(SymbolRef::to_owned),
            reason: self.reason,
            function_offset: self.function_start.and_then(|start| address.offset_from(start)),
        }
    }
}

/// One function of an inline chain.
#[derive(Clone, Debug, Default)]
pub struct FunctionRef<'a> {
    pub(crate) linkage_name: Option<Cow<'a, str>>,
    pub(crate) plain_name: Option<Cow<'a, str>>,
    /// The plain name with its scope, where debug info states no linkage name.
    pub(crate) qualified_name: Option<String>,
    pub(crate) file: Option<FilePath<'a>>,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) inlined: bool,
}

impl<'a> FunctionRef<'a> {
    pub(crate) fn of_frame(frame: Frame<'a>) -> Self {
        let text = |bytes: Option<&'a [u8]>| bytes.map(String::from_utf8_lossy);
        Self {
            linkage_name: text(frame.names.linkage).map(without_mark),
            plain_name: text(frame.names.plain),
            qualified_name: frame.names.qualified,
            file: frame.file,
            line: frame.line,
            column: frame.column,
            inlined: frame.inlined,
        }
    }

    /// The readable name; the linkage name where it cannot be made readable, empty where debug info names none.
    pub fn name(&self) -> Cow<'_, str> {
        let plain = self.qualified_name.as_deref().or(self.plain_name.as_deref());
        readable(self.linkage_name.as_deref(), plain)
    }

    /// The name that the linker sees. Debug info leaves it out where it is the plain name, as for C; so this is the
    /// plain name, too, for a function of C++ that was inlined and that the linker does not see at all.
    pub fn linkage_name(&self) -> Option<&str> {
        self.linkage_name.as_deref().or(self.plain_name.as_deref())
    }

    /// Whether there is a name for the linker besides the source's own.
    pub(crate) fn has_linkage_name(&self) -> bool {
        self.linkage_name.is_some()
    }

    /// The source file: of the instruction in the innermost function, of the call in the others.
    pub fn file(&self) -> Option<&FilePath<'a>> {
        self.file.as_ref()
    }

    /// The line in that file, counted from 1; `None` where the compiler states none (line 0).
    pub fn line(&self) -> Option<u32> {
        Some(self.line).filter(|line| *line != 0)
    }

    /// The column in that line, counted from 1.
    pub fn column(&self) -> Option<u32> {
        Some(self.column).filter(|column| *column != 0)
    }

    /// Whether this function was inlined into the next one of the chain.
    pub fn is_inlined(&self) -> bool {
        self.inlined
    }

    /// The same without borrowing, the name made readable.
    pub fn to_owned(&self) -> Function {
        Function {
            name: self.name().into_owned(),
            linkage_name: self.linkage_name().map(str::to_owned),
            file: self.file.map(|file| file.to_string()),
            line: self.line(),
            column: self.column(),
            inlined: self.inlined,
        }
    }
}

/// LLVM writes `\x01` before names that are to be taken as they are.
fn without_mark(name: Cow<'_, str>) -> Cow<'_, str> {
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.strip_prefix('\x01').unwrap_or(name)),
        Cow::Owned(name) => Cow::Owned(name.strip_prefix('\x01').map_or(name.clone(), str::to_owned)),
    }
}

/// A symbol of a symbol table.
#[derive(Clone, Copy, Debug)]
pub struct SymbolRef<'a> {
    /// As the table has it.
    pub(crate) linkage_name: &'a str,
    pub(crate) start: Svma,
    pub(crate) offset: u64,
    /// Mach-O puts an underscore before the names of C.
    pub(crate) has_underscore: bool,
    pub(crate) source: Option<&'a str>,
}

impl<'a> SymbolRef<'a> {
    /// The readable name; the linkage name where it cannot be made readable.
    pub fn name(&self) -> Cow<'a, str> {
        demangle(self.linkage_name(), &Options::default())
    }

    /// The name that the linker sees, as debug info, LLVM's tools and Apple's reports state it: without the underscore
    /// that Mach-O puts before every name of C.
    pub fn linkage_name(&self) -> &'a str {
        match self.linkage_name.strip_prefix('_') {
            Some(name) if self.has_underscore => name,
            _ => self.linkage_name,
        }
    }

    /// Where the symbol starts.
    pub fn start(&self) -> Svma {
        self.start
    }

    /// The source file that the symbol table states, for local symbols of ELF; without directories as a rule.
    pub fn source(&self) -> Option<&'a str> {
        self.source
    }

    /// Bytes from the symbol's start to the address.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The same without borrowing, the name made readable; the linkage name as debug info would have it, without
    /// Mach-O's underscore, so that both kinds of answer name a function alike.
    pub fn to_owned(&self) -> Symbol {
        Symbol {
            name: self.name().into_owned(),
            linkage_name: Some(self.linkage_name().to_owned()),
            offset: self.offset,
        }
    }
}
