//! Unwind tables against what LLVM's tools say of the same files.
//!
//! Objects: this repository's and the corpus's, and what `BACKTRAIL_OBJECTS` lists (separated by colons; directories count
//! with all that is in them).

use backtrail::{AddrRange, Family, Svma};
use backtrail_object::{Format, Kind, Limits, Object, slices};
use backtrail_store::UnwindTables;
use backtrail_testkit::TempDir;
use backtrail_unwind::cfi::{Entry, Flavour, Frames};
use backtrail_unwind::compact::{Compact, CompactFound};
use backtrail_unwind::exidx::{Content, Exidx, Model};
use backtrail_unwind::{Cfa, Module, Row, Rule, Sections};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many addresses of one file are looked up at most.
const MAX_LOOKUPS: u64 = 1_000_000;

fn objects() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    walk(&backtrail_testkit::fixtures(), &mut paths);
    for directory in ["crashprobe/dSYMs", "offline"] {
        if let Some(directory) = backtrail_testkit::corpus_file(directory) {
            walk(&directory, &mut paths);
        }
    }
    for more in std::env::var_os("BACKTRAIL_OBJECTS").iter().flat_map(std::env::split_paths) {
        walk(&more, &mut paths);
    }
    paths.sort();
    paths
}

fn walk(path: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(directory) = path.read_dir() else { return paths.push(path.to_path_buf()) };
    for entry in directory.map_while(Result::ok) {
        if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            walk(&entry.path(), paths);
        }
    }
}

