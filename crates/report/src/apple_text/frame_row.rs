//! One row of a stack: `idx image 0xADDR what`.
//!
//! Image names hold blanks, columns are tabs or blanks or a single blank, so the row hangs on its first `0x…` word.
//! Behind the address stands, by writer and system:
//!
//! - `symbol + 12`, `symbol + 12 (File.swift:34)`, `symbol (File.m:34)`, each also with ` [inlined]`
//! - `0x100000000 + 1234`: no symbol, the image's load address
//! - `0 + 64`, `0x0 + 0`, `???`, `<unknown> + 522031941452`: nothing known
//! - `0x100000000 + 1234 (symbol + 12)`: KSCrash, side by side
//! - `Image + 1234`: no symbol either, as `backtrace_symbols` has it
//! - `-[A+ 1234 (B) c:] + 12`, `f+ 1234 (int) + 12`, `f + 1234 (File.m:34)`: symbolicatecrash's, which puts the offset from
//!   the image's start behind what it takes for the name, in front of the first parenthesis
//! - `0x100000000 + 0x4d2\t// symbol + 0xc`: Symbolicate's, on jailbroken devices
//! - `symbol (in Image) + 12`, `symbol (in Image) (main.m:14)`: what `atos` prints, pasted in

use super::words::{Hex, hex, hex_value, words};
use crate::stack::unsettled;
use crate::text::lossy;
use backtrail_core::Avma;
use backtrail_model::{Frame, ReportedSymbol};
use std::ops::Range;

/// A row as it is written.
#[derive(Debug)]
pub(crate) struct FrameRow<'d> {
    pub(crate) index: u32,
    pub(crate) image_name: Option<String>,
    pub(crate) address: Hex,
    /// Where the address stands in the row.
    pub(crate) address_span: Range<usize>,
    /// What stands behind the address, without blanks around it.
    pub(crate) tail: &'d [u8],
}

impl<'d> FrameRow<'d> {
    /// Reads a row; `None` where the line is none.
    pub(crate) fn read(line: &'d [u8]) -> Option<Self> {
        let mut words = words(line);
        let (index_span, index) = words.next()?;
        let index = std::str::from_utf8(index).ok()?;
        if !index.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let index = index.parse().ok()?;
        let (address_span, address) = words.find_map(|(span, word)| Some((span, hex(word)?)))?;
        let image_name = line.get(index_span.end..address_span.start)?.trim_ascii();
        // Tables of processes have numbers only between the first word and an address; OpenBSD's have negative ones.
        let is_of_numbers = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_whitespace() || *byte == b'-';
        if image_name.iter().any(u8::is_ascii_digit) && image_name.iter().all(is_of_numbers) {
            return None;
        }
        let image_name = (!image_name.is_empty()).then(|| lossy(image_name).into_owned());
        let tail = line.get(address_span.end..)?.trim_ascii();
        Some(Self { index, image_name, address, address_span, tail })
    }

    /// The row as a frame.
    pub(crate) fn frame(&self) -> Frame {
        let mut frame = Frame::new(self.index);
        frame.image_name.clone_from(&self.image_name);
        if let Hex::Value(address) = self.address {
            frame.address = Some(unsettled(Avma::new(address)));
        }
        let tail = lossy(self.tail);
        let tail = Tail::read(&tail);
        frame.inlined = tail.inlined;
        frame.image_offset = tail.image_offset;
        frame.reported = tail.symbol;
        self.take_image_as_symbol(&mut frame);
        frame
    }
}

/// A row whose address was cut away, as people do for room: `3  Shop  Cart.load() + 960`, `4  Shop  + 58940`. Blanks part the
/// image from the rest: two of them, or a tab.
pub(super) fn without_address(line: &str) -> Option<Frame> {
    let (index, rest) = line.trim().split_once([' ', '\t'])?;
    let index = index.parse().ok().filter(|_| index.bytes().all(|byte| byte.is_ascii_digit()))?;
    let rest = rest.trim_start();
    let end = rest.find("  ").into_iter().chain(rest.find('\t')).min();
    // The longest names of a column have one blank behind them.
    let end = end.or_else(|| rest.find(".dylib ").map(|at| at + ".dylib".len()))?;
    let (image, tail) = rest.split_at_checked(end)?;
    let tail = tail.trim();
    let mut frame = Frame::new(index);
    frame.image_name = Some(image.to_owned());
    match tail.strip_prefix('+') {
        Some(digits) => frame.image_offset = Some(digits.split_whitespace().next()?.parse().ok()?),
        None => {
            let tail = Tail::read(tail);
            (frame.inlined, frame.reported) = (tail.inlined, Some(tail.symbol?));
        }
    }
    Some(frame)
}

/// Whether a row begins a stack whose addresses were cut away, and is that of no other text: number 0, in a library of Apple's.
pub(super) fn begins_without_addresses(line: &str) -> bool {
    if !line.starts_with("0 ") && !line.starts_with("0\t") {
        return false;
    }
    let is_library = |frame: &Frame| frame.image_name.as_deref().is_some_and(|name| name.ends_with(".dylib"));
    without_address(line).is_some_and(|frame| is_library(&frame))
}

