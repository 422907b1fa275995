//! What a crash costs, with the handler in the process, with a watcher, and with crashpad's handler, in turn.

use crate::Result;
use crate::build::{Libraries, output};
use crate::hosts::programs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Where Debian's chromium-common has it.
const CRASHPAD: &str = "/usr/lib/chromium/chrome_crashpad_handler";
/// A program with many libraries; they are loaded into ours, to have as many images.
const MANY_LIBRARIES: &str = "/usr/lib/chromium/chromium";
const HOW: [&str; 4] = ["none", "backtrail", "watcher", "crashpad"];

/// What a round tells, each in the unit that `programs/cost.c` has it in, and the size of the file that was left.
#[derive(Clone, Copy, Default)]
struct Round {
    numbers: [f64; 5],
    size: usize,
}

pub(crate) fn run(directory: &Path, libraries: &Libraries, rounds: usize) -> Result<()> {
    let program = directory.join("cost");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/ffi/include");
    let mut compile = Command::new("cc");
    compile.args(["-g", "-O2", "-Wall"]).arg(programs().join("cost.c")).arg("-I").arg(include);
    compile.arg(format!("-L{}", directory.display())).arg("-lbacktrail").arg("-lpthread");
    output(compile.arg(format!("-Wl,-rpath,{}", directory.display())).arg("-o").arg(&program))?;
    let has_crashpad = Path::new(CRASHPAD).is_file();
    println!(
        "threads  how           ms  beyond none  beyond a bare write  file KB  ready ms  own KB  other KB"
    );
    for threads in ["1", "100", "1000"] {
        let mut told = HOW.map(|_| Vec::new());
        for _ in 0..rounds {
            for (how, told) in HOW.iter().zip(&mut told) {
                if *how != "crashpad" || has_crashpad {
                    told.push(round(&program, how, threads, &[], directory, libraries)?);
                }
            }
        }
        let none = median(told.first().map_or(&[], Vec::as_slice), 0);
        for (how, told) in HOW.iter().zip(&told) {
            let Some(size) = told.first().map(|round: &Round| round.size) else { continue };
            let [ms, ready, own, other] = [0, 1, 2, 3].map(|number| median(told, number));
            let bare = if size > 0 { bare_write(directory, size, rounds)? } else { 0.0 };
            let (beyond, kilobytes) = (ms - none, size.div_ceil(1024));
            println!(
                "{threads:>7}  {how:<10} {ms:>6.1} {beyond:>12.1} {:>20.1} {kilobytes:>8} {ready:>9.1} {own:>7} {other:>9}",
                beyond - bare
            );
        }
    }
    per_image(&program, rounds, has_crashpad, directory, libraries)?;
    if !has_crashpad {
        println!("{CRASHPAD} is not there: Debian's chromium-common has it");
    }
    Ok(())
}

/// What it takes to be ready, and what stays resident, with few images and with many.
fn per_image(
    program: &Path,
    rounds: usize,
    has_crashpad: bool,
    directory: &Path,
    libraries: &Libraries,
) -> Result<()> {
    let listed = output(Command::new("ldd").arg(MANY_LIBRARIES)).unwrap_or_default();
    let path = |line: &str| Some(line.split_once("=> ")?.1.split(' ').next()?.to_owned());
    let many: Vec<String> = listed.lines().filter_map(path).filter(|path| path.starts_with('/')).collect();
    println!("\n images  how        ready ms  own KB  other KB");
    for count in [0, many.len()] {
        let loaded = many.get(..count).unwrap_or_default();
        let mut told = HOW.map(|_| Vec::new());
        for _ in 0..rounds {
            for (how, told) in HOW.iter().zip(&mut told).skip(1) {
                if *how != "crashpad" || has_crashpad {
                    told.push(round(program, how, "1", loaded, directory, libraries)?);
                }
            }
        }
        for (how, told) in HOW.iter().zip(&told).filter(|(_, told)| !told.is_empty()) {
            let [ready, own, other, images] = [1, 2, 3, 4].map(|number| median(told, number));
            println!("{images:>7}  {how:<10} {ready:>8.1} {own:>7} {other:>9}");
        }
        if many.is_empty() {
            println!("{MANY_LIBRARIES} is not there: what more images cost is not measured");
            break;
        }
    }
    Ok(())
}

fn median(rounds: &[Round], number: usize) -> f64 {
    let mut numbers: Vec<f64> =
        rounds.iter().filter_map(|round| round.numbers.get(number).copied()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

fn round(
    program: &Path,
    how: &str,
    threads: &str,
    loaded: &[String],
    directory: &Path,
    libraries: &Libraries,
) -> Result<Round> {
    let crashes = directory.join("run").join("cost");
    let _ = std::fs::remove_dir_all(&crashes);
    std::fs::create_dir_all(&crashes).map_err(|error| format!("{}: {error}", crashes.display()))?;
    let mut command = Command::new(program);
    command.arg(how).arg(&crashes).arg(threads).args(loaded);
    command.env("MATRIX_WATCHER", &libraries.program).env("CRASHPAD", CRASHPAD);
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut round = Round::default();
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    for place in &mut round.numbers {
        let number = numbers.next().and_then(std::result::Result::ok);
        *place = number.ok_or_else(|| {
            format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr))
        })?;
    }
    // Crashpad's are in a directory below.
    let places = [crashes.clone(), crashes.join("pending")];
    let entries = places.iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten();
    let is_report = |name: &std::ffi::OsStr| {
        Path::new(name).extension().is_some_and(|own| own == "btcrash" || own == "dmp")
    };
    let report =
        entries.filter(|entry| is_report(&entry.file_name())).find_map(|entry| entry.metadata().ok());
    round.size = report.map_or(0, |report| usize::try_from(report.len()).unwrap_or(0));
    if round.size == 0 && how != "none" {
        return Err(format!("{command:?}: left no report"));
    }
    Ok(round)
}

/// Milliseconds that writing so many bytes takes, with `fsync` of the file, a new name, and `fsync` of the directory.
fn bare_write(directory: &Path, size: usize, rounds: usize) -> Result<f64> {
    let (part, whole) = (directory.join("bare.part"), directory.join("bare"));
    let bytes = vec![1; size];
    let mut times = Vec::new();
    for _ in 0..rounds {
        let begun = Instant::now();
        let written = std::fs::File::create(&part).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()?;
            std::fs::rename(&part, &whole)?;
            std::fs::File::open(directory)?.sync_all()
        });
        written.map_err(|error| format!("{}: {error}", part.display()))?;
        times.push(Round { numbers: [begun.elapsed().as_secs_f64() * 1e3, 0.0, 0.0, 0.0, 0.0], size });
        let _ = std::fs::remove_file(&whole);
    }
    Ok(median(&times, 0))
}
