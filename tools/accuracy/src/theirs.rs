//! The other symbolizer.

use crate::{Options, Result};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

/// A frame of either side, in the same words.
#[derive(PartialEq, Debug, Clone, Default)]
pub(crate) struct Frame {
    pub(crate) function: String,
    pub(crate) file: String,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// What it says of an address.
pub(crate) struct Theirs {
    /// Innermost first; one frame of empty fields where it knows nothing.
    pub(crate) frames: Vec<Frame>,
    /// Where the function or symbol starts.
    pub(crate) start: Option<u64>,
}

/// Asks it for all addresses.
pub(crate) fn ask(options: &Options, addresses: &[u64]) -> Result<Vec<Theirs>> {
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
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    Ok(answers.map(|answer| answer.map(|answer| read(&answer))).collect::<std::result::Result<_, _>>()?)
}

fn read(answer: &Value) -> Theirs {
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
    let symbols = answer["Symbol"].as_array().map_or(&[][..], Vec::as_slice);
    let start = symbols.last().and_then(|symbol| symbol["StartAddress"].as_str());
    let start = start.and_then(|start| u64::from_str_radix(start.trim_start_matches("0x"), 16).ok());
    Theirs { frames: symbols.iter().map(frame).collect(), start }
}
