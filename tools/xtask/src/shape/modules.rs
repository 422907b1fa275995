//! The modules of a crate, and what a path in one of them leads to.

use std::collections::BTreeMap;

/// How many imports one name is followed through; nobody writes longer chains.
const MAX_DEPTH: usize = 16;

/// A crate's modules; the first is its root.
#[derive(Default)]
pub(super) struct Modules {
    pub(super) all: Vec<Module>,
}

pub(super) struct Module {
    pub(super) parent: Option<usize>,
    /// The file that it is in, as shown; inline modules have that of the module around them.
    pub(super) file: String,
    pub(super) is_inline: bool,
    children: BTreeMap<String, usize>,
    items: Vec<String>,
    /// What a name is imported from.
    imports: Vec<(String, Vec<String>)>,
    globs: Vec<Vec<String>>,
    /// All paths that are written in it.
    pub(super) references: Vec<Reference>,
}

pub(super) struct Reference {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    Module(usize),
    /// Something that is defined in this module.
    Item(usize),
}

impl Modules {
    pub(super) fn add(&mut self, name: &str, parent: Option<usize>, file: &str, is_inline: bool) -> usize {
        let index = self.all.len();
        if let Some(parent) = parent.and_then(|parent| self.all.get_mut(parent)) {
            // Of modules of one name, for several systems, the first stands for all.
            parent.children.entry(name.to_owned()).or_insert(index);
        }
        self.all.push(Module {
            parent,
            file: file.to_owned(),
            is_inline,
            children: BTreeMap::new(),
            items: Vec::new(),
            imports: Vec::new(),
            globs: Vec::new(),
            references: Vec::new(),
        });
        index
    }

    pub(super) fn add_item(&mut self, module: usize, name: String) {
        self.change(module, |module| module.items.push(name));
    }

    pub(super) fn add_import(&mut self, module: usize, name: Option<String>, path: Vec<String>) {
        self.change(module, |module| match name {
            Some(name) => module.imports.push((name, path)),
            None => module.globs.push(path),
        });
    }

    pub(super) fn add_reference(&mut self, module: usize, path: Vec<String>, line: usize) {
        self.change(module, |module| module.references.push(Reference { path, line }));
    }

    fn change(&mut self, module: usize, change: impl FnOnce(&mut Module)) {
        if let Some(module) = self.all.get_mut(module) {
            change(module);
        }
    }

    /// The module in which what `path`, as written in `module`, leads to is defined. `None` for what is not of this
    /// crate, and for a module by itself: its name uses nothing of it yet.
    pub(super) fn definition(&self, module: usize, path: &[String]) -> Option<usize> {
        match self.resolve(module, path, 0)? {
            Target::Item(module) => Some(module),
            Target::Module(_) => None,
        }
    }

    /// The module that has the file: itself, or the one around an inline module.
    pub(super) fn of_file(&self, mut module: usize) -> usize {
        while let Some(Module { is_inline: true, parent: Some(parent), .. }) = self.all.get(module) {
            module = *parent;
        }
        module
    }

    /// The modules around one, from the root to itself.
    pub(super) fn ancestry(&self, module: usize) -> Vec<usize> {
        let parent = |index: &usize| self.all.get(*index).and_then(|module| module.parent);
        let mut around: Vec<usize> = std::iter::successors(Some(module), parent).collect();
        around.reverse();
        around
    }

    fn resolve(&self, module: usize, path: &[String], depth: usize) -> Option<Target> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (first, mut rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(module),
            "super" => Target::Module(self.all.get(module)?.parent?),
            name => self.lookup(module, name, rest.is_empty(), depth)?,
        };
        while let (Target::Module(at), Some((name, further))) = (target, rest.split_first()) {
            target = match name.as_str() {
                "self" => target,
                "super" => Target::Module(self.all.get(at)?.parent?),
                // What a macro defines there is not seen.
                name => self.lookup(at, name, further.is_empty(), depth).unwrap_or(Target::Item(at)),
            };
            rest = further;
        }
        Some(target)
    }

    /// What a name means in a module. At the end of a path it is rather an item than a module of the same name.
    fn lookup(&self, module: usize, name: &str, is_last: bool, depth: usize) -> Option<Target> {
        let found = self.all.get(module)?;
        let child = || found.children.get(name).map(|child| Target::Module(*child));
        let item = || found.items.iter().any(|item| item == name).then_some(Target::Item(module));
        let import = || {
            let of_name = found.imports.iter().filter(|(imported, _)| imported == name);
            let targets = of_name.filter_map(|(_, path)| self.resolve(module, path, depth + 1));
            let mut targets: Vec<_> = targets.collect();
            // A module and a function of one name may be imported at once.
            targets.sort_by_key(|target| matches!(target, Target::Module(_)) == is_last);
            targets.first().copied()
        };
        let glob = || {
            found.globs.iter().find_map(|path| match self.resolve(module, path, depth + 1)? {
                Target::Module(from) if from != module => self.lookup(from, name, is_last, depth + 1),
                _ => None,
            })
        };
        if is_last {
            item().or_else(import).or_else(child).or_else(glob)
        } else {
            child().or_else(import).or_else(item).or_else(glob)
        }
    }
}
