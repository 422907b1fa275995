//! The modules, and what their files are known by.

use super::Dump;
use crate::{Limits, MappedImage};
use backtrail_core::{AddrRange, Avma, ImageId};
use minidump::{CodeView, MinidumpModule, MinidumpModuleList, Module as _};

pub(super) fn read(dump: &Dump<'_, '_>, limits: &Limits, notes: &mut Vec<String>) -> Vec<MappedImage> {
    let modules: MinidumpModuleList = match dump.file.get_stream() {
        Ok(modules) => modules,
        Err(error) => {
            notes.push(format!("the minidump's list of modules cannot be read: {error}"));
            return Vec::new();
        }
    };
    let main = modules.main_module().map(MinidumpModule::base_address);
    let image = |module: &MinidumpModule| MappedImage {
        path: module.name.clone(),
        id: id(dump, module),
        debug_file: module.debug_file().map(std::borrow::Cow::into_owned),
        range: Some(AddrRange::from_size(Avma::new(module.base_address()), module.size())),
        bias: None,
        file_offset: 0,
        is_executable: main == Some(module.base_address()),
        is_from_memory: true,
    };
    let mut images: Vec<_> = modules.iter().take(limits.images).map(image).collect();
    images.sort_by_key(|image| image.range.map(|range| (range.start(), range.end())));
    images
}

/// The build id where the writer kept all of it. Breakpad keeps the first sixteen bytes, in the place of a GUID; on
/// Apple's systems that is the UUID itself.
fn id(dump: &Dump<'_, '_>, module: &MinidumpModule) -> Option<ImageId> {
    let id = match module.codeview_info.as_ref()? {
        CodeView::Elf(elf) => ImageId::from_build_id(&elf.build_id)?,
        CodeView::Pdb70(pdb) => {
            let guid = &pdb.signature;
            let text = [
                &guid.data1.to_be_bytes()[..],
                &guid.data2.to_be_bytes(),
                &guid.data3.to_be_bytes(),
                &guid.data4,
            ]
            .concat();
            let bytes = [
                &guid.data1.to_le_bytes()[..],
                &guid.data2.to_le_bytes(),
                &guid.data3.to_le_bytes(),
                &guid.data4,
            ]
            .concat();
            match dump.system.os {
                _ if dump.is_apple() => ImageId::Uuid(text.try_into().ok()?),
                minidump::system_info::Os::Windows => ImageId::Uuid(text.try_into().ok()?),
                _ => ImageId::from_build_id(&bytes)?,
            }
        }
        _ => return None,
    };
    Some(id).filter(|id| !id.is_nil())
}
