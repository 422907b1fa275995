//! The one way from frames to names.
//!
//! Frames are sorted by the files that name them and by address, each address is looked up once, and every frame takes
//! over the answer. Where an image's files are is told by whoever captured the process ([`LoadedFiles`]), else they are
//! found by identity.

use crate::image_symbolizer::ImageSymbolizer;
use crate::in_file::{InFile, refuse_contradiction};
use crate::symbols::Symbols;
use backtrail_core::{Arch, Avma, Bias, FrameAddress, Reason, Svma, Symbol, SymbolInfo};
use backtrail_demangle as demangle;
use backtrail_model::{Detail, Frame, Image, ImageSymbols, Process, SymbolStatus};
use backtrail_store::{Index, LoadedFiles, Names};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

impl Symbols {
    /// Names every frame of a process whose images are found by identity, and says of each image where its symbols are or
    /// why there are none. `use_paths` is whether the images' paths mean files of this machine.
    pub fn symbolize(&self, process: &mut Process, use_paths: bool) {
        let mut naming = Naming::new(self, process, &[], Detail::Lines);
        naming.use_paths = use_paths;
        naming.run(process);
    }
}

/// What joins [`Symbols`] with captures, whose images' files are open already. A trait, so that those who call the methods of
/// [`Symbols`] alone need not know of files.
pub trait SymbolizeLoaded {
    /// The scanned files and those that are open.
    fn index(&self) -> &Index;

    /// Names every frame of a process whose images' files are known.
    fn symbolize_loaded(&self, process: &mut Process, loaded: &[LoadedFiles], detail: Detail);

    /// Opens the files of every image, and says of each where its symbols are; frames are left alone.
    fn open_loaded(&self, process: &mut Process, loaded: &[LoadedFiles]);
}

impl SymbolizeLoaded for Symbols {
    fn index(&self) -> &Index {
        self.index_of_files()
    }

    fn symbolize_loaded(&self, process: &mut Process, loaded: &[LoadedFiles], detail: Detail) {
        Naming::new(self, process, loaded, detail).run(process);
    }

    fn open_loaded(&self, process: &mut Process, loaded: &[LoadedFiles]) {
        for loaded in loaded {
            let opened = self.symbolizer(&loaded.files);
            if let Some(image) = process.images.get_mut(loaded.image) {
                report_files(&mut image.symbols, &opened);
                if image.symbols.status == SymbolStatus::Found {
                    let names = loaded.files.names();
                    image.symbols.status = status_of(names, names == Names::None);
                }
            }
        }
    }
}

/// A frame, the files that name it, and the stated address to look up there.
struct Wanted<'f> {
    files: usize,
    address: Svma,
    frame: &'f mut Frame,
}

/// What answers for an image, and where it lies; else why nothing does.
type Placed = Result<(Arc<ImageSymbolizer>, Bias), String>;

struct Naming<'s> {
    symbols: &'s Symbols,
    detail: Detail,
    arch: Arch,
    use_paths: bool,
    /// Whether the files were given; else they are found image by image.
    is_given: bool,
    loaded: Vec<LoadedFiles>,
    /// What answers for each of `loaded`, once asked for.
    opened: Vec<Option<Placed>>,
    by_image: HashMap<usize, Vec<usize>>,
}

impl<'s> Naming<'s> {
    fn new(symbols: &'s Symbols, process: &Process, loaded: &[LoadedFiles], detail: Detail) -> Self {
        let mut naming = Self {
            symbols,
            detail,
            arch: process.arch.unwrap_or(Arch::Unknown),
            use_paths: false,
            is_given: !loaded.is_empty(),
            loaded: Vec::new(),
            opened: Vec::new(),
            by_image: HashMap::new(),
        };
        for loaded in loaded {
            naming.add(loaded.clone());
        }
        naming
    }

    fn add(&mut self, loaded: LoadedFiles) {
        self.by_image.entry(loaded.image).or_default().push(self.loaded.len());
        self.loaded.push(loaded);
        self.opened.push(None);
    }

