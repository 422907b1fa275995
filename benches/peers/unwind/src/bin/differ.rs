//! framehop as an independent reading: at many addresses of a file's code, the caller that it finds from made-up
//! registers and a made-up stack against what backtrail's compiled rules give. `cargo xtask differ FILE…` runs it.
//!
//! ELF and Mach-O, x86_64 and aarch64. Addresses are looked up as return addresses: there only tables count. The stack
//! holds at each place a number that tells the place, so that the same number means the same place.

use backtrail_core::{Arch, Family, Register, Svma};
use backtrail_unwind::{Cfa, Module, Row, Rule, Section, Sections};
use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Unwinder};
use object::{Object, ObjectSection, ObjectSegment, SectionKind};
use std::collections::BTreeMap;

const COUNT: u64 = 200_000;
const SP: u64 = 0x20_0000_0000;
const STACK: std::ops::Range<u64> = SP - 0x1000..SP + 0x400_0000;
const LR: u64 = 0x30_0000_0040;

/// What lies at a place on the stack: enough above it to be a frame pointer that goes on, and no two alike.
fn word(at: u64) -> Result<u64, ()> {
    if STACK.contains(&at) { Ok(at + 0x100_0000) } else { Err(()) }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Caller { address: u64, sp: u64, fp: u64 },
    End,
    None,
}

fn main() {
    let files: Vec<String> = std::env::args().skip(1).collect();
    for file in &files {
        match std::fs::read(file) {
            Ok(data) => compare(file, data.leak()),
            Err(error) => println!("{file}: {error}"),
        }
    }
}

struct Tables {
    arch: Arch,
    base: u64,
    sections: BTreeMap<String, (u64, &'static [u8])>,
    text: Vec<(u64, &'static [u8])>,
    is_mach_o: bool,
    segment: Option<(u64, &'static [u8])>,
}

impl Tables {
    fn read(data: &'static [u8]) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let arch = match file.architecture() {
            object::Architecture::X86_64 => Arch::X86_64,
            object::Architecture::Aarch64 => Arch::Arm64,
            _ => return None,
        };
        let is_mach_o = file.format() == object::BinaryFormat::MachO;
        let named = |wanted| file.segments().find(|segment| segment.name().ok().flatten() == Some(wanted));
        let segment = named("__TEXT").and_then(|segment| Some((segment.address(), segment.data().ok()?)));
        let lowest = file.segments().map(|segment| segment.address()).min()? & !0xfff;
        let base = segment.map_or(lowest, |(start, _)| start);
        let mut sections = BTreeMap::new();
        for section in file.sections() {
            if let (Ok(name), Ok(data)) = (section.name(), section.data()) {
                sections.entry(name.to_owned()).or_insert((section.address(), data));
            }
        }
        let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
        let text = code.filter_map(|section| Some((section.address(), section.data().ok()?))).collect();
        Some(Self { arch, base, sections, text, is_mach_o, segment })
    }

    fn get(&self, names: [&str; 2]) -> Option<(u64, &'static [u8])> {
        names.iter().find_map(|name| self.sections.get(*name).copied())
    }

    fn ours(&self) -> Sections<'static> {
        let section = |names| self.get(names).map(|(at, data)| Section::new(Svma::new(at), data));
        Sections {
            arch: Some(self.arch),
            is_mach_o: self.is_mach_o,
            image_base: Svma::new(self.base),
            eh_frame_hdr: section([".eh_frame_hdr"; 2]),
            eh_frame: section([".eh_frame", "__eh_frame"]),
            unwind_info: section(["__unwind_info"; 2]),
            text: self.text.iter().map(|(at, data)| Section::new(Svma::new(*at), data)).collect(),
            ..Sections::default()
        }
    }

    fn theirs(&self) -> framehop::Module<&'static [u8]> {
        let range = |names| self.get(names).map(|(at, data)| at..at + data.len() as u64);
        let bytes = |names| self.get(names).map(|(_, data)| data);
        let info = ExplicitModuleSectionInfo {
            base_svma: self.base,
            text_svma: range([".text", "__text"]),
            text: bytes([".text", "__text"]),
            stubs_svma: range(["__stubs"; 2]),
            stub_helper_svma: range(["__stub_helper"; 2]),
            got_svma: range([".got", "__got"]),
            unwind_info: bytes(["__unwind_info"; 2]),
            eh_frame_svma: range([".eh_frame", "__eh_frame"]),
            eh_frame: bytes([".eh_frame", "__eh_frame"]),
            eh_frame_hdr_svma: range([".eh_frame_hdr"; 2]),
            eh_frame_hdr: bytes([".eh_frame_hdr"; 2]),
            text_segment_svma: self.segment.map(|(at, data)| at..at + data.len() as u64),
            text_segment: self.segment.map(|(_, data)| data),
            debug_frame: None,
        };
        framehop::Module::new(String::new(), self.base..self.base + (1 << 32), self.base, info)
    }
}

