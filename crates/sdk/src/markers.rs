//! Marker functions: a first and a last function that a vendor compiled into his library, found by name in an app that has its
//! symbols.

use std::str::FromStr;

use backtrail_core::{AddrRange, Confidence, Svma};
use backtrail_object::{Limits, Object, slices};

use crate::error::{Error, ErrorKind, Result};
use crate::map::{AppOwners, OwnerMap};
use crate::owned::OwnedRange;

/// Names of marker functions, and of the library that lies between them: `[NAME=]BEGIN,END`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Markers {
    /// The library's name.
    pub owner: String,
    /// The function that is first.
    pub begin: String,
    /// The one that is behind the last.
    pub end: String,
}

impl FromStr for Markers {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            let detail = format!(
                "expected the names of two functions, BEGIN,END or NAME=BEGIN,END, found {:?}",
                text.chars().take(80).collect::<String>()
            );
            Error::new(ErrorKind::WrongInput, detail)
        };
        let (owner, names) = text.split_once('=').map_or((None, text), |(owner, names)| (Some(owner), names));
        let (begin, end) = names.split_once(',').ok_or_else(wrong)?;
        let owner = owner.map_or_else(|| format!("{begin}..{end}"), str::to_owned);
        if owner.is_empty() || begin.is_empty() || end.is_empty() || end.contains(',') {
            return Err(wrong());
        }
        Ok(Self { owner, begin: begin.to_owned(), end: end.to_owned() })
    }
}

impl Markers {
    /// Adds what lies between the markers to each of an app's architectures, where nothing better is known. It is likely the
    /// library's: a linker may move functions.
    ///
    /// # Errors
    /// Where the bytes are no app.
    pub fn add_to(&self, bytes: &[u8], mapped: &mut [AppOwners]) -> Result<()> {
        let limits = Limits::default();
        for slice in slices(bytes, &limits)? {
            let Some(known) = mapped.iter_mut().find(|known| known.arch == slice.arch) else { continue };
            let object = slice.parse(&limits)?;
            match self.range(&object) {
                Ok(range) => self.fill(range, &mut known.owners),
                Err(note) => known.owners.notes.push(note),
            }
        }
        Ok(())
    }

    fn range(&self, object: &Object<'_>) -> std::result::Result<AddrRange<Svma>, String> {
        let symbols = object.symbols().unwrap_or_default();
        let find = |wanted: &str| {
            let is_it = |name: &str| name == wanted || name.strip_prefix('_') == Some(wanted);
            let mut found = symbols.iter().filter(|symbol| symbol.is_code && is_it(&symbol.name));
            let first = found.next().ok_or_else(|| {
                format!(
                    "the marker {wanted} is none of the app's symbols; a stripped app has none of its own"
                )
            })?;
            match found.all(|other| other.address == first.address) {
                true => Ok(first.address),
                false => Err(format!("several functions are called {wanted}: no marker")),
            }
        };
        let (begin, end) = (find(&self.begin)?, find(&self.end)?);
        if begin >= end {
            return Err(format!(
                "the marker {} is not before {}: the linker moved functions, and nothing is claimed",
                self.begin, self.end
            ));
        }
        Ok(AddrRange::new(begin, end))
    }

    /// What is left of the range beside the known ones.
    fn fill(&self, range: AddrRange<Svma>, owners: &mut OwnerMap) {
        let mut free = range.start();
        let mut found = Vec::new();
        let mut others = false;
        let mut add = |start: Svma, end: Svma| {
            if start < end {
                let (range, owner) = (AddrRange::new(start, end), self.owner.clone());
                found.push(OwnedRange::new(range, owner, None, Confidence::Likely, "markers"));
            }
        };
        for known in owners
            .ranges
            .iter()
            .filter(|known| known.range.start() < range.end() && known.range.end() > range.start())
        {
            others |= known.owner != self.owner && !known.shared_by.contains(&self.owner);
            add(free, known.range.start());
            free = free.max(known.range.end());
        }
        add(free, range.end());
        if others {
            // Then what is between the markers is not the library's alone.
            owners.notes.push(format!(
                "code of others lies between the markers {} and {}: the linker moved functions, and nothing is claimed by them",
                self.begin, self.end
            ));
            return;
        }
        owners.ranges.extend(found);
        owners.ranges.sort_by_key(|owned| owned.range.start());
    }
}
