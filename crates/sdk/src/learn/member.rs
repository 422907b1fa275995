//! One object file of a library.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use backtrail_core::{Family, Svma};
use backtrail_object::{
    Binding, Format, Object, Pointers, Relocation, RelocationKind, RelocationTarget, Section, Symbol,
};

use super::literals::{Content, ElfMemory, MachMemory, Memory, literal};
use crate::error::Result;
use crate::fingerprint::{Reach, Shape, Target};
use crate::hash::{Digest, Domain};
use crate::isa::{Form, Isa};
use crate::objc::{Classes, class_digest};
use crate::sections::loaded_data;

/// Gives the address of a thread's variable: <https://www.akkadia.org/drepper/tls.pdf>, section 3.4.
const TLS_GET_ADDR: &str = "__tls_get_addr";

/// Bytes of a shape's part: a fingerprint has four bits for them.
const LONGEST_FIELD: u32 = 15;

/// Functions of one object file: more were never seen.
const MAX_FUNCTIONS: usize = 1 << 20;

/// A place in the member: section and address.
pub(super) type SectionAddress = (usize, Svma);

/// What a reference names, before the names of all members are known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Raw {
    /// By its number in the member.
    Function(u32),
    Data(SectionAddress),
    Undefined(String),
    Known(Target),
}

#[derive(Clone, Debug)]
pub(super) struct RawReference {
    pub(super) at: u32,
    pub(super) page_at: u32,
    pub(super) form: Form,
    pub(super) bias: i32,
    pub(super) target: Raw,
}

#[derive(Clone, Debug)]
pub(super) struct MemberFunction {
    pub(super) name: String,
    pub(super) reach: Reach,
    pub(super) len: u32,
    pub(super) outline: Digest,
    pub(super) body: Digest,
    pub(super) shape: Shape,
    pub(super) references: Vec<RawReference>,
    pub(super) span: u32,
    pub(super) returns: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: Digest,
    pub(super) functions: Vec<MemberFunction>,
    /// Names that other members may mean.
    pub(super) exports: Vec<(String, Raw)>,
    pub(super) methods: Vec<(Digest, Digest, u32)>,
    pub(super) classes: Vec<Digest>,
    pub(super) pointers: Vec<(SectionAddress, u32, Raw)>,
    /// Data that another definition may take the place of.
    pub(super) weak_data: BTreeSet<SectionAddress>,
}

impl Member {
    /// What is to be known of an object file; nothing where it has no code, or for an unknown processor.
    pub(super) fn read(object: &Object<'_>, name: &str) -> Result<Option<Self>> {
        let Some(isa) = Isa::of(object.arch()) else { return Ok(None) };
        let pointers = object.pointers();
        let data = loaded_data(object);
        let classes = pointers.as_ref().map(|pointers| Classes::read(object, pointers)).unwrap_or_default();
        let reader = Reader {
            object,
            isa,
            symbols: symbols_by_place(object),
            sections: &data,
            relocations: object.relocations()?,
            hints: object.optimization_hints(),
            pointers: pointers.as_ref(),
            classes: &classes,
        };
        Ok(reader.member(name))
    }

    /// Whether both have the same code, as the same source compiled for a device and a simulator may.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let bodies =
            |member: &Self| member.functions.iter().map(|function| function.body).collect::<Vec<_>>();
        self.name == other.name
            && self.functions.len() == other.functions.len()
            && bodies(self) == bodies(other)
    }
}

/// Symbols by section and address; of several at one place the best name first.
fn symbols_by_place<'d>(object: &Object<'d>) -> Vec<(SectionAddress, Symbol<'d>)> {
    let symbols = object.symbols().unwrap_or_default().into_iter();
    let is_label = if object.format() == Format::MachO { is_mach_os_label } else { is_elfs_label };
    let mut placed: Vec<_> = symbols
        .filter(|symbol| !is_label(&symbol.name))
        .filter_map(|symbol| Some(((symbol.section?, symbol.address), symbol)))
        .collect();
    placed.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| y.preference().cmp(&x.preference())));
    placed
}

/// Names that the assembler makes, of places that are no functions. Functions of C have an underscore in front.
fn is_mach_os_label(name: &str) -> bool {
    name.starts_with("ltmp") || name.starts_with('L')
}

/// The same in ELF, where functions have their own names: `LZ4_compress`.
fn is_elfs_label(name: &str) -> bool {
    name.starts_with(".L")
}

fn reach(binding: Binding) -> Reach {
    match binding {
        Binding::Local => Reach::Local,
        Binding::Weak => Reach::Weak,
        Binding::Global => Reach::Global,
    }
}

