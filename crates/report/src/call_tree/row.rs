//! One row of a call tree.

use crate::apple_text::hex_value;
use crate::stack::unsettled;
use backtrail_core::{Avma, FrameAddress, ImageId};
use backtrail_model::{Frame, Image, Process, ReportedSymbol};
use std::collections::HashMap;

/// A row as it is written.
#[derive(Debug)]
pub(super) struct Row {
    /// How far from the left its number stands.
    pub(super) indent: usize,
    pub(super) weight: u64,
    pub(super) frame: Frame,
    pub(super) note: Option<String>,
}

/// The number that a row begins with, where it stands, and what follows. `lines` are the characters that draw the tree.
fn split<'t>(line: &'t str, lines: &str) -> Option<(usize, u64, &'t str)> {
    let start = line.find(|c: char| !lines.contains(c))?;
    let rest = line.get(start..)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits > 0)?;
    let (number, rest) = rest.split_at_checked(digits)?;
    let rest = rest.strip_prefix(' ')?.trim();
    (!rest.is_empty()).then_some((start, number.parse().ok()?, rest))
}

/// A row of `sample`: `+ ! 2718 function  (in Image) + 2360  [0x10e3817e6]  main.cc:276`. Rows of one function whose
/// addresses differ are printed as one: `+ 0,15,...  [0x7fff704769c6,0x7fff704769d5,...]`.
pub(super) fn sample(line: &str) -> Option<Row> {
    let (indent, weight, rest) = split(line, " +!:|")?;
    let mut frame = Frame::new(0);
    let (mut note, mut file) = (None, None);
    let mut what = rest;
    if let Some((before, behind)) = rest.rsplit_once("  [0x")
        && let Some((addresses, behind)) = behind.split_once(']')
    {
        what = before.trim_end();
        let first = addresses.split(',').next().unwrap_or_default();
        frame.address = u64::from_str_radix(first, 16).ok().map(|address| unsettled(Avma::new(address)));
        note = addresses.contains(',').then(|| format!("[0x{addresses}]"));
        file = Some(behind.trim()).filter(|file| !file.is_empty());
    }
    describe_sample(&mut frame, what, &mut note);
    if let Some(file) = file {
        set_file(&mut frame, file);
    }
    Some(Row { indent, weight, frame, note })
}

/// `function  (in Image) + 12`, `???  (in Image)  load address 0x1000 + 0x12`, or bare words.
fn describe_sample(frame: &mut Frame, what: &str, note: &mut Option<String>) {
    let Some((name, rest)) = what.rsplit_once("  (in ") else {
        frame.reported = symbol(what);
        return;
    };
    let Some((image, rest)) = rest.split_once(')') else {
        frame.reported = symbol(what);
        return;
    };
    frame.image_name = Some(image.to_owned());
    let rest = rest.trim();
    if let Some((_, offset)) = rest.strip_prefix("load address ").and_then(|rest| rest.split_once(" + ")) {
        frame.image_offset = hex_value(offset.trim());
    }
    frame.reported = symbol(name.trim_end());
    if let Some(offsets) = rest.strip_prefix("+ ") {
        if let Some(symbol) = &mut frame.reported {
            symbol.offset = offsets.split(',').next().and_then(|offset| offset.trim().parse().ok());
        }
        if offsets.contains(',') {
            let addresses = note.take().map(|addresses| format!(" {addresses}")).unwrap_or_default();
            *note = Some(format!("+ {offsets}{addresses}"));
        }
    }
}

/// A row of spindump: `*61  function + 520 (Main.swift:12 in Image + 24532) [0x1007698b4] 1-100 (running)`. A star says that
/// the frame is the kernel's; on iOS an image may be called by its `<UUID>`.
pub(super) fn spindump(line: &str) -> Option<Row> {
    let (start, weight, rest) = split(line, " *")?;
    let is_kernel = line.get(..start).is_some_and(|before| before.contains('*'));
    let mut frame = Frame::new(0);
    let mut notes = Vec::new();
    notes.extend(is_kernel.then(|| "kernel".to_owned()));
    let mut what = rest;
    if let Some((before, behind)) = rest.rsplit_once("[0x")
        && let Some((address, behind)) = behind.split_once(']')
        && let Ok(address) = u64::from_str_radix(address, 16)
    {
        frame.address = Some(unsettled(Avma::new(address)));
        what = before.trim_end();
        notes.extend(Some(behind.trim().to_owned()).filter(|behind| !behind.is_empty()));
    }
    describe_spindump(&mut frame, what);
    let note = (!notes.is_empty()).then(|| notes.join(" "));
    Some(Row { indent: start, weight, frame, note })
}

