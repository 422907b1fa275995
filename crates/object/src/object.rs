//! One slice: the face that both formats share.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use backtrail_core::{AddrRange, Arch, ImageId, Svma};

use crate::budget::{Budget, Cost, Share};
use crate::compress::Compressed;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::link::{DebugAltLink, DebugLink};
use crate::load_command::LoadCommand;
use crate::macho::Placement;
use crate::macho::debug_map::DebugMapEntry;
use crate::macho::linking::Pointers;
use crate::relocation::{Import, Relocation};
use crate::section::{Section, Segment};
use crate::symbol::Symbol;
use crate::view::View;
use crate::{elf, macho};

/// The container format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Format {
    /// Apple's.
    MachO,
    /// Everybody else's.
    Elf,
}

impl Format {
    /// Its usual name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MachO => "Mach-O",
            Self::Elf => "ELF",
        }
    }
}

/// What an object file is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// A program, or a kernel.
    Executable,
    /// A shared library, or a dynamic linker.
    Library,
    /// Mach-O code that is loaded on demand: bundles and kernel extensions.
    Bundle,
    /// The debug info of another file: a dSYM's binary, an ELF `.debug` file, a `dwz` file.
    DebugCompanion,
    /// Input of a linker: `.o`, `.dwo`, kernel modules.
    Relocatable,
    /// The memory of a process.
    Core,
    /// A dyld shared cache as a whole.
    SharedCache,
    /// No object: a symbol table file that was made from one.
    Table,
    /// No object: a symbol file of another tool, GSYM or Breakpad's.
    SymbolFile,
    /// Anything else.
    Other,
}

impl Kind {
    /// A word or two for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Executable => "executable",
            Self::Library => "library",
            Self::Bundle => "bundle",
            Self::DebugCompanion => "debug companion",
            Self::Relocatable => "relocatable object",
            Self::Core => "core",
            Self::SharedCache => "shared cache",
            Self::Table => "symbol table file",
            Self::SymbolFile => "symbol file",
            Self::Other => "object",
        }
    }
}

/// Byte order of an object's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// What both formats state in their headers.
#[derive(Debug)]
pub(crate) struct Headers<'d> {
    pub(crate) format: Format,
    pub(crate) kind: Kind,
    pub(crate) arch: Arch,
    pub(crate) is_64: bool,
    pub(crate) endian: Endian,
    pub(crate) id: Option<ImageId>,
    pub(crate) image_base: Svma,
    pub(crate) entry: Option<Svma>,
    pub(crate) segments: Vec<Segment<'d>>,
    pub(crate) sections: Vec<Section<'d>>,
    pub(crate) has_debug_info: bool,
    pub(crate) has_symbols: bool,
    pub(crate) problems: Vec<Error>,
}

#[derive(Debug)]
enum Tables<'d> {
    MachO(macho::Tables<'d>),
    Elf(elf::Tables),
}

/// One object file: headers are read, the rest waits until asked for.
///
/// Offsets in [`Segment`]s and [`Section`]s count from the start of the slice, offsets in errors from the start of the
/// outermost file (when parsed by [`Slice::parse`](crate::Slice::parse)).
///
/// Cheap to clone: all clones share what was read.
#[derive(Clone, Debug)]
pub struct Object<'d> {
    pub(crate) view: View<&'d [u8]>,
    pub(crate) headers: Arc<Headers<'d>>,
    pub(crate) limits: Limits,
    tables: Arc<Tables<'d>>,
    share: Share,
    budget: Arc<OnceLock<Budget>>,
    /// The section that addresses belong to, where several have the same ones.
    selected: Option<usize>,
}

/// Objects parsed by this process.
static PARSED: AtomicU64 = AtomicU64::new(0);

/// How many objects this process has parsed so far: tests see by it that no file is parsed twice.
#[doc(hidden)]
pub fn parse_count() -> u64 {
    PARSED.load(Ordering::Relaxed)
}

