//! `.gnu_debugdata`: an ELF file in xz, with symbols for functions that `.dynsym` does not list. GDB's manual,
//! "Debugging information in a special section".

use crate::error::Result;
use crate::object::Object;

/// The decompressed file; `None` where there is no such section.
pub(crate) fn read(object: &Object<'_>) -> Option<Result<Vec<u8>>> {
    let section = object.headers.sections.iter().find(|section| section.name == ".gnu_debugdata")?;
    let file = section.file?;
    let offset = object.view.absolute(file.start().get());
    let bytes = object.raw_section_data(section);
    Some(bytes.and_then(|bytes| crate::compress::xz(bytes, object.budget().left(), offset)))
}
