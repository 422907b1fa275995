//! An image's files together with the symbolizer that borrows them.

mod many;

use crate::details::Details;
use crate::external;
use backtrail_core::{Arch, ImageId, Reason, Svma, Symbol, SymbolInfo};
use backtrail_object::Format;
use backtrail_store::{ExternalSymbolFile, FileData, ImageFiles, Index, OpenFile};
use backtrail_symbolize::{FileRequest, Step, Symbolizer, TableTexts, table_answer, table_lookup};
use backtrail_table::Table;
use elsa::sync::FrozenVec;
use self_cell::self_cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The files that a symbolizer borrows: those that it was opened from, and those that it asked for since. Nothing is ever
/// taken out.
struct Files {
    given: Vec<Arc<OpenFile>>,
    further: FrozenVec<Box<FileData>>,
}

/// What answers: a table where there is one, else debug info and symbols. Where there is no debug info, a symbol file of
/// another tool is asked before the symbols.
struct Parts<'files> {
    table: Option<&'files Table<'files>>,
    external: Option<&'files ExternalSymbolFile<'files>>,
    symbolizer: Option<Symbolizer<'files>>,
    has_sized_symbols: bool,
    image_base: Svma,
}

self_cell!(
    struct Joined {
        owner: Files,
        #[not_covariant]
        dependent: Parts,
    }
);

/// One image, ready to answer addresses. Further files (split DWARF, dwz, object files) are opened when needed.
pub(crate) struct ImageSymbolizer {
    joined: Joined,
    /// The names of the files that answer, for people. A table that was made of them is not told.
    file_names: Vec<String>,
    /// The file that further files are named by.
    main_file: PathBuf,
    /// Names and paths of the table.
    texts: Mutex<TableTexts>,
}

/// Joins the files of one image, the best first. The error is empty where there is none.
fn join(files: &[Arc<OpenFile>]) -> Result<Parts<'_>, String> {
    let objects: Vec<_> = files.iter().filter_map(|file| file.shared_object()).collect();
    let has_debug_info = objects.iter().any(|object| object.has_debug_info());
    // A table behind other files was made from symbols alone: it knows no more than they do.
    let table = files.first().and_then(|file| file.table());
    let external = files.iter().find_map(|file| file.external_symbols()).filter(|_| !has_debug_info);
    let bases = [
        table.map(|table| table.header().image_base),
        objects.first().map(|object| object.image_base()),
        external.map(ExternalSymbolFile::image_base),
    ];
    let image_base = bases.into_iter().flatten().next().ok_or("")?;
    let is_elf = objects.iter().any(|object| object.format() == Format::Elf);
    let has_sized_symbols = table.is_none() && is_elf;
    let symbolizer = match objects.is_empty() {
        true => None,
        false => Some(Symbolizer::new(objects).map_err(|error| error.to_string())?),
    };
    Ok(Parts { table, external, symbolizer, has_sized_symbols, image_base })
}

/// Further files asked for by one lookup; more than any compiler's output needs.
const MAX_REQUESTS: usize = 64;

impl ImageSymbolizer {
    /// Joins the files of one image.
    ///
    /// # Errors
    /// Where none of them can be read, or they are of different builds.
    pub(crate) fn new(files: &ImageFiles) -> Result<Self, String> {
        let given = files.naming().into_iter().cloned().collect();
        Self::join(given, files.main_file.clone())
    }

    fn join(given: Vec<Arc<OpenFile>>, main_file: PathBuf) -> Result<Self, String> {
        let problems: Vec<_> =
            given.iter().filter_map(|file| Some(format!("{}: {}", file.name(), file.problem()?))).collect();
        let answering = given.iter().filter(|file| file.problem().is_none());
        let file_names = answering.map(|file| file.name().to_owned()).collect();
        let files = Files { given, further: FrozenVec::new() };
        match Joined::try_new(files, |files| join(&files.given)) {
            Ok(joined) => Ok(Self { joined, file_names, main_file, texts: Mutex::default() }),
            Err(error) if error.is_empty() => Err(problems.join("; ")),
            Err(error) => Err(error),
        }
    }

    /// The same image with a table that answers in the place of its files.
    pub(crate) fn with_table(&self, table: Arc<OpenFile>) -> Option<Self> {
        let given = std::iter::once(table).chain(self.given_files().iter().cloned()).collect();
        let with_table = Self::join(given, self.main_file.clone()).ok()?;
        Some(Self { file_names: self.file_names.clone(), ..with_table })
    }

    /// The files that it was opened from.
    pub(crate) fn given_files(&self) -> &[Arc<OpenFile>] {
        &self.joined.borrow_owner().given
    }

    /// The names of the files that answer, for people.
    pub(crate) fn file_names(&self) -> &[String] {
        &self.file_names
    }