struct Reader<'a, 'd> {
    object: &'a Object<'d>,
    isa: Isa,
    symbols: Vec<(SectionAddress, Symbol<'d>)>,
    sections: &'a [Cow<'a, [u8]>],
    relocations: Vec<Vec<Relocation<'d>>>,
    hints: Vec<Svma>,
    pointers: Option<&'a Pointers<'d>>,
    classes: &'a Classes,
}

/// Where functions start, with their numbers.
type Starts = HashMap<SectionAddress, u32>;

impl Reader<'_, '_> {
    fn is_code(&self, section: usize) -> bool {
        self.object.sections().get(section).is_some_and(|section| section.is_code && section.is_loaded)
    }

    fn member(&self, name: &str) -> Option<Member> {
        let places = self.function_places();
        if places.is_empty() {
            return None;
        }
        let numbers = 0..u32::try_from(places.len()).ok()?;
        let starts: Starts = places.iter().copied().zip(numbers).collect();
        let functions: Vec<MemberFunction> = places
            .iter()
            .enumerate()
            .map(|(index, place)| self.function(*place, places.get(index + 1), &starts))
            .collect();
        let method = |method: &crate::objc::Method| {
            let section = self.section_of(method.address)?;
            Some((method.owner, method.selector, *starts.get(&(section, method.address))?))
        };
        let mut methods: Vec<_> = self.classes.methods.iter().filter_map(method).collect();
        methods.sort_unstable();
        methods.dedup();
        let mut classes: Vec<_> = self.classes.objects.values().copied().collect();
        classes.sort_unstable();
        let exports = self.symbols.iter().filter(|(_, symbol)| symbol.binding != Binding::Local);
        let exports = exports.map(|(place, symbol)| (symbol.name.to_string(), self.raw(*place, &starts)));
        Some(Member {
            name: Digest::of(Domain::Name, name.as_bytes()),
            functions,
            exports: exports.collect(),
            methods,
            classes,
            pointers: self.data_pointers(&starts),
            weak_data: self.weak_data(),
        })
    }

    fn raw(&self, place: SectionAddress, starts: &Starts) -> Raw {
        starts.get(&place).map_or(Raw::Data(place), |number| Raw::Function(*number))
    }

    /// The section of an address, where each has addresses of its own (Mach-O).
    fn section_of(&self, address: Svma) -> Option<usize> {
        self.object
            .sections()
            .iter()
            .position(|section| section.is_loaded && section.address.contains(address))
    }

