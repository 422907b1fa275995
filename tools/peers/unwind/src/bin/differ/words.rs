//! `macho-unwind-info` as an independent reading of Apple's compact unwind information: its pages and the fields of its
//! words. Where a field's registers lie is as Apple's libunwind has it (`CompactUnwinder.hpp`).

use crate::tables::Tables;
use backtrail_core::{Arch, Register, Svma, Trust};
use backtrail_unwind::{Cfa, CoveredRow, Row, Rule};
use macho_unwind_info::UnwindInfo;
use macho_unwind_info::opcodes::{OpcodeArm64, OpcodeX86_64, RegisterNameX86_64};

/// What a word says: the CFA, and where registers lie from there.
struct Stated {
    cfa: (Register, i64),
    saved: Vec<(Register, i64)>,
}

pub struct Words<'t> {
    tables: &'t Tables,
    info: UnwindInfo<'static>,
}

/// The registers that compact words speak of.
const ARM64: std::ops::RangeInclusive<u8> = 19..=29;
const X86_64: [u8; 6] = [3, 6, 12, 13, 14, 15];

impl<'t> Words<'t> {
    pub fn new(tables: &'t Tables) -> Option<Self> {
        let (_, data) = tables.get(["__unwind_info"; 2])?;
        Some(Self { tables, info: UnwindInfo::parse(data).ok()? })
    }

    /// How the two readings of an address compare.
    pub fn compare(&self, at: u64, found: Option<&CoveredRow>) -> &'static str {
        let Some(offset) = at.checked_sub(self.tables.base).and_then(|offset| u32::try_from(offset).ok())
        else {
            return "word: far away";
        };
        let Ok(Some(function)) = self.info.lookup(offset) else {
            return if found.is_none() { "word: neither knows" } else { "word: different: only backtrail" };
        };
        let stated = match self.stated(&function) {
            Said::Frame(stated) => stated,
            Said::Nothing if found.is_none() => return "word: neither knows",
            Said::Nothing => return "word: none, only `__eh_frame` speaks of it",
            Said::Dwarf if found.is_some_and(|found| found.trust == Trust::Cfi) => {
                return "word: both lead to DWARF";
            }
            Said::Dwarf if found.is_none() => return "word: DWARF, whose FDE ends before",
            Said::Dwarf => return "word: different: DWARF",
            Said::Odd => return "word: not understood",
        };
        match found {
            None => "word: different: only macho-unwind-info",
            Some(found) if found.trust != Trust::CompactUnwind => "word: different: backtrail has no word",
            Some(found) if self.is_same(&stated, &found.row) => "word: equal",
            Some(found) if self.is_frameless(function.opcode) && self.is_same_cfa(&stated, &found.row) => {
                "word: equal but for registers, which macho-unwind-info leaves out without a frame pointer"
            }
            Some(_) => "word: different",
        }
    }

    /// Apple's libunwind reads arm64's register pairs without a frame pointer too: below the CFA.
    fn is_frameless(&self, opcode: u32) -> bool {
        let is_kind = matches!(OpcodeArm64::parse(opcode), OpcodeArm64::Frameless { .. });
        self.tables.arch == Arch::Arm64 && is_kind && opcode & 0x1f != 0
    }

    fn is_same_cfa(&self, stated: &Stated, row: &Row) -> bool {
        matches!(row.cfa, Cfa::RegisterOffset(register, offset) if stated.cfa == (register, i64::from(offset)))
    }

    fn is_same(&self, stated: &Stated, row: &Row) -> bool {
        let Cfa::RegisterOffset(register, offset) = row.cfa else { return false };
        let spoken_of: Vec<u8> =
            if self.tables.arch == Arch::Arm64 { ARM64.collect() } else { X86_64.to_vec() };
        let mut ours: Vec<(Register, i64)> = Vec::new();
        for number in spoken_of {
            match row.rule(Register(number)) {
                Rule::Offset(at) => ours.push((Register(number), at.into())),
                Rule::Same => {}
                _ => return false,
            }
        }
        let mut theirs = stated.saved.clone();
        theirs.sort_by_key(|(register, _)| register.0);
        (register, i64::from(offset)) == stated.cfa && ours == theirs
    }

    fn stated(&self, function: &macho_unwind_info::Function) -> Said {
        if self.tables.arch == Arch::Arm64 { arm64(function.opcode) } else { self.x86_64(function) }
    }

    fn x86_64(&self, function: &macho_unwind_info::Function) -> Said {
        let (rsp, rbp) = (Register(7), Register(6));
        match OpcodeX86_64::parse(function.opcode) {
            OpcodeX86_64::Null => Said::Nothing,
            OpcodeX86_64::Dwarf { .. } => Said::Dwarf,
            OpcodeX86_64::FrameBased { stack_offset_in_bytes, saved_regs } => {
                let lowest = -16 - i64::from(stack_offset_in_bytes);
                let places = (0..).map(|index| lowest + 8 * index);
                let registers = saved_regs.iter().rev().zip(places);
                let saved = registers.filter_map(|(register, at)| Some((number(register.as_ref()?), at)));
                let saved = saved.chain([(rbp, -16)]).collect();
                Said::Frame(Stated { cfa: (rbp, 16), saved })
            }
            OpcodeX86_64::FramelessImmediate { stack_size_in_bytes, saved_regs } => {
                Said::Frame(Stated { cfa: (rsp, stack_size_in_bytes.into()), saved: below(&saved_regs) })
            }
            OpcodeX86_64::FramelessIndirect {
                immediate_offset_from_function_start,
                stack_adjust_in_bytes,
                saved_regs,
            } => {
                let start = self.tables.base + u64::from(function.start_address);
                let place = start + u64::from(immediate_offset_from_function_start);
                let Some(size) = self.immediate(place) else { return Said::Odd };
                let cfa = i64::from(size) + i64::from(stack_adjust_in_bytes);
                Said::Frame(Stated { cfa: (rsp, cfa), saved: below(&saved_regs) })
            }
            OpcodeX86_64::InvalidFrameless | OpcodeX86_64::UnrecognizedKind(_) => Said::Odd,
        }
    }

    fn immediate(&self, at: u64) -> Option<u32> {
        let text = self.tables.ours();
        let bytes = text.text_at(Svma::new(at))?.from(Svma::new(at))?;
        bytes.first_chunk().copied().map(u32::from_le_bytes)
    }
}

