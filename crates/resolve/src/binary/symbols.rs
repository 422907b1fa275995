//! The symbols of a binary, and the addresses of a name.

use super::Binary;
use crate::symbol_names::SymbolNames;
use backtrail_core::{AddrRange, Svma};
use backtrail_demangle::{Options, demangle};
use backtrail_object::Object;
use std::borrow::Cow;

/// A named address of a binary's symbol tables.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BinarySymbol {
    /// Where it starts.
    pub address: Svma,
    /// Its bytes, where the table states them: Mach-O's do not.
    pub size: Option<u64>,
    /// The name that the linker sees.
    pub linkage_name: String,
    /// Whether it names code rather than data.
    pub is_code: bool,
}

impl BinarySymbol {
    /// The readable name; the linkage name where it cannot be made readable.
    pub fn name(&self) -> Cow<'_, str> {
        demangle(&self.linkage_name, &Options::default())
    }
}

impl Binary {
    /// Every symbol of the binary and of its debug files, by address, each once. A table or a symbol file of another tool
    /// has none: it answers addresses alone.
    pub fn symbols(&self) -> impl Iterator<Item = BinarySymbol> {
        let own = self.objects().flat_map(|object| object.symbols().unwrap_or_default());
        let mut symbols: Vec<_> = own
            .map(|symbol| BinarySymbol {
                address: symbol.address,
                size: symbol.size,
                is_code: symbol.is_code,
                linkage_name: symbol.name.into_owned(),
            })
            .collect();
        symbols.sort_by(|a, b| (a.address, &a.linkage_name).cmp(&(b.address, &b.linkage_name)));
        symbols.dedup_by(|a, b| (a.address, &a.linkage_name) == (b.address, &b.linkage_name));
        symbols.into_iter()
    }

    /// Where the functions of that name lie: the name as the linker spells it, with or without Mach-O's underscore, or as
    /// people read it, with or without parameters. Several where overloads or local functions share it.
    pub fn addresses_of(&self, name: &str) -> Vec<AddrRange<Svma>> {
        let mut ranges: Vec<_> =
            self.objects().flat_map(|object| SymbolNames::read(object).ranges_of(name)).collect();
        ranges.sort_by_key(|range| (range.start(), range.end()));
        ranges.dedup_by_key(|range| range.start());
        ranges
    }

    fn objects(&self) -> impl Iterator<Item = &Object<'_>> {
        self.image.given_files().iter().filter_map(|file| file.object())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::fixtures;

    #[test]
    fn names_lead_to_addresses_and_addresses_to_names() {
        let binary = Binary::open(fixtures().join("stacks/orders"), None).unwrap();
        let take = binary.symbols().find(|symbol| symbol.linkage_name == "take").unwrap();
        assert!(take.is_code && take.size.is_some_and(|size| size > 0), "{take:?}");
        let [range] = binary.addresses_of("take")[..] else { panic!("one function") };
        assert_eq!((range.start(), Some(range.size())), (take.address, take.size));
        let info = binary.lookup(range.start());
        assert_eq!(info.functions.last().map(|function| function.name.as_str()), Some("take"));
        assert_eq!(binary.addresses_of("no such function"), []);
        assert!(binary.symbols().map(|symbol| symbol.address).is_sorted());
    }
}
