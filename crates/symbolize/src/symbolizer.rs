//! The face of the crate: one image's files, asked for addresses.

use crate::answer::{Answer, FunctionRef, Step, SymbolRef};
use crate::code::CodeMap;
use crate::debug_map::{DebugMap, ObjectFile};
use crate::details::Details;
use crate::dwarf::{DebugInfoAnswer, DwarfFile, Supplementary};
use crate::error::Error;
use crate::go;
use crate::open;
use crate::problem::{Problem, ProblemKind, Problems};
use crate::request::FileRequest;
use crate::symtab::{Nearest, Symtab};
use backtrail_core::{Arch, ImageId, Reason, Svma};
use backtrail_object::{GoTable, Object};
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

/// All that is known of one image: its binary, its debug file, or both.
///
/// Nothing is read until an address asks for it, and then only the units that the address falls in, once. A
/// `Symbolizer` can be asked from many threads at a time.
pub struct Symbolizer<'d> {
    pub(crate) objects: Vec<Arc<Object<'d>>>,
    pub(crate) code: Arc<CodeMap>,
    pub(crate) dwarf: Vec<DwarfFile<'d>>,
    debug_map: OnceLock<DebugMap<'d>>,
    go: OnceLock<Option<GoTable<'d>>>,
    symtab: OnceLock<Symtab<'d>>,
    pub(crate) problems: Arc<Problems>,
    /// For each file with DWARF, how many of its units were seen to miss no other file.
    looked_at: Vec<AtomicUsize>,
}

