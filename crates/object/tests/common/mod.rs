//! Object files to test with: those of the repository, of the corpus, and this test program itself.

#![allow(dead_code, reason = "each test program uses its own part")]
#![expect(unreachable_pub, clippy::expect_used, clippy::print_stderr, reason = "test support")]

pub mod everything;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file and its bytes, decompressed where it is stored compressed.
pub struct File {
    pub path: PathBuf,
    pub data: Vec<u8>,
}

/// Every file that may be an object: the sample, the corpus, this program, and what `BACKTRAIL_OBJECTS` lists
/// (separated by colons; directories count with all that is in them).
pub fn files() -> Vec<File> {
    let mut paths = vec![std::env::current_exe().expect("a path")];
    walk(&backtrail_testkit::fixtures(), &mut paths);
    for directory in ["crashprobe/dSYMs", "core", "offline"] {
        if let Some(directory) = backtrail_testkit::corpus_file(directory) {
            walk(&directory, &mut paths);
        }
    }
    for more in std::env::var_os("BACKTRAIL_OBJECTS").iter().flat_map(std::env::split_paths) {
        walk(&more, &mut paths);
    }
    paths.sort();
    paths.into_iter().filter_map(read).collect()
}

fn walk(path: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(directory) = path.read_dir() else { return paths.push(path.to_path_buf()) };
    for entry in directory.map_while(Result::ok) {
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if !is_link {
            walk(&entry.path(), paths);
        }
    }
}

fn read(path: PathBuf) -> Option<File> {
    let raw = std::fs::read(&path).expect("readable");
    let mut data = Vec::new();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => {
            flate2::read::GzDecoder::new(&*raw).read_to_end(&mut data).expect("gzip");
        }
        Some("zst") => {
            ruzstd::decoding::StreamingDecoder::new(&*raw)
                .expect("zstd")
                .read_to_end(&mut data)
                .expect("zstd");
        }
        Some("bz2") => data = run(Command::new("bzip2").arg("-dc").arg(&path))?,
        _ => data = raw,
    }
    Some(File { path, data })
}

/// A command's output; `None`, with one line on stderr, where there is no such program.
pub fn run(command: &mut Command) -> Option<Vec<u8>> {
    match command.stdin(Stdio::null()).stderr(Stdio::null()).output() {
        Ok(output) => Some(output.stdout),
        Err(_) => {
            eprintln!("not compared: {} is not installed", command.get_program().display());
            None
        }
    }
}

/// One of LLVM's tools, by the name that Debian gives it or by its own.
pub fn llvm(tool: &str) -> Command {
    let versioned = format!("{tool}-22");
    let is_there =
        Command::new(&versioned).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    Command::new(if is_there.is_ok() { &versioned } else { tool })
}
