//! Symbols: names of addresses.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;

use backtrail_core::Svma;

/// How far a symbol's name reaches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Binding {
    /// Seen in its own object file alone.
    Local,
    /// Another definition of the same name may take its place.
    Weak,
    /// The definition.
    Global,
}

/// The table that a symbol comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum SymbolTable {
    /// ELF `.symtab`.
    Symtab,
    /// ELF `.dynsym`, all that stripped libraries keep.
    Dynsym,
    /// Mach-O `LC_SYMTAB`.
    Nlist,
    /// Mach-O's exports trie.
    Exports,
    /// The local symbols that a dyld shared cache keeps apart from its images.
    CacheLocals,
}

/// A defined symbol of code or data.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Symbol<'d> {
    /// The name that the linker sees, Mach-O's leading underscore included; lossy only where it is no UTF-8.
    pub name: Cow<'d, str>,
    /// Where it lies, the Thumb bit cleared. In an ELF `.o`: from the start of its section.
    pub address: Svma,
    /// Bytes, where the table states them (ELF) and they are not zero.
    pub size: Option<u64>,
    /// Whether it names instructions.
    pub is_code: bool,
    /// How far the name reaches.
    pub binding: Binding,
    /// Index into [`Object::sections`](crate::Object::sections).
    pub section: Option<usize>,
    /// Where it was found.
    pub table: SymbolTable,
    /// The source file that an ELF table states for its local symbols; without directories as a rule.
    pub source: Option<&'d str>,
}

/// How good a name is among several for one address; greater is better. See [`Symbol::preference`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Preference<'a> {
    is_code: bool,
    has_size: bool,
    is_real: bool,
    binding: Binding,
    few_underscores: Reverse<usize>,
    short: Reverse<usize>,
    first: Reverse<&'a str>,
}

impl Symbol<'_> {
    /// The same with a name of its own and without its source, for symbols that outlive the bytes they were read from.
    pub fn into_owned(self) -> Symbol<'static> {
        Symbol { name: Cow::Owned(self.name.into_owned()), source: None, ..self }
    }

    /// Which of several symbols at one address to show: the greatest.
    ///
    /// Code goes before data, a symbol that states its size before one that does not, a name that a person gave
    /// before the assembler's own labels (`L…`, `ltmp0`, `.L…`, `<redacted>`); then global before weak before local
    /// (glibc's `read` is also `__GI___libc_read`), fewer leading underscores before more, shorter before longer, and
    /// at last the one that sorts first, so that the answer never depends on the order of a table.
    pub fn preference(&self) -> Preference<'_> {
        let name = &*self.name;
        Preference {
            is_code: self.is_code,
            has_size: self.size.is_some(),
            is_real: !is_made_up(name),
            binding: self.binding,
            few_underscores: Reverse(name.len() - name.trim_start_matches('_').len()),
            short: Reverse(name.len()),
            first: Reverse(name),
        }
    }
}

fn is_made_up(name: &str) -> bool {
    let is_numbered = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    name == "<redacted>"
        || name.starts_with(".L")
        || is_numbered("ltmp")
        || is_numbered("L")
        || is_numbered("l")
}

/// Names of a table, with a bound on the work: many symbols may share one long string, and finding its end costs time
/// each time.
pub(crate) struct Names<'d> {
    table: &'d [u8],
    budget: usize,
}

impl<'d> Names<'d> {
    /// For `count` names. Linkers share tails, and thousands of sections are all `.text`; still names never add up to
    /// many times their table.
    pub(crate) fn new(table: &'d [u8], count: usize) -> Self {
        let budget = table.len().saturating_mul(16).saturating_add(count.saturating_mul(64));
        Self { table, budget: budget.saturating_add(1 << 20) }
    }

    /// The name at `offset`; `None` where there is none, where it is empty, or when the budget is spent.
    pub(crate) fn get(&mut self, offset: u64) -> Option<&'d [u8]> {
        let tail = self.table.get(usize::try_from(offset).ok()?..)?;
        let name = crate::view::until_nul(tail.get(..self.budget.min(tail.len()))?);
        self.budget = self.budget.saturating_sub(name.len() + 1);
        if name.is_empty() || self.budget == 0 { None } else { Some(name) }
    }
}

/// Text as the file has it, borrowed wherever it is UTF-8.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Adds what another table of the same object says and `symbols` do not.
pub(crate) fn add_unknown<'d>(symbols: &mut Vec<Symbol<'d>>, more: Vec<Symbol<'d>>) {
    if symbols.is_empty() {
        *symbols = more;
        return;
    }
    let known: HashSet<(Svma, &str)> = symbols.iter().map(|symbol| (symbol.address, &*symbol.name)).collect();
    let is_known: Vec<bool> =
        more.iter().map(|symbol| known.contains(&(symbol.address, &*symbol.name))).collect();
    symbols
        .extend(more.into_iter().zip(is_known).filter(|(_, is_known)| !is_known).map(|(symbol, _)| symbol));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &'static str, binding: Binding, size: Option<u64>) -> Symbol<'static> {
        let (address, table) = (Svma::new(16), SymbolTable::Symtab);
        Symbol {
            name: name.into(),
            address,
            size,
            is_code: true,
            binding,
            section: None,
            table,
            source: None,
        }
    }

    fn best(mut symbols: Vec<Symbol<'static>>) -> String {
        let one = symbols.iter().max_by_key(|symbol| symbol.preference()).unwrap().name.to_string();
        symbols.reverse();
        assert_eq!(symbols.iter().max_by_key(|symbol| symbol.preference()).unwrap().name, one);
        one
    }

    #[test]
    fn the_name_that_people_know_wins_whatever_the_order() {
        use Binding::{Global, Local, Weak};
        let read = vec![
            symbol("__GI___libc_read", Local, Some(9)),
            symbol("read", Weak, Some(9)),
            symbol("__read", Weak, Some(9)),
        ];
        assert_eq!(best(read), "read");
        assert_eq!(best(vec![symbol("marker", Global, None), symbol("f", Local, Some(4))]), "f");
        assert_eq!(best(vec![symbol("ltmp0", Global, None), symbol("_main", Local, None)]), "_main");
        assert_eq!(
            best(vec![symbol("_ZN1AC2Ev", Weak, Some(4)), symbol("_ZN1AC1Ev", Weak, Some(4))]),
            "_ZN1AC1Ev"
        );
        assert_eq!(best(vec![symbol("list", Local, None), symbol("l1", Local, None)]), "list");
    }

    #[test]
    fn names_cost_no_more_than_a_few_times_their_table() {
        let table = vec![b'a'; 1 << 16];
        let mut names = Names::new(&table, 1);
        let given = (0..1_000_000).take_while(|_| names.get(0).is_some()).count();
        assert!((16..64).contains(&given), "{given}");
    }
}
