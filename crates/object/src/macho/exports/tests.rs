use backtrail_testkit::{Assembler, MachO, MachSection, MachSegment};

use crate::{Binding, ErrorKind, Limits, Object, SymbolTable};

const BASE: u64 = 0x1_0000_0000;

fn parse(exports: Vec<u8>, limits: &Limits) -> crate::error::Result<Vec<(String, u64, Binding, bool)>> {
    let text = MachSection {
        name: "__text",
        address: BASE + 0x1000,
        flags: 0x8000_0400,
        data: vec![0; 64],
        size: 0,
    };
    let segment =
        MachSegment { name: "__TEXT", address: BASE, size: 0x4000, protection: 5, sections: vec![text] };
    let data = MachO { segments: vec![segment], exports, ..MachO::default() }.build();
    let symbols = Object::parse_with(&data, limits)?.symbols()?;
    assert!(symbols.iter().all(|symbol| symbol.table == SymbolTable::Exports && symbol.size.is_none()));
    Ok(symbols
        .iter()
        .map(|symbol| (symbol.name.to_string(), symbol.address.get() - BASE, symbol.binding, symbol.is_code))
        .collect())
}

/// A node: what it says of its own name, and its children.
fn node(out: &mut Assembler, terminal: &[u64], children: &[(&str, u64)]) {
    let mut own = Assembler::new();
    for number in terminal {
        own.uleb128(*number);
    }
    out.uleb128(own.len() as u64).bytes(&own.finish()).u8(u8::try_from(children.len()).unwrap());
    for (edge, offset) in children {
        out.bytes(edge.as_bytes()).u8(0).uleb128(*offset);
    }
}

#[test]
fn names_are_spelled_along_the_edges() {
    let mut out = Assembler::new();
    node(&mut out, &[], &[("_f", 0x20), ("_g", 0x40)]);
    out.pad_to(0x20);
    node(&mut out, &[0, 0x1010], &[("oo", 0x60), ("u", 0x70)]);
    out.pad_to(0x40);
    node(&mut out, &[4, 0x3000], &[("a", 0x80), ("b", 0x90)]);
    out.pad_to(0x60);
    node(&mut out, &[0x10, 0x1020, 0x1030], &[]);
    out.pad_to(0x70);
    node(&mut out, &[1, 0x3008], &[]);
    out.pad_to(0x80);
    node(&mut out, &[8, 1], &[]); // re-exported from the first library
    out.pad_to(0x90);
    node(&mut out, &[2, 0x1000], &[]); // absolute
    let symbols = parse(out.finish(), &Limits::default()).unwrap();
    let expected = [
        ("_f", 0x1010, Binding::Global, true),
        ("_foo", 0x1020, Binding::Global, true),
        ("_fu", 0x3008, Binding::Global, false),
        ("_g", 0x3000, Binding::Weak, false),
    ];
    assert_eq!(symbols, expected.map(|(name, at, binding, code)| (name.to_owned(), at, binding, code)));
}

#[test]
fn loops_and_shared_nodes_are_refused() {
    for target in [0, 9] {
        let mut out = Assembler::new();
        node(&mut out, &[], &[("a", 9), ("b", 9)]);
        out.pad_to(9);
        node(&mut out, &[], &[("c", target)]);
        let error = parse(out.finish(), &Limits::default()).unwrap_err();
        assert!(error.to_string().contains("reached twice"), "{error}");
    }
}

#[test]
fn depth_and_length_are_bounded() {
    let mut out = Assembler::new();
    for index in 1..200u64 {
        node(&mut out, &[0, index], &[("x", index * 16)]);
        out.pad_to(usize::try_from(index).unwrap() * 16);
    }
    node(&mut out, &[0, 1], &[]);
    let trie = out.finish();
    assert_eq!(parse(trie.clone(), &Limits::default()).unwrap().len(), 200);
    let shallow = Limits { trie_depth: 100, ..Limits::default() };
    assert_eq!(parse(trie.clone(), &shallow).unwrap_err().kind(), ErrorKind::LimitExceeded);
    let few = Limits { symbols: 100, ..Limits::default() };
    assert_eq!(parse(trie, &few).unwrap_err().kind(), ErrorKind::LimitExceeded);

    // A long prefix that thousands of names share: 40 KB of trie that spell 300 MB.
    let mut out = Assembler::new();
    let edge = "p".repeat(30_000);
    node(&mut out, &[], &[(&edge, 30_016)]);
    out.pad_to(30_016);
    let letters: Vec<String> = (0..255u8).map(|letter| format!("{letter}")).collect();
    let children: Vec<_> =
        letters.iter().zip(0u64..).map(|(letter, at)| (&**letter, 40_000 + at * 8)).collect();
    node(&mut out, &[], &children);
    for (_, at) in &children {
        out.pad_to(usize::try_from(*at).unwrap());
        node(&mut out, &[0, 1], &[]);
    }
    assert_eq!(parse(out.finish(), &Limits::default()).unwrap_err().kind(), ErrorKind::LimitExceeded);
}

#[test]
fn cut_tries_are_errors() {
    let mut out = Assembler::new();
    node(&mut out, &[], &[("_f", 8)]);
    out.pad_to(8);
    node(&mut out, &[0, 0x1010], &[]);
    let trie = out.finish();
    for cut in 1..trie.len() {
        assert!(parse(trie[..cut].to_vec(), &Limits::default()).is_err(), "cut at {cut}");
    }
}