/// The caller by a row; `None` where the row needs what this program does not have (expressions).
fn apply(row: &Row, family: Family, fp: u64) -> Option<Answer> {
    let value = |register: Register| match register {
        it if it == family.sp() => Some(SP),
        it if it == family.fp() => Some(fp),
        it if Some(it) == family.lr() => Some(LR),
        _ => None,
    };
    let Cfa::RegisterOffset(register, offset) = row.cfa else { return None };
    let cfa = value(register)?.wrapping_add_signed(offset.into());
    let rule = |rule: Rule, register| match rule {
        Rule::Same => value(register),
        Rule::Undefined => Some(0),
        Rule::Offset(at) => word(cfa.wrapping_add_signed(at.into())).ok(),
        Rule::ValueOffset(at) => Some(cfa.wrapping_add_signed(at.into())),
        Rule::Register(from) => value(from),
        Rule::Expression(_) | Rule::ValueExpression(_) => None,
    };
    if row.return_address == Rule::Undefined {
        return Some(Answer::End);
    }
    Some(Answer::Caller {
        address: rule(row.return_address, family.pc())?,
        sp: cfa,
        fp: rule(row.rule(family.fp()), family.fp())?,
    })
}

enum Theirs {
    X86_64(UnwinderX86_64<&'static [u8]>, CacheX86_64),
    Aarch64(UnwinderAarch64<&'static [u8]>, CacheAarch64),
}

impl Theirs {
    fn new(tables: &Tables) -> Self {
        if tables.arch == Arch::X86_64 {
            let mut unwinder = UnwinderX86_64::new();
            unwinder.add_module(tables.theirs());
            Self::X86_64(unwinder, CacheX86_64::new())
        } else {
            let mut unwinder = UnwinderAarch64::new();
            unwinder.add_module(tables.theirs());
            Self::Aarch64(unwinder, CacheAarch64::new())
        }
    }

    fn answer(&mut self, at: u64, fp: u64) -> Answer {
        let Some(address) = FrameAddress::from_return_address(at + 1) else { return Answer::None };
        let (found, sp, fp) = match self {
            Self::X86_64(unwinder, cache) => {
                let mut registers = UnwindRegsX86_64::new(at + 1, SP, fp);
                let found = unwinder.unwind_frame(address, &mut registers, cache, &mut word);
                (found, registers.sp(), registers.bp())
            }
            Self::Aarch64(unwinder, cache) => {
                let mut registers = UnwindRegsAarch64::new(LR, SP, fp);
                let found = unwinder.unwind_frame(address, &mut registers, cache, &mut word);
                (found, registers.sp(), registers.fp())
            }
        };
        match found {
            Ok(Some(address)) => Answer::Caller { address, sp, fp },
            Ok(None) => Answer::End,
            Err(_) => Answer::None,
        }
    }
}

fn compare(name: &str, data: &'static [u8]) {
    let Some(tables) = Tables::read(data) else { return println!("{name}: not x86_64 or aarch64") };
    let family = tables.arch.family();
    let module = Module::new(tables.ours());
    let rules = module.compile();
    let mut theirs = Theirs::new(&tables);
    let step = if family == Family::Aarch64 { 4 } else { 1 };
    let total: u64 = tables.text.iter().map(|(_, data)| data.len() as u64).sum();
    let stride = (total / COUNT / step).max(1) * step;
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut shown: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for (start, code) in &tables.text {
        for at in (*start..start + code.len() as u64).step_by(usize::try_from(stride).unwrap_or(1)) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let fp = SP + 0x1000 + (random >> 40 & 0xfff0);
            let found = rules.find(Svma::new(at));
            let mine = found.map(|found| apply(&found.row, family, fp));
            let other = theirs.answer(at, fp);
            let kind = match (mine, other) {
                (None, Answer::None) => "neither knows",
                (None, _) => "only framehop (by guess: no table)",
                (Some(None), _) => "not compared: expressions and other registers",
                (Some(Some(mine)), other) if mine == other => "equal",
                (Some(Some(Answer::End)), _) => "different: backtrail ends",
                (Some(Some(_)), Answer::None) => "only backtrail",
                (Some(Some(_)), Answer::End) => "different: framehop ends",
                _ => "different",
            };
            *counts.entry(kind).or_default() += 1;
            let examples = shown.entry(kind).or_default();
            if (kind.starts_with("different") || kind == "only backtrail") && examples.len() < 5 {
                examples.push(format!("{at:#x} fp {fp:#x}: {:x?}, framehop {other:x?}", mine.flatten()));
            }
        }
    }
    println!("{name}: {family:?}, {} rows", rules.size().rows);
    for (kind, count) in counts {
        println!("  {count:>8} {kind}");
        shown.get(kind).into_iter().flatten().for_each(|example| println!("           {example}"));
    }
}