impl Headers<'_> {
    /// Notes sections that the data ends within or before. They are listed all the same.
    pub(crate) fn check_extent<'d, R: object::ReadRef<'d>>(&mut self, view: View<R>) {
        let mut sections = self.sections.iter().filter_map(|section| Some((section, section.file?)));
        let cut = sections.find(|(_, file)| !file.is_empty() && file.end().get() > view.len());
        if let Some((section, file)) = cut {
            let what = format!("section {} and what follows it", section.name);
            self.problems.push(view.truncated(file.start().get(), file.size(), &what));
        }
    }
}

impl<'d> Object<'d> {
    /// Reads the headers of one slice with the default [`Limits`]. Fat files, archives and shared caches are taken
    /// apart by [`slices`](crate::slices) before.
    pub fn parse(data: &'d [u8]) -> Result<Self> {
        Self::parse_with(data, &Limits::default())
    }

    /// Reads the headers of one slice.
    pub fn parse_with(data: &'d [u8], limits: &Limits) -> Result<Self> {
        let share = Share::whole(data.len() as u64);
        Self::parse_placed(View::of_slice(data, 0), &Placement::Whole, share, limits)
    }

    pub(crate) fn parse_placed(
        view: View<&'d [u8]>,
        placement: &Placement,
        share: Share,
        limits: &Limits,
    ) -> Result<Self> {
        PARSED.fetch_add(1, Ordering::Relaxed);
        let (mut headers, tables) = match placement {
            Placement::Whole if elf::is_elf(view) => {
                let (headers, tables) = elf::parse(view, limits)?;
                (headers, Tables::Elf(tables))
            }
            _ => {
                let (headers, tables) = macho::parse(view, placement, limits)?;
                (headers, Tables::MachO(tables))
            }
        };
        headers.check_extent(view);
        let (headers, tables, budget) = (Arc::new(headers), Arc::new(tables), Arc::default());
        Ok(Self { view, headers, limits: limits.clone(), tables, share, budget, selected: None })
    }

    /// The container format.
    pub fn format(&self) -> Format {
        self.headers.format
    }

    /// What the file is for.
    pub fn kind(&self) -> Kind {
        self.headers.kind
    }

    /// The architecture of its code.
    pub fn arch(&self) -> Arch {
        self.headers.arch
    }

    /// Whether the file uses the 64-bit layout. `arm64_32` has 64-bit registers and does not.
    pub fn is_64(&self) -> bool {
        self.headers.is_64
    }

    /// The order of bytes in its numbers.
    pub fn endian(&self) -> Endian {
        self.headers.endian
    }

    /// `LC_UUID`, the GNU build id, or for ELF programs and libraries without one a hash of their code. `None` where
    /// there is neither, or it is all zero.
    pub fn id(&self) -> Option<ImageId> {
        self.headers.id
    }

    /// The address that [`Rva`](backtrail_core::Rva)s of this image count from: `__TEXT`'s, or that of the lowest
    /// `LOAD` segment, rounded down to a page of 4 KiB. Zero for `.o` files.
    pub fn image_base(&self) -> Svma {
        self.headers.image_base
    }

    /// `e_entry`: where the kernel or the dynamic linker starts a program. Some linkers state the start of `.text` for
    /// libraries that nothing starts. `None` where it is zero, and for Mach-O, whose `main` is called as any function.
    pub fn entry(&self) -> Option<Svma> {
        self.headers.entry
    }

    /// Whether there is DWARF: a `.debug_info` section that has bytes.
    pub fn has_debug_info(&self) -> bool {
        self.headers.has_debug_info
    }

    /// Whether there is any table of symbols that is not empty: `.symtab`, `.dynsym`, `.gnu_debugdata`, `LC_SYMTAB`,
    /// exports, ELF's `.gopclntab`.
    pub fn has_symbols(&self) -> bool {
        self.headers.has_symbols
    }

    /// What was wrong in the headers and could be left out.
    pub fn problems(&self) -> &[Error] {
        &self.headers.problems
    }

    /// What a loader maps, in the file's order.
    pub fn segments(&self) -> &[Segment<'d>] {
        &self.headers.segments
    }

    /// All sections, in the file's order; ELF's section 0 is among them. For ELF files whose section headers were
    /// stripped off: what program headers say of `.dynamic`, `.eh_frame_hdr` and `.ARM.exidx`.
    pub fn sections(&self) -> &[Section<'d>] {
        &self.headers.sections
    }

