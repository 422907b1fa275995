//! The exports trie: names spelled along its edges, addresses at its nodes. dyld, `MachOTrie`.

use object::macho::{
    EXPORT_SYMBOL_FLAGS_KIND_ABSOLUTE, EXPORT_SYMBOL_FLAGS_REEXPORT, EXPORT_SYMBOL_FLAGS_WEAK_DEFINITION,
    ExportSymbolFlags,
};

use super::parser::{Tables, code_address, too_many};
use crate::error::{Error, ErrorKind, Result};
use crate::object::Object;
use crate::section::SectionMap;
use crate::symbol::{Binding, Symbol, SymbolTable};
use crate::view::{uleb128, until_nul};

/// The exports that lie in this image: no re-exports, no absolute ones.
pub(super) fn read<'d>(object: &Object<'d>, tables: &Tables<'_>) -> Result<Vec<Symbol<'d>>> {
    let Some(range) = tables.exports else { return Ok(Vec::new()) };
    let offset = range.start().get();
    let bytes = object.view.bytes(offset, range.size(), "the exports trie")?;
    let sections = SectionMap::new(&object.headers.sections);
    let mut symbols = Vec::new();
    let mut walk = Walk::new(bytes, object.view.absolute(offset), object.limits.trie_depth);
    while let Some(export) = walk.next()? {
        if symbols.len() >= object.limits.symbols {
            return Err(too_many(object.view.absolute(offset), "symbols", object.limits.symbols));
        }
        symbols.extend(symbol(object, &sections, &export));
    }
    Ok(symbols)
}

fn symbol<'d>(object: &Object<'_>, sections: &SectionMap, export: &Export<'_>) -> Option<Symbol<'d>> {
    let distance = export.distance?;
    let value = object.image_base().get().checked_add(distance)?;
    let section = sections.find(code_address(object, value, true));
    let is_code =
        section.and_then(|index| object.headers.sections.get(index)).is_some_and(|section| section.is_code);
    Some(Symbol {
        name: String::from_utf8_lossy(export.name).into_owned().into(),
        address: code_address(object, value, is_code),
        size: None,
        is_code,
        binding: if export.is_weak { Binding::Weak } else { Binding::Global },
        section,
        table: SymbolTable::Exports,
        source: None,
    })
}

struct Export<'w> {
    name: &'w [u8],
    /// Bytes from the image base; `None` where the symbol is not in this image.
    distance: Option<u64>,
    is_weak: bool,
}

/// Depth first, over a trie in which no node may be reached twice: then no loop and no explosion is possible.
struct Walk<'d> {
    bytes: &'d [u8],
    /// Where `bytes` starts in the outermost file.
    offset: u64,
    pending: Vec<Pending<'d>>,
    seen: Vec<bool>,
    name: Vec<u8>,
    max_depth: usize,
    /// Bytes of names that may still be given: prefixes are shared, so a small trie could spell gigabytes.
    budget: usize,
}

struct Pending<'d> {
    node: usize,
    depth: usize,
    prefix: usize,
    edge: &'d [u8],
}

impl<'d> Walk<'d> {
    fn new(bytes: &'d [u8], offset: u64, max_depth: usize) -> Self {
        let pending = vec![Pending { node: 0, depth: 0, prefix: 0, edge: &[] }];
        let budget = bytes.len().saturating_mul(64).saturating_add(1 << 16);
        Self { bytes, offset, pending, seen: vec![false; bytes.len()], name: Vec::new(), max_depth, budget }
    }

    fn error(&self, node: usize, detail: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::malformed(self.offset.saturating_add(node as u64), detail)
    }

    /// The next exported symbol; `None` at the end.
    fn next(&mut self) -> Result<Option<Export<'_>>> {
        while let Some(pending) = self.pending.pop() {
            self.name.truncate(pending.prefix);
            self.name.extend_from_slice(pending.edge);
            if let Some((distance, is_weak)) = self.visit(&pending)? {
                self.budget = self.budget.checked_sub(self.name.len()).ok_or_else(|| {
                    let detail = "the exports trie spells far more than its size allows";
                    Error::new(ErrorKind::LimitExceeded, self.offset, detail)
                })?;
                return Ok(Some(Export { name: &self.name, distance, is_weak }));
            }
        }
        Ok(None)
    }

    /// Reads a node and puts its children on the list; gives what it says of its own name.
    fn visit(&mut self, pending: &Pending<'d>) -> Result<Option<(Option<u64>, bool)>> {
        let node = pending.node;
        match self.seen.get_mut(node) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => return Err(self.error(node, "a node of the exports trie is reached twice")),
            None => return Err(self.error(node, "expected a node of the exports trie, its data ends before")),
        }
        if pending.depth > self.max_depth {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                self.offset,
                "the exports trie is nested too deeply",
            ));
        }
        let broken = || self.error(node, "expected a node of the exports trie, it is cut off");
        let mut rest = self.bytes.get(node..).unwrap_or_default();
        let size = uleb128(&mut rest).and_then(|size| usize::try_from(size).ok()).ok_or_else(broken)?;
        let (terminal, rest) = rest.split_at_checked(size).ok_or_else(broken)?;
        let export = if size > 0 { Some(terminal_of(terminal).ok_or_else(broken)?) } else { None };
        let children = children(rest).ok_or_else(broken)?;
        let (prefix, depth) = (self.name.len(), pending.depth + 1);
        self.pending.extend(children.into_iter().rev().map(|(edge, node)| Pending {
            node,
            depth,
            prefix,
            edge,
        }));
        Ok(export)
    }
}

fn terminal_of(mut bytes: &[u8]) -> Option<(Option<u64>, bool)> {
    let flags = ExportSymbolFlags(uleb128(&mut bytes)?);
    if flags.contains(EXPORT_SYMBOL_FLAGS_REEXPORT) {
        return Some((None, false));
    }
    // A stub and its resolver: the stub's address comes first and is what callers reach.
    let distance = uleb128(&mut bytes)?;
    let is_absolute = flags.kind() == EXPORT_SYMBOL_FLAGS_KIND_ABSOLUTE;
    Some((Some(distance).filter(|_| !is_absolute), flags.contains(EXPORT_SYMBOL_FLAGS_WEAK_DEFINITION)))
}

fn children(bytes: &[u8]) -> Option<Vec<(&[u8], usize)>> {
    let (count, mut rest) = bytes.split_first()?;
    let mut children = Vec::with_capacity((*count).into());
    for _ in 0..*count {
        let edge = until_nul(rest);
        rest = rest.get(edge.len() + 1..)?;
        children.push((edge, usize::try_from(uleb128(&mut rest)?).ok()?));
    }
    Some(children)
}

#[cfg(test)]
mod tests;
