//! llvm-symbolizer's two forms of an answer: `--output-style=JSON` and its plain one.

use crate::io::text::Text;
use backtrail::demangle::{Options, Scheme, demangle};
use backtrail::{Declaration, Details, Function, Svma, SymbolInfo};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// One answer as JSON shows it. The keys are sorted, as LLVM has them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Answer<'a> {
    address: String,
    module_name: &'a str,
    symbol: Vec<Frame<'a>>,
}

/// One function. Every key is always there; 0 and the empty text stand for what is not known.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Frame<'a> {
    column: u32,
    discriminator: u32,
    file_name: &'a str,
    function_name: Cow<'a, str>,
    line: u32,
    start_address: String,
    start_file_name: &'a str,
    start_line: u32,
}

/// Writes one answer as JSON, without a line's end. `module` is the file as the user named it.
pub(crate) fn write_json(
    out: &mut dyn Write,
    module: &str,
    address: Svma,
    located: &SymbolInfo,
    details: &Details,
) -> io::Result<()> {
    let address = format!("{:#x}", address.get());
    let answer = Answer { address, module_name: module, symbol: frames(located, details) };
    serde_json::to_writer(out, &answer).map_err(io::Error::from)
}

/// Writes one answer as text: two lines a function, and an empty line behind the last.
pub(crate) fn write_text(out: &mut Text<'_>, located: &SymbolInfo, details: &Details) -> io::Result<()> {
    let known = |text: &str| if text.is_empty() { "??".to_owned() } else { text.to_owned() };
    for frame in frames(located, details) {
        out.line(known(&frame.function_name))?;
        out.line(format_args!("{}:{}:{}", known(frame.file_name), frame.line, frame.column))?;
    }
    out.end()
}

fn frames<'a>(located: &'a SymbolInfo, details: &'a Details) -> Vec<Frame<'a>> {
    const NONE: &Declaration = &Declaration { start: None, file: None, line: None, call_discriminator: 0 };
    let declarations = details.declarations.iter().chain(std::iter::repeat(NONE));
    let mut frames: Vec<_> =
        located.functions.iter().zip(declarations).map(|pair| frame(pair.0, pair.1)).collect();
    if frames.is_empty() {
        frames.push(Frame::default());
    }
    // A caller's discriminator is that of its call, which stands with the function that was inlined there.
    let calls = details.declarations.iter().map(|declaration| declaration.call_discriminator);
    let discriminators = std::iter::once(details.discriminator).chain(calls);
    for (frame, discriminator) in frames.iter_mut().zip(discriminators) {
        frame.discriminator = discriminator;
    }
    // LLVM lets the symbol table name the outermost function, and says where its symbol starts.
    if let (Some(outermost), Some((symbol, start))) = (frames.last_mut(), &details.symbol) {
        outermost.function_name = readable(symbol.linkage_name.as_deref().unwrap_or(&symbol.name));
        outermost.start_address = format!("{:#x}", start.get());
        if outermost.file_name.is_empty() {
            outermost.file_name = details.symbol_source.as_deref().unwrap_or_default();
        }
    }
    frames
}

fn frame<'a>(function: &'a Function, declaration: &'a Declaration) -> Frame<'a> {
    Frame {
        column: function.column.unwrap_or(0),
        discriminator: 0,
        file_name: function.file.as_deref().unwrap_or_default(),
        function_name: readable(function.linkage_name.as_deref().unwrap_or(&function.name)),
        line: function.line.unwrap_or(0),
        start_address: declaration.start.map(|start| format!("{:#x}", start.get())).unwrap_or_default(),
        start_file_name: declaration.file.as_deref().unwrap_or_default(),
        start_line: declaration.line.unwrap_or(0),
    }
}

/// LLVM makes the names of C++, Rust (its newer scheme) and D readable, and no others. Rust's older names are C++ to it:
/// their hash is shown.
fn readable(name: &str) -> Cow<'_, str> {
    let mut options = Options::default();
    if ["_Z", "__Z", "___Z"].iter().any(|prefix| name.starts_with(prefix)) {
        options.scheme = Some(Scheme::Itanium);
        return demangle(name, &options);
    }
    let is_llvms = ["_R", "_D"].iter().any(|prefix| name.starts_with(prefix));
    if is_llvms { demangle(name, &options) } else { Cow::Borrowed(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_as_llvm_has_them() {
        for (name, expected) in [
            (
                "_ZN4core3ops8function6FnOnce9call_once17h41291727aec02916E",
                "core::ops::function::FnOnce::call_once::h41291727aec02916",
            ),
            ("_RNvC4main3run", "main::run"),
            ("_ZN1A1fEi.cold", "A::f(int) (.cold)"),
            ("$s4main3runyyF", "$s4main3runyyF"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(readable(name), expected);
        }
    }
}
