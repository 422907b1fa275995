//! What lies at addresses of a file: functions, inlined ones first, with file and line; what `addr2line` prints.
//!
//! ```sh
//! cargo run -p backtrail --example lookup -- fixtures/symbolize/bin/gcc-dwarf5.elf 0x1140
//! ```
//! An architecture before the addresses picks a slice of a fat file: `… Weather arm64 0x1000041cc`.
#![allow(clippy::print_stdout, reason = "an example that prints")]

use backtrail::{AddressKind, Arch, Avma, Binary, FrameAddress};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let path = arguments.next().ok_or("usage: lookup FILE [ARCH] ADDRESS…")?;
    let arch = arguments.peek().and_then(|name| Arch::from_name(name));
    if arch.is_some() {
        arguments.next();
    }
    let binary = Binary::open(path, arch)?;
    for argument in arguments {
        let digits = argument.strip_prefix("0x").unwrap_or(&argument);
        // `FrameAddress::Return` for a return address. Where the file was mapped in a process, `LoadedAt` and `WithSlide`
        // take the process's addresses.
        let address = FrameAddress::Exact(Avma::new(u64::from_str_radix(digits, 16)?));
        let stated =
            binary.stated_address(address, AddressKind::AsStated).ok_or("beyond the address space")?;
        let info = binary.lookup(stated);
        println!("{argument}");
        for function in &info.functions {
            let file = function.file.as_deref().unwrap_or("?");
            let inlined = if function.inlined { " (inlined)" } else { "" };
            println!("  {} at {file}:{}{inlined}", function.name, function.line.unwrap_or(0));
        }
        if let Some(symbol) = &info.symbol {
            println!("  {} + {}", symbol.name, symbol.offset);
        }
        if let Some(reason) = info.reason {
            println!("  no name: {reason}");
        }
    }
    Ok(())
}