    /// The section of that name, in any of its spellings (see [`Section::is_named`]); where there are several, the
    /// first that has bytes.
    pub fn section(&self, name: &str) -> Option<&Section<'d>> {
        let mut named = self.headers.sections.iter().filter(|section| section.is_named(name));
        let first = named.next()?;
        if first.file.is_some() {
            return Some(first);
        }
        named.find(|section| section.file.is_some()).or(Some(first))
    }

    /// A section's bytes, decompressed where they are compressed. Empty for sections without bytes in the file.
    ///
    /// # Errors
    /// Where the bytes are not in the file, do not decompress, or decompress to more than the [`Limits`] allow.
    pub fn section_data(&self, section: &Section<'_>) -> Result<Cow<'d, [u8]>> {
        match self.compressed(section)? {
            Some(compressed) => {
                self.budget().check(section, compressed.size, compressed.offset)?;
                let data = compressed.decompress().map_err(|error| error.in_section(&section.name));
                data.map(Cow::Owned)
            }
            None => self.raw_section_data(section).map(Cow::Borrowed),
        }
    }

    /// What the sections of this object may cost. From their headers, so that reading one needs no other.
    pub(crate) fn budget(&self) -> &Budget {
        self.budget.get_or_init(|| {
            let relocated = match &*self.tables {
                Tables::Elf(tables) => elf::relocations::targets(tables),
                Tables::MachO(_) => HashSet::new(),
            };
            let cost = |section: &Section<'d>| match self.compressed(section) {
                Ok(Some(compressed)) => Some(Cost {
                    section: section.index,
                    bytes: compressed.size,
                    compressed: Some(compressed),
                }),
                Ok(None) if relocated.contains(&section.index) => {
                    let bytes = section.file.map_or(0, AddrRange::size);
                    Some(Cost { section: section.index, bytes, compressed: None })
                }
                // Reading it fails in the same way.
                _ => None,
            };
            let costs = self.headers.sections.iter().filter_map(cost);
            Budget::new(costs, self.view.len(), self.share, &self.limits)
        })
    }

    /// A section's bytes as [`section_data`](Self::section_data) gives them; in an ELF `.o` or kernel module with its
    /// relocations applied, as if every section lay where its header says.
    ///
    /// There all code sections lie at zero, one over the other: an address means the first one that is long enough to
    /// have it. What the others have there ([`shadow_ends`](Self::shadow_ends)) gets an address that means dropped code
    /// (-2), so that readers leave it out.
    ///
    /// # Errors
    /// As [`section_data`](Self::section_data), and where a relocation is of an unknown kind: the bytes would be wrong.
    pub fn relocated_section_data(&self, section: &Section<'_>) -> Result<Cow<'d, [u8]>> {
        let mut data = self.section_data(section)?;
        if let Tables::Elf(tables) = &*self.tables
            && elf::relocations::concern(tables, section)
        {
            self.budget().check(section, data.len() as u64, self.offset_of(section))?;
            elf::relocations::apply(self, tables, section, data.to_mut())?;
        }
        Ok(data)
    }

    /// Selects the section that addresses of an ELF `.o` or kernel module belong to, where several sections have them: the
    /// first of this name. In other files, and where there is none of this name, nothing changes. Clones that were made
    /// before are not concerned.
    pub fn select_section(&mut self, name: &str) {
        let mut sections = self.headers.sections.iter();
        self.selected = sections.position(|section| section.name == name && section.is_loaded);
    }

    /// For each section of an ELF `.o` or kernel module, the end of the addresses that do not mean it: there code
    /// sections lie one over the other from zero on, and an address means the first that is long enough to have it,
    /// if not another one [is selected](Self::select_section). Zero for sections that are no code, and in files where each has
    /// addresses of its own.
    pub fn shadow_ends(&self) -> Vec<Svma> {
        let is_stacked = self.kind() == Kind::Relocatable && self.format() == Format::Elf;
        let mut end = Svma::new(0);
        let shadow_end = |(index, section): (usize, &Section<'_>)| {
            if !(is_stacked && section.is_code && section.is_loaded) {
                return Svma::new(0);
            }
            if let Some(selected) = self.selected {
                return Svma::new(if selected == index { 0 } else { u64::MAX });
            }
            let before = end;
            end = end.max(section.address.end());
            before
        };
        self.headers.sections.iter().enumerate().map(shadow_end).collect()
    }

    /// How many bytes [`section_data`](Self::section_data) would give, without decompressing.
    pub fn section_size(&self, section: &Section<'_>) -> Result<u64> {
        match self.compressed(section)? {
            Some(compressed) => Ok(compressed.size),
            None => Ok(section.file.map_or(0, AddrRange::size)),
        }
    }

    /// A section's bytes as they are in the file.
    pub(crate) fn raw_section_data(&self, section: &Section<'_>) -> Result<&'d [u8]> {
        let Some(file) = section.file else { return Ok(&[]) };
        self.view.bytes(file.start().get(), file.size(), &format!("section {}", section.name))
    }

    /// Where its bytes start in the outermost file.
    fn offset_of(&self, section: &Section<'_>) -> u64 {
        self.view.absolute(section.file.map_or(0, |file| file.start().get()))
    }

    fn compressed(&self, section: &Section<'_>) -> Result<Option<Compressed<'d>>> {
        if !section.is_compressed {
            return Ok(None);
        }
        let bytes = self.raw_section_data(section)?;
        let offset = self.offset_of(section);
        // A section can have the old name and the new header, when a tool compressed it again.
        if self.headers.format == Format::MachO || bytes.starts_with(b"ZLIB") {
            return crate::compress::gnu(bytes, offset).map(Some);
        }
        elf::sections::compressed(bytes, offset, self.headers.is_64, self.headers.endian).map(Some)
    }

    /// The bytes that are mapped at `address`, as many of `size` as the segment has in the file.
    pub fn bytes_at(&self, address: Svma, size: u64) -> Option<&'d [u8]> {
        let segment = self.headers.segments.iter().find(|segment| {
            segment.address.contains(address)
                && address.offset_from(segment.address.start()).is_some_and(|at| at < segment.file.size())
        })?;
        let at = address.offset_from(segment.address.start())?;
        let size = size.min(segment.file.size() - at);
        let start = segment.file.start().checked_add(at)?;
        self.view.bytes_up_to(start.get(), size, "mapped bytes").ok()
    }

    /// Every defined symbol of code or data, from every table of the file, in no particular order. Left out: stabs,
    /// undefined, absolute and common symbols, section and file symbols, thread-local ones (their values are no
    /// addresses), ARM's mapping symbols, re-exports. Several names for one address are all there; see
    /// [`Symbol::preference`].
    ///
    /// A name that no table spells is in [`gnu_debugdata`](Self::gnu_debugdata), which is an object of its own.
    ///
    /// # Errors
    /// Where a table is broken and no other gave a single symbol; [`symbols_and_problems`](Self::symbols_and_problems)
    /// tells both.
    pub fn symbols(&self) -> Result<Vec<Symbol<'d>>> {
        let (symbols, problems) = self.symbols_and_problems();
        match problems.into_iter().next() {
            Some(problem) if symbols.is_empty() => Err(problem),
            _ => Ok(symbols),
        }
    }

    /// As [`symbols`](Self::symbols), with what was wrong in tables that were left out.
    pub fn symbols_and_problems(&self) -> (Vec<Symbol<'d>>, Vec<Error>) {
        match &*self.tables {
            Tables::MachO(tables) => macho::symbols(self, tables),
            Tables::Elf(tables) => elf::symbols(self, tables),
        }
    }

    /// Where functions start, ascending, each once, the Thumb bit cleared: `LC_FUNCTION_STARTS`; for ELF the search
    /// table of `.eh_frame_hdr`, or `.ARM.exidx`, of which stripped files keep at least one. Empty where there is none.
    pub fn function_starts(&self) -> Result<Vec<Svma>> {
        match &*self.tables {
            Tables::MachO(tables) => macho::function_starts::read(self, tables),
            Tables::Elf(tables) => elf::function_starts::read(self, tables),
        }
    }

    /// The fields that a linker fills in, of each section of a relocatable file; in step with the sections, each list
    /// sorted by place. Empty lists for linked images.
    ///
    /// # Errors
    /// Where the symbol table or a list leaves the file.
    pub fn relocations(&self) -> Result<Vec<Vec<Relocation<'d>>>> {
        if self.kind() != Kind::Relocatable {
            return Ok(vec![Vec::new(); self.headers.sections.len()]);
        }
        match &*self.tables {
            Tables::MachO(tables) => macho::linking::relocations(self, tables),
            Tables::Elf(tables) => elf::linking::relocations(self, tables),
        }
    }

    /// The instructions of a Mach-O `.o` that a linker may rewrite besides those with relocations; ascending.
    pub fn optimization_hints(&self) -> Vec<Svma> {
        match &*self.tables {
            Tables::MachO(tables) => macho::linking::optimization_hints(self, tables),
            Tables::Elf(_) => Vec::new(),
        }
    }

    /// Whether a linker may move or drop each symbol's part of a section alone: Mach-O's `MH_SUBSECTIONS_VIA_SYMBOLS`. ELF
    /// has sections for that.
    pub fn has_subsections(&self) -> bool {
        match &*self.tables {
            Tables::MachO(tables) => macho::linking::has_subsections(self, tables),
            Tables::Elf(_) => false,
        }
    }

    /// Slots of a linked image that the dynamic linker fills by name, and for Mach-O the stubs that jump through them; by
    /// address. In ELF the name may be the image's own, where another image may take its place.
    ///
    /// # Errors
    /// Where the tables that name them leave the file.
    pub fn imports(&self) -> Result<Vec<Import<'d>>> {
        match &*self.tables {
            Tables::MachO(tables) => macho::linking::imports(self, tables),
            Tables::Elf(tables) => elf::linking::imports(self, tables),
        }
    }

    /// Pointers of a linked ELF image that the dynamic linker only moves, and those to what the image defines itself: where
    /// they are and what they hold, by place. Empty for Mach-O, and where they are packed (`SHT_RELR`).
    ///
    /// # Errors
    /// Where the tables that list them leave the file.
    pub fn moved_pointers(&self) -> Result<Vec<(Svma, Svma)>> {
        match &*self.tables {
            Tables::MachO(_) => Ok(Vec::new()),
            Tables::Elf(tables) => elf::linking::moved_pointers(self, tables),
        }
    }

    /// Reads pointers of a Mach-O file as a loader or linker would; `None` for ELF.
    pub fn pointers(&self) -> Option<Pointers<'d>> {
        match &*self.tables {
            Tables::MachO(tables) => Some(Pointers::new(self, tables)),
            Tables::Elf(_) => None,
        }
    }

    /// For people: Mach-O's load commands, ELF's program headers and dynamic entries.
    pub fn load_commands(&self) -> Vec<LoadCommand> {
        match &*self.tables {
            Tables::MachO(tables) => macho::load_commands::describe(tables),
            Tables::Elf(tables) => elf::load_commands::describe(self, tables),
        }
    }

    /// The object files that a Mach-O image was linked from, with the linked addresses of their functions; what
    /// `dsymutil` would read. Empty where it was stripped off, and for ELF.
    pub fn debug_map(&self) -> Vec<DebugMapEntry<'d>> {
        match &*self.tables {
            Tables::MachO(tables) => macho::debug_map::read(self, tables),
            Tables::Elf(_) => Vec::new(),
        }
    }

    /// The name and checksum of the file with this one's debug info.
    pub fn debug_link(&self) -> Option<DebugLink<'d>> {
        elf::links::debug_link(self)
    }

    /// The file that several debug files share (`dwz`).
    pub fn debug_alt_link(&self) -> Option<DebugAltLink<'d>> {
        elf::links::debug_alt_link(self)
    }

    /// The ELF file inside `.gnu_debugdata`, decompressed: symbols of functions that `.dynsym` does not list.
    pub fn gnu_debugdata(&self) -> Option<Result<Vec<u8>>> {
        elf::gnu_debugdata::read(self)
    }
}
