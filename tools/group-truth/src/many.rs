//! A hundred thousand reports of bugs that are known: variants of real reports of Apple's, each with an incident, a time and a slide of
//! its own, and whether `backtrail group` finds the groups of the originals in them again.

use crate::Result;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What is done, from the command line.
pub(crate) struct Many<'a> {
    pub(crate) program: &'a Path,
    /// Where the variants are written.
    pub(crate) directory: &'a Path,
    pub(crate) reports: &'a Path,
    pub(crate) symbols: &'a Path,
    pub(crate) count: usize,
}

impl Many<'_> {
    /// Writes the variants, groups them and compares. Tells whether each group has its reports and there are no others.
    pub(crate) fn run(&self) -> Result<bool> {
        let mut originals = Vec::new();
        files(self.reports, &mut originals)?;
        originals.sort();
        if originals.is_empty() {
            return Err(format!("{}: no file", self.reports.display()));
        }
        let times = self.count.div_ceil(originals.len());
        let bytes = self.write(&originals, times)?;
        println!("{} reports of {} bytes in all", times * originals.len(), bytes);
        let (expected, _) = self.group(self.reports)?;
        let (found, seconds) = self.group(self.directory)?;
        println!("{} groups, {seconds:.1} s", found.len());
        let expected: BTreeMap<_, _> =
            expected.into_iter().map(|(id, count)| (id, count * times as u64)).collect();
        for (id, count) in &found {
            if expected.get(id) != Some(count) {
                println!("{id}: {count} reports, expected {}", expected.get(id).copied().unwrap_or_default());
            }
        }
        Ok(expected == found)
    }

    /// Writes so many variants of each, 1,000 to a directory. Tells their bytes.
    fn write(&self, originals: &[PathBuf], times: usize) -> Result<u64> {
        let mut bytes = 0;
        let mut number = 0;
        let originals: Vec<String> = originals.iter().map(|path| read(path)).collect::<Result<_>>()?;
        for _ in 0..times {
            for original in &originals {
                let room = self.directory.join(format!("{:04}", number / 1000));
                if number % 1000 == 0 {
                    fs::create_dir_all(&room).map_err(|error| format!("{}: {error}", room.display()))?;
                }
                let variant = variant(original, number);
                let path = room.join(format!("{number:07}.ips"));
                fs::write(&path, &variant).map_err(|error| format!("{}: {error}", path.display()))?;
                bytes += variant.len() as u64;
                number += 1;
            }
        }
        Ok(bytes)
    }

    /// The groups of a directory with the number of their reports, those without a group as one; and the seconds it took.
    fn group(&self, directory: &Path) -> Result<(BTreeMap<String, u64>, f64)> {
        let mut command = Command::new(self.program);
        command.arg("group").arg(directory).arg("-s").arg(self.symbols).args(["--format", "json"]);
        let began = Instant::now();
        let output = command.output().map_err(|error| format!("{}: {error}", self.program.display()))?;
        let seconds = began.elapsed().as_secs_f64();
        let json: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
        let count = |group: &Value| group.get("count").and_then(Value::as_u64);
        let of = |group: &Value| Some((group.get("id")?.as_str()?.to_owned(), count(group)?));
        let listed = json.get("groups").and_then(Value::as_array);
        let mut groups: BTreeMap<_, _> = listed.into_iter().flatten().filter_map(of).collect();
        groups.insert("apart".to_owned(), json.get("apart").and_then(count).unwrap_or_default());
        Ok((groups, seconds))
    }
}

fn files(directory: &Path, all: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() { files(&path, all)? } else { all.push(path) }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Slides are multiples of a page of arm64.
const PAGE: u64 = 0x4000;

/// The report as another device sends it: another incident, another time, all images at other addresses.
fn variant(original: &str, number: usize) -> String {
    let slide = ((number as u64 * 2_654_435_761) >> 7) % 4096 * PAGE;
    let mut text =
        if original.starts_with('{') { slid_json(original, slide) } else { slid_text(original, slide) };
    for key in ["Incident Identifier: ", "\"incident_id\": \"", "\"incident\": \""] {
        if let Some(at) = text.find(key).map(|at| at + key.len()) {
            let end = (at + 36).min(text.len());
            text.replace_range(at..end, &format!("{number:08X}-0000-4000-8000-{number:012X}"));
        }
    }
    let time = format!(
        "2024-{:02}-{:02} {:02}:{:02}:{:02}",
        1 + number / 28 % 12,
        1 + number % 28,
        number / 7 % 24,
        number % 60,
        number / 3 % 60
    );
    for key in ["Date/Time:           ", "\"timestamp\": \"", "\"captureTime\": \""] {
        if let Some(at) = text.find(key).map(|at| at + key.len()) {
            let end = (at + time.len()).min(text.len());
            text.replace_range(at..end, &time);
        }
    }
    text
}

/// Adds the slide to each hexadecimal number that lies in an image, and keeps its width.
fn slid_text(original: &str, slide: u64) -> String {
    let images = original.split_once("Binary Images:").map_or("", |(_, images)| images);
    let ranges: Vec<(u64, u64)> = images
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let start = hexadecimal(words.next()?)?;
            words.next().filter(|word| *word == "-")?;
            Some((start, hexadecimal(words.next()?)?))
        })
        .collect();
    let mut out = String::with_capacity(original.len());
    let mut rest = original;
    while let Some(at) = rest.find("0x") {
        let (before, number) = rest.split_at(at);
        let end = number[2..].find(|c: char| !c.is_ascii_hexdigit()).map_or(number.len(), |end| end + 2);
        let (number, after) = number.split_at(end);
        out.push_str(before);
        match hexadecimal(number).filter(|address| is_in(&ranges, *address)) {
            Some(address) => {
                let width = number.len() - 2;
                out.push_str(&format!("0x{:0width$x}", address + slide));
            }
            None => out.push_str(number),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Adds the slide to each image's base, and to each register's value that lies in an image.
fn slid_json(original: &str, slide: u64) -> String {
    let numbers = |key: &str| original.split(key).skip(1).filter_map(decimal).collect::<Vec<u64>>();
    let bases = numbers("\"base\": ");
    let ranges: Vec<(u64, u64)> = bases.iter().map(|base| (*base, *base + 0xfff)).collect();
    let mut out = original.to_owned();
    for (key, is_base) in [("\"base\": ", true), ("\"value\": ", false)] {
        let mut parts = out.split(key);
        let mut slid = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            slid.push_str(key);
            match decimal(part).filter(|value| is_base || is_in(&ranges, *value)) {
                Some(value) => {
                    slid.push_str(&(value + slide).to_string());
                    slid.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
                }
                None => slid.push_str(part),
            }
        }
        out = slid;
    }
    out
}

fn is_in(ranges: &[(u64, u64)], address: u64) -> bool {
    ranges.iter().any(|(start, end)| (*start..=*end).contains(&address))
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

fn decimal(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}
