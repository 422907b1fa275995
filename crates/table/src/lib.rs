//! The symbol table file of backtrail, `.btsym`: what debug info and symbol tables know of one image, packed once and
//! then mapped and asked without any parsing.
//!
//! [`Builder`] takes what is known, from many threads, and writes a table; [`Table`] reads one. A lookup touches two or
//! three cache lines of the index, a few of one short chunk of a body, and two for each name; it allocates nothing. A table
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
//! | 1 | names | names by number |
//! | 2 | bodies | chunks: what is known of some addresses |
//! | 3 | index | from an address to its chunk |
//! | 4 | files | source files by number |
//! | 5 | regions | the image's sections |
//! | 6 | facts | small things, read when the file is opened |
//!
//! A *packed array* of *n* numbers of *w* bytes (1 to 8) is *n·w* bytes, then 7 zeros, so that eight bytes can be read
//! at the place of each. A packed array of rows has several numbers in each row, each of its own number of bytes.
//!
//! ## Facts
//!
//! In this order: the name of the source file (uleb size, bytes); counts (uleb number of them, then as many ulebs:
//! functions, ranges, inlined calls, rows, symbols, bytes of bodies for calls; later versions may append more); what was
//! left out (uleb number, then for each a byte with the [`DropReason`] and a uleb count); languages (uleb number, then
//! as many ulebs: `DW_LANG` codes).
//!
//! ## Index
//!
//! | at | bytes | |
//! | --- | --- | --- |
//! | 0 | 1 | *a*: bytes of an address |
//! | 1 | 1 | *p*: bytes of a place |
//! | 2 | 1 | *b*: bytes of a bucket |
//! | 3 | 1 | *h*: shift |
//! | 4 | 4 | 0 |
//! | 8 | 8 | number of chunks |
//! | 16 | 8 | base: the first chunk's address |
//! | 24 | 8 | number of buckets plus one |
//!
//! A packed array of rows holds for each chunk, by rising address: its address counted from the base (*a* bytes), and
//! its place in the bodies (*p* bytes).
//!
//! Buckets save most of the search: an address counted from the base and shifted right by *h* is the number of its
//! bucket (the last one, where it is past that). A second packed array holds, for each bucket and once more for the end,
//! how many chunks start before the bucket (*b* bytes each). The last chunk that starts at or below an address is one
//! of its bucket, or else the one before these.
//!
//! The chunk of an address is the last one that starts at or below it, if the chunk is long enough.
//!
//! ## Bodies
//!
//! Behind the last chunk stand 8 zeros. Numbers in chunks have as many bytes as two bits tell, which are the lowest ones
//! unless told otherwise: *doubling* is 1, 2, 4 or 8 bytes for 0, 1, 2 or 3; *counted* is 1, 2, 3 or 4; *short* is
//! 0, 1, 2 or 4; *long* is 0, 2, 4 or 8. A number of no bytes is 0.
//!
//! A chunk starts with a byte of flags: in bits 0 and 1 its kind (0 a function, 1 lines without a function, 2 a symbol).
//! Bits 5 and 6 are the bytes of a reference (*counted*). A byte of widths follows. Then come, each only where the
//! condition holds:
//!
//! | what | coded as | where |
//! | --- | --- | --- |
//! | bytes of code that the chunk is for | *doubling* by bits 0 and 1 of the widths | always |
//! | number of the name plus one, 0 for none | *counted* by bits 2 and 3 | always |
//! | bytes from the start of the piece, or of the symbol that names it, to the chunk | *long* by bits 4 and 5 | always |
//! | number of steps, 1 to 64 | byte | kinds 0 and 1 |
//! | number of far places | byte | kinds 0 and 1 |
//! | widths of far places | byte | kinds 0 and 1 |
//! | the function's other pieces: bytes of this list (uleb), then what each one's address is above the chunk's | ulebs | flag 16 |
//! | for each step but the first: its address above the chunk's | *doubling* by bits 6 and 7 of the widths | kinds 0 and 1 |
//! | for each step: its call, its line, its column | a reference and two bytes | kinds 0 and 1 |
//! | far places: file, line and column of each | *counted* by bits 0 and 1, 2 and 3, 4 and 5 of their widths | kinds 0 and 1 |
//! | calls | see below | kinds 0 and 1 |
//!
//! A function has one piece for each of its address ranges, a piece one chunk or several. Flag 4: the chunk goes on where
//! the one before in the index ended, in the same piece. Flag 8: it starts a piece that is not its function's first.
//! A chunk with neither starts a function, and lists the other pieces (flag 16).
//!
//! A step holds from its address to that of the next one; the first starts with the chunk. Its call is the innermost one
//! that is open. A reference to a call is where the call is told, in bytes behind the start of the calls, plus one; 0
//! stands for no call.
//!
//! The *home* of a name is a file and a line, told with the name; without a name it is no file and line 0. A step's file
//! is that of the home of its call's name, or of the function's where no call is open; its line is the home's line plus
//! the step's. Where the step's line is 255 the place is a far one instead, whose number the step has in the place of the
//! column: number of the file plus one (0 for none), line and column.
//!
//! A call is a byte of widths; the reference to the call around it, which is told before it; the number of its name plus
//! one (*counted* by bits 0 and 1); its line counted from that of the caller's home, in 32 bits that wrap around
//! (*counted* by bits 2 and 3, *signed*); its column (*short* by bits 4 and 5); the number of its file plus one (*short*
//! by bits 6 and 7; where it has no bytes, the file is that of the caller's home). At most 255 calls are open at a time.
//! A chunk tells all calls that it needs. Calls of a function with the same name, caller and place are the same call.
//!
//! ### An example
//!
//! `f`, whose home is line 11 of `a.c`, starts at 0x1000 and has 12 bytes; its name has number 0. In the four bytes from
//! 0x1004 on, `g` is inlined in line 12, column 5. `g` has number 1, its home is line 3 of `a.c`. Line 11 starts at 0x1000,
//! line 3 of `g`, column 1, at 0x1004, line 13 at 0x1008, all in `a.c`. The chunk:
//!
//! | bytes | |
//! | --- | --- |
//! | `00 00` | a function, references of one byte; all numbers of the head have the fewest bytes |
//! | `0c 01` | 12 bytes of code; number 0 plus one; no bytes for the distance from the start of the piece, which is 0 |
//! | `03 00 00` | three steps, no far places |
//! | `04 08` | the second step starts at 0x1004, the third at 0x1008 |
//! | `00 00 00` | no call; line 11 plus 0; column 0 |
//! | `01 00 01` | the call that is told first; line 3 plus 0; column 1 |
//! | `00 02 00` | no call; line 11 plus 2; column 0 |
//! | `10 00 02 02 05` | a column of one byte; called by the function; number 1 plus one; one line below 11; column 5 |
//!
//! A lookup of 0x1005 finds the second step: `g` at `a.c:3:1`, called by `f` at `a.c:12:5`.
//!
//! ## Names
//!
//! Three bytes *p*, *f*, *l*, five zeros, the number of names (8 bytes), a packed array with a row for each name and one
//! more, the texts. A row: flags (1 byte), the place of the name's texts (*p* bytes), the name's home: number of the file
//! plus one, line (*f* and *l* bytes), the place where most functions of that name start. The texts end where those of the
//! next row start. The lowest two bits of the flags: 1: there is a linkage name; 2: there is a readable one. The upper six
//! are the index of the language in the facts (63: none). The texts are the linkage name, then the readable name, as they
//! are; where there are both, the bytes of the first one (uleb) stand before it. No name is longer than 2^20 bytes.
//!
//! Common names have low numbers.
//!
//! ## Files
//!
//! A byte *w*, seven zeros, the number of files (8 bytes), a packed array with the place of each file's text (*w* bytes),
//! the texts. A text: bytes of the path (uleb), bytes of its directory with the last separator (uleb), the path as debug
//! info states it.
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
mod packed;
mod read;
mod stats;
mod types;

pub use build::{Batch, Builder};
pub use error::{Error, ErrorKind};
pub use read::{
    File, Frame, Frames, Function, FunctionAt, Functions, Inline, Lookup, LookupMany, Row, Symbol, Symbols,
    Table, Text,
};
pub use stats::{Stats, Summary};
pub use types::{
    CallSite, DropReason, FileId, FunctionHead, Header, Language, NameId, SourceKind, StringId, SymbolPiece,
};
