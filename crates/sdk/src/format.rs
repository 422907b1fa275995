//! The bytes of a `.btsdk` file: docs/sdk.md describes them. Numbers are LEB128, hashes eight bytes, lists a count and
//! their entries.

use backtrail_core::Arch;

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::{
    DataPointer, Fingerprint, Function, Method, Reach, Reference, Shape, Slice, Target, index,
};
use crate::hash::Digest;
use crate::isa::Form;

const MAGIC: &[u8; 6] = b"BTSDK\0";
const VERSION: u8 = 3;
/// Without the functions' spans and calls. Version 2 knew no weak data, which is otherwise the same.
const WITHOUT_CALLS: u8 = 1;
/// Bytes of the hash at the end.
const CHECK: usize = 8;

impl Fingerprint {
    /// The file's bytes; equal fingerprints give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new(), self.has_calls);
        out.0.extend_from_slice(MAGIC);
        out.0.push(if self.has_calls { VERSION } else { WITHOUT_CALLS });
        out.text(&self.name);
        out.text(&self.version);
        out.list(&self.slices, Writer::slice);
        let check = check(&out.0);
        out.0.extend_from_slice(&check);
        out.0
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Where the bytes are no fingerprint, of a newer version, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong = || Error::at(ErrorKind::WrongInput, 0, "expected a fingerprint (.btsdk)");
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(wrong)?;
        let (version, _) = rest.split_first().ok_or_else(wrong)?;
        if !(WITHOUT_CALLS..=VERSION).contains(version) {
            let detail =
                format!("a fingerprint of version {version}; this program reads versions up to {VERSION}");
            return Err(Error::at(ErrorKind::Unsupported, MAGIC.len() as u64, detail));
        }
        let end = bytes.len().saturating_sub(CHECK);
        let (content, stated) = bytes.split_at_checked(end).ok_or_else(wrong)?;
        if check(content) != *stated {
            let detail = "the fingerprint is damaged: its content has another hash than the file states";
            return Err(Error::at(ErrorKind::Malformed, end as u64, detail));
        }
        let has_calls = *version > WITHOUT_CALLS;
        let mut reader = Reader { bytes: content, at: MAGIC.len() + 1, has_calls };
        let (name, version) = (reader.text()?, reader.text()?);
        let fingerprint = Self { name, version, slices: reader.list(4, Reader::slice)?, has_calls };
        if reader.at != content.len() {
            return Err(reader.error("the end of the fingerprint"));
        }
        Ok(fingerprint)
    }
}

fn check(bytes: &[u8]) -> [u8; CHECK] {
    blake3::hash(bytes).as_bytes().first_chunk().copied().unwrap_or_default()
}

