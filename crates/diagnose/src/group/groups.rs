//! Groups of many reports: joined by either key.

use super::Group;
use std::collections::HashMap;

/// Puts reports into groups, each by its keys alone. Memory grows with the number of different keys, not of reports.
///
/// A report with names teaches which group the key without names belongs to, so that reports of the same place whose names
/// are missing find it, whichever came first. Two groups that both have names are never joined by a key without: somebody's
/// symbols were worse than others', or bugs have more in common than the key says. Which is not known, so reports without names
/// that come behind those have a group of their own.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    by_key: HashMap<Box<str>, GroupRef>,
    by_symbol_key: HashMap<Box<str>, GroupRef>,
    /// Keys that groups with different names have, and the group of those without.
    disputed: HashMap<Box<str>, Option<GroupRef>>,
    entries: Vec<Entry>,
}

/// A group of [`Groups`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupRef(usize);

impl GroupRef {
    /// Groups are counted from 0 in the order in which they were found.
    pub fn index(self) -> usize {
        self.0
    }
}

#[derive(Clone, Debug)]
struct Entry {
    /// The group that it became a part of.
    part_of: Option<GroupRef>,
    has_names: bool,
}

/// What became of one report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Added {
    /// Its group.
    pub group: GroupRef,
    /// Whether nobody was in that group before.
    pub is_new: bool,
    /// Two groups that turned out to be one.
    pub joined: Option<Joined>,
}

/// Two groups that turned out to be one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joined {
    /// The one that is there no more.
    pub from: GroupRef,
    /// The one that it is a part of.
    pub into: GroupRef,
}

impl Groups {
    /// Groups that nobody is in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds the group of a report, or makes one.
    pub fn add(&mut self, group: &Group) -> Added {
        self.add_keys(&group.key, group.symbol_key.as_deref())
    }

    /// The same by the keys themselves, as an earlier run wrote them down.
    pub fn add_keys(&mut self, key: &str, symbol_key: Option<&str>) -> Added {
        let by_key = self.by_key.get(key).map(|group| self.root(*group));
        let Some(symbol_key) = symbol_key else {
            return match by_key {
                Some(group) => Added { group, is_new: false, joined: None },
                None => self.add_disputed(key).unwrap_or_else(|| self.make(key, None)),
            };
        };
        let by_names = self.by_symbol_key.get(symbol_key).map(|group| self.root(*group));
        // A group of reports without names may get them; one that has others keeps its own.
        let nameless = by_key.filter(|group| !self.has_names(*group));
        match (by_names, nameless) {
            (Some(group), Some(from)) => {
                let joined = self.join(from, group);
                Added { group, is_new: false, joined }
            }
            (Some(group), None) => {
                self.teach(key, group);
                Added { group, is_new: false, joined: None }
            }
            (None, Some(group)) => {
                self.name(group, symbol_key);
                Added { group, is_new: false, joined: None }
            }
            (None, None) => self.make(key, Some(symbol_key)),
        }
    }

