//! C++ names: whatever the bytes, the text keeps to its limit, and does not depend on how it was asked for.
#![no_main]

use backtrail_demangle::{Demangler, FoldTemplates, Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[switches, limit], name)) = data.split_first_chunk::<2>() else { return };
    let Ok(rest) = std::str::from_utf8(name) else { return };
    let name = if rest.starts_with('_') { rest.to_owned() } else { format!("_Z{rest}") };

    let mut options = Options::default();
    options.max_len = 1 << 16;
    let mut demangler = Demangler::new();
    let whole = demangler.demangle(&name, &options).map(str::to_owned);

    // Folding nothing takes another way to the same text.
    options.fold_templates = Some(FoldTemplates { depth: u32::MAX, len: usize::MAX });
    assert_eq!(demangler.demangle(&name, &options).map(str::to_owned), whole);

    options.max_len = usize::from(limit) * 4;
    options.parameters = switches & 1 == 0;
    options.return_types = switches & 2 == 0;
    options.fold_templates = (switches & 4 != 0)
        .then(|| FoldTemplates { depth: u32::from(switches >> 4), len: usize::from(switches) * 2 });
    if let Ok(text) = demangler.demangle(&name, &options) {
        assert!(text.len() <= options.max_len);
    }
});
