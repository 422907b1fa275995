//! The ELF header, whatever its width and byte order.

use backtrail_core::Arch;
use object::elf::{
    ELFCLASS32, ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, EM_386, EM_AARCH64, EM_ARM, EM_PPC, EM_PPC64, EM_RISCV,
    EM_X86_64, FileHeader32, FileHeader64, FileType, Machine, PN_XNUM, SHN_XINDEX,
};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, ReadRef};

use crate::error::{Error, ErrorKind, Result};
use crate::view::View;

pub(crate) fn is_elf<'d, R: ReadRef<'d>>(view: View<R>) -> bool {
    view.bytes(0, 4, "a magic number").is_ok_and(|magic| magic == b"\x7fELF")
}

/// The architecture of an ELF file of which only the start is there.
pub(crate) fn arch_of(start: &[u8]) -> Arch {
    read(View::of_slice(start, 0)).map_or(Arch::Unknown, |header| header.arch())
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) is_64: bool,
    pub(super) endian: Endianness,
    pub(super) file_type: FileType,
    pub(super) machine: Machine,
    pub(super) entry: u64,
    pub(super) phoff: u64,
    pub(super) phnum: u64,
    pub(super) shoff: u64,
    pub(super) shnum: u64,
    /// Index of the section with the sections' names.
    pub(super) shstrndx: u64,
}

impl Header {
    pub(super) fn arch(&self) -> Arch {
        match self.machine {
            EM_386 => Arch::X86,
            EM_X86_64 => Arch::X86_64,
            EM_ARM => Arch::Arm,
            EM_AARCH64 if self.is_64 => Arch::Arm64,
            EM_AARCH64 => Arch::Arm64_32,
            EM_PPC => Arch::Ppc,
            EM_PPC64 => Arch::Ppc64,
            EM_RISCV if self.is_64 => Arch::Riscv64,
            EM_RISCV => Arch::Riscv32,
            _ => Arch::Unknown,
        }
    }
}

/// The header, with the counts that do not fit it taken from where they are put instead: section 0.
pub(super) fn read<'d, R: ReadRef<'d>>(view: View<R>) -> Result<Header> {
    let ident = view.bytes(0, 16, "an ELF identification")?;
    let [_, _, _, _, class, data, ..] = *ident else {
        return Err(view.truncated(0, 16, "an ELF identification"));
    };
    let endian = match data {
        _ if data == ELFDATA2LSB.0 => Endianness::Little,
        _ if data == ELFDATA2MSB.0 => Endianness::Big,
        _ => return Err(view.malformed(5, format!("expected a byte order of 1 or 2, found {data}"))),
    };
    match class {
        _ if class == ELFCLASS32.0 => fields::<FileHeader32<Endianness>, R>(view, endian),
        _ if class == ELFCLASS64.0 => fields::<FileHeader64<Endianness>, R>(view, endian),
        _ => Err(view.malformed(4, format!("expected an ELF class of 1 or 2, found {class}"))),
    }
}

fn fields<'d, E, R>(view: View<R>, endian: Endianness) -> Result<Header>
where
    E: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let raw = view.pod::<E>(0, "an ELF header")?;
    let mut header = Header {
        is_64: raw.is_type_64(),
        endian,
        file_type: raw.e_type(endian),
        machine: raw.e_machine(endian),
        entry: raw.e_entry(endian).into(),
        phoff: raw.e_phoff(endian).into(),
        phnum: raw.e_phnum(endian).into(),
        shoff: raw.e_shoff(endian).into(),
        shnum: raw.e_shnum(endian).into(),
        shstrndx: raw.e_shstrndx(endian).0.into(),
    };
    let section_0 = || view.pod::<E::SectionHeader>(header.shoff, "section header 0");
    if header.shoff != 0 && header.shnum == 0 {
        header.shnum = section_0().map_or(0, |section| section.sh_size(endian).into());
    }
    if header.shstrndx == u64::from(SHN_XINDEX.0) {
        header.shstrndx = section_0().map_or(0, |section| section.sh_link(endian).into());
    }
    if header.phnum == u64::from(PN_XNUM) {
        header.phnum = section_0().map_or(0, |section| section.sh_info(endian).into());
    }
    Ok(header)
}

/// A table of `count` headers that may be there, and be that long.
pub(super) fn table<'d, T: object::pod::Pod, R: ReadRef<'d>>(
    view: View<R>,
    offset: u64,
    count: u64,
    limit: usize,
    what: &str,
) -> Result<&'d [T]> {
    if count == 0 || offset == 0 {
        return Ok(&[]);
    }
    if usize::try_from(count).map_or(true, |count| count > limit) {
        let detail = format!("{count} {what}, {limit} are allowed");
        return Err(Error::new(ErrorKind::LimitExceeded, view.absolute(offset), detail));
    }
    view.table(offset, count, what)
}
