//! Static libraries: learnt, looked for, stamped and unstamped, whatever the bytes.
#![no_main]

use backtrail_object::{Limits, Object};
use backtrail_sdk::{Fingerprint, LearnOptions, MapOptions, learn, map, map_file, stamp, unstamp};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(learned) = learn(&[("fuzz", data)], &LearnOptions::new("fuzz", "1")) {
        let bytes = learned.fingerprint.to_bytes();
        assert_eq!(Fingerprint::from_bytes(&bytes).unwrap(), learned.fingerprint);
        let known = [learned.fingerprint];
        let _ = map_file(data, None, &known, &MapOptions::default());
        // As its own debug file.
        if let Ok(object) = Object::parse_with(data, &Limits::default()) {
            let _ = map(&object, &known, &MapOptions::with_debug_files(&[&object]));
        }
    }
    let _ = map_file(data, None, &[], &MapOptions::default());
    if let Ok(stamped) = stamp(data, "fuzz", Some("1")) {
        assert!(unstamp(&stamped.bytes, "fuzz").is_ok());
    }
});
