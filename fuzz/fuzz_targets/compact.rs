//! Apple's compact unwind information: every entry read, turned into a row and found again by its address; the code
//! beside it analysed.
//!
//! Input: the architecture (one byte), the length of the code in words (one byte), the code, `__unwind_info`.
#![no_main]

use backtrail_core::{Arch, Svma};
use backtrail_unwind::compact::Compact;
use backtrail_unwind::{Module, Section, Sections};
use libfuzzer_sys::fuzz_target;

const BASE: u64 = 0x1_0000_0000;

fuzz_target!(|data: &[u8]| {
    let [arch, code, data @ ..] = data else { return };
    let archs = [Arch::Arm64, Arch::X86_64, Arch::X86, Arch::Armv7k];
    let arch = archs[usize::from(*arch) % archs.len()];
    let (code, info) = data.split_at((usize::from(*code) * 4).min(data.len()));
    let sections = Sections {
        arch: Some(arch),
        is_mach_o: true,
        image_base: Svma::new(BASE),
        unwind_info: Some(Section::new(Svma::new(BASE + 0x10_0000), info)),
        text: vec![Section::new(Svma::new(BASE + 0x1000), code)],
        function_starts: vec![Svma::new(BASE + 0x1000), Svma::new(BASE + 0x1040)],
        ..Sections::default()
    };
    let Some(compact) = Compact::new(&sections) else { return };
    // Pages can share their bytes: as many entries as there are words in the section are plenty.
    for entry in compact.entries().take(info.len().min(1 << 14)) {
        let _ = (compact.row_of(&entry), entry.encoding.to_string());
        if let Ok(Some(found)) = compact.entry_at(entry.range.start()) {
            assert!(found.range.contains(entry.range.start()));
        }
    }
    let module = Module::new(sections);
    for offset in 0..code.len().min(256) as u64 {
        let _ = module.find_exact(Svma::new(BASE + 0x1000 + offset), false);
    }
});
