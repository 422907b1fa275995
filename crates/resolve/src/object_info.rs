//! What a binary says of itself, as far as those who ask it for addresses need to know.

use backtrail_core::{AddrRange, Arch, Family, ImageId, Svma};
use backtrail_object::Object;
use backtrail_store::{ExternalSymbolFile, OpenFile};
use backtrail_table::Header;
use std::path::Path;

/// One binary's name, layout and identity.
#[derive(Clone, Debug)]
pub struct ObjectInfo {
    /// The file's name without directories.
    pub name: String,
    /// Its architecture.
    pub arch: Arch,
    /// Whether its addresses have 64 bits.
    pub is_64: bool,
    /// The address that offsets in the image count from.
    pub image_base: Svma,
    /// Its UUID or build id.
    pub id: Option<ImageId>,
    /// The names and addresses of the sections that are part of the running image. Empty ones are left out.
    sections: Vec<(String, AddrRange<Svma>)>,
    /// What a loader maps, with the names that segments have in Mach-O.
    segments: Vec<(String, AddrRange<Svma>)>,
}

impl ObjectInfo {
    /// What the file says; `None` where it cannot be read.
    pub(crate) fn of(file: &OpenFile, path: &Path) -> Option<Self> {
        let of_object = file.object().map(|object| Self::of_object(object, path));
        let of_table = || Some(Self::of_table(file.table()?.header(), path));
        let of_external = || Some(Self::of_external(file.external_symbols()?, path));
        of_object.or_else(of_table).or_else(of_external)
    }

    fn of_object(object: &Object<'_>, file: &Path) -> Self {
        let sections =
            object.sections().iter().filter(|section| section.is_loaded && !section.address.is_empty());
        let segments = object.segments().iter();
        let segments = segments.filter(|segment| segment.readable || segment.writable || segment.executable);
        Self {
            name: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            arch: object.arch(),
            is_64: object.is_64(),
            image_base: object.image_base(),
            id: object.id(),
            sections: sections.map(|section| (section.name.to_string(), section.address)).collect(),
            segments: segments.map(|segment| (segment.name.to_string(), segment.address)).collect(),
        }
    }

    /// What a table says; of sections and segments it says nothing, so that it may have any address.
    fn of_table(header: &Header, file: &Path) -> Self {
        let is_32 = matches!(header.arch.family(), Family::X86 | Family::Arm) || header.arch == Arch::Ppc;
        Self {
            name: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            arch: header.arch,
            is_64: !is_32,
            image_base: header.image_base,
            id: header.id,
            sections: Vec::new(),
            segments: any_address(),
        }
    }

    fn of_external(symbols: &ExternalSymbolFile<'_>, file: &Path) -> Self {
        let file_name = file.file_name().unwrap_or_default().to_string_lossy();
        let arch = symbols.arch();
        let is_32 = matches!(arch, Arch::X86 | Arch::Arm | Arch::Ppc | Arch::Riscv32);
        Self {
            name: symbols.name().map_or_else(|| file_name.into_owned(), str::to_owned),
            arch,
            is_64: !is_32,
            image_base: symbols.image_base(),
            id: symbols.id(),
            sections: Vec::new(),
            segments: any_address(),
        }
    }

    /// The addresses of the section with this name; the first where several have it.
    pub fn section(&self, name: &str) -> Option<AddrRange<Svma>> {
        self.sections.iter().find(|(own, _)| own == name).map(|(_, range)| *range)
    }

    /// The addresses of the segment with this name.
    pub fn segment(&self, name: &str) -> Option<AddrRange<Svma>> {
        self.segments.iter().find(|(own, _)| own == name).map(|(_, range)| *range)
    }

    /// Whether the image has anything at this address. What is only reserved (Mach-O's `__PAGEZERO`) does not count.
    pub fn contains(&self, address: Svma) -> bool {
        self.segments.iter().any(|(_, range)| range.contains(address))
    }
}

/// Where nothing is said of segments.
fn any_address() -> Vec<(String, AddrRange<Svma>)> {
    vec![(String::new(), AddrRange::new(Svma::new(0), Svma::new(u64::MAX)))]
}
