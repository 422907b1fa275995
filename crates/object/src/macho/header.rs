//! The Mach-O header and its load commands, taken one by one.

use backtrail_core::Arch;
use object::macho::{
    CPU_SUBTYPE_ARM_V6, CPU_SUBTYPE_ARM_V7, CPU_SUBTYPE_ARM_V7K, CPU_SUBTYPE_ARM_V7S, CPU_SUBTYPE_ARM64E,
    CPU_SUBTYPE_X86_64_H, CPU_TYPE_ARM, CPU_TYPE_ARM64, CPU_TYPE_ARM64_32, CPU_TYPE_POWERPC,
    CPU_TYPE_POWERPC64, CPU_TYPE_X86, CPU_TYPE_X86_64, CpuSubtype, CpuType, FileType, LcStr, LoadCommand,
    LoadCommandType, MH_BUNDLE, MH_CORE, MH_DSYM, MH_DYLIB, MH_DYLIB_STUB, MH_DYLINKER, MH_EXECUTE,
    MH_FVMLIB, MH_KEXT_BUNDLE, MH_MAGIC, MH_MAGIC_64, MH_OBJECT, MachHeader32, MachHeader64,
};
use object::pod::Pod;
use object::read::macho::MachHeader;
use object::{Endianness, ReadRef};

use crate::error::{Error, Result};
use crate::object::Kind;
use crate::view::{View, pod_at, string_at};

/// The architecture that a header or a fat header states.
pub(crate) fn arch(cpu: CpuType, subtype: CpuSubtype) -> Arch {
    let of = |id| subtype.id() == id;
    match cpu {
        CPU_TYPE_X86 => Arch::X86,
        CPU_TYPE_X86_64 if of(CPU_SUBTYPE_X86_64_H) => Arch::X86_64h,
        CPU_TYPE_X86_64 => Arch::X86_64,
        CPU_TYPE_ARM if of(CPU_SUBTYPE_ARM_V6) => Arch::Armv6,
        CPU_TYPE_ARM if of(CPU_SUBTYPE_ARM_V7) => Arch::Armv7,
        CPU_TYPE_ARM if of(CPU_SUBTYPE_ARM_V7S) => Arch::Armv7s,
        CPU_TYPE_ARM if of(CPU_SUBTYPE_ARM_V7K) => Arch::Armv7k,
        CPU_TYPE_ARM => Arch::Arm,
        CPU_TYPE_ARM64 if of(CPU_SUBTYPE_ARM64E) => Arch::Arm64e,
        CPU_TYPE_ARM64 => Arch::Arm64,
        CPU_TYPE_ARM64_32 => Arch::Arm64_32,
        CPU_TYPE_POWERPC => Arch::Ppc,
        CPU_TYPE_POWERPC64 => Arch::Ppc64,
        _ => Arch::Unknown,
    }
}

/// The architecture of a Mach-O file of which only the start is there.
pub(crate) fn arch_of(start: &[u8]) -> Arch {
    read(View::of_slice(start, 0), 0).map_or(Arch::Unknown, |header| header.arch)
}

pub(super) fn kind(file_type: FileType) -> Kind {
    match file_type {
        MH_OBJECT => Kind::Relocatable,
        MH_EXECUTE => Kind::Executable,
        MH_DYLIB | MH_DYLINKER | MH_DYLIB_STUB | MH_FVMLIB => Kind::Library,
        MH_BUNDLE | MH_KEXT_BUNDLE => Kind::Bundle,
        MH_DSYM => Kind::DebugCompanion,
        MH_CORE => Kind::Core,
        _ => Kind::Other,
    }
}

/// The header's fields, whatever its width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) is_64: bool,
    pub(super) endian: Endianness,
    pub(super) arch: Arch,
    pub(super) file_type: FileType,
    pub(super) ncmds: u32,
    pub(super) sizeofcmds: u32,
    /// Where the load commands start.
    pub(super) commands: u64,
}