    fn run(mut self, process: &mut Process) {
        if self.detail != Detail::Addresses {
            self.fetch(process);
        }
        let wants_owners = self.symbols.wants_owners(process);
        let (frames, images) = process.frames_and_images_mut();
        let mut wanted = Vec::new();
        for frame in frames {
            // Names of languages that are known by name are not mangled, and look up nothing here.
            if frame.language.is_some() {
                continue;
            }
            readable_report_name(frame);
            let Some(position) = frame.image.filter(|position| *position < images.len()) else {
                if frame.is_unnamed() && frame.reason.is_none() {
                    frame.reason = Some(Reason::NoImage);
                }
                continue;
            };
            if self.detail == Detail::Addresses {
                continue;
            }
            match self.place(frame, position, images) {
                Some((files, address)) => wanted.push(Wanted { files, address, frame }),
                None => self.account(frame, images),
            }
        }
        wanted.sort_by_key(|wanted| (wanted.files, wanted.address));
        for frames in wanted.chunk_by_mut(|one, next| one.files == next.files) {
            self.name(frames);
            self.own(frames, &wants_owners);
            for wanted in frames {
                refuse_contradiction(wanted.frame, images);
                self.account(wanted.frame, images);
            }
        }
        for (position, symbols) in images.iter_mut().map(|image| &mut image.symbols).enumerate() {
            symbols.status = self.status(position, symbols);
        }
    }

    /// Asks servers for the debug files of images that frames lie in, where this machine has none, for all images at once.
    fn fetch(&mut self, process: &mut Process) {
        if self.symbols.index().remote().is_none() || self.symbols.is_none() {
            return;
        }
        let arch = self.arch;
        let (frames, images) = process.frames_and_images_mut();
        let mut needed = BTreeSet::new();
        for frame in frames {
            let place = frame.image.and_then(|position| Some((position, images.get_mut(position)?)));
            let Some((position, image)) = place else { continue };
            let in_file = InFile::of(frame, image).filter(|_| !self.is_given);
            let lookup = match in_file {
                Some(_) => Some(Avma::new(0)),
                None => lookup(frame, image, image.arch.unwrap_or(arch)),
            };
            if let Some(lookup) = lookup {
                needed.extend(self.files_of(position, image, lookup, in_file.is_some()));
            }
        }
        let mut wanted = Vec::new();
        for (at, loaded) in self.loaded.iter_mut().enumerate().filter(|(at, _)| needed.contains(at)) {
            let Some(image) = images.get(loaded.image) else { continue };
            let names_do = self.detail == Detail::Names && loaded.files.names() >= Names::Symbols;
            // Without the binary it is not known where in a capture the debug file's addresses lie.
            let is_placed = loaded.bias.is_none() || loaded.files.binary.is_some();
            if let Some(id) = image.id.filter(|_| is_placed && !names_do && loaded.files.lacks_debug_info()) {
                wanted.push((id, loaded.image, at, (*loaded.files).clone()));
            }
        }
        let mut files: Vec<_> = wanted.iter_mut().map(|(id, _, _, files)| (*id, files)).collect();
        self.symbols.index().fetch_debug_files(&mut files);
        for (_, position, at, files) in wanted {
            if let Some(image) = images.get_mut(position) {
                image.symbols.tried.clone_from(&files.tried);
                if image.symbols.status != SymbolStatus::Found {
                    image.symbols.status = files.status.clone();
                }
            }
            if let Some(loaded) = self.loaded.get_mut(at) {
                loaded.files = Arc::new(files);
            }
        }
    }

    /// What became of an image's symbols, when all its frames are named that can be.
    fn status(&self, position: usize, symbols: &ImageSymbols) -> SymbolStatus {
        let is_needed = symbols.unnamed_frames > 0;
        if symbols.status != SymbolStatus::Found {
            // Code that belongs to no file has no status yet.
            return match (&symbols.status, is_needed) {
                (_, false) => SymbolStatus::NoneNeeded,
                (SymbolStatus::NoneNeeded, true) => SymbolStatus::Missing,
                (status, true) => status.clone(),
            };
        }
        if symbols.unreadable {
            return SymbolStatus::Found;
        }
        if !is_needed && symbols.files.is_empty() {
            return SymbolStatus::Found;
        }
        let loaded = self.by_image.get(&position).into_iter().flatten();
        let names = loaded.filter_map(|at| self.loaded.get(*at)).map(|loaded| loaded.files.names()).max();
        names.map_or(SymbolStatus::Found, |names| status_of(names, is_needed))
    }

