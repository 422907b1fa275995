//! `.gnu_debuglink` and `.gnu_debugaltlink`. GDB's manual, "Separate Debug Files"; `dwz(1)`.

use backtrail_core::ImageId;

use crate::link::{DebugAltLink, DebugLink};
use crate::object::{Endian, Object};
use crate::symbol::text;
use crate::view::until_nul;

fn section<'d>(object: &Object<'d>, name: &str) -> Option<&'d [u8]> {
    let section = object.headers.sections.iter().find(|section| section.name == name)?;
    object.raw_section_data(section).ok()
}

/// A name, padded with zeros to 4 bytes, then the checksum.
pub(crate) fn debug_link<'d>(object: &Object<'d>) -> Option<DebugLink<'d>> {
    let bytes = section(object, ".gnu_debuglink")?;
    let name = until_nul(bytes);
    let crc = *bytes.get((name.len() + 1).next_multiple_of(4)..)?.first_chunk::<4>()?;
    let crc32 = match object.endian() {
        Endian::Little => u32::from_le_bytes(crc),
        Endian::Big => u32::from_be_bytes(crc),
    };
    if name.is_empty() { None } else { Some(DebugLink { name: text(name), crc32 }) }
}

/// A path, ended by a zero, then the build id.
pub(crate) fn debug_alt_link<'d>(object: &Object<'d>) -> Option<DebugAltLink<'d>> {
    let bytes = section(object, ".gnu_debugaltlink")?;
    let path = until_nul(bytes);
    let id = bytes.get(path.len() + 1..).and_then(ImageId::from_build_id);
    if path.is_empty() { None } else { Some(DebugAltLink { path: text(path), id }) }
}
