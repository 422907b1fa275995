//! Compares what was found with what the linker says.

use std::collections::HashSet;
use std::path::Path;

use backtrail_object::{Limits, Object};
use backtrail_sdk::{Fingerprint, LinkMap, MapOptions, OwnedRange, map};

use crate::Result;

/// Counts of one case.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Score {
    pub(crate) functions: u64,
    pub(crate) found: u64,
    pub(crate) bytes: u64,
    pub(crate) found_bytes: u64,
    pub(crate) wrong: u64,
    pub(crate) wrong_bytes: u64,
    /// Functions of the whole app.
    pub(crate) all: u64,
    pub(crate) all_bytes: u64,
    pub(crate) seconds: f64,
    /// Of another version: functions of names that the known one has.
    pub(crate) named: u64,
    pub(crate) named_found: u64,
    pub(crate) named_bytes: u64,
    pub(crate) named_found_bytes: u64,
    /// Functions that were found and whose version was said.
    pub(crate) versioned: u64,
    /// Functions that are likely by another body.
    pub(crate) changed: u64,
}

impl Score {
    pub(crate) fn add(&mut self, other: &Self) {
        self.functions += other.functions;
        self.found += other.found;
        self.bytes += other.bytes;
        self.found_bytes += other.found_bytes;
        self.wrong += other.wrong;
        self.wrong_bytes += other.wrong_bytes;
        self.all += other.all;
        self.all_bytes += other.all_bytes;
        self.seconds += other.seconds;
        self.versioned += other.versioned;
        self.changed += other.changed;
    }

    /// Of another version: how much of what has a name of the known one was found.
    pub(crate) fn named_line(&self) -> String {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        format!(
            "version {}, {} of {} changed; of {} functions that the known one has by name: R {:.3} / {:.3}",
            if self.versioned > 0 { "WRONG" } else { "unknown" },
            self.changed,
            self.found,
            self.named,
            share(self.named_found, self.named),
            share(self.named_found_bytes, self.named_bytes)
        )
    }

    /// How much of what is not weak was found.
    pub(crate) fn firm_line(&self) -> String {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        format!(
            "not weak: R {:.3} / {:.3} of {}",
            share(self.named_found, self.named),
            share(self.named_found_bytes, self.named_bytes),
            self.named
        )
    }

    pub(crate) fn line(&self) -> String {
        let share = |part: u64, whole: u64| {
            if whole == 0 { "    –".to_owned() } else { format!("{:.3}", part as f64 / whole as f64) }
        };
        let claimed = self.found + self.wrong;
        format!(
            "P {}  R {} / {}  of {:>6} functions {:>8} bytes  wrong {:>3} functions {:>5} bytes  app {:>6} functions  {:.2} s  version of {}, changed {}",
            share(self.found, claimed),
            share(self.found, self.functions),
            share(self.found_bytes, self.bytes),
            self.functions,
            self.bytes,
            self.wrong,
            self.wrong_bytes,
            self.all,
            self.seconds,
            self.versioned,
            self.changed
        )
    }
}

/// A library as the judge knows it: what its files' paths contain, and what its fingerprint is called.
pub(crate) struct Owner<'a> {
    pub(crate) path: &'a str,
    pub(crate) name: &'a str,
}

/// An app as the judge knows it.
#[derive(Clone, Copy)]
pub(crate) struct Linked<'a> {
    /// Stripped.
    pub(crate) app: &'a Path,
    pub(crate) map: &'a Path,
    /// The app before that, where its symbols may be used as those of a debug file are.
    pub(crate) symbols: Option<&'a Path>,
    /// The addresses of functions that are not weak, where they are counted for themselves: of a weak one an app may have a copy.
    pub(crate) firm: Option<&'a HashSet<u64>>,
}

