//! `backtrail ndk-stack`: the flags and output of the NDK's ndk-stack.

use super::options::{Servers, symbols};
use crate::io::console::Console;
use crate::io::file::refuse_pipe;
use crate::io::lines::LineBatches;
use crate::io::text::Text;
use crate::outcome::{Failure, Outcome};
use backtrail::{Analysis, Frame, Function, Limits, Symbols};
use clap::Args;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// The NDK's ndk-stack: symbolizes the native crashes in a log of Android.
///
/// Takes the flags of ndk-stack, with one dash or two, and prints what it prints: `adb logcat | backtrail ndk-stack --sym DIR`.
/// Libraries are found by build id, also in directories below DIR; without a build id, by their name. Also runs under its own
/// name, as a link called `ndk-stack`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NdkStack {
    /// The directory of unstripped libraries.
    #[arg(long, value_name = "DIR")]
    pub(crate) sym: PathBuf,
    /// Read the log from FILE instead of standard input.
    #[arg(short = 'i', long, value_name = "FILE")]
    pub(crate) dump: Option<PathBuf>,
}

/// Gives long flags the second dash that ndk-stack does not need.
pub(crate) fn with_two_dashes(argv: Vec<OsString>) -> Vec<OsString> {
    let with_dash = |word: OsString| {
        let name = word.to_str().and_then(|word| word.strip_prefix('-')).unwrap_or_default();
        let name = name.split('=').next().unwrap_or(name);
        if matches!(name, "sym" | "dump") {
            OsString::from(format!("-{}", word.to_string_lossy()))
        } else {
            word
        }
    };
    argv.into_iter().map(with_dash).collect()
}

pub(crate) fn run(args: &NdkStack, console: &Console) -> Result<Outcome, Failure> {
    if !args.sym.exists() {
        return Err(Failure::Input(format!("{} does not exist!", args.sym.display())));
    }
    let symbols = symbols(std::slice::from_ref(&args.sym), None, &Servers::default(), console)?;
    let mut out = console.stdout();
    let out = Text::new(&mut out, console.style_of_tools());
    let mut tool = Tool {
        symbols: &symbols,
        out,
        console,
        in_crash: false,
        has_frame: false,
        fingerprint: String::new(),
        told: Vec::new(),
    };
    match &args.dump {
        Some(path) => {
            refuse_pipe(path).map_err(Failure::Input)?;
            let file =
                File::open(path).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
            tool.all(file)?;
        }
        None => tool.all(console.stdin())?,
    }
    Ok(Outcome::Done)
}

/// What a crash in a log begins with.
const BANNER: &str = "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***";

struct Tool<'a, 'o> {
    symbols: &'a Symbols,
    out: Text<'o>,
    console: &'a Console,
    in_crash: bool,
    has_frame: bool,
    /// The line that tells the version, by which addresses are read.
    fingerprint: String,
    /// What was said of files once.
    told: Vec<String>,
}

