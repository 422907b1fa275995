//! Swift names: the lists, the options, and names that are broken, cut, too deep, or made to grow.

#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use backtrail_demangle::{
    Demangler, ErrorKind, FoldTemplates, MAX_DEPTH, Options, Scheme, SwiftStyle, demangle, scheme,
};
use std::path::PathBuf;

/// A name and its two forms.
struct Case {
    name: String,
    full: String,
    simplified: String,
}

fn own() -> Vec<Case> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/swift.tsv");
    let list = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    list.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut columns = line.split('\t').map(str::to_owned);
            let mut next = || columns.next().unwrap_or_else(|| panic!("too few columns: {line}"));
            Case { name: next(), full: next(), simplified: next() }
        })
        .collect()
}

fn full() -> Options {
    Options::default()
}

fn simplified() -> Options {
    let mut options = Options::default();
    options.swift = SwiftStyle::Simplified;
    options
}

fn assert_all<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>, options: &Options) {
    let mut demangler = Demangler::new();
    let mut count = 0;
    let mut differences = Vec::new();
    for (name, expected) in pairs {
        count += 1;
        let got = demangler.demangle(name, options).unwrap_or(name);
        if got != expected {
            differences.push(format!("{name}\n  expected {expected}\n  got      {got}"));
        }
    }
    assert!(count > 0);
    assert!(differences.is_empty(), "{} of {count} differ:\n{}", differences.len(), differences.join("\n"));
}

/// A list of the Swift project's tests, without the notes in braces that are for another tool.
fn corpus_list(file: &str) -> Option<Vec<(String, String)>> {
    let path = backtrail_testkit::corpus_file(format!("demangle/{file}"))?;
    let list = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let pairs = list.lines().filter_map(|line| line.split_once(" ---> ")).map(|(name, expected)| {
        let expected = match expected.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some((_note, expected)) => expected.trim_start(),
            None => expected,
        };
        (name.trim_end().to_owned(), expected.trim_end().to_owned())
    });
    Some(pairs.collect())
}

#[test]
fn own_list() {
    let cases = own();
    assert!(cases.len() > 1000);
    assert_all(cases.iter().map(|case| (&*case.name, &*case.full)), &full());
    assert_all(cases.iter().map(|case| (&*case.name, &*case.simplified)), &simplified());
}

#[test]
fn lists_of_the_swift_project() {
    for (file, options) in [("swift-manglings.txt", full()), ("swift-simplified-manglings.txt", simplified())]
    {
        let Some(pairs) = corpus_list(file) else { return };
        assert_all(pairs.iter().map(|(name, expected)| (&**name, &**expected)), &options);
    }
}

#[test]
fn prefixes() {
    for name in [
        "$s4shop3buyyyF",
        "_$s4shop3buyyyF",
        "__$s4shop3buyyyF",
        "\u{1}_$s4shop3buyyyF",
        "$S4shop3buyyyF",
        "$e4shop3buyyyF",
        "_$e4shop3buyyyF",
        "_T04shop3buyyyF",
        "__T04shop3buyyyF",
        "@__swiftmacro_4shop3buyyyF",
        "_TF4shop3buyFT_T_",
        "__TF4shop3buyFT_T_",
    ] {
        assert_eq!(scheme(name), Some(Scheme::Swift), "{name}");
        assert_eq!(demangle(name, &full()), "shop.buy() -> ()", "{name}");
        assert_eq!(demangle(name, &simplified()), "buy()", "{name}");
    }
}

/// C names that begin like Swift ones stay as they are.
#[test]
fn plain_names() {
    for name in
        ["_TIFFOpen", "_TouchTrackerInstall", "async_MainLoop", "$", "$s", "$sometimes", "_T", "_T0", "@main"]
    {
        assert_eq!(demangle(name, &full()), name);
        assert_eq!(demangle(name, &simplified()), name);
    }
}

#[test]
fn options_leave_out_what_is_not_wanted() {
    let function = "$s4shop3buy4item5countSiAA4ItemV_SitKF";
    let closure = "$s4shop3buy4item5countSiAA4ItemV_SitKFyycfU_";
    let variable = "$s4shop4CartC5totalSdvg";
    let mut options = full();
    options.return_types = false;
    assert_eq!(demangle(function, &options), "shop.buy(item: shop.Item, count: Swift.Int) throws");
    assert_eq!(demangle(variable, &options), "shop.Cart.total.getter");
    options.parameters = false;
    assert_eq!(demangle(function, &options), "shop.buy");
    assert_eq!(demangle(closure, &options), "closure #1 in shop.buy");
    options.swift = SwiftStyle::Simplified;
    assert_eq!(demangle(function, &options), "buy");
    assert_eq!(demangle(function, &simplified()), "buy(item:count:)");
    assert_eq!(demangle(closure, &Options::short()), "closure #1 in buy");
}

