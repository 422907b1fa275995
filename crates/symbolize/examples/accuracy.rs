//! Compares answers with those of another symbolizer on random addresses of a file.
//!
//! `accuracy FILE [--companion FILE]… [--arch ARCH] [--count N] [--seed N] [--symbolizer PROGRAM] [--show N]`
//!
//! The program is `llvm-symbolizer` by default; its JSON output is read. Inline depth, the function (its start where
//! the names differ, since one address has several names), file, line and column of every frame are compared. Each
//! kind of difference is counted and shown with a few examples; the last line has the share of equal answers.

// A program for people: it prints, and JSON of a known shape is indexed.
#![allow(clippy::print_stdout, clippy::indexing_slicing)]

use backtrail_core::{Arch, Svma};
use backtrail_object::{Limits, Object, slices};
use backtrail_symbolize::{Answer, FileRequest, Step, Symbolizer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

struct Options {
    file: PathBuf,
    companions: Vec<PathBuf>,
    arch: Option<Arch>,
    count: usize,
    seed: u64,
    symbolizer: String,
    show: usize,
    addresses: Vec<u64>,
}

fn options() -> Result<Options> {
    let mut args = std::env::args().skip(1);
    let mut options = Options {
        file: PathBuf::new(),
        companions: Vec::new(),
        arch: None,
        count: 1000,
        seed: 1,
        symbolizer: "llvm-symbolizer".into(),
        show: 3,
        addresses: Vec::new(),
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--companion" => options.companions.push(value()?.into()),
            "--arch" => options.arch = Some(Arch::from_name(&value()?).ok_or("unknown architecture")?),
            "--count" => options.count = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--symbolizer" => options.symbolizer = value()?,
            "--show" => options.show = value()?.parse()?,
            "--address" => {
                options.addresses.push(u64::from_str_radix(value()?.trim_start_matches("0x"), 16)?);
            }
            _ => options.file = arg.into(),
        }
    }
    Ok(options)
}

fn object(data: &'static [u8], arch: Option<Arch>) -> Result<Object<'static>> {
    let limits = Limits::default();
    let slices = slices(data, &limits)?;
    let slice = slices.iter().find(|slice| arch.is_none_or(|arch| slice.arch == arch));
    Ok(slice.ok_or("no slice of that architecture")?.parse(&limits)?)
}

/// Files stay mapped or read for the whole run.
fn read(path: &Path) -> Result<&'static [u8]> {
    Ok(std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?.leak())
}

fn main() -> Result<()> {
    let options = options()?;
    let mut objects = vec![object(read(&options.file)?, options.arch)?];
    let addresses =
        if options.addresses.is_empty() { sample(&objects, &options) } else { options.addresses.clone() };
    for companion in &options.companions {
        objects.push(object(read(companion)?, options.arch)?);
    }
    let symbolizer = Symbolizer::new(objects)?;
    let start = Instant::now();
    let ours: Vec<_> = addresses.iter().map(|address| lookup(&symbolizer, *address, &options.file)).collect();
    println!("backtrail: {} answers in {:.3} s", addresses.len(), start.elapsed().as_secs_f64());
    for problem in symbolizer.problems().iter().take(10) {
        println!("problem: {problem}");
    }
    let start = Instant::now();
    let theirs = ask(&options, &addresses)?;
    println!("{}: {} answers in {:.3} s", options.symbolizer, theirs.len(), start.elapsed().as_secs_f64());
    let mut report = Report::default();
    for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(&theirs) {
        report.compare(*address, ours, theirs);
    }
    report.print(options.show);
    Ok(())
}

/// Random addresses in the code sections, the same for the same seed.
fn sample(objects: &[Object<'_>], options: &Options) -> Vec<u64> {
    let sections = objects.iter().flat_map(Object::sections);
    let code: Vec<_> =
        sections.filter(|section| section.is_code && section.is_loaded).map(|s| s.address).collect();
    let total: u64 = code.iter().map(|range| range.size()).sum();
    let mut state = options.seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mut at = (mixed ^ (mixed >> 31)) % total.max(1);
        for range in &code {
            if at < range.size() {
                return range.start().get() + at;
            }
            at -= range.size();
        }
        0
    };
    (0..options.count).map(|_| next()).collect()
}

fn lookup<'a>(symbolizer: &'a Symbolizer<'static>, address: u64, file: &Path) -> Answer<'a> {
    loop {
        match symbolizer.lookup(Svma::new(address)) {
            Step::Answer(answer) => return answer,
            Step::NeedFile(request) => {
                let path = match &request {
                    FileRequest::Dwo { path, .. } | FileRequest::DebugMapObject { path, .. } => path.into(),
                    FileRequest::Dwp => PathBuf::from(format!("{}.dwp", file.display())),
                    FileRequest::Supplementary { path, .. } => file.parent().unwrap_or(file).join(path),
                    _ => PathBuf::new(),
                };
                symbolizer.provide(&request, read(&path).ok());
            }
        }
    }
}

