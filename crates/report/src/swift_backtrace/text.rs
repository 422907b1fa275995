//! The text form: a message, threads with frames and pieces of source, registers, images.

use super::{address, fault_address, number};
use crate::Limits;
use crate::apple_text::{Lines, hex_value};
use crate::notes::Notes;
use crate::numbers::signal;
use backtrail_core::{Arch, Avma, ImageId};
use backtrail_model::{
    AppInfo, Exception, Frame, Image, Register, Report, ReportedSymbol, Section, Source, Thread,
};

/// The block that a line stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Head,
    Thread,
    Registers,
    Images,
}

struct Reader<'l> {
    limits: &'l Limits,
    report: Report,
    notes: Notes,
    block: Block,
    frames_left: usize,
    signal: Option<u64>,
    text: String,
}

pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Report {
    let mut reader = Reader {
        limits,
        report: Report { source: Source::SwiftBacktrace, ..Report::default() },
        notes: Notes::new(limits.max_notes),
        block: Block::Head,
        frames_left: limits.max_frames,
        signal: None,
        text: String::new(),
    };
    for line in Lines::new(input, start..input.len(), 1) {
        let text = line.text();
        let trimmed = text.trim();
        let is_taken = trimmed.is_empty() || (text.len() <= limits.max_line && reader.line(&text, trimmed));
        if !is_taken {
            reader.text.push_str(text.trim_end());
            reader.text.push('\n');
        }
    }
    reader.finish()
}

