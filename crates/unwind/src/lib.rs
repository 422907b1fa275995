//! Unwinding: from registers, stack bytes and an image's tables to frames, on x86, `x86_64`, arm and aarch64.
//!
//! ```
//! use backtrail_core::{AddrRange, Arch, Avma, Bias, Family, MemorySlice, Registers, Svma};
//! use backtrail_unwind::{PlacedModule, ModuleMap, Module, Options, Section, Sections, Walk};
//!
//! # let (eh_frame, text, stack) = ([0u8; 4], [0xccu8; 64], [0u8; 64]);
//! let sections = Sections {
//!     arch: Some(Arch::X86_64),
//!     eh_frame: Some(Section::new(Svma::new(0x9000), &eh_frame)),
//!     text: vec![Section::new(Svma::new(0x1000), &text)],
//!     ..Sections::default()
//! };
//! let module = Module::new(sections);
//! let range = AddrRange::from_size(Avma::new(0x7f00_0000_1000), 0x9000);
//! let bias = Bias::between(Avma::new(0x7f00_0000_1000), Svma::new(0x1000));
//! let mut images = [PlacedModule::new(range, bias, &module)];
//!
//! let mut registers = Registers::new(Family::X86_64);
//! registers.set(Family::X86_64.pc(), 0x7f00_0000_1010);
//! registers.set(Family::X86_64.sp(), 0x7ffe_0000_0000);
//! let memory = MemorySlice::new(Avma::new(0x7ffe_0000_0000), &stack);
//!
//! let mut walk = Walk::new(registers, &memory, ModuleMap::new(&mut images), Options::default());
//! for frame in walk.by_ref() {
//!     println!("{} ({})", frame.address.raw(), frame.trust);
//! }
//! println!("{}", walk.ended().unwrap());
//! ```
//!
//! # Who does what
//!
//! You give a thread's registers, its memory ([`ReadMemory`](backtrail_core::ReadMemory)) and for each image where it
//! lies and its sections, decompressed. This crate opens no file, knows no symbol and stops no thread. It answers with
//! frames, each with its [`Trust`](backtrail_core::Trust), and with why there is no further one: [`End`] where the
//! stack is complete, [`Failure`] where it is not known to be.
//!
//! # The parts
//!
//! - [`Sections`] to [`Module`]: one image's tables, an address in, a [`Row`] out. [`cfi`] is DWARF's `.eh_frame` and
//!   `.debug_frame`, [`exidx`] 32-bit ARM's, [`compact`] Apple's.
//! - [`Module::compile`] to [`Rules`]: the same, read once into rows of fixed size.
//! - [`ModuleMap`] and [`Walk`]: from frame to frame, tables first, then what else leads on. [`fold`] keeps the ends of
//!   stacks that are too deep to keep whole; a [`Cache`] makes walking the same code again cheap.
//! - For each architecture a directory with like-named files: what its prologues, calls, frame pointers and signal frames
//!   look like.
//!
//! # The order of methods
//!
//! 1. A signal's return code, known by its instructions at the return address itself.
//! 2. The tables: a language runtime's own ([`RuntimeTable`]), compact unwind, `.debug_frame`, `.eh_frame`, exidx. Where the frame is at an exact address (the first,
//!    and those that a signal interrupted) the instructions around it are followed too: up to the function's start or
//!    its return, where that leads through straight code. They overrule tables that describe bodies only, and DWARF only
//!    where the two cannot both be right.
//! 3. Without a table: the function at the entry point ends the stack. What a call leaves (the link register, or the top
//!    of the stack) leads out of a function that was just called, and out of a jump to nowhere. Then the frame pointer,
//!    then a scan of the stack; both only to addresses that follow a call instruction.
//!
//! After a table that led to memory that cannot be read, or nowhere further, nothing else is tried: a frame too many is
//! as bad as one too few.
//!
//! # Hostile input
//!
//! Any bytes are safe to give: nothing panics, reads outside of what was given, or runs without an end. A step takes
//! bounded time; a stack pointer must move outwards with each frame, save for the few cases in which it may not.
//!
//! # Signal safety
//!
//! Over images that are compiled ([`PlacedModule::compiled`]) walking allocates nothing and takes no lock. A test with an
//! allocator that ends the process holds it to that. [`Module`]s and compiling allocate.
//!
//! # Specifications
//!
//! DWARF 5, sections 2.5 and 6.4; Linux Standard Base Core 5.0, sections 10.5 and 10.6 (`.eh_frame`); EHABI32; the ABI
//! supplements of the four architectures; `mach-o/compact_unwind_encoding.h`. Where files differ from them, a comment
//! says so and where it was seen.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod aarch64;
mod arch;
mod arm;
pub mod cfi;
mod code;
pub mod compact;
mod execute;
pub mod exidx;
mod expression;
mod failure;
mod image;
mod module;
mod read;
mod row;
mod rules;
mod runtime;
mod sections;
mod walk;
mod x86;
mod x86_64;

pub use expression::ExpressionError;
pub use failure::Failure;
pub use image::{ModuleList, ModuleMap, PlacedModule};
pub use module::Module;
pub use row::{Cfa, CoveredRow, Expression, Malformed, Miss, Row, Rule};
pub use rules::{Rules, Size};
pub use runtime::{RuntimeFrame, RuntimeFunction, RuntimeTable};
pub use sections::{Section, Sections};
pub use walk::{
    Cache, End, Folded, Frame, FramePointers, Options, Recover, Repeat, Step, Walk, WalkEnd, fold,
};
