//! Many threads in few words.

use std::collections::HashMap;
use std::fmt;

/// So many are listed one by one.
const FEW: usize = 6;
/// So many families, or ranges of numbers, are listed before the rest is counted.
const MAX_PARTS: usize = 6;

/// A thread as a list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed<'a> {
    pub(crate) number: u64,
    pub(crate) name: Option<&'a str>,
}

/// `2 threads: 4711 pool-1, 4712 pool-2`, `1000 threads conn-0 … conn-1998`, `400 threads: 396 conn-0 … conn-790, 4 io`; without
/// names `37 threads: 1, 2, 5 to 39`. In parts, each of which may be cut, but not the whole.
pub(crate) struct ThreadList<'a>(Vec<Listed<'a>>);

/// The same without a count before few: `4711 pool-1, 4712 pool-2`.
pub(crate) struct ThreadNames<'a>(pub(crate) ThreadList<'a>);

impl fmt::Display for ThreadNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ThreadNames(list) = self;
        if list.0.len() > FEW {
            return write!(f, "{list}");
        }
        let (_, parts) = list.parts();
        f.write_str(&parts.join(", "))
    }
}

impl<'a> ThreadList<'a> {
    pub(crate) fn new(threads: impl IntoIterator<Item = Listed<'a>>) -> Self {
        Self(threads.into_iter().collect())
    }

    fn parts(&self) -> (&'static str, Vec<String>) {
        let named = self.0.iter().filter(|thread| thread.name.is_some()).count();
        if self.0.len() > FEW && named == self.0.len() {
            let families = families(&self.0);
            return match &families[..] {
                [only] => (" ", vec![only.shown()]),
                _ => (": ", cut(&families, |family| format!("{} {}", family.count, family.shown()))),
            };
        }
        if named > 0 && self.0.len() <= FEW {
            let one = |thread: &Listed<'_>| {
                format!("{} {}", thread.number, thread.name.unwrap_or_default()).trim_end().to_owned()
            };
            return (": ", self.0.iter().map(one).collect());
        }
        let range = |(first, last): &(u64, u64)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first} to {last}"),
        };
        (": ", cut(&ranges(&self.0), range))
    }
}

impl fmt::Display for ThreadList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (colon, parts) = self.parts();
        write!(f, "{} {}{colon}", self.0.len(), if self.0.len() == 1 { "thread" } else { "threads" })?;
        for (position, part) in parts.iter().enumerate() {
            f.write_str(if position == 0 { "" } else { ", " })?;
            f.write_str(part)?;
        }
        Ok(())
    }
}

/// The first parts, and how many more there are.
fn cut<T>(parts: &[T], show: impl Fn(&T) -> String) -> Vec<String> {
    let mut shown: Vec<_> = parts.iter().take(MAX_PARTS).map(show).collect();
    let more = parts.len().saturating_sub(MAX_PARTS);
    if more > 0 {
        shown.push(format!("… and {more} more"));
    }
    shown
}

/// Threads whose names are the same but for a number at the end.
struct Family<'a> {
    count: usize,
    /// By the number.
    first: (u128, &'a str),
    last: (u128, &'a str),
}

impl Family<'_> {
    fn shown(&self) -> String {
        match self.first.1 == self.last.1 {
            true => self.first.1.to_owned(),
            false => format!("{} … {}", self.first.1, self.last.1),
        }
    }
}

/// The families in the order of their first members.
fn families<'a>(threads: &[Listed<'a>]) -> Vec<Family<'a>> {
    let mut families: Vec<Family<'a>> = Vec::new();
    let mut positions = HashMap::new();
    for name in threads.iter().filter_map(|thread| thread.name) {
        let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
        let digits = name.get(stem.len()..).unwrap_or_default();
        // What has no number, or one too long to be one, is alike only where all of it is.
        let (stem, number) = digits.parse::<u128>().map_or((name, 0), |number| (stem, number));
        let key = (stem, number > 0 || stem != name);
        let member = (number, name);
        let position = *positions.entry(key).or_insert(families.len());
        match families.get_mut(position) {
            Some(family) => {
                family.count += 1;
                family.first = family.first.min(member);
                family.last = family.last.max(member);
            }
            None => families.push(Family { count: 1, first: member, last: member }),
        }
    }
    families
}

/// The numbers as ranges without a hole, ascending.
fn ranges(threads: &[Listed<'_>]) -> Vec<(u64, u64)> {
    let mut numbers: Vec<_> = threads.iter().map(|thread| thread.number).collect();
    numbers.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if number <= last.saturating_add(1) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> String {
        let listed =
            |(name, number)| Listed { number, name: Some(name).filter(|name: &&str| !name.is_empty()) };
        ThreadList::new(names.iter().copied().zip(10..).map(listed)).to_string()
    }

    #[test]
    fn few_are_listed_and_many_are_compressed() {
        assert_eq!(list(&["a", "b-2"]), "2 threads: 10 a, 11 b-2");
        assert_eq!(list(&["", "x"]), "2 threads: 10, 11 x");
        let names: Vec<_> = (0..1000).rev().map(|number| format!("conn-{}", number * 2)).collect();
        let mut names: Vec<_> = names.iter().map(String::as_str).collect();
        assert_eq!(list(&names), "1000 threads conn-0 … conn-1998");
        names.extend(["io", "conn-x", "io"]);
        assert_eq!(list(&names), "1003 threads: 1000 conn-0 … conn-1998, 2 io, 1 conn-x");
        assert_eq!(list(&["program"; 9]), "9 threads program");
        assert_eq!(
            list(&["a", "b", "c", "d", "e", "f", "g", "h"]),
            "8 threads: 1 a, 1 b, 1 c, 1 d, 1 e, 1 f, … and 2 more"
        );
        let digits = "9".repeat(60);
        assert_eq!(list(&[&digits[..]; 7]), format!("7 threads {digits}"));
    }

    #[test]
    fn numbers_are_ranges() {
        assert_eq!(list(&[""; 37]), "37 threads: 10 to 46");
        let numbers = [1, 2, 5, 6, 7, 9, 9, u64::MAX];
        let threads = numbers.map(|number| Listed { number, name: None });
        assert_eq!(ThreadList::new(threads).to_string(), format!("8 threads: 1, 2, 5 to 7, 9, {}", u64::MAX));
    }
}
