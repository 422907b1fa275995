//! What the report says of the memory around the address.

use super::words::one_line;
use backtrail_model::Report;

/// The region that the address lies in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    /// Its type: `__TEXT`, `STACK GUARD`, `MALLOC_TINY`.
    pub(crate) kind: String,
    /// Its protection now: `r-x`.
    pub(crate) protection: Option<String>,
    /// What the report adds: a path, `stack guard for thread 0`.
    pub(crate) detail: String,
    /// The report's line.
    pub(crate) evidence: String,
}

/// Titles and keys under which reports have it.
const TITLES: [&str; 4] = ["vmregioninfo", "vmregionsnear", "vmregion", "memoryregion"];

/// Longest text that is searched.
const MAX_TEXT: usize = 64 * 1024;

/// The region that the report marks with an arrow. `None` where the report has none or the address lies between
/// regions.
pub(crate) fn of(report: &Report) -> Option<Region> {
    texts(report).find_map(|text| text.lines().find_map(marked))
}

/// The sentence before the table: `0x8 is not in any region. …`.
pub(crate) fn placement(report: &Report) -> Option<String> {
    texts(report).find_map(|text| {
        let line =
            text.lines().find(|line| line.contains(" is in 0x") || line.contains("not in any region"))?;
        Some(format!("VM Region Info: {}", one_line(line)))
    })
}

fn texts(report: &Report) -> impl Iterator<Item = &str> {
    let wanted = |title: &str| {
        let plain: String = title.chars().filter(char::is_ascii_alphabetic).take(32).collect();
        let plain = plain.to_ascii_lowercase();
        TITLES.iter().any(|known| plain.starts_with(known)) && !plain.starts_with("vmregionsummary")
    };
    let sections = report.sections.iter().filter(move |section| wanted(&section.title));
    let fields = report.fields.iter().filter(move |field| wanted(&field.key));
    let texts = sections.map(|section| section.text.as_str()).chain(fields.map(|field| field.value.as_str()));
    texts.filter(|text| text.len() <= MAX_TEXT)
}

/// Reads `--->  STACK GUARD  16bc7c000-16f480000 [ 56.0M] ---/rwx SM=NUL  stack guard for thread 0`.
fn marked(line: &str) -> Option<Region> {
    let row = line.trim_start().trim_start_matches('-').strip_prefix('>')?.trim_start();
    let words: Vec<&str> = row.split_whitespace().take(64).collect();
    let range = words.iter().position(|word| is_range(word))?;
    let kind = words.get(..range)?.join(" ");
    if kind.is_empty() || kind.starts_with("GAP OF") || kind.starts_with("UNUSED") {
        return None;
    }
    let protection = words.iter().position(|word| is_protection(word));
    let current = protection.and_then(|at| words.get(at)?.split('/').next()).map(str::to_owned);
    let rest = protection.and_then(|at| words.get(at + 1..)).unwrap_or_default();
    let detail: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with("SM=")).collect();
    let evidence = format!("VM Region Info: ---> {}", one_line(row));
    Some(Region { kind, protection: current, detail: detail.join(" "), evidence })
}

fn is_range(word: &str) -> bool {
    let hex = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    word.split_once('-').is_some_and(|(low, high)| hex(low) && hex(high))
}

fn is_protection(word: &str) -> bool {
    let three =
        |text: &str| text.len() == 3 && text.bytes().all(|byte| matches!(byte, b'r' | b'w' | b'x' | b'-'));
    word.split_once('/').is_some_and(|(now, most)| three(now) && three(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_model::Section;

    fn region(text: &str) -> Option<Region> {
        let section = Section { title: "VM Region Info".to_owned(), text: text.to_owned() };
        of(&Report { sections: vec![section], ..Report::default() })
    }

    #[test]
    fn the_marked_row_is_read() {
        let guard = region("0x16bc7fff0 is in 0x16bc7c000-0x16bc80000;\n--->  STACK GUARD  16bc7c000-16bc80000 [   16K] ---/rwx SM=NUL  stack guard for thread 0").unwrap();
        assert_eq!((guard.kind.as_str(), guard.detail.as_str()), ("STACK GUARD", "stack guard for thread 0"));
        assert_eq!(guard.protection.as_deref(), Some("---"));
        let old = region("--> mapped file 000000011212c000-000000011212d000 [ 4K] r-x/r-x SM=PRV").unwrap();
        assert_eq!((old.kind.as_str(), old.protection.as_deref()), ("mapped file", Some("r-x")));
    }

    #[test]
    fn gaps_are_no_regions() {
        assert_eq!(
            region(
                "0x8 is not in any region.\n--->  \n      __TEXT  1009ad000-1009b1000 [ 16K] r-x/r-x SM=COW"
            ),
            None
        );
        assert_eq!(region("--->  GAP OF 0xd9a9f4000 BYTES"), None);
        assert_eq!(region("nothing"), None);
        assert_eq!(of(&Report::default()), None);
    }
}