/// The bytes, and whether functions have calls.
struct Writer(Vec<u8>, bool);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
            number >>= 7;
        }
        self.0.push(u8::try_from(number).unwrap_or(0));
    }

    /// Small numbers of either sign.
    fn signed(&mut self, number: i32) {
        self.number(u64::from((number << 1 ^ number >> 31).cast_unsigned()));
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn digest(&mut self, digest: Digest) {
        self.0.extend_from_slice(&digest.0.to_le_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|one| item(self, one));
    }

    fn slice(&mut self, slice: &Slice) {
        self.text(slice.arch.name());
        self.0.push(u8::from(slice.is_mach_o));
        self.list(&slice.members, |out, member| out.digest(*member));
        self.list(&slice.shapes, Self::shape);
        self.list(&slice.targets, |out, target| out.target(*target));
        self.list(&slice.functions, Self::function);
        self.list(&slice.classes, |out, class| out.digest(*class));
        self.list(&slice.methods, |out, method| {
            out.digest(method.owner);
            out.digest(method.selector);
            out.number(method.function.into());
        });
        self.list(&slice.pointers, |out, pointer| {
            for number in [pointer.data, pointer.offset, pointer.target] {
                out.number(number.into());
            }
        });
    }

    /// Distances between starts, each with the size.
    fn shape(&mut self, shape: &Shape) {
        let mut last = 0;
        self.list(shape, |out, (at, size)| {
            out.number(u64::from(at - last) << 4 | u64::from((*size).min(15)));
            last = *at;
        });
    }

    fn target(&mut self, target: Target) {
        match target {
            Target::Function(function) => {
                self.0.push(0);
                self.number(function.into());
            }
            Target::Data(data) => {
                self.0.push(4);
                self.number(data.into());
            }
            Target::WeakData(data) => {
                self.0.push(5);
                self.number(data.into());
            }
            Target::Literal(digest) | Target::Class(digest) | Target::Import(digest) => {
                self.0.push(match target {
                    Target::Literal(_) => 1,
                    Target::Class(_) => 2,
                    _ => 3,
                });
                self.digest(digest);
            }
        }
    }

    fn function(&mut self, function: &Function) {
        self.number(function.member.into());
        self.digest(function.name);
        self.number(u64::from(function.len) << 2 | function.reach as u64);
        self.digest(function.outline);
        self.digest(function.body);
        self.number(function.shape.into());
        self.list(&function.references, |out, reference| {
            out.number(u64::from(reference.at) << 3 | reference.form as u64);
            out.number((reference.at.abs_diff(reference.page_at)).into());
            out.signed(reference.bias);
            out.number(reference.target.into());
        });
        if self.1 {
            self.number(function.span.saturating_sub(function.len).into());
            let mut last = 0;
            self.list(&function.returns, |out, at| {
                out.number(at.saturating_sub(last).into());
                last = *at;
            });
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    has_calls: bool,
}

impl Reader<'_> {
    fn error(&self, expected: &str) -> Error {
        Error::at(ErrorKind::Malformed, self.at as u64, format!("expected {expected} in a fingerprint"))
    }

    fn take(&mut self, size: usize, what: &str) -> Result<&[u8]> {
        let end = self.at.checked_add(size).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.error(what))?;
        let taken = self.bytes.get(self.at..end).unwrap_or_default();
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self, what: &str) -> Result<u8> {
        Ok(self.take(1, what)?.first().copied().unwrap_or(0))
    }

    fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte("a number")?;
            let low = u64::from(byte & 0x7f);
            if (low << shift) >> shift != low {
                return Err(self.error("a number of 64 bits"));
            }
            value |= low << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error("a number of 64 bits"))
    }

    fn small(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| self.error("a number of 32 bits"))
    }

    /// A number below `count`.
    fn below(&mut self, count: usize) -> Result<u32> {
        let number = self.small()?;
        if index(number) < count {
            Ok(number)
        } else {
            Err(self.error("the number of an entry that is there"))
        }
    }

    fn text(&mut self) -> Result<String> {
        /// More than anybody calls a library.
        const LONGEST: u64 = 1 << 12;
        let size = self.number()?;
        let size = usize::try_from(size.min(LONGEST + 1)).ok().filter(|size| *size as u64 <= LONGEST);
        let size = size.ok_or_else(|| self.error("a text of at most 4096 bytes"))?;
        let bytes = self.take(size, "a text")?.to_vec();
        String::from_utf8(bytes).map_err(|_| self.error("a text in UTF-8"))
    }

    fn digest(&mut self) -> Result<Digest> {
        let bytes = self.take(8, "a hash")?;
        Ok(Digest(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))))
    }

    /// A list whose entries have at least `least` bytes.
    fn list<T>(&mut self, least: usize, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.number()?;
        let there = self.bytes.len().saturating_sub(self.at) / least.max(1);
        let count = usize::try_from(count).ok().filter(|count| *count <= there);
        let count = count.ok_or_else(|| self.error("a list that fits the file"))?;
        (0..count).map(|_| item(self)).collect()
    }

    fn slice(&mut self) -> Result<Slice> {
        let arch = self.text()?;
        // Other spellings are longer or shorter than what is written.
        let arch = Arch::from_name(&arch).filter(|known| known.name() == arch);
        let arch = arch.ok_or_else(|| self.error("the name of an architecture"))?;
        let is_mach_o = self.byte("a format")? != 0;
        let members = self.list(8, Self::digest)?;
        let shapes = self.list(1, Self::shape)?;
        let targets = self.list(2, Self::target)?;
        let (m, s, t) = (members.len(), shapes.len(), targets.len());
        let functions = self.list(28, |reader| reader.function(m, s, t))?;
        let count = functions.len();
        let is_known =
            |target: &Target| !matches!(target, Target::Function(function) if index(*function) >= count);
        if !targets.iter().all(is_known) {
            return Err(self.error("references to functions that are there"));
        }
        let classes = self.list(8, Self::digest)?;
        let methods = self.list(17, |reader| {
            let (owner, selector) = (reader.digest()?, reader.digest()?);
            Ok(Method { owner, selector, function: reader.below(count)? })
        })?;
        let pointers = self.list(3, |reader| {
            let (data, offset) = (reader.below(t)?, reader.small()?);
            Ok(DataPointer { data, offset, target: reader.below(t)? })
        })?;
        Ok(Slice { arch, is_mach_o, members, functions, shapes, targets, methods, classes, pointers })
    }

    fn shape(&mut self) -> Result<Shape> {
        let mut last = 0u32;
        self.list(1, |reader| {
            let packed = reader.number()?;
            let distance = u32::try_from(packed >> 4).ok();
            last = distance
                .and_then(|distance| last.checked_add(distance))
                .ok_or_else(|| reader.error("an offset of 32 bits"))?;
            Ok((last, u8::try_from(packed & 15).unwrap_or(0)))
        })
    }

    fn target(&mut self) -> Result<Target> {
        Ok(match self.byte("a target")? {
            0 => Target::Function(self.small()?),
            1 => Target::Literal(self.digest()?),
            2 => Target::Class(self.digest()?),
            3 => Target::Import(self.digest()?),
            4 => Target::Data(self.small()?),
            5 => Target::WeakData(self.small()?),
            _ => return Err(self.error("a target of a known kind")),
        })
    }

    fn function(&mut self, members: usize, shapes: usize, targets: usize) -> Result<Function> {
        let member = self.below(members)?;
        let name = self.digest()?;
        let packed = self.number()?;
        let reach = Reach::from_number(packed & 3).ok_or_else(|| self.error("how far a name reaches"))?;
        let len = u32::try_from(packed >> 2).map_err(|_| self.error("a length of 32 bits"))?;
        let (outline, body) = (self.digest()?, self.digest()?);
        let shape = self.below(shapes)?;
        let references = self.list(4, |reader| {
            let packed = reader.number()?;
            let form = Form::from_number(packed & 7).ok_or_else(|| reader.error("a form of reference"))?;
            let at = u32::try_from(packed >> 3).map_err(|_| reader.error("an offset of 32 bits"))?;
            let distance = reader.small()?;
            let page_at = at.checked_sub(distance).ok_or_else(|| reader.error("an offset"))?;
            let raw = reader.small()?;
            let bias = (raw >> 1).cast_signed() ^ -((raw & 1).cast_signed());
            Ok(Reference { at, page_at, form, bias, target: reader.below(targets)? })
        })?;
        let (mut span, mut returns) = (len, Vec::new());
        if self.has_calls {
            let behind = self.small()?;
            span = len.checked_add(behind).ok_or_else(|| self.error("a length of 32 bits"))?;
            let mut last = 0u32;
            returns = self.list(1, |reader| {
                let next = last.checked_add(reader.small()?).filter(|at| *at <= len);
                last = next.ok_or_else(|| reader.error("a call inside of its function"))?;
                Ok(last)
            })?;
        }
        Ok(Function { member, name, len, span, outline, body, shape, reach, references, returns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_version_1_are_read_and_know_no_calls() {
        let fingerprint = |has_calls| Fingerprint {
            name: "Vendor".to_owned(),
            version: "1".to_owned(),
            slices: Vec::new(),
            has_calls,
        };
        for (has_calls, version) in [(false, 1), (true, 3)] {
            let bytes = fingerprint(has_calls).to_bytes();
            assert_eq!(bytes.get(MAGIC.len()), Some(&version));
            assert_eq!(Fingerprint::from_bytes(&bytes), Ok(fingerprint(has_calls)));
        }
    }
}
