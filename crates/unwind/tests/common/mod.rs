//! What the integration tests share: just enough of an ELF reader to hand over sections of well-formed files.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test's helpers may"
)]
#![allow(dead_code, reason = "each test uses its part")]

use backtrail_core::{Arch, Svma};
use backtrail_unwind::{Section, Sections};

fn u16_at(data: &[u8], at: usize) -> u64 {
    u16::from_le_bytes(data[at..at + 2].try_into().unwrap()).into()
}

fn u32_at(data: &[u8], at: usize) -> u64 {
    u32::from_le_bytes(data[at..at + 4].try_into().unwrap()).into()
}

fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(data[at..at + 8].try_into().unwrap())
}

/// One section header.
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

/// The architecture, the entry point and the section headers.
pub(crate) fn headers(data: &[u8]) -> (Arch, u64, Vec<Header>) {
    let wide = data[4] == 2;
    let arch = match u16_at(data, 18) {
        3 => Arch::X86,
        40 => Arch::Arm,
        62 => Arch::X86_64,
        183 => Arch::Arm64,
        _ => Arch::Unknown,
    };
    let word = |at| if wide { u64_at(data, at) } else { u32_at(data, at) };
    let (table, size, count, names) = if wide {
        (word(40), u16_at(data, 58), u16_at(data, 60), u16_at(data, 62))
    } else {
        (word(32), u16_at(data, 46), u16_at(data, 48), u16_at(data, 50))
    };
    let place = |index: u64| usize::try_from(table + index * size).unwrap();
    let field = |at: usize, narrow: usize, wide_at: usize| {
        usize::try_from(word(at + if wide { wide_at } else { narrow })).unwrap()
    };
    let strings = field(place(names), 16, 24);
    let read = |index| {
        let at = place(index);
        let name = strings + usize::try_from(u32_at(data, at)).unwrap();
        let length = data[name..].iter().position(|byte| *byte == 0).unwrap();
        Header {
            name: String::from_utf8_lossy(&data[name..name + length]).into_owned(),
            kind: u32_at(data, at + 4),
            flags: word(at + 8),
            address: field(at, 12, 16) as u64,
            offset: field(at, 16, 24),
            size: field(at, 20, 32),
        }
    };
    (arch, word(24), (0..count).map(read).collect())
}

/// The sections that unwinding reads.
pub(crate) fn sections(data: &[u8]) -> Sections<'_> {
    let (arch, entry, headers) = headers(data);
    let mut sections = Sections { arch: Some(arch), entry: Some(Svma::new(entry)), ..Sections::default() };
    for header in headers.iter().filter(|header| header.kind != 8) {
        let Some(bytes) = data.get(header.offset..header.offset + header.size) else { continue };
        let section = Section::new(Svma::new(header.address), bytes);
        match header.name.as_str() {
            ".eh_frame_hdr" => sections.eh_frame_hdr = Some(section),
            ".eh_frame" => sections.eh_frame = Some(section),
            ".debug_frame" if header.flags & 0x800 == 0 => sections.debug_frame = Some(section),
            ".ARM.exidx" => sections.exidx = Some(section),
            ".ARM.extab" => sections.extab = Some(section),
            _ if header.flags & 4 != 0 => sections.text.push(section),
            _ => {}
        }
    }
    sections
}

/// Files that a test looks at: `BACKTRAIL_UNWIND_FILES` (separated by colons), or these libraries of the system.
pub(crate) fn files() -> Vec<std::path::PathBuf> {
    const USUAL: [&str; 4] = [
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/lib/ld-linux-armhf.so.3",
    ];
    match std::env::var("BACKTRAIL_UNWIND_FILES") {
        Ok(list) => list.split(':').map(Into::into).collect(),
        Err(_) => USUAL.iter().map(Into::into).filter(|path: &std::path::PathBuf| path.exists()).collect(),
    }
}

/// The value of a symbol in `.symtab` of a 64-bit file.
pub(crate) fn symbol(data: &[u8], wanted: &str) -> Option<u64> {
    let (_, _, headers) = headers(data);
    let symbols = headers.iter().find(|header| header.name == ".symtab")?;
    let strings = headers.iter().find(|header| header.name == ".strtab")?;
    data[symbols.offset..symbols.offset + symbols.size].chunks_exact(24).find_map(|symbol| {
        let name = strings.offset + usize::try_from(u32_at(symbol, 0)).unwrap();
        let matches = data[name..].starts_with(wanted.as_bytes()) && data[name + wanted.len()] == 0;
        matches.then(|| u64_at(symbol, 8))
    })
}
