//! A line diff for people.

use std::fmt::Write;

/// Unchanged lines shown around each change.
const CONTEXT: usize = 3;
/// Above this many cells the table for the longest common subsequence is not worth its memory: then all lines
/// between the common start and end count as changed.
const MAX_CELLS: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Same,
    Removed,
    Added,
}

/// The lines in which two texts differ, with three lines around each change: `-` only in `old`, `+` only in `new`.
/// Empty where the texts are equal; what differs in line ends alone is said in words.
pub fn diff_lines(old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old_lines == new_lines {
        return "  the same lines, but with other line ends\n".to_owned();
    }
    render(&edits(&old_lines, &new_lines))
}

fn edits<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Change, &'t str)> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (_, old_rest) = old.split_at(prefix);
    let (same, new_rest) = new.split_at(prefix);
    let suffix = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_middle, _) = old_rest.split_at(old_rest.len() - suffix);
    let (new_middle, tail) = new_rest.split_at(new_rest.len() - suffix);

    let mut edits: Vec<_> = same.iter().map(|line| (Change::Same, *line)).collect();
    edits.extend(middle_edits(old_middle, new_middle));
    edits.extend(tail.iter().map(|line| (Change::Same, *line)));
    edits
}

fn middle_edits<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Change, &'t str)> {
    let width = new.len() + 1;
    if (old.len() + 1).saturating_mul(width) > MAX_CELLS {
        let removed = old.iter().map(|line| (Change::Removed, *line));
        return removed.chain(new.iter().map(|line| (Change::Added, *line))).collect();
    }
    let lengths = common_lengths(old, new);
    let length = |row: usize, column: usize| lengths.get(row * width + column).copied().unwrap_or(0);
    let (mut row, mut column, mut edits) = (0, 0, Vec::new());
    loop {
        match (old.get(row), new.get(column)) {
            (Some(a), Some(b)) if a == b => {
                edits.push((Change::Same, *a));
                (row, column) = (row + 1, column + 1);
            }
            (Some(a), b) if b.is_none() || length(row + 1, column) >= length(row, column + 1) => {
                edits.push((Change::Removed, *a));
                row += 1;
            }
            (_, Some(b)) => {
                edits.push((Change::Added, *b));
                column += 1;
            }
            (_, None) => return edits,
        }
    }
}

/// Row by row for each pair of positions: how many lines the rests of both texts have in common, in order.
fn common_lengths(old: &[&str], new: &[&str]) -> Vec<u32> {
    let mut rows = Vec::with_capacity(old.len() + 1);
    let mut below = vec![0_u32; new.len() + 1];
    rows.push(below.clone());
    for a in old.iter().rev() {
        let (mut row, mut right, mut diagonal) = (below.clone(), 0, 0);
        for (cell, b) in row.iter_mut().rev().skip(1).zip(new.iter().rev()) {
            let under = *cell;
            *cell = if a == b { diagonal + 1 } else { under.max(right) };
            (right, diagonal) = (*cell, under);
        }
        rows.push(row.clone());
        below = row;
    }
    rows.into_iter().rev().flatten().collect()
}

fn render(edits: &[(Change, &str)]) -> String {
    let near = |position: usize| {
        let from = position.saturating_sub(CONTEXT);
        let window = edits.iter().skip(from).take(position - from + CONTEXT + 1);
        window.into_iter().any(|(change, _)| *change != Change::Same)
    };
    let (mut out, mut gap) = (String::new(), false);
    for (position, (change, line)) in edits.iter().enumerate() {
        if !near(position) {
            gap = true;
            continue;
        }
        if std::mem::take(&mut gap) {
            out.push_str("  …\n");
        }
        let mark = match change {
            Change::Same => ' ',
            Change::Removed => '-',
            Change::Added => '+',
        };
        let _ = writeln!(out, "{mark} {line}");
    }
    if gap {
        out.push_str("  …\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_change_and_its_surroundings() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\n";
        let new = "a\nb\nc\nd\nE\nf\ng\nh\ni\nj\n";
        assert_eq!(diff_lines(old, new), "  …\n  b\n  c\n  d\n- e\n+ E\n  f\n  g\n  h\n  i\n+ j\n");
    }

    #[test]
    fn finds_what_was_only_moved_by_an_insertion() {
        assert_eq!(diff_lines("x\ny\nz", "x\n1\ny\n2\nz"), "  x\n+ 1\n  y\n+ 2\n  z\n");
    }

    #[test]
    fn equal_texts_and_line_ends() {
        assert_eq!(diff_lines("a\nb", "a\nb"), "");
        assert!(diff_lines("a\nb", "a\r\nb").contains("line ends"));
    }

    #[test]
    fn too_long_for_the_table_is_still_a_diff() {
        let old: String = (0..2500).map(|n| format!("old {n}\n")).collect();
        let new: String = (0..2500).map(|n| format!("new {n}\n")).collect();
        let diff = diff_lines(&old, &new);
        assert_eq!(diff.lines().count(), 5000);
    }
}
