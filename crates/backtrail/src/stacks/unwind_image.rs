//! An image's unwind tables together with the bytes that they borrow.

use crate::unwind_tables::UnwindTables;
use backtrail_object::{Limits, Object};
use backtrail_store::FileData;
use backtrail_unwind::Module;
use self_cell::self_cell;

/// Files, and the ELF files inside of them (`.gnu_debugdata`), which have the `.debug_frame` that was stripped off.
type Files = Vec<FileData>;
type AllTables<'d> = Vec<UnwindTables<'d>>;

self_cell!(
    struct Tables {
        owner: Files,
        #[covariant]
        dependent: AllTables,
    }
);

self_cell!(
    struct Joined {
        owner: Tables,
        #[covariant]
        dependent: Module,
    }
);

/// The tables of an image's files, opened.
pub(crate) struct UnwindImage {
    joined: Joined,
}

impl UnwindImage {
    /// Opens the tables of `files`, the best first: the binary itself, then what has only some of its sections (debug
    /// files). `None` where not one can be read.
    pub(crate) fn open(files: &[FileData]) -> Option<Self> {
        let files: Vec<_> =
            files.iter().flat_map(|file| [Some(file.clone()), inner(file)]).flatten().collect();
        let tables = Tables::new(files, |files| {
            let objects = files.iter().filter_map(|file| Object::parse_with(file, &Limits::default()).ok());
            objects.map(|object| UnwindTables::read(&object)).collect()
        });
        Self::join(tables)
    }

    /// The same for tables that were read already.
    #[cfg(any(test, target_os = "macos", target_os = "ios"))]
    pub(crate) fn from_tables(tables: UnwindTables<'static>) -> Option<Self> {
        Self::join(Tables::new(Files::new(), |_| vec![tables]))
    }

    fn join(tables: Tables) -> Option<Self> {
        let joined = Joined::try_new(tables, |tables| {
            let mut all = tables.borrow_dependent().iter().map(UnwindTables::sections);
            let mut module = Module::new(all.next().ok_or(())?);
            all.for_each(|sections| module.add(sections));
            Ok::<_, ()>(module)
        });
        Some(Self { joined: joined.ok()? })
    }

    pub(crate) fn module(&self) -> &Module<'_> {
        self.joined.borrow_dependent()
    }
}

fn inner(file: &FileData) -> Option<FileData> {
    let object = Object::parse_with(file, &Limits::default()).ok()?;
    Some(FileData::from(object.gnu_debugdata()?.ok()?))
}

impl std::fmt::Debug for UnwindImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnwindImage").finish_non_exhaustive()
    }
}