impl Tool<'_, '_> {
    fn all(&mut self, input: impl Read) -> Result<(), Failure> {
        let mut batches = LineBatches::new(input);
        while let Some(lines) = batches.next_batch()? {
            for line in lines {
                self.line(line.trim_end())?;
            }
            self.out.flush()?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        if !self.in_crash {
            if line.contains(BANNER) {
                (self.in_crash, self.has_frame) = (true, false);
                self.fingerprint.clear();
                self.out.line("********** Crash dump: **********")?;
            }
            return Ok(());
        }
        for tag in ["Build fingerprint:", "Abort message:"] {
            if let Some(found) = line.find(tag).and_then(|at| line.get(at..)) {
                if tag.starts_with("Build") {
                    found.clone_into(&mut self.fingerprint);
                }
                self.out.line(found)?;
            }
        }
        match row(line) {
            Some((number, pc, tail)) => {
                self.has_frame = true;
                self.frame(number, pc, tail)?;
            }
            None if self.has_frame => {
                self.in_crash = false;
                self.out.line("Crash dump is completed")?;
                self.out.end()?;
            }
            None => {}
        }
        Ok(())
    }

    fn frame(&mut self, number: &str, pc: &str, tail: &str) -> Result<(), Failure> {
        let shown = format!("{number} 0x{pc} {tail}");
        let indent = " ".repeat(shown.find('(').map_or(0, |at| at + 1));
        self.out.line(&shown)?;
        let input = format!("{}\n{number} pc {pc}  {tail}\n", self.fingerprint);
        let Ok(analysis) = Analysis::new(input.as_bytes(), self.symbols, &Limits::default()) else {
            return Ok(());
        };
        let process = &analysis.report.process;
        let frame = process.threads.iter().flat_map(|thread| &thread.frames).next();
        let Some(frame) = frame else { return Ok(()) };
        let image = frame.image.and_then(|at| process.images.get(at));
        let Some(image) = image else { return Ok(()) };
        for tried in image.symbols.tried.iter().filter(|tried| !tried.starts_with("nothing with")) {
            if !self.told.contains(tried) {
                self.console.warn(tried);
                self.told.push(tried.clone());
            }
        }
        if image.symbols.has_file() {
            for line in answer(frame) {
                self.out.line(format_args!("{indent}{line}"))?;
            }
        }
        Ok(())
    }
}

/// The number, address and rest of a row; whatever a log puts before it.
fn row(line: &str) -> Option<(&str, &str, &str)> {
    line.match_indices('#').find_map(|(at, _)| {
        let is_set_off = line.get(..at)?.chars().next_back().is_none_or(|before| before == ' ');
        let rest = line.get(at..).filter(|_| is_set_off)?;
        let (number, rest) = rest.split_once(' ')?;
        let rest = rest.trim_start().strip_prefix("pc ")?.trim_start();
        let (pc, tail) = rest.split_once(' ')?;
        let pc = pc.strip_prefix("0x").unwrap_or(pc);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_hex = !pc.is_empty() && pc.bytes().all(|byte| byte.is_ascii_hexdigit());
        let tail = tail.trim_start();
        (is_hex && is_number(number.get(1..)?) && !tail.is_empty()).then_some((number, pc, tail))
    })
}

/// Function and place by turns, innermost first, as llvm-symbolizer prints them.
fn answer(frame: &Frame) -> Vec<String> {
    let place = |function: &Function| {
        let file = function.file.as_deref().unwrap_or("??");
        format!("{file}:{}:{}", function.line.unwrap_or(0), function.column.unwrap_or(0))
    };
    if frame.functions.is_empty() {
        let name = frame.symbol.as_ref().map_or("??", |symbol| symbol.name.as_str());
        return vec![name.to_owned(), "??:0:0".to_owned()];
    }
    frame.functions.iter().flat_map(|function| [function.name.clone(), place(function)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_behind_whatever_a_log_has_before() {
        for line in [
            "11-22 17:00:00.123  1234  1234 F DEBUG   :     #01 pc 0000b884  /data/lib.so (f+4)",
            "    #01 pc 0x0000b884  /data/lib.so (f+4)",
            "#01 pc 0000b884  /data/lib.so (f+4)",
            "I/DEBUG(1): #12#01     #01 pc 0000b884  /data/lib.so (f+4)",
        ] {
            assert_eq!(row(line), Some(("#01", "0000b884", "/data/lib.so (f+4)")), "{line}");
        }
        for line in ["", "#01", "#01 pc zz /x", "#x pc 12 /x", "a#01 pc 12 /x", "#01 pc 12"] {
            assert_eq!(row(line), None, "{line}");
        }
    }

    #[test]
    fn long_flags_need_one_dash_only() {
        let words =
            with_two_dashes(["-sym", "d", "-dump=x", "--sym", "-i", "-symbol"].map(OsString::from).into());
        assert_eq!(words, ["--sym", "d", "--dump=x", "--sym", "-i", "-symbol"]);
    }
}
