//! Any text: what scheme it is taken for, and that a name that is not mangled stays as it is.
#![no_main]

use backtrail_demangle::{Demangler, Options, demangle, demangle_to, scheme};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(name) = std::str::from_utf8(data) else { return };
    check(name);
    check(&format!("_D{name}"));
});

fn check(name: &str) {
    let options = Options::default();
    let mut written = String::new();
    match (demangle_to(name, &options, &mut written), Demangler::new().demangle(name, &options)) {
        (Ok(()), Ok(text)) => assert_eq!(written, text),
        (Err(first), Err(second)) => {
            assert_eq!(first, second);
            assert!(written.is_empty() && demangle(name, &options) == name);
        }
        (first, second) => panic!("{first:?} against {second:?}"),
    }
    if scheme(name).is_none() {
        assert_eq!(demangle(name, &options), name);
    }
    let mut replaced = String::new();
    Demangler::new().replace_names(name, &options, &mut replaced).unwrap();
    assert!(name.bytes().any(|byte| b"_$@?".contains(&byte)) || replaced == name);

    let mut short = Options::short();
    short.types = true;
    short.max_len = 64;
    assert!(
        Demangler::new().demangle(name, &short).is_ok_and(|text| text.len() <= 64)
            || demangle(name, &short) == name
    );
}
