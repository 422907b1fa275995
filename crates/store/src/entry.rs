//! One binary or debug file that was found, and where it lies.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use backtrail_object::{Identity, Kind};

use crate::error::{Shown, ShownPath};
use crate::zip::Member;

/// A file on the disk, or a member of a zip (or of a zip within that zip).
///
/// Shown as `path`, `path!member` or `path!zip!member`, with control characters and bytes that are no UTF-8 escaped.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    path: Arc<Path>,
    members: Vec<Member>,
}

/// One slice of a binary or debug file that a scan found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The file that it lies in.
    pub location: Location,
    /// What its headers say.
    pub identity: Identity,
}

impl Location {
    pub(crate) fn file(path: Arc<Path>) -> Self {
        Self { path, members: Vec::new() }
    }

    pub(crate) fn member(&self, member: Member) -> Self {
        let mut location = self.clone();
        location.members.push(member);
        location
    }

    /// The zip that the last member is in.
    pub(crate) fn outer(&self) -> Self {
        let mut outer = self.clone();
        outer.members.pop();
        outer
    }

    /// The file on the disk: the zip, when it is in one.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of the zip members that lead to it, outermost first; empty for a file on the disk. They are what
    /// the zip says, `../` and all: to be shown, never to be written to.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(Member::name)
    }

    /// Whether it lies in a zip.
    pub fn is_in_zip(&self) -> bool {
        !self.members.is_empty()
    }

    pub(crate) fn zip_members(&self) -> &[Member] {
        &self.members
    }

    /// The last part of the file's or member's name; empty where it is not UTF-8.
    pub fn file_name(&self) -> &str {
        self.components().next_back().unwrap_or_default()
    }

    /// The parts of the innermost name; empty ones for those of a path on the disk that are not UTF-8.
    pub(crate) fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        let member = self.members.last().map_or("", Member::name);
        let path = if member.is_empty() { Some(&*self.path) } else { None };
        let on_disk = path.into_iter().flat_map(Path::iter).map(|part| part.to_str().unwrap_or_default());
        on_disk.chain(member.split('/').filter(|part| !part.is_empty()))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", ShownPath(&self.path))?;
        for member in self.members() {
            write!(f, "!{}", Shown(member))?;
        }
        Ok(())
    }
}

impl Entry {
    /// The names that it can be asked for by: its file name, and for a file in a dSYM bundle the bundle's, with and
    /// without the ending of what it belongs to (`App.app.dSYM`: `App.app` and `App`). For a member of a static
    /// library or an image of a shared cache, that one's own file name alone. For a table or symbol file, also that of its
    /// image (`App.btsym`: `App`).
    pub fn names(&self) -> Vec<&str> {
        if let Some(member) = &self.identity.member {
            return vec![member.rsplit('/').next().unwrap_or(member)];
        }
        let mut names = vec![self.location.file_name()];
        let bundle = self.location.components().rev().find_map(|part| part.strip_suffix(".dSYM"));
        names.extend(bundle);
        names.extend(bundle.and_then(without_bundle_ending));
        if matches!(self.identity.kind, Kind::Table | Kind::SymbolFile) {
            const ENDINGS: [&str; 3] = [".btsym", ".gsym", ".sym"];
            let name = self.location.file_name();
            names.extend(ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)));
        }
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// The name of the binary in a bundle of one of the kinds that have dSYMs.
fn without_bundle_ending(name: &str) -> Option<&str> {
    const ENDINGS: [&str; 8] =
        [".app", ".framework", ".appex", ".bundle", ".xctest", ".xpc", ".kext", ".plugin"];
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))
}

/// How much a file says about addresses; the least is the best.
pub(crate) fn rank(kind: Kind, has_debug_info: bool, has_symbols: bool) -> u8 {
    match (kind, has_debug_info, has_symbols) {
        (Kind::Table, true, _) => 0,
        (Kind::DebugCompanion, true, _) => 1,
        (Kind::SymbolFile, ..) => 3,
        (_, true, _) => 2,
        (Kind::Table, ..) => 4,
        (_, false, true) => 5,
        (_, false, false) => 6,
    }
}