impl FrameRow<'_> {
    /// `App + 1234` behind image `App` is how `backtrace_symbols` says that it knows no symbol: the offset is from the
    /// image's start.
    fn take_image_as_symbol(&self, frame: &mut Frame) {
        let is_image = |symbol: &ReportedSymbol| {
            self.image_name.as_deref() == Some(symbol.name.as_str())
                && symbol.offset.is_some()
                && symbol.file.is_none()
        };
        if let Some(symbol) = frame.reported.take_if(|symbol| is_image(symbol)) {
            frame.image_offset = symbol.offset;
        }
    }
}

/// What stands behind the address.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tail {
    symbol: Option<ReportedSymbol>,
    image_offset: Option<u64>,
    inlined: bool,
}

impl Tail {
    fn read(text: &str) -> Self {
        let text = text.trim();
        // In front of the name it is Sentry's.
        let (text, inlined) = match text.strip_suffix("[inlined]").or_else(|| text.strip_prefix("[inlined] "))
        {
            Some(rest) => (rest.trim(), true),
            None => (text, false),
        };
        if let Some(tail) = side_by_side(text).or_else(|| commented(text)) {
            return Self { inlined, ..tail };
        }
        let mut symbol = ReportedSymbol::default();
        let text = take_source(text, &mut symbol);
        let (text, offset) = take_offset(text);
        let name = take_image(text);
        if let Some(known) = is_load_address(name).filter(|_| offset.is_some()) {
            let source = symbol.file.is_some().then_some(symbol);
            return Self { symbol: source, image_offset: offset.filter(|_| known), inlined };
        }
        // `<unknown>` is Sentry's, with an offset from nothing.
        if name.is_empty() || (matches!(name, "???" | "<unknown>") && symbol.file.is_none()) {
            return Self { inlined, ..Self::default() };
        }
        symbol.name = without_image_offset(name);
        symbol.offset = offset;
        Self { symbol: Some(symbol), inlined, ..Self::default() }
    }
}

/// `0x100000000 + 1234 (symbol + 12)`.
fn side_by_side(text: &str) -> Option<Tail> {
    let (place, inside) = text.strip_suffix(')')?.split_once(" (")?;
    let (base, offset) = place.split_once(" + ")?;
    let known = is_load_address(base)?;
    let image_offset = offset.trim().parse().ok()?;
    let (name, offset) = take_offset(inside);
    let offset = Some(offset?);
    let symbol = ReportedSymbol { name: name.to_owned(), offset, ..ReportedSymbol::default() };
    Some(Tail { symbol: Some(symbol), image_offset: known.then_some(image_offset), inlined: false })
}

/// `0x100000000 + 0x4d2\t// symbol + 0xc`.
fn commented(text: &str) -> Option<Tail> {
    let (place, comment) = text.split_once("// ")?;
    let (base, offset) = take_offset(place.trim_end());
    let known = is_load_address(base)?;
    let (name, symbol_offset) = take_offset(comment.trim());
    // A function without a name is given by its address there.
    let named = !name.is_empty() && hex_value(name).is_none();
    let symbol = named.then(|| ReportedSymbol {
        name: name.to_owned(),
        offset: symbol_offset,
        ..ReportedSymbol::default()
    });
    Some(Tail { symbol, image_offset: offset.filter(|_| known), inlined: false })
}

/// `-[NSObject+ 183052 (NSObject) doesNotRecognizeSelector:]`, `std::terminate+ 77932 ()`: the offset of the code in its
/// image, in the middle of the name. Seen in what symbolicatecrash makes of iOS 11 to 14.
fn without_image_offset(name: &str) -> String {
    let found = name.match_indices("+ ").find_map(|(at, _)| {
        let rest = name.get(at + 2..)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits > 0)?;
        let behind = rest.get(digits..)?.strip_prefix(" (")?;
        let before = name.get(..at)?.trim_end();
        (!before.is_empty() && !before.ends_with("operator")).then(|| format!("{before}({behind}"))
    });
    found.unwrap_or_else(|| name.to_owned())
}

/// Takes ` (File.swift:34)` off the end. A C++ parameter list ends with `)` too, but not with `:34)`.
fn take_source<'t>(text: &'t str, symbol: &mut ReportedSymbol) -> &'t str {
    let source = || {
        let (rest, inside) = text.strip_suffix(')')?.rsplit_once(" (")?;
        let (file, line) = inside.rsplit_once(':')?;
        let line = line.parse::<u32>().ok().filter(|_| !file.is_empty() && !file.ends_with(':'))?;
        Some((rest, file, line))
    };
    let Some((rest, file, line)) = source() else { return text };
    symbol.file = Some(file.to_owned());
    symbol.line = Some(line);
    rest.trim_end()
}

/// Takes ` + 12` off the end.
fn take_offset(text: &str) -> (&str, Option<u64>) {
    let Some((name, digits)) = text.rsplit_once(" + ") else { return (text, None) };
    let offset = hex_value(digits).or_else(|| digits.parse().ok().filter(|_| !digits.starts_with('+')));
    match offset {
        Some(offset) => (name.trim_end(), Some(offset)),
        None => (text, None),
    }
}

/// Takes ` (in Image)` off the end.
fn take_image(text: &str) -> &str {
    text.strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" (in "))
        .map_or(text, |(name, _)| name.trim_end())
}

/// Whether the word is an image's load address, and if so, of a known image: `0x0 + 0` and `0 + 64` state none, the
/// offset is then the address itself or nothing.
fn is_load_address(word: &str) -> Option<bool> {
    if word == "0" { Some(false) } else { hex_value(word).map(|base| base != 0) }
}

#[cfg(test)]
mod tests;
