//! Texts and constants that code refers to: they are alike wherever the linker puts them.

use backtrail_core::Svma;
use backtrail_object::{Object, Pointers, Section};

use crate::fingerprint::Target;
use crate::hash::{Digest, Domain};
use crate::objc::string;

/// What a section holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    Strings,
    Constants(usize),
    /// `CFString` objects.
    StringObjects,
    /// Pointers to selectors.
    Selectors,
    /// Pointers to classes.
    Classes,
    Other,
}

impl Content {
    /// By the names that compilers give sections.
    pub(crate) fn of(section: &Section<'_>) -> Self {
        match &*section.name {
            "__cstring" | "__objc_methname" | "__objc_classname" | "__objc_methtype" => Self::Strings,
            "__literal4" => Self::Constants(4),
            "__literal8" => Self::Constants(8),
            "__literal16" => Self::Constants(16),
            "__cfstring" => Self::StringObjects,
            "__objc_selrefs" => Self::Selectors,
            "__objc_classrefs" | "__objc_superrefs" => Self::Classes,
            name if name.starts_with(".rodata") && name.contains(".str") => Self::Strings,
            name if name.starts_with(".rodata.cst") => {
                name.trim_start_matches(".rodata.cst").parse().map_or(Self::Other, Self::Constants)
            }
            _ => Self::Other,
        }
    }
}

/// The bytes from an address on, in one object.
pub(crate) trait Memory {
    /// The bytes of a section from this address on.
    fn bytes(&self, section: usize, address: Svma) -> Option<&[u8]>;
    /// The address that a pointer holds.
    fn pointer(&self, at: Svma) -> Option<Svma>;
    /// The bytes at an address.
    fn at(&self, address: Svma) -> Option<&[u8]>;
    /// Bytes of a pointer.
    fn word(&self) -> u64;
}

/// What lies at an address, if it is told by its content.
pub(crate) fn literal(
    memory: &dyn Memory,
    content: Content,
    section: usize,
    address: Svma,
) -> Option<Target> {
    match content {
        Content::Strings => text(memory.bytes(section, address)?),
        Content::Constants(size) => {
            let bytes = memory.bytes(section, address)?.get(..size)?;
            Some(Target::Literal(Digest::of(Domain::Constant, bytes)))
        }
        Content::StringObjects => string_object(memory, address),
        Content::Selectors => text(memory.at(memory.pointer(address)?)?),
        Content::Classes | Content::Other => None,
    }
}

pub(crate) fn text(bytes: &[u8]) -> Option<Target> {
    Some(Target::Literal(Digest::of(Domain::String, string(bytes)?)))
}

/// Four words: a class, flags, the text, its length in units.
fn string_object(memory: &dyn Memory, address: Svma) -> Option<Target> {
    /// Of flags: units of two bytes.
    const WIDE: u8 = 0x10;
    let word = memory.word();
    let flags = *memory.at(address.checked_add(word)?)?.first()?;
    let text = memory.pointer(address.checked_add(2 * word)?)?;
    let count = memory.at(address.checked_add(3 * word)?)?;
    let count = usize::try_from(u32::from_le_bytes(*count.first_chunk()?)).ok()?;
    let size = if flags & WIDE == 0 { count } else { count.checked_mul(2)? };
    let bytes = memory.at(text)?.get(..size)?;
    Some(Target::Literal(Digest::of(Domain::StringObject, bytes)))
}

/// A Mach-O object.
pub(crate) struct MachMemory<'a, 'd> {
    pub(crate) object: &'a Object<'d>,
    pub(crate) pointers: &'a Pointers<'d>,
}

impl Memory for MachMemory<'_, '_> {
    fn bytes(&self, _: usize, address: Svma) -> Option<&[u8]> {
        self.pointers.bytes(address)
    }

    fn pointer(&self, at: Svma) -> Option<Svma> {
        self.pointers.read(at)
    }

    fn at(&self, address: Svma) -> Option<&[u8]> {
        self.pointers.bytes(address)
    }

    fn word(&self) -> u64 {
        if self.object.is_64() { 8 } else { 4 }
    }
}

impl ElfMemory<'_> {
    /// Whether something begins there. An x86 addend also has what follows the field in its instruction, which is not
    /// known: then the place is off by that.
    pub(crate) fn is_start(&self, content: Content, section: usize, address: Svma) -> bool {
        match content {
            Content::Strings => {
                let before = address.get().checked_sub(1).map(Svma::new);
                before.is_none_or(|before| self.bytes(section, before).and_then(<[u8]>::first) == Some(&0))
            }
            Content::Constants(size) => address.get().is_multiple_of(size as u64),
            _ => true,
        }
    }
}

/// An ELF object: its sections all start at zero in a `.o` file, and there are no string objects.
pub(crate) struct ElfMemory<'a> {
    /// The sections' bytes, in step with them.
    pub(crate) sections: &'a [std::borrow::Cow<'a, [u8]>],
}

impl Memory for ElfMemory<'_> {
    fn bytes(&self, section: usize, address: Svma) -> Option<&[u8]> {
        self.sections.get(section)?.get(usize::try_from(address.get()).ok()?..)
    }

    fn pointer(&self, _: Svma) -> Option<Svma> {
        None
    }

    fn at(&self, _: Svma) -> Option<&[u8]> {
        None
    }

    fn word(&self) -> u64 {
        8
    }
}

/// A section of a linked ELF image.
pub(crate) struct ElfImage<'a> {
    pub(crate) start: Svma,
    pub(crate) bytes: &'a [u8],
}

impl Memory for ElfImage<'_> {
    fn bytes(&self, _: usize, address: Svma) -> Option<&[u8]> {
        self.bytes.get(usize::try_from(address.offset_from(self.start)?).ok()?..)
    }

    fn pointer(&self, _: Svma) -> Option<Svma> {
        None
    }

    fn at(&self, _: Svma) -> Option<&[u8]> {
        None
    }

    fn word(&self) -> u64 {
        8
    }
}
