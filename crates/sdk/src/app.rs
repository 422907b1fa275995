//! What a stripped app still knows: where its functions start, its classes, its imports, its texts.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use backtrail_core::{Arch, Svma};
use backtrail_object::{Format, Object, Pointers, Section, Symbol, SymbolTable};

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::{Reference, Target};
use crate::hash::{Digest, Domain, Map};
use crate::isa::{Isa, Outline, Resolved};
use crate::learn::{Content, ElfImage, MachMemory, Memory, literal};
use crate::objc::{Classes, Method, string};
use crate::sections::loaded_data;

/// One function, or what the app has between two starts.
#[derive(Clone, Debug)]
pub(crate) struct AppFunction {
    pub(crate) start: Svma,
    pub(crate) end: Svma,
    pub(crate) outline: Outline,
    section: usize,
    offset: usize,
    size: usize,
}

/// What an address of the app holds, as far as it compares with a fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Referent {
    /// A place in this app.
    Place(Svma),
    /// A function or variable of another image, by its name.
    Import(Digest),
}

/// One architecture of an app.
pub(crate) struct App<'d> {
    pub(crate) arch: Arch,
    pub(crate) is_mach_o: bool,
    pub(crate) isa: Isa,
    pub(crate) functions: Vec<AppFunction>,
    /// By address: the methods whose code lies there.
    pub(crate) methods: Map<u64, Vec<Method>>,
    object: Object<'d>,
    sections: Vec<Cow<'d, [u8]>>,
    contents: Vec<(Svma, Svma, usize, Content)>,
    pointers: Option<Pointers<'d>>,
    classes: Map<u64, Digest>,
    superclasses: Map<u64, Svma>,
    prefixes: Map<u64, Vec<Digest>>,
    /// Whether the linker left categories apart from their classes. Else a class may have methods of others' categories.
    pub(crate) keeps_categories: bool,
    imports: Map<u64, Digest>,
    /// What the image exports, and may call by way of a slot: stripping leaves it.
    pub(crate) exports: Map<u64, Svma>,
    /// By address: hashes of all names that symbol tables have for it, the debug file's included.
    names: Map<u64, Vec<Digest>>,
    /// By the hash of a name: where its function is. Nothing where the tables have several of that name.
    places: Map<u64, Option<Svma>>,
    /// Pointers of an ELF image, by place.
    moved: Vec<(Svma, Svma)>,
    callers: OnceLock<Callers>,
    /// What pointers in data hold, ascending, with their places. Nothing where that cannot be read.
    pointed: OnceLock<Option<Vec<(Svma, Svma)>>>,
}

/// Which functions mention what.
struct Callers {
    /// By function: where its callers begin in `all`; one more at the end.
    first: Vec<u32>,
    all: Vec<u32>,
    /// Other addresses, ascending, with the functions that mention them.
    elsewhere: Vec<(Svma, u32)>,
}