/// Asks the other symbolizer for all addresses.
fn ask(options: &Options, addresses: &[u64]) -> Result<Vec<Value>> {
    let mut command = Command::new(&options.symbolizer);
    command.arg(format!("--obj={}", options.file.display()));
    if let Some(arch) = options.arch {
        command.arg(format!("--default-arch={arch}"));
    }
    command.args(["--output-style=JSON", "--inlines", "--no-demangle"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().ok_or("no stdin")?;
    let lines: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| "writing to the symbolizer failed")??;
    Ok(serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .collect::<std::result::Result<_, _>>()?)
}

#[derive(Default)]
struct Report {
    equal: usize,
    differences: BTreeMap<&'static str, Vec<String>>,
    total: usize,
    with_debug_info: usize,
    frames: usize,
}

/// A frame of either side, in the same words.
#[derive(PartialEq, Debug, Clone)]
struct Frame {
    function: String,
    file: String,
    line: u64,
    column: u64,
}

impl Report {
    fn compare(&mut self, address: u64, ours: &Answer<'_>, theirs: &Value) {
        self.total += 1;
        self.with_debug_info += usize::from(!ours.functions.is_empty());
        self.frames += ours.functions.len();
        let (own, other) = (own_frames(ours), other_frames(theirs));
        let start =
            theirs["Symbol"][other.len().saturating_sub(1)]["StartAddress"].as_str().unwrap_or_default();
        let start = u64::from_str_radix(start.trim_start_matches("0x"), 16).ok();
        let same_start = start.is_none() || start == ours.function_start.map(Svma::get);
        match difference(&own, &other, same_start) {
            None => self.equal += 1,
            Some(kind) => {
                let start = ours.function_start.map_or("-".into(), |start| start.to_string());
                let mut text = format!("{address:#x}\n    ours ({start}):");
                for frame in &own {
                    text += &format!("\n      {frame:?}");
                }
                text += &format!(
                    "\n    theirs ({}):",
                    theirs["Symbol"][other.len().saturating_sub(1)]["StartAddress"]
                );
                for frame in &other {
                    text += &format!("\n      {frame:?}");
                }
                self.differences.entry(kind).or_default().push(text);
            }
        }
    }

    fn print(&self, show: usize) {
        for (kind, examples) in &self.differences {
            println!("{kind}: {}", examples.len());
            for example in examples.iter().take(show) {
                println!("  {example}");
            }
        }
        let share = 100.0 * self.equal as f64 / self.total.max(1) as f64;
        println!("debug info: {} addresses, {} frames in all", self.with_debug_info, self.frames);
        println!("equal: {} of {} ({share:.3} %)", self.equal, self.total);
    }
}

fn difference(own: &[Frame], other: &[Frame], same_start: bool) -> Option<&'static str> {
    if own.len() != other.len() {
        return Some(if own.len() < other.len() { "fewer frames" } else { "more frames" });
    }
    let last = own.len() - 1;
    for (index, (own, other)) in own.iter().zip(other).enumerate() {
        if own.function != other.function && (index < last || !same_start) {
            return Some(match (own.function.is_empty(), other.function.is_empty()) {
                (true, _) => "no function",
                (_, true) => "a function more",
                _ if index < last => "another inlined function",
                _ => "another function",
            });
        }
        if own.file != other.file {
            return Some(match (own.file.is_empty(), other.file.is_empty()) {
                (true, _) => "no file",
                (_, true) => "a file more",
                _ => "another file",
            });
        }
        if own.line != other.line {
            return Some("another line");
        }
        if own.column != other.column {
            return Some("another column");
        }
    }
    None
}

fn own_frames(answer: &Answer<'_>) -> Vec<Frame> {
    if let Some(symbol) = &answer.symbol {
        let name = symbol.linkage_name();
        let function = name.to_owned();
        return vec![Frame { function, file: String::new(), line: 0, column: 0 }];
    }
    if answer.functions.is_empty() {
        return vec![Frame { function: String::new(), file: String::new(), line: 0, column: 0 }];
    }
    let frame = |function: &backtrail_symbolize::FunctionRef<'_>| Frame {
        function: function.linkage_name().unwrap_or_default().to_owned(),
        file: function.file().map(ToString::to_string).unwrap_or_default(),
        line: function.line().unwrap_or(0).into(),
        column: function.column().unwrap_or(0).into(),
    };
    answer.functions.iter().map(frame).collect()
}

fn other_frames(answer: &Value) -> Vec<Frame> {
    let text = |value: &Value| match value.as_str() {
        Some("??") | None => String::new(),
        Some(text) => text.to_owned(),
    };
    let frame = |symbol: &Value| Frame {
        function: text(&symbol["FunctionName"]),
        file: text(&symbol["FileName"]),
        line: symbol["Line"].as_u64().unwrap_or(0),
        column: symbol["Column"].as_u64().unwrap_or(0),
    };
    answer["Symbol"].as_array().map(|symbols| symbols.iter().map(frame).collect()).unwrap_or_default()
}
