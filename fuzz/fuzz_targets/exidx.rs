//! ARM's exception index: every entry read, turned into a row and executed; the code beside it analysed.
//!
//! Input: the length of the index in words (one byte), the length of the table in words (one byte), the index, the
//! table, code. They lie one behind the other, so that prel31 words of the index can point into the table.
#![no_main]

use backtrail_core::{Arch, Avma, Family, MemorySlice, Register, Registers, Svma};
use backtrail_unwind::exidx::{Content, Exidx, execute, row};
use backtrail_unwind::{Miss, Module, Section, Sections};
use libfuzzer_sys::fuzz_target;

const INDEX: u64 = 0x1_0000;

fuzz_target!(|data: &[u8]| {
    let [index, table, data @ ..] = data else { return };
    let (index, rest) = data.split_at((usize::from(*index) * 4).min(data.len()));
    let (table, code) = rest.split_at((usize::from(*table) * 4).min(rest.len()));
    let table_at = Svma::new(INDEX + index.len() as u64);
    let code_at = Svma::new(table_at.get() + table.len() as u64);
    let sections = Sections {
        arch: Some(Arch::Armv7),
        exidx: Some(Section::new(Svma::new(INDEX), index)),
        extab: Some(Section::new(table_at, table)),
        text: vec![Section::new(code_at, code)],
        ..Sections::default()
    };
    let Some(exidx) = Exidx::new(&sections) else { return };
    let mut registers = Registers::new(Family::Arm);
    for number in 0..16 {
        registers.set(Register(number), 0x7000 + 8 * u64::from(number));
    }
    let stack = [0x55; 0x400];
    let memory = MemorySlice::new(Avma::new(0x7000), &stack);
    for entry in exidx.entries() {
        let Ok(Content::Unwind { code, .. }) = entry.content() else { continue };
        assert!(code.count() <= 1023);
        let row = row(code);
        let executed = execute(code, &registers, &memory);
        if let (Ok(row), Ok(executed)) = (row, executed) {
            // Both are the same thing said twice.
            let backtrail_unwind::Cfa::RegisterOffset(by, offset) = row.cfa else { panic!("{row:?}") };
            let base = registers.get(by).unwrap_or_default();
            let cfa = base.wrapping_add_signed(offset.into()) & 0xffff_ffff;
            assert!(row.rule(Register(13)) != backtrail_unwind::Rule::Same || cfa == executed.cfa.get());
        }
    }
    let module = Module::new(sections);
    for offset in 0..code.len().min(256) as u64 {
        let at = Svma::new(code_at.get() + offset);
        for thumb in [false, true] {
            let found = module.find_exact(at, thumb);
            assert!(!matches!(found, Err(Miss::Malformed(malformed)) if malformed.expected.is_empty()));
        }
    }
});
