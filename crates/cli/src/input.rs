//! Reports from files, folders and standard input.

use crate::output::Failure;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A report that is yet to be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Input {
    source: Source,
    /// Found in a folder rather than named: what turns out to be no report is passed over.
    pub(crate) found: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Source {
    Stdin,
    File(PathBuf),
}

/// How deep folders of reports are searched.
const MAX_DEPTH: usize = 16;

impl Input {
    /// The name to show.
    pub(crate) fn name(&self) -> String {
        match &self.source {
            Source::Stdin => "standard input".to_owned(),
            Source::File(path) => path.display().to_string(),
        }
    }

    /// The name, without folders and ending, for a file of its own.
    pub(crate) fn stem(&self) -> String {
        match &self.source {
            Source::Stdin => "stdin".to_owned(),
            Source::File(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    /// The bytes, or why there are none. Nothing above `max_bytes` is taken in.
    pub(crate) fn read(&self, max_bytes: usize) -> Result<Vec<u8>, String> {
        match &self.source {
            Source::Stdin => read_limited(std::io::stdin().lock(), max_bytes),
            Source::File(path) => {
                let file = File::open(path).map_err(|error| error.to_string())?;
                if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
                    return Err("is a folder".to_owned());
                }
                read_limited(file, max_bytes)
            }
        }
    }
}

fn read_limited(reader: impl Read, max_bytes: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    reader.take(max_bytes as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > max_bytes {
        return Err(format!("larger than {} MiB: no crash report is", max_bytes >> 20));
    }
    Ok(bytes)
}

/// The inputs that `paths` stand for: folders are searched, in the order of their names.
pub(crate) fn collect(paths: &[PathBuf]) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            inputs.push(Input { source: Source::Stdin, found: false });
        } else if path.is_dir() {
            search(path, MAX_DEPTH, &mut inputs);
        } else {
            inputs.push(Input { source: Source::File(path.clone()), found: false });
        }
    }
    if inputs.is_empty() {
        return Err(Failure::Input("no files in the given folders".to_owned()));
    }
    Ok(inputs)
}

fn search(folder: &Path, depth: usize, inputs: &mut Vec<Input>) {
    let Ok(entries) = fs::read_dir(folder) else {
        // Kept as an input, so that reading it says what is wrong.
        inputs.push(Input { source: Source::File(folder.to_owned()), found: false });
        return;
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| (entry.path(), entry.file_type())).collect();
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, kind) in paths {
        let Ok(kind) = kind else { continue };
        // A dSYM may lie beside the reports; there are none inside it.
        if kind.is_dir() && depth > 0 && path.extension().is_none_or(|ending| ending != "dSYM") {
            search(&path, depth - 1, inputs);
        } else if kind.is_file() {
            inputs.push(Input { source: Source::File(path), found: true });
        }
    }
}
