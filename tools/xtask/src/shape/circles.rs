//! Files of one crate that use each other in a circle.
//!
//! A module's file and the files below it (`foo.rs`, `foo/*`) are one subject: there, both directions are fine. Beside
//! each other, subjects must have an order. What lies below a module counts as the module: a use of `a::x` by `b::y`
//! is one of `a` by `b`, where `a` and `b` have the same parent.
//!
//! A use is a path that is written out: in `use`, in code, in the arguments of a macro. What a module passes on with
//! `pub use` counts for the file that defines it. Methods are not seen, nor is code for tests.

use super::modules::{Modules, Reference};
use super::read::{self, Files};
use crate::sh;
use crate::source::SourceFile;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A circle: the files that are in it, and a line for each use of the shortest way around.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Circle {
    pub(super) name: String,
    pub(super) uses: Vec<String>,
}

/// Modules with one parent, which of the others each uses, and an example of each use.
type Graph = BTreeMap<usize, BTreeMap<usize, String>>;

/// The circles of every crate that the files belong to.
pub(super) fn all(files: &[SourceFile]) -> Vec<Circle> {
    let by_path: Files<'_> = files.iter().map(|file| (file.path.as_path(), file)).collect();
    let roots = files.iter().filter(|file| is_root(file));
    roots.flat_map(|root| of_crate(&read::modules(root, &by_path))).collect()
}

/// `src/lib.rs`, `src/main.rs`, `src/bin/*.rs`.
fn is_root(file: &SourceFile) -> bool {
    let name = sh::shown_path(&file.path);
    let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
    let is_program = directory.ends_with("/src/bin");
    is_program || name.ends_with("/src/lib.rs") || name.ends_with("/src/main.rs")
}

fn of_crate(modules: &Modules) -> Vec<Circle> {
    let mut graphs: BTreeMap<usize, Graph> = BTreeMap::new();
    for (index, module) in modules.all.iter().enumerate() {
        for reference in &module.references {
            if let Some((parent, from, to)) = subjects(modules, index, reference) {
                let uses = graphs.entry(parent).or_default().entry(from).or_default();
                uses.entry(to).or_insert_with(|| {
                    format!("{}:{}: uses {}", module.file, reference.line, reference.path.join("::"))
                });
            }
        }
    }
    graphs.values().flat_map(|graph| circles(modules, graph)).collect()
}

/// The two modules of a use, lifted to where they have the same parent, which is the first of the three. `None` where one
/// is above the other, or where nothing of this crate is used.
fn subjects(modules: &Modules, from: usize, reference: &Reference) -> Option<(usize, usize, usize)> {
    let to = modules.of_file(modules.definition(from, &reference.path)?);
    let (from, to) = (modules.ancestry(modules.of_file(from)), modules.ancestry(to));
    let shared = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
    let parent = shared.checked_sub(1).and_then(|last| from.get(last))?;
    Some((*parent, *from.get(shared)?, *to.get(shared)?))
}

fn circles(modules: &Modules, graph: &Graph) -> Vec<Circle> {
    let reach: BTreeMap<usize, BTreeSet<usize>> =
        graph.keys().map(|module| (*module, reachable(graph, *module))).collect();
    let reaches = |from: usize, to: usize| reach.get(&from).is_some_and(|reached| reached.contains(&to));
    let mut done: BTreeSet<usize> = BTreeSet::new();
    let mut circles = Vec::new();
    for module in graph.keys().copied() {
        if !reaches(module, module) || done.contains(&module) {
            continue;
        }
        let members: BTreeSet<usize> = graph
            .keys()
            .copied()
            .filter(|other| reaches(module, *other) && reaches(*other, module))
            .collect();
        done.extend(&members);
        let ways = members.iter().filter_map(|member| way_around(graph, *member));
        let shortest = ways.min_by_key(Vec::len).unwrap_or_default();
        let mut files: Vec<_> =
            members.iter().filter_map(|member| Some(modules.all.get(*member)?.file.as_str())).collect();
        files.sort_unstable();
        circles.push(Circle { name: files.join(" <-> "), uses: shortest });
    }
    circles
}

fn reachable(graph: &Graph, from: usize) -> BTreeSet<usize> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        let next = graph.get(&module).into_iter().flat_map(BTreeMap::keys);
        open.extend(next.filter(|next| reached.insert(**next)));
    }
    reached
}

/// The uses on a shortest way from a module to itself.
fn way_around(graph: &Graph, start: usize) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<usize, (usize, &String)> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(module) = open.pop_front() {
        for (next, example) in graph.get(&module).into_iter().flatten() {
            if !came_from.contains_key(next) {
                came_from.insert(*next, (module, example));
                open.push_back(*next);
            }
        }
    }
    let (mut at, mut way) = (start, Vec::new());
    loop {
        let (before, example) = came_from.get(&at)?;
        way.push((*example).clone());
        at = *before;
        if at == start {
            way.reverse();
            return Some(way);
        }
    }
}

#[cfg(test)]
mod tests;
