//! Tables in the formats of other tools.

use super::TableFormat;
use super::stack_cfi::StackRecords;
use backtrail_demangle::{Options, demangle};
use backtrail_store::ImageFiles;
use backtrail_table::breakpad::{BreakpadWriter, Module};
use backtrail_table::exchange::{Exported, export};
use backtrail_table::gsym::GsymWriter;
use backtrail_table::{Error, Header, SourceKind, Table};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;

/// Writes what a table holds in another format, with the unwind rules of the image's files where the format has them. Gives
/// how much had no name, and of how much the rules were left out.
pub(super) fn write(
    table: &Table<'_>,
    format: TableFormat,
    files: &ImageFiles,
    jobs: Option<usize>,
    out: &mut dyn Write,
) -> Result<(Exported, u64), Error> {
    let header = table.header();
    if format == TableFormat::Breakpad {
        let mut writer = BreakpadWriter::new(module(header), header.image_base);
        let mut functions = || {
            let names = Readable::default();
            export(table, &mut writer, &|name, linkage| names.of(name, linkage))
        };
        let stack = || StackRecords::of(files, header.image_base);
        let (exported, stack) = match jobs {
            Some(1) => (functions(), stack()),
            _ => rayon::join(functions, stack),
        };
        let exported = exported?;
        writer.finish(stack.lines(), out)?;
        return Ok((exported, stack.left_out));
    }
    let mut writer = GsymWriter::new(header.id, header.image_base);
    let exported = export(table, &mut writer, &of_linker)?;
    writer.finish(out)?;
    Ok((exported, 0))
}

fn module(header: &Header) -> Module {
    let is_apple = matches!(header.source, SourceKind::MachODwarf | SourceKind::MachOSymbols);
    Module::new(header.id.as_ref(), header.arch, is_apple, &header.name)
}

/// llvm-gsymutil keeps the names that the linker sees; for a part of a function (`main.cold`) that of the whole.
fn of_linker(name: Option<&[u8]>, linkage: Option<&[u8]>) -> Vec<u8> {
    let is_part =
        |name: &&[u8]| linkage.is_some_and(|linkage| linkage.strip_prefix(*name).is_some_and(is_suffix));
    name.filter(is_part).or(linkage).or(name).unwrap_or_default().to_owned()
}

fn is_suffix(rest: &[u8]) -> bool {
    rest.starts_with(b".")
}

/// dump_syms writes names for people, without return types. Each is made once, for what is inlined is so at many places.
#[derive(Default)]
struct Readable {
    known: RefCell<HashMap<Vec<u8>, Vec<u8>>>,
}

impl Readable {
    fn of(&self, name: Option<&[u8]>, linkage: Option<&[u8]>) -> Vec<u8> {
        let made = || {
            let linkage = linkage?;
            let mut known = self.known.borrow_mut();
            if let Some(name) = known.get(linkage) {
                return Some(name.clone());
            }
            let mut options = Options::default();
            options.return_types = false;
            let name = demangle(&String::from_utf8_lossy(linkage), &options).into_owned().into_bytes();
            known.insert(linkage.to_owned(), name.clone());
            Some(name)
        };
        name.map(<[u8]>::to_owned).or_else(made).unwrap_or_default()
    }
}
