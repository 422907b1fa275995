//! What is known of a library: the content of a `.btsdk` file. Hashes and numbers, no code and no names but the
//! library's own.

use backtrail_core::Arch;

use crate::hash::Digest;
use crate::isa::Form;

/// What `learn` found in a static library: hashes by which its code is found again in an app.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fingerprint {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) slices: Vec<Slice>,
    /// Whether calls are known: version 1 of the file has none.
    pub(crate) has_calls: bool,
}

/// The library for one architecture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slice {
    pub(crate) arch: Arch,
    pub(crate) is_mach_o: bool,
    /// Hashes of their names, in the archive's order.
    pub(crate) members: Vec<Digest>,
    /// By member, and there as they lie.
    pub(crate) functions: Vec<Function>,
    /// Which bytes of a function a linker fills in; shared by functions that are alike.
    pub(crate) shapes: Vec<Shape>,
    pub(crate) targets: Vec<Target>,
    pub(crate) methods: Vec<Method>,
    /// Classes that the library defines; categories are among the owners of methods only.
    pub(crate) classes: Vec<Digest>,
    /// Pointers in data that lead to functions or other data.
    pub(crate) pointers: Vec<DataPointer>,
}

/// Offsets and sizes, ascending, none behind the function's end.
pub(crate) type Shape = Vec<(u32, u8)>;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Function {
    pub(crate) member: u32,
    /// Symbols with this hash may be found in link maps.
    pub(crate) name: Digest,
    /// Without padding.
    pub(crate) len: u32,
    /// Up to where the next one of its section starts, or the section's padding ends.
    pub(crate) span: u32,
    /// Told from bytes alone.
    pub(crate) outline: Digest,
    /// All but what the shape leaves out.
    pub(crate) body: Digest,
    pub(crate) shape: u32,
    pub(crate) reach: Reach,
    pub(crate) references: Vec<Reference>,
    /// Offsets behind its calls, ascending: what lies there are return addresses.
    pub(crate) returns: Vec<u32>,
}

/// Who else may mean this function by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub(crate) enum Reach {
    /// Its own member alone.
    Local = 0,
    Global = 1,
    /// Another definition may take its place.
    Weak = 2,
}

impl Reach {
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        [Self::Local, Self::Global, Self::Weak].into_iter().find(|reach| u64::from(*reach as u8) == number)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Reference {
    pub(crate) at: u32,
    /// Of a pair: where the first instruction stands.
    pub(crate) page_at: u32,
    pub(crate) form: Form,
    pub(crate) bias: i32,
    pub(crate) target: u32,
}

/// What a reference names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Target {
    /// By its number.
    Function(u32),
    /// A text or constant, by its content.
    Literal(Digest),
    /// A class that a slot refers to.
    Class(Digest),
    /// Something that the library does not define, by its name.
    Import(Digest),
    /// Data of the library. Numbers tell two of them apart.
    Data(u32),
    /// The same, where another definition may take its place: virtual tables of classes without a home.
    WeakData(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Method {
    pub(crate) owner: Digest,
    pub(crate) selector: Digest,
    pub(crate) function: u32,
}

/// At `offset` from the start of one target, of data, lies a pointer to another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct DataPointer {
    pub(crate) data: u32,
    pub(crate) offset: u32,
    pub(crate) target: u32,
}

impl Fingerprint {
    /// The library's name, as its users will read it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The architectures that it was learnt for, with the number of functions of each.
    pub fn architectures(&self) -> impl Iterator<Item = (Arch, usize)> {
        self.slices.iter().map(|slice| (slice.arch, slice.functions.len()))
    }

    /// Whether it knows where calls lie, which addresses without an app are told by. Files of version 1 do not.
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// What was learnt for an architecture. Of several builds the first: devices', which phones' reports are of.
    pub(crate) fn slice(&self, arch: Arch, is_mach_o: bool) -> Option<&Slice> {
        self.slices(arch, is_mach_o).next()
    }

    /// The builds of the library for an architecture: one, or a device's and a simulator's.
    pub(crate) fn slices(&self, arch: Arch, is_mach_o: bool) -> impl Iterator<Item = &Slice> {
        let of_format = self.slices.iter().filter(move |slice| slice.is_mach_o == is_mach_o);
        let has_exact = of_format.clone().any(|slice| slice.arch == arch);
        // 32-bit ARM in ELF has one architecture, in Mach-O several that share most code.
        let is_alike = move |slice: &Slice| {
            slice.arch.family() == arch.family() && arch.family() != backtrail_core::Family::Aarch64
        };
        let first_alike = of_format.clone().find(|slice| is_alike(slice)).map(|slice| slice.arch);
        let wanted = if has_exact { Some(arch) } else { first_alike };
        of_format.filter(move |slice| Some(slice.arch) == wanted)
    }
}

impl Slice {
    /// The pointers in data, ascending by offset.
    pub(crate) fn pointers_of(&self, data: u32) -> &[DataPointer] {
        let from = self.pointers.partition_point(|pointer| pointer.data < data);
        let to = self.pointers.partition_point(|pointer| pointer.data <= data);
        self.pointers.get(from..to).unwrap_or_default()
    }
}

impl Function {
    /// Words of four bytes that no linker fills in.
    pub(crate) fn weight(&self, shapes: &[Shape]) -> u32 {
        let shape = shapes.get(index(self.shape));
        let filled: u32 = shape.map_or(0, |shape| shape.iter().map(|(_, size)| u32::from(*size)).sum());
        self.len.saturating_sub(filled) / 4
    }
}

/// A number of a table as an index into it.
pub(crate) fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
