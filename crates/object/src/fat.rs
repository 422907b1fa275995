//! Fat files: one slice an architecture. `<mach-o/fat.h>`; all numbers are big-endian.

use object::macho::{FAT_MAGIC_64, FatArch32, FatArch64, FatHeader};
use object::read::macho::FatArch;
use object::{BigEndian, ReadRef};

use crate::error::{Error, ErrorKind, Result};
use crate::listed_object::ListedObject;
use crate::macho;
use crate::view::View;

/// The slices that a fat header lists. Those that leave the file are cut at its end; those that begin behind it have a
/// problem.
pub(crate) fn read<'d, R: ReadRef<'d>>(view: View<R>) -> Result<Vec<ListedObject>> {
    let header = view.pod::<FatHeader>(0, "a fat header")?;
    let count = u64::from(header.nfat_arch.get(BigEndian));
    let found = if header.magic.get(BigEndian) == FAT_MAGIC_64 {
        arches::<FatArch64, R>(view, count)
    } else {
        arches::<FatArch32, R>(view, count)
    }?;
    if found.is_empty() {
        return Err(view.malformed(4, "expected at least one architecture in the fat header, found none"));
    }
    Ok(found)
}

fn arches<'d, A: FatArch, R: ReadRef<'d>>(view: View<R>, count: u64) -> Result<Vec<ListedObject>> {
    let start = size_of::<FatHeader>() as u64;
    let table = view.table::<A>(start, count, "the architectures of a fat file")?;
    let end = start + count * size_of::<A>() as u64;
    Ok(table.iter().map(|arch| one(view, arch, end)).collect())
}

fn one<'d, A: FatArch, R: ReadRef<'d>>(view: View<R>, entry: &A, headers_end: u64) -> ListedObject {
    let arch = macho::arch(entry.cputype(), entry.cpusubtype());
    let (offset, size): (u64, u64) = (entry.offset().into(), entry.size().into());
    let there = view.len().saturating_sub(offset).min(size);
    let problem = if offset < headers_end {
        let detail = format!("the slice {arch} of a fat file starts inside its headers");
        Some(Error::malformed(offset, detail))
    } else if there == 0 {
        let detail = format!("expected the slice {arch} of a fat file ({size} bytes)");
        Some(Error::new(ErrorKind::Truncated, offset, detail))
    } else {
        None
    };
    ListedObject { problem, ..ListedObject::whole(arch, offset, there) }
}
