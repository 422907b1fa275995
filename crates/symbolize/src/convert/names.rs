//! The names of functions, each read once.

use super::fast_map::{FastMap, OffsetMap};
use crate::dwarf::{Plan, Value, View, collect_names, follow, qualify, read_stated, scopes_of_all};
use backtrail_table::{Builder, FunctionHead, Language, NameId, StringId};

/// Names as a table keeps them. Belongs to one worker.
pub(super) struct Names<'b> {
    builder: &'b Builder,
    /// Strings of the sections by where they lie in memory: most are asked for many times.
    strings: FastMap<usize, SeenString>,
    /// What each DIE that was asked for is called; an index into `called`.
    by_die: OffsetMap,
    /// The same for DIEs in other units and files: by where the file's DIEs lie in memory, and offset. Indices into `far`.
    by_far_die: FastMap<(usize, u64), Called>,
    called: Vec<Called>,
    /// What was asked for in this unit, each with its index in `called`.
    keys: Vec<(NameKey, u32)>,
    /// That of the unit.
    language: Language,
    /// The builder's numbers of these.
    numbers: Vec<NameId>,
    unscoped: Vec<Unscoped>,
    /// Their names.
    unscoped_names: Vec<u8>,
}

/// A string that was met.
#[derive(Clone, Copy)]
struct SeenString {
    id: StringId,
    /// Whether a readable name can be made of it.
    is_mangled: bool,
    /// The number of what is called this and nothing else, and the language that it is for.
    number: (Language, NameId),
}

/// What stands before the first zero.
fn text(tail: &[u8]) -> Option<&[u8]> {
    Some(std::ffi::CStr::from_bytes_until_nul(tail).ok()?.to_bytes())
}

/// LLVM writes `\x01` before names that are to be taken as they are.
fn without_mark(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"\x01").unwrap_or(name)
}

/// Where the names of a function or call are stated: in a DIE of its unit by section offset, or in another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct NameKey(u64);

const FAR: u64 = 1 << 63;
const SUPPLEMENTARY: u64 = 1 << 62;
/// No section reaches that far.
const MAX_OFFSET: u64 = SUPPLEMENTARY - 1;

impl NameKey {
    /// Of the DIE at a section offset; `origin` where it has its names from there alone.
    #[inline]
    pub(super) fn new(view: View<'_, '_>, die: u64, origin: Option<Value>) -> Self {
        let unit = &view.unit.header;
        Self(match origin {
            Some(Value::UnitRef(offset)) => unit.offset.saturating_add(offset).min(MAX_OFFSET),
            Some(Value::InfoRef(offset)) if (unit.offset..unit.end).contains(&offset) => offset,
            Some(Value::InfoRef(offset)) => offset.min(MAX_OFFSET) | FAR,
            Some(Value::SupRef(offset)) => offset.min(MAX_OFFSET) | FAR | SUPPLEMENTARY,
            Some(_) | None => die,
        })
    }

    /// The reference to a DIE of another unit or file.
    fn far(self) -> Option<Value> {
        match self.0 & (FAR | SUPPLEMENTARY) {
            0 => None,
            FAR => Some(Value::InfoRef(self.0 & MAX_OFFSET)),
            _ => Some(Value::SupRef(self.0 & MAX_OFFSET)),
        }
    }
}

/// A DIE whose scopes are still to be found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Unscoped {
    /// Section offset.
    die: u64,
    /// Index in `called`.
    called: u32,
    /// Its name in `unscoped_names`.
    name: (usize, usize),
}

/// What a function is called.
#[derive(Clone, Copy, Default)]
pub(super) struct Called {
    pub(super) linkage: Option<StringId>,
    pub(super) plain: Option<StringId>,
    pub(super) qualified: Option<StringId>,
    /// Whether the linkage name is one that a readable name can be made of.
    is_mangled: bool,
    /// Its number, where that is known already.
    number: Option<NameId>,
}

