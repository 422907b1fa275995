//! Objective-C's metadata, in `.o` files and in linked images: which classes and categories there are, and where their
//! methods lie. Apple's `objc-runtime-new.h`.

use backtrail_core::Svma;
use backtrail_object::{Object, Pointers};

use crate::hash::{Digest, Domain, Map};

/// Bounds on metadata that leads in circles or states more than it has.
const MAX_METHODS: usize = 1 << 22;

/// One method.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Method {
    /// The class, or the category.
    pub(crate) owner: Digest,
    /// With `-` or `+` before it.
    pub(crate) selector: Digest,
    pub(crate) address: Svma,
}

/// What an object file defines.
#[derive(Default, Debug)]
pub(crate) struct Classes {
    pub(crate) methods: Vec<Method>,
    /// Classes by the addresses of their objects.
    pub(crate) objects: Map<u64, Digest>,
    /// Whether a category is apart from its class, both in this image: a linker that joins them joins all that no runtime needs early.
    pub(crate) has_apart: bool,
    /// By class: what its name begins with, the shortest first, as vendors mark their classes.
    pub(crate) prefixes: Map<u64, Vec<Digest>>,
    /// By the hash of a class: where the object of its superclass lies, if that is in this image.
    pub(crate) superclasses: Map<u64, Svma>,
}

impl Classes {
    /// All that the object defines; nothing for ELF.
    pub(crate) fn read(object: &Object<'_>, pointers: &Pointers<'_>) -> Self {
        let mut reader = Reader {
            pointers,
            word: if object.is_64() { 8 } else { 4 },
            found: Self::default(),
            early: Vec::new(),
        };
        let early = object.sections().iter().find(|section| section.name == "__objc_nlcatlist");
        let mut at = early.map_or(Svma::new(0), |early| early.address.start());
        while early.is_some_and(|early| at < early.address.end()) && reader.early.len() < MAX_METHODS {
            reader.early.extend(pointers.read(at));
            let Some(next) = at.checked_add(reader.word) else { break };
            at = next;
        }
        reader.early.sort_unstable();
        for section in object.sections() {
            let is_class = match &*section.name {
                "__objc_classlist" => true,
                "__objc_catlist" | "__objc_catlist2" => false,
                _ => continue,
            };
            let mut at = section.address.start();
            while at < section.address.end() && reader.found.methods.len() < MAX_METHODS {
                if let Some(entry) = pointers.read(at) {
                    let _ = if is_class { reader.class(entry) } else { reader.category(entry) };
                }
                let Some(next) = at.checked_add(reader.word) else { break };
                at = next;
            }
        }
        reader.found
    }
}

/// The digest of a class.
pub(crate) fn class_digest(name: &[u8]) -> Digest {
    Digest::of(Domain::Class, name)
}

/// The digest of a category, whose class may be another image's.
fn category_digest(name: &[u8]) -> Digest {
    Digest::of(Domain::Class, &[b"(", name, b")"].concat())
}

/// What a class's name begins with as far as that tells who named it: its capitals, a number of them; of names without such its
/// first word, and of Swift's classes the module.
fn prefixes(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    const LEAST: usize = 2;
    let module = name.strip_prefix(b"_TtC").and_then(|mangled| {
        let digits = mangled.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (count, rest) = mangled.split_at_checked(digits)?;
        rest.get(..std::str::from_utf8(count).ok()?.parse().ok()?)
    });
    let marks = name.iter().take_while(|byte| **byte == b'_').count();
    let (name, lengths) = if let Some(module) = module {
        (module, module.len()..=module.len())
    } else {
        let name = name.get(marks..).unwrap_or_default();
        let capitals = name.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        let behind = name.get(capitals..).unwrap_or_default();
        let word = behind.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        match capitals {
            // The last capital begins a word.
            _ if capitals > LEAST && word > 0 => (name, LEAST..=capitals - 1),
            _ if capitals > LEAST => (name, LEAST..=capitals),
            _ => (name, capitals + word..=capitals + word),
        }
    };
    lengths.filter_map(|length| name.get(..length).filter(|prefix| prefix.len() >= LEAST))
}

struct Reader<'p, 'd> {
    pointers: &'p Pointers<'d>,
    word: u64,
    found: Classes,
    /// Categories that are loaded early.
    early: Vec<Svma>,
}

/// The bytes before the first NUL.
pub(crate) fn string(bytes: &[u8]) -> Option<&[u8]> {
    /// Longer ones are no names.
    const LONGEST: usize = 1 << 16;
    let bytes = bytes.get(..bytes.len().min(LONGEST))?;
    bytes.get(..bytes.iter().position(|byte| *byte == 0)?)
}

