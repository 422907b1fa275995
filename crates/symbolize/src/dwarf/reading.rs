//! How attributes of DIEs are read: compiled from their forms, run for each DIE.

use super::abbrev::{AbbrevTable, Spec};
use super::fields::{Fields, SLOTS, Slot};
use super::reader::Reader;
use super::skip::{Skip, is_count, push_skip, run_skip, skip_of};
use super::value::{self, Kind, Layout};

#[derive(Clone, Copy)]
enum Step {
    Skip(Skip),
    /// A number of so many bytes.
    Bytes(Slot, u8),
    Uleb(Slot),
    Number(Slot, u64),
    Other(Slot, Spec),
}

impl Step {
    fn as_skip(&mut self) -> Option<&mut Skip> {
        match self {
            Self::Skip(skip) => Some(skip),
            _ => None,
        }
    }
}

/// A number at the same place in all DIEs of an abbreviation.
#[derive(Clone, Copy)]
struct Load {
    slot: Slot,
    /// Bits to shift out of eight bytes; [`CONSTANT`] where the number does not stand in the DIE.
    spare: u8,
    /// Bytes from the first attribute on, or index of the constant.
    at: u16,
}

const CONSTANT: u8 = 64;

/// How some attributes of a DIE are read.
#[derive(Clone, Copy, Default)]
pub(super) struct Reading {
    steps: (u32, u16),
    /// The same where all attributes stand at places that are known.
    loads: Option<(u32, u16)>,
    kinds: [Kind; SLOTS],
}

/// The readings of all abbreviations of a unit.
#[derive(Default)]
pub(super) struct Readings {
    steps: Vec<Step>,
    loads: Vec<Load>,
    constants: Vec<u64>,
}

impl Readings {
    /// Compiles the reading of what `slot_of` wants.
    pub(super) fn add(
        &mut self,
        table: &AbbrevTable,
        specs: &[Spec],
        is_fixed: bool,
        slot_of: impl Fn(u16) -> Option<Slot>,
    ) -> Reading {
        let mut reading = Reading::default();
        let (first, first_load) = (self.steps.len(), self.loads.len());
        let mut at = 0u16;
        let mut has_loads = is_fixed;
        for spec in specs {
            let skip = skip_of(spec.form, table.encoding());
            match slot_of(spec.name) {
                Some(slot) => {
                    let step = reading.step(table, slot, *spec);
                    has_loads &= self.load(step, at);
                    self.steps.push(step);
                }
                None => self.skip_step(first, skip),
            }
            // Only looked at where all have a size.
            at = at.wrapping_add(skip);
        }
        reading.steps = (first as u32, (self.steps.len() - first) as u16);
        if has_loads {
            reading.loads = Some((first_load as u32, (self.loads.len() - first_load) as u16));
        } else {
            self.loads.truncate(first_load);
        }
        reading
    }

    /// Adds the step of a DIE whose attributes all have a size, and tells whether that can be.
    fn load(&mut self, step: Step, at: u16) -> bool {
        match step {
            Step::Bytes(slot, size @ 1..=8) => self.loads.push(Load { slot, spare: 64 - 8 * size, at }),
            Step::Number(slot, number) => {
                let Ok(at) = u16::try_from(self.constants.len()) else { return false };
                self.constants.push(number);
                self.loads.push(Load { slot, spare: CONSTANT, at });
            }
            _ => return false,
        }
        true
    }

    fn skip_step(&mut self, first: usize, skip: Skip) {
        push_skip(&mut self.steps, first, skip, Step::as_skip, Step::Skip);
    }

    #[inline]
    fn steps(&self, reading: &Reading) -> &[Step] {
        let (start, count) = (reading.steps.0 as usize, usize::from(reading.steps.1));
        self.steps.get(start..start + count).unwrap_or_default()
    }

    /// How many bytes stand before `DW_AT_sibling`, where that is a number and the sibling stated in 4 bytes.
    pub(super) fn sibling_at(&self, reading: &Reading) -> Option<u16> {
        match self.steps(reading) {
            [Step::Bytes(Slot::Sibling, 4), ..] if reading.is_unit_ref(Slot::Sibling) => Some(0),
            [Step::Skip(bytes), Step::Bytes(Slot::Sibling, 4), ..]
                if reading.is_unit_ref(Slot::Sibling) && is_count(*bytes) =>
            {
                Some(*bytes)
            }
            _ => None,
        }
    }

    /// Reads what is wanted of a DIE; `size` are the bytes of all attributes, where that is the same for all DIEs.
    #[inline]
    pub(super) fn read(
        &self,
        reading: &Reading,
        size: u16,
        table: &AbbrevTable,
        reader: &mut Reader<'_>,
        fields: &mut Fields,
    ) -> Option<()> {
        fields.kinds = reading.kinds;
        if let Some((start, count)) = reading.loads
            && let Some(bytes) = reader.little_endian(usize::from(size) + 8)
        {
            let loads = self.loads.get(start as usize..start as usize + usize::from(count))?;
            for Load { slot, spare, at } in loads {
                let at = usize::from(*at);
                let number = match *spare {
                    CONSTANT => self.constants.get(at).copied()?,
                    spare => u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?) << spare >> spare,
                };
                fields.set(*slot, number);
            }
            return reader.skip(u64::from(size));
        }
        self.run(reading, table, reader, fields)
    }

    /// Reads one attribute after the other.
    fn run(
        &self,
        reading: &Reading,
        table: &AbbrevTable,
        reader: &mut Reader<'_>,
        fields: &mut Fields,
    ) -> Option<()> {
        for step in self.steps(reading) {
            match step {
                Step::Skip(skip) => run_skip(*skip, table.encoding(), reader)?,
                Step::Bytes(slot, size) => fields.set(*slot, reader.uint(*size)?),
                Step::Uleb(slot) => fields.set(*slot, reader.uleb()?),
                Step::Number(slot, number) => fields.set(*slot, *number),
                Step::Other(slot, spec) => {
                    let (kind, number) = table.value_number(*spec, reader)?;
                    if let Some(slot) = fields.kinds.get_mut(*slot as usize) {
                        *slot = kind;
                    }
                    fields.set(*slot, number);
                }
            }
        }
        Some(())
    }
}

impl Reading {
    /// How a value is read for a slot.
    fn step(&mut self, table: &AbbrevTable, slot: Slot, spec: Spec) -> Step {
        let (kind, layout) = value::layout(spec.form, table.encoding());
        let Some(known) = self.kinds.get_mut(slot as usize) else { return Step::Other(slot, spec) };
        if *known != Kind::None {
            // Stated twice: the last one counts, whatever it is.
            return Step::Other(slot, spec);
        }
        *known = if kind == Kind::None { Kind::Block } else { kind };
        match layout {
            Layout::Bytes(size) => Step::Bytes(slot, size),
            Layout::Uleb => Step::Uleb(slot),
            Layout::Fixed(number) => Step::Number(slot, number),
            Layout::Constant => Step::Number(slot, table.constant(spec).cast_unsigned()),
            Layout::Sleb | Layout::String | Layout::Indirect | Layout::Other => Step::Other(slot, spec),
        }
    }

    fn is_unit_ref(&self, slot: Slot) -> bool {
        self.kinds.get(slot as usize) == Some(&Kind::UnitRef)
    }
}