impl<'b> Names<'b> {
    pub(super) fn new(builder: &'b Builder) -> Self {
        Self {
            builder,
            strings: FastMap::default(),
            by_die: OffsetMap::default(),
            by_far_die: FastMap::default(),
            called: Vec::new(),
            keys: Vec::new(),
            language: Language(0),
            numbers: Vec::new(),
            unscoped: Vec::new(),
            unscoped_names: Vec::new(),
        }
    }

    /// Forgets what belongs to the last unit. So many DIEs will be asked for.
    pub(super) fn next_unit(&mut self, language: Language, count: usize) {
        self.language = language;
        self.by_die.restart(count);
        self.called.clear();
        self.keys.clear();
        self.unscoped.clear();
        self.unscoped_names.clear();
    }

    /// The number of what a function or call is called, once all names of the unit are found.
    pub(super) fn of(&mut self, key: NameKey) -> u32 {
        if let Some(known) = self.by_die.get(key.0) {
            return known;
        }
        let index = self.keys.len() as u32;
        self.keys.push((key, index));
        self.by_die.insert(key.0, index);
        index
    }

    /// Finds the names of all that was asked for. `plan` is that of the unit.
    pub(super) fn find_all(&mut self, view: View<'_, '_>, plan: &Plan) {
        let mut keys = std::mem::take(&mut self.keys);
        self.called.resize(keys.len(), Called::default());
        // In the order of the file, what is read lies near what was read before.
        keys.sort_unstable();
        for (key, index) in &keys {
            let called = match key.far() {
                Some(far) => self.far(view, far, *key),
                None => self.near(view, Some(plan), key.0, Some(*index)),
            };
            if let Some(slot) = self.called.get_mut(*index as usize) {
                *slot = called;
            }
        }
        self.keys = keys;
        self.find_scopes(view);
        self.number_all();
    }

    fn far(&mut self, view: View<'_, '_>, origin: Value, key: NameKey) -> Called {
        let key = (view.section_address(), key.0);
        if let Some(known) = self.by_far_die.get(&key) {
            return *known;
        }
        let called = follow(view, origin).map(|(view, die)| self.near(view, None, die, None));
        // Units of another language may ask for it, too.
        let called = Called { number: None, ..called.unwrap_or_default() };
        self.by_far_die.insert(key, called);
        called
    }

    /// Reads names from a DIE on. Where a scope belongs before them, it is put off for a DIE of this unit (`index`).
    fn near<'a, 'd>(
        &mut self,
        view: View<'a, 'd>,
        plan: Option<&Plan>,
        die: u64,
        index: Option<u32>,
    ) -> Called {
        let stated = |at: View<'a, 'd>, die| {
            let plan = plan.filter(|_| at.is_same_unit(view));
            let known = plan.and_then(|plan| plan.stated(&at.body.abbrevs, &mut at.reader(die)));
            known.unwrap_or_else(|| read_stated(at, die))
        };
        // Most names were met before: how long they are need not be found out again.
        let start =
            |view: View<'a, 'd>, value| view.string_tail(value).filter(|tail| !matches!(tail, [] | [0, ..]));
        let (names, unscoped) = collect_names(view, die, stated, start);
        let mut called = Called::default();
        if let Some(tail) = names.linkage.map(without_mark)
            && let Some(linkage) = self.string(tail)
        {
            called.linkage = Some(linkage.id);
            called.is_mangled = linkage.is_mangled;
            called.number = linkage.is_mangled.then(|| self.number(tail, linkage));
        }
        if !called.is_mangled {
            called.plain = names.plain.and_then(|tail| Some(self.string(tail)?.id));
        }
        if let (Some((other, die)), Some(plain)) = (unscoped, names.plain.and_then(text)) {
            match index {
                Some(called) if other.is_same_unit(view) => {
                    let start = self.unscoped_names.len();
                    self.unscoped_names.extend(plain);
                    let name = (start, self.unscoped_names.len());
                    self.unscoped.push(Unscoped { die, called, name });
                }
                _ => {
                    let qualified = qualify(other, die, plain);
                    called.qualified = qualified.map(|name| self.builder.string(name.as_bytes()));
                }
            }
        }
        called
    }

