//! Explains, attributes and groups whatever reads as a report: an answer always, of bounded size, the same each time.
#![no_main]

use backtrail_diagnose::{attribute, explain, group};
use backtrail_report::{Limits, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut limits = Limits::default();
    limits.max_frames = 10_000;
    let Ok(report) = parse(data, &limits) else { return };
    let explanation = explain(&report);
    assert!(!explanation.title.is_empty() && !explanation.title.contains('\n'), "a title is one line");
    assert!(!explanation.summary.is_empty());
    for lines in [&explanation.evidence, &explanation.causes, &explanation.next_steps] {
        assert!(
            lines.len() < 100 && lines.iter().all(|line| line.len() < 1000),
            "lists and lines are bounded"
        );
    }
    assert!(!attribute(&report, &explanation).evidence.is_empty(), "a verdict has evidence");
    assert_eq!(explanation, explain(&report));
    let grouped = group(&report);
    if let Some(grouped) = &grouped {
        assert!(!grouped.title(&explanation).contains('\n'), "a title is one line");
        assert!(grouped.why.len() < 100, "lists are bounded");
    }
    assert_eq!(grouped, group(&report));
});
