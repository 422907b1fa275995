//! The local symbols of a shared cache's images, which it keeps apart from them.

use backtrail_core::Svma;
use object::macho::{Nlist32, Nlist64};
use object::{LittleEndian as LE, U32};

use super::parser::{Symtab, Tables};
use super::placement::Placement;
use crate::error::Result;
use crate::object::Object;

/// Where a shared cache keeps the local symbols of one of its images; `dyld_cache_local_symbols_info`.
pub(super) fn local_symbols(object: &Object<'_>, tables: &Tables<'_>) -> Result<Option<Symtab>> {
    let Placement::Cached { header, cache } = &tables.placement else { return Ok(None) };
    let start = cache.local_symbols.start().get();
    if cache.local_symbols.is_empty() {
        return Ok(None);
    }
    let info = object.view.table::<U32<LE>>(start, 6, "the header of a shared cache's local symbols")?;
    let field = |index: usize| info.get(index).map_or(0, |value| u64::from(value.get(LE)));
    let (nlists, strings, strings_size) = (field(0), field(2), field(3));
    let (entries, count) = (start.saturating_add(field(4)), field(5));
    let found = if cache.has_wide_locals {
        let base = cache.mappings.first().map_or(Svma::new(0), |mapping| mapping.address.start());
        let wanted = object.image_base().offset_from(base);
        let table = object.view.table::<[U32<LE>; 4]>(entries, count, "local symbols of images")?;
        let entries = table.iter().map(|[low, high, first, count]| {
            (u64::from(high.get(LE)) << 32 | u64::from(low.get(LE)), first.get(LE), count.get(LE))
        });
        find_entry(entries, wanted)
    } else {
        let table = object.view.table::<[U32<LE>; 3]>(entries, count, "local symbols of images")?;
        let entries =
            table.iter().map(|[at, first, count]| (at.get(LE).into(), first.get(LE), count.get(LE)));
        find_entry(entries, Some(*header))
    };
    Ok(found.map(|(first, count)| {
        let size =
            if tables.header.is_64 { size_of::<Nlist64<LE>>() } else { size_of::<Nlist32<LE>>() } as u64;
        let symoff = start.saturating_add(nlists).saturating_add(u64::from(first) * size);
        Symtab { symoff, nsyms: count.into(), stroff: start.saturating_add(strings), strsize: strings_size }
    }))
}

fn find_entry(mut entries: impl Iterator<Item = (u64, u32, u32)>, wanted: Option<u64>) -> Option<(u32, u32)> {
    entries.find(|(at, _, _)| Some(*at) == wanted).map(|(_, first, count)| (first, count))
}