impl<'d> Symbolizer<'d> {
    /// Joins the files of one image, the debug companion first. They have to be of the same build.
    ///
    /// # Errors
    /// When there is no file, or two files state different identities.
    pub fn new<O: Into<Arc<Object<'d>>>>(objects: Vec<O>) -> Result<Self, Error> {
        let objects: Vec<Arc<Object<'d>>> = objects.into_iter().map(Into::into).collect();
        if objects.is_empty() {
            return Err(Error::NoObject);
        }
        check_ids(&objects)?;
        let problems = Arc::new(Problems::default());
        for problem in objects.iter().flat_map(|object| object.problems()) {
            problems.add(ProblemKind::File, problem.to_string());
        }
        let code = Arc::new(open::code_map(&objects));
        let with_dwarf = objects.iter().filter(|object| object.has_debug_info());
        let dwarf = with_dwarf.map(|object| {
            let mut file = open::dwarf(object, &code, &problems, false);
            file.supplementary = open::supplementary_request(object).map(Supplementary::new);
            file
        });
        let dwarf: Vec<_> = dwarf.collect();
        let looked_at = dwarf.iter().map(|_| AtomicUsize::new(0)).collect();
        let (debug_map, go, symtab) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Self { objects, code, dwarf, debug_map, go, symtab, problems, looked_at })
    }

    /// The image's identity and architecture, where it has both an identity and DWARF of its own.
    pub fn debug_identity(&self) -> Option<(ImageId, Arch)> {
        let object = self.objects.first().filter(|_| !self.dwarf.is_empty())?;
        Some((object.id().filter(|id| !id.is_nil())?, object.arch()))
    }

    /// What is known of an address as the file states it. Return addresses have to be looked up at minus one, and
    /// without the bits that are no address (Thumb, pointer authentication): as
    /// [`FrameAddress::lookup`](backtrail_core::FrameAddress::lookup) gives them.
    pub fn lookup(&self, address: Svma) -> Step<'_> {
        match self.lookup_debug_info(address) {
            Ok(Some(found)) => Step::Answer(self.answer(found, address)),
            Ok(None) => Step::Answer(self.answer_from_symbols(address)),
            Err(request) => Step::NeedFile(request),
        }
    }

    /// The symbol of the function that is running at an address: the innermost one whose stated size reaches there.
    /// [`lookup`](Self::lookup) gives the nearest lower symbol instead, which can be a mark inside of the function.
    pub fn enclosing_function(&self, address: Svma) -> Option<SymbolRef<'_>> {
        self.symtab().sized_around(address)
    }

    /// What is seldom asked for: where the functions of an [`Answer`] are declared, and the like. Reads no further
    /// files; where a lookup of the address still asked for one, there is less to tell.
    pub fn details(&self, address: Svma) -> Details<'_> {
        let found = self.dwarf.iter().find_map(|file| file.details(address.get()));
        let symbol = match self.nearest(address) {
            Nearest::Symbol(symbol) => Some(symbol),
            _ => None,
        };
        Details::new(found.unwrap_or_default(), symbol)
    }

    /// Reads what lookups of these addresses will need, on all cores. Lookups answer the same without it; it pays for
    /// some dozen addresses and more.
    pub fn prepare(&self, addresses: &[Svma]) {
        for file in &self.dwarf {
            file.prepare(addresses.iter().map(|address| address.get()));
        }
    }

    /// The next file that has to be asked for before everything is known, as for a conversion. Give it to
    /// [`provide`](Self::provide), or say there that it is not to be had, until there is no more.
    pub fn missing_file(&self) -> Option<FileRequest> {
        if self.dwarf.is_empty() {
            return self.debug_map().missing_file();
        }
        self.dwarf.iter().zip(&self.looked_at).find_map(|(file, from)| file.missing_file(from))
    }

    fn lookup_debug_info(&self, address: Svma) -> Result<Option<DebugInfoAnswer<'_>>, FileRequest> {
        let mut only_line = None;
        for file in &self.dwarf {
            match file.lookup(address.get())? {
                Some(found) if found.function_start.is_some() => return Ok(Some(found)),
                found => only_line = only_line.or(found),
            }
        }
        if only_line.is_some() || !self.dwarf.is_empty() {
            return Ok(only_line);
        }
        let linked = self.debug_map().lookup(address)?;
        Ok(linked.or_else(|| go::lookup(self.go_table()?, address)))
    }

    fn answer<'a>(&'a self, found: DebugInfoAnswer<'a>, address: Svma) -> Answer<'a> {
        let mut function_start = found.function_start.map(Svma::new);
        let mut functions: Vec<_> = found.frames.into_iter().map(FunctionRef::of_frame).collect();
        if let Some(outermost) = functions.last_mut()
            && outermost.linkage_name.is_none()
            && (found.has_mangled_names || outermost.plain_name.is_none())
        {
            // Only the symbol of this very function has its name.
            if let Nearest::Symbol(symbol) = self.nearest(found.function_start.map_or(address, Svma::new))
                && function_start.is_none_or(|start| start == symbol.start())
            {
                outermost.linkage_name = Some(symbol.linkage_name().into());
                function_start = Some(symbol.start());
            }
            // A line without a function has no start to count from: that of the piece of code that the line is known
            // for says nothing, that of an unwind table may be of the function before the padding.
            if outermost.linkage_name.is_none() && outermost.plain_name.is_none() {
                function_start = None;
            }
        }
        Answer { functions, symbol: None, reason: None, function_start }
    }

    fn answer_from_symbols(&self, address: Svma) -> Answer<'_> {
        match self.nearest(address) {
            Nearest::Symbol(symbol) => {
                Answer { symbol: Some(symbol), function_start: Some(symbol.start()), ..Answer::default() }
            }
            Nearest::Nameless(start) => {
                let (reason, function_start) = (Some(Reason::Stripped), Some(start));
                Answer { reason, function_start, ..Answer::default() }
            }
            Nearest::None(reason) => Answer { reason: Some(reason), ..Answer::default() },
        }
    }

    fn nearest(&self, address: Svma) -> Nearest<'_> {
        self.symtab().nearest(address, &self.code)
    }

    pub(crate) fn symtab(&self) -> &Symtab<'d> {
        self.symtab.get_or_init(|| Symtab::read(&self.objects, &self.problems))
    }

    pub(crate) fn debug_map(&self) -> &DebugMap<'d> {
        self.debug_map.get_or_init(|| {
            DebugMap::new(self.objects.iter().flat_map(|object| object.debug_map()).collect())
        })
    }

    /// Go's own table, where no debug info is there to tell more.
    pub(crate) fn go_table(&self) -> Option<&GoTable<'d>> {
        if !self.dwarf.is_empty() || !self.debug_map().is_empty() {
            return None;
        }
        self.go.get_or_init(|| go::read(&self.objects, &self.problems)).as_ref()
    }

    /// Takes the bytes of a file that a lookup asked for, or `None` when it is not to be had: then lookups answer as
    /// well as they can without. For [`FileRequest::DebugMapObject`] these are the bytes of the archive where a member
    /// is asked for. A file that is not the one asked for counts as not to be had, and is told in
    /// [`problems`](Self::problems).
    pub fn provide(&self, request: &FileRequest, data: Option<&'d [u8]>) {
        // Where there is no package, the single files are asked for.
        if data.is_none() && *request != FileRequest::Dwp {
            self.problems.add(ProblemKind::File, format!("{request} is missing"));
        }
        match request {
            FileRequest::Dwp => {
                for file in &self.dwarf {
                    file.set_package(data.and_then(|data| self.open_split("the .dwp file", data)));
                }
            }
            FileRequest::Dwo { path, dwo_id } => {
                for file in &self.dwarf {
                    file.set_dwo(path, *dwo_id, || self.open_split(path, data?));
                }
            }
            FileRequest::Supplementary { path, id } => {
                for supplementary in self.dwarf.iter().filter_map(|file| file.supplementary.as_ref()) {
                    if supplementary.request() == request {
                        supplementary.set(data.and_then(|data| self.open_supplementary(path, *id, data)));
                    }
                }
            }
            FileRequest::DebugMapObject { path, member, mtime: _ } => {
                self.debug_map().provide(request, || self.open_map_object(path, member.as_deref(), data?));
            }
        }
    }

    fn open_split(&self, path: &str, data: &'d [u8]) -> Option<DwarfFile<'d>> {
        let object = self.told(path, Object::parse(data))?;
        Some(open::dwarf(&Arc::new(object), &self.code, &self.problems, true))
    }

    fn open_supplementary(&self, path: &str, id: Option<ImageId>, data: &'d [u8]) -> Option<DwarfFile<'d>> {
        let object = self.told(path, Object::parse(data))?;
        if let (Some(wanted), Some(found)) = (id, object.id())
            && wanted != found
        {
            let message = format!("{path}: expected {wanted:?}, found {found:?}");
            self.problems.add(ProblemKind::File, message);
            return None;
        }
        Some(open::dwarf(&Arc::new(object), &self.code, &self.problems, false))
    }

    fn open_map_object(&self, path: &str, member: Option<&str>, data: &'d [u8]) -> Option<ObjectFile<'d>> {
        let arch = self.objects.first().map(|object| object.arch());
        let object = self.told(path, open::member(data, member, arch))?;
        let object = Arc::new(object);
        let code = Arc::new(open::code_map(std::slice::from_ref(&object)));
        Some(ObjectFile::new(&object, open::dwarf(&object, &code, &self.problems, false)))
    }

    fn told<T>(&self, path: &str, opened: Result<T, impl fmt::Display>) -> Option<T> {
        opened.map_err(|error| self.problems.add(ProblemKind::File, format!("{path}: {error}"))).ok()
    }

    /// What could not be read so far, each said once.
    pub fn problems(&self) -> Vec<Problem> {
        self.problems.all()
    }
}

/// Two files of one image have the same identity; hashes of code do not count, since debug files have none.
fn check_ids(objects: &[Arc<Object<'_>>]) -> Result<(), Error> {
    let stated = |id: &ImageId| !matches!(id, ImageId::CodeHash(_));
    let mut ids = objects.iter().filter_map(|object| object.id().filter(stated));
    let Some(first) = ids.next() else { return Ok(()) };
    match ids.find(|id| *id != first) {
        Some(other) => Err(Error::IdMismatch { first: first.into(), other: other.into() }),
        None => Ok(()),
    }
}

impl fmt::Debug for Symbolizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbolizer").field("objects", &self.objects.len()).finish_non_exhaustive()
    }
}
