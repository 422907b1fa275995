//! Any tables, code, registers and stack: a walk ends, moves on, and gives the same with compiled rules and a cache.
//!
//! Input: a byte of architecture, three of lengths in units of four bytes (table, code, registers), then these and the
//! stack. The table is taken for each kind that there is.
#![no_main]

use backtrail_core::{AddrRange, Arch, Avma, Bias, MemorySlice, Register, Registers, Svma};
use backtrail_unwind::{Cache, Module, ModuleMap, Options, PlacedModule, Section, Sections, Walk, fold};
use libfuzzer_sys::fuzz_target;

const ARCHES: [Arch; 4] = [Arch::X86, Arch::X86_64, Arch::Armv7, Arch::Arm64];
const TEXT: u64 = 0x1000;
const LOADED: u64 = 0x7100_1000;
const STACK: u64 = 0x7e00_0000;

fuzz_target!(|data: &[u8]| {
    let [options, table, code, registers, rest @ ..] = data else { return };
    let mut rest = rest;
    let mut cut = |length: u8| {
        let (first, behind) = rest.split_at(rest.len().min(usize::from(length) * 4));
        rest = behind;
        first
    };
    let (table, code, registers) = (cut(*table), cut(*code), cut(*registers));
    let arch = ARCHES[usize::from(options & 3)];
    let section = Some(Section::new(Svma::new(0x9000), table));
    let kind = options >> 2 & 7;
    let sections = Sections {
        arch: Some(arch),
        eh_frame: section.filter(|_| kind == 1 || kind == 5),
        debug_frame: section.filter(|_| kind == 2),
        exidx: section.filter(|_| kind == 3),
        unwind_info: section.filter(|_| kind >= 4),
        text: vec![Section::new(Svma::new(TEXT), code)],
        ..Sections::default()
    };
    walk(arch, sections, registers, rest);
});

fn walk(arch: Arch, sections: Sections<'_>, values: &[u8], stack: &[u8]) {
    let module = Module::new(sections);
    let rules = module.compile();
    let mut registers = Registers::new(arch.family());
    for (register, value) in (0..).map(Register).zip(values.chunks_exact(8)) {
        registers.set(register, u64::from_le_bytes(value.try_into().unwrap()));
    }
    // Most inputs should start somewhere.
    registers.set(arch.family().sp(), STACK);
    registers.set(arch.family().pc(), LOADED + registers.pc().map_or(0, |pc| pc.get() & 0xff));
    let memory = MemorySlice::new(Avma::new(STACK), stack);
    let bias = Bias::between(Avma::new(LOADED), Svma::new(TEXT));
    let range = AddrRange::from_size(Avma::new(LOADED), 0x1000);
    let plain = PlacedModule::new(range, bias, &module);
    let mut cache = Cache::new();
    for image in
        [plain, PlacedModule { rules: Some(&rules), ..plain }, PlacedModule::compiled(range, bias, &rules)]
    {
        let mut images = [image];
        let images = ModuleMap::new(&mut images);
        let options = Options { max_frames: 10_000, ..Options::default() };
        let folded = fold(&mut Walk::new(registers, &memory, images, options), 5, 5);
        // Each frame takes at least a word of the stack, but for a limited number of odd ones.
        assert!(folded.depth() <= stack.len() as u64 * 20 + 2000, "{folded:?}");
        let mut walk = Walk::new(registers, &memory, images, options).with_cache(&mut cache);
        let cached = fold(&mut walk, 5, 5);
        assert_eq!(folded, cached);
        cache.clear();
    }
}
