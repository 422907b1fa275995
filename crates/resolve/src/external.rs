//! Answers out of symbol files of other tools: GSYM and Breakpad's.

use backtrail_core::{Function, Reason, Svma, Symbol, SymbolInfo};
use backtrail_demangle::{Options, demangle};
use backtrail_store::ExternalSymbolFile;
use backtrail_table::exchange::{PlainAnswer, PlainFrame};

/// What lies at an address of an image with that base.
pub(crate) fn lookup(file: &ExternalSymbolFile<'_>, image_base: Svma, address: Svma) -> SymbolInfo {
    let (answer, address) = match file {
        ExternalSymbolFile::Gsym(gsym) => (gsym.lookup(address), address),
        ExternalSymbolFile::Breakpad(file) => {
            let Some(offset) = address.offset_from(image_base) else {
                return SymbolInfo::unknown(Reason::OutsideSections);
            };
            (file.lookup(Svma::new(offset)), Svma::new(offset))
        }
    };
    match answer {
        Some(answer) => symbol_info(&answer, address),
        None => SymbolInfo::unknown(Reason::NoSymbol),
    }
}

fn symbol_info(answer: &PlainAnswer<'_>, address: Svma) -> SymbolInfo {
    let function_offset = address.offset_from(answer.start);
    let answered = SymbolInfo { function_offset, ..SymbolInfo::default() };
    match answer.frames.as_slice() {
        [PlainFrame { name: b"", file: None, .. }] => {
            SymbolInfo { reason: Some(Reason::Stripped), ..answered }
        }
        // Without a file it is no more than a symbol.
        [PlainFrame { name, file: None, line: 0, .. }] => {
            let (name, linkage_name) = names(name);
            let offset = function_offset.unwrap_or(0);
            SymbolInfo { symbol: Some(Symbol { name, linkage_name, offset }), ..answered }
        }
        frames => SymbolInfo { functions: frames.iter().map(function).collect(), ..answered },
    }
}

fn function(frame: &PlainFrame<'_>) -> Function {
    let (name, linkage_name) = names(frame.name);
    Function {
        name,
        linkage_name,
        file: frame.file.map(|file| file.to_text()),
        line: Some(frame.line).filter(|line| *line != 0),
        column: None,
        inlined: frame.inlined,
    }
}

/// The readable name and the linkage name: GSYM has the latter, Breakpad files the former, as a rule.
fn names(name: &[u8]) -> (String, Option<String>) {
    let name = String::from_utf8_lossy(name).into_owned();
    let readable = demangle(&name, &Options::default()).into_owned();
    (readable, Some(name))
}
