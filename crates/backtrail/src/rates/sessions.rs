//! How many sessions there were, as a table says.

use std::cmp::Ordering;
use std::fmt;

/// Lines of a table, and bytes of it.
const MAX_LINES: usize = 1 << 14;
const MAX_BYTES: usize = 1 << 24;

/// Stands for any version or system.
const ANY: &str = "*";

/// How many sessions there were of each version and system.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sessions {
    lines: Vec<SessionsLine>,
}

/// One count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionsLine {
    /// The app's version; `*` is any.
    pub version: String,
    /// The system; `*` is any.
    pub os: String,
    /// How many.
    pub sessions: u64,
}

/// What is no table of sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionsError {
    line: usize,
    expected: &'static str,
}

impl fmt::Display for SessionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}", self.line, self.expected)
    }
}

impl std::error::Error for SessionsError {}

impl Sessions {
    /// One count for everything.
    pub fn all(sessions: u64) -> Self {
        let any = || ANY.to_owned();
        Self { lines: vec![SessionsLine { version: any(), os: any(), sessions }] }
    }

    /// Reads lines of `version,os,sessions`. A first line of names is passed over, and empty lines and such that begin with `#`.
    /// `*`, or nothing, is any version or system. Counts of the same version and system are added up.
    ///
    /// # Errors
    /// Where a line is something else, or there is none.
    pub fn parse(text: &[u8]) -> Result<Self, SessionsError> {
        let failed = |line: usize, expected| SessionsError { line, expected };
        if text.len() > MAX_BYTES {
            return Err(failed(1, "at most 16 MiB"));
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let text = std::str::from_utf8(text).map_err(|_| failed(1, "text in UTF-8"))?;
        let mut sessions = Self::default();
        let mut is_first = true;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let cells: Vec<&str> = line.split(',').map(|cell| cell.trim().trim_matches('"').trim()).collect();
            let [version, os, count] = cells.as_slice() else {
                return Err(failed(number + 1, "version,os,sessions"));
            };
            let was_first = std::mem::take(&mut is_first);
            let Ok(count) = count.parse::<u64>() else {
                if was_first && !count.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
                    continue;
                }
                return Err(failed(number + 1, "a whole number of sessions in the third cell"));
            };
            let any = |cell: &str| if cell.is_empty() { ANY.to_owned() } else { cell.to_owned() };
            let (version, os) = (any(version), any(os));
            let is_room = sessions.lines.len() < MAX_LINES;
            match sessions.lines.iter_mut().find(|line| line.version == version && line.os == os) {
                Some(known) => known.sessions = known.sessions.saturating_add(count),
                None if is_room => {
                    sessions.lines.push(SessionsLine { version, os, sessions: count });
                }
                None => return Err(failed(number + 1, "at most 16384 lines")),
            }
        }
        if sessions.lines.is_empty() { Err(failed(1, "version,os,sessions")) } else { Ok(sessions) }
    }

    /// The counts, in the table's order.
    pub fn lines(&self) -> &[SessionsLine] {
        &self.lines
    }

    /// The line that a report counts for: that of its version and system which says most.
    pub(super) fn line_of(&self, version: &str, os: &str) -> Option<usize> {
        let fitting = self.lines.iter().enumerate().filter_map(|(index, line)| {
            Some((says(&line.version, version)?, says(&line.os, os)?, std::cmp::Reverse(index)))
        });
        fitting.max().map(|(_, _, index)| index.0)
    }

    /// What the table calls a report's version.
    pub(super) fn version_of(&self, version: &str) -> Option<String> {
        let fitting = self.lines.iter().filter(|line| line.version != ANY);
        let fitting = fitting.filter_map(|line| Some((says(&line.version, version)?, &line.version)));
        fitting.max().map(|(_, version)| version.clone())
    }

    /// The versions, earliest first, with all of their sessions.
    pub(super) fn versions(&self) -> Vec<(String, u64)> {
        let mut versions: Vec<(String, u64)> = Vec::new();
        for line in self.lines.iter().filter(|line| line.version != ANY) {
            match versions.iter_mut().find(|(version, _)| *version == line.version) {
                Some((_, sessions)) => *sessions = sessions.saturating_add(line.sessions),
                None => versions.push((line.version.clone(), line.sessions)),
            }
        }
        versions.sort_by(|a, b| natural(&a.0, &b.0));
        versions
    }
}

/// How much a cell says of what a report has, if it is of it: `1.2` of `1.2 (34)`, `iOS 17` of `iOS 17.5`, but `1.2` not of
/// `1.2.1`, which is another release.
fn says(cell: &str, report: &str) -> Option<usize> {
    if cell == ANY {
        return Some(0);
    }
    let rest = report.trim().strip_prefix(cell)?;
    let is_system = cell.contains(' ');
    let goes_on = match rest.chars().next() {
        None => true,
        Some('.') => is_system,
        Some(next) => next == ' ' || next == '(',
    };
    goes_on.then_some(cell.len())
}

/// Compares texts with the numbers in them as numbers: 1.9 before 1.10.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (of_a, of_b) = (digits(a), digits(b));
        if of_a > 0 && of_b > 0 {
            let (number_a, rest_a) = a.split_at(of_a);
            let (number_b, rest_b) = b.split_at(of_b);
            let (short_a, short_b) = (number_a.trim_start_matches('0'), number_b.trim_start_matches('0'));
            let order = short_a.len().cmp(&short_b.len()).then_with(|| short_a.cmp(short_b));
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (rest_a, rest_b);
            continue;
        }
        let (mut rest_a, mut rest_b) = (a.chars(), b.chars());
        match (rest_a.next(), rest_b.next()) {
            (None, None) => return Ordering::Equal,
            (next_a, next_b) if next_a != next_b => return next_a.cmp(&next_b),
            _ => (a, b) = (rest_a.as_str(), rest_b.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_and_what_is_none_is_refused_by_line() {
        let text = "\u{feff}Version,OS,Sessions\n# ours\n\n1.2,\"iOS 17\",10\n1.2,iOS 17,5\n,,7\n";
        let sessions = Sessions::parse(text.as_bytes()).unwrap();
        let line = |version: &str, os: &str, sessions| SessionsLine {
            version: version.to_owned(),
            os: os.to_owned(),
            sessions,
        };
        assert_eq!(sessions.lines(), [line("1.2", "iOS 17", 15), line("*", "*", 7)]);
        let refused = |text: &str| Sessions::parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(refused(""), "line 1: expected version,os,sessions");
        assert_eq!(refused("1,2\n"), "line 1: expected version,os,sessions");
        let number = "expected a whole number of sessions in the third cell";
        assert_eq!(refused("1,iOS,-3\n"), format!("line 1: {number}"));
        assert_eq!(refused("1,iOS,3\n1,iOS,x\n"), format!("line 2: {number}"));
    }

    #[test]
    fn numbers_compare_as_numbers() {
        let mut versions = ["1.10", "1.9", "1.9b", "1.09.1", "2", "10"];
        versions.sort_by(|a, b| natural(a, b));
        assert_eq!(versions, ["1.9", "1.09.1", "1.9b", "1.10", "2", "10"]);
    }

    #[test]
    fn a_cell_is_of_whole_words() {
        let is = |cell, report| says(cell, report).is_some();
        assert!(is("1.2", "1.2") && is("1.2", "1.2 (34)") && is("*", ""));
        assert!(!is("1.2", "1.20") && !is("1.2", "1.2.1") && !is("1.2", ""));
        assert!(is("iOS 17", "iOS 17.5 (21F90)") && !is("iOS 1", "iOS 17"));
    }
}
