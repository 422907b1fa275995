use crate::{Demangler, ErrorKind, FoldTemplates, Options, Scheme, demangle, scheme};
use alloc::format;
use alloc::string::String;

#[test]
fn names() {
    for (name, readable) in [
        ("_Dmain", "D main"),
        ("_D3lib4workFiAyaZv", "lib.work(int, immutable(char)[])"),
        ("__D3lib4workFiAyaZv", "lib.work(int, immutable(char)[])"),
        ("_D3lib4workFiAyaZv.cold", "lib.work(int, immutable(char)[]) (.cold)"),
        ("_D3lib3Box6__ctorMFNaNbiZCQyQw", "lib.Box.this(int)"),
        ("_D3lib3Box3getMxFNdZi", "lib.Box.get() const"),
        ("_D3lib3Box6__initZ", "initializer for lib.Box"),
        ("_D3lib3Box12__ModuleInfoZ", "ModuleInfo for lib.Box"),
        (
            "_D3lib__T3BoxTiVmi3Z__T3getTaZQhMFHAyaPiDFNaZdZv",
            "lib.Box!(int, 3uL).get!(char).get(int*[immutable(char)[]], double() pure delegate)",
        ),
        (
            "_D3lib__T3runVAyaa3_61620aVde0A8P1Z3runFB2iaYv",
            "lib.run!(\"ab\\n\", 0x0.A8p1).run(Tuple!(int, char), ...)",
        ),
        ("_D3lib5outerFZ5innerMFKG3iJSQBa1SXb", "lib.outer().inner(ref int[3], out lib.S...)"),
        ("_D3lib5valuei", "lib.value"),
    ] {
        assert_eq!(scheme(name), Some(Scheme::D), "{name}");
        assert_eq!(demangle(name, &Options::default()), readable);
    }
}

#[test]
fn broken_names() {
    for name in [
        "_D",
        "_D3",
        "_D3li",
        "_D3libFi",
        "_D3libQa",
        "_D3libSQz",
        "_D3lib__T1aZ",
        "_D1aFNzZv",
        "_Dmainly",
        "_D3libiX",
    ] {
        assert_eq!(demangle(name, &Options::default()), name);
    }
}

#[test]
fn options() {
    let name = "_D3lib__T3BoxTSQn__T4PairTiTaZQkZ3getMFiZv";
    let whole = "lib.Box!(lib.Pair!(int, char).Pair).get(int)";
    assert_eq!(demangle(name, &Options::default()), whole);
    assert_eq!(demangle(name, &Options::short()), "lib.Box!(lib.Pair!(int, char).Pair).get");
    let folded =
        |depth, len| Options { fold_templates: Some(FoldTemplates { depth, len }), ..Options::default() };
    assert_eq!(demangle(name, &folded(1, 100)), "lib.Box!(lib.Pair!(...).Pair).get(int)");
    assert_eq!(demangle(name, &folded(9, 20)), "lib.Box!(...).get(int)");
}

/// Each parameter is a pair of the one before.
#[test]
fn references_that_double() {
    let mut name = String::from("_D1fFi");
    for _ in 0..60 {
        // The type before starts two letters back at first, then seven: `B2QbQd`.
        let (first, second) = if name.ends_with('i') { ("Qd", "Qf") } else { ("Qi", "Qk") };
        name += &format!("B2{first}{second}");
    }
    name += "Zv";
    let options = Options { max_len: 1000, ..Options::default() };
    let result = Demangler::new().demangle(&name, &options).map(str::len).map_err(|error| error.kind());
    assert!(result.is_ok_and(|len| len <= 1000) || result == Err(ErrorKind::TooComplex), "{result:?}");
}

#[test]
fn depth_is_bounded() {
    for before in ["A", "P", "O", "G1", "Hi", "FPFZ", "DFZ", "B1"] {
        let name = format!("_D1fF{}iZv", before.repeat(100_000));
        let error = Demangler::new().demangle(&name, &Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooComplex, "{before}");
    }
    let name = format!("_D{}1fFZv", "1aFZ".repeat(100_000));
    assert!(Demangler::new().demangle(&name, &Options::default()).is_ok());
}
