//! The bytes of names.

use super::collect::Numbers;
use super::intern::Strings;
use super::pack::{Packer, choose_dictionary};
use super::steps::Location;
use crate::body::NO_LANGUAGE;
use crate::bytes::put_uleb;
use crate::packed;
use crate::types::FunctionHead;
use rayon::prelude::*;

/// Names that one worker packs at a time.
const PART: usize = 1024;

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
    let parts: Vec<_> = numbers
        .names
        .par_chunks(PART)
        .zip(numbers.homes.par_chunks(PART))
        .map(|(heads, homes)| writer.part(heads, homes))
        .collect();
    let mut positions = vec![0];
    let mut position = 0;
    for size in parts.iter().flat_map(|(_, sizes)| sizes) {
        position += *size as u64;
        positions.push(position);
    }
    let width = packed::width_of(position);
    let mut names = vec![width, 0, 0, 0, 0, 0, 0, 0];
    names.extend((numbers.names.len() as u64).to_le_bytes());
    packed::put(&mut names, width, positions.into_iter());
    parts.iter().for_each(|(bytes, _)| names.extend(bytes));
    NameSections { names, dictionary, languages }
}

struct Writer<'a> {
    strings: &'a Strings,
    languages: &'a [u16],
    packer: Packer<'a>,
}

impl Writer<'_> {
    /// The records of some names, and the size of each.
    fn part(&self, heads: &[FunctionHead], homes: &[Location]) -> (Vec<u8>, Vec<usize>) {
        let (mut out, mut text, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for (head, home) in heads.iter().zip(homes) {
            let before = out.len();
            let language = self.languages.binary_search(&head.language.0);
            let language = language.map_or(NO_LANGUAGE, |index| index as u8);
            let has = |name: bool, flag: u8| if name { flag } else { 0 };
            out.push(has(head.linkage_name.is_some(), 1) | has(head.name.is_some(), 2) | language << 2);
            for number in [home.file, home.line, home.column] {
                put_uleb(&mut out, u64::from(number));
            }
            for (number, name) in [head.linkage_name, head.name].into_iter().flatten().enumerate() {
                text.clear();
                self.packer.pack(self.strings.get(name.0), &mut text);
                if number == 0 && head.linkage_name.is_some() && head.name.is_some() {
                    put_uleb(&mut out, text.len() as u64);
                }
                out.extend(&text);
            }
            sizes.push(out.len() - before);
        }
        (out, sizes)
    }
}
