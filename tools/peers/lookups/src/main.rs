//! `peers-lookups addr2line|blazesym FILE < ADDRESSES`: frames with names, files and lines for every address, printed,
//! so that the work is the same as that of the programs that this is timed against.

use std::error::Error;
use std::io::{BufWriter, Write, stdin, stdout};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, file] = arguments.as_slice() else { return Err("usage: peers-lookups PEER FILE".into()) };
    let addresses: Vec<u64> = stdin()
        .lines()
        .map(|line| Ok(u64::from_str_radix(line?.trim().trim_start_matches("0x"), 16)?))
        .collect::<Result<_>>()?;
    let out = BufWriter::new(stdout().lock());
    match peer.as_str() {
        "addr2line" => addr2line(file, &addresses, out),
        "blazesym" => blazesym(file, &addresses, out),
        _ => Err(format!("no peer called {peer}").into()),
    }
}

fn addr2line(file: &str, addresses: &[u64], mut out: impl Write) -> Result<()> {
    let loader = addr2line::Loader::new(file).map_err(|error| error.to_string())?;
    for address in addresses {
        let mut frames = loader.find_frames(*address).map_err(|error| error.to_string())?;
        write!(out, "{address:#x}")?;
        while let Some(frame) = frames.next().map_err(|error| error.to_string())? {
            let name = match &frame.function {
                Some(function) => function.demangle().map_err(|error| error.to_string())?.into_owned(),
                None => String::new(),
            };
            let (path, line) = frame.location.map_or((None, None), |at| (at.file, at.line));
            writeln!(out, "  {name} at {}:{}", path.unwrap_or_default(), line.unwrap_or_default())?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn blazesym(file: &str, addresses: &[u64], mut out: impl Write) -> Result<()> {
    use blazesym::symbolize::source::{Elf, Source};
    use blazesym::symbolize::{Input, Symbolizer};
    let symbolizer = Symbolizer::new();
    let answers = symbolizer.symbolize(&Source::Elf(Elf::new(file)), Input::VirtOffset(addresses))?;
    for (address, answer) in addresses.iter().zip(answers) {
        write!(out, "{address:#x}")?;
        if let Some(symbol) = answer.as_sym() {
            for inlined in symbol.inlined.iter().rev() {
                writeln!(out, "  {} at {:?}", inlined.name, inlined.code_info)?;
            }
            writeln!(out, "  {} at {:?}", symbol.name, symbol.code_info)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
