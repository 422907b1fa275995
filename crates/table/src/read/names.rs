//! Names and files by number.

use crate::bytes::Cursor;
use crate::packed::Packed;
use crate::read::answer::{File, Text};
use crate::types::Language;

/// The names section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'d> {
    count: usize,
    positions: Packed<'d>,
    records: &'d [u8],
    dictionary: &'d [u8],
}

/// A place in the source, the file by its number plus one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Location {
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// What the table says of a name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Name<'d> {
    pub(crate) linkage_name: Option<Text<'d>>,
    pub(crate) name: Option<Text<'d>>,
    /// Index among the table's languages.
    pub(crate) language: u8,
    /// Where functions of that name start.
    pub(crate) home: Location,
}

impl<'d> Names<'d> {
    pub(crate) fn read(data: &'d [u8], dictionary: &'d [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(data);
        let [width, ..] = cursor.array::<8>()?;
        let count = cursor.u64()?;
        let positions = Packed::new(data.get(cursor.at..)?, width, count.checked_add(1)?)?;
        cursor.take(positions.size())?;
        let (count, records) = (usize::try_from(count).ok()?, data.get(cursor.at..)?);
        Some(Self { count, positions, records, dictionary })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Where the record of a name starts, by its number plus one.
    #[inline]
    pub(crate) fn start(&self, name: u32) -> usize {
        let start = name.checked_sub(1).and_then(|number| self.positions.get(number as usize));
        start.map_or(0, |start| start as usize)
    }

    /// The record of a name, counted from 0, and what follows; all records, where its place is unknown.
    pub(crate) fn place(&self, number: u32) -> &'d [u8] {
        let start = self.start(number.saturating_add(1));
        self.records.get(start..).unwrap_or(self.records)
    }

    /// A byte of the records.
    #[inline]
    pub(crate) fn touch(&self, start: usize) -> u8 {
        self.records.get(start).copied().unwrap_or(0)
    }

    /// A name by its number plus one; 0 is a name that says nothing.
    #[inline]
    pub(crate) fn get(&self, name: u32) -> Option<Name<'d>> {
        let Some(number) = name.checked_sub(1) else {
            return Some(Name { language: u8::MAX, ..Name::default() });
        };
        let number = number as usize;
        let (start, end) = (self.positions.get(number)?, self.positions.get(number + 1)?);
        let record = self.records.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        read_record(record, self.dictionary)
    }
}

#[inline]
fn read_record<'d>(record: &'d [u8], dictionary: &'d [u8]) -> Option<Name<'d>> {
    let mut cursor = Cursor::new(record);
    let flags = cursor.u8()?;
    let home = Location { file: cursor.uleb32()?, line: cursor.uleb32()?, column: cursor.uleb32()? };
    let mut name = Name { language: flags >> 2, home, ..Name::default() };
    let text = |bytes| Text::packed(bytes, dictionary);
    match flags & 3 {
        3 => {
            let size = usize::try_from(cursor.uleb()?).ok()?;
            name.linkage_name = cursor.take(size).map(text);
            name.name = record.get(cursor.at..).map(text);
        }
        2 => name.name = record.get(cursor.at..).map(text),
        1 => name.linkage_name = record.get(cursor.at..).map(text),
        _ => {}
    }
    Some(name)
}

/// The files section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files<'d> {
    count: usize,
    places: Packed<'d>,
    texts: &'d [u8],
}

impl<'d> Files<'d> {
    pub(crate) fn read(data: &'d [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(data);
        let [width, ..] = cursor.array::<8>()?;
        let count = cursor.u64()?;
        let places = Packed::new(data.get(cursor.at..)?, width, count.checked_mul(2)?)?;
        cursor.take(places.size())?;
        Some(Self { count: usize::try_from(count).ok()?, places, texts: data.get(cursor.at..)? })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The directory of a file, counted from 0, and what follows; all texts, where its place is unknown.
    pub(crate) fn place(&self, number: u32) -> &'d [u8] {
        let place = self.places.get(number as usize * 2).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.texts.get(place..)).unwrap_or(self.texts)
    }

    /// A file by its number plus one.
    #[inline]
    pub(crate) fn get(&self, file: u32) -> Option<File<'d>> {
        let number = file.checked_sub(1)? as usize;
        let text = |index: usize| {
            let mut cursor = Cursor::at(self.texts, usize::try_from(self.places.get(index)?).ok()?);
            let size = usize::try_from(cursor.uleb()?).ok()?;
            cursor.take(size).map(Text::plain)
        };
        Some(File { directory: text(number * 2)?, name: text(number * 2 + 1)? })
    }
}

/// The language of a number in a name.
pub(crate) fn language(languages: &[u16], number: u8) -> Language {
    Language(languages.get(usize::from(number)).copied().unwrap_or(0))
}