impl Reader<'_> {
    /// Puts a line into the model; `false` where it has no place there.
    fn line(&mut self, text: &str, trimmed: &str) -> bool {
        if let Some(rest) = trimmed.strip_prefix("*** Signal ") {
            self.signal = rest.split(':').next().and_then(|number| number.parse().ok());
            return false;
        }
        let bare = trimmed.trim_matches(|c| c == '*' || c == '\u{1f4a3}').trim();
        if let Some(message) = bare.strip_prefix("Program crashed: ") {
            return self.crashed(message);
        }
        if bare.starts_with("Swift runtime failure: ") {
            return self.crashed(bare);
        }
        if let Some(platform) = trimmed.strip_prefix("Platform: ") {
            return self.platform(platform);
        }
        if let Some(opened) = self.thread_heading(text) {
            return opened;
        }
        if trimmed.starts_with("Registers:") {
            self.block = Block::Registers;
            return true;
        }
        if trimmed.starts_with("Images") && trimmed.ends_with(':') {
            self.block = Block::Images;
            // How many are omitted stands here.
            return trimmed == "Images:";
        }
        if let Some(message) = trimmed.strip_prefix("Fatal error: ").filter(|_| self.block == Block::Head) {
            let lines = vec![format!("Fatal error: {message}")];
            self.report.app_info.push(AppInfo { image: None, lines });
            return true;
        }
        match self.block {
            Block::Head => false,
            Block::Thread => self.frame(trimmed),
            Block::Registers => self.registers(trimmed),
            Block::Images => self.image(trimmed),
        }
    }

    fn crashed(&mut self, message: &str) -> bool {
        let exception = self.report.exception.get_or_insert_with(Exception::default);
        exception.message = Some(message.trim_end_matches('*').trim().to_owned());
        exception.address = fault_address(message);
        true
    }

    /// `x86_64 Linux (Ubuntu 24.04.3 LTS)`.
    fn platform(&mut self, platform: &str) -> bool {
        let (arch, os) = platform.split_once(' ').unwrap_or((platform, ""));
        self.report.process.arch = Arch::from_name(arch);
        self.report.os = Some(os.to_owned()).filter(|os| !os.is_empty());
        self.report.process.arch.is_some_and(|known| known.name() == arch)
    }

    /// `Thread 0 "name" crashed:`, `Thread 1:`, `Thread 2 "name":`.
    fn thread_heading(&mut self, text: &str) -> Option<bool> {
        let rest = text.strip_prefix("Thread ")?.trim_end().strip_suffix(':')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, rest) = rest.split_at_checked(digits)?;
        let number: u64 = number.parse().ok()?;
        let rest = rest.trim();
        let (name, crashed) = match rest.strip_suffix("crashed") {
            Some(name) => (name.trim(), true),
            None => (rest, false),
        };
        let name = name.trim_matches('"');
        let process = &mut self.report.process;
        if process.threads.len() >= self.limits.max_threads {
            self.notes.add(|| "more threads than the limit allows; the rest is kept as text".to_owned());
            return Some(false);
        }
        if crashed {
            process.crashed_thread.get_or_insert(process.threads.len());
        }
        let name = (!name.is_empty()).then(|| name.to_owned());
        process.threads.push(Thread { number, name, crashed, ..Thread::default() });
        self.block = Block::Thread;
        Some(true)
    }

    /// `0 [inlined] [system] 0x00005f name() + 12 in App at /src/main.swift:4:15`, each part but the number optional.
    fn frame(&mut self, trimmed: &str) -> bool {
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
        let Some((index, rest)) = trimmed.split_at_checked(digits).filter(|(index, _)| !index.is_empty())
        else {
            return false;
        };
        let is_source = rest.trim_start().starts_with(['│', '|']) || rest.is_empty();
        let (Ok(index), false) = (index.parse::<u32>(), is_source) else { return false };
        let Some(thread) = self.report.process.threads.last_mut() else { return false };
        let Some(left) = self.frames_left.checked_sub(1) else {
            self.notes.add(|| "more frames than the limit allows; the rest is kept as text".to_owned());
            return false;
        };
        self.frames_left = left;
        let (frame, is_whole) = read_frame(index, rest.trim());
        thread.frames.push(frame);
        is_whole
    }

    fn registers(&mut self, trimmed: &str) -> bool {
        let process = &mut self.report.process;
        let crashed = process.crashed_thread.and_then(|position| process.threads.get_mut(position));
        let Some(thread) = crashed else { return false };
        // `cs 0x0033  fs 0x0000  gs 0x0000` on one line; else a register with what its value is or points to.
        let mut words = trimmed.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else { return false };
        let Some(value) = hex_value(value).filter(|_| thread.registers.len() < 512) else { return false };
        let rest = words.collect::<Vec<_>>();
        let is_row = rest.len().is_multiple_of(2)
            && !rest.is_empty()
            && rest.chunks(2).all(|pair| matches!(pair, [_, value] if hex_value(value).is_some()));
        let note = (!rest.is_empty() && !is_row).then(|| rest.join(" "));
        thread.registers.push(Register { name: name.to_owned(), value, note });
        for pair in rest.chunks(2).filter(|_| is_row) {
            let [name, value] = pair else { continue };
            let Some(value) = hex_value(value) else { continue };
            thread.registers.push(Register { name: (*name).to_owned(), value, note: None });
        }
        true
    }

    /// `0x0000aaaa–0x0000bbbb 5f3c… App /path/App`; the dash is a long one, the identity may be `<no build ID>`.
    fn image(&mut self, trimmed: &str) -> bool {
        let Some((low, rest)) = trimmed.split_once(['\u{2013}', '-']) else { return false };
        let Some((high, rest)) = rest.split_once(' ') else { return false };
        let (Some(low), Some(high)) = (hex_value(low.trim()), hex_value(high.trim())) else { return false };
        let rest = rest.trim();
        let (id, rest) = match rest.strip_prefix("<no build ID>") {
            Some(rest) => (None, rest.trim()),
            None => {
                let (id, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                (Some(id), rest.trim())
            }
        };
        let (name, path) = rest
            .split_once(" /")
            .map_or((rest, None), |(name, path)| (name.trim(), Some(format!("/{path}"))));
        if self.report.process.images.len() >= self.limits.max_images {
            return false;
        }
        self.report.process.images.push(Image {
            name: name.to_owned(),
            path,
            id: id.and_then(identity),
            load_address: Avma::new(low),
            end_address: Some(Avma::new(high)).filter(|_| high > low),
            ..Image::default()
        });
        id.is_none_or(|id| identity(id).is_some())
    }

    fn finish(mut self) -> Report {
        let report = &mut self.report;
        let is_linux = report.os.as_deref().is_some_and(|os| os.contains("Linux"));
        if let Some(name) = self.signal.and_then(|number| signal(number, is_linux)) {
            report.exception.get_or_insert_with(Exception::default).signal = Some(name.to_owned());
        }
        for thread in &mut report.process.threads {
            number(&mut thread.frames);
        }
        // The program is the image that is printed first as a rule, but only the name of the crashed thread's is sure.
        report.process.place_frames();
        if !self.text.is_empty() {
            let title = "Text between the parts".to_owned();
            report.sections.push(Section { title, text: self.text });
        }
        report.notes = self.notes.finish();
        self.report
    }
}

/// A build id or a UUID, in hexadecimal digits.
pub(super) fn identity(text: &str) -> Option<ImageId> {
    ImageId::parse_uuid(text).ok().or_else(|| ImageId::parse_build_id(text).ok())
}

