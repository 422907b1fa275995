//! Names that are broken, cut, too deep, or made to grow.

mod common;

use backtrail_demangle::{Demangler, ErrorKind, MAX_DEPTH, Options, demangle};
use common::{own, pairs};

fn limited(max_len: usize) -> Options {
    let mut options = Options::default();
    options.max_len = max_len;
    options
}

/// Every name of the lists, cut at every byte and with every byte left out.
#[test]
fn cut_names() {
    let mut demangler = Demangler::new();
    let lists = [own("itanium.tsv"), own("itanium-grammar.tsv"), own("itanium-beyond.tsv")];
    for (name, _) in lists.iter().flat_map(|list| pairs(list)) {
        for at in 0..name.len() {
            let cut = demangler.demangle(&name[..at], &Options::default());
            assert!(cut.is_ok_and(|text| !text.is_empty()) || at < name.len());
            let mut shorter = name.to_owned();
            shorter.remove(at);
            if let Ok(text) = demangler.demangle(&shorter, &Options::default()) {
                assert!(text.len() < 1 << 20);
            }
        }
    }
}

/// No text is longer than the limit, and what comes before the cut is what the whole text has there.
#[test]
fn every_limit_is_kept() {
    let mut demangler = Demangler::new();
    let list = own("itanium.tsv");
    for (name, whole) in pairs(&list) {
        for max_len in 0..=whole.len() + 1 {
            let text = demangler.demangle(name, &limited(max_len)).unwrap();
            assert!(text.len() <= max_len, "{name} at {max_len}: {text}");
            if max_len >= whole.len() {
                assert_eq!(text, whole);
            } else {
                let kept = text.strip_suffix("...").unwrap_or(text);
                assert!(whole.starts_with(kept) || kept.ends_with('.'), "{name} at {max_len}: {text}");
            }
        }
    }
}

#[test]
fn cut_in_a_readable_place() {
    let name = "_ZN9container5tableI3keyNS_4pairIS1_5valueEEE6insertES1_";
    let whole = "container::table<key, container::pair<key, value>>::insert(key)";
    assert_eq!(demangle(name, &limited(whole.len())), whole);
    for (max_len, text) in [
        (whole.len() - 1, "container::table<key, container::pair<key, value>>::insert(..."),
        (24, "container::table<key,..."),
        (14, "container::..."),
    ] {
        assert_eq!(demangle(name, &limited(max_len)), text);
    }
}

/// Each parameter is made of the one before, twice: the text doubles with every two letters.
fn doubling(count: usize) -> String {
    let mut name = String::from("_Z1f1AIiiE");
    for part in 0..count {
        let substitution = if part == 0 { "S0_".to_owned() } else { format!("S{}_", base36(part)) };
        name += &format!("S_I{substitution}{substitution}E");
    }
    name
}

fn base36(mut number: usize) -> String {
    let mut digits = String::new();
    loop {
        digits.insert(0, char::from_digit((number % 36) as u32, 36).unwrap_or_default().to_ascii_uppercase());
        number /= 36;
        if number == 0 {
            return digits;
        }
    }
}

/// Without the limit the text would have 2 to the power of 200 bytes.
#[test]
fn doubling_ends_at_the_limit() {
    let name = doubling(200);
    for max_len in [100, 10_000, 1 << 20] {
        let text = demangle(&name, &limited(max_len)).into_owned();
        assert!(text.starts_with("f(A<int, int>, A<A<int, int>, A<int, int>>"), "{}", &text[..100]);
        assert!(text.ends_with("...") && text.len() <= max_len && text.len() + 64 > max_len);
    }
}

/// As doubling, but what doubles are expansions of an empty pack, so that no text is ever written.
#[test]
fn doubling_without_text_ends_too() {
    let mut name = String::from("_Z1fIJEEv1AIDpT_E");
    for part in 0..200 {
        name += &format!("1BIDpS{}_DpS{}_E", base36(part), base36(part));
    }
    let result = Demangler::new().demangle(&name, &Options::default()).map(str::len);
    assert!(result.is_ok() || result.is_err_and(|error| error.kind() != ErrorKind::NotMangled));
}

fn nested(before: &str, inside: &str, behind: &str, depth: usize) -> String {
    format!("_Z1f{}{inside}{}", before.repeat(depth), behind.repeat(depth))
}

/// What is nested too deeply is refused; what is not is read, on the stack of an ordinary thread.
#[test]
fn depth_is_bounded() {
    for (before, inside, behind, cost) in [
        ("P", "i", "", 1),
        ("R", "i", "", 1),
        ("K", "i", "", 1),
        ("U1a", "i", "", 1),
        ("A_", "i", "", 1),
        ("M1A", "i", "", 1),
        ("Dp", "i", "", 1),
        ("Fv", "i", "E", 1),
        ("1AI", "i", "E", 2),
        ("1AIJ", "i", "EE", 3),
        ("N1AI", "i", "E1BE", 2),
        ("DTpp", "Li1E", "E", 3),
        ("1AIXpp", "Li1E", "EE", 3),
        ("1AILZ1f", "i", "EE", 4),
        ("Z1f", "i", "E1a", 3),
        ("UlTp", "Ty", "vE_", 2),
        ("1AIXil", "Li1E", "EEE", 3),
        ("1AIXtl1a", "Li1E", "EEE", 3),
        ("1AITt", "i", "EiE", 3),
        ("UlQ", "Li1E", "vE_", 3),
    ] {
        let shallow = nested(before, inside, behind, MAX_DEPTH as usize / cost / 2);
        let deep = nested(before, inside, behind, 200_000);
        let shallow = Demangler::new().demangle(&shallow, &Options::default()).map(str::to_owned);
        assert!(
            shallow.as_ref().is_ok_and(|text| text.starts_with("f("))
                || shallow.as_ref().is_err_and(|error| error.kind() == ErrorKind::Invalid),
            "{before}: {shallow:?}"
        );
        let deep = Demangler::new().demangle(&deep, &Options::default()).map(str::to_owned);
        let kind = deep.as_ref().map_err(backtrail_demangle::Error::kind);
        assert!(matches!(kind, Err(ErrorKind::TooComplex | ErrorKind::Invalid)), "{before}: {deep:?}");
    }
}

