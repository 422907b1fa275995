//! An image's files together with the symbolizer that borrows them.

mod many;

use crate::binary::Located;
use crate::details::Details;
use crate::foreign::Foreign;
use backtrail_core::{Arch, ImageId, Svma, Symbol};
use backtrail_object::{Limits, Object};
use backtrail_store::{Entry, FileData, Index};
use backtrail_symbolize::{FileRequest, Step, Symbolizer, TableAnswer, TableTexts};
use backtrail_table::{Header, Table};
use elsa::sync::FrozenVec;
use self_cell::self_cell;
use std::path::PathBuf;
use std::sync::Mutex;

/// The bytes that a symbolizer borrows. Grows while it asks for further files; nothing is ever taken out.
type Files = FrozenVec<Box<FileData>>;

/// What answers: a table where there is one, else debug info and symbols. Where there is no debug info, a symbol file of
/// another tool is asked before the symbols.
struct Parts<'files> {
    table: Option<Table<'files>>,
    foreign: Option<Foreign<'files>>,
    symbolizer: Option<Symbolizer<'files>>,
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
pub(crate) struct OpenImage {
    joined: Joined,
    /// The files that answer, for people.
    pub(crate) files: Vec<String>,
    /// The file that further files are named by.
    main_file: PathBuf,
    /// How many files it was opened from; those behind them were asked for.
    given: usize,
    /// Names and paths of the table.
    texts: Mutex<TableTexts>,
}

/// The files of an image while they are opened.
#[derive(Default)]
struct Parsed<'files> {
    table: Option<Table<'files>>,
    foreign: Option<Foreign<'files>>,
    objects: Vec<Object<'files>>,
    /// The section that addresses mean, where several have them.
    section: Option<String>,
}

impl<'files> Parsed<'files> {
    fn add(&mut self, bytes: &'files [u8]) -> Result<(), String> {
        if Foreign::is_one(bytes) {
            if self.foreign.is_none() && !self.objects.iter().any(Object::has_debug_info) {
                self.foreign = Some(Foreign::open(bytes)?);
            }
            return Ok(());
        }
        if !bytes.starts_with(&Header::MAGIC) {
            let mut object =
                Object::parse_with(bytes, &Limits::default()).map_err(|error| error.to_string())?;
            if let Some(section) = &self.section {
                object.select_section(section);
            }
            self.objects.push(object);
            return Ok(());
        }
        let table = Table::open(bytes).map_err(|error| error.to_string())?;
        // Made from symbols alone, it knows less than debug info does, or no more than the symbols that are here.
        if self.objects.is_empty() {
            self.table.get_or_insert(table);
        }
        Ok(())
    }

    /// The error is empty where there is no file at all.
    fn join(self) -> Result<Parts<'files>, Option<String>> {
        let of_table = self.table.as_ref().map(|table| table.header().image_base);
        let of_foreign = self.foreign.as_ref().map(Foreign::image_base);
        let of_object = self.objects.first().map(Object::image_base);
        let image_base = of_table.or(of_object).or(of_foreign).ok_or(None)?;
        let has_debug_info = self.objects.iter().any(Object::has_debug_info);
        let foreign = self.foreign.filter(|_| !has_debug_info);
        let symbolizer = match self.objects.is_empty() {
            true => None,
            false => Some(Symbolizer::new(self.objects).map_err(|error| Some(error.to_string()))?),
        };
        Ok(Parts { table: self.table, foreign, symbolizer, image_base })
    }
}

/// Further files asked for by one lookup; more than any compiler's output needs.
const MAX_REQUESTS: usize = 64;

impl OpenImage {
    /// Opens all of `entries`, which are files of one image, best first. What cannot be read is told in `tried`.
    pub(crate) fn open(index: &Index, entries: &[&Entry], tried: &mut Vec<String>) -> Option<Self> {
        let data = Files::new();
        let (mut files, mut main_file) = (Vec::new(), None);
        for entry in entries {
            match index.open(entry) {
                // A table answers alone; what it was made from need not even be opened.
                Ok(bytes) if files.is_empty() && Table::open(&bytes).is_ok() => {
                    let part = (entry.location.to_string(), bytes);
                    return Self::from_data(vec![part], entry.location.path().to_owned()).ok();
                }
                Ok(bytes) => {
                    data.push(Box::new(bytes));
                    files.push(entry.location.to_string());
                    main_file.get_or_insert_with(|| entry.location.path().to_owned());
                }
                Err(error) => tried.push(error.to_string()),
            }
        }
        Self::join(data, files, main_file?, None, tried)
    }

    /// Joins bytes that the caller has opened, each with its name for people.
    pub(crate) fn from_data(parts: Vec<(String, FileData)>, main_file: PathBuf) -> Result<Self, String> {
        Self::of_section(parts, main_file, None)
    }

    /// As [`from_data`](Self::from_data); where the sections of a file lie one over the other, addresses mean this one.
    pub(crate) fn of_section(
        parts: Vec<(String, FileData)>,
        main_file: PathBuf,
        section: Option<&str>,
    ) -> Result<Self, String> {
        let data = Files::new();
        let mut files = Vec::new();
        for (file, bytes) in parts {
            data.push(Box::new(bytes));
            files.push(file);
        }
        let mut tried = Vec::new();
        Self::join(data, files, main_file, section, &mut tried).ok_or_else(|| tried.join("; "))
    }

