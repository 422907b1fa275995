//! An image's unwind tables together with the bytes that they borrow.

use backtrail_store::{OpenFile, UnwindTables};
use backtrail_unwind::Module;
use self_cell::self_cell;
use std::sync::Arc;

/// Files, and the ELF files inside of them (`.gnu_debugdata`), which have the `.debug_frame` that was stripped off.
type Files = Vec<Arc<OpenFile>>;
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
    pub(crate) fn open<'f>(files: impl IntoIterator<Item = &'f Arc<OpenFile>>) -> Option<Self> {
        let both = |file: &'f Arc<OpenFile>| [Some(file), file.embedded()];
        let files = files.into_iter().flat_map(both).flatten().cloned().collect();
        let tables = Tables::new(files, |files: &Files| {
            files.iter().filter_map(|file| file.object()).map(UnwindTables::read).collect()
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

impl std::fmt::Debug for UnwindImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnwindImage").finish_non_exhaustive()
    }
}
