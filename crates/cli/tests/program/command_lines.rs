//! Some thousand random command lines, the same ones each time.

use crate::command_line::{check, seeds};
use backtrail_testkit::{TempDir, workspace_root};

#[test]
fn random_command_lines_end_well() {
    let folder = TempDir::new("command-lines");
    let (seeds, directory) = (seeds(&workspace_root()), folder.join("files"));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..1_500 {
        let bytes: Vec<u8> = (0..256)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        check(&bytes, &seeds, &directory);
    }
}