    fn join(
        data: Files,
        mut files: Vec<String>,
        main_file: PathBuf,
        section: Option<&str>,
        tried: &mut Vec<String>,
    ) -> Option<Self> {
        let given = data.len();
        let mut broken = Vec::new();
        let joined = Joined::try_new(data, |data| {
            let mut parts = Parsed { section: section.map(str::to_owned), ..Parsed::default() };
            for (position, file) in files.iter().enumerate() {
                let Some(bytes) = data.get(position) else { continue };
                if let Err(error) = parts.add(bytes) {
                    broken.push((position, format!("{file}: {error}")));
                }
            }
            parts.join().map_err(|error| broken.extend(error.map(|error| (usize::MAX, error))))
        });
        for (position, message) in broken.into_iter().rev() {
            if position < files.len() {
                files.remove(position);
            }
            tried.push(message);
        }
        Some(Self { joined: joined.ok()?, files, main_file, given, texts: Mutex::default() })
    }

    /// The same image with a table that answers in the place of its files.
    pub(crate) fn with_table(&self, table: FileData) -> Option<Self> {
        let data = Files::new();
        data.push(Box::new(table));
        let mut files = vec![String::new()];
        for file in self.given_files() {
            data.push(Box::new(file.clone()));
            files.push(String::new());
        }
        let mut with_table = Self::join(data, files, self.main_file.clone(), None, &mut Vec::new())?;
        with_table.files.clone_from(&self.files);
        Some(with_table)
    }

    /// The files that it was opened from.
    pub(crate) fn given_files(&self) -> impl Iterator<Item = &FileData> {
        let files = self.joined.borrow_owner();
        (0..self.given).filter_map(|position| files.get(position))
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
    pub(crate) fn lookup(&self, index: &Index, address: Svma) -> Located {
        self.joined.with_dependent(|files, parts| {
            if let Some(table) = &parts.table {
                // Who finds the texts in use by another thread is faster without them.
                let answer = match self.texts.try_lock() {
                    Ok(mut texts) => TableAnswer::with_texts(&table.lookup(address), address, &mut texts),
                    Err(_) => TableAnswer::new(table, address),
                };
                return Located::from_table(answer, address);
            }
            let foreign = parts.foreign.as_ref().map(|foreign| foreign.lookup_in(parts.image_base, address));
            let Some(symbolizer) = parts.symbolizer.as_ref() else {
                return foreign.unwrap_or_else(Located::outside);
            };
            if let Some(named) = foreign.filter(|located| !located.is_unknown()) {
                return named;
            }
            for _ in 0..MAX_REQUESTS {
                match symbolizer.lookup(address) {
                    Step::Answer(answer) => return Located::from_answer(&answer, address),
                    Step::NeedFile(request) => {
                        let found = self.find(index, &request).map(|data| &**files.push_get(Box::new(data)));
                        symbolizer.provide(&request, found);
                    }
                }
            }
            Located::outside()
        })
    }

    /// The symbol of the function that runs at an address, which is not always the nearest one.
    pub(crate) fn enclosing_function(&self, address: Svma) -> Option<Symbol> {
        self.joined.with_dependent(|_, parts| {
            if let Some(symbolizer) = &parts.symbolizer {
                return symbolizer.enclosing_function(address).map(|symbol| symbol.to_owned());
            }
            let answer = TableAnswer::new(parts.table.as_ref()?, address);
            let offset = address.offset_from(answer.function_start?)?;
            let outermost = answer.functions.into_iter().last().map(|function| Symbol {
                name: function.name,
                linkage_name: function.linkage_name,
                offset,
            });
            answer.symbol.or(outermost)
        })
    }

    /// Asks for all further files that debug info names, up to `limit` of them.
    pub(crate) fn provide_all(&self, index: &Index, limit: usize) {
        self.joined.with_dependent(|files, parts| {
            let Some(symbolizer) = &parts.symbolizer else { return };
            for _ in 0..limit {
                let Some(request) = symbolizer.missing_file() else { break };
                let found = self.find(index, &request).map(|data| &**files.push_get(Box::new(data)));
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
        let files = self.joined.borrow_owner();
        let files = (0..files.len()).filter_map(|position| files.get(position));
        files.for_each(|file| file.release_part(part));
    }

    /// What else is known of an address that was looked up.
    pub(crate) fn details(&self, address: Svma) -> Details {
        let details = self.with_symbolizer(|symbolizer| Details::of(&symbolizer.details(address)));
        details.unwrap_or_default()
    }

    fn find(&self, index: &Index, request: &FileRequest) -> Option<FileData> {
        crate::symbols::locate(index, &self.main_file, request)
    }

    /// What is broken in the files, each thing once.
    pub(crate) fn problems(&self) -> Vec<String> {
        #[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is for one lifetime")]
        let problems = self.with_symbolizer(|symbolizer| symbolizer.problems()).unwrap_or_default();
        let name = self.files.first().map_or("", String::as_str);
        problems.iter().map(|problem| format!("{name}: {problem}")).collect()
    }
}

impl std::fmt::Debug for OpenImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenImage").field("files", &self.files).finish_non_exhaustive()
    }
}