    /// Identity and architecture, where debug info answers.
    pub(crate) fn debug_identity(&self) -> Option<(ImageId, Arch)> {
        let has_table = self.joined.with_dependent(|_, parts| parts.table.is_some());
        if has_table {
            return None;
        }
        #[allow(
            clippy::redundant_closure_for_method_calls,
            reason = "the method itself is not general enough"
        )]
        self.with_symbolizer(|symbolizer| symbolizer.debug_identity()).flatten()
    }

    /// The address that offsets in the image count from.
    pub(crate) fn image_base(&self) -> Svma {
        self.joined.with_dependent(|_, parts| parts.image_base)
    }

    /// What lies at an address, return addresses already lowered by one.
    pub(crate) fn lookup(&self, index: &Index, address: Svma) -> SymbolInfo {
        self.joined.with_dependent(|files, parts| {
            if let Some(table) = parts.table {
                // Who finds the texts in use by another thread is faster without them.
                return match self.texts.try_lock() {
                    Ok(mut texts) => table_answer(&table.lookup(address), address, &mut texts),
                    Err(_) => table_lookup(table, address),
                };
            }
            let external = parts.external.map(|file| external::lookup(file, parts.image_base, address));
            let Some(symbolizer) = parts.symbolizer.as_ref() else {
                return external.unwrap_or_else(|| SymbolInfo::unknown(Reason::OutsideSections));
            };
            if let Some(named) = external.filter(|info| !info.is_unknown()) {
                return named;
            }
            for _ in 0..MAX_REQUESTS {
                match symbolizer.lookup(address) {
                    Step::Answer(answer) => return answer.to_symbol_info(address),
                    Step::NeedFile(request) => {
                        let found =
                            self.find(index, &request).map(|data| &**files.further.push_get(Box::new(data)));
                        symbolizer.provide(&request, found);
                    }
                }
            }
            SymbolInfo::unknown(Reason::OutsideSections)
        })
    }

    /// The symbol of the function that runs at an address, which is not always the nearest one. Only ELF's symbols have
    /// sizes, so that only they can tell; a table has the same answer as a lookup already.
    pub(crate) fn enclosing_function(&self, address: Svma) -> Option<Symbol> {
        self.joined.with_dependent(|_, parts| {
            let symbolizer = parts.symbolizer.as_ref().filter(|_| parts.has_sized_symbols)?;
            symbolizer.enclosing_function(address).map(|symbol| symbol.to_owned())
        })
    }

    /// Asks for all further files that debug info names, up to `limit` of them.
    pub(crate) fn provide_all(&self, index: &Index, limit: usize) {
        self.joined.with_dependent(|files, parts| {
            let Some(symbolizer) = &parts.symbolizer else { return };
            for _ in 0..limit {
                let Some(request) = symbolizer.missing_file() else { break };
                let found = self.find(index, &request).map(|data| &**files.further.push_get(Box::new(data)));
                symbolizer.provide(&request, found);
            }
        });
    }

    /// Does something with the symbolizer, if there is one.
    pub(crate) fn with_symbolizer<T>(&self, act: impl FnOnce(&Symbolizer<'_>) -> T) -> Option<T> {
        self.joined.with_dependent(|_, parts| parts.symbolizer.as_ref().map(act))
    }

    /// Lets go of the memory that a part of a mapped file takes. It comes back when it is read.
    pub(crate) fn release_part(&self, part: &[u8]) {
        self.each_file(|file| file.release_part(part));
    }

    /// What else is known of an address that was looked up.
    pub(crate) fn details(&self, address: Svma) -> Details {
        let details = self.with_symbolizer(|symbolizer| Details::of(&symbolizer.details(address)));
        details.unwrap_or_default()
    }

    /// Does something with every file that is open.
    fn each_file(&self, act: impl Fn(&FileData)) {
        let files = self.joined.borrow_owner();
        files.given.iter().for_each(|file| act(file.bytes()));
        files.further.iter().for_each(act);
    }

    fn find(&self, index: &Index, request: &FileRequest) -> Option<FileData> {
        locate(index, &self.main_file, request)
    }

    /// What is broken in the files, each thing once.
    pub(crate) fn problems(&self) -> Vec<String> {
        #[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is for one lifetime")]
        let problems = self.with_symbolizer(|symbolizer| symbolizer.problems()).unwrap_or_default();
        let name = self.given_files().first().map_or("", |file| file.name());
        let mut problems: Vec<_> = problems.iter().map(|problem| format!("{name}: {problem}")).collect();
        problems.extend(
            self.given_files()
                .iter()
                .filter_map(|file| file.bytes().check().err())
                .map(|error| error.to_string()),
        );
        problems
    }
}

impl std::fmt::Debug for ImageSymbolizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageSymbolizer").field("files", &self.given_files()).finish_non_exhaustive()
    }
}

/// A file that debug info names; `binary` is the file whose debug info names it.
fn locate(index: &Index, binary: &Path, request: &FileRequest) -> Option<FileData> {
    let locator = index.locator();
    let directory = binary.parent().unwrap_or(Path::new("."));
    let located = match request {
        FileRequest::Dwo { path, .. } => locator.file(Path::new(path), &[directory]),
        FileRequest::Dwp => locator.package(binary),
        FileRequest::Supplementary { path, id: Some(id) } => locator.alternate(binary, Path::new(path), id),
        FileRequest::Supplementary { path, id: None } => locator.file(Path::new(path), &[directory]),
        FileRequest::DebugMapObject { path, mtime, .. } => locator.debug_map_object(Path::new(path), *mtime),
        _ => return None,
    };
    located.found.map(|(_, data)| data)
}
