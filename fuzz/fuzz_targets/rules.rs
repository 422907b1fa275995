//! Files of rules: whatever the bytes, reading ends, an error names a line of the file, and rules that were read are asked of a
//! report without harm.
#![no_main]

use backtrail_diagnose::{Rules, add_owners};
use backtrail_model::{Frame, Report, ReportedSymbol, Thread};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match Rules::parse(data, "rules") {
        Ok(rules) => {
            let mut report = Report::default();
            let mut frame = Frame::new(0);
            let name = String::from_utf8_lossy(data.get(..64).unwrap_or(data)).into_owned();
            frame.reported =
                Some(ReportedSymbol { name, file: Some("/a/b.c".to_owned()), ..Default::default() });
            frame.image_name = Some("libfoo.so".to_owned());
            report.process.threads.push(Thread { frames: vec![frame], ..Thread::default() });
            add_owners(&mut report, &rules);
            assert!(report.process.threads[0].frames[0].owner.is_some());
        }
        Err(error) => {
            let lines = data.iter().filter(|byte| **byte == b'\n').count() + 1;
            assert!(error.line().is_none_or(|line| line >= 1 && line <= lines), "{error}");
        }
    }
});
