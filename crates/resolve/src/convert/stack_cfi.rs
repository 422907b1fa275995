//! Unwind tables as Breakpad's `STACK CFI` records: Breakpad, `docs/symbol_files.md`. A record's rules hold from its address
//! on until the next one says otherwise, and registers that no rule names keep their value.

mod rules;

use backtrail_core::{AddrRange, Family, Svma};
use backtrail_store::{ImageFiles, UnwindTables};
use backtrail_unwind::cfi::{Entry, Flavour, Frames};
use backtrail_unwind::compact::{Compact, CompactFound};
use backtrail_unwind::exidx::{self, Content, Exidx};
use backtrail_unwind::{Row, Sections};
use rules::{Expressions, Rules};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// An image's records, by address.
#[derive(Debug, Default)]
pub(super) struct StackRecords {
    /// By the first address: the first address behind, and the lines.
    functions: BTreeMap<Svma, (Svma, String)>,
    /// Ranges whose rules the format cannot express, and entries that are broken.
    pub(super) left_out: u64,
}

impl StackRecords {
    /// The records of all of an image's files. What `.eh_frame` says comes first, for it holds at each instruction; compact
    /// unwind and exidx know the bodies of functions.
    pub(super) fn of(files: &ImageFiles, image_base: Svma) -> Self {
        let mut records = Self::default();
        for object in files.unwinding().filter_map(|file| file.object()) {
            let tables = UnwindTables::read(object);
            let sections = tables.sections();
            let mut writer = Writer { records: &mut records, family: object.arch().family(), image_base };
            writer.frames(&sections, Flavour::EhFrame);
            writer.frames(&sections, Flavour::DebugFrame);
            writer.compact(&sections);
            writer.exidx(&sections);
        }
        records
    }

    /// The lines, each with its end.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.functions.values().map(|(_, lines)| lines.as_str())
    }
}

struct Writer<'r> {
    records: &'r mut StackRecords,
    family: Family,
    /// What addresses count from in the file.
    image_base: Svma,
}

impl Writer<'_> {
    fn frames(&mut self, sections: &Sections<'_>, flavour: Flavour) {
        let Some(frames) = Frames::new(sections, flavour) else { return };
        for entry in frames.entries() {
            match entry {
                Entry::Fde(fde) if !self.is_wanted(fde.range) => {}
                Entry::Fde(fde) => {
                    let rows: Vec<_> = frames.rows(&fde).map_while(Result::ok).collect();
                    self.add(&rows, &|expression| frames.expression(expression));
                }
                Entry::Malformed(_) => self.records.left_out += 1,
                Entry::Cie(_) | Entry::Terminator(_) => {}
            }
        }
    }

    fn compact(&mut self, sections: &Sections<'_>) {
        let Some(compact) = Compact::new(sections) else { return };
        for entry in compact.entries() {
            if !self.is_wanted(entry.range) {
                continue;
            }
            match compact.row_of(&entry) {
                Ok(CompactFound::Row(found)) => self.add(&[(entry.range, found.row)], &|_| None),
                // `__eh_frame` speaks of it, or nothing does.
                Ok(CompactFound::EhFrame(_)) | Err(_) => {}
            }
        }
    }

    fn exidx(&mut self, sections: &Sections<'_>) {
        let Some(exidx) = Exidx::new(sections) else { return };
        for entry in exidx.entries() {
            if !self.is_wanted(entry.range) {
                continue;
            }
            match entry.content() {
                Ok(Content::CannotUnwind) => {}
                Ok(Content::Unwind { code, .. }) => match exidx::row(code) {
                    Ok(row) => self.add(&[(entry.range, row)], &|_| None),
                    Err(_) => self.records.left_out += 1,
                },
                Err(_) => self.records.left_out += 1,
            }
        }
    }

    /// Adds a function.
    fn add(&mut self, rows: &[(AddrRange<Svma>, Row)], expressions: &Expressions<'_>) {
        let mut stretch: Option<Stretch> = None;
        for (range, row) in rows.iter().filter(|(range, _)| !range.is_empty()) {
            let Some(offset) = range.start().offset_from(self.image_base) else { continue };
            let rules = Rules::new(self.family, row, expressions);
            match (&mut stretch, rules) {
                (Some(open), Some(rules)) if open.end == range.start() && rules.can_follow(&open.rules) => {
                    open.go_on(self.family, offset, range.end(), rules);
                }
                (_, Some(rules)) => {
                    let next = Stretch::new(self.family, *range, rules);
                    self.close(stretch.replace(next));
                }
                (_, None) => {
                    self.records.left_out += 1;
                    self.close(stretch.take());
                }
            }
        }
        self.close(stretch);
    }

    /// Whether there is code, of which no other table has spoken.
    fn is_wanted(&self, range: AddrRange<Svma>) -> bool {
        let before = self.records.functions.range(..range.end()).next_back();
        !range.is_empty() && before.is_none_or(|(_, (end, _))| *end <= range.start())
    }

    fn close(&mut self, stretch: Option<Stretch>) {
        let Some(stretch) = stretch else { return };
        let Some(start) = stretch.start.offset_from(self.image_base) else { return };
        let size = stretch.end.offset_from(stretch.start).unwrap_or(0);
        let lines = format!("STACK CFI INIT {start:x} {size:x}{}\n{}", stretch.initial, stretch.changes);
        self.records.functions.insert(stretch.start, (stretch.end, lines));
    }
}

/// Code whose rules follow from one record.
struct Stretch {
    start: Svma,
    end: Svma,
    initial: String,
    changes: String,
    rules: Rules,
}

impl Stretch {
    fn new(family: Family, range: AddrRange<Svma>, rules: Rules) -> Self {
        let initial = rules.changes(family, &Rules::default());
        Self { start: range.start(), end: range.end(), initial, changes: String::new(), rules }
    }