/// Types that are each made of the one before, in places that are read and not printed; the last one is printed.
///
/// `made` has `{}` for the one before; it makes `parts` substitutions, the last of which is the type itself.
fn made_of_each_other(made: &str, parts: usize, count: usize) -> String {
    let mut name = String::from("_Z1fITnP1ALi0E");
    let mut last = 1;
    for _ in 0..count {
        let substitution = format!("S{}_", base36(last));
        name += &format!("Tn{}Li0E", made.replace("{}", &substitution));
        last += parts;
    }
    name + &format!("EvS{}_", base36(last))
}

/// Reading is shallow, printing is deep.
#[test]
fn depth_by_substitution_is_bounded() {
    for (made, parts) in [
        ("P{}", 1),
        ("K{}", 1),
        ("A3_{}", 1),
        ("M1B{}", 2),
        ("F{}vE", 1),
        ("Fv{}E", 1),
        ("PFv{}E", 2),
        ("1BI{}E", 2),
        ("1BIJ{}EE", 2),
        ("DTcv{}Li1EE", 1),
        ("DTclL_Z1g{}EEE", 1),
        ("Dp{}", 1),
        ("N1BI{}E1CE", 3),
        ("Z1g{}E1B", 1),
        ("DTLUl{}E_EE", 1),
    ] {
        let printed = |count| {
            Demangler::new()
                .demangle(&made_of_each_other(made, parts, count), &limited(1 << 16))
                .map(str::len)
                .map_err(|error| error.kind())
        };
        assert!(printed(20).is_ok(), "{made}: {:?}", printed(20));
        let (mut deepest, mut too_deep) = (20_usize, 1000);
        while too_deep - deepest > 1 {
            let middle = deepest.midpoint(too_deep);
            *(if printed(middle).is_ok() { &mut deepest } else { &mut too_deep }) = middle;
        }
        assert_eq!(printed(too_deep), Err(ErrorKind::TooComplex), "{made}");
        assert!((MAX_DEPTH as usize / 8..=MAX_DEPTH as usize).contains(&deepest), "{made}: {deepest}");
    }
}

#[test]
fn errors_say_where() {
    for (name, kind, offset) in [
        ("main", ErrorKind::NotMangled, 0),
        ("_Z1fQ", ErrorKind::Invalid, 4),
        ("\u{1}_Z1fQ", ErrorKind::Invalid, 5),
        ("_Z1fS5_", ErrorKind::Invalid, 7),
        ("_Z9f", ErrorKind::Invalid, 3),
    ] {
        let error = Demangler::new().demangle(name, &Options::default()).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (kind, offset), "{name}");
    }
}

fn time(demangler: &mut Demangler, name: &str) -> std::time::Duration {
    let start = std::time::Instant::now();
    let _ = std::hint::black_box(demangler.demangle(name, &Options::default()).map(str::len));
    start.elapsed()
}

/// Four times the name takes four times as long; what is quadratic would take sixteen times.
#[test]
fn time_is_linear_in_the_name() {
    const FOREVER: std::time::Duration = std::time::Duration::MAX;
    let repeated = |before: &str, part: &str, behind: &str, count: usize| {
        format!("{before}{}{behind}", part.repeat(count))
    };
    for (before, part, behind) in [
        ("_Z1f", "i", ""),
        ("_Z1f", "PFivE", ""),
        ("_Z1f", "RA3_K1B", ""),
        ("_Z1f1B", "S_", ""),
        ("_Z1f", "N1a1bE", ""),
        ("_Z1fI", "i", "Evv"),
        ("_Z1fIJ", "1B", "EEvDpT_DpRT_DpPT_"),
        ("_ZN", "1a", "E"),
        ("_ZN1a", "B1b", "Ev"),
        ("_Z1fIXclL_Z1gE", "Li1E", "EEvv"),
        ("_Z1fN", "1aI", "iE"),
        ("_Z1f", "M1aFvvE", ""),
        ("_Z1fv", ".cold", ""),
        ("_Z1fIiEv", "srSt1aIT_E1b", ""),
        ("_Z1fDa", "DaDc", "S9_"),
        ("_ZGVbN4v", "v", "_f"),
        ("$s1a1fyy", "Si_", "tF"),
        ("$s1a", "3abc", "V"),
        ("$s", "4main1aV", "D"),
        ("$s3aBc", "04b0A2", "V"),
        ("_TtGC1a1bT", "Si", "__"),
        ("_D1a1bF", "PxAa", "Zv"),
        ("_RINvC1a1b", "h", "E"),
        ("_RINvC1a1b", "RTB_E", "E"),
        ("_ZN", "3a..", "17h0a1b2c3d4e5f6071E"),
    ] {
        let (short, long) = (repeated(before, part, behind, 4_000), repeated(before, part, behind, 16_000));
        let (mut demangler, mut shortest, mut longest) = (Demangler::new(), FOREVER, FOREVER);
        // The least time of many tries is the true one, however busy the machine.
        let is_linear = (0..300).any(|_| {
            shortest = shortest.min(time(&mut demangler, &short));
            longest = longest.min(time(&mut demangler, &long));
            longest < shortest.max(std::time::Duration::from_micros(50)) * 10
        });
        assert!(is_linear, "{before} {part} {behind}: {shortest:?}, then {longest:?}");
    }
}
