//! Runs line programs (DWARF 5 section 6.2.5).
//!
//! gimli reads the header; the opcodes are run here, since of the rows only address, file, line and column are wanted, and
//! since a program has to be entered in its middle.

use super::reader::{Reader, Slice};
use gimli::constants as dw;

/// Where a row says that its instructions come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Location {
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// What the header says of opcodes.
pub(crate) struct Opcodes {
    base: u8,
    /// What special opcodes add to the address (in operations) and to the line.
    special: Box<[(u8, i16); 256]>,
    /// How many LEB128 operands an unknown standard opcode has.
    lengths: Box<[u8]>,
    minimum_length: u64,
    maximum_operations: u64,
}

impl Opcodes {
    pub(crate) fn of(header: &gimli::LineProgramHeader<Slice<'_>>) -> Option<Self> {
        let (base, range) = (header.opcode_base(), header.line_range());
        let line_base = i16::from(header.line_base());
        let mut special = Box::new([(0, 0); 256]);
        for (opcode, entry) in (0u8..=255).zip(special.iter_mut()) {
            let adjusted = opcode.wrapping_sub(base);
            *entry = (adjusted.checked_div(range)?, line_base + i16::from(adjusted.checked_rem(range)?));
        }
        let lengths = header.standard_opcode_lengths().slice().into();
        let minimum_length = header.minimum_instruction_length().into();
        let maximum_operations = header.maximum_operations_per_instruction().max(1).into();
        Some(Self { base, special, lengths, minimum_length, maximum_operations })
    }

    #[inline]
    fn special(&self, opcode: u8) -> (u8, i16) {
        self.special.get(usize::from(opcode)).copied().unwrap_or_default()
    }
}

/// The registers of the state machine that are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) address: u64,
    pub(crate) op_index: u16,
    pub(crate) location: Location,
    /// Which of several blocks of the same source line, for profilers.
    pub(crate) discriminator: u32,
}

impl State {
    const START: Self = Self {
        address: 0,
        op_index: 0,
        location: Location { file: 1, line: 1, column: 0 },
        discriminator: 0,
    };

    #[inline]
    fn advance(&mut self, operations: u64, opcodes: &Opcodes) {
        if opcodes.maximum_operations == 1 {
            self.address = self.address.wrapping_add(operations.wrapping_mul(opcodes.minimum_length));
            return;
        }
        let operations = u64::from(self.op_index).wrapping_add(operations);
        let instructions = operations / opcodes.maximum_operations;
        self.address = self.address.wrapping_add(instructions.wrapping_mul(opcodes.minimum_length));
        self.op_index = (operations % opcodes.maximum_operations) as u16;
    }

    #[inline]
    fn add_line(&mut self, by: i64) {
        self.location.line = add_line(self.location.line, by);
    }
}

#[inline]
fn add_line(line: u32, by: i64) -> u32 {
    u32::try_from(i64::from(line).saturating_add(by)).unwrap_or(0)
}

/// What a step comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The registers are a row.
    Row,
    /// The address is the first one behind the sequence; the registers start anew with the next step.
    EndOfSequence,
    /// The program has ended.
    End,
}

/// A line program while it runs.
pub(crate) struct Machine<'p> {
    opcodes: &'p Opcodes,
    pub(crate) reader: Reader<'p>,
    pub(crate) state: State,
    /// Where the program itself defines files, as some compilers before DWARF 5 did.
    pub(crate) defined_files: Vec<Reader<'p>>,
    restarts: bool,
}

impl<'p> Machine<'p> {
    /// At the start of the program.
    pub(crate) fn new(opcodes: &'p Opcodes, reader: Reader<'p>) -> Self {
        Self::resume(opcodes, reader, State::START)
    }

    /// In the middle, just after a row: with the registers and the position as they were then.
    pub(crate) fn resume(opcodes: &'p Opcodes, reader: Reader<'p>, state: State) -> Self {
        Self { opcodes, reader, state, defined_files: Vec::new(), restarts: false }
    }

