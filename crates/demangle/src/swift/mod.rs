//! Swift names of all generations.
//!
//! | prefix | since | grammar |
//! | --- | --- | --- |
//! | `$s` | Swift 5 | [`parser`] |
//! | `$e` | Embedded Swift | [`parser`] |
//! | `$S` | Swift 4.2 | [`parser`] |
//! | `_T0` | Swift 4.0 | [`parser`], argument labels within the types |
//! | `@__swiftmacro_` | Swift 5.9, names of files | [`parser`] |
//! | `_T` | before; `_Tt` to this day, for Objective-C's run time | [`old`] |
//! | `async_Main` | the pieces of an asynchronous main program | [`parser`] |
//!
//! Both parsers make nodes in an [`Arena`]; the [`printer`] writes them.

mod accessor;
mod bound;
mod cursor;
mod function_type;
mod impl_function;
mod key_path;
mod kinds;
mod macro_role;
mod node;
mod old;
mod operators;
mod parser;
mod phrase;
mod printer;
mod punycode;
mod specialization;
mod standard;
mod style;
mod value_witness;

use crate::Options;
use crate::error::Failed;
use alloc::string::String;
use node::Arena;
use style::Style;

/// What the function that runs a program's top-level code is called.
const ASYNC_MAIN: &str = "async_Main";

/// The prefixes of the manglings since Swift 4.
const PREFIXES: [&str; 8] = ["$s", "_$s", "$S", "_$S", "$e", "_$e", "_T0", "@__swiftmacro_"];

/// The most bytes that a name within a name may become.
const MAX_NESTED_LEN: usize = 1 << 14;

/// Buffers that are kept from one name to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    arena: Arena,
    memory: parser::Memory,
}

/// Whether the name begins like a Swift name, in any generation. Those before Swift 4 begin with no more than `_T`.
pub(crate) fn is_mangled(name: &str) -> bool {
    let name = without_extra_underscore(name);
    prefix_len(name).is_some() || name.starts_with("_T")
}

/// Mach-O adds an underscore to every name. Those since Swift 4.2 are known with it.
fn without_extra_underscore(name: &str) -> &str {
    if name.starts_with("__") { name.get(1..).unwrap_or(name) } else { name }
}

/// How long the prefix is, if it is one of those since Swift 4.
fn prefix_len(name: &str) -> Option<usize> {
    let of_main = |name: &str| name.starts_with(ASYNC_MAIN);
    if let Some(prefix) = PREFIXES.iter().find(|&&prefix| name.starts_with(prefix)) {
        return Some(prefix.len());
    }
    if of_main(name) {
        return Some(ASYNC_MAIN.len());
    }
    name.strip_prefix('_').is_some_and(of_main).then_some(ASYNC_MAIN.len() + 1)
}

/// Writes the readable form of a Swift name to an empty text.
pub(crate) fn demangle(
    name: &str,
    options: &Options,
    scratch: &mut Scratch,
    out: &mut String,
) -> Result<(), Failed> {
    demangle_styled(name, Style::new(options), options.max_len, 0, scratch, out)
}

fn demangle_styled(
    name: &str,
    style: Style,
    max_len: usize,
    nesting: u32,
    scratch: &mut Scratch,
    out: &mut String,
) -> Result<(), Failed> {
    let stripped = without_extra_underscore(name);
    let offset = name.len() - stripped.len();
    let Scratch { arena, memory } = scratch;
    arena.start(stripped);
    let root = match prefix_len(stripped) {
        Some(start) => parser::parse(stripped, start, arena, memory),
        None => old::parse(stripped, 0, arena, memory.substitutions()),
    };
    match root {
        Ok(root) => printer::print(arena, root, style, max_len, nesting, out),
        Err(at) if arena.is_full() => Err(Failed::TooComplex(offset + at)),
        Err(at) => Err(Failed::Invalid(offset + at)),
    }
}

/// The readable form of a name that is part of another one, if it is a Swift name.
fn nested(name: &str, nesting: u32) -> Option<String> {
    if !is_mangled(name) {
        return None;
    }
    let mut text = String::new();
    let mut scratch = Scratch::default();
    demangle_styled(name, Style::nested(), MAX_NESTED_LEN, nesting, &mut scratch, &mut text).ok()?;
    Some(text)
}
