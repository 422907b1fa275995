//! One walk over the DIEs of a unit: its functions and what was inlined into them.

use super::names::NameKey;
use crate::code::LiveCode;
use crate::dwarf::{
    AbbrevTable, Entry, Fields, Malformed, Pcs, Plan, Quick, Reader, Role, Slot, ValueKind, View, number_of,
    range_budget,
};

/// What a walk found. Kept from unit to unit for its memory.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) functions: Vec<Function>,
    pub(super) calls: Vec<Call>,
    /// Start and end of all live ranges.
    pub(super) ranges: Vec<(u64, u64)>,
    /// Whether anything was passed over that functions could hide in.
    pub(super) has_gaps: bool,
    /// Functions without live code.
    pub(super) dead: u64,
    pub(super) error: Option<Malformed>,
}

/// A function with code.
#[derive(Clone, Copy)]
pub(super) struct Function {
    /// Where its names are stated.
    pub(super) named: NameKey,
    pub(super) ranges: (u32, u32),
    /// What it is called, once that was looked for.
    pub(super) called: u32,
    /// Whether it stands within a type or function that lookups pass over first.
    pub(super) is_hidden: bool,
}

/// An inlined call.
#[derive(Clone, Copy)]
pub(super) struct Call {
    /// Index of the function that it is in.
    pub(super) function: u32,
    /// 1 in the function itself.
    pub(super) depth: u32,
    pub(super) named: NameKey,
    pub(super) file: u32,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) ranges: (u32, u32),
    /// What it is called, once that was looked for.
    pub(super) called: u32,
}

impl Walked {
    fn clear(&mut self) {
        self.functions.clear();
        self.calls.clear();
        self.ranges.clear();
        (self.has_gaps, self.dead, self.error) = (false, 0, None);
    }

    /// The live ranges by an index range.
    pub(super) fn ranges(&self, (start, end): (u32, u32)) -> &[(u64, u64)] {
        self.ranges.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// Where an open list of siblings is.
#[derive(Clone, Copy)]
struct Open {
    /// The function whose code these DIEs are about; [`NONE`] outside.
    function: u32,
    /// Calls around.
    depth: u32,
    is_hidden: bool,
    /// Where the DIE that has these children says that its next sibling is; 0 where it does not.
    sibling: u64,
}

const NONE: u32 = u32::MAX;

/// Walks a unit. `all` looks into what holds no functions as a rule, too.
pub(super) fn walk(view: View<'_, '_>, plan: &Plan, all: bool, walked: &mut Walked) {
    walked.clear();
    let budget = range_budget(view);
    let outside = Open { function: NONE, depth: 0, is_hidden: false, sibling: 0 };
    let reader = view.reader(view.unit.header.root);
    let abbrevs = &*view.body.abbrevs;
    let live = LiveCode::new(&view.main.code, view.unit.header.encoding.max_address());
    let fields = Fields::default();
    let mut walk =
        Walk { view, abbrevs, plan, all, live, budget, walked, fields, open: Vec::new(), at: outside };
    walk.run(reader);
}

struct Walk<'a, 'd, 'w> {
    view: View<'a, 'd>,
    abbrevs: &'a AbbrevTable,
    plan: &'w Plan,
    all: bool,
    live: LiveCode<'a>,
    budget: u64,
    walked: &'w mut Walked,
    /// Of the DIE that was read last.
    fields: Fields,
    open: Vec<Open>,
    at: Open,
}

impl<'a> Walk<'a, '_, '_> {
    fn run(&mut self, mut reader: Reader<'a>) {
        while let Err(error) = self.siblings(&mut reader) {
            self.walked.error.get_or_insert(error);
            if !self.leave_broken_function(&mut reader) {
                break;
            }
        }
    }

