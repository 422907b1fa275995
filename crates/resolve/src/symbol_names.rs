//! Names of addresses, for people.

use backtrail_core::{AddrRange, Svma};
use backtrail_demangle::{Options, demangle};
use backtrail_object::Object;

/// A file's code symbols, by address, one for each.
pub(crate) struct SymbolNames {
    symbols: Vec<Named>,
}

/// A symbol of code.
pub(crate) struct Named {
    pub(crate) address: Svma,
    /// Bytes, where the file says so.
    size: Option<u64>,
    pub(crate) name: String,
}

impl Named {
    pub(crate) fn readable(&self) -> String {
        demangle(&self.name, &Options::default()).into_owned()
    }
}

impl SymbolNames {
    pub(crate) fn read(object: &Object<'_>) -> Self {
        let own = object.symbols().unwrap_or_default().into_iter();
        let mut symbols: Vec<_> = own.map(backtrail_object::Symbol::into_owned).collect();
        let inner = object.gnu_debugdata().and_then(Result::ok);
        let inner = inner.as_deref().and_then(|bytes| Object::parse(bytes).ok());
        let more = inner.and_then(|inner| inner.symbols().ok()).unwrap_or_default();
        symbols.extend(more.into_iter().map(backtrail_object::Symbol::into_owned));
        symbols.retain(|symbol| symbol.is_code);
        symbols.sort_by(|a, b| (a.address, b.preference()).cmp(&(b.address, a.preference())));
        symbols.dedup_by_key(|symbol| symbol.address);
        let named = |symbol: backtrail_object::Symbol<'_>| Named {
            address: symbol.address,
            size: symbol.size,
            name: symbol.name.into_owned(),
        };
        Self { symbols: symbols.into_iter().map(named).collect() }
    }

    /// The symbol that starts at `address`.
    pub(crate) fn at(&self, address: Svma) -> Option<&Named> {
        let position = self.symbols.binary_search_by_key(&address, |symbol| symbol.address).ok()?;
        self.symbols.get(position)
    }

    /// The symbols that start in `range`.
    pub(crate) fn within(&self, range: AddrRange<Svma>) -> &[Named] {
        let first = self.symbols.partition_point(|symbol| symbol.address < range.start());
        let last = self.symbols.partition_point(|symbol| symbol.address < range.end());
        self.symbols.get(first..last).unwrap_or_default()
    }

    /// Where the functions of that name lie, as the linker spells it, with or without Mach-O's underscore, or as people
    /// read it, with or without parameters.
    pub(crate) fn ranges_of(&self, wanted: &str) -> Vec<AddrRange<Svma>> {
        let mut short = Options::default();
        short.parameters = false;
        let is_wanted = |symbol: &&Named| {
            symbol.name == wanted
                || symbol.name.strip_prefix('_') == Some(wanted)
                || demangle(&symbol.name, &Options::default()) == wanted
                || demangle(&symbol.name, &short) == wanted
        };
        let next = |address: Svma| {
            let after = self.symbols.partition_point(|symbol| symbol.address <= address);
            self.symbols.get(after).map(|symbol| symbol.address)
        };
        let range = |symbol: &Named| match (symbol.size, next(symbol.address)) {
            (Some(size), _) => AddrRange::from_size(symbol.address, size),
            (None, Some(next)) => AddrRange::new(symbol.address, next),
            (None, None) => AddrRange::from_size(symbol.address, 1),
        };
        self.symbols.iter().filter(is_wanted).map(range).collect()
    }
}