    /// The files that name a frame, and the address that it has in them.
    fn place(&mut self, frame: &mut Frame, position: usize, images: &mut [Image]) -> Option<(usize, Svma)> {
        let image = images.get_mut(position)?;
        let arch = image.arch.unwrap_or(self.arch);
        // A report that states where code is in its file knows nothing of the image's place in the process.
        let in_file = InFile::of(frame, image).filter(|_| !self.is_given);
        let lookup = match in_file {
            Some(_) => Avma::new(0),
            None => lookup(frame, image, arch)?,
        };
        let files = self.files_of(position, image, lookup, in_file.is_some())?;
        let (open, bias) = self.open(files, image)?;
        let address = match in_file {
            Some(in_file) => {
                image.symbols.bias = None;
                in_file.address(frame, &open, arch)
            }
            None => bias.to_svma(lookup),
        };
        if let (Some(InFile::Mapped { size, .. }), None) = (in_file, address) {
            let files = std::mem::take(&mut image.symbols.files).join(", ");
            let what =
                format!("{files}: another build? No code of it takes the {size:#x} bytes of the mapping");
            image.symbols.tried.push(what);
            image.symbols.status = SymbolStatus::Missing;
        }
        if address.is_none() {
            frame.reason = Some(Reason::OutsideSections);
        }
        Some((files, address?))
    }

    fn files_of(&mut self, position: usize, image: &mut Image, lookup: Avma, by_name: bool) -> Option<usize> {
        if !self.is_given && !self.by_image.contains_key(&position) {
            let files = self.symbols.files_of(image, self.use_paths, by_name);
            image.symbols.status = files.status.clone();
            image.symbols.is_unproven = files.is_unproven;
            image.symbols.tried.clone_from(&files.tried);
            image.symbols.unreadable = files.is_unreadable && files.status != SymbolStatus::Found;
            self.add(LoadedFiles { image: position, ranges: Vec::new(), bias: None, files });
        }
        match self.by_image.get(&position)?.as_slice() {
            [only] => Some(*only),
            several => several.iter().copied().find(|at| {
                let ranges = self.loaded.get(*at).map(|loaded| loaded.ranges.as_slice());
                ranges.unwrap_or_default().iter().any(|range| range.contains(lookup))
            }),
        }
    }

    fn open(&mut self, files: usize, image: &mut Image) -> Option<(Arc<ImageSymbolizer>, Bias)> {
        let loaded = self.loaded.get(files)?;
        let slot = self.opened.get_mut(files)?;
        if slot.is_none() {
            let opened = self.symbols.symbolizer(&loaded.files);
            report_files(&mut image.symbols, &opened);
            let at = |open: Arc<ImageSymbolizer>| {
                let bias =
                    loaded.bias.unwrap_or_else(|| Bias::between(image.load_address, open.image_base()));
                image.symbols.bias = Some(bias);
                (open, bias)
            };
            *slot = Some(opened.map(at));
        }
        slot.as_ref()?.as_ref().ok().cloned()
    }

