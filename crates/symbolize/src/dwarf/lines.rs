//! The line table of a unit (DWARF 5 section 6.2).

use super::error::Malformed;
use super::files::{FileEntry, FileTable};
use super::sections::SectionId;
use super::value::Value;
use super::view::{Slice, View, as_offset};

/// Where a row says that its instructions come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Location {
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The rows of one unit, in sequences of rising addresses.
#[derive(Default)]
pub(crate) struct LineTable {
    pub(crate) files: FileTable,
    /// Sorted by their starts.
    sequences: Vec<Sequence>,
    rows: Vec<Row>,
}

/// Rows of code that lies together.
struct Sequence {
    start: u64,
    end: u64,
    /// Index range of its rows.
    rows: (u32, u32),
}

/// The instructions from `address` up to the next row's.
#[derive(Clone, Copy)]
struct Row {
    address: u64,
    location: Location,
}

/// Sequences of a file do not overlap; where those of a broken one do, this many are tried.
const MAX_TRIED: usize = 16;

impl LineTable {
    /// Runs the unit's line program. Where it is broken, the sequences before count, and the error is told.
    pub(crate) fn read(view: View<'_, '_>, offset: u64) -> (Option<Self>, Option<Malformed>) {
        let malformed = |expected| Some(Malformed { section: ".debug_line", offset, expected });
        let section = view.file.slice(SectionId::Line);
        let address_size = view.unit.header.encoding.address_size;
        let lines = gimli::DebugLine::from(section);
        let program = lines.program(gimli::DebugLineOffset(as_offset(offset)), address_size, None, None);
        let Ok(program) = program else {
            return (None, malformed("a line program header of version 2, 3, 4 or 5"));
        };
        let mut table = Self { files: read_files(program.header(), section), ..Self::default() };
        let error = table.run(view, program).err().map(|_| "a line program that runs to its end");
        table.rows.shrink_to_fit();
        table.sequences.sort_by_key(|sequence| (sequence.start, sequence.end));
        (Some(table), error.and_then(malformed))
    }

    fn run(
        &mut self,
        view: View<'_, '_>,
        program: gimli::IncompleteLineProgram<Slice<'_>>,
    ) -> gimli::Result<()> {
        let max_address = view.unit.header.encoding.max_address();
        let mut first = self.rows.len();
        let mut sorted = true;
        let mut rows = program.rows();
        while let Some((_, row)) = rows.next_row()? {
            let address = row.address();
            if row.end_sequence() {
                self.close(first, address, sorted, |start| view.main.code.is_live(start, max_address));
                first = self.rows.len();
                sorted = true;
                continue;
            }
            let column = match row.column() {
                gimli::ColumnType::LeftEdge => 0,
                gimli::ColumnType::Column(column) => number(column.get()),
            };
            let line = row.line().map_or(0, |line| number(line.get()));
            let location = Location { file: number(row.file_index()), line, column };
            let own = self.rows.get_mut(first..).unwrap_or_default();
            match own.last_mut() {
                // Of several rows for one address the last counts; a row that changes nothing is none.
                Some(last) if last.address == address => last.location = location,
                Some(last) if last.location == location && last.address < address => {}
                last => {
                    sorted &= last.is_none_or(|last| last.address < address);
                    self.rows.push(Row { address, location });
                }
            }
        }
        self.rows.truncate(first);
        Ok(())
    }

    /// Ends the sequence that started at row `first`.
    fn close(&mut self, first: usize, end: u64, sorted: bool, is_live: impl Fn(u64) -> bool) {
        let Some(rows) = self.rows.get_mut(first..) else { return };
        if !sorted {
            rows.sort_by_key(|row| row.address);
        }
        let range = u32::try_from(first).ok().zip(u32::try_from(first + rows.len()).ok());
        match (rows.first(), range) {
            (Some(row), Some(rows)) if row.address < end && is_live(row.address) => {
                self.sequences.push(Sequence { start: row.address, end, rows });
            }
            _ => self.rows.truncate(first),
        }
    }

    /// The location that the table gives for an address.
    pub(crate) fn find(&self, address: u64) -> Option<Location> {
        let behind = self.sequences.partition_point(|sequence| sequence.start <= address);
        let started = self.sequences.get(..behind)?;
        let sequence = started.iter().rev().take(MAX_TRIED).find(|sequence| address < sequence.end)?;
        let rows = self.rows.get(sequence.rows.0 as usize..sequence.rows.1 as usize)?;
        let behind = rows.partition_point(|row| row.address <= address);
        Some(rows.get(behind.checked_sub(1)?)?.location)
    }
}

/// Lines, columns and file numbers beyond 32 bits are nonsense, and none is better.
fn number(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(0)
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