    /// Takes in the rules of the range behind it; `offset` is that range's in the file.
    fn go_on(&mut self, family: Family, offset: u64, end: Svma, rules: Rules) {
        let changes = rules.changes(family, &self.rules);
        if !changes.is_empty() {
            let _ = writeln!(self.changes, "STACK CFI {offset:x}{changes}");
        }
        (self.end, self.rules) = (end, rules);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::Arch;
    use backtrail_unwind::{Cfa, Rule, Section};

    const CIE: &[u8] = &[0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0];

    /// Functions of 32 bytes each from 0x1000 on, with these programs.
    fn eh_frame(programs: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut entry = |parts: &[&[u8]]| {
            let body = parts.concat();
            bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
            bytes.extend(body);
            bytes.len()
        };
        let mut end = entry(&[CIE]);
        for (number, program) in programs.iter().enumerate() {
            let back = u32::try_from(end + 4).unwrap().to_le_bytes();
            let start = (0x1000 + 32 * number as u64).to_le_bytes();
            end = entry(&[&back, &start, &32u64.to_le_bytes(), program]);
        }
        bytes
    }

    /// The records, and what was left out; addresses count from 0x1000.
    fn records(bytes: &[u8]) -> (String, u64) {
        let eh_frame = Some(Section::new(Svma::new(0x9000), bytes));
        let sections = Sections { arch: Some(Arch::X86_64), eh_frame, ..Sections::default() };
        let mut records = StackRecords::default();
        let image_base = Svma::new(0x1000);
        let mut writer = Writer { records: &mut records, family: Family::X86_64, image_base };
        writer.frames(&sections, Flavour::EhFrame);
        (records.lines().collect(), records.left_out)
    }

    #[test]
    fn what_changes_is_said_and_what_cannot_be_said_begins_anew() {
        // push rbx; the stack realigned; pop rbx. Then rbx is saved again, and lost.
        let push = [0x41, 0x0e, 16, 0x83, 2, 0x44, 0x0f, 3, 0x76, 0x78, 0x06, 0x44, 0x0c, 7, 8, 0xc3];
        let lost = [0x83, 2, 0x44, 0x07, 3];
        let (text, left_out) = records(&eh_frame(&[&push, &lost]));
        let wanted = "\
STACK CFI INIT 0 20 .cfa: $rsp 8 + .ra: .cfa -8 + ^
STACK CFI 1 .cfa: $rsp 16 + $rbx: .cfa -16 + ^
STACK CFI 5 .cfa: $rbp -8 + ^
STACK CFI 9 .cfa: $rsp 8 + $rbx: $rbx
STACK CFI INIT 20 4 .cfa: $rsp 8 + .ra: .cfa -8 + ^ $rbx: .cfa -16 + ^
STACK CFI INIT 24 1c .cfa: $rsp 8 + .ra: .cfa -8 + ^
";
        assert_eq!((text.as_str(), left_out), (wanted, 0));
    }

    #[test]
    fn what_has_no_words_has_no_record() {
        // A PLT's CFA, which compares, between plain ones; then the outermost function.
        let compares = [0x44, 0x0f, 2, 0x77, 8, 0x44, 0x0f, 4, 0x77, 8, 0x3b, 0x2a, 0x44, 0x0c, 7, 16];
        let (text, left_out) = records(&eh_frame(&[&compares, &[0x07, 16]]));
        let wanted = "\
STACK CFI INIT 0 8 .cfa: $rsp 8 + .ra: .cfa -8 + ^
STACK CFI INIT c 14 .cfa: $rsp 16 + .ra: .cfa -8 + ^
STACK CFI INIT 20 20 .cfa: $rsp 8 + .ra: 0
";
        assert_eq!((text.as_str(), left_out), (wanted, 1));
    }

    #[test]
    fn broken_tables_give_whole_lines() {
        let program = [0x41, 0x0e, 16, 0x83, 2, 0x44, 0x0f, 3, 0x76, 0x78, 0x06, 0x44, 0x0c, 7, 8, 0xc3];
        let honest = eh_frame(&[program.as_slice(); 4]);
        let (mut seed, mut broken) = (1u64, 0);
        for _ in 0..5000 {
            let mut bytes = honest.clone();
            for _ in 0..3 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = usize::try_from(seed >> 33).unwrap() % bytes.len();
                bytes[at] = seed.to_be_bytes()[4];
            }
            let (text, left_out) = records(&bytes);
            assert!(text.lines().all(|line| line.starts_with("STACK CFI ") && line.contains(": ")), "{text}");
            broken += left_out;
        }
        assert!(broken > 100, "{broken}");
    }

    #[test]
    fn code_is_spoken_of_once() {
        let mut records = StackRecords::default();
        let image_base = Svma::new(0x1000);
        let mut writer = Writer { records: &mut records, family: Family::X86_64, image_base };
        let range = |start: u64, end: u64| AddrRange::new(Svma::new(start), Svma::new(end));
        let row = Row::new(Cfa::RegisterOffset(Family::X86_64.sp(), 8), Rule::Offset(-8));
        // Below the image's base there is no address to write.
        writer.add(&[(range(0x800, 0x900), row)], &|_| None);
        writer.add(&[(range(0x1010, 0x1020), row)], &|_| None);
        for (start, end, is_wanted) in [
            (0x1000, 0x1010, true),
            (0x1000, 0x1011, false),
            (0x101f, 0x1030, false),
            (0x1020, 0x1020, false),
        ] {
            assert_eq!(writer.is_wanted(range(start, end)), is_wanted, "{start:x}");
        }
        assert_eq!(records.lines().count(), 1);
    }
}
