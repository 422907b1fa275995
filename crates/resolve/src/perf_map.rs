//! Names of code made at run time, as compilers write them for perf: `/tmp/perf-PID.map`, a line each of start, size and
//! name. Linux `tools/perf/Documentation/jit-interface.txt`. node, java agents and python write them when asked to.

use backtrail_core::{Arch, Avma, Symbol};
use backtrail_model::Process;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// Bytes of such a file that are read; node's have some megabytes.
const MAX_BYTES: u64 = 256 << 20;

/// The functions of one file.
#[derive(Debug, Default)]
pub struct PerfMap {
    /// By start; of two with the same, the one that was written last comes last.
    functions: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// Reads the file at a path, as far as it is not too large; `None` where there is none. What is no regular file is none:
    /// anybody may put a pipe that never ends into `/tmp`.
    pub fn read(path: &Path) -> Option<Self> {
        let mut text = Vec::new();
        fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text)).ok()?;
        Some(Self::parse(&text))
    }

    /// Names the frames of a process that have no other name.
    pub fn name(&self, process: &mut Process) {
        let arch = process.arch.unwrap_or(Arch::Unknown);
        let (frames, images) = process.frames_and_images_mut();
        for frame in frames.filter(|frame| frame.is_unnamed()) {
            let Some(symbol) = frame.address.and_then(|address| self.at(address.lookup(arch))) else {
                continue;
            };
            (frame.function_offset, frame.reason) = (Some(symbol.offset), None);
            frame.symbol = Some(symbol);
            if let Some(image) = frame.image.and_then(|image| images.get_mut(image)) {
                image.symbols.forget_unnamed();
            }
        }
    }

    /// Reads the lines that are of the form; others are left out.
    pub fn parse(text: &[u8]) -> Self {
        let function = |line: &[u8]| {
            let line = String::from_utf8_lossy(line);
            let (start, rest) = line.split_once(' ')?;
            let (size, name) = rest.split_once(' ')?;
            let hex = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok();
            let (start, size) = (hex(start)?, hex(size)?);
            Some((start, start.checked_add(size)?, name.trim().to_owned()))
                .filter(|(.., name)| !name.is_empty())
        };
        let mut functions: Vec<_> = text.split(|byte| *byte == b'\n').filter_map(function).collect();
        functions.sort_by_key(|(start, ..)| *start);
        Self { functions }
    }

    /// The function at an address. Code is moved and freed, so that ranges can overlap: of those that begin last, the one
    /// written last.
    pub fn at(&self, address: Avma) -> Option<Symbol> {
        let address = address.get();
        let after = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, _, name) =
            self.functions.get(..after)?.iter().rev().take(16).find(|(_, end, _)| address < *end)?;
        Some(Symbol { name: name.clone(), linkage_name: None, offset: address - start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn what_never_ends_is_not_read() {
        assert!(PerfMap::read(Path::new("/dev/zero")).is_none());
        let directory = backtrail_testkit::TempDir::new("perf-map");
        let (pipe, file) = (directory.join("pipe"), directory.write("file", "7f00 8 Stub\n"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()));
        assert!(PerfMap::read(&pipe).is_none());
        assert!(PerfMap::read(&file).is_some());
    }

    #[test]
    fn functions_are_found_by_address_and_broken_lines_left_out() {
        let map = PerfMap::parse(
            b"7f10 20 LazyCompile:*run /srv/a b.js:3\n7f00 8 Stub\nnonsense\n7f10 10 later\n1 ffffffffffffffff x\n9 9 \n",
        );
        let name = |address| map.at(Avma::new(address)).map(|symbol| (symbol.name, symbol.offset));
        assert_eq!(name(0x7f12), Some(("later".to_owned(), 2)));
        assert_eq!(name(0x7f25), Some(("LazyCompile:*run /srv/a b.js:3".to_owned(), 0x15)));
        assert_eq!((name(0x7f07), name(0x7f08)), (Some(("Stub".to_owned(), 7)), None));
        assert_eq!((name(0), name(0x7f30)), (None, None));
    }
}
