//! Little-endian numbers by address: both of the formats that use this exist on little-endian systems alone.

use crate::sections::Section;
use backtrail_core::Svma;

/// Two bytes as a number.
#[inline]
pub(crate) fn half(section: Section<'_>, at: Svma) -> Option<u16> {
    section.from(at)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

/// Four bytes as a number.
#[inline]
pub(crate) fn word(section: Section<'_>, at: Svma) -> Option<u32> {
    section.from(at)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}
