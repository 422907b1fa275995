//! The tree of inlined calls. Its root is the function itself.

use super::bytes::{Bytes, put_uleb};
use crate::exchange::PlainInline;
use backtrail_core::{AddrRange, Svma};

/// An inlined call as the file has it.
#[derive(Clone, Debug)]
pub(super) struct Inline {
    /// 0 for the function itself.
    pub(super) depth: u32,
    /// Offset of the name among the strings.
    pub(super) name: u32,
    pub(super) call_file: u32,
    pub(super) call_line: u32,
    pub(super) ranges: Vec<AddrRange<Svma>>,
}

impl Inline {
    pub(super) fn contains(&self, address: Svma) -> bool {
        self.ranges.iter().any(|range| range.contains(address))
    }
}

/// Calls within calls. Compilers stop at some dozen.
const MAX_DEPTH: usize = 1024;

/// Reads the tree, callers before what they call. `None` where it is broken.
pub(super) fn read(mut bytes: Bytes<'_>, start: Svma) -> Option<Vec<Inline>> {
    let mut inlines = Vec::new();
    // Where the ranges of each open list of siblings count from.
    let mut bases: Vec<Svma> = Vec::new();
    loop {
        let base = bases.last().copied().unwrap_or(start);
        let ranges = ranges(&mut bytes, base)?;
        let Some(first) = ranges.first().map(|range| range.start()) else {
            bases.pop();
            if bases.is_empty() {
                return Some(inlines);
            }
            continue;
        };
        let has_children = bytes.u8()? != 0;
        let name = bytes.u32()?;
        let call_file = u32::try_from(bytes.uleb()?).ok()?;
        let call_line = u32::try_from(bytes.uleb()?).ok()?;
        inlines.push(Inline { depth: bases.len() as u32, name, call_file, call_line, ranges });
        if has_children {
            if bases.len() == MAX_DEPTH {
                return None;
            }
            bases.push(first);
        } else if bases.is_empty() {
            return Some(inlines);
        }
    }
}

fn ranges(bytes: &mut Bytes<'_>, base: Svma) -> Option<Vec<AddrRange<Svma>>> {
    let count = bytes.uleb()?;
    // Each takes two bytes at least.
    let count = usize::try_from(count).ok().filter(|count| *count <= bytes.remaining() / 2)?;
    let mut ranges = Vec::with_capacity(count);
    for _ in 0..count {
        let start = base.checked_add(bytes.uleb()?)?;
        let end = start.checked_add(bytes.uleb()?)?;
        ranges.push(AddrRange::new(start, end));
    }
    Some(ranges)
}

/// One call to be written; `depth` is 0 for the function itself.
pub(super) struct Node<'r> {
    pub(super) depth: usize,
    pub(super) name: u32,
    pub(super) call_file: u32,
    pub(super) call_line: u32,
    pub(super) ranges: &'r [AddrRange<Svma>],
}

/// Writes a tree: its root, then callers before what they call. Every range is within one of the caller's.
pub(super) fn write(nodes: &[Node<'_>], start: Svma, out: &mut Vec<u8>) {
    let mut bases = vec![start];
    for (position, node) in nodes.iter().enumerate() {
        close(node.depth, &mut bases, out);
        let base = bases.last().copied().unwrap_or(start);
        put_uleb(out, node.ranges.len() as u64);
        for range in node.ranges {
            put_uleb(out, range.start().offset_from(base).unwrap_or(0));
            put_uleb(out, range.size());
        }
        let has_children = nodes.get(position + 1).is_some_and(|next| next.depth > node.depth);
        out.push(has_children.into());
        out.extend_from_slice(&node.name.to_le_bytes());
        put_uleb(out, node.call_file.into());
        put_uleb(out, node.call_line.into());
        if has_children {
            bases.push(node.ranges.first().map_or(base, |range| range.start()));
        }
    }
    close(0, &mut bases, out);
}

/// Ends the lists of siblings that are deeper than `depth`.
fn close(depth: usize, bases: &mut Vec<Svma>, out: &mut Vec<u8>) {
    while bases.len() > depth + 1 {
        bases.pop();
        put_uleb(out, 0);
    }
}

/// The words of the exchange for what was inlined into the function.
pub(super) fn plain<'d>(inlines: &[Inline], name: impl Fn(u32) -> &'d [u8]) -> Vec<PlainInline<'d>> {
    let calls = inlines.iter().filter(|inline| inline.depth > 0);
    let plain = calls.map(|inline| PlainInline {
        depth: inline.depth,
        name: name(inline.name).into(),
        call_file: Some(inline.call_file).filter(|file| *file != 0),
        call_line: inline.call_line,
        ranges: inline.ranges.clone(),
    });
    plain.collect()
}
