//! What logs, terminals and Markdown put before a line.

use crate::log_prefix::plain;

/// A line without it, and the program that a log names.
pub(super) struct Logged<'t> {
    pub(super) program: Option<(&'t str, u64)>,
    pub(super) text: &'t str,
    /// With all that logs put before it, which looks as shells' numbers of jobs do.
    pub(super) whole: &'t str,
}

impl<'t> Logged<'t> {
    pub(super) fn read(line: &'t str) -> Self {
        let line = line.trim();
        let line = line.strip_prefix("> ").unwrap_or(line).trim_matches(['`', ' ']);
        match program(line) {
            Some((program, text)) => Self { program: Some(program), text: plain(text).trim(), whole: line },
            None => Self { program: None, text: plain(line).trim(), whole: line },
        }
    }
}

/// No log has its program's name behind more words than these: month, day, time, host.
const MAX_WORDS: usize = 5;

/// `Nov 22 17:00:00 host app[123]: `, `2024-11-22T17:00:00+0100 host app[123]: `, `2024-11-22 17:00:00.123 App[123:4567] `.
fn program(line: &str) -> Option<((&str, u64), &str)> {
    let mut rest = line;
    for _ in 0..MAX_WORDS {
        let (word, behind) = rest.split_once(' ')?;
        if let Some((name, inside)) = word.split_once('[') {
            let digits = inside.split([']', ':']).next().unwrap_or_default();
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
            let is_whole = matches!(inside.trim_start_matches(|c: char| c.is_ascii_digit()), "]:" | "]")
                || inside.contains(':') && inside.ends_with(']');
            if let Some(pid) = digits.parse().ok().filter(|_| is_name && is_whole) {
                return Some(((name, pid), behind.trim_start()));
            }
        }
        rest = behind.trim_start();
    }
    None
}