/// Calls `check` for every object, with a path where a tool finds just that one.
fn for_each_object(mut check: impl FnMut(&str, &Path, &Object<'_>)) {
    let directory = TempDir::new("unwind-tables");
    let path = directory.path().join("object");
    for file in objects() {
        let Ok(data) = std::fs::read(&file) else { continue };
        let Ok(slices) = slices(&data, &Limits::default()) else { continue };
        for slice in slices.iter().take(8) {
            let Ok(object) = slice.parse(&Limits::default()) else { continue };
            // Before linking addresses are not known, and tools disagree on what to show instead.
            if object.kind() == Kind::Relocatable {
                continue;
            }
            std::fs::write(&path, slice.data).unwrap();
            check(&format!("{} {}", file.display(), slice.arch), &path, &object);
        }
    }
}

/// What one of LLVM's tools prints; `None`, said in one line, where it is not installed.
fn llvm(tool: &str, argument: &str, path: &Path) -> Option<String> {
    for name in [format!("{tool}-22"), tool.to_owned()] {
        let mut command = Command::new(name);
        let output = command.arg(argument).arg(path).stdin(Stdio::null()).stderr(Stdio::null()).output();
        if let Ok(output) = output {
            return Some(String::from_utf8_lossy(&output.stdout).into_owned());
        }
    }
    eprintln!("not compared: {tool} is not installed");
    None
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{text:?}"))
}

/// `key=0x…` in a line.
fn field(line: &str, key: &str) -> Option<u64> {
    let (_, rest) = line.split_once(key)?;
    Some(hex(rest.split([',', ' ']).next()?))
}

/// Functions and encodings in the order of llvm-objdump's listing, and LSDAs.
fn listed_encodings(listing: &str) -> (Vec<(u64, u64)>, Vec<(u64, u64)>) {
    let (mut encodings, mut lsdas) = (Vec::new(), Vec::new());
    for line in listing.lines() {
        let Some(function) = field(line, "function offset=") else { continue };
        if let Some((_, encoding)) = line.split_once("encoding") {
            encodings.push((function, hex(encoding.split_once('=').unwrap().1)));
        } else if let (Some(lsda), None) = (field(line, "LSDA offset="), line.find("2nd level")) {
            lsdas.push((function, lsda));
        }
    }
    (encodings, lsdas)
}

#[test]
fn compact_unwind_is_what_llvm_reads() {
    let (mut files, mut looked_up) = (0, 0);
    for_each_object(|name, path, object| {
        let tables = UnwindTables::read(object);
        let sections = tables.sections();
        let Some(compact) = Compact::new(&sections) else { return };
        let Some(listing) = llvm("llvm-objdump", "--unwind-info", path) else { return };
        let (encodings, lsdas) = listed_encodings(&listing);
        let base = object.image_base().get();
        let ours: Vec<_> = compact.entries().collect();
        let pairs: Vec<_> = ours
            .iter()
            .map(|entry| (entry.range.start().get() - base, u64::from(entry.encoding.raw())))
            .collect();
        assert_eq!(pairs, encodings, "{name}");
        let with_lsda: Vec<_> = ours
            .iter()
            .filter_map(|entry| Some((entry.range.start().get() - base, entry.lsda?.get() - base)))
            .collect();
        assert_eq!(with_lsda, lsdas, "{name}");
        looked_up += look_up_encodings(name, &compact, &encodings, base);
        files += 1;
    });
    eprintln!("compact unwind: {files} objects, {looked_up} addresses looked up");
}

/// Looks addresses up all over the functions; each has the encoding that was listed last before it.
fn look_up_encodings(name: &str, compact: &Compact<'_>, encodings: &[(u64, u64)], base: u64) -> u64 {
    let (Some((first, _)), Some((last, _))) = (encodings.first(), encodings.last()) else { return 0 };
    let step = ((last - first) / MAX_LOOKUPS).max(1);
    let (mut at, mut position, mut count) = (*first, 0, 0);
    while at < *last {
        while encodings.get(position + 1).is_some_and(|(start, _)| *start <= at) {
            position += 1;
        }
        let entry = compact.entry_at(Svma::new(base + at)).unwrap();
        let found = entry.map(|entry| u64::from(entry.encoding.raw()));
        assert_eq!(found, Some(encodings[position].1), "{name}: {at:#x}");
        at += step;
        count += 1;
    }
    assert_eq!(compact.entry_at(Svma::new(base + first - 1)), Ok(None));
    count
}

#[test]
fn every_encoding_of_real_files_has_a_row_or_an_fde() {
    for_each_object(|name, _, object| {
        let tables = UnwindTables::read(object);
        let sections = tables.sections();
        let Some(compact) = Compact::new(&sections) else { return };
        let eh_frame = sections.eh_frame.map_or(0, |section| section.data.len());
        for entry in compact.entries() {
            match compact.row_of(&entry) {
                Ok(CompactFound::Row(_)) => {}
                Ok(CompactFound::EhFrame(offset)) => {
                    assert!((offset as usize) < eh_frame, "{name}: {entry:?}");
                }
                Err(miss) => assert_eq!(entry.encoding.raw() & 0x0f00_0000, 0, "{name}: {entry:?}: {miss:?}"),
            }
        }
    });
}

/// One function of the index as llvm-readelf lists it.
#[derive(Default, PartialEq, Eq, Debug)]
struct Listed {
    start: u64,
    model: String,
    ops: Vec<String>,
}

fn listed_index(listing: &str) -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    for line in listing.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("FunctionAddress: ") {
            all.push(Listed { start: hex(address), ..Listed::default() });
        }
        let Some(last) = all.last_mut() else { continue };
        if let Some(model) = line.strip_prefix("Model: ") {
            model.clone_into(&mut last.model);
        } else if let Some(index) = line.strip_prefix("PersonalityIndex: ") {
            last.model = format!("{} {index}", last.model);
        } else if let Some(address) = line.strip_prefix("PersonalityRoutineAddress: ") {
            last.model = format!("{} {:#x}", last.model, hex(address) & !1);
        } else if let Some((bytes, op)) = line.split_once(" ; ")
            && bytes.starts_with("0x")
        {
            last.ops.push(op.replace("fp", "r11").replace("ip", "r12"));
        }
    }
    all
}

