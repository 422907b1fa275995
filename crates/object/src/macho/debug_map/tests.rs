use backtrail_testkit::{MachO, MachSection, MachSegment, Nlist};

use super::split_member;
use crate::Object;

const SO: u8 = 0x64;
const OSO: u8 = 0x66;
const FUN: u8 = 0x24;
const GSYM: u8 = 0x20;
const STSYM: u8 = 0x26;
const BNSYM: u8 = 0x2e;
const ENSYM: u8 = 0x4e;

fn stab(kind: u8, name: &'static str, value: u64) -> Nlist {
    Nlist { name, kind, section: 1, desc: 0, value }
}

fn map_of(symbols: Vec<Nlist>) -> Vec<(String, Option<String>, u64, Vec<String>)> {
    let text =
        MachSection { name: "__text", address: 0x5000, flags: 0x8000_0400, data: vec![0; 0x100], size: 0 };
    let segment =
        MachSegment { name: "__TEXT", address: 0x4000, size: 0x2000, protection: 5, sections: vec![text] };
    let data = MachO { is_64: false, cpu: 12, segments: vec![segment], symbols, ..MachO::default() }.build();
    let map = Object::parse(&data).unwrap().debug_map();
    let entry = |entry: crate::DebugMapEntry<'_>| {
        let functions = entry.functions.iter();
        let functions =
            functions.map(|function| format!("{} {:x} {:x}", function.name, function.address, function.size));
        let variables = entry.variables.iter().map(|variable| {
            format!(
                "{} {}",
                variable.name,
                variable.address.map_or("-".into(), |address| format!("{address:x}"))
            )
        });
        let all = functions.chain(variables).collect();
        (entry.path.to_string(), entry.member.map(|member| member.to_string()), entry.modified, all)
    };
    map.into_iter().map(entry).collect()
}

#[test]
fn stabs_tell_object_files_and_what_came_from_them() {
    let map = map_of(vec![
        stab(SO, "/src/", 0),
        stab(SO, "a.c", 0),
        stab(OSO, "/build/a.o", 1_600_000_000),
        stab(BNSYM, "", 0x5000),
        stab(FUN, "_main", 0x5001),
        stab(FUN, "", 0x20),
        stab(ENSYM, "", 0x20),
        stab(STSYM, "_counter", 0x5101),
        stab(GSYM, "_shared", 0),
        stab(GSYM, "_gone", 0),
        stab(SO, "", 0),
        stab(FUN, "_of_nobody", 0x5080),
        stab(FUN, "", 4),
        stab(OSO, "/build/libx.a(b.o)", 7),
        stab(FUN, "_without_size", 0x5040),
        stab(FUN, "_b", 0x5050),
        stab(FUN, "", 8),
        Nlist { name: "_shared", kind: 0xf, section: 1, desc: 0, value: 0x50f0 },
    ]);
    let a = vec!["_main 5000 20", "_counter 5101", "_shared 50f0", "_gone -"];
    let b = vec!["_b 5050 8"];
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    assert_eq!(
        map,
        [
            ("/build/a.o".to_owned(), None, 1_600_000_000, owned(a)),
            ("/build/libx.a".to_owned(), Some("b.o".to_owned()), 7, owned(b)),
        ]
    );
}

#[test]
fn members_are_split_off_their_archive() {
    for (name, path, member) in [
        ("/a/libx.a(b.o)", "/a/libx.a", Some("b.o")),
        ("/a/libx.a(b(1).o)", "/a/libx.a", Some("b(1).o")),
        ("/a/Framework(b.o)", "/a/Framework", Some("b.o")),
        ("/a (copy)/b.o", "/a (copy)/b.o", None),
        ("/a/b(1)", "/a/b", Some("1")),
        ("(b.o)", "(b.o)", None),
        ("/a/b()", "/a/b()", None),
        (")", ")", None),
    ] {
        let split = split_member(name.as_bytes());
        assert_eq!(split, (path.as_bytes(), member.map(str::as_bytes)), "{name}");
    }
}
