//! The line table of a unit (DWARF 5 section 6.2).

use super::files::{FileEntry, FileTable};
use super::line_program::{Event, Location, Machine, Opcodes, State, number};
use super::reader::{Reader, Slice};
use super::sections::SectionId;
use super::value::Value;
use super::view::{View, as_offset};
use crate::malformed::Malformed;

/// A line program, ready to be run.
pub(crate) struct Program<'a> {
    pub(crate) files: FileTable,
    pub(crate) opcodes: Opcodes,
    /// At the program's start.
    pub(crate) reader: Reader<'a>,
    /// Section offset behind the program.
    end: u64,
}

impl<'a> Program<'a> {
    /// Reads the header at an offset of `.debug_line`. `None` where that is no header of a known version.
    pub(crate) fn open(view: View<'a, '_>, offset: u64) -> Option<Self> {
        let section = view.file.slice(SectionId::Line);
        let address_size = view.unit.header.encoding.address_size;
        let lines = gimli::DebugLine::from(section);
        let program =
            lines.program(gimli::DebugLineOffset(as_offset(offset)), address_size, None, None).ok()?;
        let header = program.header();
        let opcodes = Opcodes::of(header)?;
        let program = header.raw_program_buf();
        let start = program.offset_from(section) as u64;
        let end = start + program.len() as u64;
        let reader = Reader::between(section.slice(), start, end, view.file.sections.big_endian);
        Some(Self { files: read_files(header, section), opcodes, reader, end })
    }
}

/// The line program of one unit and where its sequences lie.
///
/// Rows are not kept: a table of them takes as much memory as all else of a unit together. Every [`INTERVAL`] rows the
/// state of the program is, and a lookup runs it on from there.
pub(crate) struct LineTable {
    pub(crate) files: FileTable,
    opcodes: Opcodes,
    /// Section offset behind the program.
    end: u64,
    /// Sorted by their starts.
    sequences: Vec<Sequence>,
    checkpoints: Vec<Checkpoint>,
    /// Rows of sequences whose addresses do not rise, which have to be sorted.
    sorted: Vec<(u64, Location)>,
}

/// Rows of code that lies together.
struct Sequence {
    start: u64,
    end: u64,
    rows: Rows,
}

/// Where a sequence's rows are, by index range.
#[derive(Clone, Copy)]
enum Rows {
    Checkpoints(u32, u32),
    Sorted(u32, u32),
}

/// The state of the program at a row.
#[derive(Clone, Copy)]
struct Checkpoint {
    state: State,
    /// Section offset of the next opcode.
    next: u64,
}

/// Rows from one checkpoint to the next.
const INTERVAL: usize = 64;

/// Sequences of a file do not overlap; where those of a broken one do, this many are tried.
const MAX_TRIED: usize = 16;

const SECTION: &str = ".debug_line";

impl LineTable {
    /// Runs the unit's line program. Where it is broken, the sequences before count, and the error is told.
    pub(crate) fn read(view: View<'_, '_>, offset: u64) -> (Option<Self>, Option<Malformed>) {
        let malformed = |expected| Some(Malformed { section: SECTION, offset, expected });
        let Some(Program { mut files, opcodes, reader, end }) = Program::open(view, offset) else {
            return (None, malformed("a line program header of version 2, 3, 4 or 5"));
        };
        let max_address = view.unit.header.encoding.max_address();
        let mut builder = Builder::new(&opcodes, reader);
        let complete = builder.run(|address| view.main.code.is_live(address, max_address));
        files.files.extend(builder.machine.defined_files.iter().filter_map(|entry| define_file(*entry)));
        let Builder { mut sequences, mut checkpoints, sorted, open, .. } = builder;
        checkpoints.truncate(open.first_checkpoint);
        checkpoints.shrink_to_fit();
        sequences.shrink_to_fit();
        sequences.sort_by_key(|sequence| (sequence.start, sequence.end));
        let table = Self { files, opcodes, end, sequences, checkpoints, sorted };
        let error = if complete.is_none() { malformed("a line program that runs to its end") } else { None };
        (Some(table), error)
    }

    fn reader<'a>(&self, view: View<'a, '_>, start: u64) -> Reader<'a> {
        let sections = &view.file.sections;
        Reader::between(sections.get(SectionId::Line), start, self.end, sections.big_endian)
    }

    /// The location that the table gives for an address. As llvm-symbolizer does it: a line of 0 (code that belongs to
    /// no line) is the answer, no neighbour is taken in its place.
    pub(crate) fn find(&self, view: View<'_, '_>, address: u64) -> Option<Location> {
        self.find_block(view, address).map(|(location, _)| location)
    }

    /// The location with its discriminator: which of several blocks of the same source line it is. None is known in
    /// sequences whose addresses do not rise.
    pub(crate) fn find_block(&self, view: View<'_, '_>, address: u64) -> Option<(Location, u32)> {
        let behind = self.sequences.partition_point(|sequence| sequence.start <= address);
        let started = self.sequences.get(..behind)?;
        let sequence = started.iter().rev().take(MAX_TRIED).find(|sequence| address < sequence.end)?;
        match sequence.rows {
            Rows::Checkpoints(first, end) => {
                let checkpoints = self.checkpoints.get(first as usize..end as usize)?;
                let behind = checkpoints.partition_point(|checkpoint| checkpoint.state.address <= address);
                Some(self.run_to(view, checkpoints.get(behind.checked_sub(1)?)?, address))
            }
            Rows::Sorted(first, end) => {
                let rows = self.sorted.get(first as usize..end as usize)?;
                let behind = rows.partition_point(|(start, _)| *start <= address);
                Some((rows.get(behind.checked_sub(1)?)?.1, 0))
            }
        }
    }

