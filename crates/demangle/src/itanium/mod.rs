//! C++ names as the Itanium C++ ABI mangles them, with the extensions of clang and gcc.
//!
//! Written from the mangling chapter of the ABI: <https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling>. A name is
//! read into a flat table of [`node::Node`]s, then printed from it; each byte of the name is read once.

mod cursor;
mod dialect;
mod direct;
mod encoding;
mod expressions;
mod names;
mod node;
mod operators;
mod parser;
mod primary;
mod print;
mod table;
mod templates;
mod types;
mod unqualified;
mod unresolved;
mod words;

use crate::Options;
use crate::error::Failed;
use alloc::string::String;
use core::mem;
use dialect::Dialect;
use node::{Id, Node};
use parser::Parser;
use print::Printer;
use words::Word;

pub(crate) use parser::Scratch;

/// The longest name that is read; the longest one seen in a real binary has 60,000 bytes.
const MAX_NAME: usize = 1 << 24;

/// Writes the readable form of a name to the empty `out`, up to `options.max_len` bytes.
pub(crate) fn demangle(
    name: &str,
    options: &Options,
    scratch: &mut Scratch,
    out: &mut String,
) -> Result<(), Failed> {
    if name.len() > MAX_NAME {
        return Err(Failed::TooComplex(0));
    }
    if let Some((what, key)) = keyed(name) {
        return keyed_to(what, key, options, scratch, out);
    }
    let underscores = name.bytes().take_while(|&byte| byte == b'_').count();
    if underscores <= 2 && write_directly(name, underscores + 1, options, scratch, out) {
        return Ok(());
    }
    if let Some((function, variant)) = vector_variant(name) {
        return variant_to(function, variant, options, scratch, out);
    }
    let root = |parser: &mut Parser<'_, '_>| match underscores {
        1 | 2 => mangled_name(parser),
        3 | 4 => block_invocation(parser),
        _ => None,
    };
    read_and_print(name, underscores + 1, options, scratch, out, root)
}

/// Reads a name in the first dialect in which it can be read.
fn read_and_print(
    name: &str,
    at: usize,
    options: &Options,
    scratch: &mut Scratch,
    out: &mut String,
    read: impl Fn(&mut Parser<'_, '_>) -> Option<Id>,
) -> Result<(), Failed> {
    let mut first_failure = None;
    for dialect in Dialect::ALL.into_iter().filter(|dialect| dialect.suits(name)) {
        let mut parser = Parser::new(name, at, dialect, scratch);
        if let Some(root) = read(&mut parser) {
            let may_be_cyclic = parser.has_forwards;
            return Printer::new(name, &scratch.table, options, may_be_cyclic, &mut scratch.copies, out)
                .finish(root);
        }
        let failure = parser.failure();
        if matches!(failure, Failed::TooComplex(_)) {
            return Err(failure);
        }
        if !parser.shows_gcc {
            first_failure = first_failure.or(Some(failure));
        }
    }
    Err(first_failure.unwrap_or(Failed::Invalid(0)))
}

/// Writes the readable form of a type's name to the empty `out`.
pub(crate) fn demangle_type(
    name: &str,
    options: &Options,
    scratch: &mut Scratch,
    out: &mut String,
) -> Result<(), Failed> {
    if name.len() > MAX_NAME {
        return Err(Failed::TooComplex(0));
    }
    read_and_print(name, 0, options, scratch, out, |parser| parser.ty().filter(|_| parser.is_at_end()))
}

/// Writes a common name in one pass, if it is one and nothing is to be left out of it.
fn write_directly(name: &str, at: usize, options: &Options, scratch: &mut Scratch, out: &mut String) -> bool {
    let shows_all = options.parameters && options.return_types && options.local_return_types;
    if !shows_all || options.fold_templates.is_some() {
        return false;
    }
    let mut bytes = mem::take(out).into_bytes();
    let is_done = direct::write(name, at, options.max_len, &mut scratch.direct, &mut bytes).is_some();
    if !is_done {
        bytes.clear();
    }
    match String::from_utf8(bytes) {
        Ok(text) => *out = text,
        // A length that ends within a character: the general way says so.
        Err(_) => return false,
    }
    is_done
}