/// The header at `offset`.
pub(super) fn read<'d, R: ReadRef<'d>>(view: View<R>, offset: u64) -> Result<Header> {
    let magic = view.bytes(offset, 4, "a Mach-O magic number")?;
    let number = u32::from_be_bytes(magic.first_chunk().copied().unwrap_or_default());
    match number {
        MH_MAGIC => fields::<MachHeader32<Endianness>, R>(view, offset, Endianness::Big),
        MH_MAGIC_64 => fields::<MachHeader64<Endianness>, R>(view, offset, Endianness::Big),
        _ if number.swap_bytes() == MH_MAGIC => {
            fields::<MachHeader32<Endianness>, R>(view, offset, Endianness::Little)
        }
        _ if number.swap_bytes() == MH_MAGIC_64 => {
            fields::<MachHeader64<Endianness>, R>(view, offset, Endianness::Little)
        }
        // Not what is there instead: a file that debug info names may be any, and its content is nobody's business.
        _ => Err(view.malformed(offset, "expected a Mach-O magic number")),
    }
}

fn fields<'d, H, R>(view: View<R>, offset: u64, endian: Endianness) -> Result<Header>
where
    H: MachHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let header = view.pod::<H>(offset, "a Mach-O header")?;
    Ok(Header {
        is_64: header.is_type_64(),
        endian,
        arch: arch(header.cputype(endian), header.cpusubtype(endian)),
        file_type: header.filetype(endian),
        ncmds: header.ncmds(endian),
        sizeofcmds: header.sizeofcmds(endian),
        commands: offset.saturating_add(size_of::<H>() as u64),
    })
}

/// The load commands, each checked to lie within the space that the header gives to all. Ends after the first broken
/// one.
#[derive(Clone, Debug)]
pub(super) struct Commands<'d> {
    endian: Endianness,
    bytes: &'d [u8],
    /// Where `bytes` starts in the outermost file.
    offset: u64,
    left: u32,
}

impl<'d> Commands<'d> {
    /// The commands behind `header`; fewer where the file ends before, which the iteration then says.
    pub(super) fn new<R: ReadRef<'d>>(view: View<R>, header: &Header) -> Result<Self> {
        let bytes = view.bytes_up_to(header.commands, header.sizeofcmds.into(), "the load commands")?;
        Ok(Self { endian: header.endian, bytes, offset: view.absolute(header.commands), left: header.ncmds })
    }

    fn take(&mut self) -> Result<Command<'d>> {
        let offset = self.offset;
        let there = self.bytes.len();
        let header = pod_at::<LoadCommand<Endianness>>(self.bytes, 0).ok_or_else(|| {
            Error::malformed(
                offset,
                format!("expected {} more load commands, {there} bytes are left", self.left),
            )
        })?;
        let size = header.cmdsize.get(self.endian);
        let cut = usize::try_from(size).ok().filter(|size| *size >= size_of::<LoadCommand<Endianness>>());
        let (bytes, rest) = cut.and_then(|size| self.bytes.split_at_checked(size)).ok_or_else(|| {
            Error::malformed(
                offset,
                format!("expected a load command of 8 to {there} bytes, its size says {size}"),
            )
        })?;
        self.bytes = rest;
        self.offset = offset.saturating_add(u64::from(size));
        Ok(Command { kind: header.cmd.get(self.endian), endian: self.endian, bytes, offset })
    }
}

impl<'d> Iterator for Commands<'d> {
    type Item = Result<Command<'d>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let command = self.take();
        if command.is_err() {
            self.left = 0;
        }
        Some(command)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Command<'d> {
    pub(super) kind: LoadCommandType,
    pub(super) endian: Endianness,
    pub(super) bytes: &'d [u8],
    /// Where it starts in the outermost file.
    pub(super) offset: u64,
}

impl<'d> Command<'d> {
    pub(super) fn pod<T: Pod>(&self, what: &str) -> Result<&'d T> {
        pod_at(self.bytes, 0).ok_or_else(|| {
            let (wanted, there) = (size_of::<T>(), self.bytes.len());
            Error::malformed(
                self.offset,
                format!("expected {what} of {wanted} bytes, the load command has {there}"),
            )
        })
    }

    /// A string that a command holds behind its fields.
    pub(super) fn string(&self, at: LcStr<Endianness>) -> &'d [u8] {
        string_at(self.bytes, at.offset.get(self.endian).into()).unwrap_or_default()
    }
}
