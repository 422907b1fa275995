//! Some thousand random command lines, the same ones each time.

use crate::command_line::{check, seeds};
use backtrail_testkit::{TempDir, workspace_root};

#[test]
fn random_command_lines_end_well() {
    let directory = TempDir::new("command-lines");
    let (seeds, directory) = (seeds(&workspace_root()), directory.join("files"));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut codes = [0; 3];
    for _ in 0..1_200 {
        let bytes: Vec<u8> = (0..256)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        codes[usize::from(check(&bytes, &seeds, &directory))] += 1;
    }
    // Were most of them wrong usage, little would be tried.
    assert!(codes.iter().all(|count| *count > 100), "{codes:?}");
}
