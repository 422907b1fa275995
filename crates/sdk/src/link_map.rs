//! A linker's own account of where it put what: Apple's ld64 and ld-prime and LLVM's for Mach-O (one format), LLVM's and
//! GNU's for ELF.

use std::collections::HashMap;

use backtrail_core::{AddrRange, Arch, Confidence, Svma};
use backtrail_object::{Object, Section};

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::hash::{Digest, Domain, Set};
use crate::owned::OwnedRange;

/// Lines of one link map. The largest that was seen has three million.
const MAX_LINES: usize = 1 << 26;

/// What a link map says of code and data, or a binary's debug map of code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkMap {
    /// Whether the binary itself says it: the debug map.
    is_debug_map: bool,
    arch: Option<Arch>,
    files: Vec<String>,
    sections: Vec<(String, AddrRange<Svma>)>,
    /// Ranges with the numbers of their files; empty ones are folded into what lies there.
    pieces: Vec<(AddrRange<Svma>, usize)>,
    /// Symbols with their files and hashes of their names; Mach-O's maps alone have them.
    names: Vec<(Svma, usize, Digest)>,
}

/// One thing that the linker put somewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Piece<'a> {
    /// Where it lies. Empty where it shares the place of what was found to be the same.
    pub range: AddrRange<Svma>,
    /// The file that it came from, as the linker names it: a path, or an archive with its member in parentheses.
    pub file: &'a str,
}

