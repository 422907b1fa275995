//! The list of edges in ARCHITECTURE.md, which is that of `deps`.

use std::collections::{BTreeMap, BTreeSet};

/// The width of the column with the crates that depend on others, indentation included.
const COLUMN: usize = 15;

type Edges<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

/// One line for each crate whose edges the page states otherwise.
pub(super) fn faults(page: &str, edges: &[(&str, &[&str])]) -> Vec<String> {
    let known: BTreeSet<&str> = edges.iter().map(|(name, _)| *name).collect();
    let stated = stated(page, &known);
    let differs = |(name, allowed): &&(&str, &[&str])| {
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        stated.get(name) != Some(&allowed)
    };
    let fault = |(name, allowed): &(&str, &[&str])| {
        let stated: Vec<_> = stated.get(name).into_iter().flatten().copied().collect();
        format!("ARCHITECTURE.md: the edges of {name} are {allowed:?}, the page lists {stated:?}")
    };
    edges.iter().filter(differs).map(fault).collect()
}

/// What the indented block below the heading "Edges" states. Lines without a crate in front go on with those before.
fn stated<'t>(page: &'t str, known: &BTreeSet<&str>) -> Edges<'t> {
    let section = page.split_once("\n## Edges\n").map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let (mut edges, mut from) = (Edges::new(), Vec::new());
    for line in section.lines().filter(|line| line.starts_with("    ")) {
        let (names, rest) = line.split_at_checked(COLUMN).unwrap_or((line, ""));
        let names: Vec<&str> = crates(names, known).collect();
        if !names.is_empty() {
            from = names;
        }
        for name in &from {
            edges.entry(name).or_default().extend(crates(rest, known));
        }
    }
    edges
}

fn crates<'t>(text: &'t str, known: &BTreeSet<&str>) -> impl Iterator<Item = &'t str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| known.contains(word))
}

#[cfg(test)]
mod tests {
    use super::faults;

    const PAGE: &str = "# A\n\n## Edges\n\nText of b.\n\n    a          nothing\n    b, c       a,\n               d   (d: its tests)\n    d          a\n\n## More\n\n    d          c\n";

    #[test]
    fn each_crate_has_the_edges_that_the_page_lists() {
        assert_eq!(
            faults(PAGE, &[("a", &[]), ("b", &["a", "d"]), ("c", &["d", "a"]), ("d", &["a"])]),
            [""; 0]
        );
    }

    #[test]
    fn a_missing_edge_and_one_too_many_are_faults() {
        let edges: &[(&str, &[&str])] = &[("a", &[]), ("b", &["a"]), ("c", &["d", "a"]), ("d", &["a", "c"])];
        let found = faults(PAGE, edges);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("edges of b") && found[1].contains("edges of d"), "{found:?}");
    }

    #[test]
    fn a_crate_that_the_page_leaves_out_is_a_fault() {
        assert_eq!(faults("# A\n", &[("a", &[])]).len(), 1);
    }
}