    /// Where functions start: at symbols of code, and at methods, whose symbols may have been stripped.
    fn function_places(&self) -> Vec<SectionAddress> {
        let of_symbols = self.symbols.iter().map(|(place, _)| *place);
        let methods = self.classes.methods.iter();
        let of_methods =
            methods.filter_map(|method| Some((self.section_of(method.address)?, method.address)));
        let is_inside = |place: &SectionAddress| {
            self.object.sections().get(place.0).is_some_and(|section| section.address.contains(place.1))
        };
        let mut places: Vec<SectionAddress> = of_symbols
            .chain(of_methods)
            .filter(|place| self.is_code(place.0) && is_inside(place))
            .take(MAX_FUNCTIONS)
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    fn function(
        &self,
        place: SectionAddress,
        next: Option<&SectionAddress>,
        starts: &Starts,
    ) -> MemberFunction {
        let (section, start) = place;
        let header = self.object.sections().get(section);
        let base = header.map_or(Svma::new(0), |section| section.address.start());
        let bytes = self.sections.get(section).map(AsRef::as_ref).unwrap_or_default();
        let offset = |address: Svma| {
            address
                .offset_from(base)
                .and_then(|at| usize::try_from(at).ok())
                .unwrap_or(bytes.len())
                .min(bytes.len())
        };
        let end = next.filter(|next| next.0 == section).map_or(bytes.len(), |next| offset(next.1));
        let code = bytes.get(offset(start)..end).unwrap_or_default();
        let outline = self.isa.outline(code);
        let (shape, references) = self.references(section, offset(start), outline.len, starts);
        let at = self.symbols.partition_point(|(other, _)| *other < place);
        let symbol = self.symbols.get(at).filter(|(other, _)| *other == place).map(|(_, symbol)| symbol);
        let is_last = next.is_none_or(|next| next.0 != section);
        let span = (end - offset(start)) as u64;
        let span = if is_last { span.next_multiple_of(self.isa.alignment()) } else { span };
        let mut returns = Vec::new();
        self.isa.calls((start, code.get(..outline.len).unwrap_or_default()), &mut |behind, _| {
            returns.extend(u32::try_from(behind));
        });
        MemberFunction {
            span: u32::try_from(span).unwrap_or(u32::MAX),
            returns,
            name: symbol.map(|symbol| symbol.name.to_string()).unwrap_or_default(),
            reach: symbol.map_or(Reach::Local, |symbol| reach(symbol.binding)),
            len: u32::try_from(outline.len).unwrap_or(u32::MAX),
            outline: outline.digest,
            body: body(code.get(..outline.len).unwrap_or_default(), &shape),
            shape,
            references,
        }
    }

    /// What a linker fills in between `start` and `start + len` of a section, and what it names.
    fn references(
        &self,
        section: usize,
        start: usize,
        len: usize,
        starts: &Starts,
    ) -> (Shape, Vec<RawReference>) {
        let relocations = self.relocations.get(section).map(Vec::as_slice).unwrap_or_default();
        let from = relocations.partition_point(|relocation| relocation.offset < start as u64);
        let inside = relocations.get(from..).unwrap_or_default().iter();
        let inside = inside.take_while(|relocation| relocation.offset < (start + len) as u64);
        let mut shape: Shape = self.hinted(section, start, len);
        let mut references = Vec::new();
        let mut pages: Vec<(&RelocationTarget<'_>, i64, u32)> = Vec::new();
        for relocation in inside {
            let at = u32::try_from(relocation.offset - start as u64).unwrap_or(u32::MAX);
            let form = match relocation.kind {
                RelocationKind::Page | RelocationKind::SlotPage => {
                    pages.push((&relocation.target, relocation.addend, at));
                    None
                }
                RelocationKind::PageOffset => Some(Form::Pair),
                RelocationKind::SlotPageOffset => Some(Form::SlotPair),
                RelocationKind::Branch => Some(Form::Branch),
                RelocationKind::Relative => Some(Form::Relative),
                RelocationKind::RelativeToSlot => Some(Form::SlotRelative),
                _ => None,
            };
            let before = form.map_or(0, |form| self.isa.rewritten_before(form)).min(at);
            shape.push((at - before, relocation.size.saturating_add(u8::try_from(before).unwrap_or(0))));
            let mut pages = pages.iter().rev();
            let is_same = |page: &&(&RelocationTarget<'_>, i64, u32)| {
                *page.0 == relocation.target && page.1 == relocation.addend
            };
            let page_at = pages.find(is_same).map(|page| page.2);
            // Programs read their threads' variables without it.
            let is_called = relocation.target != RelocationTarget::Undefined(TLS_GET_ADDR.into());
            if let Some(form) = form.filter(|_| is_called)
                && let Some((target, bias)) = self.target(relocation, starts)
            {
                let is_pair = matches!(form, Form::Pair | Form::SlotPair);
                let page_at = if is_pair { page_at } else { Some(at) };
                let Some(page_at) = page_at else { continue };
                references.push(RawReference { at, page_at, form, bias, target });
            }
        }
        (tidy(shape, len), references)
    }

    /// Instructions that a linker may rewrite although they have no relocation.
    fn hinted(&self, section: usize, start: usize, len: usize) -> Shape {
        let base =
            self.object.sections().get(section).map_or(Svma::new(0), |section| section.address.start());
        let Some(first) = base.checked_add(start as u64) else { return Shape::new() };
        let from = self.hints.partition_point(|hint| *hint < first);
        let hints = self.hints.get(from..).unwrap_or_default().iter();
        let offsets = hints.map_while(|hint| hint.offset_from(first).filter(|at| *at < len as u64));
        offsets.filter_map(|at| Some((u32::try_from(at).ok()?, 4))).collect()
    }

    /// What a relocation names, and what is added to its address.
    fn target(&self, relocation: &Relocation<'_>, starts: &Starts) -> Option<(Raw, i32)> {
        let bias = i32::try_from(relocation.addend).ok()?;
        match &relocation.target {
            RelocationTarget::Undefined(name) => Some((Raw::Undefined(name.to_string()), bias)),
            RelocationTarget::Defined { name, section, address, binding } => {
                let is_elf = self.object.format() == Format::Elf;
                let is_x86 = matches!(self.object.arch().family(), Family::X86 | Family::X86_64);
                let place = match name {
                    Some(_) => (*section, *address),
                    // The start of an ELF section with an addend; on x86 the addend also has the field's size.
                    None if is_elf => {
                        let size = if is_x86 { 4 } else { 0 };
                        let address = address.get().wrapping_add_signed(relocation.addend + size);
                        return Some((
                            self.known((*section, Svma::new(address)), starts),
                            -i32::try_from(size).ok()?,
                        ));
                    }
                    None => (*section, *address),
                };
                if *binding == Binding::Weak
                    && let Some(name) = name
                    && !self.is_code(place.0)
                {
                    return Some((Raw::Undefined(name.to_string()), bias));
                }
                Some((self.known(place, starts), bias))
            }
            _ => None,
        }
    }

    /// A place of this object: a function, a text, or other data.
    fn known(&self, place: SectionAddress, starts: &Starts) -> Raw {
        if let Some(number) = starts.get(&place) {
            return Raw::Function(*number);
        }
        let content = self.object.sections().get(place.0).map_or(Content::Other, Content::of);
        if content == Content::Classes
            && let Some(class) = self.class_at(place)
        {
            return Raw::Known(Target::Class(class));
        }
        let literal = match self.pointers {
            Some(pointers) => {
                literal(&MachMemory { object: self.object, pointers }, content, place.0, place.1)
            }
            None => {
                let memory = ElfMemory { sections: self.sections };
                let memory: Option<&dyn Memory> =
                    memory.is_start(content, place.0, place.1).then_some(&memory);
                memory.and_then(|memory| literal(memory, content, place.0, place.1))
            }
        };
        literal.map_or(Raw::Data(place), Raw::Known)
    }

    /// The class that a slot for one refers to.
    fn class_at(&self, (section, address): SectionAddress) -> Option<Digest> {
        let base = self.object.sections().get(section)?.address.start();
        let offset = address.offset_from(base)?;
        let relocations = self.relocations.get(section)?;
        let at = relocations.binary_search_by_key(&offset, |relocation| relocation.offset).ok()?;
        match &relocations.get(at)?.target {
            RelocationTarget::Undefined(name) | RelocationTarget::Defined { name: Some(name), .. } => {
                let class = name.strip_prefix("_OBJC_CLASS_$_").or(name.strip_prefix("_OBJC_METACLASS_$_"));
                class.map(|class| class_digest(class.as_bytes()))
            }
            _ => None,
        }
    }

    /// Pointers in data that code may refer to: tables of functions, blocks, virtual tables.
    fn data_pointers(&self, starts: &Starts) -> Vec<(SectionAddress, u32, Raw)> {
        let mut found = Vec::new();
        for (section, header) in self.object.sections().iter().enumerate() {
            if !is_plain_data(header) {
                continue;
            }
            let base = header.address.start();
            for relocation in self.relocations.get(section).into_iter().flatten() {
                if relocation.kind != RelocationKind::Absolute {
                    continue;
                }
                let Some(place) = base.checked_add(relocation.offset) else { continue };
                let Some((start, _)) = self.symbol_before((section, place)) else { continue };
                let Some((target, _)) = self.target(relocation, starts) else { continue };
                if relocation.addend != 0
                    && matches!(&relocation.target, RelocationTarget::Defined { name: Some(_), .. })
                {
                    continue;
                }
                let offset = place.offset_from(start.1).and_then(|offset| u32::try_from(offset).ok());
                if let Some(offset) = offset
                    && matches!(target, Raw::Function(_) | Raw::Undefined(_) | Raw::Data(_))
                {
                    found.push((*start, offset, target));
                }
            }
        }
        found
    }

    fn weak_data(&self) -> BTreeSet<SectionAddress> {
        let weak = self
            .symbols
            .iter()
            .filter(|(place, symbol)| symbol.binding == Binding::Weak && !self.is_code(place.0));
        weak.map(|(place, _)| *place).collect()
    }

    fn symbol_before(&self, place: SectionAddress) -> Option<&(SectionAddress, Symbol<'_>)> {
        let after = self.symbols.partition_point(|(other, _)| *other <= place);
        let last = self.symbols.get(after.checked_sub(1)?)?.0;
        let first = self.symbols.partition_point(|(other, _)| *other < last);
        self.symbols.get(first).filter(|(other, _)| other.0 == place.0)
    }
}

fn is_plain_data(section: &Section<'_>) -> bool {
    section.is_loaded
        && !section.is_code
        && !section.name.starts_with("__objc")
        && !matches!(&*section.name, "__compact_unwind" | "__eh_frame" | ".eh_frame" | "__cfstring")
}

/// The bytes of a function without what a linker fills in.
pub(crate) fn body(code: &[u8], shape: &[(u32, u8)]) -> Digest {
    let mut bytes = code.to_vec();
    for (at, size) in shape {
        let at = usize::try_from(*at).unwrap_or(usize::MAX);
        let end = at.saturating_add(usize::from(*size)).min(bytes.len());
        if let Some(field) = bytes.get_mut(at..end) {
            field.fill(0);
        }
    }
    Digest::of(Domain::Body, &bytes)
}

/// Ascending, without overlaps, and nothing behind `len`.
fn tidy(mut shape: Shape, len: usize) -> Shape {
    shape.sort_unstable();
    let mut tidied: Shape = Vec::with_capacity(shape.len());
    for (at, size) in shape {
        let mut at = at;
        let mut end = at.saturating_add(size.into()).min(u32::try_from(len).unwrap_or(u32::MAX));
        if let Some((last, last_size)) = tidied.last() {
            at = at.max(last.saturating_add((*last_size).into()));
        }
        end = end.max(at);
        while let Ok(size @ 1..) = u8::try_from((end - at).min(LONGEST_FIELD)) {
            tidied.push((at, size));
            at += u32::from(size);
        }
    }
    tidied
}
