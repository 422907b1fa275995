//! Crashlytics' exports of crashes on Apple's systems, whole or damaged.
#![no_main]

use backtrail_fuzz::reporter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| reporter(b"# Platform: apple\n", data));