enum Said {
    Frame(Stated),
    Dwarf,
    Nothing,
    Odd,
}

/// Registers below the return address, the last pushed lowest.
fn below(saved: &[Option<RegisterNameX86_64>; 6]) -> Vec<(Register, i64)> {
    let places = (2..).map(|index| -8 * index);
    saved.iter().rev().flatten().map(number).zip(places).collect()
}

fn number(register: &RegisterNameX86_64) -> Register {
    Register(match register {
        RegisterNameX86_64::Rbx => 3,
        RegisterNameX86_64::R12 => 12,
        RegisterNameX86_64::R13 => 13,
        RegisterNameX86_64::R14 => 14,
        RegisterNameX86_64::R15 => 15,
        RegisterNameX86_64::Rbp => 6,
    })
}

/// Pairs lie below the frame pointer's, `x19` highest, each lower-numbered register above its partner.
fn arm64(opcode: u32) -> Said {
    let (sp, fp) = (Register(31), Register(29));
    match OpcodeArm64::parse(opcode) {
        OpcodeArm64::Null => Said::Nothing,
        OpcodeArm64::Dwarf { .. } => Said::Dwarf,
        OpcodeArm64::Frameless { stack_size_in_bytes } => {
            Said::Frame(Stated { cfa: (sp, stack_size_in_bytes.into()), saved: Vec::new() })
        }
        OpcodeArm64::FrameBased {
            x19_and_x20_saved,
            x21_and_x22_saved,
            x23_and_x24_saved,
            x25_and_x26_saved,
            x27_and_x28_saved,
            ..
        } => {
            let pairs = [
                x19_and_x20_saved,
                x21_and_x22_saved,
                x23_and_x24_saved,
                x25_and_x26_saved,
                x27_and_x28_saved,
            ];
            let numbers = (19u8..).step_by(2).zip(pairs).filter(|(_, is_saved)| *is_saved);
            let registers = numbers.flat_map(|(number, _)| [Register(number), Register(number + 1)]);
            let saved = registers.zip((3..).map(|index| -8 * index));
            let saved = saved.chain([(fp, -16)]).collect();
            Said::Frame(Stated { cfa: (fp, 16), saved })
        }
        OpcodeArm64::UnrecognizedKind(_) => Said::Odd,
    }
}