    /// Runs the program from a checkpoint up to the last row that is not above the address.
    fn run_to(&self, view: View<'_, '_>, from: &Checkpoint, address: u64) -> (Location, u32) {
        let mut machine = Machine::resume(&self.opcodes, self.reader(view, from.next), from.state);
        let mut row = from.state;
        while machine.step() == Some(Event::Row) && machine.state.address <= address {
            row = machine.state;
        }
        (row.location, row.discriminator)
    }
}

/// Runs a program from its start, and notes where its sequences are.
struct Builder<'p> {
    opcodes: &'p Opcodes,
    /// At the program's start.
    program: Reader<'p>,
    machine: Machine<'p>,
    sequences: Vec<Sequence>,
    checkpoints: Vec<Checkpoint>,
    sorted: Vec<(u64, Location)>,
    /// The sequence that has not ended yet.
    open: Open,
}

/// What is known of a sequence while it is read.
#[derive(Clone, Copy, Default)]
struct Open {
    rows: usize,
    /// The first row's address. That of dropped code may be -2, from where the others wrap round to zero.
    first: u64,
    lowest: u64,
    /// The last row's address.
    last: u64,
    is_unsorted: bool,
    first_checkpoint: usize,
}

impl<'p> Builder<'p> {
    fn new(opcodes: &'p Opcodes, program: Reader<'p>) -> Self {
        let (sequences, checkpoints, sorted) = (Vec::new(), Vec::new(), Vec::new());
        let machine = Machine::new(opcodes, program);
        Self { opcodes, program, machine, sequences, checkpoints, sorted, open: Open::default() }
    }

    /// Runs the whole program. `None` where it is broken; what came before counts.
    fn run(&mut self, is_live: impl Fn(u64) -> bool) -> Option<()> {
        loop {
            match self.machine.step()? {
                Event::Row => self.row(),
                Event::EndOfSequence => self.close(&is_live),
                Event::End => return Some(()),
            }
        }
    }

    #[inline]
    fn row(&mut self) {
        let open = &mut self.open;
        let address = self.machine.state.address;
        if open.rows.is_multiple_of(INTERVAL) {
            let next = self.machine.reader.offset();
            self.checkpoints.push(Checkpoint { state: self.machine.state, next });
        }
        if open.rows == 0 {
            (open.first, open.lowest) = (address, address);
        } else if address < open.last {
            open.is_unsorted = true;
            open.lowest = open.lowest.min(address);
        }
        open.last = address;
        open.rows += 1;
    }

    fn close(&mut self, is_live: impl Fn(u64) -> bool) {
        let Open { rows, first, lowest: start, is_unsorted, first_checkpoint, .. } = self.open;
        let end = self.machine.state.address;
        let mut kept = None;
        if rows > 0 && start < end && is_live(first) {
            kept = match is_unsorted {
                true => self.sort(first_checkpoint),
                false => {
                    range(first_checkpoint, self.checkpoints.len()).map(|(a, b)| Rows::Checkpoints(a, b))
                }
            };
        }
        if !matches!(kept, Some(Rows::Checkpoints(..))) {
            self.checkpoints.truncate(first_checkpoint);
        }
        self.sequences.extend(kept.map(|rows| Sequence { start, end, rows }));
        self.open = Open { first_checkpoint: self.checkpoints.len(), ..Open::default() };
    }

    /// Reads the rows of a sequence again, from its first checkpoint on, and sorts them.
    fn sort(&mut self, first_checkpoint: usize) -> Option<Rows> {
        let from = self.checkpoints.get(first_checkpoint)?;
        let mut reader = self.program;
        reader.skip(from.next.checked_sub(reader.offset())?)?;
        let mut machine = Machine::resume(self.opcodes, reader, from.state);
        let first = self.sorted.len();
        self.sorted.push((from.state.address, from.state.location));
        while machine.step() == Some(Event::Row) {
            self.sorted.push((machine.state.address, machine.state.location));
        }
        self.sorted.get_mut(first..)?.sort_by_key(|(address, _)| *address);
        range(first, self.sorted.len()).map(|(first, end)| Rows::Sorted(first, end))
    }
}

fn range(first: usize, end: usize) -> Option<(u32, u32)> {
    Some((u32::try_from(first).ok()?, u32::try_from(end).ok()?))
}

fn read_files(header: &gimli::LineProgramHeader<Slice<'_>>, section: Slice<'_>) -> FileTable {
    let directories = header.include_directories().iter();
    let directories = directories.map(|directory| string(directory, section)).collect();
    let files = header.file_names().iter().map(|file| FileEntry {
        name: string(&file.path_name(), section),
        directory: u32::try_from(file.directory_index()).unwrap_or(u32::MAX),
    });
    FileTable { version: header.version(), directories, files: files.collect() }
}

/// A file that the program itself defines, as some compilers before DWARF 5 did.
pub(crate) fn define_file(mut entry: Reader<'_>) -> Option<FileEntry> {
    let name = Value::InlineString(entry.offset());
    entry.cstr()?;
    Some(FileEntry { name, directory: number(entry.uleb()?) })
}

/// Where a string of the header is kept.
fn string(value: &gimli::AttributeValue<Slice<'_>>, section: Slice<'_>) -> Value {
    use gimli::AttributeValue as From;
    match value {
        From::String(text) => Value::InlineString(text.offset_from(section) as u64),
        From::DebugStrRef(offset) => Value::Str(offset.0 as u64),
        From::DebugLineStrRef(offset) => Value::LineStr(offset.0 as u64),
        From::DebugStrOffsetsIndex(index) => Value::StrIndex(index.0 as u64),
        From::DebugStrRefSup(offset) => Value::SupStr(offset.0 as u64),
        _ => Value::Block,
    }
}