impl LinkMap {
    /// Reads a link map of any of the known linkers.
    ///
    /// # Errors
    /// Where it is none, or has more lines than any program needs.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let text = String::from_utf8_lossy(bytes);
        let is = |start: &str| text.lines().take(64).any(|line| line.starts_with(start));
        let mut map = if is("# Object files:") || is("# Path:") {
            mach_o(&text)
        } else if text.lines().take(4).any(|line| line.contains("VMA") && line.contains("Out     In")) {
            lld_elf(&text)
        } else if text.contains("Linker script and memory map") {
            gnu(&text)
        } else {
            let detail = "expected a link map of ld64, ld-prime, LLD or GNU ld";
            return Err(Error::at(ErrorKind::WrongInput, 0, detail));
        };
        if text.lines().count() > MAX_LINES {
            return Err(Error::new(ErrorKind::LimitExceeded, format!("more than {MAX_LINES} lines")));
        }
        if map.pieces.is_empty() {
            return Err(Error::at(ErrorKind::Malformed, 0, "expected symbols with addresses in a link map"));
        }
        map.pieces.sort_by_key(|(range, file)| (range.start(), range.end(), *file));
        Ok(map)
    }

    /// The architecture, where the map states it.
    pub fn arch(&self) -> Option<Arch> {
        self.arch
    }

    /// What the debug map of a linked Mach-O says, which is there until the file is stripped; `None` where it has none. Only code
    /// that was compiled with debug info is in it.
    pub fn of_debug_map(object: &Object<'_>) -> Option<Self> {
        let mut map = Self { is_debug_map: true, ..Self::default() };
        for entry in object.debug_map() {
            let file = match &entry.member {
                Some(member) => format!("{}({member})", entry.path),
                None => entry.path.to_string(),
            };
            let number = map.files.len();
            map.files.push(file);
            map.pieces.extend(
                entry
                    .functions
                    .iter()
                    .filter(|function| function.size > 0)
                    .map(|function| (AddrRange::from_size(function.address, function.size), number)),
            );
        }
        map.pieces.sort_by_key(|(range, file)| (range.start(), range.end(), *file));
        (!map.pieces.is_empty()).then_some(map)
    }

    /// The file that the code at an address came from, as the linker names it. Files of which several were folded into one
    /// place are not told apart: then there is none.
    pub fn file_at(&self, address: Svma) -> Option<&str> {
        let after = self.pieces.partition_point(|(range, _)| range.start() <= address);
        let before = self.pieces.get(..after)?;
        let (range, file) = before.iter().rev().find(|(range, _)| !range.is_empty())?;
        let same_start = |(other, _): &&(AddrRange<Svma>, usize)| other.start() == range.start();
        let is_shared = before.iter().rev().take_while(same_start).any(|(_, other)| other != file);
        let is_in = range.contains(address) && !is_shared;
        self.files.get(*file).filter(|_| is_in).map(String::as_str)
    }

    /// The addresses of the code section, by which builds that cannot have this map are passed over; `None` where it has none.
    pub fn code(&self) -> Option<AddrRange<Svma>> {
        self.sections.iter().find(|(name, _)| is_code_section(name)).map(|(_, range)| *range)
    }

    /// For each range the file that its code came from, ascending, none over another: what [`file_at`](Self::file_at) says of every
    /// address, without the pieces.
    pub fn file_ranges(&self) -> Vec<(AddrRange<Svma>, &str)> {
        let mut bounds: Vec<_> =
            self.pieces.iter().flat_map(|(range, _)| [range.start(), range.end()]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let mut ranges: Vec<(AddrRange<Svma>, &str)> = Vec::new();
        for (start, end) in bounds.iter().zip(bounds.iter().skip(1)) {
            let Some(file) = self.file_at(*start) else { continue };
            match ranges.last_mut() {
                Some((last, same)) if last.end() == *start && *same == file => {
                    *last = AddrRange::new(last.start(), *end);
                }
                _ => ranges.push((AddrRange::new(*start, *end), file)),
            }
        }
        ranges
    }

    /// What the linker put where, by address.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.pieces.iter().map(|(range, file)| Piece {
            range: *range,
            file: self.files.get(*file).map(String::as_str).unwrap_or_default(),
        })
    }

    /// Fails where the map is that of another build.
    ///
    /// A link map names no build. Its code section must be that of the app, and nine of ten functions must start where it has
    /// something, or nine of ten of its pieces where a function starts.
    pub(crate) fn check(&self, object: &Object<'_>) -> Result<()> {
        if self.is_debug_map {
            return Ok(());
        }
        let Some(code) = code_section(object) else {
            return Err(Error::new(ErrorKind::Mismatch, "the app has no section of code to compare"));
        };
        let stated = self.sections.iter().find(|(name, _)| *name == code.name);
        if stated.is_none_or(|(_, range)| *range != code.address) {
            let stated = stated.map_or_else(|| "none".to_owned(), |(_, range)| format!("{range:?}"));
            let detail = format!(
                "the link map is that of another build: it has {} at {stated}, the app at {:?}",
                code.name, code.address
            );
            return Err(Error::new(ErrorKind::Mismatch, detail));
        }
        // Code alone does not tell apps apart that differ in a stamped library.
        let loaded =
            object.sections().iter().filter(|section| section.is_loaded && !section.address.is_empty());
        let (mut all, mut same) = (0usize, 0usize);
        for section in loaded {
            all += 1;
            let is_same = |(name, range): &(String, AddrRange<Svma>)| {
                *name == section.name && *range == section.address
            };
            same += usize::from(self.sections.iter().any(is_same));
        }
        if same * 10 < all * 9 {
            let detail = format!(
                "the link map is that of another build: {same} of the app's {all} sections are where it says"
            );
            return Err(Error::new(ErrorKind::Mismatch, detail));
        }
        let starts = object.function_starts().unwrap_or_default();
        let stated: Vec<Svma> = self
            .pieces
            .iter()
            .filter(|(range, _)| !range.is_empty() && code.address.contains(range.start()))
            .map(|(range, _)| range.start())
            .collect();
        let inside: Vec<Svma> =
            starts.iter().copied().filter(|start| code.address.contains(*start)).collect();
        // Mach-O's maps list functions, ELF's whole sections of them: the shorter list must be among the longer one.
        let (few, many) = if stated.len() < inside.len() { (&stated, &inside) } else { (&inside, &stated) };
        let met = few.iter().filter(|start| many.binary_search(start).is_ok()).count();
        if met * 10 < few.len() * 9 {
            let detail = format!(
                "the link map is that of another build: of {} places that are in both, {met} start where the app has a function",
                few.len()
            );
            return Err(Error::new(ErrorKind::Mismatch, detail));
        }
        Ok(())
    }

    /// The ranges of code that came from learnt libraries.
    pub(crate) fn owned(&self, object: &Object<'_>, fingerprints: &[Fingerprint]) -> Vec<OwnedRange> {
        let owners = self.owners(fingerprints);
        let code: Vec<_> = object
            .sections()
            .iter()
            .filter(|section| section.is_code)
            .map(|section| section.address)
            .collect();
        let mut ranges: Vec<OwnedRange> = Vec::new();
        for (range, file) in &self.pieces {
            let Some(Some(fingerprint)) = owners.get(*file) else { continue };
            if range.is_empty() || !code.iter().any(|code| code.contains(range.start())) {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.range.end() > range.start() => {}
                Some(last) if last.range.end() == range.start() && last.owner == fingerprint.name => {
                    last.range = AddrRange::new(last.range.start(), range.end());
                }
                _ => ranges.push(OwnedRange {
                    range: *range,
                    owner: fingerprint.name.clone(),
                    shared_by: Vec::new(),
                    version: Some(fingerprint.version.clone()),
                    confidence: Confidence::Certain,
                    how: if self.is_debug_map { "debug map" } else { "link map" },
                }),
            }
        }
        ranges
    }

    /// Where functions of a learnt library lie: addresses, hashes of their members and of their names.
    pub(crate) fn named(&self, fingerprint: &Fingerprint) -> Vec<(Svma, Digest, Digest)> {
        let owners = self.owners(std::slice::from_ref(fingerprint));
        let of_library =
            self.names.iter().filter(|(_, file, _)| owners.get(*file).is_some_and(Option::is_some));
        let named = of_library.filter_map(|(address, file, name)| {
            let (_, member) = parts(self.files.get(*file)?);
            Some((*address, Digest::of(Domain::Name, member.as_bytes()), *name))
        });
        let mut named: Vec<_> = named.collect();
        named.sort_unstable();
        named
    }

    /// The library of each file: that which has most of the members that the archive of the file gave.
    fn owners<'f>(&self, fingerprints: &'f [Fingerprint]) -> Vec<Option<&'f Fingerprint>> {
        let members: Vec<(&Fingerprint, Set<u64>)> = fingerprints
            .iter()
            .map(|fingerprint| {
                let slices = fingerprint.slices.iter();
                (fingerprint, slices.flat_map(|slice| slice.members.iter().map(|member| member.0)).collect())
            })
            .collect();
        let mut archives: HashMap<&str, Vec<(usize, Digest)>> = HashMap::new();
        for (number, file) in self.files.iter().enumerate() {
            let (archive, member) = parts(file);
            archives.entry(archive).or_default().push((number, Digest::of(Domain::Name, member.as_bytes())));
        }
        let mut owners = vec![None; self.files.len()];
        for given in archives.values() {
            let known =
                |members: &Set<u64>| given.iter().filter(|(_, member)| members.contains(&member.0)).count();
            let best = members.iter().map(|(fingerprint, members)| (known(members), *fingerprint));
            // The first of equals: an order that does not depend on hashing.
            let best = best.fold(
                (0, None),
                |best: (usize, Option<&Fingerprint>), (count, fingerprint)| {
                    if count > best.0 { (count, Some(fingerprint)) } else { best }
                },
            );
            if best.0 * 2 > given.len() {
                for (number, _) in given {
                    if let Some(owner) = owners.get_mut(*number) {
                        *owner = best.1;
                    }
                }
            }
        }
        owners
    }
}

