//! The dynamic section: what the dynamic linker is told.

use backtrail_core::Svma;
use object::elf::{
    DT_GNU_HASH, DT_HASH, DT_NULL, DT_STRSZ, DT_STRTAB, DT_SYMTAB, Dyn32, Dyn64, DynamicTag, PT_DYNAMIC,
    PT_LOAD, SHT_DYNAMIC, Sym32, Sym64,
};
use object::read::elf::Dyn;
use object::{Endianness, ReadRef, U32};

use super::tables::Tables;
use crate::error::Result;
use crate::object::Object;
use crate::section::{FileRange, Section};
use crate::view::View;

/// More than any linker writes; bounds what a scan reads.
const MAX_BYTES: u64 = 64 << 10;

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) tag: DynamicTag,
    pub(super) value: u64,
}

/// The entries up to `DT_NULL`; none for files without a dynamic section, or whose section has no bytes.
pub(super) fn read<'d, R: ReadRef<'d>>(
    view: View<R>,
    tables: &Tables,
    sections: &[Section<'_>],
) -> Result<Vec<Entry>> {
    let Some(range) = range(tables, sections) else { return Ok(Vec::new()) };
    let (offset, size) = (range.start().get(), range.size().min(MAX_BYTES));
    if tables.header.is_64 {
        entries::<Dyn64<Endianness>, R>(view, offset, size, tables.header.endian)
    } else {
        entries::<Dyn32<Endianness>, R>(view, offset, size, tables.header.endian)
    }
}

/// The section headers go first: a debug file's program header points where the section was in the other file.
fn range(tables: &Tables, sections: &[Section<'_>]) -> Option<FileRange> {
    let mut headers = sections.iter().zip(&tables.raw_sections);
    if let Some((section, _)) = headers.find(|(_, raw)| raw.kind == SHT_DYNAMIC) {
        return section.file;
    }
    if sections.iter().any(|section| section.name == ".dynamic") {
        return None;
    }
    tables.programs.iter().find(|program| program.kind == PT_DYNAMIC).map(|program| program.file)
}

fn entries<'d, D, R>(view: View<R>, offset: u64, size: u64, endian: Endianness) -> Result<Vec<Entry>>
where
    D: Dyn<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let raw = view.table::<D>(offset, size / size_of::<D>() as u64, "the dynamic section")?;
    let entries = raw.iter().map(|raw| Entry { tag: raw.tag(endian), value: raw.val(endian) });
    Ok(entries.take_while(|entry| entry.tag != DT_NULL).collect())
}

/// Where in the file the loader takes the byte at `address` from.
pub(super) fn file_offset(tables: &Tables, address: Svma) -> Option<u64> {
    let mut loaded = tables.programs.iter().filter(|program| program.kind == PT_LOAD);
    let program = loaded.find(|program| program.address.contains(address))?;
    let at = address.offset_from(program.address.start()).filter(|at| *at < program.file.size())?;
    program.file.start().checked_add(at).map(backtrail_core::FileOffset::get)
}

/// Where the dynamic symbol table lies, as the dynamic linker would find it.
pub(super) struct DynamicSymbols {
    pub(super) offset: u64,
    pub(super) count: u64,
    pub(super) strings: u64,
    pub(super) strings_size: u64,
}

/// The dynamic symbols of a file whose section headers do not tell of them; `None` where there are none.
pub(super) fn symbols(object: &Object<'_>, tables: &Tables) -> Result<Option<DynamicSymbols>> {
    let entries = read(object.view, tables, &object.headers.sections)?;
    let value = |tag| entries.iter().find(|entry| entry.tag == tag).map(|entry| entry.value);
    let offset = |tag| value(tag).and_then(|address| file_offset(tables, Svma::new(address)));
    let (Some(symbols), Some(strings)) = (offset(DT_SYMTAB), offset(DT_STRTAB)) else { return Ok(None) };
    let size =
        if tables.header.is_64 { size_of::<Sym64<Endianness>>() } else { size_of::<Sym32<Endianness>>() };
    let count = match (offset(DT_GNU_HASH), offset(DT_HASH)) {
        (Some(hash), _) => gnu_hash_count(object, tables, hash)?,
        (None, Some(hash)) => {
            let header = object.view.table::<U32<Endianness>>(hash, 2, "the symbol hash table")?;
            header.get(1).map_or(0, |nchain| nchain.get(tables.header.endian).into())
        }
        // Linkers put the names right behind the symbols.
        (None, None) => strings.saturating_sub(symbols) / size as u64,
    };
    let strings_size = value(DT_STRSZ).unwrap_or(0);
    Ok(Some(DynamicSymbols { offset: symbols, count, strings, strings_size }))
}

/// How many symbols a GNU hash table covers: its last bucket's chain, which a set lowest bit ends, is the end of the
/// symbol table. Header, bloom filter, buckets, chains; the symbols before the first hashed one have no chain.
fn gnu_hash_count(object: &Object<'_>, tables: &Tables, offset: u64) -> Result<u64> {
    let endian = tables.header.endian;
    let header = object.view.table::<U32<Endianness>>(offset, 4, "the GNU hash table")?;
    let field = |index: usize| header.get(index).map_or(0, |value| u64::from(value.get(endian)));
    let (bucket_count, first, bloom_count) = (field(0), field(1), field(2));
    let word = if tables.header.is_64 { 8 } else { 4 };
    let buckets = offset.saturating_add(16).saturating_add(bloom_count * word);
    let table =
        object.view.table::<U32<Endianness>>(buckets, bucket_count, "the buckets of the GNU hash table")?;
    let last = table.iter().map(|bucket| u64::from(bucket.get(endian))).max().unwrap_or(0);
    if last < first {
        return Ok(first);
    }
    let chains = buckets.saturating_add(bucket_count * 4);
    let start = chains.saturating_add((last - first) * 4);
    let rest = object.view.len().saturating_sub(start) / 4;
    let chain = object.view.table::<U32<Endianness>>(start, rest, "the chains of the GNU hash table")?;
    let length = chain.iter().position(|hash| hash.get(endian) & 1 != 0).map_or(0, |at| at as u64 + 1);
    Ok(last + length)
}