    /// Runs up to the next row or the end of a sequence. `None` where the program is broken.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<Event> {
        if self.restarts {
            self.state = State::START;
            self.restarts = false;
        }
        self.state.discriminator = 0;
        while !self.reader.is_empty() {
            let opcode = self.reader.u8()?;
            if opcode >= self.opcodes.base {
                let (operations, lines) = self.opcodes.special(opcode);
                self.state.add_line(lines.into());
                self.state.advance(operations.into(), self.opcodes);
                return Some(Event::Row);
            }
            if opcode != 0 {
                if self.standard(gimli::DwLns(opcode))? {
                    return Some(Event::Row);
                }
            } else if self.extended()? {
                self.restarts = true;
                return Some(Event::EndOfSequence);
            }
        }
        Some(Event::End)
    }

    /// Runs the whole program and tells each row and each end of a sequence by its address and location. `None` where
    /// the program is broken.
    pub(crate) fn run(&mut self, each: &mut impl FnMut(Event, u64, Location)) -> Option<()> {
        if self.opcodes.maximum_operations > 1 {
            return self.run_slowly(each);
        }
        let opcodes = self.opcodes;
        loop {
            // All of it in registers; what is rare is done by the other way to run programs.
            let mut reader = self.reader;
            let (mut address, Location { mut file, mut line, mut column }) =
                (self.state.address, self.state.location);
            let rare = loop {
                let Some(opcode) = reader.u8() else { break None };
                if opcode >= opcodes.base {
                    let (operations, lines) = opcodes.special(opcode);
                    line = add_line(line, lines.into());
                    address =
                        address.wrapping_add(u64::from(operations).wrapping_mul(opcodes.minimum_length));
                    each(Event::Row, address, Location { file, line, column });
                    continue;
                }
                match gimli::DwLns(opcode) {
                    dw::DW_LNS_copy => each(Event::Row, address, Location { file, line, column }),
                    dw::DW_LNS_advance_pc => {
                        address = address.wrapping_add(reader.uleb()?.wrapping_mul(opcodes.minimum_length));
                    }
                    dw::DW_LNS_advance_line => line = add_line(line, reader.sleb()?),
                    dw::DW_LNS_set_file => file = number(reader.uleb()?),
                    dw::DW_LNS_set_column => column = number(reader.uleb()?),
                    dw::DW_LNS_negate_stmt
                    | dw::DW_LNS_set_basic_block
                    | dw::DW_LNS_set_prologue_end
                    | dw::DW_LNS_set_epilogue_begin => {}
                    _ => break Some(opcode),
                }
            };
            self.reader = reader;
            (self.state.address, self.state.location) = (address, Location { file, line, column });
            match rare {
                None => return Some(()),
                Some(0) => {
                    if self.extended()? {
                        each(Event::EndOfSequence, self.state.address, self.state.location);
                        self.state = State::START;
                    }
                }
                // None of these makes a row.
                Some(opcode) => _ = self.standard(gimli::DwLns(opcode))?,
            }
        }
    }

    fn run_slowly(&mut self, each: &mut impl FnMut(Event, u64, Location)) -> Option<()> {
        loop {
            match self.step()? {
                Event::End => return Some(()),
                event => each(event, self.state.address, self.state.location),
            }
        }
    }

    /// Runs a standard opcode, and tells whether it made a row.
    #[inline]
    fn standard(&mut self, opcode: gimli::DwLns) -> Option<bool> {
        let (reader, state) = (&mut self.reader, &mut self.state);
        match opcode {
            dw::DW_LNS_copy => return Some(true),
            dw::DW_LNS_advance_pc => state.advance(reader.uleb()?, self.opcodes),
            dw::DW_LNS_advance_line => state.add_line(reader.sleb()?),
            dw::DW_LNS_set_file => state.location.file = number(reader.uleb()?),
            dw::DW_LNS_set_column => state.location.column = number(reader.uleb()?),
            dw::DW_LNS_const_add_pc => state.advance(self.opcodes.special(255).0.into(), self.opcodes),
            dw::DW_LNS_fixed_advance_pc => {
                state.address = state.address.wrapping_add(reader.u16()?.into());
                state.op_index = 0;
            }
            dw::DW_LNS_negate_stmt
            | dw::DW_LNS_set_basic_block
            | dw::DW_LNS_set_prologue_end
            | dw::DW_LNS_set_epilogue_begin => {}
            dw::DW_LNS_set_isa => reader.skip_leb()?,
            gimli::DwLns(unknown) => {
                let operands = self.opcodes.lengths.get(usize::from(unknown).wrapping_sub(1));
                for _ in 0..operands.copied().unwrap_or(0) {
                    reader.skip_leb()?;
                }
            }
        }
        Some(false)
    }

    /// Runs an extended opcode, and tells whether it ended the sequence.
    fn extended(&mut self) -> Option<bool> {
        let length = self.reader.uleb()?;
        let mut operands = self.reader;
        self.reader.skip(length)?;
        if length == 0 {
            return Some(false);
        }
        match gimli::DwLne(operands.u8()?) {
            dw::DW_LNE_end_sequence => return Some(true),
            dw::DW_LNE_set_address => {
                // The length says how wide the address is, whatever the header states.
                self.state.address = operands.uint(u8::try_from(length - 1).ok()?)?;
                self.state.op_index = 0;
            }
            dw::DW_LNE_define_file => self.defined_files.push(operands),
            dw::DW_LNE_set_discriminator => self.state.discriminator = number(operands.uleb()?),
            _ => {}
        }
        Some(false)
    }
}

/// Columns and file numbers beyond 32 bits are nonsense, and none is better.
pub(crate) fn number(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