/// What runs before `main` for a file, or for one definition: `_GLOBAL__I_` (old gcc), `_GLOBAL__sub_I_`, and `D` for
/// what runs at exit; then the file's or the definition's name.
pub(crate) fn keyed(name: &str) -> Option<(&'static str, &str)> {
    let kind = name.trim_start_matches('_').strip_prefix("GLOBAL_")?;
    let kind = kind.strip_prefix(['_', '.', '$'])?;
    let kind = kind.strip_prefix("sub_").unwrap_or(kind);
    if let Some(key) = kind.strip_prefix("I_") {
        return Some(("global constructors keyed to ", key));
    }
    kind.strip_prefix("D_").map(|key| ("global destructors keyed to ", key))
}

/// A function's variant for vectors, by the vector function ABIs: `_ZGV <instruction set> <mask> <lanes> <parameters> _`
/// and the function's name; gives the name and what was in front of it. In a guard variable's name, which also starts in
/// `GV`, no small letter can follow.
fn vector_variant(name: &str) -> Option<(&str, &str)> {
    let rest = name.trim_start_matches('_').strip_prefix("ZGV")?;
    let variant =
        rest.strip_prefix("_LLVM_").or_else(|| rest.strip_prefix(|set: char| set.is_ascii_lowercase()))?;
    let lanes = variant.strip_prefix(['M', 'N'])?;
    if !lanes.starts_with(|lane: char| lane.is_ascii_digit() || lane == 'x') {
        return None;
    }
    let (parameters, function) = lanes.split_once('_')?;
    let is_plain = parameters.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let variant = name.get(..name.len() - function.len() - 1)?;
    (is_plain && !function.is_empty()).then_some((function, variant))
}

fn variant_to(
    function: &str,
    variant: &str,
    options: &Options,
    scratch: &mut Scratch,
    out: &mut String,
) -> Result<(), Failed> {
    // A variant of a variant would be a name without end.
    if function.starts_with("_Z") && vector_variant(function).is_none() {
        demangle(function, options, scratch, out)?;
    } else {
        out.push_str(function);
    }
    for part in [" (", variant, ")"] {
        out.push_str(part);
    }
    if out.len() > options.max_len { Err(Failed::Full) } else { Ok(()) }
}

fn keyed_to(
    what: &str,
    key: &str,
    options: &Options,
    scratch: &mut Scratch,
    out: &mut String,
) -> Result<(), Failed> {
    if key.starts_with("_Z") || key.starts_with("__Z") {
        demangle(key, options, scratch, out)?;
    } else {
        out.push_str(key);
    }
    out.insert_str(0, what);
    if out.len() > options.max_len { Err(Failed::Full) } else { Ok(()) }
}

/// What Apple's linker appends to the name of a thread-local variable, for its initial value.
const THREAD_LOCAL: &[u8] = b"$tlv$init";

/// `<mangled-name> ::= _Z <encoding> [. <suffix>]`
fn mangled_name(parser: &mut Parser<'_, '_>) -> Option<Id> {
    let encoding = parser.encoding()?;
    if parser.peek(0) == b'.' || parser.bytes.get(parser.at..) == Some(THREAD_LOCAL) {
        let suffix = parser.span(parser.at, parser.bytes.len());
        return Some(parser.push(Node::Suffixed { name: encoding, suffix }));
    }
    parser.is_at_end().then_some(encoding)
}

/// `___Z <encoding> _block_invoke [[_] <number>] [. <suffix>]`
fn block_invocation(parser: &mut Parser<'_, '_>) -> Option<Id> {
    let encoding = parser.encoding()?;
    if !parser.skip_text(b"_block_invoke") {
        return None;
    }
    let needs_number = parser.skip(b'_');
    if parser.digits().len == 0 && needs_number {
        return None;
    }
    let is_end = parser.is_at_end() || parser.peek(0) == b'.';
    is_end.then(|| parser.push(Node::Special { what: Word::BLOCK_INVOCATION, of: encoding }))
}