/// Whether a section is the one that linkers put code into.
fn is_code_section(name: &str) -> bool {
    matches!(name, "__text" | ".text")
}

fn code_section<'o>(object: &'o Object<'_>) -> Option<&'o Section<'o>> {
    object.sections().iter().find(|section| section.is_code && is_code_section(&section.name))
}

/// The addresses of an image's code section: a [`LinkMap`] of it has the same.
pub fn code_range(object: &Object<'_>) -> Option<AddrRange<Svma>> {
    code_section(object).map(|section| section.address)
}

/// `path/lib.a(member.o)` as archive and member; a plain file is its own archive.
fn parts(file: &str) -> (&str, &str) {
    let base = |path: &'_ str| path.rfind('/').map_or(0, |at| at + 1);
    match file.strip_suffix(')').and_then(|file| file.rsplit_once('(')) {
        Some((archive, member)) => (archive, member.get(base(member)..).unwrap_or_default()),
        None => (file, file.get(base(file)..).unwrap_or_default()),
    }
}

/// `0x…`, or bare hexadecimal digits.
fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text), 16).ok()
}

fn range(start: u64, size: u64) -> AddrRange<Svma> {
    AddrRange::from_size(Svma::new(start), size)
}

/// The format of Apple's linkers: `# Object files:`, `# Sections:`, `# Symbols:`.
fn mach_o(text: &str) -> LinkMap {
    let mut map = LinkMap::default();
    let mut files: HashMap<&str, usize> = HashMap::new();
    let mut part = "";
    for line in text.lines() {
        if line.starts_with('#') {
            if let Some(arch) = line.strip_prefix("# Arch:") {
                map.arch = Arch::from_name(arch.trim());
            } else if line.ends_with(':') {
                part = line.trim_matches(['#', ' ', ':']);
            }
            continue;
        }
        match part {
            "Object files" => {
                let Some((number, file)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
                else {
                    continue;
                };
                files.insert(number.trim(), map.files.len());
                map.files.push(file.trim().to_owned());
            }
            "Sections" => {
                let mut words = line.split_whitespace();
                let (Some(start), Some(size)) = (words.next().and_then(hex), words.next().and_then(hex))
                else {
                    continue;
                };
                if let Some(name) = words.nth(1) {
                    map.sections.push((name.to_owned(), range(start, size)));
                }
            }
            "Symbols" => {
                let Some((numbers, rest)) = line.split_once('[') else { continue };
                let mut numbers = numbers.split_whitespace();
                let (Some(start), Some(size)) = (numbers.next().and_then(hex), numbers.next().and_then(hex))
                else {
                    continue;
                };
                let file = rest.split_once(']').and_then(|(number, _)| files.get(number.trim()));
                if let Some(file) = file {
                    if let Some((_, name)) = rest.split_once("] ").filter(|_| size > 0) {
                        map.names.push((Svma::new(start), *file, Digest::of(Domain::Name, name.as_bytes())));
                    }
                    map.pieces.push((range(start, size), *file));
                }
            }
            _ => {}
        }
    }
    map
}

/// Numbers files by their names.
#[derive(Default)]
struct Files<'t> {
    numbers: HashMap<&'t str, usize>,
    names: Vec<String>,
}

