//! Compares answers with those of llvm-symbolizer on random addresses of a file.
//!
//! `accuracy FILE [--companion FILE]… [--arch ARCH] [--count N] [--seed N] [--symbolizer PROGRAM] [--all-code]
//! [--address A]… [--show N] [--json] [--sample | --coverage [--every-byte]]`
//!
//! Inline depth, function (by its address range where the names differ, since one address has several names), file,
//! line and column of every frame are compared; and the answers of a table made of the same file. Each kind of difference is counted and shown with a few examples.
//! Kinds that start with a word in capitals are not explained in `docs/accuracy.md` and make the exit code 1.
//! `--sample` only prints the addresses. `--coverage` asks in every range of every function instead, and LLVM nothing. `cargo xtask accuracy` runs this on the files of that page.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a program for people at a terminal; JSON of a known shape is indexed"
)]

mod compare;
mod coverage;
mod explain;
mod sample;
mod table;
mod theirs;

use backtrail_core::{Arch, Svma};
use backtrail_object::{Limits, Object, slices};
use backtrail_symbolize::{Answer, FileRequest, Step, Symbolizer};
use compare::Report;
use explain::Facts;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

pub(crate) struct Options {
    pub(crate) file: PathBuf,
    companions: Vec<PathBuf>,
    pub(crate) arch: Option<Arch>,
    pub(crate) count: usize,
    pub(crate) seed: u64,
    pub(crate) symbolizer: String,
    /// Also the sections that hold instructions and no functions: PLT stubs, patches.
    pub(crate) all_code: bool,
    show: usize,
    json: bool,
    /// Only print the addresses.
    sample: bool,
    addresses: Vec<u64>,
    /// Ask in every range of every function.
    coverage: bool,
    /// At each byte of it.
    pub(crate) every_byte: bool,
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
        all_code: false,
        show: 3,
        json: false,
        sample: false,
        addresses: Vec::new(),
        coverage: false,
        every_byte: false,
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--companion" => options.companions.push(value()?.into()),
            "--arch" => options.arch = Some(Arch::from_name(&value()?).ok_or("unknown architecture")?),
            "--count" => options.count = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--symbolizer" => options.symbolizer = value()?,
            "--all-code" => options.all_code = true,
            "--show" => options.show = value()?.parse()?,
            "--json" => options.json = true,
            "--sample" => options.sample = true,
            "--coverage" => options.coverage = true,
            "--every-byte" => options.every_byte = true,
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

/// Files stay read for the whole run.
fn read(path: &Path) -> Result<&'static [u8]> {
    Ok(std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?.leak())
}

fn main() -> Result<()> {
    let options = options()?;
    let mut objects = vec![object(read(&options.file)?, options.arch)?];
    let facts = Facts::of(&objects[0]);
    let addresses = match options.addresses.as_slice() {
        [] => sample::addresses(&objects, &options),
        given => given.to_vec(),
    };
    if options.sample {
        addresses.iter().for_each(|address| println!("{address:#x}"));
        return Ok(());
    }
    for companion in &options.companions {
        objects.push(object(read(companion)?, options.arch)?);
    }
    let symbolizer = Symbolizer::new(objects)?;
    if options.coverage {
        return covered(&symbolizer, &options);
    }
    let start = Instant::now();
    let ours: Vec<_> = addresses.iter().map(|address| lookup(&symbolizer, *address, &options.file)).collect();
    let our_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let theirs = theirs::ask(&options, &addresses)?;
    let their_seconds = start.elapsed().as_secs_f64();
    if theirs.len() != addresses.len() {
        return Err(format!("{}: {} answers", options.symbolizer, theirs.len()).into());
    }
    let of_table = table::differences(&symbolizer, &addresses, &ours)?;
    let mut report = Report::new(facts, of_table);
    for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(&theirs) {
        report.compare(*address, ours, theirs);
    }
    if options.json {
        println!("{}", report.to_json(our_seconds, their_seconds));
    } else {
        for problem in symbolizer.problems().iter().take(10) {
            println!("problem: {problem}");
        }
        println!("backtrail: {our_seconds:.3} s; {}: {their_seconds:.3} s", options.symbolizer);
        report.print(options.show);
    }
    if report.is_explained() { Ok(()) } else { Err("some differences are not explained".into()) }
}

fn covered(symbolizer: &Symbolizer<'static>, options: &Options) -> Result<()> {
    let coverage = coverage::check(&object(read(&options.file)?, options.arch)?, symbolizer, options)?;
    if options.json {
        println!("{}", coverage.to_json());
    } else {
        coverage.print(options.show);
    }
    if coverage.is_whole() { Ok(()) } else { Err("some addresses are not answered".into()) }
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
