//! Rust names, legacy and v0.
#![no_main]

use backtrail_demangle::{Demangler, Options, Scheme, scheme};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&limit, name)) = data.split_first() else { return };
    let Ok(rest) = std::str::from_utf8(name) else { return };
    for name in [rest.to_owned(), format!("_R{rest}"), format!("_ZN{rest}17h0123456789abcdefE")] {
        let mut options = Options::default();
        options.max_len = usize::from(limit) * 16;
        match Demangler::new().demangle(&name, &options) {
            Ok(text) => assert!(text.len() <= options.max_len),
            Err(error) => assert!(error.offset() <= name.len()),
        }
        let is_legacy = name.starts_with("_ZN") && name.ends_with("17h0123456789abcdefE");
        assert!(!is_legacy || scheme(&name) == Some(Scheme::Rust));
    }
});