fn our_index(exidx: &Exidx<'_>) -> Vec<Listed> {
    let listed = |entry: backtrail_unwind::exidx::Entry<'_>| {
        let start = entry.range.start().get();
        match entry.content().unwrap() {
            Content::CannotUnwind => Listed { start, model: "CantUnwind".to_owned(), ops: Vec::new() },
            Content::Unwind { model, code, .. } => {
                let ops = code.map(|op| op.to_string().replace(" fstmfdx", "")).collect();
                match model {
                    Model::Inline => Listed { start, model: "Compact (Inline) 0".to_owned(), ops },
                    Model::Compact(index) => Listed { start, model: format!("Compact {index}"), ops },
                    // The tools do not look into what a personality routine reads.
                    Model::Generic(routine) => {
                        Listed { start, model: format!("Generic {:#x}", routine.get()), ops: Vec::new() }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    };
    exidx.entries().map(listed).collect()
}

#[test]
fn the_exception_index_is_what_llvm_reads() {
    let (mut files, mut looked_up, mut without_row) = (0, 0, 0);
    for_each_object(|name, path, object| {
        let tables = UnwindTables::read(object);
        let sections = tables.sections();
        let Some(exidx) = Exidx::new(&sections) else { return };
        let Some(listing) = llvm("llvm-readelf", "-u", path) else { return };
        let theirs = listed_index(&listing);
        let ours = our_index(&exidx);
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{name}");
        }
        looked_up += look_up_functions(name, &exidx, &theirs);
        let rows = exidx.entries().map(|entry| exidx.find(entry.range.start()));
        without_row += rows.filter(|row| matches!(row, Err(backtrail_unwind::Miss::NoRow))).count();
        files += 1;
    });
    eprintln!(
        "exidx: {files} objects, {looked_up} addresses looked up; {without_row} entries say what no row can"
    );
}

fn look_up_functions(name: &str, exidx: &Exidx<'_>, listed: &[Listed]) -> u64 {
    let (Some(first), Some(last)) = (listed.first(), listed.last()) else { return 0 };
    let step = ((last.start - first.start) / MAX_LOOKUPS).max(1);
    let (mut at, mut position, mut count) = (first.start, 0, 0);
    while at < last.start {
        while listed.get(position + 1).is_some_and(|next| next.start <= at) {
            position += 1;
        }
        let entry = exidx.entry_at(Svma::new(at));
        assert_eq!(
            entry.map(|entry| entry.range.start().get()),
            Some(listed[position].start),
            "{name}: {at:#x}"
        );
        at += step;
        count += 1;
    }
    count
}

/// Counts of one comparison of analysis with tables.
#[derive(Default, Debug)]
struct Compared {
    equal: u64,
    /// The table counts from the frame pointer and the analysis from the stack pointer, or the other way round.
    other_base: u64,
    /// Nothing to be read from the instructions there.
    silent: u64,
    /// The return address is in the link register and on the stack, just stored or loaded; tables say it later.
    copied: u64,
    /// Behind an epilogue of 32-bit ARM code, where clang's table keeps the frame until the function's end.
    kept: u64,
    different: u64,
}

#[test]
fn analysis_says_what_exact_tables_say() {
    for_each_object(|name, path, object| {
        let family = object.arch().family();
        if object.format() != Format::Elf || !matches!(family, Family::Aarch64 | Family::Arm) {
            return;
        }
        let tables = UnwindTables::read(object);
        let sections = tables.sections();
        let flavour = if family == Family::Arm { Flavour::DebugFrame } else { Flavour::EhFrame };
        let Some(frames) = Frames::new(&sections, flavour) else { return };
        let (mut starts, mut rows) = (Vec::new(), Vec::new());
        for entry in frames.entries() {
            let Entry::Fde(fde) = entry else { continue };
            let mut all: Vec<_> = frames.rows(&fde).flatten().collect();
            // That nobody called a program's first function is a table's knowledge: its instructions show no sign of it.
            all.retain(|(_, row)| row.return_address != Rule::Undefined);
            let entered = all.first().is_some_and(|(_, row)| row.cfa == Cfa::RegisterOffset(family.sp(), 0));
            let is_code = sections.text_at(fde.range.start()).is_some();
            if entered && is_code && !all.iter().any(|(_, row)| row.is_signal_frame) {
                starts.push(fde.range.start());
                rows.extend(all);
            }
        }
        starts.sort_unstable();
        let code_alone = |starts: Vec<Svma>, exidx: bool| {
            Module::new(Sections {
                arch: sections.arch,
                text: sections.text.clone(),
                exidx: sections.exidx.filter(|_| exidx),
                extab: sections.extab,
                function_starts: starts,
                ..Sections::default()
            })
        };
        let map = CodeMap::of(path, family);
        let modules = [
            ("starts known", code_alone(starts.clone(), false)),
            ("starts unknown", code_alone(Vec::new(), false)),
            ("with exidx", code_alone(starts, true)),
        ];
        for (how, module) in modules {
            if rows.is_empty() || (how == "with exidx" && sections.exidx.is_none()) {
                continue;
            }
            let compared = Comparison { module: &module, family, map: &map }.all(&rows);
            eprintln!("{name}, {how}: {compared:?}");
            let all = compared.equal + compared.copied + compared.different;
            assert!(compared.different <= all / 100, "{name}, {how}: {compared:?}");
        }
    });
}

/// What lies where in the code of 32-bit ARM: its mapping symbols (AAELF32, section 5.5.5).
struct CodeMap {
    /// The address and the letter: `a`, `t`, or `d` for data.
    symbols: Vec<(u64, char)>,
}

impl CodeMap {
    fn of(path: &Path, family: Family) -> Self {
        if family != Family::Arm {
            return Self { symbols: Vec::new() };
        }
        let listing = llvm("llvm-readelf", "--symbols", path).unwrap_or_default();
        let symbol = |line: &str| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let letter = fields.last()?.strip_prefix('$')?.chars().next()?;
            Some((u64::from_str_radix(fields.get(1)?, 16).ok()?, letter))
        };
        let mut symbols: Vec<_> = listing.lines().filter_map(symbol).collect();
        symbols.sort_unstable();
        Self { symbols }
    }

    /// The letter that holds at `at`; `a` where there is none.
    fn letter(&self, at: Svma) -> char {
        let after = self.symbols.partition_point(|(start, _)| *start <= at.get());
        after.checked_sub(1).map_or('a', |last| self.symbols[last].1)
    }
}

struct Comparison<'m, 'd> {
    module: &'m Module<'d>,
    family: Family,
    map: &'m CodeMap,
}

impl Comparison<'_, '_> {
    /// Whether one row says the link register and the other a place on the stack.
    fn is_copied(&self, ours: &Row, theirs: &Row) -> bool {
        let link = Rule::Register(self.family.lr().unwrap());
        let pair = [ours.return_address, theirs.return_address];
        pair.contains(&link) && pair.iter().any(|rule| matches!(rule, Rule::Offset(_)))
    }

    /// At every instruction.
    fn all(&self, rows: &[(AddrRange<Svma>, Row)]) -> Compared {
        let mut compared = Compared::default();
        for (range, row) in rows {
            let mut at = range.start();
            while at < range.end() {
                let letter = self.map.letter(at);
                if letter != 'd' {
                    let undone = self.is_undone(range.start(), at, letter == 't');
                    self.one(at, letter == 't', undone, row, &mut compared);
                }
                let is_short = letter != 'a' && !self.is_long(at);
                at = at.checked_add(if is_short { 2 } else { 4 }).unwrap();
            }
        }
        compared
    }

    fn is_long(&self, at: Svma) -> bool {
        self.module.code_at(at).and_then(|code| code.get(1)).is_some_and(|byte| byte >> 3 >= 0b1_1101)
    }

    /// Whether 32-bit ARM's instructions from `start` give stack back before `end`.
    fn is_undone(&self, start: Svma, end: Svma, thumb: bool) -> bool {
        let mut at = start;
        while self.family == Family::Arm && at < end {
            let Some(code) = self.module.code_at(at).and_then(|code| code.get(..4)) else { return false };
            let [low, high] = [code[0], code[1]];
            // `pop`, `add sp, #…`, `pop.w` and `ldr lr, [sp], #…`; in the other mode `pop`, `add sp, sp, #…`, `ldr …`.
            let gives = match thumb {
                true => {
                    matches!((high, low), (0xbc | 0xbd, _) | (0xb0, ..0x80) | (0xe8, 0xbd) | (0xf8, 0x5d))
                }
                false => matches!((code[3], code[2]), (0xe8, 0xbd) | (0xe2, 0x8d) | (0xe4, 0x9d)),
            };
            if gives {
                return true;
            }
            at = at.checked_add(if thumb && !self.is_long(at) { 2 } else { 4 }).unwrap();
        }
        false
    }

    fn one(&self, at: Svma, thumb: bool, undone: bool, row: &Row, compared: &mut Compared) {
        let Ok(found) = self.module.find_exact(at, thumb) else {
            compared.silent += 1;
            return;
        };
        match (found.row.cfa, row.cfa) {
            (Cfa::RegisterOffset(ours, _), Cfa::RegisterOffset(theirs, _)) if ours != theirs => {
                compared.other_base += 1;
            }
            _ if found.row.cfa == row.cfa && found.row.return_address == row.return_address => {
                compared.equal += 1;
            }
            _ if found.row.cfa == row.cfa && self.is_copied(&found.row, row) => compared.copied += 1,
            (Cfa::RegisterOffset(_, ours), Cfa::RegisterOffset(_, theirs)) if undone && ours < theirs => {
                compared.kept += 1;
            }
            _ => {
                compared.different += 1;
                if compared.different <= 8 {
                    let (ours, theirs) = (&found.row, row);
                    eprintln!(
                        "  {at}: {:?} {:?} by {}, table {:?} {:?}",
                        ours.cfa, ours.return_address, found.trust, theirs.cfa, theirs.return_address
                    );
                }
            }
        }
    }
}