impl<'d> Reader<'_, 'd> {
    fn string_at(&self, pointer: Svma) -> Option<&'d [u8]> {
        string(self.pointers.bytes(self.pointers.read(pointer)?)?).filter(|name| !name.is_empty())
    }

    fn field(&self, base: Svma, words: u64) -> Option<Svma> {
        base.checked_add(words.checked_mul(self.word)?)
    }

    /// `class_t`: isa, superclass, two words of cache, data.
    fn class(&mut self, class: Svma) -> Option<()> {
        let data = self.data_of(class)?;
        let text = self.string_at(self.name_of(data)?)?;
        let name = class_digest(text);
        self.found.objects.insert(class.get(), name);
        let prefixes = prefixes(text).map(|prefix| Digest::of(Domain::Class, prefix));
        self.found.prefixes.insert(name.0, prefixes.collect());
        if let Some(superclass) = self.pointers.read(self.field(class, 1)?) {
            self.found.superclasses.insert(name.0, superclass);
        }
        let methods = self.pointers.read(self.methods_of(data)?);
        self.list(methods, name, b'-');
        let meta = self.pointers.read(class).and_then(|meta| self.data_of(meta));
        let methods = meta.and_then(|data| self.pointers.read(self.methods_of(data)?));
        self.list(methods, name, b'+');
        Some(())
    }

    fn data_of(&self, class: Svma) -> Option<Svma> {
        // The lowest bits tell that it is Swift's.
        self.pointers.read(self.field(class, 4)?).map(|data| Svma::new(data.get() & !7))
    }

    /// In `class_ro_t` three numbers stand before the pointers; padded to four where pointers have 64 bits.
    fn name_of(&self, data: Svma) -> Option<Svma> {
        data.checked_add(if self.word == 8 { 24 } else { 16 })
    }

    fn methods_of(&self, data: Svma) -> Option<Svma> {
        data.checked_add(if self.word == 8 { 32 } else { 20 })
    }

    /// `category_t`: name, class, methods, class methods.
    fn category(&mut self, category: Svma) -> Option<()> {
        let name = self.string_at(category)?;
        let class = self.pointers.read(self.field(category, 1)?);
        let class = class.and_then(|class| self.data_of(class));
        let class = class.and_then(|data| self.string_at(self.name_of(data)?)).map(class_digest);
        self.found.has_apart |= class.is_some() && self.early.binary_search(&category).is_err();
        let owner = category_digest(name);
        for (field, sign) in [(2, b'-'), (3, b'+')] {
            let list = self.pointers.read(self.field(category, field)?);
            self.list(list, owner, sign);
            // A linker may join a category with a class of the same image.
            if let Some(class) = class {
                self.list(list, class, sign);
            }
        }
        Some(())
    }

    fn list(&mut self, list: Option<Svma>, owner: Digest, sign: u8) -> Option<()> {
        const RELATIVE: u32 = 0x8000_0000;
        let list = list?;
        let bytes = self.pointers.bytes(list)?;
        let flags = u32::from_le_bytes(*bytes.first_chunk()?);
        let count = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
        let is_relative = flags & RELATIVE != 0;
        let size = u64::from(flags & 0xfffc).max(if is_relative { 12 } else { 3 * self.word });
        for index in 0..u64::from(count) {
            let entry = list.checked_add(8 + index.checked_mul(size)?)?;
            let (name, address) = if is_relative {
                (self.relative_name(entry)?, self.relative(entry.checked_add(8)?)?)
            } else {
                (self.string_at(entry)?, self.pointers.read(self.field(entry, 2)?)?)
            };
            if self.found.methods.len() >= MAX_METHODS {
                return None;
            }
            let selector = Digest::of(Domain::Selector, &[&[sign], name].concat());
            self.found.methods.push(Method { owner, selector, address });
        }
        Some(())
    }

    /// Distances of 32 bits from where they stand.
    fn relative(&self, at: Svma) -> Option<Svma> {
        let distance = i32::from_le_bytes(*self.pointers.bytes(at)?.first_chunk()?);
        Some(Svma::new(at.get().wrapping_add_signed(distance.into())))
    }

    /// To a pointer to the selector; in the shared cache to the selector itself, which is not read here.
    fn relative_name(&self, at: Svma) -> Option<&'d [u8]> {
        self.string_at(self.relative(at)?)
    }
}
