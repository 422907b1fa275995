//! The JSON forms: stable, described by `docs/report.schema.json`; that of `sdk map` by `docs/sdk.md`.
//!
//! Addresses are strings (`"0x…"`), since JSON numbers lose bits above 2^53. Every key of the schema is always
//! there; what is not known is `null`, an empty list or an empty object.

mod convert;
mod diff;
mod frame;
mod hang;
mod lock;
mod mine;
mod owners;
mod report;

pub use convert::{ConvertedJson, converted};
pub use frame::{FunctionJson, SymbolJson};
pub use hang::{HangJson, hang};
pub use mine::{MinedJson, mined};
pub use owners::{OwnersJson, owners};
pub use report::{ImageJson, ReportJson, StacksJson, image, report, stacks};

use crate::{Analysis, StackDiff, Stacks};
use backtrail_core::SymbolInfo;
use backtrail_core::{Avma, Svma};
use backtrail_hang::Hang;
use serde::Serialize;
use std::io::{self, Write};

/// Names the shape of the report document; the number rises when a consumer would have to change.
pub const REPORT_SCHEMA: &str = "backtrail-report/2";

/// Names the shape of the stacks document.
pub const STACKS_SCHEMA: &str = "backtrail-stacks/1";

/// Names the shape of the document of one hang.
pub const HANG_SCHEMA: &str = "backtrail-hang/1";

/// An address, printed as JSON consumers can read it without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex(u64);

impl Hex {
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for Hex {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Most of a report is numbers: `collect_str` passes their pieces on one by one.
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 18];
        let mut start = text.len();
        let mut rest = self.0;
        for place in text.iter_mut().rev() {
            *place = HEX.get((rest & 15) as usize).copied().unwrap_or_default();
            (start, rest) = (start - 1, rest >> 4);
            if rest == 0 {
                break;
            }
        }
        for (place, byte) in text.iter_mut().take(start).rev().zip(*b"x0") {
            *place = byte;
        }
        let digits = text.get(start - 2..).unwrap_or_default();
        serializer.serialize_str(std::str::from_utf8(digits).unwrap_or_default())
    }
}

impl From<Avma> for Hex {
    fn from(address: Avma) -> Self {
        Self(address.get())
    }
}

impl From<Svma> for Hex {
    fn from(address: Svma) -> Self {
        Self(address.get())
    }
}

/// Writes a value as one line.
pub fn write_line<T: Serialize>(mut out: impl Write, value: &T) -> io::Result<()> {
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")
}

/// Where a report was read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin<'a> {
    /// The file's name; `archive!member` for one in an archive.
    pub file: Option<&'a str>,
    /// Which of the file's reports it is, counted from 1, where the file has several.
    pub part: Option<usize>,
}

/// Writes an analysed report as one line, with where it was read from.
pub fn write_report(out: impl Write, analysis: &Analysis, origin: Origin<'_>) -> io::Result<()> {
    let mut document = report(analysis);
    (document.file, document.part) = (origin.file, origin.part);
    write_line(out, &document)
}

/// Writes the stacks of a captured process as one line; `diff` is what became of its threads since an earlier capture, where that
/// was asked for.
pub fn write_stacks(out: impl Write, captured: &Stacks, diff: Option<&StackDiff>) -> io::Result<()> {
    write_line(out, &stacks(captured, diff))
}

/// Writes a hang as one line.
pub fn write_hang(out: impl Write, captured: &Hang) -> io::Result<()> {
    write_line(out, &hang(captured))
}

/// Writes the images of a captured process, each as one line.
pub fn write_images(mut out: impl Write, captured: &Stacks) -> io::Result<()> {
    captured.report.process.images.iter().try_for_each(|shown| write_line(&mut out, &image(shown)))
}

/// Writes a report's explanation and attribution as one line, with where it was read from.
pub fn write_explanation(out: impl Write, analysis: &Analysis, origin: Origin<'_>) -> io::Result<()> {
    write_line(out, &report::explained(analysis, origin))
}

/// Writes what lies at `address` as one line; `address` is printed as the caller stated it.
pub fn write_lookup(out: impl Write, address: Svma, info: &SymbolInfo) -> io::Result<()> {
    write_line(out, &frame::lookup(address, info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_the_standard_library_has_them() {
        for number in [0, 1, 0xf, 0x10, 0xdead_beef, 0x1_0000_0000, u64::MAX, 1 << 60] {
            assert_eq!(serde_json::to_string(&Hex(number)).unwrap(), format!("\"{number:#x}\""));
        }
    }
}