#[test]
fn generic_arguments_are_folded() {
    let name = "$s4shop1fyyAA3BoxVyAA4PairVySiAFySSSdGGG_SaySiGtF";
    let folded = |depth, len| {
        let mut options = full();
        options.fold_templates = Some(FoldTemplates { depth, len });
        demangle(name, &options).into_owned()
    };
    let whole =
        "shop.f(shop.Box<shop.Pair<Swift.Int, shop.Pair<Swift.String, Swift.Double>>>, [Swift.Int]) -> ()";
    assert_eq!(demangle(name, &full()), whole);
    assert_eq!(folded(9, 99), whole);
    assert_eq!(folded(0, 99), "shop.f(shop.Box<...>, [Swift.Int]) -> ()");
    assert_eq!(folded(1, 99), "shop.f(shop.Box<shop.Pair<...>>, [Swift.Int]) -> ()");
    assert_eq!(folded(9, 50), "shop.f(shop.Box<...>, [Swift.Int]) -> ()");
    assert_eq!(folded(9, 40), "shop.f(shop.Box<shop.Pair<...>>, [Swift.Int]) -> ()");
    assert_eq!(folded(9, 0), "shop.f(shop.Box<...>, [Swift.Int]) -> ()");
}

/// Whatever is cut off a name, it is refused or shown; crash reports cut names at 100 bytes.
#[test]
fn cut_names() {
    let mut demangler = Demangler::new();
    for case in own() {
        for (at, _) in case.name.char_indices() {
            let cut = &case.name[..at];
            let mut shorter = case.name.clone();
            shorter.remove(at);
            for options in [full(), simplified()] {
                for name in [cut, &shorter] {
                    if let Ok(text) = demangler.demangle(name, &options) {
                        assert!(!text.is_empty() && text.len() < 1 << 16, "{name}");
                        assert!(!text.contains("-marker") && !text.contains("empty-list"), "{name}: {text}");
                    }
                }
            }
        }
    }
}

/// Buffers that are used again give the same text.
#[test]
fn a_used_demangler_is_like_a_new_one() {
    let mut demangler = Demangler::new();
    let mut options = full();
    for case in own() {
        for max_len in [7, 1 << 20] {
            options.max_len = max_len;
            let new = Demangler::new().demangle(&case.name, &options).map(str::to_owned);
            assert_eq!(demangler.demangle(&case.name, &options).map(str::to_owned), new, "{}", case.name);
        }
    }
}

/// No text is longer than the limit, and what comes before the cut is what the whole text has there.
#[test]
fn every_limit_is_kept() {
    let mut demangler = Demangler::new();
    let mut options = full();
    for case in own().into_iter().step_by(7) {
        for max_len in 0..=case.full.len() + 1 {
            options.max_len = max_len;
            let text = demangler.demangle(&case.name, &options).unwrap();
            assert!(text.len() <= max_len, "{} at {max_len}: {text}", case.name);
            if max_len >= case.full.len() {
                assert_eq!(text, case.full);
            } else {
                let kept = text.strip_suffix("...").unwrap_or(text);
                assert!(case.full.starts_with(kept), "{} at {max_len}: {text}", case.name);
            }
        }
    }
}

/// Names with letters of the grammar replaced, left out, doubled: by a fixed sequence of numbers.
#[test]
fn broken_names() {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789$.";
    let cases = own();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut demangler = Demangler::new();
    let mut read = 0;
    for _ in 0..40_000 {
        let mut name = cases[random(cases.len())].name.clone().into_bytes();
        for _ in 0..=random(3) {
            let at = random(name.len());
            match random(4) {
                0 => name[at] = alphabet[random(alphabet.len())],
                1 => name.insert(at, alphabet[random(alphabet.len())]),
                2 if name.len() > 1 => drop(name.remove(at)),
                _ => name.extend_from_within(at..),
            }
        }
        let name = String::from_utf8_lossy(&name);
        for options in [full(), simplified()] {
            read += usize::from(demangler.demangle(&name, &options).is_ok());
        }
    }
    assert!(read > 1000);
}