/// Maps the stripped app and judges by the link map of the unstripped one. `known` are the names of the known version's functions.
/// `show` prints what is wrong or missing.
pub(crate) fn judge(
    linked: Linked<'_>,
    fingerprints: &[Fingerprint],
    owners: &[Owner<'_>],
    known: Option<&HashSet<String>>,
    show: usize,
) -> Result<Score> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let (data, truth) = (read(linked.app)?, read(linked.map)?);
    let symbols = linked.symbols.map(read).transpose()?;
    let text = String::from_utf8_lossy(&truth).into_owned();
    let truth = LinkMap::parse(&truth).map_err(|error| error.to_string())?;
    let object = Object::parse_with(&data, &Limits::default()).map_err(|error| error.to_string())?;
    let limits = Limits::default();
    let symbols = symbols.as_deref().map(|symbols| Object::parse_with(symbols, &limits));
    let symbols = symbols.transpose().map_err(|error| error.to_string())?;
    let debug_files: Vec<_> = symbols.iter().collect();
    let start = std::time::Instant::now();
    let found = map(&object, fingerprints, &MapOptions::with_debug_files(&debug_files))
        .map_err(|error| error.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    let code: Vec<_> = object
        .sections()
        .iter()
        .filter(|section| {
            section.is_code && !section.name.contains("stub") && !section.name.starts_with(".plt")
        })
        .map(|section| section.address)
        .collect();
    let owner_of = |file: &str| owners.iter().find(|owner| file.contains(owner.path)).map(|owner| owner.name);
    let mut score = Score { seconds, ..Score::default() };
    let pieces: Vec<_> = truth.pieces().collect();
    let starts = object.function_starts().map_err(|error| error.to_string())?;
    let mut shown = 0;
    for (index, start) in starts.iter().enumerate() {
        let start = *start;
        let Some(section) = code.iter().find(|code| code.contains(start)) else { continue };
        // The last piece that begins there or before and is not empty.
        let after = pieces.partition_point(|piece| piece.range.start() <= start);
        let before = pieces.get(..after).unwrap_or_default();
        let piece = before.iter().rev().take(64).find(|piece| piece.range.contains(start));
        // Padding and what the linker made itself is nobody's, and no function.
        let Some(piece) = piece else { continue };
        let next = starts.get(index + 1).copied().unwrap_or(section.end());
        let size = next.min(piece.range.end()).offset_from(start).unwrap_or(0);
        let folded = pieces.partition_point(|other| other.range.start() < start);
        let here =
            pieces.get(folded..).unwrap_or_default().iter().take_while(|other| other.range.start() == start);
        let names: Vec<_> =
            here.filter_map(|piece| owner_of(piece.file)).chain(owner_of(piece.file)).collect();
        let claim = claim_at(&found.ranges, start);
        let is_owned = owner_of(piece.file).is_some();
        score.all += 1;
        score.all_bytes += size;
        if is_owned {
            score.functions += 1;
            score.bytes += size;
        }
        let name = || symbol(&text, start.get());
        let is_firm = linked.firm.is_some_and(|firm| firm.contains(&start.get()));
        let is_named = is_owned
            && (is_firm
                || known.is_some_and(|known| {
                    name().rsplit("] ").next().is_some_and(|name| known.contains(name))
                }));
        if is_named {
            score.named += 1;
            score.named_bytes += size;
        }
        match claim {
            Some(claim)
                if names.contains(&claim.owner.as_str())
                    || claim.shared_by.iter().any(|name| names.contains(&name.as_str())) =>
            {
                // Of folded code another's claim is right, too, and nothing that was to be found.
                let counted = u64::from(is_owned);
                score.found += counted;
                score.found_bytes += counted * size;
                score.named_found += u64::from(is_named);
                score.versioned += u64::from(claim.version.is_some());
                score.changed += u64::from(claim.how == "changed");
                score.named_found_bytes += u64::from(is_named) * size;
            }
            Some(claim) => {
                score.wrong += 1;
                score.wrong_bytes += size;
                if shown < show {
                    shown += 1;
                    println!("    wrong {start} {size} {} ({}) {}", claim.how, claim.owner, name());
                }
            }
            None if is_owned && shown < show => {
                shown += 1;
                println!("    missing {start} {size} {}", name());
            }
            None => {}
        }
    }
    Ok(score)
}

fn symbol(text: &str, start: u64) -> String {
    let wanted = format!("0x{start:X}\t");
    let wanted = wanted.replace("0x", "0x0").replace("0x0", "0x");
    text.lines()
        .find(|line| line.starts_with(&wanted) && !line.contains("__TEXT"))
        .unwrap_or_default()
        .to_owned()
}

fn claim_at(ranges: &[OwnedRange], address: backtrail_core::Svma) -> Option<&OwnedRange> {
    let after = ranges.partition_point(|range| range.range.start() <= address);
    ranges.get(after.checked_sub(1)?).filter(|range| range.range.contains(address))
}