impl<'t> Files<'t> {
    fn number(&mut self, name: &'t str) -> usize {
        let next = self.names.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.names.push(name.to_owned());
        }
        number
    }
}

/// LLVM's for ELF: columns `VMA LMA Size Align Out In Symbol`, the last three by their indentation.
fn lld_elf(text: &str) -> LinkMap {
    let mut map = LinkMap::default();
    let mut files = Files::default();
    for line in text.lines().skip(1) {
        let mut words = line.split_whitespace();
        let (Some(start), Some(_), Some(size), Some(_)) =
            (words.next().and_then(hex), words.next(), words.next().and_then(hex), words.next())
        else {
            continue;
        };
        let Some(name) = words.next() else { continue };
        let Some(column) = line.find(name) else { continue };
        let before = line.get(..column).unwrap_or_default();
        // After `Align`, which ends at a fixed column, an output section has one blank, what came in eight more.
        let blanks = before.len() - before.trim_end().len();
        if let Some((file, _)) = line.rsplit_once(":(").filter(|_| blanks > 1) {
            let file = file.get(column..).unwrap_or_default();
            let number = files.number(file);
            map.pieces.push((range(start, size), number));
        } else if blanks == 1 {
            map.sections.push((name.to_owned(), range(start, size)));
        }
    }
    map.files = files.names;
    map
}

/// GNU's: a line for each output section, below it one a piece; a long name stands on a line of its own.
fn gnu(text: &str) -> LinkMap {
    let mut map = LinkMap::default();
    let mut files = Files::default();
    let placed = text.find("Linker script and memory map").and_then(|at| text.get(at..)).unwrap_or_default();
    let mut pending: Option<(&str, bool)> = None;
    for line in placed.lines() {
        let is_output = !line.starts_with(' ');
        let mut words = line.split_whitespace().peekable();
        let named = words.peek().is_some_and(|word| !word.starts_with("0x"));
        let (name, is_output) = if named {
            let name = words.next().unwrap_or_default();
            (name, is_output)
        } else {
            match pending.take() {
                Some(pending) => pending,
                None => continue,
            }
        };
        pending = None;
        if words.peek().is_none() {
            pending = Some((name, is_output));
            continue;
        }
        let (Some(start), Some(size)) = (words.next().and_then(hex), words.next().and_then(hex)) else {
            continue;
        };
        let file = words.next();
        match file {
            None if is_output => map.sections.push((name.to_owned(), range(start, size))),
            Some(word) if !is_output => {
                let file = line.find(word).and_then(|at| line.get(at..)).unwrap_or(word).trim_end();
                let number = files.number(file);
                map.pieces.push((range(start, size), number));
            }
            _ => {}
        }
    }
    map.files = files.names;
    map
}
