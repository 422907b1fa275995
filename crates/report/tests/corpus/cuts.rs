//! Reports cut anywhere, and with bytes changed: never a panic, and emitting stays the identity.

use crate::{json_reports, text_reports};
use backtrail_report::{Limits, emit, parse};

/// A small generator with a fixed start, so that a failure comes again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }
}

fn check(input: &[u8]) -> bool {
    match parse(input, &Limits::default()) {
        Ok(report) => {
            assert!(emit(input, &report) == input);
            true
        }
        Err(error) => {
            assert!(error.to_string().contains("expected"), "{error}");
            false
        }
    }
}

/// One report of each form: all of them would say the same for minutes.
fn samples() -> Vec<std::path::PathBuf> {
    let names = ["handcrafted.txt", "xcode16.txt", "UmengDemo.crash", "spaces.txt", "AppleConverted.log"];
    let json = ["AppleJson.ips"];
    let all = text_reports().into_iter().chain(json_reports());
    all.filter(|path| names.iter().chain(&json).any(|name| path.ends_with(name))).collect()
}

#[test]
fn reports_cut_at_every_line() {
    for path in samples() {
        let input = std::fs::read(&path).unwrap();
        let breaks = input.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at);
        let readable = breaks.flat_map(|at| [at, at + 1]).filter(|at| check(&input[..*at])).count();
        assert!(readable > 0, "{}", path.display());
    }
}

#[test]
fn reports_cut_at_random_bytes_from_either_side() {
    let mut random = Random(1);
    for path in samples() {
        let input = std::fs::read(&path).unwrap();
        for _ in 0..100 {
            let at = random.below(input.len());
            check(&input[..at]);
            check(&input[at..]);
        }
    }
}

#[test]
fn reports_with_bytes_changed() {
    let mut random = Random(2);
    for path in samples() {
        let input = std::fs::read(&path).unwrap();
        for _ in 0..100 {
            let mut changed = input.clone();
            for _ in 0..=random.below(8) {
                let at = random.below(changed.len());
                changed[at] = u8::try_from(random.below(256)).unwrap();
            }
            check(&changed);
        }
    }
}

/// Half a report still tells what its first half says.
#[test]
fn half_a_json_report_keeps_its_threads() {
    let Some(path) = backtrail_testkit::corpus_file("apple/ips/AppleJson.ips") else { return };
    let input = std::fs::read(path).unwrap();
    let report = parse(&input[..input.len() / 2], &Limits::default()).unwrap();
    assert_eq!(report.process.name.as_deref(), Some("Demo"));
    assert!(report.process.threads.len() > 1);
    assert!(report.notes.iter().any(|note| note.contains("cut or broken")), "{:?}", report.notes);
}