    /// Takes over a group that an earlier run found, with all its keys.
    pub fn restore<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k str>,
        symbol_keys: impl Iterator<Item = &'k str>,
    ) -> GroupRef {
        let group = GroupRef(self.entries.len());
        self.entries.push(Entry { part_of: None, has_names: false });
        for name in symbol_keys {
            self.name(group, name);
        }
        for key in keys {
            self.teach(key, group);
        }
        group
    }

    /// Reports without names at a place that groups of different names share.
    fn add_disputed(&mut self, key: &str) -> Option<Added> {
        let known = *self.disputed.get(key)?;
        if let Some(group) = known {
            return Some(Added { group: self.root(group), is_new: false, joined: None });
        }
        let group = GroupRef(self.entries.len());
        self.entries.push(Entry { part_of: None, has_names: false });
        self.disputed.insert(key.into(), Some(group));
        Some(Added { group, is_new: true, joined: None })
    }

    /// Notes that a group has that key, if no other one has.
    fn teach(&mut self, key: &str, group: GroupRef) {
        let nameless = Some(group).filter(|group| !self.has_names(*group));
        if let Some(known) = self.disputed.get_mut(key) {
            *known = known.or(nameless);
            return;
        }
        match self.by_key.get(key).map(|other| self.root(*other)) {
            Some(other) if other == group => {}
            Some(other) => {
                let other = Some(other).filter(|other| !self.has_names(*other));
                self.by_key.remove(key);
                self.disputed.insert(key.into(), nameless.or(other));
            }
            None => {
                self.by_key.insert(key.into(), group);
            }
        }
    }

    /// Makes two groups one: `from` becomes a part of `into`.
    pub fn join(&mut self, from: GroupRef, into: GroupRef) -> Option<Joined> {
        let (from, into) = (self.root(from), self.root(into));
        if from == into {
            return None;
        }
        let has_names = self.has_names(from) || self.has_names(into);
        if let Some(entry) = self.entries.get_mut(from.0) {
            entry.part_of = Some(into);
        }
        if let Some(entry) = self.entries.get_mut(into.0) {
            entry.has_names = has_names;
        }
        Some(Joined { from, into })
    }

    /// The group that has that key, of either sort.
    pub fn find(&self, key: &str) -> Option<GroupRef> {
        let found = self.by_symbol_key.get(key).or_else(|| self.by_key.get(key)).copied();
        let found = found.or_else(|| self.disputed.get(key).copied().flatten())?;
        Some(self.root(found))
    }

    /// How many groups were made, those included that became parts of others.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn make(&mut self, key: &str, symbol_key: Option<&str>) -> Added {
        let group = GroupRef(self.entries.len());
        self.entries.push(Entry { part_of: None, has_names: false });
        if let Some(symbol_key) = symbol_key {
            self.name(group, symbol_key);
        }
        self.teach(key, group);
        Added { group, is_new: true, joined: None }
    }

    fn name(&mut self, group: GroupRef, symbol_key: &str) {
        self.by_symbol_key.insert(symbol_key.into(), group);
        if let Some(entry) = self.entries.get_mut(group.0) {
            entry.has_names = true;
        }
    }

    fn has_names(&self, group: GroupRef) -> bool {
        self.entries.get(group.0).is_some_and(|entry| entry.has_names)
    }

    /// What a group is a part of now. Joined groups point at ones that are not joined, so the way has an end.
    fn root(&self, group: GroupRef) -> GroupRef {
        let mut group = group;
        for _ in 0..=self.entries.len() {
            match self.entries.get(group.0).and_then(|entry| entry.part_of) {
                Some(next) => group = next,
                None => break,
            }
        }
        group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_come_late_split_nothing() {
        let mut groups = Groups::new();
        let first = groups.add_keys("k1", None);
        assert!(first.is_new);
        let named = groups.add_keys("k1", Some("s"));
        assert_eq!((named.group, named.is_new), (first.group, false));
        // Another build, first without and then with names.
        let other = groups.add_keys("k2", None);
        assert!(other.is_new);
        let named = groups.add_keys("k2", Some("s"));
        assert_eq!(named.joined, Some(Joined { from: other.group, into: first.group }));
        assert_eq!(groups.find("k2"), Some(first.group));
        assert_eq!(groups.add_keys("k2", None).group, first.group);
    }

    #[test]
    fn groups_with_names_are_not_joined_by_places() {
        let mut groups = Groups::new();
        let one = groups.add_keys("k1", Some("s1")).group;
        let other = groups.add_keys("k2", Some("s2")).group;
        let odd = groups.add_keys("k1", Some("s2"));
        assert_eq!((odd.group, odd.joined), (other, None));
        let third = groups.add_keys("k1", Some("s3"));
        assert!(third.is_new);
        // Nobody knows which of them reports without names are.
        let nameless = groups.add_keys("k1", None);
        assert!(nameless.is_new && ![one, other, third.group].contains(&nameless.group));
        assert_eq!(groups.add_keys("k1", None).group, nameless.group);
        assert_eq!(groups.add_keys("k1", Some("s1")).group, one);
        assert_eq!(groups.add_keys("k2", None).group, other);
        assert_eq!(groups.find("k1"), Some(nameless.group));
    }

    #[test]
    fn what_an_earlier_run_found_is_as_it_was() {
        // Whichever order the groups are in.
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut groups = Groups::new();
            let mut found = [None; 3];
            for at in order {
                let names: &[&str] = [["s1"].as_slice(), &["s2"], &[]][at];
                found[at] = Some(groups.restore(["k1"].into_iter(), names.iter().copied()));
            }
            assert_eq!(groups.find("s1"), found[0]);
            assert_eq!(Some(groups.add_keys("k1", Some("s2")).group), found[1]);
            assert_eq!(Some(groups.add_keys("k1", None).group), found[2], "{order:?}");
        }
    }
}