    /// The number of the string that starts here and ends with a zero.
    fn string(&mut self, tail: &[u8]) -> Option<SeenString> {
        let place = tail.as_ptr().addr();
        if let Some(known) = self.strings.get(&place) {
            return Some(*known);
        }
        let text = text(tail)?;
        let number = (Language(0), NameId::default());
        let kept = SeenString { id: self.builder.string(text), is_mangled: is_mangled(text), number };
        self.strings.insert(place, kept);
        Some(kept)
    }

    /// The number of what has this linkage name, of which a readable one can be made.
    fn number(&mut self, tail: &[u8], linkage: SeenString) -> NameId {
        let (language, number) = linkage.number;
        if language == self.language && number != NameId::default() {
            return number;
        }
        let head = FunctionHead { name: None, linkage_name: Some(linkage.id), language: self.language };
        let number = self.builder.name(head);
        let kept = SeenString { number: (self.language, number), ..linkage };
        self.strings.insert(tail.as_ptr().addr(), kept);
        number
    }

    /// Finds the scopes of all names that were asked for in this unit.
    fn find_scopes(&mut self, view: View<'_, '_>) {
        self.unscoped.sort_unstable();
        let mut dies: Vec<u64> = self.unscoped.iter().map(|unscoped| unscoped.die).collect();
        dies.dedup();
        let scopes = scopes_of_all(view, &dies);
        let mut scopes = dies.into_iter().zip(scopes).peekable();
        for Unscoped { die, called, name } in &self.unscoped {
            while scopes.next_if(|(before, _)| before < die).is_some() {}
            let Some((_, Some(scopes))) = scopes.peek() else { continue };
            let plain = self.unscoped_names.get(name.0..name.1).unwrap_or_default();
            let name = format!("{scopes}{}", String::from_utf8_lossy(plain));
            if let Some(called) = self.called.get_mut(*called as usize) {
                called.qualified = Some(self.builder.string(name.as_bytes()));
            }
        }
    }

    /// Gives everything that is called something in this unit its number in the table.
    fn number_all(&mut self) {
        let number =
            |called: &Called| called.number.unwrap_or_else(|| self.builder.name(called.head(self.language)));
        let numbers = self.called.iter().map(number);
        self.numbers.clear();
        self.numbers.extend(numbers);
    }

    /// The builder's number of what a number stands for.
    #[inline]
    pub(super) fn name(&self, index: u32) -> NameId {
        self.numbers.get(index as usize).copied().unwrap_or_default()
    }

    /// What a number stands for.
    pub(super) fn called(&self, index: u32) -> Called {
        self.called.get(index as usize).copied().unwrap_or_default()
    }
}

impl Called {
    /// The names as a table keeps them: the readable one only where it cannot be made of the linkage name.
    pub(super) fn head(self, language: Language) -> FunctionHead {
        let name = self.qualified.or(self.plain);
        let (name, linkage_name) = match self.linkage {
            Some(linkage) if self.is_mangled => (None, Some(linkage)),
            Some(linkage) => (name.filter(|name| *name != linkage), Some(linkage)),
            // What the linker would see is the name without its scope.
            None => (name, self.plain.filter(|_| self.qualified.is_some())),
        };
        FunctionHead { name, linkage_name, language }
    }

    /// The same for a function whose linkage name is that of a symbol.
    pub(super) fn with_symbol(self, linkage: StringId, is_mangled: bool) -> Self {
        Self { linkage: Some(linkage), is_mangled, number: None, ..self }
    }
}

/// Whether a readable name is made of a linkage name: then the source's own name says nothing more.
pub(super) fn is_mangled(name: &[u8]) -> bool {
    const MARKS: [&[u8]; 6] = [b"_Z", b"__Z", b"$s", b"_$s", b"$S", b"_$S"];
    MARKS.iter().any(|mark| name.starts_with(mark))
        || matches!(name, [b'_', b'R', kind, ..] if kind.is_ascii_uppercase())
}
