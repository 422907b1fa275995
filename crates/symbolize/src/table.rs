//! Answers out of a table, in the words of lookups from debug info.

use backtrail_core::{Function, FunctionRef, Reason, Svma, Symbol, SymbolInfo};
use backtrail_demangle::{Options, demangle};
use backtrail_table::{File, Frame, FunctionAt, Lookup, Table};
use std::borrow::Cow;

/// What a table knows of one address: the same that [`Symbolizer::lookup`](crate::Symbolizer::lookup) answers from the
/// files that the table was made from. As there, return addresses are to be passed lowered by one.
pub fn table_lookup(table: &Table<'_>, address: Svma) -> SymbolInfo {
    symbol_info(&table.lookup(address), address, function)
}

/// The table's answer for an address, with texts that were kept from other answers of this table, and are kept for the
/// next ones.
pub fn table_answer(answer: &Lookup<'_>, address: Svma, texts: &mut TableTexts) -> SymbolInfo {
    symbol_info(answer, address, |frame| texts.function(frame))
}

fn symbol_info(
    answer: &Lookup<'_>,
    address: Svma,
    mut function: impl FnMut(&Frame<'_>) -> Function,
) -> SymbolInfo {
    match answer {
        Lookup::Found(found) => {
            let functions: Vec<Function> = found.frames().map(|frame| function(&frame)).collect();
            let is_named = functions.last().is_some_and(|outermost| outermost.linkage_name.is_some());
            let start = found.function_start().filter(|_| is_named);
            let function_offset = start.and_then(|start| address.offset_from(start));
            SymbolInfo { functions, function_offset, ..SymbolInfo::default() }
        }
        Lookup::Symbol(symbol) => {
            let function_offset = address.offset_from(symbol.start);
            let Some(name) = symbol.name.map(|name| name.to_text()) else {
                return SymbolInfo { function_offset, ..SymbolInfo::unknown(Reason::Stripped) };
            };
            let readable = demangle(&name, &Options::default()).into_owned();
            let offset = function_offset.unwrap_or(0);
            let symbol = Some(Symbol { name: readable, linkage_name: Some(name), offset });
            SymbolInfo { symbol, function_offset, ..SymbolInfo::default() }
        }
        Lookup::None(reason) => SymbolInfo::unknown(*reason),
    }
}

fn function(frame: &Frame<'_>) -> Function {
    let linkage = frame.linkage_name.map(|name| name.to_text());
    let plain = frame.name.map(|name| name.to_text());
    let name = readable(linkage.as_deref(), plain.as_deref()).into_owned();
    with_names(frame, name, linkage.or(plain), frame.file.map(|file| path(&file)))
}

fn with_names(
    frame: &Frame<'_>,
    name: String,
    linkage_name: Option<String>,
    file: Option<String>,
) -> Function {
    Function {
        name,
        linkage_name,
        file,
        line: Some(frame.line).filter(|line| *line != 0),
        column: Some(frame.column).filter(|column| *column != 0),
        inlined: frame.inlined,
    }
}

fn path(file: &File<'_>) -> String {
    let mut path = Vec::new();
    file.append_to(&mut path);
    String::from_utf8(path).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Readable names and paths of one table, kept between lookups, since most answers have the same ones: making a name
/// readable takes longer than all else. What is kept is bounded.
#[derive(Debug, Default)]
pub struct TableTexts {
    names: TextCache,
    paths: TextCache,
}

impl TableTexts {
    /// The functions of an answer, innermost first, replacing those in `into`.
    pub fn functions<'a>(&'a mut self, found: &FunctionAt<'_>, into: &mut Vec<FunctionRef<'a>>) {
        self.bound();
        for frame in found.frames() {
            self.keep(&frame);
        }
        let (names, paths): (&'a TextCache, &'a TextCache) = (&self.names, &self.paths);
        into.clear();
        into.extend(found.frames().map(|frame| FunctionRef {
            name: names.get(frame.name_number).unwrap_or_default(),
            file: paths.get(frame.file_number),
            line: Some(frame.line).filter(|line| *line != 0),
            column: Some(frame.column).filter(|column| *column != 0),
            inlined: frame.inlined,
        }));
    }

    fn function(&mut self, frame: &Frame<'_>) -> Function {
        self.bound();
        self.keep(frame);
        let name = self.names.get(frame.name_number).unwrap_or_default().to_owned();
        let linkage_name = frame.linkage_name.or(frame.name).map(|name| name.to_text());
        with_names(frame, name, linkage_name, self.paths.get(frame.file_number).map(str::to_owned))
    }

    fn keep(&mut self, frame: &Frame<'_>) {
        self.names.keep(frame.name_number, || {
            let linkage = frame.linkage_name.map(|name| name.to_text());
            let plain = frame.name.map(|name| name.to_text());
            Some(readable(linkage.as_deref(), plain.as_deref()).into_owned())
        });
        self.paths.keep(frame.file_number, || frame.file.map(|file| path(&file)));
    }

    fn bound(&mut self) {
        for kept in [&mut self.names, &mut self.paths] {
            if kept.bytes > MAX_KEPT {
                *kept = TextCache::default();
            }
        }
    }
}

/// When more bytes of names, or of paths, are kept, they are all let go of.
const MAX_KEPT: usize = 96 << 20;

/// Texts by number.
#[derive(Debug, Default)]
struct TextCache {
    texts: Vec<Box<str>>,
    /// Where among these the text of each number is, plus one; 0 where none is kept.
    places: Vec<u32>,
    bytes: usize,
}

impl TextCache {
    fn keep(&mut self, number: Option<u32>, make: impl FnOnce() -> Option<String>) {
        let Some(index) = number.map(|number| number as usize) else { return };
        if self.get(number).is_some() {
            return;
        }
        let Some(text) = make() else { return };
        self.make_room(index);
        self.bytes += text.len();
        self.texts.push(text.into_boxed_str());
        if let (Some(slot), Ok(place)) = (self.places.get_mut(index), u32::try_from(self.texts.len())) {
            *slot = place;
        }
    }

    /// Numbers of a table are below the count of its rows, so there are fewer than the file has bytes. What is made as zeros is no
    /// memory until it is written to, which `resize` does.
    fn make_room(&mut self, index: usize) {
        if self.places.len() <= index {
            let mut places = vec![0; (index + 1).next_power_of_two()];
            if let Some(start) = places.get_mut(..self.places.len()) {
                start.copy_from_slice(&self.places);
            }
            self.places = places;
        }
    }

    #[inline]
    fn get(&self, number: Option<u32>) -> Option<&str> {
        let place = self.places.get(number? as usize)?.checked_sub(1)?;
        self.texts.get(place as usize).map(|text| &**text)
    }
}

/// The readable one of a function's names; `plain` is what the source says.
pub(crate) fn readable<'n>(linkage: Option<&'n str>, plain: Option<&'n str>) -> Cow<'n, str> {
    let Some(linkage) = linkage else { return Cow::Borrowed(plain.unwrap_or_default()) };
    let readable = demangle(linkage, &Options::default());
    // Not mangled, but for instance renamed by the assembler: the source's own name is the readable one.
    if readable == linkage { Cow::Borrowed(plain.unwrap_or(linkage)) } else { readable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_made_once_and_kept_by_number() {
        let mut kept = TextCache::default();
        for number in [5, 0, 1_000_000, 64, 63] {
            kept.keep(Some(number), || Some(format!("text {number}")));
            kept.keep(Some(number), || panic!("it is kept"));
        }
        kept.keep(Some(7), || None);
        kept.keep(None, || panic!("there is no number"));
        for number in [5, 0, 1_000_000, 64, 63] {
            assert_eq!(kept.get(Some(number)), Some(format!("text {number}").as_str()));
        }
        let missing = [None, Some(1), Some(7), Some(1_000_001), Some(u32::MAX)];
        assert!(missing.into_iter().all(|number| kept.get(number).is_none()));
        assert_eq!(kept.bytes, 6 + 6 + 12 + 7 + 7);
    }

    #[test]
    fn what_is_too_much_is_let_go_of() {
        let mut texts = TableTexts::default();
        texts.names.keep(Some(0), || Some("a".repeat(MAX_KEPT + 1)));
        texts.paths.keep(Some(0), || Some("path".to_owned()));
        texts.bound();
        assert_eq!((texts.names.get(Some(0)), texts.paths.get(Some(0))), (None, Some("path")));
    }
}