/// What is nested too deeply is refused; what is not is shown, on the stack of an ordinary thread.
#[test]
fn depth_is_bounded() {
    for (before, inside, behind) in [
        ("$s", "Si", "Sg"),
        ("$s", "Si", "m"),
        ("$s", "Si", "XSa"),
        ("$s", "Si", "Xw"),
        ("$s", "Si", "z"),
        ("$s", "Si", "_t"),
        ("$s", "Si", "_QP"),
        ("$s", "Si", "Bv2_"),
        ("$s", "Si", "Iegr_"),
        ("$s", "Si", "yc"),
        ("$s", "4shop1fyyF", "yycfU_"),
        ("$s", "4shop1fyyF", "1gL_yyF"),
        ("$s", "4shop1AV", "1BV"),
        ("$s", "4shop1fyyF", "Z"),
        ("$s", "4shop1fyyF", "Tm"),
        ("$s", "4shop1fyyF", "TA"),
        ("$s", "4shop1fyyF", "Tc"),
        ("$s", "4shop1fyyF", "MK"),
        ("$s", "x", "1AQx"),
        ("$s", "4shop4CartC", "4shopE"),
    ] {
        for count in [20, MAX_DEPTH as usize, 100_000] {
            let name = format!("{before}{inside}{}", behind.repeat(count));
            let result = Demangler::new().demangle(&name, &full()).map(str::len);
            let is_refused = matches!(
                result.map_err(|error| error.kind()),
                Err(ErrorKind::TooComplex | ErrorKind::Invalid)
            );
            assert!(is_refused || count < 100_000, "{behind}: {result:?}");
        }
    }
    for (before, inside) in [
        ("GSa", "Si_"),
        ("M", "Si"),
        ("F", "SiSi"),
        ("T", "Si_"),
        ("R", "Si"),
        ("Xw", "Si"),
        ("XFo_d", "Si__"),
        ("Q", "s1A"),
    ] {
        for count in [20, MAX_DEPTH as usize, 100_000] {
            let name = format!("_Tt{}{inside}", before.repeat(count));
            let result = Demangler::new().demangle(&name, &full()).map(str::len);
            assert!(result.is_err() || count < 100_000, "{before}: {result:?}");
        }
    }
    let contexts = format!("_TF{}4shop1fFT_T_1gFT_T_", "F".repeat(100_000));
    assert!(Demangler::new().demangle(&contexts, &full()).is_err());
}

/// Each type has the one before twice as its arguments: the text doubles with every seven letters.
fn doubling(count: usize) -> String {
    // Substitutions: 0 `shop`, 1 `Box`, 2 `shop.Box`, 3 the first bound type.
    let mut name = String::from("$s4shop3BoxVyS2iG_");
    for index in 3..3 + count {
        let twice = match index {
            0..26 => format!("A2{}", char::from(b'A' + u8::try_from(index).unwrap())),
            26 => String::from("A_A_"),
            _ => format!("A{0}_A{0}_", index - 27),
        };
        name += &format!("ACy{twice}G");
    }
    name + "tD"
}

/// Without the limit the text would have 2 to the power of 200 bytes.
#[test]
fn doubling_ends_at_the_limit() {
    let box2 = "shop.Box<Swift.Int, Swift.Int>";
    assert_eq!(demangle(&doubling(1), &full()), format!("({box2}, shop.Box<{box2}, {box2}>)"));
    let name = doubling(200);
    let mut options = full();
    for max_len in [100, 10_000, 1 << 20] {
        options.max_len = max_len;
        let text = demangle(&name, &options).into_owned();
        assert!(text.starts_with("(shop.Box<Swift.Int, Swift.Int>, shop.Box<shop"), "{text}");
        assert!(text.ends_with("...") && text.len() <= max_len && text.len() + 64 > max_len);
    }
}

/// A megabyte of what is repeated, nested, listed or spelled out: refused or cut, at once.
#[test]
fn long_names_end_soon() {
    let repeat = |before: &str, part: &str, behind: &str| {
        format!("{before}{}{behind}", part.repeat((1 << 20) / part.len()))
    };
    let mut names = vec![
        repeat("$s4shop", "A2048a", "D"),
        repeat("$s4shop3BoxV", "A2048C", "_tD"),
        repeat("$s", "S2048i", "_tD"),
        repeat("$sSi", "_Si", "tD"),
        repeat("$s", "Si_", "tD"),
        repeat("$sSi_", "Si", "tD"),
        repeat("$s4shop1fyyF", "yycfU_", ""),
        repeat("$s4shop1fyyF", "4shop1fyyF", "TJrSpSr"),
        repeat("$s4shop1fyyF", "SdSiTf1n_", "n"),
        repeat("$s4shop1fyyFTf4", "d", "_n"),
        repeat("$s4shop1fyyF", "TQ_", ""),
        repeat("$sSiSd", "Rs_", "r0_lD"),
        repeat("$sx", "SHRz", "luD"),
        repeat("$sxr", "9_", "luD"),
        repeat(&repeat("$sx", "Rvz", "r"), "_", "luD"),
        repeat("$s", "1a", ""),
        repeat("$s", "9_9_9_9_9_", ""),
        repeat("$s300000_", "a", ""),
        repeat("$s0065536", "zz", ""),
        repeat("_TtT", "Si", "_"),
        repeat("_TtP", "s8Hashable", "_"),
        repeat("_TtGSa", "S_", "_"),
        repeat("_TTSf4", "d_", "_TF4shop1fFT_T_"),
        repeat("_TTSg5Si___", "TTSg5Si___", "TF4shop1fFT_T_"),
        repeat("_Ttu", "9_", "rFxx"),
        repeat("_TtuR", "xs8Hashable", "rFxx"),
        repeat("_TF4shop", "1", "FT_T_"),
    ];
    // A long word, repeated: the text would be quadratic.
    let word = "a".repeat(1 << 16);
    names.push(format!("$s4shop{}{word}0{}B0", word.len(), "b".repeat(1 << 16)));
    for name in names {
        for options in [full(), simplified()] {
            let result = Demangler::new().demangle(&name, &options).map(str::len);
            assert!(result.is_err() || result.is_ok_and(|len| len <= options.max_len));
        }
    }
}
