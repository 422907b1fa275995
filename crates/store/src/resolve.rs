//! Which file belongs to an image, or why none does.

use std::path::PathBuf;

use backtrail_core::{Arch, ImageId};

use crate::entry::Entry;
use crate::index::Index;

/// An image that files are wanted for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Wanted {
    /// Its name as the report gives it: a file name.
    pub name: String,
    /// Its path where it ran; the name is taken from here when there is no other.
    pub path: String,
    /// Its identity; nil counts as none.
    pub id: Option<ImageId>,
    /// Its architecture.
    pub arch: Option<Arch>,
}

/// What the search for an image's files came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resolution<'i> {
    /// The answer.
    pub outcome: Outcome<'i>,
    /// The paths below which it was looked for.
    pub tried: Vec<PathBuf>,
}

/// The answer to a search.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome<'i> {
    /// These have the wanted identity, the best first (see [`Index::find`]). Both a dSYM and the binary it belongs
    /// to may be among them.
    Found(Vec<&'i Entry>),
    /// None has the wanted identity, but these have the wanted name, each with another identity: another build.
    Mismatch(Vec<&'i Entry>),
    /// Nothing has the identity, nothing the name.
    Missing,
    /// No identity is known of the image, so that nothing can be told to belong to it; these have its name.
    NoId(Vec<&'i Entry>),
}

impl Wanted {
    /// How it is called for people.
    pub(crate) fn shown(&self) -> &str {
        if self.path.is_empty() { &self.name } else { &self.path }
    }

    /// The file name to look for.
    pub fn file_name(&self) -> &str {
        let name = if self.name.is_empty() { &self.path } else { &self.name };
        name.rsplit('/').next().unwrap_or(name)
    }
}

impl Index {
    /// Finds the files of an image. Only an identity makes a file the right one; its name never does.
    pub fn resolve(&self, wanted: &Wanted) -> Resolution<'_> {
        Resolution { outcome: self.outcome(wanted), tried: self.roots().to_vec() }
    }

    fn outcome(&self, wanted: &Wanted) -> Outcome<'_> {
        let same_name = || match wanted.file_name() {
            "" => Vec::new(),
            name => self.same_name(name, wanted.arch),
        };
        let Some(id) = wanted.id.filter(|id| !id.is_nil()) else {
            return Outcome::NoId(same_name());
        };
        // Identities are unique; an architecture that does not fit is the report's mistake (translated processes).
        let found = match self.find(&id, wanted.arch) {
            none if none.is_empty() => self.find(&id, None),
            found => found,
        };
        if !found.is_empty() {
            return Outcome::Found(found);
        }
        let mut named = same_name();
        named.retain(|entry| entry.identity.id.is_some());
        if named.is_empty() { Outcome::Missing } else { Outcome::Mismatch(named) }
    }
}
