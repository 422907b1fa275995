//! An image's unwind tables together with the bytes that they borrow.

use crate::sections::unwind_sections;
use backtrail_object::{Limits, Object};
use backtrail_store::FileData;
use backtrail_unwind::Module;
use elsa::sync::FrozenVec;
use self_cell::self_cell;

/// Files, and what had to be decompressed of them.
type Bytes = FrozenVec<Box<FileData>>;

self_cell!(
    struct Joined {
        owner: Bytes,
        #[covariant]
        dependent: Module,
    }
);

/// The tables of an image's files, opened.
pub(super) struct UnwindImage {
    joined: Joined,
}

impl UnwindImage {
    /// Opens the tables of `files`, the best first: the binary itself, then what has only some of its sections (debug
    /// files). `None` where not one can be read.
    pub(super) fn open(files: &[FileData]) -> Option<Self> {
        let bytes = Bytes::new();
        for file in files {
            bytes.push(Box::new(file.clone()));
        }
        let joined = Joined::try_new(bytes, |bytes| {
            let mut module = None;
            for position in 0..files.len() {
                let Some(file) = bytes.get(position) else { continue };
                if let Ok(object) = Object::parse_with(file, &Limits::default()) {
                    add(&mut module, &object, bytes);
                }
            }
            module.ok_or(())
        });
        Some(Self { joined: joined.ok()? })
    }

    pub(super) fn module(&self) -> &Module<'_> {
        self.joined.borrow_dependent()
    }
}

/// Adds a file's tables and those of the ELF file inside of it, which has the `.debug_frame` that was stripped off.
fn add<'d>(module: &mut Option<Module<'d>>, object: &Object<'d>, bytes: &'d Bytes) {
    let keep = |owned: Vec<u8>| -> &'d [u8] { bytes.push_get(Box::new(FileData::from(owned))) };
    let mut join = |object: &Object<'d>| {
        let sections = unwind_sections(object, &keep);
        match module {
            Some(module) => module.add(sections),
            None => *module = Some(Module::new(sections)),
        }
    };
    join(object);
    if let Some(Ok(inner)) = object.gnu_debugdata()
        && let Ok(inner) = Object::parse_with(keep(inner), &Limits::default())
    {
        join(&inner);
    }
}

impl std::fmt::Debug for UnwindImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnwindImage").finish_non_exhaustive()
    }
}