    /// Looks up what one image's files know of the frames' addresses, each once.
    fn name(&self, frames: &mut [Wanted<'_>]) {
        let Some(first) = frames.first() else { return };
        let opened = self.opened.get(first.files).and_then(Option::as_ref);
        let Some(Ok((open, _))) = opened else { return };
        let mut addresses: Vec<_> = frames.iter().map(|wanted| wanted.address).collect();
        addresses.dedup();
        let infos = match self.detail {
            Detail::Lines => open.lookup_all(self.symbols.index(), &addresses),
            _ => vec![SymbolInfo::default(); addresses.len()],
        };
        let infos = addresses.iter().zip(infos).map(|(address, info)| of_function(open, *address, info));
        for (same, info) in frames.chunk_by_mut(|one, next| one.address == next.address).zip(infos) {
            for wanted in same {
                wanted.frame.set_symbol_info(info.clone());
            }
        }
    }

    /// Says whose code the frames of one image are, where its binary tells.
    fn own(&self, frames: &mut [Wanted<'_>], wanted: &[bool]) {
        let loaded = frames.first().and_then(|first| self.loaded.get(first.files));
        let Some(loaded) = loaded.filter(|loaded| wanted.get(loaded.image).is_some_and(|wanted| *wanted))
        else {
            return;
        };
        let Some(owners) = self.symbols.owners(&loaded.files) else { return };
        for wanted in frames {
            wanted.frame.owner = owners.at(wanted.address);
        }
    }

    /// Counts a frame without a name, and says why it has none.
    fn account(&self, frame: &mut Frame, images: &mut [Image]) {
        let image = frame.image.and_then(|position| images.get_mut(position));
        let Some(image) = image.filter(|_| frame.is_unnamed()) else { return };
        image.symbols.unnamed_frames += 1;
        frame.reason = match image.symbols.status {
            SymbolStatus::Found if !image.symbols.unreadable => frame.reason.or(Some(Reason::NoSymbol)),
            _ => Some(image.symbols.reason(image.id.is_some() || self.is_given)),
        };
    }
}

/// Where the frame's code is in the process. Crashlytics states an offset in an image of a known build, and no addresses: any
/// place will do for the image then. Callers' offsets are those of return addresses.
fn lookup(frame: &Frame, image: &Image, arch: Arch) -> Option<Avma> {
    let by_offset = || {
        let offset = frame.image_offset.filter(|_| image.id.is_some())?;
        let address = image.load_address.checked_add(offset)?;
        let address =
            if frame.index == 0 { FrameAddress::Exact(address) } else { FrameAddress::Return(address) };
        Some(address.lookup(arch))
    };
    frame.address.map(|address| address.lookup(arch)).or_else(by_offset)
}

/// What files with these names are; `is_wanting` is whether frames stayed without one.
fn status_of(names: Names, is_wanting: bool) -> SymbolStatus {
    match names {
        Names::Exports => SymbolStatus::ExportsOnly,
        Names::None | Names::Symbols if is_wanting => SymbolStatus::Stripped,
        _ => SymbolStatus::Found,
    }
}

/// Says which files answered, or why none could.
fn report_files(symbols: &mut ImageSymbols, opened: &Result<Arc<ImageSymbolizer>, String>) {
    match opened {
        Ok(open) => symbols.files = open.file_names().to_vec(),
        Err(problem) if problem.is_empty() => {}
        Err(problem) => {
            symbols.tried.push(problem.clone());
            symbols.unreadable = true;
            symbols.status = SymbolStatus::Missing;
        }
    }
}

/// Reports of older systems and of other reporters state linkage names; people read the other kind.
fn readable_report_name(frame: &mut Frame) {
    if let Some(reported) = &mut frame.reported {
        let readable = demangle::demangle(&reported.name, &demangle::Options::default());
        if readable != reported.name {
            reported.name = readable.into_owned();
        }
    }
}

/// A stack is made of functions: where the nearest symbol only marks a place inside of one, the function it is. Android's
/// runtime gives symbols the language's own names (`int Main.compare(Main, Main)`) and debug info only parts of them.
fn of_function(image: &ImageSymbolizer, address: Svma, mut info: SymbolInfo) -> SymbolInfo {
    let function = image.enclosing_function(address);
    let symbol = match function {
        Some(function) if info.functions.is_empty() => Some(function),
        Some(function)
            if function.name.ends_with(')') && function.linkage_name.as_ref() == Some(&function.name) =>
        {
            if let Some(outermost) = info.functions.last_mut() {
                (outermost.name, outermost.linkage_name) = (function.name, function.linkage_name);
            }
            None
        }
        _ => info.symbol.take(),
    };
    if let Some(mut symbol) = symbol.filter(|_| info.functions.is_empty()) {
        readable(&mut symbol);
        info.function_offset = Some(symbol.offset);
        info.symbol = Some(symbol);
        info.reason = None;
    }
    info
}

/// Android's dynamic linker has a prefix before the names of everything that was linked into it, so that its `malloc` is
/// told from the C library's. The prefix stays in the readable name for the same reason.
fn readable(symbol: &mut Symbol) {
    const PREFIX: &str = "__dl_";
    let mangled = symbol.linkage_name.as_deref().and_then(|name| name.strip_prefix(PREFIX));
    if let Some(mangled) = mangled.filter(|mangled| mangled.starts_with("_Z")) {
        symbol.name = format!("{PREFIX}{}", demangle::demangle(mangled, &demangle::Options::default()));
    }
}