    /// Walks until the root's children end.
    fn siblings(&mut self, reader: &mut Reader<'a>) -> Result<(), Malformed> {
        while !reader.is_empty() {
            let start = match self.open.is_empty() {
                true => reader.offset(),
                // Most DIEs are variables and the like within functions, or types and declarations outside.
                false => self.pass(reader),
            };
            let Some(code) = reader.uleb() else {
                return if reader.is_empty() { Ok(()) } else { Err(expected(start, "an abbreviation code")) };
            };
            if code == 0 {
                self.leave(reader);
            } else {
                let entry = self.plan.get(code).ok_or_else(|| expected(start, "a known abbreviation"))?;
                let read = match entry.role {
                    Role::Plain => self.plain(reader, entry),
                    Role::Closed => self.closed(reader, entry),
                    Role::Call => self.call(reader, entry, start),
                    Role::Function => self.function(reader, entry, start),
                };
                read.ok_or_else(|| expected(start, "a DIE with all its attributes"))?;
            }
            if self.open.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Passes over DIEs that say nothing and over types, up to the first that says something or is broken; gives its
    /// section offset.
    #[inline]
    fn pass(&mut self, reader: &mut Reader<'a>) -> u64 {
        let mut at = *reader;
        let start = loop {
            let before = at.offset();
            let passed = at.uleb().and_then(|code| match self.plan.quick_of(code) {
                Quick::Bytes(bytes) => at.skip(bytes.into()),
                Quick::Block(start, end) => {
                    at.skip(start.into())?;
                    let block = at.uleb()?;
                    at.skip(block.checked_add(end.into())?)
                }
                Quick::Sibling(place, least) if !self.all => {
                    at = self.behind_children(at, place, least)?;
                    Some(())
                }
                Quick::Skips(start, count) => {
                    at = self.plan.behind((start, count), at)?;
                    Some(())
                }
                Quick::No | Quick::Sibling(..) => None,
            });
            if passed.is_none() {
                at.go_back(before);
                break before;
            }
        };
        *reader = at;
        start
    }

    /// Goes on at the sibling that is stated so many bytes further on.
    #[inline]
    fn behind_children(&mut self, from: Reader<'a>, place: u16, least: u16) -> Option<Reader<'a>> {
        let (mut stated, mut at) = (from, from);
        stated.skip(place.into())?;
        let sibling = self.view.unit.header.offset.checked_add(stated.u32()?.into())?;
        let distance = sibling.checked_sub(from.offset())?;
        // What has to be passed over at the least, since siblings before that are none.
        if distance < u64::from(least) {
            return None;
        }
        at.skip(distance)?;
        self.walked.has_gaps = true;
        Some(at)
    }

    fn leave(&mut self, reader: &mut Reader<'a>) {
        let left = self.at;
        if let Some(outer) = self.open.pop() {
            self.at = outer;
        }
        if left.sibling != 0 && left.function != self.at.function {
            let _ = jump(reader, left.sibling);
        }
    }

    /// After broken bytes: goes on behind the outermost function that they are in, if that is known.
    fn leave_broken_function(&mut self, reader: &mut Reader<'a>) -> bool {
        while let Some(outer) = self.open.pop() {
            let left = std::mem::replace(&mut self.at, outer);
            let is_outermost = left.function != NONE && outer.function == NONE;
            if is_outermost && left.sibling != 0 && jump(reader, left.sibling).is_some() {
                return true;
            }
        }
        false
    }

    fn enter(&mut self, entry: &Entry, inside: Open) {
        if entry.has_children {
            self.open.push(self.at);
            self.at = inside;
        }
    }

    #[inline]
    fn plain(&mut self, reader: &mut Reader<'a>, entry: &Entry) -> Option<()> {
        self.plan.skip(entry, reader)?;
        self.enter(entry, Open { sibling: 0, ..self.at });
        Some(())
    }

    fn closed(&mut self, reader: &mut Reader<'a>, entry: &Entry) -> Option<()> {
        if !entry.has_children {
            return self.plan.skip(entry, reader);
        }
        self.plan.fields(entry, self.abbrevs, reader, &mut self.fields)?;
        let sibling = self.sibling()?;
        if sibling != 0 && !self.all && jump(reader, sibling).is_some() {
            self.walked.has_gaps = true;
            return Some(());
        }
        let is_hidden = self.at.is_hidden || sibling != 0 && sibling >= reader.offset();
        self.enter(entry, Open { function: NONE, depth: 0, is_hidden, sibling: 0 });
        Some(())
    }

    /// Section offset of the next sibling; 0 where none is stated.
    fn sibling(&self) -> Option<u64> {
        match self.fields.kind(Slot::Sibling) {
            ValueKind::UnitRef => self.view.unit.header.offset.checked_add(self.fields.number(Slot::Sibling)),
            _ => Some(0),
        }
    }

    fn function(&mut self, reader: &mut Reader<'a>, entry: &Entry, die: u64) -> Option<()> {
        self.plan.fields(entry, self.abbrevs, reader, &mut self.fields)?;
        let sibling = self.sibling()?;
        let mut inside = Open { function: NONE, depth: 0, is_hidden: self.at.is_hidden, sibling };
        inside.is_hidden |= sibling != 0 && sibling >= reader.offset();
        let ranges = self.ranges();
        let fields = &self.fields;
        if ranges.0 == ranges.1 {
            self.walked.dead += 1;
            if entry.has_children && !self.all && sibling != 0 && jump(reader, sibling).is_some() {
                self.walked.has_gaps = true;
                return Some(());
            }
        } else {
            inside.function = u32::try_from(self.walked.functions.len()).ok()?;
            let origin = fields.get(Slot::Origin).or(fields.get(Slot::Specification));
            let origin = origin.filter(|_| !entry.is_named);
            let is_hidden = self.at.is_hidden;
            let named = NameKey::new(self.view, die, origin);
            self.walked.functions.push(Function { named, ranges, called: 0, is_hidden });
        }
        self.enter(entry, inside);
        Some(())
    }

    #[inline]
    fn call(&mut self, reader: &mut Reader<'a>, entry: &Entry, die: u64) -> Option<()> {
        if self.at.function == NONE {
            return self.plain(reader, entry);
        }
        self.plan.fields(entry, self.abbrevs, reader, &mut self.fields)?;
        let ranges = self.ranges();
        let fields = &self.fields;
        let inside = Open { depth: self.at.depth + 1, sibling: 0, ..self.at };
        self.walked.calls.push(Call {
            function: inside.function,
            depth: inside.depth,
            named: NameKey::new(self.view, die, fields.get(Slot::Origin).filter(|_| !entry.is_named)),
            file: number_of(fields.get(Slot::CallFile)),
            line: number_of(fields.get(Slot::CallLine)),
            column: number_of(fields.get(Slot::CallColumn)),
            ranges,
            called: 0,
        });
        self.enter(entry, inside);
        Some(())
    }

    /// Keeps the live ranges that a DIE states, and gives their index range.
    fn ranges(&mut self) -> (u32, u32) {
        let fields = &self.fields;
        let pcs = Pcs {
            low: fields.get(Slot::Low),
            high: fields.get(Slot::High),
            ranges: fields.get(Slot::Ranges),
        };
        let start = self.walked.ranges.len() as u32;
        let (live, budget, ranges) = (&mut self.live, &mut self.budget, &mut self.walked.ranges);
        self.view.ranges(&pcs, &mut |from, to| {
            if live.is_live(from) {
                ranges.push((from, to));
            }
            *budget = budget.saturating_sub(1);
            *budget > 0
        });
        (start, self.walked.ranges.len() as u32)
    }
}

fn expected(offset: u64, what: &'static str) -> Malformed {
    Malformed { section: ".debug_info", offset, expected: what }
}

/// Goes on at a section offset, forward only so that walks end.
#[inline]
fn jump(reader: &mut Reader<'_>, to: u64) -> Option<()> {
    reader.skip(to.checked_sub(reader.offset())?)
}
