//! The bytes of names.

use super::collect::Numbers;
use super::intern::Strings;
use super::pack::{Packer, choose_dictionary};
use crate::body::{HAS_LINKAGE_NAME, HAS_NAME, IS_PLAIN, LANGUAGE_SHIFT, NO_LANGUAGE};
use crate::bytes::put_uleb;
use crate::packed;
use crate::types::FunctionHead;
use rayon::prelude::*;

/// Names that one worker packs at a time.
const PART: usize = 1024;
/// So many of the most common names are not packed: most answers are made of these.
const PLAIN: usize = 1 << 15;

/// The sections of names.
pub(crate) struct NameSections {
    pub(crate) names: Vec<u8>,
    pub(crate) dictionary: Vec<u8>,
    /// What names refer to by number.
    pub(crate) languages: Vec<u16>,
}

/// Packs the names.
pub(crate) fn write(numbers: &Numbers, strings: &Strings) -> NameSections {
    let mut languages: Vec<u16> = numbers.names.iter().map(|head| head.language.0).collect();
    languages.sort_unstable();
    languages.dedup();
    // What has no room in a byte loses its language, not its name.
    languages.truncate(usize::from(NO_LANGUAGE));
    let texts = numbers.names.iter().filter_map(|head| head.linkage_name.or(head.name));
    let dictionary = choose_dictionary(texts.map(|name| strings.get(name.0)));
    let writer = Writer { strings, languages: &languages, packer: Packer::new(&dictionary) };
    let parts = numbers.names.par_chunks(PART).enumerate();
    let parts: Vec<Part> = parts.map(|(number, heads)| writer.part(number * PART, heads)).collect();
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
    let mut names: Vec<u8> = widths.into_iter().skip(1).chain([0; 5]).collect();
    names.extend((numbers.names.len() as u64).to_le_bytes());
    packed::put_rows(&mut names, widths, entries.chain([[0, total, 0, 0]]));
    parts.iter().for_each(|part| names.extend(&part.texts));
    NameSections { names, dictionary, languages }
}

struct Writer<'a> {
    strings: &'a Strings,
    languages: &'a [u16],
    packer: Packer<'a>,
}

/// Some names.
#[derive(Default)]
struct Part {
    texts: Vec<u8>,
    /// Flags of each name, and bytes of its texts.
    entries: Vec<(u8, usize)>,
}

impl Writer<'_> {
    fn part(&self, first: usize, heads: &[FunctionHead]) -> Part {
        let (mut part, mut text) = (Part::default(), Vec::new());
        for (number, head) in heads.iter().enumerate() {
            let before = part.texts.len();
            let is_plain = first + number < PLAIN;
            let language = self.languages.binary_search(&head.language.0);
            let language = language.map_or(NO_LANGUAGE, |index| index as u8);
            let has = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
            let flags = has(head.linkage_name.is_some(), HAS_LINKAGE_NAME)
                | has(head.name.is_some(), HAS_NAME)
                | has(is_plain, IS_PLAIN)
                | language << LANGUAGE_SHIFT;
            for (number, name) in [head.linkage_name, head.name].into_iter().flatten().enumerate() {
                text.clear();
                let name = self.strings.get(name.0);
                if is_plain {
                    text.extend_from_slice(name);
                } else {
                    self.packer.pack(name, &mut text);
                }
                if number == 0 && head.linkage_name.is_some() && head.name.is_some() {
                    put_uleb(&mut part.texts, text.len() as u64);
                }
                part.texts.extend(&text);
            }
            part.entries.push((flags, part.texts.len() - before));
        }
        part
    }
}
