//! Swift names of all generations: whatever the bytes, the text keeps to its limit and does not depend on how it was asked
//! for.
#![no_main]

use backtrail_demangle::{Demangler, ErrorKind, FoldTemplates, Options, Scheme, SwiftStyle, scheme};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[switches, limit], name)) = data.split_first_chunk::<2>() else { return };
    let Ok(rest) = std::str::from_utf8(name) else { return };
    let name = match rest.as_bytes().first() {
        Some(b'_' | b'$' | b'@') => rest.to_owned(),
        _ => format!("$s{rest}"),
    };

    if scheme(&name) != Some(Scheme::Swift) {
        return;
    }

    let mut options = Options::default();
    options.max_len = 1 << 16;
    let mut demangler = Demangler::new();
    let whole = demangler.demangle(&name, &options).map(str::to_owned);
    if let Ok(text) = &whole {
        assert!(!text.is_empty() && text.len() <= options.max_len);
    }

    // Folding nothing takes another way to the same text.
    options.fold_templates = Some(FoldTemplates { depth: u32::MAX, len: usize::MAX });
    assert_eq!(demangler.demangle(&name, &options).map(str::to_owned), whole);
    options.fold_templates = None;

    // The two forms are of the same parts: a name is valid in both or in none, but for one that is a module alone.
    options.swift = SwiftStyle::Simplified;
    let simplified = demangler.demangle(&name, &options).map(str::to_owned);
    if let Err(error) = &whole {
        let is_same = simplified.as_ref().is_err_and(|other| other.kind() == error.kind());
        assert!(is_same || error.kind() == ErrorKind::TooComplex, "{simplified:?}");
    }

    options.max_len = usize::from(limit) * 4;
    options.parameters = switches & 1 == 0;
    options.return_types = switches & 2 == 0;
    options.swift = if switches & 8 == 0 { SwiftStyle::Full } else { SwiftStyle::Simplified };
    options.fold_templates = (switches & 4 != 0)
        .then(|| FoldTemplates { depth: u32::from(switches >> 4), len: usize::from(switches) * 2 });
    if let Ok(text) = demangler.demangle(&name, &options) {
        assert!(text.len() <= options.max_len);
    }
});
