//! Names and files by number.

use crate::body::{HAS_LINKAGE_NAME, HAS_NAME, LANGUAGE_SHIFT};
use crate::bytes::Cursor;
use crate::packed::{Packed, Rows};
use crate::read::text::{File, Text};
use crate::types::Language;

/// The names section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'d> {
    count: usize,
    /// For each name its flags, the place of its texts, and its home: file and line.
    entries: Rows<'d, 4>,
    texts: &'d [u8],
}

/// A place in the source, the file by its number plus one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Location {
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Where functions of a name start, the file by its number plus one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Home {
    pub(crate) file: u32,
    pub(crate) line: u32,
}

/// What the table says of a name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Name<'d> {
    pub(crate) linkage_name: Option<Text<'d>>,
    pub(crate) name: Option<Text<'d>>,
    /// Index among the table's languages.
    pub(crate) language: u8,
    pub(crate) home: Home,
}

impl<'d> Names<'d> {
    pub(crate) fn read(data: &'d [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(data);
        let [place_width, file_width, line_width, ..] = cursor.array::<8>()?;
        let count = cursor.u64()?;
        let widths = [1, place_width, file_width, line_width];
        let entries = Rows::new(data.get(cursor.at..)?, widths, count.checked_add(1)?)?;
        cursor.take(entries.size())?;
        let (count, texts) = (usize::try_from(count).ok()?, data.get(cursor.at..)?);
        Some(Self { count, entries, texts })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// What is told of a name, counted from 0, and what follows; of all names, where its place is unknown.
    pub(crate) fn place(&self, number: u32) -> &'d [u8] {
        self.entries.place(number as usize)
    }

    /// All texts, and where a name's begin: for reading ahead. At the start of them, where that is unknown.
    #[inline]
    pub(crate) fn text_of(&self, name: u32) -> (&'d [u8], u64) {
        let number = (name as usize).checked_sub(1);
        (self.texts, number.and_then(|number| self.entries.column::<1>(number)).unwrap_or(0))
    }

    /// A name by its number plus one; 0 is a name that says nothing.
    #[inline]
    pub(crate) fn get(&self, name: u32) -> Option<Name<'d>> {
        let Some(number) = name.checked_sub(1) else {
            return Some(Name { language: u8::MAX, ..Name::default() });
        };
        let number = number as usize;
        let [flags, start, file, line] = self.entries.get(number)?;
        let end = self.entries.column::<1>(number + 1)?;
        let texts = self.texts.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
        let home = Home { file: file as u32, line: line as u32 };
        read_texts(flags as u8, texts, home)
    }
}

#[inline]
fn read_texts(flags: u8, texts: &[u8], home: Home) -> Option<Name<'_>> {
    let mut name = Name { language: flags >> LANGUAGE_SHIFT, home, ..Name::default() };
    match flags & (HAS_LINKAGE_NAME | HAS_NAME) {
        HAS_LINKAGE_NAME => name.linkage_name = Some(Text(texts)),
        HAS_NAME => name.name = Some(Text(texts)),
        0 => {}
        _ => {
            let mut cursor = Cursor::new(texts);
            let size = usize::try_from(cursor.uleb()?).ok()?;
            name.linkage_name = Some(Text(cursor.take(size)?));
            name.name = texts.get(cursor.at..).map(Text);
        }
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
        let places = Packed::new(data.get(cursor.at..)?, width, count)?;
        cursor.take(places.size())?;
        Some(Self { count: usize::try_from(count).ok()?, places, texts: data.get(cursor.at..)? })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// What is told of a file, counted from 0, and what follows; all texts, where its place is unknown.
    pub(crate) fn place(&self, number: u32) -> &'d [u8] {
        let place = self.places.get(number as usize).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.texts.get(place..)).unwrap_or(self.texts)
    }

    /// A file by its number plus one.
    #[inline]
    pub(crate) fn get(&self, file: u32) -> Option<File<'d>> {
        let number = file.checked_sub(1)? as usize;
        let mut cursor = Cursor::at(self.texts, usize::try_from(self.places.get(number)?).ok()?);
        let (size, directory) = (cursor.uleb()?, usize::try_from(cursor.uleb()?).ok()?);
        let path = cursor.take(usize::try_from(size).ok()?)?;
        if directory <= path.len() { Some(File { path, directory }) } else { None }
    }
}

/// The language of a number in a name.
pub(crate) fn language(languages: &[u16], number: u8) -> Language {
    Language(languages.get(usize::from(number)).copied().unwrap_or(0))
}
