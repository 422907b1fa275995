//! From object files to what lookups read.

use crate::code::CodeMap;
use crate::dwarf::{DwarfFile, SectionSource, Sections};
use crate::problem::Problems;
use crate::request::FileRequest;
use backtrail_core::Arch;
use backtrail_object::{Endian, Limits, Object};
use std::borrow::Cow;
use std::sync::Arc;

struct ObjectSections<'d>(Arc<Object<'d>>);

impl<'d> SectionSource<'d> for ObjectSections<'d> {
    fn section(&self, name: &str) -> Result<Cow<'d, [u8]>, String> {
        match self.0.section(name) {
            Some(section) => self.0.relocated_section_data(section).map_err(|error| error.to_string()),
            None => Ok(Cow::Borrowed(&[])),
        }
    }

    fn is_compressed(&self, name: &str) -> bool {
        self.0.section(name).is_some_and(|section| section.is_compressed)
    }
}

/// The DWARF of an object; `split` for `.dwo` and `.dwp` files.
pub(crate) fn dwarf<'d>(
    object: &Arc<Object<'d>>,
    code: &Arc<CodeMap>,
    problems: &Arc<Problems>,
    split: bool,
) -> DwarfFile<'d> {
    let source = Box::new(ObjectSections(Arc::clone(object)));
    let sections = Sections::new(source, split, object.endian() == Endian::Big);
    DwarfFile::new(sections, Arc::clone(code), Arc::clone(problems))
}

/// The sections of all files of an image; the segments where there are no sections.
pub(crate) fn code_map(objects: &[Arc<Object<'_>>]) -> CodeMap {
    let sections = objects.iter().flat_map(|object| object.sections()).filter(|section| section.is_loaded);
    let sections: Vec<_> = sections.map(|section| (section.address, section.is_code)).collect();
    if sections.iter().any(|(_, is_code)| *is_code) {
        return CodeMap::new(sections);
    }
    let segments = objects.iter().flat_map(|object| object.segments());
    CodeMap::new(segments.map(|segment| (segment.address, segment.executable)))
}

/// What to ask for before the names of a file that dwz made smaller can be read.
pub(crate) fn supplementary_request(object: &Object<'_>) -> Option<FileRequest> {
    let link = object.debug_alt_link()?;
    Some(FileRequest::Supplementary { path: link.path.to_string(), id: link.id })
}

/// The object file of an image's architecture in a file that may be fat or an archive.
pub(crate) fn member<'d>(
    data: &'d [u8],
    member: Option<&str>,
    arch: Option<Arch>,
) -> Result<Object<'d>, String> {
    let limits = Limits::default();
    let slices = backtrail_object::slices(data, &limits).map_err(|error| error.to_string())?;
    let named = slices.iter().filter(|slice| member.is_none() || slice.member.as_deref() == member);
    let mut named = named.filter(|slice| arch.is_none_or(|arch| slice.arch == arch));
    named.next().map(|slice| slice.parse(&limits).map_err(|error| error.to_string())).unwrap_or_else(|| {
        Err(format!(
            "expected {}",
            member.map_or("an object file of the image's architecture".into(), |member| {
                format!("an archive with {member} of the image's architecture")
            })
        ))
    })
}