/// A frame's row behind its number, and whether the model has all of it.
fn read_frame(index: u32, text: &str) -> (Frame, bool) {
    let mut frame = Frame::new(index);
    let (mut rest, mut is_whole, mut is_return) = (text, true, index > 0);
    while let Some((mark, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        match mark {
            "ra" => is_return = true,
            "inlined" => frame.inlined = true,
            // Swift marks its own runtime's frames, and resumed async functions, whose address is exact.
            "async" => (is_return, is_whole) = (false, false),
            _ => is_whole = false,
        }
        rest = behind.trim_start();
    }
    if let Some((word, behind)) = rest.split_once(' ').or(Some((rest, "")))
        && let Some(value) = hex_value(word)
    {
        frame.address = Some(address(value, is_return));
        rest = behind.trim();
    }
    let (what, place) = rest
        .rsplit_once(" at ")
        .filter(|(_, place)| place.contains(':'))
        .map_or((rest, None), |(what, place)| (what, Some(place)));
    let (name, image) = what.rsplit_once(" in ").map_or((what, None), |(name, image)| (name, Some(image)));
    frame.image_name = image.map(str::to_owned);
    let (name, offset) = name
        .rsplit_once(" + ")
        .and_then(|(name, offset)| Some((name, offset.parse().ok()?)))
        .map_or((name, None), |(name, offset)| (name, Some(offset)));
    let name = name.trim();
    if !name.is_empty() && name != "<unknown>" {
        let mut symbol = ReportedSymbol { name: name.to_owned(), offset, ..ReportedSymbol::default() };
        if let Some(place) = place {
            is_whole &= set_place(&mut symbol, place);
        }
        frame.reported = Some(symbol);
    } else {
        is_whole &= place.is_none();
    }
    (frame, is_whole)
}

/// `/src/main.swift:4:15`; the column has no place in the model.
fn set_place(symbol: &mut ReportedSymbol, place: &str) -> bool {
    let mut parts = place.rsplitn(3, ':');
    let (last, middle, first) = (parts.next(), parts.next(), parts.next());
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok());
    match (number(last), number(middle), first) {
        (Some(_), Some(line), Some(file)) => {
            symbol.file = Some(file.to_owned());
            symbol.line = Some(line);
            false
        }
        (Some(line), None, _) => {
            symbol.file = place.rsplit_once(':').map(|(file, _)| file.to_owned());
            symbol.line = Some(line);
            true
        }
        _ => {
            symbol.file = Some(place.to_owned());
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::FrameAddress;

    const LOG: &str = "Fatal error: Index out of range\n*** Signal 5: Backtracing from 0x70e784caab2c... done ***\n\n\
        *** Program crashed: System trap at 0x0000000000401010 ***\n\nPlatform: x86_64 Linux (Ubuntu 24.04.3 LTS)\n\n\
        Thread 0 \"shop\" crashed:\n\n0 [inlined] [system] 0x0000000000401010 Swift runtime failure: Index out of range + 0 in shop\n\
        1 0x0000000000401010 level(_:) + 16 in shop at /src/main.swift:4:15\n\n     2│ func level() {\n     4│   list[9]\n      │       ▲\n\n\
        2 [ra] 0x0000000000401100 <unknown> in shop\n...\n\nThread 1:\n\n0 0x0000000000500000 wait in libc.so.6\n\n\
        Registers:\n\nrax 0x0000000000000001  1\nrsp 0x00000000004fff00  60 0b 7c\ncs 0x0033  fs 0x0000\n\n\
        Images (3 omitted):\n\n0x0000000000400000\u{2013}0x0000000000402000 0123456789abcdef0123456789abcdef01234567 shop /opt/shop\n\
        0x0000000000500000\u{2013}0x0000000000501000 <no build ID> libc.so.6 /lib/libc.so.6\n";

    #[test]
    fn a_log_of_linux() {
        let report = read(LOG.as_bytes(), 0, &Limits::default());
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(exception.signal.as_deref(), Some("SIGTRAP"));
        assert_eq!(exception.message.as_deref(), Some("System trap at 0x0000000000401010"));
        assert_eq!(exception.address, Some(Avma::new(0x40_1010)));
        assert_eq!(report.os.as_deref(), Some("Linux (Ubuntu 24.04.3 LTS)"));
        assert_eq!(report.app_info[0].lines, ["Fatal error: Index out of range"]);
        let thread = report.crashed().unwrap();
        assert_eq!((thread.name.as_deref(), thread.frames.len()), (Some("shop"), 3));
        let frames: Vec<_> =
            thread.frames.iter().map(|frame| (frame.index, frame.inlined, frame.image)).collect();
        assert_eq!(frames, [(0, true, Some(0)), (0, false, Some(0)), (1, false, Some(0))]);
        let symbol = thread.frames[1].reported.as_ref().unwrap();
        assert_eq!((symbol.name.as_str(), symbol.offset, symbol.line), ("level(_:)", Some(16), Some(4)));
        assert_eq!(thread.frames[2].address, Some(FrameAddress::Return(Avma::new(0x40_1100))));
        assert!(thread.frames[2].reported.is_none());
        let registers: Vec<_> = thread.registers.iter().map(|reg| (reg.name.as_str(), reg.value)).collect();
        assert_eq!(registers, [("rax", 1), ("rsp", 0x4f_ff00), ("cs", 0x33), ("fs", 0)]);
        assert_eq!(report.process.threads[1].frames[0].image, Some(1));
        assert!(report.process.images[0].id.is_some() && report.process.images[1].id.is_none());
        assert!(report.sections[0].text.contains("list[9]") && report.sections[0].text.contains("3 omitted"));
        for end in (0..LOG.len()).filter(|end| LOG.is_char_boundary(*end)) {
            read(&LOG.as_bytes()[..end], 0, &Limits::default());
        }
    }
}
