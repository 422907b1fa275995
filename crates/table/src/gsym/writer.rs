//! Writing a GSYM file, as LLVM lays it out.

use super::header::{MAGIC, MAX_UUID, SIZE, VERSION};
use super::info::{END_OF_LIST, INLINES, LINES};
use super::inlines::{self, Node};
use super::lines;
use crate::error::{Error, ErrorKind, Result};
use crate::exchange::{PlainFunction, PlainPath, Sink, pieces};
use backtrail_core::{AddrRange, ImageId, Svma};
use std::collections::HashMap;
use std::io::Write;

/// Collects functions and writes them as GSYM of version 1, little-endian.
#[derive(Debug)]
pub struct GsymWriter {
    id: Option<ImageId>,
    image_base: Svma,
    strings: Vec<u8>,
    string_offsets: HashMap<Vec<u8>, u32>,
    files: Vec<(u32, u32)>,
    file_numbers: HashMap<(u32, u32), u32>,
    /// The information of all functions, each padded to four bytes.
    infos: Vec<u8>,
    /// Start, size, and where in `infos`.
    entries: Vec<(Svma, u64, usize)>,
}

impl GsymWriter {
    /// A writer for an image. Identities of more than 20 bytes are cut.
    pub fn new(id: Option<ImageId>, image_base: Svma) -> Self {
        Self {
            id,
            image_base,
            // The empty string has offset 0, and no file the number 0.
            strings: vec![0],
            string_offsets: HashMap::from([(Vec::new(), 0)]),
            files: vec![(0, 0)],
            file_numbers: HashMap::from([((0, 0), 0)]),
            infos: Vec::new(),
            entries: Vec::new(),
        }
    }

    fn string(&mut self, bytes: &[u8]) -> Result<u32> {
        // Strings end at their first zero.
        let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        if let Some(offset) = self.string_offsets.get(bytes) {
            return Ok(*offset);
        }
        let offset = room(self.strings.len())?;
        self.strings.extend_from_slice(bytes);
        self.strings.push(0);
        self.string_offsets.insert(bytes.to_owned(), offset);
        Ok(offset)
    }

    /// Starts a function's information: its size and name.
    fn begin(&mut self, range: AddrRange<Svma>, name: u32) -> Result<()> {
        let size = u32::try_from(range.size());
        let size = size.map_err(|_| too_large("a function of more than 4 GiB"))?;
        self.entries.push((range.start(), range.size(), self.infos.len()));
        self.put(size);
        self.put(name);
        Ok(())
    }

    /// Adds a piece to the open function.
    fn piece(&mut self, kind: u32, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.put(kind);
        let at = self.infos.len();
        self.put(0);
        write(&mut self.infos);
        let length = room(self.infos.len() - at - 4)?;
        if let Some(field) = self.infos.get_mut(at..at + 4) {
            field.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.piece(END_OF_LIST, |_| {})?;
        self.infos.resize(self.infos.len().next_multiple_of(4), 0);
        Ok(())
    }

    fn put(&mut self, value: u32) {
        self.infos.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When the output cannot be written, or a part has no room for its offsets of 32 bits.
    pub fn finish(mut self, out: &mut dyn Write) -> Result<()> {
        self.entries.sort_by_key(|(start, size, at)| (*start, *size, *at));
        let first = self.entries.first().map_or(self.image_base, |(start, ..)| *start);
        let base = self.image_base.min(first);
        let furthest = self.entries.last().and_then(|(start, ..)| start.offset_from(base)).unwrap_or(0);
        let address_size: usize = match furthest {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        };
        let mut head = vec![0; SIZE as usize];
        for (start, ..) in &self.entries {
            let offset = start.offset_from(base).unwrap_or(0).to_le_bytes();
            head.extend(offset.iter().take(address_size));
        }
        head.resize(head.len().next_multiple_of(4), 0);
        let count = room(self.entries.len())?;
        let strings_at = head.len() + self.entries.len() * 4 + 4 + self.files.len() * 8;
        let infos_at = (strings_at + self.strings.len()).next_multiple_of(4);
        for (.., at) in &self.entries {
            head.extend(room(infos_at + at)?.to_le_bytes());
        }
        head.extend(room(self.files.len())?.to_le_bytes());
        head.extend(
            self.files
                .iter()
                .flat_map(|(directory, name)| [directory.to_le_bytes(), name.to_le_bytes()])
                .flatten(),
        );
        let strings = (room(strings_at)?, room(self.strings.len())?);
        let header = self.header(base, address_size, count, strings);
        if let Some(place) = head.get_mut(..header.len()) {
            place.copy_from_slice(&header);
        }
        self.strings.resize(infos_at - strings_at, 0);
        for part in [&head, &self.strings, &self.infos] {
            out.write_all(part).map_err(|error| Error::io(&error))?;
        }
        Ok(())
    }

    fn header(&self, base: Svma, address_size: usize, count: u32, strings: (u32, u32)) -> Vec<u8> {
        let id = self.id.as_ref().map(ImageId::as_bytes).unwrap_or_default();
        let id = id.get(..MAX_UUID).unwrap_or(id);
        let mut header = Vec::new();
        header.extend(MAGIC.to_le_bytes());
        header.extend(VERSION.to_le_bytes());
        header.push(address_size as u8);
        header.push(id.len() as u8);
        header.extend(base.get().to_le_bytes());
        header.extend(count.to_le_bytes());
        header.extend(strings.0.to_le_bytes());
        header.extend(strings.1.to_le_bytes());
        header.extend(id);
        header.resize(SIZE as usize, 0);
        header
    }
}

impl Sink for GsymWriter {
    fn file(&mut self, path: PlainPath<'_>) -> Result<u32> {
        let key = (self.string(path.directory)?, self.string(path.name)?);
        if let Some(number) = self.file_numbers.get(&key) {
            return Ok(*number);
        }
        let number = room(self.files.len())?;
        self.files.push(key);
        self.file_numbers.insert(key, number);
        Ok(number)
    }

    fn function(&mut self, function: &PlainFunction<'_>) -> Result<()> {
        let name = self.string(&function.name)?;
        for piece in pieces(function) {
            self.begin(piece.range, name)?;
            if !piece.rows.is_empty() {
                self.piece(LINES, |out| lines::write(piece.rows, piece.range.start(), out))?;
            }
            if !piece.inlines.is_empty() {
                let whole = [piece.range];
                let mut nodes = vec![Node { depth: 0, name, call_file: 0, call_line: 0, ranges: &whole }];
                for inline in &piece.inlines {
                    nodes.push(Node {
                        depth: inline.depth + 1,
                        name: self.string(&inline.call.name)?,
                        call_file: inline.call.call_file.unwrap_or(0),
                        call_line: inline.call.call_line,
                        ranges: &inline.ranges,
                    });
                }
                self.piece(INLINES, |out| inlines::write(&nodes, piece.range.start(), out))?;
            }
            self.end()?;
        }
        Ok(())
    }

    fn symbol(&mut self, range: AddrRange<Svma>, name: &[u8]) -> Result<()> {
        let name = self.string(name)?;
        self.begin(range, name)?;
        self.end()
    }
}

/// A size or offset in its 32 bits.
fn room(value: usize) -> Result<u32> {
    u32::try_from(value).map_err(|_| too_large("more than 4 GiB"))
}

fn too_large(what: &'static str) -> Error {
    Error::nowhere(ErrorKind::LimitExceeded, format!("GSYM of version 1 has no room for {what}"))
}