impl<'d> App<'d> {
    /// Reads an app. `debug` is a debug file of the same build: a stripped app has its names there.
    pub(crate) fn read(object: &Object<'d>, debug: Option<&Object<'_>>) -> Result<Self> {
        let arch = object.arch();
        let isa = Isa::of(arch).ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, format!("code of {arch} is not compared with fingerprints"))
        })?;
        let sections = loaded_data(object);
        let pointers = object.pointers();
        let classes = pointers.as_ref().map(|pointers| Classes::read(object, pointers)).unwrap_or_default();
        let own = object.symbols().unwrap_or_default();
        let symbols = code_symbols(&own, debug);
        let functions = functions(object, isa, &sections, &classes, &symbols);
        let mut methods: Map<u64, Vec<Method>> = Map::default();
        for method in &classes.methods {
            methods.entry(method.address.get()).or_default().push(*method);
        }
        let imports = imports(object, isa, pointers.as_ref(), &sections);
        let mut contents: Vec<_> = object
            .sections()
            .iter()
            .enumerate()
            .filter(|(_, section)| section.is_loaded && !section.address.is_empty())
            .map(|(index, section)| {
                (section.address.start(), section.address.end(), index, Content::of(section))
            })
            .collect();
        contents.sort_by_key(|(start, ..)| *start);
        let exports = exports(&own);
        let mut names: Map<u64, Vec<Digest>> = Map::default();
        let mut places: Map<u64, Option<Svma>> = Map::default();
        for (address, name) in &symbols {
            let there = names.entry(address.get()).or_default();
            if !there.contains(name) {
                there.push(*name);
            }
            let place = places.entry(name.0).or_insert(Some(*address));
            if *place != Some(*address) {
                *place = None;
            }
        }
        // Of an export there is one, whatever else has its name.
        places.extend(exports.iter().map(|(name, address)| (*name, Some(*address))));
        Ok(Self {
            arch,
            is_mach_o: object.format() == Format::MachO,
            isa,
            functions,
            methods,
            object: object.clone(),
            sections,
            contents,
            pointers,
            classes: classes.objects,
            superclasses: classes.superclasses,
            prefixes: classes.prefixes,
            keeps_categories: classes.has_apart,
            imports,
            exports,
            names,
            places,
            moved: object.moved_pointers().unwrap_or_default(),
            callers: OnceLock::new(),
            pointed: OnceLock::new(),
        })
    }

    /// The number of the function that starts at `address`.
    pub(crate) fn function_at(&self, address: Svma) -> Option<usize> {
        self.functions.binary_search_by_key(&address, |function| function.start).ok()
    }

    /// A function's bytes.
    pub(crate) fn code(&self, function: &AppFunction) -> &[u8] {
        let bytes = self.sections.get(function.section).map(AsRef::as_ref).unwrap_or_default();
        bytes.get(function.offset..function.offset.saturating_add(function.size)).unwrap_or_default()
    }

    /// What a reference of a function with a known body names here.
    pub(crate) fn resolve(&self, function: &AppFunction, reference: &Reference) -> Option<Referent> {
        let code = (function.start, self.code(function));
        let (at, page_at) = (reference.at as usize, reference.page_at as usize);
        match self.isa.resolve(reference.form, code, at, page_at, reference.bias.into())? {
            Resolved::Slot(slot) => match self.imports.get(&slot.get()) {
                Some(name) => Some(self.named(*name)),
                None => self.pointer(slot).map(Referent::Place),
            },
            Resolved::Address(address) => Some(match self.imports.get(&address.get()) {
                Some(name) => self.named(*name),
                None => Referent::Place(address),
            }),
        }
    }

    fn named(&self, name: Digest) -> Referent {
        self.exports.get(&name.0).map_or(Referent::Import(name), |address| Referent::Place(*address))
    }

    /// The text, constant or class at an address. `None` where nothing tells.
    pub(crate) fn literal(&self, address: Svma, wanted: Target) -> Option<Target> {
        let after = self.contents.partition_point(|(start, ..)| *start <= address);
        let (_, end, section, content) = self.contents.get(after.checked_sub(1)?)?;
        if address >= *end {
            return None;
        }
        if let Target::Class(_) = wanted {
            let class = self.pointers.as_ref()?.read(address)?;
            return self.classes.get(&class.get()).map(|class| Target::Class(*class));
        }
        match &self.pointers {
            Some(pointers) => {
                literal(&MachMemory { object: &self.object, pointers }, *content, *section, address)
            }
            None => {
                let header = self.object.sections().get(*section)?;
                let bytes = self.sections.get(*section)?;
                let image = ElfImage { start: header.address.start(), bytes };
                // A linker joins texts and constants of one kind, or all in `.rodata`: text first.
                if !header.name.starts_with(".rodata") {
                    return None;
                }
                let memory: &dyn Memory = &image;
                [
                    Content::Strings,
                    Content::Constants(2),
                    Content::Constants(4),
                    Content::Constants(8),
                    Content::Constants(16),
                    Content::Constants(32),
                ]
                .into_iter()
                .find_map(|content| literal(memory, content, 0, address).filter(|found| *found == wanted))
                .or_else(|| literal(memory, Content::Strings, 0, address))
            }
        }
    }

    /// The address that a pointer in data holds.
    pub(crate) fn pointer(&self, at: Svma) -> Option<Svma> {
        if let Some(name) = self.imports.get(&at.get()) {
            return self.exports.get(&name.0).copied();
        }
        match &self.pointers {
            Some(pointers) => pointers.read(at),
            None => {
                let found = self.moved.binary_search_by_key(&at, |(place, _)| *place).ok()?;
                self.moved.get(found).map(|(_, target)| *target)
            }
        }
    }

    /// Whether there are more names than those of exports.
    pub(crate) fn has_symbols(&self) -> bool {
        self.places.len() > self.exports.len()
    }

    /// The names that an address is known by.
    pub(crate) fn names_at(&self, address: Svma) -> &[Digest] {
        self.names.get(&address.get()).map(Vec::as_slice).unwrap_or_default()
    }

    /// All names, by address.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[Digest]> {
        self.names.values().map(Vec::as_slice)
    }

    /// The one place that has a name.
    pub(crate) fn address_named(&self, name: Digest) -> Option<Svma> {
        *self.places.get(&name.0)?
    }

    /// The number of the one function that has a name.
    pub(crate) fn function_named(&self, name: Digest) -> Option<usize> {
        self.function_at(self.address_named(name)?)
    }

    /// The classes that the app defines, by the addresses of their objects.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (Svma, Digest)> {
        self.classes.iter().map(|(address, class)| (Svma::new(*address), *class))
    }

    /// Where the object of a class's superclass lies, if the app defines both.
    pub(crate) fn superclass_of(&self, class: Digest) -> Option<Svma> {
        self.superclasses.get(&class.0).copied()
    }

    /// What a class's name begins with, as vendors mark theirs.
    pub(crate) fn prefixes_of(&self, class: Digest) -> &[Digest] {
        self.prefixes.get(&class.0).map(Vec::as_slice).unwrap_or_default()
    }

    /// What a function mentions: functions and data of this app.
    pub(crate) fn mentions(&self, function: &AppFunction) -> Vec<Svma> {
        let mut found = Vec::new();
        self.isa.references((function.start, self.code(function)), &mut |address| {
            found.extend(self.behind(address));
        });
        found
    }

    /// Whether this is an import: a stub, or a slot.
    pub(crate) fn is_import(&self, address: Svma) -> bool {
        self.imports.contains_key(&address.get())
    }

    /// The functions that call or mention this one.
    pub(crate) fn callers(&self, function: usize) -> &[u32] {
        let callers = self.callers.get_or_init(|| self.read_callers());
        let at = |index: usize| callers.first.get(index).map_or(0, |at| crate::fingerprint::index(*at));
        callers.all.get(at(function)..at(function + 1)).unwrap_or_default()
    }

    /// The functions that mention an address in this range, which is none of code.
    pub(crate) fn mentioned_by(&self, range: Range<Svma>) -> impl Iterator<Item = u32> {
        let callers = self.callers.get_or_init(|| self.read_callers());
        let from = callers.elsewhere.partition_point(|(address, _)| *address < range.start);
        let behind = callers.elsewhere.get(from..).unwrap_or_default().iter();
        behind.take_while(move |(address, _)| *address < range.end).map(|(_, function)| *function)
    }

    /// The places in data that point into this range, with what they hold. Nothing where that cannot be read.
    pub(crate) fn pointed_from(&self, range: Range<Svma>) -> Option<&[(Svma, Svma)]> {
        let pointed = self.pointed.get_or_init(|| self.read_pointed()).as_ref()?;
        let from = pointed.partition_point(|(target, _)| *target < range.start);
        let to = pointed.partition_point(|(target, _)| *target < range.end);
        pointed.get(from..to)
    }

    fn read_pointed(&self) -> Option<Vec<(Svma, Svma)>> {
        // Of other processors not every way to mention an address is read.
        if !matches!(self.isa, Isa::Arm64 | Isa::X86_64) {
            return None;
        }
        let mut found = Vec::new();
        let Some(pointers) = &self.pointers else {
            if self.object.sections().iter().any(|section| section.name.starts_with(".relr")) {
                return None;
            }
            // Where no pointer is known there may still be some, as in programs that are not moved.
            let is_told =
                |place: &Svma| !self.section_at(*place).is_some_and(|section| is_slots(&section.name));
            let moved = self.moved.iter().filter(|(place, _)| is_told(place));
            found.extend(moved.map(|(place, target)| (*target, *place)));
            found.sort_unstable();
            return (!self.moved.is_empty()).then_some(found);
        };
        let word = if self.object.is_64() { 8 } else { 4 };
        for section in self.object.sections() {
            let is_read = section.is_loaded && !section.is_no_bits();
            if section.is_code || !is_read || is_slots(&section.name) {
                continue;
            }
            let mut at = section.address.start();
            while at < section.address.end() {
                // Numbers are read as pointers, too: most lead nowhere.
                if let Some(target) = pointers.read(at).filter(|target| self.section_at(*target).is_some()) {
                    found.push((target, at));
                }
                let Some(next) = at.checked_add(word) else { break };
                at = next;
            }
        }
        // Bound by name, to what the image itself defines.
        let bound = self.imports.iter().filter_map(|(slot, name)| {
            let slot = Svma::new(*slot);
            let is_data =
                self.section_at(slot).is_some_and(|section| !section.is_code && !is_slots(&section.name));
            Some((*self.exports.get(&name.0).filter(|_| is_data)?, slot))
        });
        found.extend(bound);
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    fn section_at(&self, address: Svma) -> Option<&Section<'d>> {
        let after = self.contents.partition_point(|(start, ..)| *start <= address);
        let (_, end, section, _) = self.contents.get(after.checked_sub(1)?)?;
        if address < *end { self.object.sections().get(*section) } else { None }
    }

    /// What is meant by an address: of a stub, or a slot for addresses, what it leads to.
    fn behind(&self, address: Svma) -> Option<Svma> {
        if let Some(name) = self.imports.get(&address.get()) {
            return self.exports.get(&name.0).copied();
        }
        match self.section_at(address) {
            Some(section) if is_slots(&section.name) => self.pointer(address),
            _ => Some(address),
        }
    }

    fn read_callers(&self) -> Callers {
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut elsewhere: Vec<(Svma, u32)> = Vec::new();
        for (index, function) in self.functions.iter().enumerate() {
            let from = u32::try_from(index).unwrap_or(u32::MAX);
            let first = edges.len();
            self.isa.references((function.start, self.code(function)), &mut |address| {
                let Some(address) = self.behind(address) else { return };
                match self.function_at(address).and_then(|to| u32::try_from(to).ok()) {
                    Some(to) if to != from => edges.push((to, from)),
                    Some(_) => {}
                    None if self.section_at(address).is_some_and(|section| !section.is_code) => {
                        elsewhere.push((address, from));
                    }
                    None => {}
                }
            });
            if let Some(new) = edges.get_mut(first..) {
                new.sort_unstable();
            }
        }
        edges.sort_unstable();
        edges.dedup();
        elsewhere.sort_unstable();
        elsewhere.dedup();
        let mut first = Vec::with_capacity(self.functions.len() + 1);
        let mut at = 0;
        for function in 0..=self.functions.len() {
            while edges.get(at).is_some_and(|(to, _)| crate::fingerprint::index(*to) < function) {
                at += 1;
            }
            first.push(u32::try_from(at).unwrap_or(u32::MAX));
        }
        Callers { first, all: edges.into_iter().map(|(_, from)| from).collect(), elsewhere }
    }
}

