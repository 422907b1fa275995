//! A Mach-O image as it lies in a process. Apple, `mach-o/loader.h`; 64-bit little-endian images, which are all that run
//! on systems of today.

use backtrail_core::{AddrRange, Avma, Bias, ImageId, ReadMemory, Svma};

/// What an image's load commands say, with where it lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MappedImage {
    /// From the file's addresses to the process's ("slide").
    pub bias: Bias,
    /// `__TEXT`: the header, code, and unwind tables.
    pub text: AddrRange<Svma>,
    /// The UUID.
    pub id: Option<ImageId>,
    /// The sections of `__TEXT`.
    pub sections: Vec<MappedSection>,
}

/// A section of `__TEXT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MappedSection {
    /// Its name, without its segment's.
    pub name: String,
    /// Where the file says that it lies.
    pub range: AddrRange<Svma>,
    /// Whether it holds instructions.
    pub is_code: bool,
}

const MAGIC_64: u32 = 0xfeed_facf;
const HEADER_SIZE: u64 = 32;
const LC_SEGMENT_64: u32 = 0x19;
const LC_UUID: u32 = 0x1b;
/// `S_ATTR_PURE_INSTRUCTIONS | S_ATTR_SOME_INSTRUCTIONS`.
const INSTRUCTIONS: u32 = 0x8000_0400;
/// Real images have some kilobytes of load commands.
const MOST_COMMANDS: u32 = 1 << 20;

/// Reads the image whose header is mapped at `header`. `None` where none is, or memory is broken.
pub fn read_image<M: ReadMemory + ?Sized>(memory: &M, header: Avma) -> Option<MappedImage> {
    let word = |at: u64| memory.read_u32(header.checked_add(at)?).ok();
    if word(0)? != MAGIC_64 {
        return None;
    }
    let (count, size) = (word(16)?, word(20).filter(|size| *size <= MOST_COMMANDS)?);
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    memory.read(header.checked_add(HEADER_SIZE)?, &mut bytes).ok()?;
    let (mut text, mut id, mut sections) = (None, None, Vec::new());
    let mut rest = bytes.as_slice();
    for _ in 0..count {
        let Some((kind, size)) = number(rest, 0).zip(number(rest, 4)) else { break };
        let size = usize::try_from(size).ok().filter(|size| *size >= 8)?;
        let command = rest.get(..size)?;
        match kind {
            LC_SEGMENT_64 if name(command.get(8..24)?) == "__TEXT" => {
                text = Some(AddrRange::from_size(Svma::new(long(command, 24)?), long(command, 32)?));
                sections = text_sections(command);
            }
            LC_UUID => id = command.get(8..24).and_then(|uuid| <[u8; 16]>::try_from(uuid).ok()),
            _ => {}
        }
        rest = rest.get(size..)?;
    }
    let text = text?;
    let bias = Bias::between(header, text.start());
    // Too far apart for any process: the address is made up.
    bias.to_avma(text.start()).filter(|back| *back == header)?;
    Some(MappedImage { bias, text, id: id.map(ImageId::Uuid), sections })
}

/// The sections behind a segment command's 72 bytes, of 80 bytes each.
fn text_sections(command: &[u8]) -> Vec<MappedSection> {
    let section = |bytes: &[u8]| {
        let range = AddrRange::from_size(Svma::new(long(bytes, 32)?), long(bytes, 40)?);
        let is_code = number(bytes, 64)? & INSTRUCTIONS != 0;
        Some(MappedSection { name: name(bytes.get(..16)?), range, is_code })
    };
    let count = number(command, 64).unwrap_or(0) as usize;
    let all = command.get(72..).unwrap_or_default().chunks_exact(80);
    all.take(count).filter_map(section).collect()
}

/// A name of up to 16 bytes, filled up with zeros.
fn name(bytes: &[u8]) -> String {
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers may")]
mod tests {
    use super::*;
    use backtrail_core::MemorySlice;

    const LOADED: u64 = 0x1_0234_8000;
    const TEXT: u64 = 0x1_0000_0000;

    fn command(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = u32::try_from(body.len() + 8).unwrap();
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), body].concat()
    }

    fn padded(name: &str) -> [u8; 16] {
        std::array::from_fn(|index| name.as_bytes().get(index).copied().unwrap_or(0))
    }

    fn image() -> Vec<u8> {
        let section = |name: &str, at: u64, size: u64, flags: u32| {
            let mut bytes = [padded(name), padded("__TEXT")].concat();
            bytes.extend([at.to_le_bytes(), size.to_le_bytes()].concat());
            bytes.resize(64, 0);
            bytes.extend(flags.to_le_bytes());
            bytes.resize(80, 0);
            bytes
        };
        let mut text = padded("__TEXT").to_vec();
        text.extend([TEXT, 0x4000, 0, 0x4000].map(u64::to_le_bytes).concat());
        text.extend([5u32, 5, 2, 0].map(u32::to_le_bytes).concat());
        text.extend(section("__text", TEXT + 0x1000, 0x800, 0x8000_0400));
        text.extend(section("__unwind_info", TEXT + 0x2000, 0x100, 0));
        let mut zero = padded("__PAGEZERO").to_vec();
        zero.resize(64, 0);
        let uuid: Vec<u8> = (1..=16).collect();
        let commands =
            [command(LC_SEGMENT_64, &zero), command(LC_SEGMENT_64, &text), command(LC_UUID, &uuid)];
        let size = u32::try_from(commands.concat().len()).unwrap();
        let header = [MAGIC_64, 0x0100_000c, 0, 2, 3, size, 0, 0].map(u32::to_le_bytes).concat();
        [header, commands.concat()].concat()
    }

    #[test]
    fn a_mapped_header_tells_where_things_are() {
        let bytes = image();
        let read = read_image(&MemorySlice::new(Avma::new(LOADED), &bytes), Avma::new(LOADED)).unwrap();
        assert_eq!(read.bias, Bias::between(Avma::new(LOADED), Svma::new(TEXT)));
        assert_eq!(read.text, AddrRange::from_size(Svma::new(TEXT), 0x4000));
        assert_eq!(read.id, Some(ImageId::Uuid(std::array::from_fn(|byte| u8::try_from(byte + 1).unwrap()))));
        let names: Vec<_> = read.sections.iter().map(|section| (&*section.name, section.is_code)).collect();
        assert_eq!(names, [("__text", true), ("__unwind_info", false)]);
        assert_eq!(read.sections[1].range, AddrRange::from_size(Svma::new(TEXT + 0x2000), 0x100));
    }

    #[test]
    fn broken_headers_are_none() {
        let bytes = image();
        for cut in 0..bytes.len() {
            let memory = MemorySlice::new(Avma::new(LOADED), &bytes[..cut]);
            assert_eq!(read_image(&memory, Avma::new(LOADED)), None, "{cut}");
        }
        // Every word set to what it should not be: no panic, nothing endless.
        for at in (0..bytes.len()).step_by(4) {
            for value in [0u32, 1, 7, u32::MAX] {
                let mut broken = bytes.clone();
                broken[at..at + 4].copy_from_slice(&value.to_le_bytes());
                let _ = read_image(&MemorySlice::new(Avma::new(LOADED), &broken), Avma::new(LOADED));
            }
        }
    }
}
