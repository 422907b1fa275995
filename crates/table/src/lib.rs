//! The symbol table file of backtrail, `.btsym`: what debug info and symbol tables know of one image, packed once and
//! then mapped and asked without any parsing.
//!
//! [`Builder`] takes what is known, from many threads, and writes a table; [`Table`] reads one. A lookup touches a few
//! cache lines of the index, one short chunk of a body, and one record for each name; it allocates nothing. A table
//! answers what the debug info answers: it holds functions with all their ranges, inlined calls with the places of
//! their calls, line rows with columns, names, languages, symbols where there is no debug info, and counts of what was
//! left out.
//!
//! This crate sees no object files; `backtrail-symbolize` converts them.
//!
//! # The format, version 1
//!
//! All numbers are little-endian, whatever the image's architecture. *uleb* is an unsigned LEB128 number as in DWARF (at
//! most 64 bits), *signed* is a uleb `u` that stands for `u / 2` where it is even and for `-(u + 1) / 2` where it is odd.
//! Addresses are SVMAs.
//!
//! ## Header, 160 bytes
//!
//! | at | bytes | |
//! | --- | --- | --- |
//! | 0 | 8 | magic: `89 42 54 53 59 4d 0d 0a` |
//! | 8 | 4 | version: 1. A reader refuses a version that it does not know |
//! | 12 | 4 | size of this header: 160 |
//! | 16 | 8 | size of the file |
//! | 24 | 8 | image base |
//! | 32 | 16 | architecture: its name as `lipo` has it (`x86_64`, `arm64`…), filled up with zeros |
//! | 48 | 1 | kind of identity: 0 none, 1 UUID, 2 GNU build id, 3 hash of code |
//! | 49 | 1 | bytes of the identity: 16 but for build ids |
//! | 50 | 1 | made from: 1 ELF with DWARF, 2 Mach-O with DWARF, 3 ELF symbols, 4 Mach-O symbols, 5 GSYM, 6 Breakpad |
//! | 51 | 1 | 0, reserved |
//! | 52 | 4 | number of sections |
//! | 56 | 64 | identity, filled up with zeros |
//! | 120 | 32 | 0, reserved |
//! | 152 | 4 | CRC-32 (that of zip) of the directory |
//! | 156 | 4 | CRC-32 of the 156 bytes before |
//!
//! ## Directory
//!
//! Behind the header, 32 bytes a section: kind (4 bytes), CRC-32 of its bytes (4), offset in the file (8), size (8),
//! reserved (8, zero). A reader passes over kinds that it does not know, and looks at reserved bytes only in the
//! checksum. Sections start at multiples of 8. Each of these is there once:
//!
//! | kind | section | |
//! | --- | --- | --- |
//! | 1 | bodies | chunks: what is known of some addresses |
//! | 2 | index | from an address to its chunk |
//! | 3 | names | names by number |
//! | 4 | dictionary | the common parts of names |
//! | 5 | files | source files by number |
//! | 6 | regions | the image's sections |
//! | 7 | facts | small things, read when the file is opened |
//!
//! A *packed array* of *n* numbers of *w* bytes (1 to 8) is *n·w* bytes, then 7 zeros, so that eight bytes can be read
//! at the place of each.
//!
//! ## Facts
//!
//! In this order: the name of the source file (uleb size, bytes); counts (uleb number of them, then as many ulebs:
//! functions, ranges, inlined calls, rows, symbols, bytes of bodies for calls; later versions may append more); what was
//! left out (uleb number, then for each a byte with the [`DropReason`] and a uleb count); languages (uleb number, then
//! as many ulebs: `DW_LANG` codes); opcodes (uleb number of at most 256, then four bytes each, see below).
//!
//! ## Index
//!
//! | at | bytes | |
//! | --- | --- | --- |
//! | 0 | 1 | *w*: bytes of an offset or a place |
//! | 1 | 1 | *b*: bytes of a bucket |
//! | 2 | 1 | *h*: shift |
//! | 3 | 5 | 0 |
//! | 8 | 8 | number of chunks |
//! | 16 | 8 | base: the first chunk's address |
//! | 24 | 8 | number of buckets plus one |
//!
//! Chunks come in groups of 8 by rising address. A packed array holds two numbers of *w* bytes for each group: its first
//! address counted from the base, and the place of its bytes behind both arrays. A group's bytes: the place of its first
//! chunk in the bodies (uleb); for each further chunk what its address is above that of the chunk before (uleb, not 0)
//! and how far its place in the bodies lies behind that one's (signed).
//!
//! Buckets save most of the search: an address counted from the base and shifted right by *h* is the number of its
//! bucket (the last one, where it is past that). A second packed array holds, for each bucket and once more for the end,
//! how many groups start before the bucket (*b* bytes each). The last group that starts at or below an address is one
//! of its bucket, or else the one before these.
//!
//! The chunk of an address is the last one that starts at or below it, if the chunk is long enough.
//!
//! ## Bodies
//!
//! A chunk starts with a byte: in the lowest two bits its kind (0 a function, 1 lines without a function, 2 a symbol),
//! and flags. Then come, each only where the condition holds:
//!
//! | what | coded as | where |
//! | --- | --- | --- |
//! | bytes of code that the chunk is for | uleb | always |
//! | number of the name plus one, 0 for none | uleb | kinds 0 and 2 |
//! | bytes from the start of the piece, or of the symbol, to the chunk | uleb | flag 4 or kind 2 |
//! | the function's other pieces: bytes of this list (uleb), then what each one's address is above the chunk's | ulebs | flag 16 |
//! | the calls that are open at the start: their number (uleb), then for each, outermost first, how many bytes before the chunk it was told | ulebs | flag 32 |
//! | opcodes | | kinds 0 and 1 |
//!
//! A function has one piece for each of its address ranges, a piece one chunk or several. Flag 4: the chunk goes on where
//! the one before in the index ended, in the same piece. Flag 8: it starts a piece that is not its function's first.
//! A chunk with neither starts a function, and lists the other pieces (flag 16).
//!
//! ### Opcodes
//!
//! Each table defines its opcodes, the ones that save it the most, in four bytes: kind, advance, line (signed byte),
//! column. An opcode in a chunk is one byte, an index of the definitions (one past them ends the chunk). Behind it: where
//! its advance is 255 a uleb that is the advance; for rows, where its line is -128 a signed number that is the line,
//! and where its column is 255 a uleb that is the column; then what the kind asks for.
//!
//! The state at the start of a chunk: the address of the chunk, the calls that are told as open, the *base* is the home
//! of the innermost one's name, or else of the function's. A location is told relative to the base until it is set:
//! file and column are the base's, the line is the base's plus what was added since the base was set. Whatever opens or
//! closes calls sets the base anew. An opcode first adds its advance to the address, then it does:
//!
//! | kind | does | asks for |
//! | --- | --- | --- |
//! | 0 | ends the chunk | |
//! | 1 | a row: adds to the line; sets the column, unless that is 254 | |
//! | 2 | opens a call that is told here; base: the home of its name | *call* |
//! | 3 | the same, with a file | *call*, uleb number of the file plus one |
//! | 4 | closes the innermost call; base: the place of that call | |
//! | 5 | closes several calls; base: the place of the outermost one of these | uleb number of them |
//! | 6 | opens a call that was told before; base: the home of its name | uleb bytes from that call's opcode to this one |
//! | 7 | sets the file | uleb number of the file plus one |
//! | 8 | there is no location: base: file, line and column 0 | |
//! | 9 | closes the innermost call, then as 2 | *call* |
//! | 10 | closes the innermost call, then as 3 | *call*, uleb file |
//! | 11 | closes the innermost call, then as 6 | uleb bytes |
//!
//! *call*: the number of its name plus one (uleb), its line counted from that of the caller's home (signed), its column
//! (uleb). Its file is that of the caller's home where none is told.
//!
//! What holds at an address is the state before the first opcode that goes past it. There are at most 255 calls open, and
//! at most 16384 opcodes in a chunk.
//!
//! ### An example
//!
//! `f`, whose home is `a.c:10:0`, starts at 0x1000 and has 12 bytes; its name has number 0. In the four bytes from 0x1004
//! on, `g` is inlined in line 12, column 5. `g` has number 1, its home is `a.c:3:1`. Line 11 starts at 0x1000, line 13
//! at 0x1008. The chunk is `00 0c 01`, then: a row with line +1 (advance 0, column 254); an opening with advance 4, whose
//! *call* is `02 04 05` (number 1 plus one; 12 - 10 = 2; 5); a closing with advance 4, after which the location is 12:5;
//! a row with advance 0, line +1; the end. A lookup of 0x1005 stops at the closing: one call is open, the location is the
//! home of `g`, `a.c:3:1`; its caller is `f` at `a.c:12:5`.
//!
//! ## Names
//!
//! A byte *w*, seven zeros, the number of names (8 bytes), a packed array with the place of each name's record and one
//! more that is the end (*w* bytes each), the records. A record: a byte with flags (1: there is a linkage name; 2: there
//! is a readable one) and, in the upper six bits, the index of the language in the facts (63: none); the home: number of
//! the file plus one, line, column (ulebs), the place where most functions of that name start; the linkage name; the
//! readable name. Where there are both, the bytes of the first one (uleb) stand before it.
//!
//! Common names have low numbers. Names are packed: a byte below 0x80 stands for itself; 0xff says that the byte behind
//! it stands for itself; any other says to copy from the dictionary: its lowest five bits are the number of bytes minus 4,
//! or 30, and then two bytes behind it are their number minus 34. The two bytes behind that, and the two bits above the
//! five as bits 16 and 17, are the place in the dictionary. No name is longer than 2^20 bytes.
//!
//! ## Files
//!
//! A byte *w*, seven zeros, the number of files (8 bytes), a packed array with two places for each file (*w* bytes each),
//! the texts. At the first place is the directory with its last separator, at the second the name: uleb size, bytes. One
//! behind the other they are the path as debug info states it.
//!
//! ## Regions
//!
//! 17 bytes each: start (8), end (8), 1 for code or 0. Sorted, none overlap. They tell why nothing is known of an
//! address; where there are none, nobody knows.
//!
//! ## History
//!
//! | version | |
//! | --- | --- |
//! | 1 | the first |
#![forbid(unsafe_code)]

mod body;
pub mod breakpad;
mod build;
mod bytes;
mod dump;
mod error;
pub mod exchange;
mod format;
pub mod gsym;
mod ops;
mod packed;
mod read;
mod stats;
mod text;
mod types;

pub use build::{Batch, Builder};
pub use error::{Error, ErrorKind};
pub use read::{
    File, Found, Frame, Frames, Function, Functions, Inline, Lookup, Row, Symbol, Symbols, Table, Text,
};
pub use stats::{Stats, Summary};
pub use types::{
    CallSite, DropReason, FileId, FunctionHead, Header, Language, NameId, SourceKind, StringId, SymbolPiece,
};