/// `function + 520 (image + 24532)`, `function + 9 (Main.swift:12 in image + 24532)`, `??? (<UUID> + 12)`, or bare words.
fn describe_spindump(frame: &mut Frame, what: &str) {
    let inside = what.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    let placed = inside.and_then(|(name, inside)| Some((name, inside.rsplit_once(" + ")?)));
    let Some((name, (image, offset))) = placed.filter(|(_, (_, offset))| offset.parse::<u64>().is_ok())
    else {
        // Before macOS 10.13 the image's offset was left out: `start + 52 (Xcode) [0x…]`.
        let old = inside.filter(|(name, _)| {
            name.rsplit_once(" + ").is_some_and(|(_, offset)| offset.parse::<u64>().is_ok())
        });
        frame.image_name = old.map(|(_, image)| image.to_owned());
        // `??? [0x…]`, `<truncated backtrace>`: no image.
        frame.reported = symbol_with_offset(old.map_or(what, |(name, _)| name));
        return;
    };
    let (file, image) = image.rsplit_once(" in ").map_or((None, image), |(file, image)| (Some(file), image));
    frame.image_name = Some(image.to_owned());
    frame.image_offset = offset.parse().ok();
    frame.reported = symbol_with_offset(name.trim());
    if let Some(file) = file {
        set_file(frame, file);
    }
}

fn symbol(name: &str) -> Option<ReportedSymbol> {
    let is_name = !name.is_empty() && name != "???";
    is_name.then(|| ReportedSymbol { name: name.to_owned(), ..ReportedSymbol::default() })
}

fn symbol_with_offset(text: &str) -> Option<ReportedSymbol> {
    let split = text.rsplit_once(" + ").and_then(|(name, offset)| Some((name, offset.parse::<u64>().ok()?)));
    let (name, offset) = split.map_or((text, None), |(name, offset)| (name, Some(offset)));
    Some(ReportedSymbol { offset, ..symbol(name.trim())? })
}

/// `main.cc:276`; some systems write a column behind the line.
fn set_file(frame: &mut Frame, text: &str) {
    let symbol = frame.reported.get_or_insert_with(ReportedSymbol::default);
    let (file, line) = text.rsplit_once(':').map_or((text, None), |(file, line)| {
        let line = line.split(',').next().unwrap_or(line);
        line.parse().map_or((text, None), |line| (file, Some(line)))
    });
    symbol.file = Some(file.to_owned());
    symbol.line = line;
}

/// Images that rows call by their UUID and no list names: the row tells where each begins.
pub(super) fn add_unlisted_images(process: &mut Process) {
    let mut known: HashMap<ImageId, bool> =
        process.images.iter().filter_map(|image| Some((image.id?, true))).collect();
    let mut added = Vec::new();
    for frame in process.frames_mut() {
        let Some(id) = frame.image_name.as_deref().and_then(uuid) else { continue };
        let address = frame.address.map(FrameAddress::raw);
        let base = address.zip(frame.image_offset).and_then(|(address, offset)| address.checked_sub(offset));
        let Some(load_address) = base else { continue };
        if known.insert(id, true).is_none() {
            let name = frame.image_name.clone().unwrap_or_default();
            added.push(Image { name, id: Some(id), load_address, ..Image::default() });
        }
    }
    process.images.append(&mut added);
}

/// `<27E9C3C9-3AD1-3168-8D1A-52416AE93937>`.
fn uuid(name: &str) -> Option<ImageId> {
    ImageId::parse_uuid(name.strip_prefix('<')?.strip_suffix('>')?).ok()
}
