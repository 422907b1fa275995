//! One frame of a stack.

use backtrail_core::{Avma, FileOffset, FrameAddress, Function, Reason, Svma, Symbol, SymbolInfo, Trust};
use std::ops::Range;
use std::sync::Arc;

use crate::Owner;

/// One frame. First what the report says, then what symbolizing adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The number that the report gives it, plus one for each frame that its registers put before it. Inline rows share
    /// their machine frame's.
    pub index: u32,
    /// The code address, and how it is to be looked up; `None` where the report has none.
    pub address: Option<FrameAddress>,
    /// How it was found.
    pub trust: Trust,
    /// Position in [`Process::images`](crate::Process::images) of the image that it lies in.
    pub image: Option<usize>,
    /// The image's name as the frame states it.
    pub image_name: Option<String>,
    /// Bytes from the image's load address, where the report states it.
    pub image_offset: Option<u64>,
    /// The name that the report itself gives.
    pub reported: Option<ReportedSymbol>,
    /// Whether the report marks this row as inlined into the next.
    pub inlined: bool,
    /// Where the frame stands in the report's text, in bytes: a whole line without its line break, or a JSON
    /// object. `None` where it does not stand there.
    pub span: Option<Range<usize>>,
    /// The functions here, innermost first; filled by symbolizing.
    pub functions: Vec<Function>,
    /// A symbol table's answer, where debug info had none.
    pub symbol: Option<Symbol>,
    /// Why there is no name, where symbolizing found none.
    pub reason: Option<Reason>,
    /// Bytes from the start of the function that the code belongs to (the last of [`Frame::functions`]) to the
    /// address that the report states, also where that is a return address; where symbolizing knew it.
    pub function_offset: Option<u64>,
    /// The stated address of the frame's instruction; of a return address, that of the call before it. What Android's
    /// tools print as `pc`, the Thumb bit included. Only for stacks that were walked here, and for reports that state it.
    pub relative_pc: Option<Svma>,
    /// Where the instruction is in the image's file, where a report states that in the place of an address: what
    /// Android's tools print as `pc` up to Android 10.
    pub file_offset: Option<FileOffset>,
    /// The frame's stack pointer, where the report states it.
    pub stack_pointer: Option<Avma>,
    /// The language of a frame that has no machine code of its own, or whose report speaks of its source only.
    pub language: Option<Language>,
    /// What may have run here in the place of [`Frame::functions`]: further inline chains, each innermost first. Nothing
    /// tells which of them it was.
    pub alternatives: Vec<Vec<Function>>,
    /// Lines that the report has for this frame besides its own: `- locked <0x0123> (a java.lang.Object)`.
    pub annotations: Vec<String>,
    /// Whose code it is. Frames of one owner share it.
    pub owner: Option<Arc<Owner>>,
}

/// The language of a frame that is known by names instead of an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Language {
    /// Java, Kotlin and whatever else runs on a Java virtual machine or on Android's runtime.
    Java,
    /// Go, whose own traces speak of the source.
    Go,
    /// Python.
    Python,
    /// JavaScript, TypeScript included.
    JavaScript,
    /// C#, F# and whatever else runs on .NET.
    DotNet,
    /// Dart, Flutter's language.
    Dart,
    /// PHP.
    Php,
    /// Ruby.
    Ruby,
    /// Erlang, Elixir and whatever else runs on Erlang's virtual machine.
    Beam,
    /// OCaml.
    OCaml,
    /// Haskell.
    Haskell,
    /// Lua.
    Lua,
    /// Julia.
    Julia,
    /// Tcl.
    Tcl,
    /// Perl.
    Perl,
}

impl Language {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Java => "java",
            Self::Go => "go",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::DotNet => "dotnet",
            Self::Dart => "dart",
            Self::Php => "php",
            Self::Ruby => "ruby",
            Self::Beam => "beam",
            Self::OCaml => "ocaml",
            Self::Haskell => "haskell",
            Self::Lua => "lua",
            Self::Julia => "julia",
            Self::Tcl => "tcl",
            Self::Perl => "perl",
        }
    }
}

/// A name that a report states for a frame.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReportedSymbol {
    /// The name, as printed; possibly cut.
    pub name: String,
    /// Bytes from its start.
    pub offset: Option<u64>,
    /// The source file.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The column.
    pub column: Option<u32>,
}

/// Functions in which stacks begin, and whose return address may be their own first byte.
const STACK_BASES: [&str; 6] =
    ["start", "_start", "thread_start", "start_wqthread", "_pthread_start", "_dyld_start"];

impl Frame {
    /// A frame of which nothing is known but its number.
    pub fn new(index: u32) -> Self {
        Self {
            index,
            address: None,
            trust: Trust::Report,
            image: None,
            image_name: None,
            image_offset: None,
            reported: None,
            inlined: false,
            span: None,
            functions: Vec::new(),
            symbol: None,
            reason: None,
            function_offset: None,
            relative_pc: None,
            file_offset: None,
            stack_pointer: None,
            language: None,
            alternatives: Vec::new(),
            annotations: Vec::new(),
            owner: None,
        }
    }

    /// The readable names at this frame, innermost first: what symbolizing found, else what the report says.
    /// `<redacted>` is no name, and neither is [the function behind the caller](Self::follows).
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let reported = self.reported.as_ref().map(|symbol| symbol.name.as_str());
        let reported = reported.filter(|_| self.follows().is_none());
        let symbol = self.symbol.as_ref().map(|symbol| symbol.name.as_str());
        let fallback = if self.functions.is_empty() { symbol.or(reported) } else { None };
        let functions = self.functions.iter().map(|function| function.name.as_str());
        functions.chain(fallback).filter(|name| !name.is_empty() && *name != "<redacted>")
    }

    /// The function that begins right where this frame's call returns to. A compiler puts nothing behind a call that does
    /// not return (`abort`, `__assert_rtn`, `xpc_main`), so that where it is a function's last instruction, the return
    /// address is the next function's first byte, and a writer that looks up that address names the wrong one. Seen on
    /// watchOS: `service_connection_handler + 0` as the caller of `xpc_main`.
    pub fn follows(&self) -> Option<&str> {
        let symbol = self.reported.as_ref().filter(|symbol| symbol.offset == Some(0))?;
        let is_return = matches!(self.address, Some(FrameAddress::Return(_)));
        // Stacks begin in these; reporters that state return addresses less one write them so (PLCrashReporter).
        let is_base = STACK_BASES.contains(&symbol.name.as_str());
        let is_reported = self.functions.is_empty() && self.symbol.is_none() && !self.inlined;
        (is_return && is_reported && !is_base).then_some(symbol.name.as_str())
    }

    /// Takes over what lies at the frame's address. Offsets count to the address that the frame states; a return address
    /// was looked up one byte earlier.
    pub fn set_symbol_info(&mut self, info: SymbolInfo) {
        let is_return = matches!(self.address, Some(FrameAddress::Return(_)));
        let stated = |offset: u64| offset.saturating_add(u64::from(is_return));
        self.functions = info.functions;
        self.symbol = info.symbol.map(|symbol| Symbol { offset: stated(symbol.offset), ..symbol });
        self.reason = info.reason;
        self.function_offset = info.function_offset.map(stated);
    }

    /// Whether nothing is known of the frame's function.
    pub fn is_unnamed(&self) -> bool {
        self.names().next().is_none()
    }
}

/// What is found out of each frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Detail {
    /// Its address and image.
    Addresses,
    /// The function's name, by symbol tables alone.
    Names,
    /// Functions that were inlined, files and lines too.
    #[default]
    Lines,
}
