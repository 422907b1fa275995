//! Load commands in words.

use std::fmt::Write;

use backtrail_core::{AddrRange, FileOffset, ImageId, Svma};
use object::macho::*;
use object::pod::slice_from_bytes;
use object::{Endianness, U32};

use super::header::Command;
use super::parser::Tables;
use crate::load_command::LoadCommand as Described;
use crate::symbol::text;
use crate::view::{pod_at, until_nul};

type Describe = fn(&Command<'_>) -> Option<String>;

/// Every load command that there is, by Apple's name, with what backtrail can say of it.
#[rustfmt::skip]
const KNOWN: [(LoadCommandType, &str, Describe); 58] = [
    (LC_SEGMENT, "LC_SEGMENT", segment_32),
    (LC_SYMTAB, "LC_SYMTAB", symtab),
    (LC_SYMSEG, "LC_SYMSEG", nothing),
    (LC_THREAD, "LC_THREAD", nothing),
    (LC_UNIXTHREAD, "LC_UNIXTHREAD", nothing),
    (LC_LOADFVMLIB, "LC_LOADFVMLIB", nothing),
    (LC_IDFVMLIB, "LC_IDFVMLIB", nothing),
    (LC_IDENT, "LC_IDENT", nothing),
    (LC_FVMFILE, "LC_FVMFILE", nothing),
    (LC_PREPAGE, "LC_PREPAGE", nothing),
    (LC_DYSYMTAB, "LC_DYSYMTAB", dysymtab),
    (LC_LOAD_DYLIB, "LC_LOAD_DYLIB", dylib),
    (LC_ID_DYLIB, "LC_ID_DYLIB", dylib),
    (LC_LOAD_DYLINKER, "LC_LOAD_DYLINKER", one_string),
    (LC_ID_DYLINKER, "LC_ID_DYLINKER", one_string),
    (LC_PREBOUND_DYLIB, "LC_PREBOUND_DYLIB", one_string),
    (LC_ROUTINES, "LC_ROUTINES", nothing),
    (LC_SUB_FRAMEWORK, "LC_SUB_FRAMEWORK", one_string),
    (LC_SUB_UMBRELLA, "LC_SUB_UMBRELLA", one_string),
    (LC_SUB_CLIENT, "LC_SUB_CLIENT", one_string),
    (LC_SUB_LIBRARY, "LC_SUB_LIBRARY", one_string),
    (LC_TWOLEVEL_HINTS, "LC_TWOLEVEL_HINTS", nothing),
    (LC_PREBIND_CKSUM, "LC_PREBIND_CKSUM", nothing),
    (LC_LOAD_WEAK_DYLIB, "LC_LOAD_WEAK_DYLIB", dylib),
    (LC_SEGMENT_64, "LC_SEGMENT_64", segment_64),
    (LC_ROUTINES_64, "LC_ROUTINES_64", nothing),
    (LC_UUID, "LC_UUID", uuid),
    (LC_RPATH, "LC_RPATH", one_string),
    (LC_CODE_SIGNATURE, "LC_CODE_SIGNATURE", linkedit),
    (LC_SEGMENT_SPLIT_INFO, "LC_SEGMENT_SPLIT_INFO", linkedit),
    (LC_REEXPORT_DYLIB, "LC_REEXPORT_DYLIB", dylib),
    (LC_LAZY_LOAD_DYLIB, "LC_LAZY_LOAD_DYLIB", dylib),
    (LC_ENCRYPTION_INFO, "LC_ENCRYPTION_INFO", encryption),
    (LC_DYLD_INFO, "LC_DYLD_INFO", dyld_info),
    (LC_DYLD_INFO_ONLY, "LC_DYLD_INFO_ONLY", dyld_info),
    (LC_LOAD_UPWARD_DYLIB, "LC_LOAD_UPWARD_DYLIB", dylib),
    (LC_VERSION_MIN_MACOSX, "LC_VERSION_MIN_MACOSX", version_min),
    (LC_VERSION_MIN_IPHONEOS, "LC_VERSION_MIN_IPHONEOS", version_min),
    (LC_FUNCTION_STARTS, "LC_FUNCTION_STARTS", linkedit),
    (LC_DYLD_ENVIRONMENT, "LC_DYLD_ENVIRONMENT", one_string),
    (LC_MAIN, "LC_MAIN", entry_point),
    (LC_DATA_IN_CODE, "LC_DATA_IN_CODE", linkedit),
    (LC_SOURCE_VERSION, "LC_SOURCE_VERSION", source_version),
    (LC_DYLIB_CODE_SIGN_DRS, "LC_DYLIB_CODE_SIGN_DRS", linkedit),
    (LC_ENCRYPTION_INFO_64, "LC_ENCRYPTION_INFO_64", encryption),
    (LC_LINKER_OPTION, "LC_LINKER_OPTION", linker_option),
    (LC_LINKER_OPTIMIZATION_HINT, "LC_LINKER_OPTIMIZATION_HINT", linkedit),
    (LC_VERSION_MIN_TVOS, "LC_VERSION_MIN_TVOS", version_min),
    (LC_VERSION_MIN_WATCHOS, "LC_VERSION_MIN_WATCHOS", version_min),
    (LC_NOTE, "LC_NOTE", note),
    (LC_BUILD_VERSION, "LC_BUILD_VERSION", build_version),
    (LC_DYLD_EXPORTS_TRIE, "LC_DYLD_EXPORTS_TRIE", linkedit),
    (LC_DYLD_CHAINED_FIXUPS, "LC_DYLD_CHAINED_FIXUPS", linkedit),
    (LC_FILESET_ENTRY, "LC_FILESET_ENTRY", fileset_entry),
    (LC_ATOM_INFO, "LC_ATOM_INFO", linkedit),
    (LC_FUNCTION_VARIANTS, "LC_FUNCTION_VARIANTS", linkedit),
    (LC_FUNCTION_VARIANT_FIXUPS, "LC_FUNCTION_VARIANT_FIXUPS", linkedit),
    (LC_TARGET_TRIPLE, "LC_TARGET_TRIPLE", one_string),
];

/// Platforms of `LC_BUILD_VERSION`, by number from zero on.
const PLATFORMS: [&str; 13] = [
    "unknown platform",
    "macOS",
    "iOS",
    "tvOS",
    "watchOS",
    "bridgeOS",
    "Mac Catalyst",
    "iOS Simulator",
    "tvOS Simulator",
    "watchOS Simulator",
    "DriverKit",
    "visionOS",
    "visionOS Simulator",
];

/// Every load command, in the file's order; a broken one ends the list.
pub(crate) fn describe(tables: &Tables<'_>) -> Vec<Described> {
    tables.commands.clone().map_while(Result::ok).map(|command| one(&command)).collect()
}

fn one(command: &Command<'_>) -> Described {
    match KNOWN.iter().find(|(kind, _, _)| *kind == command.kind) {
        Some((_, name, describe)) => Described::new(*name, describe(command).unwrap_or_default()),
        None => Described::new(format!("LC_{:#x}", command.kind.0), format!("{} bytes", command.bytes.len())),
    }
}

fn fields<'d, T: object::pod::Pod>(command: &Command<'d>) -> Option<&'d T> {
    pod_at(command.bytes, 0)
}