/// Sections of code that linkers make: they belong to nobody.
fn is_stubs(name: &str) -> bool {
    matches!(name, "__stubs" | "__auth_stubs" | "__objc_stubs" | "__stub_helper" | "__picsymbolstub4")
        || name.starts_with(".plt")
        || name == ".iplt"
}

/// Sections of addresses that code calls by way of, or loads.
fn is_slots(name: &str) -> bool {
    matches!(name, "__got" | "__auth_got" | "__la_symbol_ptr" | "__nl_symbol_ptr" | ".got" | ".got.plt")
}

/// The functions of an image, by address.
fn functions(
    object: &Object<'_>,
    isa: Isa,
    sections: &[Cow<'_, [u8]>],
    classes: &Classes,
    symbols: &[(Svma, Digest)],
) -> Vec<AppFunction> {
    let mut starts = object.function_starts().unwrap_or_default();
    starts.extend(classes.methods.iter().map(|method| method.address));
    starts.extend(symbols.iter().map(|(address, _)| *address));
    starts.sort_unstable();
    starts.dedup();
    let mut found = Vec::with_capacity(starts.len());
    for (index, section) in object.sections().iter().enumerate() {
        if !section.is_code || !section.is_loaded || is_stubs(&section.name) {
            continue;
        }
        let bytes = sections.get(index).map(AsRef::as_ref).unwrap_or_default();
        let range = section.address;
        let from = starts.partition_point(|start| *start < range.start());
        let to = starts.partition_point(|start| *start < range.end());
        let inside = starts.get(from..to).unwrap_or_default();
        for (number, start) in inside.iter().enumerate() {
            let end = inside.get(number + 1).copied().unwrap_or(range.end());
            let offset = start.offset_from(range.start()).and_then(|at| usize::try_from(at).ok());
            let size = end.offset_from(*start).and_then(|size| usize::try_from(size).ok());
            let (Some(offset), Some(size)) = (offset, size) else { continue };
            let code = bytes.get(offset..offset.saturating_add(size).min(bytes.len())).unwrap_or_default();
            found.push(AppFunction {
                start: *start,
                end,
                outline: isa.outline(code),
                section: index,
                offset,
                size: code.len(),
            });
        }
    }
    found.sort_by_key(|function| function.start);
    found
}

/// What symbol tables say of code: addresses with hashes of names.
fn code_symbols(own: &[Symbol<'_>], debug: Option<&Object<'_>>) -> Vec<(Svma, Digest)> {
    let further = debug.and_then(|debug| debug.symbols().ok()).unwrap_or_default();
    let mut named = Vec::new();
    for symbols in [own, &further] {
        let code = symbols.iter().filter(|symbol| symbol.is_code && symbol.section.is_some());
        named.extend(code.map(|symbol| (symbol.address, Digest::of(Domain::Name, symbol.name.as_bytes()))));
    }
    named
}

/// What an image exports, by hashes of names.
fn exports(symbols: &[Symbol<'_>]) -> Map<u64, Svma> {
    let exported =
        symbols.iter().filter(|symbol| matches!(symbol.table, SymbolTable::Dynsym | SymbolTable::Exports));
    exported.map(|symbol| (Digest::of(Domain::Name, symbol.name.as_bytes()).0, symbol.address)).collect()
}

/// Slots and stubs by address, with hashes of names.
fn imports(
    object: &Object<'_>,
    isa: Isa,
    pointers: Option<&Pointers<'_>>,
    sections: &[Cow<'_, [u8]>],
) -> Map<u64, Digest> {
    let stated = object.imports().unwrap_or_default();
    let mut imports: Map<u64, Digest> = Map::default();
    for import in stated {
        imports.insert(import.address.get(), Digest::of(Domain::Name, import.name.as_bytes()));
    }
    if let Some(pointers) = pointers {
        imports.extend(selector_stubs(object, isa, pointers, sections));
    }
    let table = object.sections().iter().find(|section| section.name == ".got.plt");
    let table = table.map(|section| section.address.start());
    // ELF names slots only; stubs are read. They have 16 bytes, or 12.
    const STEP: usize = 4;
    for (section, bytes) in object.sections().iter().zip(sections) {
        if !(section.is_code && section.name.starts_with(".plt")) {
            continue;
        }
        for offset in (0..bytes.len()).step_by(STEP) {
            let (Some(address), Some(code)) =
                (section.address.start().checked_add(offset as u64), bytes.get(offset..))
            else {
                break;
            };
            let slot = isa.stub_slot((address, code.get(..code.len().min(12)).unwrap_or_default()));
            let slot = slot.or_else(|| slot_by_table(isa, table?, code));
            if let Some(name) = slot.and_then(|slot| imports.get(&slot.get()).copied()) {
                imports.entry(address.get()).or_insert(name);
            }
        }
    }
    imports
}

/// The slot of a position-independent stub of i386: `jmp *offset(%ebx)`, where `%ebx` has the address of the table of slots.
fn slot_by_table(isa: Isa, table: Svma, stub: &[u8]) -> Option<Svma> {
    let offset = stub.strip_prefix(&[0xff, 0xa3])?.first_chunk()?;
    let slot = table.get().wrapping_add_signed(i32::from_le_bytes(*offset).into());
    matches!(isa, Isa::X86).then(|| Svma::new(slot))
}

/// Stubs that send one message each: code calls them by the name `_objc_msgSend$` with the selector.
fn selector_stubs(
    object: &Object<'_>,
    isa: Isa,
    pointers: &Pointers<'_>,
    sections: &[Cow<'_, [u8]>],
) -> Vec<(u64, Digest)> {
    let mut found = Vec::new();
    for (section, bytes) in object.sections().iter().zip(sections) {
        if section.name != "__objc_stubs" {
            continue;
        }
        for offset in (0..bytes.len()).step_by(4) {
            let address = section.address.start().checked_add(offset as u64);
            let (Some(address), Some(code)) = (address, bytes.get(offset..)) else { break };
            // Only the start of a stub: it begins with the page of its selector.
            let slot = isa.stub_slot((address, code.get(..code.len().min(8)).unwrap_or_default()));
            let name = slot.and_then(|slot| string(pointers.bytes(pointers.read(slot)?)?));
            if let Some(name) = name {
                found.push((address.get(), Digest::of(Domain::Name, &[b"_objc_msgSend$", name].concat())));
            }
        }
    }
    found
}
