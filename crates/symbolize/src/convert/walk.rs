//! One walk over the DIEs of a unit: its functions and what was inlined into them.

use super::names::NameKey;
use crate::code::LiveCode;
use crate::dwarf::{
    AbbrevTable, Entry, Fields, Pcs, Plan, Reader, Role, Slot, ValueKind, View, Way, number_of,
};
use crate::malformed::Malformed;

/// What a walk found. Kept from unit to unit for its memory.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) functions: Vec<Function>,
    pub(super) calls: Vec<Call>,
    /// Start and end of all live ranges.
    pub(super) ranges: Vec<(u64, u64)>,
    /// What was passed over that functions could hide in.
    skipped: Vec<Skipped>,
    /// Ranges that may still be read.
    budget: u64,
    /// Functions without live code.
    pub(super) dead: u64,
    pub(super) error: Option<Malformed>,
}

/// A DIE that was passed over with all that is in it.
#[derive(Clone, Copy)]
struct Skipped {
    /// Section offset.
    die: u64,
    /// Where the walk went on.
    next: u64,
    is_hidden: bool,
    /// Whether it is a function, which counts as dead.
    is_dead: bool,
}

/// A function with code.
#[derive(Clone, Copy)]
pub(super) struct Function {
    /// Its DIE as a section offset.
    die: u64,
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
        self.skipped.clear();
        (self.dead, self.error) = (0, None);
    }

    /// Whether anything was passed over that functions could hide in.
    pub(super) fn has_gaps(&self) -> bool {
        !self.skipped.is_empty()
    }

    /// Numbers the functions in the order of their DIEs, where some were found later.
    fn put_in_order(&mut self) {
        if self.functions.is_sorted_by_key(|function| function.die) {
            return;
        }
        let mut order: Vec<u32> = (0..self.functions.len() as u32).collect();
        let function = |index: &u32| self.functions.get(*index as usize);
        order.sort_by_key(|index| function(index).map(|function| function.die));
        let functions = order.iter().filter_map(|index| function(index).copied()).collect();
        let mut numbers = vec![0; order.len()];
        for (number, index) in (0u32..).zip(&order) {
            if let Some(slot) = numbers.get_mut(*index as usize) {
                *slot = number;
            }
        }
        for call in &mut self.calls {
            call.function = numbers.get(call.function as usize).copied().unwrap_or_default();
        }
        self.functions = functions;
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
    walked.budget = view.range_budget();
    let reader = view.reader(view.unit.header.root);
    Walk::new(view, plan, all, walked).run(reader);
}

/// Looks into what a walk passed over: comes to the same as a walk that looks into everything.
pub(super) fn fill_gaps(view: View<'_, '_>, plan: &Plan, walked: &mut Walked) {
    let skipped = std::mem::take(&mut walked.skipped);
    let is_whole = walked.error.is_none();
    let mut walk_all = Walk::new(view, plan, true, walked);
    let is_filled =
        is_whole && skipped.iter().all(|skipped| walk_all.look_into(skipped)) && walked.budget > 0;
    if is_filled {
        walked.put_in_order();
    } else {
        // What is broken, or says wrongly where it ends, has to be met in the order of the file.
        walk(view, plan, true, walked);
    }
    walked.skipped = skipped;
}

struct Walk<'a, 'd, 'w> {
    view: View<'a, 'd>,
    abbrevs: &'a AbbrevTable,
    plan: &'w Plan,
    all: bool,
    live: LiveCode<'a>,
    walked: &'w mut Walked,
    /// Of the DIE that was read last.
    fields: Fields,
    open: Vec<Open>,
    at: Open,
}

impl<'a, 'd, 'w> Walk<'a, 'd, 'w> {
    fn new(view: View<'a, 'd>, plan: &'w Plan, all: bool, walked: &'w mut Walked) -> Self {
        let abbrevs = &*view.body.abbrevs;
        let live = LiveCode::new(&view.main.code, view.unit.header.encoding.max_address());
        let at = Open { function: NONE, depth: 0, is_hidden: false, sibling: 0 };
        Self { view, abbrevs, plan, all, live, walked, fields: Fields::default(), open: Vec::new(), at }
    }

    /// Walks what was passed over, and tells whether it ends where that was said to be.
    fn look_into(&mut self, skipped: &Skipped) -> bool {
        self.at.is_hidden = skipped.is_hidden;
        self.walked.dead -= u64::from(skipped.is_dead);
        let mut reader = self.view.reader(skipped.die);
        self.siblings(&mut reader).is_ok() && self.open.is_empty() && reader.offset() == skipped.next
    }

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
                    Role::Closed => self.closed(reader, entry, start),
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
            let passed = at.uleb().and_then(|code| {
                let quick = self.plan.quick_of(code);
                if quick.way == Way::Bytes {
                    return at.skip_around(quick.before, quick.block, quick.after);
                }
                at = match quick.way {
                    Way::Sibling if !self.all => {
                        let behind = self.behind_children(at, quick.before, quick.after)?;
                        self.skipped(before, behind.offset());
                        behind
                    }
                    Way::Steps => self.plan.behind(code, at)?,
                    _ => return None,
                };
                Some(())
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
    fn behind_children(&self, from: Reader<'a>, place: u16, least: u16) -> Option<Reader<'a>> {
        let (mut stated, mut at) = (from, from);
        stated.skip(place.into())?;
        let sibling = self.view.unit.header.offset.checked_add(stated.u32()?.into())?;
        let distance = sibling.checked_sub(from.offset())?;
        // What has to be passed over at the least, since siblings before that are none.
        if distance < u64::from(least) {
            return None;
        }
        at.skip(distance)?;
        Some(at)
    }

    #[inline]
    fn skipped(&mut self, die: u64, next: u64) {
        let is_hidden = self.at.is_hidden;
        self.walked.skipped.push(Skipped { die, next, is_hidden, is_dead: false });
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

    fn closed(&mut self, reader: &mut Reader<'a>, entry: &Entry, die: u64) -> Option<()> {
        if !entry.has_children {
            return self.plan.skip(entry, reader);
        }
        self.plan.fields(entry, self.abbrevs, reader, &mut self.fields)?;
        let sibling = self.sibling()?;
        if sibling != 0 && !self.all && jump(reader, sibling).is_some() {
            self.skipped(die, sibling);
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
                let is_hidden = self.at.is_hidden;
                self.walked.skipped.push(Skipped { die, next: sibling, is_hidden, is_dead: true });
                return Some(());
            }
        } else {
            inside.function = u32::try_from(self.walked.functions.len()).ok()?;
            let origin = fields.get(Slot::Origin).or(fields.get(Slot::Specification));
            let origin = origin.filter(|_| !entry.is_named);
            let is_hidden = self.at.is_hidden;
            let named = NameKey::new(self.view, die, origin);
            self.walked.functions.push(Function { die, named, ranges, called: 0, is_hidden });
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
        let Walked { ranges, budget, .. } = &mut *self.walked;
        let live = &mut self.live;
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