fn nothing(_: &Command<'_>) -> Option<String> {
    None
}

fn segment_32(command: &Command<'_>) -> Option<String> {
    segment(command, fields::<SegmentCommand32<Endianness>>(command)?)
}

fn segment_64(command: &Command<'_>) -> Option<String> {
    segment(command, fields::<SegmentCommand64<Endianness>>(command)?)
}

fn segment<S>(command: &Command<'_>, raw: &S) -> Option<String>
where
    S: object::read::macho::Segment<Endian = Endianness>,
{
    let endian = command.endian;
    let address = AddrRange::from_size(Svma::new(raw.vmaddr(endian).into()), raw.vmsize(endian).into());
    let file = AddrRange::from_size(FileOffset::new(raw.fileoff(endian).into()), raw.filesize(endian).into());
    let protection = raw.initprot(endian);
    let letter = |flag, letter| if protection.contains(flag) { letter } else { '-' };
    let name = text(raw.name());
    let (r, w, x) = (letter(VM_PROT_READ, 'r'), letter(VM_PROT_WRITE, 'w'), letter(VM_PROT_EXECUTE, 'x'));
    let (from, to) = (address.start(), address.end());
    let sections = raw.nsects(endian);
    let space = if name.is_empty() { "" } else { " " };
    let mut line = format!("{name}{space}{from}..{to} {r}{w}{x}, {sections} sections");
    if !file.is_empty() {
        write!(line, ", file {}..{}", file.start(), file.end()).ok()?;
    }
    Some(line)
}

fn symtab(command: &Command<'_>) -> Option<String> {
    let raw = fields::<SymtabCommand<Endianness>>(command)?;
    Some(format!(
        "{} symbols, {} bytes of names",
        raw.nsyms.get(command.endian),
        raw.strsize.get(command.endian)
    ))
}

fn dysymtab(command: &Command<'_>) -> Option<String> {
    let raw = fields::<DysymtabCommand<Endianness>>(command)?;
    let count = |field: U32<Endianness>| field.get(command.endian);
    let (local, defined, undefined) = (count(raw.nlocalsym), count(raw.nextdefsym), count(raw.nundefsym));
    Some(format!("{local} local, {defined} defined, {undefined} undefined symbols"))
}

fn version(version: Version) -> String {
    let (major, minor, update) = (version.major(), version.minor(), version.update());
    if update == 0 { format!("{major}.{minor}") } else { format!("{major}.{minor}.{update}") }
}

fn dylib(command: &Command<'_>) -> Option<String> {
    let raw = &fields::<DylibCommand<Endianness>>(command)?.dylib;
    let current = version(raw.current_version.get(command.endian));
    let compatible = version(raw.compatibility_version.get(command.endian));
    Some(format!("{} (version {current}, compatible with {compatible})", text(command.string(raw.name))))
}

/// Commands that hold nothing but one string: the offset of it stands first in all of them.
fn one_string(command: &Command<'_>) -> Option<String> {
    Some(text(command.string(fields::<RpathCommand<Endianness>>(command)?.path)).into_owned())
}

fn uuid(command: &Command<'_>) -> Option<String> {
    Some(ImageId::Uuid(fields::<UuidCommand<Endianness>>(command)?.uuid).to_string())
}

fn linkedit(command: &Command<'_>) -> Option<String> {
    let raw = fields::<LinkeditDataCommand<Endianness>>(command)?;
    let (offset, size) = (raw.dataoff.get(command.endian), raw.datasize.get(command.endian));
    Some(format!("{size} bytes at {offset:#x}"))
}

fn encryption(command: &Command<'_>) -> Option<String> {
    // LC_ENCRYPTION_INFO_64 only adds padding.
    let raw = fields::<EncryptionInfoCommand32<Endianness>>(command)?;
    let (offset, size) = (raw.cryptoff.get(command.endian), raw.cryptsize.get(command.endian));
    let end = u64::from(offset) + u64::from(size);
    Some(match raw.cryptid.get(command.endian) {
        0 => format!("not encrypted ({offset:#x}..{end:#x} would be)"),
        id => format!("{offset:#x}..{end:#x} encrypted (method {id})"),
    })
}

fn dyld_info(command: &Command<'_>) -> Option<String> {
    let raw = fields::<DyldInfoCommand<Endianness>>(command)?;
    let size = |field: U32<Endianness>| field.get(command.endian);
    let (rebase, bind, export) = (size(raw.rebase_size), size(raw.bind_size), size(raw.export_size));
    Some(format!("{rebase} bytes of rebases, {bind} of binds, {export} of exports"))
}

fn version_min(command: &Command<'_>) -> Option<String> {
    let raw = fields::<VersionMinCommand<Endianness>>(command)?;
    let (minimum, sdk) = (raw.version.get(command.endian), raw.sdk.get(command.endian));
    Some(format!("{} or later, SDK {}", version(minimum), version(sdk)))
}

fn build_version(command: &Command<'_>) -> Option<String> {
    let endian = command.endian;
    let raw = fields::<BuildVersionCommand<Endianness>>(command)?;
    let number = raw.platform.get(endian).0;
    let platform = usize::try_from(number).ok().and_then(|number| PLATFORMS.get(number));
    let platform = platform.map_or_else(|| format!("platform {number}"), |name| (*name).to_owned());
    let (minimum, sdk) = (version(raw.minos.get(endian)), version(raw.sdk.get(endian)));
    let mut line = format!("{platform} {minimum} or later, SDK {sdk}");
    let table = command.bytes.get(size_of::<BuildVersionCommand<Endianness>>()..)?;
    let count = usize::try_from(raw.ntools.get(endian)).ok()?;
    let tools =
        slice_from_bytes::<BuildToolVersion<Endianness>>(table, count).map_or(&[][..], |(tools, _)| tools);
    for tool in tools {
        let name = match tool.tool.get(endian) {
            TOOL_CLANG => "clang",
            TOOL_SWIFT => "swift",
            TOOL_LD => "ld",
            Tool(4) => "lld",
            _ => "tool",
        };
        write!(line, ", {name} {}", version(tool.version.get(endian))).ok()?;
    }
    Some(line)
}

fn entry_point(command: &Command<'_>) -> Option<String> {
    let raw = fields::<EntryPointCommand<Endianness>>(command)?;
    let (offset, stack) = (raw.entryoff.get(command.endian), raw.stacksize.get(command.endian));
    Some(if stack == 0 {
        format!("entry at file offset {offset:#x}")
    } else {
        format!("entry at file offset {offset:#x}, {stack} bytes of stack")
    })
}

/// `A.B.C.D.E` in 24, 10, 10, 10 and 10 bits; zeros at the end are left out as `otool` does.
fn source_version(command: &Command<'_>) -> Option<String> {
    let raw = fields::<SourceVersionCommand<Endianness>>(command)?.version.get(command.endian);
    let mut parts =
        vec![raw >> 40, (raw >> 30) & 0x3ff, (raw >> 20) & 0x3ff, (raw >> 10) & 0x3ff, raw & 0x3ff];
    while parts.len() > 2 && parts.last() == Some(&0) {
        parts.pop();
    }
    Some(parts.iter().map(u64::to_string).collect::<Vec<_>>().join("."))
}

fn linker_option(command: &Command<'_>) -> Option<String> {
    let raw = fields::<LinkerOptionCommand<Endianness>>(command)?;
    let count = usize::try_from(raw.count.get(command.endian)).ok()?;
    let strings = command.bytes.get(size_of::<LinkerOptionCommand<Endianness>>()..)?;
    let options = strings.split(|byte| *byte == 0).filter(|option| !option.is_empty());
    Some(options.take(count).map(text).collect::<Vec<_>>().join(" "))
}

fn note(command: &Command<'_>) -> Option<String> {
    let raw = fields::<NoteCommand<Endianness>>(command)?;
    Some(format!("{}, {} bytes", text(until_nul(&raw.data_owner)), raw.size.get(command.endian)))
}

fn fileset_entry(command: &Command<'_>) -> Option<String> {
    let raw = fields::<FilesetEntryCommand<Endianness>>(command)?;
    let address = Svma::new(raw.vmaddr.get(command.endian));
    Some(format!("{} at {address}", text(command.string(raw.entry_id))))
}

#[cfg(test)]
mod tests;
