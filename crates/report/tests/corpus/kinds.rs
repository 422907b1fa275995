//! Reports of other kinds are named, not taken for something else.

use crate::files;
use backtrail_report::{ErrorKind, Limits, parse};

#[test]
fn other_kinds_of_report_are_named() {
    for (directory, ending, name) in [("minidump", ".dmp", "minidump")] {
        for path in files(directory, ending) {
            let error = parse(&std::fs::read(&path).unwrap(), &Limits::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotReadYet(name), "{}", path.display());
        }
    }
}
