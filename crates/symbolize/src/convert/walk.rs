//! One walk over the DIEs of a unit: its functions and what was inlined into them.

use crate::dwarf::{
    AbbrevTable, Entry, Fields, Malformed, Pcs, Plan, Reader, Role, Slot, Value, View, number_of,
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
    /// Its DIE as a section offset.
    pub(super) die: u64,
    /// The DIE that it has its names from, where it states none.
    pub(super) origin: Option<Value>,
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
    /// Its DIE as a section offset.
    pub(super) die: u64,
    pub(super) origin: Option<Value>,
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
    let mut walk = Walk { view, abbrevs, plan, all, budget, walked, open: Vec::new(), at: outside };
    walk.run(reader);
}

struct Walk<'a, 'd, 'w> {
    view: View<'a, 'd>,
    abbrevs: &'a AbbrevTable,
    plan: &'w Plan,
    all: bool,
    budget: u64,
    walked: &'w mut Walked,
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
            let start = *reader;
            let code = reader.uleb().ok_or_else(|| start.malformed(".debug_info", "an abbreviation code"))?;
            if code == 0 {
                self.leave(reader);
            } else {
                let entry = self.plan.get(code);
                let entry = entry.ok_or_else(|| start.malformed(".debug_info", "a known abbreviation"))?;
                // Most DIEs are variables and the like within functions.
                if let Some(size) = entry.leaf_size()
                    && !self.open.is_empty()
                    && reader.skip(size).is_some()
                {
                    continue;
                }
                let read = match entry.role {
                    Role::Plain => self.plain(reader, entry),
                    Role::Closed => self.closed(reader, entry),
                    Role::Call => self.call(reader, entry, start.offset()),
                    Role::Function => self.function(reader, entry, start.offset()),
                };
                read.ok_or_else(|| start.malformed(".debug_info", "a DIE with all its attributes"))?;
            }
            if self.open.is_empty() {
                break;
            }
        }
        Ok(())
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
        self.plan.skip(entry, self.abbrevs, reader)?;
        self.enter(entry, Open { sibling: 0, ..self.at });
        Some(())
    }

    fn closed(&mut self, reader: &mut Reader<'a>, entry: &Entry) -> Option<()> {
        if !entry.has_children {
            return self.plan.skip(entry, self.abbrevs, reader);
        }
        if !self.all
            && let Some(sibling) = Plan::near_sibling(entry, reader)
            && let Some(sibling) = self.view.unit.header.offset.checked_add(sibling)
        {
            let mut behind = *reader;
            // What has to be passed over at the least, since siblings before that are none.
            behind.skip(entry.least_size())?;
            if jump(&mut behind, sibling).is_some() {
                *reader = behind;
                self.walked.has_gaps = true;
                return Some(());
            }
        }
        let sibling = self.sibling(&self.plan.fields(entry, self.abbrevs, reader)?)?;
        if sibling != 0 && !self.all && jump(reader, sibling).is_some() {
            self.walked.has_gaps = true;
            return Some(());
        }
        let is_hidden = self.at.is_hidden || sibling != 0 && sibling >= reader.offset();
        self.enter(entry, Open { function: NONE, depth: 0, is_hidden, sibling: 0 });
        Some(())
    }

    /// Section offset of the next sibling; 0 where none is stated.
    fn sibling(&self, fields: &Fields) -> Option<u64> {
        match fields.get(Slot::Sibling) {
            Some(Value::UnitRef(sibling)) => self.view.unit.header.offset.checked_add(sibling),
            _ => Some(0),
        }
    }

    fn function(&mut self, reader: &mut Reader<'a>, entry: &Entry, die: u64) -> Option<()> {
        let fields = self.plan.fields(entry, self.abbrevs, reader)?;
        let sibling = self.sibling(&fields)?;
        let mut inside = Open { function: NONE, depth: 0, is_hidden: self.at.is_hidden, sibling };
        inside.is_hidden |= sibling != 0 && sibling >= reader.offset();
        let ranges = self.ranges(&fields);
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
            self.walked.functions.push(Function { die, origin, ranges, called: 0, is_hidden });
        }
        self.enter(entry, inside);
        Some(())
    }

    fn call(&mut self, reader: &mut Reader<'a>, entry: &Entry, die: u64) -> Option<()> {
        if self.at.function == NONE {
            return self.plain(reader, entry);
        }
        let fields = self.plan.fields(entry, self.abbrevs, reader)?;
        let ranges = self.ranges(&fields);
        let inside = Open { depth: self.at.depth + 1, sibling: 0, ..self.at };
        self.walked.calls.push(Call {
            function: inside.function,
            depth: inside.depth,
            die,
            origin: fields.get(Slot::Origin).filter(|_| !entry.is_named),
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
    fn ranges(&mut self, fields: &Fields) -> (u32, u32) {
        let pcs = Pcs {
            low: fields.get(Slot::Low),
            high: fields.get(Slot::High),
            ranges: fields.get(Slot::Ranges),
        };
        let start = self.walked.ranges.len() as u32;
        let max_address = self.view.unit.header.encoding.max_address();
        let (code, budget) = (&self.view.main.code, &mut self.budget);
        let ranges = &mut self.walked.ranges;
        self.view.ranges(&pcs, &mut |from, to| {
            if code.is_live(from, max_address) {
                ranges.push((from, to));
            }
            *budget = budget.saturating_sub(1);
            *budget > 0
        });
        (start, self.walked.ranges.len() as u32)
    }
}

/// Goes on at a section offset, forward only so that walks end.
#[inline]
fn jump(reader: &mut Reader<'_>, to: u64) -> Option<()> {
    reader.skip(to.checked_sub(reader.offset())?)
}
