//! The bytes of names.

use super::collect::Numbers;
use super::intern::Strings;
use super::output::Output;
use crate::body::{HAS_LINKAGE_NAME, HAS_NAME, LANGUAGE_SHIFT, NO_LANGUAGE};
use crate::bytes::put_uleb;
use crate::error::Result;
use crate::format::SectionKind;
use crate::packed;
use crate::types::FunctionHead;
use rayon::prelude::*;
use std::io::{Seek, Write};

/// Names that one worker copies at a time.
const PART: usize = 1024;

/// The languages that names refer to by number.
pub(crate) fn languages(numbers: &Numbers) -> Vec<u16> {
    let mut languages: Vec<u16> = Vec::new();
    for head in &numbers.names {
        if let Err(place) = languages.binary_search(&head.language.0) {
            languages.insert(place, head.language.0);
        }
    }
    // What has no room in a byte loses its language, not its name.
    languages.truncate(usize::from(NO_LANGUAGE));
    languages
}

/// The section of names, as far as it is made before it is written.
pub(crate) struct Names {
    rows: Vec<u8>,
    parts: Vec<Part>,
}

/// Makes the section of names.
pub(crate) fn names(numbers: &Numbers, strings: &Strings, languages: &[u16]) -> Names {
    let parts: Vec<Part> =
        numbers.names.par_chunks(PART).map(|heads| part(heads, strings, languages)).collect();
    let homes = || numbers.homes.iter().map(|home| [u64::from(home.file), u64::from(home.line)]);
    let max = |index: usize| homes().filter_map(|home| home.get(index).copied()).max().unwrap_or(0);
    let total: u64 = parts.iter().map(|part| part.texts.len() as u64).sum();
    let widths = [1, packed::width_of(total), packed::width_of(max(0)), packed::width_of(max(1))];
    let mut place = 0;
    let entries = parts.iter().flat_map(|part| &part.entries).zip(homes());
    let entries = entries.map(|((flags, size), [file, line])| {
        let start = place;
        place += *size as u64;
        [u64::from(*flags), start, file, line]
    });
    let mut rows: Vec<u8> = widths.into_iter().skip(1).chain([0; 5]).collect();
    rows.extend((numbers.names.len() as u64).to_le_bytes());
    packed::put_rows(&mut rows, widths, entries.chain([[0, total, 0, 0]]));
    Names { rows, parts }
}

impl Names {
    pub(crate) fn write<W: Write + Seek>(self, output: &mut Output<'_, W>) -> Result<()> {
        output.pieces(SectionKind::Names, |section| {
            section.bytes(&self.rows)?;
            self.parts.into_iter().try_for_each(|part| section.bytes(&part.texts))
        })
    }
}

/// Some names.
#[derive(Default)]
struct Part {
    texts: Vec<u8>,
    /// Flags of each name, and bytes of its texts.
    entries: Vec<(u8, usize)>,
}

fn part(heads: &[FunctionHead], strings: &Strings, languages: &[u16]) -> Part {
    let mut part = Part::default();
    for head in heads {
        let before = part.texts.len();
        let language = languages.binary_search(&head.language.0);
        let language = language.map_or(NO_LANGUAGE, |index| index as u8);
        let has = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = has(head.linkage_name.is_some(), HAS_LINKAGE_NAME)
            | has(head.name.is_some(), HAS_NAME)
            | language << LANGUAGE_SHIFT;
        let [linkage_name, name] =
            [head.linkage_name, head.name].map(|name| name.map(|id| strings.get(id.0)));
        if let (Some(first), Some(_)) = (linkage_name, name) {
            put_uleb(&mut part.texts, first.len() as u64);
        }
        for text in [linkage_name, name].into_iter().flatten() {
            part.texts.extend_from_slice(text);
        }
        part.entries.push((flags, part.texts.len() - before));
    }
    part
}
