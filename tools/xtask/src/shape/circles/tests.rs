use super::*;

/// The circles of a crate with these files below `src/`.
fn circles_of(files: &[(&str, &str)]) -> Vec<Circle> {
    let file = |(name, text): &(&str, &str)| SourceFile {
        path: sh::root().join("crates/x/src").join(name),
        text: (*text).to_owned(),
        tree: syn::parse_file(text).unwrap(),
    };
    all(&files.iter().map(file).collect::<Vec<_>>())
}

fn names(files: &[(&str, &str)]) -> Vec<String> {
    circles_of(files).into_iter().map(|circle| circle.name.replace("crates/x/src/", "")).collect()
}

const ROOT: (&str, &str) = ("lib.rs", "mod a; mod b;");

#[test]
fn two_files_that_use_each_other_are_a_circle() {
    let circles = circles_of(&[
        ROOT,
        ("a.rs", "use crate::b::B;\npub struct A(B);"),
        ("b.rs", "pub struct B;\nfn f() -> Option<super::a::A> { None }"),
    ]);
    let expected = Circle {
        name: "crates/x/src/a.rs <-> crates/x/src/b.rs".to_owned(),
        uses: vec![
            "crates/x/src/a.rs:1: uses crate::b::B".to_owned(),
            "crates/x/src/b.rs:2: uses super::a::A".to_owned(),
        ],
    };
    assert_eq!(circles, [expected]);
}

#[test]
fn one_direction_is_none_and_neither_are_tests() {
    let uses_a =
        "pub struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n#[cfg(test)]\nuse crate::a::A as C;";
    assert_eq!(names(&[ROOT, ("a.rs", "use crate::b::B; pub struct A;"), ("b.rs", uses_a)]), [""; 0]);
}

#[test]
fn what_is_passed_on_counts_where_it_is_defined() {
    let root = ("lib.rs", "mod a; mod b; pub use a::A; use b::*;");
    let files = [root, ("a.rs", "use crate::B; pub struct A;"), ("b.rs", "use crate::A; pub struct B;")];
    assert_eq!(names(&files), ["a.rs <-> b.rs"]);
}

#[test]
fn a_module_and_what_is_below_it_are_one_subject() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod c; mod d; use c::C; pub struct A;"),
        ("a/c.rs", "use super::A; pub struct C;"),
        ("a/d.rs", "mod e; use crate::a::A; pub struct D;"),
        ("a/d/e.rs", "use super::super::A; pub struct E(super::D);"),
    ];
    assert_eq!(names(&files), [""; 0]);
}

#[test]
fn what_is_below_a_module_counts_as_the_module() {
    let files = [
        ROOT,
        ("a/mod.rs", "mod c; pub mod d;"),
        ("a/c.rs", "fn f() { crate::b::g(); }"),
        ("a/d.rs", "pub const D: u8 = 1;"),
        ("b.rs", "use crate::a::d; pub fn g() { println!(\"{}\", d::D); }"),
    ];
    assert_eq!(names(&files), ["a/mod.rs <-> b.rs"]);
}

#[test]
fn circles_below_a_module_are_found_too() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod c; mod d; mod e;"),
        ("a/c.rs", "pub(super) fn f() { super::d::f() }"),
        ("a/d.rs", "pub(super) fn f() { super::e::f() }"),
        ("a/e.rs", "use super::c; pub(super) fn f() { c::f() }"),
    ];
    assert_eq!(names(&files), ["a/c.rs <-> a/d.rs <-> a/e.rs"]);
}

#[test]
fn inline_modules_are_their_file() {
    let files = [
        ("lib.rs", "mod a; mod b { pub mod inner { pub struct B; } }"),
        ("a.rs", "use crate::b::inner::B; pub struct A;"),
    ];
    assert_eq!(names(&files), [""; 0]);
}

#[test]
fn attributes_and_paths_of_files_are_read() {
    let files = [
        ("lib.rs", "#[path = \"other.rs\"] mod a; mod b;"),
        ("other.rs", "pub mod hex { pub fn f() {} } fn g() { crate::b::f(); }"),
        ("b.rs", "pub fn f() {} struct S { #[serde(with = \"crate::a::hex\")] s: u8 } "),
    ];
    // A module by itself is no use: `hex` has to be followed by a name.
    assert_eq!(names(&files), [""; 0]);
    let with_name = ("b.rs", "pub fn f() {} struct S { #[serde(with = \"crate::a::hex::f\")] s: u8 } ");
    assert_eq!(names(&[files[0], files[1], with_name]), ["b.rs <-> other.rs"]);
}
