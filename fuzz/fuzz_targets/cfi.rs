//! Any bytes as call frame information, with and without a search table, read entry by entry, searched and compiled.
//!
//! Input: one byte of architecture and options, two of the search table's length, the search table, the section.
#![no_main]

use backtrail_core::{Arch, Svma};
use backtrail_unwind::cfi::{Entry, Flavour, Frames, eh_frame_start};
use backtrail_unwind::{Module, Section, Sections};
use libfuzzer_sys::fuzz_target;

const ARCHES: [Arch; 4] = [Arch::X86, Arch::X86_64, Arch::Arm, Arch::Arm64];
const TEXT: [u8; 256] = [0x90; 256];

fuzz_target!(|data: &[u8]| {
    let [options, low, high, rest @ ..] = data else { return };
    let length = usize::from(u16::from_le_bytes([*low, *high]));
    let Some((header, frames)) = rest.split_at_checked(length) else { return };
    let arch = ARCHES[usize::from(options & 3)];
    let is_debug = options & 4 != 0;
    let section = Some(Section::new(Svma::new(0x9000), frames));
    let header = Section::new(Svma::new(0x8000), header);
    let _ = eh_frame_start(&header, arch);
    let sections = Sections {
        arch: Some(arch),
        is_mach_o: options & 8 != 0,
        eh_frame_hdr: (options & 16 != 0).then_some(header),
        eh_frame: section.filter(|_| !is_debug),
        debug_frame: section.filter(|_| is_debug),
        text: vec![Section::new(Svma::new(0x1000), &TEXT)],
        got: (options & 32 != 0).then_some(Svma::new(0x4000)),
        ..Sections::default()
    };
    read_all(&sections, if is_debug { Flavour::DebugFrame } else { Flavour::EhFrame });
});

fn read_all(sections: &Sections<'_>, flavour: Flavour) {
    let Some(frames) = Frames::new(sections, flavour) else { return };
    let module = Module::new(sections.clone());
    let rules = module.compile();
    for entry in frames.entries() {
        let Entry::Fde(fde) = entry else { continue };
        let mut last = fde.range.start();
        for (range, row) in frames.rows(&fde).flatten() {
            assert!(range.start() >= last && range.end() <= fde.range.end() && !range.is_empty());
            last = range.end();
            let _ = row.rules().count();
        }
        let _ = frames.find(fde.range.start());
    }
    let mut end = Svma::new(0);
    for found in rules.iter() {
        assert!(found.covered.start() >= end && !found.covered.is_empty());
        end = found.covered.end();
        assert_eq!(rules.find(found.covered.start()), Some(found));
    }
}
